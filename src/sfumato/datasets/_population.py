# SPDX-License-Identifier: Apache-2.0
"""The synthetic population behind :func:`sfumato.datasets.make_census`: levels, their frequencies, the target.

Each categorical or small-integer column is drawn from a table of conditional frequencies, given columns drawn
before it. The frequencies are written out as lookup tables with 65,536 entries per condition: a record costs
one 16-bit random number and one read, and a level can be as rare as one record in 65,536. Nothing here is
random or estimated from people; the numbers only mimic the shape of a census (skew, rare levels, dependence).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

RESOLUTION = 65_536

SEX = ("female", "male")
ETHNICITY = tuple(f"group-{letter}" for letter in "abcdef")
BIRTH_COUNTRY = tuple(f"country-{number:02d}" for number in range(41))  # country-00 is the home country
MARITAL_STATUS = (
    "divorced",
    "married",
    "married-absent",
    "never-married",
    "partner-in-service",
    "separated",
    "widowed",
)
HOUSEHOLD_ROLE = ("child", "husband", "not-in-family", "other-relative", "single-parent", "wife")
WORK_CLASS = (
    "federal",
    "local",
    "never-worked",
    "private",
    "self-employed",
    "self-employed-company",
    "state",
    "unpaid",
)

# Occupation groups: number of levels, weight, slope of the weight over education, share of men, earning power.
_GROUPS: dict[str, tuple[int, float, float, float, float]] = {
    "agriculture": (14, 0.03, -0.5, 0.80, -1.0),
    "clerical": (40, 0.13, 0.0, 0.30, -0.3),
    "construction": (30, 0.08, -0.6, 0.95, 0.1),
    "education": (24, 0.07, 0.9, 0.28, 0.2),
    "health": (32, 0.08, 0.5, 0.25, 0.3),
    "hospitality": (26, 0.10, -0.6, 0.45, -1.2),
    "management": (30, 0.12, 0.7, 0.64, 1.0),
    "production": (36, 0.12, -0.5, 0.72, -0.3),
    "professional": (34, 0.10, 1.0, 0.58, 0.9),
    "sales": (28, 0.11, 0.1, 0.52, 0.2),
    "security": (10, 0.02, 0.0, 0.85, 0.3),
    "transport": (16, 0.04, -0.5, 0.90, -0.2),
}
OCCUPATION = tuple(f"{group}-{level:02d}" for group, shape in _GROUPS.items() for level in range(shape[0]))
OCCUPATION_GROUP: Array = np.repeat(np.arange(len(_GROUPS), dtype=np.int8), [shape[0] for shape in _GROUPS.values()])

MIN_AGE, MAX_AGE = 17, 90
_BAND_STARTS = (17, 22, 26, 31, 38, 46, 56, 66)
N_BANDS = len(_BAND_STARTS)
AGE_BAND: Array = (np.searchsorted(_BAND_STARTS, np.arange(MAX_AGE + 1), side="right") - 1).clip(0).astype(np.int8)
EDUCATION_BAND: Array = np.searchsorted((7, 9, 10, 13), np.arange(17), side="right").astype(np.int8)  # five bands


class Lookups(NamedTuple):
    """One lookup table per column; the conditions are its first axes, the last has ``RESOLUTION`` entries."""

    age: Array  # no condition
    sex: Array  # age band
    ethnicity: Array  # age band
    birth_country: Array  # ethnicity
    education_years: Array  # age band x born abroad
    marital_status: Array  # age band x sex
    household_role: Array  # marital status x sex x younger than 26
    occupation: Array  # education band x sex
    work_class: Array  # occupation group x older than 45
    hours_per_week: Array  # self-employed x sex x stage of life


@cache
def lookups() -> Lookups:
    """Build the lookup tables, once for each process."""
    return Lookups(
        age=_as_lookup(_age_weights(), first=MIN_AGE),
        sex=_as_lookup(_sex_weights()),
        ethnicity=_as_lookup(_ethnicity_weights()),
        birth_country=_as_lookup(_birth_country_weights()),
        education_years=_as_lookup(_education_weights(), first=1),
        marital_status=_as_lookup(_marital_weights()),
        household_role=_as_lookup(_household_weights()),
        occupation=_as_lookup(_occupation_weights()),
        work_class=_as_lookup(_work_class_weights()),
        hours_per_week=_as_lookup(_hours_weights(), first=1),
    )


@cache
def earning_power() -> Array:
    """Return the earning power of each occupation: its group's level and a spread inside the group."""
    power = []
    for n_levels, _, _, _, base in _GROUPS.values():
        # 19 shares no factor with any n_levels, so it scatters the ranks: pay does not follow the level's number.
        power += [base + 1.2 * ((level * 19 + 5) % n_levels / (n_levels - 1) - 0.5) for level in range(n_levels)]
    return np.array(power, dtype=np.float32)


