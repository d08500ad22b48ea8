# SPDX-License-Identifier: Apache-2.0
"""A generator of census-like tables of any size, for scale tests, benchmarks and examples.

Records are drawn in fixed blocks with a seed for each block, so that record i is the same in a table of a
thousand and of ten million records. ``_population.py`` says what the invented population looks like.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.datasets import _population as population
from sfumato.datasets._as_frame import AsFrame, as_bunch, resolve_kind
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

Array = np.ndarray[Any, Any]

TARGET = "high_income"
PROBABILITY = "probability"

# Part of what a seed means: another size of block gives other records.
_BLOCK = 16_384

# Levels of the categorical columns; a code below 0 is a missing value.
_LEVELS = {
    "sex": population.SEX,
    "ethnicity": population.ETHNICITY,
    "birth_country": population.BIRTH_COUNTRY,
    "marital_status": population.MARITAL_STATUS,
    "household_role": population.HOUSEHOLD_ROLE,
    "work_class": population.WORK_CLASS,
    "occupation": population.OCCUPATION,
}

_MALE = population.SEX.index("male")
_HUSBAND = population.HOUSEHOLD_ROLE.index("husband")
_WIFE = population.HOUSEHOLD_ROLE.index("wife")
_SELF_EMPLOYED = population.WORK_CLASS.index("self-employed")  # followed by those who own a company

# Columns in order, with the narrowest type that holds them; hours 0 and rent NaN mean missing.
_DTYPES: dict[str, Any] = {
    "age": np.int8,
    "sex": np.int8,
    "ethnicity": np.int8,
    "birth_country": np.int8,
    "education_years": np.int8,
    "marital_status": np.int8,
    "household_role": np.int8,
    "work_class": np.int8,
    "occupation": np.int16,
    "hours_per_week": np.int8,
    "capital_gain": np.int32,
    "monthly_rent": np.float32,
    TARGET: np.int8,
    PROBABILITY: np.float32,
}

_DESCRIPTION = """Invented census-like records

