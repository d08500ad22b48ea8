# SPDX-License-Identifier: Apache-2.0
"""Ranges and bounds are the cells of the tree: they cover every value, and end at no single person's."""

import datetime
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import (
    Hierarchy,
    HilbertAnonymizer,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    PrivacyWarning,
    RPlusTreeAnonymizer,
    WorkloadAwareAnonymizer,
)
from sfumato.schema.role_checks import ColumnWarning
from strategies import in_examples, make_guide, tables

KINDS = ("integer", "date", "datetime", "boolean", "text")
TREES = [ModelGuidedAnonymizer, WorkloadAwareAnonymizer, MondrianAnonymizer, RPlusTreeAnonymizer]


def people(n=2_000, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 91, n),
            "pay": np.rint(random.lognormal(10.5, 0.8, n)).astype(int),
            "hours": random.normal(38, 9, n).round(2),
            "job": random.choice([f"job {i}" for i in range(30)], n, p=np.arange(30, 0, -1) / 465),
            "sex": random.choice(["f", "m"], n),
        }
    )
    frame.loc[random.random(n) < 0.1, "hours"] = np.nan
    return frame, (frame["age"] > 50).to_numpy().astype(int)


def ends_of(label, read):
    """Return the ends that a label says, None for open ones."""
    if label == "any value":
        return None, None
    if label.endswith(" and under"):
        return None, read(label.removesuffix(" and under"))
    if label.endswith(" and over"):
        return read(label.removesuffix(" and over")), None
    parts = label.split(" to ") if " to " in label else [label]
    if len(parts) == 1 and label.count("-") == 1 and not label.startswith("-"):
        parts = label.split("-")
    return read(parts[0]), read(parts[-1])


def holds(label, value, kind, named):
    """Say whether a value may be behind a label; `named` are all names in labels of its column."""
    if pd.isna(value):
        return label is None or label.endswith(" or missing")
    if label is None:
        return False
    text = label.removesuffix(" or missing")
    if kind in ("text", "boolean"):
        listed = names_in(text)
        return text == "any value" or str(value) in listed or ("other" in listed and str(value) not in named)
    reads = {"date": datetime.date.fromisoformat, "datetime": datetime.datetime.fromisoformat}
    low, high = ends_of(text, reads.get(kind, float if kind == "float" else int))
    return (low is None or low <= value) and (high is None or value <= high)


def names_in(text):
    return text[1:-1].split(", ") if text.startswith("{") and text.endswith("}") else [text]


@in_examples(80)
@given(
    data=st.data(),
    table=tables(min_records=8, max_records=60, kinds=KINDS),
    k=st.integers(2, 6),
    seed=st.integers(0, 99),
)
def test_every_combination_of_values_lies_in_the_cells_of_its_group(data, table, k, seed):
    columns = table.columns.values()
    texts = {value for c in columns if c.kind == "text" for value in c.values if value is not None}
    if any(
        set(text) & set("{},") or text.endswith(" or missing") or text in ("", "other", "any value") for text in texts
    ):
        return
    frame = table.to("pyarrow")
    method = data.draw(st.sampled_from(TREES))
    guide = make_guide("labels", table.n_records, seed)
    with warnings.catch_warnings(action="ignore", category=ColumnWarning):
        anonymizer = method(k, representative="range").fit(frame, guide)
    random = np.random.default_rng(seed)
    mixed = {}  # the values of different people, and between them
    for name, column in table.columns.items():
        values = [column.values[at] for at in random.integers(0, table.n_records, 40)]
        if column.kind == "integer":
            values = [
                v if v is None else max(min(v + int(random.integers(-3, 4)), 2**63 - 1), -(2**63)) for v in values
            ]
        mixed[name] = pa.array(values, frame.schema.field(name).type)
    records = pa.table(mixed)
    written = anonymizer.transform(records)
    for name, column in table.columns.items():
        labels = written[name].to_pylist()
        named = {own for label in anonymizer.transform(frame)[name].to_pylist() if label for own in names_in(label)}
        for label, value in zip(labels, records[name].to_pylist(), strict=True):
            if value is None and not column.has_missing:
                continue
            assert holds(label, value, column.kind, named), (name, label, value)


ORDERED = ("integer", "float", "date", "datetime", "zoned datetime", "duration")


