# SPDX-License-Identifier: Apache-2.0
"""All settings of a policy file, by section.

The reader, the comments of suggested policies and the documentation are made from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sfumato.anonymize import MECHANISMS
from sfumato.anonymize import METHODS as ALL_METHODS
from sfumato.attack import ATTACKS as ALL_ATTACKS
from sfumato.attack.named_attack import LEVELS
from sfumato.errors import ParameterError
from sfumato.models import MODELS as ALL_MODELS
from sfumato.representatives import REPRESENTATIVES as ALL_REPRESENTATIVES

VERSION = 1

MAX_UNIQUE_TARGET = 0.5
"""The default of `max_unique_target` for a gate with a target."""

TITLES = "titles"
"""The section that maps columns to titles; its keys are columns, so it is not in `SECTIONS`."""

METHODS = tuple(ALL_METHODS)
ATTACKS = tuple(ALL_ATTACKS)
MODELS = tuple(ALL_MODELS)
REPRESENTATIVES = tuple(ALL_REPRESENTATIVES)
GUIDES = ("probabilities", "predictions", "labels")
TASKS = ("classification", "regression")
YES_NO = ("yes", "no")
ACCESS = ("public", "restricted", "internal")


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
        The value if the setting is omitted; None: none.
    sentence : str
        Its meaning, in one line.
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
            if self.kind == "choices" and isinstance(value, list):
                wrong = next(one for one in value if one not in self.choices)
                raise ParameterError(
                    f"{place} names {wrong!r}: expected {self.expected} ({self.sentence}).{guess(wrong, self.choices)}"
                )
            raise ParameterError(f"{said}: expected {self.expected} ({self.sentence}).")
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
        "release": Setting("text", None, "the protected table; nothing is written if the gate fails"),
        "artifact": Setting("text", None, "the partition, for 'sfumato apply'; it is personal data, too"),
        "holdout": Setting("text", None, "people who are not in the table, to bound what any attacker learns"),
        "earlier": Setting(
            "words", (), "publications of earlier releases of the same people, to compare this one with"
        ),
        "publication": Setting("text", None, "what to keep of this release for such comparisons; for its owner alone"),
        "report": Setting("text", "report.html", "the report, one HTML page"),
        "audit": Setting("text", "audit.json", "the results as JSON"),
        "keep_order": Setting("choice", "no", "yes: keep the order of the input, which can reveal who is who", YES_NO),
        "types": Setting("texts by name", {}, "types of CSV columns, such as zip = 'text'; auto-detected if omitted"),
        "separator": Setting("text", None, "CSV separator; auto-detected if omitted"),
        "decimal": Setting("text", None, "CSV decimal mark; auto-detected if omitted"),
        "encoding": Setting("text", None, "CSV encoding; auto-detected if omitted"),
        "missing": Setting("words", (), "texts that mean missing in a CSV file, in addition to the usual ones"),
        "header": Setting("choice", None, "whether a CSV file has a line of names; auto-detected if omitted", YES_NO),
    },
    "columns": {
        "target": Setting("name", None, "the column that the model predicts; it is not rewritten"),
        "identifiers": Setting("names", (), "direct identifiers, such as names: dropped"),
        "quasi_identifiers": Setting("names", None, "columns that together could identify a person: rewritten"),
        "sensitive": Setting("names", (), "sensitive attributes"),
        "subgroups": Setting("names", (), "columns whose groups are compared: effect by subgroup"),
        "keep": Setting("names", (), "columns to release unchanged even if nearly all their values are unique"),
        "unit": Setting(
            "name", None, "the column that identifies the person of each record, if a person has several; dropped"
        ),
        "persons": Setting(
            "name", None, "the column that recognizes people in earlier releases, each person once; dropped"
        ),
        "categorical": Setting("names", (), "numeric categories: numbers that are codes, not amounts"),
        "limits": Setting("numbers by name", {}, "the finest detail to release, such as age = 5, zip = 3"),
        "hierarchies": Setting(
            "files by name", {}, "hierarchy files by column, or a folder of files named like the columns"
        ),
    },
    "method": {
        "name": Setting("choice", "model-guided", "how groups are formed", METHODS),
        "k": Setting("integer", 10, "minimum group size", at_least=2),
        "l": Setting(
            "integer", None, "minimum distinct values of a sensitive column per group; missing is one", at_least=2
        ),
        "t": Setting(
            "share above 0", None, "maximum distance between a group's sensitive values and those of the table"
        ),
        "representative": Setting("choice", "phantom", "the values written for a group", REPRESENTATIVES),
        "target_values": Setting(
            "text",
            "exact",
            "released values of a numeric target: exact, round:1000 or the like, or group-mean",
        ),
        "suppression_limit": Setting("share below 1", 0.0, "maximum share of suppressed records"),
        "seed": Setting("integer", 0, "random seed", at_least=0, at_most=_LARGEST_SEED),
    },
    "model": {
        "name": Setting("choice", "gradient-boosting", "the model that guides the groups and is retrained", MODELS),
        "task": Setting("choice", None, "task of the model; auto-detected if omitted", TASKS),
        "guide": Setting("choice", "probabilities", "output that guides the groups", GUIDES),
        "guide_column": Setting("name", None, "a column of precomputed predictions, instead of a model; dropped"),
        "test_fraction": Setting("share", 0.2, "share of records held out to measure the model; 0 measures nothing"),
    },
    "audit": {
        "level": Setting("choice", "quick", "how thoroughly the release is attacked", LEVELS),
        "leave_out": Setting("choices", (), "attacks of the level to skip; network needs torch", ATTACKS),
        "seed": Setting("integer", 0, "random seed of the attacks", at_least=0, at_most=_LARGEST_SEED),
        "curve": Setting("integers", (), "other k to measure and attack for the report", at_least=2),
        "unfinished": Setting("text", None, "a folder for finished shadow models, to resume an interrupted run"),
    },
    "privacy": {
        "mechanism": Setting(
            "choice", None, "promise differential privacy by noisy counts or by a sample, instead of k", MECHANISMS
        ),
        "epsilon": Setting("number", None, "the promise for one person; smaller protects more"),
        "partition": Setting("text", None, "the partition whose cells are counted, fitted on other people"),
        "fitted_on": Setting("choice", None, "others: your statement that it was fitted on other people", ("others",)),
        "labels": Setting("list", None, "all values of the target, listed without looking at the table"),
        "most_per_person": Setting("integer", None, "records of a person that count, if there is a unit", at_least=1),
        "rate": Setting("share above 0", None, "of a sample: probability of each record to be kept"),
        "k": Setting("integer", None, "of a sample: rarer combinations are dropped", at_least=1),
        "ledger": Setting("text", None, "the ledger where the release is entered, a JSON file beside the data"),
        "budget_epsilon": Setting("number", None, "maximum epsilon of all releases of the ledger together"),
        "budget_delta": Setting("share below 1", None, "maximum delta of all releases of the ledger; 0 if omitted"),
    },
    "gate": {
        "min_k": Setting("integer", None, "minimum group size in the written file", at_least=1),
        "min_l": Setting(
            "integer", None, "minimum distinct values of a sensitive column per group; missing is one", at_least=1
        ),
        "max_attack_advantage": Setting("share", None, "maximum attack advantage over baseline and control"),
        "max_risk": Setting(
            "share above 0", None, "maximum chance to re-identify a record: 1 / smallest group (prosecutor)"
        ),
        "max_journalist_risk": Setting(
            "share above 0",
            None,
            "the same if an attacker does not know who is in the table; see sampling_fraction",
        ),
        "max_marketer_risk": Setting(
            "share above 0", None, "maximum share that an attacker who matches all records re-identifies on average"
        ),
        "max_share_at_risk": Setting(
            "share", None, "maximum share of records with a higher risk than threshold under [context] (prosecutor)"
        ),
        "max_population_unique": Setting(
            "share",
            None,
            "maximum share of records alone in the population, as estimated; see sampling_fraction",
        ),
        "max_certified_advantage": Setting(
            "share", None, "maximum advantage of any attacker on the sensitive columns; needs holdout"
        ),
        "max_unique": Setting(
            "share", None, "maximum share of records that are unique by the columns released unchanged"
        ),
        "max_unique_target": Setting("share", None, "maximum share of records with a unique target; 0.5 if omitted"),
        "min_accuracy_kept": Setting("share", None, "minimum share of the model's accuracy that is kept"),
        "min_gain_kept": Setting(
            "share", None, "minimum share of the model's gain over the majority class that is kept"
        ),
        "max_suppressed": Setting("share", None, "maximum share of suppressed records"),
    },
    "context": {
        "purpose": Setting("text", None, "what the release is for; shown in the report, as all of this section is"),
        "recipient": Setting("text", None, "who gets the release"),
        "access": Setting("choice", None, "who can read it", ACCESS),
        "population": Setting("text", None, "the people whom the table is a sample of"),
        "sampling_fraction": Setting(
            "share above 0",
            None,
            "share of that population that is in the table; 1 if omitted",
        ),
        "threshold": Setting("share above 0", None, "largest acceptable chance to re-identify a record"),
        "reviewer": Setting("text", None, "who approved the policy"),
        "review_by": Setting("text", None, "date by which it is reviewed again, such as 2027-01-31"),
    },
}
