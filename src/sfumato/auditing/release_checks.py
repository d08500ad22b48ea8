# SPDX-License-Identifier: Apache-2.0
"""Cheap checks of a release for what k does not cover, without attacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import Sentence, named
from sfumato.files.verified_output import blurred

_FEWEST_JUDGED = 10  # records; of fewer, nearly every column is near unique
_MOST_CODES = 1_000
"""Distinct whole numbers of a column that may be codes; amounts have more, or stay among the values they had."""


@dataclass(frozen=True)
class Checks:
    """Findings on a release.

    Attributes
    ----------
    k : int
        Counts from 1 to k - 1 are not told.
    n_records : int
    unchanged : list of str
        Columns that are released unchanged.
    n_unique_by_unchanged : int or None
        Records that no other equals in all of them; None: not counted.
    near_unique_target : bool or None
    n_combinations : int
        Combinations of quasi-identifier values in the release.
    n_combinations_of_one : int or None
        Those that exactly one original record has; None: not counted.
    target : str or None
    invented : dict
        Column to how many of its released values no original record had, where its numbers may be codes.
    """

    k: int
    n_records: int
    unchanged: list[str]
    n_combinations: int
    n_unique_by_unchanged: int | None = None
    near_unique_target: bool | None = None
    n_combinations_of_one: int | None = None
    target: str | None = None
    invented: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings under their names; null for a count from 1 to k - 1, and for what was not counted."""
        return {
            "unchanged": self.unchanged,
            "n_records_unique_by_unchanged_columns": self._shown(self.n_unique_by_unchanged),
            "target_is_near_unique": self.near_unique_target,
            "n_combinations": self.n_combinations,
            "n_combinations_of_one_person": self._shown(self.n_combinations_of_one),
            "n_invented_values": self.invented,
        }

    def _shown(self, count: int | None) -> int | None:
        return None if count is None or 0 < count < self.k else count

    def sentences(self) -> list[str]:
        """Return one sentence for each finding; those to act on begin with "warning"."""
        unchanged = ", ".join(map(repr, self.unchanged))
        said = [f"Columns released unchanged: {unchanged or 'none'}."]
        if self.n_combinations_of_one is None:
            return [*said, "Nothing else was checked: the table is too large. 'sfumato audit' compares the files."]
        if self.unchanged:
            said.append(self._of_unchanged())
        if self.n_combinations_of_one:
            said.append(
                Sentence(
                    f"warning: {blurred(self.n_combinations_of_one, self.k)} of {self.n_combinations:,} released "
                    "combinations of quasi-identifiers are those of exactly one original record: a person's values "
                    f"are published. Choose {named('representative', 'range')}, or another that shows no real record."
                )
            )
        else:
            said.append(
                f"None of the {self.n_combinations:,} released combinations of quasi-identifiers is that of exactly "
                "one original record."
            )
        if self.invented:
            columns = ", ".join(f"{name!r} ({count:,})" for name, count in self.invented.items())
            said.append(
                Sentence(
                    f"Released values that no original record has: {columns}. If these numbers are codes, name the "
                    f"columns in {named('categorical_features')}: an average of codes means nothing."
                )
            )
        return said

    def _of_unchanged(self) -> str:
        n_unique = self.n_unique_by_unchanged
        if not n_unique:
            return "No record is unique by them."
        share = f" ({n_unique / self.n_records:.1%})" if n_unique >= self.k else ""
        advice = f"Name the columns in {named('quasi_identifiers')}, or drop them with {named('identifiers')}."
        if self.unchanged == [self.target]:
            advice = f"Release a target of numbers with {named('target_values', 'round:WIDTH')} or group-mean."
        return Sentence(
            f"warning: {blurred(n_unique, self.k)} of {self.n_records:,} records{share} are unique by them. An "
            f"attacker who knows these values finds the record. {advice}"
        )


def check_release(
    original: Any,
    released: Any,
    quasi_identifiers: Sequence[str],
    rewritten: Sequence[str],
    *,
    k: int,
    target: str | None = None,
    categorical: Sequence[str] = (),
) -> Checks:
    """Check a release that is held in memory beside its original.

    Parameters
    ----------
    original, released : pyarrow.Table
    quasi_identifiers : sequence of str
        As the original calls them.
    rewritten : sequence of str
        As the release calls them; two for each column where bounds are written.
    k : int
    target : str, optional
    categorical : sequence of str
        Columns that are known to hold codes, and rewritten as such.
    """
    from sfumato.frames import read_table
    from sfumato.measurement.combinations import count_combinations
    from sfumato.schema import is_near_unique
    from sfumato.verification import count_groups

    if list(rewritten) != list(quasi_identifiers):  # bounds: two columns that no original record has
        n_combinations, n_of_one = len(count_groups(released, list(rewritten))), 0
    else:
        n_combinations, n_of_one = count_combinations(original, released, quasi_identifiers)
    unchanged = [name for name in released.column_names if name not in rewritten]
    n_unique = int((count_groups(released, unchanged) == 1).sum()) if unchanged else 0
    near_unique = False
    if target is not None and released.num_rows >= _FEWEST_JUDGED:
        column = read_table(released.select([target])).column(target, for_counting=True)
        near_unique = bool(is_near_unique(column))
    return Checks(
        k=k,
        n_records=released.num_rows,
        unchanged=unchanged,
        n_unique_by_unchanged=n_unique,
        near_unique_target=near_unique,
        n_combinations=n_combinations,
        n_combinations_of_one=n_of_one,
        target=target,
        invented=_invented(original, released, [name for name in rewritten if name not in categorical]),
    )


def _invented(original: Any, released: Any, columns: Sequence[str]) -> dict[str, int]:
    """Count released values that no original record has, in integer columns that may be codes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {}
    for name in columns:
        if name not in original.column_names or not pa.types.is_integer(original.schema.field(name).type):
            continue
        before, after = original.column(name).unique(), released.column(name).unique()
        is_number = pa.types.is_integer(after.type) or pa.types.is_floating(after.type)
        if len(before) > _MOST_CODES or not is_number:
            continue
        known = pc.is_in(after.cast(pa.float64(), safe=False), value_set=before.cast(pa.float64(), safe=False))
        n_new = int(pc.sum(pc.and_(pc.invert(known), pc.is_valid(after))).as_py() or 0)
        if n_new:
            found[name] = n_new
    return found
