# SPDX-License-Identifier: Apache-2.0
"""The page of the attack study says what the kept cells say."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # studies are no part of the package
from studies.inference_attacks_page import page


def test_a_row_that_was_not_run_is_named():
    text = page({})
    assert "Not run yet: Adult, random forest, none" in text
    assert "| Adult, random forest | k=50 | 0.85 |  | 0.83 |" in text
