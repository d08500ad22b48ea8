# SPDX-License-Identifier: Apache-2.0
"""What the studio measures and writes is what the commands do."""

import asyncio
import html
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest

from sfumato.auditing.run import run
from sfumato.policy import Policy
from sfumato.report.frontier_row import CertifiedSecret, Estimate, FrontierAttack, FrontierRow
from sfumato.studio.child import Worker, _group_of_one
from sfumato.studio.jobs import Child, Jobs
from sfumato.studio.measurements import attack_of

from .conftest import Visit, Visitor, looked_at


def told_by(task: str, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    getattr(Worker(), task)(lambda kind, **content: found.append({"kind": kind, **content}), **arguments)
    return found


def ending(number: int) -> str:
    """Return the kind of file that a random policy releases."""
    return "parquet" if number % 3 == 2 else "csv"


def random_policy(number: int) -> str:
    """Return a policy as somebody might click it together; the order of records is kept, or no two runs are equal."""
    random = np.random.default_rng(number)
    columns = list(random.permutation(["age", "job", "race", "hours"]))
    n = int(random.integers(1, 4))
    sensitive = [name for name in columns[n:] if name in ("job", "race")][:1]
    policy = Policy.of(
        data={"file": "people.csv", "release": f"released{number}.{ending(number)}", "keep_order": "yes",
              "report": f"report{number}.html", "audit": f"audit{number}.json"},
        columns={"target": "ill", "quasi_identifiers": columns[:n], "sensitive": sensitive,
                 "keep": [name for name in columns[n:] if name not in sensitive]},
        method={"name": str(random.choice(["mondrian", "model-guided", "hilbert", "workload-aware"])),
                "k": int(random.integers(2, 40)), "l": 2 if sensitive and random.random() < 0.5 else None,
                "representative": str(random.choice(["phantom", "range", "median", "bounds"])), "seed": number},
        model={"name": "decision-tree", "test_fraction": float(random.choice([0.0, 0.2]))},
        audit={"level": "none"},
        gate={"min_k": 2},
    )  # fmt: skip
    return policy.to_toml() + "\n"


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
@pytest.mark.parametrize(
    "number", [*range(8), *(pytest.param(number, marks=pytest.mark.thorough) for number in range(8, 30))]
)
def test_the_studio_writes_the_bytes_that_run_writes(
    folder: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    path = folder / "policy.toml"
    path.write_text(random_policy(number), encoding="utf-8")
    run(path)
    names = [f"{name}{number}.{end}" for name, end in (("released", ending(number)), ("audit", "json"))]
    expected = {name: (folder / name).read_bytes() for name in names}
    for name in (*names, f"report{number}.html"):
        (folder / name).unlink()
    told = told_by("write", policy=str(path), pack=str(folder / "pack.zip"), questionnaires=["edpb"], force=False)
    assert told[-1]["files"] == [*names, f"report{number}.html", "pack.zip"]
    written = {name: (folder / name).read_bytes() for name in names}
    assert written[names[0]] == expected[names[0]]
    audits = [json.loads(own[names[1]]) for own in (written, expected)]
    for audit in audits:
        del audit["seconds"]
        audit["outputs"].pop("report", None)  # the page says how long the run took
    assert audits[0] == audits[1]


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
@pytest.mark.parametrize("number", [0, 1, 3])
def test_with_records_in_random_order_the_studio_writes_the_same_lines(folder: Path, number: int) -> None:
    path = folder / "policy.toml"
    path.write_text(random_policy(number).replace('keep_order = "yes"', 'keep_order = "no"'), encoding="utf-8")
    run(path)
    released = folder / f"released{number}.csv"
    by_command = released.read_bytes().splitlines()
    told_by("write", policy=str(path), pack=str(folder / "pack.zip"), questionnaires=[], force=True)
    by_studio = released.read_bytes().splitlines()
    assert by_studio[0] == by_command[0] and sorted(by_studio) == sorted(by_command)
    assert by_studio != by_command  # each run draws an order of its own, which nobody can repeat


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_a_gate_that_refuses_leaves_the_disk_as_it_was(folder: Path) -> None:
    path = folder / "policy.toml"
    path.write_text(random_policy(0).replace("min_k = 2", "min_k = 399"), encoding="utf-8")
    before = sorted(folder.iterdir())
    told = told_by("write", policy=str(path), pack=str(folder / "pack.zip"), questionnaires=[], force=False)
    assert told[-1] == {"kind": "written", "files": []} and told[-2]["passed"] is False
    assert sorted(folder.iterdir()) == before
    judged = told_by("judge", policy=str(path))
    assert judged[-1]["passed"] is False and sorted(folder.iterdir()) == before


def test_judging_writes_nothing_and_finds_what_writing_finds(folder: Path) -> None:
    path = folder / "policy.toml"
    path.write_text(random_policy(3), encoding="utf-8")
    before = sorted(folder.iterdir())
    judged = told_by("judge", policy=str(path))[-1]
    assert sorted(folder.iterdir()) == before
    written = told_by("write", policy=str(path), pack=str(folder / "pack.zip"), questionnaires=[], force=False)[-2]
    assert judged["audit"]["gate"] == written["audit"]["gate"] and judged["passed"] is written["passed"] is True


def test_counts_of_few_people_are_masked(folder: Path) -> None:
    path = folder / "policy.toml"
    path.write_text(random_policy(0), encoding="utf-8")
    few, many = (
        told_by("count", file=str(folder / "people.csv"), policy=str(path), columns=names)[-1]["n"]
        for names in (["race", "job", "hours"], ["age", "hours", "job"])
    )
    assert many > 100 and (few in (None, 0) or few >= 10)
    facts = next(one for one in told_by("look", file=str(folder / "people.csv"), policy=str(path),
                                        policy_file=str(path)) if one["kind"] == "facts")  # fmt: skip
    for column in facts["facts"]["columns"]:
        for count in (column["alone"], column["missing"]):
            assert count is None or count == 0 or count >= 10


def test_points_are_kept_and_resumed_without_measuring_again(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(visitor: Visitor) -> None:
        studio = visitor.studio
        looked_at(studio)
        asked: list[dict[str, Any]] = []

        def start(kind: str, on_message: Any, **arguments: Any) -> None:
            asked.append(arguments)
            wanted = arguments["protections"]["k-release"]
            rows = [None, *wanted][: 4 if len(asked) == 1 else None]  # the first is stopped after three points
            for number in rows:
                on_message({"kind": "point", "row": {"parameter": number, "name": str(number)}})

        monkeypatch.setattr(studio, "_start", start)
        studio.measure("k-release", [5, 10, 20, 50])
        assert sorted(studio.points("k-release")["rows"]) == ["10", "20", "5"]
        studio.measure("k-release", [5, 10, 20, 50])
        assert asked[1]["protections"] == {"k-release": [50]}
        assert sorted(studio.points("k-release")["rows"]) == ["10", "20", "5", "50"]
        project = studio.project
        assert project is not None
        project.set("use", {"name": "k", "value": 20}, method={"k": 20})
        assert len(studio.points("k-release")["rows"]) == 4  # another k is another point of the same curve
        project.set_role("job", "protect")
        assert studio.points("k-release")["rows"] == {}  # other roles are another curve

    visit(story)


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come true")


def test_people_are_counted_after_the_table_is_read_for_the_first_time(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        studio = visitor.studio
        studio.open("people.csv")
        await until(lambda: studio.suggested is not None)
        assert studio.project is not None
        every = studio.project.rewritten
        await until(lambda: studio.alone(every)[0] and studio.alone(every[1:])[0])

    visit(story)


def test_a_preview_is_drawn_while_the_counting_process_is_put_to_rest(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        studio = visitor.studio
        looked_at(studio)
        for _ in range(3):
            studio.count_again()
            name = studio.draw("preview")
            await asyncio.sleep(0)  # the preview waits for its turn
            studio._rest()
            found: list[Any] = []

            def is_drawn(name: str = name, found: list[Any] = found) -> bool:
                found.append(studio.drawn("preview", name)[1])
                return found[-1] is not None

            await until(is_drawn)
            assert len(found[-1]["rows"]) == 20 and studio.drawn("preview", name) == (False, None)

    visit(story)


def test_a_large_table_is_not_held_beside_a_job(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(visitor: Visitor) -> None:
        studio = visitor.studio
        looked_at(studio)
        project = studio.project
        assert project is not None
        project.set_role("race", "rewrite", confirm=True)
        project.set_role("ill", "predict", confirm=True)
        monkeypatch.setattr("sfumato.studio.session._MOST_CELLS_BESIDE_A_JOB", 1)
        studio.judge()
        assert studio.waits_for_job
        studio.count_again()
        name = studio.draw("preview")
        assert not await seen(lambda: studio._counter.is_running or studio.drawn("preview", name)[1], 1.0)
        await visitor.enter()
        assert "after the job" in (await visitor.get("/roles")).text
        await studio.jobs.cancel()
        await until(lambda: studio.alone(project.rewritten)[0])
        await until(lambda: studio.drawn("preview", name)[1] is not None)

    visit(story)


async def seen(condition: Callable[[], object], seconds: float) -> bool:
    try:
        await until(condition, seconds)
    except AssertionError:
        return False
    return True


def test_what_cannot_be_counted_is_said(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        await visitor.enter()
        (folder / "people.csv").unlink()
        visitor.studio.count_again()
        await until(lambda: visitor.studio.uncounted is not None)
        (folder / "people.csv").write_text("")  # whose state pages ask for
        assert "The people could not be counted" in (await visitor.get("/roles")).text

    visit(story)


def test_what_is_guessed_of_a_secret_stands_beside_the_bound_of_that_secret() -> None:
    rate = Estimate(0.9, None, (0.9,))
    attacks = [
        FrontierAttack("inference", f"infer {name} from the release", "table", "attribute",
                       replace(rate, value=value), 0.1, None, None, None, "above reference rate")
        for name, value in (("job", 0.4), ("job 2", 0.9))
    ]  # fmt: skip
    bound = CertifiedSecret("job", 0.5, 0.3)
    row = FrontierRow("k = 5", "k-release", 5, "table", rate, attacks=tuple(attacks), certificate=bound)
    assert attack_of(row, "attribute", "job") is attacks[0] and attacks[0].rate.value < bound.upper
    assert attack_of(row, "attribute", "job 2") is attack_of(row, "attribute") is attacks[1]
    assert attack_of(row, "attribute", "other") is attacks[1]  # whose titles do not say


def test_a_job_tells_its_end_and_can_be_cancelled(folder: Path) -> None:
    path = folder / "policy.toml"
    path.write_text(random_policy(0), encoding="utf-8")

    async def story() -> None:
        events: list[str] = []
        jobs = Jobs(events.append)
        job = jobs.start("judge", lambda message: False, policy=str(path))
        assert jobs.start("judge", lambda message: False, policy=str(path)) is job  # one at a time
        await asyncio.sleep(0.5)
        await jobs.cancel()
        assert job.state == "stopped" and "job" in events
        child = Child()
        messages = [one async for one in child.messages("judge", policy=str(folder / "nowhere.toml"))]
        assert messages[-1]["kind"] == "failed" and "does not exist" in messages[-1]["sentence"]
        async for message in child.messages("judge", policy=str(path)):
            if message["kind"] == "step" and child._process is not None and child.is_running:
                child._process.kill()  # as the system does for want of memory
        assert message == {"kind": "failed", "why": "memory", "sentence": ""}
        await child.end()

    asyncio.run(story())
    assert not list(folder.glob("*unfinished*"))


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_a_job_can_be_cancelled_before_its_process_is_there(folder: Path) -> None:
    path = folder / "policy.toml"
    path.write_text(random_policy(0), encoding="utf-8")
    others = set(psutil.Process().children())

    async def story() -> None:
        for turns in (0, 1, 2, 5):
            jobs = Jobs(lambda event: None)
            job = jobs.start("judge", lambda message: False, policy=str(path))
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.wait_for(jobs.cancel(), 20)
            assert job.state == "stopped" and not jobs.is_running
            assert set(psutil.Process().children()) == others

    asyncio.run(asyncio.wait_for(story(), 60))


def test_asking_to_stop_does_not_wait_and_the_next_job_does(folder: Path, tmp_path: Path) -> None:
    """A process that ends late would be beside the next one, with a second table in memory."""
    path = folder / "policy.toml"
    path.write_text(random_policy(0), encoding="utf-8")
    others, n_children = set(psutil.Process().children()), [0]

    async def story() -> None:
        jobs = Jobs(lambda event: None)
        jobs.start("judge", lambda message: False, policy=str(path))
        while jobs.last is not None and not jobs.last.step:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        jobs.ask_to_stop()
        assert time.monotonic() - began < 0.1 and not jobs.is_running
        job = jobs.start("judge", lambda message: False, policy=str(path))
        while job.state == "running":
            n_children.append(len(set(psutil.Process().children()) - others))
            await asyncio.sleep(0.01)
        await jobs.ended()
        assert job.state == "done" and max(n_children) == 1

    asyncio.run(asyncio.wait_for(story(), 120))


def test_the_form_that_is_shown_is_the_form_that_is_written(folder: Path) -> None:
    path = folder / "policy.toml"
    text = (
        'version = 1\n[data]\nfile = "people.csv"\nrelease = "x.csv"\n[columns]\ntarget = "ill"\nsensitive = ["job"]\n'
    )
    path.write_text(text, encoding="utf-8")
    shown = told_by("minimize", policy=str(path), losses=[0.0, 0.1], document=None, form=None, force=False)
    forms = {one["loss"]: one for one in shown if one["kind"] == "form"}
    assert list(forms) == [0.0, 0.1] and forms[0.0]["error"] <= forms[0.1]["error"] + 0.1
    files = {"document": str(folder / "g.json"), "form": str(folder / "form.html")}
    written = told_by("minimize", policy=str(path), losses=[0.1], force=False, **files)
    assert written[-1] == {"kind": "written", "files": ["g.json", "form.html"]}
    page = html.unescape((folder / "form.html").read_text(encoding="utf-8"))
    asked = [one for one in forms[0.1]["questions"]["en"] if one["answers"]]
    assert asked
    for question in asked:
        for answer in question["answers"]:
            assert f"<span>{answer.split(' (')[0]}" in page
    document = json.loads((folder / "g.json").read_text(encoding="utf-8"))
    assert len(document["attributes"]) == len(forms[0.1]["questions"]["en"])
    told_by("minimize", policy=str(path), losses=[0.1], **files | {"force": True, "language": "de"})
    german = html.unescape((folder / "form.html").read_text(encoding="utf-8"))
    assert '<html lang="de">' in german
    for question in forms[0.1]["questions"]["de"]:
        for answer in question["answers"]:
            assert f"<span>{answer.split(' (')[0]}" in german


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_two_tables_are_those_of_the_command(folder: Path) -> None:
    from sfumato.auditing.anatomize_files import AnatomizeSettings, anatomize_table
    from sfumato.files.table_file import read_file
    from sfumato.progress import QuietReporter

    path = folder / "policy.toml"
    text = (
        'version = 1\n[data]\nfile = "people.csv"\nrelease = "x.csv"\n[columns]\ntarget = "ill"\nsensitive = ["job"]\n'
    )
    path.write_text(text, encoding="utf-8")
    told = told_by("anatomize", policy=str(path), folder=str(folder / "two"), l=2, force=False)
    assert told[-1]["files"] == ["two/identifying.csv", "two/sensitive.csv", "two/manifest.json"]
    settings = AnatomizeSettings(folder / "other", "csv", 2, ["job"], seed=0)
    anatomize_table(QuietReporter(), read_file(folder / "people.csv", keep_types=False), settings)
    for name in ("identifying.csv", "sensitive.csv"):
        assert sorted((folder / "two" / name).read_text()) == sorted((folder / "other" / name).read_text())


def test_the_group_of_one_person_is_counted_right() -> None:
    before = pa.table({"age": [1, 2, 3, 4, None, 6], "job": ["a", "b", "a", "a", "c", None]})
    after = pa.table(
        {"age": [2, 2, 2, 5, 5, 5], "job": pa.array(["a", "a", "a", None, None, None]).dictionary_encode()}
    )
    found = [_group_of_one(before, after, ["age", "job"], seed) for seed in range(12)]
    groups = {(str(group.before["job"].to_pylist()), str(group.after)) for group in found if group is not None}
    assert groups == {
        ("['a', 'b', 'a']", "{'age': '2', 'job': 'a'}"), ("['a', 'c', None]", "{'age': '5', 'job': None}"),
    }  # fmt: skip
    assert _group_of_one(before, after.slice(1), ["age"], 0) is None


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_the_group_that_is_shown_is_a_group_of_the_release(folder: Path) -> None:
    path = folder / "policy.toml"
    text = re.sub(r"^representative = .*", 'representative = "median"', random_policy(3), flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")
    names = list(Policy.read(path).get("columns", "quasi_identifiers"))
    told = told_by("group", file=str(folder / "people.csv"), policy=str(path), k=25)[-1]
    assert told["kind"] == "group" and told["size"] >= 25 and [one["name"] for one in told["columns"]] == names
    for one in told["columns"]:
        assert one["n"] >= len(one["before"]) and all(n >= 1 for _, n in one["before"])
        if one["n"] == len(one["before"]):
            assert sum(n for _, n in one["before"]) == told["size"]
    path.write_text(re.sub(r"^k = \d+", "k = 25", text, flags=re.MULTILINE), encoding="utf-8")
    released = run(path).release
    shown = {one["name"]: one["after"] for one in told["columns"]}
    rows = [{name: str(row[name]) for name in names} for row in released.select(names).to_pylist()]
    assert rows.count(shown) == told["size"]
