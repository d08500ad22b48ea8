# SPDX-License-Identifier: Apache-2.0
"""The work of the studio, in a child process: one JSON line for each task, one for each thing to tell.

Every task calls the function behind a command. Records stay in this process: it tells counts, names of columns and
sentences of the library; values of cells only for `preview`, which people ask for.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NoReturn, get_args

from sfumato.allocator import give_back_large_arrays

SMALLEST_SHOWN = 10
"""Counts of fewer records are masked on the screens that come before a policy says k."""
MOST_PREVIEWED = 20
_MOST_VALUES = 8  # of a column, in one person's group
_MOST_CLASSES = 20  # of a column that may be what a model predicts

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})

Tell = Callable[..., None]
Language = Literal["en", "de"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
"""Of forms."""


class Stopped(BaseException):
    """The task was cancelled; raised so that unfinished files are removed on the way out."""


class ToldReporter:
    """Tells the server of every step.

    Parameters
    ----------
    tell : callable
    """

    def __init__(self, tell: Tell) -> None:
        self._tell, self._began = tell, time.perf_counter()
        self.is_watched = False

    @property
    def seconds(self) -> float:
        """Seconds since the task began."""
        return time.perf_counter() - self._began

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Tell of a step."""
        self._tell("step", what=what)
        yield

    def progress(self, sentence: str) -> None:
        """Tell how far a long step is."""
        self._tell("step", what=sentence)

    def note(self, sentence: str, *, is_warning: bool = False) -> None:
        """Tell of a fact that the user should know."""
        from sfumato.policy.setting_names import with_keys

        self._tell("note", sentence=with_keys(sentence), is_warning=is_warning)


