# SPDX-License-Identifier: Apache-2.0
"""The experiments beyond the papers and the papers' smaller figures: each runs on a few records."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from studies import (  # noqa: E402
    beyond_anatomy,
    beyond_criteria,
    beyond_group_learning,
    beyond_members_of_models,
    beyond_private_learners,
    beyond_private_releases,
    beyond_private_training,
    beyond_recoded_tests,
    beyond_regression,
    beyond_representatives,
    beyond_rows_or_columns,
    beyond_sensitive_tables,
    beyond_shadow_releases,
    feature_selection,
    front_attackers,
    front_attacks,
    high_dimensions,
    minimization_tasks,
    predictions_or_labels,
)
from studies.rows import complete_splits, found, mean, n_splits, one_by_one, table, where  # noqa: E402
from studies.tables import load  # noqa: E402

from sfumato.private.accounting import membership_limit  # noqa: E402
from twins.seeded_noise import seed_private  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of models that stop early on so few records


@pytest.fixture
def few(monkeypatch):
    """Adult's first records as a task of the minimizers, and few of them to learn from."""
    adult = load("adult-12")
    X = (
        adult.X[:1500]
        .drop(columns=["native-country", "capital-gain", "capital-loss"])
        .astype({"sex": str, "race": str})
    )
    X = X.assign(
        **{name: X[name].astype(str) for name in ("workclass", "marital-status", "occupation", "relationship")}
    )
    personal = ("sex", "race", "marital-status")
    categorical = ("sex", "race", "marital-status", "workclass", "occupation", "relationship")
    task = minimization_tasks.Task("adult", X, adult.y[:1500], personal, categorical)
    monkeypatch.setattr(minimization_tasks, "load_task", lambda name: task)
    monkeypatch.setattr(beyond_rows_or_columns, "LEARNED", 400)
    for cached in (
        *(beyond_rows_or_columns.people, beyond_rows_or_columns.generalized, beyond_rows_or_columns._coded),
        *(beyond_rows_or_columns._labels, beyond_private_training._tables, front_attacks._bench),
    ):
        cached.cache_clear()
    yield task
    beyond_rows_or_columns.people.cache_clear()
    front_attacks._bench.cache_clear()


# -- rows --------------------------------------------------------------------------------------------------------------


ROWS = [{"seed": seed, "k": k, "accuracy": 10.0 * seed + k} for seed in (0, 1) for k in (1, 2)]


def test_rows_are_chosen_by_values_and_averaged():
    assert where(ROWS, seed=1, k=(2, 3)) == [ROWS[3]]
    assert mean(ROWS, "accuracy", k=2) == 7.0
    assert n_splits(ROWS) == "2 splits"
    with pytest.raises(KeyError, match="Run the study"):
        mean(ROWS, "accuracy", k=5)


def test_a_split_that_is_not_complete_is_not_shown():
    keys = [{"seed": row["seed"], "k": row["k"]} for row in ROWS]
    assert complete_splits(ROWS[:3], keys) == ROWS[:2]
    assert complete_splits(ROWS, keys) == ROWS
    view = found(keys, lambda rows: [f"{len(rows)} rows"])
    assert view(None, ROWS[:3]).lines[0] == "- 2 rows"
    assert view(None, ROWS[:1]).lines[0] == "No split is complete yet."


def test_a_table_has_words_on_the_left_and_numbers_on_the_right():
    assert table(["a", "b"], [["x", "1"]])[1:4] == ["| a | b |", "| --- | ---: |", "| x | 1 |"]


def test_cells_run_one_by_one_at_the_scale_asked_for():
    run = one_by_one(lambda key, paper_scale: {"told": (key["k"], paper_scale)})
    assert list(run([{"k": 1}, {"k": 2}], True)) == [{"told": (1, True)}, {"told": (2, True)}]


# -- experiments on few records ----------------------------------------------------------------------------------------


