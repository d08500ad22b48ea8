# SPDX-License-Identifier: Apache-2.0
"""Random generalizations with random tables for them, and a reader of the document that shares nothing with ours.

A generalization is made from some of the records of a table, so that the others have values that it has not seen.
"""

import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sfumato.frames import read_table
from sfumato.generalization import Generalization, generalization_from_bins
from sfumato.sources import MemorySource
from strategies import RawColumn, RawTable

UTC = dt.UTC
#: Text that exports get wrong: quotes, escapes, blanks at the end, look-alikes, tags, what looks like other types.
TEXTS = (
    "a",
    "a ",
    " a",
    "A",
    "",
    " ",
    "o'neil",
    'say "x"',
    "back\\slash",
    "\\'",
    "é",
    "e\u0301",
    "ﬃ",
    "日本",
    "😀",
    "a\nb",
)
TEXTS += (
    "</script>",
    "<!--",
    "$1",
    ":x",
    "{a, b}",
    "null",
    "NaN",
    "true",
    "1",
    "1.0",
    "%s",
    "\u2028",
    "\u200b",
    "a\tb",
)
TEXTS += ("__proto__", "constructor", "; DROP TABLE people; --", "`tick`")
INTEGERS = (0, 1, -1, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3, -(2**53) - 1, 2**63 - 1, -(2**63), 10**18, 10**18 + 1)
FLOATS = (0.0, -0.0, 0.1, 0.30000000000000004, 1.5, -1.5, 1e-300, -5e-324, 1.7976931348623157e308, 1e22, 2.0**53, 100.0)
MOMENTS = (0, -1, 1, 86_400_000_000, -86_400_000_000, 946_684_800_000_000, 946_684_799_999_999, 1_700_000_000_123_456)

_WIDE = st.integers(-2_000_000_000_000_000, 4_000_000_000_000_000)
_MICROSECONDS = st.one_of(st.sampled_from(MOMENTS), _WIDE)


def _at(microseconds: int, zone: dt.tzinfo | None = None) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=microseconds)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.one_of(st.sampled_from(INTEGERS), st.integers(-9, 90), st.integers(-(2**63), 2**63 - 1)),
    "whole": st.integers(-40, 120).map(float),
    "float": st.one_of(
        st.sampled_from(FLOATS), st.floats(-5, 5), st.floats(allow_nan=False, allow_infinity=False, width=64)
    ),
    "boolean": st.booleans(),
    "text": st.one_of(
        st.sampled_from(TEXTS), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
    ),
    "number code": st.one_of(st.sampled_from(INTEGERS), st.integers(-3, 9)),
    "float code": st.one_of(st.sampled_from(FLOATS), st.integers(-3, 9).map(float)),
    "date": _MICROSECONDS.map(lambda us: _at(us).date()),
    "datetime": _MICROSECONDS.map(_at),
    "zoned datetime": _MICROSECONDS.map(lambda us: _at(us, UTC)),
    "duration": _MICROSECONDS.map(lambda us: dt.timedelta(microseconds=us)),
    "time": st.integers(0, 86_400_000_000 - 1).map(lambda us: _at(us).time()),
}
KINDS = tuple(VALUES)
_ARROW: dict[str, Any] = {
    "integer": pa.int64(),
    "whole": pa.float64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "number code": pa.int64(),
    "float code": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "zoned datetime": pa.timestamp("us", "UTC"),
    "duration": pa.duration("us"),
    "time": pa.time64("us"),
}


@dataclass(frozen=True)
class Case:
    """A generalization and records for it, some of which it was made from."""

    generalization: Generalization
    kinds: dict[str, str]
    values: dict[str, list[Any]]

    @property
    def table(self) -> pa.Table:
        return pa.table({name: pa.array(self.values[name], _ARROW[kind]) for name, kind in self.kinds.items()})

    @property
    def codes(self) -> np.ndarray:
        return self.generalization.codes(self.table)

    def expected(self, output: str = "labels") -> dict[str, list[Any]]:
        codes = self.codes
        found: dict[str, list[Any]] = {}
        for place, attribute in enumerate(self.generalization.attributes):
            buckets = codes[:, place].tolist()
            found[attribute.name] = [attribute.labels[b] for b in buckets] if output == "labels" else buckets
        return found

    def __repr__(self) -> str:
        return f"Case({self.kinds}, {self.values}, {self.generalization.to_json(indent=None)})"


