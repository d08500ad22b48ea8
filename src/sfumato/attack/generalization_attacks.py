# SPDX-License-Identifier: Apache-2.0
"""The attacks of the minimization paper on one generalization: A7 and A8 here, and a run of all, A1 to A8.

`link_records` links partial records of the same person through breached buckets. `single_out` counts the people who are
unique in a combination of buckets. `attack_generalization` runs these and the reconstruction attacks (A1 to A6), and
checks the order between them.

References
----------
Staab, R. et al. (2024). From Principle to Practice: Vertical Data Minimization for Machine Learning, section 5 and
appendix A.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.reconstruction import (
    Names,
    reconstruct,
    reconstruct_from_breaches,
    reconstruct_leaving_one_out,
    reconstruct_with_non_personal,
    reconstruct_with_some_personal,
)
from sfumato.attack.reconstruction_adversaries import FamilySettings
from sfumato.attack.reconstruction_scoring import check_order
from sfumato.attack.result import AttackResult, result_of_counts
from sfumato.attack.samples import Samples, samples_for
from sfumato.errors import ParameterError
from sfumato.generalization import Generalization
from sfumato.grouping import merge_rows

logger = logging.getLogger(__name__)
_SET_SIZES = (2, 3, 5, 10, 20)

#: Pairs of attacks, the one that knows less first.
ORDER = (("A1", "A3"), ("A3", "A5"), ("A5", "A4"), ("A1", "A6"))


def attack_generalization(
    generalization: Generalization,
    samples: Samples,
    personal: Names | None = None,
    *,
    attacks: Iterable[str] | None = None,
    certainty: float = 0.05,
    other_breaches: Sequence[Generalization] = (),
    link: tuple[Names, Names] | None = None,
    known: Names = (),
    settings: FamilySettings | None = None,
    cache: str | Path | None = None,
    progress: Callable[[str], Any] | None = None,
) -> dict[str, AttackResult]:
    """Run the attacks of the minimization paper on a generalization.

    Parameters
    ----------
    generalization : Generalization
    samples : Samples
    personal : list of str or int, optional
        Attributes to reconstruct, in the order in which A5 comes to know them; None: all categories.
    attacks : iterable of str, optional
        Some of ``"A1"`` to ``"A8"``; None: all that the other arguments allow.
    certainty : float, default=0.05
        Share of the surest guesses that count in A2.
    other_breaches : sequence of Generalization, default=()
        Other generalizations that the same people were breached under, for A6.
    link : pair of lists of str or int, optional
        Attributes on either side, for A7.
    known : list of str or int, default=()
        Columns that were breached as they are.
    settings : FamilySettings, optional
        The adversaries of A1 to A6.
    cache : path, optional
        Folder of finished results; an interrupted run goes on from there.
    progress : callable, optional
        Called with the name of each attack before it runs.

    Returns
    -------
    dict of str to AttackResult
        By the number of the attack. One that knows more than another and does worse is marked a failed attack.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.attack import FamilySettings, Samples
    >>> from sfumato.minimize import UniformMinimizer
    >>> people = pa.table({"sex": ["f", "m", "m"] * 20, "title": ["Ms", "Mr", "Mr"] * 20})
    >>> generalization = UniformMinimizer(n_buckets=1).fit(people).generalization_
    >>> counting = FamilySettings(adversaries=("table",))
    >>> found = attack_generalization(generalization, Samples(people, people, people), ["sex"], settings=counting)
    >>> {attack: round(result.rate, 2) for attack, result in found.items()}
    {'A1': 0.67, 'A2': 0.67, 'A3': 1.0, 'A4': 1.0, 'A5': 1.0, 'A8': 0.0}
    """
    arguments: dict[str, Any] = {"known": known, "settings": settings, "cache": cache}
    train, _, test = samples.frames
    runs: dict[str, Callable[[], AttackResult]] = {
        "A1": lambda: reconstruct(generalization, samples, personal, **arguments),
        "A2": lambda: reconstruct(generalization, samples, personal, certainty=certainty, **arguments),
        "A3": lambda: reconstruct_with_non_personal(generalization, samples, personal, **arguments),
        "A4": lambda: reconstruct_leaving_one_out(generalization, samples, personal, **arguments),
        "A5": lambda: reconstruct_with_some_personal(generalization, samples, personal, **arguments),
        "A8": lambda: single_out(generalization, test, prior=train),
    }
    if other_breaches:
        breaches = [generalization, *other_breaches]
        runs["A6"] = lambda: reconstruct_from_breaches(breaches, samples, personal, **arguments)
    if link is not None:
        left, right = link
        runs["A7"] = lambda: link_records(generalization, test, test, left, right, control=train)
    results = {}
    for attack in _checked(attacks, sorted(runs)):
        logger.info("running %s", attack)
        if progress is not None:
            progress(attack)
        results[attack] = runs[attack]()
    for weaker, stronger in ORDER:
        if weaker in results and stronger in results:
            results[stronger] = check_order(results[weaker], results[stronger])
    return results


def _checked(attacks: Iterable[str] | None, possible: list[str]) -> list[str]:
    if attacks is None:
        return possible
    wanted = list(attacks)
    unknown = [attack for attack in wanted if attack not in possible]
    if unknown:
        raise ParameterError(
            f"attacks names {', '.join(map(repr, unknown))}: expected some of {', '.join(possible)}. A6 needs "
            "other_breaches=, A7 needs link=."
        )
    return wanted


# -- linkability (A7) --------------------------------------------------------------------------------------------


def link_records(
    generalization: Generalization,
    breached: Any,
    partial: Any,
    left: Names,
    right: Names,
    *,
    control: Any = None,
    confidence: float = 0.95,
) -> AttackResult:
    """Link two lists of partial records through breached buckets (A7).

    For every entry with the attributes `left` the attacker names the entry with the attributes `right` that is
    likeliest to be of the same person. How often buckets of both occur together is counted in the breach; how often
    each entry occurs among those of its buckets is seen in the list itself. An entry counts as linked when its values
    are the person's: equal entries cannot be told apart, and need not be.

    Parameters
    ----------
    generalization : Generalization
    breached : frame or array
        Records in full resolution; the attacker sees them generalized only.
    partial : frame or array
        The people to link; the attacker sees the attributes `left` and the attributes `right` in full resolution, but
        not together.
    left, right : list of str or int
        Attributes of the generalization; none in both.
    control : frame or array, optional
        As many other people, who are not in the breach: what is reached for them is knowledge about people in
        general, not about those who were breached.
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `baseline` does not see the breach and names the most frequent entry. `details["by_buckets_alone"]` is the rate
        when the attacker picks any entry of the likeliest buckets, as in the paper; `details["random_value"]` and
        `details["random_entry"]` are those of picking at random.

    References
    ----------
    Staab, R. et al. (2024), section 5 and appendix A.

    Examples
    --------
    Jobs are kept apart and shifts, too, so that a job tells the shift of its person.

    >>> import pyarrow as pa
    >>> from sfumato.frames import read_table
    >>> from sfumato.generalization import generalization_from_bins
    >>> from sfumato.backends.memory import MemorySource
    >>> people = pa.table({"job": ["nurse", "smith"] * 50, "shift": ["night", "day"] * 50})
    >>> columns = MemorySource(read_table(people), ["job", "shift"]).columns
    >>> generalization = generalization_from_bins(columns, [[0, 1], [0, 1]], floor=1)
    >>> result = link_records(generalization, people, people, ["job"], ["shift"])
    >>> result.rate, result.baseline, result.verdict
    (1.0, 0.5, 'stronger than baseline')
    """
    start = time.perf_counter()
    samples = samples_for(generalization, breached, partial, partial if control is None else control)
    attributes = _checked_attributes(generalization, samples, left, right)
    linked = _link(generalization, samples, attributes, samples.validation)
    outside = None if control is None else _link(generalization, samples, attributes, samples.test)["rate"]
    n_people = samples.validation.stop - samples.validation.start
    return result_of_counts(
        "linkability (A7)",
        linked["successes"],
        n_people,
        linked["baseline"],
        control=outside,
        confidence=confidence,
        started=start,
        seed=None,
        details={
            "left": list(attributes[0]),
            "right": list(attributes[1]),
            "n_people": n_people,
            **{name: linked[name] for name in ("by_buckets_alone", "random_value", "random_entry", "n_entries")},
        },
    )


def _checked_attributes(
    generalization: Generalization, samples: Samples, left: Names, right: Names
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sides = samples.resolve(left, "left"), samples.resolve(right, "right")
    both = sorted(set(sides[0]) & set(sides[1]))
    if both or not all(sides):
        raise ParameterError(
            f"left has {len(sides[0])} columns, right has {len(sides[1])}, and {len(both)} are in both: expected some "
            "in each and none in both. Name different columns."
        )
    unknown = [name for side in sides for name in side if name not in generalization.names]
    if unknown:
        raise ParameterError(
            f"left and right name {', '.join(map(repr, unknown))}, which the generalization does not have: expected "
            "its attributes. Name generalized columns."
        )
    return sides


def _link(
    generalization: Generalization, samples: Samples, attributes: tuple[tuple[str, ...], tuple[str, ...]], people: slice
) -> dict[str, float]:
    """Return how many of some people are linked, with and without the breach."""
    bucket_left, bucket_right = (_merged_buckets(generalization, samples, names) for names in attributes)
    _, entry = _merged_values(samples, attributes[1])
    entry, bucket_left_of, bucket_right_of = entry[people], bucket_left[people], bucket_right[people]
    by_left = np.argsort(bucket_left[samples.train], kind="stable")
    breached_left, breached_right = bucket_left[samples.train][by_left], bucket_right[samples.train][by_left]
    n_of = np.bincount(entry)
    n_people = len(entry)
    entries = np.flatnonzero(n_of)
    bucket_of_entry = np.zeros(len(n_of), np.int64)
    bucket_of_entry[entry] = bucket_right_of
    in_bucket = np.bincount(bucket_right_of)
    share_in_bucket = n_of[entries] / in_bucket[bucket_of_entry[entries]]
    right = by_buckets = 0.0
    for left in np.unique(bucket_left_of):
        truth = entry[bucket_left_of == left]
        seen = slice(*np.searchsorted(breached_left, [left, left + 1]))
        together = np.bincount(breached_right[seen], minlength=int(bucket_right.max()) + 1)
        counts = together[bucket_of_entry[entries]]
        right += _hits(counts * share_in_bucket, entries, truth)
        by_buckets += _hits(counts.astype(np.float64), entries, truth)
    return {
        "successes": right,
        "rate": right / n_people,
        "by_buckets_alone": by_buckets / n_people,
        "baseline": float(n_of.max() / n_people),
        "random_value": 1 / len(entries),
        "random_entry": float(((n_of / n_people) ** 2).sum()),
        "n_entries": len(entries),
    }


def _hits(scores: NDArray[np.float64], entries: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """Return how many people are linked when the entry with the highest score is named, any of them on ties."""
    best = entries[scores >= scores.max() * (1 - 1e-12)]
    return float(np.isin(truth, best).sum() / len(best))


def _merged_buckets(generalization: Generalization, samples: Samples, names: tuple[str, ...]) -> NDArray[np.int64]:
    columns = [samples.buckets(generalization, name) for name in names]
    return merge_rows(columns, [generalization.attribute(name).n_buckets for name in names], samples.n_records)[1]


def _merged_values(samples: Samples, names: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    columns = [samples.column(name) for name in names]
    codes = [column.codes.astype(np.int64) for column in columns]
    return merge_rows(codes, [column.bins.n_bins for column in columns], samples.n_records)


# -- singling out (A8) -------------------------------------------------------------------------------------------


def single_out(
    generalization: Generalization, breached: Any, *, prior: Any = None, confidence: float = 0.95
) -> AttackResult:
    """Count the people whose breached combination of buckets is unique (A8).

    Parameters
    ----------
    generalization : Generalization
    breached : frame or array
        The records in full resolution; the attacker sees them generalized only.
    prior : frame or array, optional
        Other records in full resolution that the attacker has. The baseline uses the combinations of buckets that are
        unique among them as predicates.
    confidence : float, default=0.95
        Of the interval, for another table of as many people from the same population.

    Returns
    -------
    AttackResult
        `rate` is the share of unique people. `details` holds the size of the rarest combination, how many
        combinations are that rare, the share of people in small sets, and how likely the best predicate isolates
        exactly one person: 1 if a person is unique, else a predicate that holds by chance for one of the m records
        of the rarest combination. Chance alone, without any data, reaches about 0.37.

    Notes
    -----
    Coarser buckets join combinations, so the rarest never gets smaller.

    References
    ----------
    Staab, R. et al. (2024), section 5 and appendix A. Cohen, A. and Nissim, K. (2020). Towards formalizing the GDPR's
    notion of singling out.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.minimize import UniformMinimizer
    >>> ages = np.array([[20.0], [21.0], [22.0], [60.0]])
    >>> single_out(UniformMinimizer(n_buckets=2, floor=1).fit(ages).generalization_, ages).rate
    0.25
    """
    start = time.perf_counter()
    buckets = generalization.codes(breached)
    sizes = np.asarray(generalization.n_buckets)
    first, cell_of = _cells(buckets, sizes)
    counts = np.bincount(cell_of)
    n_records, n_alone, rarest = len(buckets), int((counts == 1).sum()), int(counts.min())
    aimed_at = (
        np.zeros(len(counts), bool) if prior is None else _aimed_at(generalization.codes(prior), buckets[first], sizes)
    )
    in_set_of = counts[cell_of]
    return result_of_counts(
        "singling out (A8)",
        n_alone,
        n_records,
        baseline=float((aimed_at & (counts == 1)).sum() / n_records),
        confidence=confidence,
        started=start,
        seed=None,
        details={
            "rarest": rarest,
            "n_rarest": int((counts == rarest).sum()),
            "n_combinations": len(counts),
            "n_records": n_records,
            "share_in_sets_below": {size: float((in_set_of < size).mean()) for size in _SET_SIZES},
            "best_predicate": _isolation(rarest),
            "best_predicate_by_chance": _isolation(n_records),
        },
    )


def _cells(buckets: NDArray[np.int32], sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    columns = [column.astype(np.int64) for column in buckets.T]
    return merge_rows(columns, sizes.tolist(), len(buckets))


def _aimed_at(known: NDArray[np.int32], targets: NDArray[np.int32], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return, for every combination, whether exactly one of the attacker's own records has it."""
    _, cell_of = _cells(np.concatenate([targets, known]), sizes)
    counts = np.bincount(cell_of[len(targets) :], minlength=int(cell_of.max()) + 1)
    return np.asarray(counts[cell_of[: len(targets)]] == 1)


def _isolation(n_records: int) -> float:
    """Return how likely a predicate that each of some records meets with chance 1/n is met by exactly one."""
    return float((1 - 1 / n_records) ** (n_records - 1))
