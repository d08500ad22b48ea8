# SPDX-License-Identifier: Apache-2.0
"""The anatomizer, and how a table in memory is divided: group, shuffle, check."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sfumato.anatomize.bucketize import Assignment
from sfumato.anatomize.table_division import anatomize_table
from sfumato.anatomize.tables import AnatomizedTable, check_groups
from sfumato.arguments import Names, Seed, as_table_like
from sfumato.backends.base import Division
from sfumato.frames import Table
from sfumato.frames.assembling import with_column, with_sorted_categories
from sfumato.grouping import number_values
from sfumato.schema import Judgement, judge_naming
from sfumato.threads import run_side_by_side


class Anatomizer(BaseEstimator):
    """Divide a table, to release exact values without revealing anyone's sensitive value.

    Parameters
    ----------
    l : int or dict, default=2
        No sensitive value may be in more than 1/l of the records of a group; one number for all sensitive columns, or
        one for each, by name or position.
    sensitive : str, int or list of these
        The sensitive columns, by name or position. Each is l-diverse on its own.
    joint : bool or list of lists, default=False
        Which sensitive columns share a table. False: each has a table and groups of its own. True: all are in one
        table, in one row per record, which keeps how they are related and reveals it to an attacker who knows one of
        them. A list has the columns of every shared table, such as ``[["illness", "drug"]]``; the others stay alone.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    keep : list of str or int, optional
        Columns to release although they seem to name people; others that do raise an error.
    suppression_limit : float, default=0.0
        Share of the records that may be suppressed. If l needs more, an error before any work names the largest l that
        works and the number of records to suppress. The paper's experiments allow 1.0.
    assignment : {"largest", "random"}, default="largest"
        Xiao and Tao's rule, one record from each of the l most frequent values; or any l values that still allow
        groups for all the others, at random.
    group : str, default="group"
        Name of the column with the number of the group; with several sensitive tables each has the names of its
        columns behind it.
    categorical_features : list of str or int, optional
        Sensitive columns of numbers that are codes. Only equality of sensitive values matters, so this is rarely
        needed.
    random_state : int, RandomState or None, default=None
        Seed of all draws. None: seeded from OS entropy, as a release should be. An attacker who knows the seed knows
        all orders, and can relink the tables.

    Attributes
    ----------
    n_groups_ : int
        Of all sensitive tables together.
    n_suppressed_ : int
    group_sizes_ : ndarray of int64
        Records of each group, one sensitive table after the other.
    n_features_in_ : int

    Notes
    -----
    *Guarantee.* See :class:`AnatomizedTable`; recounted on the finished tables before they are returned.
    A missing sensitive value is a value of its own. If several records belong to one person, an attacker's chance may
    exceed 1/l, since the groups count records.

    Records are suppressed whole, also if one column alone needs it: a record without its group in one table would show
    that its value there is a frequent one. As few are suppressed as a linear program allows, up to rounding.

    Lists of categories are sorted, so that their order reveals nothing about that of the records; polars Categorical
    becomes Enum. Types with an order of their own (ordered categoricals, Enum) keep it: do not derive it from the order
    of the records.

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

    Two sensitive columns have a table and a group each.

    >>> people = people.append_column("pay", pa.array([1, 2, 2, 3]))
    >>> anatomized = Anatomizer(l=2, sensitive=["illness", "pay"], random_state=0).fit_transform(people)
    >>> anatomized.identifying.column_names
    ['age', 'group_illness', 'group_pay']
    >>> [table.column_names for table in anatomized.sensitive]
    [['illness', 'group_illness'], ['pay', 'group_pay']]
    """

    def __init__(
        self,
        l: Any = 2,  # noqa: E741
        *,
        sensitive: Any = None,
        joint: Any = False,
        identifiers: Names | None = None,
        keep: Names | None = None,
        suppression_limit: float = 0.0,
        assignment: Assignment = "largest",
        group: str = "group",
        categorical_features: Collection[str | int] | None = None,
        random_state: Seed = None,
    ) -> None:
        self.l = l
        self.sensitive = sensitive
        self.joint = joint
        self.identifiers = identifiers
        self.keep = keep
        self.suppression_limit = suppression_limit
        self.assignment = assignment
        self.group = group
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Divide the records into groups, and keep their number and sizes, not the groups themselves."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> AnatomizedTable:
        """Return the tables.

        Parameters
        ----------
        X : frame or array of shape (records, columns)
            The target of a model may be one of the columns; it is released with the identifying ones.
        y : ignored
        """
        return self.fit_transform_with_rows(X)[0]

    def fit_transform_with_rows(self, X: Any) -> tuple[AnatomizedTable, NDArray[np.int64]]:
        """Return the tables and, for every row of the identifying one, the position in X it comes from.

        The positions undo the protection. They are for attacks on the result by its owner, and kept nowhere.
        """
        made = anatomize_table(self, MemoryAnatomies(X))
        return made.tables, made.rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class MemoryAnatomies:
    """A table in memory that can be divided."""

    def __init__(self, X: Any) -> None:
        self._given = X

    def example(self) -> Any:
        """Return the whole table."""
        return as_table_like(self._given)

    def judge_naming(self, head: Table, names: Sequence[str]) -> Iterable[Judgement]:
        """Judge whether columns name people."""
        return judge_naming(head, names)

    @contextmanager
    def divided(self, division: Division) -> Iterator[AnatomyInMemory]:
        """Yield the tables."""
        table, rule = division.head, division.rule
        n_records = table.n_records
        codes = np.column_stack([number_values(table.column(name, for_counting=True)) for name in division.columns])
        draws = division.draws()
        # Orders that know nothing of each other, nor of the order of the input.
        orders = [partial(order.permutation, n_records) for order in draws.orders]
        group, *shuffled = run_side_by_side([partial(rule.group, codes, draws), *orders], n_records)
        is_kept = group[:, 0] >= 0
        n_suppressed = n_records - int(is_kept.sum())
        if n_suppressed:
            shuffled = [rows[is_kept[rows]] for rows in shuffled]

        def taken(rows: NDArray[np.int64], names: list[str], groups: dict[str, int]) -> Any:
            hidden = [name for name in table.names if name not in names]
            frame = table.replaced({}, drop=hidden, keep_rows=rows, compact_categories=True)
            frame = with_sorted_categories(frame)
            for name, place in groups.items():
                frame = with_column(frame, name, group[rows, place])
            return frame

        of_table = {name: place for place, name in enumerate(division.groups)}
        parts = [(division.identifying, of_table)]
        parts += [(own.columns, {own.group: of_table[own.group]}) for own in division.sensitive]
        tasks = [partial(taken, rows, *part) for rows, part in zip(shuffled, parts, strict=True)]
        identifying, *sensitive = run_side_by_side(tasks, n_records)
        sizes = [np.bincount(own[is_kept]).astype(np.int64) for own in group.T]
        is_one = len(sensitive) == 1
        tables = AnatomizedTable(
            identifying,
            sensitive[0] if is_one else tuple(sensitive),
            rule.ls[0] if len(set(rule.ls)) == 1 else rule.ls,
            division.groups[0] if is_one else tuple(division.groups),
            n_suppressed,
        )
        yield AnatomyInMemory(division, tables, shuffled[0], np.concatenate(sizes))


@dataclass(frozen=True, eq=False)
class AnatomyInMemory:
    """The tables, and the rows of the source that the identifying ones come from."""

    division: Division
    tables: AnatomizedTable
    rows: NDArray[np.int64]
    group_sizes: NDArray[np.int64]

    @property
    def n_suppressed(self) -> int:
        """Number of suppressed records."""
        return self.tables.n_suppressed

    def recount(self) -> int:
        """Count the groups again; return how many there are."""
        for pair, own in zip(self.tables.pairs, self.division.sensitive, strict=True):
            check_groups(pair.identifying, pair.sensitive, list(self.division.ls_of(own).values()))
        return len(self.group_sizes)
