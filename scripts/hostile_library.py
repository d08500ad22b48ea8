# SPDX-License-Identifier: Apache-2.0
"""Cases of the hostile campaign that use sfumato as a library: frames in, frames out."""

from __future__ import annotations

from typing import Any

import numpy as np

import hostile_judge as judge
from hostile_cases import (
    Found,
    Roles,
    add_roles,
    chance,
    draw_criteria,
    draw_guide,
    draw_hierarchies,
    draw_k,
    draw_limits,
    make_criteria,
    pick,
)
from hostile_tables import EXOTIC, LIBRARIES, USUAL, draw_table

METHODS = ("ModelGuided", "ModelGuided", "Mondrian", "WorkloadAware", "Hilbert", "RPlusTree", "FullDomain")
RANGES = ("range", "bounds", "tight-range", "tight-bounds")
AS_MEMBERS = ("median", "member", "model", "sample")  # their values are values that records have


def draw_anonymizer(random: np.random.Generator, roles: Roles, k: int, asked: list[dict[str, Any]]) -> Any:
    """Return an unfitted anonymizer with random settings."""
    import sfumato
    from sfumato.representatives import REPRESENTATIVES

    settings: dict[str, Any] = {"k": k, "criteria": make_criteria(asked) or None}
    if chance(random, 0.85):
        settings["quasi_identifiers"] = roles.quasi
    if roles.dropped:
        settings["identifiers"] = roles.dropped
    if roles.row is not None:
        settings["keep"] = [roles.row]
    if chance(random, 0.15):
        settings["suppression_limit"] = float(pick(random, (0.02, 0.1, 0.4)))
    name = pick(random, METHODS)
    if name == "FullDomain":
        return sfumato.FullDomainAnonymizer(**settings, hierarchies=draw_hierarchies(random, roles) or None)
    if chance(random, 0.6):
        settings["representative"] = pick(random, [*REPRESENTATIVES])
    if chance(random, 0.2):
        settings["limits"] = draw_limits(random, roles) or None
    elif chance(random, 0.2):
        settings["hierarchies"] = draw_hierarchies(random, roles) or None
    codes = [name for name in roles.quasi if roles.table.columns[name].kind in ("code", "canary integer")]
    if codes and chance(random, 0.3):
        settings["categorical_features"] = codes
    if chance(random, 0.3):
        settings["max_bins"] = int(pick(random, (2, 7, 64, 1000)))
    settings["random_state"] = int(random.integers(0, 1000))
    settings["n_jobs"] = int(pick(random, (1, 1, 2)))
    if name == "ModelGuided":
        settings["split_on"] = pick(random, ("quasi_identifiers", "quasi_identifiers", "all"))
        settings["keep_splitting"] = not chance(random, 0.2)
    if name == "Mondrian":
        settings["rule"] = pick(random, ("median", "information_loss"))
        settings["strict"] = settings["rule"] != "median" or chance(random, 0.6)
    return getattr(sfumato, f"{name}Anonymizer")(**settings)


