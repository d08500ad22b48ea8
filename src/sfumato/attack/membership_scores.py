# SPDX-License-Identifier: Apache-2.0
"""Scores of membership, a higher one for records that are more likely members; ``membership`` calls them.

LiRA, online and offline, and RMIA compare what the target says about a record with what shadow models say that saw the
record (*in*) and that did not (*out*).

The others learn what members look like. A forest on the target's outputs knows for half of the records whether they are
members, as in section 4.2 of Goldsteen et al. (2021) and Nasr et al. (2018); scores are cross-fitted over two halves
(``membership_network`` holds the network of this kind). A forest on the outputs of shadows (Shokri et al., 2017) knows
no record's membership in the target.

References
----------
N. Carlini et al., "Membership inference attacks from first principles", IEEE S&P 2022 (LiRA).
S. Zarifzadeh, P. Liu and R. Shokri, "Low-cost high-power membership inference attacks", ICML 2024 (RMIA).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from sfumato.attack.membership_signals import Floats, Reader

_LOWEST_VARIANCE = 1e-12

#: Fits on outputs, labels and membership of known records, and scores others; higher is more likely a member.
Learner = Callable[[Floats, NDArray[Any], NDArray[np.bool_], Floats, NDArray[Any]], Floats]

_N_TREES = 100
_SMALLEST_LEAF = 20  # outputs of a model that votes have many ties, and a leaf of one record would only repeat it
_MOST_SHADOW_ROWS = 60_000


def lira_online(signal: Floats, shadow_signals: Floats, was_in: NDArray[np.bool_]) -> Floats:
    """Return the log ratio of two Gaussians at the target's signal, fitted to the in and to the out shadows.

    Parameters
    ----------
    signal : ndarray of shape (n_records,)
        Logit of the target's confidence in the true label, angle of its share of votes, or minus the log squared error.
    shadow_signals : ndarray of shape (n_shadows, n_records)
    was_in : ndarray of bool of shape (n_shadows, n_records)
    """
    mean_in, variance_in = gaussians(shadow_signals, was_in)
    mean_out, variance_out = gaussians(shadow_signals, ~was_in)
    return np.asarray(_log_density(signal, mean_in, variance_in) - _log_density(signal, mean_out, variance_out))


def lira_offline(signal: Floats, shadow_signals: Floats, was_in: NDArray[np.bool_]) -> Floats:
    """Return how many standard deviations the target's signal lies above that of the out shadows.

    The published score is the normal distribution function of this number, which orders records alike; the number
    itself does not saturate.
    """
    mean_out, variance_out = gaussians(shadow_signals, ~was_in)
    return np.asarray((signal - mean_out) / np.sqrt(variance_out))


def rmia(
    likelihood: Floats,
    shadow_likelihoods: Floats,
    was_in: NDArray[np.bool_],
    *,
    population: Floats | None = None,
    shadow_population: Floats | None = None,
    gamma: float = 1.0,
) -> Floats:
    """Return the share of population records that a record's likelihood ratio beats by the factor `gamma`.

    The ratio of a record is the target's confidence in its true label over the mean confidence of shadows: half of
    those that saw the record, half of those that did not; of a population record, all of them.

    Parameters
    ----------
    likelihood : ndarray of shape (n_records,)
    shadow_likelihoods : ndarray of shape (n_shadows, n_records)
    was_in : ndarray of bool of shape (n_shadows, n_records)
    population, shadow_population : ndarray of shape (n_population,) and (n_shadows, n_population), optional
        None compares with the attacked records themselves: a mixture that the attacker need not tell apart.
    gamma : float, default=1.0
        The order of the records is the same for every gamma; only ties differ.
    """
    tiny = np.finfo(np.float64).tiny
    expected = (_mean_where(shadow_likelihoods, was_in) + _mean_where(shadow_likelihoods, ~was_in)) / 2
    ratio = likelihood / np.maximum(expected, tiny)
    if population is None or shadow_population is None:
        others = np.sort(ratio)
        itself = ratio / gamma >= ratio  # a record is not compared with itself
    else:
        others = np.sort(population / np.maximum(shadow_population.mean(axis=0), tiny))
        itself = np.zeros(len(ratio), bool)
    beaten = np.searchsorted(others, ratio / gamma, side="right") - itself
    n_compared = len(others) - (population is None)
    return np.asarray(beaten / max(n_compared, 1), np.float64)


def gaussians(values: Floats, is_counted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return each record's mean over the shadows counted, and its variance drawn towards that of all records.

    With few shadows a record's own variance is mostly noise, and the published attack uses one for all records; with
    many it prevails. Here a record's own counts for as much as makes the best linear estimate: a variance from d
    degrees of freedom spreads by 2 / d times its square around the true one, so how unequal the true ones are follows
    from how unequal the estimates are, and no weight has to be chosen.
    """
    n_counted = is_counted.sum(axis=0)
    mean = _mean_where(values, is_counted)
    squares = np.where(is_counted, (values - mean) ** 2, 0.0).sum(axis=0)
    freedom = np.maximum(n_counted - 1, 0).astype(np.float64)
    common = squares.sum() / max(freedom.sum(), 1.0)
    # The mean square of the true variances, and from it their variance over the square of their mean.
    of_squares = (squares**2).sum() / max((freedom * (freedom + 2)).sum(), 1.0)
    inequality = max(of_squares / common**2 - 1, 0.0) if common > 0 else 0.0
    own = squares / np.maximum(freedom, 1.0)
    weight = freedom * inequality / (freedom * inequality + 2 * (1 + inequality))
    return mean, np.maximum(weight * own + (1 - weight) * common, _LOWEST_VARIANCE)


