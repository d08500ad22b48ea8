# SPDX-License-Identifier: Apache-2.0
"""What anonymizing from files and from a Spark DataFrame share: what is supported, hidden guides, the fitted object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from sfumato.anonymize.base import TreeAnonymizer
from sfumato.anonymize.mondrian import MondrianAnonymizer
from sfumato.errors import ParameterError
from sfumato.parquet.groups import DescribedGroups, joined_loss, joined_sizes
from sfumato.partition.guides import Guide
from sfumato.schema import Schema


def guide_shape(guide: Guide, n_dense: int) -> Guide:
    """Return the rule and weights of a guide with no channels of its own."""
    return replace(guide, dense=np.zeros((0, n_dense), np.int64) if n_dense else None, classes=None)


def as_list(names: Any) -> list[Any]:
    """Return what a parameter names as a list."""
    return [] if names is None else [names] if isinstance(names, str | int) else list(names)


def check_supported(anonymizer: Any, source: str) -> None:
    """Refuse what cannot be done by counting alone; `source` says where the records are."""
    if isinstance(anonymizer, MondrianAnonymizer) and (anonymizer.rule != "median" or not anonymizer.strict):
        raise ParameterError(
            f"MondrianAnonymizer(rule={anonymizer.rule!r}, strict={anonymizer.strict!r}) with {source}: expected "
            "the strict median rule, which needs counts only. Use that, or a table in memory."
        )
    if not isinstance(anonymizer, TreeAnonymizer) or not anonymizer._grows_from_counts():
        raise ParameterError(
            f"{type(anonymizer).__name__} with {source}: expected a method that grows a tree from counts: "
            "ModelGuidedAnonymizer, MondrianAnonymizer or WorkloadAwareAnonymizer. Use one of them, or a table in "
            "memory."
        )
    if anonymizer.suppression_limit:
        raise ParameterError(
            f"suppression_limit={anonymizer.suppression_limit!r} with {source}, of which all records are kept: "
            "expected 0. Use release on a table in memory, which may leave records out."
        )
    if getattr(anonymizer, "hierarchies", None):
        raise ParameterError(f"hierarchies= with {source}: expected none. Use a table in memory.")
    if getattr(anonymizer, "guide_estimator", None) is not None:
        raise ParameterError(f"guide_estimator= with {source}: expected ready predictions. Pass guide_column=.")
    for criterion in anonymizer._all_criteria():
        if criterion.counting == "presence":
            raise ParameterError(
                f"{type(criterion).__name__} with {source}: expected a criterion on the records alone. Use "
                "release on a table in memory."
            )


def with_hidden_guides(anonymizer: TreeAnonymizer, guides: Sequence[str]) -> TreeAnonymizer:
    """Return a copy that lets no guide leave, unless it is kept: predictions tell records apart like names do."""
    hidden = [name for name in guides if name not in as_list(anonymizer.keep)]
    copy: TreeAnonymizer = anonymizer.__class__(**anonymizer.get_params(deep=False))
    copy.set_params(identifiers=[*as_list(anonymizer.identifiers), *hidden] or None)
    return copy


def hand_over(
    own: TreeAnonymizer, fitted: TreeAnonymizer, head: Any, schema: Schema, parts: Sequence[DescribedGroups]
) -> None:
    """Leave the caller's anonymizer as fitting in memory would."""
    validate_data(own, head, skip_check_array=True)
    own.partition_ = fitted.partition_
    own.schema_ = schema
    own.hierarchies_ = {}
    own.group_sizes_ = joined_sizes(parts)
    own.n_groups_ = len(own.group_sizes_)
    own.information_loss_ = joined_loss(parts)
