# SPDX-License-Identifier: Apache-2.0
"""NCP and GCP from original and released rows, beside plain Python and beside what the engine reports."""

import datetime
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import ModelGuidedAnonymizer
from sfumato.datasets import load_adult
from sfumato.errors import InputError, ParameterError
from sfumato.hierarchies import Hierarchy
from sfumato.labels import label_range, label_set, with_missing
from sfumato.loss import gcp, ncp
from strategies import in_examples

AGES = st.one_of(st.none(), st.integers(-5, 60))
JOBS = st.one_of(st.none(), st.sampled_from(["clerk", "nurse", "smith", "teacher"]))
RECORDS = st.lists(st.tuples(AGES, JOBS, st.integers(0, 3)), min_size=1, max_size=24)


def tables_of(records, shown):
    def build(rows):
        def array(values):
            is_text = any(isinstance(value, str) for value in values)
            return pa.array(values, pa.string() if is_text else pa.int64())

        ages, jobs = [row[0] for row in rows], [row[1] for row in rows]
        return pa.table({"age": array(ages), "job": pa.array(jobs, pa.string())})

    return build([record[:2] for record in records]), build(shown)


def age_width(members, domain):
    """Range over range; values beside missing: anything."""
    present = [age for age in members if age is not None]
    if not present:
        return 0.0
    if len(present) < len(members):
        return 1.0
    known = [age for age in domain if age is not None]
    return (max(present) - min(present)) / (max(known) - min(known)) if max(known) > min(known) else 0.0


def job_width(members, domain, categories):
    n_values, n_domain = len(set(members)), len(set(domain))
    if categories == "steps":
        return (n_values - 1) / max(1, n_domain - 1)
    return n_values / n_domain if n_values > 1 else 0.0


def show_labels(ages, jobs):
    present, listed = [age for age in ages if age is not None], sorted({job for job in jobs if job is not None})
    age = label_range(min(present), max(present)) if present else None
    job = label_set(listed) if listed else None
    return (
        with_missing(age) if age is not None and None in ages else age,
        with_missing(job) if job is not None and None in jobs else job,
    )


def show_representative(ages, jobs):
    """One value of the group, present if there is one."""
    present = sorted(age for age in ages if age is not None)
    listed = sorted(job for job in jobs if job is not None)
    return (present[len(present) // 2] if present else None), (listed[0] if listed else None)


@in_examples()
@given(records=RECORDS, kind=st.sampled_from(["labels", "values"]), categories=st.sampled_from(["share", "steps"]))
def test_every_cell_costs_what_plain_python_says(records, kind, categories):
    groups = {}
    for age, job, group in records:
        groups.setdefault(group, []).append((age, job))
    show = show_labels if kind == "labels" else show_representative
    shown_of = {group: show(*zip(*members, strict=True)) for group, members in groups.items()}
    shown = [shown_of[record[2]] for record in records]
    alike = {}  # records that leave alike are one group to whoever looks
    for record, values in zip(records, shown, strict=True):
        alike.setdefault(values, []).append(record)
    before, after = tables_of(records, shown)
    found = ncp(before, after, categories=categories)
    ages, jobs = [record[0] for record in records], [record[1] for record in records]
    for position, (record, values) in enumerate(zip(records, shown, strict=True)):
        members = groups[record[2]] if kind == "labels" else [other[:2] for other in alike[values]]
        same = alike[values]
        wanted = age_width([age for age, _ in members], ages)
        if any(other[0] is None for other in same) and any(other[0] is not None for other in same):
            wanted = 1.0
        assert found["age"][position] == pytest.approx(wanted)
        assert found["job"][position] == pytest.approx(job_width([job for _, job in members], jobs, categories))
    loss = gcp(before, after, categories=categories)
    assert 0 <= loss.total <= 1
    assert loss.total == pytest.approx((found["age"].mean() + found["job"].mean()) / 2)
    assert loss.columns["age"] == pytest.approx(found["age"].mean())


@in_examples()
@given(records=RECORDS)
def test_nothing_changed_costs_nothing_and_everything_hidden_costs_everything(records):
    records = [(age, job, group) for age, job, group in records if age is not None and job is not None]
    if len({record[0] for record in records}) < 2 or len({record[1] for record in records}) < 2:
        return
    rows = [record[:2] for record in records]
    before, same = tables_of(records, rows)
    assert gcp(before, same).total == 0
    for hidden in ([("*", "*")] * len(rows), [(None, None)] * len(rows)):
        assert gcp(*tables_of(records, hidden)).total == 1
    assert gcp(before, same, n_suppressed=len(rows)).total == 0.5


KINDS = ["range", "tight-range", "median", "member", "tight-bounds"]


@in_examples(20)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 6), kind=st.sampled_from(KINDS))
def test_the_engine_reports_the_same_for_its_own_releases(seed, k, kind):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(0, 40, 60),
            "height": random.integers(0, 9, 60) / 4,
            "job": random.choice(["a", "b", "c", "d"], 60),
            "born": pd.Timestamp("2000-01-01") + pd.to_timedelta(random.integers(0, 9, 60), "D"),
        }
    )
    anonymizer = ModelGuidedAnonymizer(k=k, representative=kind)
    released = anonymizer.fit_transform(frame, random.integers(0, 2, 60))
    loss = gcp(frame, released, categories="steps")
    if kind == "tight-bounds":  # whose outermost ends leave out the few records beyond them
        assert loss.total == pytest.approx(anonymizer.information_loss_, abs=0.15)
    else:  # two groups with equal values are one to whoever looks, and ranges reach past values that few people have
        assert loss.total >= anonymizer.information_loss_ - 1e-9


