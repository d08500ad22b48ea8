# SPDX-License-Identifier: Apache-2.0
"""What is known about the columns of public tables without looking at their records, as differential privacy asks.

Edges are round numbers over published ranges: steps of five years or hours, and the series 1, 2, 5, 10 for money. For
Lending Club they follow from the meaning of the columns. The platform lent 500 to 35,000 at rates below 36%, which
makes instalments of at most 1,600; credit reports reach back ten years. What lies beyond an edge counts as the last
interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

MONEY = (0, 1, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)

BOUNDS: Mapping[str, Mapping[str, Sequence[float]]] = {
    "adult-12": {
        "age": (15, *range(20, 95, 5)),
        "education-num": tuple(range(1, 18)),
        "capital-gain": (0, 1, *range(1_000, 9_000, 1_000), 10_000, 15_000, 20_000, 50_000, 100_000),
        "capital-loss": (0, *range(1, 4_500, 250)),
        "hours-per-week": tuple(range(0, 105, 5)),
    },
    "lending-club-18": {
        "loan_amnt": (500, 35_000),
        "int_rate": (0, 0.36),
        "installment": (0, 1_600),
        "last_pymnt_amnt": MONEY[:-2],
        "annual_inc": (0, *range(20_000, 110_000, 10_000), 120_000, 150_000, 200_000, 250_000),
        "dti": (0, *range(5, 40, 5), 100),
        "revol_bal": MONEY,
        "revol_util": (0, 1),
        "mths_since_last_delinq": (0, 120),
        "mths_since_last_record": (0, 120),
        "open_acc": (0, 50),
        "total_acc": (0, 100),
        "delinq_2yrs": (0, 1, 2, 3, 5, 10),
        "inq_last_6mths": (0, 1, 2, 3, 5, 10),
        "pub_rec": (0, 1, 2, 3, 5, 10),
    },
    # Occupations and places of birth are codes; the edges are where the code book begins another group of them.
    "acs-income": {
        "AGEP": (15, *range(20, 100, 5)),
        "SCHL": tuple(range(1, 26)),
        "OCCP": (
            *(0, 500, 1_000, 1_300, 1_600, 2_000, 2_100, 2_200, 2_600, 3_000, 3_600, 3_700, 4_000, 4_200, 4_300, 4_700),
            *(5_000, 6_000, 6_200, 6_800, 7_000, 7_700, 9_000, 9_800, 9_999),
        ),
        "POBP": (1, 60, 100, 200, 300, 400, 500, 600),
        "WKHP": tuple(range(0, 105, 5)),
    },
    "nursery": {},
    "census-kdd-14": {
        "age": (0, *range(5, 95, 5)),
        "capital_gains": (0, 1, *range(1_000, 9_000, 1_000), 10_000, 15_000, 20_000, 50_000, 100_000),
        "capital_losses": (0, *range(1, 4_750, 250)),
        "dividends_from_stocks": MONEY,
        "num_persons_worked_for_employer": tuple(range(8)),
        "weeks_worked_in_year": (0, 1, *range(5, 55, 5)),
    },
}
#: What the platform's form lets one choose, the grades it gives, and the first three digits that a postcode can have.
LENDING_CLUB_CATEGORIES: dict[str, list[str]] = {
    "emp_length": ["n/a", "< 1 year", "1 year", *(f"{years} years" for years in range(2, 10)), "10+ years"],
    "home_ownership": ["RENT", "MORTGAGE", "OWN", "OTHER", "NONE", "ANY"],
    "purpose": [
        "car", "credit_card", "debt_consolidation", "educational", "home_improvement", "house", "major_purchase",
        "medical", "moving", "other", "renewable_energy", "small_business", "vacation", "wedding",
    ],
    "zip_code": [f"{number:03d}xx" for number in range(1000)],
    "hardship_flag": ["N", "Y"],
    "term": ["36", "60"],
    "grade": list("ABCDEFG"),
    "sub_grade": [f"{grade}{step}" for grade in "ABCDEFG" for step in range(1, 6)],
    "verification_status": ["Not Verified", "Source Verified", "Verified"],
}  # fmt: skip

ACS_CODES: dict[str, Sequence[int]] = {
    "COW": range(1, 10),
    "MAR": range(1, 6),
    "RELP": range(18),
    "SEX": (1, 2),
    "RAC1P": range(1, 10),
}


#: Columns of the census of 1994 and 1995 that a form would ask for.
CENSUS_KDD = (
    "age", "class_of_worker", "education", "marital_stat", "major_industry_code", "major_occupation_code", "race",
    "sex", "capital_gains", "capital_losses", "dividends_from_stocks", "tax_filer_stat",
    "num_persons_worked_for_employer", "weeks_worked_in_year",
)  # fmt: skip


@lru_cache(1)
def load_known(name: str) -> tuple[Any, Any]:
    """Return the records and targets of one of the tables of `BOUNDS`, with columns of the kinds that it knows."""
    import numpy as np

    from sfumato.datasets import load_nursery
    from studies.datasets import load_acs_income, load_census_kdd
    from studies.tables import load

    if name == "nursery":
        X, y = load_nursery(return_X_y=True, as_frame="pandas")
        return X, np.asarray(y.astype(str))
    if name == "acs-income":
        X, y = load_acs_income(return_X_y=True, as_frame="pandas")
        return X, y.to_numpy().astype(int)
    if name == "census-kdd-14":
        X, y = load_census_kdd(return_X_y=True, as_frame="pandas")
        return X[list(CENSUS_KDD)], (y.astype(str).str.strip() == "50000+.").to_numpy().astype(int)
    loaded = load(name)
    return loaded.X, np.asarray(loaded.y)


def categories_of(table: str, X: Any) -> dict[str, Sequence[Any]]:
    """Return the lists of categories of a table.

    Those of Adult and Nursery are the published codes, which the types of their columns list.
    """
    if table == "lending-club-18":
        return {name: known for name, known in LENDING_CLUB_CATEGORIES.items() if name in X}
    if table == "acs-income":
        return ACS_CODES
    return {name: list(X[name].cat.categories) for name in X if name not in BOUNDS[table]}
