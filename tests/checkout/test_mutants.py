# SPDX-License-Identifier: Apache-2.0
"""Mutants differ from their module in one place, and tests that look at that place notice them."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import mutants

MODULE = '''
"""A number: 1."""
LIMIT: int = 3

def holds(sizes: list[int], *, strict: bool = False) -> bool:
    if not sizes:
        raise ValueError("expected 1 group or more")
    return min(sizes) >= LIMIT and (not strict or len(sizes) + 1 > 2)
'''


def test_conditions_operators_and_constants_are_changed_one_at_a_time():
    changes = [mutant.change for mutant in mutants.mutants_of(Path("module.py"), MODULE)]
    assert "min(sizes) >= LIMIT -> min(sizes) > LIMIT" in changes
    assert "not sizes -> sizes" in changes
    assert "3 -> 4" in changes and "False -> True" in changes
    assert "len(sizes) + 1 -> len(sizes) - 1" in changes
    assert "not strict or len(sizes) + 1 > 2 -> not strict and len(sizes) + 1 > 2" in changes
    assert len(changes) == len(set(changes)) == 11


def test_messages_and_docstrings_are_left_alone():
    for mutant in mutants.mutants_of(Path("module.py"), MODULE):
        assert '"""A number: 1."""' in mutant.source
        assert "expected 1 group or more" in mutant.source


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_mutant_that_tests_look_at_is_noticed_and_another_survives(tmp_path, monkeypatch):
    path = tmp_path / "judge_of_sizes.py"
    path.write_text(MODULE, encoding="utf-8")
    test = tmp_path / "test_judge.py"
    test.write_text("from judge_of_sizes import holds\ndef test_it():\n    assert holds([3, 4]) and not holds([2])\n")
    monkeypatch.syspath_prepend(tmp_path)
    asked = ("-c", os.devnull, "--rootdir", str(tmp_path), str(test))
    found = {
        mutant.change: mutants.survives(mutant, path, asked, 60)
        for mutant in mutants.mutants_of(path)
        if mutant.change in ("min(sizes) >= LIMIT -> min(sizes) > LIMIT", "len(sizes) + 1 -> len(sizes) - 1")
    }
    assert mutants.survives(None, path, asked, 60)
    assert found == {
        "min(sizes) >= LIMIT -> min(sizes) > LIMIT": False,
        "len(sizes) + 1 -> len(sizes) - 1": True,
    }
