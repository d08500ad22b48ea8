# SPDX-License-Identifier: Apache-2.0
"""Random small tables of people for property tests, in every kind of frame.

A table is drawn once, without a library, and then built as a pandas or polars frame, a pyarrow table or a numpy
array, so that the same property runs on all of them. The tables are awkward on purpose: constants, columns that are
all missing, duplicates, skew, values that one record has, the ends of integer and float ranges, empty text.
"""

import datetime
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

LIBRARIES = ("pandas", "polars", "pyarrow", "numpy")
GUIDE_KINDS = ("labels", "binary probabilities", "probabilities", "number", "numbers", "several probabilities")

_WANTED = os.environ.get("SFUMATO_EXAMPLES", "1.0")
IS_QUICK = "." in _WANTED and float(_WANTED) < 1


def in_examples(n: int = 50) -> settings:
    """Run a property on n tables, the same ones each time.

    SFUMATO_EXAMPLES=0.3 takes a share of them, as ``make test`` does; SFUMATO_EXAMPLES=1000 goes looking for new ones.
    """
    if "." in _WANTED:
        return settings(max_examples=max(4, round(n * float(_WANTED))), deadline=None, derandomize=True)
    return settings(max_examples=int(_WANTED), deadline=None)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.one_of(st.integers(-9, 90), st.integers(-(2**63), 2**63 - 1)),
    "float": st.one_of(st.floats(-5, 5, width=32), st.floats(allow_nan=False, allow_infinity=False)),
    "boolean": st.booleans(),
    "text": TEXT,
    "categorical": TEXT,
    "date": st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)),
    "datetime": st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)),
    "zoned datetime": st.datetimes(
        datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1), timezones=st.just(datetime.UTC)
    ),
    "duration": st.timedeltas(datetime.timedelta(days=-4000), datetime.timedelta(days=4000)),
}

# What a column may be called by each library; the first fits without missing values only.
_PANDAS_TYPES: dict[str, tuple[str, ...]] = {
    "integer": ("int64", "Int64", "int64[pyarrow]"),
    "float": ("float64", "Float64", "double[pyarrow]"),
    "boolean": ("bool", "boolean", "object"),
    "text": ("str", "object", "string"),
    "date": ("object", "object", "date32[pyarrow]"),
    "datetime": ("datetime64[us]", "datetime64[us]", "datetime64[us]"),
    "zoned datetime": ("datetime64[us, Europe/Paris]", "datetime64[us, UTC]", "datetime64[us, UTC]"),
    "duration": ("timedelta64[us]", "timedelta64[us]", "timedelta64[us]"),
}
_POLARS_TYPES: dict[str, Any] = {
    "integer": pl.Int64,
    "float": pl.Float64,
    "boolean": pl.Boolean,
    "text": pl.String,
    "categorical": pl.Categorical,
    "date": pl.Date,
    "datetime": pl.Datetime("us"),
    "zoned datetime": pl.Datetime("us", "UTC"),
    "duration": pl.Duration("us"),
}
_ARROW_TYPES: dict[str, Any] = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "categorical": pa.dictionary(pa.int32(), pa.string()),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "zoned datetime": pa.timestamp("us", "UTC"),
    "duration": pa.duration("us"),
}


@dataclass(frozen=True)
class RawColumn:
    """A column without a library: None is a missing value."""

    kind: str
    values: list[Any]
    pandas_type: Any

    @property
    def has_missing(self) -> bool:
        return any(value is None for value in self.values)


@dataclass(frozen=True)
class RawTable:
    """A table without a library."""

    columns: dict[str, RawColumn]
    index: list[Any] = field(default_factory=list)

    @property
    def n_records(self) -> int:
        return len(next(iter(self.columns.values())).values)

    def __repr__(self) -> str:
        return f"RawTable({ {name: (c.kind, c.pandas_type, c.values) for name, c in self.columns.items()} })"

    def to(self, library: str) -> Any:
        """Build the table as a frame of a library, or as an array of objects."""
        if library == "pandas":
            columns = {name: _pandas_column(column) for name, column in self.columns.items()}
            return pd.DataFrame(columns).set_axis(self.index)
        if library == "polars":
            return pl.DataFrame(
                [pl.Series(name, c.values, dtype=_POLARS_TYPES[c.kind]) for name, c in self.columns.items()]
            )
        if library == "pyarrow":
            return pa.table({name: pa.array(c.values, _ARROW_TYPES[c.kind]) for name, c in self.columns.items()})
        array = np.empty((self.n_records, len(self.columns)), object)
        for position, column in enumerate(self.columns.values()):
            array[:, position] = column.values
        return array

    def take(self, rows: Any) -> "RawTable":
        """Return some of the records, in the order given."""
        columns = {
            name: RawColumn(c.kind, [c.values[row] for row in rows], c.pandas_type) for name, c in self.columns.items()
        }
        return RawTable(columns, [self.index[row] for row in rows])


