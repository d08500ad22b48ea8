# SPDX-License-Identifier: Apache-2.0
"""Learn from a table how coarsely each column must be collected, and write the generalization and its exports."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    from sfumato.minimize import AttributeCosts, MinimizerSweep
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
_OF_COLUMNS = (
    "personal", "identifiers", "keep", "categorical", "required", "forbidden", "max_buckets", "hierarchies",
)  # fmt: skip
_MOST_NAMED = 3  # columns of a wide table that were left out for one reason
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
    required, forbidden : sequence of str
        Columns that must be collected, and columns that may not be.
    max_buckets : mapping of str to int
        The most buckets of some columns.
    hierarchies : mapping of str to Path
        Hierarchy files of columns with many categories.
    max_loss : float or None
        Maximum rise of the classification error.
    max_risk : float or None
        Maximum share of personal values that the attacker guesses right.
    method : str
        One of `METHODS`.
    search : {"greedy", "thorough"}
        Of the method ``"tree"``.
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
    required: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    max_buckets: Mapping[str, int] = field(default_factory=dict)
    hierarchies: Mapping[str, Path] = field(default_factory=dict)
    max_loss: float | None = 0.01
    max_risk: float | None = None
    method: str = "tree"
    search: Literal["greedy", "thorough"] = "greedy"
    floor: int = 10
    risk: Literal["table", "family"] = "table"
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ParameterError for numbers that are out of range."""
        for name in ("max_loss", "max_risk"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise ParameterError(f"{named(name, share)}: expected a share from 0 to 1. 0.01 is 1 pp.")
        if self.method != "tree" and (self.hierarchies or self.search != "greedy"):
            what = "hierarchies" if self.hierarchies else "search"
            raise ParameterError(
                f"{named(what)} with {named('method', self.method)}: expected {named('method', 'tree')}, which alone "
                "uses it."
            )
        if self.floor < 1:
            raise ParameterError(
                f"{named('floor', self.floor)}: expected an integer >= 1. 10 lists nothing that fewer than 10 records "
                "have."
            )
        if self.seed < 0:
            raise ParameterError(f"{named('seed', self.seed)}: expected an integer >= 0.")

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise ParameterError for names that are not columns, and for a column with two roles."""
        own = {name: getattr(self, name) for name in _OF_COLUMNS}
        for setting, names in {"target": [self.target], **own}.items():
            for name in names:
                if name not in columns:
                    raise ParameterError(unknown_column(named(setting), name, columns))
        for setting in (name for name in _OF_COLUMNS if name != "keep"):
            if self.target in own[setting]:
                raise ParameterError(
                    f"{named(setting)} names the target {self.target!r}: expected other columns. Remove it."
                )
        if both := [name for name in self.personal if name in self.identifiers]:
            raise ParameterError(
                f"{named('personal')} and {named('identifiers')} both name {both[0]!r}: expected one of them. "
                "Identifiers are never collected."
            )
        for setting in ("required", "max_buckets", "hierarchies"):
            if both := [name for name in own[setting] if name in self.identifiers]:
                raise ParameterError(
                    f"{named(setting)} and {named('identifiers')} both name {both[0]!r}: expected one of them. "
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
    max_loss : float or None
    costs : AttributeCosts or None
        What each column costs and is worth, where that was asked for.
    """

    swept: MinimizerSweep
    chosen: SweepPoint
    wanted: dict[str, str] = field(default_factory=dict)
    max_loss: float | None = 0.01
    costs: AttributeCosts | None = None

    @property
    def lost(self) -> float:
        """Rise of the classification error on held-out records."""
        return self.chosen.test_error - self.swept.limits[0].test_error


def minimize_table(
    reporter: Reporter, source: FileTable, settings: MinimizeSettings, *, with_costs: bool = False
) -> LearnedGeneralization:
    """Learn the coarsest generalization whose loss is within the limit.

    Columns without a role that seem to name people are never collected.

    Parameters
    ----------
    reporter : Reporter
    source : FileTable
    settings : MinimizeSettings
    with_costs : bool, default=False
        Whether to measure what each column costs and is worth.
    """
    from sfumato import minimize as minimizers

    table = source.table
    settings.check_columns(table.column_names)
    decided = {settings.target, *(name for setting in _OF_COLUMNS for name in getattr(settings, setting))}
    others = [name for name in table.column_names if name not in decided]
    used = without_names(
        reporter, table, others, done="left out, and never collected",
        otherwise=f"To use it, name it in {named('keep')}.",
    )  # fmt: skip
    dropped = [*settings.identifiers, *(name for name in others if name not in used)]
    wanted = _wanted(table, settings, dropped)
    records, classes = _records(reporter, table, settings, dropped)
    minimizer = _minimizer(settings, records.column_names, list(wanted))
    options: dict[str, Any] = {"risk": settings.risk, "random_state": settings.seed, "n_jobs": -1}
    with reporter.step(f"learning from {records.num_rows:,} records how coarse is fine enough"):
        swept = minimizers.sweep_minimizers(
            minimizer, records, classes, required=settings.required, forbidden=settings.forbidden,
            max_buckets=settings.max_buckets, progress=reporter.is_watched, **options,
        )  # fmt: skip
    chosen = swept.coarsest(settings.max_loss, max_risk=settings.max_risk)
    screened = {name: why for name, why in swept.left_out.items() if name not in settings.forbidden}
    for sentence in _left_out_before(screened, len(records.column_names)):
        reporter.note(sentence)
    costs = None
    if with_costs:
        with reporter.step("measuring what each column costs and is worth"):
            options["personal"] = list(wanted)
            costs = minimizers.attribute_costs(chosen.generalization, records, classes, **options)
    return LearnedGeneralization(swept, chosen, wanted, settings.max_loss, costs)


def _left_out_before(screened: Mapping[str, str], n_columns: int) -> Iterator[str]:
    """Yield a sentence for every reason why columns of a wide table were not looked at."""
    by_reason: dict[str, list[str]] = {}
    for name, why in screened.items():
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        more = ", and so on" if len(names) > _MOST_NAMED else ""
        yield (
            f"{len(names):,} of {n_columns:,} columns were left out before learning, each since {why}: "
            f"{', '.join(map(repr, names[:_MOST_NAMED]))}{more}. To use one, name it in {named('required')}."
        )


def _wanted(table: Any, settings: MinimizeSettings, dropped: Sequence[str]) -> dict[str, str]:
    """Return the columns that the attacker wants, each with the reason."""
    from sfumato.frames import read_table
    from sfumato.policy.personal import find_personal

    if settings.personal:
        return dict.fromkeys(settings.personal, NAMED)
    names = [name for name in table.column_names if name not in (settings.target, *dropped)]
    return find_personal(read_table(table, categorical=list(settings.categorical)), names)


def _records(reporter: Reporter, table: Any, settings: MinimizeSettings, dropped: Sequence[str]) -> tuple[Any, Any]:
    """Return the columns to learn from and the classes, of the records that have one."""
    import numpy as np

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
    return rows_of(table.drop_columns([target, *dropped]), rows), classes.values[rows]


def _minimizer(settings: MinimizeSettings, columns: Sequence[str], personal: list[str]) -> Any:
    from sfumato import minimize as minimizers
    from sfumato.hierarchies import read_hierarchy

    own: dict[str, Any] = {}
    if settings.method == "tree":
        hierarchies = {name: read_hierarchy(path) for name, path in settings.hierarchies.items()}
        own = {"hierarchies": hierarchies or None, "search": settings.search}
    return getattr(minimizers, METHODS[settings.method])(
        personal=personal,
        categorical_features=[name for name in settings.categorical if name in columns] or None,
        floor=settings.floor,
        random_state=settings.seed,
        n_jobs=-1,
        **own,
    )


@dataclass(frozen=True)
class Words:
    """What people read in place of names and codes.

    Attributes
    ----------
    titles : mapping of str to str
        What columns are called.
    labels : mapping of str to mapping of str to str
        What values of columns are called.
    """

    titles: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, generalization: Any) -> dict[str, Any]:
        """Return the words for the attributes of a generalization."""
        names = generalization.names
        return {
            "titles": {name: title for name, title in self.titles.items() if name in names},
            "labels": {name: words for name, words in self.labels.items() if name in names},
        }


