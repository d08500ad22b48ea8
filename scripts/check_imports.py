# SPDX-License-Identifier: Apache-2.0
"""Check that imports inside sfumato go one way; `make check` runs it and the tests test it.

The order of the layers is the architecture, so it is written down once, here, as data. Imports inside
functions and under ``TYPE_CHECKING`` count too: a dependency is one wherever it stands. Exits 1 and names
file, line and rule for every import that is against the table.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# From the bottom up. A unit is a module or a folder directly under sfumato; it may import from any layer
# below its own, and not from its neighbors in the same layer.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("allocator", "errors", "notebooks", "registry", "system_files"),
    ("arguments", "columns", "documents", "networks", "progress"),
    ("threads",),
    ("frames", "grouping", "labels"),
    ("fingerprints", "hierarchies"),
    ("schema",),
    ("partition", "datasets", "models", "criterion_recount", "verification"),
    ("coded_columns",),
    ("criteria", "loss", "representatives", "generalization"),
    ("regions",),
    ("backends",),
    ("files",),
    ("attack", "measurement", "private"),
    ("certificates",),
    ("anonymize",),
    ("minimize", "anatomize"),
    ("parquet",),
    ("spark", "duckdb"),
    ("report",),
    ("policy",),
    ("auditing",),
    ("studio",),
    ("cli", "compat"),
    ("__main__", "testing"),
)

# Units that see less of sfumato than their layer would let them.
ONLY_FROM: dict[str, frozenset[str]] = {
    # arrays only: it must run under any frame library, and none
    "partition": frozenset({"errors", "grouping", "threads"}),
    "grouping": frozenset({"columns", "errors"}),
    "datasets": frozenset({"errors"}),
    "networks": frozenset({"errors"}),
    "arguments": frozenset({"errors"}),
    "documents": frozenset({"errors", "system_files"}),
    "verification": frozenset({"errors", "columns", "frames"}),  # the judge shares nothing with the engine
    "criterion_recount": frozenset(),  # nor do its formulas
    "testing": frozenset(),  # and the judge of the tests shares nothing with anything
}
NEVER_FROM: dict[str, frozenset[str]] = {
    "criteria": frozenset({"partition"}),  # a criterion hands over a test on counts; the grower asks it
}
# Units that few may import, and packages that few may import.
ONLY_BY: dict[str, frozenset[str]] = {
    "datasets": frozenset(
        {"cli", "studio"}
    ),  # the bundled data is for the demo, the studio and for studies, not for methods
    "narwhals": frozenset({"frames"}),  # the edge is one folder wide
}
THIRD_PARTY_OF: dict[str, frozenset[str]] = {"partition": frozenset({"numpy", "numba"})}

# What a core install brings. Anything else is an extra, or the user's own: imported inside a function.
CORE_PACKAGES = frozenset({"narwhals", "numba", "numpy", "pyarrow", "rich", "scipy", "sklearn", "typer"})
# The library opens no connection, so it has no use for the modules that do.
NETWORK_MODULES = frozenset({"aiohttp", "ftplib", "http", "httpx", "requests", "socket", "ssl", "urllib3"})

_RANK = {unit: rank for rank, layer in enumerate(LAYERS) for unit in layer}


@dataclass(frozen=True, order=True)
class Violation:
    """One import against the table."""

    path: Path
    line: int
    rule: str

    def __str__(self) -> str:
        """Show the violation as compilers do, so that editors can jump to it."""
        return f"{self.path}:{self.line}: {self.rule}"


@dataclass(frozen=True)
class Imported:
    """One imported module, as found in the source."""

    module: str  # dotted, absolute
    name: str  # what was taken from it; empty for a plain import
    line: int
    is_deferred: bool  # inside a function or under TYPE_CHECKING, so importing the module does not load it


def find_violations(package: Path) -> list[Violation]:
    """Return every import in the package folder that is against the table, in file and line order."""
    violations: set[Violation] = set()
    for path in package.rglob("*.py"):
        unit = _unit_of(path, package)
        if unit not in _RANK and unit != "__init__":
            violations.add(Violation(path, 1, f"{unit} has no place in the import table; give it one in LAYERS"))
            continue
        for imported in _imports_of(path, package):
            violations.update(
                Violation(path, imported.line, rule) for rule in _rules_broken(unit, imported, package.name)
            )
    return sorted(violations)


def _unit_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def _imports_of(path: Path, package: Path) -> Iterator[Imported]:
    folder = [package.name, *path.relative_to(package).parent.parts]
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8"), str(path)), False)]
    while waiting:
        node, is_deferred = waiting.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Imported(alias.name, "", node.lineno, is_deferred)
        elif isinstance(node, ast.ImportFrom):
            # Relative imports are resolved here, so that no spelling of an import slips through.
            base = folder[: len(folder) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Imported(module, alias.name, node.lineno, is_deferred)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            waiting += [(child, True) for child in node.body]
            waiting += [(child, is_deferred) for child in node.orelse]
        else:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            waiting += [(child, is_deferred or is_function) for child in ast.iter_child_nodes(node)]


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _rules_broken(unit: str, imported: Imported, package_name: str) -> Iterator[str]:
    top, _, rest = imported.module.partition(".")
    if unit == "__init__":
        # The public list names everything and loads nothing.
        if not imported.is_deferred and top not in sys.stdlib_module_names:
            yield f"the public list imports {imported.module} at module level; it loads names on first use"
    elif top == package_name:
        yield from _inside_rules_broken(unit, rest.partition(".")[0] or imported.name)
    else:
        yield from _outside_rules_broken(unit, top, imported)


def _inside_rules_broken(unit: str, target: str) -> Iterator[str]:
    if target in (unit, "__version__"):
        return
    if target not in _RANK:
        # `import sfumato` and `from sfumato import Name` hide which layer is meant.
        if unit != "cli":
            yield f"{unit} imports from the public list; import from the module that holds the name"
    elif _RANK[target] >= _RANK[unit]:
        yield f"{unit} imports {target}; imports go down the layers only"
    elif unit in ONLY_FROM and target not in ONLY_FROM[unit]:
        yield f"{unit} imports {target}; of sfumato it may import only {', '.join(sorted(ONLY_FROM[unit]))}"
    elif target in NEVER_FROM.get(unit, ()):
        yield f"{unit} imports {target}; they know nothing of each other"
    elif target in ONLY_BY and unit not in ONLY_BY[target]:
        yield f"{unit} imports {target}; only {', '.join(sorted(ONLY_BY[target]))} may"


def _outside_rules_broken(unit: str, top: str, imported: Imported) -> Iterator[str]:
    if top in NETWORK_MODULES or imported.module.startswith("urllib.request"):
        yield f"{unit} imports {imported.module}; sfumato opens no network connection"
    if top in sys.stdlib_module_names:
        return
    if top in ONLY_BY and unit not in ONLY_BY[top]:
        yield f"{unit} imports {top}; only {', '.join(sorted(ONLY_BY[top]))} may"
    elif unit in THIRD_PARTY_OF and top not in THIRD_PARTY_OF[unit]:
        allowed = " and ".join(sorted(THIRD_PARTY_OF[unit]))
        yield f"{unit} imports {top}; besides the standard library it may import only {allowed}"
    elif top not in CORE_PACKAGES and not imported.is_deferred:
        yield f"{unit} imports {top} at module level; it is not a core dependency, so import it where it is used"


def main(arguments: list[str]) -> int:
    """Check the package folder given, or the one of this repository; return the exit status."""
    package = Path(arguments[0]) if arguments else Path(__file__).parents[1] / "src" / "sfumato"
    violations = find_violations(package)
    for violation in violations:
        print(violation)
    if not violations:
        print("Imports go one way.")
    return 1 if violations else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
