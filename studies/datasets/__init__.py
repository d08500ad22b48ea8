# SPDX-License-Identifier: Apache-2.0
"""The bundled tables, and public ones in a folder that ``SFUMATO_DATA`` names: for studies and benchmarks."""

from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult, load_nursery, make_census
from studies.datasets.external import (
    LENDING_CLUB_QUASI_IDENTIFIERS,
    load_acs_employment,
    load_acs_income,
    load_acs_income_2024,
    load_acs_public_coverage,
    load_acs_pums,
    load_adult_arx,
    load_bank,
    load_census_kdd,
    load_communities,
    load_fars,
    load_health,
    load_lending_club,
    load_lending_club_cleaned,
    load_location,
)

__all__ = [
    "ADULT_QUASI_IDENTIFIERS",
    "LENDING_CLUB_QUASI_IDENTIFIERS",
    "load_acs_employment",
    "load_acs_income",
    "load_acs_income_2024",
    "load_acs_public_coverage",
    "load_acs_pums",
    "load_adult",
    "load_adult_arx",
    "load_bank",
    "load_census_kdd",
    "load_communities",
    "load_fars",
    "load_health",
    "load_lending_club",
    "load_lending_club_cleaned",
    "load_location",
    "load_nursery",
    "make_census",
]
