# SPDX-License-Identifier: Apache-2.0
"""The page on minimizing runs from top to bottom."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "learning-what-to-collect.md"


def test_the_examples_of_the_page_run_one_after_the_other(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    assert len(blocks) == 6
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert "not collected" in capsys.readouterr().out
    limited = dict(zip(names["within_limits"].names, names["within_limits"].n_buckets, strict=True))
    assert limited["race"] == 1
    assert limited["age"] >= 2
    assert limited["education"] <= 3
    assert {row.attribute for row in names["costs"].rows} == set(names["sample"].columns)
    education = names["with_groups"].generalization_.attribute("education")
    assert "Preschool" in {value for members in education.members for value in members}  # rare, but in the hierarchy
    assert names["picture"].startswith("<svg")
    assert len(names["frame"]) == 2 + 4 + 2
    assert names["model"].score(names["sample"], names["classes"]) > 0.78
