# SPDX-License-Identifier: Apache-2.0
"""Random awkward tables of people for the hostile campaign, in every kind of frame and file.

A table is drawn once as Python values and then built with pandas, polars, pyarrow or numpy, or written as CSV or
Parquet. Nothing of sfumato is imported. Many cells are canaries: values so odd that a message or a document in which
one of them appears can only have taken it from a record.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

LIBRARIES = ("pandas", "polars", "pyarrow", "numpy")

#: Kinds that every anonymizer should take as quasi-identifiers.
USUAL = (
    "integer", "code", "wide integer", "float", "huge float", "text", "category", "ordered", "boolean", "date",
    "datetime", "zoned", "time", "duration", "decimal", "long decimal", "canary integer", "canary text",
)  # fmt: skip
#: Kinds that no anonymizer can rewrite: refused in words, or passed by when they are dropped or kept.
EXOTIC = ("list", "struct", "binary", "mixed", "dict", "complex")
#: Often refused for what they hold, so drawn seldom.
RARE = ("long decimal", *EXOTIC)
#: What a CSV file can hold.
WRITABLE = (
    "integer", "code", "float", "text", "category", "boolean", "date", "datetime", "canary integer", "canary text",
)  # fmt: skip

ODD_TEXTS = (
    "", " ", "a,b", 'say "x"', "two\nlines", "é", "😀", "=1+1", "-3", "+4", "@x", "NA", "nan", "null", "1e5", "007",
    "2020-01-01", "true", " led", "trailed ", "a;b", "tab\there", "'", "<b>x</b>", "[red]x[/red]", "\u202eabc",
)  # fmt: skip
ODD_NAMES = ("é", "with space", "a-b", "Group", "index", "count", "select", "x" * 60, "per cent %", "a.b", "[a]")


@dataclass(frozen=True)
class Column:
    """A column without a library: None is a missing value."""

    kind: str
    values: list[Any]
    detail: dict[str, Any] = field(default_factory=dict)

    def take(self, rows: Any) -> Column:
        """Return some of the records."""
        return Column(self.kind, [self.values[row] for row in rows], self.detail)


@dataclass(frozen=True)
class Drawn:
    """A table without a library."""

    columns: dict[str, Column]
    index: str = "range"

    @property
    def n_records(self) -> int:
        """Return the number of records."""
        return len(next(iter(self.columns.values())).values)

    def take(self, rows: Any) -> Drawn:
        """Return some of the records, in the order given."""
        return Drawn({name: column.take(rows) for name, column in self.columns.items()}, self.index)

    def to(self, library: str) -> Any:
        """Build the table as a frame of a library, or as an array."""
        return {"pandas": _pandas, "polars": _polars, "pyarrow": to_arrow, "numpy": _numpy}[library](self)

    def write(self, path: Path, *, separator: str = ",") -> None:
        """Write the table as CSV or Parquet, by the ending of the name."""
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(to_arrow(self), path)
            return
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=separator)
            writer.writerow(self.columns)
            for row in zip(*(column.values for column in self.columns.values()), strict=True):
                writer.writerow(["" if value is None else value for value in row])


# --- drawing ------------------------------------------------------------------------------------------------------


def draw_table(
    random: np.random.Generator,
    *,
    kinds: tuple[str, ...] = USUAL,
    least: int = 2,
    most: int = 3000,
    most_columns: int = 12,
    odd_names: bool = True,
) -> Drawn:
    """Draw a table: mostly small, with repeated records, constants and skew more often than real tables have."""
    n_records = int(np.exp(random.uniform(np.log(least), np.log(most))))
    n_columns = int(random.integers(1, 5)) if random.random() < 0.8 else int(random.integers(1, most_columns + 1))
    names = [f"c{position}" for position in range(n_columns)]
    if odd_names and random.random() < 0.15:
        names[0] = str(random.choice(ODD_NAMES))
    often = [kind for kind in kinds for _ in range(1 if kind in RARE else 8)]
    columns = {name: draw_column(random, str(random.choice(often)), n_records) for name in names}
    table = Drawn(columns, str(random.choice(["range", "range", "range", "reversed", "same", "text", "multi"])))
    if random.random() < 0.25:
        table = table.take(random.integers(0, n_records, n_records))  # many records twice
    return table


def draw_column(random: np.random.Generator, kind: str, n_records: int) -> Column:
    """Draw a column: few different values or many, evenly spread or skewed, with or without missing ones."""
    n_pool = int(random.choice([1, 2, 3, 6, 15, 60, n_records, n_records]))
    pool, detail = draw_pool(random, kind, max(1, n_pool))
    chances = 1.0 / np.arange(1, len(pool) + 1) ** float(random.choice([0.0, 0.0, 1.0, 2.5]))
    drawn = random.choice(len(pool), n_records, p=chances / chances.sum())
    share = float(random.choice([0.0, 0.0, 0.0, 0.05, 0.4, 1.0], p=[0.3, 0.2, 0.2, 0.15, 0.12, 0.03]))
    missing = random.random(n_records) < share
    detail["flavor"] = int(random.integers(0, 1000))
    values = [None if absent else pool[place] for place, absent in zip(drawn, missing, strict=True)]
    return Column(kind, values, detail)


def draw_pool(random: np.random.Generator, kind: str, n: int) -> tuple[list[Any], dict[str, Any]]:
    """Draw the values that a column may have; fewer come back where there are not so many."""
    draw, detail = _POOLS[kind], {}
    values = draw(random, n, detail)
    unique: list[Any] = []
    seen: set[str] = set()
    for value in values:
        if repr(value) not in seen:
            seen.add(repr(value))
            unique.append(value)
    return unique, detail


Pool = Callable[[np.random.Generator, int, dict[str, Any]], list[Any]]


def word(random: np.random.Generator, letters: int = 7) -> str:
    """Return a canary: no word of any language, so that it can only come from a record."""
    return "Zq" + "".join(random.choice(list(string.ascii_lowercase), letters))


def _wide(random: np.random.Generator, n: int, detail: dict[str, Any]) -> list[Any]:
    ends = [2**63 - 1, -(2**63), 0, -1, 2**53 + 1, 2**53, -(2**31) - 1]
    return [int(v) for v in random.integers(-(2**62), 2**62, max(1, n // 2))] + ends[: int(random.integers(0, 8))]


def _huge(random: np.random.Generator, n: int, detail: dict[str, Any]) -> list[Any]:
    ends = [1.7976931348623157e308, -1.7976931348623157e308, 1e308, 5e-324, 2.2e-308, -0.0, 0.1 + 0.2, 1e22]
    drawn = (random.choice([-1.0, 1.0], n) * 10.0 ** random.uniform(-300, 308, n)).tolist()
    return [*drawn[: max(1, n - 4)], *ends[: int(random.integers(0, 9))]]


def _text(random: np.random.Generator, n: int, detail: dict[str, Any]) -> list[Any]:
    odd = [str(value) for value in random.permutation(ODD_TEXTS)[: int(random.integers(0, 7))]]
    return [*odd, *(word(random) for _ in range(max(1, n - len(odd))))]


def _category(random: np.random.Generator, n: int, detail: dict[str, Any]) -> list[Any]:
    values = [word(random, 4) for _ in range(min(n, 40))]
    detail["categories"] = [str(v) for v in random.permutation([*dict.fromkeys(values), "unused"])]
    return values


def _decimals(random: np.random.Generator, n: int, detail: dict[str, Any]) -> list[Any]:
    precision, scale = [(5, 2), (9, 0), (15, 3), (18, 4), (15, 15), (38, 10), (20, 18)][int(random.integers(0, 7))]
    detail.update(precision=precision, scale=scale)
    digits = min(precision, 15)
    values = [decimal.Decimal(int(v)).scaleb(-scale) for v in random.integers(-(10**digits) + 1, 10**digits, n)]
    return values if random.random() < 0.6 else [decimal.Decimal(10**digits - 1).scaleb(-scale), *values]


def _long_decimals(random: np.random.Generator, n: int, detail: dict[str, Any]) -> list[Any]:
    precision, scale = [(38, 0), (38, 37), (38, 2), (30, 20)][int(random.integers(0, 4))]
    detail.update(precision=precision, scale=scale)
    ends = [10**precision - 1, -(10**precision) + 1, 10 ** (precision - 1), 1, 0]
    drawn = [int("".join(random.choice(list("123456789"), precision))) for _ in range(max(1, n - 3))]
    with decimal.localcontext(prec=60):
        return [decimal.Decimal(v).scaleb(-scale) for v in [*drawn, *ends[: int(random.integers(0, 6))]]]


def _days(random: np.random.Generator, n: int) -> list[datetime.date]:
    first = datetime.date(1900, 1, 1)
    return [first + datetime.timedelta(days=int(d)) for d in random.integers(0, 73_000, n)]


def _datetimes(random: np.random.Generator, n: int, zone: Any = None) -> list[Any]:
    first = datetime.datetime(1930, 1, 1, tzinfo=datetime.UTC if zone is not None else None)
    step = int(random.choice([1, 1_000_000, 86_400_000_000]))
    return [first + datetime.timedelta(microseconds=int(m) * step) for m in random.integers(0, 5 * 10**15 // step, n)]


_POOLS: dict[str, Pool] = {
    "integer": lambda random, n, detail: [int(v) for v in random.integers(-9, 90, n)],
    "code": lambda random, n, detail: [int(v) for v in random.integers(1, 9, n)],
    "canary integer": lambda random, n, detail: [int(v) for v in random.integers(10**8, 10**9, n)],
    "canary text": lambda random, n, detail: [word(random) for _ in range(n)],
    "wide integer": _wide,
    "float": lambda random, n, detail: [
        float(v) for v in np.round(random.normal(50, 20, n), int(random.integers(0, 7)))
    ],
    "huge float": _huge,
    "text": _text,
    "category": _category,
    "ordered": _category,
    "boolean": lambda random, n, detail: [True, False][: max(1, n)],
    "date": lambda random, n, detail: _days(random, n),
    "datetime": lambda random, n, detail: _datetimes(random, n),
    "zoned": lambda random, n, detail: _datetimes(random, n, datetime.UTC),
    "time": lambda random, n, detail: [
        (datetime.datetime(2000, 1, 1) + datetime.timedelta(seconds=int(s))).time()
        for s in random.integers(0, 86_400, n)
    ],
    "duration": lambda random, n, detail: [
        datetime.timedelta(microseconds=int(m) * 1000) for m in random.integers(-(10**12), 10**12, n)
    ],
    "decimal": _decimals,
    "long decimal": _long_decimals,
    "list": lambda random, n, detail: [[int(v)] * int(v % 3) for v in random.integers(0, 9, n)],
    "struct": lambda random, n, detail: [{"a": int(v), "b": word(random)} for v in random.integers(0, 9, n)],
    "binary": lambda random, n, detail: [word(random).encode() for _ in range(n)],
    "mixed": lambda random, n, detail: [1, "one", 2.5, word(random)][: max(2, n)],
    "dict": lambda random, n, detail: [{"key": word(random)} for _ in range(n)],
    "complex": lambda random, n, detail: [complex(int(v), 1) for v in random.integers(0, 9, n)],
}

# --- building -----------------------------------------------------------------------------------------------------


def arrow_type(column: Column) -> Any:
    """Return the Arrow type of a column; None: pyarrow decides."""
    import pyarrow as pa

    flavor = column.detail["flavor"]
    small = column.kind in ("integer", "code")
    texts = (pa.string(), pa.large_string(), pa.string_view())
    decimal_type = None
    if "precision" in column.detail:
        wide = flavor % 5 == 0
        decimal_type = (pa.decimal256 if wide else pa.decimal128)(column.detail["precision"], column.detail["scale"])
    integers = (pa.int64(), pa.int8(), pa.int32()) if small else (pa.int64(),)
    return {
        "integer": integers[flavor % len(integers)],
        "code": integers[flavor % len(integers)],
        "canary integer": (pa.int64(), pa.int32(), pa.uint32(), pa.uint64())[flavor % 4],
        "wide integer": pa.int64(),
        "float": (pa.float64(), pa.float64(), pa.float32())[flavor % 3],
        "huge float": pa.float64(),
        "text": texts[flavor % 3],
        "canary text": texts[flavor % 3],
        "category": pa.dictionary((pa.int32(), pa.int8())[flavor % 2], pa.string()),
        "ordered": pa.dictionary(pa.int32(), pa.string(), ordered=True),
        "boolean": pa.bool_(),
        "date": (pa.date32(), pa.date32(), pa.date64())[flavor % 3],
        "datetime": pa.timestamp(("us", "ns", "us")[flavor % 3]),
        "zoned": pa.timestamp("us", ("UTC", "Europe/Paris")[flavor % 2]),
        "time": (pa.time64("us"), pa.time32("s"))[flavor % 2],
        "duration": pa.duration(("us", "ms")[flavor % 2]),
        "decimal": decimal_type,
        "long decimal": decimal_type,
        "list": pa.list_(pa.int64()),
        "binary": pa.binary(),
    }.get(column.kind)


def to_arrow(table: Drawn) -> Any:
    """Build a pyarrow table; what Arrow cannot hold becomes text."""
    import pyarrow as pa

    arrays = {}
    for name, column in table.columns.items():
        kind = arrow_type(column)
        if column.kind == "struct":
            arrays[name] = pa.array(column.values)
        elif column.kind in ("mixed", "dict", "complex"):
            arrays[name] = pa.array([None if v is None else repr(v) for v in column.values], pa.string())
        elif column.kind in ("category", "ordered"):
            listed = column.detail["categories"]
            codes = [None if v is None else listed.index(v) for v in column.values]
            arrays[name] = pa.DictionaryArray.from_arrays(
                pa.array(codes, kind.index_type), pa.array(listed), ordered=kind.ordered
            )
        else:
            arrays[name] = pa.array(column.values, kind)
    return pa.table(arrays)


def _polars(table: Drawn) -> Any:
    import polars as pl

    series = []
    for name, column in table.columns.items():
        flavor, kind = column.detail["flavor"], column.kind
        dtype: Any = {
            "integer": (pl.Int64, pl.Int8, pl.Int128)[flavor % 3],
            "code": (pl.Int64, pl.Int8, pl.Int32)[flavor % 3],
            "canary integer": (pl.Int64, pl.UInt32, pl.UInt64)[flavor % 3],
            "wide integer": pl.Int64,
            "float": (pl.Float64, pl.Float32)[flavor % 2],
            "huge float": pl.Float64,
            "text": pl.String,
            "canary text": pl.String,
            "category": pl.Categorical,
            "ordered": pl.Enum(column.detail.get("categories", [])),
            "boolean": pl.Boolean,
            "date": pl.Date,
            "datetime": pl.Datetime(("us", "ns", "ms")[flavor % 3]),
            "zoned": pl.Datetime("us", ("UTC", "Europe/Paris")[flavor % 2]),
            "time": pl.Time,
            "duration": pl.Duration(("us", "ns", "ms")[flavor % 3]),
            "list": pl.List(pl.Int64),
            "binary": pl.Binary,
            "struct": pl.Struct({"a": pl.Int64, "b": pl.String}),
            "mixed": pl.Object,
            "dict": pl.Object,
            "complex": pl.Object,
        }.get(kind)
        if "precision" in column.detail:
            dtype = pl.Decimal(column.detail["precision"], column.detail["scale"])
        series.append(pl.Series(name, column.values, dtype=dtype))
    return pl.DataFrame(series)


def _pandas(table: Drawn) -> Any:
    import pandas as pd

    frame = pd.DataFrame({position: _pandas_column(c) for position, c in enumerate(table.columns.values())})
    frame.columns = pd.Index(list(table.columns))
    n_records = table.n_records
    index: Any = {
        "range": range(n_records),
        "reversed": range(n_records, 0, -1),
        "same": [7] * n_records,
        "text": [f"r{row}" for row in range(n_records)],
        "multi": pd.MultiIndex.from_arrays([range(n_records), ["a"] * n_records]),
    }[table.index]
    return frame.set_axis(index)


def _pandas_column(column: Column) -> Any:
    import pandas as pd
    import pyarrow as pa

    kind, values, flavor = column.kind, column.values, column.detail["flavor"]
    has_missing = any(value is None for value in values)
    if kind in ("category", "ordered"):
        return pd.Series(pd.Categorical(values, categories=column.detail["categories"], ordered=kind == "ordered"))
    if kind in ("date", "datetime", "zoned", "time", "duration", "decimal", "long decimal"):
        array = pa.array(values, arrow_type(column))
        if flavor % 3 == 0 or kind == "time":
            return pd.Series(values, dtype=object)
        if flavor % 3 == 1 or kind in ("decimal", "long decimal"):
            return pd.Series(array.to_pandas(types_mapper=pd.ArrowDtype))
        return array.to_pandas()
    names = {
        "integer": ("int64", "Int64", "int64[pyarrow]", "Int8", "int8", "object", "float64"),
        "code": ("int64", "Int64", "int64[pyarrow]", "UInt8", "int16", "object"),
        "canary integer": ("int64", "Int64", "uint64", "UInt32", "object"),
        "wide integer": ("int64", "Int64", "int64[pyarrow]"),
        "float": ("float64", "Float64", "double[pyarrow]", "float32", "object"),
        "huge float": ("float64", "Float64", "double[pyarrow]"),
        "boolean": ("bool", "boolean", "bool[pyarrow]", "object"),
        "text": ("str", "object", "string", "string[pyarrow]"),
        "canary text": ("str", "object", "string", "category"),
        "complex": ("object", "complex128"),
    }.get(kind, ("object",))
    wanted = names[flavor % len(names)]
    if has_missing and wanted in ("int64", "int8", "int16", "uint64", "bool", "complex128"):
        wanted = "object" if wanted in ("bool", "complex128") else "Int64"
    return pd.Series(values, dtype=wanted)


def _numpy(table: Drawn) -> Any:
    columns = list(table.columns.values())
    numeric = all(c.kind in ("integer", "code", "canary integer", "float", "huge float") for c in columns)
    if numeric:
        floats = any(c.kind.endswith("float") for c in columns) or any(v is None for c in columns for v in c.values)
        dtype = np.float64 if floats else np.int64
        data = [[np.nan if v is None else v for v in c.values] for c in columns]
        return np.array(data, dtype=dtype).T.copy()
    array = np.empty((table.n_records, len(columns)), object)
    for position, column in enumerate(columns):
        for row, value in enumerate(column.values):
            array[row, position] = value
    return array
