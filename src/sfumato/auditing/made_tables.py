# SPDX-License-Identifier: Apache-2.0
"""Models that learn from a table which a protection makes: synthetic records, noisy counts, a private release.

Each is an estimator that takes raw records, so that it can be measured, attacked and copied for shadow models like any
other. ``protections`` makes them; they are for measuring, and nothing of them is published.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from sfumato.anonymize import AnonymizedClassifier
from sfumato.arguments import wrapped_has
from sfumato.attack.shadows import with_seeds
from sfumato.errors import InputError, ParameterError
from sfumato.frames import Table, read_table
from sfumato.frames.assembling import select, with_column


class LearnsFromTable(MetaEstimatorMixin, BaseEstimator):
    """Base: make a table of the records, train the estimator on it, predict raw records.

    Attributes
    ----------
    table_ : frame
        The table that would be shared, without the target.
    estimator_ : estimator
    privacy_ : PrivacyGuarantee or None
    """

    estimator: Any
    privacy_: Any = None

    def _make(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        """Return the records of the table and their target."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Make the table and train the estimator on it."""
        self.table_, target = self._make(X, np.asarray(y))
        read_table(self.table_)  # explains what is not a table, or has no records, before a model looks at it
        self.estimator_ = self._trained(X, target)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def _trained(self, X: Any, target: NDArray[Any]) -> Any:
        """Return the model that is trained on the table; records look like `X`."""
        return clone(self.estimator).fit(self.table_, target)

    def predict(self, X: Any) -> Any:
        """Predict raw records."""
        return self.estimator_.predict(X)

    @available_if(wrapped_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities of raw records."""
        return self.estimator_.predict_proba(X)

    @available_if(wrapped_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of raw records."""
        return self.estimator_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags


class LearnsFromSynthetic(LearnsFromTable):
    """A model of synthetic records, as many as there are real ones.

    Parameters
    ----------
    estimator : estimator
    synthesizer : object
        With ``fit(table)`` and ``sample(n)``; the table has the target as its last column.
    target : str
        Name of that column.
    """

    def __init__(self, estimator: Any, synthesizer: Any, target: str) -> None:
        self.estimator = estimator
        self.synthesizer = synthesizer
        self.target = target

    def _make(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        own = clone(self.synthesizer, safe=False)
        table = read_table(X)
        own.fit(with_column(X, self.target, y))
        sampled = own.sample(table.n_records)
        self.privacy_ = getattr(own, "privacy_", None)
        return _features_and_target(sampled, table, self.target, y)


def check_synthesizer(name: str, synthesizer: Any) -> None:
    """Raise ParameterError for a synthesizer whose `fit` needs more than a table, or whose `sample` more than a number.

    Parameters
    ----------
    name : str
        Of the protection.
    synthesizer : object
    """
    for method, such_as in (("fit", "table"), ("sample", "n")):
        try:
            parameters = inspect.signature(getattr(synthesizer, method)).parameters.values()
        except (TypeError, ValueError):  # written in C, or wrapped: nothing is known of it
            continue
        needed = [
            p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if len(needed) > 1:
            raise ParameterError(
                f"protections: {name!r} is a {type(synthesizer).__name__} whose {method} needs {len(needed)} arguments:"
                f" expected {method}({such_as}). The table that it is fitted on has the target as its last column."
            )


def _features_and_target(sampled: Any, like: Table, target: str, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """Return synthetic records and their target, or raise InputError where they are not like the real ones."""
    if isinstance(sampled, tuple) or not (hasattr(sampled, "shape") or hasattr(sampled, "column_names")):
        raise InputError(f"sample returned a {type(sampled).__name__}: expected a table with the columns that fit got.")
    table = read_table(sampled)
    names = [*like.names, target]
    if not table.has_named_columns and len(table.names) == len(names):
        places = list(range(len(names)))
        names = list(table.names)
    else:
        missing = [name for name in names if name not in table.names]
        if missing:
            raise InputError(
                f"sample returned a table without {len(missing)} of the {len(names)} columns, such as {missing[0]!r}: "
                "expected those that fit got."
            )
        places = [table.position_of(name) for name in names]
    return select(sampled, places[:-1]), _target_values(table.column(names[-1]), y)


def _target_values(column: Any, y: NDArray[Any]) -> NDArray[Any]:
    if column.missing is not None and column.missing.any():
        raise InputError(
            f"sample returned {int(column.missing.sum()):,} records without a target: expected one for every record."
        )
    values = column.values if column.categories is None else column.categories[column.values]
    if y.dtype.kind == "f":
        return np.asarray(values, np.float64)
    known = np.unique(y)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1) if _comparable(known, values) else None
    if place is None or (known[place] != values).any():
        raise InputError(
            f"sample returned targets that are not among the {len(known)} classes of y: expected classes. Tell the "
            "synthesizer that the last column has categories."
        )
    return np.asarray(known[place])


def _comparable(known: NDArray[Any], values: NDArray[Any]) -> bool:
    return (known.dtype.kind in "biuf") == (np.asarray(values).dtype.kind in "biuf")


class LearnsFromPrivateTable(LearnsFromTable):
    """Base: a table with epsilon is shared, and with it the regions of its cells, which the model learns from.

    Attributes
    ----------
    partition_ : Partition
        With regions that have the noisy counts.
    """

    partition_: Any

    def _trained(self, X: Any, target: NDArray[Any]) -> Any:
        return AnonymizedClassifier(clone(self.estimator)).fit_partition(self.partition_, frame=X)


class LearnsFromPrivateRelease(LearnsFromPrivateTable):
    """A model of a release by a ``PrivateAnonymizer``: regions of drawn records, in cells that are counted with noise.

    The table has drawn values.
    """

    def __init__(self, estimator: Any, anonymizer: Any) -> None:
        self.estimator = estimator
        self.anonymizer = anonymizer

    def _make(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        self.anonymizer_ = clone(self.anonymizer).fit(X, y)
        release = self.anonymizer_.release(values="drawn")
        self.privacy_, self.partition_ = release.privacy, release.partition
        return release.table, np.asarray(release.target)

    def of_cells(self, X: Any, y: NDArray[Any]) -> tuple[Any, Callable[[Any], Any]]:
        """Return a model of the same counts with the values of cells, and what recodes records for it."""
        release = self.anonymizer_.release()
        return clone(self.estimator).fit(release.table, np.asarray(release.target)), self.anonymizer_.transform


class CellsOfOthers:
    """Cells that are learned from other people's records, once, when they are first needed.

    Parameters
    ----------
    estimator : AnonymizedClassifier
        Unfitted.
    X : frame or array
    y : array-like
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self._estimator = with_seeds(estimator, 0)
        self._records = X, np.asarray(y)

    @cached_property
    def fitted(self) -> Any:
        """The fitted estimator."""
        return self._estimator.fit(*self._records)


class LearnsFromCounts(LearnsFromPrivateTable):
    """A model of noisy counts in the cells of a partition that was fitted on other people, and of their regions.

    Parameters
    ----------
    estimator : estimator
    cells : CellsOfOthers
        They are not learned again, for shadows either.
    epsilon : float
    labels : sequence
    """

    def __init__(self, estimator: Any, cells: CellsOfOthers, epsilon: float, labels: Sequence[Any]) -> None:
        self.estimator = estimator
        self.cells = cells
        self.epsilon = epsilon
        self.labels = labels

    def __sklearn_clone__(self) -> LearnsFromCounts:
        return LearnsFromCounts(clone(self.estimator), self.cells, self.epsilon, self.labels)

    def _make(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        release = self._release(X, y, self.cells.fitted.regions_)
        self.privacy_, self.partition_ = release.privacy, release.partition
        return release.table, np.asarray(release.target)

    def of_cells(self, X: Any, y: NDArray[Any]) -> tuple[Any, Callable[[Any], Any]]:
        """Return a model of a release with the values of cells, in place of the other, and what recodes for it."""
        release = self._release(X, y, None)
        model = clone(self.estimator).fit(release.table, np.asarray(release.target))
        return model, self.cells.fitted.anonymizer_.transform

    def _release(self, X: Any, y: NDArray[Any], regions: Any) -> Any:
        anonymizer = copy(self.cells.fitted.anonymizer_)
        # Another object: a second release of one partition needs a ledger, and this one is measured and thrown away.
        anonymizer.partition_ = replace(anonymizer.partition_)
        return anonymizer.release(
            X, y, mechanism="counts", epsilon=self.epsilon, labels=self.labels, fitted_on="others", regions=regions
        )
