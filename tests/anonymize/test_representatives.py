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

from sfumato import LDiversity, ModelGuidedAnonymizer, ParameterError, RPlusTreeAnonymizer
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import people, rows_of
from strategies import in_examples, make_guide, tables
from twins.published_values import PublishedNumbers

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


def plain(value):
    """The number behind a value, as it is: itself, or microseconds."""
    exact = as_number(value)
    return value if isinstance(value, float) else int(exact)


def published_of(column, k):
    """What is published of the numbers of a column; None for categories."""
    known = [plain(value) for value in column.values if value is not None]
    return PublishedNumbers(known, k, column.kind) if column.kind in ORDERED and known else None


def common_of(column, k):
    """The categories of a column that may be named: those that at least k records have, and true and false."""
    counts = Counter(value for value in column.values if value is not None)
    return {value for value, count in counts.items() if count >= k or column.kind == "boolean"}


def shown(column, value, rows, k):
    """What is written for a value that was chosen for a group."""
    if column.kind in ORDERED:
        return None if value is None else published_of(column, k).value(plain(value))
    if value is None or value in common_of(column, k):
        return value
    return shown_mode(column, rows, k)


def shown_mode(column, rows, k):
    """The most frequent category that may be named, missing being one; what stands for it where none may."""
    counts = Counter(column.values[row] for row in rows)
    known = {v: n for v, n in counts.items() if v is None or v in common_of(column, k)}
    if known:
        most = max(known.values())
        present = [v for v, n in known.items() if n == most and v is not None]
        return min(present) if present else None
    every = Counter(v for v in column.values if v is not None)
    if column.kind != "boolean" or max(every.values()) < k:
        return None
    return min(v for v, n in every.items() if n == max(every.values()))


def written_number(value):
    return None if value is None else plain(value)


def as_shown(column, value):
    """A released value as `shown` gives it."""
    return written_number(value) if column.kind in ORDERED else value


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


def group_middle(table, rows, k):
    """Median of numbers, most frequent category that may be named; something no record has where none may."""
    found = []
    for column in table.columns.values():
        if column.kind in ORDERED:
            found.append(middle_of(column, rows))
            continue
        counts = Counter(column.values[row] for row in rows)
        may_show = any(value is None or value in common_of(column, k) for value in counts)
        found.append(shown_mode(column, rows, k) if may_show else object())
    return found


def shown_values(table, row, rows, k):
    """What is written for a record that stands for its group."""
    return [shown(column, column.values[row], rows, k) for column in table.columns.values()]


def chosen_values(table, released, row):
    return [as_shown(column, released[name][row].as_py()) for name, column in table.columns.items()]


def is_nearest(table, candidates, chosen, rows, k):
    """Return True if the chosen values are those of a nearest candidate; smaller codes break ties."""
    middle = group_middle(table, rows, k)
    distances = {row: distance(table, row, middle) for row in candidates}
    least = min(distances.values())
    nearest = [row for row in candidates if distances[row] <= least * (1 + Fraction(1, 10**9)) + Fraction(1, 10**18)]
    same = [row for row in nearest if shown_values(table, row, rows, k) == chosen]
    if not same:
        return False
    if all(distances[row] == least for row in nearest):
        return min(code_vector(table, row) for row in same) == min(code_vector(table, row) for row in nearest)
    return True


def values_of(table, row):
    return [column.values[row] for column in table.columns.values()]


@in_examples(60)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_median_is_the_lower_median_or_the_mode(table, k, seed):
    k = min(k, table.n_records)
    groups, released = fitted_groups(table, k, "median", make_guide("number", table.n_records, seed))
    for rows in groups:
        for name, column in table.columns.items():
            middle = middle_of(column, rows)
            expected = shown(column, middle, rows, k) if column.kind in ORDERED else shown_mode(column, rows, k)
            assert {as_shown(column, released[name][row].as_py()) for row in rows} == {expected}