def test_a_regressor_learns_from_every_methods_records(monkeypatch):
    adult = load("adult-12").X[:900]
    X, y = adult.drop(columns="hours-per-week"), adult["hours-per-week"].to_numpy(float)
    monkeypatch.setattr(beyond_regression, "_load", lambda name: (X, y, ["age", "education-num", "sex"]))
    key = {"table": "made up", "model": "ridge", "seed": 0, "k": 0}
    raw = beyond_regression.run({**key, "method": "raw"})
    assert set(raw) == {"r2", "mae"}
    for method in beyond_regression.METHODS:
        cell = beyond_regression.run({**key, "method": method, "k": 20})
        assert 1 < cell["n_groups"] <= 720 / 20
        assert cell["mae"] < 2 * raw["mae"]
    beyond_regression._split.cache_clear()
    beyond_regression._raw.cache_clear()


def test_bounds_are_tested_on_recoded_records_only():
    key = {"model": "lr", "seed": 0, "tree": "workload_aware", "k": 50, "n_records": 1000}
    assert set(beyond_representatives.run({**key, "representative": "bounds"})) == {"transformed"}
    assert set(beyond_representatives.run({**key, "representative": "member"})) == {"transformed", "accuracy"}


def test_a_stricter_criterion_leaves_less_to_guess():
    key = {"sensitive": "occupation", "model": "hgb", "seed": 0, "method": "mondrian", "n_records": 1500}
    alone = beyond_criteria.run({**key, "criterion": "k", "value": 0.0})
    close = beyond_criteria.run({**key, "criterion": "t", "value": 0.2})
    assert close["n_groups"] < alone["n_groups"]
    assert close["baseline"] <= close["guessed"] < alone["guessed"]


def test_the_most_frequent_value_of_a_group_is_guessed():
    import pandas as pd

    released = pd.DataFrame({"age": [1, 1, 1, 2, 2], "illness": ["a", "a", "b", "b", None]})
    assert beyond_criteria._guessed(released, ["age"], "illness") == {"guessed": 60.0, "baseline": 40.0}


def test_fewer_people_expose_less_in_training_and_as_much_in_service(few):
    key = {"table": "adult", "seed": 0, "columns": "tree 20"}
    everybody, some = (beyond_rows_or_columns.run({**key, "rows": share}) for share in (1.0, 0.3))
    assert everybody["n_asked"] == 500
    assert some["n_asked"] == 150
    assert everybody["exposed_in_service"] == everybody["exposed_in_training"] == some["exposed_in_service"]
    assert some["exposed_in_training"] == pytest.approx(0.3 * everybody["exposed_in_training"], abs=0.01)
    full = beyond_rows_or_columns.run({**key, "columns": "full", "rows": 1.0})
    assert full["exposed_in_service"] == 100
    assert full["n_buckets"] > everybody["n_buckets"]


def test_private_training_sees_no_column_that_is_not_collected(few):
    X_train, y_train, X_test, _, bounds, categories = beyond_private_training._tables("adult", 0, "tree 8", 500)
    assert not bounds
    assert len(X_train) == len(y_train) == 500
    assert list(X_train.columns) == list(X_test.columns) == list(categories)
    assert len(X_train.columns) < few.X.shape[1]
    assert all(set(X_train[name]) <= set(values) for name, values in categories.items())


@pytest.mark.parametrize("learner", ["logistic", "boosting"])
def test_private_learners_stand_beside_themselves_without_noise(learner, monkeypatch):
    pytest.importorskip("interpret" if learner == "boosting" else "opendp")
    seed_private(monkeypatch)
    key = {"table": "adult-12", "learner": learner, "seed": 0, "attacked": False, "n_records": 8000}
    cells = {e: beyond_private_learners.run({**key, "epsilon": e}) for e in (0.01, beyond_private_learners.NO_NOISE)}
    assert cells[0.0]["accuracy"] > 82 > cells[0.0]["blind"] > 70
    assert cells[0.01]["accuracy"] < cells[0.0]["accuracy"]
    assert cells[0.01]["auc"] < cells[0.0]["auc"]


@pytest.mark.parametrize("learner", ["logistic", *beyond_private_learners.RELEASES])
def test_private_learners_are_attacked_with_shadows(learner, monkeypatch):
    pytest.importorskip("opendp", reason="opendp is not installed (extra: dp)")
    monkeypatch.setattr(beyond_private_learners, "N_SHADOWS", 4)
    monkeypatch.setattr(beyond_private_learners, "N_OTHERS", 800)
    key = {"table": "adult-12", "learner": learner, "epsilon": 1.0, "seed": 0, "attacked": True, "n_records": 600}
    cell = beyond_private_learners.run(key)
    assert set(cell["attacks"]) == set(beyond_private_learners.ATTACKS)
    assert cell["n_train"] == 300


