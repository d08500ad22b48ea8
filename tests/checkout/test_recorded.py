# SPDX-License-Identifier: Apache-2.0
"""What the code gives is what was recorded, and the comparison can say no."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))

import recorded  # noqa: E402
from recorded_plain import digest, rounded, spelled, words_about  # noqa: E402


@pytest.mark.slow
def test_nothing_differs_from_the_record() -> None:
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}
    command = [sys.executable, str(REPOSITORY / "scripts" / "recorded.py")]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=580, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def outcome_of(**parts: object) -> recorded.Outcome:
    made = {name: {"sha256": digest(spelled(own)), "about": words_about(own)} for name, own in parts.items()}
    return recorded.Outcome("scene", made)


def test_a_changed_part_is_named_with_what_it_was() -> None:
    before = outcome_of(release=[1, 2], loss=0.5).parts
    [line] = recorded.differences(outcome_of(release=[1, 3], loss=0.5), before)
    assert "scene | release" in line and "[1, 2]" in line and "[1, 3]" in line


def test_missing_and_new_parts_are_differences() -> None:
    before = outcome_of(old=1).parts
    lines = recorded.differences(outcome_of(new=1), before)
    assert [line.partition(":")[0] for line in lines] == ["scene | old", "scene | new"]


def test_a_scene_that_fails_is_a_difference() -> None:
    assert recorded.differences(recorded.Outcome("scene", failed="KeyError"), {}) == ["scene: failed\nKeyError"]


def test_a_skipped_scene_is_none() -> None:
    assert recorded.differences(recorded.Outcome("scene", skipped="no Java"), {"part": {}}) == []


def test_frames_that_differ_only_in_a_type_are_spelled_differently() -> None:
    frame = pd.DataFrame({"age": [1, 2]})
    assert spelled(frame) == spelled(frame.copy())
    assert spelled(frame) != spelled(frame.astype(np.int32))


def test_durations_are_left_out() -> None:
    assert spelled({"rate": 1.0, "seconds": 0.2}) == spelled({"rate": 1.0, "seconds": 0.3})


def test_last_digits_are_compared_unless_they_are_rounded() -> None:
    one, other = 0.1 + 0.2, 0.3
    assert spelled([one]) != spelled([other])
    assert spelled(rounded([one])) == spelled(rounded([other]))


def test_every_recorded_scene_exists_under_the_first_word_of_its_name() -> None:
    known = recorded.scene_names()
    for path in recorded.RECORD.glob("*.json"):
        if path.name != "versions.json":
            scenes = json.loads(path.read_text(encoding="utf-8"))
            assert set(scenes) <= set(known)
            assert {recorded.file_of(name) for name in scenes} == {path}


def test_other_versions_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    recorded.say_versions(recorded.versions() | {"numpy": "0.1"})
    assert "(here 0.1)" in capsys.readouterr().out
