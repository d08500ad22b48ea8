# SPDX-License-Identifier: Apache-2.0
"""Measure the code: lines, modules, and how far apart the modules are. A place to look, not a verdict.

    python scripts/house.py                     # a Markdown table of the package
    python scripts/house.py --list              # also the modules that exactly one other module imports
    python scripts/house.py --against v0.1      # another commit beside the working tree
    python scripts/house.py --json

A chain is a row of modules each of which imports the next; the longest one says how many files lie between a call and
the last line it may reach. Modules that import each other in a circle count as one. Imports inside functions count,
those for type checkers only do not. A name taken from a package counts for the module that the package takes it from.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
STARTS = ("ModelGuidedAnonymizer", "sfumato.cli.run")
KINDS = ("code", "docstring", "comment", "blank")
TOP = "(top)"


@dataclass
class Module:
    """One file: its lines by kind, what it defines, and what it imports of its own package."""

    path: Path
    lines: Counter[str]
    classes: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)


def kinds_of_lines(text: str, tree: ast.Module) -> Counter[str]:
    """Count the lines of a file: each is code, docstring, comment or blank."""
    kind = ["blank"] * (text.count("\n") + (not text.endswith("\n") and bool(text)))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if kind[token.start[0] - 1] == "blank":
                kind[token.start[0] - 1] = "comment"
        elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            kind[token.start[0] - 1 : token.end[0]] = ["code"] * (token.end[0] - token.start[0] + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            if is_text and isinstance(first.value.value, str) and first.lineno != node_line(node):
                kind[first.lineno - 1 : first.end_lineno] = ["docstring"] * (first.end_lineno - first.lineno + 1)
    return Counter(kind)


def node_line(node: ast.AST) -> int:
    """Return the line a definition starts on; a module has none."""
    return getattr(node, "lineno", 0)


def read_modules(package: Path) -> dict[str, Module]:
    """Return the modules of a package folder by their dotted names, with the imports among them."""
    paths = {_dotted(path, package): path for path in sorted(package.rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in paths.items()}
    taken = {name: dict(_imports(tree, name, paths)) for name, tree in trees.items()}
    modules = {}
    for name, path in paths.items():
        own = Module(path, kinds_of_lines(path.read_text(encoding="utf-8"), trees[name]))
        own.classes = {node.name for node in ast.walk(trees[name]) if isinstance(node, ast.ClassDef)}
        own.imports = {_home(module, word, paths, taken) for (module, word) in taken[name]} - {name, ""}
        modules[name] = own
    return modules


def _dotted(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, name: str, paths: dict[str, Path]) -> list[tuple[tuple[str, str], str]]:
    """Return what a module imports, as (module, name taken from it), and what it calls that."""
    folder = name if paths[name].name == "__init__.py" else name.rpartition(".")[0]
    found: list[tuple[tuple[str, str], str]] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            waiting += node.orelse
        elif isinstance(node, ast.Import):
            found += [((alias.name, ""), alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folder.split(".")[: len(folder.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [((module, alias.name), alias.asname or alias.name) for alias in node.names]
        else:
            waiting += ast.iter_child_nodes(node)
    return found


def _home(module: str, word: str, paths: dict[str, Path], taken: dict[str, Any]) -> str:
    """Return the module of this package that a name comes from; empty where it is from elsewhere."""
    seen = set()
    while (module, word) not in seen:
        seen.add((module, word))
        if f"{module}.{word}" in paths:
            return f"{module}.{word}"
        if module not in paths:
            return ""
        if paths[module].name != "__init__.py" or not word:
            return module
        passed_on = [source for source, called in taken[module].items() if called == word]
        if not passed_on:
            return module
        module, word = passed_on[0]
    return module if module in paths else ""


# -- chains --------------------------------------------------------------------------------------------------------


def circles_of(modules: dict[str, Module]) -> dict[str, tuple[str, ...]]:
    """Return for every module the modules it is in a circle with, itself among them."""
    reached = {name: reached_from(name, modules) for name in modules}
    return {name: tuple(sorted(o for o in reached[name] if name in reached[o])) for name in modules}


def reached_from(start: str, modules: dict[str, Module]) -> set[str]:
    """Return the modules that a module imports, directly or not, and itself."""
    reached, waiting = {start}, [start]
    while waiting:
        new = modules[waiting.pop()].imports - reached
        reached |= new
        waiting += new
    return reached


def longest_chain(start: str, modules: dict[str, Module]) -> list[str]:
    """Return the longest row of imports that starts with a module; a circle is one link, joined by plus signs."""
    circles, best = circles_of(modules), {}

    def chain(circle: tuple[str, ...]) -> list[tuple[str, ...]]:
        if circle not in best:
            following = {circles[target] for name in circle for target in modules[name].imports} - {circle}
            longest = max((chain(own) for own in sorted(following)), key=len, default=[])
            best[circle] = [circle, *longest]
        return best[circle]

    return [" + ".join(circle) for circle in chain(circles[start])]


def module_of(wanted: str, modules: dict[str, Module]) -> str | None:
    """Return the module of that name, or the one that defines a class of that name."""
    if wanted in modules:
        return wanted
    return next((name for name, own in sorted(modules.items()) if wanted in own.classes), None)


# -- measuring -----------------------------------------------------------------------------------------------------


def measure(package: Path, starts: tuple[str, ...] = STARTS) -> dict[str, Any]:
    """Return the measures of a package folder as plain numbers, names and lists."""
    modules = read_modules(package)
    packages: dict[str, Counter[str]] = {}
    for name, own in modules.items():
        parts = name.split(".")
        unit = parts[1] if len(parts) > 1 and (package / parts[1]).is_dir() else TOP
        packages.setdefault(unit, Counter()).update({**own.lines, "modules": 1, "lines": own.lines.total()})
    importers = Counter(target for own in modules.values() for target in own.imports)
    single = [n for n, own in sorted(modules.items()) if importers[n] == 1 and own.path.name != "__init__.py"]
    files = Counter(own.path.name for own in modules.values() if own.path.name != "__init__.py")
    chains = {}
    for wanted in starts:
        start = module_of(wanted, modules)
        if start is not None:
            chains[wanted] = {
                "module": start, "chain": longest_chain(start, modules), "reached": len(reached_from(start, modules)),
            }  # fmt: skip
    total: Counter[str] = Counter()
    for own in packages.values():
        total.update(own)
    order = sorted(packages, key=lambda unit: -packages[unit]["lines"])
    columns = ("modules", "lines", *KINDS)
    return {
        "packages": {unit: {name: packages[unit][name] for name in columns} for unit in order},
        "total": {name: total[name] for name in columns},
        "imported_by_one": single,
        "names_used_again": {name: n for name, n in sorted(files.items()) if n > 1},
        "circles": sorted({own for own in circles_of(modules).values() if len(own) > 1}),
        "chains": chains,
        "duplicates": duplicates_in(package),
    }


def duplicates_in(package: Path) -> int | None:
    """Return how many pairs of places share lines, where a command called duplicates is installed; else None."""
    command = shutil.which("duplicates")
    if command is None:
        return None
    asked = [command, "--repo", str(package), "--most", "1", "--seconds", "120"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    first = said.partition("\n")[0]
    if first.startswith("no duplicates"):
        return 0
    found = re.search(r"\d[\d,]*", first)
    return None if found is None or "incomplete" in said else int(found[0].replace(",", ""))


def measure_commit(reference: str, package: Path, starts: tuple[str, ...] = STARTS) -> dict[str, Any]:
    """Return the measures of the same folder in another commit."""
    top = Path(_git("rev-parse", "--show-toplevel", where=package).decode().strip())
    inside = package.resolve().relative_to(top.resolve())
    archive = _git("archive", "--format=tar", reference, "--", str(inside), where=top)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(folder, filter="data")
        return measure(Path(folder) / inside, starts)


def _git(*arguments: str, where: Path) -> bytes:
    return subprocess.run(["git", "-C", str(where), *arguments], capture_output=True, check=True).stdout


# -- showing -------------------------------------------------------------------------------------------------------


def as_markdown(now: dict[str, Any], before: dict[str, Any] | None = None, *, lists: bool = False) -> str:
    """Return the measures as Markdown; with older ones, every number as before → now."""
    old = before or {"packages": {}, "total": {}, "chains": {}}

    def number(new: Any, older: Any) -> str:
        shown = "-" if new is None else f"{new:,}"
        return shown if before is None else f"{'-' if older is None else f'{older:,}'} → {shown}"

    columns = ("modules", "lines", *KINDS)
    lines = [f"| package | {' | '.join(columns)} |", f"| --- {'| ---: ' * len(columns)}|"]
    units = [*now["packages"], *[unit for unit in old["packages"] if unit not in now["packages"]]]
    for unit in units:
        new, older = now["packages"].get(unit, {}), old["packages"].get(unit, {})
        lines.append(f"| {unit} | {' | '.join(number(new.get(c, 0), older.get(c, 0)) for c in columns)} |")
    total = [number(now["total"][column], old["total"].get(column)) for column in columns]
    lines += [f"| **all** | {' | '.join(total)} |", "", "| measure | number |", "| --- | ---: |"]
    for words, name in {
        "modules imported by exactly one other": "imported_by_one",
        "file names that occur more than once": "names_used_again",
        "circles of imports": "circles",
    }.items():
        lines.append(f"| {words} | {number(len(now[name]), len(old[name]) if before else None)} |")
    for start, found in now["chains"].items():
        older = old["chains"].get(start)
        chain = number(len(found["chain"]), len(older["chain"]) if older else None)
        reached = number(found["reached"], older["reached"] if older else None)
        lines.append(f"| longest chain of imports from {start} | {chain} |")
        lines.append(f"| modules reached from {start} | {reached} |")
    if now["duplicates"] is not None:
        lines.append(f"| pairs of places that share lines | {number(now['duplicates'], old.get('duplicates'))} |")
    if lists:
        lines += ["", "Imported by exactly one other module:", "", *[f"- {name}" for name in now["imported_by_one"]]]
        for start, found in now["chains"].items():
            lines += ["", f"The longest chain from {start}:", "", *[f"1. {name}" for name in found["chain"]]]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="?", type=Path, default=REPOSITORY / "src" / "sfumato", help="package folder")
    parser.add_argument("--against", metavar="REF", help="another commit to measure beside the working tree")
    parser.add_argument("--start", action="append", metavar="NAME", help="a class or module that chains start from")
    parser.add_argument("--list", action="store_true", help="also list modules imported by one other, and the chains")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    starts = tuple(asked.start or STARTS)
    now = measure(asked.package, starts)
    try:
        before = measure_commit(asked.against, asked.package, starts) if asked.against else None
    except subprocess.CalledProcessError as error:
        print(f"git cannot give {asked.against!r}: {error.stderr.decode().strip()}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps(now if before is None else {"before": before, "now": now}, indent=1))
    else:
        print(as_markdown(now, before, lists=asked.list))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
