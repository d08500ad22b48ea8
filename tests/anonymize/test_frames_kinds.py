# SPDX-License-Identifier: Apache-2.0
"""The same kind of frame comes back, with its names, index and types, from fitting, applying and releasing."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import InputError, ModelGuidedAnonymizer, MondrianAnonymizer
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import people, rows_of, smallest_group
from strategies import LIBRARIES, guides, in_examples, tables

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")

SAME_TYPES = [name for name in REPRESENTATIVES if REPRESENTATIVES[name].facts.keeps_type]


def leaving(anonymizer, frame, guide):
    """Everything that comes out of an anonymizer: fitted, applied, released."""
    yield anonymizer.fit_transform(frame, guide)
    yield anonymizer.transform(frame)
    yield anonymizer.release(frame, guide, keep_index=True).table
    yield anonymizer.partition_.transform(frame)


@in_examples(40)
@given(data=st.data(), table=tables())
def test_pandas_frames_keep_index_names_and_types(table, data):
    frame = table.to("pandas")
    k = data.draw(st.integers(2, table.n_records), "k")
    anonymizer = ModelGuidedAnonymizer(
        k, representative=data.draw(st.sampled_from(SAME_TYPES), "representative"), random_state=0
    )
    for released in leaving(anonymizer, frame, data.draw(guides(table.n_records), "guide")):
        assert type(released) is pd.DataFrame
        pd.testing.assert_index_equal(released.index, frame.index, exact=True)
        pd.testing.assert_index_equal(released.columns, frame.columns, exact=True)
        assert types_of(released) == types_of(frame)


def types_of(frame):
    """Return the types of the columns, without the list of a categorical: a release lists only what occurs in it."""
    return [
        (dtype.categories.dtype, dtype.ordered) if isinstance(dtype, pd.CategoricalDtype) else dtype
        for dtype in frame.dtypes
    ]


@in_examples(40)
@given(data=st.data(), table=tables())
def test_polars_frames_and_arrow_tables_keep_their_schema(table, data):
    k = data.draw(st.integers(2, table.n_records), "k")
    guide = data.draw(guides(table.n_records), "guide")
    anonymizer = ModelGuidedAnonymizer(
        k, representative=data.draw(st.sampled_from(SAME_TYPES), "representative"), random_state=0
    )
    frame = table.to("polars")
    for released in leaving(anonymizer, frame, guide):
        assert type(released) is pl.DataFrame
        assert released.schema == frame.schema
    frame = table.to("pyarrow")
    for released in leaving(anonymizer, frame, guide):
        assert type(released) is pa.Table
        assert released.schema == frame.schema


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float32", "float64", "bool", "U3", "object"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_keep_their_type_and_order(dtype, order):
    generator = np.random.default_rng(0)
    array = np.asarray(generator.integers(0, 4, (40, 3)).astype(dtype), order=order)  # each shared by enough
    for released in leaving(ModelGuidedAnonymizer(4), array, np.arange(40) % 3):
        assert type(released) is np.ndarray
        assert released.dtype == array.dtype
        assert released.flags.c_contiguous == array.flags.c_contiguous
        assert not np.shares_memory(released, array)
    assert smallest_group(released) >= 4


INDEXES = {
    "shuffled": lambda n: np.random.default_rng(0).permutation(n),
    "repeated": lambda n: ["x"] * n,
    "text": lambda n: [f"r{i}" for i in range(n)],
    "dates": lambda n: pd.date_range("2020", periods=n, name="day"),
    "levels": lambda n: pd.MultiIndex.from_product([range(n // 2), ["a", "b"]], names=["house", None]),
    "far away": lambda n: pd.RangeIndex(1000, 1000 + 5 * n, 5),
}


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.filterwarnings("ignore:the index of the frame is kept:sfumato.errors.PrivacyWarning")
def test_any_index_survives_and_rows_stay_with_it(kind):
    table, guide = people()
    frame = table.to_pandas()
    plain = ModelGuidedAnonymizer(5).fit_transform(frame, guide)
    indexed = frame.set_axis(INDEXES[kind](120), axis=0)
    for released in leaving(ModelGuidedAnonymizer(5), indexed, guide):
        pd.testing.assert_index_equal(released.index, indexed.index, exact=True)
        pd.testing.assert_frame_equal(released.reset_index(drop=True), plain)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("representative", REPRESENTATIVES)
def test_dropped_and_kept_columns_in_every_library(library, representative):
    table, guide = people()
    table = table.append_column("name", [[f"n{i}" for i in range(120)]]).add_column(0, "row", [np.arange(120)])
    frame = {"pandas": table.to_pandas(), "polars": pl.from_arrow(table), "pyarrow": table}.get(
        library, table.to_pandas().to_numpy()
    )
    named = library != "numpy"
    anonymizer = ModelGuidedAnonymizer(
        5,
        quasi_identifiers=["age", "income", "town"] if named else [1, 2, 3],
        identifiers=["name"] if named else [6],
        keep=["row", "joined"] if named else [0, 5],
        representative=representative,
        random_state=0,
    )
    for released in leaving(anonymizer, frame, guide):
        names = anonymizer.get_feature_names_out().tolist()
        ends = ("_low", "_high") if representative.endswith("bounds") else ("",)
        old = ["row", "age", "income", "town", "is_member", "joined"] if named else [f"x{i}" for i in range(6)]
        expected = [old[0], *(f"{name}{end}" for name in old[1:4] for end in ends), *old[4:]]
        assert names == expected
        if named:
            assert list(getattr(released, "column_names", None) or released.columns) == expected
        places = [expected.index(f"{name}{end}") for name in old[1:4] for end in ends]
        assert smallest_group(released, [expected[p] for p in places] if named else places) >= 5
        untouched = [0, len(expected) - 2, len(expected) - 1]
        assert rows_of(released, [expected[p] for p in untouched] if named else untouched) == rows_of(
            table, ["row", "is_member", "joined"]
        )


def test_labels_become_text_in_every_library():
    table, guide = people()
    for frame in (table, pl.from_arrow(table), table.to_pandas(), table.to_pandas().to_numpy()):
        released = ModelGuidedAnonymizer(5, representative="range").fit_transform(frame, guide)
        assert {type(value) for row in rows_of(released) for value in row} == {str}
        assert smallest_group(released) >= 5
    assert (
        ModelGuidedAnonymizer(5, representative="range").fit_transform(table, guide).schema.types == [pa.string()] * 5
    )
    assert set(ModelGuidedAnonymizer(5, representative="range").fit_transform(pl.from_arrow(table), guide).dtypes) == {
        pl.String
    }


def test_categories_keep_their_list_and_order():
    towns = ["Moria", "Bree", "Lake Town", "Hobbiton", "Minas Tirith"]
    table, guide = people()
    frame = table.to_pandas().assign(town=lambda f: pd.Categorical(f["town"], towns, ordered=True))
    released = ModelGuidedAnonymizer(5).fit_transform(frame, guide)
    assert released["town"].cat.categories.tolist() == towns and released["town"].cat.ordered
    enum = pl.from_arrow(table).with_columns(pl.col("town").cast(pl.Enum(towns)))
    assert ModelGuidedAnonymizer(5).fit_transform(enum, guide).schema["town"] == pl.Enum(towns)


def test_categories_that_a_limit_cut_do_not_leave_inside_the_type():
    table, guide = people()
    frame = table.to_pandas().astype({"town": "category"})
    released = ModelGuidedAnonymizer(5, limits={"town": 2}).fit_transform(frame, guide)
    assert set(released["town"].cat.categories) <= {"Br*", "La*", "Mi*", "Ho*"}


def test_time_zones_units_and_nullable_types_survive_with_missing_values():
    generator = np.random.default_rng(0)
    days = pd.to_timedelta(generator.integers(0, 900, 80), unit="D")
    frame = pd.DataFrame(
        {
            "seen": (pd.Timestamp("2020-01-01", tz="Europe/Paris") + days).as_unit("ms"),
            "waited": days.as_unit("s"),
            "visits": pd.array(generator.integers(0, 9, 80), dtype="UInt8"),
            "smokes": pd.array(generator.random(80) < 0.5, dtype="boolean"),
            "weight": pd.array(generator.normal(70, 9, 80).round(1), dtype="Float32"),
            "ward": pd.array(generator.choice(["a", "b"], 80), dtype="string[pyarrow]"),
            "born": pd.array([datetime.date(1990, 1, 1 + i % 28) for i in range(80)], dtype=pd.ArrowDtype(pa.date32())),
        }
    )
    frame.iloc[::7] = pd.NA
    for representative in SAME_TYPES:
        anonymizer = ModelGuidedAnonymizer(4, representative=representative, random_state=0)
        for released in leaving(anonymizer, frame, np.arange(80) % 3):
            assert released.dtypes.equals(frame.dtypes)
        assert smallest_group(released) >= 4


def test_lists_are_taken_for_arrays():
    rows = [[20, 1], [21, 1], [40, 0], [41, 0]]
    released = ModelGuidedAnonymizer(2).fit_transform(rows, [0, 0, 1, 1])
    assert isinstance(released, np.ndarray)
    assert smallest_group(released) >= 2
    assert ModelGuidedAnonymizer(2).fit(rows, [0, 0, 1, 1]).release(rows).table.shape == (4, 2)


def test_chunked_tables_are_one_table():
    table, guide = people()
    chunks = pa.concat_tables([table.slice(0, 50), table.slice(50, 1), table.slice(51)])
    assert chunks.column(0).num_chunks == 3
    expected = rows_of(ModelGuidedAnonymizer(5).fit_transform(table, guide))
    assert rows_of(ModelGuidedAnonymizer(5).fit_transform(chunks, guide)) == expected
    several = pl.concat([pl.from_arrow(table.slice(0, 70)), pl.from_arrow(table.slice(70))], rechunk=False)
    assert rows_of(ModelGuidedAnonymizer(5).fit_transform(several, guide)) == expected


def test_lazy_frames_are_refused_with_what_to_call():
    table, guide = people()
    with pytest.raises(InputError, match=r"LazyFrame.*\.collect\(\)"):
        ModelGuidedAnonymizer(5).fit(pl.from_arrow(table).lazy(), guide)


def test_writing_to_the_result_does_not_reach_the_input():
    frame = pd.DataFrame({"age": range(40), "note": [0] * 40, "kept": range(40)})
    before = frame.copy(deep=True)
    released = ModelGuidedAnonymizer(5, quasi_identifiers=["age"], keep=["kept"]).fit_transform(frame, [0, 1] * 20)
    for name in released:
        released[name].array[:] = -1
    pd.testing.assert_frame_equal(frame, before)
    array = np.arange(40.0)[:, None]
    ModelGuidedAnonymizer(5).fit_transform(array, [0, 1] * 20)[:] = -1
    assert array.ravel().tolist() == list(range(40))


def test_numbers_that_no_decimal_holds_stay_floats():
    fitted = MondrianAnonymizer(k=2, representative="mean").fit(pd.DataFrame({"x": [1e240, 2e240, 3e240, 4e240]}))
    later = pd.DataFrame({"x": [Decimal("1.50"), Decimal("2.50")]})
    assert fitted.transform(later)["x"].astype(float).between(1e239, 1e241).all()
