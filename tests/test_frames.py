# SPDX-License-Identifier: Apache-2.0
"""Any frame in, columns out, the same kind of frame back, with its types and its index."""

import datetime
import decimal
import string
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import MondrianAnonymizer
from sfumato.errors import InputError
from sfumato.frames import GroupedLabels, GroupedValues, read_table
from sfumato.frames.building import build_frame, kind_of_frame
from sfumato.frames.parquet_columns import ParquetColumns
from sfumato.verification import count_groups
from strategies import in_examples

EXAMPLES = in_examples(50)
MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "numpy": lambda columns: np.array(list(columns.values()), dtype=object).T,
}


@pytest.fixture(params=MAKERS)
def library(request):
    return request.param


@pytest.fixture
def make(library):
    return MAKERS[library]


def cells(frame):
    """Return the columns of any frame as lists of Python values, None where missing."""
    if isinstance(frame, np.ndarray):
        columns = frame.T.tolist()
    elif isinstance(frame, pd.DataFrame):
        columns = [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
    elif isinstance(frame, pl.DataFrame):
        columns = [column.to_list() for column in frame.get_columns()]
    else:
        columns = [column.to_pylist() for column in frame.columns]
    return [[None if pd.isna(value) else value for value in column] for column in columns]


def names_of(frame):
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def rebuilt(frame, **options):
    """Read every column and write it back with one group per record."""
    table = read_table(frame, **options)
    columns = [table.column(name) for name in table.names]
    group = np.arange(table.n_records, dtype=np.int32)
    return table.replaced({c.name: GroupedValues(c.values, c.missing, group) for c in columns})


# ---- every type survives ---------------------------------------------------------------------------------------------

TEXT = st.text(string.ascii_letters + "éßЖ中😀 *-", max_size=4)
FLOATS = {bits: st.floats(allow_nan=False, allow_infinity=False, width=bits) for bits in (16, 32, 64)}
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1))
SECONDS = MOMENTS.map(lambda moment: moment.replace(microsecond=0))
DATES = st.dates()
SPANS = st.timedeltas(datetime.timedelta(days=-40_000), datetime.timedelta(days=40_000))
TIMES = st.times()
DECIMALS = st.decimals(-10_000, 10_000, places=2)
UTC_MOMENTS = MOMENTS.map(lambda moment: moment.replace(tzinfo=datetime.UTC))


def integers(bits, signed=True):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2 ** min(bits, 63) - 1)


def columns_of(draw, sources, n_records):
    """Draw a list of values per column; a source is a strategy, or (strategy, False) where nothing can be missing."""
    drawn = {}
    for name, source in sources.items():
        values, has_missing = source if isinstance(source, tuple) else (source, True)
        drawn[name] = draw(
            st.lists(values | st.none() if has_missing else values, min_size=n_records, max_size=n_records)
        )
    return drawn


