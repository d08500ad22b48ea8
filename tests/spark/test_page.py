# SPDX-License-Identifier: Apache-2.0
"""The page docs/spark.md runs from top to bottom, on a cluster."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # pyspark's own, of which there are many
def test_the_examples_of_the_page_run_one_after_the_other(session: Any):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"spark": session}
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["found"].k >= 20
    assert {c.value for c in names["found"].criteria if c.criterion == "distinct l-diversity"} >= {2}
    assert names["shared"].n_records == names["people"].count()
    assert names["minimized"].columns == names["people"].columns
