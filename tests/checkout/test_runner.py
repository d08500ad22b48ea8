# SPDX-License-Identifier: Apache-2.0
"""The studies: experiments are well declared, a run goes on where it stopped, and accuracies are what they say."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from studies import accuracy, runner  # noqa: E402
from studies.accuracy import BY, RAW, TOGETHER, Cell, Key, as_cells  # noqa: E402
from studies.cells import append_cell, matches, read_cells, write_cells  # noqa: E402
from studies.charts import Panel, Style, draw, nice_ticks  # noqa: E402
from studies.classic_claims import Found, contest  # noqa: E402
from studies.experiments import NAMES, load_experiment  # noqa: E402
from studies.methods import METHODS  # noqa: E402
from studies.models import MODELS, make_model  # noqa: E402
from studies.runner import Experiment, run_all, run_missing  # noqa: E402
from studies.summaries import Accuracies, interval  # noqa: E402
from studies.tables import LARGER_CLASS, TITLES, Table, load  # noqa: E402

from sfumato.errors import InputError  # noqa: E402


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_is_well_declared(name):
    experiment = load_experiment(name)
    assert experiment.name == name
    assert set(experiment.together) <= set(experiment.by)
    for keys in (experiment.keys, experiment.paper_scale_keys):
        assert len({tuple(key.values()) for key in keys}) == len(keys)
        assert all(tuple(key) == experiment.by for key in keys)
        assert json.loads(json.dumps(keys)) == list(keys)


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_cell_is_one_of_those_declared(name):
    experiment = load_experiment(name)
    declared = {tuple(key.values()) for key in experiment.keys}
    assert set(experiment.kept()) <= declared


@pytest.mark.parametrize("name", ["adult_utility", "classic_methods"])
def test_accuracies_name_only_tables_models_and_methods_there_are(name):
    experiment = load_experiment(name)
    assert len(experiment.kept()) == len(experiment.keys)
    for key in (*experiment.keys, *experiment.paper_scale_keys):
        assert key["table"] in TITLES
        assert key["model"] in MODELS
        assert (key["method"] == RAW) == (key["k"] == 0)
        assert key["method"] in (RAW, *accuracy.MADE)


def test_every_module_that_declares_an_experiment_is_listed():
    folder = REPOSITORY / "studies"
    modules = {path.stem for path in folder.glob("*.py") if "\nEXPERIMENT = " in path.read_text("utf-8")}
    assert modules == set(NAMES)


def test_an_unknown_experiment_is_refused():
    with pytest.raises(KeyError, match=r"'alchemy': expected one of adult_utility, .* List it in"):
        load_experiment("alchemy")


# -- cells -------------------------------------------------------------------------------------------------------------


def test_a_cell_comes_back_from_its_file_as_it_was_kept(tmp_path):
    path = tmp_path / "new" / "cells.jsonl"
    first, second = {"side": 2, "seed": 0, "heads": 0.5}, {"side": 2, "seed": 1, "heads": None}
    append_cell(path, first)
    append_cell(path, second)
    assert read_cells(path, ("side", "seed")) == {(2, 0): first, (2, 1): second}


def test_of_two_cells_with_one_key_the_later_counts(tmp_path):
    path = tmp_path / "cells.jsonl"
    write_cells(path, [{"side": 2, "heads": 0.5}, {"side": 2, "heads": 0.6}])
    assert read_cells(path, ("side",)) == {(2,): {"side": 2, "heads": 0.6}}


def test_a_cell_that_was_being_written_when_a_run_was_killed_is_run_again(tmp_path):
    path = tmp_path / "cells.jsonl"
    append_cell(path, {"side": 2, "heads": 0.5})
    with path.open("a", encoding="utf-8") as file:
        file.write('{"side": 6, "hea')
    assert read_cells(path, ("side",)) == {(2,): {"side": 2, "heads": 0.5}}
    append_cell(path, {"side": 6, "heads": 0.25})
    assert [cell["heads"] for cell in read_cells(path, ("side",)).values()] == [0.5, 0.25]


def test_kept_cells_outlive_a_run_that_is_killed_while_it_puts_them_in_order(tmp_path, monkeypatch):
    path = tmp_path / "cells.jsonl"
    write_cells(path, [{"side": 2}, {"side": 6}])

    def half(self, text, **_):
        self.write_bytes(text[: len(text) // 2].encode())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(KeyboardInterrupt):
        write_cells(path, [{"side": 6}, {"side": 2}])
    assert list(read_cells(path, ("side",))) == [(2,), (6,)]


def test_cells_are_chosen_by_values_lists_and_patterns():
    key = {"table": "adult-12", "k": 10}
    assert matches(key, {})
    assert matches(key, {"table": ["nursery", "adult-*"], "k": 10})
    assert not matches(key, {"table": "adult"})
    assert not matches(key, {"k": [1, 100]})


# -- the runner --------------------------------------------------------------------------------------------------------


def coins(run, **more):
    """An experiment with four cells in two groups."""
    keys = tuple({"side": side, "seed": seed} for side in (2, 6) for seed in (0, 1))
    return Experiment("coins", ("side", "seed"), keys, run, together=("side",), **more)


def toss(keys, paper_scale):
    for key in keys:
        yield {"heads": key["seed"] / key["side"], "group": len(keys), "scale": paper_scale}


def test_a_run_keeps_its_cells_and_goes_on_where_it_stopped(tmp_path):
    experiment, told = coins(toss), []
    first = run_missing(experiment, experiment.keys[1:], folder=tmp_path, report=told.append)
    assert [cell["heads"] for cell in first.cells] == [0.5, 0.0, 1 / 6]
    assert [cell["group"] for cell in first.cells] == [1, 2, 2]
    assert [(own.n_done, own.n_all) for own in told] == [(1, 3), (2, 3), (3, 3)]
    assert told[-1].seconds_left == 0
    again = run_missing(experiment, experiment.keys, folder=tmp_path)
    assert [(cell["side"], cell["seed"]) for cell in again.cells] == [(2, 0)]
    assert [list(key) for key in experiment.kept(tmp_path)] == [[2, 0], [2, 1], [6, 0], [6, 1]]
    lines = experiment.path(tmp_path).read_text("utf-8").splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1, 0, 1]  # in the order declared, not as they came
    assert run_missing(experiment, experiment.keys, folder=tmp_path).cells == []


def test_a_cell_says_how_long_it_took_and_where(tmp_path):
    [cell, *_] = run_all(coins(toss), [{"side": 2, "seed": 0}]).cells
    assert 0 <= cell["seconds"] < 1
    assert "numpy" in cell["environment"]
    own = coins(lambda keys, paper_scale: ({"seconds": 12.5, "points": (1, 2)} for _ in keys))
    [cell] = run_all(own, own.keys[:1]).cells
    assert cell["seconds"] == 12.5
    assert cell["points"] == [1, 2]  # as it is read back


def test_a_cell_in_this_process_has_one_thread_though_numpy_is_imported_already():
    from threadpoolctl import threadpool_info, threadpool_limits

    def count_threads(keys, paper_scale):
        yield from ({"n_threads": max(own["num_threads"] for own in threadpool_info())} for _ in keys)

    [key] = keys = ({"side": "heads", "seed": 0},)
    with threadpool_limits(2):  # as a library that was imported before anybody asked for one
        outcome = run_all(Experiment("threads", tuple(key), keys, count_threads), keys, processes=1)
    assert [cell["n_threads"] for cell in outcome.cells] == [1]


def test_cells_at_the_papers_scale_lie_apart(tmp_path):
    experiment = coins(toss, paper_scale_keys=({"side": 2, "seed": 9},))
    assert experiment.all_keys(True) == experiment.paper_scale_keys
    run_missing(experiment, experiment.all_keys(True), folder=tmp_path, paper_scale=True)
    assert experiment.kept(tmp_path) == {}
    [cell] = experiment.kept(tmp_path, paper_scale=True).values()
    assert cell["scale"] is True


def test_where_data_are_missing_the_other_groups_still_run(tmp_path):
    def run(keys, paper_scale):
        for key in keys:
            if key["side"] == 2 and key["seed"] == 1:
                raise InputError("no coins here: expected a folder. Set SFUMATO_DATA.")
            yield {"heads": 0}

    outcome = run_missing(coins(run), coins(run).keys, folder=tmp_path)
    assert outcome.left == {"no coins here: expected a folder. Set SFUMATO_DATA.": 1}
    assert [(cell["side"], cell["seed"]) for cell in outcome.cells] == [(2, 0), (6, 0), (6, 1)]


def test_cells_whose_packages_are_missing_are_left():
    experiment = coins(toss, needs=lambda key: ("no_such_module",) if key["seed"] else ())
    outcome = run_all(experiment, experiment.keys)
    assert outcome.left == {"no_such_module is not installed here": 2}
    assert [cell["seed"] for cell in outcome.cells] == [0, 0]


def test_an_error_that_is_nobodys_fault_but_ours_is_raised():
    def run(keys, paper_scale):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_all(coins(run), coins(run).keys)


def test_processes_give_the_same_numbers(tmp_path):
    experiment = load_experiment("classic_methods")
    keys = [key for key in experiment.keys if matches(key, {"table": "adult-8", "model": "dt", "method": RAW})][:2]
    assert len(keys) == 2
    in_two = run_missing(experiment, keys, folder=tmp_path, processes=2).cells
    here = run_all(experiment, keys).cells
    kept = [experiment.kept()[tuple(key.values())] for key in keys]
    in_two.sort(key=lambda cell: cell["seed"])
    assert [cell["accuracy"] for cell in in_two] == [cell["accuracy"] for cell in here]
    assert [cell["accuracy"] for cell in in_two] == [cell["accuracy"] for cell in kept]
    assert len(read_cells(experiment.path(tmp_path), BY)) == 2


def test_cells_run_where_their_packages_are(tmp_path, monkeypatch):
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    other.write_text(f'#!/bin/sh\necho used >> "{tmp_path}/used"\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    monkeypatch.setitem(runner.ENVIRONMENTS, "no_such_module", str(tmp_path))
    experiment = replace(load_experiment("classic_methods"), needs=lambda key: ("no_such_module",))
    [key] = [key for key in experiment.keys if tuple(key.values()) == ("adult-8", "dt", 0, RAW, 0)]
    [cell] = run_all(experiment, [key]).cells
    assert cell["accuracy"] == experiment.kept()[tuple(key.values())]["accuracy"]
    assert (tmp_path / "used").read_text() == "used\n"


def test_a_process_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    experiment = load_experiment("classic_methods")
    keys = [key for key in experiment.keys if matches(key, {"table": "lending-club-18", "model": "nn"})][:2]
    outcome = run_all(experiment, keys, processes=2)
    [(reason, n_left)] = outcome.left.items()
    assert n_left == 2
    assert "SFUMATO_DATA" in reason


# -- accuracies --------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_table(monkeypatch):
    """400 records, whatever table is asked for."""
    table = load("adult-8")
    small = Table(table.X.iloc[:400], table.y[:400], table.quasi_identifiers)
    monkeypatch.setattr(accuracy, "load", lambda name: small)
    return small


def test_every_method_gives_a_cell(small_table):
    keys = tuple(
        Key("adult-8", model, 0, method, 0 if method == RAW else 20)._asdict()
        for model, methods in {"dt": (RAW, *METHODS, "default"), "lr": (RAW, "mondrian")}.items()
        for method in methods
    )
    experiment = Experiment("small", BY, keys, accuracy.run, together=TOGETHER)
    finished = as_cells(run_all(experiment, keys).cells)
    assert [cell.key._asdict() for cell in finished] == list(keys)
    for cell in finished:
        assert 50 < cell.accuracy <= 100
        assert (cell.method == RAW) == (cell.n_groups is None)
        assert cell.method == RAW or 1 < cell.n_groups <= 320 / 20


def test_split_as_in_the_paper_no_released_group_is_thinner_than_k(small_table, monkeypatch):
    table = replace(small_table, has_paper_split=True)
    monkeypatch.setattr(accuracy, "load", lambda name: table)
    cells = list(accuracy.accuracies([Key("adult-8", "dt", 0, method, 20) for method in METHODS]))
    assert [cell.method for cell in cells] == list(METHODS)
    for cell in cells:  # 160 records are released
        assert 1 <= cell.n_groups <= 160 / 20
        assert cell.transformed is None


def test_an_accuracy_is_read_back_from_its_file():
    cell = Cell("lending-club-18", "nn", 0, "ours", 10, 90.0, 91.0, 70.0, 7, 0.25, 1.5, "a machine")
    assert as_cells([asdict(cell) | {"of another experiment": 1}]) == [cell]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_columns_that_are_missing_throughout(name):
    table = load("adult-8")
    frame = table.X.iloc[:200].assign(
        records=np.nan, age=table.X["age"][:200].astype(float).where(lambda age: age > 30)
    )
    model = make_model(name, 0, frame)
    model[-1].set_params(**({"max_iter": 2, "early_stopping": False} if name.startswith("nn") else {}))
    with pytest.warns() if name.startswith("nn") else np.errstate():
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
