# SPDX-License-Identifier: Apache-2.0
"""What every anonymizer without a guide must show, whatever forms its groups; judged in plain Python."""

from collections import Counter

import numpy as np

from sfumato import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    GuaranteeError,
    KAnonymity,
    LDiversity,
    TCloseness,
)
from sfumato.testing import group_sizes, rows_of

DIAGNOSES = ["asthma", "cold", "flu", "gout"]


def diagnoses(n_records, seed):
    """Sensitive values with skew; the two most frequent always occur."""
    generator = np.random.default_rng(seed)
    drawn = generator.choice(DIAGNOSES, n_records, p=[0.15, 0.3, 0.4, 0.15])
    drawn[:2] = ["cold", "flu"]
    return generator.permutation(drawn).tolist()


def counts_by_group(released, columns, sensitive):
    """For every group of records that agree, how often each sensitive value occurs."""
    counts = {}
    for key, value in zip(rows_of(released, columns), sensitive, strict=True):
        counts.setdefault(key, Counter())[value] += 1
    return list(counts.values())


def distance(counts, everything):
    """Total variation between a group's shares and those of the whole table."""
    n, n_all = sum(counts.values()), sum(everything.values())
    return sum(abs(counts[v] / n - everything[v] / n_all) for v in everything) / 2


def bounds_that_hold(sensitive):
    """Criteria that the whole table meets, each with a judge of one group's counts."""
    everything = Counter(sensitive)
    n = len(sensitive)
    share = max(everything.values()) / n

    def likeness(counts):
        return max((counts[v] / sum(counts.values()) - everything[v] / n) / (everything[v] / n) for v in everything)

    def disclosure(counts):
        size = sum(counts.values())
        return max(abs(np.log(counts[v] / size / (everything[v] / n))) for v in everything if counts[v])

    alpha = min(1.0, share + 0.15)
    return [
        (LDiversity(2, "diagnosis"), lambda counts: len(counts) >= 2),
        (TCloseness(0.35, "diagnosis"), lambda counts: distance(counts, everything) <= 0.35 + 1e-9),
        (
            AlphaKAnonymity(alpha, 3, "diagnosis"),
            lambda counts: max(counts.values()) <= alpha * sum(counts.values()) + 1e-9 and sum(counts.values()) >= 3,
        ),
        (BetaLikeness(1.5, "diagnosis"), lambda counts: likeness(counts) <= 1.5 + 1e-9),
        (DeltaDisclosure(1.2, "diagnosis", absent="ignored"), lambda counts: disclosure(counts) <= 1.2 + 1e-9),
    ]


def assert_criteria_hold(make, table, seed):
    """Every criterion holds on fit_transform and on releases, alone and all together."""
    sensitive = diagnoses(table.n_records, seed)
    frame = table.to("pyarrow").append_column("diagnosis", [sensitive])
    names = list(table.columns)
    bounds = bounds_that_hold(sensitive)
    for chosen in [*([bound] for bound in bounds), bounds]:
        anonymizer = make(2, quasi_identifiers=names, criteria=[criterion for criterion, _ in chosen])
        released = anonymizer.fit_transform(frame)
        for leaving in (released, anonymizer.release(frame).table):
            assert leaving["diagnosis"].to_pylist() == sensitive
            groups = counts_by_group(leaving, names, sensitive)
            assert min(sum(counts.values()) for counts in groups) >= 2
            for criterion, is_met in chosen:
                assert all(map(is_met, groups)), criterion


def assert_persons_are_counted(make, table, n_persons, k):
    """A person with many records counts once."""
    generator = np.random.default_rng(n_persons)
    persons = np.append(np.arange(n_persons), generator.integers(0, n_persons, table.n_records - n_persons))
    persons = generator.permutation(persons).tolist()
    frame = table.to("pyarrow").append_column("person", [persons])
    anonymizer = make(2, criteria=[KAnonymity(k, unit="person")])
    for leaving in (anonymizer.fit_transform(frame), anonymizer.release(frame).table):
        assert leaving.column_names == list(table.columns)
        assert min(group_sizes(leaving, persons=persons).values()) >= k


def assert_k_holds(make, table, library, k, representative):
    """Every group has at least k records, no record is lost, and batches can be released."""
    anonymizer = make(k, representative=representative, random_state=0)
    sizes = group_sizes(anonymizer.fit_transform(table.to(library)))
    assert sum(sizes.values()) == table.n_records
    assert min(sizes.values()) >= k
    half = table.n_records // 2
    for rows in (np.arange(half), np.arange(half, table.n_records)):
        if len(rows) >= k:
            sizes = group_sizes(anonymizer.release(table.take(rows).to(library)).table)
            assert sum(sizes.values()) == len(rows)
            assert min(sizes.values()) >= k


def assert_order_does_not_matter(make, table, library, k, representative, seed):
    """Shuffled records get the values they got before."""
    anonymizer = make(k, representative=representative, random_state=0)
    straight = rows_of(anonymizer.fit_transform(table.to(library)))
    order = np.random.default_rng(seed).permutation(table.n_records)
    shuffled = rows_of(anonymizer.fit_transform(table.take(order).to(library)))
    assert shuffled == [straight[row] for row in order]


def assert_presence_is_bounded(make, table, seed):
    """Of the population that falls into a released group, the share of released records keeps to its bounds."""
    generator = np.random.default_rng(seed)
    is_in = generator.random(table.n_records) < 0.6
    is_in[:4] = True
    rows = np.flatnonzero(is_in)
    share = len(rows) / table.n_records
    low, high = share * generator.random(), share + (1 - share) * generator.random()
    population, frame = table.to("pyarrow"), table.take(rows).to("pyarrow")
    anonymizer = make(2, criteria=[DeltaPresence(low, high, population=population)]).fit(frame)
    released = anonymizer.release(frame).table
    # Who shares a group of records: the population's members in the fitted groups that the released groups join.
    fitted, everybody = anonymizer.partition_.apply(frame), anonymizer.partition_.apply(population)
    values = rows_of(released)
    n_released = group_sizes(released)
    value_of_fitted = dict(zip(fitted.tolist(), values, strict=True))
    n_members = Counter(value_of_fitted.get(g) for g in everybody.tolist())
    for key, number in n_released.items():
        # Members in fitted groups without any record may count as well, which only lowers the share.
        assert number / (n_members[key] + n_members[None]) <= high + 1e-9
        if low > 0:
            assert number / n_members[key] >= low - 1e-9
    assert min(n_released.values()) >= 2


def assert_impossible_presence_is_refused(make, table):
    """Bounds that not even everybody together meets are refused before any work."""
    frame = table.to("pyarrow")
    try:
        make(2, criteria=[DeltaPresence(0.0, 0.5, population=frame)]).fit(frame).release(frame)
    except (ValueError, GuaranteeError):
        return
    raise AssertionError("a share of 1 passed for one of at most 0.5")
