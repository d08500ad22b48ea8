# SPDX-License-Identifier: Apache-2.0
"""The slicer: column groups of one table, each in its own order within buckets of records.

Slicing is a relative of anatomy. An anatomy breaks the link of identifying and sensitive columns; slicing breaks the
links of all column groups, and keeps what is related within each. Reads like ``anatomizer``: settle the roles, suppress
what must be, form buckets, shuffle, check.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sfumato.anatomize.bucketize import assign_groups
from sfumato.anatomize.column_groups import group_columns, settle_column_groups
from sfumato.anatomize.sliced_table import SlicedTable
from sfumato.anatomize.table_division import DiverseGroups, Roles, drawn_seed, settle_roles
from sfumato.arguments import Names, Seed, as_table_like, check_integer, check_share
from sfumato.backends.memory import MemorySource
from sfumato.errors import GuaranteeError, named
from sfumato.frames import Table, read_table
from sfumato.frames.assembling import select, side_by_side, with_column, with_sorted_categories
from sfumato.grouping import group_rows, number_values
from sfumato.partition.guides import Guide
from sfumato.partition.hilbert_curve import grid_coordinates, hilbert_keys, make_grid, sort_keys
from sfumato.schema import judge_naming

_WINDOW = 8  # records of a value, along the curve, among which a bucket draws its own


class Slicer(BaseEstimator):
    """Release exact values in column groups, each shuffled within buckets of similar records.

    Parameters
    ----------
    l : int or dict, default=2
        No sensitive value may be in more than 1/l of the records that an attacker cannot tell apart in a bucket; one
        number for all sensitive columns, or one for each.
    sensitive : str, int or list of these
        The sensitive columns, by name or position.
    column_groups : list of lists, optional
        The columns that stay together; each column in one list. None: columns that depend on each other most go
        together, by their mean-square contingency, and every sensitive column stays alone.
    max_columns : int, default=3
        Columns of a group at the most, where `column_groups` is None.
    bucket_size : int, optional
        Fewest records of a bucket; None: l. More records hide a column group better, and break more of the relations
        between groups.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    keep : list of str or int, optional
        Columns to release although they seem to name people; others that do raise an error.
    suppression_limit : float, default=0.0
        Share of the records that may be suppressed to reach l.
    bucket : str, default="bucket"
        Name of the column with the number of the bucket.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    random_state : int, RandomState or None, default=None
        Seed of all draws. None: seeded from OS entropy, as a release should be. An attacker who knows the seed can put
        the records together again.

    Attributes
    ----------
    column_groups_ : list of list of str
    n_buckets_, n_suppressed_ : int
    n_features_in_ : int

    Notes
    -----
    *Guarantee.* See :class:`SlicedTable`; recounted on the finished table before it is returned.

    Buckets hold records that follow each other on a Hilbert curve through all columns but the sensitive ones, so that
    shuffling moves values between similar records. The paper divides records as Mondrian does; with l near its limit,
    that leaves a single bucket.

    If a sensitive column shares a group with others, records that agree in those are l-diverse by themselves, bucket by
    bucket. Rare values in such a group make buckets large, or l impossible.

    References
    ----------
    Li, T., Li, N., Zhang, J., Molloy, I. (2012). Slicing: a new approach for privacy preserving data publishing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import Slicer
    >>> people = pa.table({"age": [31, 34, 42, 47], "sex": [*"fmfm"], "illness": ["flu", "cold", "flu", "gout"]})
    >>> sliced = Slicer(l=2, sensitive="illness", column_groups=[["age", "sex"], ["illness"]], random_state=0)
    >>> sliced.fit_transform(people).table.column_names
    ['age', 'sex', 'illness', 'bucket']
    """

    def __init__(
        self,
        l: Any = 2,  # noqa: E741
        *,
        sensitive: Any = None,
        column_groups: Any = None,
        max_columns: int = 3,
        bucket_size: int | None = None,
        identifiers: Names | None = None,
        keep: Names | None = None,
        suppression_limit: float = 0.0,
        bucket: str = "bucket",
        categorical_features: Collection[str | int] | None = None,
        random_state: Seed = None,
    ) -> None:
        self.l = l
        self.sensitive = sensitive
        self.column_groups = column_groups
        self.max_columns = max_columns
        self.bucket_size = bucket_size
        self.identifiers = identifiers
        self.keep = keep
        self.suppression_limit = suppression_limit
        self.bucket = bucket
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Slice the records, and keep the column groups and counts, not the table."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> SlicedTable:
        """Return the sliced table.

        Parameters
        ----------
        X : frame or array of shape (records, columns)
        y : ignored
        """
        return self.fit_transform_with_rows(X)[0]

    def fit_transform_with_rows(self, X: Any) -> tuple[SlicedTable, NDArray[np.int64], NDArray[np.int64]]:
        """Return the sliced table, the positions in X of the records that are in it, and the bucket of each.

        Positions and buckets undo the protection. They are for attacks on the result by its owner, and kept nowhere.
        """
        check_share("suppression_limit", self.suppression_limit, hint="0.01 leaves out one record in a hundred.")
        check_integer("max_columns", self.max_columns, 1)
        if self.bucket_size is not None:
            check_integer("bucket_size", self.bucket_size, 2)
        X = as_table_like(X)
        table = read_table(X, categorical=self.categorical_features or ())
        roles = settle_roles(self, table, [self.bucket], lambda names: judge_naming(table, names))
        groups = self._column_groups(table, roles)
        seed = np.random.default_rng(drawn_seed(self.random_state))
        choosing, forming, ordering, *shuffling = seed.spawn(3 + len(groups))
        codes = np.column_stack([number_values(table.column(name, for_counting=True)) for name in roles.sensitive])
        rule = DiverseGroups(
            tuple(roles.diversities[name] for name in roles.sensitive),
            (tuple(range(len(roles.sensitive))),),
            "random",
            self.suppression_limit,
            tuple(roles.sensitive),
        )
        rule.check_enough(table.n_records)
        rows = rule.kept(codes, choosing)
        rows = rows[self._along_the_curve(table, roles, rows, forming)]
        bucket = assign_groups(np.ascontiguousarray(codes[rows]), rule.ls, forming, "random", window=_WINDOW)
        bucket = self._joined(table, roles, groups, rows, bucket)
        bucket = forming.permutation(int(bucket.max()) + 1)[bucket]
        mixed = ordering.permutation(len(rows))
        rows, bucket = rows[mixed], bucket[mixed]
        frame = _shuffled(table, groups, rows, bucket, shuffling)
        frame = with_column(frame, self.bucket, bucket)
        n_suppressed = table.n_records - len(rows)
        # Arrays number the columns again, in the order of the source, without the identifiers.
        names = dict(
            zip((name for name in table.names if name in roles.released), read_table(frame).names, strict=False)
        )
        sliced = SlicedTable(
            frame,
            tuple(tuple(names[name] for name in own) for own in groups),
            {names[name]: l for name, l in roles.diversities.items()},  # noqa: E741
            self.bucket if self.bucket in read_table(frame).names else read_table(frame).names[-1],
            n_suppressed,
        )
        sliced.check()
        validate_data(self, X, skip_check_array=True)
        self.column_groups_ = [list(own) for own in groups]
        self.n_buckets_, self.n_suppressed_ = sliced.n_buckets, n_suppressed
        return sliced, rows, bucket

    def _column_groups(self, table: Table, roles: Roles) -> list[list[str]]:
        if self.column_groups is not None:
            return settle_column_groups(self.column_groups, table, roles.released)
        own = [name for name in roles.released if name not in roles.sensitive]
        return [*group_columns(table, own, self.max_columns), *([name] for name in roles.sensitive)]

    def _along_the_curve(
        self, table: Table, roles: Roles, rows: NDArray[np.int64], random: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the order of some records on a Hilbert curve through their identifying columns, ties at random."""
        names = [name for name in roles.released if name not in roles.sensitive]
        source = MemorySource(table, names)
        grid = make_grid(source.layout)
        mixed = random.permutation(len(rows))
        codes = source.records(Guide(0)).codes[rows[mixed]]
        return mixed[sort_keys(hilbert_keys(grid_coordinates(codes, grid), grid.n_bits))[0]]

    def _joined(
        self,
        table: Table,
        roles: Roles,
        groups: list[list[str]],
        rows: NDArray[np.int64],
        bucket: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Join buckets that follow each other until they are large enough, and l-diverse beside known columns."""
        conditions = []
        for own in groups:
            beside = [name for name in own if name not in roles.sensitive]
            columns = [number_values(table.column(name, for_counting=True))[rows] for name in beside]
            known = group_rows(columns, len(rows))
            for name in (name for name in own if name in roles.sensitive and beside):
                values = number_values(table.column(name, for_counting=True))[rows]
                conditions.append((known.tolist(), values.tolist(), roles.diversities[name]))
        least = self.bucket_size or 0
        if not conditions and least <= max(roles.diversities.values()):
            return bucket
        joined = _join_neighbors(bucket, conditions, least)
        if joined is None:
            raise GuaranteeError(
                f"{named('column_groups')}: with {len(rows)} records a sensitive column is not l-diverse among records "
                "that agree in the columns of its group: expected so in the whole table. Take columns with rare values "
                f"out of its group, or lower {named('l')}."
            )
        return joined

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _shuffled(
    table: Table,
    groups: list[list[str]],
    rows: NDArray[np.int64],
    bucket: NDArray[np.int64],
    shuffling: list[np.random.Generator],
) -> Any:
    """Return a frame in which the columns of each group come from another record of the bucket."""
    places = np.argsort(bucket, kind="stable")
    frame, order = None, np.arange(len(rows))
    for own, random in zip(groups, shuffling, strict=True):
        taken = np.empty(len(rows), np.int64)
        taken[places] = rows[np.lexsort((random.random(len(rows)), bucket))]
        hidden = [name for name in table.names if name not in own]
        part = table.replaced({}, drop=hidden, keep_rows=taken, compact_categories=True)
        part = with_sorted_categories(part)
        frame = part if frame is None else side_by_side(frame, order, part, order)
    listed = [name for own in groups for name in sorted(own, key=table.names.index)]
    names = [name for name in table.names if name in listed]
    return select(frame, [listed.index(name) for name in names])


def _join_neighbors(
    bucket: NDArray[np.int64], conditions: list[tuple[list[int], list[int], int]], least: int
) -> NDArray[np.int64] | None:
    """Join buckets, in the order of their numbers, until each has enough records and meets all conditions.

    A condition has the known values of records, their sensitive values, and l. None if all records together fail.
    """
    order = np.argsort(bucket, kind="stable")
    starts = np.flatnonzero(np.diff(bucket[order], prepend=-1))
    parts = [part.tolist() for part in np.split(order, starts[1:])]
    unions: list[list[int]] = []
    counts = _Counts(conditions)
    current: list[int] = []
    for part in parts:
        current += part
        counts.add(part)
        if len(current) >= least and not counts.n_failing:
            unions.append(current)
            current, counts = [], _Counts(conditions)
    while current:  # what is left at the end joins the unions before it
        if len(current) >= least and not counts.n_failing:
            unions.append(current)
            break
        if not unions:
            return None
        before = unions.pop()
        counts.add(before)
        current = before + current
    found = np.empty(len(bucket), np.int64)
    for number, union in enumerate(unions):
        found[union] = number
    return found


class _Counts:
    """The sensitive values of records with the same known values, as records are added."""

    def __init__(self, conditions: list[tuple[list[int], list[int], int]]) -> None:
        self.conditions = conditions
        self._of_pair: list[dict[tuple[int, int], int]] = [{} for _ in conditions]
        self._of_known: list[dict[int, list[int]]] = [{} for _ in conditions]
        self._failing: list[set[int]] = [set() for _ in conditions]

    @property
    def n_failing(self) -> int:
        """Known values among whose records a sensitive value is too frequent."""
        return sum(map(len, self._failing))

    def add(self, records: list[int]) -> None:
        """Count some more records."""
        every = zip(self.conditions, self._of_pair, self._of_known, self._failing, strict=True)
        for (known, values, l), of_pair, of_known, failing in every:  # noqa: E741
            for record in records:
                own, pair = known[record], (known[record], values[record])
                of_pair[pair] = of_pair.get(pair, 0) + 1
                entry = of_known.setdefault(own, [0, 0])
                entry[0] += 1
                entry[1] = max(entry[1], of_pair[pair])
            for own in {known[record] for record in records}:
                n, most = of_known[own]
                (failing.add if most * l > n else failing.discard)(own)
