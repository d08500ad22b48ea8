# SPDX-License-Identifier: Apache-2.0
"""The candidates of one node, their gains and their order."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import GUIDE_KINDS, Case, cases, fast_splits, in_examples, tolerance

from sfumato.partition import naive


@pytest.mark.twins
@pytest.mark.parametrize("kind", GUIDE_KINDS)
def test_twins_list_the_same_candidates_with_the_same_gains(kind: str) -> None:
    @in_examples(40)
    @given(case=cases(kind=kind), n_ranks=st.sampled_from([1024, 1, 3]))
    def compare(case: Case, n_ranks: int) -> None:
        hist, layout, scoring = case.histogram, case.layout, case.scoring
        exact = {(phase, s.column, s.position): s for phase, s in naive.find_splits(hist, layout, scoring)}
        ranked = fast_splits(hist, layout, scoring, n_ranks)
        fast = {(phase, s.column, s.position): s for phase, s in ranked}
        assert fast.keys() == exact.keys()
        assert len(fast) == len(ranked)
        slack = tolerance(hist, layout, scoring)
        for key, split in fast.items():
            twin = exact[key]
            assert split.gain == pytest.approx(float(twin.gain), rel=1e-9, abs=slack)
            assert replace(split, gain=0) == replace(twin, gain=0)
        assert ranked == sorted(ranked, key=lambda item: (item[0], -item[1].gain, item[1].column, item[1].position))

    compare()