def test_the_page_of_private_learners_has_every_table_and_the_limit():
    rows = [
        {
            **key,
            "accuracy": 80.0 + key["epsilon"] + key["seed"],
            "auc": 0.9,
            "blind": 70.0,
            "n_train": 100,
            "seconds": 1.0,
            "environment": "here",
            "attacks": {name: {"rate": 0.51, "interval": [0.5, 0.52]} for name in beyond_private_learners.ATTACKS},
        }
        for key in beyond_private_learners.KEYS
    ]
    page = beyond_private_learners.page(rows)
    assert all(f"## {title}" in page for title in beyond_private_learners.TABLES.values())
    assert "| logistic regression | epsilon 1 | 81.0 | 51.0 [50.0, 52.0] |" in page
    assert page.count("| 73.1 |") == len(beyond_private_learners.RELEASES) + 3  # and three learners at epsilon 1
    assert "All stay below the limits." in page
    assert "| scikit-learn's network |" in page
    assert "82.5 [80.5, 84.5]" in page  # epsilon 0.5 over five splits
    assert "beyond-private-learners.svg" in beyond_private_learners.charts(rows)


def test_recorded_attacks_on_private_models_stay_below_the_limit_of_the_guarantee():
    recorded = [json.loads(line) for line in beyond_private_learners.EXPERIMENT.path().read_text().splitlines()]
    private = [row for row in recorded if row["attacked"] and row["epsilon"]]
    wanted = {(learner, epsilon) for learner, epsilon in beyond_private_learners.VICTIMS if epsilon}
    assert {(row["learner"], row["epsilon"]) for row in private} == wanted
    for row in private:
        limit = membership_limit(row["epsilon"], beyond_private_learners.DELTA)
        for name, attack in row["attacks"].items():
            assert attack["interval"][1] < limit, (row["learner"], row["epsilon"], name)


@pytest.mark.parametrize("method", ["none", "counts", "private"])
def test_private_releases_are_learned_from(method, monkeypatch):
    pytest.importorskip("opendp", reason="opendp is not installed (extra: dp)")
    seed_private(monkeypatch)
    key = beyond_private_releases._key("nursery", method, 1.0, 0, "mst" if method == "private" else "")
    cell = beyond_private_releases.run({**key, "n_records": 6000})
    assert cell["raw"] > 1.5 * cell["blind"] > 40
    assert (cell["recoded"] is None) == (method == "none")
    assert cell["raw_auc"] > 0.9


def test_the_page_of_private_releases_has_every_table_and_division():
    rows = [
        {
            **key, "recoded": None if key["method"] in ("none", "mst", "aim") else 84.0 + key["seed"],
            "recoded_auc": 0.9, "raw": 85.0 + key["seed"], "raw_auc": 0.91, "guide": 83.0 + key["seed"],
            "blind": 70.0, "n_train": 100, "seconds": 1.0, "environment": "here",
        }
        for key in beyond_private_releases.KEYS
    ]  # fmt: skip
    page = beyond_private_releases.page(rows)
    assert all(f"## {title}" in page for title in beyond_private_releases.TABLES.values())
    assert "0.3 / 0.2 / 0.5 (default)" in page
    assert all(f"{guide:.2g} / {other:.2g} / {counts:.2g}" in page
               for guide, other, counts in beyond_private_releases.DIVISIONS.values())  # fmt: skip
    assert page.count("| MST of OpenDP, epsilon 1 |  | 85.0 |") == 3  # one split; not Lending Club
    assert page.count("| AIM of OpenDP, epsilon 1 |  | 85.0 |") == 1  # of Nursery
    assert "beyond-private-releases.svg" in beyond_private_releases.charts(rows)


