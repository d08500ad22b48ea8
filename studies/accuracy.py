# SPDX-License-Identifier: Apache-2.0
"""How accurate a model is after anonymizing: train on raw records, anonymize them, train again, test both.

Shared by the experiments ``adult_utility`` and ``classic_methods``, which differ in their keys.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from studies.clock import processor_seconds
from studies.methods import DEFAULT, METHODS, PAPER_SETTINGS, Method
from studies.models import MODELS, make_model
from studies.tables import TITLES as TABLE_TITLES
from studies.tables import Table, load

MADE = {**METHODS, **DEFAULT, **PAPER_SETTINGS}
RAW = "raw"  # the method of the model that was trained on the records as they are; its k is 0
BY = ("table", "model", "seed", "method", "k")
TOGETHER = BY[:3]  # what shares a model trained on raw records
TITLES = {
    **TABLE_TITLES,
    **MODELS,
    **{name: method.title for name, method in MADE.items()},
    RAW: "raw records",
}


class Key(NamedTuple):
    """One cell to run: one model on one split of one table, trained on what one method made of it."""

    table: str
    model: str
    seed: int
    method: str
    k: int


@dataclass(frozen=True)
class Cell:
    """Result of a cell.

    Attributes
    ----------
    table, model, method : str
        Names in ``tables``, ``models`` and ``methods``.
    seed, k : int
    accuracy : float
        On raw test records, in percent.
    transformed : float or None
        The same on test records that went through the method's groups.
    ranking : float or None
        Area under the ROC curve on raw test records, in percent: how often a record of class 1 gets a higher
        probability than one of class 0. It sees what accuracy does not where one class is rare.
    n_groups : int or None
    information_loss : float or None
        Of the training records, from 0 to 1.
    seconds : float or None
        Anonymizing, training and testing.
    environment : str or None
        The machine and the versions.
    """

    table: str
    model: str
    seed: int
    method: str
    k: int
    accuracy: float
    transformed: float | None = None
    ranking: float | None = None
    n_groups: int | None = None
    information_loss: float | None = None
    seconds: float | None = None
    environment: str | None = None

    @property
    def key(self) -> Key:
        """Return the key of the cell."""
        return Key(self.table, self.model, self.seed, self.method, self.k)


def as_cells(kept: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Read kept cells."""
    names = {entry.name for entry in fields(Cell)}
    return [Cell(**{name: value for name, value in cell.items() if name in names}) for cell in kept]


