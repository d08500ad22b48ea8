# SPDX-License-Identifier: Apache-2.0
"""Every criterion holds on what leaves: groups counted one record at a time, judged by the definitions."""

import functools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.document_reader import leaf_of, merged
from criteria import definitions as plain
from sfumato import (
    AlphaKAnonymity,
    AnonymizedClassifier,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    GuaranteeError,
    InputError,
    KAnonymity,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    ParameterError,
    TCloseness,
)
from sfumato.testing import MISSING, group_sizes, people, rows_of
from strategies import RawColumn, guides, in_examples, tables, take_guide

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")

HIERARCHY = {"a": {"aa": ["v0", "v1"], "ab": ["v2"]}, "b": {"ba": ["v3"]}}


def tree_distances(order):
    heights = {("v0", "v1"): 1, ("v0", "v2"): 2, ("v1", "v2"): 2}

    def far(one, other):
        return 0 if one == other else heights.get(tuple(sorted((one, other))), 3) / 3

    return [[far(one, other) for other in order] for one in order]


def within(t, distances, group, table, order):
    return plain.earth_movers_distance(group, table, distances(order)) <= t + 1e-7


# What is asked for, and whether a group meets it by the definition, given its counts, the table's and their order.
CRITERIA = {
    "distinct": (LDiversity(2, "s"), lambda g, t, o: plain.is_distinct_l_diverse(g, 2)),
    "entropy": (LDiversity(1.8, "s", kind="entropy"), lambda g, t, o: plain.is_entropy_l_diverse(g, 1.8)),
    "recursive": (
        LDiversity(2, "s", kind="recursive", c=2),
        lambda g, t, o: plain.is_recursive_c_l_diverse(g, 2, 2),
    ),
    "alpha": (AlphaKAnonymity(0.7, 3, "s"), lambda g, t, o: plain.is_alpha_k_anonymous(g, 0.7, 3)),
    "basic": (BetaLikeness(1.0, "s"), lambda g, t, o: plain.is_beta_like(g, t, 1.0)),
    "enhanced": (
        BetaLikeness(1.0, "s", kind="enhanced"),
        lambda g, t, o: plain.is_enhanced_beta_like(g, t, 1.0 + 1e-9),
    ),
    "delta": (DeltaDisclosure(1.2, "s"), lambda g, t, o: plain.largest_logarithm(g, t) < 1.2),
    "equal": (TCloseness(0.3, "s"), functools.partial(within, 0.3, lambda o: plain.equal_distances(len(o)))),
    "hierarchical": (
        TCloseness(0.25, "s", distance="hierarchical", hierarchy=HIERARCHY),
        functools.partial(within, 0.25, tree_distances),
    ),
}


@st.composite
def tables_with_a_sensitive_column(draw, missing=True):
    table = draw(tables(min_records=6, max_columns=3))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    n_values = draw(st.integers(1, 4))
    values = [f"v{value}" for value in generator.integers(0, n_values, table.n_records)]
    if missing and draw(st.booleans()):
        values = [None if absent else v for v, absent in zip(values, generator.random(len(values)) < 0.2, strict=True)]
    table.columns["s"] = RawColumn("text", values, "object")
    return table


def judge(released, criterion, holds):
    """Return which groups of a released table meet a definition, counted one record at a time."""
    names = released.column_names
    values = [value for (value,) in rows_of(released, ["s"])]
    rows = rows_of(released, [name for name in names if name != "s"])
    if criterion.missing == "suppress":
        kept = [place for place, value in enumerate(values) if value != MISSING]
        rows, values = [rows[place] for place in kept], [values[place] for place in kept]
    groups, order = plain.count_by_group(rows, values)
    table = [sum(column) for column in zip(*groups, strict=True)]
    return [holds(group, table, order) for group in groups]


def whole_table_meets(table, criterion, holds):
    known = pa.table({"q": pa.array([0] * table.n_records), "s": pa.array(table.columns["s"].values, pa.string())})
    judged = judge(known, criterion, holds)
    return all(judged)


