# SPDX-License-Identifier: Apache-2.0
"""What the minimizers' study runs: the fronts of all minimizers, and the smaller experiments with the tree.

Figures 4 and 11 of Staab et al. (2024), and 8, 10 and 15, these on ACSEmployment. And fronts again: against a stronger
attacker, with the paper's network as the classifier, by the thorough search, with smaller leaves than the paper's, with
more buckets for numbers that are not personal, and, on a table with hundreds of occupations, from few records. Used by
``minimizers`` and the modules beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BY = ("figure", "table", "minimizer", "variant", "seed")
TABLES = (
    "communities",
    "lending_club",
    "acs_public_coverage",
    "acs_income",
    "acs_employment",
    "health_pruned",
    "health",
)
MINIMIZERS = (
    "PrivacyAwareTree",
    "UniformMinimizer",
    "FeatureSelectionMinimizer",
    "AdversarialMinimizer",
    "MutualInformationMinimizer",
    "AptMinimizer",
    "IterativeMinimizer",
)
SEEDS = (0, 1, 2, 3, 4)

TABLE, TREE, ADVERSARIAL = "acs_employment", "PrivacyAwareTree", "AdversarialMinimizer"
FRONTS, SAMPLE, ONE_ATTRIBUTE, YEARS = "fronts", "sample size", "one attribute", "years"
LEAVES, OTHERS, STRONGER = "smaller leaves", "other numbers in quarters", "stronger attacker"
THOROUGH, FEW = "thorough search", "few records"
NETWORK = "network classifier"
#: The table with hundreds of occupations, and how many records the tree learns from; all: its front.
FEW_TABLE, N_FEW = "acs_income", 5_000
FEW_VARIANTS = ("by class", "with a hierarchy")
#: Shares of the training part that the tree learns from; 0.05 is the paper's example.
SHARES = (1.0, 0.2, 0.05, 0.01, 0.001)
#: Marital status and sex, the paper's two.
ATTRIBUTES = ("MAR", "SEX")
LEARNED_YEAR, LATER_YEARS = 2015, (2016, 2017, 2018)
#: Tables on which two changes of the tree are tried, and how many records a leaf then has (the paper: 100).
ASKED_WHY, SMALL_LEAF = ("communities", "lending_club"), 10
#: Whose fronts are attacked once more, by counting, boosting and a network, and classified once more, by the paper's
#: network: the tree, and the two next to it or more.
ATTACKED_AGAIN = {
    "communities": (TREE, ADVERSARIAL, "FeatureSelectionMinimizer", "MutualInformationMinimizer"),
    "lending_club": (TREE, "MutualInformationMinimizer", "IterativeMinimizer"),
    "acs_public_coverage": (TREE, "MutualInformationMinimizer", "IterativeMinimizer"),
    "acs_income": (TREE, "AptMinimizer", "MutualInformationMinimizer"),
    "acs_employment": (TREE, "AptMinimizer", "MutualInformationMinimizer"),
    "health_pruned": (TREE, ADVERSARIAL, "MutualInformationMinimizer"),
    "health": (TREE, ADVERSARIAL, "MutualInformationMinimizer"),
}
N_NETWORK_SEEDS = 5
VARIANTS = {
    SAMPLE: tuple(f"{share:g}" for share in SHARES),
    ONE_ATTRIBUTE: tuple(f"{name} {who}" for name in ATTRIBUTES for who in ("all", "one")),
    YEARS: tuple(str(year) for year in (LEARNED_YEAR, *LATER_YEARS)),
}
SHORT = {name: name.removesuffix("Minimizer") for name in MINIMIZERS}


def keys(seeds: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """List all sweeps; two changes of the tree are tried with the first seed only."""

    def key(*entries: Any) -> dict[str, Any]:
        return dict(zip(BY, entries, strict=True))

    for seed in seeds:
        yield from (key(FRONTS, table, name, "", seed) for table in TABLES for name in MINIMIZERS)
    for seed in seeds:
        for figure, variants in VARIANTS.items():
            yield from (key(figure, TABLE, TREE, variant, seed) for variant in variants)
        yield from (key(ONE_ATTRIBUTE, TABLE, ADVERSARIAL, variant, seed) for variant in VARIANTS[ONE_ATTRIBUTE])
    for table in ASKED_WHY:
        yield from (key(figure, table, TREE, "", 0) for figure in (LEAVES, OTHERS))
    for seed in seeds:
        yield key(THOROUGH, ASKED_WHY[0], TREE, "", seed)
        yield from (key(FEW, FEW_TABLE, TREE, variant, seed) for variant in FEW_VARIANTS)
    for table, names in ATTACKED_AGAIN.items():
        yield from (key(STRONGER, table, name, "", seed) for seed in seeds for name in names)
    for seed in seeds[:N_NETWORK_SEEDS]:
        yield from (key(NETWORK, table, name, "", seed) for table, names in ATTACKED_AGAIN.items() for name in names)