class LibraryCase:
    """One table, one anonymizer, and everything that can be released with them."""

    def __init__(
        self, found: Found, random: np.random.Generator, *, library: str | None = None, with_row: bool = False
    ) -> None:
        self.found, self.random = found, random
        self.library = library or pick(random, LIBRARIES)
        kinds = USUAL if chance(random, 0.93) else (*USUAL, *EXOTIC)
        roles = add_roles(random, draw_table(random, kinds=kinds), with_row=with_row or chance(random, 0.7))
        if self.library == "numpy":
            roles = _by_place(roles)
        self.roles, self.table = roles, roles.table
        self.k = draw_k(random, self.table.n_records)
        self.asked = draw_criteria(random, self.k, roles)
        self.frame = self.table.to(self.library)
        self.original = judge.columns_of(self.frame)
        self.types = self.first_types = judge.types_of(self.frame)
        self.cells = judge.canaries(self.original)
        self.y = draw_guide(random, self.table.n_records)
        self.anonymizer = None

    def make(self) -> Any:
        """Draw the anonymizer; a setting that cannot be is refused, too."""
        with self.found.careful("settings", self.cells):
            self.anonymizer = draw_anonymizer(self.random, self.roles, self.k, self.asked)
        return self.anonymizer

    @property
    def where(self) -> str:
        """Return a one-line description of the case."""
        made = type(self.anonymizer).__name__.removesuffix("Anonymizer")
        return f"{self.library} {made} {getattr(self.anonymizer, 'representative', '')}"

    def judge_frame(self, released: Any, rows: list[int] | None, kept: list[int], where: str) -> None:
        """Judge a released frame; `rows`: the input's records it was made of, `kept`: those that are left."""
        found, roles = self.found, self.roles
        found.releases += 1
        columns, types = judge.columns_of(released), judge.types_of(released)
        original = self.original if rows is None else {n: [v[row] for row in rows] for n, v in self.original.items()}
        gone = {*roles.dropped, *([roles.person] if roles.person else [])}
        names = self.names_in(columns)
        if gone & set(names):
            found.broken("guarantee", [f"columns {sorted(gone & set(names))} were to be dropped"], where)
        columns = {name: columns[place] for name, place in names.items()}
        types = {name: types[place] for name, place in names.items()}
        quasi = [name for name in names if name in roles.quasi or name in self.bounds()]
        groups = judge.grouped(columns, quasi)
        found.broken("guarantee", judge.too_small(groups, self.k), where)
        if roles.row is not None and roles.row in columns:
            place = {value: at for at, value in enumerate(original[roles.row])}
            kept = [place[value] for value in columns[roles.row]]
        if len(next(iter(columns.values()))) != len(kept):
            found.broken("rows", [f"{len(kept)} records expected, {len(next(iter(columns.values())))} released"], where)
            return
        for asked in self.asked:
            values = [original[asked["column"]][row] for row in kept]
            if asked["name"] == "persons":
                found.broken("guarantee", judge.too_small(groups, asked["k"], values), where)
            else:
                found.broken("guarantee", judge.breaks_criterion(groups, values, asked), where)
        passing = [name for name in names if name not in quasi]
        found.broken("changed", judge.changed(original, columns, passing, kept), where)
        # A value that becomes missing may need another type, as integers do.
        emptied = {name for name in quasi if name in original and None in columns[name] and None not in original[name]}
        self.judge_types({name: kind for name, kind in types.items() if name not in emptied}, quasi, where)
        self.judge_values(original, columns, quasi, where)

    def names_in(self, columns: dict[str, Any]) -> dict[str, str]:
        """Return what the released columns were called; arrays number them again."""
        if self.library != "numpy":
            return {name: name for name in columns}
        expected = [str(name) for name in self.anonymizer.get_feature_names_out()]  # type: ignore[attr-defined]
        return dict(zip(expected, columns, strict=True))

    def bounds(self) -> set[str]:
        """Return the names of columns of bounds."""
        if not str(getattr(self.anonymizer, "representative", "")).endswith("bounds"):
            return set()
        return {str(name) for name in self.anonymizer.get_feature_names_out()} - set(self.table.columns)  # type: ignore[attr-defined]

    def judge_types(self, types: dict[str, str], quasi: list[str], where: str) -> None:
        """Columns that pass through keep their type; so do those whose group gets a value of a record."""
        takes_values = getattr(self.anonymizer, "representative", "range") not in RANGES
        whole = self.library == "numpy"
        for name, kind in types.items():
            if whole and (not takes_values or kind == "object" or self.types["x0"] == "object"):
                continue  # an array has one type, which the widest column decides
            if name not in quasi or takes_values:
                before = self.types[name]
                if kind != before and not _grown(before, kind):
                    self.found.broken("types", [f"column {name!r} was {before} and is {kind}"], where)

    def judge_values(self, original: Any, columns: Any, quasi: list[str], where: str) -> None:
        """No value may be made up where records stand for their group."""
        kind = getattr(self.anonymizer, "representative", "range")
        if kind in (*AS_MEMBERS, "phantom") and not getattr(self.anonymizer, "limits", None):
            self.found.broken("invented", judge.invented(original, columns, quasi), where)
        self.found.broken("values", judge.names_people(original, columns, quasi, self.k), where)
        defaults = type(self.anonymizer)().get_params() if self.anonymizer is not None else {}
        is_default = kind == defaults.get("representative") and not getattr(self.anonymizer, "limits", None)
        if is_default and kind not in RANGES:
            one, few = judge.shown_people(original, columns, quasi, self.k)
            self.found.shown(one, few, where)

    def judge_untouched(self, where: str) -> None:
        """The input is as it was."""
        if judge.columns_of(self.frame) != self.original or judge.types_of(self.frame) != self.first_types:
            self.found.broken("input", ["the input was changed"], where)


def _by_place(roles: Roles) -> Roles:
    """Call columns as arrays do."""
    called = {name: f"x{place}" for place, name in enumerate(roles.table.columns)}
    table = type(roles.table)({called[n]: c for n, c in roles.table.columns.items()}, roles.table.index)
    return Roles(
        table,
        [called[name] for name in roles.quasi],
        None if roles.sensitive is None else called[roles.sensitive],
        None if roles.person is None else called[roles.person],
        None if roles.row is None else called[roles.row],
        [called[name] for name in roles.dropped],
    )


def _grown(before: str, after: str) -> bool:
    """Return True if a type may have become another: views of text in files, dictionaries without their order.

    Decimals may get more digits where a new value needs them.
    """
    if (before, after) == ("string_view", "large_string"):
        return True
    if before.lower().startswith("decimal") and after.lower().startswith("decimal"):
        return True
    return before.replace("ordered=1", "ordered=0") == after.replace("ordered=1", "ordered=0")


# --- kinds of cases -----------------------------------------------------------------------------------------------


