# SPDX-License-Identifier: Apache-2.0
"""The seven prediction tasks on which minimizers are compared, and how their records are dealt.

After appendix D of Staab et al. (2024), on the data of ``studies.datasets``: other states and years than the paper's,
and of Lending Club the loans of 2007 to 2011. All categories are personal, except in Communities and Crime (race and
state) and in Health, where the paper names some counts of claims; they are numbers here.
Used by ``minimizers``, ``minimizers_figures`` and ``neural_gpu``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.frames import read_table
from sfumato.minimize.sweep_parts import deal
from studies import datasets

SHARES = (0.6, 0.1, 0.3)
MOST_NETWORK_ROWS = 60_000
"""Training records that the neural minimizers see at most."""

MEASURED = (12_000, 5_000, 10_000)
"""Training, validation and test records with which a generalization is measured, at most."""

TITLES = {
    "communities": "Communities and Crime",
    "lending_club": "Lending Club 2007-2011",
    "acs_public_coverage": "ACSPublicCoverage, New York 2024",
    "acs_income": "ACSIncome, New York 2024",
    "acs_employment": "ACSEmployment, Massachusetts 2015-2018",
    "health_pruned": "Health, pruned",
    "health": "Health",
}

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
_HEALTH_PERSONAL = (
    "PCG=CANCRM", "PCG=COPD", "PCG=METAB3", "PCG=PRGNCY", "Specialty=Internal", "PG=EM", "PG=SCS", "PlaceSvc=Office",
)  # fmt: skip
_PRUNED_PERSONAL = ("PCG=METAB3", "Specialty=Internal", "PG=EM", "PG=SCS", "PlaceSvc=Office", "AGE>60")
_PRUNED = (
    "DrugCount_total", "DrugCount_months", "no_Claims", "no_Providers", "PayDelay_total", "PCG=COPD", *_PRUNED_PERSONAL
)  # fmt: skip
_RACES = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")


@dataclass(frozen=True, eq=False)
class Task:
    """Records, their classes, and what an attacker would like to know.

    `is_balanced`: as many records of each class are measured and learned from. One loan in seven is bad, and what is
    known when it is granted is too little to call any one of them bad: the error of always saying good is not beaten,
    and there would be no utility to lose. `is_limited`: `MEASURED` records at most are measured, otherwise all.
    """

    name: str
    X: pd.DataFrame
    y: NDArray[Any]
    personal: tuple[str, ...]
    categorical: tuple[str, ...]
    is_balanced: bool = False
    is_limited: bool = True

    def parts(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of the training, validation and test parts; every category occurs in training."""
        table = read_table(self.X, categorical=self.categorical)
        return deal(table, self.y, SHARES, np.random.default_rng(seed))

    def network_rows(self, seed: int) -> NDArray[np.int64]:
        """Return the training rows that the neural minimizers see: the first ones."""
        return self.learned_rows(seed)[:MOST_NETWORK_ROWS]

    def learned_rows(self, seed: int) -> NDArray[np.int64]:
        """Return the training rows that the other minimizers see."""
        return self._balanced(self.parts(seed)[0])

    def measured_rows(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of each part with which generalizations are measured."""
        train, validation, test = (
            self._balanced(part)[: most if self.is_limited else None]
            for part, most in zip(self.parts(seed), MEASURED, strict=True)
        )
        return train, validation, test

    def records(self, rows: NDArray[np.int64]) -> tuple[pd.DataFrame, NDArray[Any]]:
        """Return some records and their classes."""
        return self.X.iloc[rows], self.y[rows]

    def _balanced(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self.is_balanced:
            return rows
        classes = [rows[self.y[rows] == value] for value in np.unique(self.y)]
        fewest = min(map(len, classes))
        return np.stack([own[:fewest] for own in classes], axis=1).ravel()


def load_task(name: str, data_home: Any = None) -> Task:
    """Load one of `TASKS` by name."""
    return TASKS[name](data_home)


def load_employment_of(year: int, data_home: Any = None) -> Task:
    """Load the records of ``acs_employment`` of one year."""
    return _acs("acs_employment", datasets.load_acs_employment(data_home, year=year))


def _acs(name: str, bunch: Any) -> Task:
    categorical = tuple(column for column in bunch.data.columns if column not in _ACS_NUMBERS)
    return Task(name, bunch.data, np.asarray(bunch.target), categorical, categorical)


def _lending_club(data_home: Any) -> Task:
    bunch = datasets.load_lending_club(data_home)
    X = bunch.data[[*_LOAN_NUMBERS, *_LOAN_CATEGORIES]].copy()
    X["issue_d"] = X["issue_d"].astype(str)
    return Task("lending_club", X, np.asarray(bunch.target), _LOAN_CATEGORIES, _LOAN_CATEGORIES, is_balanced=True)


def _communities(data_home: Any) -> Task:
    bunch = datasets.load_communities(data_home)
    X = bunch.data.loc[:, bunch.data.isna().mean() < 0.5].copy()
    X["race"] = X[list(_RACES)].to_numpy().argmax(axis=1)
    X["state"] = bunch.aside["state"].to_numpy()
    y = (bunch.target > bunch.target.median()).astype(int)
    return Task("communities", X.drop(columns=list(_RACES)), np.asarray(y), ("race", "state"), ("race", "state"))


def _health(data_home: Any) -> Task:
    bunch = datasets.load_health(data_home)
    return Task("health", bunch.data, np.asarray(bunch.target), _HEALTH_PERSONAL, ("Sex",))


def _health_pruned(data_home: Any) -> Task:
    bunch = datasets.load_health(data_home)
    return Task("health_pruned", bunch.data[list(_PRUNED)], np.asarray(bunch.target), _PRUNED_PERSONAL, ())


TASKS: dict[str, Callable[[Any], Task]] = {
    "acs_employment": lambda home: _acs("acs_employment", datasets.load_acs_employment(home)),
    "acs_income": lambda home: _acs("acs_income", datasets.load_acs_income_2024(home)),
    "acs_public_coverage": lambda home: _acs("acs_public_coverage", datasets.load_acs_public_coverage(home)),
    "lending_club": _lending_club,
    "communities": _communities,
    "health_pruned": _health_pruned,
    "health": _health,
}
