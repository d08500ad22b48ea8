# SPDX-License-Identifier: Apache-2.0
"""Tests share the cores among processes, so nothing in one of them takes all cores for itself.

Gradient boosting starts a thread for each core, and threads that wait for each other on a busy machine keep it busy:
one fit of 1,600 records took ten times as much processor time.
"""

import gc
import os
from collections.abc import Generator, Iterator
from importlib.metadata import version

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when the library is loaded


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from looking through libraries and thousands of tests again and again.

    What is there when the tests begin stays until they end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out a check that scikit-learn 1.6 asks of estimators that say they take no sparse matrices, too."""
    if version("scikit-learn").startswith("1.6."):
        items[:] = [item for item in items if "check_sample_weight_equivalence_on_sparse_data" not in item.name]


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries that look for leaks at the very end see what is left


@pytest.fixture(scope="module")
def small_attackers() -> Iterator[None]:
    """Let attackers learn less in `make test`, where a test is about what is made of their results.

    CI runs the same tests with attackers as they are.
    """
    from strategies import IS_QUICK

    if not IS_QUICK:
        yield
        return
    from sfumato.attack import attribute, membership_network, membership_scores

    settings = membership_network.MembershipNetworkSettings(epochs=2, least_steps=40)
    with pytest.MonkeyPatch.context() as patch:
        for attack in (attribute, membership_scores):
            patch.setattr(attack, "_N_TREES", 20)
        patch.setattr(membership_network, "MembershipNetworkSettings", lambda: settings)
        yield
