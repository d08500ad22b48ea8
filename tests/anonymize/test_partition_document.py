# SPDX-License-Identifier: Apache-2.0
"""A fitted partition applies to any later record, saves to a plain document, and tells no more than it must."""

import copy
import datetime
import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.document_reader import group_of
from sfumato import InputError, KAnonymity, ModelGuidedAnonymizer, ParameterError, Partition
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import people, rows_of
from strategies import LIBRARIES, RawColumn, RawTable, guides, in_examples, tables

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")

EXTREMES = {
    "integer": [-(2**63), 2**63 - 1, 0, -1, 1],
    "float": [-1.7e308, 1.7e308, 0.0, 5e-324, -1e-9],
    "boolean": [True, False],
    "text": ["", "never seen", "\U0010ffff"],
    "categorical": ["", "never seen", "\U0010ffff"],
    "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1970, 1, 1)],
    "datetime": [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31), datetime.datetime(1970, 1, 1)],
    "zoned datetime": [
        datetime.datetime(1, 1, 2, tzinfo=datetime.UTC),
        datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC),
    ],
    "duration": [datetime.timedelta(days=-999_999), datetime.timedelta(days=999_999), datetime.timedelta(0)],
}


def new_records(table, seed):
    """Records with seen, unseen, missing and extreme values, mixed at random."""
    generator = np.random.default_rng(seed)
    columns = {}
    for name, column in table.columns.items():
        pool = [*column.values, *EXTREMES[column.kind], None]
        drawn = [pool[place] for place in generator.integers(0, len(pool), 30)]
        columns[name] = RawColumn(column.kind, drawn, column.pandas_type)
    return RawTable(columns, list(range(30)))


def with_common_categories(table, k):
    """Return the table, categories that fewer than k records have missing: those are not in a document."""
    columns = {}
    for name, column in table.columns.items():
        values = column.values
        if column.kind in ("text", "categorical"):
            counts = Counter(values)
            values = [value if counts[value] >= k else None for value in values]
        columns[name] = RawColumn(column.kind, values, column.pandas_type)
    return RawTable(columns, table.index)


def through_json(partition):
    """Return the partition after a trip through the text of its document."""
    return Partition.from_dict(json.loads(json.dumps(partition.to_dict(), allow_nan=False)))


@pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy"])
@in_examples(40)
@given(data=st.data(), table=tables())
def test_a_loaded_partition_transforms_like_the_fitted_one(library, table, data):
    k = data.draw(st.integers(2, table.n_records), "k")
    representative = data.draw(st.sampled_from([*REPRESENTATIVES]), "representative")
    guide = data.draw(guides(table.n_records), "guide")
    table = with_common_categories(table, k)
    frame, other = table.to(library), new_records(table, k).to(library)
    anonymizer = ModelGuidedAnonymizer(k, representative=representative, random_state=0)
    released = anonymizer.fit_transform(frame, guide)
    loaded = through_json(anonymizer.partition_)
    assert rows_of(anonymizer.transform(frame)) == rows_of(released)
    assert rows_of(loaded.transform(frame)) == rows_of(released)
    transformed = anonymizer.partition_.transform(other)
    again = loaded.transform(other)
    assert rows_of(again) == rows_of(transformed)
    assert str(getattr(again, "schema", again.dtype if library == "numpy" else "")) == str(
        getattr(transformed, "schema", transformed.dtype if library == "numpy" else "")
    )
    assert loaded.to_dict() == anonymizer.partition_.to_dict()


@in_examples(60)
@given(data=st.data(), table=tables())
def test_the_document_is_enough_to_find_the_group_of_any_record(table, data):
    k = data.draw(st.integers(2, table.n_records), "k")
    table = with_common_categories(table, k)
    frame = table.to("pyarrow")
    anonymizer = ModelGuidedAnonymizer(k).fit(frame, data.draw(guides(table.n_records), "guide"))
    document = json.loads(json.dumps(anonymizer.partition_.to_dict()))
    other = new_records(table, k)
    for records in (table, other):
        plain = records.to("pyarrow").to_pylist()
        assert anonymizer.partition_.apply(records.to("pyarrow")).tolist() == [group_of(document, r) for r in plain]


