# SPDX-License-Identifier: Apache-2.0
"""The layers import one way, and the checker that says so can say no."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[1]


def load_checker() -> ModuleType:
    path = REPOSITORY / "scripts" / "check_imports.py"
    specification = importlib.util.spec_from_file_location("check_imports", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


checker = load_checker()


def rules_broken_by(tmp_path: Path, file: str, source: str) -> list[str]:
    path = tmp_path / "sfumato" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return [violation.rule for violation in checker.find_violations(tmp_path / "sfumato")]


def test_the_package_keeps_to_the_import_table():
    assert [str(violation) for violation in checker.find_violations(REPOSITORY / "src" / "sfumato")] == []


def test_every_module_and_folder_has_a_place_in_the_table():
    placed = {unit for layer in checker.LAYERS for unit in layer}
    found = {
        path.stem
        for path in (REPOSITORY / "src" / "sfumato").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found - {"__init__"} <= placed
    assert len(placed) == sum(len(layer) for layer in checker.LAYERS), "a unit stands in two layers"


@pytest.mark.parametrize(
    ("file", "source", "rule"),
    [
        ("frames.py", "from sfumato.anonymize import Release", "frames imports anonymize; imports go down"),
        ("frames.py", "import sfumato.anonymize.model_guided", "frames imports anonymize; imports go down"),
        ("frames.py", "from sfumato import anonymize", "frames imports anonymize; imports go down"),
        ("frames.py", "from . import anonymize", "frames imports anonymize; imports go down"),
        ("loss/ncp.py", "from ..anonymize import Release", "loss imports anonymize; imports go down"),
        ("loss/ncp.py", "def f():\n    from sfumato import cli", "loss imports cli; imports go down"),
        ("loss/ncp.py", "from sfumato.criteria import KAnonymity", "loss imports criteria; imports go down"),
        ("partition/grower.py", "from sfumato.criteria import KAnonymity", "partition imports criteria"),
        ("partition/grower.py", "from sfumato.frames import Column", "partition imports frames; of sfumato"),
        ("partition/grower.py", "import scipy.sparse", "partition imports scipy; besides the standard"),
        ("criteria/k_anonymity.py", "from sfumato.partition import grow", "they know nothing of each other"),
        ("schema.py", "import narwhals as nw", "schema imports narwhals; only frames may"),
        ("columns.py", "def f():\n    import narwhals", "columns imports narwhals; only frames may"),
        ("anonymize/base.py", "from sfumato.datasets import load_adult", "datasets; only cli, studio may"),
        ("datasets/adult.py", "from sfumato.frames import read_table", "datasets imports frames; of sfumato"),
        ("anonymize/base.py", "from sfumato import KAnonymity", "imports from the public list"),
        ("anonymize/base.py", "import sfumato", "imports from the public list"),
        ("frames.py", "import pandas as pd", "frames imports pandas at module level"),
        (
            "frames.py",
            "try:\n    import polars\nfinally:\n    pass",
            "frames imports polars at module",
        ),
        ("cli/demo.py", "import socket", "sfumato opens no network connection"),
        ("cli/demo.py", "from urllib.request import urlopen", "sfumato opens no network connection"),
        ("verification.py", "from sfumato.partition import tree", "verification imports partition; imports go"),
        ("verification.py", "from sfumato.labels import label_set", "verification imports labels; of sfumato"),
        ("drawer.py", "import math", "drawer has no place in the import table"),
        ("__init__.py", "from sfumato.errors import InputError", "the public list imports sfumato.errors"),
        ("__init__.py", "import numpy", "the public list imports numpy at module level"),
    ],
)
def test_an_import_against_the_table_is_found(tmp_path, file, source, rule):
    broken = rules_broken_by(tmp_path, file, source)
    assert len(broken) == 1
    assert rule in broken[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("anonymize/base.py", "from sfumato.criteria import KAnonymity\nfrom .release import Release"),
        (
            "partition/grower.py",
            "import numba\nimport numpy\nfrom sfumato.errors import ParameterError",
        ),
        ("frames.py", "import narwhals as nw\ndef f():\n    import pandas as pd"),
        ("frames.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas as pd"),
        (
            "cli/demo.py",
            "import sfumato\nfrom sfumato import KAnonymity, datasets",
        ),
        ("anonymize/document.py", "from sfumato import __version__"),
        ("__main__.py", "from sfumato.cli import main"),
        ("__init__.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sfumato.errors"),
    ],
)
def test_an_import_within_the_table_is_let_through(tmp_path, file, source):
    assert rules_broken_by(tmp_path, file, source) == []


def test_the_command_fails_and_names_file_and_line(tmp_path, capsys):
    rules_broken_by(tmp_path, "schema.py", "import math\nimport narwhals\n")
    assert checker.main([str(tmp_path / "sfumato")]) == 1
    assert "schema.py:2: schema imports narwhals" in capsys.readouterr().out


def test_the_command_passes_on_the_package(capsys):
    assert checker.main([]) == 0
    assert capsys.readouterr().out == "Imports go one way.\n"


def test_the_picture_of_the_architecture_is_true_to_the_table():
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = page.split("```")[1]
    rank = {unit: place for place, layer in enumerate(checker.LAYERS) for unit in layer}
    lines = [line.split("  ")[0] for line in picture.splitlines() if line and not line.startswith(" ")]
    rows = [[unit for unit in line.replace(",", " ").split() if unit in rank] for line in lines]
    shown = [unit for row in rows for unit in row]
    folders = {path.parent.name for path in (REPOSITORY / "src" / "sfumato").glob("*/__init__.py")}
    assert folders - set(shown) == {"compat", "datasets", "testing"}
    # Whatever stands higher in the picture may import what stands lower, and never the other way round.
    for above, below in pairwise(rows):
        assert min(rank[unit] for unit in above) >= max(rank[unit] for unit in below), (above, below)
