# SPDX-License-Identifier: Apache-2.0
"""What a user of ``sfumato anonymize`` asks for: every column a role, and the settings of the method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.auditing.methods import BY_COUNTS, GUIDED, WITHOUT_DOCUMENT, Method, guide_of_method, hierarchy_files
from sfumato.auditing.roles import codes_of, without_names
from sfumato.cli import options
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.cli.console import Console


def check_schema(request: Method, table: Any) -> None:
    """Refuse before any training what the anonymizer would refuse after it."""
    from sfumato.frames import read_table
    from sfumato.schema import build_schema

    build_schema(
        read_table(table),
        quasi_identifiers=request.quasi_identifiers,
        identifiers=request.dropped or None,
        sensitive=request.sensitive if request.l is not None or request.t is not None else (),
        unit=request.unit,
        keep=request.keep or None,
        categorical_features=request.categorical or None,
        limits=request.limits or None,
    )


LARGEST_SEED = 2**32 - 1  # what scikit-learn takes


def check_numbers(
    k: int,
    test_fraction: float,
    seed: int,
    l: int | None = None,  # noqa: E741  # the literature's name
    t: float | None = None,
    suppression_limit: float = 0.0,
) -> None:
    """Refuse numbers that cannot work, before any file is read."""
    if k < 2:
        raise ParameterError(f"--k {k}: expected at least 2. With 1, every record may stand alone; 5 to 100 is common.")
    if not 0 <= test_fraction < 1:
        raise ParameterError(f"--test-fraction {test_fraction}: expected a share from 0 to below 1, such as 0.2.")
    if not 0 <= seed <= LARGEST_SEED:
        raise ParameterError(f"--seed {seed}: expected a whole number from 0 to {LARGEST_SEED}. Correct it.")
    if l is not None and l < 2:
        raise ParameterError(f"--l {l}: expected at least 2. With 1, all records of a group may share a value.")
    if t is not None and not 0 < t <= 1:
        raise ParameterError(f"--t {t}: expected a number above 0 and at most 1; 0.15 to 0.3 is common.")
    if not 0 <= suppression_limit < 1:
        raise ParameterError(
            f"--suppression-limit {suppression_limit}: expected a share of the records from 0 to below 1, such as 0.01."
        )


def check_method(
    method: str | None, target: str | None, guide: str, *, representative: str | None, limits: Any, save: Path | None
) -> str:
    """Return the method to use: the one named, or what can be done with or without a target.

    Raises
    ------
    ParameterError
        For a method that lacks a target, or gets what it has no use for.
    """
    has_column = guide.lower().startswith("column:")
    if method is None:
        method = "model-guided" if target is not None or has_column else "information-loss"
    if method in GUIDED and target is None and not has_column:
        raise ParameterError(
            f"--method {method} without --target: expected the column that guides the groups. Give --target COLUMN, "
            "--guide column:NAME if the file holds predictions, or --method information-loss, which needs neither."
        )
    if method == "workload-aware" and guide.lower() not in ("probabilities", "labels") and not has_column:
        raise ParameterError(
            f"--guide {guide} with --method workload-aware, which the labels guide: expected labels. Leave --guide out."
        )
    if method not in GUIDED and guide != "probabilities":
        raise ParameterError(
            f"--guide {guide!r} with --method {method}, which nothing guides: expected --method model-guided. Leave "
            "--guide or --method out."
        )
    if method == "full-domain":
        for option, given in (("--representative", representative), ("--limits", limits)):
            if given:
                raise ParameterError(
                    f"{option} with --method full-domain, which writes the labels of --hierarchies: expected none. "
                    f"Leave {option} out; to forbid fine detail, leave the finer levels out of the hierarchies."
                )
    if save is not None and method in WITHOUT_DOCUMENT:
        raise ParameterError(
            f"--save with --method {method}, whose groups are no document for 'sfumato apply': expected none. Leave "
            "--save out, or choose another method."
        )
    return method


def obstacle_to_pieces(method: str, hierarchies: Any, suppression_limit: float) -> str | None:
    """Say what cannot be done with a table that is not held in memory; None: nothing."""
    if method not in BY_COUNTS:
        return (
            f"--out-of-core with the method {method}, which needs all records at once: expected --method "
            f"{', '.join(BY_COUNTS[:-1])} or {BY_COUNTS[-1]}. Choose one of them, or --in-memory."
        )
    if hierarchies:
        return "--out-of-core with --hierarchies: expected none. Leave them out, or choose --in-memory."
    if suppression_limit:
        return "--out-of-core with --suppression-limit, since all records are kept: expected 0, or --in-memory."
    return None


def resolve(
    columns: Sequence[str],
    *,
    method: str,
    target: str | None,
    quasi_identifiers: list[str] | None,
    identifiers: list[str] | None,
    sensitive: list[str] | None,
    keep: list[str] | None,
    categorical: list[str] | None,
    limits: list[str] | None,
    hierarchies: list[str] | None,
    unit: str | None,
    guide: str,
    **settings: Any,
) -> Method:
    """Look the columns up and give each a role, or say what does not fit together."""
    from sfumato.files.table_file import unknown_column

    how, guide_column = parse_guide(guide)
    named = {
        "--target": [target] if target is not None else [],
        "--quasi-identifiers": options.split_names(quasi_identifiers, columns),
        "--identifiers": options.split_names(identifiers, columns),
        "--sensitive": options.split_names(sensitive, columns),
        "--keep": options.split_names(keep, columns),
        "--unit": [unit] if unit is not None else [],
        "--guide": [guide_column] if guide_column else [],
        "--categorical": options.split_names(categorical, columns),
    }
    pairs = options.split_pairs(limits, "--limits", "age=5,zip=3")
    files = _hierarchies_given(hierarchies)
    looked_up = named | {"--limits": list(pairs), "--hierarchies": list(files) if isinstance(files, dict) else []}
    for option, names in looked_up.items():
        for name in names:
            if name not in columns:
                raise ParameterError(unknown_column(option, name, columns))
    _check_roles(named)
    for option, value in (("--l", settings["l"]), ("--t", settings["t"])):
        if value is not None and not named["--sensitive"]:
            raise ParameterError(
                f"{option} {value} without --sensitive: expected the columns that it should protect. Add --sensitive "
                "COLUMN."
            )
    others = ("--target", "--identifiers", "--sensitive", "--keep", "--unit", "--guide")
    passed = {name for option in others for name in named[option]}
    chosen = named["--quasi-identifiers"] or [name for name in columns if name not in passed]
    if not chosen:
        raise ParameterError("no column is left to be a quasi-identifier: expected at least one. Name fewer others.")
    # Predictions tell records apart almost as well as names do, so the column does not leave unless it is kept.
    dropped = named["--identifiers"] + [name for name in named["--guide"] if name not in named["--keep"]]
    return Method(
        method=method,
        target=target,
        quasi_identifiers=chosen,
        dropped=dropped,
        sensitive=named["--sensitive"],
        keep=list(dict.fromkeys(named["--keep"] + named["--target"])),
        categorical=named["--categorical"],
        limits=_limit_numbers(pairs),
        hierarchies={} if files is None else hierarchy_files(files, chosen, "--hierarchies"),
        unit=unit,
        guide=guide_of_method(method, how, guide_column),
        guide_column=guide_column,
        **settings,
    )


def parse_guide(guide: str) -> tuple[str, str | None]:
    """Read what guides the groups: how, and which column of the file if it is one."""
    how, _, column = guide.partition(":")
    how = how.lower()
    if how not in ("probabilities", "predictions", "labels", "column") or (how == "column") != bool(column):
        raise ParameterError(
            f"--guide {guide!r}: expected probabilities, predictions, labels, or column:NAME for a column of the file "
            "that holds ready predictions."
        )
    return how, column or None


def _hierarchies_given(given: list[str] | None) -> str | dict[str, str] | None:
    """Read a folder, or files by column."""
    if not given:
        return None
    if len(given) == 1 and Path(given[0]).is_dir():
        return given[0]
    if len(given) == 1 and "=" not in given[0]:
        raise ParameterError(
            f"--hierarchies {given[0]!r}: there is no such folder. Expected a folder of files called like the columns, "
            "or files by column, for example --hierarchies age=age.csv,zip=zip.csv."
        )
    return options.split_pairs(given, "--hierarchies", "age=age.csv")


_MAY_BE_BOTH = {
    ("--unit", "--keep"),
    ("--guide", "--keep"),
    ("--target", "--keep"),
    ("--target", "--sensitive"),
    ("--sensitive", "--keep"),
}
"""Unit and guide would be dropped otherwise, the target may be sensitive, and sensitive amounts may be near-unique."""


def _check_roles(named: dict[str, list[str]]) -> None:
    """Refuse a column with two roles."""
    roles: dict[str, str] = {}
    for option in ("--target", "--quasi-identifiers", "--identifiers", "--sensitive", "--unit", "--guide", "--keep"):
        for name in named[option]:
            earlier = roles.get(name)
            if earlier == option:
                raise ParameterError(f"{option} names the column {name!r} twice. Remove the repetition.")
            if earlier is not None and (earlier, option) not in _MAY_BE_BOTH:
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
        if not abs(value) < 2.0**63:
            raise ParameterError(f"--limits {name}={text}: expected a number, for example --limits age=5.")
        numbers[name] = int(value) if value == int(value) else value
    return numbers


def settle(console: Console, request: Method, table: Any, *, is_chosen: bool, says_codes: bool) -> Method:
    """Drop columns that name people where nobody chose them, and read codes as categories where nobody named any.

    Parameters
    ----------
    console : Console
    request : Method
    table : pyarrow.Table
        All records, or the first of many.
    is_chosen : bool
        Whether the quasi-identifiers were named.
    says_codes : bool
        Whether the user said which numbers are codes.
    """
    if not is_chosen:
        left = without_names(
            console, table, request.quasi_identifiers, done="dropped",
            otherwise="To release it unchanged, name it in --keep; to rewrite it, name all columns to rewrite in "
            "--quasi-identifiers.",
            decided={*request.limits, *request.hierarchies},
        )  # fmt: skip
        dropped = [name for name in request.quasi_identifiers if name not in left]
        request = replace(request, quasi_identifiers=left, dropped=[*request.dropped, *dropped])
    known = {*request.categorical, *request.limits, *request.hierarchies}
    found = codes_of(table, [name for name in request.quasi_identifiers if name not in known], request.target)
    sure = [one for one in found if one.is_surely_code and not says_codes]
    for one in sure:
        console.note(
            f"column {one.name!r} looks like a code, so it is treated as categories: {one.code}. If it is an amount, "
            "name the codes yourself with --categorical."
        )
    for one in found:
        if one not in sure:
            console.note(
                f"column {one.name!r} may be a code: {one.code}. If so, pass --categorical {one.name}; numbers are "
                "averaged and cut into ranges."
            )
    return replace(request, categorical=[*request.categorical, *(one.name for one in sure)])
