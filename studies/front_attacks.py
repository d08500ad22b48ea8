# SPDX-License-Identifier: Apache-2.0
"""Attacks on the fronts: Staab et al., *Vertical Data Minimization*, figures 5, 6, 7, 9, 12 and 14.

The fronts are those of the ``minimizers`` study, on its splits; here generalizations on them are made again and
attacked by more than the quick attacker who drew the front: surest guesses (A2, figure 5), side information (A3 to A5,
figure 6), attribute by attribute (figures 7 and 14). Figure 9 is one generalization looked at closely, figure 12
compares ways to select features.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from studies.rows import Row, one_by_one
from studies.runner import Experiment

FRONTS = {
    "5": ("acs_public_coverage", "AdversarialMinimizer"),
    "6": ("acs_income", "PrivacyAwareTree"),
    "7": ("acs_income", "PrivacyAwareTree"),
    "14": ("acs_employment", "PrivacyAwareTree"),
}
"""Whose front is attacked in which figure."""

N_PLACES, N_PLACES_OF_KNOWLEDGE = 6, 3
"""Generalizations of a front that are attacked, from its one end to the other; fewer where every attack is four."""

CERTAINTIES = (1.0, 0.5, 0.2, 0.1, 0.05)
STATISTICS = ("anova", "mutual_information", "chi_squared")
LOOKED_AT = {"alpha": 0.7, "max_leaves": 20}
"""Of figure 9."""

SEED = 0
N_SPLITS = {"7": 3, "9": 3, "12": 3, "14": 3}
"""Splits of each figure; one where the records of a split are counted (figures 5 and 6)."""


def keys() -> Iterator[Row]:
    """List the cells: a figure, what is varied in it, and the split."""
    variants = {"9": ["tree"], "12": list(STATISTICS)}
    variants |= {figure: [f"place {place}" for place in range(1, n_places(figure) + 1)] for figure in FRONTS}
    for figure, own in variants.items():
        for seed in range(N_SPLITS.get(figure, 1)):
            yield from ({"figure": figure, "variant": variant, "seed": seed} for variant in own)


def n_places(figure: str) -> int:
    """Return how many generalizations of its front a figure attacks."""
    return N_PLACES_OF_KNOWLEDGE if figure == "6" else N_PLACES


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Make what a cell is about, and attack it."""
    seed = key["seed"]
    if key["figure"] == "9":
        return _looked_at("acs_employment", seed)
    if key["figure"] == "12":
        return _selected("acs_income", key["variant"], seed)
    table, minimizer = FRONTS[key["figure"]]
    point = _at_place(made_again(table, minimizer, seed), key)
    samples, personal = _bench(table, seed).attacked
    return about(point) | _ATTACKS[key["figure"]](point.generalization, samples, personal, seed)


@lru_cache(1)
def _bench(table: str, seed: int = SEED) -> Any:
    from studies.minimization_tasks import load_task
    from studies.minimizers import Bench

    return Bench(load_task(table), seed)


@lru_cache(1)
def made_again(table: str, minimizer: str, seed: int = SEED) -> list[Any]:
    """Make the generalizations of a kept front again, from the most accurate to the least telling one."""
    from studies.front_attackers import front_of, kept_sweep, make_again

    return make_again(_bench(table, seed), minimizer, front_of(kept_sweep(table, minimizer, seed)))


def front_point(key: Mapping[str, Any]) -> Any:
    """Return the point of a kept front that a cell of figures 5, 6, 7 and 14 is about."""
    from studies.front_attackers import front_of, kept_sweep

    return _at_place(front_of(kept_sweep(*FRONTS[key["figure"]], key["seed"])), key)


def about(point: Any) -> Row:
    """Return what a cell says of the generalization that it attacks."""
    return {
        "parameters": dict(point.parameters),
        "n_buckets": point.n_buckets,
        "classifier_error": round(point.test_error, 6),
    }


def _at_place(points: Sequence[Any], key: Mapping[str, Any]) -> Any:
    place = int(key["variant"].split()[1])
    return spread(points, n_places(key["figure"]))[place - 1]


def spread(points: Sequence[Any], n: int) -> list[Any]:
    """Return n of the points, from the first to the last, as evenly as their number allows."""
    import numpy as np

    return [points[place] for place in np.linspace(0, len(points) - 1, n).round().astype(int)]


def _family(seed: int) -> Any:
    """Return the attackers: who counts, and the paper's network with one penalty, whoever does better on validation."""
    from sfumato.attack.reconstruction_adversaries import FamilySettings
    from sfumato.attack.reconstruction_learners import NetworkSettings

    network = NetworkSettings(weight_decays=(1e-4,), device="cpu")
    return FamilySettings(adversaries=("table", "network"), random_state=seed, n_jobs=1, network=network)


