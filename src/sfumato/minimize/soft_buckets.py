# SPDX-License-Identifier: Apache-2.0
"""Generalizations that can be trained: for every fine code of every attribute, the probability of each bucket.

One small network per attribute (Staab et al. 2024, section 6 and appendix C), evaluated once per fine code and not
once per record: a table with a row for each code. Several generalizations with different trade-offs train side by
side as the first axis of every tensor. Used by ``neural_training``; arrays and torch only.

How an attribute with values x in [0, 1] is generalized::

    x -> normalize -> W1 * W1 -> tanh -> W2 * W2 -> normalize, scale by g * g -> tanh -> M(x) in (0, 1)
    bucket j of k: softmax over j of -(M(x) - c_j)^2 / temperature, c_j the middle of the j-th of k equal parts

All factors are squares, so M never falls. Categories, and missing values of ordered attributes, have no order: their
code goes through one hidden layer to a score per bucket, and directly to a score as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.networks import require_torch

HIDDEN_UNITS = 20
"""Hidden units of each attribute's network; the paper leaves their number open."""

_EPSILON = 1e-5  # keeps the normalization of a constant finite


@dataclass(frozen=True, eq=False)
class CodedAttribute:
    """An attribute as the training takes it.

    Attributes
    ----------
    n_codes : int
        Number of fine codes, that of missing (the last) included.
    positions : ndarray of float or None
        For numbers and moments: where the bins of values stand, from 0 to 1 and never falling; one less than
        `n_codes` where missing occurs. None for categories.
    """

    n_codes: int
    positions: NDArray[np.float64] | None = None

    @property
    def n_ordered(self) -> int:
        """Number of codes that have an order; they come first."""
        return 0 if self.positions is None else len(self.positions)


