# SPDX-License-Identifier: Apache-2.0
"""What a user of ``sfumato anonymize`` asks for: every column a role, and the settings of the method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.cli import options
from sfumato.errors import ParameterError


@dataclass(frozen=True)
class Request:
    """What the user asked for, after the columns were looked up in the file."""

    k: int
    target: str | None
    quasi_identifiers: list[str]
    dropped: list[str]
    keep: list[str]
    categorical: list[str]
    limits: dict[Any, float]
    unit: str | None
    guide: str
    guide_column: str | None
    representative: str
    model: str
    seed: int
    jobs: int | None

    def new_anonymizer(self) -> Any:
        """Make an unfitted anonymizer."""
        from sfumato.anonymize import ModelGuidedAnonymizer
        from sfumato.criteria import KAnonymity

        return ModelGuidedAnonymizer(
            k=self.k,
            quasi_identifiers=self.quasi_identifiers,
            identifiers=self.dropped or None,
            keep=self.keep or None,
            criteria=[KAnonymity(self.k, unit=self.unit)] if self.unit else None,
            categorical_features=self.categorical or None,
            limits=self.limits or None,
            representative=self.representative,  # type: ignore[arg-type]
            random_state=self.seed,
            n_jobs=self.jobs,
        )

    def check_schema(self, table: Any) -> None:
        """Refuse before any training what the anonymizer would refuse after it."""
        from sfumato.frames import read_table
        from sfumato.schema import build_schema

        build_schema(
            read_table(table),
            quasi_identifiers=self.quasi_identifiers,
            identifiers=self.dropped or None,
            unit=self.unit,
            keep=self.keep or None,
            categorical_features=self.categorical or None,
            limits=self.limits or None,
        )

    def features(self, table: Any) -> Any:
        """Return what a model may see of a table, raw or rewritten: neither target nor what never leaves."""
        hidden = {self.target, *self.dropped, self.unit if self.unit not in self.keep else None}
        return table.select([name for name in table.column_names if name not in hidden])


LARGEST_SEED = 2**32 - 1  # what scikit-learn takes


def check_numbers(k: int, test_fraction: float, seed: int) -> None:
    """Refuse numbers that cannot work, before any file is read."""
    if k < 2:
        raise ParameterError(f"--k {k}: expected at least 2. With 1, every record may stand alone; 5 to 100 is common.")
    if not 0 <= test_fraction < 1:
        raise ParameterError(f"--test-fraction {test_fraction}: expected a share from 0 to below 1, such as 0.2.")
    if not 0 <= seed <= LARGEST_SEED:
        raise ParameterError(f"--seed {seed}: expected a whole number from 0 to {LARGEST_SEED}. Correct it.")


def resolve(
    columns: Sequence[str],
    *,
    target: str | None,
    quasi_identifiers: list[str] | None,
    identifiers: list[str] | None,
    keep: list[str] | None,
    categorical: list[str] | None,
    limits: list[str] | None,
    unit: str | None,
    guide: str,
    **settings: Any,
) -> Request:
    """Look the columns up and give each a role, or say what does not fit together."""
    from sfumato.cli.files import unknown_column

    how, guide_column = parse_guide(guide, target)
    named = {
        "--target": [target] if target is not None else [],
        "--quasi-identifiers": options.split_names(quasi_identifiers, columns),
        "--identifiers": options.split_names(identifiers, columns),
        "--keep": options.split_names(keep, columns),
        "--unit": [unit] if unit is not None else [],
        "--guide": [guide_column] if guide_column else [],
        "--categorical": options.split_names(categorical, columns),
    }
    pairs = options.split_pairs(limits, "--limits", "age=5,zip=3")
    for option, names in (named | {"--limits": list(pairs)}).items():
        for name in names:
            if name not in columns:
                raise ParameterError(unknown_column(option, name, columns))
    _check_roles(named)
    passed = {name for option in ("--target", "--identifiers", "--keep", "--unit", "--guide") for name in named[option]}
    chosen = named["--quasi-identifiers"] or [name for name in columns if name not in passed]
    if not chosen:
        raise ParameterError("no column is left to be a quasi-identifier: expected at least one. Name fewer others.")
    # Predictions tell records apart almost as well as names do, so the column does not leave unless it is kept.
    dropped = named["--identifiers"] + [name for name in named["--guide"] if name not in named["--keep"]]
    kept = list(dict.fromkeys(named["--keep"] + named["--target"]))
    return Request(
        target=target,
        quasi_identifiers=chosen,
        dropped=dropped,
        keep=kept,
        categorical=named["--categorical"],
        limits=_limit_numbers(pairs),
        unit=unit,
        guide=how,
        guide_column=guide_column,
        **settings,
    )


def parse_guide(guide: str, target: str | None) -> tuple[str, str | None]:
    """Read what guides the groups: how, and which column of the file if it is one."""
    how, _, column = guide.partition(":")
    how = how.lower()
    if how not in ("probabilities", "predictions", "labels", "column") or (how == "column") != bool(column):
        raise ParameterError(
            f"--guide {guide!r}: expected probabilities, predictions, labels, or column:NAME for a column of the file "
            "that holds ready predictions."
        )
    if target is None and how != "column":
        raise ParameterError(
            "no --target: expected the column that the model predicts, since its predictions guide the groups. "
            "Give --target COLUMN, or --guide column:NAME if the file holds predictions."
        )
    return how, column or None


def _check_roles(named: dict[str, list[str]]) -> None:
    """Refuse a column with two roles; keep goes with unit and guide, which would be dropped otherwise."""
    roles: dict[str, str] = {}
    for option in ("--target", "--quasi-identifiers", "--identifiers", "--unit", "--guide", "--keep"):
        for name in named[option]:
            earlier = roles.get(name)
            if earlier == option:
                raise ParameterError(f"{option} names the column {name!r} twice. Remove the repetition.")
            if earlier is not None and not (option == "--keep" and earlier in ("--unit", "--guide", "--target")):
                raise ParameterError(
                    f"the column {name!r} is named in {earlier} and in {option}: expected one role per column. "
                    "Remove it from one of them."
                )
            roles.setdefault(name, option)


def _limit_numbers(pairs: dict[str, str]) -> dict[Any, float]:
    numbers: dict[Any, float] = {}
    for name, text in pairs.items():
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ParameterError(f"--limits {name}={text}: expected a number, for example --limits age=5.")
        numbers[name] = int(value) if value == int(value) else value
    return numbers
