# SPDX-License-Identifier: Apache-2.0
"""Break the code that judges, one place at a time, and list the breaks that no test notices.

A mutant is one module with one operator, constant or condition changed. Its tests run in a forked process in which the
changed source stands for the module; no file is touched. A mutant that its tests pass survives: either nothing tests
that place, or the change makes no difference. Needs a system that can fork (Linux, macOS).

Examples: ``python scripts/mutants.py --only verification --sample 40`` or ``python scripts/mutants.py --list``.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
#: Modules, as a pattern, and the tests that are to notice what is broken in them.
JUDGES = (
    ("src/sfumato/verification.py", ("tests/test_verification.py", "tests/test_promises.py")),
    ("src/sfumato/criteria/*.py", ("tests/criteria",)),
    ("src/sfumato/backends/*/recount.py", ("tests/backends", "tests/parquet")),
)
_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
_JUNCTIONS = {ast.And: ast.Or, ast.Or: ast.And}


@dataclass(frozen=True)
class Mutant:
    """One module with one change: where it is, what it reads now, and the whole source."""

    path: Path
    line: int
    change: str
    source: str


def mutants_of(path: Path, source: str | None = None) -> list[Mutant]:
    """Return every mutant of a module, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf-8") if source is None else source)
    changeable = [node for node in _code_of(tree) if _changed(node) is not None]
    found = []
    for place, node in enumerate(changeable):
        before = ast.unparse(node)
        other = copy.deepcopy(tree)
        twin = [node for node in _code_of(other) if _changed(node) is not None][place]
        after = _changed(twin)
        assert after is not None
        _Replace(twin, after).visit(other)
        found.append(Mutant(path, node.lineno, f"{before} -> {ast.unparse(after)}", ast.unparse(other)))
    return sorted(found, key=lambda mutant: mutant.line)


def survives(mutant: Mutant | None, path: Path, tests: tuple[str, ...], seconds: float) -> bool:
    """Return True if the tests pass; without a mutant, the module stays as it is."""
    process = os.fork()
    if process == 0:
        os._exit(_tested(mutant, path, tests))
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.kill(process, signal.SIGKILL)  # an endless loop is noticed, too
    os.waitpid(process, 0)
    return False


def _tested(mutant: Mutant | None, path: Path, tests: tuple[str, ...]) -> int:
    import pytest

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    if mutant is not None:
        code = compile(mutant.source, str(path), "exec", dont_inherit=True)
        own = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> object:
            return code if Path(loader.path) == path else own(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))


def _code_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run: neither annotations nor what only a type checker or a reader of messages sees."""
    for name, own in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for node in own if isinstance(own, list) else [own]:
            is_message = isinstance(node, ast.Raise | ast.JoinedStr | ast.ImportFrom | ast.Import)
            if isinstance(node, ast.AST) and not is_message and "TYPE_CHECKING" not in ast.dump(node)[:60]:
                yield node
                yield from _code_of(node)


def _changed(node: ast.AST) -> ast.expr | None:
    changed: ast.expr | None = None
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            changed = ast.Compare(node.left, [_COMPARISONS[type(operator)]()], node.comparators)
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC:
            changed = ast.BinOp(node.left, _ARITHMETIC[type(operator)](), node.right)
        case ast.BoolOp():
            changed = ast.BoolOp(_JUNCTIONS[type(node.op)](), node.values)
        case ast.UnaryOp(op=ast.Not()):
            changed = node.operand
        case ast.Constant(value=bool() as value):
            changed = ast.Constant(not value)
        case ast.Constant(value=int() as value):
            changed = ast.Constant(value + 1)
    return changed


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the new node for the old one."""
        return self._new if node is self._old else self.generic_visit(node)


def main() -> int:
    """Run the mutants of the named modules and list those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="modules whose path contains this")
    parser.add_argument("--sample", type=int, help="so many mutants of each module, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sample")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    chosen = parser.parse_args()
    sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY)]
    os.chdir(REPOSITORY)
    for heavy in (
        "numba",
        "pandas",
        "pyarrow",
        "pytest",
        "sklearn.tree",
    ):  # once, for all that are forked
        __import__(heavy)
    n_run = n_survived = 0
    for pattern, tests in JUDGES:
        for path in sorted(REPOSITORY.glob(pattern)):
            if chosen.only not in path.as_posix():
                continue
            mutants = mutants_of(path)
            if chosen.sample is not None and chosen.sample < len(mutants):
                drawn = random.Random(chosen.seed).sample(mutants, chosen.sample)
                mutants = sorted(drawn, key=lambda mutant: mutant.line)
            name = path.relative_to(REPOSITORY).as_posix()
            if chosen.list:
                print(*(f"{name}:{mutant.line}: {mutant.change}" for mutant in mutants), sep="\n")
                continue
            began = time.monotonic()
            if mutants and not survives(None, path, tests, 3600):
                print(f"{name}: its tests fail as it is; mend that first")
                return 2
            limit = 30 + 5 * (time.monotonic() - began)
            survivors = 0
            for mutant in mutants:
                if survives(mutant, path, tests, limit):
                    survivors += 1
                    print(f"{name}:{mutant.line}: {mutant.change}", flush=True)
            print(f"{name}: {survivors} of {len(mutants)} mutants survive", flush=True)
            n_run, n_survived = n_run + len(mutants), n_survived + survivors
    if not chosen.list:
        print(
            f"{n_survived} of {n_run} mutants survive; look at each: a missing test, or a change without a difference"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
