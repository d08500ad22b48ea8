# SPDX-License-Identifier: Apache-2.0
"""The command under each screen is run, and does what the screen does."""

import contextlib
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.application import application
from sfumato.report.frontier import Frontier
from sfumato.report.frontier_row import FrontierRow
from sfumato.studio.child import Worker
from sfumato.studio.commands import commands
from sfumato.studio.measurements import ways
from sfumato.studio.session import CURVES, DIVERSITIES, LOSSES

from .conftest import Visit, Visitor, looked_at


def ran(command: str, folder: Path, *more: str) -> str:
    """Run a command in the folder, inside this process, and return what it said."""
    words = shlex.split(command)
    assert words[0] == "sfumato" and "&&" not in words
    with contextlib.chdir(folder):
        done = CliRunner().invoke(application, [*words[1:], *more])
    assert done.exit_code == 0, done.output
    return done.stdout


def told_by(task: str, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    getattr(Worker(), task)(lambda kind, **content: found.append({"kind": kind, **content}), **arguments)
    return found


def prepared(visitor: Visitor) -> Any:
    looked_at(visitor.studio)
    project = visitor.studio.project
    assert project is not None
    project.set_role("race", "rewrite", confirm=True)
    project.set_role("job", "protect")
    project.set_role("ill", "predict", confirm=True)
    project.set("tree", {}, model={"name": "decision-tree"})
    return project


def test_of_the_table_and_of_the_roles(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        studio = visitor.studio
        looked_at(studio)
        project = studio.project
        assert project is not None
        [init] = commands(studio, "table", {})
        first = project.policy_file.read_text(encoding="utf-8")
        ran(init, folder, "--force")
        assert project.policy_file.read_text(encoding="utf-8") == first
        [measure] = commands(studio, "roles", {})
        found = json.loads(ran(measure, folder, "--json"))
        columns = project.rewritten
        told = told_by("count", file=str(project.file), policy=str(project.policy_file), columns=columns)[-1]["n"]
        assert told in _numbers(found)

    visit(story)


def _numbers(document: Any) -> set[Any]:
    """Return all numbers of a document."""
    if isinstance(document, dict):
        return set().union(*(_numbers(one) for one in document.values()), set())
    if isinstance(document, list):
        return set().union(*(_numbers(one) for one in document), set())
    return {document} if isinstance(document, int | float) else set()


PUBLIC = """
[bounds]
age = [0, 120]
hours = [0, 100]
[categories]
race = ["x", "y", "z"]
job = ["clerk", "nurse", "cook", "smith"]
"""


def rows_of_the_command(command: str, folder: Path) -> dict[str, FrontierRow]:
    """Return what a command measured; its document adds differences between rows, which are no part of them."""
    ran(command, folder, "-o", "found.json", "--jobs", "1")
    found = Frontier.from_dict(json.loads((folder / "found.json").read_text()))
    return {row.name: replace(row, seconds=0.0) for row in found.rows}


def rows_of_the_studio(asked: list[dict[str, Any]]) -> dict[str, FrontierRow]:
    """Return what the jobs that the studio wanted to start measure."""
    told = []
    for one in asked:
        arguments = {name: value for name, value in one.items() if name not in ("n_total", "about")}
        told += [told["row"] for told in told_by("frontier", **arguments | {"columns_for": []}) if "row" in told]
    return {row["name"]: replace(FrontierRow.from_dict(json.loads(json.dumps(row))), seconds=0.0) for row in told}


def not_started(visitor: Visitor) -> list[dict[str, Any]]:
    """Keep the studio from starting jobs; return the list in which their arguments will be."""
    asked: list[dict[str, Any]] = []
    visitor.studio._start = lambda kind, on_message, **given: asked.append(given)  # type: ignore[method-assign]
    return asked


@pytest.mark.parametrize("by", ["k", "epsilon", pytest.param("t", marks=pytest.mark.thorough)])
def test_of_the_frontier(
    visit: Visit, folder: Path, by: str, monkeypatch: pytest.MonkeyPatch, small_attackers: None
) -> None:
    stops = CURVES[by].stops
    monkeypatch.setitem(CURVES, by, replace(CURVES[by], stops=(stops[1], stops[-2])))  # two tell as much as all

    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        prepared(visitor)
        asked = not_started(visitor)
        visitor.studio.public.write_text(PUBLIC, encoding="utf-8")
        assert (await visitor.post("/frontier/measure", {"by": by})).status_code == 303
        [command] = commands(visitor.studio, "frontier", {"by": by})
        shown, found = rows_of_the_studio(asked), rows_of_the_command(command, folder)
        assert list(found) == list(shown) and len(found) == 1 + len(CURVES[by].stops)
        # The noise of differential privacy is drawn anew in every run.
        same = ["no protection"] if by == "epsilon" else list(found)
        assert [found[name] for name in same] == [shown[name] for name in same]

    visit(story)


@pytest.mark.thorough
def test_of_the_comparison(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        prepared(visitor)
        asked = not_started(visitor)
        for way in ways(visitor.studio):
            assert (await visitor.post("/compare/measure", {"family": way.family})).status_code == 303
        [command] = commands(visitor.studio, "compare", {})
        shown, found = rows_of_the_studio(asked), rows_of_the_command(command, folder)
        assert len(shown) == 6 and set(found) == set(shown)
        # Two tables are shuffled anew in every run, and attackers who draw records draw others.
        two = "l = 3, two tables"
        assert [found[two].utility, found[two].auc] == [shown[two].utility, shown[two].auc]
        assert {**found, two: None} == {**shown, two: None}

    visit(story)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_of_a_form_and_of_two_tables(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        project, studio = prepared(visitor), visitor.studio
        names = studio.other_outputs("minimize")
        paths = dict(zip(("document", "form"), (str(folder / name) for name in names), strict=True))
        told_by("minimize", policy=str(project.policy_file), losses=[LOSSES[4]], force=False, **paths)
        shown = [(folder / name).read_bytes() for name in names]
        ran(commands(studio, "minimize", {})[4], folder, "--force")
        assert [(folder / name).read_bytes() for name in names] == shown
        two = folder / studio.other_outputs("anatomize")[0]
        told_by("anatomize", policy=str(project.policy_file), folder=str(two), l=DIVERSITIES[0], force=False)
        ours = {path.name: sorted(path.read_text().splitlines()) for path in two.glob("*.csv")}
        ran(commands(studio, "anatomize", {})[0], folder, "--force")
        assert ours == {path.name: sorted(path.read_text().splitlines()) for path in two.glob("*.csv")}

    visit(story)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_of_the_release_with_its_pack(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        project, studio = prepared(visitor), visitor.studio
        gate = dict.fromkeys(("max_attack_advantage", "min_accuracy_kept", "min_gain_kept", "max_unique"))
        project.set("order", {}, data={"keep_order": "yes"}, audit={"level": "none"}, gate=gate)
        [both] = commands(studio, "release", {})
        for part in both.split(" && "):
            ran(part, folder)
        released = project.policy.file("release")
        by_command, pack = released.read_bytes(), folder / studio.pack
        assert pack.exists()
        told = told_by("write", policy=str(project.policy_file), pack=str(pack), force=True,
                       questionnaires=["edpb", "iso27559"])  # fmt: skip
        assert told[-1]["files"][-1] == pack.name and released.read_bytes() == by_command

    visit(story)


def test_paths_are_seen_from_the_start_folder(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        inside = folder / "two words"
        inside.mkdir()
        (folder / "people.csv").rename(inside / "people.csv")
        looked_at(visitor.studio, "two words/people.csv")
        [command] = commands(visitor.studio, "history", {})
        assert shlex.split(command) == ["sfumato", "run", "two words/people-policy.toml"]

    visit(story)
