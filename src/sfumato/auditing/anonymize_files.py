# SPDX-License-Identifier: Apache-2.0
"""Anonymize a table by a policy, in memory or out of core, and check the release without attacking it.

Out of core, the model is trained and its cost is measured on a random sample of at most a million records; then all
records are anonymized block by block. Up to a million records, the result is the same as in memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize import METHODS
from sfumato.auditing.methods import BY_COUNTS, Method, rewritten_columns
from sfumato.auditing.open_tables import example_of, progress_of
from sfumato.auditing.pipeline import (
    compare_models,
    partition_writer,
    publish,
    ready_to_write,
    release_all,
)
from sfumato.auditing.policy_job import PolicyJob, check_enough, check_schema, open_job, settle
from sfumato.auditing.release_checks import Checks, check_release
from sfumato.auditing.target_values import counts_of_target, warn_of_target
from sfumato.auditing.utility import Target, Utility, fit, growing, guide_of, read_target, rows_of
from sfumato.backends.parquet.reader import ParquetFiles
from sfumato.errors import RealRecordsWarning, Sentence, named
from sfumato.files.table_file import FileTable, format_of, listed, table_in_memory, unfinished
from sfumato.files.verified_output import ORDER_KEPT, Recount, SensitiveCount, check_holds, count_sensitive, recount
from sfumato.fingerprints import save_beside
from sfumato.frames import read_table
from sfumato.grouping import number_values
from sfumato.parquet import fit_transform
from sfumato.policy import Policy
from sfumato.progress import Reporter
from sfumato.representatives import REPRESENTATIVES
from sfumato.verification import GroupCounter

if TYPE_CHECKING:
    from sfumato.backends.blocks.block_table import BlockTable
    from sfumato.schema import Schema

MOST_TRAINED_ON = 1_000_000
"""Records that the model is trained on out of core."""


@dataclass(frozen=True)
class Anonymized:
    """A release, the counts that judged it, and its cost.

    Attributes
    ----------
    policy : Policy
    method : Method
        Every column in its role.
    schema : Schema
    target : Target or None
    utility : Utility or None
        None if no model was measured.
    counted : Recount
        Counted on the file that was read back, or in memory if none was written.
    checks : Checks
    information_loss : float
    n_suppressed : int
    """

    policy: Policy
    method: Method
    schema: Schema
    target: Target | None
    utility: Utility | None
    counted: Recount
    checks: Checks
    information_loss: float
    n_suppressed: int = 0

    @property
    def dropped(self) -> list[str]:
        """Columns that are not released, the unit among them."""
        return list(dict.fromkeys([*self.schema.dropped, *self._hidden]))

    @property
    def unchanged(self) -> list[str]:
        """Columns that are released unchanged."""
        changed = {*self.schema.quasi_identifiers, *self._hidden}
        if self.method.target is not None and self.method.target_values.how != "exact":
            changed.add(self.method.target)
        return [name for name in self.schema.released if name not in changed]

    @property
    def judged_on(self) -> str:
        """The records that were counted."""
        return "the result in memory" if self.policy.file("release") is None else "the written file"

    @property
    def _hidden(self) -> list[str]:
        unit = self.method.unit
        return [] if unit is None or unit in self.method.keep else [unit]


def anonymize_table(reporter: Reporter, policy: Policy, table: FileTable | BlockTable, n_jobs: int = 1) -> Anonymized:
    """Measure a model on a split, then anonymize all records, write the release and judge it.

    Parameters
    ----------
    reporter : Reporter
    policy : Policy
        Its gate and its attacks are not run; `sfumato.run` does that.
    table : FileTable or BlockTable
    n_jobs : int
    """
    if isinstance(table, FileTable):
        return _in_memory(reporter, open_job(reporter, policy, n_jobs, table=table))
    return _out_of_core(reporter, policy, table, n_jobs)


def obstacle_to_blocks(policy: Policy) -> str | None:
    """Return why a policy cannot run out of core; None if it can."""
    output, method, where = policy.file("release"), policy.get("method", "name"), named("out_of_core", True)
    otherwise = f"or {named('out_of_core', False)}"
    if output is None or format_of(output) != "parquet":
        return f"{where} without a Parquet file to write: expected {named('output', 'FILE.parquet')}."
    if method not in BY_COUNTS:
        return (
            f"{where} with the method {method}, which needs all records at once: expected "
            f"{', '.join(BY_COUNTS[:-1])} or {BY_COUNTS[-1]}. Choose one of them, {otherwise}."
        )
    if policy.get("columns", "hierarchies"):
        return f"{where} with {named('hierarchies')}: expected none, {otherwise}."
    if policy.get("method", "suppression_limit"):
        return f"{where} with {named('suppression_limit')}: expected 0, since all records are kept, {otherwise}."
    if policy.get("method", "target_values") != "exact":
        return f"{where} with {named('target_values')}: expected exact values, {otherwise}."
    return None


def _in_memory(reporter: Reporter, job: PolicyJob) -> Anonymized:
    original, target, method = job.table, job.target, job.method
    _note_method(reporter, method)
    if target is not None:
        _note_target(reporter, method, target)
    compared = compare_models(reporter, job, job.policy.get("model", "test_fraction"))
    utility = None if compared is None else compared.utility
    del compared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RealRecordsWarning)  # the checks below say so, too
        anonymizer, release, persons = release_all(reporter, job)
    rewritten = rewritten_columns(anonymizer)
    released, persons, _ = ready_to_write(reporter, job.policy, release.table, persons)

    def judge(read: Any) -> Recount:
        return recount(read, rewritten, method.k, units=persons, **method.promises())

    beside = partition_writer(job.policy, method, anonymizer, job.source.style)
    counted = publish(reporter, job, released, judge, beside)
    with reporter.step("checking what the groups do not hide"):
        checks = _check(original, released, anonymizer, method)
    loss = float(release.measures["information_loss"])
    return Anonymized(
        job.policy, method, anonymizer.schema_, target, utility, counted, checks, loss, release.n_suppressed
    )


def _check(original: Any, released: Any, anonymizer: Any, method: Method) -> Checks:
    return check_release(
        original,
        released,
        method.quasi_identifiers,
        rewritten_columns(anonymizer),
        k=method.k,
        target=method.target,
        categorical=method.categorical,
    )


def _note_method(reporter: Reporter, method: Method) -> None:
    """Note how groups are formed without a model, and warn of sensitive columns that no criterion protects."""
    if method.target is None and method.guide_column is None:
        reporter.note(
            Sentence(
                f"no {named('target')}, so no model is trained and no accuracy measured: "
                f"{METHODS[method.method].facts.sentence}. With {named('target')}, groups would follow a model's "
                "predictions."
            )
        )
    if method.sensitive and method.l is None and method.t is None:
        reporter.note(
            Sentence(
                f"no {named('l')} and no {named('t')}: all records of a group may share one value of "
                f"{listed(method.sensitive)}, which is then known of each of them. Add {named('l', 2)} or more, or "
                f"{named('t', 0.3)} or less."
            ),
            is_warning=True,
        )


def _note_target(reporter: Reporter, method: Method, target: Target) -> None:
    """Note records without a target, and representatives that are real records."""
    n_unknown = int((~target.known).sum())
    if n_unknown:
        reporter.note(
            f"{n_unknown:,} records have no {method.target!r}; they are anonymized, but nothing is trained on them."
        )
    if not METHODS[method.method].facts.writes_labels and REPRESENTATIVES[method.representative].facts.is_real_person:
        reporter.note(f"representative {method.representative}: each group shows the values of one real record.")


# -- out of core --------------------------------------------------------------------------------------------------


def _out_of_core(reporter: Reporter, policy: Policy, blocks: BlockTable, n_jobs: int) -> Anonymized:
    policy, method = settle(reporter, policy, example_of(blocks), n_jobs)
    check_enough(policy, blocks.n_records)
    _note_method(reporter, method)
    target, utility, guide = _trained(reporter, policy, method, blocks)
    is_kept_order = policy.get("data", "keep_order") == "yes"
    if is_kept_order:
        reporter.note(ORDER_KEPT, is_warning=True)
    # `fit_transform` itself drops the column that guides.
    dropped = [name for name in method.dropped if name != method.guide_column]
    anonymizer = replace(method, dropped=dropped).new_anonymizer()
    column = method.guide_column or (method.target if method.guide == "labels" else None)
    output, artifact = policy.file("release"), policy.file("artifact")
    assert output is not None  # see `obstacle_to_blocks`
    with unfinished(output, *([artifact] if artifact is not None else [])) as (temporary, *beside):
        with reporter.step(growing(f"anonymizing all {blocks.n_records:,} records out of core")):
            made = fit_transform(
                anonymizer, blocks, temporary,
                guide_column=column, model=guide, shuffle=not is_kept_order, progress=progress_of(reporter),
            )  # fmt: skip
        with reporter.step("counting the groups of the written file"):
            counted = _counted(temporary, anonymizer, blocks, method, made.order)
            check_holds(counted, "the written file")
        for path, write in zip(beside, partition_writer(policy, method, anonymizer).values(), strict=True):
            write(path, {})
    if artifact is not None:
        save_beside(None, artifact)  # a table out of core has none; those of a replaced partition go
    with reporter.step("checking what the groups do not hide"):
        checks = _check_blocks(blocks, output, anonymizer, method, counted)
    loss = float(anonymizer.information_loss_)
    return Anonymized(policy, method, anonymizer.schema_, target, utility, counted, checks, loss)


def _trained(
    reporter: Reporter, policy: Policy, method: Method, blocks: BlockTable
) -> tuple[Target | None, Utility | None, BlockGuide | None]:
    """Measure a model on some records, and train the one that guides the groups of all."""
    if method.target is None:
        return None, None, None
    with reporter.step(f"reading {min(blocks.n_records, MOST_TRAINED_ON):,} of {blocks.n_records:,} records"):
        some = sample_records(blocks, MOST_TRAINED_ON, method.seed)
    if some.num_rows < blocks.n_records:
        reporter.note(f"the model is trained and tested on {some.num_rows:,} records that were drawn at random.")
    else:
        check_schema(method, some, method.sensitive if method.l is not None or method.t is not None else ())
    target = read_target(some, method.target, policy.get("model", "task"))
    _note_target(reporter, method, target)
    counts = counts_of_target(some, method.target, method.target_values)
    warn_of_target(reporter, counts, method.target, method.target_values)
    job = PolicyJob(method, table_in_memory(some), target, policy)
    compared = compare_models(reporter, job, policy.get("model", "test_fraction"))
    utility = None if compared is None else compared.utility
    del compared
    if not method.needs_model:
        return target, utility, None
    known = np.flatnonzero(target.known)
    with reporter.step(f"training the guide on {len(known):,} records"):
        model = fit(job.new_model(), job.features(rows_of(some, known)), target.values[known])
    return target, utility, BlockGuide(model, method)


class BlockGuide:
    """A trained model that `fit_transform` queries block by block."""

    def __init__(self, model: Any, method: Method) -> None:
        self._model, self._method = model, method

    def predict(self, block: Any) -> NDArray[Any]:
        """Return probabilities or predictions, as the method asks for."""
        assert self._method.guide is not None  # or no model would have been trained
        return guide_of(self._model, self._method.features(block), self._method.guide)


def sample_records(blocks: BlockTable, most: int, seed: int) -> Any:
    """Return all records, or `most` of them drawn at random, in their order."""
    import pyarrow as pa

    if blocks.n_records <= most:
        return pa.concat_tables(list(blocks.batches())).unify_dictionaries()
    rows = np.sort(np.random.default_rng(seed).choice(blocks.n_records, most, replace=False))
    parts, start = [], 0
    for batch in blocks.batches():
        own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + batch.num_rows)] - start
        parts.append(batch.take(pa.array(own)))
        start += batch.num_rows
    return pa.concat_tables(parts).unify_dictionaries()


def _check_blocks(blocks: BlockTable, output: Path, anonymizer: Any, method: Method, counted: Recount) -> Checks:
    """Check the release as in memory if it is small enough for that."""
    written = ParquetFiles(output)
    if blocks.n_records > MOST_TRAINED_ON:
        rewritten = rewritten_columns(anonymizer)
        unchanged = [name for name in written.names if name not in rewritten]
        return Checks(method.k, blocks.n_records, unchanged, counted.n_groups)
    before, after = (sample_records(each, MOST_TRAINED_ON, 0) for each in (blocks, written))
    return _check(before, after, anonymizer, method)


def _counted(path: Path, anonymizer: Any, blocks: BlockTable, method: Method, order: NDArray[Any] | None) -> Recount:
    """Count the groups of the written file, in records or in persons; `order` is its order of the records."""
    names = rewritten_columns(anonymizer)
    persons = None if method.unit is None else _numbers(blocks, method.unit)
    if persons is not None and order is not None:
        persons = persons[order]
    counter = _count(ParquetFiles(path), names, persons)
    n_records = counter.sizes()
    sizes = n_records if persons is None else counter.n_distinct()
    n_small = int(n_records[sizes < method.k].sum())
    return Recount(sizes, blocks.n_records, n_small, method.k, tuple(_sensitive_counts(path, names, method)))


def _sensitive_counts(path: Path, names: list[str], method: Method) -> Iterator[SensitiveCount]:
    """Count the sensitive values by group; one column at a time is in memory."""
    if method.l is None and method.t is None:
        return
    written = ParquetFiles(path)
    for name in method.sensitive:
        values = _numbers(written, name)
        counts = _count(written, names, values).counts()
        yield count_sensitive(name, np.bincount(values), [counts], method.l, method.t)


def _count(written: ParquetFiles, names: list[str], values: NDArray[np.int64] | None) -> GroupCounter:
    """Count the groups of a file, and the values in each if there are any."""
    counter, start = GroupCounter(names, None if values is None else int(values.max()) + 1), 0
    for batch in written.batches(names or None):
        counter.add(batch, None if values is None else values[start : start + batch.num_rows])
        start += batch.num_rows
    return counter


def _numbers(blocks: BlockTable, name: str) -> NDArray[np.int64]:
    """Return a number for the value of every record in one column, which is read into memory."""
    import pyarrow as pa

    whole = read_table(pa.concat_tables(list(blocks.batches([name]))).unify_dictionaries())
    return number_values(whole.column(name, for_counting=True)).astype(np.int64)
