# SPDX-License-Identifier: Apache-2.0
"""A small file of people as an office would export it, and ways to run the command line on it."""

import contextlib
import csv
import io
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato.cli.application import application

N_PEOPLE = 300


def people(n: int = N_PEOPLE, seed: int = 0) -> str:
    """Semicolons, decimal commas, leading zeros, ISO dates, missing values, a name and a learnable target."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    hours = rng.integers(10, 60, n) + rng.integers(0, 2, n) * 0.5
    jobs = rng.choice(["nurse", "teacher", "smith; and more", "clerk"], n)
    lines = ["name;age;zip;hours;born;job;wage\r\n"]
    for i in range(n):
        wage = "high" if age[i] + hours[i] + rng.normal(0, 8) > 90 else "low"
        lines.append(
            f"Person {i};{'' if i % 17 == 0 else age[i]};0{rng.integers(1000, 1009)};{str(hours[i]).replace('.', ',')};"
            f"{2024 - age[i]}-0{rng.integers(1, 10)}-1{rng.integers(0, 10)};"
            + (f'"{jobs[i]}"' if ";" in jobs[i] else jobs[i])
            + f";{wage}\r\n"
        )
    return "".join(lines)


@pytest.fixture(scope="session")
def people_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("people") / "people.csv"
    path.write_text(people(), encoding="utf-8", newline="")
    return path


def run_process(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the real thing in a pipe, which costs a second or more: for tests of what only a process can show."""
    return subprocess.run(
        [sys.executable, "-m", "sfumato", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
        timeout=300,
        check=False,
    )


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command inside this process, and return what `run_process` would."""
    with contextlib.chdir(cwd or Path.cwd()):
        done = CliRunner(env={"COLUMNS": "80"}).invoke(application, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def call(*arguments: object):
    """Run a command inside this process, for tests that look at what it raised or at all it printed in turn."""
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def read_rows(path: Path, separator: str = ";") -> list[dict[str, str]]:
    """Read a CSV file with the standard library, as somebody else would."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline=""), delimiter=separator))


def smallest_group(rows: list[dict[str, str]], columns: list[str]) -> int:
    return min(Counter(tuple(row[name] for name in columns) for row in rows).values())
