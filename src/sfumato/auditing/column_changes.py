# SPDX-License-Identifier: Apache-2.0
"""Describe a release: sizes of groups, and each column before and after.

Works on tables that anyone made. Shares are of classes that hold at least `smallest_shown` records before, so that no
bar stands for a few people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column
from sfumato.frames import read_table
from sfumato.partition.distinct_values import sorted_distinct
from sfumato.report.data import ColumnChange, GroupSizes
from sfumato.verification import label_groups

_MOST_CLASSES = 24
_COUNTED_AT_ONCE = 1 << 16  # records
_SIZE_EDGES = tuple(
    int(step * 10**power) for power in range(7) for step in (1, 1.5, 2, 3, 5, 7) if step * 10**power >= 1
)
_MOST_SIZES = 12
MANY_EMPTIED = 0.5
"""Share of the records that lose their value in a column from which on that is said."""
_FREQUENT = 0.05  # of the records; a value that more have is worth a remark when another takes its place


def describe_sizes(sizes: NDArray[np.int64]) -> GroupSizes:
    """Describe the sizes of all groups."""
    edges = np.array(sorted({edge for edge in _SIZE_EDGES if edge <= int(sizes.max())}))
    edges = edges[max(0, int(np.searchsorted(edges, sizes.min(), side="right")) - 1) :]
    if len(edges) > _MOST_SIZES:
        edges = edges[np.linspace(0, len(edges) - 1, _MOST_SIZES).astype(int)]
    place = np.searchsorted(edges, sizes, side="right") - 1
    weights = np.bincount(place, weights=sizes, minlength=len(edges))
    return GroupSizes(
        n_groups=len(sizes),
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        median=float(np.median(sizes)),
        edges=tuple(int(edge) for edge in edges),
        shares=_as_shares(weights),
    )


def fewest_values(released: Any, quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> int | None:
    """Return the fewest distinct values of any sensitive column in any group; None without such a column.

    Missing is one value.
    """
    fewest = None
    for name in sensitive:
        column = read_table(released).column(name, for_counting=True)
        codes = np.unique(column.values, return_inverse=True)[1].astype(np.int64)
        if column.missing is not None:
            codes = np.where(column.missing, codes.max() + 1, codes)
        # Pairs that occur, not a table of all pairs: an amount has about as many values as there are records.
        n_values = int(codes.max()) + 1
        pairs = np.unique(label_groups(released, quasi_identifiers) * n_values + codes)
        poorest = int(np.bincount(pairs // n_values).min())
        fewest = poorest if fewest is None else min(fewest, poorest)
    return fewest


def describe_columns(
    original: Any,
    released: Any,
    roles: Mapping[str, str],
    losses: Mapping[str, float],
    *,
    smallest_shown: int,
) -> tuple[ColumnChange, ...]:
    """Describe every column of the original table.

    Parameters
    ----------
    original, released : frame
    roles : mapping of str to str
        ``"identifier"``, ``"quasi-identifier"``, ``"sensitive"``, ``"target"`` ... ; the others pass through.
    losses : mapping of str to float
        Normalised certainty penalty of each rewritten column.
    smallest_shown : int
    """
    before, after = read_table(original), read_table(released)
    changes = []
    for name in before.names:
        role = roles.get(name, "other")
        # Counted one after the other: two columns of a large table are never held at once.
        column = _count(before.column(name, for_counting=True, narrow=True))
        new = _count(after.column(name, for_counting=True, narrow=True)) if name in after.names else None
        shares = _class_shares(column, new, smallest_shown)
        loss = losses.get(name)
        n_before, n_after = column.n_distinct, None if new is None else new.n_distinct
        sentence = _sentence(role, loss, n_before, n_after, is_gone=new is None, is_label=_is_label(column, new))
        if new is not None and new.share_missing - column.share_missing >= MANY_EMPTIED:
            sentence = _emptied(column, new)
        invented = _invented(column, new)
        mode_changed = _mode_changed(column, new, smallest_shown)
        sentence += _remark(column, n_after, invented, mode_changed)
        changes.append(
            ColumnChange(name, role, column.kind, loss, n_before, n_after, *shares, sentence, *invented, mode_changed)
        )
    return tuple(changes)


@dataclass(frozen=True, eq=False)
class _Counted:
    """The distinct values of a column, sorted, and their counts; categories by their codes.

    Attributes
    ----------
    kind : str
    values : ndarray
        Numbers, moments, or codes of `categories`.
    counts : ndarray of int64
    categories : ndarray of object or None
    n_missing : int
    """

    kind: str
    values: NDArray[Any]
    counts: NDArray[np.int64]
    categories: NDArray[np.object_] | None
    n_missing: int

    @property
    def n_distinct(self) -> int:
        """Number of distinct values; missing counts as one."""
        return (len(self.values) if self.categories is None else len(self.categories)) + (self.n_missing > 0)

    @property
    def share_missing(self) -> float:
        """Share of the records without a value."""
        return self.n_missing / max(1, self.n_missing + int(self.counts.sum()))

    def quantiles(self, *shares: float) -> list[float]:
        """Return values below which these shares of the records lie, between two neighbors where they fall there."""
        last = np.cumsum(self.counts) - 1  # place of the last record with each value
        found = []
        for share in shares:
            place = share * last[-1]
            low, high = self.values[np.searchsorted(last, [np.floor(place), np.ceil(place)])].astype(float)
            found.append(float(low + (high - low) * (place - np.floor(place))))
        return found


def _count(column: Column) -> _Counted:
    n_missing = 0 if column.missing is None else int(column.missing.sum())
    if column.categories is not None:
        present = column.values if column.missing is None else column.values[~column.missing]
        values = np.arange(len(column.categories))
        counts = np.zeros(len(values), np.int64)
        for start in range(0, len(present), _COUNTED_AT_ONCE):  # numpy makes wide numbers of all that it gets
            counts += np.bincount(present[start : start + _COUNTED_AT_ONCE], minlength=len(counts))
    else:
        values, counts = sorted_distinct(column.values, column.missing)
    return _Counted(column.kind, values, counts, column.categories, n_missing)


def _is_label(column: _Counted, new: _Counted | None) -> bool:
    """Whether values became labels, such as ranges, so that the two columns cannot be laid side by side."""
    if new is None:
        return False
    if column.kind != new.kind:
        return True
    if column.categories is None or new.categories is None:
        return False
    return not set(new.categories.tolist()) <= set(column.categories.tolist())


def _invented(column: _Counted, new: _Counted | None) -> tuple[int | None, float | None]:
    """Return the number of released values that no record had, and the share of records with one; None for labels."""
    if new is None or _is_label(column, new) or not len(new.values):
        return None, None
    if new.categories is not None:
        return 0, 0.0
    is_new = ~np.isin(new.values, column.values)
    return int(is_new.sum()), round(float(new.counts[is_new].sum() / new.counts.sum()), 3)


def _mode_changed(column: _Counted, new: _Counted | None, smallest_shown: int) -> bool | None:
    """Return whether the most frequent value changed; None for labels, and where no value was frequent."""
    if new is None or _is_label(column, new) or not len(new.values) or not len(column.values):
        return None
    first, second = int(column.counts.argmax()), int(new.counts.argmax())
    if column.counts[first] < max(smallest_shown, _FREQUENT * column.counts.sum()):
        return None
    if column.categories is not None and new.categories is not None:
        return bool(column.categories[first] != new.categories[second])
    return bool(column.values[first] != new.values[second])


def _emptied(column: _Counted, new: _Counted) -> str:
    """Return what became of a column in which many records have no value now."""
    return (
        f"{new.share_missing:.0%} of the records have no value now ({column.share_missing:.0%} before), because values "
        f"that few people have are not shown: {_became(column.n_distinct, new.n_distinct)}."
    )


def emptied_columns(original: Any, released: Any, names: Sequence[str]) -> dict[str, float]:
    """Return the columns in which many more records have no value than before, and their share of the release.

    Examples
    --------
    >>> import pandas as pd
    >>> before = pd.DataFrame({"town": ["Ulm", "Jena", "Bonn", "Kiel"]})
    >>> emptied_columns(before, pd.DataFrame({"town": ["Ulm", None, None, None]}), ["town"])
    {'town': 0.75}
    """
    before, after = read_table(original), read_table(released)
    found = {}
    for name in names:
        if name in after.names:
            share = _share_missing(after.column(name))
            if share - _share_missing(before.column(name)) >= MANY_EMPTIED:
                found[name] = share
    return found


def _share_missing(column: Column) -> float:
    return 0.0 if column.missing is None else float(column.missing.mean())


def _remark(
    column: _Counted, n_after: int | None, invented: tuple[int | None, float | None], mode_changed: bool | None
) -> str:
    """Return remarks about new values and a changed mode, if any."""
    said = ""
    n_invented, share = invented
    if n_invented:
        said = f" {n_invented:,} of its {n_after:,} values occur in no original record ({share:.1%} of the records)."
        if column.values.dtype.kind == "i" and column.kind == "number":
            said += " If its numbers are codes, list it under categorical."
    return f"{said} Its most frequent value changed." if mode_changed else said


def _class_shares(
    column: _Counted, new: _Counted | None, smallest_shown: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the shares of the records in common classes, before and after; empty where there is nothing to compare."""
    if new is not None and _is_label(column, new):
        new = None
    if column.kind == "category":
        return _category_shares(column, new, smallest_shown)
    return _number_shares(column, new, smallest_shown)