PANDAS_TYPES = {
    **{f"int{bits}": (f"int{bits}", (integers(bits), False)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (f"uint{bits}", (integers(bits, False), False)) for bits in (8, 16, 32, 64)},
    "float32": ("float32", FLOATS[32]),
    "float64": ("float64", FLOATS[64]),
    "bool": ("bool", (st.booleans(), False)),
    "Int8": ("Int8", integers(8)),
    "Int64": ("Int64", integers(64)),
    "UInt16": ("UInt16", integers(16, False)),
    "Float32": ("Float32", FLOATS[32]),
    "Float64": ("Float64", FLOATS[64]),
    "boolean": ("boolean", st.booleans()),
    "str": ("str", TEXT),
    "string": ("string", TEXT),
    "string[python]": (pd.StringDtype("python"), TEXT),
    "objects: text": (object, TEXT),
    "objects: bool": (object, st.booleans()),
    "objects: int": (object, integers(64)),
    "objects: float": (object, FLOATS[64]),
    "objects: date": (object, DATES),
    "objects: datetime": (object, MOMENTS),
    "objects: Timestamp": (object, MOMENTS.map(pd.Timestamp)),
    "objects: span": (object, SPANS),
    "objects: decimal": (object, DECIMALS),
    "category": (pd.CategoricalDtype(["z", "a", "é", "never"]), st.sampled_from(["z", "a", "é"])),
    "ordered": (pd.CategoricalDtype(["low", "high"], ordered=True), st.sampled_from(["low", "high"])),
    "category of int": (pd.CategoricalDtype([30, 4, -1]), st.sampled_from([30, 4, -1])),
    "category of float": (pd.CategoricalDtype([2.5, 0.0]), st.sampled_from([2.5, 0.0])),
    "category of bool": (pd.CategoricalDtype([True, False]), st.booleans()),
    "datetime64[ns]": ("datetime64[ns]", MOMENTS),
    "datetime64[us]": ("datetime64[us]", MOMENTS),
    "datetime64[s]": ("datetime64[s]", SECONDS),
    "datetime64[us, zone]": (pd.DatetimeTZDtype("us", "Europe/Berlin"), UTC_MOMENTS),
    "timedelta64[ns]": ("timedelta64[ns]", SPANS),
    "timedelta64[us]": ("timedelta64[us]", SPANS),
    **{
        f"arrow {kind}": (pd.ArrowDtype(kind), values)
        for kind, values in [
            (pa.int8(), integers(8)),
            (pa.uint64(), integers(64, False)),
            (pa.float32(), FLOATS[32]),
            (pa.float64(), FLOATS[64]),
            (pa.bool_(), st.booleans()),
            (pa.string(), TEXT),
            (pa.large_string(), TEXT),
            (pa.date32(), DATES),
            (pa.timestamp("ms"), SECONDS),
            (pa.timestamp("us", "Asia/Tokyo"), UTC_MOMENTS),
            (pa.duration("us"), SPANS),
            (pa.time64("us"), TIMES),
            (pa.decimal128(12, 2), DECIMALS),
            (pa.dictionary(pa.int32(), pa.string()), TEXT),
        ]
    },
}


def an_index(draw, n_records):
    kind = draw(st.sampled_from(["range", "permuted", "repeated", "text", "moments", "levels"]))
    if kind == "range":
        return pd.RangeIndex(n_records)
    if kind == "permuted":
        return pd.Index(draw(st.permutations(range(n_records))), name="record")
    if kind == "repeated":
        return pd.Index([7] * n_records)
    if kind == "text":
        return pd.Index([f"person {place % 3}" for place in range(n_records)])
    if kind == "moments":
        return pd.date_range("2026-01-01", periods=n_records, tz="UTC")
    return pd.MultiIndex.from_arrays([[1] * n_records, range(n_records)], names=["house", None])


@st.composite
def pandas_frames(draw):
    n_records = draw(st.integers(1, 6))
    drawn = columns_of(draw, {name: values for name, (_, values) in PANDAS_TYPES.items()}, n_records)
    index = an_index(draw, n_records)
    return pd.DataFrame(
        {name: pd.Series(drawn[name], dtype=PANDAS_TYPES[name][0], index=index) for name in drawn}, index=index
    )


@EXAMPLES
@given(frame=pandas_frames())
def test_a_pandas_frame_comes_back_equal_with_its_types_and_index(frame):
    before = frame.copy(deep=True)
    result = rebuilt(frame)
    pd.testing.assert_frame_equal(result, before, check_exact=True)
    pd.testing.assert_frame_equal(frame, before, check_exact=True)


POLARS_TYPES = {
    **{
        str(kind): (kind, integers(bits))
        for kind, bits in [(pl.Int8, 8), (pl.Int16, 16), (pl.Int32, 32), (pl.Int64, 64)]
    },
    **{str(kind): (kind, integers(bits, False)) for kind, bits in [(pl.UInt8, 8), (pl.UInt16, 16), (pl.UInt32, 32)]},
    "UInt64": (pl.UInt64, integers(64, False)),
    "Int128": (pl.Int128, integers(64)),
    "Float32": (pl.Float32, FLOATS[32]),
    "Float64": (pl.Float64, FLOATS[64]),
    "NaN, not null": (pl.Float64, (FLOATS[64] | st.just(float("nan")), False)),
    "Boolean": (pl.Boolean, st.booleans()),
    "String": (pl.String, TEXT),
    "Categorical": (pl.Categorical, TEXT),
    "Enum": (pl.Enum(["z", "a", "é", "never"]), st.sampled_from(["z", "a", "é"])),
    "Date": (pl.Date, DATES),
    "Time": (pl.Time, TIMES),
    "Datetime ms": (pl.Datetime("ms"), SECONDS),
    "Datetime ns": (pl.Datetime("ns"), MOMENTS),
    "Datetime zone": (pl.Datetime("us", "Europe/Berlin"), UTC_MOMENTS),
    "Duration": (pl.Duration("us"), SPANS),
    "Decimal": (pl.Decimal(12, 2), DECIMALS),
    "Null": (pl.Null, st.none()),
}


@st.composite
def polars_frames(draw):
    n_records = draw(st.integers(1, 6))
    drawn = columns_of(draw, {name: values for name, (_, values) in POLARS_TYPES.items()}, n_records)
    return pl.DataFrame({name: pl.Series(drawn[name], dtype=POLARS_TYPES[name][0]) for name in drawn})


@EXAMPLES
@given(frame=polars_frames())
def test_a_polars_frame_comes_back_equal_with_its_types(frame):
    before = frame.clone()
    pl.testing.assert_frame_equal(rebuilt(frame), before, check_exact=True)
    pl.testing.assert_frame_equal(frame, before, check_exact=True)


ARROW_TYPES = {
    str(kind): (kind, values)
    for kind, values in [
        (pa.int8(), integers(8)),
        (pa.uint64(), integers(64, False)),
        (pa.float16(), FLOATS[16]),
        (pa.float32(), FLOATS[32]),
        (pa.float64(), FLOATS[64]),
        (pa.bool_(), st.booleans()),
        (pa.string(), TEXT),
        (pa.large_string(), TEXT),
        (pa.string_view(), TEXT),
        (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["z", "a", "é"])),
        (pa.dictionary(pa.int32(), pa.int64()), st.integers(-3, 3)),
        (pa.date32(), DATES),
        (pa.date64(), DATES),
        (pa.time32("s"), TIMES.map(lambda time: time.replace(microsecond=0))),
        (pa.time64("ns"), TIMES),
        (pa.timestamp("s"), SECONDS),
        (pa.timestamp("ns", "Asia/Tokyo"), UTC_MOMENTS),
        (pa.duration("us"), SPANS),
        (pa.decimal128(12, 2), DECIMALS),
        (pa.decimal256(40, 2), DECIMALS),
        (pa.null(), st.none()),
    ]
}


