# SPDX-License-Identifier: Apache-2.0
"""The five prediction tasks on which minimizers are compared, and how their records are dealt.

After appendix D of Staab et al. (2024), on the data of ``sfumato.datasets``: other states and years than the paper's,
and of Lending Club the loans of 2007 to 2011. All categories are personal, except in Communities and Crime (race and
state).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato import datasets
from sfumato.frames import read_table
from sfumato.minimize.splitting import deal

SHARES = (0.6, 0.1, 0.3)
MOST_NETWORK_ROWS = 60_000
"""Training records that the neural minimizers see at most."""

_ACS_NUMBERS = frozenset({"AGEP", "SCHL", "WKHP", "PINCP"})
# Known when a loan is granted. Columns about repayment give the outcome away.
_LOAN_NUMBERS = (
    "loan_amnt", "int_rate", "installment", "annual_inc", "dti", "delinq_2yrs", "inq_last_6mths",
    "mths_since_last_delinq", "mths_since_last_record", "open_acc", "pub_rec", "revol_bal", "revol_util", "total_acc",
    "pub_rec_bankruptcies",
)  # fmt: skip
_LOAN_CATEGORIES = (
    "term", "grade", "sub_grade", "emp_length", "home_ownership", "verification_status", "purpose", "issue_d",
    "addr_state",
)  # fmt: skip
_RACES = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")


@dataclass(frozen=True, eq=False)
class Task:
    """Records, their classes, and what an attacker would like to know."""

    name: str
    X: pd.DataFrame
    y: NDArray[Any]
    personal: tuple[str, ...]
    categorical: tuple[str, ...]

    def parts(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of the training, validation and test parts; every category occurs in training."""
        table = read_table(self.X, categorical=self.categorical)
        return deal(table, self.y, SHARES, np.random.default_rng(seed))

    def network_rows(self, seed: int) -> NDArray[np.int64]:
        """Return the training rows that the neural minimizers see: the first ones, which hold every category."""
        return self.parts(seed)[0][:MOST_NETWORK_ROWS]


def load_task(name: str, data_home: Any = None) -> Task:
    """Load one of `TASKS` by name."""
    return TASKS[name](data_home)


def _acs(name: str, bunch: Any) -> Task:
    categorical = tuple(column for column in bunch.data.columns if column not in _ACS_NUMBERS)
    return Task(name, bunch.data, np.asarray(bunch.target), categorical, categorical)


def _lending_club(data_home: Any) -> Task:
    bunch = datasets.load_lending_club(data_home)
    X = bunch.data[[*_LOAN_NUMBERS, *_LOAN_CATEGORIES]].copy()
    X["issue_d"] = X["issue_d"].astype(str)
    return Task("lending_club", X, np.asarray(bunch.target), _LOAN_CATEGORIES, _LOAN_CATEGORIES)


def _communities(data_home: Any) -> Task:
    bunch = datasets.load_communities(data_home)
    X = bunch.data.loc[:, bunch.data.isna().mean() < 0.5].copy()
    X["race"] = X[list(_RACES)].to_numpy().argmax(axis=1)
    X["state"] = bunch.aside["state"].to_numpy()
    y = (bunch.target > bunch.target.median()).astype(int)
    return Task("communities", X.drop(columns=list(_RACES)), np.asarray(y), ("race", "state"), ("race", "state"))


TASKS: dict[str, Callable[[Any], Task]] = {
    "acs_employment": lambda home: _acs("acs_employment", datasets.load_acs_employment(home)),
    "acs_income": lambda home: _acs("acs_income", datasets.load_acs_income_2024(home)),
    "acs_public_coverage": lambda home: _acs("acs_public_coverage", datasets.load_acs_public_coverage(home)),
    "lending_club": _lending_club,
    "communities": _communities,
}
