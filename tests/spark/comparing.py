# SPDX-License-Identifier: Apache-2.0
"""Tables for the tests with Spark, and what it means that results are the same; an order of records means nothing."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.datasets import make_census

QI = ["age", "sex", "birth_country", "occupation", "hours_per_week", "monthly_rent"]


def census_of(n_records: int) -> pa.Table:
    bunch = make_census(n_records, random_state=3, return_probability=True)
    random = np.random.default_rng(0)
    table = bunch.frame[[*QI, "high_income"]].assign(
        score=np.asarray(bunch.probability, np.float64).round(5),
        illness=random.choice(list("abcdef"), n_records, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]),
        person=random.integers(0, n_records // 3, n_records),
        number=np.arange(n_records),
    )
    return plain(pa.Table.from_pandas(table, preserve_index=False))


def plain(table: pa.Table) -> pa.Table:
    """Return text as text: Spark has no dictionaries, and one kind of text."""

    def kind(own: Any) -> Any:
        own = own.value_type if pa.types.is_dictionary(own) else own
        return pa.string() if pa.types.is_large_string(own) else own

    return pa.table({f.name: table.column(f.name).cast(kind(f.type)) for f in table.schema})


def records_of(table: pa.Table) -> Counter[Any]:
    """Count the records; NaN would not equal itself."""
    columns = [[None if v != v else v for v in table.column(name).to_pylist()] for name in table.column_names]
    return Counter(zip(*columns, strict=True))


def in_memory(anonymizer: Any, table: pa.Table, guide: str | None) -> tuple[Any, pa.Table]:
    own = type(anonymizer)(**anonymizer.get_params(deep=False))
    if guide is not None and guide not in (own.keep or []):
        own.set_params(identifiers=[*(own.identifiers or []), guide])
    return own, own.fit_transform(table, None if guide is None else np.array(table.column(guide).to_pylist()))


def assert_same_release(anonymizer: Any, release: pa.Table, table: pa.Table, guide: str | None) -> None:
    local, expected = in_memory(anonymizer, table, guide)
    assert anonymizer.partition_.to_dict() == local.partition_.to_dict()
    assert anonymizer.information_loss_ == pytest.approx(local.information_loss_)
    assert anonymizer.n_groups_ == local.n_groups_
    assert release.column_names == expected.column_names
    assert records_of(release) == records_of(expected)


def assert_same_measurement(found: Any, expected: Any) -> None:
    """Compare all parts; fractions are added up in another order, so their last digits may differ."""
    differences = list(_differences(found.to_dict(), expected.to_dict(), "measurement"))
    assert not differences


def _differences(found: Any, expected: Any, where: str) -> Any:
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        for name in expected:
            yield from _differences(found[name], expected[name], f"{where}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from _differences(one, other, f"{where}[{place}]")
    elif isinstance(expected, float) and isinstance(found, float):
        if not math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{where}: {found} instead of {expected}"
    elif type(found) is not type(expected) or found != expected:
        yield f"{where}: {found!r} instead of {expected!r}"