@st.composite
def arrow_tables(draw):
    n_records = draw(st.integers(1, 6))
    drawn = columns_of(draw, {name: values for name, (_, values) in ARROW_TYPES.items()}, n_records)
    table = pa.table({name: pa.array(drawn[name], ARROW_TYPES[name][0]) for name in drawn})
    table = table.replace_schema_metadata({"origin": "a register"})
    return pa.concat_tables([table, table]) if draw(st.booleans()) else table  # in two chunks


@EXAMPLES
@given(table=arrow_tables())
def test_a_pyarrow_table_comes_back_equal_with_its_types_and_without_metadata(table):
    result = rebuilt(table)
    assert result.schema.equals(table.schema.remove_metadata(), check_metadata=True)
    assert cells(result) == cells(table)


NUMPY_TYPES = {
    "int8": (integers(8), False),
    "uint64": (integers(64, False), False),
    "float16": FLOATS[16],
    "float32": FLOATS[32],
    "float64": FLOATS[64],
    "bool": (st.booleans(), False),
    "U5": (TEXT.map(str.strip), False),
    "M8[D]": DATES,
    "M8[us]": MOMENTS,
    "m8[s]": (st.integers(-100, 100), False),
    "O": TEXT,
}


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
@EXAMPLES
@given(data=st.data())
def test_an_array_comes_back_equal_with_its_type(dtype, data):
    n_records, n_columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    drawn = columns_of(data.draw, dict.fromkeys(range(n_columns), NUMPY_TYPES[dtype]), n_records)
    array = np.array(list(drawn.values()), dtype=dtype).T
    before = array.copy()
    result = rebuilt(array)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, before)
    np.testing.assert_array_equal(array, before)


def test_an_array_of_objects_keeps_the_python_types_of_each_column():
    day = datetime.date(1950, 3, 3)
    array = np.array([[1, 2.5, "a", True, day, None], [2, None, None, False, None, None]], dtype=object)
    result = rebuilt(array)
    assert result.dtype == object
    assert [[type(value) for value in row] for row in result] == [[type(value) for value in row] for row in array]
    assert result.tolist() == array.tolist()


@EXAMPLES
@given(
    values=st.lists(st.sampled_from(["b", "a", "B", "é", "Z", "10", "9", None]), min_size=1, max_size=12),
    data=st.data(),
)
@pytest.mark.parametrize("kind", MAKERS)
def test_the_order_of_records_does_not_matter_to_the_categories(kind, values, data):
    order = np.array(data.draw(st.permutations(range(len(values)))))
    column = read_table(MAKERS[kind]({"x0": values})).column("x0")
    shuffled = read_table(MAKERS[kind]({"x0": [values[place] for place in order]})).column("x0")
    assert column.categories.tolist() == shuffled.categories.tolist() == sorted(set(values) - {None})
    np.testing.assert_array_equal(column.values[order], shuffled.values)


