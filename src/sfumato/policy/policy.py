# SPDX-License-Identifier: Apache-2.0
"""A policy: what is protected, how, and what must hold before anything leaves; every setting checked.

What is wrong is named by its section and key, and by its line where the policy is a file.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.anonymize import METHODS
from sfumato.attack import ATTACKS
from sfumato.backends.duckdb.address import is_address, parse_address
from sfumato.errors import ParameterError
from sfumato.policy import criteria as criteria_of_policy
from sfumato.policy.policy_file import PolicyText, plain_toml, read_text, toml
from sfumato.policy.settings import MAX_UNIQUE_TARGET, SECTIONS, TITLES, VERSION, Setting

if TYPE_CHECKING:
    from sfumato.anonymize.method import NamedMethod
    from sfumato.files.table_file import Location


@dataclass(frozen=True)
class Policy:
    """A policy whose every setting has been checked.

    Attributes
    ----------
    path : Path or None
        The file; other paths in it are relative to its folder. None for a policy made in Python.
    values : dict
        Section, then setting, to value; defaults included.
    lines : dict
        Line of every setting that stands in the file, by ``section.setting``.
    titles : dict
        Column to its title for readers, from the section ``[titles]``; columns without one go by their names.
    criteria : tuple of dict
        What every group must meet beside k, l and t, from ``[[criteria]]``: the name of each criterion, and its
        settings.

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

    path: Path | None
    values: dict[str, dict[str, Any]]
    lines: dict[str, int]
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
            For a file that cannot be read or is no TOML.
        """
        text = read_text(Path(path))
        _check_version(text)
        document = {name: part for name, part in text.document.items() if name != "version"}
        policy = _checked_policy(replace(text, document=document))
        for name in ("file", "release"):
            if policy.get("data", name) is None:
                raise ParameterError(
                    f"{policy.where('data', name)}: not given, expected the path of a CSV or Parquet file. "
                    f'Add {name} = "..." under [data].'
                )
        return policy

    @classmethod
    def of(cls, **sections: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Policy:
        """Make a policy of sections given as dicts, as they stand in a file; paths are relative to the current folder.

        Parameters
        ----------
        **sections : mapping
            ``data``, ``columns``, ``method``, ``model``, ``audit``, ``gate``, ``titles``. What is left out has its
            default, None says that there is none. Without a file in ``data``, hand the table to `sfumato.run`.
            ``criteria`` is a list of dicts, one for each criterion.
        """
        document = {
            section: plain_toml(content) if isinstance(content, Mapping | list | tuple) else content
            for section, content in sections.items()
        }
        return _checked_policy(PolicyText(None, document, {}))

    def get(self, section: str, name: str) -> Any:
        """Return the value of a setting."""
        return self.values[section][name]

    def where(self, section: str, name: str) -> str:
        """Name a setting as messages do: the file, the line where it has one, the section and the key."""
        return where(self.path, self.lines.get(f"{section}.{name}"), f"[{section}] {name}")

    def where_criterion(self, number: int, key: str) -> str:
        """Name a key of a criterion as messages do."""
        return _where_criterion(self.path, self.lines, number, key)

    @property
    def folder(self) -> Path:
        """The folder that paths are relative to."""
        return Path() if self.path is None else self.path.parent

    def file(self, name: str) -> Path | None:
        """Return a path of the ``data`` section, relative to the folder of the policy; None where none is given."""
        given = self.values["data"][name]
        return None if given is None else self.folder / given

    def source(self) -> Location | None:
        """Return where the table is: a file, or a table of a database; None where none is given."""
        given = self.values["data"]["file"]
        if given is None or not is_address(given):
            return self.file("file")
        address = parse_address(given)
        return address if address.path is None else address.at(self.folder / address.path)

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


def where(path: Path | None, line: int | None, key: str) -> str:
    """Say where in a policy something stands."""
    if path is None:
        return key
    return f"{path.name}, {key}" if line is None else f"{path.name}, line {line}, {key}"


def _where_criterion(path: Path | None, lines: Mapping[str, int], number: int, key: str) -> str:
    """Say where a key of a criterion stands; where there is no such line, where the criterion does."""
    section = criteria_of_policy.KEY
    known = (f"{section}[{number}].{key}", f"{section}[{number}]", section)
    line = next((lines[name] for name in known if name in lines), None)
    return where(path, line, f"[[{section}]] {key}".rstrip())


def _checked_policy(text: PolicyText) -> Policy:
    """Check every setting of a document, and what they mean together."""
    path, document, lines = text.path, text.document, text.lines
    _check_known(path, document, lines)
    values = {
        section: {
            name: _checked(path, lines, section, name, setting, document.get(section, {}))
            for name, setting in settings.items()
        }
        for section, settings in SECTIONS.items()
    }
    if "gate" in document and values["columns"]["target"] is not None and values["gate"]["max_unique_target"] is None:
        values["gate"]["max_unique_target"] = MAX_UNIQUE_TARGET
    asked = criteria_of_policy.check_criteria(
        document.get(criteria_of_policy.KEY, []),
        partial(_where_criterion, path, lines),
        lambda number, key, setting, value: _value_of(
            setting, value, _where_criterion(path, lines, number, key), optional=False
        ),
    )
    policy = Policy(path, values, lines, dict(document.get(TITLES, {})), asked)
    policy.check()
    return policy


def _check_version(text: PolicyText) -> None:
    version = text.document.get("version")
    if type(version) is not int or version != VERSION:
        said = "no version" if version is None else f"version = {version!r}"
        raise ParameterError(
            f"{where(text.path, text.lines.get('version'), 'version')}: {said}, expected version = {VERSION}. "
            "Put that into the first line."
        )


def _check_known(path: Path | None, document: dict[str, Any], lines: dict[str, int]) -> None:
    for section, content in document.items():
        if section == criteria_of_policy.KEY:
            continue  # a list of tables, checked by itself
        known = (*SECTIONS, TITLES)
        if section in known and not isinstance(content, dict):
            raise ParameterError(
                f"{where(path, lines.get(section), section)}: not a section, expected the line [{section}] and its "
                "settings below it. Write the name alone, in single brackets."
            )
        if section not in known:
            raise ParameterError(
                f"{where(path, lines.get(section), section)}: unknown, expected one of the sections "
                f"{', '.join(f'[{name}]' for name in known)}, [[{criteria_of_policy.KEY}]]."
                f"{_guess(section, (*known, criteria_of_policy.KEY))}"
            )
        if section == TITLES:
            _check_titles(path, content, lines)
            continue
        for name in content:
            if name not in SECTIONS[section]:
                raise ParameterError(
                    f"{where(path, lines.get(f'{section}.{name}'), f'[{section}] {name}')}: unknown, expected one of "
                    f"{', '.join(SECTIONS[section])}.{_guess(name, SECTIONS[section])}"
                )


def _check_titles(path: Path | None, titles: dict[str, Any], lines: dict[str, int]) -> None:
    """Raise ParameterError unless every title is text; whether the columns exist is checked on the table."""
    for name, title in titles.items():
        if not isinstance(title, str) or not title.strip():
            raise ParameterError(
                f"{where(path, lines.get(f'{TITLES}.{name}'), f'[{TITLES}] {name}')} = {_shown(title)}: expected the "
                f'column\'s title in quotes. Write for example {name} = "Age in years".'
            )


def _guess(given: str, known: Any) -> str:
    close = difflib.get_close_matches(given.lower(), list(known), n=1)  # settings are written small
    return f" Did you mean {close[0]}?" if close else ""


def _checked(
    path: Path | None, lines: dict[str, int], section: str, name: str, setting: Setting, content: dict[str, Any]
) -> Any:
    if name not in content:
        return setting.default
    return _value_of(setting, content[name], where(path, lines.get(f"{section}.{name}"), f"[{section}] {name}"))


def _value_of(setting: Setting, value: Any, place: str, *, optional: bool = True) -> Any:
    """Return the value of a setting, or raise ParameterError where it is not of its kind."""
    if value is None and optional:  # as Python says it; a file has no word for nothing
        return None
    if not _is_of_kind(value, setting):
        raise ParameterError(f"{place} = {_shown(value)}: expected {_expected(setting)}. It is {setting.sentence}.")
    if setting.kind == "names":
        repeated = sorted({one for one in value if value.count(one) > 1})
        if repeated:
            raise ParameterError(
                f"{place} names {repeated[0]!r} twice: expected each column once. Remove the repetition."
            )
        return tuple(value)
    return tuple(value) if setting.kind in ("words", "integers", "choices", "list") else value


def _is_of_kind(value: Any, setting: Setting) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    kind = setting.kind
    if kind in ("text", "name"):
        return isinstance(value, str) and value != "" and "\0" not in value  # no file can be called that
    if kind == "choice":
        return value in setting.choices
    if kind == "choices":
        return isinstance(value, list) and all(one in setting.choices for one in value)
    if kind in ("names", "words"):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if kind == "integer":
        return type(value) is int and _fewest(setting) <= value <= _most(setting)
    if kind == "integers":
        return isinstance(value, list) and all(type(one) is int and one >= _fewest(setting) for one in value)
    if kind == "number":
        return is_number and math.isfinite(value)
    if kind == "list":
        return isinstance(value, list) and not any(isinstance(one, list | dict) for one in value)
    if kind == "share":
        return is_number and 0 <= value <= 1
    if kind == "numbers by name":
        return isinstance(value, dict) and all(
            isinstance(one, int | float) and not isinstance(one, bool) for one in value.values()
        )
    if kind == "files by name" and isinstance(value, str):
        return value != "" and "\0" not in value
    assert kind in ("texts by name", "files by name")
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _fewest(setting: Setting) -> float:
    return -math.inf if setting.at_least is None else setting.at_least


def _most(setting: Setting) -> float:
    return math.inf if setting.at_most is None else setting.at_most


def _expected(setting: Setting) -> str:
    if setting.kind == "choice":
        return f"one of {', '.join(setting.choices)}"
    if setting.kind == "choices":
        return f"a list of some of {', '.join(setting.choices)}"
    if setting.kind == "integer":
        if setting.at_least is None:
            return "a whole number"
        end = "on" if setting.at_most is None else f"to {setting.at_most:.0f}"
        return f"a whole number from {setting.at_least:g} {end}"
    if setting.kind == "integers":
        return f"a list of whole numbers from {setting.at_least or 0:g} on, such as [5, 20, 100]"
    return {
        "text": "text in quotes",
        "name": "the name of a column in quotes",
        "names": 'a list of column names, such as ["age", "zip"]',
        "words": 'a list of texts, such as ["?", "unknown"]',
        "number": "a number",
        "list": 'a list of values, such as ["low", "middle", "high"]',
        "share": "a number from 0 to 1",
        "numbers by name": "numbers by column, such as { age = 5, zip = 3 }",
        "texts by name": "types by column, such as { zip = 'text' }",
        "files by name": "files by column, such as { age = 'age.csv' }, or the name of a folder in quotes",
    }[setting.kind]


def _shown(value: Any) -> str:
    """Show a value of the file briefly; lists and tables by their kind."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)


