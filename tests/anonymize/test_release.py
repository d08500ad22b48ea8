# SPDX-License-Identifier: Apache-2.0
"""Releases: the merging rule, suppression, persons, other criteria, and what the values of a release come from."""

import functools
import random
import warnings
from collections import Counter
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.document_reader import leaf_of, merged
from sfumato import (
    FullDomainAnonymizer,
    GuaranteeError,
    HilbertAnonymizer,
    InputError,
    KAnonymity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    ParameterError,
    Release,
)
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import group_sizes, people, rows_of, smallest_group
from strategies import guides, in_examples, make_guide, tables

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")

MedianAnonymizer = functools.partial(ModelGuidedAnonymizer, representative="median")


def leaves_of(anonymizer, frame):
    document = anonymizer.partition_._to_dict()
    return document, [leaf_of(document, record) for record in frame.to_pylist()]


def rows_left_out(failing, budget, is_safe, n_records):
    """Return the rows of as many failing groups as the budget and the records that must be left allow."""
    for n in range(len(failing), 0, -1):
        dropped = [row for rows in failing[:n] for row in rows]
        left = [row for row in range(n_records) if row not in dropped]
        if len(dropped) <= budget and left and is_safe(left):
            return dropped
    return []


def expected_release(anonymizer, frame, is_safe, suppression_limit=0.0):
    """Work out a release by the documented rule: which rows leave together, how many were merged and left out."""
    document, leaves = leaves_of(anonymizer, frame)
    rows_of_leaf = {leaf: [row for row, own in enumerate(leaves) if own == leaf] for leaf in set(leaves)}
    failing = [leaf for leaf in rows_of_leaf if not is_safe(rows_of_leaf[leaf])]
    failing.sort(key=lambda leaf: (len(rows_of_leaf[leaf]), document["nodes"][leaf]["group"]))
    budget = suppression_limit * len(leaves)
    dropped = []
    if is_safe(range(len(leaves))):  # else nothing can be released, whatever is left out
        dropped = rows_left_out([rows_of_leaf[leaf] for leaf in failing], budget, is_safe, len(leaves))
    leaves = [-1 if row in dropped else leaf for row, leaf in enumerate(leaves)]
    groups = [merged(document, leaves, is_safe, pick) for pick in (min, max, random.Random(0).choice)]
    assert groups[0] == groups[1] == groups[2], "the rule must not depend on which failing group is taken first"
    if groups[0] is None or not any(leaf >= 0 for leaf in leaves):
        return None
    n_merged = sum(len(own) for rows in groups[0] if len(own := {leaves[row] for row in rows}) > 1)
    return groups[0], n_merged, sorted(dropped)


def assert_is_expected(release, expected, table):
    groups, n_merged, dropped = expected
    assert isinstance(release, Release)
    assert (release.n_merged, release.n_suppressed) == (n_merged, len(dropped))
    kept = [row for row in range(table.n_records) if row not in dropped]
    released = rows_of(release.table)
    assert len(released) == len(kept)
    place = {row: at for at, row in enumerate(kept)}
    for rows in groups:
        assert len({released[place[row]] for row in rows}) == 1
    assert release.measures["n_records"] == len(kept)
    assert release.measures["n_groups"] == len(groups)


