# SPDX-License-Identifier: Apache-2.0
"""What the studio has open: a table, its policy, the job that runs, and the pages that listen."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, ParameterError
from sfumato.files.table_file import format_of
from sfumato.studio.failures import why_of
from sfumato.studio.jobs import Child, Job, Jobs, Message
from sfumato.studio.project import FOLDER, SUGGESTED, Project
from sfumato.studio.security import below, check_places

EXAMPLE = "adult-example.csv"
SIZES = (5, 10, 20, 50, 100, 200)
DIVERSITIES = (2, 3, 4, 5)
CLOSENESSES = (0.5, 0.4, 0.3, 0.2, 0.1)
LEAVES = (200, 100, 50, 20, 10)
EPSILONS = (10.0, 3.0, 1.0, 0.3, 0.1)
LOSSES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)
N_SPLITS = 1
QUESTIONNAIRES = ("edpb", "iso27559")
"""Of the evidence pack, unless other ones are ticked."""
_MOST_LISTED = 50
_MOST_CELLS_BESIDE_A_JOB = 2_500_000
"""A larger table is not held a second time while a job holds it: what is to be counted waits for the job."""


@dataclass(frozen=True)
class Curve:
    """A family of protections over the stops of a slider, from loose to strict.

    Attributes
    ----------
    family : str
        As the frontier calls it.
    stops : tuple of float
    setting : str or None
        Under [method] of the policy; None: no policy does it.
    """

    family: str
    stops: tuple[float, ...]
    setting: str | None


CURVES = {
    "k": Curve("k-release", SIZES, "k"),
    "l": Curve("l", DIVERSITIES, "l"),
    "t": Curve("t", CLOSENESSES, "t"),
    "buckets": Curve("buckets", LEAVES, None),
    "epsilon": Curve("epsilon", EPSILONS, None),
}


class Studio:
    """The state of a running studio.

    Parameters
    ----------
    folder : Path
        The start folder: only files below it can be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.project: Project | None = None
        self.facts: dict[str, Any] | None = None
        self.suggested: list[dict[str, Any]] | None = None
        self.looking: Job | None = None
        self.jobs = Jobs(self.publish)
        self.last_seen = time.monotonic()
        self.is_stopping = asyncio.Event()
        self.n_changes = 0
        self.uncounted: Job | None = None
        self._alone: dict[frozenset[str], int | None] = {}
        self._drawn: dict[str, Message | None] = {}
        self._drawing: set[asyncio.Task[None]] = set()
        self._counter = Child()
        self._counting: asyncio.Task[None] | None = None
        self._listeners: set[asyncio.Queue[str]] = set()

    # -- pages that listen -------------------------------------------------------------------------------------------

    def publish(self, event: str) -> None:
        """Tell all open pages that something changed; they ask what."""
        self.n_changes += 1
        for listener in self._listeners:
            listener.put_nowait(event)

    async def events(self, every: float = 15.0) -> AsyncIterator[str]:
        """Yield events for one page until the studio stops; nothing happened for a while: an empty one."""
        own: asyncio.Queue[str] = asyncio.Queue()
        self._listeners.add(own)
        try:
            while not self.is_stopping.is_set():
                try:
                    yield await asyncio.wait_for(own.get(), every)
                except TimeoutError:
                    yield ""
            yield "stopped"
        finally:
            self._listeners.discard(own)

    def seen(self) -> None:
        """Note that somebody uses the studio."""
        self.last_seen = time.monotonic()

    @property
    def idle(self) -> float:
        """Seconds since somebody used it or a job ran."""
        if self.jobs.is_running or (self.looking is not None and self.looking.state == "running"):
            self.seen()
        return time.monotonic() - self.last_seen

    async def stop(self) -> None:
        """End all child processes, and tell the pages."""
        self.is_stopping.set()
        self.publish("stopped")
        await self.jobs.cancel()
        await self._put_away()

    def _put_away(self) -> asyncio.Task[None]:
        """End all that counts, and then the process: a task that is cancelled may have just started it."""
        waiting = [task for task in (self._counting, *self._drawing) if task is not None]
        for task in waiting:
            task.cancel()
        counter, self._counter, self._counting = self._counter, Child(), None

        async def end() -> None:
            if waiting:
                await asyncio.wait(waiting)
            await counter.rest()

        return asyncio.create_task(end())

    # -- opening -----------------------------------------------------------------------------------------------------

    def tables(self) -> list[tuple[str, int]]:
        """Return the tables below the start folder, names relative to it, and their sizes."""
        found = []
        for path in sorted([*self.folder.glob("*"), *self.folder.glob("*/*")]):
            relative = path.relative_to(self.folder)
            if any(part.startswith(".") for part in relative.parts) or "-released" in path.name:
                continue
            try:
                format_of(path)
                below(self.folder, str(relative))
            except InputError:
                continue
            found.append((str(relative), path.stat().st_size))
        return found[:_MOST_LISTED]

    def policies(self) -> list[str]:
        """Return the policies below the start folder that the studio has worked on, relative to it."""
        kept = [*self.folder.glob(f"{FOLDER}/*"), *self.folder.glob(f"*/{FOLDER}/*")]
        policies = [path.parents[1] / path.name for path in sorted(kept)]
        return [str(path.relative_to(self.folder)) for path in policies if path.is_file()][:_MOST_LISTED]

    def open_example(self) -> None:
        """Write the example table into the start folder, and open it."""
        path = self.folder / EXAMPLE
        if not path.exists():
            from pyarrow import csv

            from sfumato.datasets import load_adult
            from sfumato.files.publishing import unfinished

            with unfinished(path) as [temporary]:
                csv.write_csv(load_adult(as_frame="pyarrow").frame, temporary)
        self.open(EXAMPLE)

    def open(self, name: str) -> None:
        """Open a table, or a policy with its table; reading goes on in the background.

        Raises
        ------
        InputError
            For a name that is not a table or policy below the start folder.
        """
        from sfumato.policy import Policy

        if self.jobs.is_running:
            raise ParameterError("a job is running: expected none while another table is opened. Cancel it first.")
        path = below(self.folder, name)
        policy_file = None
        if path.suffix == ".toml":
            policy_file, source = path, Policy.read(path).source()
            if not isinstance(source, Path):
                raise InputError("the policy names a table of a database: expected a CSV or Parquet file.")
            path = below(self.folder, str(source.resolve()))
        format_of(path)
        project = Project(path, policy_file)
        below(self.folder, str(project.policy_file.parent / path.name))
        if project.has_policy:
            check_places(self.folder, project.policy, path)
        self._forget()
        self.project = project
        kept = project.kept("facts")
        if kept is not None and kept["state"] == project.state_of_file and project.has_policy:
            self.facts, self.suggested, self.looking = kept["facts"], kept["suggested"], Job("look", state="done")
            self.count_again()
        else:
            self._begin_to_look(project, {})
        self.publish("policy")

    def read_again(self, reading: dict[str, str]) -> None:
        """Read a CSV file that could not be read once more, with settings of its form.

        Parameters
        ----------
        reading : dict of str to str
            As under [data] of a policy.
        """
        project = self._opened()
        if project.has_policy or self.looking is None or self.looking.state != "failed":
            raise ParameterError("the table was read already: expected one that could not be. Load the page again.")
        self._forget()
        self._begin_to_look(project, reading)
        self.publish("policy")

    def _begin_to_look(self, project: Project, reading: dict[str, str]) -> None:
        self.looking = Job("look")
        self._counting = asyncio.create_task(self._look(project, self.looking, reading))

    def refresh(self) -> None:
        """Take in what was changed outside the studio: the policy, in an editor."""
        if self.project is not None and self.project.refresh():
            self.count_again()
            self.publish("policy")

    def _forget(self) -> None:
        """Let go of the table that was open."""
        self._ending = self._put_away()
        self.facts = self.suggested = self.uncounted = None
        self._alone, self._drawn = {}, {}

    async def _look(self, project: Project, job: Job, reading: dict[str, str]) -> None:
        try:
            await self._read_and_suggest(project, job, reading)
        except Exception as error:  # what was found cannot be kept: the disk is full, or the folder is read-only
            job.fail(*why_of(error))
        self.publish("job")
        self.publish("policy")
        if job.state == "done":
            await self._count()

    async def _read_and_suggest(self, project: Project, job: Job, reading: dict[str, str]) -> None:
        policy = str(project.policy_file) if project.has_policy else None
        async for message in self._counter.messages(
            "look", file=str(project.file), policy=policy, policy_file=str(project.policy_file), reading=reading
        ):
            kind = message["kind"]
            if kind == "step":
                job.step = message["what"]
            elif kind == "note":
                job.notes.append((message["sentence"], message["is_warning"]))
            elif kind == "facts":
                self.facts = message["facts"]
                job.seconds = time.monotonic() - job.began
            elif kind == "suggested":
                self.suggested = message["roles"]
                if message["policy"] is not None:
                    project.begin(message["policy"])
                state = {"state": project.state_of_file, "facts": self.facts, "suggested": self.suggested}
                project.keep("facts", state)
            elif kind == "failed":
                job.fail(message["why"], message["sentence"])
            elif kind == "done":
                job.state = "done"
            self.publish("job")

    # -- counting ----------------------------------------------------------------------------------------------------

    def alone(self, columns: Sequence[str]) -> tuple[bool, int | None]:
        """Return whether it is counted how many people are the only ones with their combination, and how many."""
        key = frozenset(columns)
        return key in self._alone, self._alone.get(key)

    def count_again(self) -> None:
        """Count in the background for the roles of now: with all columns, then without each."""
        if self._counting is not None and not self._counting.done():
            return  # it looks at the roles of then by itself
        self._counting = asyncio.create_task(self._count())

    async def _count(self) -> None:
        self.uncounted = None
        while (project := self.project) is not None and project.has_policy:
            every = project.rewritten
            wanted = [every, *([other for other in every if other != name] for name in every)]
            missing = next((columns for columns in wanted if frozenset(columns) not in self._alone), None)
            if missing is None:
                if self.jobs.is_running:
                    self._rest()
                return
            if self.waits_for_job:
                self._rest()
                await self.jobs.ended()
                continue
            task = {"file": str(project.file), "policy": str(project.policy_file), "columns": missing}
            async for message in self._counter.messages("count", **task):
                if message["kind"] == "alone":
                    self._alone[frozenset(missing)] = message["n"]
                elif message["kind"] == "failed":
                    self.uncounted = Job("count")
                    self.uncounted.fail(message["why"], message["sentence"])
            self.publish("count")
            if self.uncounted is not None:
                return

    @property
    def waits_for_job(self) -> bool:
        """Whether nothing is counted before the running job has ended."""
        facts = self.facts
        is_large = facts is not None and facts["n_records"] * len(facts["columns"]) > _MOST_CELLS_BESIDE_A_JOB
        return is_large and self.jobs.is_running

    @property
    def is_busy(self) -> bool:
        """Whether a page that is loaded again soon may show more."""
        is_looking = self.looking is not None and self.looking.state == "running"
        is_counting = self._counting is not None and not self._counting.done()
        return self.jobs.is_running or is_looking or is_counting or None in self._drawn.values()

    def draw(self, task: str, **arguments: Any) -> str:
        """Look up values of people in the background; return the name under which they can be shown once.

        Parameters
        ----------
        task : {"preview", "group"}
            Some records, or the group of one person.
        **arguments
            Of the task.
        """
        project, name = self._opened(), f"{task}-{secrets.token_urlsafe(8)}"
        self._drawn = {name: None}  # what was drawn before is forgotten

        async def draw() -> None:
            files = {"file": str(project.file), "policy": str(project.policy_file)}
            if self.waits_for_job:
                await self.jobs.ended()
            if name not in self._drawn:
                return  # asked for again meanwhile
            async for message in self._counter.messages(task, **files, **arguments):
                if message["kind"] == task and name in self._drawn:
                    self._drawn[name] = message
                elif message["kind"] == "failed":
                    self._drawn.pop(name, None)
            self.publish("drawn")
            if self.jobs.is_running:
                self._rest()

        drawing = asyncio.create_task(draw())
        self._drawing.add(drawing)
        drawing.add_done_callback(self._drawing.discard)
        return name

    def drawn(self, task: str, name: str | None) -> tuple[bool, Message | None]:
        """Return whether values are still being looked up, and those that were; shown once, they are forgotten."""
        if name is None or name not in self._drawn or not name.startswith(f"{task}-"):
            return False, None
        found = self._drawn[name]
        if found is not None:
            del self._drawn[name]
        return found is None, found

    def _start(self, kind: str, on_message: Callable[[Message], bool], **arguments: Any) -> None:
        """Start a job; the process that counts gives its table back meanwhile, unless it is counting."""
        project = self._opened()
        check_places(self.folder, project.policy, project.file)
        if self._counting is None or self._counting.done():
            self._rest()
        self.jobs.start(kind, on_message, **arguments)

    def _rest(self) -> None:
        """End the process that counts; it starts again, and reads the table again, when there is something to count."""
        self._ending = asyncio.create_task(self._counter.rest())

    def measures(self, family: str) -> bool:
        """Return True while a family is being measured."""
        job = self.jobs.last
        return self.jobs.is_running and job is not None and (job.kind, job.about) == ("frontier", family)

    # -- roles -------------------------------------------------------------------------------------------------------

    def _opened(self) -> Project:
        if self.project is None:
            raise InputError("no table is open: expected one. Open it first.")
        return self.project

    def to_confirm(self) -> list[dict[str, Any]]:
        """Return the suggestions that a person has still to confirm: special categories, and what is predicted."""
        project = self._opened()
        if self.suggested is None or not project.has_policy:
            return []
        done = {*project.now.confirmed, *project.now.chosen}
        is_guessed = project.versions[0].what == "first"
        return [
            one
            for one in self.suggested
            if one["name"] not in done
            and project.role(one["name"]) != "drop"
            and (one["special"] is not None or (is_guessed and project.role(one["name"]) == "predict"))
        ]

    def suggestion(self, column: str) -> dict[str, Any]:
        """Return what was suggested for a column, with its role in the words of the studio."""
        own = next(one for one in self.suggested or [] if one["name"] == column)
        return {**own, "role": SUGGESTED[own["role"]]}

    # -- measuring ---------------------------------------------------------------------------------------------------

    @property
    def public(self) -> Path:
        """The file beside the table that says what is publicly known of its columns; differential privacy needs it."""
        project = self._opened()
        return project.policy_file.with_name(f"{project.file.stem}-public.toml")

    def _key(self, family: str) -> str:
        """Return the name under which what was measured of a family is kept."""
        own: dict[str, Any] = {"family": family, "n_splits": N_SPLITS}
        if family == "epsilon" and self.public.is_file():
            own["public"] = hashlib.sha256(self.public.read_bytes()).hexdigest()
        return self._opened().key(**own)

    def points(self, family: str) -> dict[str, Any]:
        """Return what was measured of a family with the roles of now: rows by number, the raw row, columns by k."""
        kept = self._opened().kept(self._key(family))
        return kept or {"raw": None, "rows": {}, "columns": {}, "about": None}

    def measure(self, family: str, numbers: Sequence[float]) -> None:
        """Measure what is missing of a family, in the background; what was measured is kept at once."""
        project, points = self._opened(), self.points(family)
        key = self._key(family)
        missing = [number for number in numbers if f"{number:g}" not in points["rows"]]
        of_columns = [int(k) for k in numbers if f"{k:g}" not in points["columns"]] if family == "k-release" else []
        if not missing and not of_columns:
            return

        def on_message(message: Message) -> bool:
            if message["kind"] == "point":
                row = message["row"]
                if row["parameter"] is None:
                    points["raw"] = row
                else:
                    points["rows"][f"{row['parameter']:g}"] = row
            elif message["kind"] == "columns":
                points["columns"][str(message["k"])] = {"size": message["size"], "columns": message["columns"]}
            elif message["kind"] == "about":
                points["about"] = message["about"]
            project.keep(key, points)
            return message["kind"] == "point" and message["row"]["parameter"] is not None

        self._start(
            "frontier", on_message, n_total=len(missing), about=family, policy=str(project.policy_file),
            protections={family: missing or list(numbers[:1])}, n_splits=N_SPLITS, columns_for=of_columns,
            public=str(self.public) if family == "epsilon" else None,
        )  # fmt: skip

    # -- releasing ---------------------------------------------------------------------------------------------------

    @property
    def audit(self) -> dict[str, Any] | None:
        """What the gate says of the policy of now; None if it was not judged."""
        project = self._opened()
        kept: dict[str, Any] | None = project.kept("audit")
        if kept is None or kept.get("judged") != project.judged or kept["state"] != project.state_of_file:
            return None
        return kept

    @property
    def written(self) -> list[str]:
        """The files that were written with the policy of now and are still there."""
        audit, project = self.audit, self._opened()
        files = [] if audit is None or audit["policy"] != project.policy.digest else audit["written"]
        return [name for name in files if (project.policy_file.parent / name).exists()]

    def judge(self) -> None:
        """Run the policy in the background without writing anything."""
        self._run("judge")

    def write(self, questionnaires: Sequence[str], *, force: bool) -> None:
        """Run the policy in the background as ``sfumato run`` does, and write the evidence pack."""
        project = self._opened()
        self._run(
            "write", pack=str(project.policy_file.parent / self.pack), questionnaires=list(questionnaires), force=force
        )

    @property
    def pack(self) -> str:
        """The name of the evidence pack."""
        return f"{self._opened().file.stem}-evidence.zip"

    def _run(self, task: str, **arguments: Any) -> None:
        project = self._opened()
        kept: dict[str, Any] = {"policy": project.policy.digest, "judged": project.judged, "written": []}

        def on_message(message: Message) -> bool:
            if message["kind"] == "audit":
                kept.update(audit=message["audit"], passed=message["passed"], state=project.state_of_file)
            elif message["kind"] == "written":
                kept["written"] = [*message["files"], project.policy_file.name]
            project.keep("audit", kept)
            return False

        self._start(task, on_message, policy=str(project.policy_file), **arguments)

    # -- other ways --------------------------------------------------------------------------------------------------

    def learn_forms(self) -> None:
        """Learn a form for each loss of the model, in the background."""
        project = self._opened()
        key, forms = project.key(family="forms in words"), {}

        def on_message(message: Message) -> bool:
            if message["kind"] != "form":
                return False
            forms[f"{message['loss']:g}"] = message
            project.keep(key, forms)
            return True

        self._start(
            "minimize", on_message, n_total=len(LOSSES), policy=str(project.policy_file), losses=list(LOSSES),
            document=None, form=None, force=False,
        )  # fmt: skip

    @property
    def forms(self) -> dict[str, Any]:
        """The forms that were learned with the roles of now, by loss."""
        project = self._opened()
        return project.kept(project.key(family="forms in words")) or {}

    def other_outputs(self, kind: str) -> list[str]:
        """Return the files that another way writes: the generalization and its form, or the two tables."""
        stem = self._opened().file.stem
        return [f"{stem}-generalization.json", f"{stem}-form.html"] if kind == "minimize" else [f"{stem}-two-tables"]

    def write_other(self, kind: str, number: float, *, force: bool, language: str = "en") -> None:
        """Write a form that accepts so much loss, in a language, or two tables with so many values per group."""
        project = self._opened()
        paths = [str(project.policy_file.parent / name) for name in self.other_outputs(kind)]
        own: dict[str, Any] = {"folder": paths[0], "l": int(number)}
        if kind == "minimize":
            own = {"losses": [number], "document": paths[0], "form": paths[1], "language": language}
        project.keep(f"written-{kind}", [])

        def on_message(message: Message) -> bool:
            if message["kind"] == "written":
                project.keep(f"written-{kind}", message["files"])
            return False

        self._start(kind, on_message, policy=str(project.policy_file), force=force, **own)

    def written_other(self, kind: str) -> list[str]:
        """Return what another way has written and is still there."""
        project = self._opened()
        return [name for name in project.kept(f"written-{kind}") or [] if (project.policy_file.parent / name).exists()]