class CodeTable:
    """The rows of all attributes' codes in one long table: all ordered codes first, then all others.

    Attributes
    ----------
    rows : list of ndarray of int
        For every attribute, the row of each of its codes.
    n_ordered, n_rows : int
    owner : ndarray of int
        Attribute that each row belongs to.
    """

    def __init__(self, attributes: Sequence[CodedAttribute]) -> None:
        self.n_ordered = sum(attribute.n_ordered for attribute in attributes)
        self.n_rows = sum(attribute.n_codes for attribute in attributes)
        self.rows: list[NDArray[np.int64]] = []
        self.owner = np.zeros(self.n_rows, np.int64)
        next_ordered, next_other = 0, self.n_ordered
        for place, attribute in enumerate(attributes):
            n_others = attribute.n_codes - attribute.n_ordered
            rows = np.concatenate(
                [next_ordered + np.arange(attribute.n_ordered), next_other + np.arange(n_others)], dtype=np.int64
            )
            next_ordered += attribute.n_ordered
            next_other += n_others
            self.owner[rows] = place
            self.rows.append(rows)

    def rows_of_records(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the row of every value of every record, given its code."""
        return np.stack([rows[codes[:, place]] for place, rows in enumerate(self.rows)], axis=1)

    def shares(self, row_of_value: NDArray[np.int64], weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Return how much of its attribute's records each row holds."""
        counts = np.zeros(self.n_rows)
        for column in row_of_value.T:
            counts += np.bincount(column, weights, minlength=self.n_rows)
        shares: NDArray[np.float64] = counts / counts[self.rows[0]].sum()
        return shares


def _spread(owner: NDArray[np.int64], n_buckets: int, generator: Any) -> NDArray[np.float64]:
    """Return scores that deal the codes of each attribute to the buckets in turn, from a random order.

    Codes that start in one bucket would stay there: the players see no difference, so none is ever learned.
    """
    order = require_torch().randperm(len(owner), generator=generator).numpy()
    by_owner = order[np.argsort(owner[order], kind="stable")]
    scores = np.zeros((len(owner), n_buckets))
    place = np.arange(len(owner)) - np.searchsorted(owner[by_owner], owner[by_owner])
    scores[by_owner, place % n_buckets] = 1.0
    return scores


class SoftBuckets:
    """Generalizations with probabilities in place of decisions, several at once.

    Parameters
    ----------
    attributes : sequence of CodedAttribute
    table : CodeTable
    shares : ndarray of float
        Share of its attribute's records that each row of the table holds.
    n_buckets : int
    n_runs : int
        Generalizations trained side by side; all start alike.
    generator : torch.Generator
    device : torch.device
    """

    def __init__(
        self,
        attributes: Sequence[CodedAttribute],
        table: CodeTable,
        shares: NDArray[np.float64],
        *,
        n_buckets: int,
        n_runs: int,
        generator: Any,
        device: Any,
    ) -> None:
        torch = require_torch()
        self.table, self.n_buckets = table, n_buckets
        self.parameters: list[Any] = []

        def learned(start: Any) -> Any:
            tensor = start.expand(n_runs, *start.shape).clone().to(device).requires_grad_()
            self.parameters.append(tensor)
            return tensor

        def uniform(shape: tuple[int, ...], low: float, high: float) -> Any:
            return torch.empty(shape).uniform_(low, high, generator=generator)

        def fixed(values: NDArray[Any], kind: Any) -> Any:
            return torch.as_tensor(values, dtype=kind, device=device)

        ordered = [place for place, attribute in enumerate(attributes) if attribute.n_ordered]
        place_among_ordered = np.full(len(attributes), -1)
        place_among_ordered[ordered] = np.arange(len(ordered))
        owner = place_among_ordered[table.owner[: table.n_ordered]]
        self._ordered_owner = fixed(owner, torch.int64)
        # Row i averages the ordered codes of the i-th ordered attribute by the records that have them: the batch
        # normalization's statistics over the whole sample, known without a pass over it.
        averaging = np.zeros((len(ordered), table.n_ordered))
        averaging[owner, np.arange(table.n_ordered)] = shares[: table.n_ordered]
        totals = averaging.sum(axis=1, keepdims=True)
        self._averaging = fixed(averaging / np.where(totals > 0, totals, 1), torch.float32)
        positions = np.concatenate([np.zeros(0), *(attributes[place].positions for place in ordered)])
        self._positions = self._normalized(fixed(positions, torch.float32))
        slopes = uniform((len(ordered), HIDDEN_UNITS), 0.5, 2.0)
        self._slopes = learned(slopes)
        # Thresholds spread over two standard deviations either side of the mean, whatever the slope.
        self._thresholds = learned(uniform((len(ordered), HIDDEN_UNITS), -2.0, 2.0) * slopes**2)
        self._mixing = learned(uniform((len(ordered), HIDDEN_UNITS), 0.5, 1.0))
        self._gain = learned(torch.ones(len(ordered)))
        self._shift = learned(torch.zeros(len(ordered)))
        self._centers = (torch.arange(n_buckets, device=device) + 0.5) / n_buckets

        others = table.owner[table.n_ordered :]
        self._other_owner = fixed(others, torch.int64)
        bounds = torch.as_tensor(np.bincount(others, minlength=len(attributes))[others], dtype=torch.float32) ** -0.5
        self._embedding = learned(uniform((len(others), HIDDEN_UNITS), -1.0, 1.0) * bounds[:, None])
        bound = HIDDEN_UNITS**-0.5
        self._hidden_bias = learned(uniform((len(attributes), HIDDEN_UNITS), -bound, bound))
        self._scoring = learned(uniform((len(attributes), HIDDEN_UNITS, n_buckets), -bound, bound))
        self._direct = learned(torch.as_tensor(_spread(others, n_buckets, generator), dtype=torch.float32))

    def _normalized(self, values: Any) -> Any:
        """Subtract each ordered attribute's mean and divide by its standard deviation, over the records."""
        means = values @ self._averaging.T
        centered = values - means[..., self._ordered_owner]
        deviations = ((centered**2) @ self._averaging.T + _EPSILON).sqrt()
        return centered / deviations[..., self._ordered_owner]

    def levels(self) -> Any:
        """Return M(x) of every ordered code, shape (runs, ordered codes): between 0 and 1, and never falling."""
        owner = self._ordered_owner
        hidden = (
            self._positions[:, None] * self._slopes.square().index_select(1, owner)
            + self._thresholds.index_select(1, owner)
        ).tanh()
        mixed = self._normalized((hidden * self._mixing.square().index_select(1, owner)).sum(-1))
        scaled = mixed * self._gain.square().index_select(1, owner) + self._shift.index_select(1, owner)
        return (scaled.tanh() + 1) / 2

    def _scores(self) -> Any:
        torch = require_torch()
        owner = self._other_owner
        ordered = -((self.levels()[..., None] - self._centers) ** 2)
        hidden = (self._embedding + self._hidden_bias.index_select(1, owner)).relu()
        others = (hidden[..., None, :] @ self._scoring.index_select(1, owner))[..., 0, :]
        return torch.cat([ordered, others + self._direct], dim=1)

    def log_probabilities(self, temperature: float) -> Any:
        """Return the logarithm of the probability of each bucket, shape (runs, rows, buckets)."""
        return require_torch().log_softmax(self._scores() / temperature, dim=-1)

    def harden(self) -> list[list[NDArray[np.int64]]]:
        """Return, for every run and attribute, the most probable bucket of each code."""
        torch = require_torch()
        with torch.no_grad():
            best = self._scores().argmax(dim=-1).cpu().numpy()
        hardened = []
        for buckets in best:
            of_attributes = [buckets[rows] for rows in self.table.rows]
            for rows, own in zip(self.table.rows, of_attributes, strict=True):
                n_ordered = int((rows < self.table.n_ordered).sum())
                # M never falls, but the last bit of a float may; a threshold must not depend on it.
                own[:n_ordered] = np.maximum.accumulate(own[:n_ordered]) if n_ordered else own[:n_ordered]
            hardened.append(of_attributes)
        return hardened