@pytest.mark.parametrize("missing", ["value", "suppress"])
@pytest.mark.parametrize("name", CRITERIA)
@in_examples(50)
@given(data=st.data(), table=tables_with_a_sensitive_column())
def test_every_released_group_meets_the_criterion(name, missing, table, data):
    asked, holds = CRITERIA[name]
    criterion = type(asked)(**{**{f: getattr(asked, f) for f in asked.__dataclass_fields__ if f[0] != "_"},
                               "missing": missing})  # fmt: skip
    guide = data.draw(guides(table.n_records), "guide")
    anonymizer = ModelGuidedAnonymizer(2, criteria=[criterion])
    frame = table.to("pyarrow")
    if all(value is None for value in table.columns["s"].values) and missing == "suppress":
        with pytest.raises(ParameterError, match="has no value at all"):
            anonymizer.fit(frame, guide)
        return
    if not whole_table_meets(table, criterion, holds):
        with pytest.raises(ParameterError, match=r"not even the whole table meets\. The column 's' has"):
            anonymizer.fit(frame, guide)
        return
    released = anonymizer.fit_transform(frame, guide)
    assert released.num_rows == table.n_records
    assert all(judge(released, criterion, holds))
    assert min(group_sizes(released, [n for n in released.column_names if n != "s"]).values()) >= 2
    assert "s" not in {column.name for column in anonymizer.partition_.columns}  # never split on
    assert anonymizer.schema_.roles["s"] == "sensitive"
    assert released["s"].to_pylist() == table.columns["s"].values

    rows = data.draw(st.lists(st.sampled_from(range(table.n_records)), min_size=4, unique=True), "rows")
    try:
        release = anonymizer.release(table.take(rows).to("pyarrow"), take_guide(guide, rows))
    except (GuaranteeError, ParameterError):
        some = table.take(rows)
        assert not whole_table_meets(some, criterion, holds) or not any(
            value is not None for value in some.columns["s"].values
        )
        return
    assert all(judge(release.table, criterion, holds))
    assert release.n_suppressed == 0


@pytest.mark.parametrize("name", CRITERIA)
@in_examples(50)
@given(data=st.data(), table=tables_with_a_sensitive_column(missing=False))
def test_a_release_with_suppression_is_judged_by_what_leaves(name, table, data):
    criterion, holds = CRITERIA[name]
    if not whole_table_meets(table, criterion, holds):
        return
    anonymizer = MondrianAnonymizer(2, criteria=[criterion], suppression_limit=0.5)
    anonymizer.fit(table.to("pyarrow"))
    rows = data.draw(st.lists(st.sampled_from(range(table.n_records)), min_size=4, unique=True), "rows")
    try:
        release = anonymizer.release(table.take(rows).to("pyarrow"))
    except GuaranteeError:
        return
    assert all(judge(release.table, criterion, holds))
    assert release.table.num_rows == len(rows) - release.n_suppressed >= len(rows) / 2


@in_examples(50)
@given(data=st.data(), table=tables_with_a_sensitive_column(missing=False))
def test_several_criteria_hold_at_once(table, data):
    generator = np.random.default_rng(table.n_records)
    table.columns["z"] = RawColumn("integer", generator.integers(0, 3, table.n_records).tolist(), "int64")
    criteria = [LDiversity(2, "s"), TCloseness(0.4, "z", distance="ordered"), KAnonymity(3)]
    anonymizer = ModelGuidedAnonymizer(2, criteria=criteria)
    guide = data.draw(guides(table.n_records), "guide")
    if len(set(table.columns["s"].values)) < 2:
        with pytest.raises(ParameterError, match="largest l that works is 1"):
            anonymizer.fit(table.to("polars"), guide)
        return
    released = anonymizer.fit_transform(table.to("polars"), guide)
    keys = rows_of(released, [name for name in released.columns if name not in "sz"])
    assert min(group_sizes(released, [name for name in released.columns if name not in "sz"]).values()) >= 3
    assert all(plain.is_distinct_l_diverse(g, 2) for g in plain.count_by_group(keys, released["s"].to_list())[0])
    groups, order = plain.count_by_group(keys, released["z"].to_list())
    whole = [sum(column) for column in zip(*groups, strict=True)]
    distances = plain.ordered_distances(len(order))
    assert all(plain.earth_movers_distance(group, whole, distances) <= 0.4 + 1e-7 for group in groups)


def ill_people(n_records=120):
    table, guide = people(n_records)
    generator = np.random.default_rng(3)
    ill = generator.choice(["flu", "cough", "ulcer"], n_records, p=[0.6, 0.3, 0.1]).tolist()
    return table.append_column("ill", [ill]), guide


def diversity(frame, values, leave_out=("ill",)):
    keys = rows_of(frame, [name for name in frame.column_names if name not in leave_out])
    return min(sum(n > 0 for n in group) for group in plain.count_by_group(keys, values)[0])


