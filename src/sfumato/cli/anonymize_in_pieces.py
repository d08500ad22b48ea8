# SPDX-License-Identifier: Apache-2.0
"""``sfumato anonymize`` with a Parquet file that is worked through piece by piece.

The model is trained, and what anonymization costs is measured, on records drawn at random where there are more than a
million; then it predicts piece by piece, and all records are anonymized. Up to a million the result is that in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.checking import Checks, check_release
from sfumato.auditing.methods import Method, rewritten_columns
from sfumato.auditing.pipeline import Job, compare_models
from sfumato.auditing.utility import fit, growing, guide_of, read_target, rows_of
from sfumato.backends.parquet.reader import ParquetFiles
from sfumato.cli.anonymize_in_memory import Made, note_method, note_target, report, write_partition
from sfumato.cli.out_of_core import progress_of
from sfumato.cli.request import check_schema
from sfumato.errors import ParameterError
from sfumato.files.table_file import FileTable, ReadingOptions, table_in_memory, unfinished
from sfumato.files.verified_output import ORDER_KEPT, Recount, SensitiveCount, check_holds, count_sensitive
from sfumato.frames import read_table
from sfumato.grouping import number_values
from sfumato.parquet import fit_transform
from sfumato.verification import GroupCounter

if TYPE_CHECKING:
    from sfumato.backends.blocks.table import BlockTable
    from sfumato.cli.console import Console
    from sfumato.files.table_file import Location
    from sfumato.models import Task

MOST_TRAINED_ON = 1_000_000
"""Records that the model is trained on."""


def anonymize_pieces(
    console: Console,
    file: Location,
    files: BlockTable,
    request: Method,
    task: Task | None,
    test_fraction: float,
    output: Path,
    save: Path | None,
    *,
    keep_order: bool = False,
) -> None:
    """Measure on a split of some records, then anonymize all of them, write and judge."""
    if files.n_records < request.k:
        raise ParameterError(
            f"--k {request.k} with {files.n_records:,} records: expected at most as many as there are records. Lower k."
        )
    note_method(console, request)
    target, utility, model = None, None, None
    if request.target is not None:
        with console.step(f"reading {min(files.n_records, MOST_TRAINED_ON):,} of {files.n_records:,} records"):
            some = drawn(files, MOST_TRAINED_ON, request.seed)
        if some.num_rows < files.n_records:
            console.note(f"the model is trained and tested on {some.num_rows:,} records that were drawn at random.")
        else:
            check_schema(request, some)
        target = read_target(some, request.target, task)
        note_target(console, some, request, target)
        job = Job(request, table_in_memory(some), target)
        compared = compare_models(console, job, test_fraction)
        utility = None if compared is None else compared.utility
        del compared
        if request.needs_model:
            known = np.flatnonzero(target.known)
            with console.step(f"training the guide on {len(known):,} records"):
                fitted = fit(job.new_model(), job.features(rows_of(some, known)), target.values[known])
            model = PiecewiseGuide(fitted, request)
        del some, job
    if keep_order:
        console.note(ORDER_KEPT, is_warning=True)
    anonymizer = _new_anonymizer(request)
    column = request.guide_column or (request.target if request.guide == "labels" else None)
    with unfinished(output, *([save] if save is not None else [])) as (temporary, *beside):
        with console.step(growing(f"anonymizing all {files.n_records:,} records piece by piece")):
            made = fit_transform(
                anonymizer, files, temporary,
                guide_column=column, model=model, shuffle=not keep_order, progress=progress_of(console),
            )  # fmt: skip
        with console.step("counting the groups of the written file"):
            counted = _counted(temporary, anonymizer, files, request, made.order)
            check_holds(counted, "the written file")
        for path in beside:
            write_partition(path, anonymizer, request, FileTable(None, "parquet", None, ReadingOptions()))
    with console.step("checking what the groups do not hide"):
        checks = _checks(files, output, anonymizer, request, counted)
    outcome = Made(anonymizer.schema_, counted, checks, float(anonymizer.information_loss_))
    report(console, file, request, target, utility, outcome, output, save, keep_order=keep_order)


def _checks(files: BlockTable, output: Path, anonymizer: Any, request: Method, counted: Recount) -> Checks:
    """Check the release as in memory, where that does not take much of it."""
    import pyarrow as pa

    written, rewritten = ParquetFiles(output), rewritten_columns(anonymizer)
    if files.n_records > MOST_TRAINED_ON:
        unchanged = [name for name in written.names if name not in rewritten]
        return Checks(request.k, files.n_records, unchanged, counted.n_groups)
    before, after = (pa.concat_tables(list(each.batches())).unify_dictionaries() for each in (files, written))
    return check_release(
        before,
        after,
        request.quasi_identifiers,
        rewritten,
        k=request.k,
        target=request.target,
        categorical=request.categorical,
    )


class PiecewiseGuide:
    """A trained model as `fit_transform` asks it: about all columns that do not get lost on the way."""

    def __init__(self, model: Any, request: Method) -> None:
        self._model, self._request = model, request

    def predict(self, piece: Any) -> NDArray[Any]:
        """Return probabilities or predictions, whichever was asked for."""
        assert self._request.guide is not None  # or no model would have been trained
        return guide_of(self._model, self._request.features(piece), self._request.guide)


def drawn(files: BlockTable, most: int, seed: int) -> Any:
    """Return all records, or so many drawn at random, in their order."""
    import pyarrow as pa

    if files.n_records <= most:
        return pa.concat_tables(list(files.batches())).unify_dictionaries()
    rows = np.sort(np.random.default_rng(seed).choice(files.n_records, most, replace=False))
    parts, start = [], 0
    for batch in files.batches():
        own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + batch.num_rows)] - start
        parts.append(batch.take(pa.array(own)))
        start += batch.num_rows
    return pa.concat_tables(parts).unify_dictionaries()


def _new_anonymizer(request: Method) -> Any:
    """Make an anonymizer; `fit_transform` itself sees to it that the column that guides does not leave."""
    dropped = [name for name in request.dropped if name != request.guide_column]
    return replace(request, dropped=dropped).new_anonymizer()


def _counted(path: Path, anonymizer: Any, files: BlockTable, request: Method, order: NDArray[Any] | None) -> Recount:
    """Count the groups of the written file, in records or in persons; `order` is the one that it was written in."""
    names = rewritten_columns(anonymizer)
    persons = None if request.unit is None else _numbers(files, request.unit)
    if persons is not None and order is not None:
        persons = persons[order]
    counter = GroupCounter(names, None if persons is None else int(persons.max()) + 1)
    start = 0
    for batch in ParquetFiles(path).batches(names or None):
        counter.add(batch, None if persons is None else persons[start : start + batch.num_rows])
        start += batch.num_rows
    n_records = counter.sizes()
    sizes = n_records if persons is None else counter.n_distinct()
    n_small = int(n_records[sizes < request.k].sum())
    return Recount(sizes, files.n_records, n_small, request.k, tuple(_sensitive_counts(path, names, request)))


def _sensitive_counts(path: Path, names: list[str], request: Method) -> Iterator[SensitiveCount]:
    """Count the sensitive values by group; one column at a time is held."""
    if request.l is None and request.t is None:
        return
    written = ParquetFiles(path)
    for name in request.sensitive:
        values = _numbers(written, name)
        counter = GroupCounter(names, int(values.max()) + 1)
        start = 0
        for batch in written.batches(names or None):
            counter.add(batch, values[start : start + batch.num_rows])
            start += batch.num_rows
        yield count_sensitive(name, np.bincount(values), [counter.counts()], request.l, request.t)


def _numbers(files: BlockTable, name: str) -> NDArray[np.int64]:
    """Return a number for the value of every record, such as a person; that column is held."""
    import pyarrow as pa

    whole = read_table(pa.concat_tables(list(files.batches([name]))).unify_dictionaries())
    return number_values(whole.column(name, for_counting=True)).astype(np.int64)