@in_examples(40)
@given(data=st.data(), table=tables())
def test_values_unseen_at_fit_follow_the_larger_side(table, data):
    k = data.draw(st.integers(2, table.n_records), "k")
    anonymizer = ModelGuidedAnonymizer(k).fit(table.to("pyarrow"), data.draw(guides(table.n_records), "guide"))
    document = anonymizer.partition_.to_dict()
    nodes, sizes = document["nodes"], document["groups"]["sizes"]

    def size(at):
        node = nodes[at]
        return sizes[node["group"]] if "group" in node else size(node["left"]) + size(node["right"])

    for node in nodes:
        if "unseen" in node:
            assert node["unseen"] == ("left" if size(node["left"]) > size(node["right"]) else "right")


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_was_saved_loads_the_same(library, tmp_path):
    table, guide = people()
    frame = {"pandas": table.to_pandas(), "polars": pl.from_arrow(table), "pyarrow": table}.get(
        library, table.to_pandas().to_numpy()
    )
    anonymizer = ModelGuidedAnonymizer(5, limits={0: 5}, representative="median")
    released = anonymizer.fit_transform(frame, guide)
    anonymizer.partition_.save(tmp_path / "partition.json")
    loaded = Partition.load(tmp_path / "partition.json")
    assert rows_of(loaded.transform(frame)) == rows_of(released)
    assert loaded.group_sizes.tolist() == anonymizer.group_sizes_.tolist()
    assert loaded.guarantees == ("every group has at least 5 records",)
    assert loaded.representative == "median"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["partition.fingerprints", "partition.json"]


def test_a_partition_fitted_with_one_library_applies_to_another():
    table, guide = people()
    partition = ModelGuidedAnonymizer(5).fit(table.to_pandas(), guide).partition_
    expected = rows_of(partition.transform(table))
    assert rows_of(partition.transform(pl.from_arrow(table))) == expected
    assert rows_of(partition.transform(table.to_pandas())) == expected


def test_identifiers_need_not_be_there_any_more_and_are_dropped_when_they_are():
    table, guide = people()
    frame = table.append_column("name", [[f"person {i}" for i in range(120)]])
    partition = through_json(ModelGuidedAnonymizer(5, identifiers=["name"]).fit(frame, guide).partition_)
    assert partition.transform(frame).equals(partition.transform(table))
    assert "name" not in partition.transform(frame).column_names


def test_codes_that_are_categories_stay_categories_in_the_document():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"zip": generator.choice([10115, 80331, 50667, 20095], 60), "age": generator.integers(20, 60, 60)}
    )
    anonymizer = ModelGuidedAnonymizer(5, categorical_features=["zip"])
    released = anonymizer.fit_transform(frame, frame["zip"].isin([10115, 20095]))
    document = anonymizer.partition_.to_dict()
    assert document["categorical"] == ["zip"]
    splits = [node for node in document["nodes"] if node.get("column") == "zip"]
    assert splits and all("in" in node for node in splits)
    assert released["zip"].dtype == np.int64
    assert rows_of(through_json(anonymizer.partition_).transform(frame)) == rows_of(released)
    unseen = pd.DataFrame({"zip": [1, 2], "age": [30, 50]})
    assert rows_of(through_json(anonymizer.partition_).transform(unseen)) == rows_of(anonymizer.transform(unseen))


def test_limits_given_as_numpy_numbers_and_time_spans_can_be_saved(tmp_path):
    table, guide = people()
    limits = {"age": np.int64(10), "income": np.float64(500.0), "town": 2, "joined": datetime.timedelta(days=30)}
    anonymizer = ModelGuidedAnonymizer(5, limits=limits)
    released = anonymizer.fit_transform(table, guide)
    anonymizer.partition_.save(tmp_path / "p.json")
    loaded = Partition.load(tmp_path / "p.json")
    assert loaded.limits == {"age": 10, "income": 500.0, "town": 2, "joined": 30.0}
    assert rows_of(loaded.transform(table)) == rows_of(released) == rows_of(anonymizer.release(table, guide).table)


# ---- what it tells ---------------------------------------------------------------------------------------------------


def plain_values(document):
    """Every value anywhere in a document."""
    if isinstance(document, dict):
        for value in document.values():
            yield from plain_values(value)
    elif isinstance(document, list):
        for value in document:
            yield from plain_values(value)
    else:
        yield document


