# SPDX-License-Identifier: Apache-2.0
"""The page of the attack study says what the kept cells say."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # studies are no part of the package
from studies.inference_attacks import PAGE, TABLE_1, TABLE_2, read_cells
from studies.inference_attacks_page import page


def test_the_page_is_written_from_the_kept_cells():
    assert PAGE.read_text(encoding="utf-8") == page(read_cells())


def test_every_kept_cell_belongs_to_a_row_of_the_paper():
    keys = {row.key for row in (*TABLE_1, *TABLE_2)}
    assert set(read_cells()) <= keys
    assert len(keys) == len(TABLE_1) + len(TABLE_2)


def test_a_row_that_was_not_run_is_named():
    text = page({})
    assert "Not run yet: Adult, random forest, none" in text
    assert "| Adult, random forest | k=50 | 0.85 |  | 0.83 |" in text
