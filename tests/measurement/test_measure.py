# SPDX-License-Identifier: Apache-2.0
"""Group sizes, risks and rankings of any table, beside plain Python that shares nothing with the library."""

import json
import math
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Measurement, measure
from sfumato.errors import InputError, ParameterError
from strategies import in_examples

AGES = st.one_of(st.none(), st.integers(30, 33))
TOWNS = st.one_of(st.none(), st.sampled_from(["Bari", "Rome", "Oslo"]))
HEIGHTS = st.one_of(st.none(), st.sampled_from([1.5, 1.75, 2.0]))
ROWS = st.lists(st.tuples(AGES, TOWNS, HEIGHTS), min_size=1, max_size=24)
NAMES = ["age", "town", "height"]


def build(rows, library="pyarrow"):
    columns = {name: [row[j] for row in rows] for j, name in enumerate(NAMES)}
    table = pa.table(
        {
            "age": pa.array(columns["age"], pa.int64()),
            "town": pa.array(columns["town"], pa.string()),
            "height": pa.array(columns["height"], pa.float64()),
        }
    )
    if library == "pandas":
        return table.to_pandas()
    return pl.from_arrow(table) if library == "polars" else table


def match(one, other, missing):
    """Return True if two records agree."""
    if missing == "value":
        return one == other
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def sizes_of(rows, others, missing):
    return [sum(match(row, other, missing) for other in others) for row in rows]


def n_unique(rows, positions):
    counts = Counter(tuple(row[j] for j in positions) for row in rows)
    return sum(count == 1 for count in counts.values())


@in_examples()
@given(
    rows=ROWS, missing=st.sampled_from(["value", "wildcard"]), library=st.sampled_from(["pandas", "polars", "pyarrow"])
)
def test_sizes_and_the_prosecutors_risk_equal_their_definitions(rows, missing, library):
    found = measure(build(rows, library), missing=missing)
    sizes = sizes_of(rows, rows, missing)
    assert found.k == found.groups.smallest == min(sizes)
    assert found.groups.largest == max(sizes)
    assert found.groups.n_groups == len(set(rows))
    assert found.groups.average == len(rows) / len(set(rows))
    assert found.uniqueness.n_unique == sizes.count(1)
    assert found.n_with_missing == sum(None in row for row in rows)
    assert found.prosecutor.maximum == 1 / min(sizes)
    assert found.prosecutor.average == pytest.approx(sum(1 / size for size in sizes) / len(rows))
    for threshold in (0.05, 0.09, 0.2):
        assert found.prosecutor.above[threshold] == sum(1 / size > threshold for size in sizes) / len(rows)
    of_groups = sorted(dict(zip(rows, sizes, strict=True)).values())
    for share, size in found.groups.quantiles_of_groups.items():
        assert size == of_groups[max(1, math.ceil(share * len(of_groups))) - 1]
    for share, size in found.groups.quantiles_of_records.items():
        assert size == sorted(sizes)[max(1, math.ceil(share * len(sizes))) - 1]
    assert sum(part.n_groups for part in found.groups.histogram) == found.groups.n_groups
    for part in found.groups.histogram:
        assert part.n_records == sum(part.low <= size <= (part.high or math.inf) for size in sizes)


@in_examples()
@given(rows=ROWS, more=ROWS, missing=st.sampled_from(["value", "wildcard"]), is_part=st.booleans())
def test_risks_in_a_population_equal_their_definitions(rows, more, missing, is_part):
    people = rows + more if is_part else more
    found = measure(build(rows), population=build(people), missing=missing)
    own, theirs = sizes_of(rows, rows, missing), sizes_of(rows, people, missing)
    risks = [1 / max(a, b) for a, b in zip(own, theirs, strict=True)]
    assert found.journalist.maximum == max(risks)
    assert found.journalist.average == pytest.approx(sum(risks) / len(risks))
    assert found.journalist.above[0.2] == sum(risk > 0.2 for risk in risks) / len(risks)
    assert found.marketer.average == pytest.approx(sum(risks) / len(risks))
    assert found.marketer.maximum is None
    assert found.uniqueness.population_size == len(people)
    assert found.uniqueness.n_unique_in_population == risks.count(1)
    assert found.uniqueness.n_not_in_population == sum(b < a for a, b in zip(own, theirs, strict=True))
    [presence] = [part for part in found.criteria if part.criterion == "delta-presence"]
    if is_part:
        assert found.uniqueness.n_not_in_population == 0
        assert presence.value == pytest.approx(max(a / b for a, b in zip(own, theirs, strict=True)))
    elif found.uniqueness.n_not_in_population:
        assert presence.value is None
        assert "no part" in presence.reason


