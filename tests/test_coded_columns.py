# SPDX-License-Identifier: Apache-2.0
"""Records of each code are counted by a kernel where there are many; NumPy counts the same."""

import numpy as np
import pytest

from sfumato.coded_columns import CodedColumn
from sfumato.partition.binning import Bins


@pytest.mark.parametrize("n_records", [0, 1, 19_999, 20_000, 20_001, 20_002, 20_003])
@pytest.mark.parametrize("n_codes", [1, 2, 256, 700])
def test_counts_are_those_of_numpy(n_records, n_codes):
    codes = np.random.default_rng(0).integers(0, n_codes, n_records).astype(np.uint8 if n_codes <= 256 else np.uint16)
    places = np.arange(n_codes + 3)  # codes that no record has count, too
    column = CodedColumn("x", "number", Bins(True, places, places, places, False), codes, None, None)
    assert column.counts.dtype == np.int64
    assert column.counts.tolist() == np.bincount(codes, minlength=column.bins.n_bins).tolist()