def _number_shares(
    column: _Counted, new: _Counted | None, smallest_shown: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if not len(column.values):
        return (), ()
    # Equal widths between quantiles keep a few far values from flattening the rest; classes of few records are joined.
    low, high = column.quantiles(0.01, 0.99)
    edges = np.linspace(low, high, _MOST_CLASSES + 1)[1:-1] if high > low else np.zeros(0)

    def by_class(counted: _Counted) -> NDArray[np.int64]:
        place = np.searchsorted(edges, counted.values)
        return np.bincount(place, weights=counted.counts, minlength=len(edges) + 1).astype(np.int64)

    counts = by_class(column)
    merged = _join_small(counts, smallest_shown)
    before = np.bincount(merged, weights=counts)
    if new is None:
        return _as_shares(before), ()
    return _as_shares(before), _as_shares(np.bincount(merged, weights=by_class(new)))


def _category_shares(
    column: _Counted, new: _Counted | None, smallest_shown: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    assert column.categories is not None
    counts = column.counts
    order = np.argsort(-counts, kind="stable")
    shown = [int(c) for c in order[: _MOST_CLASSES - 1] if counts[c] >= smallest_shown]
    # The others have a class of their own, or where they are few people join the smallest that has a name.
    rest = len(shown) if int(counts.sum() - counts[shown].sum()) >= smallest_shown else max(0, len(shown) - 1)
    class_of = np.full(len(counts), rest)
    class_of[shown] = np.arange(len(shown))
    n_classes = max(rest + 1, len(shown))
    before = np.bincount(class_of, weights=counts, minlength=n_classes)
    if new is None:
        return _as_shares(before), ()
    assert new.categories is not None
    place = {value: int(class_of[code]) for code, value in enumerate(column.categories.tolist())}
    own_class = np.array([place.get(value, rest) for value in new.categories.tolist()], np.int64)
    return _as_shares(before), _as_shares(np.bincount(own_class, weights=new.counts, minlength=n_classes))


def _join_small(counts: NDArray[np.int64], fewest: int) -> NDArray[np.int64]:
    """Return the class of each bin after bins with few records were joined with their neighbors."""
    merged = np.zeros(len(counts), np.int64)
    at, held = 0, 0
    for place, count in enumerate(counts):
        merged[place] = at
        held += int(count)
        if held >= fewest and counts[place + 1 :].sum() >= fewest:
            at, held = at + 1, 0
    return merged


def _as_shares(counts: NDArray[Any]) -> tuple[float, ...]:
    """Return shares in thousandths: all digits would reveal the number of records."""
    total = counts.sum()
    return tuple(round(float(count), 3) for count in counts / total) if total else ()


def _sentence(
    role: str, loss: float | None, n_before: int, n_after: int | None, *, is_gone: bool, is_label: bool
) -> str:
    """Return the change of a column and its reason as a sentence."""
    if is_gone and loss is not None:
        return f"Exact values became the ends of ranges, in columns of their own; {_detail(loss)}."
    if is_gone:
        return "It was dropped."
    if role == "target":
        return "The model predicts it; it is released unchanged."
    if role == "sensitive":
        return "It is released unchanged: the groups protect it, not its values."
    if loss is None and role == "quasi-identifier":
        return "It was rewritten; the information loss was not measured."
    if loss is None:
        return "It is not a quasi-identifier and is released unchanged."
    if is_label:
        return f"Exact values became ranges or sets; {_detail(loss)}."
    assert n_after is not None
    if n_after == 1 < n_before:  # whatever the penalty is, which weighs values by their number
        return f"All detail is lost: {_became(n_before, n_after)}."
    if loss < 0.005:
        return f"Nearly all detail is kept: the groups hardly mix its values ({_became(n_before, n_after)})."
    return f"{_detail(loss)[0].upper()}{_detail(loss)[1:]}: {_became(n_before, n_after)}."


def _became(n_before: int, n_after: int) -> str:
    """Return the numbers of distinct values before and after; means may be more than the values they average."""
    return f"{n_before:,} distinct {'value' if n_before == 1 else 'values'} became {n_after:,}"


def _detail(loss: float) -> str:
    if loss < 0.05:
        return f"the groups needed its detail, so the information loss is only {loss:.1%}"
    if loss < 0.3:
        return f"information loss of {loss:.0%}, so that records share values"
    return f"other columns separated the records better, so the information loss is {loss:.0%}"


def roles_of(columns: Sequence[str], **named: Sequence[str]) -> dict[str, str]:
    """Return the role of each column, given the columns of each role, whose names have underscores for hyphens."""
    roles = dict.fromkeys(columns, "other")
    for role, names in named.items():
        roles.update(dict.fromkeys((name for name in names if name in roles), role.replace("_", "-")))
    return roles