def _check_together(policy: Policy) -> None:
    """Refuse settings that contradict each other."""
    has_guide = policy.get("columns", "target") is not None or policy.get("model", "guide_column") is not None
    if not has_guide and _method(policy).facts.needs_guide:
        raise ParameterError(
            f"{policy.where('columns', 'target')}: not given, expected the column that the model predicts. "
            "Add it, or name a column of ready predictions as guide_column under [model], or write "
            'name = "information-loss" under [method], which needs no model.'
        )
    _check_endings(policy)
    _check_roles(policy)
    for name in ("l", "t"):
        if policy.get("method", name) is not None and not policy.get("columns", "sensitive"):
            raise ParameterError(
                f"{policy.where('method', name)} without sensitive columns: expected what it should protect. "
                "Name the columns as sensitive under [columns]."
            )
    if policy.get("gate", "min_l") is not None and not policy.get("columns", "sensitive"):
        raise ParameterError(
            f"{policy.where('gate', 'min_l')} without sensitive columns: expected what it counts. "
            "Name the columns as sensitive under [columns]."
        )
    _check_method(policy)
    _check_criteria(policy)
    _check_gate_is_measured(policy)
    _check_attacks_can_run(policy)


def _check_method(policy: Policy) -> None:
    """Refuse settings that the method has no use for, or cannot meet."""
    method = policy.get("method", "name")
    if policy.get("data", "artifact") is not None and not _method(policy).facts.has_document:
        raise ParameterError(
            f"{policy.where('data', 'artifact')} with the method {method}, whose groups are "
            f"{_method(policy).facts.groups} and no document: expected no artifact. Leave it out, or choose another "
            "method."
        )
    if policy.get("columns", "limits") and _method(policy).facts.writes_labels:
        raise ParameterError(
            f"{policy.where('columns', 'limits')} with the method {method}, whose detail comes from hierarchies: "
            "expected none. Leave the finer levels out of the hierarchies instead."
        )
    is_default = policy.get("method", "representative") == SECTIONS["method"]["representative"].default
    if (not is_default or "method.representative" in policy.lines) and _method(policy).facts.writes_labels:
        raise ParameterError(
            f"{policy.where('method', 'representative')} with the method {method}, which writes the labels of the "
            "hierarchies: expected no representative. Remove the line, or choose another method."
        )


