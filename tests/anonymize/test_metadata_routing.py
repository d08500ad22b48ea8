# SPDX-License-Identifier: Apache-2.0
"""In pipelines and searches, weights and targets are routed; persons and sensitive values are columns that go along."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import sfumato
from sfumato.criteria import TARGET
from sfumato.private import PrivateLogisticRegression
from sfumato.testing import group_sizes

RANDOM = np.random.default_rng(0)
N = 400
X = pd.DataFrame({"age": RANDOM.integers(18, 80, N), "hours": RANDOM.integers(5, 60, N)})
Y = np.where(X["age"] + RANDOM.normal(0, 12, N) > 50, "old", "young")
WEIGHT = np.where(Y == "old", 50.0, 1.0)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_weights_reach_the_model_at_the_end_of_a_pipeline():
    own = sfumato.AnonymizedClassifier(TREE, k=10, random_state=0)
    scaler = StandardScaler().set_fit_request(sample_weight=False).set_output(transform="pandas")
    steps = make_pipeline(scaler, own.set_fit_request(sample_weight=True))
    weighted = (steps.fit(X, Y, sample_weight=WEIGHT).predict(X) == "old").mean()
    assert weighted > (steps.fit(X, Y).predict(X) == "old").mean() + 0.1


def test_weights_reach_the_models_of_a_search():
    own = sfumato.AnonymizedClassifier(TREE, k=10, random_state=0).set_fit_request(sample_weight=True)
    search = GridSearchCV(own.set_score_request(sample_weight=False), {"k": [10, 40]}, cv=2, error_score="raise")
    weighted = (search.fit(X, Y, sample_weight=WEIGHT).predict(X) == "old").mean()
    assert weighted > (search.fit(X, Y).predict(X) == "old").mean() + 0.1


def test_a_target_reaches_an_anonymizer_inside_a_pipeline():
    anonymizer = sfumato.MondrianAnonymizer(k=5, criteria=[sfumato.LDiversity(2, TARGET)])
    steps = make_pipeline(anonymizer.set_fit_request(target=True), TREE).fit(X, Y, target=Y)
    released = steps[0].transform(X)
    groups = group_sizes(released.assign(y=Y))
    assert set(map(len, released.assign(y=Y).groupby(["age", "hours"])["y"].unique())) == {2}
    assert len(groups) > 2


def test_persons_and_sensitive_values_go_along_as_columns_in_a_search():
    table = X.assign(patient=np.arange(N) // 4, ill=RANDOM.choice(["no", "yes"], N))
    anonymizer = sfumato.MondrianAnonymizer(
        k=8, criteria=[sfumato.KAnonymity(8, unit="patient"), sfumato.LDiversity(2, "ill")], keep=["ill"]
    )
    model = make_pipeline(make_column_transformer(("passthrough", ["age", "hours"])), TREE)
    own = sfumato.AnonymizedClassifier(model, anonymizer=anonymizer, random_state=0)
    search = GridSearchCV(own, {"anonymizer__k": [8, 20]}, cv=2, error_score="raise").fit(table, Y)
    fitted = search.best_estimator_.anonymizer_
    released = fitted.transform(table)
    assert "patient" not in released
    assert min(group_sizes(released, ["age", "hours"], persons=table["patient"].to_list()).values()) >= 8
    assert released.groupby(["age", "hours"])["ill"].nunique().min() >= 2
    assert search.score(table, Y) > 0.5


@pytest.mark.parametrize(
    "transformer",
    [
        sfumato.ModelGuidedAnonymizer(k=10),
        sfumato.MondrianAnonymizer(k=10),
        sfumato.WorkloadAwareAnonymizer(k=10),
        sfumato.HilbertAnonymizer(k=10),
        sfumato.RPlusTreeAnonymizer(k=10),
        sfumato.FullDomainAnonymizer(k=10),
        sfumato.PrivacyAwareTree(),
        sfumato.UniformMinimizer(3),
        sfumato.FeatureSelectionMinimizer(1),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_a_transformer_names_its_columns_and_gives_the_frame_that_was_asked_for(transformer):
    shown = sklearn.base.clone(transformer).set_output(transform="polars").fit(X, Y)
    assert list(shown.get_feature_names_out()) == ["age", "hours"]
    assert type(shown.transform(X)).__module__.startswith("polars")
    assert shown.transform(X).columns == ["age", "hours"]
    tags = transformer.__sklearn_tags__()
    assert tags.transformer_tags is not None
    assert tags.estimator_type is None


def test_a_ledger_reaches_a_private_anonymizer_and_its_unit_goes_along_as_a_column(tmp_path):
    ledger = sfumato.PrivacyLedger(tmp_path / "ledger.json", epsilon=3.0, delta=1e-6)
    table = X.assign(patient=np.arange(N) // 4)
    anonymizer = sfumato.PrivateAnonymizer(
        epsilon=2.0, bounds={"age": (18, 80), "hours": (5, 60)}, labels=["old", "young"], unit="patient"
    )
    earlier = make_column_transformer(
        ("passthrough", ["age", "hours", "patient"]), verbose_feature_names_out=False
    ).set_output(transform="pandas")
    steps = make_pipeline(earlier, anonymizer.set_fit_request(ledger=True)).fit(table, Y, ledger=ledger)
    assert steps[-1].privacy_.unit == "patient"
    assert list(steps[-1].release().table.columns) == ["age", "hours"]
    assert steps.get_feature_names_out().tolist() == ["age", "hours"]
    with pytest.raises(sfumato.GuaranteeError, match="epsilon"):
        steps.fit(table, Y, ledger=ledger)  # 2 of 3 are spent


@pytest.mark.parametrize("learner", [sfumato.BucketClassifier, sfumato.ProportionClassifier])
def test_sensitive_columns_go_along_to_learners_of_anatomies(learner):
    table = X.assign(ill=RANDOM.choice(["flu", "cold", "none", "cough"], N))
    if learner is sfumato.BucketClassifier:
        own, wanted = learner(TREE, sensitive=["ill"], l=2, random_state=0), Y
    else:
        own, wanted = learner(TREE, l=2, random_state=0), table.pop("ill")
    earlier = make_column_transformer(("passthrough", list(table)), verbose_feature_names_out=False).set_output(
        transform="pandas"
    )
    steps = make_pipeline(earlier, own).fit(table, wanted)
    assert set(steps.predict(table)) <= set(wanted)


def test_weights_reach_a_learner_of_anatomies():
    table = X.assign(ill=RANDOM.choice(["flu", "cold", "none", "cough"], N))
    own = sfumato.BucketClassifier(TREE, sensitive=["ill"], l=2, random_state=0).set_fit_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False).set_output(transform="pandas")
    earlier = make_column_transformer(
        (scaler, ["age", "hours"]), ("passthrough", ["ill"]), verbose_feature_names_out=False
    ).set_output(transform="pandas")
    steps = make_pipeline(earlier, own)
    weighted = (steps.fit(table, Y, sample_weight=WEIGHT).predict(table) == "old").mean()
    assert weighted > (steps.fit(table, Y).predict(table) == "old").mean() + 0.1


def test_the_unit_of_a_private_learner_goes_along_as_a_column():
    table = X.assign(patient=np.arange(N) // 4)
    earlier = make_column_transformer(
        ("passthrough", ["age", "hours", "patient"]), verbose_feature_names_out=False
    ).set_output(transform="pandas")
    own = PrivateLogisticRegression(
        2.0, delta=1e-6, bounds={"age": (18, 80), "hours": (5, 60)}, classes=["old", "young"], unit="patient"
    )
    steps = make_pipeline(earlier, own).fit(table, Y)
    assert steps[-1].privacy_.unit == "patient"
    assert set(steps.predict(table)) <= {"old", "young"}
