# SPDX-License-Identifier: Apache-2.0
"""Verify a pack of evidence beside the release that came with it, and count the groups of the release again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.documents import MapOf, check_shape, is_text, one_of, parse_json
from sfumato.errors import InputError, ParameterError, named
from sfumato.files.csv_reading import GivenType
from sfumato.files.packs import is_signed_by, sha256, unpack
from sfumato.files.publishing import fingerprint_of
from sfumato.files.table_file import read_file
from sfumato.report.data import Audit
from sfumato.verification import count_groups

FORMAT = "sfumato evidence"
VERSION = 1
MANIFEST, AUDIT, POLICY = "manifest.json", "audit.json", "policy.toml"
"""Entries of a pack that its verification reads."""
SIGNATURE_SUFFIX = ".sig"

_WROTE = "sfumato evidence"
_HASHED = {"file": is_text, "sha256": is_text}
_SHAPE = {
    "format": one_of(FORMAT),
    "version": lambda value: value == VERSION,
    "date": is_text,
    "about": MapOf(_HASHED),
    "entries": MapOf(is_text),
}


@dataclass(frozen=True)
class EvidenceCheck:
    """One thing that was checked: what, whether it holds, and a sentence."""

    name: str
    holds: bool
    sentence: str


@dataclass(frozen=True)
class VerifiedEvidence:
    """What was checked of a pack and a release.

    Attributes
    ----------
    checks : tuple of EvidenceCheck
    smallest_group, n_groups, n_records : int
        Of the release, counted again.
    date : str
        Of the pack.

    Examples
    --------
    >>> import os, tempfile, pandas as pd, sfumato
    >>> folder = tempfile.mkdtemp()
    >>> names = {"release": "released.csv", "audit": "audit.json", "report": "report.html"}
    >>> policy = sfumato.Policy.of(
    ...     data={role: os.path.join(folder, name) for role, name in names.items()},
    ...     method={"name": "mondrian", "k": 5})
    >>> done = sfumato.run(policy, table=pd.DataFrame({"age": range(20, 80)}))
    >>> pack = sfumato.evidence(done, os.path.join(folder, "pack.zip"))
    >>> found = sfumato.verify_evidence(pack.path, policy.file("release"))
    >>> [check.name for check in found.checks if check.holds]
    ['pack', 'audit', 'policy', 'release', 'groups', 'k']
    >>> found.n_records, found.smallest_group >= 5
    (60, True)
    """

    checks: tuple[EvidenceCheck, ...]
    smallest_group: int
    n_groups: int
    n_records: int
    date: str

    @property
    def belongs_together(self) -> bool:
        """Whether everything that was checked holds."""
        return all(check.holds for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and text."""
        checks = [{"name": own.name, "holds": own.holds, "sentence": own.sentence} for own in self.checks]
        return {
            "belongs_together": self.belongs_together,
            "checks": checks,
            "smallest_group": self.smallest_group,
            "n_groups": self.n_groups,
            "n_records": self.n_records,
            "date": self.date,
        }


