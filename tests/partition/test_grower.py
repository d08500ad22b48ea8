# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from partition_cases import GUIDE_KINDS, cases, check_tree, in_examples


@pytest.mark.twins
@pytest.mark.parametrize("kind", GUIDE_KINDS)
def test_every_decision(kind) -> None:
    @in_examples(40)
    @given(case=cases(kind=kind))
    def compare(case):
        tree, groups = case.grower().grow()
        check_tree(case, tree, groups)

    compare()
