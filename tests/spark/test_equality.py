# SPDX-License-Identifier: Apache-2.0
"""Tables in memory, in Parquet files and in Spark: the same partition, release and measurements.

On Adult and Nursery, and on random tables with every criterion, representative and way to measure.
"""

import datetime
import decimal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import (
    AlphaKAnonymity,
    Anatomizer,
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    PrivacyWarning,
    TCloseness,
    WorkloadAwareAnonymizer,
    measure,
    parquet,
)
from sfumato.backends.spark.anatomy import AnatomyInFrames
from sfumato.datasets import load_adult, load_nursery
from sfumato.representatives import REPRESENTATIVES
from sfumato.verification import diversity_of

from .comparing import QI, assert_same_measurement, assert_same_release, census_of, plain, records_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # pyspark's own warnings, of which there are many

spark = pytest.importorskip("sfumato.spark")


def copy_of(anonymizer: Any) -> Any:
    return type(anonymizer)(**anonymizer.get_params(deep=False))


def assert_all_same(session: Any, folder: Path, anonymizer: Any, table: pa.Table, guide: str | None, **how: Any) -> Any:
    """Anonymize a table in all three ways; return the release in Spark."""
    frame = session.createDataFrame(table).repartition(3)
    release = spark.fit_transform(anonymizer, frame, guide_column=guide, **how)
    assert_same_release(anonymizer, release.toArrow(), table, guide)
    pq.write_table(table, folder / "people.parquet", row_group_size=500)
    from_files = copy_of(anonymizer)
    parquet.fit_transform(
        from_files, folder / "people.parquet", folder / "release.parquet", guide_column=guide, shuffle=False
    )
    assert from_files.partition_.to_dict() == anonymizer.partition_.to_dict()
    assert records_of(pq.read_table(folder / "release.parquet")) == records_of(release.toArrow())
    return release


@pytest.mark.parametrize("name", ["adult", "nursery"])
def test_shared_data_are_released_and_measured_alike(session: Any, tmp_path: Path, name: str):
    if name == "adult":
        table = load_adult(as_frame="pyarrow").frame.drop_columns(["fnlwgt"])
        guide, secret = "income", "marital-status"
        left_out = {"income", "marital-status", "native-country", "capital-gain", "capital-loss", "education"}
    else:
        table = load_nursery(as_frame="pyarrow").frame
        guide, secret = table.column_names[-1], "health"
        left_out = {guide, secret}
    names = [column for column in table.column_names if column not in left_out]
    table = plain(table.select([*names, secret, guide]))
    criteria = [LDiversity(2, secret), TCloseness(0.4, secret)]
    anonymizer = ModelGuidedAnonymizer(50, quasi_identifiers=names, criteria=criteria, n_jobs=1)
    release = assert_all_same(session, tmp_path, anonymizer, table, guide, most_held=9_000)
    local = measure(release.toArrow(), names, secret)
    assert_same_measurement(spark.measure(release, names, secret), local)
    assert_same_measurement(parquet.measure(tmp_path / "release.parquet", names, secret), local)


CRITERIA = {
    "diversity": [
        LDiversity(4, "illness"),
        LDiversity(3.5, "illness", kind="entropy"),
        LDiversity(3, "illness", kind="recursive", c=3.0, missing="suppress"),
    ],
    "closeness": [
        TCloseness(0.3, "illness"),
        TCloseness(0.15, "pay", distance="ordered"),
        TCloseness(
            0.3, "illness", distance="hierarchical", hierarchy={"x": ["a", "b"], "y": ["c", "d"], "z": ["e"]}
        ),
    ],
    "likeness": [
        AlphaKAnonymity(0.6, 9, "illness"),
        BetaLikeness(1.5, "illness"),
        BetaLikeness(0.9, "pay", kind="enhanced", missing="suppress"),
    ],
    "disclosure": [DeltaDisclosure(0.7, "member"), KAnonymity(7, unit="person")],
}  # fmt: skip


