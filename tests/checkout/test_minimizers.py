# SPDX-License-Identifier: Apache-2.0
"""The study of the minimizers: its page says what the kept sweeps say; on a made-up task sweeps become a page."""

import json
import multiprocessing.dummy
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from studies import front_attackers, minimizers, minimizers_claims, minimizers_figures, minimizers_page
from studies.minimization_tasks import TITLES, Task
from studies.minimizers_few_records import few_records_lines
from studies.runner import run_all

from sfumato.attack import BoostingSettings
from sfumato.errors import InputError


def a_task(**changes):
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"age": generator.integers(18, 90, 900), "job": generator.choice(list("abcd"), 900)})
    y = ((X["age"] > 50) ^ (X["job"] == "b")).to_numpy()
    return replace(Task("lending_club", X, y, ("job",), ("job",)), **changes)


@pytest.fixture(scope="module")
def bench():
    return minimizers.Bench(a_task(), 0)


@pytest.fixture(scope="module")
def cells(bench):
    made = [minimizers.run_cell(bench, name) for name in ("UniformMinimizer", "FeatureSelectionMinimizer")]
    # What the privacy-aware tree would have found, had it found the best there is.
    nothing, everything = made[0].points[:2]
    best = replace(everything, minimizer="PrivacyAwareTree", validation_error=0.0, test_error=nothing.test_error)
    return [replace(made[0], minimizer="PrivacyAwareTree", points=(nothing, everything, best)), *made]


def test_no_picture_of_an_earlier_study_is_left():
    kept = minimizers_page.documents(minimizers.as_cells(minimizers.EXPERIMENT.cells()))
    pages = Path(__file__).parents[2] / "docs" / "results"
    assert {path.name for path in pages.glob("minimizers*")} == set(kept)


def test_the_trained_networks_are_of_every_task_and_seed():
    runs = {(run.task, run.seed, run.objective) for run in minimizers.trained_networks()}
    assert runs == {
        (key["table"], key["seed"], minimizers.OBJECTIVES[key["minimizer"]])
        for key in minimizers.EXPERIMENT.keys
        if key["minimizer"] in minimizers.OBJECTIVES
    }


def test_the_tables_have_titles():
    assert set(minimizers.TABLES) == set(TITLES)


def test_sweeps_are_read_back_as_they_were(cells):
    kept = [json.loads(json.dumps(asdict(cell) | {"environment": "a machine"})) for cell in reversed(cells)]
    assert minimizers.as_cells([]) == []
    assert minimizers.as_cells(kept) == cells


def test_the_runner_gets_one_sweep_per_key(bench, cells, monkeypatch):
    monkeypatch.setattr("studies.minimization_tasks.load_task", lambda name: bench.task)
    key = {"figure": "fronts", "table": "lending_club", "minimizer": "UniformMinimizer", "variant": "", "seed": 0}
    [found] = run_all(minimizers.EXPERIMENT, [key]).cells
    [cell] = minimizers.as_cells([found])
    assert replace(cell, seconds=0) == replace(cells[1], seconds=0)


def test_the_page_says_who_covers_most(cells):
    page = minimizers_page.page(cells)
    assert "the privacy-aware tree covers most, 1.000 beside" in page
    nothing, everything, best = cells[0].points
    useless = replace(best, validation_risk=1.0, test_risk=1.0, validation_error=1.0, test_error=1.0)
    worse = [replace(cells[0], points=(nothing, everything, useless)), *cells[1:]]
    assert "does not cover most" in minimizers_page.page(worse)


def test_a_sweep_holds_the_limits_and_every_setting(cells):
    assert [point.test_risk for point in cells[1].points[:1]] == [1.0]
    assert len(cells[1].points) == 2 + 5


def test_the_slow_minimizers_get_nine_targets(bench):
    assert len(bench.sweep(bench.minimizer("AptMinimizer"), bench.learned("AptMinimizer"))) == 9


def test_a_balanced_task_is_measured_with_as_many_records_of_each_class():
    task = a_task(y=np.arange(900) % 10 == 0, is_balanced=True)
    for rows in (*task.measured_rows(0), task.learned_rows(0)):
        assert task.y[rows].mean() == 0.5
    assert set(task.learned_rows(0)) <= set(task.parts(0)[0])


def test_numbers_that_are_not_personal_are_cut_at_their_quartiles_too(bench):
    sample = bench.minimizer("PrivacyAwareTree")._read(*bench.task.records(bench.learned("PrivacyAwareTree")), None)
    tree = [(np.arange(n_codes) >= n_codes - 3).astype(np.int64) for n_codes in sample.n_codes]
    age, job = minimizers_figures._quartered(sample, tree)
    assert (np.diff(age) >= 0).all()
    assert age.max() == 4  # four quarters, and the last one in two
    assert job is tree[1]


