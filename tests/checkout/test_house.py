# SPDX-License-Identifier: Apache-2.0
"""The measures of the code, on a package that is small enough to count by hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import house

FILES = {
    "__init__.py": '"""A toy."""\n\nfrom toy.verbs import Maker\n',
    "words.py": '"""Words."""\n\n# why\nONE = 1  # code, not a comment\nTEXT = """a\n\nb"""\n',
    "verbs/__init__.py": "from .make import Maker\n",
    "verbs/make.py": 'from ..words import ONE\n\n\nclass Maker:\n    """Makes.\n\n    A lot.\n    """\n\n    own = 1\n',
    "verbs/lone.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from toy.words import TEXT\n",
    "cli/__init__.py": "",
    "cli/run.py": "def run():\n    from toy.verbs import Maker\n    from toy.cli import again\n\n    again(Maker)\n",
    "cli/again.py": "import toy.cli.run\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "src" / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "src" / "toy"


@pytest.fixture
def found(package: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.setattr(house.shutil, "which", lambda name: None)
    return house.measure(package, ("Maker", "toy.cli.run", "Nobody"))


def test_every_line_is_of_one_kind(found: dict) -> None:
    assert found["packages"]["(top)"] == {
        "modules": 2, "lines": 10, "code": 5, "docstring": 2, "comment": 1, "blank": 2,
    }  # fmt: skip
    assert found["packages"]["verbs"] == {
        "modules": 3, "lines": 15, "code": 7, "docstring": 4, "comment": 0, "blank": 4,
    }  # fmt: skip
    for own in (*found["packages"].values(), found["total"]):
        assert own["lines"] == sum(own[kind] for kind in house.KINDS)


def test_a_name_from_a_package_counts_for_the_module_that_defines_it(package: Path) -> None:
    modules = house.read_modules(package)
    assert modules["toy.cli.run"].imports == {"toy.verbs.make", "toy.cli.again"}
    assert modules["toy"].imports == {"toy.verbs.make"}


def test_imports_for_type_checkers_do_not_count(package: Path) -> None:
    assert house.read_modules(package)["toy.verbs.lone"].imports == set()


def test_modules_with_one_importer_are_listed(found: dict) -> None:
    assert found["imported_by_one"] == ["toy.cli.again", "toy.cli.run", "toy.words"]


def test_chains_start_from_a_class_or_a_module(found: dict) -> None:
    assert found["chains"]["Maker"]["chain"] == ["toy.verbs.make", "toy.words"]
    chain = ["toy.cli.again + toy.cli.run", "toy.verbs.make", "toy.words"]
    assert found["chains"]["toy.cli.run"]["chain"] == chain
    assert found["chains"]["toy.cli.run"]["reached"] == 4
    assert "Nobody" not in found["chains"]


def test_circles_are_found(found: dict) -> None:
    assert found["circles"] == [("toy.cli.again", "toy.cli.run")]


def test_an_older_commit_is_shown_beside_the_working_tree(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git = ["git", "-C", str(package.parents[1]), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    (package / "verbs" / "more.py").write_text("ONE = 1\n", encoding="utf-8")
    assert house.main([str(package), "--against", "HEAD", "--start", "Maker"]) == 0
    assert "| verbs | 3 → 4 | 15 → 16 | 7 → 8 |" in capsys.readouterr().out
    assert house.main([str(package), "--against", "HEAD", "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert (both["before"]["total"]["modules"], both["now"]["total"]["modules"]) == (8, 9)
    assert house.main([str(package), "--against", "nowhere"]) == 2
