# SPDX-License-Identifier: Apache-2.0
"""Look at a table and write a first policy for it, with the reasons as comments, for a person to correct.

Roles come from names, the form of values and how much columns single out records (:func:`sfumato.schema.judge_column`):
with meaningless names most columns are found all the same. Called by ``sfumato init``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Literal

from sfumato.columns import Column
from sfumato.errors import ParameterError
from sfumato.files.table_file import Location
from sfumato.frames import Table, read_table
from sfumato.measurement import measure
from sfumato.policy.personal import is_sex
from sfumato.policy.policy_file import toml
from sfumato.policy.settings import MAX_UNIQUE_TARGET, SECTIONS, TITLES, VERSION, Setting
from sfumato.policy.special_categories import special_category
from sfumato.schema import Judgement, as_numbers, count_values, judge_column
from sfumato.schema.judging import SMALLEST_TABLE_CHECKED

Role = Literal["target", "identifier", "quasi-identifier", "sensitive", "other"]

_DEFAULT_K = 10
_RECORDS_PER_K = 20

_MOST_CLASSES = 20  # categories that people are compared by
_LOOKED_AT = 1_000  # texts of a column
_FEWEST_TEXTS = 20
_AMOUNTS_AS_TEXT = {
    "dates": re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?"),
    "numbers": re.compile(r"[-+]?\d+[.,]\d+\s*[^\d\s]{0,8}"),  # whole numbers may be codes that are text on purpose
}
"""Forms of text that would be numbers or dates if all records had the same."""

SMALLEST_SHOWN = 10
"""Reasons tell no share of fewer records."""


@dataclass(frozen=True)
class Suggestion:
    """What one column was taken for, and why.

    Attributes
    ----------
    name : str
    role : {"target", "identifier", "quasi-identifier", "sensitive", "other"}
        Sensitive is only what a person says is.
    reason : str
        One sentence for a person, without any value of the column.
    special : str or None
        The special category of Article 9 that its name or values hint at.
    code : str or None
        Why whole numbers may be codes rather than amounts.
    is_surely_code : bool
        Whether name and values agree that they are: the policy then names the column under ``categorical``.
    alone, paired : float
        Share of the records that it makes unique by itself, and with the one other column that helps most.
    forms_subgroups : bool
        Whether people should be compared by it: sex and what may be special, in few categories or classes of amounts.
    """

    name: str
    role: Role
    reason: str
    special: str | None = None
    code: str | None = None
    is_surely_code: bool = False
    alone: float = 0.0
    paired: float = 0.0
    forms_subgroups: bool = False


def suggest_roles(frame: Any, target: str | None = None) -> list[Suggestion]:
    """Give every column a role by its name, the form of its values and how much it singles out records.

    A column that names people or records is an identifier; amounts do not, even where nearly every record has its own.
    Every other column that varies can point at a person together with others: a quasi-identifier. One that is the same
    for all records cannot.

    Parameters
    ----------
    frame : frame or array
    target : str, optional
        The column that the model predicts.
    """
    table = read_table(frame)
    if target is not None and target not in table.names:
        table.resolve([target], "target")
    others = [name for name in table.names if name != target]
    if not others:
        raise ParameterError(
            "the table has no column beside the target: expected some that describe people. Check the file."
        )
    columns = {name: table.column(name, for_counting=True) for name in table.names}
    predicted = None if target is None else as_numbers(columns[target])
    judged = {name: judge_column(columns[name], target=predicted) for name in others}
    # Columns that name people are dropped, so what others tell together with them does not matter.
    described = [name for name in others if judged[name].names_people is None]
    shares = _shares_of_unique(table, described) if described else {}
    found = []
    for name in table.names:
        column = columns[name]
        special = special_category(name, () if column.categories is None else column.categories[:1000])
        if name == target:
            found.append(Suggestion(name, "target", _about_target(column), special))
            continue
        own = judged[name].counts.share_unique
        found.append(_suggest(judged[name], column, shares.get(name, (own, own)), special))
    return found


def _shares_of_unique(table: Table, names: list[str]) -> dict[str, tuple[float, float]]:
    """Return, per column, the share of records unique by it alone and with the one column that helps it most."""
    ranking = measure(table.replaced({}, drop=[n for n in table.names if n not in names])).ranking
    alone = {entry.columns[0]: entry.share for entry in ranking.columns}
    paired = dict.fromkeys(names, 0.0)
    for entry in ranking.pairs:
        for name in entry.columns:
            paired[name] = max(paired[name], entry.share)
    return {name: (alone[name], paired[name]) for name in names}


def _about_target(column: Column) -> str:
    share = count_values(column).share_unique
    if column.n_records < SMALLEST_TABLE_CHECKED or share <= 0.5:
        return "what the model predicts"
    return (
        f"what the model predicts; it is released unchanged and {share:.0%} of its values are unique: set target_values"
    )


def _suggest(found: Judgement, column: Column, shares: tuple[float, float], special: str | None) -> Suggestion:
    (alone, paired), n = shares, column.n_records
    n_values = found.counts.n_distinct + int(column.missing is not None and bool(column.missing.any()))
    if n_values < 2:
        return Suggestion(column.name, "other", "the same for all records, so it identifies nobody", special)
    if found.names_people is not None:
        more = ""
        if found.repeats:
            more = "; if each value is one person, name it under unit, and k counts persons"
        return Suggestion(column.name, "identifier", found.names_people + more, None, alone=alone, paired=paired)
    look = _look_of(column)
    if look is not None:
        reason = (
            f"text, of which most looks like {look}, but not all in one form: it is rewritten as categories, and rare "
            f"ones are not shown. Write all of them in one form, and it is read as {look}"
        )
    elif found.counts.is_near_unique and found.is_amount:
        reason = f"{_told(alone, n)} are unique by it; an amount or a date, so it is rewritten and not dropped"
    elif found.counts.is_near_unique:
        reason = f"{_told(alone, n)} are unique by it; if it is an account or a place, drop it"
    elif alone >= 0.001:
        by_two = f"fewer than {SMALLEST_SHOWN}" if _is_few(paired, n) else f"{paired:.0%}"
        reason = f"by itself it singles out {_told(alone, n, 1)}, with one other column {by_two}"
    elif paired >= 0.001:
        reason = f"together with one other column it singles out {_told(paired, n, 1)}"
    else:
        reason = f"{n_values:,} values, which add to the other columns"
    has_classes = found.is_amount or found.counts.n_distinct <= _MOST_CLASSES
    return Suggestion(
        column.name, "quasi-identifier", reason, special, found.code, found.is_surely_code, alone, paired,
        has_classes and (special is not None or is_sex(column.name)),
    )  # fmt: skip


def _look_of(column: Column) -> str | None:
    """Return what most texts of a column look like, dates or numbers; None if they are no texts, or others."""
    if column.categories is None:
        return None
    texts = [str(text).strip() for text in column.categories[:: max(1, len(column.categories) // _LOOKED_AT)]]
    for look, pattern in _AMOUNTS_AS_TEXT.items():
        if 2 * sum(pattern.fullmatch(text) is not None for text in texts) > max(len(texts), _FEWEST_TEXTS):
            return look
    return None


def _is_few(share: float, n_records: int) -> bool:
    return 0 < round(share * n_records) < SMALLEST_SHOWN


def _told(share: float, n_records: int, digits: int = 0) -> str:
    """Return a share of the records in words; that of a few records is masked."""
    if _is_few(share, n_records):
        return f"fewer than {SMALLEST_SHOWN} records"
    return f"{share:.{digits}%} of the records"


def write_policy(
    frame: Any,
    *,
    file: Location,
    target: str,
    sensitive: tuple[str, ...] = (),
    k: int = _DEFAULT_K,
    reading: Mapping[str, Any] | None = None,
) -> tuple[str, list[Suggestion]]:
    """Return the text of a suggested policy for a table, and the suggested role of each column.

    Parameters
    ----------
    frame : frame or array
    file : Path or DuckDBAddress
        Where the table is, as the policy shall name it.
    target : str
    sensitive : tuple of str
        Columns known to be sensitive; they are not rewritten.
    k : int
    reading : mapping, optional
        Settings of the ``data`` section by which a CSV file was read, for the policy to read it the same way.
    """
    roles = [_as_told(found, sensitive) for found in suggest_roles(frame, target)]
    quasi_identifiers = [s.name for s in roles if s.role == "quasi-identifier"]
    values: dict[str, dict[str, Any]] = {
        "data": {
            "file": str(file),
            "release": f"{file.stem}-released{file.suffix}",
            "artifact": None,
            "report": SECTIONS["data"]["report"].default,
            "audit": SECTIONS["data"]["audit"].default,
            **(reading or {}),
        },
        "columns": {
            "target": target,
            "identifiers": [s.name for s in roles if s.role == "identifier"],
            "quasi_identifiers": quasi_identifiers,
            "sensitive": list(sensitive),
            "categorical": [s.name for s in roles if s.is_surely_code],
            "subgroups": [s.name for s in roles if s.role == "quasi-identifier" and s.forms_subgroups],
        },
        "method": {"name": "model-guided", "k": k, "representative": "phantom", "suppression_limit": 0.0, "seed": 0},
        "model": {"name": SECTIONS["model"]["name"].default, "test_fraction": 0.2},
        "audit": {"level": "quick", "leave_out": [] if find_spec("torch") else ["network"]},
        "gate": {
            "min_k": k,
            "max_attack_advantage": 0.1,
            "max_unique": 0.05,
            "max_unique_target": MAX_UNIQUE_TARGET,
            "min_accuracy_kept": 0.9,
            "min_gain_kept": 0.5,
            "max_suppressed": 0.0,
        },
    }
    if read_table(frame).n_records < _RECORDS_PER_K * k:
        # Too few to hold some out and form groups of the others.
        values["gate"]["min_accuracy_kept"] = values["gate"]["min_gain_kept"] = None
    lines = [
        "# A suggested policy. Every line is a suggestion: someone who knows the data must confirm it.",
        "# Run it with: sfumato run policy.toml",
        f"version = {VERSION}",
    ]
    for section, settings in SECTIONS.items():
        if section == "privacy":  # needs a partition of other people, or another method
            lines += _MORE_PROMISES
            continue
        lines += ["", f"[{section}]"]
        if section == "columns":
            lines += _why(roles)
        for name, setting in settings.items():
            value = values.get(section, {}).get(name)
            if value is not None:
                lines += _TO_DECIDE.get((section, name), [])
            lines += _setting_lines(name, setting, value)
    lines += ["", f"[{TITLES}]", "# titles of columns in the report and in forms"]
    lines.append(f'# {toml(target)} = "..."')
    return "\n".join(lines) + "\n", roles


def _as_told(found: Suggestion, sensitive: tuple[str, ...]) -> Suggestion:
    """Return a column with the role that the user gave it; a sensitive target stays the target."""
    if found.name not in sensitive or found.role == "target":
        return found
    return replace(found, role="sensitive", reason="specified as sensitive; it is not rewritten")


# What no first policy has, so that nobody overlooks it.
_MORE_PROMISES = [
    "",
    "# Further criteria that every group must meet, as many as needed, each in a section like this:",
    "# [[criteria]]",
    '# name = "t-closeness"',
    "# t = 0.2",
    '# column = "..."',
    "",
    "# [privacy] promises differential privacy instead of k. It needs a partition of other people: see the reference.",
]

# Decisions beyond the roles of columns, for which no suggestion is right by itself.
_TO_DECIDE = {
    ("method", "representative"): [
        "# DECIDE: phantom writes a typical combination that no record has. model and member write the values of one",
        "# real member of each group, which can single that person out; range writes ranges such as 31-34.",
    ],
    ("gate", "max_attack_advantage"): [
        "# DECIDE: 0.1 is one more success in ten tries than without the release. Who could attack, with what harm?",
    ],
    ("gate", "min_accuracy_kept"): [
        "# DECIDE: below which accuracy is the release useless? With few records the estimate is rough: allow for it.",
    ],
}


def _why(roles: list[Suggestion]) -> list[str]:
    """Return the reason for each column's role as comments."""
    lines = ["# Why each column has its role:"]
    for suggestion in roles:
        lines.append(f"#   {toml(suggestion.name)}: {suggestion.role}: {suggestion.reason}")
        if suggestion.is_surely_code:
            lines.append(f"#     codes, named under categorical: {suggestion.code}")
        elif suggestion.code is not None:
            lines.append(f"#     CONFIRM: may be codes; if so, name it under categorical: {suggestion.code}")
        if suggestion.special is not None:
            to_do = "" if suggestion.role == "sensitive" else "; name it under sensitive if it must be protected"
            lines.append(
                f"#     CONFIRM: may be about {suggestion.special}, a special category of Article 9 of the GDPR{to_do}"
            )
    return lines


def _setting_lines(name: str, setting: Setting, value: Any) -> list[str]:
    choices = f"; one of {', '.join(setting.choices)}" if setting.choices else ""
    comment = f"# {setting.sentence}{choices}"
    if value is None or value in ([], {}, ()):
        return [comment, f"# {name} = {_example(setting)}"]
    return [comment, f"{name} = {toml(value)}"]


def _example(setting: Setting) -> str:
    if setting.default not in (None, (), {}):
        return toml(setting.default)
    return {
        "text": '"..."',
        "name": '"..."',
        "names": '["..."]',
        "integer": f"{2 if setting.at_least is None else max(2, int(setting.at_least))}",
        "share": "0.1",
        "share below 1": "0.1",
        "share above 0": "0.1",
        "words": '["..."]',
        "integers": "[5, 20, 100]",
        "choice": toml(setting.choices[0]) if setting.choices else "",
        "choices": toml(setting.choices[:1]),
        "numbers by name": "{ age = 5 }",
        "texts by name": '{ zip = "text" }',
        "files by name": '{ age = "age.csv" }',
    }[setting.kind]
