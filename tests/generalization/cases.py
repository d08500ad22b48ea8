# SPDX-License-Identifier: Apache-2.0
"""Random generalizations with random tables for them, and a reader of the document that shares nothing with ours.

A generalization is made from some of the records of a table, so that the others have values that it has not seen.
"""

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sfumato.backends.memory import MemorySource
from sfumato.coded_columns import CodedColumn
from sfumato.frames import read_table
from sfumato.generalization import Generalization, generalization_from_bins
from sfumato.partition.binning import bin_own_categories
from strategies import RawColumn, RawTable

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


def _at(microseconds: int, zone: dt.tzinfo | None = None) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=microseconds)


def _integer(generator: np.random.Generator) -> int:
    small, large = generator.integers(-9, 90), generator.integers(-(2**63), 2**63 - 1, endpoint=True)
    return int(generator.choice([generator.choice(INTEGERS), generator.choice(INTEGERS), small, large]))


def _float(generator: np.random.Generator) -> float:
    scaled = generator.normal() * 10.0 ** generator.integers(-300, 300)
    return float(generator.choice([generator.choice(FLOATS), generator.uniform(-5, 5), scaled]))


def _text(generator: np.random.Generator) -> str:
    if generator.random() < 0.7:
        return TEXTS[generator.integers(len(TEXTS))]
    points = generator.integers(1, [0x80, 0x800, 0xD800, 0x11000][generator.integers(4)], generator.integers(0, 5))
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


def _microseconds(generator: np.random.Generator) -> int:
    if generator.random() < 0.5:  # neighbors: what rounds moments joins these
        return MOMENTS[generator.integers(len(MOMENTS))] + int(generator.integers(-1, 2))
    span = 10 ** int(generator.integers(3, 16))
    return int(generator.integers(-span, span))


VALUES: dict[str, Callable[[np.random.Generator], Any]] = {
    "integer": _integer,
    "whole": lambda generator: float(generator.integers(-40, 120)),
    "float": _float,
    "boolean": lambda generator: bool(generator.integers(2)),
    "text": _text,
    "number code": lambda generator: _integer(generator) if generator.random() < 0.5 else int(generator.integers(9)),
    "float code": lambda generator: _float(generator) if generator.random() < 0.5 else float(generator.integers(9)),
    "date": lambda generator: _at(_microseconds(generator)).date(),
    "datetime": lambda generator: _at(_microseconds(generator)),
    "zoned datetime": lambda generator: _at(_microseconds(generator), dt.UTC),
    "duration": lambda generator: dt.timedelta(microseconds=_microseconds(generator)),
    "time": lambda generator: _at(int(generator.integers(86_400_000_000))).time(),
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


def cases(kinds: tuple[str, ...] = KINDS) -> st.SearchStrategy[Case]:
    """Draw a generalization and records for it: from one seed, since values drawn one by one would be too simple."""
    return st.integers(0, 2**32).map(lambda seed: make_case(seed, kinds))


def make_case(seed: int, kinds: tuple[str, ...] = KINDS) -> Case:
    """Make the generalization and the records of a seed."""
    generator = np.random.default_rng(seed)
    names = generator.permutation(NAMES)[: generator.integers(1, 5)].tolist()
    chosen = {name: kinds[generator.integers(len(kinds))] for name in names}
    n_fitted, n_others = int(generator.integers(2, 26)), int(generator.integers(1, 16))
    values = {name: _column(generator, VALUES[kind], n_fitted, n_others) for name, kind in chosen.items()}
    arrays = {name: pa.array(values[name][:n_fitted], _ARROW[kind]) for name, kind in chosen.items()}
    codes = [name for name, kind in chosen.items() if kind.endswith("code")]
    max_bins = int(generator.choice([3, 255]))
    source = MemorySource(read_table(pa.table(arrays), categorical=codes), names, max_bins=max_bins)
    columns, public = list(source.columns), []
    for place, column in enumerate(columns):
        kind = chosen[column.name]
        if column.kind == "category" and kind != "boolean" and generator.random() < 0.3:
            columns[place] = listed(column, [VALUES[kind](generator) for _ in range(3)])
            public.append(column.name)
    buckets = [random_buckets(column, generator) for column in columns]
    for place, column in enumerate(columns):
        if column.kind == "category" and generator.random() < 0.5:  # where categories go that did not occur
            buckets[place] = np.append(buckets[place], generator.integers(0, int(buckets[place].max(initial=0)) + 2))
    floor = int(generator.choice([1, 2, 4]))
    made = generalization_from_bins(columns, buckets, floor=floor, public=public)
    return Case(made, chosen, values)


def listed(column: CodedColumn, others: list[Any]) -> CodedColumn:
    """Return a column of categories with some that no record has, as a hierarchy lists them."""
    assert column.categories is not None
    seen = column.categories.tolist()
    every = sorted({*seen, *(value for value in others if value is not None)})
    categories = np.empty(len(every), object)
    categories[:] = every
    bins = bin_own_categories(len(every), column.bins.has_missing)
    place = np.array([*(every.index(value) for value in seen), len(every)])
    return replace(column, bins=bins, codes=place[column.codes].astype(np.uint8), categories=categories, places=None)


def _column(generator: np.random.Generator, make: Callable[..., Any], n_fitted: int, n_others: int) -> list[Any]:
    """Make values: the first from a small pool, the others from it, missing, or never seen."""
    pool = [make(generator) for _ in range(generator.integers(1, 13))]
    share = generator.choice([0.0, 0.0, 0.2, 1.0], p=[0.3, 0.2, 0.45, 0.05])
    fitted = [None if generator.random() < share else pool[generator.integers(len(pool))] for _ in range(n_fitted)]
    others = [
        [None, pool[generator.integers(len(pool))], make(generator)][generator.integers(3)] for _ in range(n_others)
    ]
    return [*fitted, *others]


def random_buckets(column: Any, generator: np.random.Generator) -> np.ndarray:
    """Give every fine code a bucket: runs for ordered columns, anything for categories, missing anywhere."""
    bins = column.bins
    n_wanted = int(generator.integers(1, 7))
    found = generator.integers(0, n_wanted, bins.n_values)
    found = np.sort(found) if bins.is_ordered else found
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
