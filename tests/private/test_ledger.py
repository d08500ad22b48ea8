# SPDX-License-Identifier: Apache-2.0
"""The ledger: what it adds up, what it refuses, and its document."""

import contextlib
import json
import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato import GuaranteeError, InputError, ParameterError, PrivacyLedger
from sfumato.private import PrivacyGuarantee
from sfumato.private.accounting import membership_limit, zcdp_epsilon
from sfumato.private.composition import Part, compose
from sfumato.private.guarantee import neighbors
from sfumato.private.mechanisms import noisy_counts
from strategies import in_examples
from twins.every_noise import EveryNoise


def promise(epsilon, delta=0.0, unit=None, rests_on=()):
    return PrivacyGuarantee(epsilon, delta, neighbors(unit), unit, "noisy counts", rests_on)


def test_pure_promises_add_up_exactly():
    total = compose([Part(0.1)] * 3)
    assert (total.epsilon, total.delta, total.by) == (math.fsum([0.1] * 3), 0.0, "sum")


@in_examples(100)
@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=40), st.sampled_from([0.0, 1e-9, 1e-6]))
def test_the_bound_is_never_above_the_sum_and_never_below_the_largest(epsilons, delta):
    total = compose([Part(epsilon) for epsilon in epsilons], delta)
    assert max(epsilons) * 0.999 <= total.epsilon <= math.fsum(epsilons)
    assert total.delta <= delta


