# SPDX-License-Identifier: Apache-2.0
"""Base of the compatibility classes: settings, features by name or position, one-hot slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize import ModelGuidedAnonymizer
from sfumato.errors import InputError, ParameterError
from sfumato.frames import GroupedLabels, GroupedValues, read_table

Feature = str | int


class CompatibleAnonymizer:
    """The settings that both packages have, checked at construction as both check them.

    Parameters
    ----------
    k : int
    quasi_identifiers, categorical_features : sequence of str or int
        By name, or by position.
    quasi_identifer_slices : sequence of sequence, optional
        One-hot columns that stand for one feature each; they stay consistent. Both packages spell the name so.
    is_regression : bool
    train_only_QI : bool
        Whether groups are formed on quasi-identifiers alone; otherwise on all features, as these packages do.
    """

    def __init__(
        self,
        k: int,
        quasi_identifiers: Any,
        quasi_identifer_slices: list[Any] | None = None,
        categorical_features: list[Any] | None = None,
        is_regression: bool | None = False,
        train_only_QI: bool | None = False,
    ) -> None:
        if k < 2:
            raise ParameterError(f"k={k}: k should be a positive integer with a value of 2 or higher.")
        if quasi_identifiers is None or len(quasi_identifiers) < 1:
            raise ParameterError("The list of quasi-identifiers cannot be empty: name at least one feature.")
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.quasi_identifer_slices = quasi_identifer_slices
        self.categorical_features = categorical_features
        self.is_regression = is_regression
        self.train_only_QI = train_only_QI

    def _anonymized(self, frame: Any, guide: Any, features_names: Sequence[Feature] | None) -> Any:
        """Return a table of the same kind whose quasi-identifiers are k-anonymous, guided by predictions.

        Parameters
        ----------
        frame : frame or array
        guide : array-like
            Predictions of a model, or labels.
        features_names : sequence or None
            Names of the columns of an array.
        """
        table = read_table(frame)
        columns = [_name_of(feature, table, features_names) for feature in self.quasi_identifiers]
        codes = [_name_of(feature, table, features_names) for feature in self.categorical_features or ()]
        n_predictions = 0 if guide is None else len(np.asarray(guide))
        if n_predictions != table.n_records:
            raise InputError(
                f"{n_predictions} predictions for {table.n_records} rows: x and y should have same number of rows. "
                "Pass the predictions of the model on these rows."
            )
        groups = [
            [_name_of(feature, table, features_names) for feature in part] for part in self.quasi_identifer_slices or ()
        ]
        sliced = _Slices(table, [group for group in groups if set(group) & set(columns)])
        names = [name for name in columns if name not in sliced.members] + sliced.names
        anonymizer = ModelGuidedAnonymizer(
            self.k,
            quasi_identifiers=names,
            keep=[name for name in table.names if name not in names],
            categorical_features=[name for name in codes if name not in sliced.members and _is_number(table, name)]
            + (sliced.names if table.library == "numpy" else []),
            guide_kind="numbers" if self.is_regression else "labels",
            split_on="quasi_identifiers" if self.train_only_QI else "all",
            representative="median",
        )
        released = anonymizer.fit_transform(sliced.collapsed(), np.asarray(guide))
        return sliced.expanded(released)


def _name_of(feature: Feature, table: Any, features_names: Sequence[Feature] | None) -> str:
    """Find a feature by the names that were given, by the table's own, or by position."""
    if features_names is not None and feature in list(features_names):
        return str(table.names[list(features_names).index(feature)])
    return str(table.resolve([feature], "quasi_identifiers")[0])


def _is_number(table: Any, name: str) -> bool:
    return bool(table.kind(name) == "number")


class _Slices:
    """One-hot columns folded into one column of codes per feature, and back."""

    def __init__(self, table: Any, groups: list[list[str]]) -> None:
        self.table = table
        self.groups = groups
        self.members = {name for group in groups for name in group}
        # The first column of a slice carries its codes while groups are formed; the others hold nothing.
        self.names = [group[0] for group in groups]
        self.rows: list[NDArray[Any]] = []
        self.codes: list[NDArray[np.int64]] = []
        for group in groups:
            stacked = np.column_stack([table.column(name).values for name in group])
            combinations, code = np.unique(stacked, axis=0, return_inverse=True)
            self.rows.append(combinations)
            self.codes.append(code.reshape(-1))

    def collapsed(self) -> Any:
        """Return the table with the codes of a slice in its first column and nothing in its others."""
        new: dict[str, Any] = {}
        for group, rows, code in zip(self.groups, self.rows, self.codes, strict=True):
            nothing = np.zeros(len(code), np.int64)
            for name in group[1:]:
                new[name] = GroupedValues(np.zeros(1, np.int64), None, nothing)
            # Codes as text fit a column of any type of a frame; an array has one type, that of numbers.
            labels = [str(number) for number in range(len(rows))]
            in_array = self.table.library == "numpy"
            new[group[0]] = GroupedValues(np.arange(len(rows)), None, code) if in_array else GroupedLabels(labels, code)
        return self.table.replaced(new)

    def expanded(self, released: Any) -> Any:
        """Return what was released with the one-hot columns as they were, one of them set per record."""
        if not self.groups:
            return released
        after = read_table(released)
        new: dict[str, Any] = {}
        every = np.arange(after.n_records)
        for group, rows in zip(self.groups, self.rows, strict=True):
            column = after.column(group[0])
            code = column.values if column.categories is None else column.categories[column.values]
            for position, name in enumerate(group):
                new[name] = GroupedValues(rows[:, position], None, code.astype(np.int64))
        for name in self.table.names:
            if name not in self.members:
                column = after.column(name)
                new[name] = GroupedValues(column.values, column.missing, every, column.categories)
        return self.table.replaced(new)