@pytest.mark.parametrize("partner", ["original", "identifying", "pruned", "bucket", "learned"])
def test_every_partner_learns_from_one_sensitive_column(partner):
    key = next(k for k in beyond_anatomy.KEYS if (k["table"], k["model"], k["partner"]) == ("adult", "tree", partner))
    assert 5 < beyond_anatomy.run({**key, "n_records": 1200})["error"] < 40


DESIGNS = [
    ("separate", "learned", 2), ("joint", "pruned", 2), ("joint", "even", 3), ("sliced", "rows", 2),
    ("diverse", "groups", 2), ("none", "identifying", 0),
]  # fmt: skip


@pytest.mark.parametrize(("design", "learner", "length"), DESIGNS)
def test_every_design_is_learned_from(design, learner, length):
    key = beyond_sensitive_tables._key("learning", "adult", 3, length, design, learner, "logistic", 0)
    cell = beyond_sensitive_tables.run({**key, "n_records": 600})
    assert 5 < cell["error"] < 45
    assert set(cell["chosen"]) == {"C"}


def test_suppression_attacks_and_places_are_measured():
    key = beyond_sensitive_tables._key("suppression", "adult", 4, 3, "joint")
    cell = beyond_sensitive_tables.run({**key, "n_records": 900})
    assert 0 <= cell["n_records"] - cell["n_kept"] - cell["n_minimum"] < 5 < cell["n_greedy"] - cell["n_minimum"]
    assert min(cell["diversity"].values()) >= 3
    for design in ("separate", "sliced"):
        attacked = beyond_sensitive_tables.run(
            {**beyond_sensitive_tables._key("attacks", "adult", 3, 2, design), "n_records": 600}
        )["attacks"]
        assert len(attacked) == 3
        assert all(0 <= told["rate"] <= 1 for of_column in attacked.values() for told in of_column.values())
    for place in ("memory", "files"):
        key = beyond_sensitive_tables._key("places", "adult", 4, 3, "separate", place)
        assert min(beyond_sensitive_tables.run({**key, "n_records": 600})["diversity"].values()) >= 3


@pytest.mark.parametrize(
    ("part", "target", "design", "learner", "model"),
    [
        ("classes", "education", "-", "one", "tree"), ("classes", "education", "-", "proportions", "tree"),
        ("clusters", "-", "joint", "learned", "-"), ("clusters", "-", "separate", "pruned", "-"),
    ],
)  # fmt: skip
def test_classes_and_clusters_are_learned_from_groups(part, target, design, learner, model):
    key = beyond_group_learning._key(part, "adult", target, 2, design, learner, model, 0)
    cell = beyond_group_learning.run({**key, "n_records": 600})
    assert 40 < cell["error"] < 90 if part == "classes" else -0.1 < cell["rand"] <= 1


def test_features_are_selected_in_the_order_asked_for():
    key = feature_selection._key("adult-8", "dt", "before", "ours", 20, 0)
    cells = {s: feature_selection.run({**key, "selection": s, "n_records": 1500}) for s in feature_selection.SELECTIONS}
    assert [cell["n_columns"] for cell in cells.values()] == [12, 6, 6]
    assert cells["none"]["n_quasi_identifiers"] == 8
    assert all(50 < cell["accuracy"] <= 100 for cell in cells.values())


def test_the_tree_on_true_labels_keeps_groups_of_k():
    cell = predictions_or_labels.run({"table": "adult-8", "model": "dt", "seed": 0, "k": 50, "n_records": 1500})
    assert 1 < cell["n_groups"] <= 1200 / 50
    assert 60 < cell["accuracy"] <= 100


def test_a_table_of_many_columns_is_anonymized_in_all_of_them(monkeypatch):
    import pandas as pd

    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.integers(0, 2, (300, 40))).rename(columns=str)
    monkeypatch.setattr(high_dimensions, "_load", lambda: (X, 1 + X["0"].to_numpy() + X["1"].to_numpy()))
    monkeypatch.setattr(high_dimensions, "N_TREES", 10)
    high_dimensions._split.cache_clear()
    high_dimensions._raw.cache_clear()
    raw = high_dimensions.run({"method": "raw", "strength": 0, "seed": 0})["accuracy"]
    for method in high_dimensions.METHODS:
        cell = high_dimensions.run({"method": method, "strength": 5, "seed": 0})
        assert 1 < cell["n_groups"] <= 240 / 5
        assert cell["accuracy"] <= raw
    high_dimensions._split.cache_clear()
    high_dimensions._raw.cache_clear()


