# SPDX-License-Identifier: Apache-2.0
"""Put records into groups in which no sensitive value is above 1/l of the group.

Arrays in, arrays out: ``codes`` has one row per record and one column per sensitive column, each a number from 0.
The anatomizer calls :func:`plan_suppression` before any work and :func:`assign_groups` for the groups. Xiao and Tao's
rule takes one record from each of the l largest buckets; the random rule takes any l buckets that leave enough for
all later groups. Neither looks at an identifying column.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.anatomize.kernels import draw_at_random, draw_from_largest
from sfumato.anatomize.repair import merge_unsafe, separate_equal

Assignment = Literal["largest", "random"]
Codes = NDArray[np.int32]


def largest_l(codes: Codes) -> int:
    """Return the largest l for which groups can be made of all records; 1: a value has more than half of them.

    >>> largest_l(np.array([[0], [0], [1], [2], [3]], np.int32))
    2
    """
    most = max(int(np.bincount(column).max()) for column in codes.T)
    return len(codes) // most


def plan_suppression(codes: Codes, l: int, random: np.random.Generator) -> NDArray[np.int64]:  # noqa: E741
    """Choose the records that must stay out so that the rest can be divided into l-diverse groups.

    With one sensitive column no choice leaves out fewer. A value that is too frequent loses records at random until
    no value has more than 1/l of what is left. Returns the positions of the records that stay, all of them if
    possible and none if no table of these values is l-diverse.
    """
    rows = np.arange(len(codes))
    while len(rows):
        limit = len(rows) // l
        stays = np.ones(len(rows), np.bool_)
        for column in codes.T:
            values = column[rows]
            counts = np.bincount(values[stays])
            for value in np.flatnonzero(counts > limit):
                holders = np.flatnonzero(stays & (values == value))
                stays[random.permutation(holders)[limit:]] = False
        if stays.all():
            return rows
        rows = rows[stays]
    return rows


def assign_groups(
    codes: Codes,
    l: int,  # noqa: E741
    random: np.random.Generator,
    assignment: Assignment = "largest",
) -> NDArray[np.int64]:
    """Return the group of every record; groups are numbered from 0 in no telling order.

    Parameters
    ----------
    codes : ndarray of int32, shape (records, sensitive columns)
        No value may have more than 1/l of the records of its column; see :func:`plan_suppression`.
    l : int
    random : numpy.random.Generator
    assignment : {"largest", "random"}

    Notes
    -----
    One sensitive column: floor(n / l) groups of l records with different values, and the fewer than l records that
    are left join groups that do not have their value. Several: the groups of the most uneven column; records whose
    values clash in another column are exchanged with records of other groups, and groups that no exchange helps are
    joined with others, since groups that are l-diverse stay so together.
    """
    n_records, n_columns = codes.shape
    peaks = [int(np.bincount(column).max()) for column in codes.T]
    first = int(np.argmax(peaks))
    group = _by_one_column(np.ascontiguousarray(codes[:, first]), l, random, assignment)
    if n_columns > 1:
        separate_equal(np.ascontiguousarray(codes), group, random)
        group = merge_unsafe(codes, group, l, random)
    n_groups = int(group.max()) + 1
    names: NDArray[np.int64] = random.permutation(n_groups)[group]  # the number says nothing about when it was made
    assert len(names) == n_records
    return names


def _by_one_column(
    values: NDArray[np.int32],
    l: int,  # noqa: E741
    random: np.random.Generator,
    assignment: Assignment,
) -> NDArray[np.int64]:
    """Divide records by one column alone."""
    counts = np.bincount(values)
    n_groups = len(values) // l
    names = random.permutation(len(counts))  # ties between buckets are not broken by the order of the values
    if assignment == "largest":
        order = names[np.argsort(-counts[names], kind="stable")]
        drawn = draw_from_largest(counts[order], l, n_groups)
    else:
        order = names
        drawn = draw_at_random(counts[order], l, n_groups, random.random(n_groups * l))
    bucket = np.empty_like(order)
    bucket[order] = np.arange(len(order))
    return _hand_out(bucket[values], counts[order], drawn, n_groups, random)


def _hand_out(
    bucket: NDArray[np.int64],
    counts: NDArray[np.int64],
    drawn: NDArray[np.int64],
    n_groups: int,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """Give every drawing of a bucket one of its records, at random, and place the records nobody drew.

    A value in c records is in at most c - 1 groups as long as one of them is left, and c is at most the number of
    groups, so that a group without the value always exists.
    """
    shuffled = random.permutation(len(bucket))
    by_bucket = shuffled[np.argsort(bucket[shuffled].astype(_narrow(len(counts))), kind="stable")]
    starts = np.concatenate(([0], np.cumsum(counts)))
    # The drawings in the order of their buckets; within a bucket in the order of the groups.
    of_bucket = np.argsort(drawn.astype(_narrow(len(counts))), kind="stable")
    n_drawn = np.bincount(drawn, minlength=len(counts))
    group_of_drawing = of_bucket // (len(drawn) // n_groups)
    offset = np.arange(len(drawn)) - np.repeat(np.concatenate(([0], np.cumsum(n_drawn)[:-1])), n_drawn)
    taken = by_bucket[np.repeat(starts[:-1], n_drawn) + offset]
    group = np.full(len(bucket), -1, np.int64)
    group[taken] = group_of_drawing
    for record in np.flatnonzero(group < 0):
        has_value = np.zeros(n_groups, np.bool_)
        same = group[bucket == bucket[record]]
        has_value[same[same >= 0]] = True
        group[record] = random.choice(np.flatnonzero(~has_value))
    return group


def _narrow(n_values: int) -> type[np.integer]:
    """Return a small type, for which numpy's stable sort counts digits instead of comparing."""
    return np.uint8 if n_values <= 1 << 8 else np.uint16 if n_values <= 1 << 16 else np.int64
