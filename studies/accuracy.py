# SPDX-License-Identifier: Apache-2.0
"""How a cell comes about: train on raw records, anonymize them, train again, test both. Called by ``runner``."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from studies.cells import RAW, Cell, Key
from studies.methods import METHODS
from studies.models import make_model
from studies.tables import Table, load


def accuracies(keys: Sequence[Key]) -> Iterator[Cell]:
    """Run cells of one table, model and split, which share the model trained on raw records."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import train_test_split

    warnings.filterwarnings("ignore")  # non-converged networks and constant columns of small groups
    name, model, seed = keys[0][:3]
    table = load(name)
    X_train, X_test, y_train, y_test = train_test_split(
        table.X, table.y, test_size=0.2, random_state=seed, stratify=table.y
    )
    X_tree, y_tree = X_train, y_train
    if table.has_paper_split:
        X_train, X_tree, y_train, y_tree = train_test_split(
            X_train, y_train, test_size=0.5, random_state=seed, stratify=y_train
        )
    _compile({key.method for key in keys} - {RAW}, table, X_train[:1000], y_train[:1000])
    start = time.perf_counter()
    is_needed = any(key.method == RAW or METHODS[key.method].guide in ("probabilities", "predictions") for key in keys)
    raw = make_model(model, seed, table.X).fit(X_train, y_train) if is_needed else None

    def percent(fitted: Any, records: Any) -> float:
        return round(100 * float(fitted.score(records, y_test)), 3)

    def cell(key: Key, fitted: Any, **more: Any) -> Cell:
        ranking = round(100 * float(roc_auc_score(y_test, fitted.predict_proba(X_test)[:, 1])), 3)
        accuracy, seconds = percent(fitted, X_test), round(time.perf_counter() - start, 2)
        return Cell(*key, accuracy, ranking=ranking, **more, seconds=seconds, environment=environment())

    for key in keys:
        if key.method == RAW:
            yield cell(key, raw)
            continue
        start = time.perf_counter()
        method = METHODS[key.method]
        anonymizer = method.make(key.k, table.quasi_identifiers)
        guide = _guide(method.guide, raw, X_train, y_train)
        if table.has_paper_split and guide is not None:
            anonymizer.fit(X_tree, _guide(method.guide, raw, X_tree, y_tree))
            release = anonymizer.release(X_train, guide)  # thin groups are joined: k holds for what is released
            released, n_groups = release.table, release.measures["n_groups"]
            information_loss = release.measures["information_loss"]
        else:
            released, n_groups = anonymizer.fit_transform(X_train, guide), anonymizer.n_groups_
            information_loss = anonymizer.information_loss_
        again = make_model(model, seed, table.X).fit(released, y_train)
        # Where the tree grew on other records, new ones would be written with values that the model has not seen.
        transformed = None if table.has_paper_split else percent(again, anonymizer.transform(X_test))
        yield cell(
            key, again, transformed=transformed, n_groups=int(n_groups),
            information_loss=round(float(information_loss), 4),
        )  # fmt: skip


def _compile(methods: set[str], table: Table, X: Any, y: Any) -> None:
    """Run every method once on a few records, so that no cell's seconds hold the compilation of kernels."""
    for method in methods:
        METHODS[method].make(10, table.quasi_identifiers).fit_transform(X, y)


def _guide(kind: str | None, raw: Any, X_train: Any, y_train: Any) -> Any:
    if kind is None:
        return None
    if kind == "labels":
        return y_train
    probabilities = raw.predict_proba(X_train)
    return probabilities if kind == "probabilities" else probabilities.argmax(axis=1)


def environment() -> str:
    """Return the machine and the versions in words."""
    import numpy
    import sklearn

    return (
        f"{platform.machine()}, {os.cpu_count()} cores, one thread, Python {platform.python_version()}, "
        f"numpy {numpy.__version__}, scikit-learn {sklearn.__version__}"
    )
