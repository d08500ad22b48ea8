# SPDX-License-Identifier: Apache-2.0
"""Cases of the hostile campaign that go through the command line: CSV and Parquet files in, files out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hostile_judge as judge
from hostile_cases import Found, Roles, add_roles, chance, draw_k, origin, pick
from hostile_tables import WRITABLE, Column, draw_table, word

METHODS = (
    "model-guided", "mondrian", "information-loss", "workload-aware", "hilbert", "r-plus-tree", "full-domain",
)  # fmt: skip
MODELS = ("decision-tree", "decision-tree", "logistic-regression", "gradient-boosting")


@dataclass
class Answer:
    """Answer of a command."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The error, without the notes before it."""
        return self.err.rpartition("error: ")[2].strip()


def call(arguments: list[str], folder: Path, *, in_process: bool = True) -> Answer:
    """Run a command of sfumato, in this process or in one of its own."""
    if not in_process:
        run = subprocess.run(
            [sys.executable, "-m", "sfumato", *arguments], cwd=folder, capture_output=True, text=True, timeout=110
        )
        return Answer(run.returncode, run.stdout, run.stderr)
    from typer.testing import CliRunner

    from sfumato.cli.application import application

    before = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(application, arguments, env={"COLUMNS": "400"})
    finally:
        os.chdir(before)
    err = result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        err += f"Traceback: {type(result.exception).__name__} ({origin(result.exception)})\n"
        err += traceback.format_exception_only(result.exception)[-1]
        return Answer(-1, result.stdout, err)
    return Answer(result.exit_code, result.stdout, err)


