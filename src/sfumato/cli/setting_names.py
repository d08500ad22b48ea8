# SPDX-License-Identifier: Apache-2.0
"""How the commands spell the settings that sentences of the library name: as options, or as keys of a policy."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sfumato.errors import Reference, Sentence

# Parameters whose options are called otherwise; all others are called alike.
_OPTION_OF = {
    "attributes": "identifiers",  # columns that take part are those that are not dropped
    "categorical_features": "categorical",
    "guide_column": "guide",
    "max_attack_advantage": "max_advantage",
    "n_jobs": "jobs",
    "n_shadows": "shadows",
    "n_splits": "splits",
    "random_state": "seed",
}

_OPTIONS: ContextVar[dict[str, Any] | None] = ContextVar("options of the running command", default=None)


@contextmanager
def options_of(parameters: Iterable[Any]) -> Iterator[None]:
    """Enclose a command that has these parameters, as typer lists them."""
    token = _OPTIONS.set({one.name: one for one in parameters if one.param_type_name == "option"})
    try:
        yield
    finally:
        _OPTIONS.reset(token)


def with_options(sentence: str) -> str:
    """Return a sentence with the options of the running command.

    Examples
    --------
    >>> from sfumato.errors import named
    >>> with_options(f"List it in {named('quasi_identifiers')}, or give {named('types', {'zip': 'text'})}.")
    'List it in --quasi-identifiers, or give --types zip=text.'
    """
    return Sentence(sentence).spelled(_as_option)


def with_keys(sentence: str) -> str:
    """Return a sentence with the keys of a policy, and options of the command for what a policy does not say."""

    from sfumato.policy import setting_names

    return setting_names.with_keys(sentence, otherwise=_as_option)


def _as_option(setting: Reference) -> str:
    """Spell a setting as an option; one that the running command does not have is named in words."""
    name = _OPTION_OF.get(setting.name, setting.name)
    words, options = name.replace("_", "-"), _OPTIONS.get()
    option = None if options is None else options.get(name)
    if options is not None and option is None:
        return words if setting.shown is None else str(setting)
    spelled = f"--{words}" if option is None else _shown(option.opts)
    otherwise = getattr(option, "secondary_opts", None)
    if otherwise and setting.shown == "False":
        return str(otherwise[0])
    if setting.shown is None or (option is not None and option.is_flag):
        return spelled
    return f"{spelled} {_written(setting.value)}"


def _shown(opts: list[str]) -> str:
    """Return the form of an option that the help uses in its examples."""
    return "-o" if "-o" in opts else max(opts, key=len)


def _written(value: Any) -> str:
    """Write a value as it is typed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = ",".join(f"{name}={one}" for name, one in value.items())
    elif isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return shlex.quote(str(value))
