# SPDX-License-Identifier: Apache-2.0
"""Checks that every anonymizer must pass, also those of other packages.

Call `check_anonymizer`, or pass `ANONYMIZER_CHECKS` to ``pytest.mark.parametrize`` to run them one by one. Groups are
counted in plain Python, independently of the engine.

Examples
--------
>>> import pandas as pd
>>> from sfumato.testing import smallest_group
>>> smallest_group(pd.DataFrame({"age": [31, 31, 45, 45, 45]}))
2
"""

from sfumato.testing.checks import (
    ANONYMIZER_CHECKS,
    check_anonymizer,
    check_fit_twice_equals_fit_once,
    check_input_frame_is_untouched,
    check_k_beyond_the_table_is_refused,
    check_number_of_threads_does_not_matter,
    check_parameters_stay_as_given,
    check_pickled_anonymizer_transforms_alike,
    check_released_groups_meet_k,
    check_releases_of_other_records_meet_k,
    check_row_order_does_not_matter,
    check_transform_equals_fit_transform,
    people,
)
from sfumato.testing.counting import MISSING, group_sizes, missing_as_one, rows_of, smallest_group

__all__ = [
    "ANONYMIZER_CHECKS",
    "MISSING",
    "check_anonymizer",
    "check_fit_twice_equals_fit_once",
    "check_input_frame_is_untouched",
    "check_k_beyond_the_table_is_refused",
    "check_number_of_threads_does_not_matter",
    "check_parameters_stay_as_given",
    "check_pickled_anonymizer_transforms_alike",
    "check_released_groups_meet_k",
    "check_releases_of_other_records_meet_k",
    "check_row_order_does_not_matter",
    "check_transform_equals_fit_transform",
    "group_sizes",
    "missing_as_one",
    "people",
    "rows_of",
    "smallest_group",
]