def _by_certainty(generalization: Any, samples: Any, personal: Sequence[str], seed: int = SEED) -> Row:
    """A2: of the guesses of A1, count only the surest."""
    import numpy as np

    from sfumato.attack.reconstruction_adversaries import answer
    from sfumato.attack.reconstruction_clues import ask
    from sfumato.attack.reconstruction_questions import rate_of

    answers = answer(ask((generalization,), samples, dict.fromkeys(personal, ())), _family(seed))
    error_of = {
        f"{share:g}": round(
            1 - float(np.mean([rate_of(own.question, own.guesses, samples.test, share) for own in answers])), 6
        )
        for share in CERTAINTIES
    }
    naive = [float((own.question.values[samples.test] == own.question.majority).mean()) for own in answers]
    return {"error_of": error_of, "naive_error": round(1 - float(np.mean(naive)), 6)}


def _by_knowledge(generalization: Any, samples: Any, personal: Sequence[str], seed: int = SEED) -> Row:
    """A1 and A3 to A5: know more and more of the record."""
    from sfumato.attack import reconstruction

    attacks = {
        "A1": reconstruction.reconstruct,
        "A3": reconstruction.reconstruct_with_non_personal,
        "A4": reconstruction.reconstruct_leaving_one_out,
        "A5": reconstruction.reconstruct_with_some_personal,
    }
    results = {
        name: attack(generalization, samples, list(personal), settings=_family(seed))
        for name, attack in attacks.items()
    }
    return {
        "error_of": {name: _error(result) for name, result in results.items()},
        "naive_error": round(1 - results["A1"].baseline, 6),
    }


def _by_attribute(generalization: Any, samples: Any, personal: Sequence[str], seed: int = SEED) -> Row:
    """A1, one attribute after the other."""
    from sfumato.attack.reconstruction import reconstruct

    result = reconstruct(generalization, samples, list(personal), settings=_family(seed))
    attributes = result.to_dict()["details"]["attributes"]
    return {
        "error": _error(result),
        "naive_error": round(1 - result.baseline, 6),
        "error_of": {name: round(1 - own["rate"], 6) for name, own in attributes.items()},
        "naive_error_of": {name: round(1 - own["baseline"], 6) for name, own in attributes.items()},
    }


def _error(result: Any) -> float:
    return round(1 - float(result.rate), 6)


_ATTACKS = {"5": _by_certainty, "6": _by_knowledge, "7": _by_attribute, "14": _by_attribute}


def _looked_at(table: str, seed: int = SEED) -> Row:
    """Make the generalization of figure 9, and count its buckets."""
    bench = _bench(table, seed)
    grid = {name: [value] for name, value in LOOKED_AT.items()}
    point = bench.sweep(bench.minimizer("PrivacyAwareTree"), bench.learned("PrivacyAwareTree"), grid)[0]
    samples, personal = bench.attacked
    buckets = dict(zip(point.generalization.names, point.generalization.n_buckets, strict=True))
    return {
        "buckets_of": buckets,
        "values_of": {name: int(samples.column(name).bins.n_values) for name in buckets},
        "n_buckets": point.n_buckets,
        "classifier_error": round(point.test_error, 6),
        "full_error": round(bench.limits[0].test_error, 6),
        **_by_attribute(point.generalization, samples, personal, seed),
    }


def _selected(table: str, statistic: str, seed: int = SEED) -> Row:
    """Sweep over the number of features that one statistic selects."""
    bench = _bench(table, seed)
    minimizer = bench.minimizer("FeatureSelectionMinimizer").set_params(statistic=statistic)
    points = bench.sweep(minimizer, bench.learned("FeatureSelectionMinimizer"))
    return {
        "points": [
            {
                "n_attributes": point.parameters["n_attributes"],
                "classifier_error": round(point.test_error, 6),
                "error": round(1 - point.test_risk, 6),
            }
            for point in points
        ]
    }


def _evidence(cells: list[Row]) -> Any:
    from studies.front_attacks_evidence import evidence

    return evidence(cells)


def _view(name: str) -> Any:
    def view(study: Any, cells: list[Row]) -> Any:
        from studies import front_attacks_views

        return getattr(front_attacks_views, name)(study, cells)

    return view


EXPERIMENT = Experiment(
    name="front_attacks",
    by=("figure", "variant", "seed"),
    keys=tuple(keys()),
    run=one_by_one(run),
    together=("figure", "seed"),
    views={name: _view(name) for name in ("certainty", "knowledge", "attributes", "buckets", "selection")},
    evidence=_evidence,
)
