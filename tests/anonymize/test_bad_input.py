# SPDX-License-Identifier: Apache-2.0
"""Bad input gets a sentence: the right class of error, the column by name, what to do, and no cell values."""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sfumato import (
    AnonymizedClassifier,
    AnonymizedRegressor,
    GuaranteeError,
    InputError,
    KAnonymity,
    ModelGuidedAnonymizer,
    ParameterError,
    SfumatoError,
)
from sfumato.schema import ColumnWarning
from sfumato.testing import people, smallest_group

N = 24
AGES = [31, 47, 52, 47, 31, 60] * 4
FRAME = {"age": AGES, "town": ["Bree", "Moria", "Bree"] * 8}
LABELS = np.array([0, 1, 1, 0] * 6)
BINARY = np.column_stack([LABELS * 0.8 + 0.1, 0.9 - LABELS * 0.8])


def fit(frame=None, y=LABELS, *, k=3, sample_weight=None, **options):
    return ModelGuidedAnonymizer(k, **options).fit(pd.DataFrame(FRAME if frame is None else frame), y, sample_weight)


def with_column(**columns):
    return FRAME | columns


BAD_PARAMETERS = {
    "k beyond the table": (lambda: fit(k=25), r"k=25 with n_samples=24.*at least 25 records.*Lower the requirement"),
    "k of 1": (lambda: fit(k=1), r"k=1: expected an integer of at least 2.*common"),
    "k of 0": (lambda: fit(k=0), r"k=0: expected an integer of at least 2"),
    "negative k": (lambda: fit(k=-3), r"k=-3: expected an integer of at least 2"),
    "k of 2.5": (lambda: fit(k=2.5), r"k=2.5: expected an integer"),
    "k of 5.0": (lambda: fit(k=5.0), r"k=5.0: expected an integer"),
    "k as text": (lambda: fit(k="5"), r"k='5': expected an integer"),
    "k of True": (lambda: fit(k=True), r"k=True: expected an integer"),
    "k of None": (lambda: fit(k=None), r"k=None: expected an integer"),
    "more persons than there are": (
        lambda: fit(with_column(person=[1, 2, 3] * 8), criteria=[KAnonymity(4, unit="person")]),
        r"KAnonymity\(k=4, unit='person'\) with n_samples=24 \(3 persons\).*at least 4 different persons.*Lower",
    ),
    "unknown quasi-identifier": (
        lambda: fit(quasi_identifiers=["aeg"]),
        r"quasi_identifiers names the column 'aeg'.*does not have.*Did you mean 'age'\?",
    ),
    "unknown identifier": (lambda: fit(identifiers=["nome"]), r"identifiers names the column 'nome'.*'age', 'town'"),
    "unknown keep": (lambda: fit(keep=["nome"]), r"keep names the column 'nome'"),
    "unknown category": (lambda: fit(categorical_features=["nome"]), r"categorical_features names the column 'nome'"),
    "unknown limit": (lambda: fit(limits={"nome": 3}), r"limits names the column 'nome'"),
    "unknown unit": (lambda: fit(criteria=[KAnonymity(2, unit="nome")]), r"unit names the column 'nome'"),
    "unknown position": (lambda: fit(quasi_identifiers=[7]), r"quasi_identifiers has the position 7.*from 0 to 1"),
    "a position that is True": (lambda: fit(quasi_identifiers=[True]), r"quasi_identifiers names the column True"),
    "a column named twice": (lambda: fit(quasi_identifiers=["age", 0]), r"names the column 'age' twice.*Remove"),
    "columns as a number": (lambda: fit(quasi_identifiers=3.5), r"quasi_identifiers is of the type float.*as a list"),
    "columns in lists in lists": (
        lambda: fit(quasi_identifiers=[["age"]]),
        r"quasi_identifiers names the column \['age'\]",
    ),
    "no quasi-identifier left": (
        lambda: fit(quasi_identifiers=[]),
        r"no quasi-identifier is left among 2 columns.*Name",
    ),
    "everything dropped": (lambda: fit(identifiers=["age", "town"]), r"no quasi-identifier is left"),
    "two roles: identifier": (
        lambda: fit(quasi_identifiers=["age", "town"], identifiers=["town"]),
        r"'town' is named in identifiers and in quasi_identifiers: expected one role.*Remove",
    ),
    "two roles: unit": (
        lambda: fit(quasi_identifiers=["age"], criteria=[KAnonymity(2, unit="age")]),
        r"'age' is named in unit and in quasi_identifiers: expected one role",
    ),
    "two roles: keep": (
        lambda: fit(quasi_identifiers=["age", "town"], keep=["town"]),
        r"'town' is named in quasi_identifiers and in keep.*Remove",
    ),
    "two units": (
        lambda: fit(with_column(p=[1] * N, q=[2] * N), criteria=[KAnonymity(2, unit="p"), KAnonymity(2, unit="q")]),
        r"criteria name 2 different unit columns: expected one",
    ),
    "a unit that is a list": (
        lambda: fit(criteria=[KAnonymity(2, unit=["age"])]),
        r"unit=\['age'\]: expected the name",
    ),
    "criteria that are none": (
        lambda: fit(criteria=["k"]),
        r"criteria has a str: expected criteria such as KAnonymity",
    ),
    "criteria that are a number": (lambda: fit(criteria=5), r"criteria has a int: expected criteria"),
    "a limit on what is not rewritten": (
        lambda: fit(quasi_identifiers=["age"], limits={"town": 2}),
        r"limits names the column 'town', which has the role other.*Add it to quasi_identifiers",
    ),
    "a negative limit": (lambda: fit(limits={"age": -5}), r"limits has -5 for the column 'age'.*positive"),
    "a limit of NaN": (lambda: fit(limits={"age": np.nan}), r"limits has nan for the column 'age'.*positive"),
    "half a year of whole years": (lambda: fit(limits={"age": 2.5}), r"'age', which holds integers.*whole width"),
    "days of a number": (
        lambda: fit(limits={"age": datetime.timedelta(days=1)}),
        r"'age', which is a number: expected a timedelta for dates",
    ),
    "limits as a list": (lambda: fit(limits=["age"]), r"limits is of the type list: expected a dict"),
    "unknown representative": (lambda: fit(representative="avg"), r"representative='avg': expected one of phantom"),
    "unknown split_on": (lambda: fit(split_on="some"), r"split_on='some': expected 'quasi_identifiers' or 'all'"),
    "unknown guide_kind": (lambda: fit(guide_kind="logits"), r"guide_kind='logits': expected 'auto', 'labels'"),
    "unknown guide": (
        lambda: fit(guide_estimator="tree"),
        r"guide_estimator='tree': expected None, 'labels' or a model",
    ),
    "a class as guide": (
        lambda: fit(guide_estimator=LogisticRegression),
        r"guide_estimator is the class LogisticRegression: expected an instance. Add parentheses",
    ),
    "no model as guide": (lambda: fit(guide_estimator=object()), r"guide_estimator is a object: expected 'labels', or"),
    "no share for the guide": (
        lambda: fit({"age": AGES}, guide_estimator=LogisticRegression(), guide_fraction=0),
        r"guide_fraction=0: expected a share above 0 and up to 1",
    ),
    "a share as text": (
        lambda: fit({"age": AGES}, guide_estimator=LogisticRegression(), guide_fraction="half"),
        r"guide_fraction='half': expected a share",
    ),
    "suppressing more than all": (lambda: fit(suppression_limit=1.5), r"suppression_limit=1.5: expected a share"),
    "suppressing in percent": (lambda: fit(suppression_limit=5), r"suppression_limit=5: expected a share.*0.05"),
    "suppressing NaN": (lambda: fit(suppression_limit=np.nan), r"suppression_limit=nan: expected a share"),
    "suppressing text": (lambda: fit(suppression_limit="5%"), r"suppression_limit='5%': expected a share"),
    "one bin": (lambda: fit(max_bins=1), r"max_bins=1: expected an integer from 2 to"),
    "too many bins": (lambda: fit(max_bins=10**6), r"max_bins=1000000: expected an integer from 2 to"),
    "half a bin": (lambda: fit(max_bins=20.5), r"max_bins=20.5: expected an integer"),
    "neither yes nor no": (lambda: fit(keep_splitting="no"), r"keep_splitting='no': expected True or False"),
    "no threads": (lambda: fit(n_jobs=0), r"n_jobs=0: expected an integer from 1 to 1,024, or -1"),
    "half a thread": (lambda: fit(n_jobs=1.5), r"n_jobs=1.5: expected an integer"),
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_a_parameter_that_cannot_work_is_refused(case):
    act, message = BAD_PARAMETERS[case]
    with pytest.raises(ParameterError, match=message):
        act()


NOT_A_NUMBER = np.where(np.arange(N) == 3, np.nan, 0.5)
BAD_INPUTS = {
    "empty table": (lambda: fit({"age": []}, []), r"0 sample\(s\) \(shape=\(0, 1\)\).*Hand in a table with records"),
    "no columns": (lambda: ModelGuidedAnonymizer(2).fit(pd.DataFrame(index=range(9)), range(9)), r"0 feature\(s\)"),
    "duplicate names": (
        lambda: ModelGuidedAnonymizer(2).fit(pd.DataFrame([[1, 2]] * 4, columns=["age", "age"]), [0, 0, 1, 1]),
        r"several columns with the names 'age': expected each name once. Rename or drop",
    ),
    "infinity": (
        lambda: fit(with_column(debt=[np.inf, *range(23)])),
        r"column 'debt' contains infinity in 1 of 24 records.*Replace",
    ),
    "mixed types": (
        lambda: fit(with_column(mix=[31337, "Smaug"] * 12)),
        r"column 'mix' holds Python objects of mixed.*\(int, str\).*Convert the whole column to one type",
    ),
    "lists in cells": (lambda: fit(with_column(many=[[1]] * N)), r"column 'many' holds Python objects.*list"),
    "one column alone": (lambda: ModelGuidedAnonymizer(2).fit(pd.Series(AGES), LABELS), r"one column \(1-D\).*Reshape"),
    "three dimensions": (
        lambda: ModelGuidedAnonymizer(2).fit(np.ones((4, 2, 2)), [0, 1, 0, 1]),
        r"3 dimension\(s\).*Resh",
    ),
    "a sparse matrix": (
        lambda: ModelGuidedAnonymizer(2).fit(scipy.sparse.eye(9, format="csr"), range(9)),
        r"sparse matrix.*toarray",
    ),
    "no table": (lambda: ModelGuidedAnonymizer(2).fit("table.csv", [0, 1]), r"of the type str: expected a pandas"),
    "near-unique text that would pass through": (
        lambda: fit(with_column(note=[f"note {i}" for i in range(N)]), quasi_identifiers=["age"]),
        r"'note' would be released unchanged.*quasi_identifiers or identifiers, or in keep",
    ),
    "near-unique numbers that would pass through": (
        lambda: fit(with_column(salary=range(N)), quasi_identifiers=["age"]),
        r"'salary' would be released unchanged",
    ),
    "NaN in predictions": (lambda: fit(y=NOT_A_NUMBER), r"Input y contains NaN or infinity in 1 places.*Drop"),
    "NaN in probabilities": (
        lambda: fit(y=np.column_stack([NOT_A_NUMBER, 1 - NOT_A_NUMBER])),
        r"NaN or infinity in 2 places",
    ),
    "infinity in predictions": (lambda: fit(y=np.where(NOT_A_NUMBER > 0, 1.5, np.inf)), r"NaN or infinity"),
    "None in labels": (lambda: fit(y=["a", None] * 12), r"NaN or None among the labels.*label for every record"),
    "no day among the labels": (lambda: fit(y=np.array(["NaT", "2020-01-01"] * 12, "M8[D]")), r"NaN or None among"),
    "complex predictions": (lambda: fit(y=LABELS * 31337j), r"Complex data not supported.*Convert them"),
    "ragged predictions": (lambda: fit(y=[[1, 2], [3]] * 12), r"rows of y have different lengths.*predict_proba"),
    "text for predictions": (lambda: fit(y="labels"), r"predictions of shape \(\): expected one row per record"),
    "NA in labels": (lambda: fit(y=pd.Series(["a", pd.NA] * 12, dtype="string")), r"NaN or None among the labels"),
    "NaT in labels": (lambda: fit(y=np.array(["a", pd.NaT] * 12, dtype=object)), r"NaN or None among the labels"),
    "labels of several types": (lambda: fit(y=np.array(["a", 1] * 12, object)), r"Unknown label type.*Convert mixed"),
    "labels of several types, named": (
        lambda: fit(y=np.array(["a", 1] * 12, object), guide_kind="labels"),
        r"several types.*Convert them all to text",
    ),
    "no predictions": (lambda: fit(y=None), r"requires y to be passed.*Pass model.predict_proba\(X\)"),
    "no labels for a guide to learn": (
        lambda: fit({"age": AGES}, y=None, guide_estimator=LogisticRegression()),
        r"guide_estimator is not fitted and the target y is None.*Pass the labels",
    ),
    "too few predictions": (lambda: fit(y=LABELS[:20]), r"20 predictions for 24 records.*Predict on the same rows"),
    "too many predictions": (lambda: fit(y=np.vstack([BINARY, BINARY])), r"48 predictions for 24 records"),
    "too few of several outputs": (lambda: fit(y=[BINARY, BINARY[:9]]), r"9 predictions for 24 records"),
    "predictions in a cube": (lambda: fit(y=np.ones((N, 2, 2))), r"predictions of shape \(24, 2, 2\).*predict_proba"),
    "empty predictions": (lambda: fit(y=[]), r"predictions of shape \(0,\)"),
    "probabilities that are none": (
        lambda: fit(y=BINARY * 2, guide_kind="probabilities"),
        r"rows that are not probabilities.*sum to 1",
    ),
    "one probability": (lambda: fit(y=BINARY[:, 0], guide_kind="probabilities"), r"rows that are not probabilities"),
    "text as numbers": (lambda: fit(y=["a", "b"] * 12, guide_kind="numbers"), r"not numbers.*guide_kind='labels'"),
    "NaN in weights": (
        lambda: fit(sample_weight=NOT_A_NUMBER),
        r"sample_weight has NaN, infinite or negative.*Replace",
    ),
    "negative weights": (lambda: fit(sample_weight=-np.ones(N)), r"sample_weight has NaN, infinite or negative"),
    "infinite weights": (lambda: fit(sample_weight=np.full(N, np.inf)), r"sample_weight has NaN, infinite"),
    "weights of zero": (lambda: fit(sample_weight=np.zeros(N)), r"sample_weight is zero for all records.*Leave"),
    "one weight of NaN": (lambda: fit(sample_weight=np.nan), r"sample_weight has NaN"),
    "too few weights": (
        lambda: fit(sample_weight=[1, 2]),
        r"sample_weight of shape \(2,\) for 24 records: expected one",
    ),
    "weights in columns": (lambda: fit(sample_weight=np.ones((N, 2))), r"sample_weight of shape \(24, 2\)"),
    "weights as text": (lambda: fit(sample_weight=["heavy"] * N), r"sample_weight has something else than numbers"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_data_that_cannot_be_used_is_refused(case):
    act, message = BAD_INPUTS[case]
    with pytest.raises(InputError, match=message) as caught:
        act()
    assert isinstance(caught.value, SfumatoError) and isinstance(caught.value, ValueError)
    for secret in ("31337", "Smaug", "note 1"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize("case", [*BAD_PARAMETERS, *BAD_INPUTS])
def test_every_refusal_says_what_is_expected_and_how_to_go_on(case):
    act, _ = (BAD_PARAMETERS | BAD_INPUTS)[case]
    with pytest.raises(SfumatoError) as caught:
        act()
    message = str(caught.value)
    assert re.search(r"expected|is required|required|requires", message), message
    assert message.rstrip().endswith((".", "?")), message
    assert "  " not in message and "\n" not in message, message


CLASSIFIER = {
    "k beyond the table": (
        lambda X, y: AnonymizedClassifier(LogisticRegression(), k=99).fit(X, y),
        ParameterError,
        "k=99 with n_samples=24",
    ),
    "NaN in labels": (
        lambda X, y: AnonymizedRegressor(DecisionTreeClassifier()).fit(X, NOT_A_NUMBER),
        InputError,
        "Input y contains NaN",
    ),
    "None in labels": (
        lambda X, y: AnonymizedClassifier(LogisticRegression()).fit(X, ["a", None] * 12),
        InputError,
        "Input y contains NaN or None among the labels",
    ),
    "a class for a model": (
        lambda X, y: AnonymizedClassifier(LogisticRegression).fit(X, y),
        ParameterError,
        r"estimator is .*LogisticRegression.*: expected a model with fit and predict. Pass an instance",
    ),
    "a name for a model": (
        lambda X, y: AnonymizedRegressor("ridge").fit(X, y),
        ParameterError,
        "estimator is 'ridge': expected a model",
    ),
    "no labels": (
        lambda X, y: AnonymizedClassifier(LogisticRegression()).fit(X, None),
        InputError,
        "requires y to be passed",
    ),
    "too few labels": (
        lambda X, y: AnonymizedClassifier(LogisticRegression()).fit(X, y[:5]),
        InputError,
        "5 labels for 24 records",
    ),
    "NaN in weights": (
        lambda X, y: AnonymizedClassifier(LogisticRegression()).fit(X, y, sample_weight=NOT_A_NUMBER),
        InputError,
        "sample_weight has NaN",
    ),
    "infinity": (
        lambda X, y: AnonymizedClassifier(DecisionTreeClassifier(), k=2, guide_estimator="labels").fit(
            X.assign(debt=np.inf), y
        ),
        InputError,
        "column 'debt' contains infinity",
    ),
    "unknown identifier": (
        lambda X, y: AnonymizedClassifier(LogisticRegression(), identifiers=["nome"]).fit(X, y),
        ParameterError,
        "identifiers names the column 'nome'",
    ),
}


@pytest.mark.parametrize("case", CLASSIFIER)
def test_estimators_refuse_the_same(case):
    act, error, message = CLASSIFIER[case]
    with pytest.raises(error, match=message):
        act(pd.DataFrame({"age": AGES, "size": np.arange(N) % 7}), LABELS)


def test_names_may_not_clash_with_those_of_bounds():
    frame = with_column(age_low=AGES)
    with pytest.raises(InputError, match="several columns with the names 'age_low'"):
        ModelGuidedAnonymizer(3, representative="bounds", quasi_identifiers=["age"]).fit_transform(
            pd.DataFrame(frame), LABELS
        )


def test_using_before_fitting_is_refused():
    anonymizer = ModelGuidedAnonymizer(3)
    for method in ("transform", "release"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(anonymizer, method)(pd.DataFrame(FRAME))
    with pytest.raises(NotFittedError, match="not fitted"):
        anonymizer.get_feature_names_out()


def test_later_records_must_look_like_the_fitted_ones():
    anonymizer = fit()
    frame = pd.DataFrame(FRAME)
    with pytest.raises(ValueError, match=r"feature names should match.*(\n.*)*town"):
        anonymizer.transform(frame[["age"]])
    with pytest.raises(InputError, match=r"column 'age' holds categories now and held numbers.*Convert the column"):
        anonymizer.transform(frame.assign(age="Smaug"))
    with pytest.raises(InputError, match="column 'age' contains infinity"):
        anonymizer.release(frame.assign(age=np.inf))
    with pytest.raises(InputError, match="3 predictions for 24 records"):
        anonymizer.release(frame, LABELS[:3])
    message = r"^fewer than 3 records to release.*at least 3 records.*Release more records at once"
    with pytest.raises(GuaranteeError, match=message):
        anonymizer.release(frame[:2])


def test_a_unit_must_be_there_at_release():
    anonymizer = fit(with_column(person=range(N)), criteria=[KAnonymity(3, unit="person")])
    with pytest.raises(ValueError, match="person"):
        anonymizer.release(pd.DataFrame(FRAME))


# ---- odd, and allowed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_constant_and_empty_columns_are_allowed_and_named_in_a_warning(make):
    frame = make(with_column(planet=["Arda"] * N, moons=[None] * N))
    with pytest.warns(
        ColumnWarning, match=r"one value only: 'planet' and that are all missing: 'moons'.*allowed"
    ) as caught:
        released = ModelGuidedAnonymizer(3).fit_transform(frame, LABELS)
    assert "Arda" not in str(caught[0].message)
    assert smallest_group(released) >= 3


def test_missing_values_are_values_and_raise_no_warning():
    frame = pd.DataFrame({"age": [31, None, 52] * 8, "town": ["Bree", "Bree", None] * 8})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = ModelGuidedAnonymizer(3).fit_transform(frame, LABELS)
    assert smallest_group(released) >= 3
    assert released["age"].isna().sum() == 8 or released["town"].isna().sum() == 8


def test_near_unique_columns_pass_through_when_the_user_says_so():
    frame = pd.DataFrame(with_column(note=[f"note {i}" for i in range(N)]))
    released = ModelGuidedAnonymizer(3, quasi_identifiers=["age", "town"], keep=["note"]).fit_transform(frame, LABELS)
    assert released["note"].tolist() == frame["note"].tolist()
    dropped = ModelGuidedAnonymizer(3, quasi_identifiers=["age", "town"], identifiers=["note"])
    assert list(dropped.fit_transform(frame, LABELS).columns) == ["age", "town"]


def test_k_may_be_the_whole_table_and_a_numpy_integer():
    released = ModelGuidedAnonymizer(np.int64(N)).fit_transform(pd.DataFrame(FRAME), LABELS)
    assert len(set(released.itertuples(index=False))) == 1


def test_a_refused_fit_leaves_nothing_behind():
    table, guide = people()
    anonymizer = ModelGuidedAnonymizer(500)
    with pytest.raises(ParameterError):
        anonymizer.fit(table, guide)
    assert not hasattr(anonymizer, "partition_")
    with pytest.raises(NotFittedError):
        anonymizer.transform(table)


def test_of_several_refused_columns_the_first_is_named_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.backends.memory._THREADED_FROM", 1)
    frame = pd.DataFrame({f"x{i}": np.arange(2_000.0) / 3 for i in range(6)})
    for name in ("x4", "x1"):
        frame.loc[1_500, name] = np.inf  # beyond the records that are looked at first
    for _ in range(5):
        with pytest.raises(ValueError, match="column 'x1' contains infinity in 1 of 2000 records"):
            ModelGuidedAnonymizer(k=2, n_jobs=3).fit(frame, np.arange(2_000) % 2)


def every_estimator():
    import sfumato

    names = [name for name in sfumato.__all__ if name.endswith(("Anonymizer", "Minimizer"))]
    return [getattr(sfumato, name) for name in (*names, "PrivacyAwareTree", "Anatomizer")]


@pytest.mark.parametrize("method", every_estimator(), ids=lambda method: method.__name__)
@pytest.mark.parametrize("given", ["columns of one name", "dict of lists", "dict", "empty dict"])
def test_every_method_refuses_what_is_no_table_in_words(method, given):
    if method.__name__ in ("AdversarialMinimizer", "MutualInformationMinimizer"):
        pytest.importorskip("torch", reason="torch is not installed (extra: neural)")
    people = pd.DataFrame({"age": [20, 30, 40, 50] * 10, "job": list("abcd") * 10, "ill": list("xyxy") * 10})
    tables = {
        "columns of one name": people.set_axis(["age", "age", "ill"], axis=1),
        "dict of lists": people.to_dict("list"),
        "dict": {"age": 5},
        "empty dict": {},
    }
    estimator = method(2, sensitive="ill") if method.__name__ == "Anatomizer" else method()
    expected = "several columns with the names 'age'" if given == "columns of one name" else "of the type dict"
    # A private release is of no record's own row, so that its anonymizer has no fit_transform.
    fit = estimator.fit if method.__name__ == "PrivateAnonymizer" else estimator.fit_transform
    with pytest.raises(InputError, match=expected):
        fit(tables[given], people["age"] > 30)