@dataclass(frozen=True)
class Exports:
    """The files to write; the generalization itself is one of them.

    Attributes
    ----------
    document, sql, form, preview, schema, javascript, plot, costs : Path or None
    dialect : {"postgresql", "duckdb", "spark"}
        The database of `sql`.
    words : Words
        Titles and labels in the form and its preview.
    language : {"en", "de"}
        Of the form and its preview.
    """

    document: Path
    sql: Path | None = None
    form: Path | None = None
    preview: Path | None = None
    schema: Path | None = None
    javascript: Path | None = None
    plot: Path | None = None
    costs: Path | None = None
    dialect: Literal["postgresql", "duckdb", "spark"] = "postgresql"
    words: Words = field(default_factory=lambda: Words())
    language: Literal["en", "de"] = "en"

    @property
    def needs_costs(self) -> bool:
        """True if what columns cost is to be told."""
        return self.costs is not None or self.preview is not None

    def paths(self) -> dict[str, Path]:
        """Return the files by name, the generalization first."""
        names = ("document", "sql", "form", "preview", "schema", "javascript", "plot", "costs")
        every = {name: getattr(self, name) for name in names}
        return {name: path for name, path in every.items() if path is not None}


def write_exports(learned: LearnedGeneralization, source: FileTable, exports: Exports) -> None:
    """Write all files, or none."""
    generalization = learned.chosen.generalization
    words = {**exports.words.of(generalization), "language": exports.language}
    costs = learned.costs
    if costs is not None:
        words["reasons"] = costs.reasons(required=learned.swept.required, left_out=learned.swept.left_out)
    document = json.loads(generalization.to_json())
    if source.style is not None:
        types = source.style.types
        document["file"] = {"types": {name: str(types[name]) for name in generalization.names if name in types}}
    texts: dict[str, Callable[[], str]] = {
        "document": lambda: json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        "sql": lambda: generalization.to_sql(exports.dialect),
        "form": lambda: generalization.to_form(**words),
        "preview": lambda: generalization.to_preview(**words),
        "schema": lambda: json.dumps(generalization.to_json_schema(), indent=2, ensure_ascii=False) + "\n",
        "javascript": generalization.to_javascript,
        "plot": learned.swept.plot,
        "costs": lambda: "" if costs is None else costs.plot(),
    }
    wanted = exports.paths()
    known = generalization.fingerprints
    if known is not None:
        wanted["fingerprints"] = fingerprints_path(exports.document)
        texts["fingerprints"] = lambda: json.dumps(known.to_dict(fingerprint_of(paths[0])))
    with unfinished(*wanted.values()) as paths:
        for name, path in zip(wanted, paths, strict=True):
            path.write_text(texts[name](), encoding="utf-8")


