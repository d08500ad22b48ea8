# SPDX-License-Identifier: Apache-2.0
"""What one case of the hostile campaign finds, and the settings that cases draw at random."""

from __future__ import annotations

import datetime
import io
import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import hostile_judge as judge
from hostile_tables import Column, Drawn, draw_column, draw_pool

OF_SCIKIT_LEARN = ("The feature names should match", "X has ")


@dataclass
class Found:
    """Findings of a case.

    Attributes
    ----------
    kind : str
    releases : int
        Releases that were judged.
    refusals : list of str
        The shapes of sentences with which sfumato refused.
    violations : list of (str, str)
        What kind of promise was broken, and how.
    counts : Counter
        Numbers for the table at the end.
    """

    kind: str
    number: int = 0
    seconds: float = 0.0
    releases: int = 0
    refusals: list[str] = field(default_factory=list)
    violations: list[tuple[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def broken(self, what: str, sentences: list[str], where: str = "") -> None:
        """Note broken promises."""
        self.violations += [(what, f"{where}{': ' if where else ''}{sentence}") for sentence in sentences]

    def message(self, text: str, cells: set[str], where: str) -> None:
        """Judge a message of sfumato."""
        self.broken("message", judge.told(text, cells), where)

    def shown(self, one: int, few: int, where: str) -> None:
        """Note what a release with the default representative shows of people."""
        self.counts["default releases"] += 1
        self.counts["default: combinations that one record has"] += one
        self.counts["default: combinations that 2 to k-1 records have"] += few
        if one:
            self.broken("people", [f"{one} released combinations belong to one record each"], where)

    def crashed(self, error: BaseException, where: str) -> None:
        """Note an error that is not a refusal."""
        self.broken("crash", [f"{type(error).__name__}: {first_line(error)} ({origin(error)})"], where)

    @contextmanager
    def careful(self, where: str, cells: set[str]) -> Iterator[None]:
        """Run something of sfumato: a refusal is noted, anything else that goes wrong is a violation."""
        from sfumato import SfumatoError

        printed = io.StringIO()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            logging.captureWarnings(False)
            try:
                with redirect_stdout(printed), redirect_stderr(printed):
                    yield
            except SfumatoError as error:
                sentence = str(error)
                self.refusals.append(judge.shape(sentence))
                self.broken("message", judge.bad_sentence(sentence), f"{where}: {sentence[:120]}")
                self.message(f"{sentence} {error.__cause__ or ''}", cells, where)
            except (KeyboardInterrupt, TooSlow):
                raise
            except ValueError as error:
                # What scikit-learn says of other columns than those fitted, word for word, as it asks of estimators.
                if not str(error).startswith(OF_SCIKIT_LEARN):
                    self.crashed(error, where)
                self.refusals.append(judge.shape(str(error)))
            except BaseException as error:  # polars panics with something that is not an Exception
                self.crashed(error, where)
        if printed.getvalue():
            self.broken("printed", ["the library printed something"], where)
        for warning in caught:
            if str(warning.message).startswith(OF_SCIKIT_LEARN):
                continue
            if not warning.category.__module__.startswith("sfumato"):
                place = f"{warning.filename.rpartition('site-packages/')[2][-60:]}:{warning.lineno}"
                self.broken("warning", [f"{warning.category.__name__} of {place}: {str(warning.message)[:80]}"], where)
            else:
                self.counts[f"warned: {judge.shape(str(warning.message))[:70]}"] += 1
                self.message(str(warning.message), cells, f"{where} (warning)")


class TooSlow(BaseException):
    """A case took longer than it may."""


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return (str(error).splitlines() or [""])[0][:120]


def origin(error: BaseException) -> str:
    """Return the innermost place in sfumato that an error went through."""
    place, trace = "outside", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "sfumato" in name and "hostile" not in name.rpartition("/")[2]:
            place = f"{name.rpartition('sfumato/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


# --- settings -----------------------------------------------------------------------------------------------------


def chance(random: np.random.Generator, share: float) -> bool:
    """Return True with this chance."""
    return bool(random.random() < share)


def pick(random: np.random.Generator, values: Any) -> Any:
    """Return one of some values."""
    return values[int(random.integers(0, len(values)))]


@dataclass
class Roles:
    """A drawn table with the columns that every judge needs beside the quasi-identifiers.

    Attributes
    ----------
    table : Drawn
    quasi : list of str
    sensitive, person : str or None
    row : str or None
        A column of row numbers that passes through, by which released records are found again.
    dropped : list of str
    """

    table: Drawn
    quasi: list[str]
    sensitive: str | None = None
    person: str | None = None
    row: str | None = None
    dropped: list[str] = field(default_factory=list)


def add_roles(random: np.random.Generator, table: Drawn, *, with_row: bool = True) -> Roles:
    """Add a sensitive column, persons, row numbers and identifiers to a table, now and then."""
    n_records = table.n_records
    columns = dict(table.columns)
    roles = Roles(table, list(columns))
    plain = {"flavor": int(random.integers(0, 3))}
    if chance(random, 0.5):
        roles.sensitive = "illness"
        values, detail = draw_pool(
            random, pick(random, ("code", "category", "canary text")), int(random.integers(2, 7))
        )
        kind = "code" if isinstance(values[0], int) else "category" if "categories" in detail else "canary text"
        chances = 1.0 / np.arange(1, len(values) + 1) ** pick(random, (0.0, 0.5, 1.0))
        drawn = random.choice(len(values), n_records, p=chances / chances.sum())
        missing = random.random(n_records) < pick(random, (0.0, 0.0, 0.1))
        own = [None if absent else values[v] for v, absent in zip(drawn, missing, strict=True)]
        columns["illness"] = Column(kind, own, {**detail, **plain})
    if chance(random, 0.25):
        roles.person = "person"
        persons = random.integers(0, max(2, n_records // pick(random, (1, 2, 4))), n_records)
        columns["person"] = Column("canary integer", [100_000_000 + int(p) for p in persons], plain)
    if chance(random, 0.15):
        roles.dropped = ["name"]
        kind = pick(random, ("canary text", "canary text", "list", "mixed", "dict", "struct", "binary", "long decimal"))
        columns["name"] = draw_column(random, kind, n_records)
    if with_row:
        roles.row = "row"
        columns["row"] = Column("wide integer", list(range(n_records)), plain)
    order = [str(name) for name in random.permutation(list(columns))]
    roles.table = Drawn({name: columns[name] for name in order}, table.index)
    roles.quasi = [name for name in order if name in roles.quasi]
    return roles


def draw_k(random: np.random.Generator, n_records: int) -> int:
    """Draw a k that most often fits the table."""
    most = 50 if chance(random, 0.1) else max(2, min(50, n_records // 2))
    return int(min(random.integers(2, most + 1), random.integers(2, 51)))


def draw_criteria(random: np.random.Generator, k: int, roles: Roles) -> list[dict[str, Any]]:
    """Draw further conditions, as plain settings that judge and library both read."""
    asked: list[dict[str, Any]] = []
    if roles.person is not None:
        asked.append({"name": "persons", "k": k, "column": roles.person})
    if roles.sensitive is None:
        return asked
    values = roles.table.columns[roles.sensitive].values
    n_values = len(set(values) - {None})
    missing = pick(random, ("value", "value", "suppress"))
    most = max(2, min(4, n_values))
    numbers = all(isinstance(v, int) for v in values if v is not None)
    distance = "ordered" if numbers and missing == "suppress" and chance(random, 0.5) else "equal"
    asked.append(
        pick(
            random,
            (
                {"name": "distinct", "l": int(random.integers(2, most + 1))},
                {"name": "entropy", "l": float(random.uniform(1.1, 2.0))},
                {"name": "recursive", "l": 2, "c": float(random.uniform(2, 6))},
                {"name": "t", "t": float(random.uniform(0.15, 0.8)), "distance": distance},
                {"name": "alpha-k", "alpha": float(random.uniform(0.6, 0.95)), "k": k},
                {"name": "beta", "beta": float(random.uniform(0.8, 5)), "kind": pick(random, ("basic", "enhanced"))},
                {"name": "delta", "delta": float(random.uniform(0.8, 3)), "absent": pick(random, ("fails", "ignored"))},
            ),
        )
        | {"column": roles.sensitive, "missing": missing}
    )
    return asked


def make_criteria(asked: list[dict[str, Any]]) -> list[Any]:
    """Return sfumato's criteria for these settings."""
    import sfumato

    made: list[Any] = []
    for one in asked:
        on, name = {"sensitive": one["column"], "missing": one.get("missing", "value")}, one["name"]
        if name == "persons":
            made.append(sfumato.KAnonymity(one["k"], unit=one["column"]))
        elif name in ("distinct", "entropy", "recursive"):
            made.append(sfumato.LDiversity(one["l"], kind=name, c=one.get("c"), **on))
        elif name == "t":
            made.append(sfumato.TCloseness(one["t"], distance=one["distance"], **on))
        elif name == "alpha-k":
            made.append(sfumato.AlphaKAnonymity(one["alpha"], one["k"], **on))
        elif name == "beta":
            made.append(sfumato.BetaLikeness(one["beta"], kind=one["kind"], **on))
        else:
            made.append(sfumato.DeltaDisclosure(one["delta"], absent=one["absent"], **on))
    return made


def draw_limits(random: np.random.Generator, roles: Roles) -> dict[str, Any]:
    """Draw the finest detail of some columns; now and then one that cannot apply."""
    limits: dict[str, Any] = {}
    for name in roles.quasi:
        if not chance(random, 0.15):
            continue
        kind = roles.table.columns[name].kind
        if kind in ("integer", "float", "decimal", "canary integer"):
            limits[name] = pick(random, (1, 5, 10, 0.5))
        elif kind in ("text", "canary text", "category"):
            limits[name] = pick(random, (1, 2, 3))
        elif kind in ("date", "datetime", "zoned"):
            limits[name] = datetime.timedelta(days=int(pick(random, (1, 7, 365))))
        elif chance(random, 0.2):
            limits[name] = pick(random, (0, -1, 3, "wide"))
    return limits


def draw_hierarchies(random: np.random.Generator, roles: Roles) -> dict[str, Any]:
    """Draw hierarchies for some columns of text or whole numbers."""
    found: dict[str, Any] = {}
    for name in roles.quasi:
        column = roles.table.columns[name]
        if column.kind not in ("integer", "code", "category", "canary text", "ordered") or not chance(random, 0.5):
            continue
        values = [v for v in dict.fromkeys(column.values) if v is not None]
        if column.kind in ("integer", "code"):
            found[name] = [[v, f"{v // 5 * 5}+", f"{v // 20 * 20}+", "*"] for v in range(-20, 100)]
        elif 0 < len(values) < 200:
            found[name] = [[v, v[:3] + "_", v[:2] + "__", "*"] for v in values]
    return found


def draw_guide(random: np.random.Generator, n_records: int) -> Any:
    """Draw what guides the splits: nothing, labels, probabilities or numbers, of one output or several."""
    kind = pick(random, ("none", "labels", "labels", "binary", "probabilities", "number", "numbers"))
    if kind == "none":
        return None
    if kind == "labels":
        return random.choice(["no", "perhaps", "yes"], n_records)
    if kind == "number":
        return np.round(random.normal(size=n_records), 2) + 0.001
    if kind == "numbers":
        return random.normal(size=(n_records, 3)) * [1, 1000, 0]
    return random.dirichlet(np.ones(2 if kind == "binary" else 4), n_records)