@in_examples(40)
@given(data=st.data(), table=tables())
def test_the_document_is_plain_and_has_no_count_below_k(table, data):
    k = data.draw(st.integers(2, table.n_records), "k")
    representative = data.draw(st.sampled_from([*REPRESENTATIVES]), "representative")
    anonymizer = ModelGuidedAnonymizer(k, representative=representative, random_state=0)
    anonymizer.fit(table.to("pyarrow"), data.draw(guides(table.n_records), "guide"))
    document = anonymizer.partition_.to_dict()
    assert {type(value) for value in plain_values(document)} <= {str, int, float, bool, type(None)}
    assert all(
        value == value and abs(value) != float("inf") for value in plain_values(document) if type(value) is float
    )
    assert sum(document["groups"]["sizes"]) == table.n_records
    assert min(document["groups"]["sizes"]) >= k
    # Anything new in the document is one more thing it tells: say here what it is.
    assert set(document) == {
        "format", "version", "guarantees", "criteria", "representative", "dropped", "limits", "categorical", "columns",
        "nodes", "groups",
    }  # fmt: skip
    assert set(document["groups"]) == {"sizes", "values"}
    for node in document["nodes"]:
        assert set(node) in (
            {"group"},
            {"column", "at_most", "missing", "left", "right"},
            {"column", "in", "missing", "unseen", "left", "right"},
        )


def test_group_sizes_count_records_and_meet_k_with_persons_too():
    table, guide = people()
    frame = table.append_column("person", [np.arange(120) // 3])
    anonymizer = ModelGuidedAnonymizer(2, criteria=[KAnonymity(6, unit="person")]).fit(frame, guide)
    document = anonymizer.partition_.to_dict()
    assert min(document["groups"]["sizes"]) >= 6
    assert document["dropped"] == ["person"]
    assert document["guarantees"] == [
        "every group has at least 2 records",
        "every group has at least 6 different persons",
    ]
    assert document["criteria"] == [
        {"name": "k-anonymity", "k": 2},
        {"name": "k-anonymity", "k": 6, "unit": "person"},
    ]


def outermost_frame():
    """People, and four whose values lie far outside, each with digits that nobody else has."""
    generator = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": generator.integers(20, 70, 200),
            "income": np.round(generator.normal(40_000, 9000, 200), 2),
            "joined": (pd.Timestamp("2015-03-01") + pd.to_timedelta(generator.integers(0, 2000, 200), unit="D")).astype(
                "datetime64[us]"
            ),
        }
    )
    frame.loc[0, "age"], frame.loc[1, "age"] = -7654, 987654
    frame.loc[2, "income"], frame.loc[3, "income"] = -123456.78, 9876543.21
    frame.loc[4, "joined"], frame.loc[5, "joined"] = pd.Timestamp("1921-02-13"), pd.Timestamp("2099-11-17")
    return frame


