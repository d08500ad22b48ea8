# SPDX-License-Identifier: Apache-2.0
"""Protections side by side: one split, one table, and a protection that protects shows up as one."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato import compare_protections, usual_protections
from sfumato.errors import ParameterError
from sfumato.minimize import UniformMinimizer


def people(n=1200, seed=0):
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


def tree():
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["region", "illness"]), remainder="passthrough"
    )
    return make_pipeline(encoder, DecisionTreeClassifier(random_state=0))


@pytest.fixture(scope="module")
def comparison():
    X, y = people()
    protections = usual_protections(
        tree(),
        k=(20,),
        l=(2,),
        sensitive="illness",
        quasi_identifiers=["age", "income", "region"],
        minimizers={"uniform": UniformMinimizer(output="representatives")},
    )
    return compare_protections(X, y, protections, subgroups="region", attribute="illness")


def test_every_protection_has_a_row(comparison):
    names = [row.name for row in comparison.rows]
    assert names == ["none", "k=20", "k=20, l=2", "anatomy, pruned, l=2", "anatomy, buckets, l=2", "uniform"]
    assert comparison.n_train + comparison.n_test == 1200


def test_anonymity_lowers_the_risk_of_a_model_that_learned_by_heart(comparison):
    rows = {row.name: row for row in comparison.rows}
    assert rows["none"].train_utility == 1.0
    assert rows["none"].strongest.verdict == "stronger than baseline"
    highest = rows["k=20"].strongest.details["auc_interval"][1]
    assert highest < rows["none"].strongest.details["auc_interval"][0]


def test_subgroups_repeat_utility_and_risk(comparison):
    for row in comparison.rows:
        assert [(part.column, part.group) for part in row.subgroups] == [("region", "north"), ("region", "south")]
        assert sum(part.n_records for part in row.subgroups) == comparison.n_test
        mean = sum(part.utility * part.n_records for part in row.subgroups) / comparison.n_test
        assert mean == pytest.approx(row.utility)


def test_the_frontier_holds_what_nothing_else_beats(comparison):
    points = {row.name: (row.utility, row.strongest.details["auc"]) for row in comparison.rows}
    assert comparison.frontier()
    for name, (utility, risk) in points.items():
        beaten = any(u >= utility and r <= risk and (u, r) != (utility, risk) for u, r in points.values())
        assert (name in comparison.frontier()) is not beaten


def test_the_comparison_becomes_json_and_one_table(comparison):
    document = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert len(document["rows"]) == 6
    assert document["rows"][0]["subgroups"][0]["utility_interval"][0] > 0
    lines = comparison.to_markdown(subgroups=True).splitlines()
    assert sum(line.startswith("| k=20 |") for line in lines) == 3  # once in the table, once per subgroup


def test_rare_values_are_not_named():
    X, y = people(400)
    X.loc[:4, "region"] = "island"
    compared = compare_protections(X, y, {"none": tree()}, attacks=["threshold"], subgroups=["region"])
    assert "island" not in json.dumps(compared.to_dict())


def test_a_regressor_is_judged_by_its_explained_variance():
    X, _ = people(400)
    numbers = X[["age", "income"]].to_numpy(float)
    y = X["age"].to_numpy(float) + np.random.default_rng(1).normal(0, 10, 400)
    compared = compare_protections(
        numbers, y, {"tree": DecisionTreeRegressor(random_state=0), "line": LinearRegression()}, attacks=["threshold"]
    )
    tree_row, line_row = compared.rows
    assert compared.metric == "R2" and line_row.utility > tree_row.utility
    assert tree_row.strongest.verdict == "stronger than baseline"
    assert line_row.utility_interval[0] < line_row.utility < line_row.utility_interval[1]


def test_progress_tells_which_protection_is_attacked():
    X, y = people(300)
    seen = []
    compare_protections(
        X, y, {"first": tree(), "second": tree()},
        attacks=["lira"], n_shadows=4, progress=lambda *step: seen.append(step),
    )  # fmt: skip
    assert ("first", 4, 4) in seen and ("second", 4, 4) in seen


def test_a_list_of_protections_is_refused():
    X, y = people(100)
    with pytest.raises(ParameterError, match="mapping from names to unfitted estimators"):
        compare_protections(X, y, [tree()])


def test_diversity_needs_a_sensitive_column():
    with pytest.raises(ParameterError, match="l= without sensitive="):
        usual_protections(tree(), l=(2,))
