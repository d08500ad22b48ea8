# SPDX-License-Identifier: Apache-2.0
"""The tables that recorded results are made of: parts of Adult and Nursery, and made-up people of every type."""

from __future__ import annotations

import datetime
import decimal
import functools
import os
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato import datasets

ADULT_QUASI = [
    "age", "workclass", "education-num", "marital-status", "relationship", "race", "sex", "hours-per-week",
]  # fmt: skip
PEOPLE_QUASI = ["age", "town", "wage", "born", "seen", "is_member", "score"]


def n_threads() -> int:
    """Return how many threads results are made with; their number must not matter."""
    return int(os.environ.get("RECORDED_THREADS", "1"))


@functools.cache
def adult(n_records: int = 1500) -> pd.DataFrame:
    """Return some records of Adult, drawn by a seed."""
    frame = datasets.load_adult().frame.drop(columns=["fnlwgt", "education"])
    rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:n_records])
    return frame.iloc[rows].reset_index(drop=True)


@functools.cache
def nursery(n_records: int = 1200) -> pd.DataFrame:
    """Return some records of Nursery, drawn by a seed; the class comes last."""
    frame = datasets.load_nursery().frame
    rows = np.sort(np.random.default_rng(1).permutation(len(frame))[:n_records])
    return frame.iloc[rows].reset_index(drop=True)


@functools.cache
def people(n_records: int = 400, seed: int = 2) -> pa.Table:
    """Return made-up people: whole numbers, text, decimals, dates, datetimes, booleans and reals, some missing."""
    random = np.random.default_rng(seed)
    age = random.integers(17, 95, n_records)
    town = random.choice(["Bari", "Lodi", "Pisa", "Roma", "Vico"], n_records, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    cents = (random.lognormal(12, 0.5, n_records)).astype(int)
    start = datetime.date(1990, 1, 1)
    born = [start - datetime.timedelta(days=int(365.25 * own + days)) for own, days in zip(
        age, random.integers(0, 365, n_records), strict=True)]  # fmt: skip
    seen = [datetime.datetime(2024, 1, 1) + datetime.timedelta(minutes=int(m))
            for m in random.integers(0, 500_000, n_records)]  # fmt: skip
    illness = random.choice(["cold", "flu", "gout", "none"], n_records, p=[0.3, 0.3, 0.1, 0.3])
    target = np.where(age + random.normal(0, 15, n_records) + 10 * (town == "Bari") > 55, "yes", "no")

    def missing(share: float) -> Any:
        return random.random(n_records) < share

    return pa.table(
        {
            "age": pa.array(age, pa.int32(), mask=missing(0.05)),
            "town": pa.array(town.tolist(), pa.string(), mask=missing(0.08)),
            "wage": pa.array([decimal.Decimal(int(own)).scaleb(-2) for own in cents], pa.decimal128(12, 2)),
            "born": pa.array(born, pa.date32(), mask=missing(0.04)),
            "seen": pa.array(seen, pa.timestamp("us")),
            "is_member": pa.array((random.random(n_records) < 0.3).tolist(), pa.bool_(), mask=missing(0.06)),
            "score": pa.array(random.normal(0, 1, n_records).round(3), pa.float64(), mask=missing(0.1)),
            "illness": pa.array(illness.tolist(), pa.string()),
            "person": pa.array(random.integers(0, n_records // 2, n_records), pa.int64()),
            "target": pa.array(target.tolist(), pa.string()),
        }
    )


def labels(frame: pd.DataFrame) -> Any:
    """Return the class of Adult's or Nursery's records, which is their last column."""
    return frame.iloc[:, -1].astype(str).to_numpy()


@functools.cache
def coded_adult(n_records: int = 1500) -> np.ndarray:
    """Return Adult without its class as numbers, for models."""
    frame = adult(n_records).iloc[:, :-1]
    columns = [pd.factorize(frame[name].astype(object), sort=True)[0] if frame[name].dtype.kind not in "iuf" else
               frame[name].to_numpy() for name in frame.columns]  # fmt: skip
    return np.column_stack(columns).astype(np.float64)


@functools.cache
def predictions(kind: str, n_records: int = 1500) -> np.ndarray:
    """Return what guides groups of Adult: probabilities of a tree or of boosting, or a regression's numbers."""
    X, y = coded_adult(n_records), labels(adult(n_records))
    if kind == "tree":
        return DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y).predict_proba(X)
    if kind == "boosting":
        return HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y).predict_proba(X).round(6)
    hours = adult(n_records)["hours-per-week"].to_numpy(np.float64)
    return DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, hours).predict(X)


def people_scores() -> np.ndarray:
    """Return class probabilities of the made-up people, from what is known of their age."""
    age = np.array([50 if own is None else own for own in people().column("age").to_pylist()], np.float64)
    share = np.round(1 / (1 + np.exp(-(age - 50) / 12)), 4)
    return np.column_stack([1 - share, share])
