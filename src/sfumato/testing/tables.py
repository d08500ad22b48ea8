# SPDX-License-Identifier: Apache-2.0
"""A small table of made-up people for checks: every kind of column, missing values, duplicates and loners."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray


def people(n_records: int = 120, *, seed: int = 0) -> tuple[Any, NDArray[np.float64]]:
    """Return a pyarrow table of made-up people and class probabilities to guide by.

    Parameters
    ----------
    n_records : int, default=120
    seed : int, default=0

    Returns
    -------
    table : pyarrow.Table
        Integers, floats, text, booleans and dates; some missing, skewed, with repeated records and with values that
        only one record has.
    probabilities : ndarray of shape (n_records, 2)
    """
    import pyarrow as pa

    generator = np.random.default_rng(seed)
    age = generator.integers(17, 95, n_records)
    income = np.round(generator.lognormal(10, 1, n_records), 2)
    town = generator.choice(["Bree", "Lake Town", "Minas Tirith", "Hobbiton"], n_records, p=[0.5, 0.3, 0.15, 0.05])
    joined = [
        datetime.date(2000, 1, 1) + datetime.timedelta(days=int(d)) for d in generator.integers(0, 3000, n_records)
    ]
    score = 1 / (1 + np.exp(-(age - 50) / 10 - (town == "Bree")))
    copies = generator.integers(0, n_records, n_records // 5)
    age[: len(copies)], income[: len(copies)] = age[copies], income[copies]
    table = pa.table(
        {
            "age": pa.array(age, mask=generator.random(n_records) < 0.1),
            "income": pa.array(income, mask=generator.random(n_records) < 0.2),
            "town": pa.array(town.tolist(), mask=generator.random(n_records) < 0.1),
            "is_member": pa.array((generator.random(n_records) < 0.3).tolist()),
            "joined": pa.array(joined),
        }
    )
    return table, np.column_stack([1 - score, score])
