# SPDX-License-Identifier: Apache-2.0
"""A policy compares its release with what was kept of earlier ones, and the report says what both show together."""

import stat

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato import ParameterError, Policy, PrivacyWarning, Publication

POLICY = """\
version = 1
[data]
file = "people.csv"
release = "released.csv"
publication = "this.publication"
audit = "audit.json"
EARLIER
[columns]
persons = "patient"
quasi_identifiers = ["age", "weight"]
[method]
name = "mondrian"
k = 10
"""


def people(n: int) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    table = {"patient": [f"P{i:05}" for i in range(n)], "age": draw.integers(18, 90, n)}
    return pd.DataFrame({**table, "weight": draw.normal(75, 12, n).round()})


def run(folder, table: pd.DataFrame, earlier: str = "") -> sfumato.PolicyRun:
    folder.mkdir()
    table.to_csv(folder / "people.csv", index=False)
    (folder / "policy.toml").write_text(POLICY.replace("EARLIER", earlier))
    return sfumato.run(folder / "policy.toml")


def test_what_is_kept_of_a_release_is_for_its_owner_alone(tmp_path):
    done = run(tmp_path / "first", people(400))
    kept = tmp_path / "first" / "this.publication"
    assert kept in done.written and stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert len(Publication.load(kept).persons) == 400
    assert "patient" not in (tmp_path / "first" / "released.csv").read_text().splitlines()[0]
    assert done.audit.outputs["publication"].file == "this.publication"


def test_the_same_groups_twice_are_safe_together(tmp_path):
    run(tmp_path / "first", people(400))
    again = run(tmp_path / "second", people(400), 'earlier = ["../first/this.publication"]').audit
    [own] = again.earlier
    assert own.is_safe and own.is_counted and own.n_people == 400 and own.n_below == 0
    assert "everyone is hidden among k people in both together" in again.to_html()
    assert "The release was audited alone" not in again.to_html()


def test_people_whom_two_releases_single_out_are_told_without_small_counts(tmp_path):
    run(tmp_path / "first", people(400))
    moved = people(400)
    moved.loc[:60, "weight"] += 25
    with pytest.warns(PrivacyWarning, match="together tell more than either"):
        made = run(tmp_path / "second", moved, 'earlier = ["../first/this.publication"]').audit
    [own] = made.earlier
    assert not own.is_safe and (own.n_below is None or own.n_below >= 10)
    said = "fewer than 10 people" if own.n_below is None else f"{own.n_below:,} people"
    assert f"{said} share their two groups with fewer than k" in made.to_markdown()


def test_an_earlier_release_that_is_not_there_is_refused_before_any_work(tmp_path):
    with pytest.raises(sfumato.InputError, match=r"absent\.publication"):
        run(tmp_path / "first", people(50), 'earlier = ["absent.publication"]')


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": {"publication": "kept.json"}}, "ends in .publication"),
        ({"columns": {"persons": "name", "quasi_identifiers": ["name"]}}, "one role per column"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(change, words):
    sections = {"method": {"name": "mondrian", "k": 5}} | change
    with pytest.raises(ParameterError, match=words):
        Policy.of(**sections)
