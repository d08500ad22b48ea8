# SPDX-License-Identifier: Apache-2.0
"""Adult, split once, and the model of its raw records: what the experiments on groups beyond the papers share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


def percent(share: float) -> float:
    """Return a share in percent, with three digits."""
    return round(100 * float(share), 3)


@lru_cache(2)
def raw_model(model: str, seed: int, n_records: int | None) -> Any:
    """Return a model that was trained on the raw training records of a split."""
    from studies.models import make_model

    X_train, _, y_train, _, _ = split(seed, n_records)
    return make_model(model, seed, X_train).fit(X_train, y_train)


@lru_cache(1)
def split(seed: int, n_records: int | None) -> tuple[Any, Any, Any, Any, list[str]]:
    """Return training and test records, training and test classes, and the names of the quasi-identifiers."""
    from sklearn.model_selection import train_test_split

    from studies.tables import load

    adult = load("adult-12")
    X, y = adult.X[:n_records], adult.y[:n_records]
    return *train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y), adult.quasi_identifiers