@in_examples(80)
@given(data=st.data(), table=tables(min_records=6))
def test_groups_are_merged_exactly_by_the_rule(table, data):
    k = data.draw(st.integers(2, max(2, table.n_records // 2)), "k")
    anonymizer = MedianAnonymizer(k).fit(table.to("pyarrow"), data.draw(guides(table.n_records), "guide"))
    rows = data.draw(st.lists(st.integers(0, table.n_records - 1), min_size=1, max_size=30), "rows")
    other = table.take(rows)
    frame = other.to("pyarrow")
    expected = expected_release(anonymizer, frame, lambda own: len(own) >= k)
    if expected is None:
        with pytest.raises(GuaranteeError, match=f"^fewer than {k} records to release.*at least {k} records"):
            anonymizer.release(frame)
    else:
        assert_is_expected(anonymizer.release(frame), expected, other)


@in_examples(60)
@given(data=st.data(), table=tables(min_records=8))
def test_the_smallest_failing_groups_are_left_out_while_the_limit_lasts(table, data):
    k = data.draw(st.integers(2, max(2, table.n_records // 3)), "k")
    limit = data.draw(st.sampled_from((0.05, 0.1, 0.25, 0.5, 1.0)), "limit")
    anonymizer = MedianAnonymizer(k, suppression_limit=limit)
    anonymizer.fit(table.to("pyarrow"), data.draw(guides(table.n_records), "guide"))
    rows = data.draw(st.lists(st.integers(0, table.n_records - 1), min_size=1, max_size=30), "rows")
    other = table.take(rows)
    frame = other.to("pyarrow")
    expected = expected_release(anonymizer, frame, lambda own: len(own) >= k, limit)
    if expected is None:
        with pytest.raises(GuaranteeError, match="not even all of them together"):
            anonymizer.release(frame)
        return
    with mock.patch("sfumato.anonymize.anonymizer.drop_costly", lambda group, *_: group):  # failing groups alone
        assert_is_expected(anonymizer.release(frame), expected, other)
    release = anonymizer.release(frame)
    assert len(expected[2]) <= release.n_suppressed <= limit * len(rows)
    assert smallest_group(release.table) >= k


@in_examples(60)
@given(data=st.data(), table=tables(min_records=12))
def test_groups_are_merged_until_they_have_enough_persons(table, data):
    n_persons = data.draw(st.integers(4, 12), "persons")
    k = data.draw(st.integers(2, n_persons // 2), "k")
    generator = np.random.default_rng(data.draw(st.integers(0, 999), "rows"))
    persons = generator.permutation(np.arange(table.n_records) % n_persons)
    frame = table.to("pyarrow").append_column("person", [persons])
    unit = KAnonymity(k, unit="person")
    anonymizer = MedianAnonymizer(2, criteria=[unit]).fit(frame, make_guide("number", table.n_records, k))
    rows = generator.integers(0, table.n_records, generator.integers(1, 40))
    part = frame.take(rows)

    def persons_among(own):
        return len({persons[rows[row]] for row in own})

    expected = expected_release(anonymizer, part, lambda own: len(own) >= 2 and persons_among(own) >= k)
    if expected is None:
        with pytest.raises(GuaranteeError, match="different persons"):
            anonymizer.release(part)
    else:
        release = anonymizer.release(part)
        assert_is_expected(release, expected, table.take(rows))
        assert smallest_group(release.table, persons=persons[rows].tolist()) >= k
        assert release.measures[repr(unit)] == min(map(persons_among, expected[0]))


@pytest.mark.parametrize("representative", REPRESENTATIVES)
def test_releasing_the_fitted_records_equals_fit_transform(representative):
    table, guide = people()
    anonymizer = ModelGuidedAnonymizer(4, representative=representative, random_state=1)
    expected = anonymizer.fit_transform(table, guide)
    release = anonymizer.release(table, guide)
    assert release.table.equals(expected)
    assert (release.n_merged, release.n_suppressed) == (0, 0)
    assert release.measures["information_loss"] == anonymizer.information_loss_
    assert release.measures["smallest_group"] >= release.measures["k=4"] == anonymizer.group_sizes_.min()


def test_values_of_a_release_come_from_its_records_alone():
    X = pa.table({"age": [20, 20, 20, 20, 60, 60, 60, 60]})
    anonymizer = MedianAnonymizer(2).fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    release = anonymizer.release(pa.table({"age": [31, 33, 35, 71, 73]}))
    assert release.table["age"].to_pylist() == [32, 32, 32, 72, 72]


def test_a_release_that_leaves_records_out_keeps_the_index_of_the_others():
    ages = [*range(20, 30), *range(50, 60)]
    anonymizer = MedianAnonymizer(5, suppression_limit=0.2)
    anonymizer.fit(pd.DataFrame({"age": ages}), [0] * 10 + [1] * 10)
    other = pd.DataFrame({"age": [20, 21, 22, 23, 24, 55, 56]}, index=list("abcdefg"))
    with pytest.raises(GuaranteeError):
        MedianAnonymizer(8).fit(pd.DataFrame({"age": ages}), [0] * 10 + [1] * 10).release(other)
    kept = MedianAnonymizer(5, suppression_limit=0.3).fit(pd.DataFrame({"age": ages}), [0] * 10 + [1] * 10)
    release = kept.release(other, keep_index=True)
    assert release.table.index.tolist() == list("abcde")
    assert kept.release(other).table.index.tolist() == [0, 1, 2, 3, 4]
    assert (release.n_suppressed, release.n_merged) == (2, 0)
    merged_instead = anonymizer.release(other, keep_index=True)  # 2 of 7 are more than a fifth
    assert merged_instead.table.index.tolist() == list("abcdefg")
    assert (merged_instead.n_suppressed, merged_instead.n_merged) == (0, 2)


def test_fit_transform_refuses_to_leave_records_out():
    table, guide = people()
    anonymizer = MedianAnonymizer(5, suppression_limit=0.1)
    with pytest.raises(ParameterError, match=r"suppression_limit=0.1 with fit_transform.*fit\(X, y\).release\(X\)"):
        anonymizer.fit_transform(table, guide)
    assert smallest_group(anonymizer.fit(table, guide).release(table).table) >= 5


def test_columns_that_pass_through_leave_with_the_records_that_stay():
    frame = pd.DataFrame({"age": [20, 20, 20, 60], "note": [1, 2, 3, 4]})
    anonymizer = MedianAnonymizer(3, quasi_identifiers=["age"], suppression_limit=0.25)
    anonymizer.fit(pd.DataFrame({"age": [20] * 4 + [60] * 4, "note": [1] * 8}), [0] * 4 + [1] * 4)
    release = anonymizer.release(frame)
    assert release.table.to_dict("list") == {"age": [20, 20, 20], "note": [1, 2, 3]}


# ---- other criteria plug in ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeveralValues:
    """A criterion of somebody else: no value of a column covers a whole group, or more than a share of it."""

    column: str
    largest_share: float

    @property
    def counting(self):
        return "values"

    def passes(self, counts, reference):
        assert counts.shape[1] == len(reference)
        return counts.max(axis=1) <= self.largest_share * counts.sum(axis=1)

    def value(self, counts, reference):
        return float((counts.max(axis=1) / counts.sum(axis=1)).max())

    def describe(self):
        return f"no value of {self.column} covers more than {self.largest_share} of a group"


def diagnoses(n, seed):
    return np.random.default_rng(seed).choice(["flu", "cold", "gout"], n).tolist()


@in_examples(30)
@given(data=st.data(), table=tables(min_records=12))
def test_a_criterion_on_the_values_of_a_column_holds_in_every_group(table, data):
    sensitive = diagnoses(table.n_records, 1)
    share = max(Counter(sensitive).values()) / table.n_records
    share = data.draw(st.sampled_from((share, min(1.0, share + 0.2))), "share")
    frame = table.to("pyarrow").append_column("diagnosis", [sensitive])
    anonymizer = MedianAnonymizer(
        2, quasi_identifiers=list(table.columns), criteria=[SeveralValues("diagnosis", share)]
    )
    released = anonymizer.fit_transform(frame, make_guide("number", table.n_records, 2))
    release = anonymizer.release(frame)
    for leaving in (released, release.table):
        assert leaving["diagnosis"].to_pylist() == sensitive
        sizes = group_sizes(leaving, table.columns)
        pairs = group_sizes(leaving, [*table.columns, "diagnosis"])
        assert all(count <= share * sizes[key[:-1]] for key, count in pairs.items())


def test_a_criterion_on_values_that_fails_the_recount_raises(monkeypatch):
    from sfumato.anonymize import partitioners
    from sfumato.partition.grower import Grower

    table, guide = people()
    frame = table.append_column("diagnosis", [diagnoses(120, 0)])
    monkeypatch.setattr(partitioners, "Grower", lambda *args, **more: Grower(*args, **(more | {"checks": []})))
    anonymizer = MedianAnonymizer(2, quasi_identifiers=table.column_names, criteria=[SeveralValues("diagnosis", 0.5)])
    with pytest.raises(GuaranteeError, match=r"no value of diagnosis covers more than 0\.5 of a group"):
        anonymizer.fit_transform(frame, guide)


def test_a_column_that_a_criterion_protects_is_neither_rewritten_nor_split_on():
    table, _ = people()
    sensitive = diagnoses(120, 0)
    frame = table.append_column("diagnosis", [sensitive])
    # The predictions follow the diagnosis: a tree that may split on it would.
    predictions = np.array(sensitive) == "flu"
    for split_on in ("quasi_identifiers", "all"):
        anonymizer = MedianAnonymizer(5, criteria=[SeveralValues("diagnosis", 0.9)], split_on=split_on)
        released = anonymizer.fit_transform(frame, predictions)
        assert released["diagnosis"].to_pylist() == sensitive
        document = anonymizer.partition_._to_dict()
        assert "diagnosis" not in {node.get("column") for node in document["nodes"]}
    with pytest.raises(ParameterError, match=r"'diagnosis' is named in sensitive and in quasi_identifiers.*one role"):
        anonymizer.set_params(quasi_identifiers=["age", "diagnosis"]).fit(frame, predictions)


@dataclass(frozen=True)
class LikeTheRest(SeveralValues):
    """Remembers the reference it was judged by."""

    def passes(self, counts, reference):
        seen.append(reference.tolist())
        return counts.sum(axis=1) >= 2


seen: list[list[int]] = []


def test_the_reference_of_a_release_is_what_leaves():
    frame = pa.table({"age": [20] * 4 + [60] * 4, "diagnosis": ["flu"] * 4 + ["cold"] * 4})
    anonymizer = MedianAnonymizer(
        3, quasi_identifiers=["age"], criteria=[LikeTheRest("diagnosis", 1.0)], suppression_limit=0.25
    ).fit(frame, [0] * 4 + [1] * 4)
    seen.clear()
    release = anonymizer.release(frame.slice(0, 5))
    assert release.n_suppressed == 1
    assert seen[0] == [1, 4]  # judging what may be left out: all that was handed in
    assert seen[-1] == [0, 4]  # judging what leaves: the one cold is gone


@pytest.mark.parametrize("Anonymizer", [ModelGuidedAnonymizer, MondrianAnonymizer, HilbertAnonymizer])
def test_a_larger_suppression_limit_never_makes_a_release_fail(Anonymizer):
    generator = np.random.default_rng(0)
    fitted = pd.DataFrame({"age": generator.normal(size=1_000), "height": generator.normal(size=1_000)})
    later = pd.DataFrame({"age": generator.normal(size=60), "height": generator.normal(size=60)})
    anonymizer = Anonymizer(k=10).fit(fitted, (fitted["age"] > 0).astype(int))
    left_out = []
    for limit in (0.0, 0.3, 0.9, 1.0):
        release = anonymizer.set_params(suppression_limit=limit).release(later)
        assert len(release.table) == 60 - release.n_suppressed >= 10
        assert smallest_group(release.table) >= 10
        left_out.append(release.n_suppressed)
    assert left_out == sorted(left_out)
    assert left_out[0] == 0 < left_out[1] <= left_out[-1] <= 50


# ---- columns that pass through --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "Anonymizer", [ModelGuidedAnonymizer, MondrianAnonymizer, HilbertAnonymizer, FullDomainAnonymizer]
)
def test_a_column_that_is_near_unique_only_in_the_released_table_is_refused(Anonymizer):
    generator = np.random.default_rng(0)
    fitted = pd.DataFrame({"age": generator.integers(20, 60, 200), "ref": "none"})
    later = fitted.assign(ref=[f"DE{row:020d}" for row in range(200)])
    labels = (fitted["age"] > 40).astype(int)
    plain = Anonymizer(k=5, quasi_identifiers=["age"]).fit(fitted, labels)
    assert len(plain.release(fitted).table) == 200
    with pytest.raises(InputError, match="'ref' would be released unchanged"):
        plain.release(later)
    kept = Anonymizer(k=5, quasi_identifiers=["age"], keep=["ref"]).fit(fitted, labels)
    assert kept.release(later).table["ref"].tolist() == later["ref"].tolist()


# ---- lists of categories --------------------------------------------------------------------------------------------


def with_lists(library):
    """Return 41 records, one of them far from all others, with the categories of its own, and one of nobody."""
    city = ["Rome"] * 20 + ["Bari"] * 20 + ["Secretville"]
    illness = ["flu", "cold"] * 20 + ["Secretitis"]
    lists = {"city": ["Secretville", "Rome", "Secretland", "Bari"], "illness": ["flu", "Secretitis", "cold"]}
    columns = {"city": city, "illness": illness}
    if library == "polars":
        return pl.DataFrame({name: pl.Series(columns[name], dtype=pl.Enum(lists[name])) for name in columns})
    frame = pd.DataFrame(
        {name: pd.Categorical(columns[name], lists[name], ordered=name == "city") for name in columns},
        index=pd.CategoricalIndex(illness) if library == "pandas" else None,
    )
    if library == "pandas":
        return frame
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if library == "pyarrow":
        return table
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def listed(frame):
    """Return the lists of categories of a frame, by column."""
    if isinstance(frame, pl.DataFrame):
        return {name: dtype.categories.to_list() for name, dtype in frame.schema.items()}
    if isinstance(frame, pa.Table):
        columns = {name: frame.column(name).combine_chunks() for name in frame.column_names}
        return {name: column.dictionary.to_pylist() for name, column in columns.items()}
    if isinstance(frame["city"].dtype, pd.ArrowDtype):
        return {name: pa.chunked_array(pa.array(frame[name])).combine_chunks().dictionary.to_pylist() for name in frame}
    return {name: frame[name].cat.categories.tolist() for name in frame}


@pytest.mark.parametrize("library", ["pandas", "arrow in pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "Anonymizer", [ModelGuidedAnonymizer, MondrianAnonymizer, HilbertAnonymizer, FullDomainAnonymizer]
)
def test_a_release_lists_only_categories_that_a_released_record_has(Anonymizer, library):
    frame = with_lists(library)
    labels = [0] * 20 + [1] * 20 + [2]
    anonymizer = Anonymizer(k=5, quasi_identifiers=["city"], suppression_limit=0.05)
    if Anonymizer is FullDomainAnonymizer:
        release = anonymizer.fit(frame, labels).release(frame)
    else:  # fitted where each city is a group, so that the one record is left out and not joined with others
        many = take(frame, [*range(41), *[40] * 19])
        release = anonymizer.fit(many, [*labels, *[2] * 19]).release(frame)
    assert release.n_suppressed == 1
    assert listed(release.table) == {"city": ["Rome", "Bari"], "illness": ["flu", "cold"]}
    assert "Secret" not in repr(rows_of(release.table))
    if library == "pandas":
        assert release.table["city"].cat.ordered
        indexed = anonymizer.release(frame, keep_index=True).table
        assert indexed.index.categories.tolist() == ["cold", "flu"]
    assert listed(anonymizer.transform(frame)) == listed(frame)


def take(frame, rows):
    if isinstance(frame, pd.DataFrame):
        return frame.iloc[rows]
    return frame[rows] if isinstance(frame, pl.DataFrame) else frame.take(rows)


# ---- real records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("representative", REPRESENTATIVES)
def test_a_release_that_shows_real_records_says_how_many(representative):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"age": generator.integers(20, 60, 400), "town": generator.choice(list("abcdefgh"), 400)})
    labels = (frame["age"] > 40).astype(int)
    anonymizer = ModelGuidedAnonymizer(k=5, representative=representative).fit(frame, labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = anonymizer.release(frame, labels, shuffle=False).table
    said = [str(w.message) for w in caught if "those of exactly one record" in str(w.message)]
    if representative not in ("member", "model", "sample"):
        assert said == []
        return
    before = Counter(zip(frame["age"], frame["town"], strict=True))
    shown = set(zip(table["age"], table["town"], strict=True))
    n_of_one = sum(before[row] == 1 for row in shown)
    assert n_of_one > 0
    assert len(said) == 1
    assert f"{n_of_one} of {len(shown)} released combinations" in said[0]