def verify_evidence(
    pack: str | Path, release: str | Path, *, others: Sequence[str | Path] = (), key: str | Path | None = None
) -> VerifiedEvidence:
    """Check whether a pack of evidence and a release belong together, and count the release's groups again.

    Parameters
    ----------
    pack : str or Path
        What `evidence` wrote; ``.zip`` may be left out.
    release : str or Path
        The release that came with it.
    others : sequence of str or Path, optional
        More files of the run: the policy, the partition, the original. Each must be one that the pack is about.
    key : str or Path, optional
        The public key of the signature beside the pack, ``NAME.sig``. Without it no signature is checked.

    Returns
    -------
    VerifiedEvidence

    Raises
    ------
    InputError
        For a file that is not a pack, or a release that cannot be read.

    Notes
    -----
    Hashes show that files belong together. They do not show who made them: anyone who can write a pack can write
    another one. Only a signature does.

    Examples
    --------
    >>> import os, tempfile, pandas as pd, sfumato
    >>> folder = tempfile.mkdtemp()
    >>> names = {"release": "released.csv", "audit": "audit.json", "report": "report.html"}
    >>> policy = sfumato.Policy.of(
    ...     data={role: os.path.join(folder, name) for role, name in names.items()},
    ...     method={"name": "mondrian", "k": 5})
    >>> done = sfumato.run(policy, table=pd.DataFrame({"age": range(20, 80)}))
    >>> pack = sfumato.evidence(done, os.path.join(folder, "pack.zip"))
    >>> sfumato.verify_evidence(pack.path, policy.file("release")).belongs_together
    True
    >>> with open(policy.file("release"), "a") as file:  # one more record, after the pack was made
    ...     _ = file.write("44\\n")
    >>> found = sfumato.verify_evidence(pack.path, policy.file("release"))
    >>> [check.sentence for check in found.checks if check.name == "release"]
    ["'released.csv' is not the release that the pack is about, or was changed"]
    """
    pack, release = Path(pack), Path(release)
    pack = pack if pack.exists() else with_ending(pack)
    content = _content_of(pack)
    entries = unpack(content, pack.name)
    manifest = _manifest_of(entries, pack.name)
    checks = [_entries_check(entries, manifest)]
    audit = Audit.from_dict(parse_json(_entry(entries, AUDIT, pack.name), _WROTE))
    about = manifest["about"]
    checks += [_audit_check(audit, about), _policy_check(entries, about, audit), _file_check("release", release, about)]
    checks += [_other_check(Path(other), about) for other in others]
    sizes = count_release(release, audit.grouped_by)
    checks += [_counts_check(sizes, audit), *_k_check(int(sizes.min()), audit)]
    if key is not None:
        checks.append(_signature_check(content, pack, Path(key)))
    return VerifiedEvidence(tuple(checks), int(sizes.min()), len(sizes), int(sizes.sum()), manifest["date"])


def count_release(path: Path, columns: Sequence[str]) -> NDArray[np.int64]:
    """Return the sizes of the groups of a released file, counted by the judge; text is compared as it is written.

    Raises
    ------
    InputError
        If the file lacks a column.
    """
    text = dict.fromkeys(columns, GivenType("text"))
    table = read_file(path, types_if_present=text).table
    if absent := [name for name in columns if name not in table.column_names]:
        raise InputError(
            f"{path.name!r} has no column {absent[0]!r}: expected the release, with the columns that form its groups."
        )
    return count_groups(table, list(columns))


def with_ending(pack: Path) -> Path:
    """Return the file of a pack: a name without an ending gets ``.zip``."""
    return pack if pack.suffix or not pack.name else pack.with_name(f"{pack.name}.zip")


def _content_of(pack: Path) -> bytes:
    try:
        return pack.read_bytes()
    except OSError:
        why = "cannot be read" if pack.exists() else "is not there"
        raise InputError(f"{str(pack)!r} {why}: expected a pack that 'sfumato evidence' wrote.") from None


def _entry(entries: Mapping[str, bytes], name: str, pack: str) -> bytes:
    if name not in entries:
        raise InputError(f"{pack!r} has no {name}: expected a pack that 'sfumato evidence' wrote.")
    return entries[name]


def _manifest_of(entries: Mapping[str, bytes], pack: str) -> dict[str, Any]:
    manifest = parse_json(_entry(entries, MANIFEST, pack), _WROTE)
    check_shape(manifest, _SHAPE, "a manifest", _WROTE)
    return manifest


# -- checks --------------------------------------------------------------------------------------------------------


def _entries_check(entries: Mapping[str, bytes], manifest: Mapping[str, Any]) -> EvidenceCheck:
    known = manifest["entries"]
    wrong = [name for name in known if name not in entries or sha256(entries[name]) != known[name]]
    wrong += [name for name in entries if name not in known and name != MANIFEST]
    said = "each file in the pack is as its manifest says"
    return EvidenceCheck("pack", not wrong, said if not wrong else f"changed in the pack: {', '.join(sorted(wrong))}")


