# SPDX-License-Identifier: Apache-2.0
"""Which columns of a sliced table stay together: as given, or those that depend on each other most.

Dependence is Cramér's mean-square contingency: 0 for independent columns, 1 if one determines the other. Numbers are
binned for it. Called by the slicer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.memory import MemorySource
from sfumato.errors import ParameterError, named
from sfumato.frames import Table

_MAX_BINS = 16
_MOST_VALUES = 200  # of a category; rarer ones count as one


def contingency(first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]]) -> float:
    """Return the mean-square contingency of two columns of codes, from 0 to 1.

    Examples
    --------
    >>> contingency(np.array([0, 0, 1, 1]), np.array([5, 5, 7, 7]))
    1.0
    >>> contingency(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    0.0
    """
    one, two = (np.unique(codes, return_inverse=True)[1] for codes in (first, second))
    shape = int(one.max()) + 1, int(two.max()) + 1
    if min(shape) < 2:
        return 0.0
    shares = np.bincount(one * shape[1] + two, minlength=shape[0] * shape[1]).reshape(shape) / len(one)
    expected = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    return float(((shares - expected) ** 2 / expected).sum() / (min(shape) - 1))


def group_columns(table: Table, names: Sequence[str], most: int) -> list[list[str]]:
    """Return the columns in groups of at most `most`, those that depend on each other most together.

    Starts with every column alone. The two groups with the highest mean contingency of their columns are joined, as
    long as there are two that fit together.
    """
    source = MemorySource(table, names, max_bins=_MAX_BINS)
    codes = [_frequent(own.codes) for own in source.columns]
    strength = np.zeros((len(names), len(names)))
    for i, j in combinations(range(len(names)), 2):
        strength[i, j] = strength[j, i] = contingency(codes[i], codes[j])
    groups = [[place] for place in range(len(names))]
    while True:
        pairs = [(one, two) for one, two in combinations(groups, 2) if len(one) + len(two) <= most]
        if not pairs:
            break
        one, two = max(pairs, key=lambda pair: float(strength[np.ix_(*pair)].mean()))
        groups = [own for own in groups if own is not one and own is not two] + [sorted([*one, *two])]
    return [[names[place] for place in own] for own in sorted(groups)]


def _frequent(codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    counts = np.bincount(codes)
    ranks = np.empty(len(counts), np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    found: NDArray[np.int64] = np.minimum(ranks, _MOST_VALUES)[codes]
    return found


def settle_column_groups(given: Any, table: Table, released: Sequence[str]) -> list[list[str]]:
    """Return column groups by name; raise ParameterError unless every released column is in one of them."""
    is_listed = isinstance(given, Sequence) and not isinstance(given, (str, Mapping))
    if not is_listed or any(isinstance(own, str) or not isinstance(own, Sequence) for own in given):
        raise ParameterError(
            f"{named('column_groups')} is of the type {type(given).__name__}: expected a list of lists of columns."
        )
    groups = [list(table.resolve(own, "column_groups")) for own in given]
    listed = [name for own in groups for name in own]
    if len(set(listed)) < len(listed):
        raise ParameterError(f"{named('column_groups')} names a column twice: expected each in one group.")
    missing = [name for name in released if name not in listed]
    strange = [name for name in listed if name not in released]
    if missing or strange:
        name, what = (missing[0], "does not name") if missing else (strange[0], "names the dropped column")
        raise ParameterError(
            f"{named('column_groups')} {what} {name!r}: expected all columns but identifiers, each in one group."
        )
    return [own for own in groups if own]
