# SPDX-License-Identifier: Apache-2.0
"""What the groups reach in every criterion, for each sensitive column. Called by ``measuring``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column
from sfumato.criteria import CRITERIA, KnowsValues
from sfumato.criteria.base import Measured
from sfumato.grouping import Codes, Grouping
from sfumato.measurement.count_rows import CountRows, Rows, count_rows, rows_from_matrix
from sfumato.measurement.measurement import CriterionValue
from sfumato.measurement.wildcard import match_counts

LARGEST_WORK = 1 << 28  # counts looked at per criterion


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
    groups: Grouping,
    matched: NDArray[np.int64],
    keys: Sequence[Codes],
    columns: Sequence[Column],
    size_in_population: NDArray[np.int64] | None,
    *,
    hierarchies: Mapping[str, Any],
    missing: str,
) -> tuple[CriterionValue, ...]:
    """Evaluate k, all criteria on each sensitive column, and presence where a population is known.

    Parameters
    ----------
    groups : Grouping
        Records that agree in all quasi-identifiers.
    matched : ndarray of int64
        Records that those of each group match; their number unless missing values match anything.
    keys : sequence of Codes
        The quasi-identifiers.
    columns : sequence of Column
        The sensitive columns.
    size_in_population : ndarray of int64 or None
    hierarchies : mapping of str to Hierarchy, nested mapping or rows
        Of sensitive columns.
    """
    found = [
        CriterionValue(
            CRITERIA["k-anonymity"].facts.title, None, int(matched.min()), "records of the smallest group", missing
        )
    ]
    is_matching = missing == "wildcard" and any(column.has_missing for column in keys)
    for column in columns:
        codes, values = _ordered_codes(column)
        rows = _matching_rows(groups, keys, codes, len(values)) if is_matching else _rows(groups, codes, len(values))
        reference = np.bincount(codes, minlength=len(values))
        about = Sensitive(column.name, column.is_text, values, reference, hierarchies.get(column.name))
        found += evaluate(about, rows, missing)
    return (*found, presence(matched, size_in_population, missing))


@dataclass(frozen=True, eq=False)
class Sensitive:
    """What the criteria need to know of a sensitive column beside its counts.

    Attributes
    ----------
    name : str
    is_text : bool
        Whether its values are text, which has no order of its own.
    values : sequence
        The values that occur, in their order, and None last where some are missing.
    reference : ndarray of int64
        How often each occurs in the table.
    hierarchy : Hierarchy, nested mapping, rows or None
    """

    name: str
    is_text: bool
    values: Sequence[Any]
    reference: NDArray[np.int64]
    hierarchy: Any = None


def evaluate(column: Sensitive, rows: Rows | None, missing: str) -> list[CriterionValue]:
    """Return the value of every criterion on one sensitive column, given its counts; None: too many to count."""
    asked = _every_number()
    reasons = [_reason_against(own, column, rows) for own in asked]
    ready = [own for own, reason in zip(asked, reasons, strict=True) if reason is None]
    reached = iter(
        rows.worst([(_made(own, column), own.measured.is_least) for own in ready], column.reference)
        if rows and ready
        else []
    )
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


def _reason_against(asked: _Asked, column: Sensitive, rows: Rows | None) -> str | None:
    """Say why a criterion cannot be evaluated, if so."""
    if asked.measured.needs_hierarchy and column.hierarchy is None:
        return "a hierarchy of the values is needed, and none was given"
    if rows is None or rows.n_rows * rows.n_values > LARGEST_WORK:
        return f"{len(column.values)} different values in this many groups are too many to count; round them"
    if asked.measured.needs_order and column.is_text:
        return "text has no order of its own; TCloseness takes one"
    return None


def _made(asked: _Asked, column: Sensitive) -> Any:
    along = {"hierarchy": column.hierarchy} if asked.measured.needs_hierarchy else {}
    criterion = asked.kind(sensitive=column.name, **asked.measured.settings, **along)
    return criterion.for_values(column.values) if isinstance(criterion, KnowsValues) else criterion


def _ordered_codes(column: Column) -> tuple[NDArray[np.int64], list[Any]]:
    """Code the values in their order, missing last, and list them, None for missing."""
    if column.categories is not None:
        values, codes = list(column.categories), column.values.astype(np.int64)
    else:
        present = column.values if column.missing is None else column.values[~column.missing]
        different = np.unique(present)
        values, codes = different.tolist(), np.searchsorted(different, column.values)
    if column.missing is not None:
        codes = np.where(column.missing, len(values), codes)
        values = [*values, None]
    return codes.astype(np.int64), values


def _rows(groups: Grouping, codes: NDArray[np.int64], n_values: int) -> CountRows:
    return count_rows(groups.of_records(), groups.n_groups, codes, n_values).without_repetition()


def _matching_rows(
    groups: Grouping, keys: Sequence[Codes], codes: NDArray[np.int64], n_values: int
) -> CountRows | None:
    """Count the values of the records that each group's records match; None when that is too much work."""
    if groups.n_groups * n_values > LARGEST_WORK // 4:
        return None
    cells = groups.of_records() * n_values + codes
    counts = np.bincount(cells, minlength=groups.n_groups * n_values).reshape(groups.n_groups, n_values)
    first = groups.order[groups.starts[:-1]]
    return rows_of_matches(np.stack([column.values[first] for column in keys], axis=1), counts)


def rows_of_matches(keys: NDArray[np.int32], counts: NDArray[np.int64]) -> CountRows:
    """Return the counts of all groups that each group matches, given the groups' keys and counts."""
    return rows_from_matrix(match_counts(keys, keys, counts)).without_repetition()


def presence(matched: NDArray[np.int64], size_in_population: NDArray[np.int64] | None, missing: str) -> CriterionValue:
    """Say how sure one can be that a member of the population is in the table, at most."""
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