def test_the_papers_example_has_one_half():
    before = pa.table({"a": ["a1", "a2", "a3", "a4"]})
    for labels in (["g1", "g1", "g2", "g2"], ["g1", "g2", "g2", "g1"], ["{a1, a2}"] * 2 + ["{a3, a4}"] * 2):
        assert gcp(before, pa.table({"a": labels})).total == 0.5


def test_a_label_costs_what_it_says_not_what_its_records_need():
    before = pd.DataFrame({"age": [20, 21, 60]})
    for label in ("20-40", "20 to 40", "[20, 40)", "[20-40]", "(20.0, 40.0]"):
        found = ncp(before, pd.DataFrame({"age": [label, label, "60"]}))["age"]
        assert found.tolist() == [0.5, 0.5, 0]
    jobs = pd.DataFrame({"job": ["clerk", "nurse", "smith", None, "lawyer, notary"]})
    said = ["{clerk, nurse, smith}"] * 2 + ["*", "smith or missing", "clerk, smith"]
    listed = ncp(jobs, pd.DataFrame({"job": said}))["job"]
    # The last is no list of values, so it stands for what it replaced: one value.
    assert listed.tolist() == pytest.approx([3 / 5, 3 / 5, 1, 2 / 5, 0])
    beyond = ncp(before, pd.DataFrame({"age": ["0-40", "0-40", "60-99"]}))["age"]  # the domain ends at 20 and 60
    assert beyond.tolist() == [0.5, 0.5, 0]


def test_a_number_that_nobody_has_costs_its_distance():
    before = pd.DataFrame({"age": [20, 30, 60]})
    assert ncp(before, pd.DataFrame({"age": [24.0, 30.0, 80.0]}))["age"].tolist() == [0.1, 0, 0]
    assert ncp(before, pd.DataFrame({"age": [60, 20, 20]}))["age"].tolist() == [1, 1, 1]
    jobs = pd.DataFrame({"job": ["clerk", "nurse", "smith", "smith"]})
    swapped = ncp(jobs, pd.DataFrame({"job": ["nurse", "clerk", "smith", "smith"]}))["job"]
    assert swapped.tolist() == pytest.approx([2 / 3, 2 / 3, 0, 0])


def test_labels_of_a_hierarchy_count_the_values_under_them():
    hierarchy = Hierarchy.from_mapping({"south": ["Bari", "Rome", "Bern"], "north": ["Oslo", "Riga"]})
    before, after = pl.DataFrame({"town": ["Bari", "Rome", "Oslo"]}), pl.DataFrame({"town": ["south", "south", "Oslo"]})
    with_it = ncp(before, after, hierarchies={"town": hierarchy})["town"]
    assert with_it.tolist() == [3 / 5, 3 / 5, 0]
    steps = ncp(before, after, hierarchies={"town": hierarchy}, categories="steps")["town"]
    assert steps.tolist() == [2 / 4, 2 / 4, 0]
    assert ncp(before, after)["town"].tolist() == [2 / 3, 2 / 3, 0]


def test_dates_and_times_are_measured_along_their_labels():
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 6), datetime.date(2020, 1, 11)]
    released = pa.table({"day": ["2020-01-01 to 2020-01-06"] * 2 + ["2020-01-11"]})
    assert ncp(pa.table({"day": days}), released)["day"].tolist() == [0.5, 0.5, 0]


