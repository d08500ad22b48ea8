# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo``: one command, no files, the whole idea."""

import json

from .conftest import call, run


def test_the_demo_shows_the_cost_the_records_and_the_proof(tmp_path):
    done = run("demo", "--rows", 2000, "--k", 20, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("before", "after", "accuracy of gradient-boosting", "trained on raw records", "next", "CC BY 4.0"):
        assert part in done.stdout
    flat = " ".join(done.stdout.split())
    assert "k-anonymity verified (k = 20): no group has fewer than 20 records" in flat
    assert "\x1b" not in done.stdout
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()) <= 80
    assert not list(tmp_path.iterdir())


def test_the_demo_speaks_json():
    done = call("demo", "--rows", 1000, "--k", 10, "--json", "--quiet")
    document = json.loads(done.stdout)
    assert document["holds"] is True
    assert document["release"]["smallest_group"] >= 10
    assert 0.5 < document["utility"]["raw"] <= 1
    assert document["utility"]["n_train"] == document["release"]["n_records"] == 800


def test_wrong_numbers_get_a_sentence_and_code_2():
    for arguments, sentence in (
        (["--k", "1"], "--k 1: expected 2"),
        (["--rows", "50"], "--rows 50: expected 100"),
        (["--rows", "200", "--k", "161"], "the number of training records"),
    ):
        done = call("demo", *arguments)
        assert done.exit_code == 2
        assert sentence in " ".join(done.output.split())
