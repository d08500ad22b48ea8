# SPDX-License-Identifier: Apache-2.0
"""The studies: their pages say what the kept cells say, and a run goes on where it stopped."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

REPOSITORY = Path(__file__).parent.parent
sys.path.insert(0, str(REPOSITORY))

from studies import accuracy, runner  # noqa: E402
from studies.__main__ import NAMES  # noqa: E402
from studies.cells import RAW, Cell, Key, append_cell, read_cells, write_cells  # noqa: E402
from studies.charts import Panel, Style, draw, nice_ticks  # noqa: E402
from studies.classic_claims import Found, contest  # noqa: E402
from studies.methods import METHODS  # noqa: E402
from studies.models import MODELS, make_model  # noqa: E402
from studies.summaries import Accuracies, interval  # noqa: E402
from studies.tables import LARGER_CLASS, TITLES, Table, load  # noqa: E402

STUDIES = {name: importlib.import_module(f"studies.{name}").STUDY for name in NAMES}
LOAN = Cell("lending-club-18", "nn", 0, "ours", 10, 90.0, 91.0, 70.0, 7, 0.25, 1.5, "a machine")


@pytest.mark.parametrize("name", NAMES)
def test_what_a_study_wrote_is_exactly_what_its_kept_cells_give(name):
    for path, text in STUDIES[name].documents().items():
        assert path.read_text(encoding="utf-8") == text, path.name


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_that_a_study_declares_is_kept(name):
    study = STUDIES[name]
    assert set(read_cells(study.results)) == set(study.keys)
    assert len(set(study.keys)) == len(study.keys)


@pytest.mark.parametrize("name", NAMES)
def test_a_study_names_only_tables_models_and_methods_there_are(name):
    for key in (*STUDIES[name].keys, *STUDIES[name].quick):
        assert key.table in TITLES
        assert key.model in MODELS
        assert (key.method == RAW) == (key.k == 0)
        assert key.method in (RAW, *METHODS)


def test_every_module_that_declares_a_study_is_listed():
    modules = {path.stem for path in (REPOSITORY / "studies").glob("*.py") if "\nSTUDY = " in path.read_text("utf-8")}
    assert modules == set(NAMES)


def test_a_cell_comes_back_from_its_file_as_it_was_kept(tmp_path):
    path, raw = tmp_path / "cells.jsonl", Cell("adult-8", "dt", 1, RAW, 0, 80.125)
    append_cell(path, raw)
    append_cell(path, LOAN)
    assert read_cells(path) == {raw.key: raw, LOAN.key: LOAN}
    assert "null" not in path.read_text("utf-8")


def test_of_two_cells_with_one_key_the_later_counts(tmp_path):
    path = tmp_path / "cells.jsonl"
    later = Cell(*LOAN.key, 95.0)
    write_cells(path, [LOAN, later])
    assert read_cells(path) == {LOAN.key: later}


@pytest.fixture
def small_study(tmp_path, monkeypatch):
    """A study of two models on a table of 400 records, with its files in a folder of its own."""
    monkeypatch.setattr(runner, "STUDIES", tmp_path)
    monkeypatch.setattr(runner, "PAGES", tmp_path)
    table = load("adult-8")
    small = Table(table.X.iloc[:400], table.y[:400], table.quasi_identifiers)
    monkeypatch.setattr(accuracy, "load", lambda name: small)
    keys = tuple(
        Key("adult-8", model, 0, method, 0 if method == RAW else 20)
        for model, methods in {"dt": (RAW, *METHODS), "lr": (RAW, "mondrian")}.items()
        for method in methods
    )

    def page(cells):
        return "".join(f"{cell.method} {cell.accuracy}\n" for cell in cells)

    return runner.Study("small", "a small study", keys, keys[:2], page, summary=len)


def test_a_study_runs_every_method_and_then_resumes(small_study, capsys):
    runner.run(small_study, processes=1)
    finished = small_study.cells()
    assert [cell.key for cell in finished] == list(small_study.keys)
    for cell in finished:
        assert 50 < cell.accuracy <= 100
        assert (cell.method == RAW) == (cell.n_groups is None)
        assert cell.method == RAW or 1 < cell.n_groups <= 320 / 20

    # As if the run had stopped before its last cell, and one number had come from elsewhere.
    foreign = Cell(*finished[0].key, 12.5)
    write_cells(small_study.results, [foreign, *finished[1:-1]])
    capsys.readouterr()
    runner.run(small_study, processes=1, again=["hilbert"])
    again = small_study.cells()
    assert [cell.key for cell in again] == list(small_study.keys)
    assert again[0] == foreign
    assert again[1].seconds == finished[1].seconds
    assert [cell.accuracy for cell in again[1:]] == [cell.accuracy for cell in finished[1:]]
    assert len(capsys.readouterr().out.splitlines()) == 2  # the last cell, and the one that was asked for again


def test_processes_give_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "STUDIES", tmp_path)
    keys = tuple(Key("adult-8", "dt", seed, RAW, 0) for seed in (0, 1))
    study = runner.Study("two_splits", "two splits", keys, (), lambda cells: "")
    runner.run(study, processes=2)
    in_two = [cell.accuracy for cell in study.cells()]
    study.results.unlink()
    runner.run(study, processes=1)
    assert [cell.accuracy for cell in study.cells()] == in_two


def test_a_study_writes_its_page_and_its_summary_from_the_cells_alone(small_study, tmp_path, capsys):
    small_study.results.parent.mkdir()
    write_cells(small_study.results, [Cell(*small_study.keys[0], 77.5), LOAN])
    assert small_study.documents() == {
        tmp_path / "small.md": "raw 77.5\n",
        tmp_path / "results" / "small.json": "1\n",
    }


def test_split_as_in_the_paper_no_released_group_is_thinner_than_k(small_study, monkeypatch):
    table = replace(accuracy.load("adult-8"), has_paper_split=True)
    monkeypatch.setattr(accuracy, "load", lambda name: table)
    cells = list(accuracy.accuracies([Key("adult-8", "dt", 0, method, 20) for method in METHODS]))
    assert [cell.method for cell in cells] == list(METHODS)
    for cell in cells:  # 160 records are released
        assert 1 <= cell.n_groups <= 160 / 20
        assert cell.transformed is None


def test_the_quick_cells_are_shown_beside_the_kept_ones_which_stay(small_study, capsys):
    small_study.results.parent.mkdir()
    kept = Cell(*small_study.keys[0], 12.5)
    write_cells(small_study.results, [kept])
    runner.run_quick(small_study, processes=1)
    shown = capsys.readouterr().out
    assert "kept: 12.50%" in shown
    assert "kept: nothing" in shown
    assert small_study.cells() == [kept]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_columns_that_are_missing_throughout(name):
    table = load("adult-8")
    frame = table.X.iloc[:200].assign(
        records=np.nan, age=table.X["age"][:200].astype(float).where(lambda age: age > 30)
    )
    model = make_model(name, 0, frame)
    model[-1].set_params(**({"max_iter": 2, "early_stopping": False} if name == "nn" else {}))
    with pytest.warns() if name == "nn" else np.errstate():
        model.fit(frame, table.y[:200])
    assert model.predict(frame).shape == (200,)


def test_the_interval_is_students_and_a_single_split_has_none():
    low, high = interval(np.array([1.0, 2.0, 3.0]))
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert interval(np.array([1.5])) == (1.5, 1.5)


def test_accuracies_stand_in_the_order_of_the_splits():
    cells = [Cell("adult-8", "dt", seed, "ours", 10, 80.0 + seed, 90.0 - seed) for seed in (2, 0, 1)]
    found = Accuracies(cells)
    assert found.accuracy("adult-8", "dt", "ours", 10).tolist() == [80, 81, 82]
    assert found.transformed("adult-8", "dt", "ours", 10).tolist() == [90, 89, 88]
    assert found.n_splits("adult-8", "dt") == 3


def test_always_answering_the_larger_class_is_as_right_as_the_studies_say():
    y = load("adult-8").y
    assert round(100 * (1 - y.mean()), 2) == LARGER_CLASS["adult-8"]


def test_a_contest_counts_the_comparisons_that_are_won():
    accuracies = {("ours", 10): 85, ("ours", 50): 80, ("mondrian", 10): 84, ("mondrian", 50): 83}
    cells = [
        Cell("adult-8", "dt", seed, *where, value + seed) for where, value in accuracies.items() for seed in (0, 1)
    ]
    found = Found(cells, [("adult-8", "dt")], (10, 50))
    result = contest(found, "ours", ["mondrian"], found.places)
    assert (result.n_ahead, result.n_all, result.mean) == (1, 2, -1.0)
    assert not result.is_won
    assert str(result).endswith("worst in Adult, 8 QI, decision tree, k = 50: -3.00 against median Mondrian")
    at_10 = contest(found, "ours", ["mondrian"], found.places, ks=[10])
    assert str(at_10) == "ahead in 1 of 1 comparisons, +1.00 points on average"


@pytest.mark.parametrize("values", [[80.1, 80.2], [76.07, 87.6], [3.0, 99.5], [85.0, 85.0]])
def test_ticks_are_few_and_reach_around_the_values(values):
    ticks = nice_ticks(values)
    assert 2 <= len(ticks) <= 7
    assert ticks[0] <= min(values)
    assert max(values) <= ticks[-1]


def test_a_chart_is_well_formed_and_higher_values_lie_higher():
    styles = {"a & b": Style("#000000", "circle"), "level": Style("#111111", "")}
    panel = Panel("x < y", {"a & b": [(10, 80.0), (100, 90.0)]}, {"level": 85.0})
    root = ElementTree.fromstring(draw([panel], styles, columns=1, label="a chart"))
    circles = root.findall(".//{*}circle")
    first, second = ((float(circle.get("cx")), float(circle.get("cy"))) for circle in circles[:2])
    assert len(circles) == 3  # two points, and the one of the legend
    assert first[0] < second[0]
    assert first[1] > second[1]  # SVG counts downwards
    texts = {text.text for text in root.findall(".//{*}text")}
    assert {"x < y", "a & b", "level", "10", "100", "k"} <= texts
