# SPDX-License-Identifier: Apache-2.0
"""Values as JSON can say them, and files that appear as a whole or not at all."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.documents import named_at_the_end, plain, read_document, write_document, written_whole
from sfumato.errors import InputError
from strategies import in_examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=2), parts, max_size=3),
    max_leaves=10,
)


@dataclass(frozen=True)
class Person:
    """A record with all that a result may hold."""

    age: np.int32
    share: float
    sizes: np.ndarray
    above: dict


def test_results_become_what_json_can_say():
    person = Person(np.int32(34), float("inf"), np.array([0.5, np.nan]), {0.05: (np.bool_(True), "x")})
    assert plain([person]) == [{"age": 34, "share": None, "sizes": [0.5, None], "above": {"0.05": [True, "x"]}}]


@in_examples()
@given(value=VALUES)
def test_what_is_plain_survives_json_and_stays_as_it_is(value):
    made = plain(value)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert plain(made) == made


def test_a_document_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "partition.json"
    write_document({"name": "Zoë", "sizes": [3, 4]}, path, mode=0o600)
    assert read_document(path, "a partition", "Partition.save") == {"name": "Zoë", "sizes": [3, 4]}
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_not_finished_leaves_the_old_one_and_nothing_else(tmp_path):
    path = tmp_path / "result.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ZeroDivisionError), written_whole(path) as temporary:
        temporary.write_text("new", encoding="utf-8")
        raise ZeroDivisionError
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_document([float("nan")], path)
    assert path.read_text(encoding="utf-8") == "old"


def test_a_folder_gets_its_name_when_all_is_in_it(tmp_path):
    temporary, final = tmp_path / "unfinished", tmp_path / "final"
    temporary.mkdir()
    with named_at_the_end(temporary, final):
        (temporary / "a").write_text("all", encoding="utf-8")
        assert not final.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["final"]
    temporary.mkdir()
    with pytest.raises(ZeroDivisionError), named_at_the_end(temporary, tmp_path / "other"):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


def test_a_file_that_is_absent_is_refused_in_words(tmp_path):
    with pytest.raises(InputError, match="cannot be read as a partition"):
        read_document(tmp_path / "absent.json", "a partition", "Partition.save")