def random_table(seed: int, n_records: int = 700) -> pa.Table:
    """Make columns of all kinds, with what is missing said in two ways."""
    random = np.random.default_rng(seed)

    def with_holes(values: Any, share: float, hole: Any = None) -> list[Any]:
        is_hole = random.random(n_records) < share
        return [hole if gone else value for gone, value in zip(is_hole, values.tolist(), strict=True)]

    first_day = datetime.date(2020, 1, 1)
    days = random.integers(0, int(random.integers(5, 900)), n_records)
    return pa.table(
        {
            "age": random.integers(18, 90, n_records),
            "weight": with_holes(random.normal(70, 12, n_records).round(int(random.integers(0, 3))), 0.1, float("nan")),
            "town": pa.array(with_holes(random.choice([f"t{i}" for i in range(12)], n_records), 0.05), pa.string()),
            "since": pa.array([first_day + datetime.timedelta(int(day)) for day in days], pa.date32()),
            "member": with_holes(random.random(n_records) < 0.4, 0),
            "illness": pa.array(
                with_holes(random.choice(list("abcde"), n_records, p=random.dirichlet(np.full(5, 4.0))), 0.05),
                pa.string(),
            ),
            "pay": with_holes(random.integers(1, 6, n_records).astype(np.float64), 0.05, float("nan")),
            "person": random.integers(0, n_records // 2, n_records),
            "score": random.random(n_records).round(3),
        }
    )


@pytest.mark.parametrize("seed", range(len(CRITERIA)), ids=list(CRITERIA))
def test_random_tables_with_every_criterion_are_released_alike(session: Any, tmp_path: Path, seed: int):
    criteria = list(CRITERIA.values())[seed]
    table = random_table(seed)
    representative = ("range", "member", "model", "bounds")[seed]
    anonymizer = ModelGuidedAnonymizer(
        6, quasi_identifiers=["age", "weight", "town", "since"], criteria=criteria, keep=["person"],
        representative=representative, n_jobs=1,
    )  # fmt: skip
    assert_all_same(session, tmp_path, anonymizer, table, "score", most_held=250)
    assert anonymizer.n_groups_ > 2
    alone = copy_of(anonymizer).set_params(criteria=None, identifiers=["score"])
    alone.fit(table, table.column("score").to_numpy())
    assert alone.n_groups_ > anonymizer.n_groups_  # the criteria had something to say


@pytest.mark.parametrize("representative", sorted({*REPRESENTATIVES} - {"range", "member", "model", "bounds"}))
def test_every_representative_is_that_of_the_table_in_memory(session: Any, tmp_path: Path, representative: str):
    table = random_table(9)
    anonymizer = ModelGuidedAnonymizer(
        12, quasi_identifiers=["age", "weight", "town", "since"], keep=["person"], representative=representative,
        random_state=5, n_jobs=1,
    )  # fmt: skip
    assert_all_same(session, tmp_path, anonymizer, table, "score", most_held=250)


@pytest.mark.parametrize(
    ("anonymizer", "guide"),
    [
        (MondrianAnonymizer(10, representative="range", keep=["person", "score"]), None),
        (WorkloadAwareAnonymizer(15, keep=["person", "score"], limits={"age": 5}), "high_income"),
    ],
    ids=["mondrian", "workload"],
)
def test_every_method_gives_the_partition_of_the_table_in_memory(
    session: Any, tmp_path: Path, anonymizer: Any, guide: str | None
):
    anonymizer.set_params(quasi_identifiers=QI, identifiers=["number"], n_jobs=1)
    assert_all_same(session, tmp_path, anonymizer, census_of(3_000), guide, most_held=1_000)


def test_dates_decimals_and_missing_values_are_read_as_in_memory(session: Any):
    random = np.random.default_rng(5)
    n = 600
    # Fractions come late, so that some shares of the table have whole numbers only.
    amounts = [decimal.Decimal(int(v)) / (100 if i > 500 else 1) for i, v in enumerate(random.integers(0, 4_000, n))]
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in random.integers(0, 900, n)]
    table = pa.table(
        {
            "born": pa.array([None if i % 7 == 0 else day for i, day in enumerate(days)], pa.date32()),
            "seen": pa.array([datetime.datetime(2024, 1, 1 + d.day % 28, d.month) for d in days], pa.timestamp("us")),
            "amount": pa.array(amounts, pa.decimal128(12, 2)),
            "weight": [float("nan") if i % 11 == 0 else float(v) for i, v in enumerate(random.normal(size=n))],
            "town": [None if i % 5 == 0 else f"town {v}" for i, v in enumerate(random.integers(0, 9, n))],
            "member": [bool(v) for v in random.integers(0, 2, n)],
            "label": [f"class {v}" for v in random.integers(0, 3, n)],
        }
    )
    frame = session.createDataFrame(table, "born date, seen timestamp_ntz, amount decimal(12, 2), weight double, "
                                           "town string, member boolean, label string")  # fmt: skip
    anonymizer = ModelGuidedAnonymizer(8, representative="range", n_jobs=1)
    release = spark.fit_transform(anonymizer, frame, guide_column="label", most_held=250)
    assert_same_release(anonymizer, release.toArrow(), table, "label")
    assert_same_measurement(
        spark.measure(frame, ["born", "town", "member"], ["amount", "seen"]),
        measure(table, ["born", "town", "member"], ["amount", "seen"]),
    )