def test_without_the_criterion_groups_are_not_diverse():
    """Else the tests above could not fail."""
    table, guide = ill_people()
    released = ModelGuidedAnonymizer(2, quasi_identifiers=table.column_names[:-1]).fit_transform(table, guide)
    assert diversity(released, released["ill"].to_pylist()) == 1


def test_a_grower_that_forgets_the_criterion_is_caught(monkeypatch):
    from sfumato.anonymize import partitioners
    from sfumato.partition.grower import Grower

    table, guide = ill_people()
    monkeypatch.setattr(partitioners, "Grower", lambda *args, **more: Grower(*args, **(more | {"checks": []})))
    with pytest.raises(GuaranteeError, match=r"at least 2 different values of 'ill'.*Nothing is released"):
        ModelGuidedAnonymizer(2, criteria=[LDiversity(2, "ill")]).fit_transform(table, guide)


@pytest.mark.parametrize(
    ("criterion", "sentence"),
    [
        (LDiversity(4, "ill"), "The column 'ill' has 3 different values; the largest l that works is 3"),
        (LDiversity(2.9, "ill", kind="entropy"), r"has 3 different values; the largest l that works is 2\.\d"),
        (LDiversity(3, "ill", kind="recursive", c=1.8), "the largest l that works with c=1.8 is 2"),
        (LDiversity(2, "ill", kind="recursive", c=0.1), "with c=0.1 no l of at least 2 works"),
        (AlphaKAnonymity(0.3, 5, "ill"), r"alpha must be at least 0\.\d+ and k at most 120"),
    ],
)
def test_what_the_whole_table_fails_is_refused_before_any_work(criterion, sentence, monkeypatch):
    monkeypatch.setattr(ModelGuidedAnonymizer, "_make_guide", lambda *_: pytest.fail("work was done"))
    with pytest.raises(ParameterError, match=f"not even the whole table meets. .*{sentence}") as refused:
        ModelGuidedAnonymizer(5, criteria=[criterion]).fit(*ill_people())
    assert not {"flu", "cough", "ulcer"} & set(str(refused.value).split("'"))


def test_the_bound_that_the_refusal_names_works():
    table, guide = ill_people()
    for criterion in (LDiversity(3, "ill"), LDiversity(2, "ill", kind="recursive", c=1.8)):
        ModelGuidedAnonymizer(5, criteria=[criterion]).fit_transform(table, guide)


def test_a_sensitive_column_is_no_quasi_identifier():
    table, guide = ill_people()
    with pytest.raises(ParameterError, match="'ill' is named in sensitive and in quasi_identifiers"):
        ModelGuidedAnonymizer(5, quasi_identifiers=["age", "ill"], criteria=[LDiversity(2, "ill")]).fit(table, guide)
    with pytest.raises(ParameterError, match=r"sensitive names the column 'il'.*Did you mean 'ill'"):
        ModelGuidedAnonymizer(5, criteria=[LDiversity(2, "il")]).fit(table, guide)
    split = ModelGuidedAnonymizer(5, criteria=[LDiversity(2, "ill")], split_on="all").fit(table, guide)
    assert "ill" not in {column.name for column in split.partition_.columns}


def test_a_column_of_too_many_values_is_refused(monkeypatch):
    monkeypatch.setattr("sfumato.criteria.criterion_counts.MOST_VALUES", 2)
    with pytest.raises(ParameterError, match="'ill' has 3 different values: expected at most 2 for a criterion"):
        ModelGuidedAnonymizer(5, criteria=[LDiversity(2, "ill")]).fit(*ill_people())


def test_counts_held_in_small_blocks_say_the_same(monkeypatch):
    table, guide = ill_people()
    anonymizer = ModelGuidedAnonymizer(3, criteria=[LDiversity(2, "ill"), TCloseness(0.4, "ill")])
    before = anonymizer.fit(table, guide).release(table, guide)
    monkeypatch.setattr("sfumato.criteria.criterion_counts._BLOCK", 4)
    after = anonymizer.release(table, guide)
    assert after.table.equals(before.table)
    assert after.measures == before.measures


# -- the target ----------------------------------------------------------------------------------------------


def labels(n_records=120):
    return np.random.default_rng(5).choice(["no", "yes"], n_records, p=[0.7, 0.3])


