# SPDX-License-Identifier: Apache-2.0
"""The page about shipping a generalization says nothing that does not run."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from sfumato.frames import read_table
from sfumato.generalization import generalization_from_bins
from sfumato.sources import MemorySource

PAGE = Path(__file__).parents[2] / "docs" / "shipping-a-generalization.md"


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = pa.table({"age": [10, 30, 70, None], "job": ["nurse", "smith", "teacher", "smith"]})
    columns = MemorySource(read_table(table), table.column_names).columns
    made = generalization_from_bins(columns, [np.array([0, 1, 2, 2]), np.array([0, 1, 0])])
    Path("generalization.json").write_text(made.to_json(), encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    said = capsys.readouterr().out
    assert "age is asked in 3 buckets instead of 4 values, missing included" in said
    assert 'FROM "people"' in said
    assert {path.name for path in tmp_path.iterdir()} == {"generalization.json", "generalize.js", "form.html"}
    assert names["schema"]["required"] == ["age", "job"]
    assert [row["age"] for row in names["batch"].to_pylist()] == [0, 1, 2]