@pytest.fixture
def attacked_elsewhere(bench, cells, monkeypatch, tmp_path):
    """What is seen of one front is written, and attacked; networks, which need torch, are boosting once more."""
    kept = {(cell.table, cell.minimizer, cell.seed): cell for cell in cells}
    monkeypatch.setattr(front_attackers, "_kept_sweeps", lambda: kept)
    monkeypatch.setattr("studies.minimization_tasks.load_task", lambda name: bench.task)
    monkeypatch.setattr("studies.minimizers_keys.ATTACKED_AGAIN", {"lending_club": ("FeatureSelectionMinimizer",)})

    def boosted(asked, settings, *, seed):
        return [
            [("boosting", front_attackers.fit_boosting(own, BoostingSettings(n_rounds=5), seed=seed))] for own in asked
        ]

    monkeypatch.setattr(front_attackers, "network_answers", boosted)
    front_attackers.write_inputs(tmp_path / "in", ["lending_club"], [0])
    monkeypatch.setattr(front_attackers.multiprocessing, "get_context", lambda _: multiprocessing.dummy)
    front_attackers.attack_all(tmp_path / "in", tmp_path / "out", workers=1, seconds=600)
    monkeypatch.setattr(front_attackers, "KEPT", tmp_path / "rates.npz")
    front_attackers.count_all(tmp_path / "in", tmp_path / "out" / "attackers.npz", front_attackers.KEPT)
    return tmp_path


def test_a_front_that_is_attacked_again_keeps_its_errors(cells, attacked_elsewhere):
    keys = [{"table": "lending_club", "minimizer": "FeatureSelectionMinimizer", "seed": 0}]
    (again,) = minimizers_figures.run_figure(minimizers_figures.STRONGER, keys, False)
    assert again.figure == minimizers_figures.STRONGER
    assert again.points[:2] == cells[2].points[:2]
    counted = {point.validation_risk for point in cells[2].points if point.n_buckets > 2}
    errors = {point.test_error for point in cells[2].points}
    assert len(again.points) > 2
    assert {point.test_error for point in again.points[2:]} <= errors
    assert min(point.validation_risk for point in again.points[2:]) >= min(counted)


def test_a_front_that_a_network_classifies_keeps_its_risks(bench, cells, monkeypatch):
    pytest.importorskip("torch")
    kept = {(cell.table, cell.minimizer, cell.seed): cell for cell in cells}
    monkeypatch.setattr(front_attackers, "_kept_sweeps", lambda: kept)
    monkeypatch.setattr("studies.minimization_tasks.load_task", lambda name: bench.task)
    keys = [{"table": "lending_club", "minimizer": "UniformMinimizer", "seed": 0}]
    (again,) = minimizers_figures.run_figure(minimizers_figures.NETWORK, keys, False)
    before = {point.n_buckets: point for point in cells[1].points}
    assert again.figure == minimizers_figures.NETWORK
    assert again.points[:2] == cells[1].points[:2]
    assert len(again.points) > 2
    for point in again.points[2:]:
        assert point.test_risk == before[point.n_buckets].test_risk
        assert abs(point.test_error - before[point.n_buckets].test_error) < 0.15  # the classes are easily learned
    found = minimizers_claims.Found(
        [*cells, again, replace(again, minimizer="PrivacyAwareTree", points=cells[0].points)]
    )
    assert "| Lending Club 2007-2011 | Uniform |" in "".join(minimizers_page._network_section(found))


def test_a_front_that_is_not_kept_yet_is_asked_for(monkeypatch):
    monkeypatch.setattr(front_attackers, "_kept_sweeps", dict)
    with pytest.raises(InputError, match="run the fronts first"):
        front_attackers.kept_sweep("health", "PrivacyAwareTree", 0)


def test_what_attackers_see_elsewhere_is_what_they_see_here(bench, attacked_elsewhere):
    path = attacked_elsewhere / "in" / "lending_club.0.npz"
    parts, seen = front_attackers.read_seen(path)
    made = front_attackers.made_again(bench, "FeatureSelectionMinimizer")
    assert len(made) == len(seen["FeatureSelectionMinimizer"])
    with np.load(path) as arrays:
        for point, own in zip(made, seen["FeatureSelectionMinimizer"], strict=True):
            for here, there in zip(
                front_attackers.questions_about(point.generalization, bench),
                front_attackers.questions_of(own, arrays, parts),
                strict=True,
            ):
                assert (here.attribute, here.n_values, here.test) == (there.attribute, there.n_values, there.test)
                for question in (here, there):  # records of a cell share its clues and its mask
                    assert len(question.mask_of_cell) == question.cells.n_cells
                assert (here.values == there.values).all()
                clues = [question.cells.clues[question.cells.cell_of] for question in (here, there)]
                assert (clues[0] == clues[1]).all()
                left = [question.possible[question.mask_of_cell[question.cells.cell_of]] for question in (here, there)]
                assert (left[0] == left[1]).all()