@pytest.mark.parametrize("missing", ["value", "wildcard"])
def test_random_tables_are_measured_alike(session: Any, tmp_path: Path, missing: Any):
    table = surveyed(3)
    people = pa.concat_tables([table, table.slice(0, 300), surveyed(4)])
    frame, crowd = (session.createDataFrame(own).repartition(2).persist() for own in (table, people))
    pq.write_table(table, tmp_path / "people.parquet", row_group_size=100)
    pq.write_table(people, tmp_path / "crowd.parquet", row_group_size=100)
    ways: list[dict[str, Any]] = [
        {"unit": "person", "hierarchies": {"illness": {"x": ["a", "b"], "y": ["c", "d", "e"]}}},
        {"weights": "survey"},
        {"population": 5_000},
        {"population": people},
    ]
    roles = {"quasi_identifiers": ["weight", "town", "member"], "sensitive": ["illness", "pay"], "missing": missing}
    for how in ways:
        local = measure(table, **roles, **how)
        is_table = isinstance(how.get("population"), pa.Table)
        found = spark.measure(frame, **roles, **(how | ({"population": crowd} if is_table else {})))
        assert_same_measurement(found, local)
        others = {"population": tmp_path / "crowd.parquet"} if is_table else {}
        assert_same_measurement(parquet.measure(tmp_path / "people.parquet", **roles, **(how | others)), local)


def surveyed(seed: int) -> pa.Table:
    """Return a random table in which weights are coarse and scores are survey weights."""
    table = random_table(seed)
    coarse = pa.array([None if v != v else round(v / 9) for v in table.column("weight").to_pylist()], pa.int64())
    survey = pa.array(table.column("score").to_numpy() * 9 + 0.5)
    return table.set_column(1, "weight", coarse).set_column(8, "survey", survey)


