# SPDX-License-Identifier: Apache-2.0
"""What ``sfumato anonymize`` does with a table: train a guide, anonymize, retrain, write, and judge what was written.

``anonymize`` parses and calls; ``anonymize_in_pieces`` does the same with a file that is not held in memory.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.console import Console
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.auditing.checking import Checks
    from sfumato.auditing.methods import Method
    from sfumato.auditing.utility import Target, Utility
    from sfumato.files.table_file import FileTable, Location
    from sfumato.files.verified_output import Recount
    from sfumato.models import Task
    from sfumato.schema import Schema


@dataclass(frozen=True)
class Made:
    """A release as the report needs it: the roles of its columns, what was counted on it, and what it cost."""

    schema: Schema
    counted: Recount
    checks: Checks
    information_loss: float
    n_suppressed: int = 0


def anonymize_table(
    console: Console,
    file: Location,
    source: FileTable,
    request: Method,
    task: Task | None,
    test_fraction: float,
    output: Path | None,
    save: Path | None,
    *,
    keep_order: bool = False,
) -> None:
    """Measure on a split, then anonymize all records, write and judge."""
    from sfumato.auditing.checking import check_release
    from sfumato.auditing.methods import rewritten_columns
    from sfumato.auditing.pipeline import Job, compare_models, release_all
    from sfumato.auditing.utility import read_target
    from sfumato.cli.request import check_schema
    from sfumato.errors import RealRecordsWarning
    from sfumato.files.verified_output import (
        ORDER_KEPT,
        compact_dictionaries,
        formula_warning,
        judged_in_memory,
        recount,
        shuffled,
        write_judged,
    )

    table = source.table
    if table.num_rows < request.k:
        raise ParameterError(
            f"--k {request.k} with {table.num_rows:,} records: expected at most as many as there are records. Lower k."
        )
    check_schema(request, table)
    note_method(console, request)
    target = read_target(table, request.target, task) if request.target is not None else None
    counted_columns = request.sensitive if request.l is not None or request.t is not None else ()
    request.target_values.check("--target-values", target, counted=counted_columns, name=request.target)
    if target is not None:
        note_target(console, table, request, target)
    compared = compare_models(console, Job(request, source, target), test_fraction)
    utility = None if compared is None else compared.utility
    del compared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RealRecordsWarning)  # the checks say so beside the rest
        anonymizer, release, units = release_all(console, Job(request, source, target))
    rewritten = rewritten_columns(anonymizer)
    released = compact_dictionaries(release.table)

    if output is not None and keep_order:
        console.note(ORDER_KEPT, is_warning=True)
    elif output is not None:
        released, units = shuffled(released, units)

    def judge(read: Any) -> Recount:
        return recount(read, rewritten, request.k, units=units, **request.promises())

    if output is not None and (formulas := formula_warning(released, output)):
        console.note(formulas, is_warning=True)
    beside = {save: lambda path, _: write_partition(path, anonymizer, request, source)} if save is not None else {}
    if output is not None:
        with console.step(f"writing {output.name}, reading it back and counting its groups"):
            counted = write_judged(released, output, style=source.style, judge=judge, beside=beside)
    else:
        with console.step("counting the groups"):
            counted = judged_in_memory(released, judge=judge, beside=beside)
    with console.step("checking what the groups do not hide"):
        checks = check_release(
            table,
            released,
            request.quasi_identifiers,
            rewritten,
            k=request.k,
            target=request.target,
            categorical=request.categorical,
        )
    loss = float(release.measures["information_loss"])
    made = Made(anonymizer.schema_, counted, checks, loss, release.n_suppressed)
    report(console, file, request, target, utility, made, output, save, keep_order=keep_order)


def note_method(console: Console, request: Method) -> None:
    """Say what forms the groups where no model does, and what nothing guards."""
    if request.target is None and request.guide_column is None:
        what = {
            "information-loss": "so that they keep as much detail as possible (information loss)",
            "mondrian": "by cuts at medians",
            "hilbert": "along a Hilbert curve",
            "r-plus-tree": "as leaves of a spatial index",
            "full-domain": "by one level of its hierarchy for every column",
        }[request.method]
        console.note(
            f"no --target, so no model is trained and no accuracy measured: groups are formed {what}. With --target "
            "COLUMN they would follow a model's predictions."
        )
    if request.sensitive and request.l is None and request.t is None:
        from sfumato.files.table_file import listed

        console.note(
            f"no --l and no --t: all records of a group may share one value of {listed(request.sensitive)}, which is "
            "then known of each of them. Add --l 2 or more, or --t 0.3 or less.",
            is_warning=True,
        )


def note_target(console: Console, table: Any, request: Method, target: Target) -> None:
    """Say what a user may want to know of the target and of what stands for a group."""
    from sfumato.auditing.target_values import counts_of_target, warn_of_target

    assert request.target is not None
    n_unknown = int((~target.known).sum())
    if n_unknown:
        console.note(
            f"{n_unknown:,} records have no {request.target!r}; they are anonymized, but nothing is trained on them."
        )
    counts = counts_of_target(table, request.target, request.target_values)
    warn_of_target(console, counts, request.target, request.target_values)
    if request.representative in ("member", "model", "sample"):
        console.note(f"representative {request.representative}: each group shows the values of one real record.")


def write_partition(path: Path, anonymizer: Any, request: Method, source: FileTable) -> None:
    """Save the partition with what 'sfumato apply' needs to read a later file the same way."""
    from sfumato.auditing.methods import partition_document

    document = partition_document(anonymizer, k=request.k, unit=request.unit, keep=request.keep, style=source.style)
    path.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")), encoding="utf-8")


def report(
    console: Console,
    file: Location,
    request: Method,
    target: Target | None,
    utility: Utility | None,
    made: Made,
    output: Path | None,
    save: Path | None,
    *,
    keep_order: bool,
) -> None:
    """Say what was released, what it cost and whether k holds."""
    from sfumato.auditing.utility import utility_rows
    from sfumato.files.verified_output import blurred, verdict

    hidden = () if request.unit is None or request.unit in request.keep else (request.unit,)
    judged_on = "the written file" if output is not None else "the result in memory"
    schema, counted = made.schema, made.counted
    changed = {*schema.quasi_identifiers, *([] if request.target_values.how == "exact" else [request.target])}
    unchanged = [name for name in schema.released if name not in changed and name not in hidden]
    if console.as_json:
        console.result(
            {
                "file": str(file),
                "output": None if output is None else str(output),
                "partition": None if save is None else str(save),
                "method": request.method,
                "k": request.k,
                "l": request.l,
                "t": request.t,
                "target": request.target,
                "target_values": str(request.target_values),
                "task": None if target is None else target.task,
                "model": request.model,
                "guide": request.guide if request.guide_column is None else f"column:{request.guide_column}",
                "representative": None if request.method == "full-domain" else request.representative,
                "quasi_identifiers": request.quasi_identifiers,
                "sensitive": request.sensitive,
                "dropped": [*schema.dropped, *(name for name in hidden if name not in schema.dropped)],
                "unchanged": unchanged,
                "order": None if output is None else "kept" if keep_order else "shuffled",
                "utility": None if utility is None else utility.to_dict(),
                "release": counted.to_dict()
                | {"n_suppressed": made.n_suppressed, "information_loss": made.information_loss},
                "checks": made.checks.to_dict(),
                "holds": counted.holds,
                "judged_on": judged_on,
                "seconds": round(console.seconds, 3),
            }
        )
        return
    if utility is not None:
        console.heading(f"{utility.metric} of {request.model} on {utility.n_test:,} held-out records")
        console.facts(utility_rows(utility))
    console.heading(f"release of {file.name}")
    console.facts(
        [
            ("records", f"{counted.n_records:,}"),
            *([("records left out", blurred(made.n_suppressed, request.k))] if request.suppression_limit else []),
            ("rewritten columns", f"{len(request.quasi_identifiers)}"),
            ("groups", f"{counted.n_groups:,}"),
            ("smallest group", f"{counted.smallest_group:,}"),
            ("median group", f"{counted.median_group:,.0f}"),
            ("information loss (0 none, 1 all)", f"{made.information_loss:.3f}"),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    console.heading("what the groups do not hide")
    for sentence in made.checks.sentences():
        console.text(sentence)
    if request.target_values.how != "exact":
        console.text(f"Target {request.target!r} is released as {request.target_values}.")
    console.verdict(verdict(counted, judged_on, is_by_person=request.unit is not None), holds=counted.holds)
    written = [str(path) for path in (output, save) if path is not None]
    if output is None:
        console.text("No records were written; give -o FILE to release them.")
    if written:
        console.text(f"Written: {', '.join(written)}")
    if utility is not None and not console.quiet:
        console.text(
            f"The {utility.metric} was measured on a split ({utility.n_train:,} records to train); the release was "
            "fitted on all records, with the guide trained on all of them."
        )