class Worker:
    """Does the tasks; keeps the table between those that count."""

    def __init__(self) -> None:
        self._table: Any = None

    # -- the table ---------------------------------------------------------------------------------------------------

    def look(
        self, tell: Tell, *, file: str, policy: str | None, policy_file: str, reading: dict[str, str] | None = None
    ) -> None:
        """Read a table and tell what is in it; then the suggested roles, with a first policy if there is none.

        Without a policy, `reading` may say how a CSV file is written, as under [data] of a policy.
        """
        reporter = ToldReporter(tell)
        # Packages that the counts need take seconds to load: meanwhile, the table is read.
        loading = threading.Thread(target=_load_counts, daemon=True)
        loading.start()
        table = self._read(reporter, file, policy, reading or {})
        tell("facts", facts=_facts(table, Path(file)))
        loading.join()
        from sfumato.policy import Policy, suggest_roles, write_policy

        with reporter.step("counting which columns single out records"):
            if policy is not None:
                target = Policy.read(policy).get("columns", "target")
                text, roles = None, suggest_roles(table, target)
            else:
                target = _first_target(table)
                relative = Path(os.path.relpath(file, Path(policy_file).parent))
                text, roles = write_policy(table, file=relative, target=target, reading=reading)
        suggested = [
            {"name": one.name, "role": one.role, "reason": one.reason, "special": one.special, "code": one.code}
            for one in roles
        ]
        tell("suggested", roles=suggested, target=target, policy=text)

    def _read(
        self, reporter: ToldReporter, file: str, policy: str | None, reading: Mapping[str, str] = NO_SETTINGS
    ) -> Any:
        """Return the table, read once: as the policy says, or else as `reading` says, or as it looks."""
        from sfumato.auditing.policy_tables import read_source
        from sfumato.files.table_file import ReadingOptions, read_file
        from sfumato.policy import Policy

        if self._table is None:
            if policy is not None:
                self._table = read_source(reporter, Policy.read(policy)).table
            else:
                said = {name: value == "yes" if name == "header" else value for name, value in reading.items()}
                with reporter.step(f"reading {Path(file).name}"):
                    found = read_file(Path(file), ReadingOptions(**said), keep_types=False)  # type: ignore[arg-type]
                for sentence in found.notes:
                    reporter.note(sentence)
                self._table = found.table
        return self._table

    def count(self, tell: Tell, *, file: str, policy: str, columns: list[str]) -> None:
        """Count the people who are the only ones with their combination of these columns; a few are masked."""
        from sfumato.verification import count_groups

        table = self._read(ToldReporter(tell), file, policy)
        tell("alone", n=_masked(int((count_groups(table, columns) == 1).sum()) if columns else 0))

    def preview(self, tell: Tell, *, file: str, policy: str) -> None:
        """Tell some records, drawn at random. They are shown once and kept nowhere."""
        import numpy as np

        table = self._read(ToldReporter(tell), file, policy)
        n = min(MOST_PREVIEWED, table.num_rows)
        drawn = np.random.default_rng().choice(table.num_rows, n, replace=False)
        rows, names = table.take(drawn).to_pylist(), table.column_names
        tell("preview", rows=[[_as_text(row[name]) for name in names] for row in rows])

    # -- measuring ---------------------------------------------------------------------------------------------------

    def frontier(
        self, tell: Tell, *, policy: str, protections: dict[str, list[float]], n_splits: int, columns_for: list[int],
        public: str | None = None,
    ) -> None:  # fmt: skip
        """Measure protections of the policy's model; for groups of k, also what becomes of each column."""
        from sfumato.auditing.frontier_files import FrontierSettings, frontier_of_file, read_public
        from sfumato.documents import plain
        from sfumato.files.table_file import ReadingOptions
        from sfumato.policy import Policy

        reporter, own = ToldReporter(tell), Policy.read(policy)

        def on_row(row: Any) -> None:
            tell("point", row=plain(row))

        known = {} if public is None else read_public(Path(public))
        settings = FrontierSettings(protections=protections, n_splits=n_splits, n_jobs=1, public=known)
        found = frontier_of_file(reporter, own, None, settings, reading=ReadingOptions(), on_row=on_row)
        about = found.to_dict()
        tell("about", metric=found.metric, about={name: about[name] for name in about if name != "rows"})
        self._columns(tell, reporter, own, columns_for)

    def _columns(self, tell: Tell, reporter: ToldReporter, policy: Any, sizes: list[int]) -> None:
        """Tell what becomes of each column with groups of these sizes."""
        if not sizes:
            return
        from sfumato.auditing.pipeline import release_all
        from sfumato.auditing.policy_job import open_job
        from sfumato.auditing.run import described_columns
        from sfumato.progress import QuietReporter

        job, own_seed = open_job(QuietReporter(), policy), policy.get("method", "seed")
        for k in sizes:
            with reporter.step(f"k = {k}: what becomes of each column"):
                with_k = job.with_settings("method", k=k)
                _, release, _ = release_all(QuietReporter(), with_k)
                found = described_columns(with_k, release)
            rewritten = [one for one in found if one.role == "quasi-identifier"]
            group = _group_of_one(with_k.table, release.table, [one.name for one in rewritten], own_seed)
            size = None if group is None else group.before.num_rows
            values = {} if group is None else {name: len(group.before.column(name).unique()) for name in group.after}
            columns = [
                {"name": one.name, "loss": one.loss, "sentence": one.sentence, "values": values.get(one.name)}
                for one in rewritten
            ]
            tell("columns", k=k, size=size, columns=columns)

    def group(self, tell: Tell, *, file: str, policy: str, k: int) -> None:
        """Tell the values of one person's group, before and after. They are shown once and kept nowhere."""
        from sfumato.auditing.pipeline import release_all
        from sfumato.auditing.policy_job import open_job
        from sfumato.policy import Policy
        from sfumato.progress import QuietReporter

        self._table = None  # the job reads its own
        own = Policy.read(policy)
        job = open_job(QuietReporter(), own).with_settings("method", k=k)
        _, release, _ = release_all(QuietReporter(), job)
        found = _group_of_one(job.table, release.table, list(job.method.quasi_identifiers), own.get("method", "seed"))
        columns = []
        if found is not None:
            columns = [
                {"name": name, **_values_of(found.before.column(name)), "after": after}
                for name, after in found.after.items()
            ]
        tell("group", k=k, size=None if found is None else found.before.num_rows, columns=columns)

    # -- releasing ---------------------------------------------------------------------------------------------------

    def judge(self, tell: Tell, *, policy: str) -> None:
        """Run a policy without writing anything, and tell what the gate says."""
        from dataclasses import replace

        from sfumato.auditing.run import run
        from sfumato.policy import Policy

        own = Policy.read(policy)
        values = {**own.values, "data": {**own.values["data"], "release": None}}
        done = run(replace(own, values=values), reporter=ToldReporter(tell))
        tell("audit", audit=done.audit.to_dict(), passed=done.passed)

    def write(self, tell: Tell, *, policy: str, pack: str, questionnaires: list[str], force: bool) -> None:
        """Run a policy as ``sfumato run`` does, and put the evidence into a pack."""
        from sfumato.auditing.evidence import evidence
        from sfumato.auditing.run import run
        from sfumato.files.publishing import check_output

        reporter = ToldReporter(tell)
        check_output(Path(pack), force=force)
        done = run(policy, force=force, reporter=reporter)
        names = [path.name for path in done.written]
        if done.passed is not False:
            names.append(evidence(done, pack, questionnaires=questionnaires, force=force, reporter=reporter).path.name)
        tell("audit", audit=done.audit.to_dict(), passed=done.passed)
        tell("written", files=names)

    # -- other ways --------------------------------------------------------------------------------------------------

    def minimize(
        self, tell: Tell, *, policy: str, losses: list[float], document: str | None, form: str | None, force: bool,
        language: Language = "en",
    ) -> None:  # fmt: skip
        """Learn forms as ``sfumato minimize`` does, one for each loss; write that of the first loss if asked to."""
        from sfumato.attack.result import wilson_interval
        from sfumato.auditing.minimize_files import Exports, MinimizeSettings, Words, minimize_table, write_exports
        from sfumato.auditing.policy_tables import read_source
        from sfumato.files.publishing import check_output
        from sfumato.policy import Policy

        reporter, own = ToldReporter(tell), Policy.read(policy)
        columns = own.values["columns"]
        settings = MinimizeSettings(
            columns["target"], personal=columns["sensitive"], identifiers=columns["identifiers"],
            categorical=[name for name in columns["categorical"] or () if name not in columns["identifiers"]],
            max_loss=losses[0],
        )  # fmt: skip
        source = read_source(reporter, own)
        exports = None
        if document is not None and form is not None:
            exports = Exports(Path(document), form=Path(form), language=language, words=Words(titles=own.titles))
            for path in exports.paths().values():
                check_output(path, force=force)
        learned = minimize_table(reporter, source, settings)
        if exports is not None:
            write_exports(learned, source, exports)
            tell("written", files=[path.name for path in exports.paths().values()])
            return
        n_test = learned.swept.n_test
        for loss in losses:
            point = learned.swept.coarsest(loss)
            tell(
                "form", loss=loss, error=point.test_error, risk=point.test_risk, n_test=n_test,
                interval=wilson_interval(round(point.test_error * n_test), n_test), certified=point.certified_risk,
                full_error=learned.swept.limits[0].test_error, base_risk=learned.swept.limits[1].test_risk,
                wanted=list(learned.swept.personal),
                questions={
                    name: _questions(point.generalization.attributes, own.titles, name) for name in LANGUAGES
                },
            )  # fmt: skip

    def anatomize(self, tell: Tell, *, policy: str, folder: str, l: int, force: bool) -> None:  # noqa: E741
        """Write two tables as ``sfumato anatomize`` does, if no attack gains too much."""
        from sfumato.auditing.anatomize_files import AnatomizeSettings, anatomize_table
        from sfumato.auditing.policy_tables import read_source
        from sfumato.policy import Policy

        reporter, own = ToldReporter(tell), Policy.read(policy)
        source, columns = read_source(reporter, own), own.values["columns"]
        settings = AnatomizeSettings(
            Path(folder), "parquet" if source.format == "parquet" else "csv", l, columns["sensitive"],
            identifiers=columns["identifiers"], seed=own.get("method", "seed"),
        )  # fmt: skip
        made = anatomize_table(reporter, source, settings, force=force, file=source.path or Path(folder))
        tell("written", files=[f"{Path(folder).name}/{path.name}" for path in made.written])


