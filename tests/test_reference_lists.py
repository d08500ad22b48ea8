# SPDX-License-Identifier: Apache-2.0
"""The reference lists every name of every family, from the families themselves."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from sfumato.anonymize import METHODS
from sfumato.attack import ATTACKS
from sfumato.criteria import CRITERIA
from sfumato.models import MODELS
from sfumato.policy.criteria import settings_of
from sfumato.representatives import REPRESENTATIVES

REPOSITORY = Path(__file__).parents[1]
FAMILIES = {
    "attacks": ATTACKS,
    "criteria": CRITERIA,
    "methods": METHODS,
    "models": MODELS,
    "representatives": REPRESENTATIVES,
}


@pytest.fixture(scope="module")
def site():
    specification = importlib.util.spec_from_file_location("docs_site", REPOSITORY / "scripts" / "docs_site.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", FAMILIES)
def test_a_list_has_every_name_and_sentence(site, name):
    written = site.LISTS[name]()
    for called, member in FAMILIES[name].items():
        assert f"| `{called}` |" in written
        assert member.facts.sentence.replace("|", "\\|") in written


@pytest.mark.parametrize("name", FAMILIES)
def test_a_page_of_the_reference_has_the_list(name):
    pages = [path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs" / "reference").glob("*.md")]
    assert sum(f"<!-- list: {name} -->" in page for page in pages) == 1


def test_every_list_that_a_page_names_exists(site):
    for page in (REPOSITORY / "docs").rglob("*.md"):
        for found in re.findall(r"<!-- list: ([a-z ]+) -->", page.read_text(encoding="utf-8")):
            assert found in site.LISTS, page.name


def test_the_rows_of_every_table_have_as_many_cells_as_its_head(site):
    for name in FAMILIES:
        for table in site.LISTS[name]().split("\n\n"):
            rows = [row.replace("\\|", "") for row in table.splitlines() if row.startswith("|")]
            assert len({row.count("|") for row in rows}) <= 1, name


def test_every_setting_of_a_criterion_is_listed(site):
    written = site.LISTS["criteria"]()
    assert all(f"| `{key}` |" in written for name in CRITERIA for key in settings_of(name))


def test_pages_of_a_folder_are_in_the_order_of_its_readme(site, tmp_path):
    index = tmp_path / "README.md"
    index.write_text("First [this](second.md), then [that](first.md).")
    pages = ["results/README.md", "results/else.md", "results/first.md", "results/second.md"]
    in_order = ["results/README.md", "results/second.md", "results/first.md", "results/else.md"]
    assert site._as_listed(index, pages) == in_order
    assert site._as_listed(tmp_path / "none.md", pages) == pages