@in_examples()
@given(rows=ROWS)
def test_the_ranking_counts_what_columns_make_unique(rows):
    found = measure(build(rows), quasi_identifiers=["town"]).ranking
    position = {name: j for j, name in enumerate(NAMES)}
    assert {entry.columns for entry in found.columns} == {(name,) for name in NAMES}
    for entry in (*found.columns, *found.pairs, *found.grown):
        assert entry.n_unique == n_unique(rows, [position[name] for name in entry.columns])
        assert entry.share == entry.n_unique / len(rows)
    kept = [name for name in NAMES if 2 * n_unique(rows, [position[name]]) <= len(rows)]
    assert {frozenset(entry.columns) for entry in found.pairs} == {frozenset(pair) for pair in combinations(kept, 2)}
    assert set(found.left_out) == set(NAMES) - set(kept)
    for part in (found.columns, found.pairs, found.added):
        assert [entry.n_unique for entry in part] == sorted((entry.n_unique for entry in part), reverse=True)
    for entry in found.added:
        assert entry.n_unique == n_unique(rows, [position["town"], position[entry.columns[0]]])
    for smaller, larger in zip(found.grown, found.grown[1:], strict=False):
        assert larger.columns[:-1] == smaller.columns
        assert larger.n_unique > smaller.n_unique


def test_a_column_that_was_forgotten_tops_the_ranking():
    frame = pd.DataFrame({"sex": ["f", "m"] * 20, "born": list(range(20)) * 2, "town": ["Bari"] * 40})
    found = measure(frame, quasi_identifiers=["sex", "town"])
    assert found.k == 20
    assert found.uniqueness.n_unique == 0
    assert found.ranking.added[0].columns == ("born",)
    assert found.ranking.pairs[0].columns == ("sex", "born")


def test_the_same_is_found_in_every_library_and_with_any_index():
    rows = [(30, "Bari", 1.5), (30, "Bari", 1.5), (31, None, 2.0), (None, "Rome", 2.0), (None, "Rome", 2.0)]
    wanted = measure(build(rows)).to_dict()
    for library in ("pandas", "polars"):
        assert measure(build(rows, library)).to_dict() == wanted
    frame = build(rows, "pandas").set_axis([9, 3, 7, 3, 0])
    assert measure(frame).to_dict() == wanted
    assert measure(frame.iloc[::-1]).to_dict() == wanted


def test_the_order_of_the_records_changes_nothing():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.integers(0, 6, (200, 5)), columns=list("abcde"))
    wanted = measure(frame, sensitive="e", population=500).to_dict()
    assert measure(frame.sample(frac=1, random_state=1), sensitive="e", population=500).to_dict() == wanted


def test_arrays_have_columns_by_position():
    found = measure(np.array([[1, 5], [1, 5], [2, 6]]), quasi_identifiers=[0], sensitive=1)
    assert found.quasi_identifiers == ("x0",)
    assert found.sensitive == ("x1",)
    assert found.k == 1


def test_numbers_at_the_ends_of_their_range_are_told_apart():
    ends = pd.DataFrame({"id": [-(2**63), -(2**63), 2**63 - 1, 2**63 - 1, 2**63 - 2]})
    assert measure(ends).groups.n_groups == 3
    assert measure(pd.DataFrame({"id": [-(2**63), -(2**63) + 1]})).groups.n_groups == 2


def test_a_missing_key_is_never_dropped():
    """A peer drops such records and reports 2 here."""
    frame = pd.DataFrame({"age": [30, 30, np.nan], "town": ["Bari", "Bari", "Rome"]})
    assert measure(frame).k == 1
    assert measure(frame, missing="wildcard").k == 1


