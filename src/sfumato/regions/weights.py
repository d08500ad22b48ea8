# SPDX-License-Identifier: Apache-2.0
"""Find how much each column says about the target, with the records of some groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.region_draws import look_up_column
from sfumato.threads import map_in_threads

if TYPE_CHECKING:
    from sfumato.regions.regions import Regions

HALF = 0.5  # of a person, added to counts before their logarithm is taken
_PULL = 1e-5
_FAR = 700.0  # beyond it the exponential has no number
_TOLERANCE = 1e-5
_START = 0.3  # of each weight; nearer to what is found than 1, since columns say much twice
_DIGITS = 6  # after the point; more would only show in which order sums were added up


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights with which what is counted becomes the target of a drawn record.

    Columns that say the same, such as marital status and relationship, must not count twice, and a few people of a
    group say less than all people. So each column has two weights, found with the true target of counted records.

    Attributes
    ----------
    columns : ndarray of float64
        Weight of what each column says in a group.
    whole : ndarray of float64
        Weight of what each column says of classes in the whole table; 0 for numbers.
    group : float
        Weight of the shares of classes in a group.
    classes : ndarray of float64
        What is added for each class.
    """

    columns: NDArray[np.float64]
    whole: NDArray[np.float64]
    group: float
    classes: NDArray[np.float64]

    def of_groups(self, n_in_class: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how likely each class is in each group before a value is seen, as a logarithm."""
        likely: NDArray[np.float64] = self.group * np.log(n_in_class + HALF) + self.classes
        return likely


class Sample(NamedTuple):
    """Counted records, group after group."""

    groups: NDArray[np.int64]
    offsets: NDArray[np.int64]
    units: NDArray[np.int32]  # (records, columns)
    classes: NDArray[np.int32]
    numbers: NDArray[np.float64]  # (records, outputs)


def sample_of(
    group: NDArray[np.int64], units: NDArray[np.int32], classes: NDArray[np.int32], numbers: NDArray[np.int64]
) -> Sample:
    """Return records of some groups in an order that does not depend on theirs."""
    order = np.lexsort((*units.T, *numbers.T, classes, group))
    found, sizes = np.unique(group, return_counts=True)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Sample(found.astype(np.int64), offsets, units[order], classes[order], numbers[order].astype(np.float64))


def joined_samples(samples: Sequence[Sample]) -> Sample:
    """Return the records of all samples, whose groups rise."""
    before = np.cumsum([0, *(len(sample.classes) for sample in samples)])
    stops = [sample.offsets[1:] + n for sample, n in zip(samples, before[:-1], strict=True)]
    groups, _, units, classes, numbers = (np.concatenate(own) for own in zip(*samples, strict=True))
    return Sample(groups, np.concatenate([[0], *stops]).astype(np.int64), units, classes, numbers)


def learn_weights(regions: Regions, sample: Sample, *, n_threads: int = 1) -> Weights:
    """Find the weights under which the targets of counted records are expected best; each is left out for itself."""
    n_classes, n_outputs = regions.target.n_in_class.shape[1], regions.target.means.shape[1]
    n_columns = len(regions.columns)
    if n_classes == 1 and not n_outputs:
        return Weights(np.ones(n_columns), np.zeros(n_columns), 1.0, np.zeros(n_classes))
    sizes = np.diff(sample.offsets)
    of_record = np.repeat(sample.groups, sizes)
    above = sample.numbers - regions.target.means[of_record]

    def look_up(j: int) -> NDArray[np.float64]:
        units = np.ascontiguousarray(sample.units[:, j])
        drawing = regions.columns[j].drawing(1.0, 0.0)
        return look_up_column(drawing, sample.groups, sample.offsets, sample.classes, units, above)

    costs = [len(column.values) for column in regions.columns]
    said = map_in_threads(look_up, range(n_columns), n_threads, costs=costs)
    if n_outputs:
        n = regions.sizes[of_record][:, np.newaxis]
        found = _least_squares(np.stack(said, axis=2), above * n / np.maximum(n - 1, 1))
        return Weights(found, np.zeros(n_columns), 1.0, np.zeros(1))
    # The whole table is counted in multiples of the floor, so that one record does not matter.
    said += [column.whole.says()[sample.units[:, j]] for j, column in enumerate(regions.columns)]
    n_in_class = regions.target.n_in_class[of_record]
    others = np.log(np.maximum(n_in_class - (np.arange(n_classes) == sample.classes[:, np.newaxis]), 0.0) + HALF)
    weights, biases = _most_likely(np.stack([others[:, 1:] - others[:, :1], *said], axis=2), sample.classes)
    return Weights(weights[1 : n_columns + 1], weights[n_columns + 1 :], float(weights[0]), biases)


def _least_squares(said: NDArray[np.float64], above: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights, none below 0, with which what columns say is nearest to the targets of records."""
    from scipy.optimize import nnls

    spread = above.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    said, above = said / scale[:, np.newaxis], above / scale
    squares = np.einsum("noj,nok->jk", said, said)
    squares += np.eye(len(squares)) * max(_PULL * float(np.trace(squares)) / len(squares), np.finfo(np.float64).tiny)
    half = np.linalg.cholesky(squares)
    weights: NDArray[np.float64] = nnls(half.T, np.linalg.solve(half, np.einsum("noj,no->j", said, above)))[0]
    return np.round(weights, _DIGITS)


def _most_likely(
    said: NDArray[np.float64], classes: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of what columns say and a number per class: a logistic regression.

    `said` is of shape (records, classes but the first, columns): each class beside the first.
    """
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    n_records, n_others, n_columns = said.shape
    flat = np.ascontiguousarray(said.reshape(-1, n_columns).T)
    is_own = np.arange(n_others + 1) == classes[:, np.newaxis]

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, biases = parameters[:n_columns], parameters[n_columns:]
        likely = np.zeros((n_records, n_others + 1))
        likely[:, 1:] = np.einsum("jn,j->n", flat, weights).reshape(n_records, n_others)
        shares = as_shares(likely + biases)
        wrong = (shares - is_own) / n_records
        slope = np.concatenate([np.einsum("jn,n->j", flat, wrong[:, 1:].ravel()), wrong.sum(axis=0)])
        likelihood = np.log(np.maximum(shares[is_own], np.finfo(np.float64).tiny)).mean()
        # A pull towards 0, as strong as one record, keeps few records from being learned by heart.
        return float((parameters * parameters).sum() / n_records - likelihood), slope + 2 * parameters / n_records

    start = np.concatenate([np.full(n_columns, _START), np.zeros(n_others + 1)])
    bounds = [(0.0, None)] * n_columns + [(None, None)] * (n_others + 1)
    with threadpool_limits(1, user_api="blas"):  # its tiny matrices wake a thread that then waits busily for 0.1 s
        solved = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, tol=_TOLERANCE)
    found = np.round(solved.x, _DIGITS)
    return found[:n_columns], found[n_columns:]


def as_shares(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares whose logarithms, up to a constant per record, are given."""
    if logarithms.shape[1] == 2:  # several times as fast
        second = 1.0 / (1.0 + np.exp(np.clip(logarithms[:, 0] - logarithms[:, 1], -_FAR, _FAR)))
        return np.column_stack([1.0 - second, second])
    shares = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    result: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return result