def test_every_library_gives_the_same_columns():
    columns = {
        "x0": [3, 1, 2, 2],
        "x1": [1.5, None, -2.0, 0.0],
        "x2": ["b", "a", None, "b"],
        "x3": [True, False, None, True],
        "x4": [datetime.date(2020, 1, 1), None, datetime.date(1950, 3, 3), datetime.date(2020, 1, 1)],
    }
    expected = [
        ("number", "int64", [3, 1, 2, 2], None, None),
        ("number", "float64", [1.5, 0, -2, 0], [False, True, False, False], None),
        ("category", "int32", [1, 0, 0, 1], [False, False, True, False], ["a", "b"]),
        ("category", "int32", [1, 0, 0, 1], [False, False, True, False], [False, True]),
        ("moment", "int64", [18262 * 86_400_000_000, 0, -7244 * 86_400_000_000, 18262 * 86_400_000_000],
         [False, True, False, False], None),
    ]  # fmt: skip
    for make in MAKERS.values():
        table = read_table(make(columns))
        assert table.names == tuple(columns)
        found = []
        for name in table.names:
            column = table.column(name)
            assert column.values.flags.c_contiguous and column.values.flags.writeable
            missing = None if column.missing is None else column.missing.tolist()
            categories = None if column.categories is None else column.categories.tolist()
            found.append((column.kind, str(column.values.dtype), column.values.tolist(), missing, categories))
        assert found == expected


def test_a_moment_is_the_same_number_in_every_unit():
    moment = datetime.datetime(1969, 12, 31, 23, 59, 58)
    frames = [
        *(pd.DataFrame({"x": pd.Series([moment], dtype=f"datetime64[{unit}]")}) for unit in ("s", "ms", "us", "ns")),
        *(pl.DataFrame({"x": pl.Series([moment], dtype=pl.Datetime(unit))}) for unit in ("ms", "us", "ns")),
        pa.table({"x": pa.array([moment], pa.timestamp("s"))}),
        pd.DataFrame({"x": pd.Series([moment], dtype=object)}),
    ]
    for frame in frames:
        column = read_table(frame).column("x")
        assert (column.kind, column.moment, column.values.tolist()) == ("moment", "datetime", [-2_000_000])


@pytest.mark.parametrize("library", ["pandas", "objects", "polars", "pyarrow", "numpy"])
def test_digits_below_a_microsecond_are_refused_and_not_dropped(library):
    ticks = pa.array([1_000, 1_001, 1_002, 1_002], pa.timestamp("ns"))
    frame = {
        "pandas": lambda: pd.DataFrame({"x0": ticks.to_pandas()}),
        "objects": lambda: pd.DataFrame({"x0": pd.Series(list(ticks.to_pandas()), dtype=object)}),
        "polars": lambda: pl.DataFrame({"x0": pl.from_arrow(ticks)}),
        "pyarrow": lambda: pa.table({"x0": ticks}),
        "numpy": lambda: ticks.to_numpy(zero_copy_only=False)[:, None],
    }[library]()
    with pytest.raises(InputError, match=r"'x0' has .*below a microsecond.*Round it.*text"):
        read_table(frame).column("x0")
    if library != "objects":  # those are refused for counting too
        assert count_groups(frame, ["x0"]).tolist() == [1, 1, 2]


LARGE = 2**53


@pytest.mark.parametrize("kind", [pa.decimal128(38, 0), pa.decimal128(38, 2), pa.decimal256(60, 0)], ids=str)
def test_whole_decimals_are_read_and_written_exactly(kind):
    table = pa.table({"x": pa.array([LARGE, LARGE + 1, None, -LARGE - 1], kind)})
    column = read_table(table).column("x")
    assert column.is_integer
    assert column.values.tolist() == [LARGE, LARGE + 1, 0, -LARGE - 1]
    assert rebuilt(table).equals(table)
    as_category = read_table(table, categorical=["x"]).column("x")
    assert as_category.categories.tolist() == [-LARGE - 1, LARGE, LARGE + 1]


def test_decimals_with_many_places_and_few_digits_come_back_equal():
    values = [decimal.Decimal("0.1"), None, decimal.Decimal("-123.45"), decimal.Decimal("1e15")]
    table = pa.table({"x": pa.array(values, pa.decimal128(38, 18))})
    assert read_table(table).column("x").values.tolist() == [0.1, 0.0, -123.45, 1e15]
    assert rebuilt(table).equals(table)


