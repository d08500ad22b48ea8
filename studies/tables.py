# SPDX-License-Identifier: Apache-2.0
"""The tables of the studies: which columns a model sees, which of them are quasi-identifiers, what is predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

#: What is known of a loan when it is made, beside the quasi-identifiers. Columns that fill up while a loan is paid back
#: (payments so far, recoveries) would give the target away and are left out, but for the last payment's amount, which
#: the paper counts among the quasi-identifiers.
LENDING_CLUB_OTHERS = ("loan_amnt", "term", "int_rate", "grade", "sub_grade", "verification_status")
#: What the paper's model must have seen, too: without it no model here comes near the paper's accuracy.
LENDING_CLUB_REPAYMENT = ("total_rec_int",)

PAPER_SPLIT, REPAID = "-paper-split", "-repaid"


@dataclass(frozen=True)
class Table:
    """Records, a target of 0 and 1, and the columns that are quasi-identifiers.

    `has_paper_split`: the model is trained on 40% of the records, which are then released, guided trees grow on another
    40%, and 20% are for testing. Otherwise all of the 80% serve for both. `keep`: columns of unique values that leave
    as they are all the same, as in the paper.
    """

    X: Any
    y: Any
    quasi_identifiers: list[str]
    has_paper_split: bool = False
    keep: tuple[str, ...] = ()


TITLES = {
    "adult-12": "Adult, 12 quasi-identifiers",
    "adult-10": "Adult, 10 quasi-identifiers",
    "adult-8": "Adult, 8 quasi-identifiers",
    **{f"adult-{n}{PAPER_SPLIT}": f"Adult, {n} quasi-identifiers, split as in the paper" for n in (12, 10, 8)},
    "lending-club-18": "Lending Club 2007-2011, 18 quasi-identifiers",
    f"lending-club-18{REPAID}": "Lending Club 2007-2011, 18 quasi-identifiers, repayment data included",
    "acs-income-10": "ACSIncome, Massachusetts 2018, 10 quasi-identifiers",
}

#: Accuracy, in percent, of always answering the larger class.
LARGER_CLASS = {name: {"ad": 76.07, "le": 84.88, "ac": 53.16}[name[:2]] for name in TITLES}


def load(name: str) -> Table:
    """Read one of the tables of `TITLES`; Lending Club needs ``SFUMATO_DATA``."""
    kind, _, count = name.removesuffix(PAPER_SPLIT).removesuffix(REPAID).rpartition("-")
    table = {"adult": _adult, "lending-club": _lending_club, "acs-income": _acs_income}[kind](int(count))
    if name.endswith(REPAID):
        table = _lending_club(int(count), LENDING_CLUB_REPAYMENT)
    return replace(table, has_paper_split=name.endswith(PAPER_SPLIT))


def _adult(n_quasi_identifiers: int) -> Table:
    from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult

    X, y = load_adult(return_X_y=True, as_frame="pandas")
    is_rich = (y.astype(str) == ">50K").to_numpy().astype(int)
    columns = list(ADULT_QUASI_IDENTIFIERS[12])  # the model sees all twelve, whatever is protected
    return Table(X[columns], is_rich, list(ADULT_QUASI_IDENTIFIERS[n_quasi_identifiers]))


def _lending_club(n_quasi_identifiers: int, more: tuple[str, ...] = ()) -> Table:
    from studies.datasets import LENDING_CLUB_QUASI_IDENTIFIERS, load_lending_club

    names = list(LENDING_CLUB_QUASI_IDENTIFIERS[:n_quasi_identifiers])
    X, y = load_lending_club(return_X_y=True, as_frame="pandas")
    return Table(X[[*names, *LENDING_CLUB_OTHERS, *more]], y.to_numpy().astype(int), names, keep=more)


def _acs_income(n_quasi_identifiers: int) -> Table:
    from studies.datasets import load_acs_income

    X, y = load_acs_income(state="MA", return_X_y=True, as_frame="pandas")
    codes = ("COW", "MAR", "OCCP", "POBP", "RELP", "SEX", "RAC1P")
    return Table(X.astype(dict.fromkeys(codes, "category")), y.to_numpy().astype(int), list(X)[:n_quasi_identifiers])