@pytest.mark.parametrize(
    ("name", "as_given"),
    [
        ("y", lambda y: y),
        ("y", lambda y: y.tolist()),
        ("y", lambda y: pd.Series(y)),
        ("outcome", lambda y: pd.Series(y, name="outcome")),
        ("y", lambda y: pd.Series(y, name="outcome")),
        ("y", lambda y: pa.array(y)),
    ],
)
def test_the_target_may_be_the_sensitive_column(name, as_given):
    table, _ = people()
    y = as_given(labels())
    released = ModelGuidedAnonymizer(4, criteria=[LDiversity(2, name)]).fit_transform(table, y)
    assert diversity(released, labels().tolist()) == 2
    without = ModelGuidedAnonymizer(4).fit_transform(table, y)
    assert diversity(without, labels().tolist()) == 1  # the labels guide, so groups are pure in them


def test_a_series_of_polars_has_a_name_too():
    pl = pytest.importorskip("polars")
    y = pl.Series("outcome", labels().tolist())
    released = ModelGuidedAnonymizer(4, criteria=[LDiversity(2, "outcome")]).fit_transform(people()[0], y)
    assert diversity(released, labels().tolist()) == 2


def test_a_column_of_the_table_comes_before_a_target_of_the_same_name():
    table, _ = people()
    table = table.append_column("y", [np.tile(["a", "b"], 60).tolist()])
    anonymizer = ModelGuidedAnonymizer(4, criteria=[LDiversity(2, "y")]).fit(table, labels())
    assert anonymizer.schema_.roles["y"] == "sensitive"
    assert diversity(anonymizer.fit_transform(table, labels()), table["y"].to_pylist(), ("y",)) == 2


def test_where_predictions_guide_the_target_is_handed_over_beside_them():
    table, probabilities = people()
    anonymizer = ModelGuidedAnonymizer(4, criteria=[LDiversity(2, "y")])
    with pytest.raises(InputError, match=r"2 columns and a criterion protects it.*Pass the labels as target"):
        anonymizer.fit(table, probabilities)
    released = anonymizer.fit_transform(table, probabilities, target=labels())
    assert diversity(released, labels().tolist()) == 2
    some = np.arange(60)
    release = anonymizer.release(table.take(some), probabilities[some], target=labels()[some])
    assert diversity(release.table, labels()[some].tolist()) == 2
    with pytest.raises(ParameterError, match="sensitive='y' names the target, and none was passed"):
        anonymizer.release(table)
    named = ModelGuidedAnonymizer(4, criteria=[LDiversity(2, "outcome")])
    named.fit(table, pd.Series(labels(), name="outcome"))
    with pytest.raises(ParameterError, match="names no column of the table, nor the target as it was passed"):
        named.release(table, labels())
    with pytest.raises(InputError, match="the target has 60 values for 120 records"):
        anonymizer.release(table, target=labels()[some])


def test_an_estimator_protects_the_labels_not_the_predictions(monkeypatch):
    from sklearn.tree import DecisionTreeClassifier

    table, _ = people()
    X = np.nan_to_num(table.to_pandas()[["age", "income"]].to_numpy(float))
    seen = []
    original = ModelGuidedAnonymizer.fit_transform

    def remember(self, *args, **more):
        seen.append(original(self, *args, **more))
        return seen[-1]

    monkeypatch.setattr(ModelGuidedAnonymizer, "fit_transform", remember)
    guarded = ModelGuidedAnonymizer(4, criteria=[LDiversity(2, "y")])
    AnonymizedClassifier(DecisionTreeClassifier(random_state=0), anonymizer=guarded).fit(X, labels())
    groups, _ = plain.count_by_group(rows_of(seen[0]), labels().tolist())
    assert min(sum(n > 0 for n in group) for group in groups) == 2


# -- presence ------------------------------------------------------------------------------------------------


def population_of(table, n_others=400):
    others, _ = people(n_others, seed=9)
    return pa.concat_tables([table, others])


