# SPDX-License-Identifier: Apache-2.0
"""Train the four models that the anatomy paper compares, with the same coding of features.

Original (raw records), identifying (without the sensitive columns), pruned (anatomized with l) and anonymized
(k-anonymous with k = l by full-domain generalization, with or without leaving out small groups).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from sfumato.anatomize.bucketize import Assignment
from sfumato.anatomize.classifiers import PrunedClassifier
from sfumato.anatomize.coordinates import Coding, CodingName, learn_coding
from sfumato.anonymize import FullDomainAnonymizer
from sfumato.columns import Column
from sfumato.errors import ParameterError
from sfumato.frames import Table, read_table
from sfumato.hierarchies import Hierarchy

PARTNERS = ("original", "identifying", "pruned", "anonymized")


@dataclass(frozen=True, eq=False)
class CodedModel:
    """A model behind the coding of some columns; `recode` comes first where records must be generalized."""

    model: Any
    coding: Coding
    names: tuple[str, ...]
    codes: tuple[str, ...]
    recode: FullDomainAnonymizer | None = None

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict raw records."""
        columns = _columns(X, self.names, self.codes, self.recode)
        predicted: NDArray[Any] = self.model.predict(self.coding.coordinates(columns))
        return predicted


@dataclass(frozen=True, eq=False)
class Partners:
    """The trained models by name; made by :func:`train_partners`.

    Attributes
    ----------
    models : dict
        ``"original"``, ``"identifying"``, ``"pruned"``, ``"anonymized"``, those that were asked for.
    n_suppressed : int
        Records that the pruned model was trained without.
    n_left_out : int
        Records that the anonymized model was trained without.
    """

    models: Mapping[str, Any]
    n_suppressed: int = 0
    n_left_out: int = 0
    _levels: Mapping[str, int] = field(default_factory=dict)

    def errors(self, X: Any, y: Any) -> dict[str, float]:
        """Return the share of records that each model gets wrong."""
        return {name: 1.0 - float(accuracy_score(y, model.predict(X))) for name, model in self.models.items()}

    @property
    def levels(self) -> Mapping[str, int]:
        """Level of its hierarchy at which the anonymized model sees each column."""
        return self._levels


def train_partners(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    l: int,  # noqa: E741
    sensitive: Any,
    coding: CodingName = "paper",
    partners: Sequence[str] = PARTNERS,
    hierarchies: Mapping[str, Any] | None = None,
    identifiers: Any = None,
    categorical_features: Any = None,
    suppression_limit: float = 1.0,
    most_left_out: float = 0.0,
    assignment: Assignment = "largest",
    random_state: Any = None,
) -> Partners:
    """Train the same estimator on original, identifying, pruned and anonymized records.

    Parameters
    ----------
    estimator : classifier
        Cloned for each partner.
    X, y : frame and labels
    l : int
        For the pruned partner; k of the anonymized one.
    sensitive : str, int or list of these
    coding : {"paper", "one-hot"}
    partners : sequence of str
        Which to train.
    hierarchies : dict, optional
        For the anonymized partner, by column, as ``FullDomainAnonymizer`` takes them. A column of numbers that leaves
        at a coarser level is coded by the mean of the hierarchy's numbers under the label. A column without hierarchy
        stays as it is or vanishes.
    most_left_out : float, default=0.0
        Share of the records that the anonymized partner may be trained without: those of groups of fewer than k.
    identifiers, categorical_features, suppression_limit, assignment, random_state
        As for ``PrunedClassifier``.

    Returns
    -------
    Partners
    """
    unknown = [name for name in partners if name not in PARTNERS]
    if unknown:
        raise ParameterError(f"partners has {unknown[0]!r}: expected some of {', '.join(PARTNERS)}.")
    table = read_table(X)
    secret = table.resolve(sensitive, "sensitive")
    dropped = table.resolve(identifiers if identifiers is not None else (), "identifiers")
    codes = table.resolve(categorical_features or (), "categorical_features")
    shown = tuple(name for name in table.names if name not in (*secret, *dropped))
    labels = np.asarray(y)
    models: dict[str, Any] = {}
    n_suppressed, n_left_out, levels = 0, 0, {}
    if "original" in partners:
        models["original"] = _train(estimator, X, labels, (*shown, *secret), codes, coding)
    if "identifying" in partners:
        models["identifying"] = _train(estimator, X, labels, shown, codes, coding)
    if "pruned" in partners:
        pruned = PrunedClassifier(
            estimator, l, sensitive=sensitive, identifiers=identifiers, coding=coding, assignment=assignment,
            suppression_limit=suppression_limit, categorical_features=categorical_features, random_state=random_state,
        ).fit(X, labels)  # fmt: skip
        models["pruned"], n_suppressed = pruned, pruned.n_suppressed_
    if "anonymized" in partners:
        anonymizer = FullDomainAnonymizer(
            k=l, quasi_identifiers=shown, hierarchies=dict(hierarchies or {}), identifiers=dropped or None,
            keep=secret, categorical_features=codes or None, suppression_limit=most_left_out,
        ).fit(X)  # fmt: skip
        rows = _in_groups_of(l, read_table(anonymizer.transform(X)), shown)
        models["anonymized"] = _train(
            estimator, table.replaced({}, keep_rows=rows), labels[rows], (*shown, *secret), codes, coding, anonymizer
        )
        n_left_out, levels = len(labels) - len(rows), anonymizer.levels_
    return Partners(models, n_suppressed, n_left_out, levels)


def _in_groups_of(k: int, table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows that share the values of all names with at least k - 1 others."""
    columns = [table.column(name) for name in names]
    parts = [part for column in columns for part in (column.values, column.missing) if part is not None]
    codes = np.stack([np.unique(part, return_inverse=True)[1] for part in parts], axis=1)
    _, group, sizes = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    return np.flatnonzero(sizes[group.ravel()] >= k)


def _train(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    names: tuple[str, ...],
    codes: tuple[str, ...],
    coding: CodingName,
    recode: FullDomainAnonymizer | None = None,
) -> CodedModel:
    columns = _columns(X, names, codes, recode)
    learned = learn_coding(columns, coding)
    return CodedModel(clone(estimator).fit(learned.coordinates(columns), y), learned, names, codes, recode)


def _columns(
    X: Any, names: tuple[str, ...], codes: tuple[str, ...], recode: FullDomainAnonymizer | None
) -> list[Column]:
    table = read_table(X, categorical=[name for name in codes if name in names])
    if recode is None:
        return [table.column(name) for name in names]
    generalized = read_table(recode.transform(X))
    columns = []
    for name in names:
        level = recode.levels_.get(name, 0)
        if level == 0:
            columns.append(table.column(name))
        elif table.kind(name) == "number" and name in recode.hierarchies_:
            columns.append(_as_number(generalized.column(name), recode.hierarchies_[name], level))
        else:
            columns.append(generalized.column(name))
    return columns


def _as_number(column: Column, hierarchy: Hierarchy, level: int) -> Column:
    """Return a column of labels of numbers as the mean of the numbers that each label stands for."""
    numbers = np.array([float(value) for value in hierarchy.values])
    of_label = hierarchy.codes[:, level]
    means = np.bincount(of_label, numbers) / np.bincount(of_label)
    place = dict(zip(hierarchy.labels[level], means, strict=True))
    assert column.categories is not None
    values = np.array([place[label] for label in column.categories.tolist()])
    return Column(column.name, "number", values[column.values], column.missing)