def test_labels_in_utc_are_read_as_such():
    seen = pd.DataFrame({"seen": pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-05"], utc=True)})
    label = "2020-01-02 00:00:00 to 2020-01-04 00:00:00 UTC"  # less than its records need, so it must have been read
    assert gcp(seen, pd.DataFrame({"seen": [label] * 3})).total == pytest.approx(0.5)


def test_numbers_that_are_codes_are_sets():
    before = pd.DataFrame({"code": [1.0, 2.0, 9.0]})
    after = pd.DataFrame({"code": ["{1.0, 2.0}", "{1.0, 2.0}", "9.0"]})
    found = ncp(before, after, categorical_features=["code"])["code"]
    assert found.tolist() == pytest.approx([2 / 3, 2 / 3, 0])
    values = ncp(before, pd.DataFrame({"code": [1.0, 1.0, 9.0]}), categorical_features=["code"])["code"]
    assert values.tolist() == pytest.approx([2 / 3, 2 / 3, 0])


def test_the_ends_of_integers_and_floats_do_not_overflow():
    wide = pd.DataFrame({"id": [-(2**63), 0, 2**63 - 1]})
    assert ncp(wide, pd.DataFrame({"id": [0, 0, 2**63 - 1]}))["id"].tolist() == pytest.approx([0.5, 0.5, 0])
    close = pd.DataFrame({"id": [2**63 - 3, 2**63 - 2, 2**63 - 1]})
    assert ncp(close, pd.DataFrame({"id": [2**63 - 3] * 2 + [2**63 - 1]}))["id"].tolist() == [0.5, 0.5, 0]
    floats = pd.DataFrame({"x": [-1.7e308, 0.0, 1.7e308]})
    assert ncp(floats, pd.DataFrame({"x": [0.0, 0.0, 1.7e308]}))["x"].tolist() == [0.5, 0.5, 0]


def test_a_wider_domain_makes_the_same_release_cheaper():
    before, after = pd.DataFrame({"age": [20, 30]}), pd.DataFrame({"age": ["20-30", "20-30"]})
    assert gcp(before, after).total == 1
    assert gcp(before, after, domain=pd.DataFrame({"age": [0, 100]})).total == pytest.approx(0.1)


def test_bad_input_gets_a_sentence():
    before = pd.DataFrame({"age": [20, 30]})
    with pytest.raises(InputError, match="2 records and the release 1"):
        gcp(before, before.head(1))
    with pytest.raises(InputError, match="no column 'age', nor 'age_low'"):
        gcp(before, pd.DataFrame({"agee": [1, 2]}))
    with pytest.raises(ParameterError, match="categories='all'"):
        gcp(before, before, categories="all")
    with pytest.raises(ParameterError, match="n_suppressed=-1"):
        gcp(before, before, n_suppressed=-1)


def test_adult_recoded_with_its_hierarchies_costs_what_counting_leaves_by_hand_gives():
    folder = Path(os.environ.get("SFUMATO_DATA", "")) / "adult" / "arx"
    if not os.environ.get("SFUMATO_DATA") or not folder.exists():
        pytest.skip("needs the Adult hierarchies in SFUMATO_DATA")
    [path] = [path for path in folder.iterdir() if "education" in path.name]
    from sfumato.hierarchies import read_hierarchy

    hierarchy = read_hierarchy(path)
    values = [value for value in hierarchy.values for _ in range(2)]
    released = [hierarchy.label(value, 1) for value in values]
    by_hand = [released.count(label) / 2 for label in released]
    wanted = np.mean([0 if n == 1 else n / len(hierarchy.values) for n in by_hand])
    tables = pd.DataFrame({"education": values}), pd.DataFrame({"education": released})
    assert gcp(*tables, hierarchies={"education": hierarchy}).total == pytest.approx(wanted)
    assert gcp(*tables).total == pytest.approx(wanted)


def test_a_real_release_of_adult_stays_within_its_bounds():
    frame = load_adult(as_frame="pandas").frame.head(2000)
    columns = ["age", "workclass", "education", "sex", "hours_per_week"]
    columns = [name for name in columns if name in frame]
    anonymizer = ModelGuidedAnonymizer(k=10, quasi_identifiers=columns, keep=list(frame.columns.difference(columns)))
    released = anonymizer.fit_transform(frame, frame["income"])
    loss = gcp(frame, released, columns)
    assert set(loss.columns) == set(columns)
    assert all(0 <= value <= 1 for value in loss.columns.values())
    assert 0 < loss.total < 1
