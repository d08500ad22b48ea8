# SPDX-License-Identifier: Apache-2.0
"""From one table to two: validate, group, shuffle, check."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from sfumato.anatomize.bucketize import Assignment, assign_groups, largest_l, plan_suppression
from sfumato.anatomize.tables import AnatomizedTable
from sfumato.arguments import as_table_like, is_integer, is_number
from sfumato.columns import Column
from sfumato.errors import GuaranteeError, InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.frames.assembling import with_integers, with_sorted_categories
from sfumato.schema import judge_naming
from sfumato.threads import run_side_by_side


class Anatomizer(BaseEstimator):
    """Divide a table in two, so that exact values can be shared and nobody's sensitive value can be told.

    Parameters
    ----------
    l : int, default=2
        No sensitive value may be in more than 1/l of the records of a group.
    sensitive : str, int or list of these
        The sensitive columns, by name or position. Each is l-diverse on its own.
    identifiers : list of str or int, optional
        Columns that name a person; dropped.
    keep : list of str or int, optional
        Columns that are shared exactly although they seem to name people; others that do are refused.
    suppression_limit : float, default=0.0
        Share of the records that may be left out. With 0, an l that would need it is refused before any work; the
        message says which l works and how many records would have to go. The paper's experiments allow 1.0.
    assignment : {"largest", "random"}, default="largest"
        Xiao and Tao's rule, one record from each of the l most frequent values; or any l values that still allow
        groups for all the others, at random.
    group : str, default="group"
        What to call the column with the number of the group.
    categorical_features : list of str or int, optional
        Sensitive columns of numbers that are codes. Only equality of sensitive values matters, so this is rarely
        needed.
    random_state : int, RandomState or None, default=None
        Whatever is drawn comes from here. None draws anew each time, which is what a release should do: who knows
        the seed knows both orders, and can put the two tables together again.

    Attributes
    ----------
    n_groups_ : int
    n_suppressed_ : int
    group_sizes_ : ndarray of int64
    n_features_in_ : int

    Notes
    -----
    *Guarantee.* See :class:`AnatomizedTable`; counted again on the finished tables before they are handed out.
    A missing sensitive value is a value of its own. Where several records belong to one person, an attacker may tell
    more than 1/l, since the groups count records.

    Lists of categories are sorted, so that their order tells nothing about that of the records; of polars, Categorical
    becomes Enum. Types with an order of their own (ordered categoricals, Enum) keep it: do not declare it from the
    order in which values come up among the records.

    References
    ----------
    Xiao, X., Tao, Y. (2006). Anatomy: simple and effective privacy preservation.
    Mancuhan, K., Clifton, C. (2018). Support vector classification with l-diversity.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import Anatomizer
    >>> people = pa.table({"age": [31, 34, 42, 47], "illness": ["flu", "cold", "flu", "gout"]})
    >>> anatomized = Anatomizer(l=2, sensitive="illness", random_state=0).fit_transform(people)
    >>> anatomized.identifying.column_names, anatomized.sensitive.column_names
    (['age', 'group'], ['illness', 'group'])
    >>> anatomized.n_groups, anatomized.join().num_rows
    (2, 8)
    """

    def __init__(
        self,
        l: int = 2,  # noqa: E741
        *,
        sensitive: Any = None,
        identifiers: Any = None,
        keep: Any = None,
        suppression_limit: float = 0.0,
        assignment: Assignment = "largest",
        group: str = "group",
        categorical_features: Any = None,
        random_state: Any = None,
    ) -> None:
        self.l = l
        self.sensitive = sensitive
        self.identifiers = identifiers
        self.keep = keep
        self.suppression_limit = suppression_limit
        self.assignment = assignment
        self.group = group
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Divide the records into groups, and keep how many there are; the groups themselves are not kept."""
        _, names, codes, random = self._read(X)
        self._grouped(codes, names, random)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> AnatomizedTable:
        """Return the two tables.

        Parameters
        ----------
        X : frame or array of shape (records, columns)
            What a model is to predict may be one of the columns; it leaves with the identifying ones.
        y : ignored
        """
        return self.fit_transform_with_rows(X)[0]

    def fit_transform_with_rows(self, X: Any) -> tuple[AnatomizedTable, NDArray[np.int64]]:
        """Return the two tables and, for every row of the identifying one, the position in X it comes from.

        The positions undo the protection. They are for attacks on the result by its owner, and kept nowhere.
        """
        table, names, codes, random = self._read(X)
        # Two orders that know nothing of each other, nor of the order of the input.
        orders = [partial(order.permutation, table.n_records) for order in random.spawn(2)]
        group, *shuffled = run_side_by_side([partial(self._grouped, codes, names, random), *orders], table.n_records)
        if self.n_suppressed_:
            shuffled = [rows[group[rows] >= 0] for rows in shuffled]

        def taken(rows: NDArray[np.int64], drop: list[str]) -> Any:
            frame = table.replaced({}, drop=drop, keep_rows=rows, compact_categories=True)
            return with_integers(with_sorted_categories(frame), self.group, group[rows])

        hidden = [*names, *self._identifiers(table)]
        apart = [name for name in table.names if name not in names]
        tasks = [partial(taken, rows, drop) for rows, drop in zip(shuffled, (hidden, apart), strict=True)]
        identifying, sensitive = run_side_by_side(tasks, table.n_records)
        anatomized = AnatomizedTable(identifying, sensitive, int(self.l), self.group, self.n_suppressed_)
        anatomized.check()
        return anatomized, shuffled[0]

    def _read(self, X: Any) -> tuple[Table, list[str], NDArray[np.int32], np.random.Generator]:
        """Return the table, its sensitive columns, their values as numbers, and where randomness comes from."""
        self._check_parameters()
        X = as_table_like(X)
        read_table(X)  # says what is wrong with something that is no table before scikit-learn looks at it
        validate_data(self, X, skip_check_array=True)
        table = read_table(X, categorical=self.categorical_features or ())
        names = self._sensitive(table)
        codes = np.column_stack([numbered(table.column(name, for_counting=True)) for name in names])
        self._check_rest(table, names)
        self._check_naming(table, names)
        return table, names, codes, self._random()

    def _random(self) -> np.random.Generator:
        return np.random.default_rng(self._seed())

    def _seed(self) -> list[int]:
        """Draw what all randomness comes from."""
        if self.random_state is None:
            # Not numpy's shared state, which a caller may have seeded with a number that anybody would try.
            return [secrets.randbelow(2**31 - 1) for _ in range(4)]
        seed: list[int] = check_random_state(self.random_state).randint(0, 2**31 - 1, size=4).tolist()
        return seed

    def _grouped(self, codes: NDArray[np.int32], names: list[str], random: np.random.Generator) -> NDArray[np.int64]:
        """Return the group of every record, -1 where it is left out."""
        group = group_records(codes, int(self.l), self.suppression_limit, random, self.assignment, names)
        self.n_groups_ = int(group.max()) + 1
        self.n_suppressed_ = int((group < 0).sum())
        self.group_sizes_ = np.bincount(group[group >= 0] if self.n_suppressed_ else group).astype(np.int64)
        return group

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _check_parameters(self) -> None:
        if not is_integer(self.l) or self.l < 2:
            raise ParameterError(f"{named('l', self.l)}: expected a whole number of at least 2; 2 to 5 is common.")
        limit = self.suppression_limit
        if not is_number(limit) or not 0 <= limit <= 1:
            raise ParameterError(f"{named('suppression_limit', limit)}: expected a share from 0 to 1, such as 0.01.")
        if self.assignment not in ("largest", "random"):
            raise ParameterError(f"{named('assignment', self.assignment)}: expected 'largest' or 'random'.")
        if not isinstance(self.group, str) or not self.group:
            raise ParameterError(f"{named('group', self.group)}: expected the name of a column.")

    def _sensitive(self, table: Table) -> list[str]:
        if self.sensitive is None:
            raise ParameterError(
                f"{named('sensitive')} is not given: expected the columns whose values must not be told about a "
                "person. Name at least one."
            )
        names = list(table.resolve(self.sensitive, "sensitive"))
        if not names:
            raise ParameterError(f"{named('sensitive')} names no column: expected at least one.")
        return names

    def _identifiers(self, table: Table) -> list[str]:
        return list(table.resolve(self.identifiers if self.identifiers is not None else (), "identifiers"))

    def _check_naming(self, table: Table, names: list[str]) -> None:
        """Refuse columns that name people and that nobody gave a role: their exact values would be shared."""
        kept = table.resolve(self.keep if self.keep is not None else (), "keep")
        decided = {*names, *self._identifiers(table), *kept}
        for found in judge_naming(table, [name for name in table.names if name not in decided]):
            if found.names_people is not None:
                raise InputError(
                    f"column {found.name!r} would be shared with its exact values, but {found.names_people}: expected "
                    f"columns that describe people and do not name them. List it in {named('identifiers')} to drop it, "
                    f"or in {named('keep')} to share it."
                )

    def _check_rest(self, table: Table, names: list[str]) -> None:
        dropped = self._identifiers(table)
        both = [name for name in names if name in dropped]
        if both:
            raise ParameterError(
                f"the column {both[0]!r} is named in {named('sensitive')} and in {named('identifiers')}: expected one "
                "role per column. Remove it from one of them."
            )
        if len(names) + len(dropped) == len(table.names):
            raise ParameterError(
                f"no identifying column is left of the {len(table.names)} feature(s): expected at least one beside "
                f"{named('sensitive')} and {named('identifiers')}."
            )
        if self.group in table.names:
            raise InputError(
                f"the table has a column {self.group!r} already: expected a name for the group that is free. "
                f"Choose another with {named('group')}."
            )


