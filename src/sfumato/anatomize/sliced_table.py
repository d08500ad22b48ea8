# SPDX-License-Identifier: Apache-2.0
"""A sliced table: column groups were shuffled within buckets, so that only values inside a group belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfumato.anatomize.tables import (
    FILE,
    MANIFEST,
    describe_file,
    plain_table,
    read_manifest,
    read_table_file,
    save_tables,
)
from sfumato.documents import MapOf, check_shape, is_count, is_text, or_none
from sfumato.errors import GuaranteeError, InputError
from sfumato.frames import read_table
from sfumato.frames.assembling import as_arrow
from sfumato.notebooks import facts_as_html
from sfumato.verification import diversity_within

FORMAT = "sfumato sliced table"
VERSION = 1
_MANIFEST = {
    "l": MapOf(lambda value: is_count(value) and value >= 1),
    "column_groups": [[is_text]],
    "bucket": is_text,
    "n_suppressed": or_none(is_count),
    "files": {"sliced": FILE},
}


@dataclass(frozen=True, eq=False)
class SlicedTable:
    """Column groups of records, each in its own order within buckets.

    Attributes
    ----------
    table : frame or array
        One row per record: all columns but identifiers, and the bucket, which is the last column. Values of a row
        that belong to different column groups come from different records of the bucket.
    column_groups : tuple of tuple of str
    diversities : dict of str to int
        The l of each sensitive column.
    bucket : str
        The name of the column with the bucket.
    n_suppressed : int

    Notes
    -----
    *Guarantee.* An attacker knows all columns of a person but the sensitive ones, and looks for buckets that have the
    person's values in every column group. In each such bucket, take the rows whose values in the sensitive column's own
    group agree with the person's: no sensitive value is in more than 1/l of them. So the attacker guesses it with a
    chance of at most 1/l, whatever the chances of the buckets (l-diverse slicing).

    *Not guaranteed.* Values inside a column group are exact and belong to one record: a group with a unique combination
    shows that such a person is in the table, and all of the group's values. An attacker who learns from all buckets
    together how columns are related can do better, as with anatomies. A known sensitive value may reveal others that
    share its column group.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import Slicer
    >>> people = pa.table({"age": [31, 44, 52, 67] * 5, "ill": ["flu", "gout", "cold", "none"] * 5})
    >>> sliced = Slicer(2, sensitive="ill", random_state=0).fit_transform(people)
    >>> sliced.n_records, sliced.table.column_names, dict(sliced.diversities)
    (20, ['age', 'ill', 'bucket'], {'ill': 2})
    """

    table: Any
    column_groups: tuple[tuple[str, ...], ...]
    diversities: Mapping[str, int]
    bucket: str = "bucket"
    n_suppressed: int = 0

    @property
    def n_records(self) -> int:
        """Number of records."""
        return read_table(self.table).n_records

    @property
    def n_buckets(self) -> int:
        """Number of buckets."""
        return len(np.unique(read_table(self.table).column(self.bucket).values))

    def diversity(self) -> dict[str, float]:
        """Return the l that each sensitive column reaches, counted in every bucket beside its group's other columns."""
        found = {}
        for name in self.diversities:
            own = next(group for group in self.column_groups if name in group)
            beside = [column for column in own if column not in self.diversities]
            found[name] = diversity_within(self.table, [self.bucket, *beside], name)
        return found

    def check(self) -> None:
        """Recount the buckets, independently of the code that made them.

        Raises
        ------
        GuaranteeError
            If a sensitive value is above 1/l of the records of a bucket that agree in the columns of its group.
        """
        for name, reached in self.diversity().items():
            if reached < self.diversities[name]:
                raise GuaranteeError(
                    f"l = {self.diversities[name]} does not hold: a bucket has a value of {name!r} in more than "
                    f"1/{self.diversities[name]} of the records that agree in the columns of its group. Nothing is "
                    "released; please report this if sfumato made the buckets."
                )

    def save(self, folder: str | Path, *, format: Literal["parquet", "csv"] = "parquet") -> None:
        """Write ``sliced`` as Parquet or CSV, and ``manifest.json``, to a new folder.

        The folder appears complete or not at all. What was written is read back and its buckets are counted before.
        """
        table = plain_table(as_arrow(self.table))
        most = max(self.diversities.values())
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "l": dict(self.diversities),
            "column_groups": [list(own) for own in self.column_groups],
            "bucket": self.bucket,
            "n_records": self.n_records,
            "n_buckets": self.n_buckets,
            "n_suppressed": self.n_suppressed if self.n_suppressed == 0 or self.n_suppressed >= most else None,
            "files": {"sliced": describe_file("sliced", format, table.schema)},
        }
        save_tables(folder, format, {"sliced": table}, manifest, SlicedTable.load)

    @classmethod
    def load(cls, folder: str | Path) -> SlicedTable:
        """Read what `save` wrote, as an Arrow table, and count its buckets again.

        Raises
        ------
        InputError
            When the folder has no such files.
        GuaranteeError
            When the file does not have the l of its manifest.
        """
        place = Path(folder)
        manifest = read_manifest(place, FORMAT, [VERSION], "SlicedTable.save")
        check_shape(manifest, _MANIFEST, MANIFEST, "SlicedTable.save")
        table = read_table_file(place, manifest["files"]["sliced"])
        groups = tuple(tuple(own) for own in manifest["column_groups"])
        listed = [name for own in groups for name in own]
        if sorted([*listed, manifest["bucket"]]) != sorted(table.column_names) or not set(manifest["l"]) <= set(listed):
            raise InputError(f"{MANIFEST} names other columns than its file has: expected the same. Save it again.")
        n_suppressed = manifest["n_suppressed"]
        if n_suppressed is None:  # too few to be told
            n_suppressed = max(manifest["l"].values()) - 1
        loaded = cls(table, groups, manifest["l"], manifest["bucket"], n_suppressed)
        loaded.check()
        return loaded

    def _repr_html_(self) -> str:
        """Show the numbers of the table in a notebook, and no records."""
        facts = [
            ("records", self.n_records),
            ("buckets", self.n_buckets),
            *((f"l of {name}", l) for name, l in self.diversities.items()),  # noqa: E741
            ("column groups", "; ".join(", ".join(own) for own in self.column_groups)),
            ("records left out", self.n_suppressed),
        ]
        return facts_as_html("Sliced table", facts)
