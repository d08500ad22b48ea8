# SPDX-License-Identifier: Apache-2.0
"""Recorded scenes of the command line: exit codes, what is printed as JSON, and the files that are written.

Words for people (notes, errors, tables on the terminal) are not recorded; the pages that are written are.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

import sfumato
from recorded_plain import SECONDS, rounded, sorted_records
from recorded_scenes_groups import Parts
from recorded_tables import adult, n_threads

SCENES: dict[str, Callable[[], Parts]] = {}
ADULT = ["age", "education-num", "marital-status", "race", "sex", "hours-per-week", "occupation", "income"]
LEFT_OUT = SECONDS | {"versions", "sha256", "made_at", "policy_sha256"}
TREE = ("--model", "decision-tree")


def scene(name: str) -> Callable[[Callable[[], Parts]], Callable[[], Parts]]:
    """Add a function to the scenes."""

    def add(function: Callable[[], Parts]) -> Callable[[], Parts]:
        SCENES[name] = function
        return function

    return add


@functools.cache
def office(n: int = 300, seed: int = 0) -> str:
    """Return people as an office exports them: semicolons, decimal commas, leading zeros, dates, missing values."""
    random = np.random.default_rng(seed)
    age, hours = random.integers(18, 90, n), random.integers(10, 60, n) + random.integers(0, 2, n) * 0.5
    jobs = random.choice(["nurse", "teacher", '"smith; and more"', "clerk"], n)
    lines = ["name;age;zip;hours;born;job;ill;wage"]
    for row in range(n):
        wage = "high" if age[row] + hours[row] + random.normal(0, 8) > 90 else "low"
        born = f"{2024 - age[row]}-0{random.integers(1, 10)}-1{random.integers(0, 10)}"
        ill = ("flu", "cold", "gout", "none")[int(random.integers(0, 4))]
        known = "" if row % 17 == 0 else age[row]
        place = f"0{random.integers(1000, 1009)}"
        lines.append(f"P{row:04d};{known};{place};{str(hours[row]).replace('.', ',')};{born};{jobs[row]};{ill};{wage}")
    return "\r\n".join([*lines, ""])


def census(n_records: int = 700) -> pa.Table:
    """Return records of Adult for a Parquet file, whose text has no missing values."""
    frame = adult(n_records)[ADULT].copy()
    for name in frame.columns:
        if frame[name].dtype.kind not in "iuf":
            frame[name] = frame[name].astype(object).fillna("?").astype(str)
    return pa.Table.from_pandas(frame, preserve_index=False)


class Folder:
    """A folder of files, the commands run in it, and what they left there."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name, self.parts = path, name, {}
        self.write("people.csv", office())
        self.write("later.csv", office(200, 5))
        pq.write_table(census(), path / "census.parquet", row_group_size=150)
        self.known = {own.name: own.stat().st_mtime_ns for own in path.iterdir()}

    def write(self, name: str, text: str) -> None:
        """Write a file that is part of the scene, not of its results."""
        (self.path / name).write_text(text, encoding="utf-8", newline="")
        self.known = {own.name: own.stat().st_mtime_ns for own in self.path.iterdir()}

    def call(self, label: str, *arguments: object) -> None:
        """Run a command, and keep its exit code, its JSON and every file that it wrote."""
        before = Path.cwd()
        os.chdir(self.path)
        try:
            from sfumato.cli.application import application

            result = CliRunner().invoke(application, [str(own) for own in arguments], env={"COLUMNS": "100"})
        finally:
            os.chdir(before)
        error = result.exception
        if error is not None and not isinstance(error, SystemExit):
            raise error
        self.parts[f"{label}: exit code"] = result.exit_code
        if "--json" in arguments and result.stdout.strip():
            self.parts[f"{label}: JSON"] = self.cleaned(result.stdout, ".json")
        # Fingerprints have a new salt each time.
        for path in sorted(own for own in self.path.rglob("*") if own.is_file() and own.suffix != ".fingerprints"):
            name = str(path.relative_to(self.path))
            if self.known.get(name) != path.stat().st_mtime_ns:
                self.known[name] = path.stat().st_mtime_ns
                self.parts[f"{label}: {name}"] = self.read(path)

    def read(self, path: Path) -> Any:
        """Return a file as it is compared: tables by value and sorted, since they are shuffled, others as text."""
        if path.suffix == ".parquet":
            return sorted_records(pq.read_table(path))
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".csv":
            separator = max(";,", key=text.partition("\n")[0].count)
            header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            return {"separator": separator, "names": header, "records": sorted(rows)}
        return self.cleaned(text, path.suffix)

    def cleaned(self, text: str, suffix: str) -> Any:
        """Return a text without what differs from run to run: durations, paths, versions, digests of shuffled files."""
        text = text.replace(str(self.path), "FOLDER").replace(sfumato.__version__, "VERSION")
        if suffix == ".json":
            document = _without(json.loads(text))
            if not str(document.get("format", "")).startswith("sfumato-"):
                document = rounded(document, 12)  # counted on shuffled files: sums in another order, other last digits
            return json.dumps(document, ensure_ascii=False, indent=1)
        text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
        text = re.sub(r"(<dt>version of [^<]*</dt><dd>)[^<]*", r"\1VERSION", text)
        text = re.sub(r"(<dt>(?:time taken|made at)</dt><dd>)[^<]*", r"\1SECONDS", text)
        return re.sub(r"^(\| (?:version of [^|]*|time taken|made at) \| )[^|]*", r"\1NUMBER ", text, flags=re.MULTILINE)


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(own) for name, own in value.items() if name not in LEFT_OUT}
    if isinstance(value, list):
        return [_without(own) for own in value]
    return value


