# SPDX-License-Identifier: Apache-2.0
"""Train, predict, anonymize, retrain: in pipelines and searches, with any model, and nothing raw left inside."""

import gc
import io
import pickle
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato import (
    AnonymizedClassifier,
    AnonymizedRegressor,
    FullDomainAnonymizer,
    InputError,
    KAnonymity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    ParameterError,
)
from sfumato.testing import people, rows_of, smallest_group


@pytest.fixture(scope="module")
def numbers():
    return make_classification(300, 5, n_informative=4, n_redundant=0, random_state=0)


@pytest.fixture(scope="module")
def adults():
    """People with a label to learn, as pandas."""
    table, probabilities = people(300, seed=2)
    frame = table.to_pandas()
    return frame.assign(income=frame["income"] / 10_000), (probabilities[:, 1] > 0.6).astype(int)


def on_tables(model):
    """A model that takes text and numbers as they come."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]), ("passthrough", ["age", "income"])
    )
    return make_pipeline(encode, model)


# ---- in scikit-learn's machinery -------------------------------------------------------------------------------------


def test_the_final_model_has_seen_anonymized_records_only(numbers):
    X, y = numbers
    classifier = AnonymizedClassifier(KNeighborsClassifier(3), k=7, learn_from="points").fit(X, y)
    seen = classifier.estimator_._fit_X
    assert smallest_group(seen) >= 7
    assert rows_of(seen) == rows_of(classifier.anonymizer_.transform(X))
    assert classifier.classes_.tolist() == [0, 1]
    assert is_classifier(classifier) and is_regressor(AnonymizedRegressor(Ridge()))


def test_a_model_that_cannot_take_text_is_answered_with_how_to_wrap_it(adults, numbers):
    X, y = adults
    with pytest.raises((TypeError, ValueError), match=r"must be a string or|could not convert") as refused:
        AnonymizedClassifier(DecisionTreeClassifier(), k=5).fit(X, y)
    [note] = refused.value.__notes__
    assert "not all are numbers: " in note and "'town'" in note and "'age'" not in note and "OrdinalEncoder" in note
    with pytest.raises(ValueError, match="Negative values") as refused:  # numbers alone: another reason
        AnonymizedClassifier(MultinomialNB(), k=5).fit(*numbers)
    assert not hasattr(refused.value, "__notes__")


def test_fitting_equals_doing_the_four_steps_by_hand(numbers):
    X, y = numbers
    guide = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    anonymized = ModelGuidedAnonymizer(9).fit_transform(X, guide.predict_proba(X))
    by_hand = DecisionTreeClassifier(max_depth=4, random_state=0).fit(anonymized, y)
    model = DecisionTreeClassifier(max_depth=4, random_state=0)
    at_once = AnonymizedClassifier(model, k=9, learn_from="points").fit(X, y)
    assert np.array_equal(at_once.predict_proba(X), by_hand.predict_proba(X))


def test_regressing_equals_doing_the_four_steps_by_hand():
    X, y = make_regression(200, 4, random_state=0)
    guide = DecisionTreeRegressor(random_state=0).fit(X, y)
    anonymized = ModelGuidedAnonymizer(6, guide_kind="numbers").fit_transform(X, guide.predict(X))
    at_once = AnonymizedRegressor(DecisionTreeRegressor(random_state=0), k=6, learn_from="points").fit(X, y)
    assert np.array_equal(at_once.predict(X), DecisionTreeRegressor(random_state=0).fit(anonymized, y).predict(X))


def test_whole_numbers_guide_a_regressor_as_numbers():
    X = np.arange(40.0)[:, None]
    y = np.arange(40) // 4 * 3
    fitted = AnonymizedRegressor(DecisionTreeRegressor(random_state=0), k=4, floor=1).fit(X, y)
    numbers_guide = ModelGuidedAnonymizer(4, guide_kind="numbers").fit(X, y)
    labels_guide = ModelGuidedAnonymizer(4, guide_kind="labels").fit(X, y)
    first_split = [
        m.partition_.to_dict()["nodes"][0]["at_most"] for m in (fitted.anonymizer_, numbers_guide, labels_guide)
    ]
    assert first_split[0] == first_split[1] != first_split[2]
    own = AnonymizedRegressor(DecisionTreeRegressor(random_state=0), anonymizer=ModelGuidedAnonymizer(4), floor=1)
    own.fit(X, y)
    assert own.anonymizer_.partition_.to_dict() == fitted.anonymizer_.partition_.to_dict()


def test_in_a_pipeline_the_anonymizer_is_guided_by_a_model_and_the_next_step_sees_the_result(numbers):
    X, y = numbers
    pipeline = Pipeline(
        [
            ("anonymize", ModelGuidedAnonymizer(8, guide_estimator=LogisticRegression())),
            ("scale", StandardScaler()),
            ("predict", LogisticRegression()),
        ]
    ).fit(X, y)
    assert pipeline.score(X, y) > 0.6
    expected = ModelGuidedAnonymizer(8).fit_transform(X, LogisticRegression().fit(X, y).predict_proba(X))
    assert np.array_equal(pipeline[:1].transform(X), expected)


def test_an_anonymized_classifier_is_a_step_of_a_pipeline(adults):
    X, y = adults
    inner = AnonymizedClassifier(on_tables(DecisionTreeClassifier(random_state=0)), k=5)
    X = X.fillna({"age": 40, "income": 0}).drop(columns=["joined", "is_member"])
    pipeline = make_pipeline(inner).fit(X, y)
    assert pipeline.predict(X).shape == (300,)
    assert pipeline.predict_proba(X).shape == (300, 2)


def test_a_search_over_k_and_over_the_models_own_parameters(numbers):
    X, y = numbers
    search = GridSearchCV(
        AnonymizedClassifier(DecisionTreeClassifier(random_state=0)),
        {"k": [2, 20, 100], "estimator__max_depth": [2, 4], "transform_at_predict": [False, True]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_["k"] in (2, 20, 100)
    assert smallest_group(search.best_estimator_.anonymizer_.transform(X)) >= search.best_params_["k"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(set(search.cv_results_["mean_test_score"])) > 3


def test_a_search_over_k_inside_a_pipeline(numbers):
    X, y = numbers
    pipeline = Pipeline(
        [("a", ModelGuidedAnonymizer(guide_estimator=DecisionTreeClassifier(max_depth=3))), ("m", LogisticRegression())]
    )
    search = GridSearchCV(pipeline, {"a__k": [3, 30], "a__representative": ["median", "model"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_cross_validation_scores_every_fold(numbers, adults):
    X, y = numbers
    assert cross_val_score(AnonymizedClassifier(LogisticRegression(), k=5, random_state=0), X, y, cv=4).min() > 0.5
    X, y = adults
    boosting = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
    X = X.assign(town=X["town"].astype("category")).drop(columns="joined")
    scores = cross_val_score(AnonymizedClassifier(boosting, k=5, random_state=0), X, y, cv=3, scoring="roc_auc")
    assert scores.min() > 0.6


def test_clones_are_unfitted_and_equal(numbers):
    X, y = numbers
    fitted = AnonymizedClassifier(
        LogisticRegression(C=3), k=6, quasi_identifiers=[0, 1, 2, 3, 4], guide_fraction=0.5
    ).fit(X, y)
    cloned = clone(fitted)
    assert not hasattr(cloned, "estimator_") and not hasattr(cloned, "anonymizer_")
    assert repr(cloned) == repr(fitted)
    assert cloned.get_params()["estimator__C"] == 3
    with pytest.raises(NotFittedError):
        cloned.predict(X)
    anonymizer = clone(ModelGuidedAnonymizer(6, criteria=[KAnonymity(3, unit="p")], limits={"a": 1}).set_params(k=9))
    assert anonymizer.get_params()["k"] == 9
    assert anonymizer.get_params()["limits"] == {"a": 1}


def test_fitting_twice_on_other_columns_forgets_the_first_time(numbers, adults):
    X, y = numbers
    classifier = AnonymizedClassifier(DecisionTreeClassifier(random_state=0), k=5, random_state=0)
    classifier.fit(adults[0][["age", "income"]], adults[1])
    classifier.fit(X, y)
    once = clone(classifier).fit(X, y)
    assert np.array_equal(classifier.predict(X), once.predict(X))
    assert not hasattr(classifier, "feature_names_in_") and classifier.n_features_in_ == 5


@pytest.mark.parametrize("given", ["pandas", "numpy"])
def test_set_output_pandas(given, numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(300) + 7)
    anonymizer = ModelGuidedAnonymizer(5).set_output(transform="pandas")
    released = anonymizer.fit_transform(frame if given == "pandas" else X, y)
    assert isinstance(released, pd.DataFrame)
    assert list(released.columns) == (list("abcde") if given == "pandas" else ["x0", "x1", "x2", "x3", "x4"])
    assert released.index.equals(frame.index if given == "pandas" else pd.RangeIndex(300))
    assert smallest_group(released) >= 5
    assert isinstance(anonymizer.transform(X[:3] if given == "numpy" else frame[:3]), pd.DataFrame)


@pytest.mark.parametrize("given", ["pandas", "polars", "numpy", "pyarrow"])
def test_set_output_polars(given, numbers):
    X, y = numbers
    frame = pl.DataFrame(X, schema=list("abcde"))
    frame = {"pandas": frame.to_pandas(), "polars": frame, "numpy": X, "pyarrow": frame.to_arrow()}[given]
    released = ModelGuidedAnonymizer(5).set_output(transform="polars").fit_transform(frame, y)
    assert isinstance(released, pl.DataFrame)
    assert released.dtypes == [pl.Float64] * 5
    assert smallest_group(released) >= 5


def test_feature_names_out_are_the_columns_of_the_result(adults):
    X, y = adults
    X = X.assign(name=[f"person {i}" for i in range(len(X))], person=np.arange(300) // 2)
    options = {"identifiers": ["name"], "criteria": [KAnonymity(2, unit="person")]}
    for representative in ("model", "bounds", "range"):
        anonymizer = ModelGuidedAnonymizer(5, representative=representative, **options)
        released = anonymizer.fit_transform(X, y)
        assert anonymizer.get_feature_names_out().tolist() == list(released.columns)
        assert anonymizer.get_feature_names_out(list(X.columns)).tolist() == list(released.columns)
        with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
            anonymizer.get_feature_names_out(["a", "b"])
    numbers_in = ModelGuidedAnonymizer(5, identifiers=[1]).fit(np.arange(60).reshape(20, 3), np.arange(20) % 2)
    assert numbers_in.get_feature_names_out().tolist() == ["x0", "x2"]


def test_wrong_columns_at_prediction_are_refused(adults):
    X, y = adults
    X = X[["age", "income"]].fillna(0)
    classifier = AnonymizedClassifier(LogisticRegression(max_iter=500), k=5).fit(X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict(X[["income", "age"]])
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict(X[["age"]])
    with pytest.raises(InputError, match="Reshape your data"):
        classifier.predict(X["age"])


# ---- any model -------------------------------------------------------------------------------------------------------


def torch_classifier():
    torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'sfumato[neural]'")

    class TorchClassifier(ClassifierMixin, BaseEstimator):
        """A network of two layers with the manners of scikit-learn."""

        def __init__(self, hidden=8, n_epochs=60, seed=0):
            self.hidden = hidden
            self.n_epochs = n_epochs
            self.seed = seed

        def fit(self, X, y):
            torch.manual_seed(self.seed)
            self.classes_, codes = np.unique(y, return_inverse=True)
            inputs = torch.as_tensor(np.asarray(X, dtype=np.float32))
            self.network_ = torch.nn.Sequential(
                torch.nn.Linear(inputs.shape[1], self.hidden),
                torch.nn.ReLU(),
                torch.nn.Linear(self.hidden, len(self.classes_)),
            )
            optimizer = torch.optim.Adam(self.network_.parameters(), lr=0.05)
            for _ in range(self.n_epochs):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.network_(inputs), torch.as_tensor(codes)).backward()
                optimizer.step()
            return self

        def predict_proba(self, X):
            with torch.no_grad():
                logits = self.network_(torch.as_tensor(np.asarray(X, dtype=np.float32)))
                return torch.softmax(logits, dim=1).numpy()

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    return TorchClassifier()


def xgboost_classifier():
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1, random_state=0)


def lightgbm_classifier():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=10, num_leaves=7, n_jobs=1, verbose=-1, random_state=0)


@pytest.mark.parametrize(
    "make", [xgboost_classifier, lightgbm_classifier, torch_classifier], ids=["xgb", "lgbm", "torch"]
)
@pytest.mark.parametrize("transform_at_predict", [False, True])
def test_any_classifier_with_the_manners_of_scikit_learn(make, transform_at_predict, numbers):
    X, y = numbers
    labels = np.array(["no", "yes"])[y] if make is torch_classifier else y
    classifier = AnonymizedClassifier(make(), k=10, transform_at_predict=transform_at_predict, random_state=0).fit(
        X, labels
    )
    assert classifier.score(X, labels) > 0.6
    assert classifier.predict_proba(X).shape == (300, 2)
    assert classifier.classes_.tolist() == sorted(set(labels.tolist()))
    assert smallest_group(classifier.anonymizer_.transform(X)) >= 10
    again = pickle.loads(pickle.dumps(classifier)) if make is not torch_classifier else classifier
    assert np.array_equal(again.predict(X), classifier.predict(X))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_any_regressor_with_the_manners_of_scikit_learn(library):
    X, y = make_regression(200, 4, random_state=0)
    if library == "xgboost":
        from xgboost import XGBRegressor

        model = XGBRegressor(n_estimators=10, n_jobs=1)
    else:
        from lightgbm import LGBMRegressor

        model = LGBMRegressor(n_estimators=10, n_jobs=1, verbose=-1)
    regressor = AnonymizedRegressor(model, k=5, random_state=0).fit(X, y)
    assert regressor.score(X, y) > 0.2
    assert smallest_group(regressor.anonymizer_.transform(X)) >= 5


class Plain:
    """A model that follows the conventions and inherits nothing."""

    def __init__(self, threshold=0.0):
        self.threshold = threshold

    def get_params(self, deep=True):
        return {"threshold": self.threshold}

    def set_params(self, **parameters):
        self.__dict__.update(parameters)
        return self

    def fit(self, X, y):
        self.middle_ = np.asarray(X)[:, 0].mean()
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.middle_ + self.threshold).astype(int)


def test_a_model_that_inherits_nothing(numbers):
    X, y = numbers
    classifier = AnonymizedClassifier(Plain(), k=5).fit(X, y)
    assert set(classifier.predict(X)) == {0, 1}
    assert not hasattr(classifier, "predict_proba") and not hasattr(classifier, "decision_function")


def without_regions(anonymizer):
    return {name: part for name, part in anonymizer.partition_.to_dict().items() if name != "regions"}


def test_models_without_probabilities_guide_by_their_predictions(numbers):
    X, y = numbers
    svm = LinearSVC(random_state=0)
    fitted = AnonymizedClassifier(svm, k=5).fit(X, y)
    by_hand = ModelGuidedAnonymizer(5).fit(X, clone(svm).fit(X, y).predict(X))
    assert without_regions(fitted.anonymizer_) == by_hand.partition_.to_dict()
    assert fitted.decision_function(X).shape == (300,)
    assert not hasattr(fitted, "predict_proba")


def test_several_outputs(numbers):
    X, y = numbers
    targets = np.column_stack([y, X[:, 0] > 0])
    forest = RandomForestClassifier(5, random_state=0, n_jobs=1)
    for model in (forest, MultiOutputClassifier(DecisionTreeClassifier(max_depth=3))):
        classifier = AnonymizedClassifier(model, k=5).fit(X, targets)
        assert classifier.predict(X).shape == (300, 2)
        assert smallest_group(classifier.anonymizer_.transform(X)) >= 5
    regressor = AnonymizedRegressor(LinearRegression(), k=5).fit(X, X[:, :2])
    assert regressor.predict(X).shape == (300, 2)


# ---- guides ----------------------------------------------------------------------------------------------------------


def test_the_guide_may_be_another_model_fitted_or_not_or_the_labels(numbers):
    X, y = numbers
    other = DecisionTreeClassifier(max_depth=2, random_state=0)
    unfitted = AnonymizedClassifier(LogisticRegression(), k=5, guide_estimator=other).fit(X, y)
    fitted = AnonymizedClassifier(LogisticRegression(), k=5, guide_estimator=clone(other).fit(X, y)).fit(X, y)
    assert not hasattr(other, "tree_"), "an unfitted guide is cloned, never fitted itself"
    same = unfitted.anonymizer_.partition_.to_dict()
    assert fitted.anonymizer_.partition_.to_dict() == same
    labels = AnonymizedClassifier(LogisticRegression(), k=5, guide_estimator="labels").fit(X, y)
    assert without_regions(labels.anonymizer_) == ModelGuidedAnonymizer(5).fit(X, y).partition_.to_dict()
    assert without_regions(labels.anonymizer_) != without_regions(unfitted.anonymizer_)
    with pytest.raises(ParameterError, match="guide_estimator='label': expected None, 'labels' or a model"):
        AnonymizedClassifier(LogisticRegression(), k=5, guide_estimator="label").fit(X, y)


def test_a_share_of_the_records_trains_the_guide(numbers):
    X, y = numbers
    seen = []

    class Watcher(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append((len(X), sample_weight))
            return super().fit(X, y, sample_weight)

    classifier = AnonymizedClassifier(Watcher(), k=5, guide_fraction=0.25, learn_from="points", random_state=0)
    classifier.fit(X, y, sample_weight=np.arange(300) + 1.0)
    assert [n for n, _ in seen] == [75, 300]
    assert len(seen[0][1]) == 75 and set(seen[0][1]) <= set(range(1, 301))
    again = clone(classifier).fit(X, y, sample_weight=np.arange(300) + 1.0)
    assert again.anonymizer_.partition_.to_dict() == classifier.anonymizer_.partition_.to_dict()


def test_weights_reach_the_guide_the_splits_and_the_retraining(numbers):
    X, y = numbers
    weight = np.where(y == 1, 50.0, 1.0)
    plain = AnonymizedClassifier(LogisticRegression(), k=5).fit(X, y)
    weighted = AnonymizedClassifier(LogisticRegression(), k=5).fit(X, y, sample_weight=weight)
    assert weighted.predict(X).mean() > plain.predict(X).mean()
    assert weighted.anonymizer_.partition_.to_dict() != plain.anonymizer_.partition_.to_dict()
    with pytest.raises(ParameterError, match="sample_weight with KNeighborsClassifier, whose fit takes none"):
        AnonymizedClassifier(KNeighborsClassifier(), k=5).fit(X, y, sample_weight=weight)


def test_weights_reach_the_last_step_of_a_pipeline(numbers):
    X, y = numbers
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    weighted = AnonymizedClassifier(pipeline, k=5).fit(X, y, sample_weight=np.where(y == 1, 50.0, 1.0))
    assert weighted.predict(X).mean() > AnonymizedClassifier(pipeline, k=5).fit(X, y).predict(X).mean()


def test_identifiers_and_units_reach_no_model(adults):
    X, y = adults
    X = X[["age", "income"]].fillna(0).assign(name=[f"person {i}" for i in range(300)], person=np.arange(300) // 3)
    anonymizer = ModelGuidedAnonymizer(5, identifiers=["name"], criteria=KAnonymity(3, unit="person"))
    seen = []

    class Watcher(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(list(X.columns))
            return super().fit(X, y, sample_weight)

    classifier = AnonymizedClassifier(Watcher(max_iter=500), anonymizer=anonymizer).fit(X, y)
    assert seen == [["age", "income"]] * 2
    assert classifier.predict(X).shape == (300,)
    assert not hasattr(anonymizer, "partition_"), "the anonymizer handed in is cloned, never fitted itself"
    own = AnonymizedClassifier(LogisticRegression(max_iter=500), k=5, identifiers=["name", "person"]).fit(X, y)
    assert own.predict(X).shape == (300,)


def test_columns_are_named_in_one_place(numbers):
    X, y = numbers
    with pytest.raises(ParameterError, match=r"anonymizer= together with quasi_identifiers=.*one place"):
        AnonymizedClassifier(LogisticRegression(), anonymizer=ModelGuidedAnonymizer(5), quasi_identifiers=[0]).fit(X, y)
    with pytest.raises(ParameterError, match="anonymizer is a LogisticRegression: expected an anonymizer"):
        AnonymizedClassifier(LogisticRegression(), anonymizer=LogisticRegression()).fit(X, y)


def test_k_beside_an_anonymizer_with_another_k_is_refused(numbers):
    X, y = numbers
    two_places = AnonymizedClassifier(LogisticRegression(), k=50, anonymizer=ModelGuidedAnonymizer(k=2))
    with pytest.raises(ParameterError, match=r"k=50 together with an anonymizer= that has k=2.*one place"):
        two_places.fit(X, y)
    # The same k twice contradicts nothing, and None says nothing.
    for options in ({"k": 20}, {"k": None}, {}):
        model = AnonymizedClassifier(LogisticRegression(), anonymizer=ModelGuidedAnonymizer(k=20), **options)
        assert model.fit(X, y).anonymizer_.group_sizes_.min() >= 20


@pytest.mark.parametrize("model", [AnonymizedClassifier(LogisticRegression()), AnonymizedRegressor(LinearRegression())])
def test_no_k_that_was_given_is_ignored(numbers, model):
    X, y = numbers
    model = clone(model).set_params(k=10, anonymizer=MondrianAnonymizer(k=5))
    with pytest.raises(ParameterError, match=r"k=10 together with an anonymizer= that has k=5.*Leave k out"):
        model.fit(X, y)


def test_k_is_ten_where_nothing_says_otherwise(numbers):
    X, y = numbers
    model = AnonymizedClassifier(LogisticRegression())
    assert model.get_params(deep=False)["k"] is None
    model.fit(X, y)
    assert model.k is None
    assert model.anonymizer_.k == 10


def test_an_anonymizer_that_takes_no_weights_is_used_with_and_without_them(numbers):
    X, y = numbers
    X = np.round(X)
    model = AnonymizedClassifier(
        make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
        anonymizer=FullDomainAnonymizer(k=5, quasi_identifiers=[0]),
        transform_at_predict=True,
    )
    assert model.fit(X, y).score(X, y) > 0.5
    assert model.anonymizer_.group_sizes_.min() >= 5
    plain, levels = model.predict(X).mean(), model.anonymizer_.levels_
    model.fit(X, y, sample_weight=np.where(y == 1, 50.0, 1.0))
    assert model.predict(X).mean() > plain
    assert model.anonymizer_.levels_ == levels


def test_a_search_over_the_k_of_the_anonymizer_changes_it(numbers):
    X, y = numbers
    model = AnonymizedClassifier(LogisticRegression(), anonymizer=ModelGuidedAnonymizer(k=2))
    for k in (3, 60):
        assert clone(model).set_params(anonymizer__k=k).fit(X, y).anonymizer_.partition_.group_sizes.min() >= k
    search = GridSearchCV(model, {"k": [20, 30]}, cv=2)
    with pytest.raises(ValueError, match="expected one place that says k"):
        search.fit(X, y)


def test_recoding_at_prediction_uses_the_fitted_partition(numbers):
    X, y = numbers
    tree = DecisionTreeClassifier(random_state=0)
    recoding = AnonymizedClassifier(tree, k=20, transform_at_predict=True).fit(X, y)
    raw = AnonymizedClassifier(tree, k=20).fit(X, y)
    recoded = recoding.anonymizer_.transform(X)
    assert np.array_equal(recoding.predict_proba(X), recoding.estimator_.predict_proba(recoded))
    assert np.array_equal(raw.predict_proba(X), raw.estimator_.predict_proba(X))
    assert not np.array_equal(recoding.predict_proba(X), raw.predict_proba(X))


# ---- nothing raw is left inside --------------------------------------------------------------------------------------


def reachable(thing):
    """Every object that can be reached from another: attributes, items, closures; modules and classes left out."""
    seen, waiting = {}, [thing]
    skipped = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, skipped):
            continue
        seen[id(one)] = one
        waiting.extend(gc.get_referents(one))
        if isinstance(one, np.ndarray) and one.dtype == object:
            waiting.extend(one.ravel().tolist())
        if isinstance(one, np.ndarray) and one.base is not None:
            waiting.append(one.base)
    return list(seen.values())


def is_model(thing):
    return isinstance(thing, BaseEstimator) and hasattr(thing, "predict")


def planted(numbers):
    """Records whose every value has digits of its own, so that each can be found again wherever it is."""
    X, y = numbers
    generator = np.random.default_rng(1)
    return X + generator.random(X.shape) * 1e-3, y


@pytest.mark.parametrize(
    "options", [{}, {"guide_fraction": 0.5}, {"guide_estimator": DecisionTreeClassifier(max_depth=3)}]
)
@pytest.mark.parametrize("transform_at_predict", [False, True])
@pytest.mark.parametrize("representative", ["median", "model"])
def test_a_pickled_classifier_holds_neither_the_raw_model_nor_raw_records(
    options, transform_at_predict, representative, numbers
):
    X, y = planted(numbers)
    classifier = AnonymizedClassifier(
        LogisticRegression(),
        anonymizer=ModelGuidedAnonymizer(10, representative=representative),
        transform_at_predict=transform_at_predict,
        random_state=0,
        **options,
    ).fit(X, y)
    data = pickle.dumps(classifier)
    again = pickle.loads(data)
    assert np.array_equal(again.predict(X), classifier.predict(X))
    things = reachable(again)

    # One fitted model, the final one; others are parameters, as they were given.
    fitted = [thing for thing in things if is_model(thing) and any(name.endswith("_") for name in vars(thing))]
    assert [type(model) for model in fitted if model is not again] == [LogisticRegression]
    assert again.estimator_ in fitted
    raw_trained = LogisticRegression().fit(X, y)
    coefficients = {
        value for thing in things if isinstance(thing, np.ndarray) and thing.dtype == float for value in thing.flat
    }
    assert not coefficients & set(raw_trained.coef_.ravel())
    assert set(again.estimator_.coef_.ravel()) <= coefficients

    # Of the raw records no more than the representatives: at most one value per group and column.
    raw_values = set(X.ravel().tolist())
    n_groups = again.anonymizer_.n_groups_
    numbers_inside = coefficients | {thing for thing in things if isinstance(thing, float)}
    assert len(raw_values & numbers_inside) <= n_groups * X.shape[1]
    rewritten = {value for parts in again.anonymizer_.partition_.values.values() for value in parts[0].values.tolist()}
    assert raw_values & numbers_inside <= rewritten
    raw_rows = {row.tobytes() for row in X}
    for thing in things:
        if isinstance(thing, np.ndarray) and thing.ndim == 2 and thing.shape[1] == X.shape[1]:
            assert not raw_rows & {row.tobytes() for row in thing.astype(float)}
        assert not (isinstance(thing, np.ndarray) and len(thing.shape) and len(thing) == len(X)), "one entry per record"

    # And in the bytes themselves, whatever holds them.
    found = sum(value.tobytes() in data for value in X.ravel())
    assert found <= n_groups * X.shape[1]
    unusual = [row for row in range(len(X)) if not set(X[row].tolist()) & rewritten]
    assert unusual, "some records represent nobody"
    assert not any(X[row, column].tobytes() in data for row in unusual for column in range(X.shape[1]))


@pytest.mark.parametrize("is_fitted_first", [True, False])
def test_a_pickle_holds_no_raw_rows_though_the_wrapped_model_was_fitted_on_them(is_fitted_first, numbers):
    X, y = planted(numbers)
    model = KNeighborsClassifier()
    if is_fitted_first:
        model.fit(X, y)
    anonymizer = ModelGuidedAnonymizer(10, representative="median")  # which makes new rows, no one's own
    classifier = AnonymizedClassifier(model, anonymizer=anonymizer).fit(X, y)
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(classifier))
    raw_rows = {row.tobytes() for row in X}
    for thing in reachable(again):
        if isinstance(thing, np.ndarray) and thing.ndim == 2 and thing.shape[1] == X.shape[1]:
            assert not raw_rows & {row.tobytes() for row in thing.astype(float)}
    assert not hasattr(again.estimator, "classes_")
    assert np.array_equal(again.predict(X), classifier.predict(X))
    assert repr(again) == repr(classifier)
    assert classifier.estimator is model and hasattr(model, "classes_")  # what was passed in stays as it is


def test_text_of_identifiers_and_unusual_text_elsewhere_is_not_in_the_pickle(adults):
    X, y = adults
    X = X[["age", "income"]].fillna(0).assign(name=[f"Thorondor {i}" for i in range(300)], note="plain")
    X.loc[5, "note"] = "Gwaihir"
    anonymizer = ModelGuidedAnonymizer(5, quasi_identifiers=["age", "income"], identifiers=["name", "note"])
    classifier = AnonymizedClassifier(LogisticRegression(max_iter=500), anonymizer=anonymizer).fit(X, y)
    data = pickle.dumps(classifier)
    assert b"Thorondor" not in data and b"Gwaihir" not in data
    assert b"income" in data  # the search would find text


def test_a_fitted_anonymizer_keeps_no_table_and_no_predictions(adults):
    X, _ = adults
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], len(X))
    anonymizer = ModelGuidedAnonymizer(5).fit(X, probabilities)
    # Fingerprints are one salted hash per record, for the owner: they are in no pickle.
    hashes = [own for _, own in anonymizer.partition_.fingerprints.sets]
    for thing in reachable(anonymizer):
        assert not isinstance(thing, pd.DataFrame | pd.Series)
        is_hashes = any(thing is own for own in hashes)
        assert is_hashes or not (isinstance(thing, np.ndarray) and thing.size >= len(X)), thing.shape
    data = pickle.dumps(anonymizer)
    assert not any(value.tobytes() in data for value in (*probabilities.ravel(), *hashes[0]))


def test_anonymizers_survive_pickle_and_keep_their_parameters(adults):
    X, y = adults
    buffer = io.BytesIO()
    anonymizer = ModelGuidedAnonymizer(5, limits={"age": 5}, representative="range").fit(X, y)
    pickle.dump(anonymizer, buffer)
    again = pickle.loads(buffer.getvalue())
    assert again.transform(X).equals(anonymizer.transform(X))
    assert again.release(X).table.equals(anonymizer.release(X).table)
    assert repr(again) == repr(anonymizer)


class Recorder(RegressorMixin, BaseEstimator):
    """Predicts whole numbers and remembers what it was shown."""

    def fit(self, X, y):
        self.n_seen_ = len(X)
        return self

    def predict(self, X):
        return np.arange(len(X)) // 10


def test_the_models_handed_in_are_never_fitted(numbers):
    X, y = numbers
    model, guide = Recorder(), Recorder()
    AnonymizedRegressor(model, k=5, guide_estimator=guide).fit(X, y)
    ModelGuidedAnonymizer(5, guide_estimator=guide).fit(X, y)
    assert not hasattr(model, "n_seen_") and not hasattr(guide, "n_seen_")


def skewed_records() -> tuple[np.ndarray, np.ndarray]:
    """Return records far from each other and a target that their logarithm explains."""
    x = np.exp(3 * np.random.default_rng(0).normal(size=400))
    return x[:, None], np.log(x)


def test_a_regressor_warns_when_it_has_nothing_to_say_about_raw_records():
    X, y = skewed_records()
    with pytest.warns(UserWarning, match=r"less of raw records than their mean does \(R² -.*transform_at_predict=True"):
        AnonymizedRegressor(LinearRegression(), k=100, learn_from="points").fit(X, y)


def test_a_regressor_whose_encoder_refuses_raw_categories_is_fitted_and_warns_without_naming_one():
    cities = np.array([f"city{number:02d}" for number in range(40)], dtype=object)
    X = np.tile(cities, 10)[:, None]
    y = np.repeat(np.arange(10.0), 40)
    model = make_pipeline(OneHotEncoder(handle_unknown="error"), LinearRegression())
    with pytest.warns(UserWarning, match=r"no answer for raw records.*transform_at_predict=True") as caught:
        regressor = AnonymizedRegressor(model, k=100, guide_estimator="labels", learn_from="points").fit(X, y)
    assert not any("city" in str(warning.message) for warning in caught)
    assert regressor.set_params(transform_at_predict=True).predict(X).shape == (400,)


def test_a_regressor_trained_on_bounds_is_fitted_and_warns_that_raw_records_have_other_columns():
    X, y = skewed_records()
    anonymizer = ModelGuidedAnonymizer(100, representative="bounds")
    with pytest.warns(UserWarning, match=r"no answer for raw records.*transform_at_predict=True"):
        AnonymizedRegressor(LinearRegression(), anonymizer=anonymizer, learn_from="points").fit(X, y)


def test_a_regressor_that_recodes_what_it_is_asked_about_has_nothing_to_warn_of():
    X, y = skewed_records()
    regressor = AnonymizedRegressor(LinearRegression(), k=100, transform_at_predict=True).fit(X, y)
    assert regressor.score(X, y) > 0