@pytest.mark.parametrize("kind", ["plain", "dictionary", "objects"])
def test_decimals_with_more_digits_than_a_number_holds_are_refused_and_still_told_apart(kind):
    values = [decimal.Decimal(LARGE) + decimal.Decimal(tenth) / 10 for tenth in (1, 2, 3, 3)]
    array = pa.array(values)
    if kind == "objects":
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    else:
        frame = pa.table({"x": array if kind == "plain" else array.dictionary_encode()})
    with pytest.raises(InputError, match=r"'x' has decimals with more digits.*Round it, or convert it to text"):
        read_table(frame).column("x")
    assert count_groups(frame, ["x"]).tolist() == [1, 1, 2]


def test_negative_zero_is_zero():
    table = read_table(pd.DataFrame({"x": [-0.0, 0.0]}), categorical=["x"])
    assert table.column("x").categories.tolist() == [0.0]
    assert not np.signbit(read_table(np.array([[-0.0]])).column("x0").values).any()


def test_numbers_named_categorical_become_sorted_categories_and_come_back_as_numbers(library, make):
    frame = make({"x0": [10, 9, 100, 9]})
    column = read_table(frame, categorical=["x0"]).column("x0")
    assert (column.kind, column.categories.tolist(), column.values.tolist()) == ("category", [9, 10, 100], [1, 0, 2, 0])
    assert cells(rebuilt(frame, categorical=[0])) == [[10, 9, 100, 9]]


def test_only_categories_that_occur_are_counted():
    frame = pd.DataFrame({"x": pd.Categorical(["b", "c"], categories=["c", "unused", "b"])})
    assert read_table(frame).column("x").categories.tolist() == ["b", "c"]
    many = pd.DataFrame({"x": pd.Categorical.from_codes(range(128), [f"{place:03}" for place in range(128)])})
    assert len(read_table(many).column("x").categories) == 128  # int8 codes, up to the very last


# ---- new values ------------------------------------------------------------------------------------------------------

GROUP = np.array([0, 1, 0, 1], dtype=np.int32)


def test_each_record_gets_the_value_of_its_group(make):
    table = read_table(make({"x0": [1, 2, 3, 4], "x1": ["b", "a", "b", None], "x2": [True, True, False, True]}))
    result = table.replaced(
        {
            "x0": GroupedValues(np.array([7, -8]), None, GROUP),
            "x1": GroupedValues(np.array([1, 0]), np.array([False, True]), GROUP),
        }
    )
    assert cells(result) == [[7, -8, 7, -8], ["b", None, "b", None], [True, True, False, True]]


def test_columns_are_dropped_and_rows_kept_in_the_order_asked_for(library, make):
    table = read_table(make({"x0": [1, 2, 3, 4], "x1": ["p", "q", "r", "s"], "x2": [5, 6, 7, 8]}))
    new = {"x2": GroupedValues(np.array([50, 60]), None, GROUP)}
    result = table.replaced(new, drop=["x0"], keep_rows=np.array([3, 0]))
    assert cells(result) == [["s", "p"], [60, 50]]
    if library == "pandas":
        assert result.index.tolist() == [3, 0]


def test_labels_make_a_column_of_text(library, make):
    table = read_table(make({"x0": [1, 2, 3, 4], "x1": [1, 2, 3, 4]}))
    result = table.replaced({"x0": GroupedLabels(["1-3", None], GROUP)})
    assert cells(result)[0] == ["1-3", None, "1-3", None]
    if library == "pandas":
        assert result["x0"].dtype == pd.Series(["text"]).dtype
    elif library == "polars":
        assert result.schema["x0"] == pl.String
    elif library == "pyarrow":
        assert result.schema.field("x0").type == pa.string()


def test_labels_turn_an_array_of_numbers_into_one_of_objects():
    result = read_table(np.arange(8.0).reshape(4, 2)).replaced({"x0": GroupedLabels(["low", "high"], GROUP)})
    assert result.dtype == object
    assert result.tolist() == [["low", 1.0], ["high", 3.0], ["low", 5.0], ["high", 7.0]]


def test_two_columns_can_stand_in_place_of_one(library, make):
    table = read_table(make({"x0": [1, 2, 3, 4], "x1": ["p", "q", "r", "s"]}))
    low, high = GroupedValues(np.array([1, 2]), None, GROUP), GroupedValues(np.array([3, 4]), None, GROUP)
    result = table.replaced({"x0": [("x0_low", low), ("x0_high", high)]})
    assert cells(result) == [[1, 2, 1, 2], [3, 4, 3, 4], ["p", "q", "r", "s"]]
    if library != "numpy":
        assert names_of(result) == ["x0_low", "x0_high", "x1"]
        with pytest.raises(InputError, match=r"several columns with the names 'x1'.*Rename"):
            table.replaced({"x0": [("x1", low)]})


