# SPDX-License-Identifier: Apache-2.0
"""Learning from regions: what k-anonymity costs a model that learns from what groups share, on raw test records.

Beside it a model that learns from one point per group, asked about raw and about recoded records, the paper's
Algorithm 1 in its true form, regions that do not tell classes apart, and the classic partitions under regions.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.charts import Panel, Style, draw
from studies.clock import processor_seconds
from studies.models import MODELS, make_model
from studies.rows import Row, how_it_was_run, signed, table, where
from studies.runner import Experiment
from studies.summaries import interval
from studies.tables import TITLES, load
from studies.views import View

K = (10, 100, 1000)
LARGE_K = (500, 1000)
WAYS = {
    "points": "points",
    "paper": "the paper's Algorithm 1",
    "plain": "regions without classes",
    "regions": "regions",
}
CLASSICS = {
    "mondrian": "median Mondrian",
    "information_loss": "information-loss Mondrian",
    "hilbert": "Hilbert",
    "rplus_tree": "R+-tree",
}
#: Floors beside the default on Adult, by the k that they are run with, and how many splits.
FLOORS = {10: {1: 1, 3: 1, 5: 1, 10: 5, 50: 1}, 100: {20: 5, 100: 1}, 1000: {20: 5, 1000: 1}}
DEFAULT_FLOOR = {10: 20, 100: 50, 1000: 50}
FLOOR_TABLE = "adult-12"
#: Number of splits of every table and model, and those of the comparison with the classics.
SPLITS = {
    "adult-12": {"hgb": 5, "lr": 5, "rf": 5, "gb": 5, "nn": 5},
    "acs-income-10": {"hgb": 5, "lr": 5, "rf": 5, "gb": 5, "nn": 5},
    "lending-club-18": {"hgb": 5, "lr": 5, "rf": 5, "gb": 5, "nn": 5},
}
COMPARED = {"hgb": 5, "nn": 5}
REDUCTIONS = (
    "Splits of 80/20, five each. Intervals: 95%, Student's t over splits, of the paired differences.",
    "ACSIncome: Massachusetts, 40,114 records. Lending Club 2007 to 2011: 18 of 24 columns are quasi-identifiers.",
    "The network stops early and sees at most 64 categories of a column, as the logistic regression does.",
    "*Points*: the phantom representative, sfumato's default. *Recoded*: the same models, with test records that went "
    "through the same groups.",
    "*The paper's Algorithm 1*: one-hot columns, scikit-learn's tree on the model's predictions, the member nearest "
    "the median among those with the commonest label; the tree is grown on the records that are released.",
    "Floors beside the default: Adult alone, one split of those of which one is enough to see what they cost.",
)


def keys() -> Iterator[Row]:
    """List the cells: of every table, model and split the raw model first."""
    for seed in range(5):
        for name, models in SPLITS.items():
            for model, n in models.items():
                if seed >= n:
                    continue
                own = {"table": name, "model": model, "seed": seed}
                yield {**own, "method": "raw", "k": 0}
                yield from ({**own, "method": way, "k": k} for way in WAYS for k in K)
                if name == FLOOR_TABLE:
                    for k, floors in FLOORS.items():
                        yield from ({**own, "method": f"floor-{f}", "k": k} for f, n in floors.items() if seed < n)
                if seed < COMPARED.get(model, 0):
                    yield {**own, "method": "regions", "k": 500}
                    yield from ({**own, "method": method, "k": k} for method in CLASSICS for k in LARGE_K)


def run(keys: Sequence[Mapping[str, Any]], paper_scale: bool = False) -> Iterator[Row]:
    """Run the cells of one table, model and split, which share the model trained on raw records."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import train_test_split

    warnings.filterwarnings("ignore")  # non-converged networks and constant columns
    name, model, seed = (keys[0][entry] for entry in ("table", "model", "seed"))
    data = load(name)
    X_train, X_test, y_train, y_test = train_test_split(
        data.X, data.y, test_size=0.2, random_state=seed, stratify=data.y
    )
    X_train = X_train.reset_index(drop=True)
    raw = make_model(model, seed, data.X).fit(X_train, y_train)

    def scores(fitted: Any) -> Row:
        ranking = roc_auc_score(y_test, fitted.predict_proba(X_test)[:, 1])
        return {"accuracy": _percent(fitted.score(X_test, y_test)), "ranking": _percent(ranking)}

    for key in keys:
        start = processor_seconds()
        if key["method"] == "raw":
            found = scores(raw)
        elif key["method"] == "paper":
            from studies.paper_method import PaperAnonymizer

            anonymizer = PaperAnonymizer(key["k"], data.quasi_identifiers).fit(X_train, raw.predict(X_train))
            again = make_model(model, seed, data.X).fit(anonymizer.transform(X_train), y_train)
            recoded = again.score(anonymizer.transform(X_test), y_test)
            found = {**scores(again), "transformed": _percent(recoded), "n_groups": anonymizer.n_groups_}
        else:
            wrapped = _wrapped(key, make_model(model, seed, data.X), raw, data.quasi_identifiers)
            wrapped.fit(X_train, y_train)
            found = {**scores(wrapped), "n_groups": int(wrapped.anonymizer_.n_groups_)}
            if key["method"] == "points":
                recoded = wrapped.estimator_.score(wrapped.anonymizer_.transform(X_test), y_test)
                found["transformed"] = _percent(recoded)
        yield {**found, "seconds": round(processor_seconds() - start, 2)}


