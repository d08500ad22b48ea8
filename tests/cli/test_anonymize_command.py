# SPDX-License-Identifier: Apache-2.0
"""``sfumato anonymize`` on files, as a user runs it."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer

from sfumato.cli.application import application

from .conftest import N_PEOPLE, call, people, read_rows, run, run_process, smallest_group

REWRITTEN = ["age", "zip", "hours", "born", "job"]
USUAL = ["--target", "wage", "--identifiers", "name", "--model", "decision-tree"]


@pytest.fixture(scope="module")
def release(people_file, tmp_path_factory):
    """One run in a pipe that most tests look at."""
    folder = tmp_path_factory.mktemp("release")
    output, partition = folder / "released.csv", folder / "partition.json"
    done = run_process("anonymize", people_file, *USUAL, "--k", 5, "-o", output, "--save", partition)
    assert done.returncode == 0, done.stderr
    return done, output, partition


def test_every_written_record_shares_its_values_with_k_minus_1_others(release):
    rows = read_rows(release[1])
    assert len(rows) == N_PEOPLE
    assert smallest_group(rows, REWRITTEN) >= 5


def test_the_written_file_looks_like_the_one_that_was_read(release, people_file):
    data = release[1].read_bytes()
    assert data.startswith(b"age;zip;hours;born;job;wage\n")
    assert data.count(b"\n") == N_PEOPLE + 1
    before, after = read_rows(people_file), read_rows(release[1])
    assert Counter(row["wage"] for row in after) == Counter(row["wage"] for row in before)
    for name in REWRITTEN:  # values that nobody has are written the way somebody's are; 40,0 is written 40
        shapes = [{re.sub(r"\d+", "0", re.sub(",0$", "", row[name])) for row in rows} for rows in (after, before)]
        assert shapes[0] <= shapes[1]
    assert all(row["zip"].startswith("0") for row in after)
    assert any("," in row["hours"] for row in after)


def test_the_result_says_what_it_cost_and_that_k_holds(release):
    said = release[0].stdout
    for part in (
        "accuracy of decision-tree on 60 held-out records",
        "trained on raw records",
        "trained on anonymized records",
        "trained and tested on anonymized",
        "smallest group",
        "median group",
        "information loss",
        "was measured on a split",
    ):
        assert part in said
    flat = " ".join(said.split())
    assert "k-anonymity verified (k = 5): no group has fewer than 5 records (recounted on the written file)." in flat


def test_in_a_pipe_lines_fit_80_columns_and_progress_is_plain(release):
    done = release[0]
    assert "\x1b" not in done.stdout + done.stderr
    for line in (*done.stdout.splitlines(), *done.stderr.splitlines()):
        assert len(line.rstrip()) <= 80 or line.startswith(("note:", "Written:"))
    assert "reading people.csv" in done.stderr
    assert "decimal comma" in done.stderr


def test_nobody_else_is_left_in_the_folder(release):
    assert sorted(path.name for path in release[1].parent.iterdir()) == [
        "partition.fingerprints",
        "partition.json",
        "released.csv",
    ]


def test_the_saved_partition_is_a_document_with_what_apply_needs(release):
    document = json.loads(release[2].read_text())
    assert document["format"] == "sfumato-partition"
    assert document["file"]["k"] == 5
    assert document["file"]["types"]["zip"] == "text"


def test_json_is_one_document_and_nothing_else(people_file, tmp_path):
    done = run("anonymize", people_file, *USUAL, "--json", "-q", "-o", tmp_path / "out.csv")
    document = json.loads(done.stdout)
    assert done.stderr == ""
    assert document["holds"] is True
    assert document["judged_on"] == "the written file"
    assert document["release"]["n_records_in_groups_below_k"] == 0
    assert document["release"]["smallest_group"] >= document["k"] == 10
    assert set(document["utility"]) == {"metric", "raw", "anonymized", "transformed", "n_train", "n_test"}
    assert document["quasi_identifiers"] == REWRITTEN


def test_on_a_terminal_there_is_a_spinner(people_file, tmp_path):
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "sfumato", "anonymize", str(people_file), *USUAL, "-o", str(tmp_path / "out.csv")]
    process = subprocess.Popen(
        command, stdout=terminal, stderr=terminal, env=os.environ | {"COLUMNS": "80", "TERM": "xterm-256color"}
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            piece = os.read(controller, 65_536)
        except OSError:  # how Linux says that nobody writes any more
            break
        if not piece:
            break
        seen += piece
    os.close(controller)
    assert process.wait(timeout=300) == 0
    text = seen.decode()
    assert "\x1b[" in text
    assert "anonymizing all 300 records" in text
    assert "k-anonymity verified (k = 10)" in text
    assert (tmp_path / "out.csv").exists()


# --- choices ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "choice",
    [
        ["--guide", "predictions"],
        ["--guide", "labels"],
        ["--guide", "column:wage", "--keep", "wage"],
        ["--representative", "member"],
        ["--representative", "mean"],
        ["--representative", "midrange"],
        ["--representative", "model"],
        ["--representative", "sample"],
        ["--limits", "age=10,zip=2"],
        ["--categorical", "age"],
        ["--model", "logistic-regression"],
        ["--quasi-identifiers", "age,zip", "--quasi-identifiers", "born"],
    ],
    ids=lambda choice: " ".join(choice),
)
def test_k_holds_for_every_choice(people_file, tmp_path, choice):
    output = tmp_path / "out.csv"
    arguments = ["--identifiers", "name", "--k", 7, "-o", output, *choice]
    arguments += [] if "--model" in choice else ["--model", "decision-tree"]
    done = call("anonymize", people_file, *arguments, *([] if "column:wage" in choice else ["--target", "wage"]))
    assert done.exit_code == 0, done.output
    columns = ["age", "zip", "born"] if "--quasi-identifiers" in choice else REWRITTEN
    assert smallest_group(read_rows(output), columns) >= 7


def test_limits_coarsen_what_leaves(people_file, tmp_path):
    call("anonymize", people_file, *USUAL, "--limits", "zip=2", "-o", tmp_path / "out.csv")
    assert {row["zip"] for row in read_rows(tmp_path / "out.csv")} == {"01*"}


def test_ranges_and_bounds_are_written_as_text_and_as_two_columns(people_file, tmp_path):
    done = call("anonymize", people_file, *USUAL, "--representative", "range", "-o", tmp_path / "range.csv")
    assert done.exit_code == 0, done.output
    rows = read_rows(tmp_path / "range.csv")
    assert smallest_group(rows, REWRITTEN) >= 10
    assert any("-" in row["age"] for row in rows)
    assert "trained on anonymized records" not in done.output  # raw records are of another kind
    done = call("anonymize", people_file, *USUAL, "--representative", "bounds", "-o", tmp_path / "bounds.csv")
    assert done.exit_code == 0, done.output
    rows = read_rows(tmp_path / "bounds.csv")
    columns = [name for name in rows[0] if name != "wage"]
    assert {"age_low", "age_high"} <= set(columns)
    assert smallest_group(rows, columns) >= 10


def test_parquet_keeps_its_schema_and_forgets_values_that_no_record_has(tmp_path):
    table = pa.csv.read_csv(pa.BufferReader(people().encode()), parse_options=pa.csv.ParseOptions(delimiter=";"))
    job = table.column("job").combine_chunks().dictionary_encode()
    table = table.set_column(table.schema.get_field_index("job"), "job", job)
    rare = pa.DictionaryArray.from_arrays([*[0] * (N_PEOPLE - 1), 1], pa.array(["common", "of one person only"]))
    table = table.append_column("rare", rare).replace_schema_metadata({"owner": "census"})
    source, output = tmp_path / "people.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source)
    done = call("anonymize", source, *USUAL, "-o", output)
    assert done.exit_code == 0, done.output
    released = pq.read_table(output)
    expected = table.drop_columns(["name"]).schema
    assert released.schema.remove_metadata().equals(
        pq.read_table(source).drop_columns(["name"]).schema.remove_metadata()
    )
    assert released.column_names == expected.names
    assert released.schema.metadata is None
    assert b"census" not in output.read_bytes()
    assert released.column("job").unique().null_count == 0
    assert b"of one person only" not in output.read_bytes()


def test_csv_becomes_parquet_when_the_output_says_so(people_file, tmp_path):
    done = call("anonymize", people_file, *USUAL, "-o", tmp_path / "out.parquet")
    assert done.exit_code == 0, done.output
    schema = pq.read_schema(tmp_path / "out.parquet")
    assert [str(schema.field(name).type) for name in ("age", "zip", "hours", "born")] == [
        "int64",
        "string",
        "double",
        "date32[day]",
    ]


def test_persons_with_several_records_count_once(tmp_path):
    lines = people().splitlines()
    # Every person twice: groups of five records would often be three persons.
    source = tmp_path / "visits.csv"
    source.write_text("\n".join([lines[0], *(line for line in lines[1:] for _ in range(2))]) + "\n")
    output = tmp_path / "out.csv"
    done = call(
        "anonymize", source, "--target", "wage", "--unit", "name", "--k", 5, "--model", "decision-tree", "-o", output
    )
    assert done.exit_code == 0, done.output
    assert "fewer than 5 persons" in " ".join(done.output.split())
    before, after = read_rows(source), read_rows(output)
    assert "name" not in after[0]
    persons = defaultdict(set)
    for old, new in zip(before, after, strict=True):
        persons[tuple(new[name] for name in REWRITTEN)].add(old["name"])
    assert min(map(len, persons.values())) >= 5


def test_a_quantity_is_compared_by_r2(people_file, tmp_path):
    done = call(
        "anonymize", people_file, "--target", "hours", "--identifiers", "name", "--model", "decision-tree", "--json"
    )
    document = json.loads(done.stdout)
    assert (document["task"], document["utility"]["metric"]) == ("regression", "R2")
    assert document["output"] is None
    assert document["judged_on"] == "the result in memory"


def test_records_without_a_target_are_released_all_the_same(people_file, tmp_path):
    source = tmp_path / "people.csv"
    text = people().replace(";high\r\n", ";\r\n", 20)
    source.write_text(text, newline="")
    done = call("anonymize", source, *USUAL, "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    assert "20 records have no 'wage'" in done.output
    rows = read_rows(tmp_path / "out.csv")
    assert Counter(row["wage"] for row in rows) == Counter(row["wage"] for row in read_rows(source))
    assert smallest_group(rows, REWRITTEN) >= 10


def test_the_same_seed_gives_the_same_records(people_file, tmp_path):
    for name in ("a.csv", "b.csv"):
        call("anonymize", people_file, *USUAL, "--representative", "sample", "--seed", 3, "-o", tmp_path / name)
    assert len({tuple(sorted((tmp_path / name).read_bytes().splitlines())) for name in ("a.csv", "b.csv")}) == 1


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "wages"], "Did you mean 'wage'"),
        (["--target", "wage", "--quasi-identifiers", "agee"], "--quasi-identifiers names 'agee'"),
        (["--target", "wage", "--identifiers", "wage"], "--identifiers names 'wage', which is target already"),
        (["--target", "wage", "--identifiers", "name", "--quasi-identifiers", "age,name"], "one role per column"),
        (["--target", "wage", "--k", "1"], "--k 1: expected an integer >= 2"),
        (["--target", "wage", "--k", "301"], "--k 301 with 300 records"),
        (["--target", "wage", "--k", "ten"], "--k"),
        (["--target", "wage", "--test-fraction", "1"], "--test-fraction 1.0"),
        (["--target", "wage", "--guide", "magic"], "--guide 'magic'"),
        (["--target", "wage", "--guide", "column:nothing"], "--guide names 'nothing'"),
        (["--target", "wage", "--limits", "age"], "expected COLUMN=VALUE"),
        (["--target", "wage", "--limits", "age=wide"], "expected a number"),
        (["--target", "wage", "--limits", "age=nan"], "--limits age=nan: expected a number"),
        (["--target", "wage", "--limits", "age=inf"], "--limits age=inf: expected a number"),
        (["--target", "wage", "--model", "crystal-ball"], "crystal-ball"),
        (["--target", "wage", "--model", "linear-regression"], "cannot learn a target of classes"),
        (["--target", "wage", "--types", "job=integer"], "'job' cannot be read as integer"),
        (["--target", "wage", "--quasi-identifiers", "age"], "'name' would be released unchanged"),
        (["--target", "wage", "--task", "regression"], "is not a column of numbers: expected numbers"),
        (["--target", "wage", "--separator", "||"], "expected one character"),
    ],
)
def test_wrong_usage_gets_a_sentence_and_code_2(people_file, tmp_path, arguments, sentence):
    output = tmp_path / "out.csv"
    done = call("anonymize", people_file, *arguments, "-o", output, "--save", tmp_path / "partition.json")
    assert done.exit_code == 2
    assert sentence in " ".join(done.output.replace("│", " ").split())
    assert "Traceback" not in done.output
    assert "Person 1" not in done.output
    assert not list(tmp_path.iterdir())


def test_the_library_s_words_are_translated_into_options(people_file, tmp_path):
    done = call("anonymize", people_file, "--target", "wage", "--quasi-identifiers", "age")
    assert "List it in --quasi-identifiers or --identifiers, or in --keep" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("none.csv", None, "does not exist"),
        ("empty.csv", b"", "is empty"),
        ("table.xlsx", b"x", "is a spreadsheet"),
        ("ragged.csv", b"a,b\n1,x\n2\n", "line 3"),
        ("damaged.parquet", b"PAR1", "not a readable Parquet file"),
    ],
)
def test_a_bad_file_gets_a_sentence_and_code_2(tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = run("anonymize", tmp_path / name, "--target", "b", "-o", tmp_path / "out.csv")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_existing_outputs_stay_unless_forced(people_file, tmp_path):
    output = tmp_path / "out.csv"
    output.write_text("precious")
    done = call("anonymize", people_file, *USUAL, "-o", output)
    assert (done.exit_code, output.read_text()) == (2, "precious")
    assert "--force" in done.output
    assert call("anonymize", people_file, *USUAL, "-o", output, "--force").exit_code == 0
    assert smallest_group(read_rows(output), REWRITTEN) >= 10
    before = people_file.read_bytes()
    done = call("anonymize", people_file, *USUAL, "-o", people_file, "--force")
    assert done.exit_code == 2
    assert "is the input itself" in done.output
    assert people_file.read_bytes() == before


def test_debug_shows_where_an_error_comes_from(people_file):
    done = call("anonymize", people_file, "--target", "wages", "--debug")
    assert done.exit_code == 2
    assert "Traceback" in done.output


def test_an_error_inside_shows_its_kind_and_no_values(people_file, tmp_path, monkeypatch):
    from sfumato.auditing import anonymize_files as judging

    def fail(*arguments, **named):
        raise KeyError("Person 1")

    monkeypatch.setattr(judging, "recount", fail)
    done = call("anonymize", people_file, *USUAL, "-o", tmp_path / "out.csv")
    assert done.exit_code == 3
    assert "KeyError" in done.output
    assert "Person 1" not in done.output
    assert not list(tmp_path.iterdir())


def test_a_release_that_fails_the_recount_writes_nothing_and_exits_1(people_file, tmp_path, monkeypatch):
    from sfumato.auditing import pipeline as judging

    # An engine that rewrites nothing, and finds nothing wrong with it.
    original = judging.compact_dictionaries
    raw = read_rows(people_file)

    def leak(table):
        table = original(table)
        born = pa.array([row["born"] for row in raw]).cast(pa.date32())
        return table.set_column(table.schema.get_field_index("born"), "born", born)

    monkeypatch.setattr(judging, "compact_dictionaries", leak)
    done = call("anonymize", people_file, *USUAL, "-o", tmp_path / "out.csv", "--save", tmp_path / "partition.json")
    assert done.exit_code == 1
    assert "k-anonymity does not hold (k = 10)" in done.output
    assert not list(tmp_path.iterdir())


# --- interruptions ----------------------------------------------------------------------------------------

STALLED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell starts in the background
from sfumato.cli import main
from sfumato.files import verified_output as judging
def stall(*arguments):
    print("read back", flush=True)
    time.sleep(120)
judging.check_same = stall
main()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["kill", "term", "int"]
)
def test_a_run_that_is_ended_leaves_no_half_written_output(people_file, tmp_path, how, code):
    output = tmp_path / "out.csv"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            STALLED,
            "anonymize",
            str(people_file),
            *USUAL,
            "--test-fraction",
            "0",
            "-o",
            str(output),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "read back\n"
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    left = [path.name for path in tmp_path.iterdir()]
    if how == signal.SIGKILL:  # nothing can clean up after that, but the name says what it is
        assert [name.startswith("out.csv.unfinished-") for name in left] == [True]
    else:
        assert left == []
        assert "interrupted; no unfinished file is left" in said


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from sfumato.cli.application import application;"
        "print([name for name in ('numpy', 'pyarrow', 'sklearn', 'numba', 'narwhals') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["demo", "anonymize", "apply"])
def test_help_says_every_default(command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert "Examples" in done.stdout
    for line in done.stdout.splitlines():
        assert len(line) <= 80
    # Every option but --help, and but those that must be given, says what happens without it.
    parameters = typer.main.get_command(application).commands[command].params
    n_optional = sum(parameter.param_type_name == "option" and not parameter.required for parameter in parameters)
    assert done.stdout.count("[default:") == n_optional > 5


def test_the_version_is_shown():
    done = call("--version")
    assert done.exit_code == 0
    assert done.output.startswith("sfumato 0.")


def test_unreadable_folders_get_a_sentence(people_file, tmp_path):
    done = call("anonymize", people_file, *USUAL, "-o", tmp_path / "no" / "out.csv")
    assert done.exit_code == 2
    assert "does not exist" in done.output
    done = call("anonymize", Path(tmp_path), *USUAL)
    assert done.exit_code == 2
    assert "is a folder" in done.output