def _as_lookup(weights: Array, first: int = 0) -> Array:
    """Spell out rows of weights as codes, each level of positive weight at least once in ``RESOLUTION``."""
    *conditions, n_levels = weights.shape
    dtype = np.int8 if first + n_levels <= 128 else np.int16
    levels = np.arange(first, first + n_levels, dtype=dtype)
    table = np.empty((*conditions, RESOLUTION), dtype=dtype)
    for row, weight in zip(table.reshape(-1, RESOLUTION), weights.reshape(-1, n_levels), strict=True):
        counts = np.maximum(np.floor(weight / weight.sum() * RESOLUTION), weight > 0).astype(np.int64)
        counts[counts.argmax()] += RESOLUTION - counts.sum()
        row[:] = np.repeat(levels, counts)
    return table


def _age_weights() -> Array:
    age = np.arange(MIN_AGE, MAX_AGE + 1)
    weight = np.where(age < 36, 0.8 + 0.02 * (age - 17), 1.2 - 0.018 * (age - 36).clip(0))
    weight = np.where(age > 62, weight * np.exp(-0.09 * (age - 62)), weight)
    weight[-1] += 0.15  # older people are recorded as 90
    return weight


def _sex_weights() -> Array:
    male = np.linspace(0.54, 0.42, N_BANDS)
    return np.column_stack([1 - male, male])


def _ethnicity_weights() -> Array:
    young = np.array([0.58, 0.17, 0.14, 0.07, 0.035, 0.005])
    old = np.array([0.80, 0.10, 0.06, 0.03, 0.009, 0.001])
    share = np.linspace(0, 1, N_BANDS)[:, None]
    return young * (1 - share) + old * share


def _birth_country_weights() -> Array:
    n_abroad = len(BIRTH_COUNTRY) - 1
    home = (0.97, 0.93, 0.55, 0.35, 0.90, 0.985)
    weights = np.empty((len(ETHNICITY), n_abroad + 1))
    for group, share in enumerate(home):
        # Each group has its own main countries: the same long tail, begun at another country.
        tail = np.roll(1.0 / np.arange(1, n_abroad + 1) ** 1.7, 7 * group)
        weights[group] = [share, *((1 - share) * tail / tail.sum())]
    return weights


def _education_weights() -> Array:
    years = np.arange(1, 17)
    popular = np.array([0.1, 0.2, 0.3, 0.5, 0.5, 0.8, 1, 0.4, 9, 6, 1.4, 1.2, 6, 2.2, 0.7, 0.6])
    typical = (8.5, 10.5, 11, 11.2, 10.9, 10.6, 10.0, 9.3)
    weights = []
    for band in range(N_BANDS):
        for abroad in range(2):
            spread = 2.8 + 1.2 * abroad  # more of the very low and of the very high among those born abroad
            weight = popular * np.exp(-(((years - typical[band] + 0.5 * abroad) / spread) ** 2) / 2)
            if band == 0:
                weight[years > 11] = 0  # too young for a degree
            weights.append(weight)
    return np.array(weights).reshape(N_BANDS, 2, -1)