CATEGORICALS = {
    "pandas": lambda values: pd.DataFrame({"x": pd.Categorical(values, categories=["z", "b", "a"], ordered=True)}),
    "polars": lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Enum(["z", "b", "a"]))}),
    "pyarrow": lambda values: pa.table(
        {"x": pa.DictionaryArray.from_arrays(pa.array([["z", "b", "a"].index(value) for value in values], pa.int8()),
                                             ["z", "b", "a"])}
    ),
}  # fmt: skip


def categories_listed(frame):
    if isinstance(frame, pd.DataFrame):
        return frame["x"].cat.categories.tolist()
    if isinstance(frame, pl.DataFrame):
        return frame["x"].dtype.categories.to_list()
    return frame["x"].chunk(0).dictionary.to_pylist()


@pytest.mark.parametrize("kind", CATEGORICALS)
@pytest.mark.parametrize(
    ("categories", "replaces", "listed"),
    [
        (["a", "b"], False, ["z", "b", "a"]),
        (["a*", "b"], False, ["a", "a*", "b", "z"]),
        (["a*", "b*"], True, ["a*", "b*"]),
    ],
    ids=["known values keep the list", "new values extend it", "coarsened values replace it"],
)
def test_a_categorical_type_lists_what_it_must(kind, categories, replaces, listed):
    table = read_table(CATEGORICALS[kind](["b", "a", "b", "b"]))
    values = GroupedValues(np.array([1, 0]), None, GROUP, np.array(categories, dtype=object), replaces)
    result = table.replaced({"x": values})
    assert cells(result) == [[categories[1], categories[0], categories[1], categories[0]]]
    assert categories_listed(result) == listed


def test_values_of_other_tables_can_be_written_where_the_type_has_room(make):
    table = read_table(make({"x0": ["p", "q", "p", "q"]}))
    unseen = np.array(["a longer text", "q"], dtype=object)
    result = table.replaced({"x0": GroupedValues(np.array([0, 1]), None, GROUP, unseen)})
    assert cells(result) == [["a longer text", "q", "a longer text", "q"]]


def test_text_of_fixed_width_grows_with_its_values():
    table = read_table(np.array([["p"], ["q"], ["p"], ["q"]]))
    unseen = np.array(["a longer text", "q"], dtype=object)
    result = table.replaced({"x0": GroupedValues(np.array([0, 1]), None, GROUP, unseen)})
    assert result.dtype == "<U13"
    assert result[:2, 0].tolist() == ["a longer text", "q"]


@pytest.mark.parametrize(
    ("frame", "values", "missing", "expected"),
    [
        (pd.DataFrame({"x": np.array([1, 2, 3, 4], "int8")}), [300, 1], None, "int64"),
        (pd.DataFrame({"x": pd.array([1, 2, 3, 4], "UInt8")}), [-1, 1], None, "Int64"),
        (pd.DataFrame({"x": np.array([1, 2, 3, 4])}), [0, 1], [True, False], "float64"),
        (pd.DataFrame({"x": pd.array([1, 2, 3, 4], "Int64")}), [0, 1], [True, False], "Int64"),
        (pl.DataFrame({"x": pl.Series([1, 2, 3, 4], dtype=pl.Int8)}), [300, 1], None, pl.Int64),
        (pl.DataFrame({"x": pl.Series([1, 2, 3, 4], dtype=pl.Int8)}), [0, 1], [True, False], pl.Int8),
        (pa.table({"x": pa.array([1, 2, 3, 4], pa.uint8())}), [-1, 1], None, pa.int64()),
        (np.array([[1], [2], [3], [4]], "uint8"), [-1, 1], None, "int64"),
        (np.array([[1], [2], [3], [4]]), [0, 1], [True, False], "float64"),
    ],
)
def test_a_type_grows_only_when_a_value_does_not_fit(frame, values, missing, expected):
    new = GroupedValues(np.array(values), None if missing is None else np.array(missing), GROUP)
    table = read_table(frame)
    result = table.replaced({table.names[0]: new})
    if isinstance(frame, np.ndarray):
        found = result.dtype
    else:
        found = result.schema.field("x").type if isinstance(frame, pa.Table) else result["x"].dtype
    assert found == expected
    wanted = [None if missing and missing[place] else values[place] for place in GROUP]
    assert cells(result) == [wanted]


