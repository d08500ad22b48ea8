# SPDX-License-Identifier: Apache-2.0
"""One frontier: the same splits and attackers for every protection, and a protection that protects shows up as one."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import sfumato
from html_page import Page
from sfumato import Frontier, frontier
from sfumato.attack import wilson_interval
from sfumato.errors import InputError, ParameterError
from sfumato.progress import QuietReporter
from sfumato.report.frontier_row import FAMILIES

QUICK = ("threshold", "release_membership", "singling_out")
NAMES = ["age", "income", "region", "illness"]


def people(n=700, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": generator.integers(18, 90, n),
            "income": generator.integers(0, 100_000, n),
            "region": generator.choice(["north", "south"], n, p=[0.8, 0.2]),
            "illness": generator.choice(["flu", "cold", "none"], n),
        }
    )
    y = np.where(frame["age"] + generator.normal(0, 20, n) > 54, "yes", "no")
    return frame, y


def tree(**settings):
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["region", "illness"]), remainder="passthrough"
    )
    return make_pipeline(encoder, DecisionTreeClassifier(random_state=0, **settings))


class Copies:
    """A synthesizer that hands out the very records it got: the worst there is."""

    def fit(self, table):
        self.table = table

    def sample(self, n):
        return self.table.iloc[np.random.default_rng(0).permutation(n)]


class Shuffled(BaseEstimator):
    """A synthesizer that draws every column by itself: nothing goes with anything."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, table):
        self.table_ = table
        return self

    def sample(self, n):
        generator = np.random.default_rng(self.random_state)
        return pd.DataFrame({name: generator.permutation(self.table_[name].to_numpy()) for name in self.table_})


