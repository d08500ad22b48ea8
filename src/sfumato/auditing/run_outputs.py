# SPDX-License-Identifier: Apache-2.0
"""The files that running a policy writes: their names, checks before any work, and the writers of the documents.

Files that describe others come last. ``audit.json`` is the very last: it holds the SHA-256 of all others, and the
report holds those of the release and of what belongs to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sfumato.auditing.pipeline import write_json
from sfumato.errors import ParameterError
from sfumato.files.publishing import mixture_in, unfinished
from sfumato.files.table_file import check_output, format_of
from sfumato.files.verified_output import Writer, write_beside
from sfumato.policy import Policy
from sfumato.progress import Reporter
from sfumato.report.data import Audit
from sfumato.report.risk_data import FileHash

_ROLES = ("release", "artifact", "publication", "report", "audit")


def outputs_of(policy: Policy) -> dict[str, Path]:
    """Return the files to write by role, in the order in which they are written."""
    if policy.file("release") is None:
        return {}
    paths = {name: policy.file(name) for name in _ROLES}
    return {name: path for name, path in paths.items() if path is not None}


def written(policy: Policy, *, is_released: bool = True) -> tuple[Path, ...]:
    """Return the files that were written, in the order in which people look at them."""
    outputs = outputs_of(policy)
    names = ("release", "artifact", "publication", "audit", "report") if is_released else ("audit", "report")
    return tuple(outputs[name] for name in names if name in outputs)


def check_outputs(reporter: Reporter, policy: Policy, *, force: bool) -> None:
    """Raise ParameterError before any work for outputs that cannot be written."""
    outputs = outputs_of(policy)
    if not outputs:
        return  # nothing is written
    read = (policy.path, policy.source(), policy.file("holdout"), *policy.files("earlier"))
    inputs = [place for place in read if place is not None]
    others = {name: path for name, path in outputs.items() if name != "audit"}
    index = outputs.get("audit")
    if index is not None and (mixture := mixture_in(others, index)):
        reporter.note(mixture, is_warning=True)
    named: dict[Path, str] = {}
    for name, path in outputs.items():
        check_output(path, force=force, inputs=inputs, option=policy.where("data", name))
        earlier = named.setdefault(path.resolve(), name)
        if earlier != name:
            raise ParameterError(
                f"{policy.where('data', name)} and {earlier} are the same file: expected one file each. Rename one."
            )
    format_of(outputs["release"])  # an ending that says nothing is refused before any work


def document_writers(policy: Policy, made: list[Audit]) -> dict[Path, Writer]:
    """Return the writers of the report and the audit by path.

    Call them after the audit was made, the first of `made`. It gets the hashes of all files that were written.
    """
    outputs = outputs_of(policy)
    writers: dict[Path, Writer] = {}

    def write_report(path: Path, digests: Mapping[Path, str]) -> None:
        audit = _with_hashes(made[0], outputs, digests)
        words = audit.to_markdown if outputs["report"].suffix == ".md" else audit.to_html
        path.write_text(words(), encoding="utf-8")

    def write_audit(path: Path, digests: Mapping[Path, str]) -> None:
        made[0] = _with_hashes(made[0], outputs, digests)
        write_json(path, made[0].to_dict())

    for name, write in {"report": write_report, "audit": write_audit}.items():
        if name in outputs:
            writers[outputs[name]] = write
    return writers


def _with_hashes(audit: Audit, outputs: Mapping[str, Path], digests: Mapping[Path, str]) -> Audit:
    known = {role: FileHash(path.name, digests[path]) for role, path in outputs.items() if path in digests}
    return replace(audit, outputs=known)


def write_documents(documents: Mapping[Path, Callable[[Path, Mapping[Path, str]], None]]) -> None:
    """Write documents without a release; all of them appear, or none."""
    with unfinished(*documents) as paths:
        write_beside(paths, documents, {})


def moment() -> datetime:
    """Return the present time in UTC, or the one that SOURCE_DATE_EPOCH says, so that results can be made again."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if said is None:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(said), UTC)
    except (ValueError, OverflowError, OSError):
        raise ParameterError(
            "SOURCE_DATE_EPOCH is not a number of seconds since 1970: expected an integer. Correct it, or remove it."
        ) from None