def exact_pure_composition(epsilon, n, delta):
    """Return the smallest epsilon of n randomized responses together: the worst case of pure promises, worked out."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    low, high = 0.0, n * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        gap = sum(
            math.comb(n, i) * max(0.0, p**i * (1 - p) ** (n - i) - math.exp(middle) * (1 - p) ** i * p ** (n - i))
            for i in range(n + 1)
        )
        low, high = (low, middle) if gap <= delta else (middle, high)
    return high


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 10), (0.1, 100), (0.5, 50), (1.0, 5)])
def test_the_bound_holds_against_the_worst_case(epsilon, n):
    bound = compose([Part(epsilon)] * n, 1e-6).epsilon
    assert exact_pure_composition(epsilon, n, 1e-6) <= bound <= n * epsilon


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (0.5, 1e-6), (0.5, 1e-9), (8.0, 1e-5)])
def test_zcdp_converts_to_an_epsilon_that_gaussian_noise_has(rho, delta):
    epsilon = zcdp_epsilon(delta, rho)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
    mu = math.sqrt(2 * rho)  # Gaussian noise with this rho; its exact delta (Balle and Wang, ICML 2018)
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert exact <= delta


def test_promises_with_rho_count_their_delta_once():
    gaussian = [Part(1.0, 1e-6, rho=0.018)] * 20
    total = compose(gaussian, 1e-6)
    assert total.by == "zCDP"
    assert total.epsilon == zcdp_epsilon(1e-6, math.fsum([0.018] * 20))
    mixed = compose([*gaussian, Part(0.5, 4e-7)], 1e-6)
    assert mixed.epsilon == zcdp_epsilon(1e-6 - 4e-7, math.fsum([0.018] * 20 + [0.125]))


def test_deltas_that_add_up_to_more_than_allowed_are_the_total():
    total = compose([Part(0.1, 1e-6)] * 3, 1e-6)
    assert total.by == "sum"
    assert math.isclose(total.delta, 3e-6)


def test_the_total_of_a_ledger_covers_every_pair_of_outputs_of_two_releases():
    """Two releases of one cell, all outputs worked out: no pair tells neighbors apart better than the total says."""
    ledger, reach = PrivacyLedger(), 8
    epsilons = (0.3, 0.9)
    for epsilon in epsilons:
        ledger.spend(promise(epsilon), what="counts")

    def chances(n, epsilon):
        source = EveryNoise(1, reach)
        noisy = noisy_counts(np.full((2 * reach + 1, 1), n), epsilon, noise=source).ravel()
        return np.bincount(noisy, weights=source.probability, minlength=2 * reach)[: reach + 1]  # complete up to there

    largest = 0.0
    for n in range(3):
        ratios = [np.log(chances(n + 1, epsilon) / chances(n, epsilon)) for epsilon in epsilons]
        together = np.add.outer(*ratios)  # the draws are independent
        largest = max(largest, np.abs(together).max())
    assert math.isclose(largest, ledger.total().epsilon, rel_tol=1e-9)


def test_a_release_beyond_the_budget_is_refused_and_not_entered(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.json", epsilon=1.0)
    ledger.spend(promise(0.75), what="May")
    before = (tmp_path / "ledger.json").read_bytes()
    with pytest.raises(GuaranteeError, match=r"to epsilon 1.25, .*at most epsilon 1, .*About epsilon 0.25 is left"):
        ledger.spend(promise(0.5), what="June")
    with pytest.raises(GuaranteeError, match="delta 1e-06: expected"):
        ledger.spend(promise(0.1, 1e-6), what="June")
    assert (tmp_path / "ledger.json").read_bytes() == before
    assert ledger.check(promise(0.25)).epsilon == 1.0
    assert len(ledger.entries) == 1
    ledger.spend(promise(0.25), what="June")
    assert [entry.what for entry in PrivacyLedger(tmp_path / "ledger.json").entries] == ["May", "June"]


def test_sums_that_floats_round_up_are_within_the_budget():
    ledger = PrivacyLedger(epsilon=0.3)
    for _ in range(3):
        ledger.spend(promise(0.1), what="a third")
    assert len(ledger.entries) == 3


def test_a_delta_in_the_budget_buys_more_releases():
    def n_releases(**budget):
        ledger = PrivacyLedger(**budget)
        for n in range(1000):
            try:
                ledger.spend(promise(0.01), what="")
            except GuaranteeError:
                return n
        raise AssertionError("the budget never ended")

    assert n_releases(epsilon=0.5) == 50
    assert n_releases(epsilon=0.5, delta=1e-6) > 90


def test_the_document_is_plain_and_comes_back(tmp_path):
    path = tmp_path / "ledger.json"
    own = promise(0.5, 1e-7, unit="person", rests_on=("a condition",))
    PrivacyLedger(path, epsilon=2.0, delta=1e-6).spend(own, what="a sample", rho=0.1)
    document = json.loads(path.read_text())
    assert document["budget"] == {"epsilon": 2.0, "delta": 1e-6}
    assert document["entries"][0]["privacy"] == own.to_dict()
    again = PrivacyLedger(path)
    assert again.entries[0].privacy == own
    assert again.entries[0].rho == 0.1
    assert again.budget == (2.0, 1e-6)
    assert again.to_dict() == document


def test_a_budget_holds_until_it_is_changed_on_purpose(tmp_path):
    path = tmp_path / "ledger.json"
    PrivacyLedger(path, epsilon=1.0).spend(promise(1.0), what="all of it")
    with pytest.raises(ParameterError, match="a budget of epsilon 5 and delta 0 for a ledger with epsilon 1"):
        PrivacyLedger(path, epsilon=5.0)
    with pytest.raises(GuaranteeError, match="Nothing is released"):
        PrivacyLedger(path).spend(promise(0.1), what="more")
    PrivacyLedger(path).change_budget(5.0)
    PrivacyLedger(path, epsilon=5.0).spend(promise(0.1), what="more")
    assert PrivacyLedger(path).total().epsilon == 1.1


def test_other_units_do_not_add_up():
    ledger = PrivacyLedger()
    ledger.spend(promise(0.5), what="records")
    with pytest.raises(InputError, match="a release for adding or removing all records of one person"):
        ledger.spend(promise(0.5, unit="person"), what="persons")


@pytest.mark.thorough
def test_two_processes_do_not_lose_a_release(tmp_path):
    path = tmp_path / "ledger.json"
    code = (
        "import sys; from sfumato import PrivacyLedger; from sfumato.private import PrivacyGuarantee\n"
        "own = PrivacyGuarantee(0.01, 0.0, 'adding or removing one record', None, 'counts', ())\n"
        "for _ in range(20): PrivacyLedger(sys.argv[1]).spend(own, what='one')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
    assert [process.wait(120) for process in running] == [0, 0]
    assert len(PrivacyLedger(path).entries) == 40


@pytest.mark.thorough
def test_two_processes_do_not_both_spend_the_last_of_a_budget(tmp_path):
    path = tmp_path / "ledger.json"
    code = (
        "import sys; from sfumato import GuaranteeError, PrivacyLedger; from sfumato.private import PrivacyGuarantee\n"
        "own = PrivacyGuarantee(0.1, 0.0, 'adding or removing one record', None, 'counts', ())\n"
        "for _ in range(8):\n"
        "    try: PrivacyLedger(sys.argv[1], epsilon=1.0).spend(own, what='one'); print('spent')\n"
        "    except GuaranteeError: print('refused')"
    )
    command = [sys.executable, "-c", code, str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = " ".join(process.communicate(timeout=120)[0] for process in running).split()
    assert (said.count("spent"), said.count("refused")) == (10, 6)
    assert len(PrivacyLedger(path).entries) == 10


def test_threads_of_one_process_wait_for_each_other(tmp_path):
    path = tmp_path / "ledger.json"

    def spend(_):
        PrivacyLedger(path).spend(promise(0.01), what="one")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(spend, range(40)))
    assert len(PrivacyLedger(path).entries) == 40


def test_threads_do_not_both_spend_the_last_of_a_budget_in_memory(monkeypatch):
    ledger, check = PrivacyLedger(epsilon=1.0), PrivacyLedger._check

    def slow(self, entries, new):
        total = check(self, entries, new)
        time.sleep(0.05)  # for the other threads to come to the same conclusion
        return total

    monkeypatch.setattr(PrivacyLedger, "_check", slow)

    def spend(_):
        with contextlib.suppress(GuaranteeError):
            ledger.spend(promise(0.75), what="counts")
            return 1
        return 0

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == 1
    assert ledger.total().epsilon == 0.75


def test_a_budget_that_another_process_set_meanwhile_is_not_taken_for_the_own(tmp_path):
    path = tmp_path / "ledger.json"
    small = PrivacyLedger(path, epsilon=1.0)
    PrivacyLedger(path, epsilon=5.0).spend(promise(0.5), what="one")
    with pytest.raises(ParameterError, match="a budget of epsilon 1 and delta 0 for a ledger with epsilon 5"):
        small.spend(promise(0.75), what="two")
    assert len(PrivacyLedger(path).entries) == 1
    any_budget = PrivacyLedger(path)
    PrivacyLedger(path).change_budget(6.0)
    any_budget.spend(promise(5.25), what="with the budget as it is now")
    assert any_budget.budget == (6.0, 0.0)


def test_a_link_to_a_ledger_is_the_ledger(tmp_path):
    path, link = tmp_path / "ledger.json", tmp_path / "here" / "link.json"
    PrivacyLedger(path, epsilon=1.0).spend(promise(0.5), what="one")
    link.parent.mkdir()
    link.symlink_to(path)
    PrivacyLedger(link).spend(promise(0.25), what="two")
    assert link.is_symlink()
    assert [entry.what for entry in PrivacyLedger(path).entries] == ["one", "two"]


def test_a_write_that_fails_enters_nothing_and_leaves_the_ledger_whole(tmp_path, monkeypatch):
    path = tmp_path / "ledger.json"
    ledger = PrivacyLedger(path, epsilon=1.0)
    ledger.spend(promise(0.5), what="one")
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.documents.json.dump", full)
    with pytest.raises(OSError, match="No space left"):
        ledger.spend(promise(0.25), what="two")
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == [".ledger.json.lock", "ledger.json"]
    assert ledger.spend(promise(0.5), what="two").epsilon == 1.0  # the failed one was not counted


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="the folder of the ledger"):
        PrivacyLedger(tmp_path / "nowhere" / "ledger.json").spend(promise(0.5), what="one")


def test_damaged_ledgers_are_explained(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="a privacy ledger whose part format"):
        PrivacyLedger(path)
    path.write_text("nothing")
    with pytest.raises(InputError, match="cannot be read as a privacy ledger"):
        PrivacyLedger(path)
    path.unlink()
    ledger = PrivacyLedger(path)
    ledger.spend(promise(0.5), what="one")
    document = json.loads(path.read_text())
    document["entries"][0]["privacy"]["epsilon"] = -3
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"entries\[0\].privacy.epsilon"):
        ledger.spend(promise(0.5), what="two")
    path.unlink()
    with pytest.raises(InputError, match="is gone: expected the file with its 1 releases"):
        ledger.spend(promise(0.5), what="two")


def test_bad_budgets_are_explained():
    with pytest.raises(ParameterError, match="delta=1e-06 without epsilon"):
        PrivacyLedger(delta=1e-6)
    with pytest.raises(ParameterError, match="epsilon=-1"):
        PrivacyLedger(epsilon=-1)
    with pytest.raises(ParameterError, match="delta=1: expected"):
        PrivacyLedger(epsilon=1, delta=1)


def test_a_notebook_shows_the_totals():
    ledger = PrivacyLedger(epsilon=1.0)
    ledger.spend(promise(0.25), what="one")
    assert "0.25" in ledger._repr_html_()


def test_results_without_noise_are_refused():
    with pytest.raises(ParameterError, match="epsilon=inf: expected a finite number"):
        PrivacyLedger().spend(promise(math.inf), what="no noise")


def test_no_entry_gives_budget_back():
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    ledger.spend(promise(0.9), what="one")
    given = PrivacyGuarantee(0.05, -1e-3, promise(1.0).adjacency, promise(1.0).unit, "noise", ())
    for bad, rho in ((promise(-0.5), 1e-3), (given, None), (promise(0.05), -1.0), (promise(0.05), math.nan)):
        with pytest.raises(ParameterError, match="expected"):
            ledger.spend(bad, what="budget back", rho=rho)
    assert [entry.what for entry in ledger.entries] == ["one"]


@pytest.mark.parametrize(("epsilon", "accuracy"), [(0.1, 0.525), (0.5, 0.622), (1.0, 0.731)])
def test_membership_accuracy(epsilon, accuracy):
    assert round(promise(epsilon).membership_limit, 3) == accuracy
    assert math.isclose(membership_limit(epsilon, 0.01), (math.exp(epsilon) + 0.01) / (1 + math.exp(epsilon)))