class FileCase:
    """A file of people, and what commands make of it."""

    def __init__(self, found: Found, random: np.random.Generator, folder: Path, *, most: int = 1500) -> None:
        self.found, self.random, self.folder = found, random, folder
        table = draw_table(random, kinds=WRITABLE, least=20, most=most, most_columns=8, odd_names=False)
        roles = add_roles(random, table)
        columns = {n: c for n, c in roles.table.columns.items() if n != "name"}
        labels = random.choice(["low", "high", "some"], table.n_records, p=[0.5, 0.3, 0.2])
        columns["outcome"] = Column(
            "category", [str(v) for v in labels], {"categories": ["high", "low", "some"], "flavor": 0}
        )
        if chance(random, 0.15):
            roles.dropped = ["name"]
            columns["name"] = Column("canary text", [word(random) for _ in labels], {"flavor": 0})
        else:
            roles.dropped = []
        self.roles: Roles = roles
        self.table = type(table)(columns)
        self.suffix = pick(random, (".csv", ".csv", ".parquet"))
        self.source = folder / f"people{self.suffix}"
        self.separator = pick(random, (",", ",", ";", "\t"))
        self.table.write(self.source, separator=self.separator)
        self.original = judge.read_file(self.source, separator=self.separator)
        self.cells = judge.canaries(self.original)
        self.k = draw_k(random, table.n_records)
        self.in_process = not chance(random, 0.04)
        self.said = ""

    def call(self, *arguments: str) -> Answer:
        """Run a command; judge its exit code and what it says."""
        answer = call([str(a) for a in arguments], self.folder, in_process=self.in_process)
        self.said = answer.err
        where = " ".join(arguments)[:200]
        if answer.code not in (0, 1, 2):
            last = (answer.err.strip().splitlines() or [""])[-1]
            trace = next((line for line in answer.err.splitlines() if line.startswith("Traceback:")), "")
            self.found.broken("exit", [f"exit {answer.code} {trace} {last[:160]}"], where)
        elif "Traceback" in answer.err:
            self.found.broken("exit", ["a traceback was shown"], where)
        if answer.code in (1, 2):
            self.found.refusals.append(f"[{answer.code}] {judge.shape(answer.sentence)}")
            is_usage = "Usage:" in answer.err  # typer's own words about options, in a box
            if not is_usage and (answer.code == 2 or "gate" not in answer.err):
                self.found.broken("message", judge.bad_sentence(answer.sentence), f"{where}: {answer.sentence[:120]}")
        self.found.message(f"{answer.err} {answer.out}", self.cells, where)
        return answer

    def judge_release(self, path: Path, *, is_default: bool, limit: float = 0.0) -> None:
        """Judge a released file against the file it was made of."""
        found, roles = self.found, self.roles
        found.releases += 1
        where = f"{path.name}"
        columns = judge.read_file(path)
        for name in [*roles.dropped, *([roles.person] if roles.person else [])]:
            if name in columns:
                found.broken("roles", [f"column {name!r} was released"], where)
        bounds = [name for name in columns if name not in self.original]
        quasi = [name for name in columns if name in roles.quasi or name in bounds]
        groups = judge.grouped(columns, quasi)
        found.broken("guarantee", judge.too_small(groups, self.k), where)
        n_released = len(next(iter(columns.values())))
        if not (1 - limit) * self.table.n_records <= n_released <= self.table.n_records:
            found.broken("rows", [f"{n_released} of {self.table.n_records} records were released"], where)
        if roles.row in columns:
            rows = [int(value) for value in columns[roles.row]]
            if roles.person is not None:
                persons = [self.original[roles.person][row] for row in rows]
                found.broken("guarantee", judge.too_small(groups, self.k, persons), where)
            passing = [name for name in columns if name not in quasi]
            found.broken("changed", judge.changed(self.original, columns, passing, rows), where)
            if judge.is_in_order(rows):
                found.broken("order", ["the records are in the order of the input"], where)
        found.broken("values", judge.names_people(self.original, columns, quasi, self.k), where)
        if is_default and not bounds:
            one, few = judge.shown_people(self.original, columns, quasi, self.k)
            found.shown(one, few, where)

    def judge_criteria(self, path: Path, asked: list[dict[str, Any]]) -> None:
        """Judge what was asked of a sensitive column."""
        columns = judge.read_file(path)
        groups = judge.grouped(columns, [n for n in columns if n in self.roles.quasi or n not in self.original])
        for one in asked:
            self.found.broken("guarantee", judge.breaks_criterion(groups, columns[one["column"]], one), path.name)

    def judge_document(self, path: Path, floor: int) -> None:
        """A document names no value that fewer than `floor` records have."""
        if not path.exists():
            return
        self.found.counts["documents"] += 1
        cells = judge.canaries({n: v for n, v in self.original.items() if n != "row"}, floor)
        self.found.broken("documents", judge.told(path.read_text(encoding="utf-8"), cells), path.name)

    def roles_as_options(self) -> list[str]:
        """Return the options that give columns their roles."""
        roles, options = self.roles, ["--quasi-identifiers", ",".join(self.roles.quasi), "--keep", str(self.roles.row)]
        if roles.dropped:
            options += ["--identifiers", ",".join(roles.dropped)]
        if roles.person is not None:
            options += ["--unit", roles.person]
        return options


