# SPDX-License-Identifier: Apache-2.0
"""Attacks that learn what members look like: a forest on the target's outputs, and one on the outputs of shadows.

The attacker of the first kind knows for half of the records whether they are members, as in section 4.2 of Goldsteen
et al. (2021) and Nasr et al. (2018); scores are cross-fitted over two halves. The attacker of the second kind (Shokri
et al., 2017) knows nobody's membership in the target and learns from shadow models, whose members are known.
``membership_network`` holds the network of the first kind; ``membership`` calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from sfumato.attack.membership_signals import Floats, Reader

#: Fits on outputs, labels and membership of known records, and scores others; higher is more likely a member.
Learner = Callable[[Floats, NDArray[Any], NDArray[np.bool_], Floats, NDArray[Any]], Floats]

_N_TREES = 100
_SMALLEST_LEAF = 20  # outputs of a model that votes have many ties, and a leaf of one record would only repeat it
_MOST_SHADOW_ROWS = 60_000


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