def _questions(attributes: Any, titles: Mapping[str, str], language: Language) -> list[dict[str, Any]]:
    """Return each question of a form and its answers, in the words of the page that is written."""
    from sfumato.generalization.export.wording import Wording

    named = {one.name: titles[one.name] for one in attributes if one.name in titles}
    wording = Wording.of(attributes, language, named, None, None)
    return [
        {
            "name": wording.title(one),
            "answers": [f"{choice.shown} {choice.remark}".strip() for choice in wording.choices(one)]
            if one.is_collected
            else [],
        }
        for one in attributes
    ]


def _load_counts() -> None:
    import sfumato.auditing.column_changes
    import sfumato.policy.suggestions  # noqa: F401


def _facts(table: Any, file: Path) -> dict[str, Any]:
    """Return what is in a table, in counts; those of few records are masked."""
    from sfumato.auditing.column_changes import describe_columns
    from sfumato.frames import read_table
    from sfumato.schema import count_values

    read = read_table(table)
    columns = []
    for change in describe_columns(table, table, {}, {}, smallest_shown=SMALLEST_SHOWN):
        counted = count_values(read.column(change.name, for_counting=True))
        columns.append(
            {
                "name": change.name,
                "kind": change.kind,
                "n_values": change.n_values_before,
                "missing": _masked(table.column(change.name).null_count),
                "alone": _masked(counted.n_single),
                "is_near_unique": counted.is_near_unique,
                "shape": change.before,
            }
        )
    n_cells = table.num_rows * table.num_columns
    missing = sum(table.column(name).null_count for name in table.column_names)
    return {
        "n_records": table.num_rows,
        "n_missing": _masked(missing),
        "share_missing": missing / n_cells if n_cells else 0.0,
        "n_bytes": file.stat().st_size,
        "columns": columns,
    }