def _inside(found: Found, random: np.random.Generator, work: Any, **how: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work(FileCase(found, random, Path(folder), **how))


def anonymize(found: Found, random: np.random.Generator) -> None:
    """Anonymize a file, with random options, and use the saved partition on other records."""
    _inside(found, random, _anonymize)


def _anonymize(case: FileCase) -> None:
    random, folder = case.random, case.folder
    released = folder / f"released{pick(random, ('.csv', '.parquet'))}"
    options = ["anonymize", case.source.name, "--target", "outcome", "-k", str(case.k), "-o", released.name]
    options += [*case.roles_as_options(), "--model", pick(random, MODELS), "--quiet"]
    is_default = chance(random, 0.5)
    if not is_default:
        from sfumato.representatives import REPRESENTATIVES

        options += ["--representative", pick(random, [*REPRESENTATIVES])]
    options += ["--test-fraction", pick(random, ("0", "0", "0.2")), "--seed", str(int(random.integers(0, 99)))]
    options += ["--jobs", "1"]
    if case.suffix == ".parquet" and released.suffix == ".parquet" and chance(random, 0.3):
        options += ["--out-of-core"]
    saves = chance(random, 0.5)
    options += ["--save", "partition.json"] if saves else []
    asked: list[dict[str, Any]] = []
    if saves or chance(random, 0.5):
        options += ["--guide", pick(random, ("probabilities", "labels", "predictions"))]
    else:
        options += ["--method", pick(random, METHODS)]
        if chance(random, 0.3):
            options += ["--suppression-limit", pick(random, ("0.05", "0.3"))]
        if case.roles.sensitive and chance(random, 0.7):
            criterion = pick(random, ({"name": "distinct", "l": 2}, {"name": "t", "t": 0.5, "distance": "equal"}))
            asked.append({**criterion, "column": case.roles.sensitive})
            options += ["--sensitive", case.roles.sensitive]
            options += ["--l", "2"] if "l" in criterion else ["--t", "0.5"]
    answer = case.call(*options, *(["--json"] if chance(random, 0.3) else []))
    if answer.code != 0:
        if released.exists():
            case.found.broken("exit", [f"exit {answer.code} and yet a file was written"], released.name)
        return
    case.judge_release(released, is_default=is_default, limit=0.3 if "--suppression-limit" in options else 0.0)
    case.judge_criteria(released, asked)
    if saves:
        case.judge_document(folder / "partition.json", case.k)
        rows = random.permutation(case.table.n_records)[: int(random.integers(2, case.table.n_records))]
        other = case.table.take(sorted(int(r) for r in rows))
        other.write(folder / f"other{case.suffix}", separator=case.separator)
        again = folder / f"again{released.suffix}"
        answer = case.call(
            "apply", "partition.json", f"other{case.suffix}", "--release", "-o", again.name, "--quiet",
            "--keep", "row,outcome" + (",illness" if case.roles.sensitive else ""),
        )  # fmt: skip
        if answer.code == 0:
            columns = judge.read_file(again)
            groups = judge.grouped(columns, [n for n in columns if n in case.roles.quasi or n not in case.original])
            case.found.broken("guarantee", judge.too_small(groups, case.k), "apply --release")
            case.found.releases += 1


def newcomer(found: Found, random: np.random.Generator) -> None:
    """Anonymize a file with nothing but a target: what leaves by default."""
    _inside(found, random, _newcomer)


def _newcomer(case: FileCase) -> None:
    released = case.folder / f"released{case.suffix}"
    options = ["anonymize", case.source.name, "--target", "outcome", "-o", released.name, "--model", "decision-tree"]
    answer = case.call(*options, "--test-fraction", "0", "-k", str(case.k))
    if answer.code != 0:
        return
    columns = judge.read_file(released)
    telling = [n for n in ("name", "row") if n in columns]
    if "name" in telling or (telling and case.table.n_records >= 50):  # smaller tables are judged by names alone
        case.found.broken("roles", [f"columns {telling} of record numbers or names were released"], "newcomer")
    case.roles.row = None
    case.roles.quasi = [name for name in case.original if name != "outcome"]
    case.roles.person, case.roles.dropped = None, []
    case.judge_release(released, is_default=True)


def run(found: Found, random: np.random.Generator) -> None:
    """Do what a random policy says."""
    _inside(found, random, _run, most=600)


def _run(case: FileCase) -> None:
    from sfumato.policy.settings import METHODS, REPRESENTATIVES

    random, roles = case.random, case.roles
    released = case.folder / f"released{pick(random, ('.csv', '.parquet'))}"
    is_default = chance(random, 0.5)
    method: dict[str, Any] = {"name": pick(random, [*METHODS]), "k": case.k, "seed": int(random.integers(0, 99))}
    if not is_default:
        method["representative"] = pick(random, [*REPRESENTATIVES])
    asked = []
    if roles.sensitive and chance(random, 0.6):
        method["l"] = 2
        asked = [{"name": "distinct", "l": 2, "column": roles.sensitive}]
    columns: dict[str, Any] = {"target": "outcome", "quasi_identifiers": roles.quasi, "keep": [roles.row]}
    columns |= {"sensitive": [roles.sensitive]} if roles.sensitive else {}
    columns |= {"unit": roles.person} if roles.person else {}
    columns |= {"identifiers": roles.dropped} if roles.dropped else {}
    level = "quick" if chance(random, 0.05) else "none"
    policy = {
        "data": {"file": case.source.name, "release": released.name, "artifact": "partition.json"},
        "columns": columns,
        "method": method,
        "model": {"name": "decision-tree", "test_fraction": float(pick(random, (0.0, 0.2)))},
        "audit": {"level": level},
        "gate": {"min_k": case.k if chance(random, 0.9) else case.k + 1000},
    }
    lines = ["version = 1"]
    for section, settings in policy.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
    (case.folder / "policy.toml").write_text("\n".join(lines), encoding="utf-8")
    answer = case.call("run", "policy.toml", "--quiet", "--jobs", "1")
    if answer.code != 0:
        if released.exists():
            case.found.broken("exit", [f"exit {answer.code} and yet a file was written"], released.name)
        return
    case.judge_release(released, is_default=is_default)
    case.judge_criteria(released, asked)
    case.judge_document(case.folder / "partition.json", case.k)
    case.judge_document(case.folder / "report.html", case.k)
    case.judge_document(case.folder / "audit.json", case.k)


def anatomize(found: Found, random: np.random.Generator) -> None:
    """Divide a file in two."""
    _inside(found, random, _anatomize)


def _anatomize(case: FileCase) -> None:
    random, l = case.random, int(case.random.integers(2, 4))  # noqa: E741
    sensitive = case.roles.sensitive or pick(random, case.roles.quasi)
    limit = pick(random, ("0", "0.2", "1"))
    options = ["anatomize", case.source.name, "--sensitive", sensitive, "-l", str(l), "-o", "shared"]
    options += ["--suppression-limit", limit, "--quiet"] + ([] if chance(random, 0.1) else ["--no-attack"])
    if case.roles.dropped:
        options += ["--identifiers", ",".join(case.roles.dropped)]
    answer = case.call(*options)
    if answer.code != 0:
        return
    parts = [judge.read_file(next(case.folder.glob(f"shared/{part}.*"))) for part in ("identifying", "sensitive")]
    case.found.releases += 1
    case.found.broken("guarantee", judge.breaks_anatomy(parts[0], parts[1], "group", l), "anatomize")
    n_left = len(parts[0]["group"])
    if n_left < (1 - float(limit)) * case.table.n_records - 1e-9:
        case.found.broken("guarantee", [f"{n_left} of {case.table.n_records} records are left"], "anatomize")
    if "row" in parts[0] and judge.is_in_order([int(v) for v in parts[0]["row"]]):
        case.found.broken("order", ["the rows are in the order of the input"], "anatomize")


def minimize(found: Found, random: np.random.Generator) -> None:
    """Learn what to collect, and look at all documents that leave."""
    _inside(found, random, _minimize, most=400)


def _minimize(case: FileCase) -> None:
    outputs = {"--sql": "view.sql", "--form": "form.html", "--schema": "record.json", "--javascript": "record.js"}
    options = ["minimize", case.source.name, "--target", "outcome", "-o", "generalization.json", "--quiet"]
    options += [part for pair in outputs.items() for part in pair]
    identifiers = [*case.roles.dropped, "row", *([case.roles.person] if case.roles.person else [])]
    options += ["--identifiers", ",".join(identifiers), "--max-loss", pick(case.random, ("0.01", "0.1"))]
    options += ["--method", pick(case.random, ("tree", "tree", "uniform", "features", "iterative"))]
    answer = case.call(*options)
    if answer.code == 0:
        case.found.releases += 1
        for name in ("generalization.json", *outputs.values()):
            case.judge_document(case.folder / name, 10)


KINDS = {
    "cli anonymize": (anonymize, 4),
    "cli newcomer": (newcomer, 2),
    "cli run": (run, 2),
    "cli anatomize": (anatomize, 3),
    "cli minimize": (minimize, 1),
}
