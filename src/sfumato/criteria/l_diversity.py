# SPDX-License-Identifier: Apache-2.0
"""l-diversity: the sensitive values of a group vary, by number, by entropy, or without one that dominates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.base import CriterionFacts, Measured
from sfumato.criteria.sensitive_criterion import (
    TOLERANCE,
    Counts,
    Missing,
    OnSensitiveColumn,
    check_number,
    check_whole,
)
from sfumato.errors import ParameterError, named


@dataclass(frozen=True)
class LDiversity(OnSensitiveColumn):
    """Every group has at least l sensitive values that are well represented.

    Parameters
    ----------
    l : int or float
        ``"distinct"`` and ``"recursive"``: a whole number of at least 2. ``"entropy"``: any number above 1.
    sensitive : str
        The sensitive column; ``"y"`` for the target when X has no column of that name.
    kind : {"distinct", "entropy", "recursive"}, default="distinct"
        Distinct: at least l different values. Entropy: the entropy of the group's values is at least log(l).
        Recursive (c, l): with counts r1 >= r2 >= ... >= rm, ``r1 < c * (rl + ... + rm)``.
    c : float, optional
        For ``"recursive"``, and needed there: how many times as frequent as the l-th and all rarer values together
        the most frequent value may be. Lower is stricter.
    missing : {"value", "suppress"}, default="value"
        A missing sensitive value is a value of its own, or the record does not count.

    Notes
    -----
    *Guarantee.* Someone who finds a person's group is left with at least l sensitive values for that person. Distinct
    l-diversity says nothing about how likely each is: nine in ten of the group may share one. Entropy and recursive
    l-diversity bound that. None of them knows that two values can mean nearly the same, or that a group may differ
    from the whole table; see ``TCloseness``. All three keep holding when groups are joined.

    `value` is the l that all groups reach for ``"distinct"`` and ``"entropy"`` (a number such as 2.7, never cut off),
    and for ``"recursive"`` the bound that c must lie above, None when a group has fewer than l values.

    References
    ----------
    Machanavajjhala, A., Kifer, D., Gehrke, J., Venkitasubramaniam, M. (2007). l-diversity: privacy beyond
    k-anonymity.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[8, 1, 1], [4, 3, 3]])
    >>> LDiversity(3, "diagnosis").passes(counts, counts.sum(axis=0)).tolist()
    [True, True]
    >>> LDiversity(2, "diagnosis", kind="recursive", c=2).passes(counts, counts.sum(axis=0)).tolist()
    [False, True]
    """

    facts = CriterionFacts(
        "l-diversity",
        "every group has at least l well-represented values of a sensitive column",
        (
            Measured(
                "distinct l-diversity", "the fewest different values in a group", {"l": 2}, is_least=True, is_count=True
            ),
            Measured(
                "entropy l-diversity",
                "the smallest exponential of a group's entropy: as many values as if all were equally frequent",
                {"l": 2, "kind": "entropy"},
                is_least=True,
            ),
            Measured(
                "recursive (c, 2)-diversity",
                "c must lie above this: the most frequent value over all others together",
                {"l": 2, "kind": "recursive", "c": 1.0},
                if_unbounded="a group has fewer than 2 different values, so no c is large enough",
            ),
            Measured(
                "recursive (c, 3)-diversity",
                "c must lie above this: the most frequent value over the third and all rarer together",
                {"l": 3, "kind": "recursive", "c": 1.0},
                if_unbounded="a group has fewer than 3 different values, so no c is large enough",
            ),
        ),
        example={"l": 2},
    )

    l: float  # noqa: E741 - the literature's own letter
    sensitive: str
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: float | None = None
    missing: Missing = "value"

    def __post_init__(self) -> None:
        if self.kind not in ("distinct", "entropy", "recursive"):
            raise ParameterError(f"{named('kind', self.kind)}: expected 'distinct', 'entropy' or 'recursive'.")
        if self.kind == "entropy":
            check_number("l", self.l, above=1, example="2 is common.")
        else:
            check_whole("l", self.l, at_least=2, example="Every group has one value; 2 to 5 is common.")
        if self.kind == "recursive":
            check_number("c", self.c, above=0, example="3 lets the most frequent value lead three to one.")
        elif self.c is not None:
            raise ParameterError(
                f"{named('c', self.c)} with {named('kind', self.kind)}: expected it with {named('kind', 'recursive')} "
                "alone."
            )
        self._check_sensitive()

    def fails_in_parts(self, *, leaves_out_missing: bool) -> bool:
        """Return True if different values are counted, and no part can be safe for lack of counted records."""
        return self.kind == "distinct" and not leaves_out_missing

    def _each(self, counts: Counts, reference: Counts) -> NDArray[np.float64]:
        if self.kind == "distinct":
            return np.asarray((counts > 0).sum(axis=1), np.float64)
        if self.kind == "entropy":
            reached = np.exp(_entropy(counts))
            whole = np.round(reached)
            # Three equally frequent values reach 3, not the float just below it.
            return np.where(np.abs(reached - whole) <= TOLERANCE * whole, whole, reached)
        first, tail = self._first_and_tail(counts)
        return np.asarray(np.divide(first, tail, out=np.full(len(counts), np.inf), where=tail > 0), np.float64)

    def _passes(self, counts: Counts, reference: Counts) -> NDArray[np.bool_]:
        if self.kind == "distinct":
            return np.asarray((counts > 0).sum(axis=1) >= self.l, np.bool_)
        if self.kind == "entropy":
            return np.asarray(_entropy(counts) >= np.log(self.l) - TOLERANCE, np.bool_)
        assert self.c is not None
        first, tail = self._first_and_tail(counts)
        # The bound is strict: what rounding could lift over it fails.
        return np.asarray(first * (1 + TOLERANCE) < self.c * tail, np.bool_)

    def _first_and_tail(self, counts: Counts) -> tuple[Counts, Counts]:
        falling = -np.sort(-counts, axis=1)
        return falling[:, 0], falling[:, int(self.l) - 1 :].sum(axis=1)

    def _worst(self, reached: NDArray[np.float64]) -> float:
        return float(reached.max() if self.kind == "recursive" else reached.min())

    def worst(self, reached: NDArray[np.float64]) -> float | None:
        """Return the l that all groups reach; for recursive l-diversity what c must lie above."""
        worst = super().worst(reached)
        return int(worst) if self.kind == "distinct" and worst is not None else worst

    def remedy(self, reference: Counts) -> str:
        """Describe the column, with the l that the whole table meets."""
        values = np.asarray(reference)[None, :]
        n_values = int((values > 0).sum())
        has = f"The column {self.sensitive!r} has {n_values} different values{self._which_missing()}"
        if self.kind == "distinct":
            return f"{has}; the largest l that works is {n_values}."
        if self.kind == "entropy":
            largest = float(np.exp(_entropy(values))[0]) if n_values else 0.0
            return f"{has}; the largest l that works is {np.floor(largest * 1000) / 1000:g}."
        assert self.c is not None
        works = [
            n for n in range(2, n_values + 1)
            if LDiversity(n, self.sensitive, "recursive", self.c)._passes(values, values[0])[0]
        ]  # fmt: skip
        return f"{has}; the largest l that works with c={self.c:g} is {max(works)}." if works else (
            f"{has}; with c={self.c:g} no l of at least 2 works."
        )  # fmt: skip

    def describe(self) -> str:
        """Return the requirement in one sentence."""
        what = {
            "distinct": f"every group has at least {self.l} different values of {self.sensitive!r}",
            "entropy": f"the entropy of {self.sensitive!r} in every group is at least log({self.l:g})",
            "recursive": (
                f"in every group the most frequent value of {self.sensitive!r} occurs less than {self.c or 0:g} times "
                f"as often as the values from the {self.l:g}. most frequent on together"
            ),
        }[self.kind]
        return what + self._which_missing()


def _entropy(counts: Counts) -> NDArray[np.float64]:
    """Entropy of each row, in nats."""
    p = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(-np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=1), np.float64)