def test_a_private_model_of_one_split_is_judged_by_its_test_records():
    own, rival = {0: 40.0}, {0: 50.0, 1: 60.0}
    one = high_dimensions._ahead("epsilon = 1", own, rival)
    variance = (0.4 * 0.6 + 0.5 * 0.5) / high_dimensions.N_TEST
    assert (one.estimate, one.n) == (-10.0, 1)
    assert one.error == pytest.approx(100 * variance**0.5)
    two = high_dimensions._ahead("epsilon = 1", {0: 40.0, 1: 49.0}, rival)
    assert two.values == (-10.0, -11.0)


def test_the_figure_compares_labels_and_predictions_on_the_same_splits():
    cells = [{"table": "adult-8", "model": "dt", "seed": 0, "k": k, "accuracy": 50.0} for k in predictions_or_labels.K]
    compared = predictions_or_labels.differences(cells)["adult-8", "dt"]
    assert [k for k, _, _ in compared] == list(predictions_or_labels.K)
    assert all(labels == 50 < predictions for _, predictions, labels in compared)


def test_places_are_spread_over_the_whole_front():
    assert front_attacks.spread("abcdefg", 3) == ["a", "d", "g"]
    front = front_attackers.front_of(front_attackers.kept_sweep("acs_income", "PrivacyAwareTree", front_attacks.SEED))
    errors = [point.validation_error for point in front]
    assert errors == sorted(errors)
    assert not any(point.is_limit for point in front)


def test_fronts_of_several_splits_are_judged_split_by_split():
    cells = front_attacks.EXPERIMENT.cells()
    found = front_attacks.EXPERIMENT.evidence(cells)
    for name in ("attributes-only-in-low-error", "same-trends", "not-collected", "sex-nearly-random", "anova-better"):
        assert {one.n for one in found[name].differences} == {3}
    first = [cell for cell in cells if cell["seed"] == front_attacks.SEED]
    [alone] = front_attacks.EXPERIMENT.evidence(first)["not-collected"].differences
    assert alone.estimate == 3.0 and np.isinf(alone.error)


def test_every_generalization_that_is_attacked_is_the_one_on_the_kept_front():
    cells = front_attacks.EXPERIMENT.cells()
    on_fronts = [cell for cell in cells if cell["figure"] in front_attacks.FRONTS]
    assert len(on_fronts) == sum(
        front_attacks.N_SPLITS.get(figure, 1) * front_attacks.n_places(figure) for figure in front_attacks.FRONTS
    )
    for cell in on_fronts:
        kept = front_attacks.about(front_attacks.front_point(cell))
        assert {name: cell[name] for name in kept} == kept
    for name in ("n_buckets", "classifier_error"):
        other = [*cells[:-1], {**cells[-1], name: cells[-1][name] + 1}]
        with pytest.raises(ValueError, match="another generalization than on the kept front"):
            front_attacks.EXPERIMENT.evidence(other)


def test_who_knows_more_reconstructs_more(few, monkeypatch):
    from sfumato.attack.reconstruction_adversaries import FamilySettings

    monkeypatch.setattr(front_attacks, "_family", lambda seed: FamilySettings(adversaries=("table",), n_jobs=1))
    bench = front_attacks._bench("adult")
    tree = bench.minimizer("PrivacyAwareTree").set_params(min_samples_leaf=20)
    point = bench.sweep(tree, bench.learned("PrivacyAwareTree"), {"alpha": [0.0], "max_leaves": [8]})[0]
    samples, personal = bench.attacked
    sure = front_attacks._by_certainty(point.generalization, samples, personal)["error_of"]
    assert sure["0.1"] < sure["1"]
    by_attribute = front_attacks._by_attribute(point.generalization, samples, personal)
    assert set(by_attribute["error_of"]) == set(few.personal)
    assert by_attribute["error"] == pytest.approx(np.mean(list(by_attribute["error_of"].values())), abs=1e-6)
    assert by_attribute["error"] == pytest.approx(sure["1"], abs=0.02)