def _marital_weights() -> Array:
    married = (0.02, 0.18, 0.40, 0.55, 0.60, 0.64, 0.65, 0.48)
    divorced = (0.003, 0.02, 0.07, 0.13, 0.18, 0.19, 0.15, 0.09)
    widowed = (0.0002, 0.001, 0.002, 0.005, 0.01, 0.03, 0.08, 0.34)
    weights = []
    for band in range(N_BANDS):
        for male in range(2):
            lost = widowed[band] * (0.3 if male else 1.0)
            settled = married[band] * (1.1 if male else 0.95)
            rest = 1 - settled - divorced[band] - lost
            weights.append([divorced[band], settled, 0.013, rest * 0.94, 0.0006, 0.03, lost])
    return np.array(weights).reshape(N_BANDS, 2, -1)


def _household_weights() -> Array:
    weights = []
    for status in MARITAL_STATUS:
        for male in range(2):
            for young in range(2):
                if status in ("married", "partner-in-service"):
                    weight = [0.01, 0.955 * male, 0.01, 0.025, 0.0, 0.955 * (1 - male)]
                elif status == "never-married":
                    weight = [0.68, 0, 0.24, 0.05, 0.03, 0] if young else [0.22, 0, 0.62, 0.06, 0.10, 0]
                else:
                    weight = [0.08, 0, 0.52, 0.06, 0.15, 0] if male else [0.06, 0, 0.42, 0.06, 0.46, 0]
                weights.append(weight)
    return np.array(weights).reshape(len(MARITAL_STATUS), 2, 2, -1)


def _occupation_weights() -> Array:
    weights = []
    for band in range(5):
        for male in range(2):
            weight: list[float] = []
            for n_levels, base, slope, male_share, _ in _GROUPS.values():
                share = base * np.exp(slope * (band - 2)) * (male_share if male else 1 - male_share)
                # A long tail inside each group: its first occupations are common, its last ones rare.
                tail = 1.0 / np.arange(1, n_levels + 1) ** 1.6
                weight += list(share * tail / tail.sum())
            weights.append(weight)
    return np.array(weights).reshape(5, 2, -1)


def _work_class_weights() -> Array:
    government = (0.02, 0.12, 0.05, 0.75, 0.25, 0.0, 0.05, 0.01, 0.25, 0.01, 0.65, 0.10)
    independent = (0.45, 0.02, 0.25, 0.03, 0.10, 0.08, 0.20, 0.04, 0.22, 0.16, 0.03, 0.14)
    weights = []
    for public, own in zip(government, independent, strict=True):
        for senior in range(2):
            own_now = own * (1.3 if senior else 0.7)
            private = max(1 - public - own_now, 0.02)
            weights.append(
                [public * 0.2, public * 0.5, 0.0003, private, own_now * 0.7, own_now * 0.3, public * 0.3, 0.0006]
            )
    return np.array(weights).reshape(len(_GROUPS), 2, -1)


def _hours_weights() -> Array:
    hours = np.arange(1, 100)
    weights = []
    for independent in range(2):
        for male in range(2):
            for full_time, part_time in ((0.5, 24), (1.0, 30), (0.35, 20)):  # youth, middle, old age
                typical = 41 + 3 * male + 4 * independent
                weight = full_time * np.exp(-(((hours - typical) / (6 + 5 * independent)) ** 2) / 2) / 8
                weight += (1.3 - full_time) * np.exp(-(((hours - part_time) / 9) ** 2) / 2) / 40
                weight += 0.00005
                weight[hours == 40] += full_time * (0.5 if independent else 1.4)
                weight[np.isin(hours, (20, 30, 35, 45, 50, 60))] *= 2.5  # people answer in round numbers
                weights.append(weight)
    return np.array(weights).reshape(2, 2, 3, -1)
