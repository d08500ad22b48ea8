# SPDX-License-Identifier: Apache-2.0
"""Growing from counts and in branches gives the tree that growing in memory gives, group for group."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import Case, assert_same_trees, cases, diversity, in_examples, persons, separated_case

from sfumato.backends.blocks import code_file
from sfumato.backends.blocks.code_file import CodeFile
from sfumato.partition.criterion_checks import Check
from sfumato.partition.records import Records, pack_records
from sfumato.partition.streaming import Branch, grow_outer
from sfumato.partition.tree import Tree


def grown_outside(
    case: Case, checks: Sequence[Check], most_held: int, n_threads: int = 1, branch_size: int | None = None
) -> tuple[Tree, np.ndarray]:
    records = case.records
    group = np.full(records.n_records, -1, np.int32)
    n_groups = 0

    def finish(branch: Branch) -> None:
        nonlocal n_groups
        group[branch.records.rows] = branch.group + n_groups
        n_groups += branch.tree.n_groups

    with TemporaryDirectory() as name:
        folder = Path(name)
        n_codes = case.layout.n_columns + len(case.guide.cardinalities)
        # Columns of both widths, where their codes allow it.
        kinds = [np.uint8 if records.codes[:, c].max() < 256 and c % 2 else np.uint16 for c in range(n_codes)]
        with CodeFile(folder, kinds, no_records(records), n_threads=n_threads) as file:
            for start in range(0, records.n_records, 7):
                own = slice(start, start + 7)
                file.write(start, [records.codes[own, c] for c in range(n_codes)], records.dense[own])
            file.start(checks)
            tree = grow_outer(
                file, case.layout, case.guide, checks, finish,
                min_records=case.min_records, fall_back=case.fall_back, most_held=most_held, n_threads=n_threads,
                empty=file.empty, taxonomy=case.taxonomy, branch_size=branch_size,
            )  # fmt: skip
            assert list(folder.iterdir()) == []  # it has no name, so nobody else can open it
    return tree, group


def no_records(records: Records) -> Records:
    return Records(*(part[:0] for part in records))


def checks_of(case: Case, kind: str) -> list[Check]:
    values = np.arange(case.n_records) * 7 % max(2, case.n_records // 3)
    if kind == "persons":
        return [persons(values.tolist(), min(2, len(set(values.tolist()))))]
    return [diversity((values % 3).tolist(), 0.8)] if kind == "diverse" else []


@in_examples(100)
@given(cases(), st.integers(1, 70), st.sampled_from([1, 2]), st.sampled_from(["", "persons", "diverse"]))
def test_the_tree_and_its_groups_are_those_grown_in_memory(case: Case, most_held: int, n_threads: int, kind: str):
    case = replace(case, weights=None)
    checks = checks_of(case, kind)
    tree, group = case.grower(checks).grow()
    for branch_size in (None, most_held // 3 + 1):
        other, other_group = grown_outside(case, checks, most_held, n_threads, branch_size)
        assert_same_trees(other, tree)
        np.testing.assert_array_equal(other_group, group)


def test_chunks_smaller_than_the_table_change_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(code_file, "_CHUNK", 11)
    monkeypatch.setattr(code_file, "_MOST_MARKS", 1)
    case = separated_case(3, 200, min_records=5)
    for checks in (checks_of(case, kind) for kind in ("", "persons", "diverse")):
        tree, group = case.grower(checks).grow()
        other, other_group = grown_outside(case, checks, 30)
        assert_same_trees(other, tree)
        np.testing.assert_array_equal(other_group, group)


def test_the_working_files_are_gone_after_an_error(tmp_path: Path):
    empty = pack_records([np.zeros(0, np.uint8)])
    with pytest.raises(RuntimeError), CodeFile(tmp_path, [np.uint8], empty) as file:
        file.write(0, [np.zeros(3, np.uint8)], None)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
