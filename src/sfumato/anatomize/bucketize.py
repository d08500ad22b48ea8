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

from sfumato.anatomize.kernels import draw_at_random, draw_from_largest, hand_out
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
    peaks = [int(np.bincount(column).max()) for column in codes.T]
    first = int(np.argmax(peaks))
    group = _by_one_column(np.ascontiguousarray(codes[:, first]), l, random, assignment)
    if codes.shape[1] > 1:
        separate_equal(np.ascontiguousarray(codes), group, random)
        group = merge_unsafe(codes, group, l, random)
        group = random.permutation(int(group.max()) + 1)[group]
    return group


def _by_one_column(
    values: NDArray[np.int32],
    l: int,  # noqa: E741
    random: np.random.Generator,
    assignment: Assignment,
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
    names = random.permutation(n_groups)  # the number of a group says nothing about when it was made
    group = hand_out(of_record, random.random(len(drawn)), counts[order], drawn, names)
    return _place_the_rest(group, of_record, n_groups, random)


def _place_the_rest(
    group: NDArray[np.int64], bucket: NDArray[np.int32], n_groups: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Put the records that nobody drew, fewer than l, into groups without their value, at random.

    A value in c records is in at most c - 1 groups as long as one of them is left, and c is at most the number of
    groups, so that a group without the value always exists.
    """
    for record in np.flatnonzero(group < 0):
        has_value = np.zeros(n_groups, np.bool_)
        same = group[bucket == bucket[record]]
        has_value[same[same >= 0]] = True
        group[record] = random.choice(np.flatnonzero(~has_value))
    return group
