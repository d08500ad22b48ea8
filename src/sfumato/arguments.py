# SPDX-License-Identifier: Apache-2.0
"""Check the arguments that callers pass beside a table: numbers, choices, weights, labels, estimators, threads.

Anonymizers, minimizers, anatomy and the backends call these.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, ParameterError, named

Names = str | int | Iterable[str | int]
"""Columns of a table: a name, a position, or several of them."""
Seed = int | np.random.RandomState | None
"""What scikit-learn takes as ``random_state``."""

MOST_THREADS = 1_024
"""Upper limit of `n_jobs`: starting more threads takes longer than the work, and may never end."""


def as_table_like(X: Any) -> Any:
    """Return lists of records as arrays, in which numbers beside text stay numbers; return other tables unchanged.

    Raises
    ------
    InputError
        If records have different numbers of values.
    """
    if not isinstance(X, list | tuple):
        return X
    try:
        array = np.asarray(X)
    except ValueError:
        raise InputError(
            "the rows of the input have different lengths: expected a table. Give every row the same number of values."
        ) from None
    # numpy would turn numbers beside text into text
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def checked_weight(weight: Any, n_records: int) -> NDArray[np.float64] | None:
    """Return one weight per record, or None if none were given; raise InputError for other values."""
    if weight is None:
        return None
    try:
        array = np.asarray(weight, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "sample_weight has something else than numbers: expected one weight of at least 0 per record. Convert it."
        ) from None
    if array.ndim == 0:
        array = np.full(n_records, float(array))
    if array.shape != (n_records,):
        raise InputError(
            f"sample_weight of shape {array.shape} for {n_records} records: expected one weight per record."
        )
    if not np.isfinite(array).all() or array.min() < 0:
        raise InputError(
            "sample_weight has NaN, infinite or negative weights: expected weights of at least 0. Replace them."
        )
    if array.max() == 0:
        raise InputError(
            "sample_weight is zero for all records: expected a weight above 0 for at least one. Leave the weights out."
        )
    return array


def check_wrapped(wrapper: Any, y: Any, *, such_as: str) -> None:
    """Raise unless the `estimator` of a wrapper is an unfitted model and a target was passed."""
    if isinstance(wrapper.estimator, type) or not hasattr(wrapper.estimator, "fit"):
        raise ParameterError(
            f"estimator is {wrapper.estimator!r}: expected a model with fit and predict. Pass an instance, such as "
            f"{such_as}."
        )
    if y is None:
        raise InputError(
            f"{type(wrapper).__name__} requires y to be passed, but the target y is None. Pass the labels."
        )


def wrapped_has(name: str) -> Callable[[Any], bool]:
    """Return a condition for ``available_if``: the wrapped estimator has the method."""

    def check(wrapper: Any) -> bool:
        getattr(wrapper.estimator_ if hasattr(wrapper, "estimator_") else wrapper.estimator, name)
        return True

    return check


def distinct_labels(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted distinct labels, and the index of each record's label among them."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        raise _no_order() from None


def sorted_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels, sorted: faster than `distinct_labels`, which looks up every record."""
    if labels.dtype.kind in "ib" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low < len(labels):  # marking those that occur is several times as fast as sorting
            occurs = np.zeros(high - low + 1, np.bool_)
            occurs[np.subtract(labels, low, dtype=np.int64)] = True
            return (np.flatnonzero(occurs) + low).astype(labels.dtype)
    try:
        return np.unique(labels)
    except TypeError:
        raise _no_order() from None


def _no_order() -> InputError:
    return InputError(
        "labels of several types, which have no order: expected labels of one type. Convert them all to text."
    )


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``, as joblib counts them; it never changes a result.

    None is one, or the number set by ``joblib.parallel_config``; -1 is all cores, -2 all but one.
    """
    if n_jobs is None:
        from joblib import effective_n_jobs

        return int(effective_n_jobs(None))
    if not is_integer(n_jobs) or n_jobs == 0 or n_jobs > MOST_THREADS:
        raise ParameterError(
            f"{named('n_jobs', n_jobs)}: expected an integer from 1 to {MOST_THREADS:,}, or -1 for all cores. Leave it "
            "out for one thread."
        )
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


def is_integer(value: object) -> bool:
    """Return True if `value` is an integer, excluding bools."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return True if `value` is a real number, excluding bools."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_integer(name: str, value: Any, least: int, most: int | None = None, *, hint: str = "") -> None:
    """Raise ParameterError unless a parameter is an integer of at least `least`, and at most `most` if given.

    `hint` says what a good value is.

    Examples
    --------
    >>> check_integer("n_buckets", 0, 1, hint="4 is usual.")
    Traceback (most recent call last):
    sfumato.errors.ParameterError: n_buckets=0: expected an integer of at least 1. 4 is usual.
    """
    if not is_integer(value) or value < least or (most is not None and value > most):
        expected = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ParameterError(f"{named(name, value)}: expected an integer {expected}. {hint}".rstrip())


def check_share(name: str, value: Any, *, is_open: bool = False, hint: str = "") -> None:
    """Raise ParameterError unless a parameter is a share from 0 to 1, or between them if `is_open`.

    Examples
    --------
    >>> check_share("max_loss", 5, hint="0.05 is one record in twenty.")
    Traceback (most recent call last):
    sfumato.errors.ParameterError: max_loss=5: expected a share from 0 to 1. 0.05 is one record in twenty.
    """
    if not is_number(value) or not 0 <= value <= 1 or (is_open and value in (0, 1)):
        expected = "between 0 and 1" if is_open else "from 0 to 1"
        raise ParameterError(f"{named(name, value)}: expected a share {expected}. {hint}".rstrip())


def check_choice(name: str, value: Any, choices: Collection[Any], *, hint: str = "") -> None:
    """Raise ParameterError unless a parameter is one of some values.

    Examples
    --------
    >>> check_choice("output", "text", ("codes", "labels"))
    Traceback (most recent call last):
    sfumato.errors.ParameterError: output='text': expected 'codes' or 'labels'.
    """
    if value not in tuple(choices):
        *others, last = map(repr, choices)
        listed = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(f"{named(name, value)}: expected {listed}. {hint}".rstrip())


def as_list(names: Any) -> list[Any]:
    """Return the names or positions of a parameter as a list, for None, one of them, or several.

    Examples
    --------
    >>> as_list(None), as_list("age"), as_list(("age", 2))
    ([], ['age'], ['age', 2])
    """
    if names is None:
        return []
    return [names] if isinstance(names, str | int | np.integer) else list(names)
