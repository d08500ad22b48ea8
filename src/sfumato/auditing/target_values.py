# SPDX-License-Identifier: Apache-2.0
"""What is released of the target: its exact values, rounded ones, or the mean of each group.

A model learns from the target, so it is not rewritten with the quasi-identifiers. Where nearly every value of it is
unique, as with incomes, an attacker who knows a person's value finds the record, however large its group is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import ParameterError, Sentence, named

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sfumato.auditing.utility import Target
    from sfumato.progress import Reporter
    from sfumato.schema import Frequencies


@dataclass(frozen=True)
class TargetValues:
    """What is released of the target.

    Attributes
    ----------
    how : {"exact", "round", "group-mean"}
    width : float
        What rounded values are multiples of.
    """

    how: Literal["exact", "round", "group-mean"] = "exact"
    width: float = 0.0

    def check(self, said: str, target: Target | None, *, counted: Sequence[str], name: str | None) -> None:
        """Raise ParameterError where there is no number to round or to average, or a group must have several values.

        Parameters
        ----------
        said : str
            The setting and its value, as messages name them.
        target : Target or None
        counted : sequence of str
            Columns of which every group must have several values.
        name : str or None
            The target's column.
        """
        if self.how == "exact":
            return
        if target is None or target.task != "regression":
            raise ParameterError(
                f"{said} with {'no target' if target is None else 'a target of classes'}: expected a "
                "target of numbers. Remove it."
            )
        if self.how == "group-mean" and name in counted:
            raise ParameterError(
                f"{said} with a target that must have several values in every group: expected exact or "
                "rounded values. Take round:WIDTH, or do not call the target sensitive."
            )

    def applied(self, released: Any, name: str | None, rewritten: Sequence[str], k: int, *, of_persons: bool) -> Any:
        """Return a released table with other values of the target.

        Parameters
        ----------
        released : pyarrow.Table
        name : str or None
            The target's column.
        rewritten : sequence of str
            The released quasi-identifiers: records that agree in them are a group.
        k : int
        of_persons : bool
            Whether k counts persons.
        """
        if self.how == "exact" or name is None:
            return released
        import pyarrow as pa

        from sfumato.frames import read_table

        column = read_table(released.select([name])).column(name)
        if self.how == "round":
            values = _rounded(column.values, self.width)
            known = _known(column)
        else:
            values, known = _means(column, _groups(released, rewritten), k, of_persons=of_persons)
        kind = released.schema.field(name).type
        if column.is_integer and not pa.types.is_integer(kind):
            kind = pa.int64()  # decimals and the like
        array = pa.array(values, mask=~known).cast(kind, safe=False)
        return released.set_column(released.column_names.index(name), pa.field(name, array.type), array)

    def learned(self, released: Any, name: str, target: Target, rows: npt.NDArray[np.int64]) -> tuple[Any, Any]:
        """Return the records that a model can be trained on after the release, and their values of the target."""
        import numpy as np

        from sfumato.auditing.utility import rows_of
        from sfumato.frames import read_table

        if self.how == "exact":
            return released, target.values[rows]
        column = read_table(released.select([name])).column(name)
        known = np.flatnonzero(_known(column))
        return rows_of(released, known), column.values[known].astype(np.float64)

    def __str__(self) -> str:
        """Return it as it is written in an option or a policy."""
        return f"round:{self.width:g}" if self.how == "round" else self.how


EXACT = TargetValues()


def parse_target_values(text: str, said: str) -> TargetValues:
    """Read what is released of the target.

    Examples
    --------
    >>> parse_target_values("round:1000", "--target-values round:1000")
    TargetValues(how='round', width=1000.0)
    """
    how, colon, width = text.strip().lower().partition(":")
    if how == "exact" and not colon:
        return EXACT
    if how == "group-mean" and not colon:
        return TargetValues("group-mean")
    try:
        number = float(width)
    except ValueError:
        number = math.nan
    if how == "round" and math.isfinite(number) and number > 0:
        return TargetValues("round", number)
    raise ParameterError(f"{said}: expected exact, group-mean, or round:WIDTH such as round:1000.")


def warn_of_target(reporter: Reporter, counts: Frequencies, name: str, chosen: TargetValues) -> None:
    """Warn when most values of a target that is released are unique, and say what can be done."""
    from sfumato.schema.judging import SMALLEST_TABLE_CHECKED

    if counts.n_present < SMALLEST_TABLE_CHECKED or not counts.is_near_unique or chosen.how == "group-mean":
        return
    already = "even rounded" if chosen.how == "round" else "unchanged"
    reporter.note(
        Sentence(
            f"the target {name!r} is released {already} and {counts.share_unique:.2%} of its values are unique: an "
            "attacker who knows a person's value finds the record. Release rounded values with "
            f"{named('target_values', 'round:1000')}, or a wider one, or the mean of each group with "
            f"{named('target_values', 'group-mean')}."
        ),
        is_warning=True,
    )


def counts_of_target(table: Any, name: str, chosen: TargetValues) -> Frequencies:
    """Count the values of the target as they will be released; means of groups are not known yet."""
    from sfumato.frames import read_table
    from sfumato.schema import count_values

    seen = chosen.applied(table.select([name]), name, (), 1, of_persons=False) if chosen.how == "round" else table
    return count_values(read_table(seen.select([name])).column(name, for_counting=True))


# -- values ------------------------------------------------------------------------------------------------------


def _known(column: Any) -> npt.NDArray[np.bool_]:
    import numpy as np

    return np.ones(column.n_records, np.bool_) if column.missing is None else ~column.missing


def _rounded(values: npt.NDArray[Any], width: float) -> npt.NDArray[Any]:
    import numpy as np

    if values.dtype.kind == "i":
        if width != int(width):
            raise ParameterError(
                f"round:{width:g} for a target of whole numbers: expected a whole width. Round the width."
            )
        whole = np.int64(width)
        return (values + whole // 2) // whole * whole
    return np.round(values / width) * width


def _groups(released: Any, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Number the groups of records that agree in all released quasi-identifiers, missing ones included."""
    import numpy as np

    from sfumato.frames import read_table

    table = read_table(released.select(list(names)))
    group = np.zeros(table.n_records, np.int64)
    for name in names:
        column = table.column(name, for_counting=True)
        own = np.unique(column.values, return_inverse=True)[1] + 1
        own[~_known(column)] = 0
        group = np.unique(group * (int(own.max()) + 1) + own, return_inverse=True)[1]
    return group


def _means(
    column: Any, group: npt.NDArray[np.int64], k: int, *, of_persons: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the mean of each record's group, and which records have one.

    A mean of fewer than k values could be one person's. Groups with fewer known values share one mean if together they
    have k, and get none otherwise. Where k counts persons, known values may be one person's: all must be known then.
    """
    import numpy as np

    known = _known(column)
    n_groups = int(group.max()) + 1
    sizes, n_known = (np.bincount(rows, minlength=n_groups) for rows in (group, group[known]))
    is_enough = (n_known >= k) & ((n_known == sizes) if of_persons else True)
    pool = np.where(is_enough, np.arange(n_groups), n_groups)[group]
    n_of_pool = np.bincount(pool[known], minlength=n_groups + 1)
    total = np.bincount(pool[known], column.values[known].astype(np.float64), minlength=n_groups + 1)
    has_mean = n_of_pool >= k
    has_mean[n_groups] &= not of_persons
    mean = total / np.maximum(n_of_pool, 1)
    values = mean[pool]
    if column.is_integer:
        values = np.round(values).astype(np.int64)
    return values, known & has_mean[pool]