Twelve columns that could identify a person and a binary target, drawn from a fixed, invented population: no record
describes anybody. Columns depend on each other, are skewed, have rare levels and missing values. The target
high_income depends on interactions of the columns and has noise.
"""


def make_census(
    n_records: int,
    *,
    random_state: int = 0,
    missing: float = 0.02,
    return_X_y: bool = False,
    as_frame: AsFrame = True,
    return_probability: bool = False,
) -> Any:
    """Draw a census-like table with 12 quasi-identifiers and a learnable binary target.

    Parameters
    ----------
    n_records : int
        Number of records, at least 1.
    random_state : int, default=0
        Seed. Record i depends on the seed and on i only, not on `n_records`. Two seeds give two independent
        samples of the same population, such as training and test data.
    missing : float, default=0.02
        Share of missing values, from 0 to below 1, in each of ``work_class`` and ``occupation`` (missing
        together), ``birth_country``, ``hours_per_week`` and ``monthly_rent``. The known values and the target
        do not depend on it.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or {"auto", "pandas", "polars", "pyarrow"}, default=True
        ``True`` and ``"auto"`` give pandas where it is installed and pyarrow otherwise; ``False`` gives
        numpy arrays (of Python objects, so for small tables only).
    return_probability : bool, default=False
        Add ``probability`` to the Bunch: the true probability of ``high_income`` given the complete record, as a
        float32 array. The best possible accuracy is the mean of ``max(p, 1 - p)``.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (``age``, ``sex``, ``ethnicity``, ``birth_country`` with 41 levels, ``education_years``,
        ``marital_status``, ``household_role``, ``work_class``, ``occupation`` with 320 levels,
        ``hours_per_week``, ``capital_gain`` with nine in ten zero, ``monthly_rent`` as a real number),
        ``target`` (``high_income``, 0 or 1), ``frame``, ``feature_names``, ``target_names``,
        ``target_column``, ``aside`` (None) and ``DESCR``.

    Notes
    -----
    Types are narrow (8 to 32 bits, categories as codes): about 20 bytes for each record in pyarrow and 23 in
    pandas. Other versions of NumPy may draw other records.

    Examples
    --------
    >>> from sfumato.datasets import make_census
    >>> make_census(1000, as_frame="pyarrow").data.shape
    (1000, 12)
    """
    _check(n_records, random_state, missing)
    kind = resolve_kind(as_frame)
    columns = _draw_range(0, n_records, random_state, missing, return_probability)
    extras = {PROBABILITY: columns.pop(PROBABILITY)} if return_probability else {}
    return as_bunch(
        _to_table(columns),
        target=TARGET,
        kind=kind,
        return_X_y=return_X_y,
        description=_DESCRIPTION,
        extras=extras,
    )


def iter_census(
    n_records: int,
    *,
    block: int = 1_048_576,
    random_state: int = 0,
    missing: float = 0.02,
    return_probability: bool = False,
) -> Iterator[pa.Table]:
    """Draw the same records as :func:`make_census`, a pyarrow table of at most `block` records at a time.

    Parameters
    ----------
    n_records : int
        Number of records in all, at least 1.
    block : int, default=1_048_576
        Largest number of records in a table; multiples of 16,384 are drawn without waste.
    random_state, missing
        As for :func:`make_census`.
    return_probability : bool, default=False
        Add a column ``probability``.

    Yields
    ------
    pyarrow.Table
        The 12 columns and ``high_income``, with the same schema in each table.

    Examples
    --------
    >>> from sfumato.datasets import iter_census
    >>> [table.num_rows for table in iter_census(40_000, block=16_384)]
    [16384, 16384, 7232]
    """
    _check(n_records, random_state, missing)
    _check_integer("block", block, least=1, fix="Pass a number of records, such as block=1_048_576.")
    # The checks run when the function is called, not when the first table is drawn.
    return (
        _to_table(_draw_range(start, min(start + block, n_records), random_state, missing, return_probability))
        for start in range(0, n_records, block)
    )


def _check(n_records: object, random_state: object, missing: object) -> None:
    _check_integer("n_records", n_records, least=1, fix="Pass a number of records.")
    _check_integer(
        "random_state",
        random_state,
        least=0,
        fix="Pass a seed, such as random_state=0; every record is a function of it, so there is no unseeded form.",
    )
    if isinstance(missing, bool) or not isinstance(missing, numbers.Real) or not 0 <= float(missing) < 1:
        raise ParameterError(
            f"missing={missing!r}: expected a share of at least 0 and below 1. Pass 0.02 for two in a hundred."
        )


def _check_integer(parameter: str, value: object, *, least: int, fix: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise ParameterError(f"{parameter}={value!r}: expected an integer of at least {least}. {fix}")


def _draw_range(start: int, stop: int, seed: int, missing: float, with_probability: bool) -> dict[str, Array]:
    """Draw the records from `start` to `stop` into one array for each column."""
    names = [name for name in _DTYPES if with_probability or name != PROBABILITY]
    columns = {name: np.empty(stop - start, dtype=_DTYPES[name]) for name in names}
    for number in range(start // _BLOCK, -(-stop // _BLOCK)):
        first = number * _BLOCK
        low, high = max(start, first), min(stop, first + _BLOCK)
        drawn = _draw_block(seed, number, missing)
        for name, column in columns.items():
            column[low - start : high - start] = drawn[name][low - first : high - first]
    return columns


def _draw_block(seed: int, number: int, missing: float) -> dict[str, Array]:
    """Draw one whole block: columns in the order in which they depend on each other, then target and gaps."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    ticket = iter(rng.integers(0, population.RESOLUTION, size=(10, _BLOCK), dtype=np.uint16))
    spread = rng.standard_normal(size=(2, _BLOCK), dtype=np.float32)
    chance = rng.random(size=(6, _BLOCK), dtype=np.float32)
    tables = population.lookups()

    def pick(table: Array, *conditions: Array) -> Array:
        """Read one entry for each record, at the position that its conditions and its ticket make."""
        position = np.zeros(_BLOCK, dtype=np.int32)
        for condition, n_values in zip(conditions, table.shape[:-1], strict=True):
            position = position * np.int32(n_values) + condition
        drawn: Array = table.reshape(-1)[position * np.int32(population.RESOLUTION) + next(ticket)]
        return drawn

    age = pick(tables.age)
    band = population.AGE_BAND[age]
    sex = pick(tables.sex, band)
    ethnicity = pick(tables.ethnicity, band)
    country = pick(tables.birth_country, ethnicity)
    education = pick(tables.education_years, band, country > 0)
    marital = pick(tables.marital_status, band, sex)
    role = pick(tables.household_role, marital, sex, age < 26)
    occupation = pick(tables.occupation, population.EDUCATION_BAND[education], sex)
    work = pick(tables.work_class, population.OCCUPATION_GROUP[occupation], age > 45)
    is_independent = (work == _SELF_EMPLOYED) | (work == _SELF_EMPLOYED + 1)
    stage = (age > 21).astype(np.int8) + (age > 65)
    hours = pick(tables.hours_per_week, is_independent, sex, stage)

    power = population.earning_power()[occupation]
    schooling = (education - np.float32(10)) / 3  # float32 from here on: half the memory traffic
    is_couple = (role == _HUSBAND) | (role == _WIFE)
    has_gain = chance[0] < 0.0012 * age + 0.02 * education.clip(9) - 0.16
    gain = np.exp(7.6 + 0.45 * schooling + spread[0]).clip(max=99_999).astype(np.int32) * has_gain
    rent = np.exp(6.6 + 0.18 * power + 0.12 * schooling + np.float32(0.15) * is_couple + 0.45 * spread[1])
    probability = _probability(age, sex, is_couple, schooling, power, is_independent, hours, gain, rent)
    label = chance[1] < probability

    # Gaps come last and from their own numbers, so that the share of missing values changes nothing else.
    gap = chance[2:] < np.float32(missing)
    return {
        "age": age,
        "sex": sex,
        "ethnicity": ethnicity,
        "birth_country": np.where(gap[0], np.int8(-1), country),
        "education_years": education,
        "marital_status": marital,
        "household_role": role,
        "work_class": np.where(gap[1], np.int8(-1), work),
        "occupation": np.where(gap[1], np.int16(-1), occupation),
        "hours_per_week": np.where(gap[2], np.int8(0), hours),
        "capital_gain": gain,
        "monthly_rent": np.where(gap[3], np.float32(np.nan), rent),
        TARGET: label,
        PROBABILITY: probability,
    }