def _wrapped(key: Mapping[str, Any], model: Any, raw: Any, quasi_identifiers: list[str]) -> Any:
    """Return the unfitted model behind the method of a key."""
    from sfumato import AnonymizedClassifier, ModelGuidedAnonymizer
    from studies.methods import METHODS

    k, seed = key["k"], key["seed"]
    if key["method"] in CLASSICS:
        anonymizer = METHODS[key["method"]].make(k, quasi_identifiers)
    else:
        anonymizer = ModelGuidedAnonymizer(k, quasi_identifiers=quasi_identifiers, n_jobs=1)
    kind = _plain_classifier() if key["method"] == "plain" else AnonymizedClassifier
    learn_from = "points" if key["method"] == "points" else "regions"
    floor = int(key["method"].removeprefix("floor-")) if key["method"].startswith("floor-") else None
    return kind(
        model, anonymizer=anonymizer, guide_estimator=raw, learn_from=learn_from, floor=floor, random_state=seed
    )


def _plain_classifier() -> Any:
    """Return a classifier that learns from regions which do not tell classes apart.

    A drawn record has the values that people of its group have, whatever their class, and the shares of classes in
    its group: the plainer idea, which the library does not offer because it loses more.
    """
    from sklearn.base import clone

    from sfumato import AnonymizedClassifier
    from sfumato.anonymize.guide_from_target import fit_weighted, takes_weights
    from sfumato.frames import read_table
    from sfumato.regions import TargetCoding

    class PlainClassifier(AnonymizedClassifier):
        def _train_on_regions(self, anonymizer: Any, fitted: Any, y: Any, weight: Any, floor: int) -> Any:
            group, nobody = fitted.group, np.zeros(len(y), np.int32)
            self.regions_ = regions = anonymizer._describe_regions(fitted, TargetCoding(), np.asarray(y), floor)
            drawn = regions.draw_beside(group, nobody, np.random.default_rng(self.random_state))
            records = fitted.table.replaced(drawn.columns, drop=anonymizer.schema_.dropped)
            names = {*anonymizer.schema_.dropped, *anonymizer.schema_.quasi_identifiers}
            if set(fitted.table.names) != names or not takes_weights(self.estimator):
                return fit_weighted(clone(self.estimator), records, y, weight)
            counts = np.stack([np.bincount(group, y == label, regions.n_groups) for label in np.unique(y)], axis=1)
            share = (counts / counts.sum(axis=1, keepdims=True))[group]
            row, label = np.nonzero(share)
            copies = read_table(records).replaced({}, keep_rows=row)
            return fit_weighted(clone(self.estimator), copies, np.unique(y)[label], share[row, label])

    return PlainClassifier


