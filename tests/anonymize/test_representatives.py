# SPDX-License-Identifier: Apache-2.0
"""Every kind of representative against its definition, written once more in plain Python with exact fractions."""

import datetime
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import ModelGuidedAnonymizer, ParameterError, RPlusTreeAnonymizer
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import people, rows_of
from strategies import in_examples, make_guide, tables

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")

ORDERED = ("integer", "float", "date", "datetime", "zoned datetime", "duration")
EPOCH = datetime.datetime(1970, 1, 1)


def as_number(value):
    """The number behind a value, exact: itself, or microseconds."""
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=None) - EPOCH
    elif isinstance(value, datetime.date):
        value = datetime.datetime.combine(value, datetime.time()) - EPOCH
    if isinstance(value, datetime.timedelta):
        return Fraction(value // datetime.timedelta(microseconds=1))
    return Fraction(value)


def fitted_groups(table, k, representative, guide, **options):
    """Fit, and return per group the rows it has, and the released table."""
    frame = table.to("pyarrow")
    anonymizer = ModelGuidedAnonymizer(k, representative=representative, **options)
    released = anonymizer.fit_transform(frame, guide)
    group = anonymizer.partition_.apply(frame)
    return [np.flatnonzero(group == g).tolist() for g in range(anonymizer.n_groups_)], released


def middle_of(column, rows):
    """Median of numbers, mode of categories; missing where the definition says so."""
    present = [column.values[row] for row in rows if column.values[row] is not None]
    n_missing = len(rows) - len(present)
    if column.kind in ORDERED:
        if n_missing > len(present):
            return None
        return sorted(present)[(len(present) - 1) // 2]
    counts = Counter(present)
    most = max(counts.values(), default=0)
    return None if n_missing > most else min(value for value, count in counts.items() if count == most)


def code_vector(table, row):
    """Places of a record's values among the sorted values of their columns; missing comes last."""
    return [
        len(set(c.values)) if c.values[row] is None else sorted(set(c.values) - {None}).index(c.values[row])
        for c in table.columns.values()
    ]


def distance(table, row, middle):
    """Squared distance of a record from a group's middle: range-scaled numbers, halved one-hot categories."""
    total = Fraction(0)
    for column, target in zip(table.columns.values(), middle, strict=True):
        value = column.values[row]
        if value == target:
            continue
        if column.kind not in ORDERED or value is None or target is None:
            total += 1
            continue
        known = [as_number(v) for v in column.values if v is not None]
        total += ((as_number(value) - as_number(target)) / (max(known) - min(known))) ** 2
    return total


def is_nearest(table, candidates, chosen, rows, middle):
    """Whether the chosen values are those of a nearest candidate; by the smallest codes where distances are equal."""
    distances = {row: distance(table, row, middle) for row in candidates}
    least = min(distances.values())
    nearest = [row for row in candidates if distances[row] <= least * (1 + Fraction(1, 10**9)) + Fraction(1, 10**18)]
    same = [row for row in nearest if values_of(table, row) == chosen]
    if not same:
        return False
    if all(distances[row] == least for row in nearest):
        return code_vector(table, same[0]) == min(code_vector(table, row) for row in nearest)
    return True


def values_of(table, row):
    return [column.values[row] for column in table.columns.values()]


@in_examples(60)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_median_is_the_lower_median_or_the_mode(table, k, seed):
    groups, released = fitted_groups(
        table, min(k, table.n_records), "median", make_guide("number", table.n_records, seed)
    )
    for rows in groups:
        for name, column in table.columns.items():
            expected = middle_of(column, rows)
            assert {released[name][row].as_py() for row in rows} == {expected}


@pytest.mark.parametrize("guide_kind", ["labels", "binary probabilities", "probabilities", "number"])
@in_examples(25)
@given(table=tables(max_records=25), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_member_is_the_record_nearest_the_median_among_the_majority(guide_kind, table, k, seed):
    guide = make_guide(guide_kind, table.n_records, seed)
    groups, released = fitted_groups(table, min(k, table.n_records), "member", guide)
    predicted = guide if guide_kind == "labels" else None if guide_kind == "number" else np.argmax(guide, axis=1)
    for rows in groups:
        candidates = rows
        if predicted is not None:
            counts = Counter(predicted[rows].tolist())
            majority = min(label for label, count in counts.items() if count == max(counts.values()))
            candidates = [row for row in rows if predicted[row] == majority]
        chosen = [released[name][rows[0]].as_py() for name in table.columns]
        middle = [middle_of(column, rows) for column in table.columns.values()]
        assert is_nearest(table, candidates, chosen, rows, middle)


@pytest.mark.parametrize("guide_kind", ["labels", "binary probabilities", "probabilities", "number"])
@in_examples(30)
@given(table=tables(), k=st.integers(2, 30), seed=st.integers(0, 99))
def test_model_is_the_typical_record_among_the_tenth_with_predictions_nearest_the_mean(guide_kind, table, k, seed):
    guide = make_guide(guide_kind, table.n_records, seed)
    groups, released = fitted_groups(table, min(k, table.n_records), "model", guide)
    channels = channels_of(guide_kind, guide)
    for rows in groups:
        means = [Fraction(sum(channels[row][c] for row in rows), len(rows)) for c in range(len(channels[0]))]
        off = {row: sum((channels[row][c] - mean) ** 2 for c, mean in enumerate(means)) for row in rows}
        most = sorted(off.values())[math.ceil(len(rows) / 10) - 1]
        candidates = [row for row in rows if off[row] <= most]
        chosen = [released[name][rows[0]].as_py() for name in table.columns]
        middle = [middle_of(column, rows) for column in table.columns.values()]
        about_as_near = {row for row in rows if abs(off[row] - most) <= most / 10**9}
        if len({tuple(channels[row]) for row in about_as_near}) == 1:
            assert is_nearest(table, candidates, chosen, rows, middle)
        else:  # as near from two sides; rounding may tell them apart
            assert chosen in [values_of(table, row) for row in {*candidates, *about_as_near}]


def channels_of(guide_kind, guide):
    """The whole numbers that predictions become, as documented."""
    if guide_kind == "labels":
        return [[int(label == one) for one in sorted(set(guide))] for label in guide]
    if guide_kind == "number":
        return [[round((value - guide.min()) / max(np.ptp(guide), 1e-300) * (2**24 - 1))] for value in guide]
    rounded = [[round(p * 2**16) for p in row] for row in guide.tolist()]
    return [row[1:] for row in rounded] if guide_kind == "binary probabilities" else rounded


@pytest.mark.parametrize("representative", ["mean", "midrange"])
@in_examples(40)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_mean_and_midrange_are_what_they_say(representative, table, k, seed):
    guide = make_guide("labels", table.n_records, seed)
    groups, released = fitted_groups(table, min(k, table.n_records), representative, guide)
    for rows in groups:
        for name, column in table.columns.items():
            found = {released[name][row].as_py() for row in rows}
            assert len(found) == 1
            middle = middle_of(column, rows)
            if middle is None or column.kind not in ORDERED:
                assert found == {middle}
                continue
            known = [as_number(column.values[row]) for row in rows if column.values[row] is not None]
            exact = sum(known) / len(known) if representative == "mean" else (min(known) + max(known)) / 2
            spread = max(abs(as_number(v)) for v in column.values if v is not None)
            slack = spread / 10**12 + {"integer": Fraction(1, 2), "float": 0, "date": 43_200 * 10**6}.get(
                column.kind, Fraction(1, 2)
            )
            assert abs(as_number(found.pop()) - exact) <= slack


def test_mean_and_midrange_of_integers_round_half_to_even_above_the_lowest():
    X = np.array([[1], [2], [2], [5]])
    for representative, expected in (("mean", 3), ("midrange", 3)):  # 1 + 1.5 and 1 + 2
        anonymizer = ModelGuidedAnonymizer(4, representative=representative)
        assert anonymizer.fit_transform(X, [0, 1, 0, 1]).tolist() == [[expected]] * 4


@in_examples(40)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_sample_is_a_real_record_and_follows_the_seed(table, k, seed):
    k, guide = min(k, table.n_records), make_guide("number", table.n_records, seed)
    groups, released = fitted_groups(table, k, "sample", guide, random_state=seed)
    for rows in groups:
        drawn = {tuple(released[name][row].as_py() for name in table.columns) for row in rows}
        assert len(drawn) == 1
        assert drawn <= {tuple(values_of(table, row)) for row in rows}
    assert fitted_groups(table, k, "sample", guide, random_state=seed)[1].equals(released)


def test_sample_draws_every_member_of_a_group_sooner_or_later():
    X = np.arange(8)[:, None]
    anonymizer = ModelGuidedAnonymizer(8, representative="sample")
    drawn = Counter()
    for seed in range(200):
        anonymizer.set_params(random_state=seed)
        drawn[anonymizer.fit_transform(X, np.zeros(8))[0, 0]] += 1
    assert set(drawn) == set(range(8))
    assert max(drawn.values()) < 60  # 25 expected; beyond 60 lies 1 in 10^9


def test_sample_takes_generators_and_seeds_as_scikit_learn_does():
    table, guide = people()
    one = ModelGuidedAnonymizer(5, representative="sample", random_state=np.random.RandomState(3))
    two = ModelGuidedAnonymizer(5, representative="sample", random_state=3)
    assert one.fit_transform(table, guide).equals(two.fit_transform(table, guide))
    other = ModelGuidedAnonymizer(5, representative="sample", random_state=4).fit_transform(table, guide)
    assert not other.equals(two.fit_transform(table, guide))


def label_of(column, rows):
    """The range label of a group, as documented: low-high, sets in braces, and what is missing."""
    present = sorted({column.values[row] for row in rows} - {None})
    if not present:
        return None
    if column.kind in ORDERED:
        texts = [written(value, column.kind) for value in (present[0], present[-1])]
        plain = column.kind in ("integer", "float") and present[0] >= 0 and "e" not in "".join(texts)
        label = texts[0] if texts[0] == texts[1] else ("-" if plain else " to ").join(texts)
        label += " UTC" if column.kind == "zoned datetime" else ""
    else:
        label = "{" + ", ".join(map(str, present)) + "}" if len(present) > 1 else str(present[0])
    return label + " or missing" if any(column.values[row] is None for row in rows) else label


def written(value, kind):
    if kind == "float":
        return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
    if kind == "zoned datetime":
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value.isoformat(sep=" ") if kind.endswith("datetime") else str(value)


@in_examples(50)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_range_labels_say_what_the_group_has(table, k, seed):
    guide = make_guide("labels", table.n_records, seed)
    groups, released = fitted_groups(table, min(k, table.n_records), "range", guide)
    for rows in groups:
        for name, column in table.columns.items():
            assert {released[name][row].as_py() for row in rows} == {label_of(column, rows)}


def test_range_labels_read_like_the_documentation():
    frame = pd.DataFrame(
        {"age": [31, 34, 31, 34], "job": ["nurse", "teacher", "nurse", "nurse"], "debt": [-3, 2, 0, 0]}
    )
    released = ModelGuidedAnonymizer(4, representative="range").fit_transform(frame, [0, 0, 1, 1])
    assert released.iloc[0].tolist() == ["31-34", "{nurse, teacher}", "-3 to 2"]


@pytest.mark.parametrize("limits", [None, {"seen": 1}])
def test_range_labels_of_datetimes_with_a_time_zone_say_that_they_are_in_utc(limits):
    seen = pd.date_range("2020-01-01 00:30", periods=3, freq="D", tz="Europe/Berlin")
    options = {"representative": "range", "quasi_identifiers": ["seen"], "limits": limits}
    with_zone = ModelGuidedAnonymizer(3, **options).fit_transform(pd.DataFrame({"seen": seen}), [0, 0, 1])
    expected = (
        "2019-12-31 23:30:00 to 2020-01-02 23:30:00 UTC"
        if limits is None
        else ("2019-12-31 00:00:00 to 2020-01-03 00:00:00 UTC")
    )
    assert with_zone["seen"].tolist() == [expected] * 3
    without = ModelGuidedAnonymizer(3, **options).fit_transform(
        pd.DataFrame({"seen": seen.tz_localize(None)}), [0, 0, 1]
    )
    assert "UTC" not in without["seen"].iloc[0]


@in_examples(40)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_bounds_are_the_lowest_and_highest_value_as_two_columns(table, k, seed):
    guide = make_guide("labels", table.n_records, seed)
    groups, released = fitted_groups(table, min(k, table.n_records), "bounds", guide)
    assert released.column_names == [f"{name}_{end}" for name in table.columns for end in ("low", "high")]
    for rows in groups:
        for name, column in table.columns.items():
            present = sorted({column.values[row] for row in rows} - {None})
            ends = (present[0], present[-1]) if present else (None, None)
            for end, expected in zip(("low", "high"), ends, strict=True):
                assert {released[f"{name}_{end}"][row].as_py() for row in rows} == {expected}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_bounds_of_categories_follow_the_order_that_their_type_declares(library):
    sizes = pd.Categorical(["hi", "lo", "mid", "mid", "hi", None], ["unused", "lo", "mid", "hi"], ordered=True)
    frame = pd.DataFrame({"size": sizes})
    if library == "polars":
        frame = pl.DataFrame({"size": pl.Series([*sizes.tolist()[:5], None], dtype=pl.Enum(list(sizes.categories)))})
    elif library == "pyarrow":
        frame = pa.table({"size": pa.array(sizes)})
    anonymizer = ModelGuidedAnonymizer(6, representative="bounds", quasi_identifiers=["size"])
    released = anonymizer.fit_transform(frame, [0, 0, 0, 0, 0, 0])
    assert set(rows_of(released)) == {("lo", "hi")}
    assert set(rows_of(anonymizer.release(frame).table)) == {("lo", "hi")}


def test_bounds_of_categories_without_a_declared_order_are_sorted():
    frame = pd.DataFrame({"size": pd.Categorical(["hi", "lo", "mid"], ["lo", "mid", "hi"])})
    released = ModelGuidedAnonymizer(3, representative="bounds").fit_transform(frame, [0, 0, 0])
    assert set(rows_of(released)) == {("hi", "mid")}


def test_the_declared_order_holds_for_later_batches():
    frame = pd.DataFrame({"size": pd.Categorical(["mid", "hi", "mid"], ["lo", "mid", "hi"], ordered=True)})
    later = pd.DataFrame({"size": pd.Categorical(["lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True)})
    anonymizer = RPlusTreeAnonymizer(3, representative="bounds", keep_records=True)
    anonymizer.fit(frame).insert(later)
    for low, high in rows_of(anonymizer.transform(pd.concat([frame, later], ignore_index=True))):
        assert ["lo", "mid", "hi"].index(low) <= ["lo", "mid", "hi"].index(high)


def test_bounds_keep_the_type_of_numbers_and_dates():
    frame = pd.DataFrame({"age": np.array([1, 2, 3, 9], np.int16), "born": pd.date_range("2020", periods=4, unit="s")})
    released = ModelGuidedAnonymizer(2, representative="bounds").fit_transform(frame, [0, 0, 1, 1])
    assert released.dtypes.to_dict() == {
        "age_low": np.int16, "age_high": np.int16, "born_low": "datetime64[s]", "born_high": "datetime64[s]",
    }  # fmt: skip
    assert released["age_low"].tolist() == [1, 1, 3, 3]
    assert released["age_high"].tolist() == [2, 2, 9, 9]


@pytest.mark.parametrize(
    ("values", "limit", "ends", "labels"),
    [
        ([*range(30, 40), 80, 80], 5, [(30, 34), (35, 84)], ["30-34", "35-84"]),
        ([-7, -6, -1, 3, 4, 4], 5, [(-10, -1), (0, 4)], ["-10 to -1", "0-4"]),
        ([0.21, 0.25, 0.3, 1.05, 1.05, 1.07], 0.1, [(0.2, 0.3), (1.0, 1.1)], ["0.2-0.3", "1-1.1"]),
        (
            [datetime.date(1970, 1, day) for day in (1, 6, 7, 8, 13, 15)],
            7,
            [
                (datetime.date(1970, 1, 1), datetime.date(1970, 1, 7)),
                (datetime.date(1970, 1, 8), datetime.date(1970, 1, 21)),
            ],
            ["1970-01-01 to 1970-01-07", "1970-01-08 to 1970-01-21"],
        ),
        (
            [
                datetime.time(0),
                datetime.time(1),
                datetime.time(2),
                datetime.time(13),
                datetime.time(22),
                datetime.time(23),
            ],
            0.5,
            [
                (datetime.time(0), datetime.time(11, 59, 59, 999999)),
                (datetime.time(12), datetime.time(23, 59, 59, 999999)),
            ],
            ["00:00:00 to 11:59:59.999999", "12:00:00 to 23:59:59.999999"],
        ),
        (
            [datetime.datetime(1970, 1, day, 12) for day in (1, 1, 2, 3, 4, 4)],
            2,
            [
                (datetime.datetime(1970, 1, 1), datetime.datetime(1970, 1, 3)),
                (datetime.datetime(1970, 1, 3), datetime.datetime(1970, 1, 5)),
            ],
            ["1970-01-01 00:00:00 to 1970-01-03 00:00:00", "1970-01-03 00:00:00 to 1970-01-05 00:00:00"],
        ),
    ],
    ids=["integers", "negative integers", "reals", "dates", "times", "datetimes"],
)
def test_ranges_and_bounds_of_a_limited_column_reach_to_the_ends_of_its_intervals(values, limit, ends, labels):
    table = pa.table({"x": values})
    guide = [value >= values[len(values) // 2 - (len(values) == 12)] for value in values]
    options = {"limits": {"x": limit}, "quasi_identifiers": ["x"]}
    shown = ModelGuidedAnonymizer(3, representative="range", **options).fit_transform(table, guide)["x"].to_pylist()
    assert list(dict.fromkeys(shown)) == labels
    bounds = ModelGuidedAnonymizer(3, representative="bounds", **options).fit(table, guide).release(table).table
    pairs = list(zip(bounds["x_low"].to_pylist(), bounds["x_high"].to_pylist(), strict=True))
    assert list(dict.fromkeys(pairs)) == ends
    assert all(low <= value <= high for value, (low, high) in zip(values, pairs, strict=True))


@pytest.mark.parametrize("representative", [r for r in REPRESENTATIVES if r not in ("range", "bounds")])
def test_types_survive(representative):
    table, guide = people()
    frame = table.to_pandas().assign(
        age=lambda f: f["age"].astype("Int16"),
        town=lambda f: pd.Categorical(
            f["town"], ["Lake Town", "Bree", "Hobbiton", "Minas Tirith", "Moria"], ordered=True
        ),
        small=np.arange(120, dtype=np.uint8) % 50,
        single=np.arange(120, dtype=np.float32) / 7,
    )
    released = ModelGuidedAnonymizer(5, representative=representative, random_state=0).fit_transform(frame, guide)
    assert released.dtypes.equals(frame.dtypes)
    assert {type(value) for value in released["joined"]} == {datetime.date}


def test_a_bin_stands_for_its_most_frequent_value():
    X = np.array([1, 2, 2, 3, 10, 11, 12, 12])[:, None]
    released = ModelGuidedAnonymizer(4, max_bins=2).fit_transform(X, [0, 0, 0, 0, 1, 1, 1, 1])
    assert released.ravel().tolist() == [2] * 4 + [12] * 4


def test_without_predictions_model_and_member_take_the_record_nearest_the_median():
    table, guide = people()
    fitted = {r: ModelGuidedAnonymizer(5, representative=r).fit(table, guide) for r in ("model", "member")}
    assert fitted["model"].release(table).table.equals(fitted["member"].release(table).table)
    assert not fitted["model"].release(table).table.equals(fitted["model"].transform(table))
    assert fitted["model"].release(table, guide).table.equals(fitted["model"].transform(table))


def test_member_takes_predictions_at_release_when_given():
    X = pa.table({"age": [20, 21, 22, 40, 41, 42]})
    fitted = ModelGuidedAnonymizer(3, representative="member").fit(X, ["a", "a", "b", "c", "c", "c"])
    without = fitted.release(X).table["age"].to_pylist()
    with_other = fitted.release(X, ["b", "b", "b", "c", "d", "d"]).table["age"].to_pylist()
    with_majority_aside = fitted.release(X, ["a", "c", "a", "c", "c", "c"]).table["age"].to_pylist()
    assert without == with_other == [21, 21, 21, 41, 41, 41]
    assert with_majority_aside == [20, 20, 20, 41, 41, 41]


def test_all_records_of_a_group_get_the_same_values():
    table, guide = people()
    for representative in REPRESENTATIVES:
        anonymizer = ModelGuidedAnonymizer(5, representative=representative, random_state=0)
        released = rows_of(anonymizer.fit_transform(table, guide))
        group = anonymizer.partition_.apply(table)
        for g in range(anonymizer.n_groups_):
            assert len({released[row] for row in np.flatnonzero(group == g)}) == 1


def test_an_unknown_representative_is_refused():
    table, guide = people()
    with pytest.raises(ParameterError, match=r"representative='average': expected one of median.*'model' suits most"):
        ModelGuidedAnonymizer(5, representative="average").fit(table, guide)