def group_records(
    codes: NDArray[np.int32],
    l: int,  # noqa: E741
    suppression_limit: float,
    random: np.random.Generator,
    assignment: Assignment,
    names: list[str],
) -> NDArray[np.int64]:
    """Return the group of every record, -1 for those left out; refuse what the limit does not allow."""
    n_records = len(codes)
    check_enough(n_records, l)
    best = largest_l(codes)
    if best >= l:
        return assign_groups(codes, l, random, assignment)
    kept = plan_suppression(codes, l, random)
    n_dropped = n_records - len(kept)
    if n_dropped / n_records > suppression_limit or not len(kept):
        raise GuaranteeError(refusal(names, l, best, n_records, n_dropped, suppression_limit))
    group = np.full(n_records, -1, np.int64)
    group[kept] = assign_groups(np.ascontiguousarray(codes[kept]), l, random, assignment)
    return group


def check_enough(n_records: int, l: int) -> None:  # noqa: E741
    """Refuse fewer records than one group has."""
    if n_records < l:
        raise InputError(
            f"the table has {n_records} sample(s): expected at least l={l}, since every group has that many records."
        )


def refusal(names: list[str], l: int, best: int, n_records: int, n_dropped: int, limit: float) -> str:  # noqa: E741
    """Say that l is too large for the values and the limit, and what would do.

    Parameters
    ----------
    names : list of str
        The sensitive columns.
    l : int
    best : int
        The largest l without leaving records out; 1: none.
    n_records, n_dropped : int
        All, and those that would have to go.
    limit : float
        The share that may.
    """
    listed = ", ".join(map(repr, names))
    given = f"{named('l', l)} for {listed} with {n_records} records"
    if n_dropped == n_records:
        lower = f"the largest l that works is {best}" if best >= 2 else "no l works without leaving records out"
        return (
            f"{given}: expected at least {l} different values, and {lower}. Lower l; leaving records out does not "
            f"help with {l}."
        )
    lower = f"the largest l that works is {best}" if best >= 2 else "a value has more than half, so no l works"
    how_many = f"{n_dropped}" if n_dropped >= l else f"fewer than {l}"
    advice = "Lower l, or set" if best >= 2 else "Set"
    return (
        f"{given}: expected no value in more than 1/{l} of them, and {lower}. {advice} {named('suppression_limit')} to "
        f"{_rounded_up(n_dropped, n_records)} or more (it is {limit:g}), which leaves out {how_many} records."
    )


def _rounded_up(part: int, whole: int) -> str:
    return f"{-(-part * 10_000 // whole) / 10_000:g}"  # in whole numbers, so that 0.14 is not rounded to 0.1401


def numbered(column: Column) -> NDArray[np.int32]:
    """Return a number from 0 for every value of a column, missing last."""
    if column.kind == "category":
        codes = column.values.astype(np.int32)
        n_values = len(column.categories) if column.categories is not None else 0
    else:
        distinct, inverse = np.unique(column.values, return_inverse=True)
        codes, n_values = inverse.astype(np.int32), len(distinct)
    if column.missing is not None:
        codes[column.missing] = n_values
        # A value that only stood where something was missing has no record.
        is_there = np.bincount(codes) > 0
        codes = (np.cumsum(is_there) - 1).astype(np.int32)[codes]
    return codes
