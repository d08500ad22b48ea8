# SPDX-License-Identifier: Apache-2.0
"""What commands say about odd values, names and options is right, and does nothing to a terminal."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from sfumato.cli.application import application
from sfumato.cli.console import Console
from sfumato.files.csv_writing import formula_columns

from .conftest import call

USUAL = ["--target", "wage", "--model", "decision-tree"]


def people(path, *, big=("5",), note=("fine",), header="age,big,note,wage"):
    random = np.random.default_rng(0)
    lines = [
        f"{random.integers(18, 80)},{random.choice(big)},{random.choice(note)},{random.choice(['low', 'high'])}"
        for _ in range(120)
    ]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.mark.parametrize("test_fraction", [0.2, 0])
def test_numbers_too_large_for_a_model_are_told_by_their_column(tmp_path, test_fraction):
    source = people(tmp_path / "people.csv", big=("1e308", "-1e308", "5"))
    done = call("anonymize", source, *USUAL, "--test-fraction", test_fraction, "-o", tmp_path / "out.csv")
    assert done.exit_code == 2, done.output
    said = done.stderr.replace("\n", " ")
    assert "the column 'big' has numbers beyond 1e+30" in said
    assert "308" not in said


@pytest.mark.parametrize("test_fraction", [0.2, 0])
def test_a_target_too_large_for_a_model_is_told(tmp_path, test_fraction):
    many = (*map(str, range(30)), "1e308", "-1e308")
    source = people(tmp_path / "people.csv", big=many)
    done = call("anonymize", source, "--target", "big", "--test-fraction", test_fraction, "-o", tmp_path / "out.csv")
    assert done.exit_code == 2, done.output
    assert "the target 'big' has numbers beyond 1e+30" in done.stderr.replace("\n", " ")


def test_numbers_too_large_for_a_model_are_released_as_text(tmp_path):
    source = people(tmp_path / "people.csv", big=("1e308", "-1e308", "5"))
    done = call("anonymize", source, *USUAL, "--types", "big=text", "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output


def test_a_limit_too_large_for_numbers_is_wrong_usage(tmp_path):
    source = people(tmp_path / "people.csv")
    done = call("anonymize", source, *USUAL, "--limits", "age=1e308", "-o", tmp_path / "out.csv")
    assert done.exit_code == 2
    assert "--limits age=1e308: expected a number" in done.stderr


def test_one_file_for_two_outputs_is_called_that(tmp_path):
    source = people(tmp_path / "people.csv")
    done = call("anonymize", source, *USUAL, "-o", tmp_path / "out.csv", "--save", tmp_path / "out.csv")
    assert done.exit_code == 2
    said = done.stderr.replace("\n", " ")
    assert "is the file of another output, too" in said and "the input itself" not in said


def test_a_task_that_does_not_fit_its_target_is_answered_with_what_does(tmp_path):
    source = people(tmp_path / "people.csv")
    done = call("anonymize", source, *USUAL, "--task", "regression")
    assert done.exit_code == 2
    assert "Leave out --task, or give another --target" in done.stderr.replace("\n", " ")
    names = tmp_path / "names.csv"
    names.write_text("name,wage\n" + "".join(f"Person {place},low\n" for place in range(2_000)))
    done = call("anonymize", names, "--target", "name")
    assert done.exit_code == 2
    assert "distinct values" in done.stderr and "--task regression" not in done.stderr


@pytest.mark.parametrize("text", ["=1+1", "+1", "@SUM(A1)", "-2+3", "-cmd|x", "\t=1", "\n=1", "\uff1d1", "--x"])
def test_text_that_spreadsheets_take_for_formulas_is_found(text):
    assert formula_columns(pa.table({"note": ["fine", text]})) == ["note"]
    assert formula_columns(pa.table({text: ["fine", "good"]})) == [text]


@pytest.mark.parametrize("text", ["-", "--", "-5", "-5,5", "-1.5e3", "-5%", "a-b", "a=b", ""])
def test_dashes_and_negative_numbers_are_no_formulas(text):
    assert formula_columns(pa.table({"note": ["fine", text]})) == []


def test_formulas_in_a_release_are_warned_of(tmp_path):
    source = people(tmp_path / "people.csv", note=("-2+3", "fine"))
    roles = ["--quasi-identifiers", "age", "--quiet"]
    done = call("anonymize", source, *USUAL, *roles, "-o", tmp_path / "out.csv", "--save", tmp_path / "p.json")
    assert done.exit_code == 0, done.output
    assert "warning: spreadsheets take some text of 1 columns for formulas: 'note'" in done.stderr.replace("\n", " ")
    done = call("apply", tmp_path / "p.json", source, "--release", "-o", tmp_path / "next.csv", "--quiet")
    assert "spreadsheets take some text" in done.stderr
    done = call("anonymize", source, *USUAL, *roles, "-o", tmp_path / "out.parquet")
    assert "spreadsheets" not in done.stderr


EVIL = "\x1b[2Jage\x9b31m\u202e"


def test_names_of_columns_do_not_steer_the_terminal(capsys):
    console = Console()
    console.facts([(EVIL, "1", EVIL)])
    console.records([EVIL], [[EVIL]])
    console.heading(EVIL)
    console.text(EVIL)
    console.verdict(EVIL, holds=True)
    console.note(EVIL)
    console.error(EVIL)
    console.progress(EVIL)
    with console.step(EVIL):
        pass
    console.result({EVIL: 1})
    said = capsys.readouterr()
    for written in (said.out, said.err):
        assert not any(letter in written for letter in "\x1b\x9b\u202e")
        assert "\\x1b[2Jage\\x9b31m\\u202e" in written


def test_a_document_with_such_names_means_the_same(capsys):
    Console(as_json=True).result({EVIL: "é"})
    said = capsys.readouterr().out
    assert json.loads(said) == {EVIL: "é"}
    assert "é" in said and "\x9b" not in said


@pytest.mark.parametrize("command", [found.callback.__name__ for found in application.registered_commands])
@pytest.mark.parametrize("width", ["80", "120"])
def test_help_says_in_words_what_follows_an_option(command, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    shown = CliRunner().invoke(application, [command, "--help"]).output
    options = [line for line in shown.splitlines() if re.match(r"│ +--", line)]
    assert options
    assert [line for line in options if re.search(r"<\w+>", line)] == []
    assert max(map(len, shown.splitlines())) <= int(width)


def test_a_label_or_a_sentence_that_wraps_stays_under_itself(capsys):
    console = Console(quiet=False, as_json=False)
    console.out.width = 60
    console.facts(
        [("guess a value in groups where a value is raised (skewness)", "0.185", "0.403  no significant gain")]
    )
    console.text("  " + "words " * 30)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 4
    assert [line for line in lines if not line.startswith("  ")] == []
