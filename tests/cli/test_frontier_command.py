# SPDX-License-Identifier: Apache-2.0
"""``sfumato frontier`` on files: families as options, roles from options or a policy, results of every kind."""

import inspect
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.auditing import frontier_files
from sfumato.auditing.protection_families import SHORT_FORMS
from sfumato.cli.frontier import frontier

from .conftest import call

QUICK = ("--splits", "2", "--jobs", "1", "--model", "decision-tree", "--attacks", "threshold,release-membership")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A table, other people, public knowledge and a policy."""
    home = tmp_path_factory.mktemp("frontier")
    generator = np.random.default_rng(0)
    for name, n in (("people", 300), ("others", 200)):
        age, job = generator.integers(18, 80, n), generator.choice(["nurse", "smith", "cook"], n)
        rich = np.where(age + generator.normal(0, 15, n) > 50, "yes", "no")
        names = [f"{name} {i}" for i in range(n)]
        frame = pd.DataFrame(
            {"name": names, "age": age, "job": job, "sex": generator.choice(["f", "m"], n), "rich": rich}
        )
        frame.to_csv(home / f"{name}.csv", index=False)
    (home / "public.toml").write_text(
        '[bounds]\nage = [18, 80]\n[categories]\njob = ["nurse", "smith", "cook"]\nsex = ["f", "m"]\n'
    )
    (home / "policy.toml").write_text(
        'version = 1\n[data]\nfile = "people.csv"\nrelease = "released.csv"\n'
        '[columns]\ntarget = "rich"\nidentifiers = ["name"]\nsensitive = ["job"]\n[model]\nname = "decision-tree"\n'
    )
    return home


def on(folder: Path, *options: object) -> tuple[object, ...]:
    return ("frontier", folder / "people.csv", "--target", "rich", "--identifiers", "name", *QUICK, *options)


def test_every_family_is_an_option():
    options = inspect.signature(frontier).parameters
    assert {name.replace("-", "_") for name in SHORT_FORMS} <= set(options)


def test_families_are_compared_and_shown(folder: Path):
    result = call(*on(folder, "--k", "5", "--k-release", "5,20", "--buckets", "4"))
    assert result.exit_code == 0, result.stderr
    assert "protections of people.csv, in percent" in result.stdout
    lines = [line for line in result.stdout.splitlines() if line.startswith(("no prot", "k = ", "4 leaves"))]
    assert len(lines) == 5
    assert "k = 5, model: score 0." in result.stderr  # rows are told as they are finished
    assert "not private" in " ".join(result.stdout.split())


def test_json_is_the_frontier(folder: Path):
    result = call(*on(folder, "--k", "5", "--json", "--quiet", "--sensitive", "job", "--l", "2"))
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert [row["family"] for row in document["rows"]] == ["none", "k", "l"]
    assert document["n_splits"] == 2
    assert "people 7" not in result.stdout


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".html", "<!DOCTYPE"), (".svg", "<svg"), (".md", "2 splits"), (".json", "{")]
)
def test_results_are_written_in_every_kind(folder: Path, tmp_path: Path, suffix: str, begins: str):
    output = tmp_path / f"frontier{suffix}"
    result = call(*on(folder, "--k", "5", "-o", output, "--quiet"))
    assert result.exit_code == 0, result.stderr
    assert output.read_text(encoding="utf-8").startswith(begins)
    again = call(*on(folder, "--k", "5", "-o", output))
    assert again.exit_code == 2 and "--force" in again.stderr


def test_a_policy_says_the_roles(folder: Path):
    result = call(
        "frontier", folder / "policy.toml", *QUICK[:4], "--attacks", "none", "--anatomy", "2", "--json", "--quiet"
    )
    assert result.exit_code == 0, result.stderr
    assert [row["family"] for row in json.loads(result.stdout)["rows"]] == ["none", "anatomy"]
    both = call("frontier", folder / "policy.toml", "--target", "rich")
    assert both.exit_code == 2 and "--target with a policy" in both.stderr


def test_private_families_take_public_knowledge_from_a_file(folder: Path):
    pytest.importorskip("opendp", reason="opendp is not installed (extra: dp)")
    families = ("--epsilon", "1", "--private-release", "2", "--counts", "1")
    known = ("--public", folder / "public.toml", "--others", folder / "others.csv")
    result = call(*on(folder, *families, *known, "--json", "--quiet"))
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in rows[1:]] == ["epsilon = 1, model", "epsilon = 1, counts", "epsilon = 2, table"]
    assert all(row["utility"] is not None and row["limit"] < 1 for row in rows[1:])


def test_an_interrupted_run_shows_what_it_has(folder: Path, monkeypatch):
    from sfumato.auditing import frontier as frontier_module

    real = frontier_module.measured_rows

    def interrupted(*given):
        rows = real(*given)
        yield next(rows)
        raise KeyboardInterrupt

    monkeypatch.setattr(frontier_module, "measured_rows", interrupted)
    result = call(*on(folder, "--k", "5"))
    assert result.exit_code == 130
    assert "no protection" in result.stdout and "stopped" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--k", "x"), "--k 'x': expected integers from 2 on, such as --k 10,100."),
        (("--k", "1"), "--k '1': expected integers from 2 on"),
        (("--epsilon", "1"), "--epsilon without --public"),
        (("--counts", "1"), "--counts without --others"),
        (("--l", "2"), "'l' without --sensitive"),
        (("--attacks", "luck"), "--attacks has 'luck'"),
        (("--model", "oracle"), "--model 'oracle': expected one of gradient-boosting"),
        (("--secrets", "shoe"), "--secrets"),
        (("-o", "frontier.png"), "expected a name that ends in .html, .svg, .md or .json"),
        (("--splits", "0"), "--splits 0: expected"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(folder: Path, options: tuple[str, ...], says: str):
    result = call(*on(folder, "--k", "5", *options))
    assert result.exit_code == 2, result.stdout
    assert says in " ".join(result.stderr.split())


def test_a_target_is_needed(folder: Path):
    result = call("frontier", folder / "people.csv")
    assert result.exit_code == 2 and "no --target" in result.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [("bounds = 3", "lists by column"), ("[ranges]\nage = [1]", "'ranges'"), ("[bounds", "cannot be read as TOML")],
)
def test_public_knowledge_that_cannot_be_read_is_refused(tmp_path: Path, text: str, says: str):
    path = tmp_path / "public.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        frontier_files.read_public(path)
