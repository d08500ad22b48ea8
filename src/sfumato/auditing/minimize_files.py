# SPDX-License-Identifier: Apache-2.0
"""Learn from a table how coarsely each column must be collected, and write the generalization and its exports."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.auditing.roles import without_names
from sfumato.auditing.utility import MOST_CLASSES_OF_NUMBERS, read_target, rows_of
from sfumato.errors import InputError, ParameterError, named
from sfumato.files.publishing import fingerprint_of
from sfumato.files.table_file import FileTable, unfinished, unknown_column
from sfumato.fingerprints import fingerprints_path

if TYPE_CHECKING:
    from sfumato.minimize import MinimizerSweep
    from sfumato.minimize.sweep_result import SweepPoint
    from sfumato.progress import Reporter

METHODS = {
    "tree": "PrivacyAwareTree",
    "uniform": "UniformMinimizer",
    "features": "FeatureSelectionMinimizer",
    "apt": "AptMinimizer",
    "iterative": "IterativeMinimizer",
    "adversarial": "AdversarialMinimizer",
    "information": "MutualInformationMinimizer",
}
_TITLES_EXAMPLE = 'Write the line [titles] and below it lines such as AGEP = "Age in years".'

NAMED = "named by you"
"""Why an attacker wants a column that was named."""


@dataclass(frozen=True)
class MinimizeSettings:
    """What to learn.

    Attributes
    ----------
    target : str
    personal, identifiers, keep, categorical : sequence of str
        Columns that the attacker wants, columns that are never collected, columns to use although they seem to name
        people, and numeric categories.
    max_loss : float
        Maximum rise of the classification error.
    method : str
        One of `METHODS`.
    floor : int
        Fewest records of a listed category or a bucket.
    risk : {"table", "family"}
    seed : int
    """

    target: str
    personal: Sequence[str] = ()
    identifiers: Sequence[str] = ()
    keep: Sequence[str] = ()
    categorical: Sequence[str] = ()
    max_loss: float = 0.01
    method: str = "tree"
    floor: int = 10
    risk: Literal["table", "family"] = "table"
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ParameterError for numbers that are out of range."""
        if not 0 <= self.max_loss <= 1:
            raise ParameterError(f"{named('max_loss', self.max_loss)}: expected a share from 0 to 1. 0.01 is 1 pp.")
        if self.floor < 1:
            raise ParameterError(
                f"{named('floor', self.floor)}: expected an integer >= 1. 10 lists nothing that fewer than 10 records "
                "have."
            )
        if self.seed < 0:
            raise ParameterError(f"{named('seed', self.seed)}: expected an integer >= 0.")

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise ParameterError for names that are not columns, and for a column with two roles."""
        own = {name: getattr(self, name) for name in ("personal", "identifiers", "keep", "categorical")}
        for setting, names in {"target": [self.target], **own}.items():
            for name in names:
                if name not in columns:
                    raise ParameterError(unknown_column(named(setting), name, columns))
        for setting in ("personal", "identifiers", "categorical"):
            if self.target in own[setting]:
                raise ParameterError(
                    f"{named(setting)} names the target {self.target!r}: expected other columns. Remove it."
                )
        if both := [name for name in self.personal if name in self.identifiers]:
            raise ParameterError(
                f"{named('personal')} and {named('identifiers')} both name {both[0]!r}: expected one of them. "
                "Identifiers are never collected."
            )


@dataclass(frozen=True)
class LearnedGeneralization:
    """The setting that was chosen, and what was tried.

    Attributes
    ----------
    swept : MinimizerSweep
    chosen : SweepPoint
    wanted : dict of str to str
        Columns that the attacker wants, and the reason for each.
    max_loss : float
    """

    swept: MinimizerSweep
    chosen: SweepPoint
    wanted: dict[str, str] = field(default_factory=dict)
    max_loss: float = 0.01

    @property
    def lost(self) -> float:
        """Rise of the classification error on held-out records."""
        return self.chosen.test_error - self.swept.limits[0].test_error


def minimize_table(reporter: Reporter, source: FileTable, settings: MinimizeSettings) -> LearnedGeneralization:
    """Learn the coarsest generalization whose loss is within the limit.

    Columns without a role that seem to name people are never collected.
    """
    table = source.table
    settings.check_columns(table.column_names)
    decided = {settings.target, *settings.personal, *settings.identifiers, *settings.keep, *settings.categorical}
    others = [name for name in table.column_names if name not in decided]
    used = without_names(
        reporter, table, others, done="left out, and never collected",
        otherwise=f"To use it, name it in {named('keep')}.",
    )  # fmt: skip
    dropped = [*settings.identifiers, *(name for name in others if name not in used)]
    wanted = _wanted(table, settings, dropped)
    swept = _sweep(reporter, table, settings, dropped, list(wanted))
    return LearnedGeneralization(swept, swept.coarsest(settings.max_loss), wanted, settings.max_loss)


def _wanted(table: Any, settings: MinimizeSettings, dropped: Sequence[str]) -> dict[str, str]:
    """Return the columns that the attacker wants, each with the reason."""
    from sfumato.frames import read_table
    from sfumato.policy.personal import find_personal

    if settings.personal:
        return dict.fromkeys(settings.personal, NAMED)
    names = [name for name in table.column_names if name not in (settings.target, *dropped)]
    return find_personal(read_table(table, categorical=list(settings.categorical)), names)


def _sweep(
    reporter: Reporter, table: Any, settings: MinimizeSettings, dropped: Sequence[str], personal: list[str]
) -> MinimizerSweep:
    import numpy as np

    from sfumato import minimize as minimizers

    target = settings.target
    classes = read_target(table, target, None)
    if classes.task != "classification":
        raise InputError(
            f"the target {target!r} has more than {MOST_CLASSES_OF_NUMBERS} distinct numbers: expected classes, which "
            "is what minimizers keep predictable. Put the numbers into classes first, for example above and below the "
            f"median, or give another {named('target')}."
        )
    if not classes.known.all():
        reporter.note(f"{int((~classes.known).sum()):,} records have no {target} and are left out.")
    rows = np.flatnonzero(classes.known)
    records = rows_of(table.drop_columns([target, *dropped]), rows)
    minimizer = getattr(minimizers, METHODS[settings.method])(
        personal=personal,
        categorical_features=[name for name in settings.categorical if name in records.column_names] or None,
        floor=settings.floor,
        random_state=settings.seed,
        n_jobs=-1,
    )
    with reporter.step(f"learning from {len(rows):,} records how coarse is fine enough"):
        return minimizers.sweep_minimizers(
            minimizer, records, classes.values[rows], risk=settings.risk, random_state=settings.seed, n_jobs=-1,
            progress=reporter.is_watched,
        )  # fmt: skip


@dataclass(frozen=True)
class Exports:
    """The files to write; the generalization itself is one of them.

    Attributes
    ----------
    document, sql, form, schema, javascript, plot : Path or None
    dialect : {"postgresql", "duckdb", "spark"}
        The database of `sql`.
    titles : mapping of str to str
        Titles of columns in the form.
    """

    document: Path
    sql: Path | None = None
    form: Path | None = None
    schema: Path | None = None
    javascript: Path | None = None
    plot: Path | None = None
    dialect: Literal["postgresql", "duckdb", "spark"] = "postgresql"
    titles: Mapping[str, str] = field(default_factory=dict)

    def paths(self) -> dict[str, Path]:
        """Return the files by name, the generalization first."""
        every = {name: getattr(self, name) for name in ("document", "sql", "form", "schema", "javascript", "plot")}
        return {name: path for name, path in every.items() if path is not None}


def write_exports(learned: LearnedGeneralization, source: FileTable, exports: Exports) -> None:
    """Write all files, or none."""
    generalization = learned.chosen.generalization
    titles = {name: title for name, title in exports.titles.items() if name in generalization.names}
    document = json.loads(generalization.to_json())
    if source.style is not None:
        types = source.style.types
        document["file"] = {"types": {name: str(types[name]) for name in generalization.names if name in types}}
    texts = {
        "document": lambda: json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        "sql": lambda: generalization.to_sql(exports.dialect),
        "form": lambda: generalization.to_form(titles=titles),
        "schema": lambda: json.dumps(generalization.to_json_schema(), indent=2, ensure_ascii=False) + "\n",
        "javascript": generalization.to_javascript,
        "plot": learned.swept.plot,
    }
    wanted = exports.paths()
    known = generalization.fingerprints
    if known is not None:
        wanted["fingerprints"] = fingerprints_path(exports.document)
        texts["fingerprints"] = lambda: json.dumps(known.to_dict(fingerprint_of(paths[0])))
    with unfinished(*wanted.values()) as paths:
        for name, path in zip(wanted, paths, strict=True):
            path.write_text(texts[name](), encoding="utf-8")


def read_titles(path: Path, columns: Sequence[str]) -> dict[str, str]:
    """Return the titles of columns for the readers of a form.

    Parameters
    ----------
    path : Path
        A policy, or any TOML file with a section ``[titles]``.
    columns : sequence of str
        Columns of the table; only these can have a title.
    """
    option = named("titles")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{option} {str(path)!r} cannot be read ({type(error).__name__}): expected a file.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"{option} {path.name!r} is not valid TOML ({type(error).__name__}): expected a section [titles]. "
            f"{_TITLES_EXAMPLE}"
        ) from None
    titles = document.get("titles")
    if not isinstance(titles, dict):
        raise InputError(f"{option} {path.name!r} has no section [titles]: expected one. {_TITLES_EXAMPLE}")
    for name, title in titles.items():
        if name not in columns:
            raise ParameterError(unknown_column(f"[titles] of {option}", name, columns))
        if not isinstance(title, str) or not title.strip():
            raise ParameterError(
                f"{option} {path.name!r}: the title of {name!r} is not text in quotes. {_TITLES_EXAMPLE}"
            )
    return titles
