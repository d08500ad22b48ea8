# SPDX-License-Identifier: Apache-2.0
"""Tables whose names and values attack whoever shows them: the report is harmless and the CSV says what it should."""

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from html_page import Page

from .conftest import run

NAMES = [
    "<script>alert(1)</script>",
    "=1+1",
    'quote" and, comma',
    "two\nlines",
    "right\u202eleft",
    "قيمة",
    "many",
    "y",
]
VALUES = ["<img src=x onerror=alert(1)>", '=HYPERLINK("http://x")', 'a,b"c', "line\nbreak", "\u202etxt", "@SUM(A1)"]
N = 12_000


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    random = np.random.default_rng(0)
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(NAMES)
        for record in range(N):
            texts = [VALUES[i] for i in random.integers(0, len(VALUES), 6)]
            rows.writerow([*texts, f"v{record % 10_000}", int(random.integers(0, 2))])
    policy = folder / "policy.toml"
    named = ", ".join(json.dumps(name, ensure_ascii=False) for name in NAMES[:-1])
    policy.write_text(
        f'version = 1\n[data]\nfile = "table.csv"\nrelease = "out.csv"\n[columns]\ntarget = "y"\n'
        f"quasi_identifiers = [{named}]\nsubgroups = [{json.dumps(NAMES[0])}]\n[method]\nk = 20\n"
        '[model]\nname = "decision-tree"\n[audit]\nlevel = "none"\n[gate]\nmin_k = 20\n',
        encoding="utf-8",
    )
    result = run("run", policy)
    assert result.returncode == 0, result.stderr
    assert "formulas" in result.stderr
    return folder


def test_the_csv_reads_back_with_the_same_names_and_only_known_values(released: Path):
    with (released / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == NAMES
    assert len(rows) == N + 1
    keys = Counter(tuple(row[:-1]) for row in rows[1:])
    assert min(keys.values()) >= 20
    assert {value for row in rows[1:] for value in row[:6]} <= set(VALUES)


def test_the_report_shows_names_as_text_and_runs_nothing(released: Path):
    page = Page((released / "report.html").read_text(encoding="utf-8"))
    assert "script" not in page.tags and "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    text = "".join(page.text)
    assert "<script>alert(1)</script>" in text and "\u202e" not in text
    assert (released / "report.html").stat().st_size < 2_000_000


def test_the_data_says_the_names_exactly(released: Path):
    audit = json.loads((released / "audit.json").read_text(encoding="utf-8"))
    assert [column["name"] for column in audit["columns"]] == NAMES