def _pandas_column(column: RawColumn) -> pd.Series:
    if column.kind == "date" and column.pandas_type == "object":
        return pd.Series(column.values, dtype=object)
    if column.kind.endswith("datetime") or column.kind == "duration":
        return pa.array(column.values, _ARROW_TYPES[column.kind]).to_pandas().astype(column.pandas_type)
    return pd.Series(column.values, dtype=column.pandas_type)


@st.composite
def columns(draw: st.DrawFn, n_records: int, kinds: tuple[str, ...] = tuple(VALUES)) -> RawColumn:
    """Draw a column: few different values or many, evenly spread or skewed, with or without missing ones."""
    kind = draw(st.sampled_from(kinds))
    pool = draw(st.lists(VALUES[kind], min_size=1, max_size=draw(st.sampled_from((1, 2, 5, 12)))))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    skew = draw(st.sampled_from((0.0, 1.0, 3.0)))
    chances = 1.0 / np.arange(1, len(pool) + 1) ** skew
    drawn = generator.choice(len(pool), n_records, p=chances / chances.sum())
    share = draw(st.sampled_from((0.0, 0.0, 0.1, 0.6, 1.0)))
    is_missing = generator.random(n_records) < share
    values = [None if absent else pool[place] for place, absent in zip(drawn, is_missing, strict=True)]
    if kind == "categorical":
        categories = draw(st.permutations([*dict.fromkeys([*pool, "unused"])]))
        return RawColumn(kind, values, pd.CategoricalDtype(categories, ordered=draw(st.booleans())))
    choices = _PANDAS_TYPES[kind]
    return RawColumn(kind, values, draw(st.sampled_from(choices[1:] if is_missing.any() else choices)))


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    min_records: int = 4,
    max_records: int = 40,
    min_columns: int = 1,
    max_columns: int = 4,
    kinds: tuple[str, ...] = tuple(VALUES),
) -> RawTable:
    """Draw a table; about one in three has repeated records, and its pandas index is anything but 0, 1, 2."""
    n_records = draw(st.integers(min_records, max_records))
    n_columns = draw(st.integers(min_columns, max_columns))
    drawn = {f"c{position}": draw(columns(n_records, kinds)) for position in range(n_columns)}
    index = draw(st.sampled_from((range(n_records), range(n_records, 0, -1), ["same"] * n_records)))
    table = RawTable(drawn, list(index))
    if draw(st.integers(0, 2)) == 0:
        generator = np.random.default_rng(n_records)
        table = table.take(generator.integers(0, n_records, n_records))
    return table


@st.composite
def guides(draw: st.DrawFn, n_records: int, kinds: tuple[str, ...] = GUIDE_KINDS) -> Any:
    """Draw what guides the splits: labels, probabilities, numbers, of one output or several."""
    return make_guide(draw(st.sampled_from(kinds)), n_records, draw(st.integers(0, 2**16)))


def make_guide(kind: str, n_records: int, seed: int) -> Any:
    """Make predictions of one kind for records; ties and constants come up, as they do in practice."""
    generator = np.random.default_rng(seed)
    if kind == "labels":
        return generator.choice(["no", "perhaps", "yes"][: 1 + seed % 3], n_records)
    if kind == "number":
        return np.round(generator.normal(size=n_records), 1 + seed % 3) + 0.001
    if kind == "numbers":
        return generator.normal(size=(n_records, 3)) * [1, 1000, 0]
    n_classes = 2 if kind == "binary probabilities" else 4
    made = [np.round(generator.dirichlet(np.ones(n_classes), n_records), 2) for _ in range(2)]
    made = [part / part.sum(axis=1, keepdims=True) for part in made]
    return made if kind == "several probabilities" else made[0]


def take_guide(guide: Any, rows: Any) -> Any:
    """Return the predictions of some of the records."""
    return [part[rows] for part in guide] if isinstance(guide, list) else guide[rows]