@in_examples(80)
@given(
    data=st.data(),
    table=tables(min_records=8, max_records=60, kinds=ORDERED),
    k=st.integers(2, 6),
    seed=st.integers(0, 99),
)
def test_bounds_hold_everybody_but_the_few_beyond_the_outermost_ends(data, table, k, seed):
    frame = table.to("pyarrow")
    method = data.draw(st.sampled_from(TREES))
    with warnings.catch_warnings(action="ignore", category=ColumnWarning):
        anonymizer = method(k, representative="bounds")
        released = anonymizer.fit_transform(frame, make_guide("labels", table.n_records, seed))
    for name in table.columns:
        lows, highs = (released[f"{name}_{end}"].to_pylist() for end in ("low", "high"))
        if all(low is None for low in lows):
            continue
        first, last = min(low for low in lows if low is not None), max(high for high in highs if high is not None)
        for value, low, high in zip(frame[name].to_pylist(), lows, highs, strict=True):
            if value is not None:
                assert value < first or value > last or low <= value <= high
        assert all(low is None or low <= high for low, high in zip(lows, highs, strict=True))


@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("representative", ["range", "bounds"])
def test_a_release_of_the_fitted_records_has_the_fitted_cells(method, representative):
    frame, labels = people()
    anonymizer = method(20, representative=representative)
    fitted = anonymizer.fit_transform(frame, labels)
    pd.testing.assert_frame_equal(anonymizer.release(frame, labels, shuffle=False).table, fitted)
    assert fitted.groupby(list(fitted), dropna=False).size().min() >= 20


@pytest.mark.parametrize("method", TREES)
def test_nobody_lies_outside_all_cells_of_a_release_of_some_records(method):
    frame, labels = people()
    anonymizer = method(10, representative="range").fit(frame, labels)
    released = anonymizer.release(frame.iloc[:400], labels[:400], shuffle=False).table
    assert released.groupby(list(released), dropna=False).size().min() >= 10
    others = frame.iloc[400:].reset_index(drop=True)
    kinds = {"age": "integer", "pay": "integer", "hours": "float", "job": "text", "sex": "text"}
    fits = np.ones((len(others), len(boxes := released.drop_duplicates())), bool)
    for name, kind in kinds.items():
        values = others[name].astype(object).where(others[name].notna(), None)
        named = {own for label in boxes[name] for own in names_in(label.removesuffix(" or missing"))}
        inside = {
            (label, value): holds(label, value, kind, named) for label in set(boxes[name]) for value in set(values)
        }
        fits &= np.array([[inside[label, value] for label in boxes[name]] for value in values])
    assert fits.any(axis=1).all()


@pytest.mark.parametrize("representative", ["range", "bounds"])
def test_no_end_is_the_number_of_one_person(representative):
    frame, labels = people(20_000)
    released = ModelGuidedAnonymizer(10, representative=representative).fit_transform(frame, labels)
    for name in ("age", "pay"):
        counts = Counter(frame[name])
        if representative == "bounds":
            ends = set(released[[f"{name}_low", f"{name}_high"]].to_numpy().ravel().tolist())
        else:
            ends = {end for label in set(released[name]) for end in ends_of(label, int)} - {None}
        assert len(ends) > 20
        assert not [end for end in ends if counts[end] == 1]


def test_cells_do_not_depend_on_who_is_in_them():
    frame = pd.DataFrame({"age": [*range(20, 40)] * 5, "sex": ["f", "m"] * 50})
    fewer = frame.assign(age=frame["age"].replace({21: 22, 27: 26}))  # nobody is 21 or 27
    anonymizers = [MondrianAnonymizer(25, representative="range") for _ in range(2)]
    released = [own.fit_transform(table) for own, table in zip(anonymizers, (frame, fewer), strict=True)]
    assert set(released[0]["age"]) == set(released[1]["age"]) == {"29 and under", "30 and over"}


def test_cells_read_like_the_documentation():
    frame = pd.DataFrame(
        {
            "age": [31, 31, 34, 34, 50, 50, 70, 70] * 3,
            "debt": [-3.5, 2.25] * 12,
            "job": ["nurse", "teacher", "smith"] * 8,
        }
    )
    frame.loc[0:1, "job"] = ["diver", None]
    released = MondrianAnonymizer(6, quasi_identifiers=["age", "debt", "job"], representative="range").fit_transform(
        frame
    )
    assert set(released["age"]) == {"40 and under", "41 and over"}
    assert set(released["debt"]) == {"-0.6 and under", "-0.6 and over"}
    assert set(released["job"]) == {"any value or missing"}
    bounds = MondrianAnonymizer(6, quasi_identifiers=["age", "debt"], representative="bounds").fit_transform(frame)
    assert set(zip(bounds["age_low"], bounds["age_high"], strict=True)) == {(31, 40), (41, 70)}