def commands(name: str) -> Callable[[Callable[[Folder], None]], None]:
    """Add a scene that runs commands in a folder of its own."""

    def add(function: Callable[[Folder], None]) -> None:
        def play() -> Parts:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Folder(Path(temporary).resolve(), name)
                function(folder)
                return folder.parts

        SCENES[f"commands/{name}"] = play

    return add


def _jobs() -> Sequence[object]:
    return ("--jobs", n_threads(), "--json", "--quiet")


# -- anonymizing ---------------------------------------------------------------------------------------------------


@commands("anonymize")
def _(folder: Folder) -> None:
    roles = ("--identifiers", "name", "--target", "wage", "--types", "zip=text")
    plain = ("anonymize", "people.csv", *roles, *TREE, "--k", 8)
    folder.call("model", *plain, "-o", "a.csv", "--save", "a.json", *_jobs())
    folder.call("again, refused", *plain, "-o", "a.csv", *_jobs())
    folder.call("as Parquet", *plain, "-o", "a.parquet", "--representative", "range", *_jobs())
    folder.call("as bounds", *plain, "-o", "b.csv", "--representative", "bounds", "--keep-order", *_jobs())
    folder.call("labels", *plain, "-o", "c.csv", "--guide", "labels", "--test-fraction", 0, *_jobs())
    folder.call(
        "limits and suppression", *plain, "-o", "d.csv", "--limits", "age=5,zip=3,born=365",
        "--suppression-limit", 0.05, *_jobs(),
    )  # fmt: skip
    secret = ("anonymize", "people.csv", "--identifiers", "name", "--sensitive", "ill", "--types", "zip=text")
    folder.call("l", *secret, "--l", 2, "--k", 6, "-o", "e.csv", "--save", "e.json", *_jobs())
    folder.call("t", *secret, "--t", 0.4, "--k", 6, "-o", "f.csv", *_jobs())
    folder.call("k too large", *plain[:-1], 999, "-o", "no.csv", *_jobs())
    folder.call("no such column", *plain, "--sensitive", "nobody", "-o", "no.csv", *_jobs())
    folder.call("no such file", "anonymize", "no.csv", "-o", "out.csv", *_jobs())
    numbers = ("anonymize", "people.csv", "--identifiers", "name", "--target", "hours", *TREE, "--k", 8)
    folder.call("regression", *numbers, "--target-values", "round:5", "-o", "g.csv", *_jobs())
    folder.call("group mean", *numbers, "--target-values", "group-mean", "-o", "h.csv", *_jobs())


@commands("anonymize-methods")
def _(folder: Folder) -> None:
    folder.write("town.csv", "".join(f"0{own};0{own // 3 * 3};*\n" for own in range(1000, 1009)))
    for method in (
        "model-guided", "workload-aware", "mondrian", "information-loss", "hilbert", "r-plus-tree", "full-domain",
    ):  # fmt: skip
        hierarchies = ("--hierarchies", "zip=town.csv", "--suppression-limit", 0.2) if method == "full-domain" else ()
        folder.call(
            method, "anonymize", "people.csv", "--identifiers", "name", "--target", "wage", *TREE, "--k", 5,
            "--quasi-identifiers", "age,zip,job", "--keep", "born,hours", "--types", "zip=text", "--method", method,
            *hierarchies, "-o", f"{method}.csv", *_jobs(),
        )  # fmt: skip