def _method(policy: Policy) -> NamedMethod:
    """Return the method of a policy; this loads it, so it is asked only where it matters."""
    found: NamedMethod = METHODS[policy.get("method", "name")]
    return found


def _check_criteria(policy: Policy) -> None:
    """Refuse criteria on columns that the policy gives another role, and those that the method cannot meet."""
    own = policy.values["columns"]
    guarded = [*own["sensitive"], *([own["target"]] if own["target"] else [])]
    for number, criterion in enumerate(policy.criteria):
        column, unit = criterion.get("column"), criterion.get("unit")
        if column is not None and column not in guarded:
            raise ParameterError(
                f"{policy.where_criterion(number, 'column')} = {column!r}: expected a sensitive column or the target. "
                "Name it as sensitive under [columns]."
            )
        if unit is not None and unit != own["unit"]:
            raise ParameterError(
                f"{policy.where_criterion(number, 'unit')} = {unit!r}: expected the column that is unit under "
                f"[columns]. Write unit = {toml(unit)} there, too."
            )
        if "population" in criterion and not _method(policy).counts_population:
            raise ParameterError(
                f"{policy.where_criterion(number, 'population')} with the method {policy.get('method', 'name')}, whose "
                "groups have no cells that a population could fall into: expected another method. Write "
                'name = "mondrian" under [method], or remove the criterion.'
            )


