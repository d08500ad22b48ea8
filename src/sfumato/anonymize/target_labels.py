# SPDX-License-Identifier: Apache-2.0
"""Labels as positions in a list that was chosen before the records were seen; called by ``private_release``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.fit_inputs import read_target
from sfumato.errors import InputError, ParameterError, named


def code_labels(
    y: Any, labels: Sequence[Any] | None, n_records: int, *, needs_list: bool = True
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the list of labels, and the position in it of every record's label.

    Parameters
    ----------
    y : array-like or None
        None: one label for all.
    labels : sequence or None
        The labels that can occur.
    n_records : int
    needs_list : bool, default=True
        Whether `labels` must be given. Otherwise those that occur are the list.

    Raises
    ------
    ParameterError
        If the list is absent where it is needed, or has a label twice.
    InputError
        If a record has no label, or one that is not in the list.
    """
    if y is None:
        if labels is not None:
            raise ParameterError(
                f"{named('labels')} without y: expected the label of each record. Pass y, or leave labels out."
            )
        return np.zeros(1, np.int64), np.zeros(n_records, np.int64)
    column = read_target(y, n_records)
    if column.missing is not None:
        raise InputError("y has missing labels: expected a label for every record. Drop those records.")
    found, code = _distinct(column.values) if column.categories is None else (column.categories, column.values)
    if labels is None:
        if needs_list:
            raise ParameterError(
                f"y without {named('labels')}: expected the list of all labels, which every cell gets a noisy count "
                "of. Looked up in the records, it would tell which labels occur. Pass labels=[...]."
            )
        return np.asarray(found.tolist()), code.astype(np.int64)
    listed = list(labels.tolist() if hasattr(labels, "tolist") else labels)
    place = {label: position for position, label in enumerate(listed)}
    if len(place) < len(listed) or not listed:
        raise ParameterError(
            f"{named('labels')} has {len(listed)} entries, of which {len(place)} are different: expected each label "
            "once, and at least one. Correct the list."
        )
    places = [place.get(value, -1) for value in found.tolist()]
    if -1 in places:
        raise InputError(
            f"y has labels that are not among the {len(listed)} of labels: expected no others. Add them to the list, "
            "or drop those records."
        )
    return np.asarray(listed), np.array(places, np.int64)[code]


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    return np.unique(values, return_inverse=True)
