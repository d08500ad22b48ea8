# SPDX-License-Identifier: Apache-2.0
"""Hierarchies of columns as arrays: the labels above every code, and how much of the column each stands for.

The codes of a column with a hierarchy are in the order of its tree, so that the codes below any label are a run and
the lowest common ancestor of some codes is that of the first and the last. ``splitting`` and ``set_aside`` cut such a
column between the children of the label that a node's records have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.records import Layout


class Taxonomy(NamedTuple):
    """The labels above the codes of all columns that have a hierarchy. Arrays, as kernels need them."""

    n_levels: NDArray[np.int64]  # (columns,) 0 where a column has no hierarchy; empty when none has
    label: NDArray[np.int32]  # (histogram rows, most levels) number of a code's label at each level
    width: NDArray[np.float64]  # (histogram rows, most levels) share of the column that the label stands for


NO_TAXONOMY = Taxonomy(np.zeros(0, np.int64), np.zeros((0, 1), np.int32), np.zeros((0, 1)))
"""No column has a hierarchy."""


def make_taxonomy(layout: Layout, paths: Sequence[tuple[NDArray[np.int32], NDArray[np.float64]] | None]) -> Taxonomy:
    """Lay the labels and widths of all columns end to end.

    Parameters
    ----------
    layout : Layout
    paths : sequence of (labels, widths) or None
        For each column the labels of its codes and their widths, both of shape (codes, levels), codes in the order of
        the tree and the last level one label; None without a hierarchy.
    """
    if all(own is None for own in paths):
        return NO_TAXONOMY
    n_levels = np.array([0 if own is None else own[0].shape[1] for own in paths], np.int64)
    shape = (int(layout.offsets[-1]), int(n_levels.max()))
    label, width = np.zeros(shape, np.int32), np.zeros(shape)
    for column, own in enumerate(paths):
        if own is not None:
            rows = slice(layout.offsets[column], layout.offsets[column + 1])
            label[rows, : n_levels[column]], width[rows, : n_levels[column]] = own
    return Taxonomy(n_levels, label, width)


@njit(nogil=True, cache=True)
def has_hierarchy(taxonomy, column):  # type: ignore[no-untyped-def]
    """True for a column with a hierarchy."""
    return taxonomy.n_levels.shape[0] > 0 and taxonomy.n_levels[column] > 0


@njit(nogil=True, cache=True)
def common_level(taxonomy, first_row, last_row):  # type: ignore[no-untyped-def]
    """Lowest level at which two codes, given by their histogram rows, have one label."""
    level = 0
    while taxonomy.label[first_row, level] != taxonomy.label[last_row, level]:
        level += 1
    return level


@njit(nogil=True, cache=True)
def common_width(taxonomy, first_row, last_row):  # type: ignore[no-untyped-def]
    """Share of the column that the lowest common ancestor of two codes stands for."""
    return taxonomy.width[first_row, common_level(taxonomy, first_row, last_row)]
