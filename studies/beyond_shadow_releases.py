# SPDX-License-Identifier: Apache-2.0
"""Who is in the table, for an attacker who makes releases: the likelihood ratio attack (LiRA) on releases.

The attacker knows 8,000 people, half of whom were released, and the software. Many releases of random halves say how
the released records around a person look when the person is in and when not, and a model learns what to make of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.rates import Rate
from studies.rows import Row, documents, found, how_it_was_run, one_by_one, table, where
from studies.runner import Experiment
from studies.tables import load

TABLE, N_PEOPLE = "adult-12", 8_000
K = (5, 10, 100)
REPRESENTATIVES = ("phantom", "model")
SEEDS = (0,)
#: Releases that say how a person's surroundings look, those that the attacker's model learns from, and attacked ones.
N_KNOWN, N_LEARNED, N_ATTACKED = 40, 16, 8
REDUCTIONS = (
    f"One draw of {N_PEOPLE:,} people of Adult, 12 quasi-identifiers; each release shows a random half of them, with "
    "a guide of its own.",
    f"{N_KNOWN} releases give the mean and the spread of each feature with and without a person, {N_LEARNED} train "
    f"gradient boosting on the likelihood ratios, and {N_ATTACKED} others are attacked.",
    "Intervals: 95%, Wilson, over all decisions; the same people are judged in eight releases, so they are a little "
    "narrow.",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for seed in SEEDS:
        for representative in REPRESENTATIVES:
            yield from ({"representative": representative, "k": k, "seed": seed} for k in K)


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Make many releases and attack some of them.

    `n_people` and `n_releases` (three numbers) in the key, where they are, take the place of the study's: for trying
    out.
    """
    from sfumato.attack.shadows import balanced_halves

    data = load(TABLE)
    n_people = key.get("n_people", N_PEOPLE)
    n_known, n_learned, n_attacked = key.get("n_releases", (N_KNOWN, N_LEARNED, N_ATTACKED))
    rows = np.random.default_rng([key["seed"], 1]).permutation(len(data.y))[:n_people]
    X, y = data.X.iloc[rows][data.quasi_identifiers].reset_index(drop=True), data.y[rows]
    rng = np.random.default_rng([key["seed"], 2])
    # Halves of known releases are balanced person by person. Those of the others must not be: how often a person is in
    # the rest would tell.
    others = [rng.permutation(n_people) < n_people // 2 for _ in range(n_learned + n_attacked)]
    is_in = np.concatenate([balanced_halves(n_known, n_people, rng), np.stack(others)])
    people = People(X)
    seen = np.stack([people.features(*_released(people, X[own], y[own], key, s)) for s, own in enumerate(is_in)])
    ratios = _likelihood_ratios(seen, is_in, n_known)
    learned, attacked = slice(n_known, n_known + n_learned), slice(n_known + n_learned, None)
    return {
        "rate": _learned_rule(ratios, seen, is_in, learned, attacked),
        "single": float(np.max(np.mean((ratios[attacked] > 0) == is_in[attacked][:, :, np.newaxis], axis=(0, 1)))),
        "n_judged": int(is_in[attacked].size),
    }


class People:
    """The quasi-identifiers of everybody as numbers, beside which released records are laid."""

    def __init__(self, X: Any) -> None:
        self._categories = {c: X[c].astype(str).astype("category").cat.categories for c in X if _is_text(X[c])}
        self._is_number = np.array([c not in self._categories for c in X])
        self._rows = self.coded(X)
        low, high = np.nanpercentile(self._rows[:, self._is_number], (5, 95), axis=0)
        self._scale = np.maximum(high - low, 1.0)

    def coded(self, X: Any) -> NDArray[np.float64]:
        """Return records as numbers; categories by their place among all of them."""
        import pandas as pd

        return np.column_stack([
            pd.Categorical(X[c].astype(str), self._categories[c]).codes if c in self._categories else X[c]
            for c in X
        ]).astype(np.float64)  # fmt: skip

    def features(self, shown: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return for each person how near the released combinations are, and how many records are near."""
        return np.concatenate([self._near(own, shown, sizes) for own in np.array_split(self._rows, 20)])

    def _near(
        self, own: NDArray[np.float64], shown: NDArray[np.float64], sizes: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        differs = own[:, np.newaxis] != shown
        n_differ = differs.sum(axis=2)
        apart = np.abs(own[:, np.newaxis, self._is_number] - shown[:, self._is_number]) / self._scale
        distance = np.minimum(apart, 1).sum(axis=2) + differs[:, :, ~self._is_number].sum(axis=2)
        nearest = np.sort(distance, axis=1)[:, :10]
        return np.column_stack([
            n_differ.min(axis=1), nearest[:, 0], nearest[:, :3].mean(axis=1), nearest.mean(axis=1),
            *(np.log1p(((n_differ <= n) * sizes).sum(axis=1)) for n in (1, 2)),
            np.log((np.exp(-2 * distance) * sizes).sum(axis=1) + 1e-9),
        ]).astype(np.float32)  # fmt: skip


def _is_text(column: Any) -> bool:
    return column.dtype.kind not in "if"


def _released(people: People, X: Any, y: Any, key: Mapping[str, Any], seed: int) -> tuple[Any, Any]:
    """Release some people; return the combinations that are shown, and how many records have each."""
    from sfumato import ModelGuidedAnonymizer
    from studies.models import make_model

    X = X.reset_index(drop=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guide = make_model("hgb", seed, X).fit(X, y).predict_proba(X)
        anonymizer = ModelGuidedAnonymizer(key["k"], representative=key["representative"], n_jobs=1)
        released = anonymizer.fit_transform(X, guide)
    shown, sizes = np.unique(people.coded(released), axis=0, return_counts=True)
    return shown, sizes


def _likelihood_ratios(seen: NDArray[np.float32], is_in: NDArray[np.bool_], n_known: int) -> NDArray[np.float32]:
    """Return for each release, person and feature how much better it fits releases with the person than without."""
    known, inside = seen[:n_known], is_in[:n_known, :, np.newaxis]
    with_it = (known * inside).sum(axis=0) / inside.sum(axis=0)
    without = (known * ~inside).sum(axis=0) / (~inside).sum(axis=0)
    squares = np.where(inside, known - with_it, known - without) ** 2
    spread = squares.sum(axis=0) / (n_known - 2) + (0.05 * known.std(axis=(0, 1))) ** 2
    return np.asarray(((seen - without) ** 2 - (seen - with_it) ** 2) / (2 * spread), np.float32)


def _learned_rule(
    ratios: NDArray[np.float32], seen: NDArray[np.float32], is_in: NDArray[np.bool_], learned: slice, attacked: slice
) -> float:
    """Return how often a model is right that learns from some releases and is asked about others."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    def rows(which: slice) -> tuple[Any, Any]:
        features = np.concatenate([ratios[which], seen[which]], axis=2)
        return features.reshape(-1, features.shape[2]), is_in[which].ravel()

    model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.05, min_samples_leaf=200, random_state=0)
    likely = [model.fit(*rows(learned)).predict_proba(rows(which)[0])[:, 1] for which in (learned, attacked)]
    return float(((likely[1] > np.median(likely[0])) == rows(attacked)[1]).mean())


def page(rows: list[Row]) -> str:
    """Write the table and what it says."""
    lines = [
        "# Who is in the table, for an attacker who makes releases",
        "",
        "[Attacks that look for near matches](beyond-who-is-in.md) ask one release. This attacker knows 8,000 people,",
        "4,000 of whom were released, has the software, and makes releases of random halves. So the attacker knows",
        "for every person how the release looks around them with and without them (LiRA, for releases). How often that",
        "says correctly who was released, in %, where guessing gives 50.",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
        "## Every release",
        *table(
            [
                "k",
                "representative",
                "a model that learned from other releases",
                "best of seven features, chosen afterwards",
            ],
            [
                [str(k), f"`{representative}`", str(_rate(own, "rate")), str(_rate(own, "single"))]
                for k in K
                for representative in REPRESENTATIVES
                if (own := where(rows, k=k, representative=representative))
            ],
            n_words=2,
        ),
    ]
    lines += how_it_was_run(rows, "beyond-shadow-releases", REDUCTIONS)
    return "\n".join(lines) + "\n"


def _rate(rows: list[Row], name: str) -> Rate:
    return Rate.of([(row[name], row["n_judged"]) for row in rows])


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for representative in REPRESENTATIVES:
        said = [f"{_rate(where(rows, k=k, representative=representative), 'rate')}% at k = {k}" for k in K]
        above = [str(k) for k in K if _rate(where(rows, k=k, representative=representative), "rate").low > 0.5]
        yield (
            f"`{representative}`: the attacker is right in {', '.join(said)}; above guessing by more than the interval "
            f"at k = {', '.join(above) or 'none'}."
        )


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_shadow_releases",
    by=("representative", "k", "seed"),
    keys=KEYS,
    run=one_by_one(run),
    together=("representative", "k"),
    views={"found": found(KEYS, findings)},
    documents=documents("beyond-shadow-releases", KEYS, page, lambda rows: {}),
)