def _percent(share: float) -> float:
    return round(100 * float(share), 3)


class _Found:
    """Cells of complete splits, as arrays over splits."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)

    def places(self) -> list[tuple[str, str]]:
        """List tables and models with at least one complete split, in the order of `SPLITS`."""
        return [(name, model) for name, models in SPLITS.items() for model in models if self._seeds(name, model)]

    def _seeds(self, name: str, model: str) -> list[int]:
        own = where(self.rows, table=name, model=model)
        wanted = {("raw", 0), *((way, k) for way in WAYS for k in K)}
        return [
            seed
            for seed in range(5)
            if wanted <= {(row["method"], row["k"]) for row in where(own, seed=seed)}
        ]  # fmt: skip

    def values(self, name: str, model: str, method: str, k: int, what: str = "accuracy") -> NDArray[np.float64]:
        """Return a result over the complete splits; recoded test records count as a method of their own."""
        if method == "recoded":
            method, what = "points", "transformed"
        own = where(self.rows, table=name, model=model, method=method, k=k)
        of_seed = {row["seed"]: row[what] for row in own}
        return np.array([of_seed[seed] for seed in self._seeds(name, model)])

    def loss(self, name: str, model: str, method: str, k: int, what: str = "accuracy") -> NDArray[np.float64]:
        """Return how much a method changes a result, split by split."""
        return self.values(name, model, method, k, what) - self.values(name, model, "raw", 0, what)

    def compared(self, name: str, model: str, method: str, k: int) -> NDArray[np.float64]:
        """Return by how much guided partitions are ahead of classic ones, split by split, all under regions."""
        pairs = [
            {row["seed"]: row["accuracy"] for row in where(self.rows, table=name, model=model, method=m, k=k)}
            for m in ("regions", method)
        ]
        return np.array([pairs[0][seed] - pairs[1][seed] for seed in sorted(pairs[0].keys() & pairs[1].keys())])

    def floors(self) -> list[tuple[str, int, int, NDArray[np.float64], NDArray[np.float64]]]:
        """List model, k and floor with the change against raw and against the default, over the splits of each."""
        made = []
        for model in SPLITS[FLOOR_TABLE]:
            own = where(self.rows, table=FLOOR_TABLE, model=model)
            raw = {row["seed"]: row["accuracy"] for row in where(own, method="raw")}
            for k, floors in FLOORS.items():
                default = {row["seed"]: row["accuracy"] for row in where(own, method="regions", k=k)}
                for floor in floors:
                    rows = where(own, method=f"floor-{floor}", k=k)
                    pairs = [(row["accuracy"] - raw[seed], row["accuracy"] - default[seed])
                             for row in rows if (seed := row["seed"]) in raw and seed in default]  # fmt: skip
                    if pairs:
                        against_raw, against_default = np.array(pairs).T
                        made.append((model, k, floor, against_raw, against_default))
        return made


SHOWN = ("points", "recoded", "paper", "plain", "regions")
HEADERS = ("points", "recoded", "Algorithm 1", "plain regions", "regions")


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    found = _Found(rows)
    lines = [
        "# Learning from regions",
        "",
        "A model is trained on raw records, the records are put into groups of at least k, and the model is trained",
        "again on what is known of the groups. It is tested on raw records that it has not seen. *Points*: one",
        "invented record per group. *Recoded*: the same, asked about test records that went through the same groups.",
        "*Algorithm 1*: the method of Goldsteen et al. in its true form. *Plain regions*: values that several people",
        "of a group have. *Regions*: the same for each class, the library's default",
        "([how and why](../learning-from-regions.md)). Points of accuracy against the model trained on raw records.",
        "",
        "![change of accuracy over k for every way of learning](beyond-regions.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(found)),
        "",
    ]
    for name in SPLITS:
        own = [model for table_name, model in found.places() if table_name == name]
        if own:
            lines += [f"## {TITLES[name]}", "", *_accuracy_table(found, name, own)]
    lines += [*_floors(found), *_classics(found)]
    lines += how_it_was_run(rows, "beyond-regions", REDUCTIONS)
    return "\n".join(lines) + "\n"


def _accuracy_table(found: _Found, name: str, models: Sequence[str]) -> list[str]:
    lines = []
    for model in models:
        for k in K:
            raw = found.values(name, model, "raw", 0).mean()
            ranking = found.loss(name, model, "regions", k, "ranking").mean()
            shown = [_with_half(found.loss(name, model, method, k)) for method in SHOWN]
            n = len(found.values(name, model, "raw", 0))
            lines.append([MODELS[model], str(n), str(k), f"{raw:.2f}", *shown, signed(ranking)])
    return table(["model", "splits", "k", "raw", *HEADERS, "regions, area under the curve"], lines)


def _with_half(differences: NDArray[np.float64]) -> str:
    low, high = interval(differences)
    return f"{signed(differences.mean())} ± {(high - low) / 2:.2f}"


def _floors(found: _Found) -> list[str]:
    made = found.floors()
    if not made:
        return []
    lines = [
        [
            MODELS[model],
            str(k),
            str(floor),
            str(len(raw)),
            *(_with_half(own) if len(raw) > 1 else signed(own.mean()) for own in (raw, default)),
        ]
        for model, k, floor, raw, default in made
    ]
    return [
        "## What the floor costs",
        "",
        f"{TITLES[FLOOR_TABLE]}: what changes if every number counts more or fewer people than by default, which is",
        "k, but at least 20 and at most 50. [What it buys](beyond-members-of-models.md).",
        *table(["model", "k", "floor", "splits", "against raw", "against the default"], lines),
    ]


def _splits(n: int) -> str:
    return "one split" if n == 1 else f"{n} splits"


def _floor_findings(found: _Found) -> Iterator[str]:
    made = found.floors()
    for k, floors in FLOORS.items():
        for floor in floors:
            own = {model: raw for model, own_k, of, raw, _ in made if (own_k, of) == (k, floor)}
            losses = {model: raw.mean() for model, raw in own.items()}
            if len(losses) < len(SPLITS[FLOOR_TABLE]):
                continue
            worst = min(losses, key=losses.__getitem__)
            yield (
                f"{TITLES[FLOOR_TABLE].split(',')[0]}, a floor of {floor} at k = {k} instead of {DEFAULT_FLOOR[k]}: "
                f"{signed(np.mean(list(losses.values())))} against raw records on average, at worst "
                f"{signed(losses[worst])} ({MODELS[worst]}), {_splits(min(map(len, own.values())))}."
            )


def _comparisons(found: _Found) -> list[tuple[str, str, str, int, NDArray[np.float64]]]:
    made = [
        (name, model, method, k, found.compared(name, model, method, k))
        for name, models in SPLITS.items()
        for model in COMPARED
        if model in models
        for method in CLASSICS
        for k in LARGE_K
    ]
    return [entry for entry in made if len(entry[4])]


def _classics(found: _Found) -> list[str]:
    made = _comparisons(found)
    if not made:
        return []
    lines = []
    for name, model, k in dict.fromkeys((name, model, k) for name, model, _, k, _ in made):
        own = {method: ahead for n, m, method, size, ahead in made if (n, m, size) == (name, model, k)}
        n = min(map(len, own.values()))
        shown = [_with_half(own[method]) if method in own else "" for method in CLASSICS]
        lines.append([TITLES[name].split(",")[0], MODELS[model], str(n), str(k), *shown])
    return [
        "## Guided and classic partitions, both under regions",
        "",
        "By how many points a model is more accurate with the groups of `ModelGuidedAnonymizer` than with those of a",
        "classic method, both learning from regions.",
        *table(["table", "model", "splits", "k", *CLASSICS.values()], lines, n_words=2),
    ]


def findings(found: _Found) -> Iterator[str]:
    """Return the conclusions in words."""
    for name in SPLITS:
        models = [model for table_name, model in found.places() if table_name == name]
        if not models:
            continue
        parts = []
        for k in K:
            losses = {model: found.loss(name, model, "regions", k).mean() for model in models}
            worst = min(losses, key=losses.__getitem__)
            parts.append(
                f"at k = {k} {signed(np.mean(list(losses.values())))} on average, at worst {signed(losses[worst])} "
                f"({MODELS[worst]})"
            )
        yield f"{TITLES[name]}, {len(models)} models that learn from regions: {'; '.join(parts)}."
        for other, words in zip(SHOWN[:-1], HEADERS[:-1], strict=True):
            ahead = [
                found.values(name, model, "regions", k) - found.values(name, model, other, k)
                for model in models
                for k in K
            ]
            below = [
                f"{MODELS[model]} at k = {k} ({signed(ahead[i * len(K) + j].mean())})"
                for i, model in enumerate(models)
                for j, k in enumerate(K)
                if interval(ahead[i * len(K) + j])[1] < 0
            ]
            yield (
                f"{TITLES[name].split(',')[0]}: regions are ahead of {words} in "
                f"{sum(a.mean() > 0 for a in ahead)} of {len(ahead)} rows, by {signed(np.mean(np.concatenate(ahead)))} "
                f"points on average; behind by more than the interval: {'; '.join(below) or 'nowhere'}."
            )
    yield from _floor_findings(found)
    made = _comparisons(found)
    if made:
        ahead = [entry[4].mean() for entry in made]
        name, model, method, k, worst = made[int(np.argmin(ahead))]
        clearly = [sum(interval(sign * entry[4])[0] > 0 for entry in made) for sign in (1, -1)]
        yield (
            f"Guided partitions against classic ones, all under regions, k = 500 and 1000: ahead in "
            f"{sum(value > 0 for value in ahead)} of {len(ahead)} comparisons, by {signed(np.mean(ahead))} points on "
            f"average; by more than the interval ahead in {clearly[0]} and behind in {clearly[1]}; worst against "
            f"{CLASSICS[method]} on {TITLES[name].split(',')[0]} with {MODELS[model]} at k = {k}: "
            f"{signed(worst.mean())}."
        )


STYLES = {
    "regions": Style("#d55e00", "circle", 2.6),
    "plain regions": Style("#e69f00", "diamond"),
    "recoded": Style("#009e73", "triangle"),
    "points": Style("#0072b2", "square"),
    "Algorithm 1": Style("#cc79a7", "circle"),
    "raw records": Style("#1f2328", "", 1.2, "6 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw the change of accuracy over k."""
    found = _Found(rows)
    panels = [
        Panel(
            f"{TITLES[name].split(',')[0].removesuffix(' 2007-2011')}: {MODELS[model]}",
            {
                words: [(k, float(found.loss(name, model, method, k).mean())) for k in K]
                for method, words in zip(SHOWN, HEADERS, strict=True)
            },
            {"raw records": 0.0},
        )
        for name, model in found.places()
    ]
    label = "Change of accuracy in points over k, for every way of learning, table and model"
    return {"beyond-regions.svg": draw(panels, STYLES, columns=3, label=label)}


def _view(study: Any, rows: list[Row]) -> View:
    found = _Found(rows)
    if not found.places():
        return View(["No split is complete yet.", ""])
    return View([*(f"- {sentence}" for sentence in findings(found)), ""], charts(rows))


def _documents(rows: list[Row]) -> dict[str, str]:
    if not _Found(rows).places():
        return {}
    drawn = {f"docs/results/{file}": text for file, text in charts(rows).items()}
    return {"docs/results/beyond-regions.md": page(rows), **drawn}


EXPERIMENT = Experiment(
    name="beyond_regions",
    by=("table", "model", "seed", "method", "k"),
    keys=tuple(keys()),
    run=run,
    together=("table", "model", "seed"),
    views={"found": _view},
    documents=_documents,
)
