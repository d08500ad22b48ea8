# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run, and the page they write holds what they measured. No test here judges a time."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks/ is a folder of the repository, not installed

from benchmarks import __main__ as command
from benchmarks import bench_scaling, harness, machine, results_file, workloads
from benchmarks.harness import Context, Result, at_least, at_most, below
from benchmarks.peers import environment, exchange

MACHINE = {"Processor": "abacus", "Cores": "2", "Date": "2020-02-29", "Other work at the start": "none"}


def table_rows(section: str) -> list[list[str]]:
    """Return the cells of a section's table, headings left out."""
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def quiet(**options: object) -> Context:
    return Context(say=lambda line: None, **options)  # type: ignore[arg-type]


def test_a_quick_run_writes_the_numbers_it_measured(tmp_path, monkeypatch, capsys):
    contexts = []

    def remember(**options):
        contexts.append(Context(**options))
        return contexts[-1]

    monkeypatch.setattr(command, "Context", remember)
    page = tmp_path / "page.md"
    assert command.main(["scaling", "--quick", "--output", str(page)]) == 0
    (context,) = contexts
    assert [result.name for result in context.results][-1] == "log-log slope"
    section = results_file.split_sections(page.read_text(encoding="utf-8"))["scaling"]
    expected = [
        [result.name, harness.format_value(result), harness.format_target(result.target, result.unit), "", result.note]
        for result in context.results
    ]
    assert table_rows(section) == expected
    assert "quick run" in page.read_text(encoding="utf-8")
    assert "log-log slope" in capsys.readouterr().out


def test_every_benchmark_has_a_title_a_question_and_a_run():
    names = command.find_benchmarks()
    assert len(names) >= 7
    for name in names:
        module = __import__(f"benchmarks.bench_{name}", fromlist=["run"])
        assert module.TITLE
        assert callable(module.run)
        assert (module.__doc__ or "").split("\n\n")[0].endswith("?")


def test_a_measurement_calls_as_often_as_asked_and_keeps_the_best():
    calls = []
    timing = harness.measure(lambda: calls.append(None), repeats=3)
    assert len(calls) == len(timing.seconds) == 3
    assert timing.best == min(timing.seconds)


def test_functions_are_measured_in_turns():
    calls: list[str] = []
    harness.measure_alternating([lambda: calls.append("a"), lambda: calls.append("b")], repeats=2)
    assert calls == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("target", "value", "is_met"),
    [
        (at_least(2), 2.0, True),
        (at_least(2), 1.999, False),
        (at_most(2), 2.0, True),
        (at_most(2), 2.001, False),
        (below(2), 1.999, True),
        (below(2), 2.0, False),
    ],
)
def test_a_target_is_judged_on_the_exact_value(target, value, is_met):
    context = quiet()
    context.record("x", value, "s", target=target)
    assert context.results[0].passed is is_met


def test_what_could_not_be_measured_is_not_met():
    context = quiet()
    context.record("x", None, "s", target=below(2), note="no peer")
    assert context.results[0].passed is False
    assert harness.format_value(context.results[0]) == "not measured"


def test_a_quick_run_judges_nothing():
    context = quiet(is_quick=True)
    context.record("x", 3.0, "s", target=below(2))
    assert context.results[0].passed is None


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (0.00012345, "0.000123"),
        (0.0123, "0.0123"),
        (0.5, "0.500"),
        (1.234, "1.23"),
        (45.67, "45.7"),
        (1234567, "1,234,567"),
    ],
)
def test_numbers_have_three_significant_digits(value, written):
    assert harness.format_number(value) == written


def section(name: str, value: float) -> results_file.Section:
    return results_file.Section(name, "a title", "A question?", [Result("thing", value, "s")])


def test_running_one_benchmark_again_keeps_the_others(tmp_path):
    page = tmp_path / "page.md"
    results_file.write_page(page, MACHINE, [section("one", 1.0), section("two", 2.0)])
    results_file.write_page(page, {**MACHINE, "Date": "2020-03-01"}, [section("two", 3.0)])
    sections = results_file.split_sections(page.read_text(encoding="utf-8"))
    assert table_rows(sections["one"]) == [["thing", "1.00 s", "", "", ""]]
    assert table_rows(sections["two"]) == [["thing", "3.00 s", "", "", ""]]
    assert "Measured on 2020-02-29." in sections["one"]
    assert "Measured on 2020-03-01." in sections["two"]


def test_results_of_two_machines_are_never_on_one_page(tmp_path):
    page = tmp_path / "page.md"
    results_file.write_page(page, MACHINE, [section("one", 1.0), section("two", 2.0)])
    before = page.read_bytes()
    other = {**MACHINE, "Processor": "slide rule"}
    with pytest.raises(results_file.MixedMachinesError, match="holds one from another machine"):
        results_file.write_page(page, other, [section("two", 3.0)])
    assert page.read_bytes() == before
    results_file.write_page(page, other, [section("one", 1.0), section("two", 3.0)])  # all of them: nothing to mix


def test_the_machine_is_described_without_naming_it():
    import getpass
    import platform

    described = machine.describe_machine()
    assert {"Processor", "Cores", "Memory", "Python", "Packages", "Date"} <= described.keys()
    text = " ".join(described.values())
    assert platform.node() not in text
    assert str(Path.home()) not in text
    assert getpass.getuser() not in text
    assert f"numpy {np.__version__}" in described["Packages"]


