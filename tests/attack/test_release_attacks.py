# SPDX-License-Identifier: Apache-2.0
"""The three risks of Opinion 05/2014 on released tables: by hand, on ranges, sets, bounds and representatives."""

from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import MondrianAnonymizer
from sfumato.attack import infer_from_release, link_through_release, single_out_of_release
from sfumato.attack.released_cells import read_release
from sfumato.errors import InputError, ParameterError
from sfumato.labels import label_range, label_set
from strategies import in_examples

PEOPLE = st.lists(
    st.tuples(st.integers(18, 60), st.sampled_from(["clerk", "nurse", "smith"]), st.integers(0, 2)),
    min_size=2,
    max_size=24,
)


def released_as_ranges(people):
    """Show the range of ages and the set of jobs of each person's group."""
    groups = defaultdict(list)
    for age, job, group in people:
        groups[group].append((age, job))
    shown = [
        (
            label_range(min(a for a, _ in groups[group]), max(a for a, _ in groups[group])),
            label_set(sorted({j for _, j in groups[group]})),
        )
        for _, _, group in people
    ]
    return pa.table({"age": [a for a, _ in shown], "job": [j for _, j in shown]})


def original_of(people):
    return pa.table({"age": [age for age, _, _ in people], "job": [job for _, job, _ in people]})


# -- singling out ------------------------------------------------------------------------------------------------


@in_examples()
@given(people=PEOPLE)
def test_a_record_isolates_when_one_person_lies_in_its_ranges(people):
    result = single_out_of_release(original_of(people), released_as_ranges(people), n_attempts=None)
    groups = defaultdict(list)
    for age, job, group in people:
        groups[group].append((age, job))
    # Two groups may be released alike; then they stand for one predicate.
    different = {
        (min(a for a, _ in m), max(a for a, _ in m), tuple(sorted({j for _, j in m}))) for m in groups.values()
    }
    expected = [sum(low <= age <= high and job in jobs for age, job, _ in people) == 1 for low, high, jobs in different]
    assert result.details["rates"]["whole records"] == pytest.approx(np.mean(expected))


@in_examples()
@given(people=PEOPLE)
def test_whole_records_isolate_nobody_when_every_group_has_two_members(people):
    doubled = people + people
    result = single_out_of_release(original_of(doubled), released_as_ranges(doubled), n_attempts=None)
    assert result.details["rates"]["whole records"] == 0


def test_a_table_released_as_it_is_singles_out_everybody_who_is_unique():
    frame = pa.table({"age": [20, 30, 30, 40], "job": ["a", "b", "b", "c"]})
    result = single_out_of_release(frame, frame, n_attempts=None)
    assert result.details["rates"]["whole records"] == pytest.approx(2 / 3)  # of three different records


def test_real_members_as_representatives_are_singled_out_where_ranges_are_not():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": generator.integers(0, 20, 400) for i in range(3)})
    rates = {}
    for representative in ("range", "member"):
        anonymizer = MondrianAnonymizer(k=10, representative=representative)
        released = anonymizer.fit_transform(frame)
        rates[representative] = single_out_of_release(frame, released).details["rates"]["whole records"]
    assert rates["range"] == 0.0 and rates["member"] > 0.5


def test_bounds_are_ranges():
    original = pa.table({"age": [20, 25, 40, 41]})
    released = pa.table({"age_low": [20, 20, 40, 40], "age_high": [25, 25, 41, 41]})
    result = single_out_of_release(original, released, n_attempts=None)
    assert result.details["rates"]["whole records"] == 0


# -- what a cell stands for --------------------------------------------------------------------------------------


def distances(original, released, control=None):
    (column,) = read_release(pa.table({"x": original}), pa.table({"x": released}), None, control).columns
    return column.distances(column.shown, column.codes).tolist()


def test_values_outside_a_range_are_as_far_as_the_gap():
    found = distances([0, 5, 10], ["0-5", "0-5", "10"])
    assert found == [[0, 0, 0.5], [0, 0, 0.5], [1.0, 0.5, 0]]


def test_a_representative_number_is_itself_and_nothing_else():
    assert distances([0, 4, 8], [4, 4, 4]) == [[0.5, 0, 0.5]] * 3


def test_a_label_stands_for_the_categories_it_replaced():
    assert distances(["a", "b", "c"], ["{a, b}", "{a, b}", "c"]) == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


