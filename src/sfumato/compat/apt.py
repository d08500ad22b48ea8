# SPDX-License-Identifier: Apache-2.0
"""Compatibility classes for ai-privacy-toolkit: ``apt.anonymization.Anonymize`` and its ``ArrayDataset``."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.compat.anonymizing import CompatibleAnonymizer, Feature
from sfumato.errors import InputError
from sfumato.frames import read_table


class ArrayDataset:
    """Records and the predictions of a model on them.

    Parameters
    ----------
    x : pandas.DataFrame, polars.DataFrame, pyarrow.Table, array or list
    y : array-like, optional
        Predictions of the original model on these records.
    features_names : list, optional
        Names of the columns of an array.
    """

    def __init__(self, x: Any, y: Any = None, features_names: list[Feature] | None = None, **ignored: Any) -> None:
        self.is_pandas = type(x).__module__.startswith("pandas")
        columns = list(x.columns) if self.is_pandas else None
        if columns is not None and features_names and list(features_names) != columns:
            raise InputError("The supplied features are not the same as in the data features. Leave them out.")
        self.features_names = columns if columns is not None else features_names
        self._x, self._y = x, None if y is None else np.asarray(y)
        if self._y is not None and len(self._y) != read_table(x).n_records:
            raise InputError("Non equivalent lengths of x and y: expected one prediction per record.")

    def get_samples(self) -> Any:
        """Return the records as an array."""
        return np.asarray(self._x)

    def get_labels(self) -> Any:
        """Return the predictions."""
        return self._y

    def get_predictions(self) -> None:
        """Return None, as the original does."""


class Anonymize(CompatibleAnonymizer):
    """Model-guided k-anonymization behind ai-privacy-toolkit's call.

    Parameters
    ----------
    k : int
    quasi_identifiers : list of str or int
        Names for frames, positions for arrays.
    quasi_identifer_slices : list of list, optional
        One-hot columns that stand for one feature each (the name is spelled as the original spells it).
    categorical_features : list, optional
    is_regression : bool, default=False
    train_only_QI : bool, default=False
        Whether groups are formed on quasi-identifiers only.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.compat.apt import Anonymize, ArrayDataset
    >>> x = np.array([[30, 1], [30, 1], [40, 2], [40, 2]])
    >>> Anonymize(2, [0]).anonymize(ArrayDataset(x, [0, 0, 1, 1])).tolist()
    [[30, 1], [30, 1], [40, 2], [40, 2]]
    """

    def anonymize(self, dataset: ArrayDataset) -> Any:
        """Return the records of a dataset, k-anonymous, in the kind of frame or array they came in."""
        return self._anonymized(dataset._x, dataset.get_labels(), dataset.features_names)