@commands("anonymize-files")
def _(folder: Folder) -> None:
    plain = ("anonymize", "census.parquet", "--target", "income", "--sensitive", "occupation", *TREE, "--k", 10)
    for where in ("--in-memory", "--out-of-core"):
        name = where.strip("-")
        folder.call(name, *plain, where, "-o", f"{name}.parquet", "--save", f"{name}.json", *_jobs())
    folder.call("as CSV", *plain, "-o", "out.csv", *_jobs())


@commands("apply")
def _(folder: Folder) -> None:
    folder.call(
        "anonymize", "anonymize", "people.csv", "--identifiers", "name", "--target", "wage", "--types", "zip=text",
        *TREE, "--k", 8, "-o", "a.csv", "--save", "partition.json", *_jobs(),
    )  # fmt: skip
    apply = ("apply", "partition.json", "later.csv", "--types", "zip=text", "--json", "--quiet")
    folder.call("apply", *apply, "-o", "b.csv")
    folder.call("release", *apply, "--release", "--k", 8, "-o", "c.csv")
    folder.call("release and leave out", *apply, "--release", "--suppression-limit", 0.1, "-o", "d.parquet")
    folder.call("keep order", *apply, "--release", "--keep-order", "-o", "e.csv")
    folder.call("no such document", "apply", "no.json", "later.csv", "-o", "no.csv", "--json", "--quiet")
    folder.call(
        "minimize", "minimize", "people.csv", "--target", "wage", "--personal", "ill", "--identifiers", "name",
        "--types", "zip=text", "-o", "generalization.json", "--method", "uniform", "--json", "--quiet",
    )  # fmt: skip
    for values in ("labels", "codes", "representatives"):
        folder.call(
            values, "apply", "generalization.json", "later.csv", "--values", values, "--types", "zip=text",
            "--identifiers", "name", "-o", f"{values}.csv", "--json", "--quiet",
        )  # fmt: skip


# -- the other verbs -----------------------------------------------------------------------------------------------


@commands("measure")
def _(folder: Folder) -> None:
    plain = ("measure", "people.csv", "--quasi-identifiers", "age,zip,job", "--types", "zip=text", "--json", "--quiet")
    folder.call("plain", *plain)
    folder.call("sensitive", *plain, "--sensitive", "ill,wage")
    folder.call("wildcards", *plain, "--missing-is", "wildcard")
    folder.call("population", *plain, "--population", 5000)
    folder.call("fails", *plain, "--min-k", 3)
    folder.call("holds", *plain, "--min-k", 1)
    files = ("measure", "census.parquet", "--quasi-identifiers", "age,sex,race", "--sensitive", "income", "--json")
    folder.call("in memory", *files, "--in-memory", "--quiet")
    folder.call("out of core", *files, "--out-of-core", "--quiet")
    folder.call("no such column", "measure", "people.csv", "--quasi-identifiers", "nobody", "--json", "--quiet")


@commands("minimize")
def _(folder: Folder) -> None:
    for method in ("tree", "uniform", "features", "apt", "iterative"):
        folder.call(
            method, "minimize", "people.csv", "--target", "wage", "--personal", "ill,job", "--identifiers", "name",
            "--types", "zip=text", "--method", method, "--max-loss", 0.05, "-o", f"{method}.json",
            "--sql", f"{method}.sql", "--form", f"{method}.html", "--schema", f"{method}-schema.json",
            "--javascript", f"{method}.js", "--plot", f"{method}.svg", "--json", "--quiet",
        )  # fmt: skip


@commands("anatomize")
def _(folder: Folder) -> None:
    plain = ("anatomize", "people.csv", "--sensitive", "ill", "--identifiers", "name", "--types", "zip=text")
    folder.call("CSV", *plain, "--l", 2, "--seed", 3, "-o", "a", "--json", "--quiet")
    folder.call("Parquet", *plain, "--l", 2, "--seed", 3, "--format", "parquet", "-o", "b", "--json", "--quiet")
    folder.call("too strong", *plain, "--l", 9, "--seed", 3, "-o", "c", "--json", "--quiet")
    folder.call("gate", *plain, "--seed", 3, "--max-attack", 0.0, "-o", "d", "--json", "--quiet")
    files = ("anatomize", "census.parquet", "--sensitive", "occupation", "--l", 3, "--seed", 3, "--json", "--quiet")
    folder.call("in memory", *files, "--in-memory", "-o", "e")
    folder.call("out of core", *files, "--out-of-core", "-o", "f")


# -- policies and audits -------------------------------------------------------------------------------------------

POLICY = """version = 1
[data]
file = "people.csv"
release = "out.csv"
artifact = "partition.json"
types = {{ zip = "text" }}
[columns]
target = "wage"
identifiers = ["name"]
sensitive = ["ill"]
quasi_identifiers = ["age", "zip", "hours", "born", "job"]
subgroups = ["job"]
[method]
k = 8
{method}
[model]
name = "decision-tree"
[audit]
level = "{level}"
leave_out = ["network"]
{audit}
[gate]
{gate}
"""


