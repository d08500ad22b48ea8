# SPDX-License-Identifier: Apache-2.0
"""Private releases of Spark DataFrames: workers count, the driver draws the noise once per cell."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from sfumato import InputError, MondrianAnonymizer, ParameterError, PrivacyLedger
from sfumato.private import noise
from twins.seeded_noise import RecordedNoise, SeededNoise

pytestmark = pytest.mark.filterwarnings("ignore")  # pyspark's own, of which there are many

spark = pytest.importorskip("sfumato.spark")


def people(n, seed):
    random = np.random.default_rng(seed)
    columns = {"age": random.integers(18, 90, n), "job": random.choice(["cook", "nurse"], n)}
    return pa.table(columns | {"pay": random.random(n).round(6), "ill": random.choice(["no", "yes"], n)})


def counted(table):
    return Counter(zip(*(map(str, table.column(name).to_pylist()) for name in table.column_names), strict=True))


def test_the_counts_are_those_of_the_table_in_memory(session, monkeypatch):
    source_of_noise = RecordedNoise()
    monkeypatch.setattr(noise, "_source", source_of_noise)
    anonymizer = MondrianAnonymizer(k=20).fit(people(400, 0).drop_columns(["ill"]))
    table = people(2000, 1)
    frame = session.createDataFrame(table).repartition(3)
    settings = {"mechanism": "counts", "epsilon": 1.0, "target": "ill", "labels": ["no", "yes"]}
    with pytest.raises(ParameterError, match="nothing shows on whom it was fitted"):
        spark.release(anonymizer, frame, **settings)
    made = spark.release(anonymizer, frame, **settings, fitted_on="others")
    expected = anonymizer.transform(table.drop_columns(["ill"])).append_column("ill", table.column("ill"))
    assert counted(made.frame.toArrow()) == counted(expected)
    assert made.n_records == 2000
    assert source_of_noise.geometric_asked == [(1.0, 2 * anonymizer.n_groups_)]
    assert made.privacy.epsilon == 1.0


@pytest.mark.parametrize("most", [1, 3])
def test_persons_are_capped_as_in_memory(session, monkeypatch, most):
    """Persons have equal records, in several blocks, so that it does not matter which of them count."""
    random = np.random.default_rng(3)
    whose = random.permutation(np.repeat(np.arange(400), random.integers(1, 6, 400)))
    table = people(400, 1).take(whose).append_column("person", [[f"person {p}" for p in whose]])
    anonymizer = MondrianAnonymizer(k=20).fit(people(400, 0).drop_columns(["ill"]))
    settings = {"mechanism": "counts", "epsilon": 1.0, "labels": ["no", "yes"], "fitted_on": "others"}
    persons = {"unit": "person", "most_per_person": most}
    monkeypatch.setattr(noise, "_source", SeededNoise(4))
    frame = session.createDataFrame(table).repartition(3)
    made = spark.release(anonymizer, frame, target="ill", **settings, **persons)
    monkeypatch.setattr(noise, "_source", SeededNoise(4))
    expected = anonymizer.release(
        table.drop_columns(["ill"]), table.column("ill"), ledger=PrivacyLedger(), **settings, **persons
    )
    assert counted(made.frame.toArrow()) == counted(expected.table.append_column("ill", [expected.target]))
    same = ("epsilon", "delta", "adjacency", "unit", "mechanism")
    assert all(getattr(made.privacy, name) == getattr(expected.privacy, name) for name in same)
    assert made.privacy.unit == "person"


def test_a_record_without_a_person_is_refused(session):
    table = people(100, 1).append_column("person", [[None, *range(99)]])
    anonymizer = MondrianAnonymizer(k=20).fit(people(400, 0).drop_columns(["ill"]))
    with pytest.raises(InputError, match="column 'person' has missing values"):
        spark.release(
            anonymizer, session.createDataFrame(table), mechanism="counts", epsilon=1.0, target="ill",
            labels=["no", "yes"], unit="person", most_per_person=1, fitted_on="others",
        )  # fmt: skip