def _probability(
    age: Array,
    sex: Array,
    is_couple: Array,
    schooling: Array,
    power: Array,
    is_independent: Array,
    hours: Array,
    gain: Array,
    rent: Array,
) -> Array:
    """Return the probability of a high income for complete records; most terms are interactions."""
    experience = (1 - ((age - np.float32(48)) / 24) ** 2).clip(-2)  # highest in mid-life
    effort = (hours - np.float32(40)) / 12
    score = (
        -3.8
        + 1.3 * power
        + 0.7 * schooling
        + 0.9 * power * schooling  # a degree pays in occupations that ask for one
        + 1.1 * experience * (1 + 0.5 * schooling.clip(-1))
        + 1.7 * is_couple
        + 0.8 * effort * np.where(is_independent, -0.6, 1.0)
        + 0.4 * ((sex == _MALE) & (power > 0))
        + 0.9 * (np.log(rent) - 6.6) * is_couple
        + 4.0 * (gain > 6000)
        + 0.8 * ((gain > 0) & (gain <= 6000)) * np.where(age > 45, 1.0, -1.0)
    )
    probability: Array = 1 / (1 + np.exp(-score))
    return probability


def _to_table(columns: dict[str, Array]) -> pa.Table:
    """Wrap the arrays as pyarrow columns without copying their values."""
    import pyarrow as pa

    wrapped = {}
    for name, values in columns.items():
        if name in _LEVELS:
            codes = pa.array(values, mask=values < 0)
            wrapped[name] = pa.DictionaryArray.from_arrays(codes, pa.array(_LEVELS[name], pa.string()))
        elif name == "hours_per_week":
            wrapped[name] = pa.array(values, mask=values == 0)
        else:
            wrapped[name] = pa.array(values, from_pandas=True)  # NaN is missing
    return pa.table(wrapped)
