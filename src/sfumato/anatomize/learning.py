# SPDX-License-Identifier: Apache-2.0
"""The base of all learners from anatomized tables: divide records, read candidates, encode what is to be predicted."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from sfumato.anatomize.anatomizer import Anatomizer
from sfumato.anatomize.bucketize import Assignment
from sfumato.anatomize.candidates import Candidates
from sfumato.anatomize.coordinates import CodingName
from sfumato.anatomize.table_division import sensitive_tables
from sfumato.anatomize.tables import AnatomizedTable
from sfumato.arguments import Names, Seed, as_table_like, wrapped_has
from sfumato.errors import InputError, PrivacyWarning
from sfumato.frames import read_table
from sfumato.frames.assembling import select

PARAMETERS = """
    Parameters
    ----------
    estimator : {kind}
        The model to train; it gets the coded records as an array of numbers.
    l : int or dict, default=2
        No sensitive value may be in more than 1/l of the records of a group; one number, or one per column.
    sensitive : str, int or list of these
        The sensitive columns, by name or position.
    joint : bool or list of lists, default=False
        Which sensitive columns share a table; see ``Anatomizer``.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    coding : {{"paper", "one-hot"}}, default="one-hot"
        How columns become numbers; see ``sfumato.anatomize.coordinates``.
"""
MORE_PARAMETERS = """
    suppression_limit : float, default=0.0
        Share of the records that may be left out to reach l.
    assignment : {"largest", "random"}, default="largest"
        How groups are made; see ``Anatomizer``.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    random_state : int, RandomState or None, default=None
"""
GUARANTEE = """
    Notes
    -----
    *Guarantee.* The model was trained on nothing but the tables of ``Anatomizer``, so it reveals no more about who
    has which sensitive value than those tables. Records to predict are raw, as in the paper.
"""


class LearnsFromAnatomy(MetaEstimatorMixin, BaseEstimator):
    """Base of the learners: anatomize, read candidates, predict raw records."""

    estimator: Any
    l: Any  # noqa: E741
    identifiers: Names | None
    coding: CodingName
    suppression_limit: float
    assignment: Assignment
    categorical_features: Collection[str | int] | None
    random_state: Seed

    def _divided(self, X: Any, sensitive: Any, joint: Any = False) -> tuple[Candidates, NDArray[np.int64]]:
        """Anatomize records; return the candidates, and the positions of the identifying rows."""
        table = read_table(X)
        anatomizer = self._anatomizer(table.names, sensitive, joint)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # it is about publishing both tables
            anatomized, rows = anatomizer.fit_transform_with_rows(X)
        tables = sensitive_tables(anatomizer, table)
        hidden = {name for own in tables for name in own.columns}
        hidden |= set(table.resolve(self.identifiers if self.identifiers is not None else (), "identifiers"))
        self._columns = [[name for name in table.names if name not in hidden], *(own.columns for own in tables)]
        self._codes = table.resolve(self.categorical_features or (), "categorical_features")
        self.n_suppressed_, self.n_groups_ = anatomizer.n_suppressed_, anatomizer.n_groups_
        return Candidates.of(anatomized, self._codes_by_table(anatomized)), rows

    def _received(self, anatomized: AnatomizedTable, dropped: Sequence[str] = ()) -> Candidates:
        """Read tables that somebody else made, without some identifying columns."""
        table = read_table(anatomized.identifying)
        if isinstance(anatomized.identifying, np.ndarray):
            raise InputError(
                "an anatomized table of arrays: expected frames, whose columns have names that records to predict can "
                "be read by. Convert the arrays."
            )
        places = [place for place, name in enumerate(table.names) if name not in dropped]
        own = select(anatomized.identifying, places)
        rest = AnatomizedTable(own, anatomized.sensitive, anatomized.l, anatomized.group, anatomized.n_suppressed)
        self._columns = [list(rest.identifying_columns)]
        self._columns += [list(read_table(frame).names[:-1]) for frame in rest.sensitive_tables]
        known = {name for names in self._columns for name in names}
        self._codes = tuple(name for name in self.categorical_features or () if name in known)
        self.n_suppressed_, self.n_groups_ = rest.n_suppressed, rest.n_groups
        for name in ("n_features_in_", "feature_names_in_"):  # of earlier records
            if hasattr(self, name):
                delattr(self, name)
        return Candidates.of(rest, self._codes_by_table(rest))

    def _anatomizer(self, names: tuple[str, ...], sensitive: Any, joint: Any) -> Anatomizer:
        group = "group"
        while any(name.startswith(group) for name in names):
            group += "_"
        return Anatomizer(
            self.l,
            sensitive=sensitive,
            joint=joint,
            identifiers=self.identifiers,
            keep=list(names),  # nothing is shared: the tables stay inside the learner
            suppression_limit=self.suppression_limit,
            assignment=self.assignment,
            group=group,
            random_state=self.random_state,
        )

    def _codes_by_table(self, anatomized: AnatomizedTable) -> list[list[str]]:
        """Return the names of the numeric categories in every table; arrays number their columns again."""
        found: list[list[str]] = []
        for names, frame in zip(self._columns, (anatomized.identifying, *anatomized.sensitive_tables), strict=True):
            own_names = read_table(frame).names
            found.append([own_names[place] for place, name in enumerate(names) if name in self._codes])
        return found

    def _random(self) -> np.random.Generator:
        """Return a source for draws among candidates, which say nothing that the tables do not."""
        return np.random.default_rng(check_random_state(self.random_state).randint(0, 2**31 - 1, size=4).tolist())

    def _coded(self, X: Any) -> NDArray[np.float64]:
        """Return raw records in the coordinates of training."""
        check_is_fitted(self, "estimator_")
        X = as_table_like(X)
        read_table(X)
        if hasattr(self, "n_features_in_"):  # received tables have no order of columns
            validate_data(self, X, reset=False, skip_check_array=True)
        table = read_table(X, categorical=self._codes)
        coded: NDArray[np.float64] = self.coding_.coordinates(
            [table.column(name) for names in self._columns for name in names]
        )
        return coded

    @available_if(wrapped_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict raw records, sensitive columns included."""
        coded = self._coded(X)
        return self.estimator_.predict(coded)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # missing numbers are at the mean, missing categories are one
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def column_of(anatomized: AnatomizedTable, y: Any) -> tuple[Any, list[str]]:
    """Return the classes of identifying rows, and the names of the columns they were taken from.

    `y` is the name of an identifying column, or one class per row.
    """
    if isinstance(y, str):
        table = read_table(anatomized.identifying)
        if y not in anatomized.identifying_columns:
            raise InputError(
                f"the identifying table has no column {y!r}: expected that with the classes. Name one of "
                f"{', '.join(map(repr, anatomized.identifying_columns))}, or pass one class per row."
            )
        column = table.column(y, for_counting=True)
        if column.missing is not None and column.missing.any():
            raise InputError(f"the column {y!r} has no class in some rows: expected one in each. Drop those rows.")
        values = column.categories[column.values] if column.categories is not None else column.values
        return np.asarray(values.tolist()), [y]
    labels = column_or_1d(y, warn=True)
    if len(labels) != anatomized.n_records:
        raise InputError(
            f"{len(labels)} labels for {anatomized.n_records} identifying rows: expected one per row, in their order."
        )
    return labels, []