@pytest.mark.parametrize("representative", ["median", "mean"])
def test_no_outermost_value_is_in_the_document(representative):
    frame = outermost_frame()
    planted = [-7654, 987654, -123456.78, 9876543.21, *(frame["joined"].iloc[[4, 5]].astype("int64") // 1).tolist()]
    assert frame["joined"].dtype == "datetime64[us]"
    predictions = (frame["age"] > 40).to_numpy() + 2 * (frame["income"] > 41_000).to_numpy()
    document = ModelGuidedAnonymizer(3, representative=representative).fit(frame, predictions).partition_.to_dict()
    numbers = [value for value in plain_values(document) if isinstance(value, int | float)]
    assert not set(planted) & set(numbers)
    text = json.dumps(document)
    assert not any(str(value) in text for value in planted)


@in_examples(60)
@given(data=st.data(), table=tables(kinds=("integer", "float", "date", "datetime", "duration")))
def test_a_threshold_never_shows_the_highest_value_and_shows_the_lowest_only_of_k_records(table, data):
    from anonymize.document_reader import as_plain

    k = data.draw(st.integers(2, table.n_records), "k")
    anonymizer = ModelGuidedAnonymizer(k).fit(table.to("pyarrow"), data.draw(guides(table.n_records), "guide"))
    for node in anonymizer.partition_.to_dict()["nodes"]:
        if node.get("at_most") is None:
            continue
        column = table.columns[node["column"]]
        known = sorted(as_plain(value) for value in column.values if value is not None)
        assert known[0] <= node["at_most"] < known[-1]
        # A threshold may fall on a value; on the lowest one only where no other number lies below the next value.
        if node["at_most"] == known[0] and known.count(known[0]) < k:
            following = next(value for value in known if value > known[0])
            assert following - known[0] <= 2 or column.kind == "float"


# ---- what it refuses -------------------------------------------------------------------------------------------------


@pytest.fixture
def document():
    table, guide = people()
    return ModelGuidedAnonymizer(5).fit(table, guide).partition_.to_dict()


def test_another_version_is_refused(document):
    with pytest.raises(InputError, match=r"version 99: expected 'sfumato-partition' and 1. Save"):
        Partition.from_dict(document | {"version": 99})
    with pytest.raises(InputError, match="format None"):
        Partition.from_dict({})


@pytest.mark.parametrize("absent", ["columns", "nodes", "groups", "dropped", "limits", "categorical", "representative"])
def test_a_document_without_a_part_is_refused(document, absent):
    del document[absent]
    with pytest.raises(InputError, match=rf"a partition document whose part {absent} is absent .*Write it again"):
        Partition.from_dict(document)


def changed(document, change):
    document = copy.deepcopy(document)
    change(document)
    return document


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["nodes"][0].update(left=0),
        lambda d: d["nodes"][0].update(left=d["nodes"][0]["right"]),
        lambda d: d["nodes"][0].update(right=10**6),
        lambda d: d["nodes"].append({"group": 0}),
        lambda d: d["nodes"][-1].update(group=10**6),
        lambda d: d["nodes"][0].update(column="nobody"),
        lambda d: d["groups"]["sizes"].pop(),
        lambda d: d["groups"].update(sizes=["many"] * len(d["groups"]["sizes"])),
        lambda d: d["nodes"].clear(),
        lambda d: d.update(nodes=5),
    ],
)
@pytest.mark.timeout(20)
def test_a_changed_document_is_refused_not_followed_in_circles(document, change):
    with pytest.raises(InputError, match="a partition document"):
        Partition.from_dict(changed(document, change))


def test_files_that_are_no_partition_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"'absent.json' cannot be read as a partition \(FileNotFoundError\)"):
        Partition.load(tmp_path / "absent.json")
    for name, content in (("text.json", b"{"), ("bytes.json", b"\xff\xfe\x00")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"'{name}' cannot be read as a partition"):
            Partition.load(tmp_path / name)
    (tmp_path / "list.json").write_text("[1, 2]")
    with pytest.raises(InputError, match=r"'list.json' cannot be read as a partition: JSON that is not one object"):
        Partition.load(tmp_path / "list.json")


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    table, guide = people()
    partition = ModelGuidedAnonymizer(5).fit(table, guide).partition_
    path = tmp_path / "p.json"
    partition.save(path)
    before = path.read_bytes()

    def half_written(document, file, **options):
        file.write('{"format"')
        raise OSError("no space left on device")

    monkeypatch.setattr(json, "dump", half_written)
    with pytest.raises(OSError, match="no space left"):
        partition.save(path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.fingerprints", "p.json"]


def test_records_of_another_kind_are_refused_by_name():
    partition = ModelGuidedAnonymizer(2).fit(pa.table({"age": [1, 2, 3, 4]}), [0, 0, 1, 1]).partition_
    with pytest.raises(InputError, match=r"column 'age' holds categories now and held numbers.*Convert the column"):
        partition.transform(pa.table({"age": ["young", "old"]}))
    with pytest.raises(ParameterError, match="'age', which the table does not have"):
        partition.transform(pa.table({"ages": [1, 2]}))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_that_is_all_missing_now_is_rewritten_in_its_old_type(library):
    table, guide = people()
    partition = ModelGuidedAnonymizer(5).fit(table, guide).partition_
    nothing = {name: [None, None] for name in table.column_names}
    if library == "numpy":
        partition = ModelGuidedAnonymizer(5).fit(table.to_pandas().to_numpy(), guide).partition_
        transformed = partition.transform(np.full((2, 5), None))
    else:
        make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
        transformed = partition.transform(make(nothing))
    for row in rows_of(transformed):
        assert isinstance(row[0], int | str), row  # a number or missing
        assert isinstance(row[2], str)
        assert isinstance(row[3], bool)
        assert isinstance(row[4], datetime.date), row