def read_words(path: Path, columns: Sequence[str]) -> Words:
    """Return the titles of columns for the readers of a form, and words for their values.

    Parameters
    ----------
    path : Path
        A policy, or any TOML file with a section ``[titles]``; a section ``[labels.COLUMN]`` has words for values.
    columns : sequence of str
        Columns of the table; only these can have words.
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
    titles, labels = document.get("titles"), document.get("labels", {})
    if not isinstance(titles, dict) and not labels:
        raise InputError(f"{option} {path.name!r} has no section [titles]: expected one. {_TITLES_EXAMPLE}")
    titles = titles or {}
    if not isinstance(labels, dict) or not all(isinstance(words, dict) for words in labels.values()):
        raise InputError(
            f"{option} {path.name!r}: [labels] is not a section per column: expected lines such as [labels.SEX] and "
            'below it 1 = "male".'
        )
    for section, names in (("titles", titles), ("labels", labels)):
        for name in names:
            if name not in columns:
                raise ParameterError(unknown_column(f"[{section}] of {option}", name, columns))
    for name, title in [*titles.items(), *((name, word) for name, words in labels.items() for word in words.values())]:
        if not isinstance(title, str) or not title.strip():
            raise ParameterError(
                f"{option} {path.name!r}: the title of {name!r} is not text in quotes. {_TITLES_EXAMPLE}"
            )
    return Words(titles, labels)
