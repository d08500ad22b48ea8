# SPDX-License-Identifier: Apache-2.0
"""The command under each screen is run, and does what the screen does."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.studio.child import Worker
from sfumato.studio.commands import commands
from sfumato.studio.session import DIVERSITIES, LOSSES

from .conftest import Visit, Visitor, looked_at


def ran(command: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    assert words[0] == "sfumato" and "&&" not in words
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", *words[1:], *more], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


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
        found = json.loads(ran(measure, folder, "--json").stdout)
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