def one_column(values, limit=None, n=3, **options):
    """Return the labels of values that are cut in the middle, n people each."""
    table = pa.table({"x": [value for value in values for _ in range(n)]})
    half = table.num_rows // 2
    guide, target = np.arange(table.num_rows) >= half, np.arange(table.num_rows)
    options |= {"quasi_identifiers": ["x"], "criteria": [LDiversity(half, "y")]}
    options |= {} if limit is None else {"limits": {"x": limit}}
    made = []
    for representative in ("range", "bounds"):
        anonymizer = ModelGuidedAnonymizer(3, representative=representative, **options)
        made.append(anonymizer.fit_transform(table, guide, target=target))
    bounds = zip(made[1]["x_low"].to_pylist(), made[1]["x_high"].to_pylist(), strict=True)
    return list(dict.fromkeys(made[0]["x"].to_pylist())), list(dict.fromkeys(bounds))


def days(*days):
    return [datetime.date(1970, 1, day) for day in days]


@pytest.mark.parametrize(
    ("values", "limit", "labels", "ends"),
    [
        ([30, 31, 32, 33], None, ["31 and under", "32 and over"], [(30, 31), (32, 33)]),
        ([30, 31, 40, 41], None, ["35 and under", "36 and over"], [(30, 35), (36, 41)]),
        ([30, 31, 33, 34], None, ["32 and under", "32 and over"], [(30, 32), (32, 34)]),
        ([30.0, 31.0, 32.0, 33.0], None, ["31 and under", "32 and over"], [(30, 31), (32, 33)]),
        ([0.25, 0.5, 1.5, 1.75], None, ["1 and under", "1 and over"], [(0.25, 1), (1, 1.75)]),
        ([31, 34, 38, 80], 5, ["34 and under", "35 and over"], [(30, 34), (35, 84)]),
        ([-7, -6, 3, 4], 5, ["-1 and under", "0 and over"], [(-10, -1), (0, 4)]),
        ([0.21, 0.25, 1.05, 1.07], 0.1, ["0.7 and under", "0.7 and over"], [(0.2, 0.7), (0.7, 1.1)]),
        (
            days(1, 2, 3, 4), None, ["1970-01-02 and under", "1970-01-03 and over"],
            [tuple(days(1, 2)), tuple(days(3, 4))],
        ),
        (
            days(1, 2, 9, 11), None, ["1970-01-05 and under", "1970-01-06 and over"],
            [tuple(days(1, 5)), tuple(days(6, 11))],
        ),
        (
            days(1, 6, 8, 13), 7, ["1970-01-07 and under", "1970-01-08 and over"],
            [tuple(days(1, 7)), tuple(days(8, 14))],
        ),
        (
            [datetime.time(hour) for hour in (0, 1, 13, 22)], 0.5, ["11:59:59.999999 and under", "12:00:00 and over"],
            [
                (datetime.time(0), datetime.time(11, 59, 59, 999999)),
                (datetime.time(12), datetime.time(23, 59, 59, 999999)),
            ],
        ),
        ([False, False, True, True], None, ["False", "True"], [(False, False), (True, True)]),
    ],
    ids=[
        "adjacent", "a gap", "a gap of one", "whole floats", "reals", "limit", "negative", "real limit", "days",
        "days apart", "weeks", "times", "booleans",
    ],
)  # fmt: skip
def test_where_a_cell_ends(values, limit, labels, ends):
    assert one_column(values, limit) == (labels, ends)


def test_an_end_that_one_person_has_moves_to_the_end_of_its_run():
    ages = [*range(20, 60), *range(40, 80)]  # 49 and 50 have two people each, and together enough
    labels, _ = one_column(ages, n=1)
    assert labels == ["50 and under", "49 and over"]


def test_missing_values_are_told_where_the_tree_sends_them():
    frame = pd.DataFrame({"age": [*[20.5] * 10, *[60.5] * 10, *[None] * 3]})
    released = MondrianAnonymizer(5, representative="range").fit_transform(frame)["age"]
    assert len(set(released)) == 2
    [told] = [label for label in set(released) if label.endswith(" or missing")]
    assert set(released[frame["age"].isna()]) == {told}
    assert set(released) - {told} < {"40 and under", "40 and over"}
    many = pd.concat([frame, frame[frame["age"].isna()]] * 3)
    released = MondrianAnonymizer(5, representative="range").fit_transform(many)["age"]
    assert set(released.dropna()) == {"40 and under", "40 and over"}
    assert (released.isna() == many["age"].isna()).all()


