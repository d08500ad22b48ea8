# SPDX-License-Identifier: Apache-2.0
"""Policies as a history: nothing is lost, undo is an earlier policy, and screens say what the policy says."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.policy import Policy
from sfumato.studio.project import Project
from sfumato.studio.texts import LANGUAGES, Words, _texts, preferred

from .conftest import Visit, Visitor, looked_at


def test_the_first_policy_is_what_init_writes(visit: Visit, folder: Path) -> None:
    from sfumato.files.table_file import ReadingOptions, read_file
    from sfumato.policy import write_policy

    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)

    visit(story)
    table = read_file(folder / "people.csv", ReadingOptions(), keep_types=False).table
    text, _ = write_policy(table, file=Path("people.csv"), target="ill")
    assert (folder / "people-policy.toml").read_text(encoding="utf-8") == text


def test_roles_change_undo_and_survive_a_restart(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        await visitor.enter()
        project = visitor.studio.project
        assert project is not None
        assert [one["name"] for one in visitor.studio.to_confirm()] == ["race", "ill"]
        assert (await visitor.post("/frontier/measure", {"by": "k"})).status_code == 422  # roles are still open
        await visitor.post("/roles/1", {"role": "protect"})
        assert project.role("job") == "protect" and "job" not in project.rewritten
        await visitor.post("/roles/0", {"role": "drop"})
        await visitor.post("/undo")
        assert project.role("age") == "rewrite" and project.role("job") == "protect"
        await visitor.post("/undo")
        assert project.role("job") == "rewrite"
        await visitor.post("/undo")  # there is nothing before the first
        await visitor.post("/back/2")
        assert project.role("job") == "protect"
        await visitor.post("/roles/2", {"role": "rewrite", "confirm": "yes"})
        await visitor.post("/roles/4", {"role": "predict", "confirm": "yes"})
        assert visitor.studio.to_confirm() == []
        again = Project(folder / "people.csv")
        assert again.versions == project.versions and again.policy.values == project.policy.values

    visit(story)
    assert Policy.read(folder / "people-policy.toml").get("columns", "sensitive") == ("job",)


def test_a_wrong_change_changes_nothing(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        await visitor.enter()
        project = visitor.studio.project
        assert project is not None
        before = (folder / "people-policy.toml").read_bytes()
        wrong: list[tuple[str, dict[str, str]]] = [
            ("/frontier/use", {"by": "k", "value": "1", "at": "0"}),
            ("/frontier/use", {"by": "k", "value": "nan", "at": "0"}),
            ("/frontier/use", {"by": "epsilon", "value": "1", "at": "0"}),
            ("/compare/use", {"family": "buckets"}),  # no policy does it
            ("/roles/4", {"role": "drop"}),  # something must be predicted
            ("/roles/99", {"role": "drop"}),
            ("/roles/0", {"role": "hide"}),
            ("/release/conditions", {"min_accuracy_kept": "7"}),
            ("/release/answers", {"review_by": "soon"}),
            ("/back/17", {}),
        ]
        for path, form in wrong:
            answer = await visitor.post(path, form)
            assert answer.status_code == 422, path
        assert (folder / "people-policy.toml").read_bytes() == before and len(project.versions) == 1

    visit(story)


def test_another_column_can_be_predicted(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        project = visitor.studio.project
        assert project is not None
        project.set_role("job", "predict")
        assert project.role("job") == "predict" and project.role("ill") == "rewrite"
        with pytest.raises(ParameterError, match="predicts"):
            project.set_role("job", "leave")

    visit(story)


def test_a_policy_changed_outside_is_a_version_of_its_own(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)

    visit(story)
    path = folder / "people-policy.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("k = 10", "k = 12"), encoding="utf-8")
    project = Project(folder / "people.csv")
    assert [one.what for one in project.versions] == ["first", "outside"]
    project.undo()
    assert project.policy.get("method", "k") == 10


def test_a_policy_changed_in_an_editor_is_taken_in_while_it_is_open(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        await visitor.enter()
        path, project = folder / "people-policy.toml", visitor.studio.project
        assert project is not None
        path.write_text(path.read_text(encoding="utf-8").replace("k = 10", "k = 12"), encoding="utf-8")
        assert "changed outside the studio" in (await visitor.get("/history")).text
        path.write_text(path.read_text(encoding="utf-8").replace("k = 12", "k = 13"), encoding="utf-8")
        assert (await visitor.post("/roles/1", {"role": "protect"})).status_code == 303  # no page was looked at before
        assert project.policy.get("method", "k") == 13 and project.role("job") == "protect"
        path.write_text("k = [[", encoding="utf-8")
        answer = await visitor.get("/roles")
        assert answer.status_code == 422 and "people-policy.toml" in answer.text
        assert (await visitor.post("/undo")).status_code == 303  # the way out
        assert (await visitor.get("/roles")).status_code == 200 and project.role("job") != "protect"

    visit(story)


def judged(project: Project, *, passed: bool) -> dict[str, Any]:
    """Return what is kept of a policy that was judged."""
    own = {"policy": project.policy.digest, "judged": project.judged, "state": project.state_of_file}
    return {**own, "passed": passed, "written": [], "audit": {"gate": [], "advice": []}}


def test_an_answer_about_the_release_keeps_the_verdict(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        await visitor.enter()
        project = visitor.studio.project
        assert project is not None
        (folder / "x.csv").write_text("")
        project.keep("audit", {**judged(project, passed=True), "written": ["x.csv"]})
        assert visitor.studio.written == ["x.csv"]
        answers = {"purpose": "a study", "recipient": "us", "reviewer": "me", "review_by": "2100-01-01"}
        assert (await visitor.post("/release/answers", answers)).status_code == 303
        assert visitor.studio.audit is not None
        assert visitor.studio.written == []  # what was written says nothing of the answers
        await visitor.post("/release/answers", {"population": "everybody"})  # a risk may depend on it
        assert visitor.studio.audit is None

    visit(story)


def test_the_gate_must_pass_before_anything_is_written(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        await visitor.enter()
        answer = await visitor.post("/release/write")
        assert answer.status_code == 422 and "gate" in answer.text
        project = visitor.studio.project
        assert project is not None
        project.keep("audit", {**judged(project, passed=False), "audit": {"gate": [], "advice": ["try this"]}})
        assert "try this" in (await visitor.get("/release")).text
        assert (await visitor.post("/release/write")).status_code == 422
        project.set("use", {"name": "k", "value": 20}, method={"k": 20})
        assert visitor.studio.audit is None  # it was about another policy

    visit(story)
    assert not (folder / "people-released.csv").exists()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_screen_speaks_the_language(visit: Visit, language: str) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        await visitor.enter()
        await visitor.post("/language", {"language": language})
        for name in ("start", "table", "roles", "frontier", "compare", "release", "history"):
            text = (await visitor.get("/" if name == "start" else f"/{name}")).text
            assert f'<html lang="{language}"' in text and Words(language)(f"nav.{name}") in text

    visit(story)


def test_languages_have_the_same_texts_with_the_same_gaps() -> None:
    import string

    def gaps(text: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    english = _texts("en")
    for language in LANGUAGES[1:]:
        other = _texts(language)
        sections = {section: set(own) for section, own in other.items() if section != "library"}
        own_texts = {section: own for section, own in english.items() if section != "library"}
        assert sections == {section: set(own) for section, own in own_texts.items()}
        for section, own in own_texts.items():
            for key, text in own.items():
                assert gaps(other[section][key]) == gaps(text), f"{section}.{key}"


def test_the_language_is_the_browsers() -> None:
    assert preferred("fr, de-AT;q=0.8, en") == "de" and preferred("") == "en" and preferred("fr") == "en"


def test_the_server_loads_nothing_large(visit: Visit, folder: Path) -> None:
    """What the studio needs beside a job stays small: packages that compute are for its child processes."""

    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)

    visit(story)
    script = """
import asyncio, sys
from pathlib import Path
from sfumato.studio import screens
from sfumato.studio.application import create_application
from sfumato.studio.session import Studio
from sfumato.studio.texts import Words

async def main():
    studio = Studio(Path(sys.argv[1]))
    create_application(studio, lambda: None)
    studio.open("people.csv")
    studio.project.set_role("race", "protect", confirm=True)
    studio.project.undo()
    for name, screen in screens.SCREENS.items():
        screens.shell(studio, Words("de"), name, {})
        screen(studio, Words("de"), {})
    await studio.stop()

asyncio.run(main())
print(*{name.partition(".")[0] for name in sys.modules} & {"sklearn", "scipy", "numba", "pandas", "polars", "duckdb"})
"""
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
