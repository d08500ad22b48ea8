# SPDX-License-Identifier: Apache-2.0
"""What the private estimators share: public columns, public labels, persons, and the guarantee in words."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InputError, ParameterError, PrivacyWarning, named
from sfumato.frames import Table, read_table
from sfumato.private.accounting import check_delta, check_epsilon
from sfumato.private.encoding import PublicEncoding, shares_of_persons
from sfumato.private.guarantee import PrivacyGuarantee, neighbors

Floats = NDArray[np.float64]


class PrivateEstimator(BaseEstimator):
    """Base of the private estimators."""

    epsilon: float
    delta: float
    bounds: Mapping[str, Sequence[float]] | None
    categories: Mapping[str, Sequence[Any]] | None
    unit: str | None

    def _start(self, X: Any, *, n_intervals: int, allows_infinite: bool = True) -> tuple[Table, Floats | None, int]:
        """Check budget and columns; return the table, the share of each record in its person, and their number."""
        if allows_infinite and isinstance(self.epsilon, float) and self.epsilon == math.inf:
            warnings.warn(
                PrivacyWarning(
                    f"{named('epsilon', self.epsilon)}: no noise is added, so the model is not private. Use it to see "
                    "what privacy costs, and choose a finite epsilon for everything else."
                ),
                stacklevel=3,
            )
        else:
            check_epsilon(self.epsilon)
        check_delta(self.delta)
        table = read_table(X)
        shares, n_persons, unit = None, table.n_records, None
        if self.unit is not None:
            shares, n_persons, unit = shares_of_persons(X, self.unit)
        names = [name for name in table.names if name != unit]
        self.encoding_ = PublicEncoding(names, self.bounds, self.categories, n_intervals)
        self.n_features_in_ = len(table.names)
        if table.has_named_columns:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        return table, shares, n_persons

    def _guarantee(self, mechanism: str, *more: str, unit: str | None = None) -> PrivacyGuarantee:
        given = "bounds and categories were chosen without the records"
        whose = "every person has one record" if unit is None else f"the column {unit!r} names every person"
        return PrivacyGuarantee(
            float(self.epsilon), float(self.delta), neighbors(unit), unit, mechanism, (given, whose, *more)
        )


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """Base of the private classifiers."""

    classes: Sequence[Any] | None

    def _labels(self, y: Any, n_records: int) -> tuple[NDArray[np.intp], str]:
        """Set ``classes_``; return the code of each label, and what is assumed of the list of labels."""
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None. Pass labels.")
        labels = np.asarray(y)
        if labels.shape != (n_records,):
            raise InputError(
                f"y has the shape {labels.shape} and the table {n_records} records: expected one label per record."
            )
        if self.classes is None:
            warnings.warn(
                PrivacyWarning(
                    f"{named('classes')} is not given, so the list of labels is read from y: which labels occur is not "
                    f"protected. Pass {named('classes')}, the list of all labels, if that may tell something."
                ),
                stacklevel=3,
            )
            self.classes_ = np.unique(labels)
            assumed = "the list of labels, read from y, is public"
        else:
            self.classes_ = np.unique(np.asarray(self.classes))
            assumed = "the list of labels was chosen without the records"
        if len(self.classes_) < 2:
            raise ParameterError(
                f"{named('classes')} has {len(self.classes_)} label(s): expected at least two. List all labels."
            )
        try:
            codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        except TypeError:  # of labels that cannot be ordered
            codes = None
        if codes is None or (self.classes_[codes] != labels).any():
            raise InputError(
                f"y has labels that are not among the {len(self.classes_)} of classes=: expected no others. Add them."
            )
        return codes, assumed

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most likely class."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class."""
        logits = self._logits(X)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def decision_function(self, X: Any) -> Floats:
        """Return the logits: one column per class, or one number for two classes."""
        logits = self._logits(X)
        return np.asarray(logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits)

    def _logits(self, X: Any) -> Floats:
        raise NotImplementedError


def fitted_table(estimator: Any, X: Any) -> Table:
    """Return the records to predict as a table.

    Raises
    ------
    sklearn.exceptions.NotFittedError
    """
    check_is_fitted(estimator, "privacy_")
    return read_table(X)
