# SPDX-License-Identifier: Apache-2.0
"""Random small tables for the engine's tests, and the judge that compares the engine with its slow twin.

Everything the strategies draw is deliberately awkward: constants, duplicates, skew, missing values, categories that
never occur, codes of two bytes, records that weigh nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sfumato.partition.binning import Bins, bin_categories, bin_numbers
from sfumato.partition.candidates import empty_candidates
from sfumato.partition.criterion_checks import Check
from sfumato.partition.grower import Grower
from sfumato.partition.guides import (
    CHANNELS,
    ENTROPY,
    Guide,
    by_information_loss,
    by_median,
    from_labels,
    from_numbers,
    from_probabilities,
)
from sfumato.partition.records import Layout, Records, make_layout, pack_records
from sfumato.partition.scoring import Scoring, make_scratch
from sfumato.partition.split_search import find_splits
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy, make_taxonomy
from sfumato.partition.tree import Tree
from strategies import in_examples as in_examples
from twins import naive, naive_splitting


@dataclass(frozen=True, eq=False)
class Case:
    """A table after binning, a guide, and what is asked of the groups."""

    bins: list[Bins]
    columns: list[np.ndarray]
    guide: Guide
    weights: np.ndarray | None = None
    min_records: int = 1
    fall_back: bool = True
    paths: tuple[tuple[np.ndarray, np.ndarray] | None, ...] | None = None

    @property
    def n_records(self) -> int:
        return len(self.columns[0])

    @property
    def layout(self) -> Layout:
        return make_layout(self.bins)

    @property
    def records(self) -> Records:
        return pack_records(self.columns, self.guide.code_blocks, self.guide.dense, self.weights)

    @property
    def scoring(self) -> Scoring:
        return Scoring(
            self.guide.rule,
            self.guide.channel_weights,
            self.weights is not None,
            self.fall_back,
            self.min_records,
            self.taxonomy,
        )

    @property
    def taxonomy(self) -> Taxonomy:
        return NO_TAXONOMY if self.paths is None else make_taxonomy(self.layout, self.paths)

    @property
    def histogram(self) -> np.ndarray:
        return naive.histogram(self.records, self.layout, self.guide, range(self.n_records))

    def permuted(self, order: Sequence[int]) -> "Case":
        guide = replace(
            self.guide,
            dense=None if self.guide.dense is None else self.guide.dense[order],
            code_blocks=[block[order] for block in self.guide.code_blocks],
        )
        weights = None if self.weights is None else self.weights[order]
        return replace(self, columns=[column[order] for column in self.columns], guide=guide, weights=weights)

    def grower(self, checks: Sequence[Check] = (), n_threads: int = 1) -> Grower:
        return Grower(
            self.records,
            self.layout,
            self.guide,
            self.min_records,
            checks,
            self.fall_back,
            n_threads,
            taxonomy=self.taxonomy,
        )


# -- strategies ----------------------------------------------------------------------------------------------
#
# Hypothesis draws the size of a table and a seed; the seed fills it. Drawn value by value most tables would be
# constant, and nothing is ever split in those.

Random = np.random.Generator
seeds = st.integers(0, 2**32 - 1)


def sizes(max_records: int = 60) -> st.SearchStrategy[int]:
    """Numbers of records, small ones included without being the rule."""
    return st.sampled_from(range(5, max_records + 1)) | st.integers(1, max_records)


GUIDE_KINDS = ("labels", "entropy", "probabilities", "numbers", "signed", "loss", "median")


def random_missing(random: Random, n: int) -> np.ndarray | None:
    """None, or which values are missing: none, some, most or all."""
    share = random.choice([-1.0, -1.0, 0.0, 0.2, 0.2, 0.7, 1.0])
    return None if share < 0 else random.random(n) < share


def random_numbers(random: Random, n: int) -> np.ndarray:
    """Whole numbers, fractions, skewed, widely spread and constant columns."""
    kind = random.choice(["whole", "whole", "few", "eighths", "real", "skewed", "wide", "constant"])
    if kind == "whole":
        return random.integers(-3, 30, n)
    if kind == "few":
        return random.integers(0, 4, n).astype(np.float64)
    if kind == "eighths":
        return random.integers(-20, 20, n) / 8
    if kind == "real":
        return random.normal(size=n)
    if kind == "skewed":
        return np.where(random.random(n) < 0.6, 0, random.integers(0, 10, n) ** 9)
    if kind == "wide":
        return random.integers(-(1 << 62), 1 << 62, n)
    return np.full(n, random.integers(-5, 5))


def random_number_column(random: Random, n: int) -> tuple[Bins, np.ndarray]:
    return bin_numbers(random_numbers(random, n), random_missing(random, n), max_bins=int(random.choice([255, 255, 5])))


def random_category_column(random: Random, n: int) -> tuple[Bins, np.ndarray]:
    """Few or many categories, evenly or unevenly filled; some never occur."""
    n_categories = int(random.choice([1, 2, 3, 5, 8, 9, 12, 20, 300]))
    share = random.dirichlet(np.full(n_categories, random.choice([0.3, 5.0])))
    indexes = random.choice(n_categories, n, p=share).astype(np.int32)
    return bin_categories(indexes, random_missing(random, n), n_categories)


def random_paths(random: Random, bins: Bins) -> tuple[np.ndarray, np.ndarray] | None:
    """A hierarchy over the codes of a category column, or none; some of its values never occur."""
    n_codes, n_values = bins.n_bins, bins.n_values
    if bins.is_ordered or not n_codes or random.random() < 0.4:
        return None
    labels, leaves = [np.arange(n_codes)], [np.ones(n_codes, np.int64)]
    for _ in range(random.integers(0, 4)):
        starts = np.append(True, random.random(n_codes - 1) < random.choice([0.2, 0.6]))
        starts &= np.append(True, np.diff(labels[-1]) > 0)  # labels are never cut in two
        starts[n_values:] = True  # missing lies below the top alone
        label = np.cumsum(starts) - 1
        first_of = np.flatnonzero(np.append(True, np.diff(labels[-1]) > 0))
        own = np.bincount(label[first_of], leaves[-1]).astype(np.int64)
        own[: len(own) - bins.has_missing] += random.integers(0, 3, len(own) - bins.has_missing)
        labels.append(label)
        leaves.append(own)
    labels.append(np.zeros(n_codes, np.int64))
    leaves.append(np.array([leaves[-1].sum() + random.integers(0, 3)]))
    table = np.column_stack(labels).astype(np.int32)
    n_domain = max(1, int(leaves[-1][0]) - 1)
    widths = np.column_stack([(own[label] - 1) / n_domain for own, label in zip(leaves, labels, strict=True)])
    widths[:, 0] = 0.0
    return table, widths


def random_guide(random: Random, n: int, kind: str) -> Guide:
    if kind == "loss":
        return by_information_loss()
    if kind == "median":
        return by_median()
    if kind == "numbers":
        return from_numbers(random.integers(-8, 9, (n, random.integers(1, 4))).astype(np.float64))
    if kind == "probabilities":
        shares = random.integers(1, 9, (n, random.integers(2, 5))).astype(np.float64)
        return from_probabilities(shares / shares.sum(axis=1, keepdims=True))
    n_classes = int(random.integers(2, 5))
    labels = random.integers(0, n_classes, n)
    if kind == "entropy":
        return from_labels(labels, n_classes, rule=ENTROPY)
    if kind == "labels":
        return from_labels(labels, n_classes)
    # Signed: reward for labels, a cost for a personal attribute, and sometimes a dense channel beside them.
    personal = random.integers(0, 3, n).astype(np.uint8)
    weights = [1.5] * n_classes + [-random.choice([0.25, 0.5, 2.0])] * 3
    blocks, cardinalities = [labels.astype(np.uint8), personal], [n_classes, 3]
    if random.random() < 0.5:
        return Guide(CHANNELS, None, blocks, cardinalities, np.array(weights))
    return Guide(CHANNELS, random.integers(-4, 10, (n, 1)), blocks, cardinalities, np.array([0.125, *weights]))


def random_case(seed: int, n: int, n_columns: int, kind: str | None = None) -> Case:
    random = np.random.default_rng(seed)
    makers = random.choice([0, 1], n_columns)
    columns = [(random_number_column, random_category_column)[maker](random, n) for maker in makers]
    guide = random_guide(random, n, random.choice(GUIDE_KINDS) if kind is None else kind)
    return Case(
        [bins for bins, _ in columns],
        [codes for _, codes in columns],
        guide,
        random.integers(0, 6, n) if random.random() < 0.3 else None,
        min_records=int(random.integers(1, 1 + random.choice([min(n, 3), min(n, 3), min(n, 10), n]))),
        fall_back=bool(random.random() < 0.6),
        paths=tuple(random_paths(random, bins) for bins, _ in columns) if random.random() < 0.5 else None,
    )


def cases(max_records: int = 60, kind: str | None = None) -> st.SearchStrategy[Case]:
    return st.builds(random_case, seeds, sizes(max_records), st.integers(1, 4), st.just(kind))


def separated_case(seed: int, n: int = 40, **settings: Any) -> Case:
    """A table on which two different splits never tie: random channels and random reals."""
    random = np.random.default_rng(seed)
    missing = random.random(n) < 0.2
    columns = [
        bin_numbers(random.normal(size=n)),
        bin_numbers(random.normal(size=n), missing),
        bin_categories(random.integers(0, 5, n), random.random(n) < 0.1, 5),
    ]
    guide = from_numbers(random.normal(size=(n, 2)))
    return Case([bins for bins, _ in columns], [codes for _, codes in columns], guide, **settings)


# -- judging -------------------------------------------------------------------------------------------------


def fast_splits(
    hist: np.ndarray, layout: Layout, scoring: Scoring, n_ranks: int = 1024, *, only_once: bool = False
) -> list[tuple[int, naive_splitting.Split]]:
    """Ask the kernel for all candidates, `n_ranks` at a time, in the order in which they would be judged."""
    n_channels = len(scoring.channel_weights)
    scratch = make_scratch(layout, hist.shape[1], n_channels)
    ranked: list[tuple[int, naive_splitting.Split]] = []
    after = (0, np.inf, -1)
    while True:
        out = empty_candidates(1, n_ranks, layout)
        find_splits(hist, layout, scoring, scratch, after, out, 0)
        n_found = int(out.n_found[0])
        if n_found == 0:
            return ranked
        phase = int(out.phase[0])
        for r in range(n_found):
            column = int(out.column[0, r])
            split = (int(out.last_bin[0, r]), int(layout.missing[column]), bool(out.missing_left[0, r]), out.mask[0, r])
            left = [code for code in range(n_codes(layout, column)) if naive.goes_left(code, *split)]
            place = int(out.position[0, r]) - (column << 40)
            gain, n_left = float(out.gain[0, r]), int(out.n_left[0, r])
            ranked.append(
                (phase, naive_splitting.Split(gain, column, place, split[0], split[2], frozenset(left), n_left))
            )
        if only_once:
            return ranked
        after = (phase, float(out.gain[0, n_found - 1]), int(out.position[0, n_found - 1]))


def n_codes(layout: Layout, column: int) -> int:
    return int(layout.offsets[column + 1] - layout.offsets[column])


def tolerance(hist: np.ndarray, layout: Layout, scoring: Scoring) -> float:
    """How far a fast gain may be from the exact one: rounding of the node's own sums, no more."""
    total = hist[: layout.offsets[1]].sum(axis=0).tolist()
    if scoring.rule in (CHANNELS, ENTROPY):
        return float(naive_splitting.noise_floor(total, scoring)) + 1e-12 * total[0]
    return 1e-12 * total[0]


