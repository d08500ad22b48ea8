# SPDX-License-Identifier: Apache-2.0
"""Running parts of the work side by side."""

import os
import threading

import pytest

from sfumato.arguments import thread_count
from sfumato.errors import ParameterError
from sfumato.threads import map_in_threads, stretches


@pytest.mark.parametrize("n_threads", [1, 2, 3, 50])
def test_results_come_in_the_order_of_the_items(n_threads):
    assert map_in_threads(lambda number: number * number, range(20), n_threads) == [n * n for n in range(20)]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_keep_their_order_whichever_item_comes_first(n_threads):
    assert map_in_threads(abs, [-3, 2, -1], n_threads, costs=[1, 5, 3]) == [3, 2, 1]


def test_the_longest_item_comes_first():
    started, both_are_here = [], threading.Barrier(2, timeout=60)

    def work(name):
        started.append(name)
        if name != "short":
            both_are_here.wait()

    map_in_threads(work, ["short", "long", "longer"], 2, costs=[1, 5, 7])
    assert started[-1] == "short"


def test_nothing_to_do_gives_nothing():
    assert map_in_threads(abs, [], 2) == []


def test_this_thread_and_another_work_at_the_same_time():
    both = threading.Barrier(2, timeout=30)  # neither item ends before the other has begun

    def meet(_item):
        both.wait()
        return threading.get_ident()

    assert threading.get_ident() in (found := set(map_in_threads(meet, [0, 1], 2)))
    assert len(found) == 2


@pytest.mark.parametrize("n_threads", [1, 2])
def test_of_several_failures_the_first_in_order_is_told(n_threads):
    def fail_from_two_on(number):
        if number >= 2:
            raise ValueError(f"{number} failed")
        return number

    with pytest.raises(ValueError, match="2 failed"):
        map_in_threads(fail_from_two_on, range(40), n_threads)


def test_an_interruption_leaves_the_rest_undone():
    done = []
    main = threading.get_ident()
    has_ended = threading.Event()

    def work(number):
        if threading.get_ident() == main:
            has_ended.set()
            raise KeyboardInterrupt
        assert has_ended.wait(30)
        done.append(number)

    with pytest.raises(KeyboardInterrupt):
        map_in_threads(work, range(10_000), 2)
    assert len(done) < 10_000


@pytest.mark.parametrize("n_records", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("n_parts", [1, 2, 3, 10])
def test_stretches_cover_every_record_once(n_records, n_parts):
    runs = stretches(n_records, n_parts)
    assert [place for run in runs for place in range(run.start, run.stop)] == list(range(n_records))
    assert len(runs) == min(n_parts, n_records)


def test_no_number_of_threads_means_one():
    assert thread_count(None) == 1


def test_no_number_of_threads_means_what_joblib_was_told():
    from joblib import parallel_config

    with parallel_config(n_jobs=3):
        assert thread_count(None) == 3
    assert thread_count(None) == 1


def test_minus_one_means_all_cores():
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert thread_count(-1) == n_cores
    assert thread_count(-1 - n_cores) == 1


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2", 1_025, 99999999999999999999])
def test_numbers_of_threads_that_cannot_work_get_a_sentence(n_jobs):
    with pytest.raises(ParameterError, match=r"n_jobs=.*: expected an integer from 1 to 1,024, or -1 for all cores"):
        thread_count(n_jobs)


def test_the_family_of_attackers_takes_one_thread_unless_told_otherwise(monkeypatch):
    """What is not said is left to joblib, for which it is one."""
    import sklearn.utils.parallel

    from sfumato.attack import reconstruction_adversaries

    asked = []

    class Watched:
        def __init__(self, n_jobs, **options):
            asked.append(n_jobs)

        def __call__(self, tasks):
            return []

    monkeypatch.setattr(sklearn.utils.parallel, "Parallel", Watched)
    for n_jobs in (None, -1):
        settings = reconstruction_adversaries.FamilySettings(n_jobs=n_jobs)
        assert list(reconstruction_adversaries._answer_by_boosting([], settings)) == []
    assert asked == [None, -1]
