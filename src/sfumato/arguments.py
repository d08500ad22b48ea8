# SPDX-License-Identifier: Apache-2.0
"""What callers hand in beside a table, judged in one place: weights, labels, wrapped estimators, numbers of threads.

Anonymizers, minimizers, anatomy and the file backend call these.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, ParameterError, named

MOST_THREADS = 1_024
"""More are refused: starting them takes longer than the work, and beyond what the system allows it never ends."""


def as_table_like(X: Any) -> Any:
    """Return lists of records as arrays, numbers beside text still numbers; frames and arrays as they are.

    Raises
    ------
    InputError
        When records have different numbers of values.
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
    """Return one weight per record, or None where none were given; refuse what is no weight."""
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
    """Raise unless an estimator that trains another, its `estimator`, can do so with a target."""
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
    """Return the condition under which an estimator offers a method: that the one it trains has it."""

    def check(wrapper: Any) -> bool:
        getattr(wrapper.estimator_ if hasattr(wrapper, "estimator_") else wrapper.estimator, name)
        return True

    return check


def distinct_labels(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the labels that occur, sorted, and the place of each record's among them."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        raise InputError(
            "labels of several types, which have no order: expected labels of one type. Convert them all to text."
        ) from None


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads ``n_jobs`` asks for, as joblib counts them; their number never changes a result.

    None is one, or what ``joblib.parallel_config`` says around the call; -1 is all cores, -2 all but one.
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
    """Say whether a value is a whole number; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Say whether a value is a number; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def as_list(names: Any) -> list[Any]:
    """Return what a parameter names as a list: nothing, one name or position, or several.

    Examples
    --------
    >>> as_list(None), as_list("age"), as_list(("age", 2))
    ([], ['age'], ['age', 2])
    """
    if names is None:
        return []
    return [names] if isinstance(names, str | int | np.integer) else list(names)
