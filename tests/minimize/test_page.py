# SPDX-License-Identifier: Apache-2.0
"""The page on minimizing runs from top to bottom."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "learning-what-to-collect.md"


def test_the_examples_of_the_page_run_one_after_the_other(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert "not collected" in capsys.readouterr().out
    assert names["picture"].startswith("<svg")
    assert len(names["frame"]) == 2 + 4 + 2
    assert names["model"].score(names["sample"], names["classes"]) > 0.78
