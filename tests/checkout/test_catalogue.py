# SPDX-License-Identifier: Apache-2.0
"""The catalogue of studies: every table and figure of the papers, and what is shown of them."""

import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from studies import catalogue  # noqa: E402
from studies.catalogue import Study, all_studies, load  # noqa: E402
from studies.cells import write_cells  # noqa: E402
from studies.claims import Claim, Evidence, counted  # noqa: E402
from studies.reports import report  # noqa: E402
from studies.runner import Experiment  # noqa: E402
from studies.views import Pivot, View, pivot, section, show  # noqa: E402

NAMES = sorted(path.stem for path in catalogue.FOLDER.glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_well_declared(name):
    study = load(name)
    assert study.paper in catalogue.PAPERS
    assert study.title
    assert study.data
    if not study.can_run:
        assert len(study.cannot_run) > 20
        return
    keys, quick = study.keys(), study.quick_keys()
    assert keys
    assert quick
    assert all(key in keys for key in quick)
    assert not study.page or (REPOSITORY / "docs" / "results" / study.page).exists()
    assert set(study.cells) | set(study.quick) <= set(study.load_experiment().by)


WITH_CLAIMS = [name for name in NAMES if load(name).claims]


@pytest.mark.parametrize("name", WITH_CLAIMS)
def test_every_claim_is_judged_by_kept_cells(name):
    study = load(name)
    assert [judged.claim for judged in study.judged()] == list(study.claims)


@pytest.mark.parametrize("name", WITH_CLAIMS)
def test_no_claim_is_judged_before_all_cells_of_its_experiment_are_there(name, tmp_path):
    study = load(name)
    experiment = study.load_experiment()
    untested = [claim for claim in study.claims if claim.cannot_test]
    assert [judged.claim for judged in study.judged(tmp_path)] == untested
    write_cells(experiment.path(tmp_path), experiment.cells()[:-1])
    assert [judged.claim for judged in study.judged(tmp_path)] == untested


def test_every_cell_that_is_kept_belongs_to_a_study():
    shown = {}
    for study in all_studies():
        if study.can_run:
            own = study.keys()
            shown.setdefault(study.experiment, set()).update(tuple(key.values()) for key in own)
    for name, keys in shown.items():
        missing = {tuple(key.values()) for key in catalogue.load_experiment(name).keys} - keys
        assert not missing, name


def test_the_papers_tables_and_figures_are_all_there():
    goldsteen = [f"goldsteen-figure-{n}" for n in (2, 3, 4, 5, 8)] + [f"goldsteen-table-{n}" for n in (1, 2)]
    goldsteen.append("goldsteen-feature-selection")
    mancuhan = [f"mancuhan-figure-{n}" for n in (5, 6)] + [f"mancuhan-figure-c-{n}" for n in range(1, 9)]
    mancuhan += [f"mancuhan-table-{n}" for n in (1, 2)]
    staab = [f"staab-figure-{n}" for n in range(4, 16)] + [f"staab-table-{n}" for n in (3, 4, 5, 6)]
    assert {*goldsteen, *mancuhan, *staab} <= set(NAMES)


def test_studies_stand_in_the_order_of_the_papers():
    names = catalogue.names()
    assert sorted(names) == NAMES
    assert names.index("staab-figure-8") < names.index("staab-figure-10") < names.index("mancuhan-figure-5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('experiment = "anatomy"\nviews = "boxes"', r"has \['views'\]: expected what Study has"),
        ('experiment = "anatomy"', r"expected \[table\], or view"),
        ("", "expected either experiment or cannot_run"),
        ('experiment = "anatomy"\ncannot_run = "no"', "expected either experiment or cannot_run"),
        ('cannot_run = "no data"\npaper = "hearsay"', "paper 'hearsay': expected one of goldsteen"),
    ],
)
def test_a_wrong_file_is_refused(text, message, tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    paper = "" if "paper" in text else 'paper = "staab"\n'
    head = 'title = "t"\nsource = "s"\nshows = "w"\ndata = ["d"]\n'
    (tmp_path / "wrong.toml").write_text(f"{head}{paper}{text}\n")
    with pytest.raises(ValueError, match=message):
        load.__wrapped__("wrong")


# -- what is shown -----------------------------------------------------------------------------------------------------

CELLS = [
    {"table": table, "method": method, "k": k, "seed": seed, "accuracy": value + seed, "seconds": 30}
    for table, shift in (("small", 0), ("large", 10))
    for method, k, value in (("raw", 0, 80), ("ours", 10, 70 + shift), ("ours", 20, 60 + shift), ("other", 10, 50))
    for seed in (0, 1)
]
HOW = Pivot("k", "accuracy", ["method"], ["table"], {"method": "raw"}, digits=1)


@pytest.fixture
def study(monkeypatch):
    by = ("table", "method", "k", "seed")
    experiment = Experiment(
        "made_up", by, tuple({name: cell[name] for name in by} for cell in CELLS),
        lambda keys, paper_scale: (), titles={"raw": "raw records", "small": "a small table"},
        evidence=lambda cells: {"better": Evidence([counted("here", 20, 1)]), "other": Evidence([])},
    )  # fmt: skip
    own = Study("made-up", "Made up", "staab", "Figure 2", "Something.", ["made-up data"], "made_up", table=HOW)
    monkeypatch.setattr(catalogue, "load_experiment", lambda name: experiment)
    monkeypatch.setattr(Experiment, "kept", lambda self, folder=None, paper_scale=False: {
        tuple(cell[name] for name in self.by): cell for cell in CELLS
    })  # fmt: skip
    return own


def test_means_of_cells_become_a_table_and_a_drawing(study):
    view = pivot(study, HOW, CELLS)
    assert "**a small table**:" in view.lines
    assert "| | k = 10 | k = 20 |" in view.lines
    assert "| raw records | 80.5 | 80.5 |" in view.lines
    assert "| ours | 70.5 | 60.5 |" in view.lines
    assert "| ours | 80.5 | 70.5 |" in view.lines
    assert "| other | 50.5 |  |" in view.lines
    drawing = ElementTree.fromstring(view.charts["made-up.svg"])
    assert {"raw records", "ours", "other"} <= {text.text for text in drawing.findall(".//{*}text")}


def test_what_the_paper_prints_stands_beside(study):
    told = replace(study, published=[{"where": {"table": "large", "method": "ours", "k": 10}, "value": 99.5}])
    lines = pivot(told, HOW, CELLS).lines
    assert "| ours | 80.5 (99.5) | 70.5 |" in lines
    assert "| ours | 70.5 | 60.5 |" in lines
    assert "In brackets: what the paper prints." in lines
    raw = replace(study, published=[{"where": {"method": "raw"}, "value": 86}])
    assert "| raw records | 80.5 (86) | 80.5 (86) |" in pivot(raw, HOW, CELLS).lines


def test_shares_are_shown_as_percent_and_need_no_drawing(study):
    how = replace(HOW, factor=0.5, drawn=False)
    view = pivot(study, how, CELLS)
    assert "| ours | 35.2 | 30.2 |" in view.lines
    assert not view.charts


def test_a_report_holds_the_claims_of_its_figure_and_all_cells(study, tmp_path):
    claim = Claim("better", "Ours is better.", "ours outperforms", "Section 1", "everywhere", 1.0, "points")
    found = report(replace(study, claims=(claim,), reductions=["two seeds"]))
    text = "\n".join(found.lines)
    assert "- **Held**: Ours is better. *“ours outperforms”* (Section 1). +20.00 [+18.04, +21.96] points" in text
    assert found.document["claims"][0]["verdict"] == "held"
    assert "- two seeds" in text
    assert "16 cells, 8.0 minutes of one core." in text
    assert found.document["cells"] == CELLS
    names = {path.name for path in found.write(tmp_path / "new", "made-up")}
    assert names == {"made-up.md", "made-up.svg", "made-up.json"}
    assert (tmp_path / "new" / "made-up.md").read_text("utf-8") == text + "\n"


def test_what_cannot_be_run_says_why():
    study = Study("lost", "Lost", "staab", "Figure 99", "Nothing.", ["lost data"], cannot_run="the data are lost.")
    assert "Cannot be run: the data are lost." in report(study).lines


def test_no_cells_are_no_table(study):
    assert show(study, []) == View(["No cells are kept yet."])


def test_a_section_of_a_page_is_found_by_its_mark():
    page = "# Title\n\n## One (table 1)\n\nfirst\n\n## Two (table 2)\n\nsecond\n"
    assert section(page, "(table 1)").lines == ["", "first", ""]
    assert section(page, "(table 2)").lines == ["", "second"]
