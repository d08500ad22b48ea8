# SPDX-License-Identifier: Apache-2.0
"""Columns with a hierarchy in the methods that form groups: labels, information loss, documents, and bad input."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from anonymize.document_reader import group_of
from sfumato import (
    HilbertAnonymizer,
    InputError,
    KAnonymity,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    ParameterError,
    RPlusTreeAnonymizer,
    WorkloadAwareAnonymizer,
)
from sfumato.anonymize.fitted_partition import Partition
from sfumato.hierarchies import Hierarchy
from sfumato.loss import gcp
from strategies import in_examples

JOBS = Hierarchy.from_mapping(
    {"health": {"care": ["nurse", "midwife"], "medicine": ["surgeon", "dentist"]}, "food": ["cook", "baker", "waiter"]}
)
AGES = Hierarchy.from_intervals(range(100), [5, 10, 50])
HIERARCHIES = {"job": JOBS, "age": AGES}
METHODS = [
    MondrianAnonymizer(),
    MondrianAnonymizer(strict=False),
    MondrianAnonymizer(rule="information_loss"),
    WorkloadAwareAnonymizer(),
    ModelGuidedAnonymizer(),
]
NAMES = ["median", "relaxed", "information loss", "workload", "guided"]
every_method = pytest.mark.parametrize("method", METHODS, ids=NAMES)
every_label = pytest.mark.parametrize(
    "method", [*METHODS, HilbertAnonymizer(), RPlusTreeAnonymizer()], ids=[*NAMES, "hilbert", "rplus"]
)


def people(seed: int, n: int = 120, *, missing: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "job": random.choice(JOBS.values, n, p=[0.3, 0.2, 0.1, 0.05, 0.15, 0.1, 0.1]),
            "age": random.integers(18, 80, n),
            "height": random.normal(170, 10, n).round(),
        }
    )
    if missing:
        frame.loc[random.random(n) < 0.1, "job"] = None
    return frame, random.choice(["yes", "no"], n)


def with_hierarchies(method, k=4, **changed):
    return type(method)(**method.get_params() | {"k": k, "hierarchies": HIERARCHIES} | changed)


@every_label
@in_examples(15)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 30), missing=st.booleans())
def test_the_label_is_the_lowest_common_ancestor_of_the_group(method, seed, k, missing):
    frame, labels = people(seed, missing=missing)
    anonymizer = with_hierarchies(method, k, representative="tight-range").fit(frame, labels)
    released = anonymizer.fit_transform(frame, labels)
    assert released.groupby(list(released), dropna=False).size().min() >= k
    group = anonymizer.partition_.apply(frame)
    for g in np.unique(group):
        for name, hierarchy in HIERARCHIES.items():
            own, [label] = frame[name][group == g], released[name][group == g].unique()
            present = own.dropna()
            if not len(present):
                assert pd.isna(label)
            elif len(present) < len(own):
                assert label == "*"
            else:
                assert label == hierarchy.lowest_common_ancestor(present)


@every_label
@pytest.mark.parametrize("missing", [False, True])
def test_the_engine_and_the_measure_of_loss_agree(method, missing):
    frame, labels = people(7, missing=missing)
    anonymizer = with_hierarchies(method, representative="tight-range")
    released = anonymizer.fit_transform(frame, labels)
    measured = gcp(frame, released, hierarchies=HIERARCHIES, categories="steps").total
    # The engine measures the groups; labels of ages that few people have reach further, or are open.
    assert anonymizer.information_loss_ <= measured + 1e-9
    assert measured - anonymizer.information_loss_ < 0.1
    again = anonymizer.release(frame, labels).measures["information_loss"]
    assert again == pytest.approx(anonymizer.information_loss_)


@every_method
def test_a_saved_partition_groups_records_as_the_fitted_one(method, tmp_path):
    frame, labels = people(3, missing=True)
    anonymizer = with_hierarchies(method, representative="range").fit(frame, labels)
    anonymizer.partition_.save(tmp_path / "partition.json")
    loaded = Partition.load(tmp_path / "partition.json")
    # Values that the hierarchy has and the fitted records do not, values it does not have, and missing ones.
    new, _ = people(4, missing=True)
    new.loc[:5, "job"] = ["undertaker", "dentist", None, "waiter", "baker", "surgeon"]
    # Categories that fewer than k of the fitted records have are not in the document.
    for column in anonymizer.partition_.columns:
        if column.categories is not None:
            rare = column.categories[~column.is_common]
            new = new[~new[column.name].isin(rare)].reset_index(drop=True)
    group = anonymizer.partition_.apply(new)
    assert loaded.apply(new).tolist() == group.tolist()
    document = json.loads((tmp_path / "partition.json").read_text())
    assert [group_of(document, record) for record in new.to_dict("records")] == group.tolist()
    pd.testing.assert_frame_equal(loaded.transform(new), anonymizer.transform(new))


@every_method
def test_every_representative_keeps_types_and_k(method):
    frame, labels = people(5)
    for representative in ("median", "member", "sample", "mean", "midrange", "bounds"):
        released = with_hierarchies(method, representative=representative, random_state=0).fit_transform(frame, labels)
        assert released.groupby(list(released)).size().min() >= 4
        if representative != "bounds":
            assert released["age"].dtype == frame["age"].dtype
            assert set(released["job"]) <= set(frame["job"])


@every_method
def test_other_criteria_hold(method):
    frame, labels = people(6, 200)
    frame["diagnosis"] = np.random.default_rng(0).choice(["a", "b", "c"], 200)
    frame["person"] = np.arange(200) // 2
    asked = {
        "quasi_identifiers": ["job", "age", "height"],
        "criteria": [LDiversity(2, "diagnosis"), KAnonymity(3, unit="person")],
        "representative": "range",
    }
    anonymizer = with_hierarchies(method, **asked)
    released = anonymizer.fit_transform(frame, labels)
    groups = released.groupby(["job", "age", "height"])
    assert groups.size().min() >= 4
    assert groups["diagnosis"].nunique().min() >= 2
    group = anonymizer.partition_.apply(frame)
    assert frame["person"].groupby(group).nunique().min() >= 3


def test_hierarchies_come_as_paths_mappings_and_positions(tmp_path):
    frame, _ = people(8)
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(";".join(row) for row in JOBS.rows), encoding="utf-8")
    nested = {"health": {"care": ["nurse", "midwife"], "medicine": ["surgeon", "dentist"]},
              "food": ["cook", "baker", "waiter"]}  # fmt: skip
    released = [
        MondrianAnonymizer(4, hierarchies=given, representative="range").fit_transform(frame)
        for given in ({"job": JOBS}, {"job": path}, {"job": nested}, {0: str(path)})
    ]
    for other in released[1:]:
        pd.testing.assert_frame_equal(other, released[0])


def test_other_kinds_of_frames_get_the_same_labels():
    frame, _ = people(9)
    wanted = with_hierarchies(METHODS[2], representative="range").fit_transform(frame)
    released = with_hierarchies(METHODS[2], representative="range").fit_transform(pl.from_pandas(frame))
    assert released["job"].to_list() == wanted["job"].tolist()
    assert released["age"].to_list() == wanted["age"].tolist()


def test_setting_aside_loses_less_than_cutting_at_medians():
    frame, _ = people(10, 400)
    losses = [with_hierarchies(method, 10).fit(frame).information_loss_ for method in METHODS[:3]]
    assert losses[2] < min(losses[:2])


def test_labels_are_ancestors_after_a_later_batch_too():
    frame, _ = people(15, 60)
    more, _ = people(16, 60)
    anonymizer = with_hierarchies(RPlusTreeAnonymizer(keep_records=True), representative="tight-range").fit(frame)
    whole = pd.concat([frame, more], ignore_index=True)
    released = anonymizer.insert(more).release(whole).table
    assert released.groupby(list(released)).size().min() >= 4
    group = anonymizer.partition_.apply(whole)
    for g in np.unique(group):
        [label] = released["job"][group == g].unique()
        assert label == JOBS.lowest_common_ancestor(whole["job"][group == g])


@every_method
def test_a_release_of_few_other_records_is_safe(method):
    frame, labels = people(11, 300)
    anonymizer = with_hierarchies(method, 5, representative="range").fit(frame, labels)
    others, _ = people(12, 40, missing=True)
    release = anonymizer.release(others)
    table = release.table
    assert table.groupby(list(table), dropna=False).size().min() >= 5
    assert release.n_suppressed == 0


@every_method
def test_bad_hierarchies_get_a_sentence(method):
    frame, labels = people(13)
    with pytest.raises(ParameterError, match="expected a dict of columns and hierarchies"):
        with_hierarchies(method, hierarchies=[JOBS]).fit(frame, labels)
    with pytest.raises(ParameterError, match="which is not a quasi-identifier"):
        with_hierarchies(method, quasi_identifiers=["age", "height"], keep=["job"]).fit(frame, labels)
    with pytest.raises(ParameterError, match="has a hierarchy and a limit"):
        with_hierarchies(method, limits={"job": 2}).fit(frame, labels)
    frame.loc[0, "job"] = "undertaker"
    with pytest.raises(InputError, match="1 of 120 records with a value that its hierarchy of 7 values does not have"):
        with_hierarchies(method).fit(frame, labels)
    dates = frame.assign(job=pd.Timestamp("2020-01-01"))
    with pytest.raises(ParameterError, match="which holds dates or times"):
        with_hierarchies(method).fit(dates, labels)


def test_strict_is_for_cuts_at_a_median():
    with pytest.raises(ParameterError, match="strict=False with rule='information_loss'"):
        MondrianAnonymizer(2, rule="information_loss", strict=False).fit(np.arange(8)[:, None])
    with pytest.raises(ParameterError, match="strict='no'"):
        MondrianAnonymizer(2, strict="no").fit(np.arange(8)[:, None])


def test_relaxed_mondrian_halves_where_the_strict_one_cannot():
    frame = pd.DataFrame({"age": [1, 2, 2, 2, 2, 3], "height": [5, 5, 6, 7, 8, 8]})
    released = MondrianAnonymizer(3, strict=False, representative="range", quasi_identifiers=["age", "height"])
    assert released.fit(frame).group_sizes_.tolist() == [3, 3]
    assert released.release(frame).n_merged == 0  # the fitted groups are found again


@pytest.mark.parametrize("way", ["goto", "left"])
def test_a_document_that_sends_records_in_circles_is_refused(way, tmp_path):
    frame, _ = people(14)
    anonymizer = with_hierarchies(METHODS[2]).fit(frame)
    document = anonymizer.partition_.to_dict()
    at = next(at for at, node in enumerate(document["nodes"]) if "goto" in node)
    if way == "goto":
        document["nodes"][at]["goto"] = 0
    else:
        document["nodes"][at] = {"goto": len(document["nodes"])}
    with pytest.raises(InputError, match="are not one tree"):
        Partition.from_dict(document)


@every_label
@pytest.mark.parametrize("n_values", [255, 256, 257])
@pytest.mark.parametrize("missing", [False, True])
def test_a_hierarchy_may_have_as_many_values_as_a_byte_has_codes(method, n_values, missing):
    codes = [f"{place:03d}" for place in range(n_values)]
    places = np.arange(2 * n_values)
    frame = pd.DataFrame({"zip": np.array(codes, object)[places % n_values], "age": places % 7})
    if missing:
        frame.loc[frame.index % 10 == 0, "zip"] = None
    hierarchies = {"zip": Hierarchy.from_prefixes(codes)}
    anonymizer = with_hierarchies(method, k=8, hierarchies=hierarchies, representative="range")
    released = anonymizer.fit_transform(frame, places % 2)
    assert released.groupby(["zip", "age"], dropna=False).size().min() >= 8


def test_a_column_that_was_empty_when_fitted_takes_numbers_of_its_hierarchy():
    fitted = np.array([[None, number] for number in (1, 1, 2, 2)], dtype=object)
    ages = Hierarchy.from_intervals(range(100), [10, 50])
    with pytest.warns(UserWarning, match="all missing"):
        anonymizer = MondrianAnonymizer(2, hierarchies={0: ages}, representative="tight-range").fit(fitted)
    released = anonymizer.release(np.array([[31, 1], [34, 1], [47, 2], [42, 2]], dtype=object)).table
    assert released[:, 0].tolist() == ["30-39", "30-39", "40-49", "40-49"]


@pytest.mark.parametrize("name", ["Mondrian", "Hilbert", "FullDomain"])
def test_hierarchies_that_are_no_mapping_are_refused_in_words(name):
    anonymizer = getattr(sfumato, f"{name}Anonymizer")(2, hierarchies=7)
    with pytest.raises(ParameterError, match="type int: expected a dict"):
        anonymizer.fit(np.arange(8.0).reshape(4, 2))
