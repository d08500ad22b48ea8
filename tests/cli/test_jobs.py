# SPDX-License-Identifier: Apache-2.0
"""The commands use all cores unless told otherwise."""

from pathlib import Path

import pytest

import sfumato.anonymize
from sfumato.anonymize import ModelGuidedAnonymizer

from .conftest import call


@pytest.mark.parametrize(("options", "expected"), [([], -1), (["--jobs", 1], 1)])
def test_all_cores_are_used_unless_told_otherwise(people_file: Path, monkeypatch, options, expected):
    seen = []

    class Watched(ModelGuidedAnonymizer):
        def _n_threads(self):
            seen.append(self.n_jobs)
            return super()._n_threads()

    monkeypatch.setattr(sfumato.anonymize, "ModelGuidedAnonymizer", Watched)
    named = ["--target", "wage", "--identifiers", "name", "--model", "decision-tree"]
    assert call("anonymize", people_file, *named, *options).exit_code == 0
    assert set(seen) == {expected}