def test_a_wildcard_matches_what_is_present_and_matching_is_no_equivalence():
    frame = pd.DataFrame({"age": [30, None, 41, 30], "town": ["Bari", "Bari", "Bari", "Rome"]})
    found = measure(frame, missing="wildcard")
    # The second matches the first and the third, which do not match each other; the fourth is alone.
    assert found.prosecutor.average == pytest.approx((1 / 2 + 1 / 3 + 1 / 2 + 1) / 4)
    assert found.missing == "wildcard"
    assert "matches anything" in found.to_dict()["missing_means"]


def test_every_part_says_what_missing_means():
    frame = pd.DataFrame({"age": [30, None, 41], "ill": ["a", "b", None]})
    document = measure(frame, ["age"], ["ill"], missing="wildcard", population=frame).to_dict()
    for part in ("groups", "prosecutor", "journalist", "marketer", "uniqueness"):
        assert document[part]["missing"] == "wildcard"
    assert {part["missing"] for part in document["criteria"]} == {"wildcard"}
    assert {part["missing"] for part in document["uniqueness"]["estimates"]} == {"wildcard"}
    assert document["ranking"]["missing"] == "value"


def test_what_needs_a_population_is_null_with_the_reason():
    document = measure(pd.DataFrame({"age": [30, 30]})).to_dict()
    for attacker in ("journalist", "marketer"):
        assert document[attacker]["average"] is None
        assert "a population is needed" in document[attacker]["reason"]
    assert all(part["share"] is None and part["reason"] for part in document["uniqueness"]["estimates"])
    assert "NaN" not in json.dumps(document, allow_nan=False)


def test_average_risk_is_per_record_not_per_group():
    """Groups of 99 and 1: over groups it would be 0.505."""
    found = measure(pd.DataFrame({"age": [30] * 99 + [31]}))
    assert found.prosecutor.average == pytest.approx(0.02)


def test_a_person_with_many_records_counts_once():
    frame = pd.DataFrame({"age": [30, 30, 30, 41, 41], "person": ["a", "a", "a", "b", "c"]})
    found = measure(frame, ["age"], unit="person")
    assert found.k == 2
    assert found.groups.smallest_in_persons == 1
    assert measure(frame, ["age"]).groups.smallest_in_persons is None


def test_columns_of_numbers_in_a_population_may_have_another_type():
    found = measure(
        pd.DataFrame({"age": [30, 31]}, dtype="int8"), population=pl.DataFrame({"age": [30.0, 30.0, 31.0, 40.5]})
    )
    assert found.journalist.average == pytest.approx(0.75)


def test_the_result_is_frozen_and_its_input_untouched():
    frame = pd.DataFrame({"age": [30, 31], "ill": ["a", "b"]})
    before = frame.copy()
    found = measure(frame, ["age"], ["ill"])
    assert isinstance(found, Measurement)
    pd.testing.assert_frame_equal(frame, before)
    with pytest.raises(AttributeError):
        found.missing = "value"


PEOPLE = pd.DataFrame({"age": [30, 31, 31], "town": ["a", "b", "c"], "w": [1.0, 0.0, 2.0]})


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"missing": "any"}, ParameterError, "missing='any': expected 'value'"),
        ({"quasi_identifiers": ["agee"]}, ParameterError, "Did you mean 'age'"),
        ({"quasi_identifiers": []}, ParameterError, "names no column"),
        ({"quasi_identifiers": ["age"], "sensitive": ["age"]}, ParameterError, "one role per column"),
        ({"population": 2}, ParameterError, "population=2 with 3 records"),
        ({"quasi_identifiers": ["age"], "population": pd.DataFrame({"a": [1]})}, ParameterError, "the population"),
        ({"quasi_identifiers": ["age"], "population": pd.DataFrame({"age": ["x"]})}, InputError, "Convert one of them"),
        ({"weights": "w"}, InputError, "weights has 1 of 3 values"),
        ({"weights": [1.0, 2.0]}, InputError, "one weight per record"),
        ({"weights": "town"}, InputError, "weights has 3 of 3 values"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        measure(PEOPLE, **arguments)


def test_too_much_work_for_wildcards_is_refused_with_the_reason(monkeypatch):
    from sfumato.backends.group_rows import match_counts

    keys = np.array([[1, 0], [0, 1]], np.int32)
    with pytest.raises(InputError, match="2 different patterns"):
        match_counts(keys, keys, np.array([[1], [1]]), largest_work=3)