@in_examples(50)
@given(data=st.data(), k=st.integers(2, 6), bounds=st.sampled_from([(0.0, 0.5), (0.15, 0.6), (0.2, 1.0)]))
def test_presence_holds_on_a_release(data, k, bounds):
    """Members of the table and of the population are sent down the saved tree and joined in plain Python."""
    low, high = bounds
    table, guide = people(data.draw(st.integers(60, 90), "n_records"), seed=data.draw(st.integers(0, 99), "seed"))
    population = population_of(table, 120)
    anonymizer = ModelGuidedAnonymizer(k, criteria=[DeltaPresence(low, high, population=population)])
    anonymizer.fit(table, guide)
    rows = np.arange(len(guide) * data.draw(st.sampled_from([3, 4]), "quarters") // 4)
    some = table.take(rows)
    document = anonymizer.partition_._to_dict()
    leaves = [leaf_of(document, record) for record in some.to_pylist() + population.to_pylist()]
    with_records = set(leaves[: len(rows)])

    def count(places):
        """Return the records of a group, all its population, and the population of the leaves that show records."""
        members = sum(place < len(rows) for place in places)
        in_shown = sum(place >= len(rows) and leaves[place] in with_records for place in places)
        return members, len(places) - members, in_shown

    def is_safe(places):
        members, everybody, in_shown = count(places)
        return (members == 0 or members >= k) and low * everybody <= members <= high * in_shown

    if not is_safe(range(len(leaves))):
        with pytest.raises(GuaranteeError, match="which not even all of them together meet"):
            anonymizer.release(some, guide[rows])
        return
    release = anonymizer.release(some, guide[rows])
    groups = merged(document, leaves, is_safe, pick=min)
    shown = rows_of(release.table)
    counted = {}
    for places in groups:
        keys = {shown[place] for place in places if place < len(rows)}
        assert len(keys) <= 1  # what was joined shows the same values
        for key in keys:
            counted.setdefault(key, []).append(count(places))
    assert set(counted) == set(shown)
    for parts in counted.values():  # groups that happen to show the same values are one group to a reader
        members, everybody, in_shown = (sum(part) for part in zip(*parts, strict=True))
        assert members >= k
        assert low * everybody <= members <= high * in_shown
    largest = max(members / in_shown for parts in counted.values() for members, _, in_shown in parts)
    reached = release.measures[f"DeltaPresence(delta_min={low!r}, delta_max={high!r})"]
    assert reached == pytest.approx(largest)


def test_presence_joins_groups_that_fit_transform_would_not():
    table, guide = people()
    criterion = DeltaPresence(0.05, 0.35, population=population_of(table))
    anonymizer = ModelGuidedAnonymizer(3, criteria=[criterion])
    with pytest.raises(ParameterError, match="with fit_transform, which joins no groups: expected it with release"):
        anonymizer.fit_transform(table, guide)
    release = anonymizer.fit(table, guide).release(table, guide)
    assert release.n_merged > 0
    assert 0.05 <= release.measures["DeltaPresence(delta_min=0.05, delta_max=0.35)"] <= 0.35
    assert release.measures["n_groups"] < anonymizer.n_groups_


def test_population_of_cells_that_show_no_record_does_not_lower_a_share():
    """What is released of 3 people in the left cell must not hide behind 4 in the right one, where nobody is."""
    ages = [20, 21, 22, 60, 61, 62, 63]
    population = pa.table({"age": ages})
    fitted = pa.table({"age": [20, 21, 22, 60, 61, 62]})
    criterion = DeltaPresence(0, 0.65, population=pa.table({"age": [*ages, *ages]}))
    anonymizer = MondrianAnonymizer(2, criteria=[criterion], representative="bounds").fit(fitted)
    assert anonymizer.n_groups_ > 1
    anonymizer.criteria = [DeltaPresence(0, 0.65, population=population)]
    with pytest.raises(GuaranteeError, match="which not even all of them together meet"):
        anonymizer.release(pa.table({"age": [20, 21]}), shuffle=False)


def test_presence_that_cannot_be_met_or_counted_is_refused():
    table, guide = people()
    population = population_of(table)
    for criterion, sentence in (
        (DeltaPresence(0, 0.5), "without a population: expected the table of all people"),
        (DeltaPresence(0, 0.1, population=population), "has 120 of the population's 520 records, a share of 0.2308"),
        (
            DeltaPresence(0, 1, population=table.slice(0, 50)),
            "The population has 50 records, fewer than the table's 120",
        ),
        (DeltaPresence(0, 1, population=population.drop_columns(["age"])), "no column 'age'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ModelGuidedAnonymizer(3, criteria=[criterion]).fit(table, guide)


def test_a_release_whose_presence_was_miscounted_is_caught(monkeypatch):
    from sfumato.anonymize.partitioners import TreePartitioner

    table, guide = people()
    criterion = DeltaPresence(0.05, 0.35, population=population_of(table))
    anonymizer = ModelGuidedAnonymizer(3, criteria=[criterion]).fit(table, guide)
    joined = TreePartitioner.join
    monkeypatch.setattr(
        TreePartitioner, "join", lambda self, tree, leaf, counters: joined(self, tree, leaf, counters[:1])
    )
    with pytest.raises(GuaranteeError, match=r"between 0.05 and 0.35 of the population.*Nothing is released"):
        anonymizer.release(table, guide)
