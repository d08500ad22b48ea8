# SPDX-License-Identifier: Apache-2.0
"""Singling out (A8) and linkability (A7) beside plain Python, and on tables whose answer is known."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attack.generalized_people import coarser, people, random_generalization
from sfumato.attack import link_records, single_out
from sfumato.backends.memory import MemorySource
from sfumato.errors import ParameterError
from sfumato.frames import read_table
from sfumato.generalization import generalization_from_bins
from strategies import in_examples


def as_they_are(frame):
    """Return the generalization that keeps every value apart."""
    table = read_table(frame)
    columns = MemorySource(table, table.names).columns
    return generalization_from_bins(columns, [np.arange(column.bins.n_bins) for column in columns], floor=1)


# -- singling out ------------------------------------------------------------------------------------------------


@in_examples()
@given(who=people())
def test_who_is_alone_is_counted_as_plain_python_counts(who):
    result = single_out(who.generalizations[0], who.table)
    sizes = Counter(tuple(row) for row in who.generalizations[0].codes(who.table).tolist())
    rarest = min(sizes.values())
    assert result.rate == pytest.approx(sum(size == 1 for size in sizes.values()) / len(who.rows))
    assert result.details["rarest"] == rarest
    assert result.details["n_rarest"] == sum(size == rarest for size in sizes.values())
    below = {limit: sum(size for size in sizes.values() if size < limit) / len(who.rows) for limit in (2, 3, 5, 10, 20)}
    assert result.details["share_in_sets_below"] == pytest.approx(below)


@in_examples()
@given(who=people(), seed=st.integers(0, 2**16))
def test_the_rarest_combination_never_shrinks_when_buckets_are_joined(who, seed):
    fine = single_out(who.generalizations[0], who.table)
    coarse = single_out(coarser(who.generalizations[0], np.random.default_rng(seed)), who.table)
    assert coarse.details["rarest"] >= fine.details["rarest"]
    assert coarse.details["best_predicate"] <= fine.details["best_predicate"]
    assert coarse.rate <= fine.rate


def test_the_baseline_singles_out_only_whom_the_attackers_own_records_point_at():
    breached = pa.table({"job": ["nurse", "smith", "clerk", "clerk"]})
    prior = pa.table({"job": ["nurse", "clerk", "teacher", "teacher"]})
    everyone = pa.table({"job": ["nurse", "smith", "clerk", "teacher"]})
    result = single_out(as_they_are(everyone), breached, prior=prior)
    assert (result.rate, result.baseline) == (0.5, 0.25)  # nurse and smith are alone; the prior points at nurse, clerk


def test_chance_isolates_one_of_many_about_once_in_e():
    breached = pa.table({"job": ["same"] * 1000})
    result = single_out(as_they_are(breached), breached)
    assert (result.rate, result.verdict) == (0.0, "not shown")
    assert result.details["best_predicate"] == pytest.approx(np.exp(-1), abs=1e-3)
    assert result.details["best_predicate"] == result.details["best_predicate_by_chance"]


# -- linkability -------------------------------------------------------------------------------------------------


def linked_naively(generalization, breached, partial, left, right):
    """Return the expected share of linked people, by the formula in the docstring and nothing else."""
    places = [generalization.names.index(name) for name in (left, right)]
    seen = [tuple(row[place] for place in places) for row in generalization.codes(breached).tolist()]
    targets = [tuple(row[place] for place in places) for row in generalization.codes(partial).tolist()]
    entries = partial.column(right).to_pylist()
    bucket_of = {entry: bucket for entry, (_, bucket) in zip(entries, targets, strict=True)}
    n_of, in_bucket, together = Counter(entries), Counter(bucket for _, bucket in targets), Counter(seen)
    total = 0.0
    for (bucket, _), truth in zip(targets, entries, strict=True):
        score = {
            entry: together[bucket, bucket_of[entry]] * n_of[entry] / in_bucket[bucket_of[entry]] for entry in n_of
        }
        best = [entry for entry in score if score[entry] >= max(score.values()) * (1 - 1e-9)]
        total += (truth in best) / len(best)
    return total / len(entries)


@in_examples()
@given(who=people())
def test_people_are_linked_as_the_formula_says(who):
    generalization = who.generalizations[0]
    result = link_records(generalization, who.table, who.table.slice(0, 9), ["c0"], ["c1"])
    expected = linked_naively(generalization, who.table, who.table.slice(0, 9), "c0", "c1")
    assert result.rate == pytest.approx(expected)


def test_attributes_that_tell_each_other_are_linked_without_error():
    codes = np.random.default_rng(3).integers(0, 8, 400)
    frame = pa.table({"badge": [f"b{c}" for c in codes], "desk": [f"d{(c * 3) % 8}" for c in codes]})
    result = link_records(as_they_are(frame), frame, frame, ["badge"], ["desk"])
    assert (result.rate, result.verdict) == (1.0, "stronger than baseline")


def test_independent_attributes_are_linked_no_better_than_without_the_breach():
    # 100 audits at 95%: 10 or more that claim to be stronger are seen with chance below 0.1%.
    verdicts = []
    for seed in range(100):
        generator = np.random.default_rng(seed)
        tables = [
            pa.table({"a": generator.choice(["x", "y", "z"], 300), "b": generator.choice(["u", "v", "w"], 300)})
            for _ in range(2)
        ]
        verdicts.append(link_records(as_they_are(tables[0]), *tables, ["a"], ["b"]).verdict)
    assert verdicts.count("stronger than baseline") < 10


def test_finer_buckets_link_more():
    generator = np.random.default_rng(5)
    codes = generator.integers(0, 12, 3000)
    frame = pa.table({"birth": [f"b{c}" for c in codes], "job": [f"j{c}" for c in codes]})
    rates = []
    for n_buckets in (1, 3, 12):
        columns = MemorySource(read_table(frame), ["birth", "job"]).columns
        generalization = generalization_from_bins(columns, [np.arange(12) % n_buckets] * 2, floor=1)
        result = link_records(generalization, frame, frame, ["birth"], ["job"])
        rates.append(result.details["by_buckets_alone"])
    assert rates == pytest.approx([1 / 12, 3 / 12, 1.0])


def test_people_outside_the_breach_are_the_control():
    inside = pa.table({"a": [f"a{i}" for i in range(20)], "b": [f"b{i}" for i in range(20)]})
    outside = pa.table({"a": [f"a{i}" for i in range(20)], "b": [f"b{(i + 1) % 20}" for i in range(20)]})
    result = link_records(as_they_are(inside), inside, inside, ["a"], ["b"], control=outside)
    assert (result.rate, result.control) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [(["c0"], ["c0"], "1 are in both"), ([], ["c0"], "left has 0 columns"), (["c0"], ["d"], "'d', which the table")],
)
def test_sides_that_cannot_be_linked_get_a_sentence(left, right, message):
    frame = pa.table({"c0": ["x", "y"], "c1": ["u", "v"]})
    generalization = random_generalization(frame, np.random.default_rng(0))
    with pytest.raises(ParameterError, match=message):
        link_records(generalization, frame, frame, left, right)
