# SPDX-License-Identifier: Apache-2.0
"""One model on half of the records, measured and attacked: for studies that keep every result of their attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_TAG = 105  # keeps the halves apart from what others draw from the same seed


@dataclass(frozen=True)
class Victim:
    """A model and the membership attacks on it.

    `without_model` is the accuracy of always answering the most frequent class.
    """

    train_accuracy: float
    accuracy: float
    without_model: float
    n_train: int
    n_test: int
    membership: Mapping[str, Any]


def attack_on_half(
    X: Any, y: Any, estimator: Any, *, attacks: Sequence[str], n_shadows: int, seed: int, cache: str | None = None
) -> Victim:
    """Train on a random half, measure on the other, and attack the model."""
    from sfumato.attack import attack_membership
    from sfumato.attack.shadows import with_seeds

    is_train = np.random.default_rng([seed, _TAG]).permutation(len(y)) < round(len(y) / 2)
    model = with_seeds(estimator, seed).fit(X[is_train], y[is_train])
    membership = attack_membership(
        model, X, y, is_train,
        attacks=tuple(attacks), estimator=estimator, n_shadows=n_shadows, n_jobs=1, random_state=seed, cache=cache,
    )  # fmt: skip
    right = np.asarray(model.predict(X)) == y
    _, counts = np.unique(y[~is_train], return_counts=True)
    return Victim(
        float(right[is_train].mean()), float(right[~is_train].mean()), float(counts.max() / (~is_train).sum()),
        int(is_train.sum()), int((~is_train).sum()), membership,
    )  # fmt: skip