@pytest.mark.parametrize("arguments", [["nonsense"], ["startup", "--quick", "--write"]])
def test_wrong_usage_exits_with_two_and_runs_nothing(arguments, capsys, monkeypatch):
    monkeypatch.setattr(command, "run_benchmark", lambda *_: pytest.fail("ran a benchmark"))
    with pytest.raises(SystemExit) as exit_:
        command.main(arguments)
    assert exit_.value.code == 2
    assert "error" in capsys.readouterr().err


def test_a_missed_target_makes_the_command_fail(monkeypatch, capsys):
    missed = results_file.Section("startup", "t", "?", [Result("thing", 1.0, "s", below(0.5), False)])
    monkeypatch.setattr(command, "run_benchmark", lambda name, context: missed)
    assert command.main(["startup"]) == 1
    assert "Missed: thing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (environment.PeerError("it does not install"), "it does not install"),
        (RuntimeError("no such file: secret.parquet"), "RuntimeError"),
    ],
)
def test_a_benchmark_that_breaks_keeps_what_it_had_and_fails_the_run(monkeypatch, capsys, error, note):
    def break_off(context):
        context.record("before", 1.0, "s")
        raise error

    monkeypatch.setattr(bench_scaling, "run", break_off)
    results = command.run_benchmark("scaling", quiet()).results
    assert [result.name for result in results] == ["before", "stopped early"]
    assert results[1].passed is False
    assert results[1].note == note
    assert str(error) in capsys.readouterr().err


def test_a_peer_environment_is_ready_only_for_the_requirements_it_was_built_from(tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_PEERS", str(tmp_path))
    peer = "ai_privacy_toolkit"
    assert not environment.is_ready(peer)
    home = environment.home_of(peer)
    assert home == tmp_path / peer
    home.mkdir()
    (home / ".ready").write_text("made from other requirements", encoding="utf-8")
    assert not environment.is_ready(peer)
    (home / ".ready").write_text(environment._fingerprint(peer), encoding="utf-8")
    assert environment.is_ready(peer)


def test_the_requirements_of_peers_hold_names_and_versions_only():
    for path in environment.PEERS.glob("*/requirements.txt"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        assert lines
        for line in lines:
            name, version = line.split("==")
            assert name.replace("-", "").replace("_", "").isalnum()
            assert version.replace(".", "").isalnum()


def test_a_peer_reads_the_same_table_back(tmp_path):
    table = pd.DataFrame({"age": [30, 40], "job": pd.Categorical(["nurse", "teacher"]), "rent": [1.5, 2.5]})
    path = tmp_path / "exchange.npz"
    exchange.write_exchange(path, table, np.array([0, 1]))
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["names"].tolist() == ["age", "job", "rent"]
        columns = [arrays[f"column_{position}"].tolist() for position in range(3)]
        assert arrays["predictions"].tolist() == [0, 1]
    assert columns == [[30, 40], ["nurse", "teacher"], [1.5, 2.5]]


def test_a_peers_failure_is_told_in_its_own_last_words():
    with pytest.raises(environment.PeerError, match="The run failed: ValueError: too few rows"):
        environment._call([sys.executable, "-c", "raise ValueError('too few rows')"], "The run failed")


def test_the_slope_of_proportional_time_is_one():
    assert bench_scaling.log_log_slope((10, 100, 1000), [0.1, 1.0, 10.0]) == pytest.approx(1.0)
    assert bench_scaling.log_log_slope((10, 100, 1000), [0.1, 10.0, 1000.0]) == pytest.approx(2.0)


def test_the_one_hot_matrix_has_a_column_for_each_category_and_one_for_missing():
    table = pd.DataFrame({"age": [3.0, np.nan, 5.0], "job": pd.Categorical(["b", None, "a"])})
    matrix = workloads.one_hot_matrix(table)
    assert matrix.dtype == np.float32
    assert matrix.tolist() == [[3, 0, 0, 1], [-1, 1, 0, 0], [5, 0, 1, 0]]


@pytest.mark.skipif(int(pd.__version__.split(".")[0]) < 3, reason="benchmarks are for the pandas that is pinned")
def test_a_table_read_from_csv_has_text_and_wide_numbers():
    table = workloads.census_workload(500).table
    wide = workloads.as_read_from_csv(table)
    assert {str(dtype) for dtype in wide.dtypes} == {"str", "int64", "float64"}
    assert wide["occupation"].isna().sum() == table["occupation"].isna().sum() > 0
    assert wide["sex"].tolist() == table["sex"].tolist()


def test_rolled_up_occupations_are_the_part_before_the_number():
    fine = workloads.census_workload(500).table["occupation"]
    coarse = workloads.census_workload(500, coarse_occupations=True).table["occupation"]
    assert fine.isna().any()
    expected = [None if pd.isna(level) else level.rsplit("-", 1)[0] for level in fine]
    assert [None if pd.isna(level) else level for level in coarse] == expected


def test_the_command_lists_its_benchmarks():
    repository = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert "adult_vs_apt" in done.stdout


def test_memory_is_measured_in_a_process_of_its_own():
    repository = Path(__file__).parents[2]
    child = [sys.executable, "-m", "benchmarks.bench_memory", "500", "narrow types"]
    done = subprocess.run(child, cwd=repository, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout.splitlines()[-1])
    assert 0 < seen["before"] <= seen["peak"]
