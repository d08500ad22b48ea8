# SPDX-License-Identifier: Apache-2.0
"""Form groups in which no sensitive value is above 1/l of the group.

Arrays in, arrays out: ``codes`` has one row per record and one column per sensitive column of one table, each a number
from 0. ``table_division`` calls :func:`assign_groups` for every sensitive table, after ``suppression`` chose the
records. Xiao and Tao's rule takes one record from each of the l largest buckets; the random rule takes any l buckets
that leave enough for all later groups. Neither looks at an identifying column.

If a table has several sensitive columns, groups that are diverse in one of them are made diverse in all by
``joint_groups``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.anatomize.joint_groups import join_unsafe, separate_equal
from sfumato.anatomize.kernels import draw_at_random, draw_from_largest, hand_out

Assignment = Literal["largest", "random"]
Codes = NDArray[np.int32]


def assign_groups(
    codes: Codes,
    ls: Sequence[int],
    random: np.random.Generator,
    assignment: Assignment = "largest",
    *,
    window: int | None = None,
) -> NDArray[np.int64]:
    """Return the group of every record; groups are numbered from 0 in no telling order.

    Parameters
    ----------
    codes : ndarray of int32, shape (records, sensitive columns)
        No value may have more than 1/l of the records of its column.
    ls : sequence of int
        The l of each column.
    random : numpy.random.Generator
    assignment : {"largest", "random"}
    window : int, optional
        Groups take records that follow each other: each the next of its value, or one of so many next ones. They are
        numbered in the order of the records then. None: any record of a value.

    Notes
    -----
    One sensitive column: floor(n / l) groups of l records with distinct values, and the fewer than l records that
    are left join groups that do not have their value. Several: the groups of the most uneven column of those with the
    largest l; records whose values clash in another column are exchanged with records of other groups, and groups
    that no exchange helps are joined with others, since groups that are l-diverse stay so together.
    """
    peaks = [int(np.bincount(column).max()) if l == max(ls) else 0 for column, l in zip(codes.T, ls, strict=True)]  # noqa: E741
    first = int(np.argmax(peaks))
    group = _by_one_column(np.ascontiguousarray(codes[:, first]), ls[first], random, assignment, window)
    if codes.shape[1] > 1:
        codes = np.ascontiguousarray(codes)
        limits = np.array(ls, np.int64)
        separate_equal(codes, group, limits, random)
        group = join_unsafe(codes, group, limits, random)
        if window is None:
            group = random.permutation(int(group.max()) + 1)[group]
    return group


def _by_one_column(
    values: NDArray[np.int32],
    l: int,  # noqa: E741
    random: np.random.Generator,
    assignment: Assignment,
    window: int | None,
) -> NDArray[np.int64]:
    """Divide records by one column alone."""
    counts = np.bincount(values)
    n_groups = len(values) // l
    order = random.permutation(len(counts))  # ties between buckets are not broken by the order of the values
    if assignment == "largest":
        order = order[np.argsort(-counts[order], kind="stable")]
        drawn = draw_from_largest(counts[order], l, n_groups)
    else:
        drawn = draw_at_random(counts[order], l, n_groups, random.random(n_groups * l))
    bucket = np.empty(len(order), np.int32)
    bucket[order] = np.arange(len(order))
    of_record = bucket[values]
    # The number of a group says nothing about when it was made, unless that is asked for.
    names = random.permutation(n_groups) if window is None else np.arange(n_groups)
    uniform = random.random(len(drawn))
    group = hand_out(of_record, uniform, counts[order], drawn, names, len(values) if window is None else window)
    return _place_the_rest(group, of_record, n_groups, random)


def _place_the_rest(
    group: NDArray[np.int64], bucket: NDArray[np.int32], n_groups: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Assign the remaining records, fewer than l, to random groups without their value.

    A value in c records is in at most c - 1 groups as long as one of them is left, and c is at most the number of
    groups, so that a group without the value always exists.
    """
    for record in np.flatnonzero(group < 0):
        has_value = np.zeros(n_groups, np.bool_)
        same = group[bucket == bucket[record]]
        has_value[same[same >= 0]] = True
        group[record] = random.choice(np.flatnonzero(~has_value))
    return group
