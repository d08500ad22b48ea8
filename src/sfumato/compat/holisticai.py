# SPDX-License-Identifier: Apache-2.0
"""Compatibility class for ``holisticai.security.mitigation.Anonymize``."""

from __future__ import annotations

from typing import Any

from sfumato.compat.anonymizing import CompatibleAnonymizer


class Anonymize(CompatibleAnonymizer):
    """Model-guided k-anonymization behind holisticai's call.

    Parameters
    ----------
    k : int
    quasi_identifiers : list of str or int
        Names for frames, positions for arrays.
    features : list, optional
        Accepted and not needed.
    features_names : list, optional
        Names of the columns of an array.
    quasi_identifer_slices : list of list, optional
        One-hot columns that stand for one feature each (the name is spelled as the original spells it).
    categorical_features : list, optional
    is_regression : bool, default=False
    train_only_QI : bool, default=False
        Whether groups are formed on quasi-identifiers only.
    """

    def __init__(
        self,
        k: int,
        quasi_identifiers: Any,
        features: list[Any] | None = None,
        features_names: list[Any] | None = None,
        quasi_identifer_slices: list[Any] | None = None,
        categorical_features: list[Any] | None = None,
        is_regression: bool | None = False,
        train_only_QI: bool | None = False,
    ) -> None:
        super().__init__(
            k, quasi_identifiers, quasi_identifer_slices, categorical_features, is_regression, train_only_QI
        )
        self.features = features
        self.features_names = features_names

    def anonymize(self, X_train: Any, y_train: Any) -> Any:
        """Return the records, k-anonymous, in the kind of frame or array they came in.

        Parameters
        ----------
        X_train : frame or array
        y_train : array-like
            Predictions of the original model on these records.
        """
        return self._anonymized(X_train, y_train, self.features_names)
