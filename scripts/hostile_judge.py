# SPDX-License-Identifier: Apache-2.0
"""Judge a release in plain Python, from its definition: nothing of sfumato is imported here.

Every function returns sentences, one for each way in which a release breaks its promise; none: it holds. Sentences
name columns and counts, so that what the campaign prints can be shared.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Columns = dict[str, list[Any]]
ALMOST = 1e-9


# --- reading ------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a value that equals what it stands for: one None for missing, no numpy, something hashable."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, float):
        return None if value != value else value
    if isinstance(value, np.generic):
        return None if value != value else plain(value.item())
    if isinstance(value, list | dict | set | np.ndarray):
        return repr(value)
    return value


def columns_of(frame: Any) -> Columns:
    """Return the columns of any frame or array as lists of plain values."""
    if isinstance(frame, np.ndarray):
        return {f"x{place}": [plain(v) for v in frame[:, place].tolist()] for place in range(frame.shape[1])}
    library = type(frame).__module__.partition(".")[0]
    if library == "pandas":
        listed = [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
        return {str(name): [plain(v) for v in values] for name, values in zip(frame.columns, listed, strict=True)}
    if library == "polars":
        return {series.name: [plain(v) for v in series.to_list()] for series in frame.get_columns()}
    return {name: [plain(v) for v in frame.column(name).to_pylist()] for name in frame.column_names}


def types_of(frame: Any) -> dict[str, str]:
    """Return what the columns of a frame are called by their library; lists of categories are left out."""
    if isinstance(frame, np.ndarray):
        return {f"x{place}": str(frame.dtype) for place in range(frame.shape[1])}
    library = type(frame).__module__.partition(".")[0]
    if library == "pandas":
        return {str(name): str(kind) for name, kind in zip(frame.columns, frame.dtypes, strict=True)}
    if library == "polars":
        return {name: re.sub(r"\(categories=.*", "", str(kind)) for name, kind in frame.schema.items()}
    return {field.name: str(field.type) for field in frame.schema}


def read_file(path: Path, *, separator: str | None = None) -> Columns:
    """Read a CSV file (fields that are numbers as numbers, empty ones as missing) or a Parquet file."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return columns_of(pq.read_table(path))
    with path.open(newline="", encoding="utf-8-sig") as file:
        if separator is None:
            first = file.readline()
            file.seek(0)
            separator = max(",;\t|", key=first.count)
        rows = list(csv.reader(file, delimiter=separator))
    # csv leaves an empty line out where a table of one column has a missing value; none is lost for several columns.
    return {name: [_field(row[place] if row else "") for row in rows[1:]] for place, name in enumerate(rows[0])}


def _field(text: str) -> Any:
    if text == "":
        return None
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def grouped(columns: Columns, names: Sequence[str]) -> dict[tuple[Any, ...], list[int]]:
    """Return the rows of every combination of values of some columns."""
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    n_records = len(next(iter(columns.values()))) if columns else 0
    for row, key in enumerate(zip(*(columns[name] for name in names), strict=True) if names else [()] * n_records):
        groups[key].append(row)
    return groups


# --- groups -------------------------------------------------------------------------------------------------------


def too_small(groups: dict[tuple[Any, ...], list[int]], k: int, persons: Sequence[Any] | None = None) -> list[str]:
    """Return a finding if a group has fewer than k records, or persons where each record has one."""
    sizes = [len(rows if persons is None else {persons[row] for row in rows}) for rows in groups.values()]
    n_small = sum(size < k for size in sizes)
    what = "records" if persons is None else "persons"
    return [f"{n_small} of {len(sizes)} groups have fewer than k={k} {what}"] if n_small else []


def breaks_criterion(
    groups: dict[tuple[Any, ...], list[int]], values: Sequence[Any], asked: dict[str, Any]
) -> list[str]:
    """Return how many groups break a criterion on a sensitive column, by the formula of its paper."""
    leaves_out = asked.get("missing") == "suppress"
    whole = Counter(
        v for rows in groups.values() for v in (values[row] for row in rows) if not (leaves_out and v is None)
    )
    broken = 0
    for rows in groups.values():
        counts = Counter(values[row] for row in rows if not (leaves_out and values[row] is None))
        if not counts:
            broken += asked["name"] == "alpha-k"
        else:
            broken += not _CRITERIA[asked["name"]](counts, whole, asked)
    return [f"{broken} of {len(groups)} groups break {asked}"] if broken else []