def test_a_close_look_counts_the_buckets_of_every_attribute(few, monkeypatch):
    from sfumato.attack.reconstruction_adversaries import FamilySettings

    monkeypatch.setattr(front_attacks, "_family", lambda seed: FamilySettings(adversaries=("table",), n_jobs=1))
    cell = front_attacks._looked_at("adult")
    assert set(cell["buckets_of"]) == set(few.X.columns)
    assert sum(cell["buckets_of"].values()) == cell["n_buckets"]
    assert all(cell["buckets_of"][name] <= n + 1 for name, n in cell["values_of"].items())


def test_features_are_fewer_with_less_to_guess(few):
    points = front_attacks._selected("adult", "chi_squared")["points"]
    errors = [point["error"] for point in points]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == 0


# -- what the pages say ------------------------------------------------------------------------------------------------


def test_recoding_is_judged_by_the_difference_of_both_tests():
    rows = [
        {"table": "adult-8", "model": "dt", "seed": 0, "method": "ours", "k": 10, "accuracy": 80.0, "transformed": 81.5}
    ]
    assert beyond_recoded_tests.gain(rows, k=10) == 1.5


def test_the_cheapest_way_exposes_least_among_those_that_cost_little_enough():
    def row(columns, share, accuracy, exposed):
        return {
            "table": "t",
            "seed": 0,
            "columns": columns,
            "rows": share,
            "accuracy": accuracy,
            "exposed_in_training": exposed,
        }

    rows = [
        row(columns, share, 80.0 - 3 * (columns != "full") - 2 * (share < 1), 100 * share / (1 + (columns != "full")))
        for columns in beyond_rows_or_columns.COLUMNS
        for share in beyond_rows_or_columns.ROWS
    ]
    assert beyond_rows_or_columns.cheapest(rows, "t", 1.0)[:2] == ("full", 1.0)
    assert beyond_rows_or_columns.cheapest(rows, "t", 2.0)[:2] == ("full", 0.003)
    assert beyond_rows_or_columns.cheapest(rows, "t", 4.0, only="columns")[1] == 1.0


def test_models_that_learned_from_regions_are_attacked():
    key = {"model": "hgb", "seed": 0, "learned": "regions", "k": 10, "floor": 1, "n_people": 400, "n_shadows": 4}
    cell = beyond_members_of_models.run(key)
    assert cell["n_judged"] == 400
    assert all(0.3 < cell[name] <= 1 for name in beyond_members_of_models.ATTACKS)


def test_the_page_says_where_an_attack_on_a_model_is_above_the_aim():
    def cells(high):
        of = {"accuracy": 0.8, "n_judged": 8_000, "rmia": 0.5, "threshold": 0.5, "environment": "", "seconds": 1.0}
        return [
            {**key, **of, "lira": high if key["learned"] == "regions" else 0.5} for key in beyond_members_of_models.KEYS
        ]

    bad, good = (list(beyond_members_of_models.findings(cells(rate))) for rate in (0.56, 0.505))
    assert "LiRA, is right in 56.0 [55" in bad[0] and "**Above** the aim of 52.5%" in bad[0]
    assert "in percentage points: **LiRA** (+6.0 [+5.3, +6.7])." in bad[0]
    assert "Within the aim of 52.5%" in good[0] and "in percentage points: no attack." in good[0]


def test_an_attack_is_above_points_over_the_draws_that_both_were_run_on():
    def cells(rates):
        return [{"seed": seed, "n_judged": 8_000, "rmia": rate} for seed, rate in enumerate(rates)]

    regions, points = cells((0.52, 0.52, 0.9)), cells((0.50, 0.51))
    gap = beyond_members_of_models._above_points(regions, points, "rmia")
    assert (gap.points, gap.low, gap.high) == pytest.approx((1.5, 0.4, 2.6), abs=0.01)


def test_releases_of_random_halves_tell_an_attacker_who_is_shown_as_a_real_record():
    key = {"k": 2, "seed": 0, "n_people": 600, "n_releases": (8, 4, 2)}
    real, phantom = (
        beyond_shadow_releases.run({**key, "representative": name})["rate"] for name in ("model", "phantom")
    )
    assert real > 0.55
    assert phantom < real
