# SPDX-License-Identifier: Apache-2.0
"""Criteria in a policy: ``[[criteria]]``, one table each, with the keys that the criterion's constructor has.

The keys, what they take and what they mean are read off the criteria themselves, so that a new criterion can be asked
for without a line here. The sensitive column is called ``column``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache, partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sfumato.criteria import CRITERIA
from sfumato.errors import InputError, ParameterError, Reference, Sentence
from sfumato.policy.policy_file import Places, shown
from sfumato.policy.settings import Setting, guess

KEY = "criteria"
"""The name of the array of tables."""

_KEY_OF = {"sensitive": "column"}
_SENTENCES = {"sensitive": "the sensitive column, or the target", "unit": "the unit under [columns]"}
_FILES = ("hierarchy file", "table file")


@cache
def settings_of(name: str) -> dict[str, Setting]:
    """Return the keys of a criterion, from the parameters of its constructor.

    Examples
    --------
    >>> list(settings_of("beta-likeness"))
    ['beta', 'column', 'kind', 'missing']
    """
    kind = CRITERIA[name]
    hints, meanings = get_type_hints(kind), _meanings(kind)
    found = {}
    for one in fields(kind):
        if one.init:
            default = ... if one.default is MISSING else one.default
            sentence = _SENTENCES.get(one.name, meanings.get(one.name, ""))
            found[_KEY_OF.get(one.name, one.name)] = _setting(one, hints[one.name], default, sentence)
    return found


def is_required(setting: Setting) -> bool:
    """Return True if a criterion has no default for a key."""
    return setting.default is ...


def _setting(parameter: Any, hint: Any, default: Any, sentence: str) -> Setting:
    own = parameter.metadata.get("policy")
    if own is not None:
        needed = own == "table file"  # a constructor can do without, a release cannot
        return Setting(
            {"hierarchy file": "text", "table file": "text"}.get(own, own), ... if needed else None, sentence
        )
    kinds = [one for one in get_args(hint) or (hint,) if one is not type(None)]
    if get_origin(hint) is Literal:
        return Setting("choice", default, sentence, tuple(map(str, kinds)))
    if kinds == [str]:
        return Setting("name", default, sentence)
    return Setting("integer" if kinds == [int] else "number", default, sentence)


def _meanings(kind: type) -> dict[str, str]:
    """Return the first sentence about every parameter of a numpydoc docstring."""
    text = inspect.getdoc(kind) or ""
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n|\Z)", text, re.DOTALL)
    found: dict[str, str] = {}
    for part in re.split(r"\n(?=\S)", section[1] if section else ""):
        head, _, body = part.partition("\n")
        first = re.split(r"(?<=[^.])\.(?:\s|$)", " ".join(body.split()), maxsplit=1)[0].replace("``", "")
        for name in head.partition(" : ")[0].split(", "):
            found[name] = first[:1].lower() + first[1:]
    return found


def check_criteria(given: Any, places: Places) -> tuple[dict[str, Any], ...]:
    """Return the criteria of a policy, each a dict of its name and its keys.

    Parameters
    ----------
    given : list of dict
    places : Places

    Raises
    ------
    ParameterError
        For a name or a key that is unknown, a key that is missing, or a value that the criterion does not take.
    """
    where = places.of_criterion
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise ParameterError(
            f"{where(0, '')}: not a list of tables, expected one [[criteria]] for each criterion. Write the name in "
            'double brackets, and below it name = "beta-likeness" and its settings.'
        )
    found: list[dict[str, Any]] = []
    for number, content in enumerate(given):
        name = content.get("name")
        if not isinstance(name, str) or name not in CRITERIA:
            said = "not given" if name is None else f"{name!r} is unknown"
            raise ParameterError(
                f"{where(number, 'name')}: {said}, expected one of {', '.join(CRITERIA)}.{guess(name, CRITERIA)}"
            )
        settings = settings_of(name)
        for key in content:
            if key != "name" and key not in settings:
                raise ParameterError(
                    f"{where(number, key)}: unknown, expected one of {', '.join(settings)}, which {name} takes."
                    f"{guess(key, settings)}"
                )
        for key, setting in settings.items():
            if is_required(setting) and content.get(key) is None:
                raise ParameterError(
                    f"{where(number, key)}: not given, expected it for {name}. It is {setting.sentence}. Add "
                    f"{key} = ... below the name."
                )
        entry = {"name": name}
        for key, value in content.items():
            if key != "name" and value is not None:
                place = where(number, key)
                entry[key] = settings[key].checked(value, place, f"{place} = {shown(value)}")
        if entry in found:
            raise ParameterError(
                f"{where(number, 'name')}: the same {name} twice, expected each criterion once. Remove one of them."
            )
        make_criterion(entry, partial(where, number), _stand_in)
        found.append(entry)
    return tuple(found)


def make_criterion(entry: Mapping[str, Any], where: Callable[[str], str], open_file: Callable[[str, str], Any]) -> Any:
    """Make the criterion that a policy asks for.

    Parameters
    ----------
    entry : mapping
        Its name and its keys.
    where : callable
        Names the place of a key.
    open_file : callable
        Takes what a file holds, ``"hierarchy file"`` or ``"table file"``, and its name; returns what it holds.
    """
    kind = CRITERIA[entry["name"]]
    given = {}
    for one in fields(kind):
        key = _KEY_OF.get(one.name, one.name)
        if key in entry:
            own = one.metadata.get("policy")
            try:
                given[one.name] = open_file(own, entry[key]) if own in _FILES else entry[key]
            except InputError as error:
                raise InputError(f"{where(key)} = {entry[key]!r}: " + error.sentence) from None
    try:
        return kind(**given)
    except ParameterError as error:
        raise ParameterError(_placed(error.sentence, where)) from None


def _stand_in(kind: str, name: str) -> Any:
    """Return something in place of a file: a policy is checked before its files are read."""
    return [("a", "*"), ("b", "*")] if kind == "hierarchy file" else None


def _placed(sentence: Sentence, where: Callable[[str], str]) -> str:
    """Return what a constructor says, with the place in the policy of the key that it is about."""
    if not sentence.references:
        return f"{where('name')}: {sentence}"
    about = sentence.references[0].name
    places = {about: where(_KEY_OF.get(about, about))}  # named in full once

    def spelling(setting: Reference) -> str:
        place = places.pop(setting.name, _KEY_OF.get(setting.name, setting.name))
        return place if setting.shown is None else f"{place} = {setting.shown}"

    return sentence.spelled(spelling)