Counts = Counter[Any]


def _distinct(counts: Counts, whole: Counts, asked: dict[str, Any]) -> bool:
    return len(counts) >= asked["l"]


def _entropy(counts: Counts, whole: Counts, asked: dict[str, Any]) -> bool:
    total = counts.total()
    return -sum(n / total * math.log(n / total) for n in counts.values()) >= math.log(asked["l"]) - ALMOST


def _recursive(counts: Counts, whole: Counts, asked: dict[str, Any]) -> bool:
    falling = sorted(counts.values(), reverse=True)
    return falling[0] < asked["c"] * sum(falling[int(asked["l"]) - 1 :])


def _closeness(counts: Counts, whole: Counts, asked: dict[str, Any]) -> bool:
    total, every = counts.total(), whole.total()
    surplus = {value: counts[value] / total - whole[value] / every for value in whole}
    if asked["distance"] == "equal":
        return sum(abs(s) for s in surplus.values()) / 2 <= asked["t"] + ALMOST
    moved, carried = 0.0, 0.0  # numbers in their order, without missing ones
    for value in sorted(whole)[:-1]:
        carried += surplus[value]
        moved += abs(carried)
    return moved / max(1, len(whole) - 1) <= asked["t"] + ALMOST


def _alpha_k(counts: Counts, whole: Counts, asked: dict[str, Any]) -> bool:
    return counts.total() >= asked["k"] and max(counts.values()) <= asked["alpha"] * counts.total() + ALMOST


def _beta(counts: Counts, whole: Counts, asked: dict[str, Any]) -> bool:
    total, every = counts.total(), whole.total()
    for value in counts:
        p, q = whole[value] / every, counts[value] / total
        bound = asked["beta"] if asked["kind"] == "basic" else min(asked["beta"], -math.log(p))
        if (q - p) / p > bound + ALMOST:
            return False
    return True


def _disclosure(counts: Counts, whole: Counts, asked: dict[str, Any]) -> bool:
    total, every = counts.total(), whole.total()
    if asked["absent"] == "fails" and set(whole) - set(counts):
        return False
    return all(abs(math.log(counts[v] / total / (whole[v] / every))) < asked["delta"] + ALMOST for v in counts)


_CRITERIA = {
    "distinct": _distinct, "entropy": _entropy, "recursive": _recursive, "t": _closeness, "alpha-k": _alpha_k,
    "beta": _beta, "delta": _disclosure,
}  # fmt: skip


def breaks_presence(
    groups: dict[tuple[Any, ...], list[int]],
    own_cells: Sequence[Any],
    population_cells: Sequence[Any],
    bounds: tuple[float, float],
) -> list[str]:
    """Return how many groups hold too small or too large a share of the population of their cells."""
    everybody = Counter(population_cells)
    seen: Counter[Any] = Counter()
    cells_of = []
    for rows in groups.values():
        cells = {own_cells[row] for row in rows}
        seen.update(cells)
        cells_of.append((len(rows), cells))
    if any(n > 1 for n in seen.values()):
        return []  # two groups share a cell's values: from outside it cannot be told whose people these are
    broken = 0
    for size, cells in cells_of:
        members = sum(everybody[cell] for cell in cells)
        broken += not bounds[0] * members - ALMOST <= size <= bounds[1] * members + ALMOST
    return [f"{broken} of {len(cells_of)} groups break presence within {bounds}"] if broken else []


def breaks_anatomy(identifying: Columns, sensitive: Columns, group: str, l: int) -> list[str]:  # noqa: E741
    """Return a finding if a sensitive value exceeds 1/l of a group, or if the tables have different groups."""
    said = []
    if Counter(identifying[group]) != Counter(sensitive[group]):
        said.append("the two tables have groups of different sizes")
    for name, values in sensitive.items():
        if name == group:
            continue
        counts: dict[Any, Counter[Any]] = defaultdict(Counter)
        for at, value in zip(sensitive[group], values, strict=True):
            counts[at][value] += 1
        n_broken = sum(max(own.values()) * l > own.total() for own in counts.values())
        if n_broken:
            said.append(f"{n_broken} of {len(counts)} groups have a value of {name!r} above 1/{l}")
    return said


