# SPDX-License-Identifier: Apache-2.0
"""Everything a policy file can say: one table of sections and settings.

The reader checks a file against it, the writer of first policies takes its comments from it, and the documentation
lists it, so that the three cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sfumato.anonymize import METHODS as ALL_METHODS
from sfumato.attack import ATTACKS as ALL_ATTACKS
from sfumato.attack.facts import LEVELS
from sfumato.errors import ParameterError
from sfumato.models import MODELS as ALL_MODELS
from sfumato.representatives import REPRESENTATIVES as ALL_REPRESENTATIVES

VERSION = 1

MAX_UNIQUE_TARGET = 0.5
"""What every gate allows where there is a target and `max_unique_target` is not given."""

TITLES = "titles"
"""The section that maps columns to titles; its keys are columns, so it is not in `SECTIONS`."""

METHODS = tuple(ALL_METHODS)
ATTACKS = tuple(ALL_ATTACKS)
MODELS = tuple(ALL_MODELS)
REPRESENTATIVES = tuple(ALL_REPRESENTATIVES)
GUIDES = ("probabilities", "predictions", "labels")
TASKS = ("classification", "regression")
YES_NO = ("yes", "no")


@dataclass(frozen=True)
class Setting:
    """One setting of a policy.

    Attributes
    ----------
    kind : str
        What its value must be: ``"text"``, ``"name"`` (of a column), ``"names"``, ``"words"``, ``"integer"``,
        ``"integers"``, ``"number"``, ``"list"``, ``"share"`` (a number from 0 to 1), ``"share below 1"``,
        ``"share above 0"``, ``"choice"``, ``"choices"``, ``"numbers by name"``, ``"texts by name"``,
        ``"files by name"`` (or a folder).
    default : object
        What holds where the file does not say; None: nothing.
    sentence : str
        What it means, in one line.
    choices : tuple of str
        For a choice, or several.
    at_least, at_most : int or float, optional
        Smallest and largest value of a number.
    """

    kind: str
    default: Any
    sentence: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None

    def accepts(self, value: Any) -> bool:
        """Return True if a value is of the kind of this setting and within its bounds."""
        kind = self.kind
        if kind in ("text", "name") or (kind == "files by name" and isinstance(value, str)):
            return isinstance(value, str) and value != "" and "\0" not in value  # which no path can hold
        if kind == "choice":
            return value in self.choices
        if kind == "integer":
            return type(value) is int and self._is_within_bounds(value)
        if kind in ("number", "share", "share below 1", "share above 0"):
            return _is_number(value) and _SHARES[kind](value)
        if kind.endswith("by name"):
            is_part = _is_number if kind == "numbers by name" else lambda one: isinstance(one, str)
            return isinstance(value, dict) and all(is_part(one) for one in value.values())
        is_part = {
            "choices": lambda one: one in self.choices,
            "integers": lambda one: type(one) is int and self._is_within_bounds(one),
            "list": lambda one: not isinstance(one, list | dict),
        }.get(kind, lambda one: isinstance(one, str))
        return isinstance(value, list) and all(is_part(one) for one in value)

    def checked(self, value: Any, place: str, said: str) -> Any:
        """Return a value, lists as tuples.

        Parameters
        ----------
        value : object
        place, said : str
            The place of the setting as messages name it, without and with the value.

        Raises
        ------
        ParameterError
            For a value that the setting does not accept, or a column named twice.
        """
        if not self.accepts(value):
            raise ParameterError(f"{said}: expected {self.expected}. It is {self.sentence}.")
        if not isinstance(value, list):
            return value
        if self.kind == "names" and (repeated := sorted({one for one in value if value.count(one) > 1})):
            raise ParameterError(
                f"{place} names {repeated[0]!r} twice: expected each column once. Remove the repetition."
            )
        return tuple(value)

    def _is_within_bounds(self, value: float) -> bool:
        is_enough = self.at_least is None or value >= self.at_least
        return is_enough and (self.at_most is None or value <= self.at_most)

    @property
    def expected(self) -> str:
        """What a value must be, as messages say it."""
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind == "choices":
            return f"a list of some of {', '.join(self.choices)}"
        if self.kind == "integer":
            if self.at_least is None:
                return "an integer"
            return f"an integer {f'>= {self.at_least:g}' if self.at_most is None else self._range}"
        if self.kind == "integers":
            return f"a list of integers >= {self.at_least or 0:g}, such as [5, 20, 100]"
        return _EXPECTED[self.kind]

    @property
    def _range(self) -> str:
        return f"from {self.at_least:.0f} to {self.at_most:.0f}"


def guess(given: object, known: Iterable[str]) -> str:
    """Return a question after the nearest known name, or nothing."""
    close = get_close_matches(str(given).lower(), list(known), n=1)  # settings are lowercase
    return f" Did you mean {close[0]}?" if close else ""


def _is_number(value: Any) -> bool:
    """Return True if a value is a finite number that 64 bits hold, excluding bools."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2.0**63


