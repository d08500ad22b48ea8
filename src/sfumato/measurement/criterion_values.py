# SPDX-License-Identifier: Apache-2.0
"""The bound that the groups reach in every criterion, per sensitive column. Called by ``measuring``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.group_rows import LARGEST_WORK
from sfumato.backends.measurable_table import GroupCounts, SensitiveCounts
from sfumato.criteria import CRITERIA, KnowsValues
from sfumato.criteria.base import Measured
from sfumato.measurement.measurement import CriterionValue


@dataclass(frozen=True)
class _Asked:
    """One number to evaluate, and the criterion that it belongs to."""

    kind: Callable[..., Any]
    measured: Measured


def _every_number() -> list[_Asked]:
    """Return what all criteria have measured, in their order; what needs a hierarchy comes last."""
    every = [_Asked(kind, measured) for kind in CRITERIA.values() for measured in kind.facts.measured]
    return sorted(every, key=lambda asked: asked.measured.needs_hierarchy)


def measure_criteria(
    counts: GroupCounts, *, hierarchies: Mapping[str, Any], missing: str
) -> tuple[CriterionValue, ...]:
    """Evaluate k, all criteria on each sensitive column, and presence where a population is known.

    Parameters
    ----------
    counts : GroupCounts
    hierarchies : mapping of str to Hierarchy, nested mapping or rows
        Of sensitive columns.
    missing : str
        What a missing quasi-identifier means.
    """
    title, smallest = CRITERIA["k-anonymity"].facts.title, int(counts.matched.min())
    found = [CriterionValue(title, None, smallest, "records of the smallest group", missing)]
    for column in counts.sensitive:
        found += _evaluate(column, hierarchies.get(column.name), missing)
    return (*found, _presence(counts.matched, counts.in_population, missing))


def _evaluate(column: SensitiveCounts, hierarchy: Any, missing: str) -> list[CriterionValue]:
    """Return the value of every criterion on one sensitive column."""
    asked = _every_number()
    reasons = [_reason_against(own, column, hierarchy) for own in asked]
    ready = [own for own, reason in zip(asked, reasons, strict=True) if reason is None]
    criteria = [(_made(own, column, hierarchy), own.measured.is_least) for own in ready]
    reached = iter(column.rows.worst(criteria, column.reference) if column.rows and ready else [])
    found = []
    for own, reason in zip(asked, reasons, strict=True):
        worst: float | int | None = None
        if reason is None:
            worst = next(reached)
            if not np.isfinite(worst):
                worst, reason = None, own.measured.if_unbounded
            elif own.measured.is_count:
                worst = int(worst)
        measured = own.measured
        found.append(CriterionValue(measured.name, column.name, worst, measured.meaning, missing, reason))
    return found


def _reason_against(asked: _Asked, column: SensitiveCounts, hierarchy: Any) -> str | None:
    """Return why a criterion cannot be evaluated, if so."""
    rows = column.rows
    if asked.measured.needs_hierarchy and hierarchy is None:
        return "a hierarchy of the values is needed, and none was given"
    if rows is None or rows.n_rows * rows.n_values > LARGEST_WORK:
        return f"{len(column.values)} different values in this many groups are too many to count; round them"
    if asked.measured.needs_order and column.is_text:
        return "text has no order of its own; TCloseness takes one"
    return None


def _made(asked: _Asked, column: SensitiveCounts, hierarchy: Any) -> Any:
    along = {"hierarchy": hierarchy} if asked.measured.needs_hierarchy else {}
    criterion = asked.kind(sensitive=column.name, **asked.measured.settings, **along)
    return criterion.for_values(column.values) if isinstance(criterion, KnowsValues) else criterion


def _presence(matched: NDArray[np.int64], size_in_population: NDArray[np.int64] | None, missing: str) -> CriterionValue:
    """Return the highest probability that a member of the population is in the table."""
    name, meaning = (
        CRITERIA["delta-presence"].facts.title,
        "the largest share of a group's population that is in the table",
    )
    if size_in_population is None:
        return CriterionValue(name, None, None, meaning, missing, "a population table is needed: pass population=")
    if (size_in_population < matched).any():
        reason = "some groups have more records than the population has, so the table is no part of it"
        return CriterionValue(name, None, None, meaning, missing, reason)
    return CriterionValue(name, None, float((matched / size_in_population).max()), meaning, missing)