# --- records ------------------------------------------------------------------------------------------------------


def shown_people(original: Columns, released: Columns, names: Sequence[str], k: int) -> tuple[int, int]:
    """Return how many released combinations one record of the original has, and how many 2 to k - 1 have.

    A combination without any value tells of nobody.
    """
    held = Counter(zip(*(original[name] for name in names), strict=True))
    combinations = set(zip(*(released[name] for name in names), strict=True)) - {(None,) * len(names)}
    return sum(held[c] == 1 for c in combinations), sum(1 < held[c] < k for c in combinations)


def invented(original: Columns, released: Columns, names: Sequence[str]) -> list[str]:
    """Return which columns of categories have a released value that no record has; numbers may be typical values."""
    found = []
    for name in names:
        if not all(value is None or isinstance(value, str | bool) for value in original[name]):
            continue
        extra = set(released[name]) - set(original[name]) - {None}
        if extra:
            found.append(f"column {name!r} has {len(extra)} released values that no record has")
    return found


def has_rare(columns: Columns, names: Sequence[str], k: int) -> bool:
    """Return True if a column has a category that fewer than k records have: no document may name it."""
    return any(
        n < k for name in names for value, n in Counter(columns[name]).items() if isinstance(value, str | bool | int)
    )


def changed(original: Columns, released: Columns, names: Iterable[str], rows: Sequence[int]) -> list[str]:
    """Return which columns that pass through are not as they were; `rows`: where each released record comes from."""
    return [
        f"column {name!r} passes through and was changed"
        for name in names
        if [original[name][row] for row in rows] != released[name]
    ]


def is_in_order(rows: Sequence[int]) -> bool:
    """Return True if the order of the released records follows that of the original."""
    if len(rows) < 30:
        return False
    found = np.corrcoef(np.argsort(np.argsort(rows)), np.arange(len(rows)))[0, 1]
    return bool(abs(found) > 0.6)


# --- words --------------------------------------------------------------------------------------------------------


def canaries(columns: Columns, fewer_than: int | None = None) -> set[str]:
    """Return cells that only a record can have, as text: odd words and long numbers; rare ones only, if asked."""
    found: set[str] = set()
    for values in columns.values():
        for value, n in Counter(values).items():
            if fewer_than is not None and n >= fewer_than:
                continue
            text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
            is_word = isinstance(value, str) and re.fullmatch(r"Zq[a-z]{4,}", value)
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and 10**8 <= value < 10**9
            if is_word or is_number:
                found.add(text)
    return found


def names_people(original: Columns, released: Columns, names: Sequence[str], k: int) -> list[str]:
    """Return a finding if released quasi-identifiers show a word that fewer than k records have.

    Of numbers, one that a single record has: the ends of a range or a mean may be held by a few by chance.
    """
    found = []
    for name in names:
        own = {name: original[name]} if name in original else original
        rare = {cell for cell in canaries(own, k) if cell.startswith("Z")} | canaries(own, 2)
        text = " ".join(str(value) for value in set(released[name]))
        found += [f"column {name!r} is released and {sentence}" for sentence in told(text, rare)]
    return found


def told(text: str, cells: set[str]) -> list[str]:
    """Return a finding if a text holds cells of the table."""
    words = set(re.findall(r"Zq[a-z]{4,}|(?<![\d.])\d{9}(?!\d)", text))
    n_told = len(words & cells)
    return [f"{n_told} cells of the table are in it"] if n_told else []


def bad_sentence(message: str) -> list[str]:
    """Return what is wrong with a refusal as a sentence for people."""
    said = []
    if len(message) < 20 or " " not in message:
        said.append("the refusal is not a sentence")
    if not message.rstrip().endswith((".", "?", ")")):
        said.append("the refusal does not end")
    if "Traceback" in message or "0x" in message:
        said.append("the refusal shows the inside of a program")
    return said


def shape(message: str) -> str:
    """Return a message without names and numbers, so that refusals can be counted by kind."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", " ".join(message.split()))
    return re.sub(r"-?\d[\d.,e+]*", "N", text)[:110]