_SHARES: dict[str, Callable[[float], bool]] = {
    "number": lambda value: True,
    "share": lambda value: 0 <= value <= 1,
    "share below 1": lambda value: 0 <= value < 1,
    "share above 0": lambda value: 0 < value <= 1,
}
_EXPECTED = {
    "text": "text in quotes",
    "name": "the name of a column in quotes",
    "names": 'a list of column names, such as ["age", "zip"]',
    "words": 'a list of texts, such as ["?", "unknown"]',
    "number": "a number",
    "list": 'a list of values, such as ["low", "middle", "high"]',
    "share": "a number from 0 to 1",
    "share below 1": "a share of the records from 0 to below 1",
    "share above 0": "a number above 0 and at most 1",
    "numbers by name": "numbers by column, such as { age = 5, zip = 3 }",
    "texts by name": "types by column, such as { zip = 'text' }",
    "files by name": "files by column, such as { age = 'age.csv' }, or the name of a folder in quotes",
}

_LARGEST_SEED = 2**32 - 1  # what scikit-learn takes

SECTIONS: dict[str, dict[str, Setting]] = {
    "data": {
        "file": Setting(
            "text", None, "the table to protect: CSV, Parquet or duckdb:people.db?table=people; relative to this file"
        ),
        "release": Setting("text", None, "where the protected table goes; nothing is written when the gate fails"),
        "artifact": Setting("text", None, "where the partition goes, for 'sfumato apply'; it is data about people"),
        "report": Setting("text", "report.html", "the report for people, one HTML page"),
        "audit": Setting("text", "audit.json", "the same as data"),
        "keep_order": Setting("choice", "no", "yes: keep the order of the input, which can tell who is who", YES_NO),
        "types": Setting("texts by name", {}, "types of CSV columns where the file does not say, such as zip = 'text'"),
        "separator": Setting("text", None, "what stands between the values of a CSV file, where it is not found out"),
        "decimal": Setting("text", None, "the decimal mark of a CSV file, where it is not found out"),
        "encoding": Setting("text", None, "the encoding of a CSV file, where it is not found out"),
        "missing": Setting("words", (), "texts that mean missing in a CSV file, beside the usual ones"),
        "header": Setting("choice", None, "whether a CSV file has a line of names, where it is not found out", YES_NO),
    },
    "columns": {
        "target": Setting("name", None, "what the model predicts; it is not rewritten"),
        "identifiers": Setting("names", (), "columns that name a person: dropped"),
        "quasi_identifiers": Setting("names", None, "columns that together could point at a person: rewritten"),
        "sensitive": Setting("names", (), "columns that nobody should learn about a person"),
        "subgroups": Setting("names", (), "columns by which the cost is shown group by group: who pays?"),
        "keep": Setting("names", (), "columns that may leave as they are although nearly every value is different"),
        "unit": Setting("name", None, "which person a record belongs to, where a person has several; dropped"),
        "categorical": Setting("names", (), "columns of numbers that are codes, not amounts"),
        "limits": Setting("numbers by name", {}, "the finest detail that may leave, such as age = 5, zip = 3"),
        "hierarchies": Setting("files by name", {}, "hierarchy files by column, or a folder of files called like them"),
    },
    "method": {
        "name": Setting("choice", "model-guided", "how groups are formed", METHODS),
        "k": Setting("integer", 10, "records that every group must have", at_least=2),
        "l": Setting("integer", None, "different values of a sensitive column per group; missing is one", at_least=2),
        "t": Setting("share above 0", None, "how far a group's sensitive values may be from those of the whole table"),
        "representative": Setting("choice", "phantom", "the values that a group's records get", REPRESENTATIVES),
        "target_values": Setting(
            "text",
            "exact",
            "what is released of a target of numbers: exact, round:1000 or the like, or group-mean",
        ),
        "suppression_limit": Setting("share below 1", 0.0, "share of the records that may be left out"),
        "seed": Setting("integer", 0, "seed of everything random", at_least=0, at_most=_LARGEST_SEED),
    },
    "model": {
        "name": Setting("choice", "gradient-boosting", "the model that guides and is trained again", MODELS),
        "task": Setting("choice", None, "what the target holds, where it is not found out", TASKS),
        "guide": Setting("choice", "probabilities", "what of the model guides the groups", GUIDES),
        "guide_column": Setting("name", None, "a column of ready predictions: no guide is trained; it is dropped"),
        "test_fraction": Setting("share", 0.2, "share of the records held out to measure; 0 measures nothing"),
    },
    "audit": {
        "level": Setting("choice", "quick", "how hard the release is attacked", LEVELS),
        "leave_out": Setting("choices", (), "attacks of the level that are not run; network needs torch", ATTACKS),
        "seed": Setting("integer", 0, "seed of the attacks", at_least=0, at_most=_LARGEST_SEED),
        "curve": Setting("integers", (), "other k to measure and attack for the report, to choose from", at_least=2),
        "unfinished": Setting("text", None, "a folder for finished shadow models, so that an interrupted run goes on"),
    },
    "gate": {
        "min_k": Setting("integer", None, "fewest records of any group of the written file", at_least=1),
        "min_l": Setting("integer", None, "fewest values of a sensitive column in a group; missing is one", at_least=1),
        "max_attack_advantage": Setting("share", None, "most that any attack may gain over its baseline"),
        "max_unique": Setting("share", None, "most of the records that the columns released unchanged may make unique"),
        "max_unique_target": Setting(
            "share", None, "most of the records with a target that no other record has; 0.5 unless given"
        ),
        "min_accuracy_kept": Setting("share", None, "least share of the model's accuracy that must survive"),
        "min_gain_kept": Setting("share", None, "least share of what the model learned beyond the majority class"),
        "max_suppressed": Setting("share", None, "most of the records that may have been left out"),
    },
}