def run(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Run the cells of one table, model and split; only their number differs at the paper's scale."""
    for cell in accuracies([Key(*(key[name] for name in BY)) for key in keys]):
        yield {name: value for name, value in asdict(cell).items() if value is not None and name not in BY}


@dataclass(frozen=True)
class Dealt:
    """Records of one split; the tree of a guided method grows on its own where the split is the paper's."""

    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any
    X_tree: Any
    y_tree: Any


def deal(table: Table, seed: int) -> Dealt:
    """Deal 80% of the records to train on and 20% to test on, or 40%, 40% and 20% as in the paper."""
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(
        table.X, table.y, test_size=0.2, random_state=seed, stratify=table.y
    )
    X_tree, y_tree = X_train, y_train
    if table.has_paper_split:
        X_train, X_tree, y_train, y_tree = train_test_split(
            X_train, y_train, test_size=0.5, random_state=seed, stratify=y_train
        )
    return Dealt(X_train, X_test, y_train, y_test, X_tree, y_tree)


@dataclass(frozen=True)
class Released:
    """What a method makes of training records."""

    records: Any
    anonymizer: Any
    n_groups: int
    information_loss: float | None


def made_by(method: str) -> Method:
    """Return a method by its name."""
    return MADE[method]


def released(table: Table, dealt: Dealt, method: str, k: int, probabilities: tuple[Any, Any] | None) -> Released:
    """Anonymize training records; the probabilities are the raw model's, of these and of those the tree grows on."""
    own = MADE[method]
    anonymizer = _made_for(table, method, k)
    of_train, of_tree = probabilities or (None, None)
    guide = _guide(own.guide, of_train, dealt.y_train)
    if table.has_paper_split and guide is not None:
        anonymizer.fit(dealt.X_tree, _guide(own.guide, of_tree, dealt.y_tree))
        return _released_others(anonymizer, dealt.X_train, guide)
    records = anonymizer.fit_transform(dealt.X_train, guide)
    information_loss = getattr(anonymizer, "information_loss_", None)  # Algorithm 1 measures none
    return Released(records, anonymizer, int(anonymizer.n_groups_), information_loss)


def accuracies(keys: Sequence[Key]) -> Iterator[Cell]:
    """Run cells of one table, model and split, which share the model trained on raw records."""
    from sklearn.metrics import roc_auc_score

    warnings.filterwarnings("ignore")  # non-converged networks and constant columns of small groups
    name, model, seed = keys[0][:3]
    table = load(name)
    dealt = deal(table, seed)
    X_test, y_test = dealt.X_test, dealt.y_test
    _compile({key.method for key in keys} - {RAW}, table, dealt.X_train[:1000], dealt.y_train[:1000])
    start = processor_seconds()
    guided = [key for key in keys if key.method != RAW and MADE[key.method].guide in ("probabilities", "predictions")]
    is_needed = bool(guided) or any(key.method == RAW for key in keys)
    raw = make_model(model, seed, table.X).fit(dealt.X_train, dealt.y_train) if is_needed else None
    probabilities = (raw.predict_proba(dealt.X_train), raw.predict_proba(dealt.X_tree)) if guided else None

    def percent(fitted: Any, records: Any) -> float:
        return round(100 * float(fitted.score(records, y_test)), 3)

    def cell(key: Key, fitted: Any, **more: Any) -> Cell:
        ranking = round(100 * float(roc_auc_score(y_test, fitted.predict_proba(X_test)[:, 1])), 3)
        accuracy, seconds = percent(fitted, X_test), round(processor_seconds() - start, 2)
        return Cell(*key, accuracy, ranking=ranking, **more, seconds=seconds)

    for key in keys:
        if key.method == RAW:
            yield cell(key, raw)
            continue
        start = processor_seconds()
        own = released(table, dealt, key.method, key.k, probabilities)
        again = make_model(model, seed, table.X).fit(own.records, dealt.y_train)
        # Where the tree grew on other records, new ones would be written with values that the model has not seen.
        transformed = None if table.has_paper_split else percent(again, own.anonymizer.transform(X_test))
        loss = None if own.information_loss is None else round(float(own.information_loss), 4)
        yield cell(key, again, transformed=transformed, n_groups=own.n_groups, information_loss=loss)


def _released_others(anonymizer: Any, X_train: Any, guide: Any) -> Released:
    """Return other records than the tree grew on.

    Thin groups are joined, so that k holds for what is released; not by Algorithm 1, which is as in the paper.
    """
    from studies.paper_method import PaperAnonymizer

    if isinstance(anonymizer, PaperAnonymizer):
        return Released(anonymizer.release(X_train, guide), anonymizer, int(anonymizer.n_groups_), None)
    release = anonymizer.release(X_train, guide, shuffle=False)
    measures = release.measures
    return Released(release.table, anonymizer, int(measures["n_groups"]), measures["information_loss"])


def _compile(methods: set[str], table: Table, X: Any, y: Any) -> None:
    """Run every method once on a few records, so that no cell's seconds hold the compilation of kernels."""
    for method in methods:
        _made_for(table, method, 10).fit_transform(X, y)


def _made_for(table: Table, method: str, k: int) -> Any:
    anonymizer = MADE[method].make(k, table.quasi_identifiers)
    if table.keep and "keep" in anonymizer.get_params():
        anonymizer.set_params(keep=list(table.keep))
    return anonymizer


def _guide(kind: str | None, probabilities: Any, y: Any) -> Any:
    if kind is None:
        return None
    if kind == "labels":
        return y
    return probabilities if kind == "probabilities" else probabilities.argmax(axis=1)