def fit_transform(found: Found, random: np.random.Generator) -> None:
    """Release the fitted records through `fit_transform`, and judge `transform` of the same ones."""
    case = LibraryCase(found, random)
    anonymizer = case.make()
    if anonymizer is None:
        return
    if chance(random, 0.9):
        anonymizer.set_params(suppression_limit=0.0)
    everybody = list(range(case.table.n_records))
    with found.careful(f"fit_transform {case.where}", case.cells):
        released = anonymizer.fit_transform(case.frame, case.y)
        case.judge_frame(released, None, everybody, f"fit_transform {case.where}")
        again = anonymizer.transform(case.frame)
        if judge.columns_of(again) != judge.columns_of(released):
            found.broken("transform", ["transform gives other values than fit_transform"], case.where)
    case.judge_untouched(case.where)


def release(found: Found, random: np.random.Generator) -> None:
    """Release the fitted records, and others, through `release`."""
    case = LibraryCase(found, random)
    anonymizer = case.make()
    if anonymizer is None:
        return
    n_records = case.table.n_records
    population = None
    if chance(random, 0.1):
        from sfumato import DeltaPresence

        everybody = case.table.take([*range(n_records), *random.integers(0, n_records, 2 * n_records)])
        population = (everybody, (0.0, float(random.uniform(0.3, 1))))
        presence = DeltaPresence(*population[1], population=everybody.to(case.library))
        anonymizer.set_params(criteria=[*(anonymizer.criteria or []), presence])
    with found.careful(f"fit {case.where}", case.cells):
        anonymizer.fit(case.frame, case.y)
    if not hasattr(anonymizer, "schema_"):
        return
    size = int(random.integers(1, n_records + 1))
    for rows in (list(range(n_records)), sorted(int(r) for r in random.permutation(n_records)[:size])):
        where = f"release {case.where} of {len(rows)} of {n_records}"
        part = case.table.take(rows).to(case.library)
        guide = None if case.y is None or chance(random, 0.3) else case.y[rows]
        with found.careful(where, case.cells):
            made = anonymizer.release(part, guide, shuffle=False)
            limit = int(anonymizer.suppression_limit * len(rows))
            if made.n_suppressed > limit:
                found.broken("guarantee", [f"{made.n_suppressed} records left out where {limit} may be"], where)
            if made.n_suppressed and case.roles.row is None:
                continue  # which ones are left cannot be told from outside
            if made.n_suppressed != len(rows) - _length(made.table):
                found.broken("rows", ["the number of records left out is wrong"], where)
            case.types = judge.types_of(part)  # some depend on whether a value is missing
            case.judge_frame(made.table, rows, list(range(len(rows))), where)
            found.counts["records suppressed"] += made.n_suppressed
            _judge_categories(found, made.table, where)
            if population is not None and not made.n_suppressed:
                _judge_presence(case, made.table, part, population, where)
    case.judge_untouched(case.where)


def _length(table: Any) -> int:
    return len(next(iter(judge.columns_of(table).values())))


def _judge_presence(case: LibraryCase, released: Any, part: Any, population: Any, where: str) -> None:
    """Count the population of every released group: people who get the same values from `transform` share a cell."""
    columns = judge.columns_of(released)
    quasi = [
        place for name, place in case.names_in(columns).items() if name in case.roles.quasi or name in case.bounds()
    ]
    cells = []
    for frame in (part, population[0].to(case.library)):
        values = judge.columns_of(case.anonymizer.transform(frame))  # type: ignore[attr-defined]
        cells.append(list(zip(*(values[name] for name in quasi), strict=True)))
    groups = judge.grouped(columns, quasi)
    case.found.broken("guarantee", judge.breaks_presence(groups, cells[0], cells[1], population[1]), where)


def _judge_categories(found: Found, table: Any, where: str) -> None:
    """A released categorical type lists no category that no released record has."""
    library = type(table).__module__.partition(".")[0]
    if library == "pandas":
        for place in range(table.shape[1]):
            series = table.iloc[:, place]
            if str(series.dtype) == "category" and set(series.cat.categories) - set(series.dropna()):
                found.broken("categories", [f"column {place} lists categories that no released record has"], where)
    elif library == "polars":
        for series in table.get_columns():
            if str(series.dtype).startswith("Enum"):
                listed = set(series.dtype.categories.to_list())
                if listed - set(series.drop_nulls().cast(str).to_list()):
                    found.broken("categories", [f"column {series.name!r} lists categories of nobody"], where)
    elif library == "pyarrow":
        for name in table.column_names:
            column = table.column(name)
            if str(column.type).startswith("dictionary"):
                listed = {v for chunk in column.chunks for v in chunk.dictionary.to_pylist()}
                if listed - set(column.to_pylist()):
                    found.broken("categories", [f"column {name!r} lists categories of nobody"], where)


KINDS = {"fit_transform": (fit_transform, 34), "release": (release, 26)}
