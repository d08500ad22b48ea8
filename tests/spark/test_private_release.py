# SPDX-License-Identifier: Apache-2.0
"""Private releases of Spark DataFrames: workers count, the driver draws the noise once per cell."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from sfumato import MondrianAnonymizer, ParameterError
from sfumato.private import noise
from twins.seeded_noise import NoNoise

pytestmark = pytest.mark.filterwarnings("ignore")  # pyspark's own, of which there are many

spark = pytest.importorskip("sfumato.spark")


def people(n, seed):
    random = np.random.default_rng(seed)
    columns = {"age": random.integers(18, 90, n), "job": random.choice(["cook", "nurse"], n)}
    return pa.table(columns | {"pay": random.random(n).round(6), "ill": random.choice(["no", "yes"], n)})


def counted(table):
    return Counter(zip(*(map(str, table.column(name).to_pylist()) for name in table.column_names), strict=True))


def test_the_counts_are_those_of_the_table_in_memory(session, monkeypatch):
    asked = []

    class Recorded(NoNoise):
        def geometric(self, epsilon, size):
            asked.append((epsilon, size))
            return super().geometric(epsilon, size)

    monkeypatch.setattr(noise, "_source", Recorded())
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
    assert asked == [(1.0, 2 * anonymizer.n_groups_)]
    assert made.privacy.epsilon == 1.0
