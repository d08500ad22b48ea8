# SPDX-License-Identifier: Apache-2.0
"""Real members: every record of a group gets the values of one record of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ParameterError, named
from sfumato.partition.group_summaries import (
    Groups,
    Summary,
    distance_from_mean,
    nearest_members,
    nearest_share,
    rank_members,
)
from sfumato.partition.guides import Guide
from sfumato.partition.records import Layout
from sfumato.representatives.representative import (
    GroupValues,
    NamedRepresentative,
    RepresentativeFacts,
    Scene,
    values_of_codes,
)

NEAREST_PREDICTIONS = 0.1
"""Share of a group's members, those with predictions nearest the group's mean, of which ``"model"`` takes the most
typical. The single nearest one may be odd in everything else, which costs accuracy in large groups."""


def _member(kind: str, scene: Scene) -> dict[str, list[GroupValues]]:
    members = _members(
        kind, scene.codes, scene.groups, scene.layout, scene.summary, scene.guide, scene.random_state, scene.n_threads
    )
    chosen = scene.codes[members][:, : len(scene.columns)].astype(np.int32)
    may_show = scene.shown.may_show[scene.layout.offsets[:-1] + chosen]
    return values_of_codes(scene.columns, np.where(may_show, chosen, scene.middle))


def _members(
    kind: str,
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    summary: Summary,
    guide: Guide | None,
    random_state: np.random.Generator | None,
    n_threads: int,
) -> NDArray[np.int64]:
    """Choose one record per group."""
    if kind == "sample":
        if random_state is None:
            raise ParameterError(
                f"{named('representative', 'sample')} without a seed: expected one. Pass {named('random_state')}."
            )
        return rank_members(codes, groups, layout.n_columns, random_state.random(groups.n_groups))
    if guide is not None and not looks_at_classes(kind, guide):
        distance = distance_from_mean(groups, _channels_of(guide), guide.channel_weights, n_threads=n_threads)
        nearest_share(groups, distance, NEAREST_PREDICTIONS, n_threads=n_threads)
    else:
        distance = _distance_from_majority(guide, groups)
    return nearest_members(codes, groups, layout, summary.middle, distance, n_threads=n_threads)


def looks_at_classes(kind: str, guide: Guide) -> bool:
    """Return True if a representative uses the predicted classes."""
    return kind == "member" or (kind == "model" and not len(guide.channel_weights))


def _distance_from_majority(guide: Guide | None, groups: Groups) -> NDArray[np.float64]:
    """0 for records of their group's most frequent class (the lowest on ties), infinity for the others."""
    distance = np.zeros(len(groups.group))
    if guide is None or guide.classes is None:
        return distance
    n_classes = int(guide.classes.max()) + 1
    kept = groups.group >= 0
    counts = np.zeros((groups.n_groups, n_classes), np.int64)
    np.add.at(counts, (groups.group[kept], guide.classes[kept]), 1)
    majority = counts.argmax(axis=1)
    distance[kept] = np.where(guide.classes[kept] == majority[groups.group[kept]], 0.0, np.inf)
    return distance


def _channels_of(guide: Guide) -> NDArray[np.int64]:
    """Return all channels of the records side by side, coded blocks as the ones and zeros they stand for."""
    parts = [] if guide.dense is None else [guide.dense]
    for codes, n_classes in zip(guide.code_blocks, guide.cardinalities, strict=True):
        parts.append(np.eye(n_classes, dtype=np.int64)[codes])
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


MODEL = NamedRepresentative(
    RepresentativeFacts(
        "model",
        "the values of the most typical of the members whose predictions are nearest the group's mean",
        is_real_person=True,
        looks_at_predictions=True,
    ),
    partial(_member, "model"),
)
MEMBER = NamedRepresentative(
    RepresentativeFacts(
        "member",
        "the values of the most typical member among those of the most frequent class",
        is_real_person=True,
        looks_at_predictions=True,
    ),
    partial(_member, "member"),
)
SAMPLE = NamedRepresentative(
    RepresentativeFacts("sample", "the values of a member drawn at random", is_real_person=True, needs_seed=True),
    partial(_member, "sample"),
)