def _audit_check(audit: Audit, about: Mapping[str, Any]) -> EvidenceCheck:
    own = {role: part.sha256 for role, part in audit.outputs.items()} | {"original": audit.fingerprint}
    own["policy"] = audit.policy_sha256
    wrong = [role for role, part in about.items() if own.get(role) != part["sha256"]]
    said = "the manifest and the audit name the same files"
    return EvidenceCheck("audit", not wrong, said if not wrong else f"the audit has other hashes: {', '.join(wrong)}")


def _policy_check(entries: Mapping[str, bytes], about: Mapping[str, Any], audit: Audit) -> EvidenceCheck:
    if "policy" not in about:  # made in Python: the hash is of its settings
        return EvidenceCheck("policy", True, "the policy was made in Python; its settings are in the pack")
    holds = POLICY in entries and sha256(entries[POLICY]) == audit.policy_sha256
    said = "the policy in the pack is the one that was run"
    return EvidenceCheck("policy", holds, said if holds else "the policy in the pack is not the one that was run")


def _file_check(role: str, path: Path, about: Mapping[str, Any]) -> EvidenceCheck:
    holds = fingerprint_of(path) == about.get(role, {}).get("sha256") if path.is_file() else False
    if holds:
        return EvidenceCheck(role, True, f"{path.name!r} is the {role} that the pack is about")
    return EvidenceCheck(role, False, f"{path.name!r} is not the {role} that the pack is about, or was changed")


def _other_check(path: Path, about: Mapping[str, Any]) -> EvidenceCheck:
    if not path.is_file():
        raise ParameterError(f"{named('others', [str(path)])} is not a file: expected a file of the run.")
    found = fingerprint_of(path)
    role = next((role for role, part in about.items() if part["sha256"] == found), None)
    if role is None:
        return EvidenceCheck(
            "file", False, f"{path.name!r} is none of the files that the pack is about, or was changed"
        )
    return EvidenceCheck(role, True, f"{path.name!r} is the {role} that the pack is about")


def _counts_check(sizes: NDArray[np.int64], audit: Audit) -> EvidenceCheck:
    found = (int(sizes.min()), len(sizes))
    holds = found == (audit.sizes.smallest, audit.sizes.n_groups)
    counted = f"counted again, {found[1]:,} groups, the smallest of {found[0]:,} records"
    if holds:
        return EvidenceCheck("groups", True, f"{counted}, as the audit says")
    said = f"{audit.sizes.n_groups:,} and {audit.sizes.smallest:,}"
    return EvidenceCheck("groups", False, f"{counted}; the audit says {said}")


def _k_check(smallest: int, audit: Audit) -> list[EvidenceCheck]:
    """Return whether k holds for the counted groups; nothing for a release that promises no k."""
    k = audit.method.get("k")
    if audit.privacy is not None or not isinstance(k, int):
        return []
    holds = smallest >= k
    said = f"k = {k} {'holds' if holds else 'does not hold'}: no group has fewer than {smallest:,} records"
    if audit.reidentification is not None and audit.reidentification.counted == "persons":
        said += "; it counts persons, whom the release does not name"
    return [EvidenceCheck("k", holds, said)]


def _signature_check(content: bytes, pack: Path, key: Path) -> EvidenceCheck:
    path = pack.with_name(pack.name + SIGNATURE_SUFFIX)
    if not path.is_file():
        return EvidenceCheck("signature", False, f"there is no signature {path.name!r} beside the pack")
    if is_signed_by(content, path.read_bytes(), key):
        return EvidenceCheck("signature", True, f"{path.name!r} is a signature of the pack by {key.name!r}")
    return EvidenceCheck("signature", False, f"{path.name!r} is not a signature of the pack by {key.name!r}")
