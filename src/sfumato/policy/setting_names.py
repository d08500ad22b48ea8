# SPDX-License-Identifier: Apache-2.0
"""How a policy spells the settings that sentences of the library name."""

from __future__ import annotations

from typing import Any

from sfumato.errors import Reference, Sentence, Spelling
from sfumato.policy.policy_file import toml
from sfumato.policy.settings import SECTIONS, YES_NO

# Parameters that a policy calls otherwise; all others are keys of their own name.
_KEYS = {name: (section, name) for section, settings in SECTIONS.items() for name in settings} | {
    "attributes": ("columns", "identifiers"),  # columns that take part are those that are not dropped
    "categorical_features": ("columns", "categorical"),
    "method": ("method", "name"),
    "model": ("model", "name"),
    "output": ("data", "release"),
    "random_state": ("method", "seed"),
}


def with_keys(sentence: str, otherwise: Spelling = str) -> str:
    """Return a sentence with the keys of a policy; a section is named once.

    Parameters
    ----------
    sentence : str
    otherwise : callable
        Spells what a policy does not say.

    Examples
    --------
    >>> from sfumato.errors import named
    >>> with_keys(f"Give {named('encoding', 'cp1252')}. List it in {named('identifiers')} or {named('keep')}.")
    'Give encoding = "cp1252" under [data]. List it in identifiers under [columns] or keep.'
    """
    sections: set[str] = set()

    def spelling(setting: Reference) -> str:
        if setting.name not in _KEYS:
            return otherwise(setting)
        section, key = _KEYS[setting.name]
        written = key if setting.shown is None else f"{key} = {toml(_as_written(section, key, setting.value))}"
        if section in sections:
            return written
        sections.add(section)
        return f"{written} under [{section}]"

    return Sentence(sentence).spelled(spelling)


def _as_written(section: str, key: str, value: Any) -> Any:
    if isinstance(value, bool) and SECTIONS[section][key].choices == YES_NO:
        return "yes" if value else "no"
    return value
