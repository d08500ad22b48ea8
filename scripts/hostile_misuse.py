# SPDX-License-Identifier: Apache-2.0
"""Cases of the hostile campaign that use sfumato wrongly: whatever is handed in, it works or is refused in words."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hostile_judge as judge
from hostile_cases import Found, chance, pick
from hostile_commands import FileCase
from hostile_library import METHODS, LibraryCase
from hostile_tables import EXOTIC, draw_column, word

# --- the library --------------------------------------------------------------------------------------------------


def _foreign_tables(case: LibraryCase) -> list[Callable[[], Any]]:
    """Return ways to hand in something that is not a table, or an odd one."""
    import pandas as pd
    import polars as pl
    import scipy.sparse

    lists = {str(name): column.values for name, column in case.table.columns.items()}
    rows = [list(row) for row in zip(*lists.values(), strict=True)]
    numbers = np.arange(40.0).reshape(20, 2)

    def twice() -> Any:
        frame = case.table.to("pandas")
        return pd.concat([frame, frame], axis=1)

    def leveled() -> Any:
        frame = case.table.to("pandas")
        return frame.set_axis(pd.MultiIndex.from_tuples([(name, "x") for name in frame.columns]), axis=1)

    def numbered() -> Any:
        frame = case.table.to("pandas")
        return frame.set_axis(range(7, 7 + frame.shape[1]), axis=1)

    return [
        lambda: lists,
        lambda: rows,
        lambda: rows[0],
        lambda: [*rows, [1]],
        lambda: case.table.to("polars").lazy(),
        lambda: case.table.to("pandas").iloc[:, 0],
        lambda: case.table.to("polars").to_series(0),
        lambda: case.table.to("pyarrow").to_batches()[0],
        lambda: case.table.to("pandas").head(0),
        lambda: pl.DataFrame(),
        lambda: scipy.sparse.csr_matrix(numbers),
        lambda: np.ma.masked_array(numbers, numbers > 30),
        lambda: np.zeros(5, dtype=[("a", int), ("b", float)]),
        lambda: numbers[None],
        lambda: numbers + 1j,
        lambda: np.full((20, 2), np.inf),
        lambda: None,
        lambda: "people.csv",
        lambda: 7,
        twice,
        leveled,
        numbered,
        lambda: np.array([[word(case.random), 1], [2, 3.5]] * 20, dtype=object),
        lambda: np.array([[word(case.random), "b"]] * 20),
        lambda: pd.DataFrame({"a": pd.period_range("2020", periods=20, freq="M"), "b": range(20)}),
        lambda: pd.DataFrame({"a": pd.interval_range(0, 20), "b": range(20)}),
        lambda: pd.DataFrame({"a": pd.arrays.SparseArray([0, 1] * 10), "b": range(20)}),
        lambda: pd.DataFrame({"a": pd.Categorical([{"x": 1}.__repr__(), 2] * 10), "b": range(20)}),
        lambda: pd.DataFrame({"a": pd.Categorical(pd.date_range("2020", periods=20)), "b": range(20)}),
        lambda: pd.DataFrame({"a": pd.date_range("2020", periods=20, freq="3ns"), "b": range(20)}),
        lambda: pd.DataFrame({"a": [10**30 + i for i in range(20)], "b": range(20)}),
        lambda: pd.DataFrame({"a": ["\ud800x"] * 20, "b": range(20)}),
        lambda: pl.DataFrame({"a": [2**64 - 1 - i for i in range(20)]}, schema={"a": pl.UInt64}),
        lambda: pl.DataFrame({"a": [[i] for i in range(20)], "b": range(20)}),
        lambda: case.table.to("pyarrow").slice(0, 0),
    ]


def misuse(found: Found, random: np.random.Generator) -> None:
    """Hand odd tables and settings to an anonymizer or to the anatomizer."""
    import sfumato

    case = LibraryCase(found, random)
    frame, y = case.frame, case.y
    if chance(random, 0.6):
        ways = _foreign_tables(case)
        place = int(random.integers(0, len(ways)))
        with contextlib.suppress(Exception):  # a library may not be able to build it
            frame = ways[place]()
            y = None
    name = pick(random, METHODS)
    settings: dict[str, Any] = {"k": case.k}
    odd = (
        ("k", (0, 1, -3, 2.5, "10", True, None, np.int64(3), 10**9)),
        ("quasi_identifiers", ([], ["absent"], "c0", 0, [0, 0], [99], 3.5, [None], {"c0": 1}, ["c0", "c0"])),
        ("identifiers", (["absent"], "c0", [0], ["c0"], True)),
        ("keep", (["absent"], ["c0"], "c0", [0, 1])),
        ("criteria", ("l", [3], sfumato.LDiversity(2, "absent"), [sfumato.KAnonymity(2, unit="absent")], [None])),
        ("categorical_features", (["absent"], ["c0"], 7, True)),
        ("suppression_limit", (-1, 2, "a", None, float("nan"), True)),
        ("hierarchies", ({"absent": {}}, {"c0": {}}, {"c0": 7}, {"c0": [["a", "b"], ["a", "c"]]}, {"c0": "no.csv"}, 7)),
        ("limits", ({"absent": 3}, {"c0": 0}, {"c0": float("nan")}, {"c0": "x"}, 7, {"c0": 10**400}, {"c0": 1e-320})),
        ("representative", ("modal", None, 7)),
        ("max_bins", (0, 1, 2.5, "a", 10**9, None)),
        ("random_state", ("a", -1, 2.5)),
        ("n_jobs", (0, -5, 2.5, "a", 10**6)),
        ("guide_kind", ("odd", None)),
        ("guide_fraction", (0, -1, 2, "a")),
        ("guide_estimator", ("odd", 7, object)),
        ("split_on", ("odd", None)),
        ("rule", ("odd", None)),
    )
    maker = getattr(sfumato, f"{name}Anonymizer")
    known = maker().get_params()
    for parameter, values in odd:
        if parameter in known and chance(random, 0.12):
            settings[parameter] = pick(random, values)
    guides = (
        None, np.zeros(3), ["a"], np.full(case.table.n_records, np.nan), np.full(case.table.n_records, np.inf), "y", 7,
        [[1], [2, 3]], np.zeros((case.table.n_records, 0)), [object()] * case.table.n_records,
        np.linspace(-1, 1, case.table.n_records) * 1.7e308,
    )  # fmt: skip
    if chance(random, 0.4):
        y = guides[int(random.integers(0, len(guides)))]
    where = f"misuse {name} {sorted(settings)} of a {type(frame).__name__}"
    # The message may quote a setting, and the seeds above are not cells.
    with found.careful(where, case.cells):
        if chance(random, 0.15):
            sfumato.Anatomizer(settings["k"], sensitive=settings.get("quasi_identifiers", ["c0"])).fit_transform(frame)
        elif chance(random, 0.5):
            maker(**settings).fit_transform(frame, y)
        else:
            maker(**settings).fit(frame, y).release(frame, y)
        found.counts["misuse that worked"] += 1


def later(found: Found, random: np.random.Generator) -> None:
    """Hand other records to a fitted anonymizer: unseen values, other types, other columns."""
    case = LibraryCase(found, random)
    anonymizer = case.make()
    if anonymizer is None:
        return
    where = f"later {case.where}"
    fitted = False
    with found.careful(where, case.cells):
        anonymizer.fit(case.frame, case.y)
        fitted = True
    if not fitted:
        return
    columns = dict(case.table.columns)
    n_records = case.table.n_records
    name = pick(random, list(columns))
    what = pick(random, ("same kind", "other kind", "gone", "more", "order", "missing", "exotic"))
    if what == "gone":
        del columns[name]
    elif what == "more":
        columns["more"] = draw_column(random, "canary text", n_records)
    elif what == "order":
        columns = {n: columns[n] for n in reversed(columns)}
    elif what == "missing":
        columns[name] = type(columns[name])(columns[name].kind, [None] * n_records, columns[name].detail)
    else:
        kinds = (
            EXOTIC
            if what == "exotic"
            else ("integer", "float", "canary text", "category", "date", "boolean", "decimal")
        )
        columns[name] = draw_column(
            random, columns[name].kind if what == "same kind" else pick(random, kinds), n_records
        )
    if not columns:
        return
    other = type(case.table)(columns, case.table.index)
    library = case.library if chance(random, 0.8) else pick(random, ("pandas", "polars", "pyarrow"))
    frame = other.to(library)
    cells = case.cells | judge.canaries(judge.columns_of(frame))
    with found.careful(f"{where}, transform, {what}", cells):
        anonymizer.transform(frame)
    with found.careful(f"{where}, release, {what}", cells):
        made = anonymizer.release(frame)
        released = judge.columns_of(made.table)
        names = case.names_in(released) if library == case.library else {n: n for n in released}
        quasi = [place for n, place in names.items() if n in case.roles.quasi or n in case.bounds()]
        if what not in ("more",):
            found.releases += 1
            found.broken("guarantee", judge.too_small(judge.grouped(released, quasi), case.k), f"{where}, {what}")


# --- the command line ---------------------------------------------------------------------------------------------


def _damaged(random: np.random.Generator, text: str) -> bytes:
    """Return a file that was damaged."""
    lines = text.splitlines()
    ways: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: b"\n",
        lambda: b"\xef\xbb\xbf" + text.encode(),
        lambda: text.encode("utf-16"),
        lambda: (text + "é\n").encode("latin-1", "replace"),
        lambda: lines[0].encode(),
        lambda: "\n".join(lines[1:]).encode(),
        lambda: "\n".join([*lines[:3], lines[-1] + ",1,2,3", *lines[3:]]).encode(),
        lambda: "\n".join([*lines[:3], lines[-1].rpartition(",")[0], *lines[3:]]).encode(),
        lambda: (text + '"unfinished').encode(),
        lambda: text.encode().replace(b"\n", b"\r\n"),
        lambda: text.encode().replace(b"\n", b"\r"),
        lambda: text.encode() + b"\x00\x01\x02",
        lambda: random.bytes(500),
        lambda: b"PAR1" + random.bytes(100),
        lambda: ("sep=;\n" + text.replace(",", ";")).encode(),
        lambda: text.replace(lines[0], lines[0] + "," + lines[0].partition(",")[0]).encode(),
        lambda: text.replace(lines[0], "," * lines[0].count(",")).encode(),
        lambda: ("# a comment\n\n" + text).encode(),
        lambda: "\n".join([lines[0], *["1e308" + line[line.find(",") :] for line in lines[1:]]]).encode(),
        lambda: "\n".join([lines[0], *["1e400" + line[line.find(",") :] for line in lines[1:]]]).encode(),
        lambda: "\n".join([lines[0], *["9" * 400 + line[line.find(",") :] for line in lines[1:]]]).encode(),
        lambda: text.replace(lines[0], lines[0].replace("c0", "c0 ").replace("outcome", " ")).encode(),
        lambda: text.replace(lines[0], lines[0].replace("c0", "\x1b[31mc0\x1b[0m")).encode(),
    ]
    return pick(random, ways)()


def _odd_document(random: np.random.Generator, text: str) -> str:
    """Return a document that was damaged."""
    ways: list[Callable[[], str]] = [
        lambda: "",
        lambda: "[" * 100_000 + "]" * 100_000,
        lambda: '{"a":' * 50_000 + "1" + "}" * 50_000,
        lambda: text[: len(text) // 2],
        lambda: "null",
        lambda: "[1, 2]",
        lambda: "{}",
        lambda: text.replace("1", "1e999"),
        lambda: text.replace("[", "{").replace("]", "}"),
    ]
    if text.startswith("{"):
        document = json.loads(text)
        key = pick(random, list(document))
        for odd in (None, 7, "x", [], {}, [[]], {"a": {"b": []}}, [None]):
            ways.append(lambda odd=odd: json.dumps({**document, key: odd}))  # type: ignore[misc]
        ways.append(lambda: json.dumps({k: v for k, v in document.items() if k != key}))
        ways += [lambda: json.dumps(_spoiled(random, document))] * 8
    return pick(random, ways)()


def _spoiled(random: np.random.Generator, document: Any) -> Any:
    """Return the document with one of its leaves replaced by something else."""
    if isinstance(document, dict) and document:
        key = pick(random, list(document))
        return {**document, key: _spoiled(random, document[key])}
    if isinstance(document, list) and document:
        place = int(random.integers(0, len(document)))
        return [*document[:place], _spoiled(random, document[place]), *document[place + 1 :]]
    return pick(random, (None, -1, 10**9, 1.5, "odd", [], {}, True))


def cli_misuse(found: Found, random: np.random.Generator) -> None:
    """Call commands with damaged files, odd names and odd settings."""
    with tempfile.TemporaryDirectory() as folder:
        _cli_misuse(FileCase(found, random, Path(folder), most=200))


def _cli_misuse(case: FileCase) -> None:
    random, folder = case.random, case.folder
    case.table.write(folder / "people.csv")
    what = pick(random, ("file", "file", "document", "options", "policy"))
    command = pick(random, ("anonymize", "anatomize", "minimize", "measure", "init", "audit"))
    source = "people.csv"
    if what == "file":
        source = pick(random, ("odd.csv", "odd.csv", "odd.csv", "odd.parquet", "odd.xlsx", "odd"))
        (folder / source).write_bytes(_damaged(random, (folder / "people.csv").read_text(encoding="utf-8")))
    if what == "document":
        case.call("anonymize", source, "--target", "outcome", "--save", "partition.json", "--model", "decision-tree",
                  "--test-fraction", "0", "--quiet", "-k", "2", *case.roles_as_options())  # fmt: skip
        path = folder / "partition.json"
        text = path.read_text(encoding="utf-8") if path.exists() else "{}"
        path.write_text(_odd_document(random, text), encoding="utf-8")
        case.call("apply", "partition.json", source, "-o", "again.csv", *(["--release"] if chance(random, 0.5) else []))
        return
    if what == "policy":
        case.call("init", source, "--target", "outcome", "-o", "policy.toml", "--quiet")
        path = folder / "policy.toml"
        text = path.read_text(encoding="utf-8") if path.exists() else "version = 1"
        lines = text.splitlines()
        for _ in range(int(random.integers(0, 3))):
            place = int(random.integers(0, len(lines)))
            name = lines[place].partition("=")[0]
            odd = ('"odd"', "-1", "[]", "{}", "1e999", "[[1]]", "true", '""', "nan", "2020-01-01", "[" * 500)
            lines[place] = f"{name}= {pick(random, odd)}" if name.strip() else lines[place]
        path.write_text("\n".join(lines), encoding="utf-8")
        case.call("run", "policy.toml", "--quiet", "--dry-run")
        return
    arguments = {
        "anonymize": ["--target", "outcome", "-o", "out.csv", "--model", "decision-tree", "--test-fraction", "0"],
        "anatomize": ["--sensitive", "outcome", "-o", "shared", "--no-attack"],
        "minimize": ["--target", "outcome", "-o", "generalization.json"],
        "measure": ["--quasi-identifiers", "c0"],
        "init": ["--target", "outcome", "-o", "policy.toml"],
        "audit": ["--quasi-identifiers", "c0"],
    }[command]
    if what == "options":
        odd = (
            "",
            " ",
            "absent",
            "c0,c0",
            '"c0',
            "c0,,c1",
            "-1",
            "0",
            "nan",
            "1e999",
            "x=",
            "=3",
            "c0=x",
            "\x1b[31m",
            "é",
        )
        places = [at for at, part in enumerate(arguments) if not part.startswith("-")]
        arguments[pick(random, places)] = pick(random, odd)
        extra = (
            "--k", "--keep", "--limits", "--unit", "--categorical", "--identifiers", "--seed", "--guide", "--task",
            "--representative", "--separator", "--types", "--encoding", "--missing", "--decimal", "--l",
        )  # fmt: skip
        arguments += [pick(random, extra), pick(random, odd)]
    first = [source, source] if command == "audit" else [source]
    case.call(command, *first, *arguments)


KINDS = {"misuse": (misuse, 12), "later": (later, 8), "cli misuse": (cli_misuse, 4)}