class Constant(ClassifierMixin, BaseEstimator):
    """Says the most frequent class, whatever it is asked."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict(self, X):
        return np.repeat(self.classes_[self.shares_.argmax()], len(X))

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


PROTECTIONS = {
    "k": [20],
    "k-release": [20],
    "l": [2],
    "t": [0.5],
    "buckets": [6],
    "anatomy": [2],
    "copies": Copies(),
    "shuffled": Shuffled(),
    "constant": Constant(),
}


@pytest.fixture(scope="module")
def arrived():
    return []


@pytest.fixture(scope="module")
def found(arrived, small_attackers):
    X, y = people()
    return frontier(
        X, y, tree(), PROTECTIONS, sensitive="illness", subgroups="region", n_splits=3, n_attacked=2,
        on_row=arrived.append,
    )  # fmt: skip


# -- rows ----------------------------------------------------------------------------------------------------------


def test_the_unprotected_model_comes_first_and_every_protection_has_a_row(found):
    assert [(row.name, row.family, row.parameter, row.shares) for row in found.rows] == [
        ("no protection", "none", None, "table"),
        ("k = 20, model", "k", 20.0, "model"),
        ("k = 20, table", "k", 20.0, "table"),
        ("l = 2, k = 10, table", "l", 2.0, "table"),
        ("t = 0.5, k = 10, table", "t", 0.5, "table"),
        ("6 leaves, buckets", "buckets", 6.0, "table"),
        ("l = 2, two tables", "anatomy", 2.0, "table"),
        ("copies", "synthetic", None, "table"),
        ("shuffled", "synthetic", None, "table"),
        ("constant", "other", None, "model"),
    ]
    assert all(row.family in FAMILIES for row in found.rows)
    assert (found.n_train, found.n_test, found.n_splits, found.is_complete) == (350, 350, 3, True)


def test_rows_arrive_one_by_one(found, arrived):
    assert tuple(arrived) == found.rows


def test_raw_records_in_other_clothes_are_found_out(found):
    copies = found["copies"]
    assert copies.strongest("membership", "table").rate.value > 0.95
    assert copies.strongest("membership", "table").verdict == "stronger than baseline"
    assert copies.strongest("singling out", "table").rate.value > 0.9
    assert copies.strongest("attribute", "table").rate.value > 0.95
    assert copies.utility.value == pytest.approx(found["no protection"].utility.value, abs=0.05)


def test_columns_that_were_drawn_apart_tell_nothing(found):
    shuffled = found["shuffled"]
    assert shuffled.strongest("membership", "table").rate.value < 0.6
    assert shuffled.utility.value < found["no protection"].utility.value


def test_a_constant_answer_is_as_good_as_no_model(found):
    constant = found["constant"]
    assert constant.utility.value == pytest.approx(found.blind)
    assert constant.auc.value == pytest.approx(0.5)
    assert constant.strongest("membership", "model").rate.value == pytest.approx(0.5, abs=0.02)


def test_groups_lower_the_risk_of_a_model_that_learned_by_heart(found):
    raw, protected = (found[name].strongest("membership", "model").rate for name in ("no protection", "k = 20, model"))
    assert raw.value > 0.6 > protected.value


def test_exact_values_in_two_tables_hide_nobody_and_no_bound_is_claimed(found):
    anatomy = found["l = 2, two tables"]
    assert anatomy.strongest("membership", "table").rate.value > 0.95
    assert anatomy.strongest("attribute", "table").baseline >= 0.3
    assert anatomy.certificate is None and "no bound holds" in anatomy.reasons["certificate"]


def test_certificates_bound_what_cells_tell(found):
    for name in ("k = 20, table", "6 leaves, buckets", "l = 2, k = 10, table"):
        bound = found[name].certificate
        assert bound.secret == "illness" and bound.baseline < bound.upper < 1


def test_what_cannot_be_measured_says_why(found):
    for row in found.rows:
        for name in ("utility", "auc", "recoded", "certificate", "limit"):
            assert (getattr(row, name) is None) is (name in row.reasons), (row.name, name)
    assert found["k = 20, model"].reasons["table attacks"] == "no table is shared, only a model"


def test_recoded_test_records_are_measured_where_there_is_a_recoding(found):
    assert [row.name for row in found.rows if row.recoded is not None] == [
        "k = 20, table", "l = 2, k = 10, table", "t = 0.5, k = 10, table",
    ]  # fmt: skip


def test_attacks_run_on_as_many_splits_as_asked_for(found):
    assert {len(attack.rate.per_split) for row in found.rows for attack in row.attacks} == {2}
    assert all(len(row.utility.per_split) == 3 for row in found.rows)


def test_changes_are_paired_and_their_interval_is_corrected_for_overlap(found):
    raw, own = found["no protection"].utility.per_split, found["shuffled"].utility.per_split
    differences = [b - a for a, b in zip(raw, own, strict=True)]
    mean = sum(differences) / 3
    variance = sum((d - mean) ** 2 for d in differences) / 2
    half = 4.302652729911275 * math.sqrt((1 / 3 + found.n_test / found.n_train) * variance)
    change = found.change("shuffled")
    assert change.value == pytest.approx(mean)
    assert change.interval == pytest.approx((mean - half, mean + half))
    assert found.change("no protection") is None


def test_an_interval_is_no_narrower_than_that_of_one_split(found):
    for row in found.rows:
        low, high = row.utility.interval
        assert 0 <= low < row.utility.value < high <= 1
        assert high - low > 0.05  # Wilson's for 350 records


def test_the_worst_subgroup_pays_most(found):
    for row in found.rows[1:]:
        part, change = found.worst_subgroup(row)
        paid = {
            own.group: own.utility.value - raw.utility.value
            for own, raw in zip(row.subgroups, found["no protection"].subgroups, strict=True)
        }
        assert change.value == pytest.approx(min(paid.values())) and paid[part.group] == min(paid.values())
    assert found.worst_subgroup("no protection") is None


def test_subgroups_of_one_split_have_intervals_over_its_records():
    X, y = people()
    measured = frontier(X, y, tree(), {"k-release": [20]}, subgroups="region", n_splits=1, attacks="none")
    for row in measured.rows:
        assert len(row.subgroups) > 1
        for part in row.subgroups:
            low, high = part.utility.interval
            assert (low, high) == wilson_interval(round(part.utility.value * part.n_records), part.n_records)
            assert low < part.utility.value < high


def test_records_without_any_value_in_a_column_are_one_subgroup():
    X, y = people()
    X["region"] = pd.Categorical([None] * len(X))
    measured = frontier(X, y, tree(), {"buckets": [4]}, subgroups="region", n_splits=1, attacks="none")
    assert [[part.group for part in row.subgroups] for row in measured.rows] == [["missing"], ["missing"]]


class Emptied(Copies):
    """A synthesizer whose columns of text have no value left, as noise can leave it."""

    def sample(self, n):
        return super().sample(n).assign(region=pd.Categorical([None] * n))


def test_a_made_table_without_any_value_in_a_column_is_attacked():
    found = run({"emptied": Emptied()})
    assert found["emptied"].strongest("membership", "table") is not None


def test_subgroups_of_numbers_and_dates_are_classes_that_add_up():
    """`sfumato init` suggests a special category as subgroups, which may be codes or numbers."""
    X, y = people()
    X["code"] = X["illness"].map({"flu": 1, "cold": 2, "none": 3}).astype(float)
    X.loc[:119, "code"] = np.nan
    X["birth"] = pd.Timestamp("2020-01-01") - pd.to_timedelta(X["age"] * 365, unit="D")
    own = make_pipeline(make_column_transformer(("passthrough", ["age", "income"])), DecisionTreeClassifier())
    names = ["age", "code", "birth"]
    measured = frontier(X, y, own, {"k-release": [20]}, subgroups=names, n_splits=1, attacks="none",
                        quasi_identifiers=["age", "income"])  # fmt: skip
    for row in measured.rows:
        groups = {name: {one.group: one for one in row.subgroups if one.column == name} for name in names}
        assert {"1", "2", "3"} <= set(groups["code"]) and len(groups["age"]) == len(groups["birth"]) == 4
        assert all(sum(one.n_records for one in own.values()) == measured.n_test for own in groups.values())


def test_subgroups_add_up_to_all(found):
    for row in found.rows:
        assert sum(part.n_records for part in row.subgroups) == 3 * found.n_test


def test_the_front_holds_what_nothing_else_beats(found):
    points = {row.name: (row.best.value, row.risk) for row in found.rows}
    assert found.front()
    for name, (utility, risk) in points.items():
        beaten = any(u >= utility and r <= risk and (u, r) != (utility, risk) for u, r in points.values())
        assert (name in found.front()) is not beaten


# -- as data and for people ----------------------------------------------------------------------------------------


def test_json_goes_and_comes_back(found):
    text = found.to_json()
    assert "NaN" not in text and "Infinity" not in text
    assert Frontier.from_json(text) == found
    document = json.loads(text)
    assert document["front"] == list(found.front())
    assert document["rows"][1]["change"]["value"] == pytest.approx(found.change("k = 20, model").value)
    with pytest.raises(InputError, match="not a frontier"):
        Frontier.from_dict({"version": 99})


def test_no_value_of_a_cell_is_in_any_output(small_attackers):
    X, y = people(400)
    X["illness"] = np.where(np.arange(400) == 7, "zebrapox", X["illness"])
    X["income"] = np.where(np.arange(400) == 8, 987_654, X["income"])
    X.loc[:4, "region"] = "island"
    rows = frontier(
        X, y, tree(), {"k-release": [20], "copies": Copies()}, sensitive="illness", subgroups="region", n_splits=2
    )
    shown = [rows.to_json(), rows.to_html(), rows.to_markdown(), rows.plot(), rows.to_frame().to_csv()]
    for secret in ("zebrapox", "987654", "987,654", "island"):
        assert not [text for text in shown if secret in text]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_table_comes_in_every_library(found, library):
    frame = found.to_frame(library)
    assert library in type(frame).__module__
    assert str(frame["protection"][0]) == "no protection"
    names = frame.column_names if library == "pyarrow" else list(frame.columns)
    assert {"accuracy", "accuracy_low", "change", "auc", "model_attack", "table_attack", "reasons"} <= set(names)


def test_another_library_is_refused(found):
    with pytest.raises(ParameterError, match="library='dask'"):
        found.to_frame("dask")


def test_the_picture_is_well_formed_and_says_what_it_shows(found):
    picture = ElementTree.fromstring(found.plot())
    [title] = picture.findall("{http://www.w3.org/2000/svg}title")
    assert "k = 20, model: accuracy" in title.text
    text = " ".join(part.text or "" for part in picture.iter("{http://www.w3.org/2000/svg}text"))
    assert all(row.name in text for row in found.rows)
    assert "prefers-color-scheme: dark" in found.plot()


def test_the_page_has_no_script_and_names_are_escaped(found):
    hostile = replace(found, rows=(replace(found.rows[0], name="<b>&\u202e"), *found.rows[1:]), reference="<b>&\u202e")
    html = hostile.to_html("<i>")
    page = Page(html)
    assert "script" not in page.tags and "i" not in page.tags and "\u202e" not in html
    assert page.open == []
    assert html.count("<svg") == 2  # wide, and narrow for phones
    assert "sandbox" in hostile._repr_html_() and "<b>" not in hostile._repr_html_()


def test_markdown_says_how_it_was_measured(found):
    text = found.to_markdown()
    assert text.startswith("3 splits: 350 records to train with and 350 to test on.")
    assert "Nadeau and Bengio" in text and "| k = 20, model | model |" in text


def test_files_are_written_by_their_kind(found, tmp_path):
    for suffix, begins in {".json": "{", ".html": "<!DOCTYPE", ".svg": "<svg", ".md": "3 splits"}.items():
        found.write(tmp_path / f"frontier{suffix}")
        assert (tmp_path / f"frontier{suffix}").read_text(encoding="utf-8").startswith(begins)
    with pytest.raises(ParameterError, match=r"expected \.html, \.md, \.json or \.svg"):
        found.write(tmp_path / "frontier.png")


def test_a_row_that_is_not_there_is_named(found):
    with pytest.raises(ParameterError, match="no row 'k = 5'"):
        found["k = 5"]


# -- how it runs ---------------------------------------------------------------------------------------------------


def run(protections, n=300, model=None, **settings):
    X, y = people(n)
    how = {"attacks": QUICK, "n_splits": 2, **settings}
    return frontier(X, y, tree(max_depth=4) if model is None else model, protections, **how)


def without_seconds(found):
    return replace(found, rows=tuple(replace(row, seconds=0.0) for row in found.rows))


def test_two_runs_with_the_same_seed_are_equal():
    protections = {"k": [10], "k-release": [10], "buckets": [6], "shuffled": Shuffled()}
    first, second = (without_seconds(run(protections, random_state=3)) for _ in range(2))
    assert first == second
    assert without_seconds(run({"k": [10]}, random_state=4)).rows[0] != first.rows[0]


def test_a_row_does_not_depend_on_the_rows_beside_it():
    alone, beside = run({"k": [10]}), run({"shuffled": Shuffled(), "k": [10]})
    assert without_seconds(alone).rows[-1] == without_seconds(beside).rows[-1]


def test_a_callback_can_stop_the_run():
    found = run({"k": [10], "k-release": [10]}, on_row=lambda row: row.family != "k")
    assert [row.name for row in found.rows] == ["no protection", "k = 10, model"]
    assert not found.is_complete and "stopped" in found.to_markdown()


class Watching(QuietReporter):
    """Hears of steps, and raises at one of them."""

    def __init__(self, at=math.inf, error=None):
        super().__init__()
        self.steps, self.at, self.error = [], at, error

    def step(self, what):
        self.steps.append(what)
        if len(self.steps) > self.at:
            raise self.error
        return super().step(what)


def test_a_reporter_hears_of_every_split_and_can_stop_the_run():
    heard = Watching()
    run({"k": [10]}, reporter=heard)
    assert heard.steps == [
        "no protection, split 1 of 2", "no protection, split 2 of 2",
        "k = 10, model, split 1 of 2", "k = 10, model, split 2 of 2",
    ]  # fmt: skip
    with pytest.raises(TimeoutError):
        run({"k": [10]}, reporter=Watching(1, TimeoutError()))


def test_an_interrupted_run_keeps_its_rows():
    found = run({"k": [10]}, reporter=Watching(3, KeyboardInterrupt()))
    assert [row.name for row in found.rows] == ["no protection"] and not found.is_complete
    with pytest.raises(KeyboardInterrupt):
        run({"k": [10]}, reporter=Watching(1, KeyboardInterrupt()))


def test_a_protection_that_fails_has_a_row_with_the_reason():
    found = run({"k": [10], "k-release": [10_000]})
    failed = found.rows[-1]
    assert failed.utility is None and failed.attacks == () and "k=10000" in failed.reasons["all"]
    assert "k = 10000, table: " in found.to_markdown() and Frontier.from_json(found.to_json()) == found
    ElementTree.fromstring(found.plot())


def test_an_error_of_another_package_names_the_protection():
    class Broken(Constant):
        def fit(self, X, y):
            raise RuntimeError("no luck")

    with pytest.raises(RuntimeError) as raised:
        run({"mine": Broken()})
    assert "protection 'mine'" in "".join(raised.value.__notes__)


def test_records_of_a_person_stay_on_one_side():
    X, y = people(300)
    X, person = X.assign(income=np.arange(300)), np.arange(300) // 3

    class Remembers(Constant):
        def fit(self, X, y):
            seen.append(set(X["income"]))
            return super().fit(X, y)

    seen = []
    frontier(X, y, tree(), {"mine": Remembers()}, groups=person, attacks="none", n_splits=2)
    for incomes in seen:
        inside = X["income"].isin(incomes)
        assert inside.groupby(person).nunique().eq(1).all()


def test_one_split_has_intervals_over_its_records():
    found = run({"k": [10]}, n_splits=1)
    assert found.rows[1].utility.interval is not None and found.change("k = 10, model").interval is None
    assert "one split" in found.intervals


def test_levels_of_audits_choose_the_attacks(small_attackers):
    found = run({"k-release": [10]}, attacks="quick", sensitive="illness", n_splits=1)
    names = {attack.attack for attack in found.rows[1].attacks}
    assert {"threshold", "random_forest", "release_membership", "linkability", "predicate_singling_out"} <= names
    assert run({"k": [10]}, attacks="none").rows[1].attacks == ()


def test_shadow_models_attack_the_whole_pipeline():
    found = run({"k": [10]}, attacks=("lira", "rmia"), n_shadows=4, n_splits=1)
    assert {attack.attack for attack in found.rows[1].attacks} == {"lira", "rmia"}


def test_nothing_given_compares_a_few_of_every_family():
    X, y = people(300)
    found = frontier(X, y, tree(max_depth=4), sensitive="illness", attacks="none", n_splits=1)
    assert [row.name for row in found.rows] == [  # too few records for k = 100
        "no protection", "k = 10, model", "k = 10, table", "l = 2, k = 10, table", "20 leaves, buckets",
        "l = 2, two tables",
    ]  # fmt: skip
    left_out = " ".join(found.notes)
    assert "Left out: epsilon" in left_out and "Left out: counts" in left_out


# -- other tasks and objects ---------------------------------------------------------------------------------------


def test_a_regressor_is_judged_by_its_explained_variance():
    X, _ = people(500)
    numbers = X[["age", "income"]].to_numpy(float)
    y = X["age"].to_numpy(float) + np.random.default_rng(1).normal(0, 10, 500)
    protections = {"k": [20], "k-release": [20], "line": LinearRegression(), "copies": ArrayCopies()}
    found = frontier(
        numbers, y, DecisionTreeRegressor(random_state=0, max_leaf_nodes=60), protections,
        attacks=("threshold",), n_splits=2,
    )  # fmt: skip
    assert found.metric == "R2" and found["line"].utility.value > found["no protection"].utility.value
    assert found["no protection"].auc is None and found["line"].reasons["auc"] == "the target is a number"
    assert found["copies"].utility.value == pytest.approx(found["no protection"].utility.value, abs=0.2)
    assert found["no protection"].strongest("membership", "model").rate.value > 0.6
    assert "R2" in found.to_markdown() and ElementTree.fromstring(found.plot()) is not None


class ArrayCopies(Copies):
    """The same for arrays, which have no names."""

    def sample(self, n):
        return self.table[np.random.default_rng(0).permutation(n)]


def test_several_classes_have_an_area_under_the_curve_each():
    X, _ = people(600)
    y = np.digitize(X["age"], [40, 60])
    found = frontier(
        X, y, tree(max_depth=5), {"k": [10], "buckets": [6], "copies": Copies()}, attacks=QUICK, n_splits=2
    )
    assert found["no protection"].auc.value > 0.95 and found["copies"].auc.value > 0.95
    assert 0.5 < found["k = 10, model"].auc.value <= 1


def test_ranges_are_measured_on_recoded_records():
    found = run({"ranges": sfumato.MondrianAnonymizer(20, quasi_identifiers=["age", "income"], representative="range")},
                model=make_pipeline(Ordinal(), DecisionTreeClassifier(random_state=0)))  # fmt: skip
    ranges = found["ranges"]
    assert ranges.utility is None and ranges.recoded is not None
    assert ranges.reasons["utility"] == "the model takes recoded records"
    assert found.change("ranges", "recoded") is not None


class Ordinal(BaseEstimator):
    """Codes text and numbers as places in a sorted list."""

    def fit(self, X, y=None):
        self.values_ = {name: sorted(map(str, X[name].unique())) for name in X}
        return self

    def transform(self, X):
        return np.column_stack([np.searchsorted(self.values_[name], X[name].astype(str)) for name in X])


def test_estimators_are_taken_as_they_are():
    wrapped = sfumato.AnonymizedClassifier(tree(), k=15, transform_at_predict=True)
    diverse = sfumato.ModelGuidedAnonymizer(
        10, quasi_identifiers=["age", "income", "region"], criteria=[sfumato.LDiversity(2, "illness")]
    )
    pipeline = make_pipeline(sfumato.PrivacyAwareTree(max_leaves=5, output="representatives"), tree())
    pruned = sfumato.PrunedClassifier(DecisionTreeClassifier(), l=2, sensitive="illness")
    found = run({"wrapped": wrapped, "diverse": diverse, "pipeline": pipeline, "pruned": pruned, "raw again": None})
    assert [(row.name, row.family, row.parameter) for row in found.rows] == [
        ("raw again", "none", None), ("wrapped", "k", 15.0), ("diverse", "l", 2.0), ("pipeline", "buckets", 5.0),
        ("pruned", "anatomy", 2.0),
    ]  # fmt: skip
    assert found.reference == "raw again"


def test_anatomies_of_several_sensitive_tables_are_attacked_in_every_column():
    several = sfumato.Anatomizer(
        {"illness": 3, "region": 2}, sensitive=["illness", "region"], suppression_limit=1.0, random_state=0
    )
    found = run({"several": several}, secrets=["illness", "region"], attacks=("inference",))
    row = found.rows[-1]
    assert (row.family, row.parameter) == ("anatomy", 2.0)
    assert {attack.title for attack in row.attacks if attack.on == "table"} == {
        "infer illness from the release", "infer region from the release",
    }  # fmt: skip


# -- errors --------------------------------------------------------------------------------------------------------


class NeedsLabels(Copies):
    def fit(self, X, y):
        raise AssertionError


@pytest.mark.parametrize(
    ("protections", "says"),
    [
        ([tree()], "protections is a list: expected a mapping"),
        ({"mine": DecisionTreeClassifier}, "'mine' is the class DecisionTreeClassifier: expected an instance"),
        ({"mine": StandardScaler()}, "make_pipeline\\(transformer, model\\)"),
        ({"mine": object()}, "'mine' is a object: expected an anonymizer"),
        ({"mine": 7}, "'mine' with a int: expected an object, or numbers under one of k,"),
        ({"mine": [7]}, "'mine' with a list: expected an object"),
        ({"k": [1]}, "k=\\[1\\]: expected integers from 2 on"),
        ({"k": []}, "k=\\[\\]: expected integers from 2 on, at least one"),
        ({"t": [2.0]}, "expected numbers above 0, up to 1"),
        ({"epsilon": [-1.0]}, "expected numbers above 0"),
        ({"l": [2]}, "'l' without sensitive"),
        ({"anatomy": [2]}, "'anatomy' without sensitive"),
        ({"counts": [1.0]}, "'counts' without others"),
        ({"mine": NeedsLabels()}, "whose fit needs 2 arguments: expected fit\\(table\\)"),
        ({"mine": LinearRegression()}, "which predicts numbers: expected one for classes"),
        ({"k = 5, model": DummyClassifier(), "k": [5]}, "'k = 5, model' twice"),
    ],
)
def test_what_is_no_protection_is_refused_before_any_work(protections, says):
    with pytest.raises(ParameterError, match=says):
        run(protections, reporter=Watching(0, AssertionError("no work")))


@pytest.mark.parametrize("key", ["buckets", "anatomy", "counts", "private-release"])
def test_families_of_classes_refuse_numbers(key):
    X, _ = people(100)
    with pytest.raises(ParameterError, match=r"works for classes|without bounds"):
        frontier(X[["age"]], X["income"].astype(float), LinearRegression(), {key: [2]}, sensitive=None)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"attacks": "hard"}, "attacks='hard': expected one of none, quick"),
        ({"attacks": ["threshhold"]}, "attacks has 'threshhold'"),
        ({"n_splits": 0}, "n_splits=0"),
        ({"n_attacked": 9}, "n_attacked=9"),
        ({"n_shadows": 1}, "n_shadows=1"),
        ({"test_fraction": 1.0}, "test_fraction=1.0"),
        ({"sensitive": "age", "quasi_identifiers": ["age"]}, "'age' is sensitive and a quasi-identifier"),
        ({"sensitive": NAMES}, "no quasi-identifier is left"),
        ({"sensitive": "wage"}, "sensitive names the column 'wage'"),
        ({"others": 5}, "others is a int: expected a pair"),
        ({"groups": [1, 2]}, "2 groups for 300 records"),
        ({"model": "tree"}, "model is a str: expected an unfitted classifier"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_words(settings, says):
    with pytest.raises((ParameterError, InputError), match=says):
        run({"k": [10]}, **settings)


def test_targets_must_be_one_per_record_and_differ():
    X, y = people(100)
    with pytest.raises(InputError, match="y has the shape \\(99,\\) for 100 records"):
        frontier(X, y[:99], tree(), {"k": [5]})
    with pytest.raises(InputError, match="y has one class"):
        frontier(X, np.zeros(100, int), tree(), {"k": [5]})
    with pytest.raises(InputError, match="expected at least 20 on both sides"):
        frontier(X[:30], y[:30], tree(), {"k": [5]})


def sampled(change):
    class Changed(Copies):
        def sample(self, n):
            return change(super().sample(n))

    return Changed()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda table: (table, None), "sample returned a tuple"),
        (lambda table: table.drop(columns="age"), "without 1 of the 5 columns, such as 'age'"),
        (lambda table: table.assign(target="perhaps"), "not among the 2 classes of y"),
        (lambda table: table.assign(target=1.5), "not among the 2 classes of y"),
        (lambda table: table.assign(target=None), "records without a target"),
        (lambda table: table[:0], "the table has 0 sample(s)"),
    ],
)
def test_a_synthesizer_that_returns_something_else_is_told_so(change, says):
    assert says in run({"mine": sampled(change)}).rows[-1].reasons["all"]


def test_a_made_table_of_values_that_nobody_has_is_measured_and_not_attacked():
    row = run({"mine": sampled(lambda table: table.assign(illness="unheard of"))}).rows[-1]
    assert row.utility is not None and "all" not in row.reasons
    assert row.reasons["every attack on the table"] == "each of its records has a value of nobody"