@pytest.mark.parametrize(
    ("anatomizer", "most_held"),
    [
        (Anatomizer(3, sensitive="illness", identifiers=["person"], assignment="random"), 200),
        (Anatomizer(2, sensitive=["illness", "pay"], group="of"), 200),
        (Anatomizer(2, sensitive=["illness", "pay"], joint=True), 200),
        (Anatomizer(4, sensitive="illness", suppression_limit=0.6), 100),
        (Anatomizer(5, sensitive=["pay", "illness"], joint=True, suppression_limit=0.9), 300),
        (
            Anatomizer(
                {"illness": 4, "pay": 3, "town": 2},
                sensitive=["pay", "illness", "town"],
                joint=[["pay", "town"]],
                suppression_limit=0.95,
            ),
            1_000_000,
        ),
        (Anatomizer(2, sensitive=["illness", "pay", "town", "member"], suppression_limit=0.9), 200),
    ],
    ids=[
        "blocks",
        "two tables",
        "two columns",
        "suppressed",
        "two columns suppressed",
        "two tables suppressed",
        "four tables",
    ],
)
def test_groups_are_as_diverse_as_in_memory(session: Any, anatomizer: Anatomizer, most_held: int):
    table = random_table(2)
    anatomizer.set_params(random_state=11)
    local = Anatomizer(**anatomizer.get_params()).fit_transform(table)
    made, again = (
        spark.anatomize(anatomizer, session.createDataFrame(table).repartition(n_parts), most_held=most_held)
        for n_parts in (2, 5)
    )
    several = made.sensitive if isinstance(made.sensitive, tuple) else (made.sensitive,)
    identifying, *sensitive = (own.toArrow() for own in (made.identifying, *several))
    assert (made.l, made.group, made.n_suppressed) == (local.l, local.group, local.n_suppressed)
    assert identifying.column_names == local.identifying.column_names
    for own, in_memory, group in zip(sensitive, local.sensitive_tables, local.groups, strict=True):
        assert own.column_names == in_memory.column_names
        for name in own.column_names[:-1]:
            least = dict(zip(local.sensitive_columns, local.diversities, strict=True))[name]
            assert diversity_of(own, group, name) >= least
        assert records_of(identifying.select([group])) == records_of(own.select([group]))
    if all(len(own.column_names) == 2 for own in sensitive):  # then nobody can make more groups
        assert made.n_groups == local.n_groups
    assert made.n_suppressed + made.n_records == table.num_rows
    # The same records and seed give the same tables, however the records are spread.
    assert records_of(again.identifying.toArrow()) == records_of(identifying)
    others = again.sensitive if isinstance(again.sensitive, tuple) else (again.sensitive,)
    for own, other in zip(sensitive, others, strict=True):
        assert records_of(other.toArrow()) == records_of(own)
    n_joined = sum(
        int(np.prod([sizes[group] for group, sizes in zip(record, _sizes_of(sensitive), strict=True)]))
        for record in zip(*(identifying[name].to_pylist() for name in local.groups), strict=True)
    )
    assert made.join().count() == n_joined
    if not made.n_suppressed:
        bare = (own.drop_columns(own.column_names[-1:]) for own in sensitive)
        for leaving in (identifying.drop_columns(list(local.groups)), *bare):
            assert records_of(leaving) == records_of(table.select(leaving.column_names))


def _sizes_of(sensitive: list[pa.Table]) -> list[Counter[int]]:
    """Return how many rows each group of every sensitive table has."""
    return [Counter(own.column(own.num_columns - 1).to_pylist()) for own in sensitive]


def test_a_sensitive_table_of_one_column_is_that_of_memory(session: Any):
    table = random_table(2).slice(0, 396)
    anatomizer = Anatomizer(3, sensitive=["illness", "pay"], random_state=5)
    local = Anatomizer(**anatomizer.get_params()).fit_transform(table)
    made = spark.anatomize(anatomizer, session.createDataFrame(table).repartition(3))
    for own, in_memory in zip(made.sensitive, local.sensitive, strict=True):
        assert records_of(own.toArrow()) == records_of(in_memory)


def test_columns_that_tell_each_other_are_warned_of_as_in_memory(session: Any):
    table = random_table(2)
    table = table.append_column("drug", table["illness"])
    settings = {"sensitive": ["illness", "drug", "pay"], "suppression_limit": 0.9, "random_state": 0}
    with pytest.warns(PrivacyWarning, match="follows from") as in_memory:
        Anatomizer(3, **settings).fit_transform(table)
    with pytest.warns(PrivacyWarning, match="follows from") as in_spark:
        spark.anatomize(Anatomizer(3, **settings), session.createDataFrame(table))
    one, other = (
        [str(own.message) for own in found if own.category is PrivacyWarning] for found in (in_memory, in_spark)
    )
    assert one == other
    assert len(one) == 1


def test_a_worker_killed_while_groups_are_made_changes_nothing(
    session: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
):
    frame = session.createDataFrame(random_table(6)).repartition(4)
    anatomizer = Anatomizer(2, sensitive="illness", random_state=4)
    calm = spark.anatomize(anatomizer, frame, most_held=200)
    expected = [records_of(own.toArrow()) for own in (calm.identifying, calm.sensitive)]
    session.catalog.clearCache()
    recount = AnatomyInFrames.recount

    def fatal(self: Any) -> int:
        self.identifying.persist().count()  # so that something is lost with the worker
        cluster.kill("first")
        return recount(self)

    monkeypatch.setattr(AnatomyInFrames, "recount", fatal)
    made = spark.anatomize(anatomizer, frame, most_held=200)
    cluster.start_worker("first")
    cluster.wait()
    assert [records_of(own.toArrow()) for own in (made.identifying, made.sensitive)] == expected
