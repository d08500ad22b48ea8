# SPDX-License-Identifier: Apache-2.0
"""What the minimizers' study runs: the fronts of all minimizers, and the smaller experiments with the tree.

Figures 4 and 11 of Staab et al. (2024), and 8, 10 and 15, these on ACSEmployment. And the fronts of two tables again,
to see why the tree is not the best there: with smaller leaves than the paper's, with more buckets for numbers that are
not personal, and against a stronger attacker. Used by ``minimizers`` and the modules beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BY = ("figure", "table", "minimizer", "variant", "seed")
TABLES = ("communities", "lending_club", "acs_public_coverage", "acs_income", "acs_employment")
MINIMIZERS = (
    "PrivacyAwareTree",
    "UniformMinimizer",
    "FeatureSelectionMinimizer",
    "AdversarialMinimizer",
    "MutualInformationMinimizer",
    "AptMinimizer",
    "IterativeMinimizer",
)
SEEDS = (0, 1, 2)
PAPER_SCALE_SEEDS = (0, 1, 2, 3, 4)

TABLE, TREE = "acs_employment", "PrivacyAwareTree"
FRONTS, SAMPLE, ONE_ATTRIBUTE, YEARS = "fronts", "sample size", "one attribute", "years"
LEAVES, OTHERS, STRONGER = "smaller leaves", "other numbers in quarters", "stronger attacker"
#: Shares of the training part that the tree learns from; 0.05 is the paper's example.
SHARES = (1.0, 0.2, 0.05, 0.01, 0.001)
#: Marital status and sex, the paper's two.
ATTRIBUTES = ("MAR", "SEX")
LEARNED_YEAR, LATER_YEARS = 2015, (2016, 2017, 2018)
#: The tables where the tree fell behind with the first seed, and how many records a leaf has there (the paper: 100).
ASKED_WHY, SMALL_LEAF = ("communities", "lending_club"), 10
#: Whose fronts there are attacked once more by gradient boosting: the tree, and the ones that come close to it.
ATTACKED_AGAIN = {
    "communities": (TREE, "AdversarialMinimizer", "FeatureSelectionMinimizer", "MutualInformationMinimizer"),
    "lending_club": (TREE, "MutualInformationMinimizer", "IterativeMinimizer"),
}
VARIANTS = {
    SAMPLE: tuple(f"{share:g}" for share in SHARES),
    ONE_ATTRIBUTE: tuple(f"{name} {who}" for name in ATTRIBUTES for who in ("all", "one")),
    YEARS: tuple(str(year) for year in (LEARNED_YEAR, *LATER_YEARS)),
}
SHORT = {name: name.removesuffix("Minimizer") for name in MINIMIZERS}


def keys(seeds: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """List all sweeps; those that ask why run with the first seed, the quickest of them with all."""

    def key(*entries: Any) -> dict[str, Any]:
        return dict(zip(BY, entries, strict=True))

    for seed in seeds:
        yield from (key(FRONTS, table, name, "", seed) for table in TABLES for name in MINIMIZERS)
    for seed in seeds:
        for figure, variants in VARIANTS.items():
            yield from (key(figure, TABLE, TREE, variant, seed) for variant in variants)
    for table in ASKED_WHY:
        yield from (key(figure, table, TREE, "", 0) for figure in (LEAVES, OTHERS))
        for seed in seeds if table == "communities" else (0,):
            yield from (key(STRONGER, table, name, "", seed) for name in ATTACKED_AGAIN[table])