def test_a_representative_category_is_itself_and_nothing_else():
    assert distances(["a", "b", "b"], ["b", "b", "b"]) == [[1, 0, 0]] * 3


def test_a_missing_value_lies_where_missing_values_were_released():
    assert distances([1, None, 3], ["1 or missing", "1 or missing", "3"])[0] == [0, 0, 1]
    assert distances([1, None, 3], [1, None, 3]) == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


# -- linkability and inference -----------------------------------------------------------------------------------


def test_a_table_released_as_it_is_links_whoever_is_unique():
    frame = pa.table({"a": list(range(50)), "b": [f"b{i}" for i in range(50)]})
    result = link_through_release(frame, frame, ["a"], ["b"])
    assert (result.rate, result.baseline, result.verdict) == (1.0, 1 / 50, "stronger than baseline")


def test_links_through_groups_are_shared_among_their_members():
    original = pa.table({"a": list(range(8)), "b": [f"b{i}" for i in range(8)]})
    released = pa.table(
        {
            "a": ["0-3"] * 4 + ["4-7"] * 4,
            "b": ["{b0, b1, b2, b3}"] * 4 + ["{b4, b5, b6, b7}"] * 4,
        }
    )
    assert link_through_release(original, released, ["a"], ["b"]).rate == pytest.approx(1 / 4)


def test_a_group_that_shares_its_secret_tells_it():
    original = pa.table({"age": [20, 21, 30, 31], "disease": ["flu", "flu", "cold", "cold"]})
    released = pa.table({"age": ["20-21", "20-21", "30-31", "30-31"], "disease": ["flu", "flu", "cold", "cold"]})
    result = infer_from_release(original, released, ["age"], "disease")
    assert (result.rate, result.baseline) == (1.0, 0.5)


def test_a_group_with_two_secrets_tells_half():
    original = pa.table({"age": [20, 21, 30, 31], "disease": ["flu", "cold", "flu", "cold"]})
    released = original.set_column(0, "age", pa.array(["20-21", "20-21", "30-31", "30-31"]))
    assert infer_from_release(original, released, ["age"], "disease").rate == 0.5


def test_what_holds_for_everybody_shows_in_the_control():
    generator = np.random.default_rng(7)

    def draw(n):
        ages = generator.integers(20, 60, n)
        return pa.table({"age": ages, "retired": np.where(ages >= 40, "yes", "no").tolist()})

    original, others = draw(400), draw(400)
    labels = ["20-39" if age < 40 else "40-59" for age in original.column("age").to_pylist()]
    released = original.set_column(0, "age", pa.array(labels))
    result = infer_from_release(original, released, ["age"], "retired", control=others)
    assert (result.rate, result.control, result.verdict) == (1.0, 1.0, "not shown")


def test_independent_secrets_are_inferred_no_better_than_without_the_release():
    # 100 audits at 95% against people outside: 10 or more claims are seen with chance below 0.1%.
    verdicts = []
    for seed in range(100):
        generator = np.random.default_rng(seed)
        tables = [
            pa.table({"age": generator.integers(0, 4, 200), "secret": generator.choice(["x", "y"], 200)})
            for _ in range(2)
        ]
        released = tables[0].set_column(0, "age", pa.array([str(a // 2) for a in tables[0].column("age").to_pylist()]))
        outside = infer_from_release(tables[0], released, ["age"], "secret", control=tables[1])
        verdicts.append(outside.verdict)
    assert Counter(verdicts)["stronger than baseline"] < 10


def test_the_seed_decides_who_is_attacked():
    generator = np.random.default_rng(9)
    frame = pa.table({"a": generator.integers(0, 9, 300), "b": generator.integers(0, 9, 300)})
    attacks = [infer_from_release(frame, frame, ["a"], "b", n_targets=20, random_state=seed) for seed in (1, 1, 2)]
    assert attacks[0].rate == attacks[1].rate != attacks[2].rate


# -- what cannot work --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: single_out_of_release(t, t.slice(1)), InputError, "has 4 records and the release 3"),
        (lambda t: single_out_of_release(t, pa.table({"z": [1] * 4})), InputError, "no column in common"),
        (lambda t: link_through_release(t, t, ["a"], ["a"]), ParameterError, "left and right share columns"),
        (lambda t: infer_from_release(t, t, ["a"], "a"), ParameterError, "secret is also in known"),
    ],
)
def test_tables_that_cannot_be_attacked_get_a_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call(pa.table({"a": [1, 2, 3, 4], "b": ["x", "y", "x", "y"]}))