def test_generalizations_that_are_made_otherwise_today_are_refused(bench, cells):
    points = front_attackers.attacked_points(cells[2])
    assert len(front_attackers.make_again(bench, "FeatureSelectionMinimizer", points)) == len(points)
    other = [replace(points[0], n_buckets=points[0].n_buckets + 1)]
    with pytest.raises(InputError, match="of the kept front: run the fronts again"):
        front_attackers.make_again(bench, "FeatureSelectionMinimizer", other)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [("settings", lambda text: np.array(str(text).replace("n_attributes", "n")), "other settings"),
     ("counting", lambda rates: rates / 2, "another risk")],
)  # fmt: skip
def test_rates_of_another_front_are_refused(attacked_elsewhere, name, change, message):
    kept = dict(np.load(front_attackers.KEPT))
    key = f"lending_club|FeatureSelectionMinimizer|0|{name}"
    np.savez(front_attackers.KEPT, **kept | {key: change(kept[key])})
    with pytest.raises(ValueError, match=message):
        front_attackers.against_all("lending_club", "FeatureSelectionMinimizer", 0)


@pytest.mark.parametrize("figure", [minimizers_figures.STRONGER, minimizers_figures.NETWORK])
def test_a_table_where_the_tree_is_behind_is_looked_at_again(cells, figure):
    nothing, everything, best = cells[0].points
    better = replace(cells[1], points=(nothing, everything, replace(best, minimizer="UniformMinimizer")))
    behind = [replace(cells[0], points=(nothing, everything, replace(nothing, minimizer="PrivacyAwareTree"))), better]
    again = [replace(cell, figure=figure) for cell in (cells[0], cells[1])]
    found = minimizers_claims.Found([*behind, *again])
    (sentence,) = minimizers_claims.verdicts(found)
    assert "ahead of it: Uniform by 1.000 with seed 0" in sentence
    seeds, areas = minimizers_claims.measured_again(found, figure, "lending_club")
    assert seeds == [0]
    assert areas["PrivacyAwareTree"] == ([0.0], [1.0])
    total, one = minimizers_claims.verdicts_again(found, figure)
    assert total == "By mean area the tree is first on 1 of 1 tables."
    assert one.startswith("Lending Club 2007-2011: the tree is first, 1.000 beside")
    worse = [replace(cell, figure=figure) for cell in behind]
    total, one = minimizers_claims.verdicts_again(minimizers_claims.Found([*behind, *worse]), figure)
    assert total == "By mean area the tree is first on 0 of 1 tables; not on Lending Club 2007-2011."
    assert "the tree is not first" in one


def test_few_records_are_compared_at_equal_risk_over_seeds(cells):
    nothing, everything, _ = cells[0].points

    def cell(figure, variant, seed, error):
        risky = replace(nothing, validation_risk=0.9, validation_error=0.0, test_error=0.0)
        safe = replace(nothing, validation_risk=0.41, validation_error=0.2, test_error=error)
        return replace(
            cells[0],
            figure=figure,
            table="acs_income",
            variant=variant,
            seed=seed,
            points=(nothing, everything, risky, safe),
        )

    made = [cell(minimizers.FRONTS, "", seed, 0.2) for seed in (0, 1)]
    for variant, errors in (("by class", (0.21, 0.23)), ("with a hierarchy", (0.21, 0.21))):
        made += [cell("few records", variant, seed, error) for seed, error in enumerate(errors)]
    lines = few_records_lines(minimizers_claims.Found(made))
    assert lines[2].startswith("| 0.42 | 20.0 | 22.0 | +2.0 [")
    assert lines[2].endswith("| 21.0 | +1.0 [+1.0, +1.0] |")
    assert "by class 2.00; with a hierarchy 1.00; beyond the 1.5" in " ".join(lines)
    assert few_records_lines(minimizers_claims.Found(made[:3])) == []


def test_evidence_follows_the_areas(bench, cells):
    def cell(variant, seed, *, is_good):
        points = cells[0].points if is_good else cells[0].points[:2]
        figure = minimizers_figures.YEARS
        return replace(cells[0], table="acs_employment", figure=figure, variant=variant, seed=seed, points=points)

    made = [cell(str(year), seed, is_good=year < 2018) for year in range(2015, 2019) for seed in (0, 1)]
    found = minimizers_claims.evidence(minimizers_claims.Found(made))
    assert set(found) == {"later-years"}
    apart = [one.values for one in found["later-years"].differences]
    assert apart[:2] == [(0.0, 0.0), (0.0, 0.0)]
    assert max(apart[2]) < 0


def test_the_tree_is_compared_over_the_seeds_that_both_have(bench, cells):
    behind = replace(cells[1], points=cells[1].points[:2])
    made = [cells[0], replace(cells[0], seed=1), behind]
    [lead] = minimizers_claims.evidence(minimizers_claims.Found(made))["tree-best-more-tables"].differences
    assert lead.where == "Lending Club 2007-2011, Uniform"
    assert lead.n == 1
    assert lead.estimate > 0