@pytest.mark.parametrize("guide_kind", ["labels", "binary probabilities", "probabilities", "number"])
@in_examples(25)
@given(table=tables(max_records=25), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_member_is_the_record_nearest_the_median_among_the_majority(guide_kind, table, k, seed):
    guide = make_guide(guide_kind, table.n_records, seed)
    k = min(k, table.n_records)
    groups, released = fitted_groups(table, k, "member", guide)
    predicted = guide if guide_kind == "labels" else None if guide_kind == "number" else np.argmax(guide, axis=1)
    for rows in groups:
        candidates = rows
        if predicted is not None:
            counts = Counter(predicted[rows].tolist())
            majority = min(label for label, count in counts.items() if count == max(counts.values()))
            candidates = [row for row in rows if predicted[row] == majority]
        assert is_nearest(table, candidates, chosen_values(table, released, rows[0]), rows, k)


@pytest.mark.parametrize("guide_kind", ["labels", "binary probabilities", "probabilities", "number"])
@in_examples(30)
@given(table=tables(), k=st.integers(2, 30), seed=st.integers(0, 99))
def test_model_is_the_typical_record_among_the_tenth_with_predictions_nearest_the_mean(guide_kind, table, k, seed):
    guide = make_guide(guide_kind, table.n_records, seed)
    k = min(k, table.n_records)
    groups, released = fitted_groups(table, k, "model", guide)
    channels = channels_of(guide_kind, guide)
    for rows in groups:
        means = [Fraction(sum(channels[row][c] for row in rows), len(rows)) for c in range(len(channels[0]))]
        off = {row: sum((channels[row][c] - mean) ** 2 for c, mean in enumerate(means)) for row in rows}
        most = sorted(off.values())[math.ceil(len(rows) / 10) - 1]
        candidates = [row for row in rows if off[row] <= most]
        chosen = chosen_values(table, released, rows[0])
        about_as_near = {row for row in rows if abs(off[row] - most) <= most / 10**9}
        if len({tuple(channels[row]) for row in about_as_near}) == 1:
            assert is_nearest(table, candidates, chosen, rows, k)
        else:  # as near from two sides; rounding may tell them apart
            assert chosen in [shown_values(table, row, rows, k) for row in {*candidates, *about_as_near}]


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
    guide, k = make_guide("labels", table.n_records, seed), min(k, table.n_records)
    groups, released = fitted_groups(table, k, representative, guide)
    for rows in groups:
        for name, column in table.columns.items():
            found = {released[name][row].as_py() for row in rows}
            assert len(found) == 1
            if column.kind not in ORDERED:
                assert found == {shown_mode(column, rows, k)}
                continue
            if middle_of(column, rows) is None:
                assert found == {None}
                continue
            published = published_of(column, k)
            if published.is_hidden:
                assert found == {None}
                continue
            known = [plain(column.values[row]) for row in rows if column.values[row] is not None]
            ends = [Fraction(published.value(end)) for end in (min(known), max(known))]
            exact = published.mean(known) if representative == "mean" else sum(ends) / 2
            spread = max(abs(Fraction(v)) for v in [*published.distinct, *published.published])
            slack = spread / 10**12 + {"integer": Fraction(1, 2), "float": 0, "date": 43_200 * 10**6}.get(
                column.kind, Fraction(1, 2)
            )
            assert abs(as_number(found.pop()) - exact) <= slack


def test_mean_and_midrange_of_integers_round_half_to_even_above_the_lowest():
    X = np.repeat([1, 2, 2, 5], 4)[:, None]
    for representative, expected in (("mean", 3), ("midrange", 3)):  # 1 + 1.5 and 1 + 2
        anonymizer = ModelGuidedAnonymizer(4, representative=representative, criteria=[LDiversity(16, "y")])
        assert anonymizer.fit_transform(X, [0, 1, 0, 1] * 4, target=np.arange(16)).tolist() == [[expected]] * 16


@in_examples(40)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_sample_is_a_real_record_and_follows_the_seed(table, k, seed):
    k, guide = min(k, table.n_records), make_guide("number", table.n_records, seed)
    groups, released = fitted_groups(table, k, "sample", guide, random_state=seed)
    for rows in groups:
        drawn = {tuple(released[name][row].as_py() for name in table.columns) for row in rows}
        assert len(drawn) == 1
        assert {tuple(as_shown(c, v) for c, v in zip(table.columns.values(), own, strict=True)) for own in drawn} <= {
            tuple(shown_values(table, row, rows, k)) for row in rows
        }
    assert fitted_groups(table, k, "sample", guide, random_state=seed)[1].equals(released)


def test_sample_draws_every_member_of_a_group_sooner_or_later():
    X = np.repeat(np.arange(8), 8)[:, None]  # each value is shared by enough people to be shown
    anonymizer = ModelGuidedAnonymizer(8, representative="sample", criteria=[LDiversity(64, "y")])
    drawn = Counter()
    for seed in range(200):
        anonymizer.set_params(random_state=seed)
        drawn[anonymizer.fit_transform(X, np.zeros(64), target=np.arange(64))[0, 0]] += 1
    assert set(drawn) == set(range(8))
    assert max(drawn.values()) < 60  # 25 expected; beyond 60 lies 1 in 10^9


def test_sample_takes_generators_and_seeds_as_scikit_learn_does():
    table, guide = people()
    one = ModelGuidedAnonymizer(5, representative="sample", random_state=np.random.RandomState(3))
    two = ModelGuidedAnonymizer(5, representative="sample", random_state=3)
    assert one.fit_transform(table, guide).equals(two.fit_transform(table, guide))
    other = ModelGuidedAnonymizer(5, representative="sample", random_state=4).fit_transform(table, guide)
    assert not other.equals(two.fit_transform(table, guide))


def label_of(column, rows, k):
    """The range label of a group, as documented: low-high, sets in braces, open ends, and what is missing."""
    present = sorted({column.values[row] for row in rows} - {None})
    if not present:
        return None
    if column.kind in ORDERED:
        label = range_label(column, present, published_of(column, k))
    else:
        named = [str(value) for value in present if value in common_of(column, k)]
        named += ["other"] if len(named) < len(present) else []
        label = "{" + ", ".join(named) + "}" if len(named) > 1 else named[0]
    return label + " or missing" if any(column.values[row] is None for row in rows) else label


def range_label(column, present, published):
    first, last = (published.run_of(plain(value)) for value in (present[0], present[-1]))
    low, high = published.lows[first], published.highs[last]
    opens_below, opens_above = (
        published.opens_below and first == 0,
        published.opens_above and last == len(published.runs) - 1,
    )
    texts = [written(of_number(value, column.kind), column.kind) for value in (low, high)]
    zone = " UTC" if column.kind == "zoned datetime" else ""
    if (opens_below and opens_above) or published.is_hidden:
        return "any value"
    if opens_below:
        return f"{texts[1]}{zone} and under"
    if opens_above:
        return f"{texts[0]}{zone} and over"
    is_plain = column.kind in ("integer", "float") and low >= 0 and "e" not in "".join(texts)
    return (texts[0] if texts[0] == texts[1] else ("-" if is_plain else " to ").join(texts)) + zone


def of_number(number, kind):
    """The value that a number stands for; the inverse of `plain`."""
    if kind in ("integer", "float"):
        return float(number) if kind == "float" else int(number)
    length = datetime.timedelta(microseconds=int(number))
    if kind == "duration":
        return length
    at = EPOCH + length
    return at.date() if kind == "date" else at.replace(tzinfo=datetime.UTC) if kind == "zoned datetime" else at


def written(value, kind):
    if kind == "float":
        return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
    if kind == "zoned datetime":
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value.isoformat(sep=" ") if kind.endswith("datetime") else str(value)


@in_examples(50)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_range_labels_say_what_the_group_has(table, k, seed):
    guide, k = make_guide("labels", table.n_records, seed), min(k, table.n_records)
    groups, released = fitted_groups(table, k, "tight-range", guide)
    for rows in groups:
        for name, column in table.columns.items():
            assert {released[name][row].as_py() for row in rows} == {label_of(column, rows, k)}


def test_range_labels_read_like_the_documentation():
    frame = pd.DataFrame(
        {"age": [31, 34, 31, 34], "job": ["nurse", "teacher", "nurse", "teacher"], "debt": [-3, 2, -3, 2]}
    )
    anonymizer = ModelGuidedAnonymizer(2, representative="tight-range", criteria=[LDiversity(4, "y")])
    released = anonymizer.fit_transform(frame, [0, 0, 1, 1], target=[1, 2, 3, 4])
    assert released.iloc[0].tolist() == ["31-34", "{nurse, teacher}", "-3 to 2"]


def test_range_labels_hide_what_few_people_have():
    frame = pd.DataFrame({"age": [31, 34, 35, 90], "job": ["nurse", "diver", "nurse", "nurse"], "debt": [1, 1, 2, 2]})
    anonymizer = ModelGuidedAnonymizer(2, representative="tight-range", criteria=[LDiversity(4, "y")])
    released = anonymizer.fit_transform(frame, [0, 0, 1, 1], target=[1, 2, 3, 4])
    assert released.iloc[0].tolist() == ["any value", "{nurse, other}", "1-2"]


@pytest.mark.parametrize("limits", [None, {"seen": 1}])
def test_range_labels_of_datetimes_with_a_time_zone_say_that_they_are_in_utc(limits):
    seen = pd.DatetimeIndex(np.repeat(pd.date_range("2020-01-01 00:30", periods=3, freq="D", tz="Europe/Berlin"), 3))
    options = {"representative": "tight-range", "quasi_identifiers": ["seen"], "limits": limits}
    options["criteria"] = [LDiversity(9, "y")]
    fitting = {"y": [0, 0, 1] * 3, "target": np.arange(9)}
    with_zone = ModelGuidedAnonymizer(3, **options).fit_transform(pd.DataFrame({"seen": seen}), **fitting)
    expected = (
        "2019-12-31 23:30:00 to 2020-01-02 23:30:00 UTC"
        if limits is None
        else ("2019-12-31 00:00:00 to 2020-01-03 00:00:00 UTC")
    )
    assert with_zone["seen"].tolist() == [expected] * 9
    without = ModelGuidedAnonymizer(3, **options).fit_transform(
        pd.DataFrame({"seen": seen.tz_localize(None)}), **fitting
    )
    assert "UTC" not in without["seen"].iloc[0]


@in_examples(40)
@given(table=tables(), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_bounds_are_the_published_ends_as_two_columns(table, k, seed):
    guide, k = make_guide("labels", table.n_records, seed), min(k, table.n_records)
    groups, released = fitted_groups(table, k, "tight-bounds", guide)
    assert released.column_names == [f"{name}_{end}" for name in table.columns for end in ("low", "high")]
    for rows in groups:
        for name, column in table.columns.items():
            ends = bounds_of(column, rows, k)
            for end, expected in zip(("low", "high"), ends, strict=True):
                found = {as_shown(column, released[f"{name}_{end}"][row].as_py()) for row in rows}
                assert found == {expected}


def bounds_of(column, rows, k):
    present = sorted({column.values[row] for row in rows} - {None})
    if not present:
        return None, None
    if column.kind in ORDERED:
        published = published_of(column, k)
        if published.is_hidden:
            return None, None
        first, last = (published.run_of(plain(value)) for value in (present[0], present[-1]))
        return published.lows[first], published.highs[last]
    common = [value for value in present if value in common_of(column, k)]
    if common:
        return common[0], common[-1]
    only = shown_mode(column, rows, k)  # without its missing values
    every = Counter(v for v in column.values if v is not None)
    if column.kind == "boolean" and max(every.values()) >= k:
        only = min(v for v, n in every.items() if n == max(every.values()))
    return only, only


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_bounds_of_categories_follow_the_order_that_their_type_declares(library):
    sizes = ["hi", "lo", "mid", "mid", "hi", None] * 6
    sizes = pd.Categorical(sizes, ["unused", "lo", "mid", "hi"], ordered=True)
    frame = pd.DataFrame({"size": sizes})
    if library == "polars":
        frame = pl.DataFrame(
            {"size": pl.Series([None if v != v else v for v in sizes.tolist()], dtype=pl.Enum(list(sizes.categories)))}
        )
    elif library == "pyarrow":
        frame = pa.table({"size": pa.array(sizes)})
    criteria = [LDiversity(36, "y")]  # keeps all in one group
    anonymizer = ModelGuidedAnonymizer(6, representative="bounds", quasi_identifiers=["size"], criteria=criteria)
    released = anonymizer.fit_transform(frame, [0] * 36, target=np.arange(36))
    assert set(rows_of(released)) == {("lo", "hi")}
    again = anonymizer.release(frame, target=np.arange(36), shuffle=False).table
    assert set(rows_of(again)) == {("lo", "hi")}


def test_bounds_of_categories_without_a_declared_order_are_sorted():
    frame = pd.DataFrame({"size": pd.Categorical(["hi", "lo", "mid"] * 3, ["lo", "mid", "hi"])})
    anonymizer = ModelGuidedAnonymizer(3, representative="bounds", criteria=[LDiversity(9, "y")])
    released = anonymizer.fit_transform(frame, [0] * 9, target=np.arange(9))
    assert set(rows_of(released)) == {("hi", "mid")}


def test_the_declared_order_holds_for_later_batches():
    frame = pd.DataFrame({"size": pd.Categorical(["mid", "hi", "mid"] * 3, ["lo", "mid", "hi"], ordered=True)})
    later = pd.DataFrame({"size": pd.Categorical(["lo", "hi", "lo"] * 3, ["lo", "mid", "hi"], ordered=True)})
    anonymizer = RPlusTreeAnonymizer(3, representative="bounds", keep_records=True)
    anonymizer.fit(frame).insert(later)
    for low, high in rows_of(anonymizer.transform(pd.concat([frame, later], ignore_index=True))):
        assert ["lo", "mid", "hi"].index(low) <= ["lo", "mid", "hi"].index(high)


def test_bounds_keep_the_type_of_numbers_and_dates():
    frame = pd.DataFrame(
        {"age": np.repeat(np.array([1, 2, 3, 9], np.int16), 2), "born": pd.date_range("2020", periods=8, unit="s")}
    )
    anonymizer = ModelGuidedAnonymizer(2, representative="bounds", criteria=[LDiversity(4, "y")])
    released = anonymizer.fit_transform(frame, [0, 0, 0, 0, 1, 1, 1, 1], target=np.arange(8))
    assert released.dtypes.to_dict() == {
        "age_low": np.int16, "age_high": np.int16, "born_low": "datetime64[s]", "born_high": "datetime64[s]",
    }  # fmt: skip
    assert released["age_low"].tolist() == [1] * 4 + [3] * 4
    assert released["age_high"].tolist() == [2] * 4 + [9] * 4


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
    table = pa.table({"x": [value for value in values for _ in range(3)]})  # so that every interval has enough people
    guide = [value >= values[len(values) // 2 - (len(values) == 12)] for value in values for _ in range(3)]
    n_each = 15 if len(values) == 12 else 9  # keeps either side in one group
    options = {"limits": {"x": limit}, "quasi_identifiers": ["x"], "criteria": [LDiversity(n_each, "y")]}
    target = np.arange(table.num_rows)
    anonymizer = ModelGuidedAnonymizer(3, representative="tight-range", **options)
    texts = anonymizer.fit_transform(table, guide, target=target)["x"].to_pylist()
    assert list(dict.fromkeys(texts)) == labels
    values = table["x"].to_pylist()
    anonymizer = ModelGuidedAnonymizer(3, representative="tight-bounds", **options).fit(table, guide, target=target)
    bounds = anonymizer.release(table, target=target, shuffle=False).table
    pairs = list(zip(bounds["x_low"].to_pylist(), bounds["x_high"].to_pylist(), strict=True))
    assert list(dict.fromkeys(pairs)) == ends
    assert all(low <= value <= high for value, (low, high) in zip(values, pairs, strict=True))


@pytest.mark.parametrize("representative", [r for r in REPRESENTATIVES if REPRESENTATIVES[r].facts.keeps_type])
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


def test_a_bin_stands_for_a_value_that_enough_people_have_or_else_for_one_that_nobody_has():
    X = np.array([1, 2, 2, 2, 2, 3, 10, 11, 13, 14, 15, 16])[:, None]
    anonymizer = ModelGuidedAnonymizer(4, max_bins=2, representative="median")
    released = anonymizer.fit_transform(X, [0] * 6 + [1] * 6)
    assert released.ravel().tolist() == [2] * 6 + [12] * 6


def test_without_predictions_model_and_member_take_the_record_nearest_the_median():
    table, guide = people()
    fitted = {r: ModelGuidedAnonymizer(5, representative=r).fit(table, guide) for r in ("model", "member")}
    model, member = (lambda *given, own=own: own.release(*given, shuffle=False).table for own in fitted.values())
    assert model(table).equals(member(table))
    assert not model(table).equals(fitted["model"].transform(table))
    assert model(table, guide).equals(fitted["model"].transform(table))


def test_member_takes_predictions_at_release_when_given():
    X = pa.table({"age": np.repeat([20, 21, 22, 40, 41, 42], 3)})
    anonymizer = ModelGuidedAnonymizer(3, representative="member", criteria=[LDiversity(9, "y")])
    target = np.arange(18)
    fitted = anonymizer.fit(X, np.repeat(["a", "a", "b", "c", "c", "c"], 3), target=target)

    def ages(labels=None):
        given = None if labels is None else np.repeat(labels, 3)
        return fitted.release(X, given, target=target, shuffle=False).table["age"].to_pylist()[::3]

    assert ages() == ages(["b", "b", "b", "c", "d", "d"]) == [21, 21, 21, 41, 41, 41]
    assert ages(["a", "c", "a", "c", "c", "c"]) == [20, 20, 20, 41, 41, 41]


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
    with pytest.raises(ParameterError, match=r"representative='average': expected one of phantom, .*'phantom' shows"):
        ModelGuidedAnonymizer(5, representative="average").fit(table, guide)
