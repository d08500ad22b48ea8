# SPDX-License-Identifier: Apache-2.0
"""The models of the studies, each behind an encoder that suits every table."""

from __future__ import annotations

from typing import Any

import numpy as np

MODELS = {
    "gb": "gradient boosting",
    "lr": "logistic regression",
    "rf": "random forest",
    "nn": "neural network",
    "nn-200": "neural network, 200 epochs",
    "hgb": "histogram gradient boosting",
    "xgb": "XGBoost",
    "dt": "decision tree",
}
MOST_CATEGORIES = 64  # of one column, for linear models and networks; the rarer ones share a place


def make_model(name: str, seed: int, frame: Any) -> Any:
    """Return an unfitted model of `MODELS` behind an encoder for frames with the columns of this one."""
    from sklearn.pipeline import make_pipeline

    return make_pipeline(encoder(frame, one_hot=name in ("lr", "nn", "nn-200")), _classifier(name, seed))


def encoder(frame: Any, *, one_hot: bool, scaled: bool | None = None) -> Any:
    """Return what turns the columns of such a frame into numbers: one-hot or ordinal, and scaled where one-hot."""
    scaled = one_hot if scaled is None else scaled
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    numbers = [c for c in frame if frame[c].dtype.kind in "if"]
    categories = [c for c in frame if c not in numbers]
    if one_hot:
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=MOST_CATEGORIES,
            sparse_output=False,
            dtype=np.float32,
        )
    else:  # trees find subsets by themselves
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    of_numbers = _number_encoder(has_missing=bool(frame[numbers].isna().any(axis=None)), scaled=scaled)
    return ColumnTransformer([("numbers", of_numbers, numbers), ("categories", encoder, categories)])


def _number_encoder(*, has_missing: bool, scaled: bool) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not has_missing:
        return StandardScaler() if scaled else "passthrough"
    if scaled:
        return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    # Trees cut a value below all others off by themselves; a column that is missing throughout stops some of them.
    return SimpleImputer(strategy="constant", fill_value=-1, keep_empty_features=True)


def _classifier(name: str, seed: int) -> Any:
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    if name == "xgb":
        from xgboost import XGBClassifier

        return XGBClassifier(random_state=seed, n_jobs=1)
    make = {
        "gb": lambda: GradientBoostingClassifier(random_state=seed),
        "lr": lambda: LogisticRegression(max_iter=1000),
        "rf": lambda: RandomForestClassifier(100, random_state=seed),
        # The paper's network: one hidden layer of 100, relu, adam, learning rate 0.001; the second one also with its
        # 200 epochs of batches of 200, where the first stops early.
        "nn": lambda: MLPClassifier((100,), early_stopping=True, max_iter=60, random_state=seed),
        "nn-200": lambda: MLPClassifier((100,), batch_size=200, max_iter=200, n_iter_no_change=200, random_state=seed),
        "hgb": lambda: HistGradientBoostingClassifier(random_state=seed),
        # Grown to the end a tree learns noise; the size of a leaf keeps it near its best on raw data.
        "dt": lambda: DecisionTreeClassifier(min_samples_leaf=20, random_state=seed),
    }
    return make[name]()