@dataclass(frozen=True)
class _Group:
    """The group of one person.

    Attributes
    ----------
    before : pyarrow.Table
        The original records of its members.
    after : dict of str to (str or None)
        The value of each column that all of them have in the release.
    """

    before: Any
    after: dict[str, str | None]


def _group_of_one(original: Any, released: Any, names: list[str], seed: int) -> _Group | None:
    """Return the group of one person, drawn by a seed.

    With suppressed records, rows do not correspond, and there is none.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    shown = [name for name in names if name in released.column_names]
    if released.num_rows != original.num_rows or not shown:
        return None
    person = int(np.random.default_rng(seed).integers(released.num_rows))
    is_member, after = pa.chunked_array([np.ones(released.num_rows, bool)]), {}
    for name in shown:
        column = released.column(name)
        column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        own = column[person]
        same = pc.equal(column, own).fill_null(False) if own.is_valid else column.is_null()
        is_member = pc.and_(is_member, same)
        after[name] = _as_text(own.as_py())
    return _Group(original.select(shown).filter(is_member), after)


def _values_of(column: Any) -> dict[str, Any]:
    """Return the most frequent values of a column and their counts, how many there are, and the ends of numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counted = sorted(column.value_counts().to_pylist(), key=lambda one: -one["counts"])
    before = [(_as_text(one["values"]), one["counts"]) for one in counted]
    ends = None
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        ends = [_as_text(end) for end in pc.min_max(column).as_py().values()]
    return {"before": before[:_MOST_VALUES], "n": len(before), "ends": ends}


def _as_text(value: Any) -> str | None:
    return None if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _masked(n: int) -> int | None:
    """Return a number of records; None for a few."""
    return None if 0 < n < SMALLEST_SHOWN else int(n)


def _first_target(table: Any) -> str:
    """Return what a model may be meant to predict: the last column with few values, or else the last one."""
    from sfumato.frames import read_table
    from sfumato.schema import count_values

    read = read_table(table)
    for name in reversed(table.column_names):
        if 2 <= count_values(read.column(name, for_counting=True)).n_distinct <= _MOST_CLASSES:
            return str(name)
    return str(table.column_names[-1])


# -- the process -------------------------------------------------------------------------------------------------


def main() -> None:
    """Do the tasks that come in, one after the other, until there are no more."""
    give_back_large_arrays()  # as the commands do
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what packages print is not for the server
    sys.stdout = sys.stderr = os.fdopen(1, "w")

    def tell(kind: str, **content: Any) -> None:
        out.write(json.dumps({"kind": kind, **content}, ensure_ascii=True) + "\n")
        out.flush()

    def stop(number: int, frame: object) -> NoReturn:
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its children itself
    worker = Worker()
    try:
        for line in sys.stdin:
            task = json.loads(line)
            _do(worker, tell, task.pop("task"), task)
    except (Stopped, BrokenPipeError):
        os._exit(0)


def _do(worker: Worker, tell: Tell, name: str, arguments: dict[str, Any]) -> None:
    """Do one task and tell how it ended."""
    from sfumato.studio.failures import why_of

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library tells the reporter
            getattr(worker, name)(tell, **arguments)
        tell("done")
    except Exception as error:
        why, sentence = why_of(error)
        tell("failed", why=why, sentence=sentence)


if __name__ == "__main__":
    main()