@pytest.mark.parametrize("n_towns", [100, 101])
def test_sets_of_too_many_categories_are_not_listed(n_towns):
    towns = [f"town {number:03d}" for number in range(2 * n_towns)]
    frame = pd.DataFrame({"town": towns * 5})
    half = frame["town"].isin(towns[:n_towns]).to_numpy()
    criteria = [LDiversity(4 * n_towns, "y")]  # one cut, and no more
    anonymizer = ModelGuidedAnonymizer(5, quasi_identifiers=["town"], representative="range", criteria=criteria)
    released = anonymizer.fit_transform(frame, half, target=np.arange(len(frame)))
    listed = {"{" + ", ".join(own) + "}" for own in (towns[:n_towns], towns[n_towns:])}
    assert anonymizer.n_groups_ == 2
    assert set(released["town"]) == (listed if n_towns == 100 else {"any value"})


def test_labels_of_hierarchies_stand_for_the_whole_cell():
    jobs = Hierarchy.from_mapping({"health": ["doctor", "midwife", "nurse"], "trade": ["baker", "smith"]})
    frame = pd.DataFrame({"job": ["nurse"] * 9 + ["midwife"] + ["smith"] * 10, "age": [30, 31] * 10})
    options = {"quasi_identifiers": ["job", "age"], "hierarchies": {"job": jobs}}
    released = MondrianAnonymizer(10, representative="range", **options).fit_transform(frame)
    # No trade but the smith occurs, so the finest label of the cell is the smith.
    assert set(released["job"]) <= {"health", "smith", "*"}
    assert set(MondrianAnonymizer(5, representative="range", **options).fit_transform(frame)["job"]) <= {
        "health",
        "smith",
    }


def test_columns_may_come_in_another_order_than_those_of_the_partition():
    frame, labels = people(600)
    own = ModelGuidedAnonymizer(15, quasi_identifiers=list(frame), representative="range").fit(frame, labels)
    expected = own.release(frame, shuffle=False).table
    turned = frame[list(frame)[::-1]]
    own = ModelGuidedAnonymizer(15, quasi_identifiers=list(turned), representative="range").fit(turned, labels)
    own.partition_ = ModelGuidedAnonymizer(15, representative="range").fit(frame, labels).partition_
    pd.testing.assert_frame_equal(own.release(turned, shuffle=False).table[list(frame)], expected)


def test_cells_grow_with_later_batches():
    frame, _ = people(400)
    more, _ = people(400, seed=1)
    anonymizer = RPlusTreeAnonymizer(8, representative="range", keep_records=True).fit(frame)
    whole = pd.concat([frame, more], ignore_index=True)
    released = anonymizer.insert(more).release(whole, shuffle=False).table
    pd.testing.assert_frame_equal(released, anonymizer.transform(whole))
    assert released.groupby(list(released), dropna=False).size().min() >= 8


# -- hulls ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("representative", ["tight-range", "tight-bounds"])
@pytest.mark.filterwarnings("error")
def test_tight_ranges_warn_that_they_tell_who_is_not_in_the_table(representative):
    frame, labels = people(200)
    with pytest.warns(PrivacyWarning, match=f"certainly not in the table.*{representative.removeprefix('tight-')}'"):
        ModelGuidedAnonymizer(10, representative=representative).fit(frame, labels)


@pytest.mark.parametrize(
    "anonymizer",
    [HilbertAnonymizer(10), MondrianAnonymizer(10, strict=False), MondrianAnonymizer(10, rule="information_loss")],
    ids=["curve", "relaxed", "information loss"],
)
@pytest.mark.parametrize("representative", ["range", "bounds"])
@pytest.mark.filterwarnings("error")
def test_groups_that_are_not_boxes_get_tight_ranges_with_a_warning(anonymizer, representative):
    frame, _ = people(200)
    made = []
    for kind in (representative, f"tight-{representative}"):
        own = type(anonymizer)(**anonymizer.get_params() | {"representative": kind})
        with pytest.warns(PrivacyWarning, match="certainly not in the table"):
            made.append(own.fit_transform(frame))
    pd.testing.assert_frame_equal(*made)


@pytest.mark.filterwarnings("error")
def test_cells_warn_of_nothing(tmp_path):
    from sfumato.parquet import fit_transform

    frame, labels = people(200)
    for method in TREES:
        method(10, representative="range").fit(frame, labels)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "in.parquet")
    fit_transform(MondrianAnonymizer(10, representative="range"), tmp_path / "in.parquet", tmp_path / "out.parquet")
    with pytest.warns(PrivacyWarning, match="certainly not in the table"):
        tight = MondrianAnonymizer(10, representative="tight-range")
        fit_transform(tight, tmp_path / "in.parquet", tmp_path / "tight.parquet")