def test_fractions_written_to_integers_are_rounded():
    result = read_table(pd.DataFrame({"x": [1, 2, 3, 4]})).replaced(
        {"x": GroupedValues(np.array([1.6, -0.2]), None, GROUP)}
    )
    assert result["x"].tolist() == [2, 0, 2, 0]
    assert result["x"].dtype == "int64"


def test_an_untyped_column_takes_the_type_of_its_new_values(make):
    frame = make({"x0": [None] * 4, "x1": [None] * 4, "x2": [None] * 4})
    result = read_table(frame).replaced(
        {
            "x0": GroupedValues(np.array([1.5, 2.5]), None, GROUP),
            "x1": GroupedValues(np.array([0, 86_400_000_000]), None, GROUP, moment="date"),
            "x2": GroupedValues(np.array([0, 1]), None, GROUP, np.array(["a", "b"], dtype=object)),
        }
    )
    first, second = datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)
    assert cells(result) == [[1.5, 2.5] * 2, [first, second] * 2, ["a", "b"] * 2]


def test_writing_to_the_result_leaves_the_input_alone():
    frame = pd.DataFrame({"kept": [1, 2, 3, 4], "text": ["a", "b", "c", "d"], "new": [1, 2, 3, 4]})
    before = frame.copy(deep=True)
    result = read_table(frame).replaced({"new": GroupedValues(np.array([7, 8]), None, GROUP)})
    for name in result:
        assert not np.shares_memory(np.asarray(result[name].array), np.asarray(frame[name].array))
        result.iloc[0, result.columns.get_loc(name)] = result.iloc[3][name]
    pd.testing.assert_frame_equal(frame, before)
    array = np.arange(8.0).reshape(4, 2)
    written = read_table(array).replaced({"x0": GroupedValues(np.array([7.0, 8.0]), None, GROUP)})
    written[:] = -1
    assert array.tolist() == np.arange(8.0).reshape(4, 2).tolist()
    column = read_table(array).column("x0")
    column.values[:] = -1
    assert array[:, 0].tolist() == [0, 2, 4, 6]


def test_the_metadata_of_pandas_stays_only_while_it_is_true():
    table = pa.Table.from_pandas(pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 2, 3, 4]}))
    new = {"x": GroupedValues(np.array([7, 8]), None, GROUP)}
    assert b"pandas" in read_table(table).replaced(new).schema.metadata
    assert read_table(table).replaced(new, drop=["y"]).schema.metadata is None
    assert read_table(table).replaced(new, keep_rows=np.array([0])).to_pandas().to_dict("list") == {"x": [7], "y": [1]}


def test_notes_in_the_metadata_do_not_leave():
    frame = pd.DataFrame({"x": [1, 2, 3, 4]}, index=pd.Index(list("abcd"), name="row"))
    frame.attrs["note"] = "secret of Ada"
    table = pa.Table.from_pandas(frame)
    noted = [field.with_metadata({"remark": "secret of Bo"}) for field in table.schema]
    table = table.cast(pa.schema(noted, {**table.schema.metadata, b"owner": b"secret of Cy"}))
    result = read_table(table).replaced({"x": GroupedValues(np.array([7, 8]), None, GROUP)})
    buffer = pa.BufferOutputStream()
    pq.write_table(result, buffer)
    assert b"secret" not in buffer.getvalue().to_pybytes()
    assert "secret" not in repr(result.schema.metadata) and not any(field.metadata for field in result.schema)
    again = result.to_pandas()
    assert again.index.equals(frame.index) and again["x"].tolist() == np.array([7, 8])[GROUP].tolist()
    assert again.attrs == {}


@pytest.mark.parametrize("notes", [b"no JSON", b"[1]"])
def test_metadata_that_only_looks_like_that_of_pandas_is_dropped(notes):
    table = pa.table({"x": [1, 2, 3, 4]}).replace_schema_metadata({b"pandas": notes})
    assert read_table(table).replaced({}).schema.metadata is None


def test_groups_of_another_table_are_refused(make):
    table = read_table(make({"x0": [1, 2, 3]}))
    with pytest.raises(InputError, match=r"'x0' has groups for 4 records and the table has 3.*one group per record"):
        table.replaced({"x0": GroupedValues(np.array([7, 8]), None, GROUP)})


def test_a_list_of_rows_is_an_array_and_its_numbers_stay_numbers():
    table = read_table([[1, "a"], [2, "b"]])
    assert (table.library, table.kind("x0"), table.kind("x1")) == ("numpy", "number", "category")