def _mean_where(values: Floats, is_counted: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.where(is_counted, values, 0.0).sum(axis=0) / np.maximum(is_counted.sum(axis=0), 1))


def _log_density(value: Floats, mean: Floats, variance: Floats) -> Floats:
    return np.asarray(-0.5 * (np.log(variance) + (value - mean) ** 2 / variance))


def cross_fitted(
    learner: Learner, outputs: Floats, codes: NDArray[Any], is_member: NDArray[np.bool_], fold: NDArray[Any]
) -> Floats:
    """Return scores of all records, each from a learner that was fitted on the other fold."""
    scores = np.empty(len(outputs))
    for held_out in np.unique(fold):
        known = fold != held_out
        scores[~known] = learner(outputs[known], codes[known], is_member[known], outputs[~known], codes[~known])
    return scores


def forest_learner(reader: Reader, seed: int, n_jobs: int | None) -> Learner:
    """Return a random forest on the outputs, the one-hot label and the signal."""

    def learn(
        outputs: Floats, codes: NDArray[Any], is_member: NDArray[np.bool_], others: Floats, other_codes: NDArray[Any]
    ) -> Floats:
        forest = _forest(len(outputs), seed, n_jobs)
        forest.fit(_features(reader, outputs, codes), is_member)
        return np.asarray(forest.predict_proba(_features(reader, others, other_codes))[:, 1])

    return learn


def shadow_scores(
    reader: Reader,
    outputs: Floats,
    codes: NDArray[Any],
    shadow_outputs: Floats,
    was_in: NDArray[np.bool_],
    *,
    seed: int,
    n_jobs: int | None,
) -> Floats:
    """Return scores of a forest that learned from shadows' outputs who was in their training half.

    The forest sees the label as a feature, so it can treat every class in its own way, as one forest per class would.
    """
    n_shadows, n_records = was_in.shape
    generator = np.random.default_rng(seed)
    n_rows = min(_MOST_SHADOW_ROWS, n_shadows * n_records)
    drawn = generator.choice(n_shadows * n_records, n_rows, replace=False)
    shadow, record = np.divmod(drawn, n_records)
    learn = forest_learner(reader, seed, n_jobs)
    return learn(shadow_outputs[shadow, record], codes[record], was_in[shadow, record], outputs, codes)


def _forest(n_rows: int, seed: int, n_jobs: int | None) -> Any:
    smallest = max(1, min(_SMALLEST_LEAF, n_rows // 50))
    return RandomForestClassifier(
        n_estimators=_N_TREES, min_samples_leaf=smallest, random_state=seed % (2**31), n_jobs=n_jobs
    )


def _features(reader: Reader, outputs: Floats, codes: NDArray[Any]) -> Floats:
    signal = reader.signal(outputs, codes)
    if reader.classes is None:
        return np.column_stack([outputs, codes, signal])
    return np.column_stack([outputs, np.eye(len(reader.classes))[codes], signal])
