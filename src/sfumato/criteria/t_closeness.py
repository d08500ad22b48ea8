# SPDX-License-Identifier: Apache-2.0
"""t-closeness: the sensitive values of a group are distributed much as in the whole table.

The distance is the earth mover's: how much of the distribution must be moved how far. How far two values lie apart is
the choice of equal, ordered and hierarchical distance; each has a closed form, so no transport problem is solved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.base import CriterionFacts, Measured
from sfumato.criteria.sensitive_criterion import (
    TOLERANCE,
    Counts,
    Missing,
    OnSensitiveColumn,
    check_number,
    copied,
    shares,
)
from sfumato.errors import ParameterError, named
from sfumato.hierarchies import Hierarchy


@dataclass(frozen=True)
class TCloseness(OnSensitiveColumn):
    """In every group, the sensitive values are distributed within distance t of the whole table's.

    Parameters
    ----------
    t : float
        Largest earth mover's distance between a group and the table; above 0 and at most 1.
    sensitive : str
        The sensitive column; ``"y"`` for the target when X has no column of that name.
    distance : {"equal", "ordered", "hierarchical"}, default="equal"
        How far two values lie apart. Equal: 1. Ordered: the number of steps between them in their order, divided by
        the steps from the first to the last. Hierarchical: the height of their lowest common ancestor, divided by
        the height of the tree.
    hierarchy : Hierarchy, nested mapping or rows, optional
        For ``"hierarchical"``. ``{"chest": ["flu", "cough"], "stomach": {"acute": ["ulcer"], ...}}``, or one row per
        value from the value up: ``[["flu", "chest", "any"], ...]``.
    order : sequence, optional
        For ``"ordered"``: all values from lowest to highest. Numbers and dates have an order of their own; text must
        be given one.
    missing : {"value", "suppress"}, default="value"
        A missing sensitive value is a value of its own, or the record does not count. As a value it lies at distance
        1 from all others; where values are ordered it lies beside the middle of the order, 1 from both ends and 0.5
        from the middle.

    Notes
    -----
    *Guarantee.* What someone learns about a person's sensitive value by finding the person's group, beyond what the
    whole table already says, is at most t in the earth mover's distance. The table's own distribution is public by
    the release. It keeps holding when groups are joined.

    `value` is the largest distance of a group. Values that the table does not have take no part, except that an
    `order` or a `hierarchy` fixes distances for all values it lists. In a hierarchy whose values lie at different
    depths the height of a label is its level, as in ``Hierarchy``.

    References
    ----------
    Li, N., Li, T., Venkatasubramanian, S. (2007). t-closeness: privacy beyond k-anonymity and l-diversity.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[2, 0, 0], [0, 1, 1]])
    >>> TCloseness(0.5, "salary").passes(counts, counts.sum(axis=0)).tolist()
    [True, True]
    >>> TCloseness(0.3, "salary", distance="ordered").value(counts, counts.sum(axis=0))
    0.375
    """

    facts = CriterionFacts(
        "t-closeness",
        "in every group the values of a sensitive column are distributed within distance t of the whole table's",
        (
            Measured(
                "t-closeness, equal distance",
                "the largest distance of a group's distribution from that of the table",
                {"t": 0.5},
            ),
            Measured(
                "t-closeness, ordered distance",
                "the largest distance of a group's distribution from that of the table, neighboring values being close",
                {"t": 0.5, "distance": "ordered"},
                needs_order=True,
            ),
            Measured(
                "t-closeness, hierarchical distance",
                "the largest distance of a group's distribution from that of the table, values under one label being "
                "close",
                {"t": 0.5, "distance": "hierarchical"},
                needs_hierarchy=True,
            ),
        ),
        example={"t": 0.3},
    )

    t: float
    sensitive: str
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    hierarchy: Any = field(default=None, repr=False, metadata={"policy": "hierarchy file"})
    order: Sequence[Any] | None = field(default=None, repr=False, metadata={"policy": "list"})
    missing: Missing = "value"

    _is_missing: NDArray[np.bool_] | None = field(default=None, init=False, repr=False, compare=False)
    _positions: NDArray[np.float64] | None = field(default=None, init=False, repr=False, compare=False)
    _nodes: tuple[tuple[float, NDArray[np.float64]], ...] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_number("t", self.t, above=0, at_most=1, example="0.15 to 0.3 is common.")
        if self.distance not in ("equal", "ordered", "hierarchical"):
            raise ParameterError(f"{named('distance', self.distance)}: expected 'equal', 'ordered' or 'hierarchical'.")
        if (self.hierarchy is None) == (self.distance == "hierarchical"):
            raise ParameterError(
                f"{named('distance', self.distance)} {'without' if self.hierarchy is None else 'with'} a hierarchy: "
                f"expected a hierarchy with {named('distance', 'hierarchical')}, and with no other. Pass "
                f"{named('hierarchy')}, such as {{'group': ['value', ...]}}, or a file."
            )
        if self.order is not None and self.distance != "ordered":
            raise ParameterError(
                f"{named('distance', self.distance)} with an order: expected {named('distance', 'ordered')}."
            )
        if self.order is not None and len(set(self.order)) != len(self.order):
            raise ParameterError(
                f"{named('order')} has a value twice: expected every value once, from lowest to highest."
            )
        if self.hierarchy is not None:
            _read(self.hierarchy)  # says what is wrong with it now, not in the middle of the work
        self._check_sensitive()

    def for_values(self, values: Sequence[Any]) -> TCloseness:
        """Return the criterion for counts whose columns are these values.

        Parameters
        ----------
        values : sequence
            The value each column of the counts is for, None for missing. In their order, unless `order` or
            `hierarchy` says where they belong.

        Raises
        ------
        ParameterError
            When `order` or `hierarchy` does not list all of them, or text has no order.
        """
        is_missing = np.array([value is None for value in values], np.bool_)
        if self.distance == "equal":
            return self
        if self.distance == "hierarchical":
            nodes = tuple(self._nodes_above(values))
            return copied(self, _nodes=nodes, _is_missing=is_missing)  # type: ignore[no-any-return]
        positions = None
        if self.order is not None:
            rank = {value: place for place, value in enumerate(self.order)}
            self._require_all(sum(value is not None and value not in rank for value in values), len(values), "order")
            steps = max(1, len(rank) - 1)
            positions = np.array([0.0 if value is None else rank[value] / steps for value in values])
        elif any(isinstance(value, str) for value in values):
            raise ParameterError(
                f"{named('distance', 'ordered')} for the text column {self.sensitive!r}: expected its order, since the "
                f"alphabet says nothing about it. Pass {named('order', ['low', 'middle', 'high'])}."
            )
        return copied(self, _positions=positions, _is_missing=is_missing)  # type: ignore[no-any-return]

    def _require_all(self, n_absent: int, n_values: int, parameter: str) -> None:
        if n_absent:
            raise ParameterError(
                f"{named(parameter)} lacks {n_absent} of the {n_values} values of the column {self.sensitive!r}: "
                "expected all of them. Add them, in the type the column has."
            )

    def _nodes_above(self, values: Sequence[Any]) -> Iterator[tuple[float, NDArray[np.float64]]]:
        """Yield, per inner node, its height over the tree's and which child each value belongs to."""
        hierarchy = _read(self.hierarchy)
        is_missing = np.array([value is None for value in values], np.bool_)
        places = hierarchy.find(value for value in values if value is not None)
        self._require_all(int((places < 0).sum()), len(values), "hierarchy")
        # Levels above the first that all values share would only make all distances smaller.
        top = next(level for level, labels in enumerate(hierarchy.labels) if len(labels) == 1)
        labels = np.full((len(values), top + 1), -1, np.int64)
        labels[~is_missing] = hierarchy.codes[places, : top + 1]
        labels[is_missing, top] = labels[~is_missing, top].max(initial=0)  # missing hangs on the root
        for level in range(1, top + 1):
            for node in np.unique(labels[labels[:, level] >= 0, level]):
                below = np.flatnonzero(labels[:, level] == node)
                children, child = np.unique(labels[below, level - 1], return_inverse=True)
                belongs = np.zeros((len(values), len(children)))
                belongs[below, child] = 1.0
                yield level / top, belongs

    def _passes(self, counts: Counts, reference: Counts) -> NDArray[np.bool_]:
        return self._each(counts, reference) <= self.t + TOLERANCE

    def _each(self, counts: Counts, reference: Counts) -> NDArray[np.float64]:
        q, p, known = shares(counts, reference)
        surplus = q - p
        if self.distance == "equal":
            return np.asarray(np.abs(surplus).sum(axis=1) / 2, np.float64)
        if self._is_missing is not None and len(self._is_missing) != len(known):
            raise ParameterError(
                f"counts of {len(known)} values for a criterion on {len(self._is_missing)}: expected the values given "
                "to for_values."
            )
        is_missing = np.zeros(len(known), np.bool_) if self._is_missing is None else self._is_missing
        if self.distance == "ordered":
            return self._ordered(surplus, known, is_missing[known])
        if self._nodes is None:
            raise ParameterError(
                f"{named('distance', 'hierarchical')} and counts without values: expected to know which value each "
                "column of the counts is for. Call for_values(values) first."
            )
        total = np.zeros(len(surplus))
        for height, belongs in self._nodes:
            # What the children of a node have too much and too little of meets at that node.
            extra = surplus @ belongs[known]
            total += height * np.minimum(np.maximum(extra, 0).sum(axis=1), np.maximum(-extra, 0).sum(axis=1))
        return total

    def _ordered(
        self, surplus: NDArray[np.float64], known: NDArray[np.bool_], is_missing: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Sum what crosses each step of the order; missing hangs on the middle, half the range away."""
        own = surplus[:, ~is_missing]
        n_values = own.shape[1]
        if self._positions is None:
            positions = np.arange(n_values) / max(1, n_values - 1)
        else:
            positions = self._positions[known][~is_missing]
        order = np.argsort(positions, kind="stable")
        places = np.insert(positions[order], np.searchsorted(positions[order], 0.5), 0.5)
        middle = int(np.searchsorted(positions[order], 0.5))
        moved = np.insert(own[:, order], middle, 0.0, axis=1)
        steps = np.diff(places)
        from_left = np.abs(np.cumsum(moved, axis=1))[:, :middle] @ steps[:middle]
        from_right = np.abs(np.cumsum(moved[:, ::-1], axis=1))[:, ::-1][:, middle + 1 :] @ steps[middle:]
        return np.asarray(from_left + from_right + np.abs(surplus[:, is_missing]).sum(axis=1) / 2, np.float64)

    def describe(self) -> str:
        """Return the requirement in one sentence."""
        return (
            f"in every group the values of {self.sensitive!r} are distributed within {self.distance} distance "
            f"{self.t:g} of the whole table's{self._which_missing()}"
        )


def _read(given: Any) -> Hierarchy:
    if isinstance(given, Hierarchy):
        return given
    return Hierarchy.from_mapping(given) if isinstance(given, Mapping) else Hierarchy(given)