def check_tree(
    case: Case, tree: Tree, groups: np.ndarray, checks: Sequence[Check] = (), *, is_whole: bool = True
) -> None:
    """Follow a grown tree from the root and hold every decision against the exact search.

    Every split must be a candidate that passes the checks and that no other beats by more than rounding; no leaf
    may have an admissible split left (unless a leaf limit stopped the growth); the groups must be the leaves.
    """
    records, layout, scoring = case.records, case.layout, case.scoring
    waiting = [(0, list(range(case.n_records)))]
    while waiting:
        node, rows = waiting.pop()
        hist = naive.histogram(records, layout, case.guide, rows)
        admissible = [
            (phase, split)
            for phase, split in naive_splitting.find_splits(hist, layout, scoring)
            if all(naive.is_safe(check, side) for check in checks for side in naive.divide(records.codes, rows, split))
        ]
        if tree.column[node] < 0:
            assert not (is_whole and admissible), "a leaf could have been split"
            assert set(groups[rows].tolist()) == {int(tree.group[node])}
            continue
        assert admissible, "a node was split against the rules"
        column = int(tree.column[node])
        rule = (tree.threshold[node], tree.missing_codes[column], tree.missing_left[node], tree.mask[node])
        left_codes = {code for code in range(n_codes(layout, column)) if naive.goes_left(code, *rule)}
        best_phase, best = admissible[0]
        chosen = [s for p, s in admissible if (p, s.column, s.left_codes) == (best_phase, column, left_codes)]
        assert chosen, "the split is not among the candidates"
        assert chosen[0].gain >= best.gain - Fraction(tolerance(hist, layout, scoring)), (
            "a better split was passed over"
        )
        left, right = naive.divide(records.codes, rows, chosen[0])
        assert bool(tree.larger_left[node]) == (len(left) > len(right))
        waiting += [(int(tree.left[node]), left), (int(tree.right[node]), right)]


def groups_of(root: naive.Node, n_records: int) -> list[int]:
    """Number of each record's leaf, counted from left to right."""
    groups = [-1] * n_records
    for number, leaf in enumerate(root.leaves()):
        for row in leaf.rows:
            groups[row] = number
    return groups


def as_sets(groups: Sequence[int]) -> set[frozenset[int]]:
    """The groups as sets of records, whatever their numbers."""
    return {frozenset(np.flatnonzero(np.asarray(groups) == g).tolist()) for g in set(groups)}


def assert_same_trees(one: Tree, other: Tree) -> None:
    for name, part in vars(one).items():
        np.testing.assert_array_equal(part, getattr(other, name), err_msg=name)


def persons(value_of_row: Sequence[int], k: int) -> Check:
    """At least k different values on each side."""
    values = np.array(value_of_row, np.int32)
    return Check(values, int(values.max()) + 1, True, lambda counts: counts[:, 0] >= k)


def diversity(value_of_row: Sequence[int], share: float) -> Check:
    """No value has more than this share of a group's records."""
    values = np.array(value_of_row, np.int32)
    return Check(values, int(values.max()) + 1, False, lambda counts: counts.max(axis=1) <= share * counts.sum(axis=1))
