# SPDX-License-Identifier: Apache-2.0
"""Tables for attacks on releases: half of some census records released, the other half as people outside."""

from functools import lru_cache

import numpy as np
import pandas as pd

from sfumato import ModelGuidedAnonymizer
from sfumato.datasets import load_adult

N_RELEASED = 4000


@lru_cache(1)
def census() -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return people who are released, as many others, and the labels of the first."""
    frame = load_adult(as_frame="pandas").frame
    rows = np.random.default_rng(0).permutation(len(frame))[: 2 * N_RELEASED]
    frame = frame.iloc[rows].drop(columns=["fnlwgt", "education"]).reset_index(drop=True)
    records, labels = frame.drop(columns="income"), frame["income"].cat.codes.to_numpy()
    return records[:N_RELEASED], records[N_RELEASED:].reset_index(drop=True), labels[:N_RELEASED]


@lru_cache
def published(representative: str, k: int = 10) -> pd.DataFrame:
    """Return the census records as a release."""
    inside, _, labels = census()
    anonymizer = ModelGuidedAnonymizer(k, representative=representative, random_state=0, n_jobs=1)
    return anonymizer.fit(inside, labels).release(inside, labels, shuffle=False).table


def hulls(frame: pd.DataFrame, group: np.ndarray) -> pd.DataFrame:
    """Return bounds that are the lowest and the highest value of each group."""
    by_group = frame.groupby(group)
    ends = {"low": by_group.transform("min"), "high": by_group.transform("max")}
    return pd.DataFrame({f"{name}_{end}": part[name] for name in frame for end, part in ends.items()})


def cells(frame: pd.DataFrame, width: float) -> pd.DataFrame:
    """Return bounds that are cells of a fixed grid: they depend on nobody."""
    low = frame // width * width
    return pd.DataFrame(
        {f"{name}_{end}": low[name] + shift for name in frame for end, shift in (("low", 0), ("high", width - 1))}
    )
