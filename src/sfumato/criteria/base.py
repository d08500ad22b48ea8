# SPDX-License-Identifier: Apache-2.0
"""The protocol of a criterion: a vectorized test on the counts of groups.

Neither the engine nor a criterion knows the other: the anonymizers hand the engine a criterion's ``passes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Counting = Literal["records", "values", "distinct", "presence"]


@dataclass(frozen=True)
class Measured:
    """One number that ``measure`` reports of a criterion; the criterion's own bound plays no part in it.

    Attributes
    ----------
    name, meaning : str
    settings : mapping
        Parameters of the criterion beside the sensitive column; bounds may be anything that is allowed.
    is_least : bool
        Whether the worst group is the one with the least.
    is_count : bool
        Whether the number is a whole one.
    if_unbounded : str
        Why there is no number, where a group reaches none.
    needs_order, needs_hierarchy : bool
        What is needed of the sensitive column.
    """

    name: str
    meaning: str
    settings: Mapping[str, Any]
    is_least: bool = False
    is_count: bool = False
    if_unbounded: str = ""
    needs_order: bool = False
    needs_hierarchy: bool = False


@dataclass(frozen=True)
class CriterionFacts:
    """The facts that policies, reports and the documentation give about a criterion.

    Attributes
    ----------
    name : str
        What a policy calls it.
    sentence : str
        What holds in every group, without the final point.
    measured : tuple of Measured
        What ``measure`` reports of it for each sensitive column.
    example : mapping
        Parameters of an example, without the sensitive column: a bound that most tables can meet.
    """

    name: str
    sentence: str
    measured: tuple[Measured, ...] = field(default=(), repr=False)
    example: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """The name for readers."""
        return self.name


@runtime_checkable
class Criterion(Protocol):
    """A condition that every released group meets.

    Attributes
    ----------
    column : str or None
        The column whose values are counted; None counts records.
    counting : {"records", "values", "distinct", "presence"}
        What the counts handed to `passes` are: records of the group, shape (m, 1); how often each value of
        `column` occurs, shape (m, values); how many different values occur, shape (m, 1); or the records of the
        group and the members of a population in its cell, shape (m, 2).

    Notes
    -----
    A criterion may have more. ``missing``: ``"suppress"`` leaves records without a value of `column` out of the
    counts, which are otherwise those of a value of its own, the last. ``for_values(values)``: return the criterion
    for counts whose columns are these values. ``remedy(reference)``: say which bound the whole table would meet,
    when it does not meet this one. ``least_records``: the fewest records that a safe group can have.
    ``fails_in_parts``: whether every part of a group that fails it fails it, too. ``facts``: a `CriterionFacts`, for
    those that policies can name.
    """

    @property
    def column(self) -> str | None:  # noqa: D102 - described above
        ...

    @property
    def counting(self) -> Counting:  # noqa: D102 - described above
        ...

    def passes(self, counts: NDArray[np.int64], reference: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of m groups are safe; `reference` has the same counts for the whole table."""
        ...

    def value(self, counts: NDArray[np.int64], reference: NDArray[np.int64]) -> Any:
        """Return what the groups reach, as one number for a report."""
        ...

    def describe(self) -> str:
        """Return the requirement in one sentence."""
        ...


def least_records(criterion: Criterion) -> int:
    """Return the fewest records that a safe group can have; 1 for a criterion that does not say."""
    return int(getattr(criterion, "least_records", 1))


def asks_records_alone(criterion: Criterion) -> bool:
    """Return True if a criterion is met by every group of `least_records` records, and by no smaller one."""
    return bool(getattr(criterion, "asks_records_alone", False))


def saved_fields(criterion: Criterion) -> dict[str, Any]:
    """Return a criterion as plain data for a document: its name and its parameters.

    Tables, hierarchies and orders of values are left out: they would put values into the document. A criterion that no
    family lists is saved under the name of its class, with its sentence.

    Examples
    --------
    >>> from sfumato.criteria import BetaLikeness
    >>> saved_fields(BetaLikeness(1.0, "diagnosis"))
    {'name': 'beta-likeness', 'beta': 1.0, 'sensitive': 'diagnosis', 'kind': 'basic', 'missing': 'value'}
    """
    facts = getattr(criterion, "facts", None)
    if facts is None:
        return {"name": type(criterion).__name__, "sentence": criterion.describe()}
    kept = [one for one in fields(criterion) if one.init and "policy" not in one.metadata]  # type: ignore[arg-type]
    given = {one.name: getattr(criterion, one.name) for one in kept}
    return {"name": facts.name} | {name: value for name, value in given.items() if value is not None}