NAMES = ("age", "o'clock", 'say "it"', "größe", "a b", "__proto__", "select", "back\\slash", "tick`")


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, max_columns: int = 4) -> Case:
    """Draw a generalization and records for it."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=max_columns, unique=True))
    chosen = {name: draw(st.sampled_from(kinds)) for name in names}
    n_fitted, n_others = draw(st.integers(2, 25)), draw(st.integers(1, 15))
    values: dict[str, list[Any]] = {}
    for name, kind in chosen.items():
        pool = draw(st.lists(VALUES[kind], min_size=1, max_size=8))
        seen = st.sampled_from([*pool, None] if draw(st.booleans()) else pool)
        fitted = draw(st.lists(seen, min_size=n_fitted, max_size=n_fitted))
        others = st.one_of(st.none(), st.sampled_from(pool), VALUES[kind])
        values[name] = [*fitted, *draw(st.lists(others, min_size=n_others, max_size=n_others))]
    arrays = {name: pa.array(values[name][:n_fitted], _ARROW[kind]) for name, kind in chosen.items()}
    codes = [name for name, kind in chosen.items() if kind.endswith("code")]
    max_bins = draw(st.sampled_from((3, 255)))
    source = MemorySource(read_table(pa.table(arrays), categorical=codes), names, max_bins=max_bins)
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    buckets = [random_buckets(column, generator) for column in source.columns]
    return Case(generalization_from_bins(source.columns, buckets), chosen, values)


def random_buckets(column: Any, generator: np.random.Generator) -> np.ndarray:
    """Give every fine code a bucket: runs for ordered columns, anything for categories, missing anywhere."""
    bins = column.bins
    n_wanted = int(generator.integers(1, 5))
    if bins.is_ordered:
        found = np.sort(generator.integers(0, n_wanted, bins.n_values))
    else:
        found = generator.integers(0, n_wanted, bins.n_values)
    return np.append(found, generator.integers(0, n_wanted + 1)) if bins.has_missing else found


def bucket_by_document(attribute: dict[str, Any], value: Any) -> int:
    """Find the bucket of one value from the JSON document alone, in plain Python."""
    if len(attribute["buckets"]) == 1:
        return 0
    if value is None or (isinstance(value, float) and value != value):
        return int(attribute["missing"])
    if attribute["kind"] == "category":
        for place, bucket in enumerate(attribute["buckets"]):
            listed = bucket.get("categories", [])
            if attribute["values"] == "number":
                listed = [int(c) if isinstance(c, str) else c for c in listed]
            if value in listed:
                return place
        return int(attribute["unseen"])
    point = _exact(value, attribute)
    for place, bucket in enumerate(attribute["buckets"]):
        limit = bucket["at_most"]
        if limit is None or point <= Decimal(limit):
            return place
    raise AssertionError("no open last bucket")


def _exact(value: Any, attribute: dict[str, Any]) -> Decimal:
    microsecond = dt.timedelta(microseconds=1)
    if isinstance(value, dt.datetime):
        return Decimal((value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)) // microsecond)
    if isinstance(value, dt.date):
        return Decimal((value - dt.date(1970, 1, 1)) // microsecond)
    if isinstance(value, dt.timedelta):
        return Decimal(value // microsecond)
    if isinstance(value, dt.time):
        return Decimal((dt.datetime.combine(dt.date(1970, 1, 1), value) - dt.datetime(1970, 1, 1)) // microsecond)
    return Decimal(value)


def document_of(generalization: Generalization) -> dict[str, Any]:
    return json.loads(generalization.to_json())


def raw_table(case: Case) -> RawTable:
    """Return the records as a table that can be built in every library."""
    pandas_types = {"integer": "Int64", "float": "Float64", "boolean": "boolean", "text": "str"}
    pandas_types |= {
        "datetime": "datetime64[us]",
        "zoned datetime": "datetime64[us, UTC]",
        "duration": "timedelta64[us]",
    }
    columns = {n: RawColumn(k, case.values[n], pandas_types.get(k, "object")) for n, k in case.kinds.items()}
    return RawTable(columns, list(range(len(next(iter(case.values.values()))))))
