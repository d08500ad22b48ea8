# SPDX-License-Identifier: Apache-2.0
"""The phantom: a typical combination of values that no record has, or that many have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.partition.phantom_proposals import propose
from sfumato.partition.phantom_search import Proposals, choose, count_hashes
from sfumato.partition.records import make_layout
from sfumato.partition.surroundings import only_members
from sfumato.representatives.representative import (
    GroupValues,
    NamedRepresentative,
    RepresentativeFacts,
    Scene,
    shown_of,
    values_of_codes,
)


def phantoms(
    columns: Sequence[CodedColumn],
    proposals: Proposals,
    count: Callable[[NDArray[np.uint64]], NDArray[np.int64]],
) -> dict[str, list[GroupValues]]:
    """Return for each group a combination of values that no record has, or that many have.

    Parameters
    ----------
    columns : sequence of CodedColumn
    proposals : Proposals
    count : callable
        Takes rising hashes and returns how many records of the whole table have each combination.
    """
    layout = make_layout([column.bins for column in columns])
    shared = columns[0].bins.shared
    assert shared is not None
    return values_of_codes(columns, choose(proposals, layout, shown_of(columns, layout), shared.floor, count))


def _phantom(scene: Scene) -> dict[str, list[GroupValues]]:
    codes, layout, shown = scene.codes, scene.layout, scene.shown
    around = scene.around or only_members(scene.groups.n_groups, layout)
    proposals = propose(codes, scene.groups, layout, around, shown, n_threads=scene.n_threads)
    return phantoms(scene.columns, proposals, lambda wanted: count_hashes(codes, layout, shown.words, wanted))


PHANTOM = NamedRepresentative(
    RepresentativeFacts(
        "phantom",
        "typical values of the people around the group that, together, nobody in the table has, or at least k have",
        tells_hidden_values=True,
    ),
    _phantom,
    looks_around=True,
)
