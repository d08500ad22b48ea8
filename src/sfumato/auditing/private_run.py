# SPDX-License-Identifier: Apache-2.0
"""Run a policy with a mechanism: noisy counts of a partition's cells, entered in a ledger, written and read back.

The report tells nothing of the records that the release does not tell: no exact number, no model, no attack.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sfumato.anonymize.private_release import PrivateSettings, release_privately
from sfumato.auditing.column_changes import describe_sizes
from sfumato.auditing.pipeline import versions
from sfumato.auditing.policy_tables import read_source
from sfumato.auditing.run_outputs import document_writers, moment
from sfumato.auditing.saved_documents import load_partition
from sfumato.documents import plain
from sfumato.errors import GuaranteeError, ParameterError, named
from sfumato.files.csv_reading import CsvStyle
from sfumato.files.table_file import unknown_column
from sfumato.files.verified_output import Recount, judged_in_memory, recount, write_judged
from sfumato.fingerprints import Fingerprints
from sfumato.frames import read_table
from sfumato.policy import Policy
from sfumato.private.ledger import PrivacyLedger
from sfumato.progress import Reporter
from sfumato.report.data import Audit
from sfumato.verification import count_groups


def run_privately(reporter: Reporter, policy: Policy, table: Any = None) -> tuple[Audit, Any]:
    """Release the table of a policy by its mechanism; return the audit and the released table.

    Parameters
    ----------
    reporter : Reporter
    policy : Policy
        With a mechanism under ``[privacy]``; its outputs were checked.
    table : frame, optional
        The records, instead of the file that the policy names.

    Raises
    ------
    GuaranteeError
        If the release would pass the budget of the ledger. Nothing is written then.
    """
    own, columns = policy.values["privacy"], policy.values["columns"]
    path = policy.folder / own["partition"]
    partition = replace(load_partition(path).partition, fingerprints=Fingerprints.load(path))
    ledger = _ledger(policy)
    source = read_source(reporter, policy, table)
    records = _without(policy, source.table, [*columns["identifiers"]])
    target = columns["target"]
    y = None if target is None else records.column(target)
    X = records if target is None else records.drop_columns([target])
    settings = PrivateSettings(
        own["mechanism"], own["epsilon"], None, own["rate"], own["k"], own["labels"], columns["unit"],
        own["most_per_person"], own["fitted_on"], ledger,
    )  # fmt: skip
    with reporter.step(f"counting the records of {partition.n_groups:,} cells and adding noise"):
        made = release_privately(partition, X, read_table(X, categorical=partition.categorical), y, settings)
    released = made.table if target is None else made.table.append_column(target, [made.target])
    if released.num_rows == 0:
        raise GuaranteeError(
            f"the release has no records: expected some. Its epsilon is spent. Raise {named('epsilon')}, or use a "
            "partition with fewer cells."
        )
    audit = [_audit(policy, source.name, partition, made, released, ledger)]
    _publish(reporter, policy, released, audit)
    return audit[0], released


def _ledger(policy: Policy) -> PrivacyLedger | None:
    own = policy.values["privacy"]
    if own["ledger"] is None:
        return None
    return PrivacyLedger(policy.folder / own["ledger"], epsilon=own["budget_epsilon"], delta=own["budget_delta"])


def _without(policy: Policy, table: Any, dropped: list[str]) -> Any:
    """Return a table without some columns, which it must have; the other roles must name columns, too."""
    said = {name: policy.get("columns", name) for name in ("target", "unit")}
    for name, column in [("identifiers", one) for one in dropped] + [(n, c) for n, c in said.items() if c is not None]:
        if column not in table.column_names:
            raise ParameterError(unknown_column(policy.where("columns", name), column, table.column_names))
    return table.drop_columns(dropped)


def _audit(policy: Policy, name: str, partition: Any, made: Any, released: Any, ledger: Any) -> Audit:
    """Return what readers of the release may know: nothing was computed from the records but the release itself."""
    own = policy.values["privacy"]
    shown = ("mechanism", "epsilon", "rate", "k", "most_per_person")
    notes = [f"Everything on this page follows from the release, whose {released.num_rows:,} records are nobody's."]
    privacy = plain(made.privacy) | {"membership_limit": made.privacy.membership_limit}
    if ledger is not None:
        total = ledger.total()
        privacy["ledger"] = {"n_releases": total.n_releases, "epsilon": total.epsilon, "delta": total.delta}
        notes.append(
            f"All {total.n_releases} releases of the ledger together have epsilon {total.epsilon:.4g} and delta "
            f"{total.delta:.2g}."
        )
    return Audit(
        name=name,
        n_records=released.num_rows,
        n_released=released.num_rows,
        n_suppressed=0,
        method={key: own[key] for key in shown if own[key] is not None} | {"cells": partition.n_groups},
        guarantees=(made.privacy.describe(),),
        gate=(),
        utility=None,
        sizes=describe_sizes(count_groups(released, _rewritten(partition))),
        columns=(),
        risks=(),
        notes=tuple(notes),
        titles=policy.titles,
        versions=versions(),
        smallest_shown=1,
        context=policy.context,
        made_at=moment().isoformat(timespec="seconds"),
        policy_sha256=policy.digest,
        privacy=privacy,
        grouped_by=tuple(_rewritten(partition)),
    )  # no time taken, which grows with the number of records


def _rewritten(partition: Any) -> list[str]:
    return [part.name for parts in partition.values.values() for part in parts]


def _publish(reporter: Reporter, policy: Policy, released: Any, audit: list[Audit]) -> None:
    """Write the release and what describes it; all files appear, or none. The audit gets their hashes."""
    said = policy.values["data"]
    # Not the form that was detected in the file: one record with a strange letter changes the encoding.
    style = CsvStyle(said["encoding"] or "utf-8", separator=said["separator"] or ",", decimal=said["decimal"] or ".")

    def judge(read: Any) -> Recount:
        return recount(read, read.column_names, 1)  # nothing about sizes is promised: it is read back and compared

    output = policy.file("release")
    if output is None:
        judged_in_memory(released, judge=judge, beside={})
        return
    with reporter.step(f"writing {output.name} and reading it back"):
        write_judged(released, output, style=style, judge=judge, beside=document_writers(policy, audit))
