# SPDX-License-Identifier: Apache-2.0
"""Link partial records of the same person through generalized ones: attack A7 of the minimization paper.

The attacker has two lists about the same people, one with some attributes and one with others, and uses breached
buckets to find out which entries belong together. Called by audits.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.intervals import judge, wilson_interval
from sfumato.attack.result import AttackResult
from sfumato.attack.samples import Samples, samples_for
from sfumato.errors import ParameterError
from sfumato.generalization import Generalization
from sfumato.grouping import merge_rows

Names = str | int | Iterable[str | int]


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
    """Link the entries of two lists of partial records with the help of breached buckets (A7).

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
    interval = wilson_interval(linked["rate"] * n_people, n_people, confidence)
    return AttackResult(
        attack="linkability (A7)",
        rate=linked["rate"],
        interval=interval,
        baseline=linked["baseline"],
        control=outside,
        verdict=judge(linked["rate"], interval, linked["baseline"], control=outside),
        seconds=time.perf_counter() - start,
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
