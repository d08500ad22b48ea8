# SPDX-License-Identifier: Apache-2.0
"""Regions of a table in Spark: equal to those in memory, without a record or a rare value at the driver."""

import pickle
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.counted_regions import FLOOR, NAMES, K, anonymizer, assert_same_regions, in_memory, people

from sfumato import ModelGuidedAnonymizer
from sfumato.errors import InputError
from sfumato.partition.region_counts import ColumnCounts
from sfumato.regions import GroupTargets, Weights

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # pyspark's own warnings, of which there are many

spark = pytest.importorskip("sfumato.spark")


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_regions_equal_those_in_memory(session: Any, monkeypatch: pytest.MonkeyPatch, kind: str):
    from sfumato.backends.spark import regions

    table, target = people(), "income" if kind == "classes" else "wage"
    arrow = pa.Table.from_pandas(table[[*NAMES, target]], preserve_index=False)
    frame = session.createDataFrame(arrow).repartition(3)
    at_driver: list[Any] = []
    collected = regions.collected

    def watched(own: Any) -> Any:
        found = collected(own)
        at_driver.extend(pickle.loads(zlib.decompress(blob)) for blob in found["part"].to_pylist())
        return found

    monkeypatch.setattr(regions, "collected", watched)
    made = anonymizer(kind)
    spark.fit_transform(
        made, frame, guide_column=target if kind == "classes" else None, target=target, target_kind=kind, floor=FLOOR,
        most_held=6_000,
    )  # fmt: skip
    assert_same_regions(in_memory(table, kind), made.partition_.regions)

    assert {type(own) for own in at_driver} == {ColumnCounts, GroupTargets, Weights}
    counts = [own for own in at_driver if isinstance(own, ColumnCounts)]
    assert len(counts) == len(NAMES)
    for own in counts:
        assert own.n_records.min() >= FLOOR
        assert (own.n_from_pools % FLOOR == 0).all()
        assert (own.whole % FLOOR == 0).all()
    targets = [own for own in at_driver if isinstance(own, GroupTargets)]
    assert len(targets) > 1  # several workers counted
    assert min(own.sizes.min() for own in targets) >= K


def test_a_target_with_missing_values_is_refused(session: Any):
    table = pa.table({"age": np.arange(400) % 60, "label": ["a", "b"] * 200, "gap": pa.array([None, 1.0] * 200)})
    with pytest.raises(InputError, match="the target 'gap' has missing values"):
        spark.fit_transform(
            ModelGuidedAnonymizer(K, quasi_identifiers=["age"]), session.createDataFrame(table), guide_column="label",
            target="gap",
        )  # fmt: skip
