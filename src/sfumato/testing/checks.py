# SPDX-License-Identifier: Apache-2.0
"""Check what every anonymizer promises, one function per promise; each raises AssertionError if it is broken.

Every check takes an unfitted anonymizer and works on a copy of it, on a synthetic table of people unless one is given.
Groups are counted by `counting`, which shares nothing with any engine.
"""

from __future__ import annotations

import copy
import datetime
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.testing.counting import group_sizes, rows_of

_N_RECORDS = 120


def check_anonymizer(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """Run all checks on an anonymizer.

    Parameters
    ----------
    anonymizer : anonymizer
        Unfitted. It is never fitted itself; the checks work on clones.
    X : frame or array, optional
        Records to check with, for an anonymizer that names columns. At least twice its k.
    y : array-like, optional
        Predictions or labels of these records.

    Examples
    --------
    >>> from sfumato import ModelGuidedAnonymizer
    >>> check_anonymizer(ModelGuidedAnonymizer(k=5))
    """
    for check in ANONYMIZER_CHECKS:
        check(anonymizer, X, y)


def check_released_groups_meet_k(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """Every group of what fit_transform returns has at least k records, and no record is lost."""
    X, y = _given_or_people(X, y)
    fitted = _clone(anonymizer)
    _assert_meets_k(fitted.fit_transform(X, y), fitted, len(rows_of(X)))


def check_releases_of_other_records_meet_k(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """Every group of a release has at least k records, also when other records are released than were fitted."""
    X, y = _given_or_people(X, y)
    fitted = _clone(anonymizer).fit(X, y)
    n_records = len(rows_of(X))
    half = np.arange(n_records) < n_records // 2
    for rows in (np.arange(n_records), np.flatnonzero(half), np.flatnonzero(~half)):
        release = fitted.release(_take(X, rows), _take(y, rows), shuffle=False)
        _assert_meets_k(release.table, fitted, len(rows) - release.n_suppressed)


def check_input_frame_is_untouched(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """Fitting, transforming and releasing leave the records they were handed as they were."""
    X, y = _given_or_people(X, y)
    before, y_before = rows_of(X), copy.deepcopy(y)
    fitted = _clone(anonymizer)
    fitted.fit_transform(X, y)
    fitted.transform(X)
    fitted.release(X, y, shuffle=False)
    assert rows_of(X) == before, f"{_name(anonymizer)} changed the records it was handed"
    assert np.array_equal(np.asarray(y), np.asarray(y_before)), f"{_name(anonymizer)} changed the predictions"


def check_row_order_does_not_matter(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """Shuffled records get the values they got before."""
    X, y = _given_or_people(X, y)
    order = np.random.default_rng(0).permutation(len(rows_of(X)))
    straight = rows_of(_clone(anonymizer).fit_transform(X, y))
    shuffled = rows_of(_clone(anonymizer).fit_transform(_take(X, order), _take(y, order)))
    assert shuffled == [straight[row] for row in order], f"{_name(anonymizer)} depends on the order of the records"


def check_fit_twice_equals_fit_once(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """A second fit, with other records in between, gives what the first gave."""
    X, y = _given_or_people(X, y)
    fitted = _clone(anonymizer)
    first = rows_of(fitted.fit_transform(X, y))
    most = np.arange(len(first) * 3 // 4)
    fitted.fit(_take(X, most), _take(y, most))
    assert rows_of(fitted.fit_transform(X, y)) == first, f"{_name(anonymizer)} remembers an earlier fit"


def check_transform_equals_fit_transform(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """The fitted records are rewritten by transform as they were by fit_transform."""
    X, y = _given_or_people(X, y)
    fitted = _clone(anonymizer)
    released = rows_of(fitted.fit_transform(X, y))
    assert rows_of(fitted.transform(X)) == released, f"{_name(anonymizer)} transforms fitted records differently"


def check_number_of_threads_does_not_matter(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """One thread gives what three give; passes for anonymizers without n_jobs."""
    if "n_jobs" not in anonymizer.get_params():
        return
    X, y = _given_or_people(X, y)
    alone, together = (_clone(anonymizer).set_params(n_jobs=n).fit_transform(X, y) for n in (1, 3))
    assert rows_of(alone) == rows_of(together), f"{_name(anonymizer)} depends on the number of threads"


def check_parameters_stay_as_given(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """Fitting changes no parameter, so that a clone of a fitted anonymizer is the anonymizer before fitting."""
    X, y = _given_or_people(X, y)
    fitted = _clone(anonymizer)
    before = {name: (value, copy.deepcopy(value)) for name, value in fitted.get_params(deep=False).items()}
    fitted.fit(X, y)
    after = fitted.get_params(deep=False)
    assert set(after) == set(before), f"{_name(anonymizer)} changes its list of parameters"
    for name, (given, as_it_was) in before.items():
        assert after[name] is given, f"{_name(anonymizer)} replaces its parameter {name}"
        assert repr(after[name]) == repr(as_it_was), f"{_name(anonymizer)} changes its parameter {name}"


def check_pickled_anonymizer_transforms_alike(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """An anonymizer that went through pickle rewrites records as before."""
    X, y = _given_or_people(X, y)
    fitted = _clone(anonymizer).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert rows_of(again.transform(X)) == rows_of(fitted.transform(X)), f"{_name(anonymizer)} changes in a pickle"


def check_k_beyond_the_table_is_refused(anonymizer: Any, X: Any = None, y: Any = None) -> None:
    """Check that a k above the number of records raises ValueError instead of smaller groups."""
    X, y = _given_or_people(X, y)
    n_records = len(rows_of(X))
    try:
        _clone(anonymizer).set_params(k=n_records + 1).fit_transform(X, y)
    except ValueError:
        return
    raise AssertionError(f"{_name(anonymizer)} accepted k={n_records + 1} for {n_records} records")


Check = Callable[..., None]

ANONYMIZER_CHECKS: tuple[Check, ...] = (
    check_released_groups_meet_k,
    check_releases_of_other_records_meet_k,
    check_input_frame_is_untouched,
    check_row_order_does_not_matter,
    check_fit_twice_equals_fit_once,
    check_transform_equals_fit_transform,
    check_number_of_threads_does_not_matter,
    check_parameters_stay_as_given,
    check_pickled_anonymizer_transforms_alike,
    check_k_beyond_the_table_is_refused,
)
"""All checks, for ``pytest.mark.parametrize``."""


def _clone(anonymizer: Any) -> Any:
    from sklearn.base import clone

    return clone(anonymizer)


def _name(anonymizer: Any) -> str:
    return type(anonymizer).__name__


def _given_or_people(X: Any, y: Any) -> tuple[Any, Any]:
    return people(_N_RECORDS) if X is None else (X, y)


def _take(values: Any, rows: Any) -> Any:
    """Return some records of a frame, a list or an array, in the kind they came in."""
    if values is None:
        return None
    if hasattr(values, "iloc"):  # pandas
        return values.iloc[rows]
    if hasattr(values, "take") and hasattr(values, "column_names"):  # pyarrow
        return values.take(rows)
    if isinstance(values, list):
        return [values[row] for row in rows]
    return values[rows]  # arrays and polars


def _assert_meets_k(released: Any, fitted: Any, n_records: int) -> None:
    sizes: Counter[Any] = group_sizes(released, _released_quasi_identifiers(released, fitted))
    n_released = sum(sizes.values())
    assert n_released == n_records, f"{_name(fitted)} released {n_released} records, expected {n_records}"
    smallest = min(sizes.values())
    assert smallest >= fitted.k, f"{_name(fitted)} released a group of {smallest} records with k={fitted.k}"


def _released_quasi_identifiers(released: Any, fitted: Any) -> list[Any]:
    """Find the rewritten columns in what left: their own names, or low and high for bounds."""
    names_out = [str(name) for name in fitted.get_feature_names_out()]
    quasi_identifiers = {str(name) for name in fitted.schema_.quasi_identifiers}
    ends = {f"{name}_{end}" for name in quasi_identifiers for end in ("low", "high")} - set(fitted.schema_.names)
    places = [place for place, name in enumerate(names_out) if name in quasi_identifiers | ends]
    if hasattr(released, "column_names"):
        return [released.column_names[place] for place in places]
    return [released.columns[place] for place in places] if hasattr(released, "columns") else places


def people(n_records: int = 120, *, seed: int = 0) -> tuple[Any, NDArray[np.float64]]:
    """Return a pyarrow table of synthetic people and class probabilities to guide by.

    Parameters
    ----------
    n_records : int, default=120
    seed : int, default=0

    Returns
    -------
    table : pyarrow.Table
        Integers, floats, text, booleans and dates; some missing, skewed, with repeated records and with values that
        only one record has.
    probabilities : ndarray of shape (n_records, 2)
    """
    import pyarrow as pa

    generator = np.random.default_rng(seed)
    age = generator.integers(17, 95, n_records)
    income = np.round(generator.lognormal(10, 1, n_records), 2)
    town = generator.choice(["Bree", "Lake Town", "Minas Tirith", "Hobbiton"], n_records, p=[0.5, 0.3, 0.15, 0.05])
    joined = [
        datetime.date(2000, 1, 1) + datetime.timedelta(days=int(d)) for d in generator.integers(0, 3000, n_records)
    ]
    score = 1 / (1 + np.exp(-(age - 50) / 10 - (town == "Bree")))
    copies = generator.integers(0, n_records, n_records // 5)
    age[: len(copies)], income[: len(copies)] = age[copies], income[copies]
    table = pa.table(
        {
            "age": pa.array(age, mask=generator.random(n_records) < 0.1),
            "income": pa.array(income, mask=generator.random(n_records) < 0.2),
            "town": pa.array(town.tolist(), mask=generator.random(n_records) < 0.1),
            "is_member": pa.array((generator.random(n_records) < 0.3).tolist()),
            "joined": pa.array(joined),
        }
    )
    return table, np.column_stack([1 - score, score])
