# SPDX-License-Identifier: Apache-2.0
"""Judge what a column holds by its name, the form of its values and how often they occur, with a reason in words.

Does it name people? Is it an amount? Are its numbers codes? :func:`build_schema`, the commands and ``sfumato init`` all
ask here. The form is taken from some records and the counts from all, so that tables in pieces are judged alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.columns import Column
from sfumato.frames import Table, read_table
from sfumato.schema import name_words as words

#: Below this many records every column of a table is near unique, so nothing could be concluded from it.
SMALLEST_TABLE_CHECKED = 10
#: Below this many records towns and jobs are near unique, too, and whole numbers without gaps may be chance.
SMALLEST_TABLE_JUDGED = 50
#: Values whose form is looked at.
_LOOKED_AT = 500
_SAME_FORM = 0.8  # share of them that must have it
#: Records from which on a sample is looked at first: most columns need no more.
_SAMPLED_FROM, _SAMPLE = 100_000, 5_000

_FORMS: dict[str, re.Pattern[str]] = {
    "email addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "UUIDs": re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"),
    "social security numbers": re.compile(r"\d{3}-\d{2}-\d{4}"),
    "bank accounts (IBAN)": re.compile(r"[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){2,7}( ?[A-Z0-9]{1,4})?"),
    "internet addresses": re.compile(r"\d{1,3}(\.\d{1,3}){3}|https?://\S+|([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}"),
    "phone numbers": re.compile(r"(?=(\D*\d){9})(\+|00|\(|0)[\d ()/.-]+|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}"),
}
_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?|\d{4}-?\d{2}")
_POSTAL = re.compile(r"[A-Za-z0-9* -]{2,10}")
_NAMED_AS_PEOPLE = "its name says that it holds names, addresses or numbers of people"


@dataclass(frozen=True)
class Frequencies:
    """The frequencies of the values of a column.

    Attributes
    ----------
    n_present : int
        Records that have a value.
    n_distinct : int
        Distinct values.
    n_single : int
        Values that occur once.
    """

    n_present: int
    n_distinct: int
    n_single: int

    @property
    def is_near_unique(self) -> bool:
        """True if more than half of the values occur exactly once."""
        return 2 * self.n_single > self.n_present

    @property
    def is_varied(self) -> bool:
        """True if there are too many values for kinds of something, such as kinds of phones."""
        return self.n_distinct > 50 or 5 * self.n_distinct > self.n_present

    @property
    def share_unique(self) -> float:
        """Share of the records whose value no other record has."""
        return self.n_single / self.n_present if self.n_present else 0.0


@dataclass(frozen=True)
class Judgement:
    """The judgement on the content of a column.

    Attributes
    ----------
    name : str
    counts : Frequencies
    names_people : str or None
        Why it names people, as the end of a sentence that begins with the column; None if nothing says so.
    is_amount : bool
        Whether it is a quantity, date or time: possibly near unique, but not a name.
    code : str or None
        Why its numbers are codes; None if nothing says so.
    is_surely_code : bool
        Whether name and values agree that they are codes.
    """

    name: str
    counts: Frequencies
    names_people: str | None = None
    is_amount: bool = False
    code: str | None = None
    is_surely_code: bool = False

    @property
    def repeats(self) -> bool:
        """True if many values occur several times, as persons do who have several records, and remarks without them."""
        return self.counts.n_distinct < 0.9 * self.counts.n_present and not words.is_remark(self.name)


def count_values(column: Column) -> Frequencies:
    """Count the values of a column; missing ones are left out."""
    values = _present(column)
    if column.kind == "category":
        counts = np.bincount(values)
        return Frequencies(len(values), int((counts > 0).sum()), int((counts == 1).sum()))
    ordered = np.sort(values)
    differs = np.concatenate(([True], ordered[1:] != ordered[:-1], [True])) if len(ordered) else np.empty(0, bool)
    return Frequencies(len(values), max(int(differs.sum()) - 1, 0), int((differs[1:] & differs[:-1]).sum()))


def judge_column(
    column: Column, counts: Frequencies | None = None, target: npt.NDArray[Any] | None = None
) -> Judgement:
    """Judge a column by name, form and counts together.

    Parameters
    ----------
    column : Column
        The column, or some of its records.
    counts : Frequencies, optional
        Of the whole column; None: the column is whole.
    target : ndarray of shape (n_records,), optional
        Numbers that a model is to predict, or codes of two classes: where its mean shows no order in whole numbers of
        several values, they may be codes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = read_table(pa.table({"email": [f"p{i}@mail.org" for i in range(40)], "RAC1P": [1, 9, 1, 6] * 10}))
    >>> judge_column(table.column("email")).names_people
    'its values have the form of email addresses'
    >>> judge_column(table.column("RAC1P")).is_surely_code
    True
    """
    counts = count_values(column) if counts is None else counts
    if counts.n_distinct < 2 or column.kind == "moment":
        return Judgement(column.name, counts, is_amount=column.kind == "moment")
    if column.kind == "category":
        return Judgement(column.name, counts, _why_text_names(column, counts) if column.is_text else None)
    whole = _whole_numbers(column)
    if whole is None:
        return Judgement(column.name, counts, is_amount=True)
    why = _why_numbers_name(column.name, whole, counts)
    if why is not None:
        return Judgement(column.name, counts, why)
    code, is_sure = _why_codes(column, whole, counts, target)
    return Judgement(column.name, counts, None, code is None, code, is_sure)


def judge_naming(table: Table, names: Iterable[str]) -> Iterator[Judgement]:
    """Judge whether columns of a table name people, reading no more of each than that takes."""
    suspect = [name for name in names if may_name(table.head(name, for_counting=True))]
    some = _sample(table, suspect) if table.n_records > _SAMPLED_FROM and suspect else None
    for name in suspect:
        # A value that occurs once is single in any sample, too: a sample can only look more unique than the whole.
        drawn = None if some is None else judge_column(some.column(name, for_counting=True))
        if drawn is None or drawn.names_people is not None or 4 * drawn.counts.n_distinct > drawn.counts.n_present:
            yield judge_column(table.column(name, for_counting=True))


def may_name(column: Column) -> bool:
    """Return False if a column cannot name people, whatever its counts are: fractions, moments, few whole numbers."""
    if column.kind == "category":
        return True
    whole = _whole_numbers(column) if column.kind == "number" else None
    if whole is None or not len(whole):
        return False
    is_wide = 2.0 * (float(whole.max()) - float(whole.min())) >= min(len(whole), _LOOKED_AT)
    return is_wide or words.is_person_key(column.name) or words.is_record_key(column.name)


def _sample(table: Table, names: Collection[str]) -> Table:
    rows = np.sort(np.random.default_rng(0).choice(table.n_records, _SAMPLE, replace=False))
    frame = table.replaced({}, drop=[name for name in table.names if name not in names], keep_rows=rows)
    return read_table(frame, categorical=[name for name in table.categorical if name in names])


# -- naming people -----------------------------------------------------------------------------------------------


def _why_text_names(column: Column, counts: Frequencies) -> str | None:
    name = column.name
    if words.is_persons_name(name):  # however few: small tables and visits of few people have few names
        return _NAMED_AS_PEOPLE
    if not counts.is_varied:
        return None
    assert column.categories is not None
    step = max(1, len(column.categories) // _LOOKED_AT)
    texts = [str(value) for value in column.categories[::step] if str(value).strip()]
    for form, pattern in _FORMS.items():
        if _have_form(texts, pattern):
            return f"its values have the form of {form}"
    if words.is_direct_identifier(name) or words.is_address(name):
        return _NAMED_AS_PEOPLE
    if words.is_remark(name) and counts.n_present >= SMALLEST_TABLE_JUDGED:
        return "its name says that it holds remarks, and free text can name people"
    each = counts.n_present / counts.n_distinct
    if words.is_person_key(name):
        return f"its name is that of a number of people or households, with {each:.1f} records per value"
    if words.is_record_key(name) and each < 20:
        return f"its name is that of a record number, with {each:.1f} records per value"
    if _have_form(texts, _DATE) or (words.is_place(name) and _have_form(texts, _POSTAL)):
        return None
    if counts.n_present >= SMALLEST_TABLE_JUDGED and counts.is_near_unique:
        return f"{counts.share_unique:.0%} of its values are unique, as names are"
    if each < 3 and counts.n_distinct > 50:
        return f"it has {counts.n_distinct:,} distinct texts in {counts.n_present:,} records, as names or remarks have"
    return None


def _have_form(texts: list[str], pattern: re.Pattern[str]) -> bool:
    return bool(texts) and sum(pattern.fullmatch(text) is not None for text in texts) >= _SAME_FORM * len(texts)


def _why_numbers_name(name: str, whole: npt.NDArray[np.int64], counts: Frequencies) -> str | None:
    if not counts.is_varied:
        return None
    each = counts.n_present / counts.n_distinct
    if words.is_person_key(name):
        return f"its name is that of a number of people or households, with {each:.1f} records per value"
    if words.is_record_key(name) and each < 20 and counts.n_present >= SMALLEST_TABLE_CHECKED:
        return f"its name is that of a record number, with {each:.1f} records per value"
    if not len(whole):
        return None
    if words.is_direct_identifier(name) and np.median(np.abs(whole.astype(np.float64))) >= 1e6:
        return "its name says that it holds numbers of people"
    if counts.n_present < SMALLEST_TABLE_JUDGED or not counts.is_near_unique:
        return None
    low, high = int(whole.min()), int(whole.max())
    share = f"{counts.share_unique:.0%} of its numbers are unique"
    if words.is_amount_name(name):
        # Amounts leave gaps and repeat: what counts on without one is a record number, whatever it is called.
        counts_on = 200 <= len(whole) == counts.n_present == counts.n_distinct == high - low + 1
        return f"{share} and without a gap, as record numbers are" if counts_on else None
    if counts.share_unique > 0.9 and high - low < 2 * counts.n_distinct:
        return f"{share} and nearly without gaps, as record numbers are"
    n_digits = len(str(high))
    if n_digits >= 5 and low >= 10 ** (n_digits - 1) and _is_even(whole, low, high):
        return f"{share} and all have {n_digits} digits, as account numbers have"
    return None


def _is_even(whole: npt.NDArray[np.int64], low: int, high: int) -> bool:
    """Return True if numbers are spread evenly and not rounded: amounts crowd at low values and at round ones."""
    if (whole % 10 == 0).mean() > 0.2 or (whole % 5 == 0).mean() > 0.4:
        return False
    place = (np.sort(whole).astype(np.float64) - low) / max(high - low, 1)
    return bool(np.abs(place - np.linspace(0, 1, len(place))).max() < 0.2)


# -- codes -------------------------------------------------------------------------------------------------------


def _why_codes(
    column: Column, whole: npt.NDArray[np.int64], counts: Frequencies, target: npt.NDArray[Any] | None
) -> tuple[str | None, bool]:
    """Return why whole numbers are codes, and whether that is sure; None where nothing says so."""
    name, n = column.name, counts.n_distinct
    if n < 3 or words.is_amount_name(name):
        return None, False
    if words.is_code_name(name):
        is_sure = 2 * n <= counts.n_present and not _is_rounded(whole)
        return f"its name is that of a code, and {n:,} distinct whole numbers are few", is_sure
    if counts.n_present < 20 * n or n > 2000 or _is_rounded(whole):
        return None, False
    if _has_one_peak(whole):
        return None, False
    order = None if target is None else shows_order(column, target)
    if order is False:
        return f"the target shows no order in its {n:,} distinct whole numbers", False
    low, high = int(whole.min()), int(whole.max())
    if order is None and n <= 12 and low in (0, 1) and high <= n + 2:
        return f"its {n:,} whole numbers begin with {low}, and how often each occurs follows no order", False
    return None, False


def _is_rounded(whole: npt.NDArray[np.int64]) -> bool:
    distinct = np.unique(whole)
    return len(distinct) > 5 and bool((distinct % 50 == 0).mean() > 0.9)


def _has_one_peak(whole: npt.NDArray[np.int64]) -> bool:
    """Return True if counts rise to one value and fall after it, as those of amounts do; small dips do not count."""
    counts = np.unique(whole, return_counts=True)[1]
    top = int(counts.argmax())
    slack = 0.01 * len(whole)
    rises = counts[: top + 1] + slack >= np.maximum.accumulate(counts[: top + 1])
    falls = counts[top:] <= np.minimum.accumulate(counts[top:]) + slack
    return bool(rises.all() and falls.all())


def shows_order(column: Column, target: npt.NDArray[Any]) -> bool | None:
    """Return whether the mean of a target rises, falls or bends smoothly with numbers; None if that cannot be told.

    Compares the means of neighboring values with those of any two (von Neumann's ratio): near 2 where the numbers are
    codes, and well below where they are amounts.
    """
    is_present = np.ones(column.n_records, bool) if column.missing is None else ~column.missing
    _, code, sizes = np.unique(column.values[is_present], return_inverse=True, return_counts=True)
    known = target[is_present].astype(np.float64)
    spread = float(known.var()) if len(known) else 0.0
    if spread == 0:
        return None
    mean = np.bincount(code, known) / sizes
    is_large = sizes >= 20
    mean, sizes = mean[is_large], sizes[is_large]
    m = len(mean)
    if m < 6:
        return None
    between = float((sizes * (mean - np.average(mean, weights=sizes)) ** 2).sum()) / spread
    if between < 3 * m:
        return None  # hardly more than chance
    ratio = float((np.diff(mean) ** 2).sum() / ((mean - mean.mean()) ** 2).sum())
    return ratio < 2 - 1.64 * 2 * float(np.sqrt((m - 2) / (m * m - 1)))


def as_numbers(target: Column) -> npt.NDArray[np.float64] | None:
    """Return a target as numbers whose means can be compared: itself, or whether it is its most frequent value.

    None where values are missing, since nothing is known of those.
    """
    if target.missing is not None and bool(target.missing.any()):
        return None
    if target.kind == "number" and len(np.unique(target.values)) > 2:
        return np.asarray(target.values, np.float64)
    _, code, counts = np.unique(target.values, return_inverse=True, return_counts=True)
    return np.asarray(code == counts.argmax(), np.float64)


def _present(column: Column) -> npt.NDArray[Any]:
    return column.values if column.missing is None else column.values[~column.missing]


def _whole_numbers(column: Column) -> npt.NDArray[np.int64] | None:
    """Return the values that are present as whole numbers; None if some are not whole."""
    values = _present(column)
    if values.dtype.kind == "i":
        return values
    if not (np.abs(values) < 2**53).all() or not (values == np.floor(values)).all():
        return None
    return values.astype(np.int64)