def test_the_kind_is_told_from_the_first_value_that_is_there():
    late = pd.DataFrame({"x": pd.Series([None] * 2000 + [1.5], dtype=object)})
    assert read_table(late).kind("x") == "number"
    assert read_table(pd.DataFrame({"x": [None, None]})).kind("x") == "category"


def test_importing_frames_loads_no_frame_library():
    heavy = {"pandas", "polars", "narwhals", "pyarrow"}
    code = f"import sys, sfumato.frames, sfumato.schema; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_category_that_only_the_last_record_has_is_found_and_one_that_none_has_is_not():
    codes = np.zeros(70_000, np.int8)
    codes[-1] = 2
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(codes, ["a", "unused", "z"])})
    table = read_table(frame)
    assert list(table.column("c").categories) == ["a", "z"]
    assert list(table.replaced({}, compact_categories=True)["c"].cat.categories) == ["a", "z"]


@pytest.mark.parametrize(("precision", "scale", "value"), [(2, 2, 7.0), (5, 2, -7000.0), (38, 37, 70.0), (38, 0, 1e38)])
def test_a_polars_decimal_takes_a_value_with_more_digits_than_its_type(precision, scale, value):
    column = pl.Series("paid", [decimal.Decimal(0), None, decimal.Decimal(0)], dtype=pl.Decimal(precision, scale))
    table = read_table(pl.DataFrame([column]))
    table.column("paid")
    new = GroupedValues(np.array([value]), None, group=np.zeros(3, np.int64))
    assert [float(cell) for cell in table.replaced({"paid": new})["paid"].to_list()] == [value] * 3


def test_an_arrow_decimal_that_grows_has_no_more_digits_than_other_libraries_know():
    table = read_table(pa.table({"paid": pa.array([decimal.Decimal("0.5")], pa.decimal128(2, 2))}))
    table.column("paid")
    grown = table.replaced({"paid": GroupedValues(np.array([7.0]), None, group=np.zeros(1, np.int64))})
    assert grown.schema.field("paid").type == pa.decimal128(38, 2)


def test_views_of_text_are_read_from_files_as_text_that_arrow_can_take(tmp_path):
    written = pa.table({"age": [1, 2, 3], "city": pa.array(["a", "b", None], pa.string_view())})
    pq.write_table(written, tmp_path / "people.parquet")
    columns = ParquetColumns(tmp_path / "people.parquet")
    assert columns.schema.types == [pa.int64(), pa.large_string()]
    assert columns.read().schema.equals(columns.schema)
    assert columns.read().take([2, 0]).to_pydict() == {"age": [3, 1], "city": [None, "a"]}
    assert columns.column(1).take(pa.array([1])).to_pylist() == ["b"]


def test_a_number_beyond_64_bits_is_written_to_whole_numbers_as_a_float(library):
    frame = np.array([[1], [2], [3]]) if library == "numpy" else MAKERS[library]({"age": [1, 2, 3]})
    table = read_table(frame)
    table.column(table.names[0])
    new = GroupedValues(np.array([1e300]), None, group=np.zeros(3, np.int64))
    assert cells(table.replaced({table.names[0]: new})) == [[1e300] * 3]


@pytest.mark.parametrize("kind", ["Int8", "Int64", "int64[pyarrow]", "object"])
def test_a_pandas_column_of_whole_numbers_takes_a_number_beyond_64_bits(kind):
    table = read_table(pd.DataFrame({"age": pd.Series([1, 2, 3], dtype=kind)}))
    table.column("age")
    new = GroupedValues(np.array([1e300, 1.0]), np.array([False, True]), group=np.array([0, 0, 1]))
    assert cells(table.replaced({"age": new})) == [[1e300, 1e300, None]]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_that_a_narrow_type_cannot_hold_are_written_in_a_wider_one():
    wide = pa.table({"x": pa.array([1e300, 2e300, 3e300, 4e300], pa.float64())})
    narrow = pa.table({"x": pa.array([1.0, 2.0], pa.float32())})
    released = MondrianAnonymizer(k=2).fit(wide).transform(narrow)
    assert np.isfinite(released.column("x").to_numpy()).all()


def test_a_built_column_of_numbers_without_any_value_is_one_of_numbers(library):
    frame = np.array([[1], [2]]) if library == "numpy" else MAKERS[library]({"age": [1, 2]})
    table = read_table(frame)
    none = GroupedValues(np.array([0]), np.array([True]), group=np.zeros(2, np.int64))
    built = build_frame(kind_of_frame(frame, table), [(table.names[0], table.names[0], none)], 2)
    column = read_table(built).column(table.names[0])
    assert column.kind == "number" and column.missing.all()
