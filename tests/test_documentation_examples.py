# SPDX-License-Identifier: Apache-2.0
"""Every example runs: the README's Python and the docstrings'."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import sfumato

REPOSITORY = Path(__file__).parents[1]
MODULES = ["sfumato", *(module.name for module in pkgutil.walk_packages(sfumato.__path__, "sfumato."))]


def test_the_readme_example_runs_and_keeps_its_promise(capsys):
    blocks = re.findall(
        r"^```python\n(.*?)^```", (REPOSITORY / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 2
    names: dict[str, object] = {}
    with threadpool_limits(1):  # boosting threads fight each other on a busy machine
        for block in blocks:
            exec(compile(block, "README.md", "exec"), names)
    raw, anonymous, smallest = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert smallest >= 100
    assert anonymous > raw - 0.03  # one split and one seed: far off the recorded results would be a defect
    assert names["released"].shape == names["X_train"].shape
    assert list(names["released"].dtypes) == list(names["X_train"].dtypes)


def test_the_worked_example_of_the_engine_comes_out_as_the_page_says():
    ages, predicted = np.array([[23], [27], [31], [36], [44], [58]]), np.array([0, 0, 0, 0, 1, 1])
    anonymizer = sfumato.ModelGuidedAnonymizer(k=2, representative="range").fit(ages, predicted)
    groups = {label for row in anonymizer.release(ages).table.tolist() for label in row}
    page = (REPOSITORY / "docs" / "how-the-engine-works.md").read_text(encoding="utf-8")
    assert groups == {"23-27", "31-36", "44-58"}
    assert "23-27, 31-36 and 44-58" in " ".join(page.split())


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_every_docstring_example_runs(name):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert failed == 0
