# SPDX-License-Identifier: Apache-2.0
"""``sfumato study``: lists, shows and runs studies from a clone."""

import json
from pathlib import Path
from typing import ClassVar

import pytest
from studies import command
from studies.experiments import load_experiment
from typer.testing import CliRunner

from sfumato.cli import study as door
from sfumato.cli.application import application
from sfumato.errors import InputError

REPOSITORY = Path(__file__).parents[2]


def call(*arguments):
    return CliRunner().invoke(application, ["study", *map(str, arguments)])


def flat(done):
    return " ".join(done.output.split())


def test_without_a_name_the_studies_are_listed():
    done = call()
    assert done.exit_code == 0, done.output
    assert "goldsteen-figure-2" in done.output
    assert "756 of 756" in done.output
    assert max(len(line.rstrip()) for line in done.output.splitlines()) <= 80


def test_the_list_speaks_json():
    rows = {row["name"]: row for row in json.loads(call("--json").stdout)["studies"]}
    assert rows["goldsteen-figure-2"]["n_cells"] == rows["goldsteen-figure-2"]["n_cells_needed"] == 648
    assert rows["goldsteen-figure-2"]["minutes"] > 1


def test_a_study_is_shown_from_its_kept_cells_and_written(tmp_path):
    done = call("goldsteen-figure-5", "-o", tmp_path / "new")
    assert done.exit_code == 0, done.output
    assert "workload-aware" in done.output
    assert "stands in for Lending Club 2015" in flat(done)
    assert "AG is slightly ahead of workload-aware" in flat(done)
    document = json.loads((tmp_path / "new" / "goldsteen-figure-5.json").read_text("utf-8"))
    assert len(document["cells"]) == 112
    assert (tmp_path / "new" / "goldsteen-figure-5.svg").exists()
    assert (tmp_path / "new" / "goldsteen-figure-5.md").read_text("utf-8").startswith("# Guided by a model")


def test_quick_cells_are_run_anew_and_give_the_kept_numbers():
    done = call("goldsteen-figure-3", "--quick", "--processes", 1, "--json")
    assert done.exit_code == 0, done.output
    [study] = json.loads(done.stdout)["studies"]
    assert [pair["now"]["method"] for pair in study["cells"]] == ["ours", "mondrian"]
    for pair in study["cells"]:
        # A later version of a package may move a cut; another method moves accuracy by whole points.
        assert pair["now"]["accuracy"] == pytest.approx(pair["kept"]["accuracy"], abs=0.5)


def test_several_studies_are_chosen_by_a_pattern():
    shown = json.loads(call("staab-table-*", "staab-table-5", "--kept-only", "--json").stdout)["studies"]
    assert [study["name"] for study in shown] == [f"staab-table-{n}" for n in (3, 4, 5, 6)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["alchemy"], "study 'alchemy': expected one of goldsteen-"),
        (["alchemy", "--all"], "alchemy and --all: expected one of both"),
        (["--all", "--quick", "--paper-scale"], "--quick and --paper-scale: expected one of both"),
        (["goldsteen-figure-2", "--processes", 0], "--processes 0: expected an integer from 1"),
    ],
)
def test_wrong_usage_gets_a_sentence_and_code_2(arguments, sentence):
    done = call(*arguments)
    assert done.exit_code == 2
    assert sentence in flat(done)


def test_an_installed_package_says_how_to_get_the_studies(tmp_path, monkeypatch):
    monkeypatch.setattr(door, "__file__", str(tmp_path / "site-packages" / "sfumato" / "cli" / "study.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="expected a clone of the repository"):
        door.find_repository()
    monkeypatch.chdir(REPOSITORY)
    assert door.find_repository() == REPOSITORY


def test_cells_that_cannot_be_run_here_are_counted_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path / "nowhere"))
    done = call("mancuhan-figure-c-8", "--cells", tmp_path, "--processes", 1)
    assert done.exit_code == 0, done.output
    assert "50 cells were left:" in flat(done)
    assert "No cells are kept yet." in flat(done)


def test_a_run_into_another_folder_builds_on_the_cells_of_that_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path / "nowhere"))
    seen = []
    monkeypatch.setattr(command.Desk, "run", lambda desk, study: seen.append(study.load_experiment().path()))
    done = call("staab-figure-5", "staab-figure-4", "--cells", tmp_path)
    assert done.exit_code == 0, done.output
    # What attacks the fronts comes after the fronts, and both look at the folder.
    assert seen == [tmp_path / "minimizers.jsonl", tmp_path / "front_attacks.jsonl"]
    assert load_experiment("minimizers").path().parent == REPOSITORY / "studies" / "results"


def test_quick_cells_stand_beside_the_kept_ones():
    class Named:
        by = ("table", "seed")
        titles: ClassVar = {"a": "table A"}

    cell = {"table": "a", "seed": 0, "seconds": 1, "error": 0.25, "points": [1, 2], "fine": True}
    rows = command._compared(Named, cell, {**cell, "error": 0.5, "points": [1]}, None)
    assert rows == [
        ("table A, 0: error", "0.25", "kept: 0.5"),
        ("table A, 0: points", "2 entries", "other than kept"),
    ]
    assert command._compared(Named, cell, cell, ["points"])[0][2] == "as kept"
    assert command._compared(Named, cell, None, ["error"]) == [("table A, 0: error", "0.25", "kept: nothing")]
    assert command._compared(Named, cell, cell, ["fine"]) == [("table A, 0", "run", "kept, too")]
