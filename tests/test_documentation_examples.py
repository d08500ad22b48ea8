# SPDX-License-Identifier: Apache-2.0
"""Every example runs: the README's Python and the docstrings'."""

import csv
import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import sfumato
import sfumato.verification

REPOSITORY = Path(__file__).parents[1]
MODULES = ["sfumato", *(module.name for module in pkgutil.walk_packages(sfumato.__path__, "sfumato."))]


def readme_blocks(language: str) -> list[str]:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def people_file(path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "age", "sex", "postcode", "occupation", "income"])
        for person in range(300):
            age = int(random.integers(18, 80))
            sex, occupation = random.choice(["f", "m"]), random.choice(["nurse", "teacher", "clerk", "farmer"])
            income = "high" if age + 20 * (occupation == "teacher") + random.normal(0, 5) > 50 else "low"
            rows.writerow([f"person {person}", age, sex, f"0{random.integers(10, 20)}", occupation, income])


def test_the_readme_example_runs_and_keeps_its_promise(capsys):
    blocks = readme_blocks("python")
    assert len(blocks) == 2
    names: dict[str, object] = {}
    with threadpool_limits(1):
        for block in blocks:
            exec(compile(block, "README.md", "exec"), names)
    raw, anonymous, smallest = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert smallest >= 100
    assert anonymous > raw - 0.03  # one split and one seed: far off the recorded results would be a defect
    assert names["released"].shape == names["X_train"].shape
    assert list(names["released"].dtypes) == list(names["X_train"].dtypes)


def test_the_readme_commands_run_and_keep_their_promise(tmp_path):
    for file, seed in (("people.csv", 0), ("new-people.csv", 1), ("next-year.csv", 2)):
        people_file(tmp_path / file, seed)
    [block] = [block for block in readme_blocks("sh") if "sfumato anonymize" in block]
    commands = [shlex.split(line, comments=True) for line in block.replace("\\\n", " ").splitlines()]
    assert [command[1] for command in commands] == ["anonymize", "apply", "apply", "measure"]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}  # boosting threads fight each other on a busy machine
    for command in commands:
        line = [sys.executable, "-m", *command]
        run = subprocess.run(line, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    for released in ("people-k10.csv", "next-year-k10.csv"):
        with (tmp_path / released).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 300
        assert set(rows[0]) == {"age", "sex", "postcode", "occupation", "income"}
        keys = Counter((row["age"], row["sex"], row["postcode"], row["occupation"]) for row in rows)
        assert min(keys.values()) >= 10


def test_the_worked_example_of_the_engine_comes_out_as_the_page_says():
    ages, predicted = np.array([[23], [27], [31], [36], [44], [58]]), np.array([0, 0, 0, 0, 1, 1])
    anonymizer = sfumato.ModelGuidedAnonymizer(k=2, representative="range").fit(ages, predicted)
    groups = {label for row in anonymizer.release(ages).table.tolist() for label in row}
    page = (REPOSITORY / "docs" / "how-the-engine-works.md").read_text(encoding="utf-8")
    assert groups == {"23-27", "31-36", "44-58"}
    assert "23-27, 31-36 and 44-58" in " ".join(page.split())


def test_the_page_on_the_engine_names_the_default_representative():
    text = (REPOSITORY / "docs" / "how-the-engine-works.md").read_text(encoding="utf-8")
    default = sfumato.ModelGuidedAnonymizer().representative
    assert f'By default (`"{default}"`) they are those of one real member' in text


def test_the_readme_says_what_the_page_on_adult_says():
    written = (REPOSITORY / "docs" / "results" / "adult-utility.md").read_text(encoding="utf-8")
    readme = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    average, instead = re.findall(r"k=100,? (?:raw test data:|would be) ([+-][0-9.]+)", written)
    assert f"average at k = 100 would be {instead} instead of {average}," in readme
    difference, low, high = re.findall(r"wholly below: .*k=1000, (.*) \[(.*), (.*)\]", written)[0]
    assert f"({difference} points, 95% interval {low} to {high})" in readme


def test_no_page_claims_more_independence_of_the_recount_than_it_has():
    pages = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *(REPOSITORY / "docs").rglob("*.md")]
    for page in pages:
        assert "shares nothing with the engine" not in " ".join(page.read_text(encoding="utf-8").split()), page.name
    imports = re.findall(
        r"^\s*(?:from|import) (sfumato[\w.]*)", Path(sfumato.verification.__file__).read_text(encoding="utf-8"), re.M
    )
    assert set(imports) == {"sfumato.frames"}


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_every_docstring_example_runs(name):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert failed == 0
