# SPDX-License-Identifier: Apache-2.0
"""The notebooks of the gallery are short stories on tables that everybody has, and their runner shows what happened.

`make docs` runs the notebooks themselves; here they are read.
"""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "docs" / "gallery").glob("*.py"))


@pytest.fixture(scope="module")
def gallery():
    place = importlib.util.spec_from_file_location("gallery", REPOSITORY / "scripts" / "gallery.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


@pytest.fixture
def names(monkeypatch, gallery):
    """A namespace for cells; pictures are tried apart, since matplotlib is not needed for the rest."""
    monkeypatch.setattr(gallery, "_drawn", list)
    return {}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_story_of_its_own(notebook, gallery):
    cells = gallery.cells_of(notebook.read_text(encoding="utf-8"))
    code = "\n".join(text for kind, text in cells if kind == "code")
    assert 8 <= len([kind for kind, _ in cells]) <= 18
    assert cells[0][0] == "markdown"
    assert cells[0][1].startswith("# ")
    assert "?**" in cells[0][1]  # the question, in bold
    assert "plt.subplots" in code
    assert "assert " in code  # what the text says of the numbers is checked when they are computed
    assert not re.search(r"read_csv|read_parquet|https?://|open\(", code)
    assert re.search(r"make_census|load_adult|load_nursery", code)


def test_the_index_and_the_navigation_have_every_notebook():
    index = (REPOSITORY / "docs" / "gallery" / "README.md").read_text(encoding="utf-8")
    site = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 4
    for notebook in NOTEBOOKS:
        assert f"({notebook.name})" in index
        assert f"gallery/{notebook.stem}.md" in site


def test_cells_are_text_or_code(gallery):
    source = "# a license\n# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n\nx + 1\n"
    assert gallery.cells_of(source) == [("markdown", "# Title\n\nText."), ("code", "x = 1\n\nx + 1")]


def test_a_cell_shows_what_it_printed_and_its_last_value(gallery, names):
    assert gallery.run_cell("x = 1\nprint('a < b')\nx + 1", names, "cell") == [
        '<pre class="output">a &lt; b</pre>',
        '<pre class="output">2</pre>',
    ]
    assert gallery.run_cell("y = x", names, "cell") == []


def test_a_cell_shows_its_warnings(gallery, names):
    [shown] = gallery.run_cell("import warnings\nwarnings.warn('rare values', UserWarning)", names, "cell")
    assert "UserWarning: rare values" in shown


def test_a_frame_is_shown_as_a_plain_table(gallery, names):
    [shown] = gallery.run_cell("import pandas as pd\npd.DataFrame({'<b>': [1]})", names, "cell")
    assert "<table><thead>" in shown
    assert "&lt;b&gt;" in shown
    assert "<style" not in shown


def test_a_cell_that_raises_fails_the_build(gallery, names):
    with pytest.raises(ZeroDivisionError):
        gallery.run_cell("1 / 0", names, "cell")


def test_a_picture_takes_the_color_of_the_text_around_it(gallery):
    pytest.importorskip("matplotlib")
    source = (
        "# %% [markdown]\n# # T\n# %%\nimport matplotlib.pyplot as plt\nfig, axes = plt.subplots()\naxes.plot([1, 2])\n"
    )
    page = gallery.page_of(source, "t.py")
    assert page.count("<svg") == 1
    assert "currentColor" in page
    assert gallery.INK not in page
    assert "Line2D" not in page


def test_links_to_a_notebook_lead_to_its_page_on_the_site(gallery):
    files = SimpleNamespace(get_file_from_path=lambda path: path if path == "gallery/bank.md" else None)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="README.md"))
    text = "[bank](gallery/bank.py), [other](gallery/none.py), [code](bank.py)"
    expected = "[bank](gallery/bank.md), [other](gallery/none.py), [code](bank.py)"
    assert gallery.on_page_markdown(text, page=page, files=files, config=None) == expected
