# SPDX-License-Identifier: Apache-2.0
"""One table of the start folder with its policy, all earlier policies, and what was measured.

The policy is a file beside the table, which ``sfumato run`` runs. Everything else is kept in the folder
``.sfumato-studio``, for its owner alone: one TOML file for each policy that was, and counts and measurements as JSON.
Undo is an earlier policy.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sfumato.documents import written_whole
from sfumato.errors import InputError, ParameterError
from sfumato.files.publishing import unfinished
from sfumato.policy import Policy

FOLDER = ".sfumato-studio"
Role = Literal["rewrite", "protect", "drop", "predict", "leave"]
ROLES: tuple[Role, ...] = ("rewrite", "protect", "drop", "predict", "leave")
SUGGESTED: Mapping[str, Role] = {
    "quasi-identifier": "rewrite",
    "sensitive": "protect",
    "identifier": "drop",
    "target": "predict",
    "other": "leave",
}
_LISTS: Mapping[Role, str] = {
    "rewrite": "quasi_identifiers",
    "protect": "sensitive",
    "drop": "identifiers",
    "leave": "keep",
}
_ONLY_TOLD = ("purpose", "recipient", "reviewer", "review_by")  # of [context]: said in documents, measured by nothing


@dataclass(frozen=True)
class Version:
    """A policy that is or was.

    Attributes
    ----------
    number : int
    at : str
        When it was made, in ISO's form.
    what : str
        The kind of change: a key of the texts.
    about : dict
        What the text names: a column, a number.
    before : int or None
        The version that Undo goes back to.
    chosen, confirmed : dict of str to str
        Columns whose role was chosen or confirmed by a person, and when.
    """

    number: int
    at: str
    what: str
    about: dict[str, Any]
    before: int | None
    chosen: dict[str, str] = field(default_factory=dict)
    confirmed: dict[str, str] = field(default_factory=dict)


class Project:
    """The table, the policy and the history.

    Parameters
    ----------
    file : Path
        The table.
    policy_file : Path, optional
        The policy; ``NAME-policy.toml`` beside the table where not given.
    """

    def __init__(self, file: Path, policy_file: Path | None = None) -> None:
        self.file = file
        self.policy_file = policy_file or file.with_name(f"{file.stem}-policy.toml")
        self._folder = file.parent / FOLDER / self.policy_file.name
        self.versions: list[Version] = []
        self._policy: Policy | None = None
        self._read_at = (0, 0)
        self._load()

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy of now."""
        if self._policy is None:
            raise InputError("there is no policy yet: expected the table to be read first. Wait until it is.")
        return self._policy

    @property
    def has_policy(self) -> bool:
        """Whether there is a policy yet."""
        return self._policy is not None

    @property
    def now(self) -> Version:
        """The version of now."""
        return self.versions[-1]

    def role(self, column: str) -> Role:
        """Return the role of a column."""
        own = self.policy.values["columns"]
        if own["target"] == column:
            return "predict"
        if column in own["identifiers"] or column in (own["unit"], own["persons"]):
            return "drop"
        for role in ("rewrite", "protect"):
            if column in (own[_LISTS[role]] or ()):
                return role
        return "leave"

    @property
    def rewritten(self) -> list[str]:
        """The quasi-identifiers."""
        return list(self.policy.get("columns", "quasi_identifiers") or ())

    def refresh(self) -> bool:
        """Take a policy that was changed outside the studio as a new version; return True if it was."""
        if self._policy is None or not self.policy_file.is_file() or self._state() == self._read_at:
            return False
        n_versions = len(self.versions)
        self._load()
        return len(self.versions) > n_versions

    def _state(self) -> tuple[int, int]:
        found = self.policy_file.stat()
        return found.st_size, found.st_mtime_ns

    def kept(self, name: str) -> Any:
        """Return what was kept under a name; None for nothing, or what cannot be read any more."""
        try:
            return json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, name: str, content: Any) -> None:
        """Keep something for the next time."""
        self._make_folder()
        with written_whole(self._folder / f"{name}.json", mode=0o600) as path:
            path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    @property
    def state_of_file(self) -> list[int]:
        """Which says whether the table is still the one that was looked at; empty if it is gone."""
        try:
            found = self.file.stat()
        except OSError:
            return []
        return [found.st_size, found.st_mtime_ns]

    def key(self, **measured: Any) -> str:
        """Return the name for what was measured with the roles and the model of now, whatever k is."""
        own = self.policy.values
        said = {section: own[section] for section in ("columns", "model", "audit")}
        said["method"] = {name: own["method"][name] for name in ("name", "representative", "seed", "target_values")}
        text = json.dumps([said, self.state_of_file, measured], sort_keys=True, default=list)
        return "points-" + hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def judged(self) -> str:
        """Return the name of what a gate judges: the policy without answers that no condition depends on."""
        context = {name: None if name in _ONLY_TOLD else said for name, said in self.policy.values["context"].items()}
        said = [{**self.policy.values, "context": context}, self.policy.criteria, self.policy.titles]
        return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()

    # -- changes -----------------------------------------------------------------------------------------------------

    def begin(self, text: str) -> None:
        """Take a suggested policy as the first version."""
        self._add(text, "first", {}, before=None)

    def set_role(self, column: str, role: Role, *, confirm: bool = False) -> None:
        """Give a column another role; what was predicted before is rewritten then."""
        if role not in ROLES:
            raise ParameterError(f"{role!r} is not a role: expected one of {', '.join(ROLES)}.")
        own, was = self.policy.values["columns"], self.role(column)
        lists = {name: [c for c in own[name] or () if c != column] for name in _LISTS.values()}
        target = own["target"]
        if was == "predict" and role != "predict":
            raise ParameterError("one column must be what the model predicts: expected another one first. Choose it.")
        if role == "predict":
            if target is not None and target != column:
                lists["quasi_identifiers"].append(target)
            target = column
        else:
            lists[_LISTS[role]].append(column)
        gone = {column} if role == "drop" else set()
        subgroups = [name for name in own["subgroups"] if name not in gone]
        at = _now()
        chosen = {**self.now.chosen, **({column: at} if role != was else {})}
        confirmed = {**self.now.confirmed, **({column: at} if confirm else {})}
        what = "confirmed" if confirm and role == was else "role"
        columns = {**lists, "target": target, "subgroups": subgroups}
        self._change(what, {"column": column, "role": role}, {"columns": columns}, chosen, confirmed)

    def set(self, what: str, about: dict[str, Any], **sections: Mapping[str, Any]) -> None:
        """Change settings of the policy."""
        self._change(what, about, sections, self.now.chosen, self.now.confirmed)

    def undo(self) -> None:
        """Go back to the policy before this one."""
        if self.now.before is not None:
            self.go_back(self.now.before)

    def go_back(self, number: int) -> None:
        """Take an earlier policy again; going back is a change, too."""
        known = {version.number: version for version in self.versions}
        if number not in known:
            raise ParameterError("there is no such policy: expected one of the history.")
        then, text = known[number], self._path(number).read_text(encoding="utf-8")
        self._add(text, "back", {"number": number, "at": then.at}, then.before, then.chosen, then.confirmed)

    def _change(
        self,
        what: str,
        about: dict[str, Any],
        sections: Mapping[str, Mapping[str, Any]],
        chosen: dict[str, str],
        confirmed: dict[str, str],
    ) -> None:
        values = {name: {**own, **sections.get(name, {})} for name, own in self.policy.values.items()}
        text = replace(self.policy, values=values).to_toml() + "\n"
        if text == self.policy.to_toml() + "\n" and confirmed == self.now.confirmed:
            return  # nothing changes
        self._add(text, what, about, self.now.number, chosen, confirmed)

    def _add(
        self,
        text: str,
        what: str,
        about: dict[str, Any],
        before: int | None,
        chosen: dict[str, str] | None = None,
        confirmed: dict[str, str] | None = None,
    ) -> None:
        """Check a policy, keep it as a version and make it the one of now; a wrong one changes nothing."""
        document = tomllib.loads(text)
        document.pop("version", None)
        Policy.of(**document)
        self._make_folder()
        number = self.versions[-1].number + 1 if self.versions else 1
        with written_whole(self._path(number), mode=0o600) as path:
            path.write_text(text, encoding="utf-8")
        with unfinished(self.policy_file) as [path]:
            path.write_text(text, encoding="utf-8")
        versions = [*self.versions, Version(number, _now(), what, about, before, chosen or {}, confirmed or {})]
        self.keep("history", [asdict(one) for one in versions])
        self.versions = versions  # last: what could not be written did not happen
        self._policy, self._read_at = Policy.read(self.policy_file), self._state()

    # -- the folder --------------------------------------------------------------------------------------------------

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:04d}.toml"

    def _make_folder(self) -> None:
        for folder in (self._folder.parent, self._folder):
            folder.mkdir(mode=0o700, exist_ok=True)

    def _load(self) -> None:
        """Read the history; a policy that was changed outside the studio is a version of its own."""
        if not self.policy_file.is_file():
            return
        self._policy, self._read_at = Policy.read(self.policy_file), self._state()
        kept = self.kept("history") or []
        self.versions = [Version(**one) for one in kept if self._path(one["number"]).is_file()]
        text = self.policy_file.read_text(encoding="utf-8")
        if not self.versions or self._path(self.now.number).read_text(encoding="utf-8") != text:
            last = self.versions[-1] if self.versions else None
            what = "found" if last is None else "outside"
            before = None if last is None else last.number
            own = ({}, {}) if last is None else (last.chosen, last.confirmed)
            self._add(text, what, {}, before, *own)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
