# SPDX-License-Identifier: Apache-2.0
"""Kernels hand each other numbers and booleans whose type does not depend on their value.

To numba a plain 0 is a type of its own, and the kernel that is called is compiled once more for it, with all that it
calls; a name that starts as 0 and is counted up is compiled both ways. Before this was looked at, the first run of
everything took twice as long. ``np.int64(0)`` and ``np.bool_(False)`` are what they look like.
"""

import ast
from pathlib import Path

import pytest

import sfumato

SOURCE = Path(sfumato.__file__).parent


def kernels_in(tree: ast.AST) -> list[ast.FunctionDef]:
    """The compiled functions of a module."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any("njit" in ast.unparse(decorator) for decorator in f.decorator_list)]


def is_literal(value: ast.AST, names: set[str]) -> bool:
    """Return True if numba knows the value while it compiles: a constant, or a name for one."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int)  # booleans are integers, too
    if isinstance(value, ast.Name):
        return value.id in names
    if isinstance(value, ast.UnaryOp):
        return is_literal(value.operand, names)
    return isinstance(value, ast.BinOp) and is_literal(value.left, names) and is_literal(value.right, names)


def literal_names(body: list[ast.stmt], known: set[str]) -> set[str]:
    """The names that are given a literal anywhere below some statements, alone or several at once."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if not isinstance(node, ast.Assign):
                continue
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=True))
                elif isinstance(target, ast.Tuple) and "range(" in ast.unparse(node.value):
                    pairs = [(name, ast.Constant(0)) for name in target.elts]  # a, b, c = range(3)
                found |= {t.id for t, v in pairs if isinstance(t, ast.Name) and is_literal(v, known)}
    return found


def literals_handed_over(tree: ast.Module, kernels: set[str], constants: set[str]) -> list[str]:
    """Where a kernel calls another with a literal."""
    found = []
    for function in kernels_in(tree):
        names = constants | literal_names(function.body, constants)
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in kernels:
                literals = [ast.unparse(argument) for argument in call.args if is_literal(argument, names)]
                found += [f"line {call.lineno}: {function.name} calls {call.func.id} with {text}" for text in literals]
    return found


SOURCES = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}


@pytest.fixture(scope="module")
def known() -> tuple[dict[str, ast.Module], set[str], set[str]]:
    """Modules, kernels and names of constants. Parsed here: every process of a test run collects this file."""
    modules = {name: ast.parse(text) for name, text in SOURCES.items()}
    kernels = {f.name for name, tree in modules.items() if "njit" in SOURCES[name] for f in kernels_in(tree)}
    constants: set[str] = set()
    for tree in modules.values():
        constants |= literal_names([node for node in tree.body if isinstance(node, ast.Assign)], constants)
    return modules, kernels, constants


def test_kernels_are_found(known):
    assert len(known[1]) > 100 and {"ENTROPY", "INFORMATION_LOSS"} <= known[2]


@pytest.mark.parametrize("name", sorted(name for name, text in SOURCES.items() if "njit" in text))
def test_no_kernel_hands_a_literal_to_another(name, known):
    modules, kernels, constants = known
    assert literals_handed_over(modules[name], kernels, constants) == []


def test_a_literal_would_be_found():
    source = """
LOSS = 2
@njit
def called(n, rule, is_first): pass
@njit
def calling(values):
    n, other = 0, np.int64(0)
    for value in values:
        n += 1
    called(n, LOSS, False)
    called(other, np.int64(LOSS), np.bool_(False))
"""
    tree = ast.parse(source)
    constants = literal_names(tree.body[:1], set())
    found = literals_handed_over(tree, {"called"}, constants)
    assert found == [f"line 10: calling calls called with {text}" for text in ("n", "LOSS", "False")]
