# SPDX-License-Identifier: Apache-2.0
"""``sfumato.evidence``: the files of a run as one pack that an institution can file, with hashes and questionnaires.

A pack holds documents about a release, never the release, the original or the partition: of those it holds the SHA-256.
``verify_evidence`` checks a pack later, beside the release that came with it.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import GuaranteeError, InputError, ParameterError, named
from sfumato.policy import Policy
from sfumato.progress import QuietReporter, Reporter

if TYPE_CHECKING:
    from sfumato.auditing.run import PolicyRun
    from sfumato.report.data import Audit

_CHECKED = ("release", "artifact", "publication")  # outputs that a pack is about
_README = """\
This pack is about one release of a table. It holds documents, not records.

manifest.json        SHA-256 of the files that the pack is about, and of each file in it
audit.json           everything that was measured; audit.schema.json describes its parts
report.html          the same for people; it prints
policy.toml          what was asked for: columns, method, attacks, gate, context
questionnaires.html  questions of authorities and standards, with what was measured filled in (if asked for)
questionnaires.json  the same as data
bom.json             the software that made the pack (CycloneDX)

    sfumato evidence --verify PACK RELEASE

says whether a release is the one that the pack is about, and counts its groups again. Numbers are evidence. Whether a
rule is met, and whether the release may be handed on, is for people to decide.
"""


@dataclass(frozen=True)
class EvidencePack:
    """A pack that was written.

    Attributes
    ----------
    path : Path
    signature : Path or None
        The detached signature beside it.
    manifest : dict
        What the pack is about, and the SHA-256 of each file in it.

    Examples
    --------
    >>> import os, tempfile, pandas as pd, sfumato
    >>> folder = tempfile.mkdtemp()
    >>> names = {"release": "released.csv", "audit": "audit.json", "report": "report.html"}
    >>> policy = sfumato.Policy.of(
    ...     data={role: os.path.join(folder, name) for role, name in names.items()},
    ...     method={"name": "mondrian", "k": 5})
    >>> done = sfumato.run(policy, table=pd.DataFrame({"age": range(20, 80)}))
    >>> made = sfumato.evidence(done, os.path.join(folder, "pack.zip"))
    >>> made.path.name, made.signature, sorted(made.manifest["about"])
    ('pack.zip', None, ['original', 'release'])
    """

    path: Path
    signature: Path | None
    manifest: Mapping[str, Any]


def evidence(
    run: PolicyRun | Policy | str | Path,
    output: str | Path,
    *,
    questionnaires: Sequence[str] = (),
    key: str | Path | None = None,
    date: str | None = None,
    force: bool = False,
    reporter: Reporter | None = None,
) -> EvidencePack:
    """Put what a run of a policy found into one pack, with hashes, versions and questionnaires.

    Parameters
    ----------
    run : PolicyRun, Policy, str or Path
        A run, or a policy that was run: its files are read from where it wrote them.
    output : str or Path
        The pack, a ZIP file; ``.zip`` is added to a name without an ending.
    questionnaires : sequence of {"edpb", "iso27559", "ema", "hipaa", "ehds", "nist"}
        Questions to fill in with what was measured.
    key : str or Path, optional
        A private key of OpenSSH; the signature is written beside the pack, to ``NAME.sig``.
    date : str, optional
        Date of the pack, such as ``2027-01-31``; that of ``SOURCE_DATE_EPOCH`` or today's, where not given.
    force : bool, default=False
        Whether an existing pack may be replaced.
    reporter : Reporter, optional
        Hears of each step.

    Returns
    -------
    EvidencePack

    Raises
    ------
    GuaranteeError
        If the policy, the release or the partition has changed since the run.
    InputError
        If the policy was not run, released nothing, or a file of the run is not there.

    Notes
    -----
    The same files of a run give the same bytes, but for the date and the signature. The pack holds no value of a cell
    but the names of subgroups that the policy asks for, each of at least 30 and at least k people.

    Examples
    --------
    >>> import os, tempfile, pandas as pd, sfumato
    >>> folder = tempfile.mkdtemp()
    >>> table = pd.DataFrame({"age": range(20, 80), "ill": ["no", "no", "yes"] * 20})
    >>> policy = sfumato.Policy.of(
    ...     data={name: os.path.join(folder, file) for name, file in [
    ...         ("release", "released.csv"), ("audit", "audit.json"), ("report", "report.html")]},
    ...     method={"name": "mondrian", "k": 5}, columns={"keep": ["ill"]})
    >>> done = sfumato.run(policy, table=table)
    >>> pack = sfumato.evidence(done, os.path.join(folder, "pack.zip"), questionnaires=["edpb"])
    >>> sfumato.verify_evidence(pack.path, policy.file("release")).belongs_together
    True
    """
    from sfumato.auditing.verify_evidence import MANIFEST, SIGNATURE_SUFFIX, with_ending
    from sfumato.files.packs import pack, sha256, sign
    from sfumato.files.publishing import check_output, unfinished
    from sfumato.report.questionnaires import check_names

    reporter, output = reporter or QuietReporter(), with_ending(Path(output))
    wanted, made_on = check_names(questionnaires), _day(date)
    policy, audit = _policy_and_audit(run)
    signature = None if key is None else output.with_name(output.name + SIGNATURE_SUFFIX)
    paths = [output, *([signature] if signature is not None else [])]
    known = [policy.path, *(policy.file(name) for name in ("file", "audit", *_CHECKED))]
    for path in paths:
        check_output(path, force=force, inputs=[own for own in known if own is not None])
    if output.suffix.lower() != ".zip":
        raise ParameterError(
            f"{named('output', str(output))}: expected a name that ends in .zip, since a pack is a ZIP file, or one "
            "without an ending."
        )
    with reporter.step("checking that the files of the run belong together"):
        notes = _check_files(policy, audit)
        _check_counts(policy, audit)
    for note in notes:
        reporter.note(note, is_warning=True)
    with reporter.step(f"writing {output.name}"):
        entries = _documents(policy, audit, wanted, made_on)
        manifest = _manifest(policy, audit, {name: sha256(content) for name, content in entries.items()}, made_on)
        content = pack({**entries, MANIFEST: _json(manifest)})
        signed = None if key is None else sign(content, Path(key))
        with unfinished(*paths) as temporary:
            temporary[0].write_bytes(content)
            if signed is not None:
                temporary[1].write_bytes(signed)
    return EvidencePack(output, signature, manifest)


def _day(given: str | None) -> dt.date:
    from sfumato.auditing.run_outputs import moment

    if given is None:
        return moment().date()
    try:
        return dt.date.fromisoformat(given)
    except ValueError:
        raise ParameterError(f"{named('date', given)}: expected a date such as 2027-01-31.") from None


def _policy_and_audit(run: PolicyRun | Policy | str | Path) -> tuple[Policy, Audit]:
    """Return a policy and what its run found; raise InputError if it was not run, or released nothing."""
    from sfumato.auditing.run import PolicyRun
    from sfumato.documents import read_document
    from sfumato.report.data import Audit

    if isinstance(run, PolicyRun):
        policy, audit = run.policy, run.audit
    else:
        policy = run if isinstance(run, Policy) else Policy.read(run)
        path = policy.file("audit")
        if path is None or not path.is_file():
            raise InputError(
                f"{policy.where('data', 'audit')}: {'no file' if path is None else repr(str(path))} is not there, "
                "expected the results of a run whose gate passed. Run the policy first: 'sfumato run'."
            )
        audit = Audit.from_dict(read_document(path, "an audit", "sfumato run"))
    if "release" not in audit.outputs or policy.file("release") is None:
        raise InputError(
            f"{audit.name!r} has no written release: expected a run that released one. Run the policy with a release "
            "under [data], and see that its gate passes."
        )
    return policy, audit


def _check_files(policy: Policy, audit: Audit) -> list[str]:
    """Raise if a file of the run has changed or is gone; return notes about what is not as it was, or not there."""
    from sfumato.auditing.pipeline import versions
    from sfumato.files.publishing import fingerprint_of

    if audit.policy_sha256 != policy.digest:
        raise GuaranteeError(
            f"the policy has changed since the run that {policy.get('data', 'audit')!r} is about: expected the policy "
            "as it was. Run it again, or restore it."
        )
    for role in _CHECKED:
        path = policy.file(role)
        if path is None or role not in audit.outputs:
            continue
        if not path.is_file():
            raise InputError(f"the {role} {path.name!r} is not there: expected the file of the run. Put it back.")
        if fingerprint_of(path) != audit.outputs[role].sha256:
            raise GuaranteeError(
                f"the {role} {path.name!r} has changed since the run: expected it as it was written. Run the policy "
                "again, or restore the file."
            )
    notes, source = [], policy.source()
    if other := [name for name, own in versions().items() if audit.versions.get(name) != own]:
        notes.append(
            f"the run had other versions of {', '.join(other)}: bom.json lists those of now, audit.json its own."
        )
    if audit.fingerprint and isinstance(source, Path) and not source.is_file():
        notes.append(f"the original table {source.name!r} is not there; the pack has the hash that the run took of it.")
    elif audit.fingerprint and isinstance(source, Path) and fingerprint_of(source) != audit.fingerprint:
        notes.append(f"the original table {source.name!r} has changed since the run; the pack has the hash of the run.")
    return notes


def _check_counts(policy: Policy, audit: Audit) -> None:
    """Raise GuaranteeError if the groups of the release are not those that the audit has."""
    from sfumato.auditing.verify_evidence import count_release

    path = policy.file("release")
    assert path is not None
    sizes = count_release(path, audit.grouped_by)
    if (int(sizes.min()), len(sizes)) != (audit.sizes.smallest, audit.sizes.n_groups):
        raise GuaranteeError(
            f"the release {path.name!r} has {len(sizes):,} groups, the smallest of {int(sizes.min()):,} records, and "
            f"the audit says {audit.sizes.n_groups:,} and {audit.sizes.smallest:,}: expected the same. Run the policy "
            "again."
        )


def _documents(policy: Policy, audit: Audit, wanted: Sequence[str], made_on: dt.date) -> dict[str, bytes]:
    """Return the content of each file of a pack by name, but for the manifest."""
    from sfumato.auditing.materials import bill_of_materials
    from sfumato.auditing.verify_evidence import AUDIT, POLICY
    from sfumato.report.questionnaire_page import questionnaires_page
    from sfumato.report.questionnaires import fill_in
    from sfumato.report.schema import audit_schema

    said = policy.path.read_bytes() if policy.path is not None else policy.to_toml().encode()
    entries = {
        "readme.txt": _README.encode(),
        AUDIT: audit.to_json().encode(),
        "audit.schema.json": _json(audit_schema()),
        "report.html": audit.to_html().encode(),
        POLICY: said,
        "bom.json": _json(bill_of_materials(f"{made_on.isoformat()}T00:00:00Z")),
    }
    if wanted:
        filled = [fill_in(name, audit) for name in wanted]
        entries["questionnaires.html"] = questionnaires_page(audit, filled).encode()
        entries["questionnaires.json"] = _json({"questionnaires": [own.to_dict() for own in filled]})
    return entries


def _manifest(policy: Policy, audit: Audit, entries: Mapping[str, str], made_on: dt.date) -> dict[str, Any]:
    from sfumato.auditing.verify_evidence import FORMAT, VERSION

    written = {role: own for role, own in audit.outputs.items() if role in _CHECKED}
    about = {role: {"file": own.file, "sha256": own.sha256} for role, own in written.items()}
    if audit.fingerprint:
        about["original"] = {"file": audit.name, "sha256": audit.fingerprint}
    if policy.path is not None:
        about["policy"] = {"file": policy.path.name, "sha256": audit.policy_sha256}
    return {
        "format": FORMAT,
        "version": VERSION,
        "date": made_on.isoformat(),
        "about": about,
        "environment": {
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "system": platform.system(),
            "machine": platform.machine(),
        },
        "entries": dict(sorted(entries.items())),
    }


def _json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1, sort_keys=True).encode()
