# SPDX-License-Identifier: Apache-2.0
"""The hostile campaign: thousands of random releases, each judged by code that shares nothing with sfumato.

    python scripts/hostile.py --cases 5000 --seed 1 --jobs 2
    python scripts/hostile.py --seed 1 --case 1234        # one case again, with all that it found
    python scripts/hostile.py --cases 300 --only release

Every case follows from the seed and its number. The exit code is 1 when a promise was broken, unless what was broken
is named with --allow.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

import hostile_commands
import hostile_files
import hostile_library
import hostile_misuse
from hostile_cases import Found, TooSlow

KINDS = {**hostile_library.KINDS, **hostile_files.KINDS, **hostile_commands.KINDS, **hostile_misuse.KINDS}
SECONDS_PER_CASE = 300
CASES_AT_ONCE = 10


def kind_of(seed: int, number: int) -> str:
    """Return the kind of a case."""
    weights = np.array([weight for _, weight in KINDS.values()], float)
    random = np.random.default_rng([seed, number, 0])
    return list(KINDS)[int(random.choice(len(KINDS), p=weights / weights.sum()))]


def run_case(seed: int, number: int) -> Found:
    """Run one case and judge it."""
    kind = kind_of(seed, number)
    found = Found(kind, number)
    started = time.perf_counter()
    try:
        KINDS[kind][0](found, np.random.default_rng([seed, number, 1]))
    except TooSlow:
        found.broken("slow", [f"took more than {SECONDS_PER_CASE} seconds"])
    found.seconds = time.perf_counter() - started
    return found


def run_cases(seed: int, numbers: list[int]) -> list[Found]:
    """Run some cases, each within its time, in a process of the pool."""

    def too_slow(*_: object) -> None:
        raise TooSlow

    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, too_slow)
    every = []
    for number in numbers:
        signal.alarm(SECONDS_PER_CASE)
        every.append(run_case(seed, number))
        signal.alarm(0)
    return every


def chosen(seed: int, n_cases: int, only: str | None) -> list[int]:
    """Return the numbers of the first cases of a kind, or of all kinds."""
    numbers, number = [], 0
    while len(numbers) < n_cases:
        if only is None or kind_of(seed, number) == only:
            numbers.append(number)
        number += 1
    return numbers


def campaign(seed: int, numbers: list[int], jobs: int) -> Iterator[Found]:
    """Run cases in several processes, and yield what each found; a process that dies is a violation."""
    batches = [numbers[at : at + CASES_AT_ONCE] for at in range(0, len(numbers), CASES_AT_ONCE)]
    if jobs == 1:
        for batch in batches:
            yield from run_cases(seed, batch)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = {pool.submit(run_cases, seed, batch): batch for batch in batches}
        try:
            for future in as_completed(futures):
                try:
                    yield from future.result()
                except BrokenProcessPool:
                    batch = futures[future]
                    found = Found("process", batch[0])
                    found.broken("crash", [f"the process died in one of the cases {batch[0]} to {batch[-1]}"])
                    yield found
        finally:
            pool.shutdown(cancel_futures=True)


def show(every: list[Found], seed: int, allowed: set[str], seconds: float) -> int:
    """Print what was found, and return the exit code."""
    kinds: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    broken: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for found in every:
        own = kinds.setdefault(found.kind, Counter())
        own.update(cases=1, releases=found.releases, refusals=len(found.refusals), violations=len(found.violations))
        own["milliseconds"] += int(1000 * found.seconds)
        counts.update(found.counts)
        refusals.update(found.refusals)
        for what, sentence in found.violations:
            broken.setdefault((what, found.kind), []).append((found.number, sentence))
    print(f"{'kind':16}{'cases':>8}{'releases':>10}{'refusals':>10}{'violations':>12}{'ms a case':>11}")
    total: Counter[str] = Counter()
    for own in kinds.values():
        total.update(own)
    for kind, own in [*sorted(kinds.items()), ("all", total)]:
        each = own["milliseconds"] // max(1, own["cases"])
        print(f"{kind:16}{own['cases']:8}{own['releases']:10}{own['refusals']:10}{own['violations']:12}{each:11}")
    print("\nRefusals, by the shape of their sentence")
    for sentence, n in refusals.most_common(40):
        print(f"{n:6}  {sentence}")
    print("\nCounts")
    for name, n in sorted(counts.items()):
        print(f"{n:6}  {name}")
    shown = [found.number for found in every if found.counts["default: combinations that one record has"]]
    if shown:
        print(f"        of the cases {', '.join(map(str, shown[:30]))}")
    print("\nViolations" if broken else "\nNo violations")
    for (what, kind), all_found in sorted(broken.items()):
        mark = " (allowed)" if what in allowed else ""
        print(f"  {what}{mark} in {len(all_found)} of {kind}")
        for number, sentence in all_found[: 3 if mark else 12]:
            print(f"    --seed {seed} --case {number}  {sentence}")
    print(f"\n{total['releases']} releases judged in {seconds:.0f} seconds")
    return int(any(what not in allowed for what, _ in broken))


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5000, help="how many cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, action="append", help="the number of one case to run again")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", choices=list(KINDS), help="cases of one kind")
    parser.add_argument("--allow", default="", help="kinds of violations that are counted and do not fail, as A,B")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    started = time.perf_counter()
    numbers = asked.case or chosen(asked.seed, asked.cases, asked.only)
    allowed = set(filter(None, asked.allow.split(",")))
    every: list[Found] = []
    for found in campaign(asked.seed, numbers, 1 if asked.case else asked.jobs):
        every.append(found)
        for what, sentence in found.violations:
            if what not in allowed:
                print(f"--seed {asked.seed} --case {found.number}  {what}: {sentence}", file=sys.stderr, flush=True)
        if time.perf_counter() - started > 60 * asked.minutes:
            print(f"stopped after {len(every)} of {len(numbers)} cases", file=sys.stderr)
            break
    return show(every, asked.seed, allowed, time.perf_counter() - started)


if __name__ == "__main__":
    raise SystemExit(main())
