# SPDX-License-Identifier: Apache-2.0
"""Policies whose settings have been checked.

Errors name the section and the key, and the line if the policy is a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.anonymize import METHODS
from sfumato.anonymize.method import FACTS, MethodFacts
from sfumato.attack import ATTACKS
from sfumato.attack.named_attack import NEED_TORCH
from sfumato.backends.duckdb.address import is_address, parse_address
from sfumato.errors import ParameterError, named
from sfumato.policy import criteria as criteria_of_policy
from sfumato.policy.policy_file import Places, plain_toml, read_policy, toml
from sfumato.policy.privacy import check_privacy
from sfumato.policy.settings import MAX_UNIQUE_TARGET, SECTIONS, TITLES, VERSION, Setting, guess

if TYPE_CHECKING:
    from sfumato.files.table_file import Location


@dataclass(frozen=True)
class Policy:
    """A policy whose every setting has been checked.

    Attributes
    ----------
    places : Places
        Names settings in messages.
    values : dict
        Section, then setting, to value; defaults included.
    titles : dict
        Column to its title for readers, from the section ``[titles]``; columns without one go by their names.
    criteria : tuple of dict
        Further criteria that every group must meet, from ``[[criteria]]``: name and settings of each.

    Examples
    --------
    >>> policy = Policy.of(data={"file": "people.csv", "release": "released.csv"}, columns={"target": "income"})
    >>> policy.get("method", "k")
    10
    >>> print(policy.to_toml())
    version = 1
    <BLANKLINE>
    [data]
    file = "people.csv"
    release = "released.csv"
    <BLANKLINE>
    [columns]
    target = "income"
    """

    places: Places
    values: dict[str, dict[str, Any]]
    titles: dict[str, str] = field(default_factory=dict)
    criteria: tuple[dict[str, Any], ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> Policy:
        """Read and check a policy file.

        Raises
        ------
        ParameterError
            For a setting that is unknown, missing or out of bounds; the message names the line and the key.
        InputError
            For a file that cannot be read or is not valid TOML.
        """
        policy = _checked_policy(*read_policy(Path(path)))
        for name in ("file", "release"):
            if policy.get("data", name) is None:
                raise ParameterError(
                    f"{policy.where('data', name)}: not given, expected the path of a CSV or Parquet file. "
                    f'Add {name} = "..." under [data].'
                )
        return policy

    @classmethod
    def of(cls, **sections: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Policy:
        """Return a policy from sections given as dicts, as in a file; paths are relative to the current folder.

        Parameters
        ----------
        **sections : mapping
            ``data``, ``columns``, ``method``, ``model``, ``audit``, ``privacy``, ``gate``, ``context``, ``titles``.
            Omitted settings have their defaults; None means that there is none. Without a file in ``data``, pass the
            table to `sfumato.run`.
            With ``categorical = None``, integers that are surely codes are treated as categories.
            ``criteria`` is a list of dicts, one for each criterion.
        """
        return cls.from_options({}, **sections)

    @classmethod
    def from_options(
        cls, options: Mapping[str, str], **sections: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    ) -> Policy:
        """Return a policy made from the options of a command, which its messages name.

        Parameters
        ----------
        options : mapping of str to str
            Option by ``section.setting``, such as ``{"method.k": "--k"}``.
        **sections : mapping
            As for `of`.
        """
        document = {
            section: plain_toml(content) if isinstance(content, Mapping | list | tuple) else content
            for section, content in sections.items()
        }
        return _checked_policy(document, Places(options=options))

    def get(self, section: str, name: str) -> Any:
        """Return the value of a setting."""
        return self.values[section][name]

    @property
    def path(self) -> Path | None:
        """The policy file; None for a policy made in Python."""
        return self.places.path

    @property
    def lines(self) -> Mapping[str, int]:
        """Line of every setting in the file, by ``section.setting``."""
        return self.places.lines

    def where(self, section: str, name: str) -> str:
        """Return the place of a setting as messages name it."""
        return self.places.of(section, name)

    def said(self, section: str, name: str) -> str:
        """Return the place of a setting and its value as messages name them."""
        return self.places.with_value(section, name, self.values[section][name])

    @property
    def folder(self) -> Path:
        """The folder that paths are relative to."""
        return Path() if self.path is None else self.path.parent

    def file(self, name: str) -> Path | None:
        """Return a path of the ``data`` section, relative to the folder of the policy; None where none is given."""
        given = self.values["data"][name]
        return None if given is None else self.folder / given

    def files(self, name: str) -> tuple[Path, ...]:
        """Return the paths of a list of the ``data`` section, relative to the folder of the policy."""
        return tuple(self.folder / given for given in self.values["data"][name])

    @property
    def context(self) -> dict[str, Any]:
        """What the policy says under ``[context]``."""
        return {name: value for name, value in self.values["context"].items() if value is not None}

    def source(self) -> Location | None:
        """Return the place of the table: a file, or a table of a database; None if it is not given."""
        given = self.values["data"]["file"]
        if given is None or not is_address(given):
            return self.file("file")
        address = parse_address(given)
        return address if address.path is None else address.at(self.folder / address.path)

    @property
    def digest(self) -> str:
        """SHA-256 of the file, or of the settings of a policy that was made in Python, as JSON."""
        if self.path is not None:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        settings = {"values": self.values, "criteria": self.criteria, "titles": self.titles}
        return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()

    def check(self) -> None:
        """Raise ParameterError if settings contradict each other; every policy was checked when it was made."""
        _check_together(self)

    def to_toml(self) -> str:
        """Return the text of a policy file: all settings that differ from their defaults."""
        parts = [f"version = {VERSION}"]
        for section, settings in SECTIONS.items():
            said = {n: v for n, v in self.values[section].items() if v != settings[n].default}
            if absent := [name for name, value in said.items() if value is None]:
                raise ParameterError(f"[{section}] {absent[0]} = None: expected what a file can say. Give it a value.")
            if said:
                parts.append("\n".join([f"[{section}]", *(f"{name} = {toml(value)}" for name, value in said.items())]))
        for criterion in self.criteria:
            lines = [f"{name} = {toml(value)}" for name, value in criterion.items()]
            parts.append("\n".join([f"[[{criteria_of_policy.KEY}]]", *lines]))
        if self.titles:
            lines = [f"{toml(name)} = {toml(title)}" for name, title in self.titles.items()]
            parts.append("\n".join([f"[{TITLES}]", *lines]))
        return "\n\n".join(parts)


def _checked_policy(document: dict[str, Any], places: Places) -> Policy:
    """Check every setting of a document, and all settings together."""
    _check_known(document, places)
    values = {
        section: {
            name: _checked(setting, document[section][name], places, section, name)
            if name in document.get(section, {})
            else setting.default
            for name, setting in settings.items()
        }
        for section, settings in SECTIONS.items()
    }
    if "gate" in document and values["columns"]["target"] is not None and values["gate"]["max_unique_target"] is None:
        values["gate"]["max_unique_target"] = MAX_UNIQUE_TARGET
    criteria = criteria_of_policy.check_criteria(document.get(criteria_of_policy.KEY, []), places)
    given = frozenset(f"{section}.{name}" for section in SECTIONS for name in document.get(section, {}))
    policy = Policy(replace(places, given=given), values, dict(document.get(TITLES, {})), criteria)
    policy.check()
    return policy


def _check_known(document: dict[str, Any], places: Places) -> None:
    for section, content in document.items():
        if section == criteria_of_policy.KEY:
            continue  # a list of tables, checked by itself
        known, place = (*SECTIONS, TITLES), places.at(places.lines.get(section), section)
        if section in known and not isinstance(content, dict):
            raise ParameterError(
                f"{place}: not a section, expected the line [{section}] and its settings below it. Write the name "
                "alone, in single brackets."
            )
        if section not in known:
            raise ParameterError(
                f"{place}: unknown, expected one of the sections {', '.join(f'[{name}]' for name in known)}, "
                f"[[{criteria_of_policy.KEY}]].{guess(section, (*known, criteria_of_policy.KEY))}"
            )
        if section == TITLES:
            _check_titles(content, places)
            continue
        for name in content:
            if name not in SECTIONS[section]:
                raise ParameterError(
                    f"{places.of(section, name)}: unknown, expected one of {', '.join(SECTIONS[section])}."
                    f"{guess(name, SECTIONS[section])}"
                )


def _check_titles(titles: dict[str, Any], places: Places) -> None:
    """Raise ParameterError unless every title is text; `open_job` checks that the columns exist."""
    for name, title in titles.items():
        if not isinstance(title, str) or not title.strip():
            raise ParameterError(
                f"{places.with_value(TITLES, name, title)}: expected the column's title in quotes. Write for example "
                f'{name} = "Age in years".'
            )


def _checked(setting: Setting, value: Any, places: Places, section: str, name: str) -> Any:
    """Return the value of a setting, which None leaves without one."""
    return (
        None
        if value is None
        else setting.checked(value, places.of(section, name), places.with_value(section, name, value))
    )


def _check_together(policy: Policy) -> None:
    """Raise ParameterError if settings contradict each other."""
    check_privacy(policy)
    has_guide = policy.get("columns", "target") is not None or policy.get("model", "guide_column") is not None
    has_guide |= policy.get("privacy", "mechanism") is not None  # its partition is there already
    if not has_guide and _facts(policy).needs_guide:
        raise ParameterError(
            f"{policy.where('columns', 'target')}: not given, expected the column that the model predicts. Add it, or "
            f"name a column of precomputed predictions in {named('guide_column')}, or choose "
            f"{named('method', 'information-loss')}, which needs no model."
        )
    _check_endings(policy)
    _check_roles(policy)
    for section, name in (("method", "l"), ("method", "t"), ("gate", "min_l")):
        if policy.get(section, name) is not None and not policy.get("columns", "sensitive"):
            raise ParameterError(
                f"{policy.said(section, name)} without sensitive columns: expected the columns that it is about. Name "
                f"them in {named('sensitive')}."
            )
    _check_method(policy)
    _check_criteria(policy)
    _check_gate_is_measured(policy)
    _check_attacks_can_run(policy)
    _check_context(policy)


def _check_context(policy: Policy) -> None:
    """Raise ParameterError for a date that is none, and for a gate that does not go with the context."""
    review = policy.get("context", "review_by")
    try:
        date.fromisoformat(review or "2000-01-01")
    except ValueError:
        raise ParameterError(
            f"{policy.said('context', 'review_by')}: expected a date such as 2027-01-31. Correct it."
        ) from None
    threshold, allowed = policy.get("context", "threshold"), policy.get("gate", "max_risk")
    if threshold is None and policy.get("gate", "max_share_at_risk") is not None:
        raise ParameterError(
            f"{policy.where('gate', 'max_share_at_risk')} without a threshold: expected the largest acceptable chance "
            "to re-identify a record. Add threshold = 0.1 or the like under [context], or remove the condition."
        )
    if policy.get("context", "sampling_fraction") is None and policy.get("gate", "max_population_unique") is not None:
        raise ParameterError(
            f"{policy.where('gate', 'max_population_unique')} without a population: expected the share of it that is "
            "in the table. Add sampling_fraction = 0.1 or the like under [context], or remove the condition."
        )
    if threshold is not None and allowed is not None and allowed > threshold:
        raise ParameterError(
            f"{policy.said('gate', 'max_risk')} above the threshold {threshold:g} under [context]: expected at most "
            "that. Lower it."
        )


def _check_method(policy: Policy) -> None:
    """Raise ParameterError for settings that the method does not use or cannot meet."""
    method, guide = policy.get("method", "name"), policy.get("model", "guide")
    if guide not in (None, SECTIONS["model"]["guide"].default) and not _facts(policy).needs_guide:
        raise ParameterError(
            f"{policy.said('model', 'guide')} with the method {method}, whose groups follow no model: expected a "
            f"guided method. Remove it, or choose {named('method', 'model-guided')}."
        )
    if guide == "predictions" and method == "workload-aware" and policy.get("model", "guide_column") is None:
        raise ParameterError(
            f"{policy.said('model', 'guide')} with the method workload-aware, whose groups follow the target's labels: "
            "expected labels. Remove it."
        )
    if policy.get("data", "artifact") is not None and not (facts := _facts(policy)).has_document:
        raise ParameterError(
            f"{policy.where('data', 'artifact')} with the method {method}, whose groups are {facts.groups} and cannot "
            "be saved: expected none. Remove it, or choose another method."
        )
    if policy.get("columns", "limits") and _facts(policy).writes_labels:
        raise ParameterError(
            f"{policy.where('columns', 'limits')} with the method {method}, whose detail comes from hierarchies: "
            "expected none. Remove the finer levels from the hierarchies instead."
        )
    if "method.representative" in policy.places.given and _facts(policy).writes_labels:
        raise ParameterError(
            f"{policy.where('method', 'representative')} with the method {method}, which writes the labels of the "
            "hierarchies: expected none. Remove it, or choose another method."
        )


def _facts(policy: Policy) -> MethodFacts:
    return FACTS[policy.get("method", "name")]


def _check_criteria(policy: Policy) -> None:
    """Raise ParameterError for criteria on columns of another role, and for those that the method cannot meet."""
    own, where = policy.values["columns"], policy.places.of_criterion
    guarded = [*own["sensitive"], *([own["target"]] if own["target"] else [])]
    for number, criterion in enumerate(policy.criteria):
        column, unit = criterion.get("column"), criterion.get("unit")
        if column is not None and column not in guarded:
            raise ParameterError(
                f"{where(number, 'column')} = {column!r}: expected a sensitive column or the target. Name it in "
                f"{named('sensitive')}."
            )
        if unit is not None and unit != own["unit"]:
            raise ParameterError(
                f"{where(number, 'unit')} = {unit!r}: expected the column that is unit under [columns]. Write "
                f"unit = {toml(unit)} there, too."
            )
        if "population" in criterion and not METHODS[policy.get("method", "name")].counts_population:
            raise ParameterError(
                f"{where(number, 'population')} with the method {policy.get('method', 'name')}, whose groups have no "
                "cells that a population could fall into: expected another method. Choose "
                f"{named('method', 'mondrian')}, or remove the criterion."
            )


def _check_attacks_can_run(policy: Policy) -> None:
    """Raise ParameterError for a bound on attacks that cannot run, because of the policy or a missing package."""
    if policy.get("gate", "max_attack_advantage") is None:
        return
    bound, level = policy.where("gate", "max_attack_advantage"), policy.get("audit", "level")
    if level == "none":
        raise ParameterError(
            f"{bound} with audit level none: expected attacks to judge. "
            "Set level under [audit] to quick, standard or full."
        )
    if find_spec("torch") is None:
        wanted = [name for name in NEED_TORCH if name not in policy.get("audit", "leave_out")]
        if lost := [name for name in wanted if ATTACKS[name].facts.runs_at(level)]:
            raise ParameterError(
                f"{bound} without torch, which the attack {lost[0]} needs: expected every attack of the level to run. "
                f"Install it with pip install 'sfumato[neural]', or write leave_out = {toml(lost)} under [audit]."
            )


_ENDINGS = {"artifact": (".json",), "publication": (".publication",), "report": (".html", ".md"), "audit": (".json",)}


def _check_endings(policy: Policy) -> None:
    """Raise ParameterError for a name that belongs to another kind of document; commands take any name to save to."""
    for name, endings in _ENDINGS.items():
        file = policy.file(name)
        if file is not None and file.suffix not in endings and f"data.{name}" not in policy.places.options:
            raise ParameterError(
                f"{policy.said('data', name)}: expected a name that ends in {' or '.join(endings)}. Rename it."
            )


def _check_gate_is_measured(policy: Policy) -> None:
    """Raise ParameterError for conditions on something that the policy does not measure."""
    if policy.get("gate", "max_certified_advantage") is not None and policy.get("data", "holdout") is None:
        raise ParameterError(
            f"{policy.where('gate', 'max_certified_advantage')} without a holdout: expected people who are not in the "
            f"table. Name their file in {named('holdout')}, or remove the condition."
        )
    if policy.get("data", "holdout") is not None and not _secrets(policy):
        raise ParameterError(
            f"{policy.said('data', 'holdout')} without sensitive columns and without a target: expected a column that "
            f"an attacker guesses. Name one in {named('sensitive')}, or remove the holdout."
        )
    for name in ("max_attack_advantage", "max_unique_target", "min_accuracy_kept", "min_gain_kept"):
        if policy.get("gate", name) is None:
            continue
        if policy.get("columns", "target") is None:
            raise ParameterError(
                f"{policy.where('gate', name)} without a target: expected a model to judge. Name the target under "
                "[columns], or remove the condition."
            )
        if policy.get("model", "test_fraction") == 0 and name != "max_unique_target":
            raise ParameterError(
                f"{policy.where('gate', name)} with test_fraction = 0, which measures no model: expected one to judge. "
                "Set test_fraction under [model] above 0, or remove the condition."
            )


def _secrets(policy: Policy) -> tuple[str, ...]:
    """Return the columns that an attacker guesses: the sensitive ones, or else the target."""
    target = policy.get("columns", "target")
    return tuple(policy.get("columns", "sensitive")) or (() if target is None else (target,))


_MAY_BE_BOTH = {
    ("target", "sensitive"),
    ("identifiers", "guide_column"),
    ("identifiers", "persons"),
    ("unit", "persons"),
    *((role, "keep") for role in ("target", "sensitive", "unit", "guide_column")),
}
"""A target may be sensitive, and `keep` releases columns that would be dropped or whose values are nearly unique."""


def _check_roles(policy: Policy) -> None:
    """Raise ParameterError for a column with two roles; a subgroup may be any column."""
    roles: dict[str, str] = {}
    for name in ("target", "identifiers", "quasi_identifiers", "sensitive", "unit", "persons", "guide_column", "keep"):
        section = "model" if name == "guide_column" else "columns"
        value = policy.get(section, name)
        for column in (value,) if isinstance(value, str) else value or ():
            if column in roles and (roles[column], name) not in _MAY_BE_BOTH:
                raise ParameterError(
                    f"{policy.where(section, name)} names {column!r}, which is {roles[column]} already: expected "
                    "one role per column. Remove it from one of them."
                )
            roles[column] = name
