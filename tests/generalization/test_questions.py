# SPDX-License-Identifier: Apache-2.0
"""A person is asked what can still change the decision, and nothing else; judged by trying out every answer."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sfumato import PrivacyAwareTree
from sfumato.errors import InputError, ParameterError
from sfumato.generalization import generalization_from_bins
from sfumato.generalization.questions import Questionnaire
from strategies import in_examples

SIZES = (3, 2, 4, 2, 1)
NAMES = ("color", "flag", "age", "side", "unused")

EXACT = {
    "tree": lambda seed: DecisionTreeClassifier(max_leaf_nodes=12, random_state=seed),
    "deep tree": lambda seed: DecisionTreeClassifier(random_state=seed),
    "tree on one-hot codes": lambda seed: make_pipeline(OneHotEncoder(), DecisionTreeClassifier(random_state=seed)),
    "logistic regression": lambda seed: LogisticRegression(),
    "scaled": lambda seed: make_pipeline(StandardScaler(), LogisticRegression()),
    "one-hot": lambda seed: make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
    "some one-hot": lambda seed: make_pipeline(
        make_column_transformer((OneHotEncoder(), [0, 2]), remainder="passthrough"), RidgeClassifier()
    ),
    "stochastic": lambda seed: SGDClassifier(random_state=seed),
    "machine": lambda seed: LinearSVC(random_state=seed),
    "discriminant": lambda seed: LinearDiscriminantAnalysis(),
    "searched": lambda seed: GridSearchCV(DecisionTreeClassifier(random_state=seed), {"max_depth": [2, 4]}, cv=2),
}
TIED = {"perceptron": lambda seed: Perceptron(random_state=seed)}  # whole numbers: scores are equal now and then
BOUNDED = {
    "forest": lambda seed: RandomForestClassifier(8, max_depth=4, random_state=seed),
    "extra trees": lambda seed: ExtraTreesClassifier(8, max_depth=4, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=6, random_state=seed),
    "boosting from zero": lambda seed: GradientBoostingClassifier(n_estimators=6, init="zero", random_state=seed),
    "histogram boosting": lambda seed: HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=2),
    "histogram boosting of categories": lambda seed: HistGradientBoostingClassifier(
        max_iter=6, min_samples_leaf=2, categorical_features=[0, 2]
    ),
}


def people(seed, n=300, n_classes=2):
    """Records of a few attributes with few values, their classes, and a generalization that keeps all values."""
    generator = np.random.default_rng(seed)
    codes = np.column_stack([generator.integers(0, size, n) for size in SIZES])
    codes[: max(SIZES)] = np.minimum(np.arange(max(SIZES))[:, None], np.array(SIZES) - 1)  # every value occurs
    effect = [generator.normal(size=(size, n_classes)) for size in SIZES]
    scores = sum(own[column] for own, column in zip(effect, codes.T, strict=True))
    scores += generator.normal(scale=0.7, size=scores.shape)
    X = pd.DataFrame({name: column.astype(float) for name, column in zip(NAMES, codes.T, strict=True)})
    reader = PrivacyAwareTree(floor=1, categorical_features=list(NAMES[:1]))
    sample = reader._read(X, scores.argmax(axis=1), None)
    buckets = [np.arange(column.bins.n_bins) for column in sample.columns]
    return X, scores.argmax(axis=1), generalization_from_bins(sample.columns, buckets, floor=1)


def every_record():
    """All combinations of buckets."""
    return np.array(list(product(*(range(size) for size in SIZES))))


def plain_settled(decisions, records, answers):
    """The class of all records that agree with the answers, if it is one; by looking at each of them."""
    agree = [all(a in (-1, b) for a, b in zip(answers, record, strict=True)) for record in records.tolist()]
    left = {decisions[i] for i, own in enumerate(agree) if own}
    return left.pop() if len(left) == 1 else None


def plain_open(decisions, records, answers):
    """The attributes not asked in which two records, otherwise equal, are decided differently."""
    by_record = dict(zip(map(tuple, records.tolist()), decisions.tolist(), strict=True))
    found = set()
    for record, decision in by_record.items():
        if all(a in (-1, b) for a, b in zip(answers, record, strict=True)):
            for place, answer in enumerate(answers):
                if answer == -1:
                    for other in range(SIZES[place]):
                        if by_record[(*record[:place], other, *record[place + 1 :])] != decision:
                            found.add(place)
    return found


def some_answers(generator, n):
    """Partial answers, the last attribute never asked since it has one bucket."""
    for _ in range(n):
        answers = np.array([generator.integers(-1, size) for size in SIZES])
        answers[-1] = 0
        yield answers


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*EXACT, *TIED, *BOUNDED])
def test_settled_decisions_are_those_of_every_completion(name, n_classes):
    for seed in range(3):
        X, y, generalization = people(seed, n_classes=n_classes)
        model = {**EXACT, **TIED, **BOUNDED}[name](seed).fit(generalization.codes(X), y)
        questionnaire = Questionnaire(generalization, model)
        assert questionnaire.proof == ("bounded" if name in BOUNDED else "exact")
        records = every_record()
        decisions = np.searchsorted(model.classes_, model.predict(records))
        for answers in some_answers(np.random.default_rng(seed), 60):
            found = questionnaire.decision.settled(answers)
            wanted = plain_settled(decisions, records, answers)
            assert found in (wanted, None)  # never settled too early, never another class
            if name in EXACT:
                assert found == wanted


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_asks_exactly_what_can_still_matter(seed):
    X, y, generalization = people(seed, n_classes=2 + seed % 2)
    model = DecisionTreeClassifier(max_leaf_nodes=4 + 3 * seed, random_state=seed).fit(generalization.codes(X), y)
    questionnaire = Questionnaire(generalization, model)
    records = every_record()
    decisions = model.predict(records)
    for answers in some_answers(np.random.default_rng(seed), 80):
        found = questionnaire.decision.open_attributes(answers)
        assert set(found) == plain_open(decisions, records, answers)
        assert (found == []) == (questionnaire.decision.settled(answers) is not None)


@pytest.mark.parametrize("name", [*EXACT, *TIED, *BOUNDED])
def test_no_decision_changes_by_asking_less(name):
    X, y, generalization = people(7, n=400)
    model = {**EXACT, **TIED, **BOUNDED}[name](7).fit(generalization.codes(X), y)
    everybody = pd.DataFrame(every_record().astype(float), columns=list(NAMES))
    told = Questionnaire(generalization, model).interview(everybody)
    np.testing.assert_array_equal(told.complete, model.predict(every_record()))
    assert told.n_changed == 0
    assert not told.asked[:, -1].any()
    assert told.n_asked.mean() < told.n_collected == 4


@pytest.mark.parametrize("name", ["tree", "one-hot", "forest"])
def test_asking_one_by_one_is_the_interview(name):
    X, y, generalization = people(3)
    model = {**EXACT, **BOUNDED}[name](3).fit(generalization.codes(X), y)
    questionnaire = Questionnaire(generalization, model)
    told = questionnaire.interview(X.iloc[:20])
    for row in range(20):
        answers = {}
        question = questionnaire.ask(answers)
        while not question.is_settled:
            assert question.attribute in question.open
            answers[question.attribute] = float(X[question.attribute].iloc[row])
            question = questionnaire.ask(answers)
        assert set(answers) == {name for name, own in zip(NAMES, told.asked[row], strict=True) if own}
        assert question.decision == told.decisions[row]
        assert question.probability == 1


@pytest.mark.parametrize("words", [np.array(["no", "yes"]), np.array(["no", "yes"], object), np.array([False, True])])
def test_decisions_are_classes_as_the_model_has_them(words):
    X, y, generalization = people(5)
    model = DecisionTreeClassifier(random_state=0).fit(generalization.codes(X), words[y])
    questionnaire = Questionnaire(generalization, model)
    person = dict(zip(NAMES, X.iloc[0], strict=True))
    decision = questionnaire.ask(person).decision
    assert decision == questionnaire.interview(X.iloc[:1]).complete[0]
    assert type(decision) is type(words.tolist()[0])


def test_a_model_of_unknown_make_is_asked_about_drawn_answers():
    X, y, generalization = people(1)
    for model in (GaussianNB(), KNeighborsClassifier(), make_pipeline(PolynomialFeatures(2), LogisticRegression())):
        model.fit(generalization.codes(X), y)
        questionnaire = Questionnaire(generalization, model, background=X)
        assert questionnaire.proof == "drawn"
        told = questionnaire.interview(X)
        assert told.n_changed <= 0.01 * len(X)
        assert told.n_asked.mean() < 4


def test_with_a_lower_probability_fewer_questions_are_asked_and_few_decisions_change():
    X, y, generalization = people(2, n=2000)
    for name in ("tree", "one-hot", "forest"):
        model = {**EXACT, **BOUNDED}[name](2).fit(generalization.codes(X), y)
        sure = Questionnaire(generalization, model).interview(X)
        for background in (None, X):
            likely = Questionnaire(generalization, model, probability=0.9, background=background).interview(X)
            assert likely.n_asked.mean() < sure.n_asked.mean()
            assert likely.n_changed <= 0.1 * len(X)


def test_the_probability_of_a_tree_is_that_of_independent_answers():
    X, y, generalization = people(2)
    model = DecisionTreeClassifier(max_leaf_nodes=9, random_state=0).fit(generalization.codes(X), y)
    questionnaire = Questionnaire(generalization, model, probability=0.99)
    records, shares = every_record(), questionnaire._weights
    decisions = model.predict(records)
    for answers in some_answers(np.random.default_rng(0), 30):
        agree = ((answers == -1) | (records == answers)).all(axis=1)
        weight = np.array(
            [
                np.prod([shares[a][b] for a, b in enumerate(record) if answers[a] == -1])
                for record in records[agree].tolist()
            ]
        )
        wanted = [weight[decisions[agree] == c].sum() for c in (0, 1)]
        np.testing.assert_allclose(questionnaire.decision.chances(answers), wanted, atol=1e-12)


@in_examples()
@given(st.integers(0, 2**16))
def test_a_linear_model_at_a_tie_is_asked_itself(seed):
    # Whole contributions, so that ties occur: rounding must not settle what the model decides the other way.
    generator = np.random.default_rng(seed)
    X, y, generalization = people(seed % 5)
    model = LogisticRegression().fit(generalization.codes(X), y)
    model.coef_ = generator.integers(-2, 3, model.coef_.shape).astype(float)
    model.intercept_ = generator.integers(-2, 3, 1).astype(float)
    everybody = pd.DataFrame(every_record().astype(float), columns=list(NAMES))
    told = Questionnaire(generalization, model).interview(everybody)
    np.testing.assert_array_equal(told.decisions, model.predict(every_record()))


# -- models and answers of all kinds ---------------------------------------------------------------------------


@pytest.mark.parametrize("takes", ["codes", "labels", "representatives"])
def test_models_take_codes_labels_or_representatives_with_names(takes):
    X, y, generalization = people(4)
    seen = generalization.transform(X, takes)
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(encoder, LogisticRegression()).fit(seen[["age", "color", "side"]], y)
    questionnaire = Questionnaire(generalization, model, takes=takes)
    assert questionnaire.proof == "exact"
    told = questionnaire.interview(X)
    np.testing.assert_array_equal(told.complete, model.predict(seen[["age", "color", "side"]]))
    assert told.n_changed == 0
    assert not told.asked[:, NAMES.index("flag")].any()  # the model does not take it


def test_a_minimizer_in_front_of_the_pipeline_is_looked_through():
    X, y, _ = people(6)
    model = make_pipeline(PrivacyAwareTree(alpha=0.1, min_samples_leaf=5), OneHotEncoder(), LogisticRegression())
    model.fit(X, y)
    told = Questionnaire(model[0].generalization_, model).interview(X)
    np.testing.assert_array_equal(told.complete, model.predict(X))
    assert told.n_changed == 0
    other = PrivacyAwareTree(alpha=0.0, min_samples_leaf=50).fit(X, y).generalization_
    with pytest.raises(ParameterError, match="begins with another generalization"):
        other.ask({}, model)


def test_answers_are_labels_or_values_and_none_is_no_answer():
    X, y, generalization = people(0)
    X.loc[::7, "age"] = np.nan
    sample = PrivacyAwareTree(floor=1)._read(X, y, None)
    generalization = generalization_from_bins(
        sample.columns, [np.arange(c.bins.n_bins) for c in sample.columns], floor=1
    )
    model = DecisionTreeClassifier(random_state=0).fit(generalization.codes(X), y)
    questionnaire = Questionnaire(generalization, model)
    labels = generalization.attribute("age").labels
    for value, label in ((1.0, labels[1]), (None, "missing"), (float("nan"), "missing"), (1, labels[1])):
        assert questionnaire.ask({"age": value}) == questionnaire.ask({"age": label})
    with pytest.raises(ParameterError, match="the answer to 'age' is neither the label of one of its 5 buckets nor a"):
        questionnaire.ask({"age": "many"})
    with pytest.raises(ParameterError, match="the generalization has no attribute 'height'"):
        questionnaire.ask({"height": 2})


@pytest.mark.parametrize("answer", [pd.NA, pd.NaT, np.datetime64("NaT"), np.float64("nan")])
def test_missing_values_of_frames_are_no_answer(answer):
    X, y, generalization = people(0)
    questionnaire = Questionnaire(
        generalization, DecisionTreeClassifier(random_state=0).fit(generalization.codes(X), y)
    )
    for name in NAMES[:4]:
        assert questionnaire.ask({name: answer}) == questionnaire.ask({name: None})


@pytest.mark.parametrize(
    "answer",
    [object(), 10**30, 1 + 2j, np.datetime64("2020-05-05"), np.arange(3), [[1], "a"], b"1", {"a": 1}, float("inf")],
)
@pytest.mark.parametrize("name", ["color", "age"])
def test_answers_of_any_other_type_are_refused_in_words(name, answer):
    X, y, generalization = people(0)
    model = DecisionTreeClassifier(random_state=0).fit(generalization.codes(X), y)
    with pytest.raises(ParameterError, match=f"the answer to '{name}' is neither the label"):
        generalization.ask({name: answer}, model)


def test_what_cannot_be_asked_is_refused():
    X, y, generalization = people(0)
    codes = generalization.codes(X)
    with pytest.raises(ParameterError, match="model is not a fitted classifier"):
        generalization.ask({}, LogisticRegression())
    with pytest.raises(ParameterError, match="takes 3 columns: expected 5, one per attribute, or 4"):
        generalization.ask({}, LogisticRegression().fit(codes[:, :3], y))
    with_more = pd.DataFrame(codes, columns=[*NAMES[:4], "height"])
    with pytest.raises(ParameterError, match=r"1 columns that are not attributes .* such as 'height'"):
        generalization.ask({}, LogisticRegression().fit(with_more, y))
    with pytest.raises(ParameterError, match=r"probability=0\.2: expected a number above"):
        generalization.ask({}, LogisticRegression().fit(codes, y), probability=0.2)
    narrow = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(codes[codes[:, 0] > 0], y[codes[:, 0] > 0])
    with pytest.raises(InputError, match="does not take every bucket"):
        generalization.ask({}, narrow)