def _check_attacks_can_run(policy: Policy) -> None:
    """Refuse a bound on attacks that the policy or this machine does not let run: it could never be met."""
    if policy.get("gate", "max_attack_advantage") is None:
        return
    bound = policy.where("gate", "max_attack_advantage")
    if policy.get("audit", "level") == "none":
        raise ParameterError(
            f"{bound} with audit level none: expected attacks to judge. "
            "Set level under [audit] to quick, standard or full."
        )
    if find_spec("torch") is None:
        left_out = policy.get("audit", "leave_out")
        level = policy.get("audit", "level")
        facts = [ATTACKS[name].facts for name in ATTACKS if name not in left_out]
        if lost := [own.name for own in facts if "torch" in own.needs and own.runs_at(level)]:
            raise ParameterError(
                f"{bound} without torch, which the attack {lost[0]} needs: expected every attack of the level to run. "
                f"Install it with pip install 'sfumato[neural]', or write leave_out = {toml(lost)} under [audit]."
            )


_ENDINGS = {"artifact": (".json",), "report": (".html", ".md"), "audit": (".json",)}


def _check_endings(policy: Policy) -> None:
    """Refuse names that say another kind of document than what is written; tables are told by the reader of tables."""
    for name, endings in _ENDINGS.items():
        file = policy.file(name)
        if file is not None and file.suffix not in endings:
            raise ParameterError(
                f"{policy.where('data', name)} = {policy.get('data', name)!r}: expected a name that ends in "
                f"{' or '.join(endings)}. Correct the ending."
            )


def _check_gate_is_measured(policy: Policy) -> None:
    """Refuse conditions on a model that the policy does not have measured: they could never be met."""
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


_MAY_BE_BOTH = {("target", "sensitive"), ("sensitive", "keep")}
"""The target may be sensitive, and a sensitive amount may leave although nearly every value is different."""


def _check_roles(policy: Policy) -> None:
    """Refuse a column with two roles; a subgroup may be any column."""
    roles: dict[str, str] = {}
    for name in ("target", "identifiers", "quasi_identifiers", "sensitive", "unit", "keep"):
        value = policy.get("columns", name)
        for column in (value,) if isinstance(value, str) else value or ():
            if column in roles and (roles[column], name) not in _MAY_BE_BOTH:
                raise ParameterError(
                    f"{policy.where('columns', name)} names {column!r}, which is {roles[column]} already: expected "
                    "one role per column. Remove it from one of them."
                )
            roles[column] = name