def _policy(folder: Folder, *, method: str = "", level: str = "none", audit: str = "", gate: str = "min_k = 8") -> None:
    folder.write("policy.toml", POLICY.format(method=method, level=level, audit=audit, gate=gate))


@commands("run")
def _(folder: Folder) -> None:
    run = ("run", "policy.toml", "--force", *_jobs())
    _policy(folder)
    folder.call("dry", *run, "--dry-run")
    folder.call("no attacks", *run)
    _policy(folder, level="quick", audit="curve = [20]", gate="min_k = 8\nmin_l = 2")
    folder.call("quick", *run)
    _policy(folder, method='representative = "range"\nl = 2\nsuppression_limit = 0.05', gate="min_l = 2")
    folder.call("ranges", *run)
    _policy(folder, gate="min_k = 50")
    folder.call("gate fails", *run)
    folder.call("gate fails, report kept", *run, "--keep-report")
    _policy(folder, method='name = "nobody"')
    folder.call("wrong policy", *run)


@commands("run-methods")
def _(folder: Folder) -> None:
    for method in ("mondrian", "information-loss", "workload-aware", "hilbert", "r-plus-tree", "full-domain"):
        _policy(folder, method=f'name = "{method}"\nsuppression_limit = 0.5')
        if method in ("hilbert", "full-domain"):  # which have no partition to save
            folder.call(f"{method}, with an artifact", "run", "policy.toml", "--force", *_jobs())
            policy = (folder.path / "policy.toml").read_text(encoding="utf-8")
            folder.write("policy.toml", policy.replace('artifact = "partition.json"\n', ""))
        folder.call(method, "run", "policy.toml", "--force", *_jobs())


@commands("audit")
def _(folder: Folder) -> None:
    folder.call(
        "anonymize", "anonymize", "people.csv", "--identifiers", "name", "--target", "wage", "--types", "zip=text",
        *TREE, "--k", 8, "--keep-order", "-o", "a.csv", *_jobs(),
    )  # fmt: skip
    audit = ("audit", "people.csv", "a.csv", "--target", "wage", "--types", "zip=text", "--json", "--quiet")
    folder.call("audit", *audit, "--sensitive", "ill", "--report", "a.html", "-o", "audit.json")
    folder.call("as Markdown", *audit, "--control", "later.csv", "--report", "b.md")
    folder.call("gate", *audit, "--min-k", 50, "--max-advantage", 0.0)


@commands("compare")
def _(folder: Folder) -> None:
    names = "age,zip,job"
    for k in (6, 11):
        folder.call(
            f"k = {k}", "anonymize", "people.csv", "--quasi-identifiers", names, "--keep", "name,born,hours",
            "--types", "zip=text", "--k", k, "--method", "mondrian", "-o", f"{k}.csv", *_jobs(),
        )  # fmt: skip
    plain = ("compare", "6.csv", "11.csv", "--quasi-identifiers", names, "--key", "name", "--types", "zip=text")
    folder.call("plain", *plain, "--json", "--quiet")
    folder.call("sensitive", *plain, "--sensitive", "ill", "--min-k", 5, "--json", "--quiet")


@commands("sweep")
def _(folder: Folder) -> None:
    _policy(folder)
    sweep = ("sweep", "policy.toml", *_jobs())
    folder.call("k", *sweep, "--k", "5,15", "--methods", "model-guided,mondrian", "-o", "a.html")
    folder.call("numbers", *sweep, "--k", "5,15", "--no-attack", "-o", "b.json")
    folder.call("minimizing", *sweep, "--alpha", "0.2,0.8", "--leaves", "4", "-o", "c.html")


@commands("init")
def _(folder: Folder) -> None:
    folder.call("CSV", "init", "people.csv", "--target", "wage", "-o", "a.toml", "--json", "--quiet")
    folder.call("again, refused", "init", "people.csv", "--target", "wage", "-o", "a.toml", "--json", "--quiet")
    folder.call(
        "Parquet", "init", "census.parquet", "--target", "income", "--sensitive", "occupation", "--k", 20,
        "-o", "b.toml", "--json", "--quiet",
    )  # fmt: skip
    folder.call("no target", "init", "people.csv", "--target", "nobody", "-o", "c.toml", "--json", "--quiet")


@commands("demo")
def _(folder: Folder) -> None:
    folder.call("demo", "demo", "--rows", 1200, "--json", "--quiet")
