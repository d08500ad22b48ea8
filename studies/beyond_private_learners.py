# SPDX-License-Identifier: Apache-2.0
"""What differential privacy costs a learner that is no strawman: four tables, three learners, up to five budgets.

A private forest answers the larger class of Adult at every epsilon, and does no better without noise. So every private
learner stands here beside itself without noise: the difference is the price of privacy. Membership attacks with shadow
models stand beside the limit that the guarantee sets to all attacks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from studies.charts import Panel, Style, draw
from studies.public_knowledge import BOUNDS, categories_of, load_known
from studies.rows import Row, documents, found, has, how_it_was_run, mean, one_by_one, table, where
from studies.runner import Experiment

TABLES = {
    "adult-12": "Adult, 12 columns",
    "acs-income": "ACSIncome 2018, 10 columns",
    "lending-club-18": "Lending Club 2007-2011, 24 columns",
    "nursery": "Nursery, 8 columns, 5 classes",
}
LEARNERS = {
    "logistic": "logistic regression",
    "boosting": "explainable boosting",
    "network": "network",
    "plain network": "scikit-learn's network",
}
NO_NOISE, NEARLY_NONE = 0.0, 100.0
EPSILONS = (0.1, 0.5, 1.0, 3.0, NO_NOISE)
OF_LEARNER = {
    "logistic": EPSILONS,
    "boosting": EPSILONS,
    "network": (1.0, 3.0, NO_NOISE),
    "plain network": (NO_NOISE,),
}
DELTA = 1e-6
SEEDS = (0, 1, 2, 3, 4)
MOST_TRAINED = 25_000
ATTACKED, N_SHADOWS = 8_000, 64
ATTACKS = {"threshold": "loss threshold", "lira": "LiRA", "rmia": "RMIA"}
VICTIMS = (
    ("forest", NO_NOISE), ("logistic", NO_NOISE), ("logistic", 3.0), ("logistic", 1.0), ("logistic", 0.5),
    ("boosting", 3.0), ("boosting", 1.0), ("boosting", 0.5), ("network", 3.0), ("network", 1.0),
    ("counts", 1.0), ("counts", 0.5), ("release", 1.0), ("release", 0.5),
)  # fmt: skip
#: Victims that are no learners of the other tables: forests of these releases, trained on them.
RELEASES = {"counts": "forest on a release of counts", "release": "forest on a private release"}
VICTIM_WORDS = {"forest": "random forest", **LEARNERS, **RELEASES}
N_OTHERS, K_OF_OTHERS = 5_000, 10

REDUCTIONS = (
    f"Splits in halves, at most {MOST_TRAINED:,} records for training and as many to test on; delta {DELTA:g}; every "
    "record is a person.",
    "Edges and categories are public: round numbers over published ranges, code books, what a form lets one choose "
    "(`studies/public_knowledge.py`).",
    "All settings of the learners are defaults, chosen on Bank Marketing, FARS, the census of 1994/95, ACS employment "
    "and ACS public coverage, which are not among these tables.",
    "*No noise* is the same logistic regression with an infinite epsilon. interpret-core and Opacus have none, so "
    f"boosting and the network run with epsilon {NEARLY_NONE:g}. Boosting knows two classes only.",
    "The network (Opacus, one hidden layer of 64) has no cells with epsilon below 1: it takes longest. Scikit-learn's "
    "has the same layer and stops early.",
    "AUC of more than two classes: the mean over classes against all others, weighted by their records.",
    f"Attacks: {ATTACKED:,} records of Adult, half of them members, {N_SHADOWS} shadow models with noise of their own, "
    "one split.",
    f"Forests on releases: of counts in the cells of {N_OTHERS:,} other people (k = {K_OF_OTHERS}, values from their "
    "regions), and of a `PrivateAnonymizer` (drawn values). Every shadow model has a release of its own.",
)


def keys() -> Iterator[Row]:
    """List the cells; an epsilon of 0 stands for no noise."""
    for seed in SEEDS:
        for name in TABLES:
            for learner, epsilons in OF_LEARNER.items():
                if (name, learner) == ("nursery", "boosting"):
                    continue
                for epsilon in epsilons:
                    yield {"table": name, "learner": learner, "epsilon": epsilon, "seed": seed, "attacked": False}
    for learner, epsilon in VICTIMS:
        yield {"table": "adult-12", "learner": learner, "epsilon": epsilon, "seed": 0, "attacked": True}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Train and test one private model, or attack it.

    `n_records` in the key, where there is one, limits the records of the table: for trying out.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "epsilon=inf")  # the learners without noise are there to compare with
        if key["attacked"]:
            return _attack(key, key.get("n_records") or ATTACKED)
        most = key.get("n_records") or (10**9 if paper_scale else MOST_TRAINED)
        return _accuracy(key, most)


def learner(key: Mapping[str, Any], X: Any, classes: Any) -> Any:
    """Return the unfitted model of a key."""
    from sfumato.private import PrivateBoostingClassifier, PrivateLogisticRegression, PrivateNetworkClassifier
    from studies.models import make_model

    if key["learner"] == "forest":
        return make_model("rf", key["seed"], X)
    if key["learner"] == "plain network":
        return _plain_network(key, X)
    public: dict[str, Any] = {"bounds": BOUNDS[key["table"]], "categories": categories_of(key["table"], X)}
    if key["learner"] in RELEASES:
        return _forest_on_release(key, X, list(classes), public)
    public |= {"classes": list(classes), "delta": DELTA}
    if key["learner"] == "logistic":
        return PrivateLogisticRegression(key["epsilon"] or math.inf, **public)
    make: Any = {"boosting": PrivateBoostingClassifier, "network": PrivateNetworkClassifier}[key["learner"]]
    return make(key["epsilon"] or NEARLY_NONE, **public)


def _forest_on_release(key: Mapping[str, Any], X: Any, labels: list[Any], public: Mapping[str, Any]) -> Any:
    """Return a forest that learns from a release with epsilon of its training records."""
    from sfumato import AnonymizedClassifier, PrivateAnonymizer
    from sfumato.auditing.made_tables import CellsOfOthers, LearnsFromCounts, LearnsFromPrivateRelease
    from studies.models import make_model

    forest = make_model("rf", key["seed"], X)
    if key["learner"] == "release":
        return LearnsFromPrivateRelease(forest, PrivateAnonymizer(key["epsilon"], DELTA, labels=labels, **public))
    every, y = load_known(key["table"])
    # The people of the attack are the first of this order; these come from its end.
    rows = np.random.default_rng(key["seed"]).permutation(len(y))[-N_OTHERS:]
    cells = CellsOfOthers(AnonymizedClassifier(forest, k=K_OF_OTHERS), every.iloc[rows], y[rows])
    return LearnsFromCounts(forest, cells, key["epsilon"], labels)


def _plain_network(key: Mapping[str, Any], X: Any) -> Any:
    """Return scikit-learn's network on the cells that the private ones see."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from sfumato.frames import read_table
    from sfumato.private.encoding import PublicEncoding

    encoding = PublicEncoding(list(X.columns), BOUNDS[key["table"]], categories_of(key["table"], X))
    return make_pipeline(
        FunctionTransformer(lambda frame: encoding.one_hot(read_table(frame))),
        MLPClassifier((64,), early_stopping=True, random_state=key["seed"]),
    )


def area(truth: Any, shares: Any, classes: Any) -> float:
    """Return the area under the ROC curve; of several classes, the mean against all others, weighted by records."""
    from sklearn.metrics import roc_auc_score

    if len(classes) == 2:
        return float(roc_auc_score(truth == classes[1], shares[:, 1]))
    present = [place for place, own in enumerate(classes) if 0 < (truth == own).sum() < len(truth)]
    areas = [roc_auc_score(truth == classes[place], shares[:, place]) for place in present]
    return float(np.average(areas, weights=[(truth == classes[place]).sum() for place in present]))


def _accuracy(key: Mapping[str, Any], most: int) -> Row:
    X, y = load_known(key["table"])
    order = np.random.default_rng(key["seed"]).permutation(len(y))
    train, test = order[: len(y) // 2][:most], order[len(y) // 2 :][:most]
    model = learner(key, X, np.unique(y)).fit(X.iloc[train], y[train])
    shares = model.predict_proba(X.iloc[test])
    _, counts = np.unique(y[test], return_counts=True)
    return {
        "accuracy": round(100 * float((model.classes_[shares.argmax(axis=1)] == y[test]).mean()), 3),
        "auc": round(area(y[test], shares, model.classes_), 4),
        "blind": round(100 * float(counts.max() / len(test)), 3),
        "n_train": len(train),
    }


def _attack(key: Mapping[str, Any], n_records: int) -> Row:
    from studies.attacked_halves import attack_on_half

    X, y = load_known(key["table"])
    rows = np.random.default_rng(key["seed"]).permutation(len(y))[:n_records]
    X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    victim = attack_on_half(
        X, y, learner(key, X, np.unique(y)), attacks=tuple(ATTACKS), n_shadows=N_SHADOWS, seed=key["seed"]
    )
    return {
        "accuracy": round(100 * victim.accuracy, 3),
        "attacks": {
            name: {"rate": round(result.rate, 4), "interval": [round(end, 4) for end in result.interval]}
            for name, result in victim.membership.items()
        },
        "n_train": victim.n_train,
    }


# -- the page ------------------------------------------------------------------------------------------------


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Learners with differential privacy",
        "",
        "A private model can be weak because of its noise, or because it is a weak model. Here every private learner",
        "stands beside itself without noise: the difference is the price of privacy. Test accuracy in percent on raw",
        "records, mean over splits with a 95% CI. How to use them: [learning with differential",
        "privacy](../learning-with-differential-privacy.md).",
        "",
        "![accuracy over epsilon](beyond-private-learners.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
    ]
    for name, title in TABLES.items():
        own = where(rows, table=name, attacked=False)
        records = f"{mean(own, 'n_train'):,.0f} training records"
        lines += [f"## {title}", "", f"{records}. Majority-class baseline: {mean(own, 'blind'):.1f}."]
        body = [
            [words, *(_shown(own, learner=learner, epsilon=epsilon) for epsilon in EPSILONS)]
            for learner, words in LEARNERS.items()
            if where(own, learner=learner)
        ]
        lines += table(["learner", *(_budget(epsilon) for epsilon in EPSILONS)], body)
        areas = [
            [words, *(_shown_area(own, learner, epsilon) for epsilon in EPSILONS)]
            for learner, words in LEARNERS.items()
            if where(own, learner=learner)
        ]
        lines += ["Area under the ROC curve:", *table(["learner", *(_budget(e) for e in EPSILONS)], areas)]
    lines += ["## Membership attacks", "", *attack_lines(rows)]
    lines += how_it_was_run(rows, "beyond-private-learners", REDUCTIONS)
    return "\n".join(lines) + "\n"


def attack_lines(rows: list[Row]) -> list[str]:
    """Return the table of attacks beside the limit of the guarantee."""
    from sfumato.private.accounting import membership_limit

    body = []
    for name, epsilon in VICTIMS:
        for row in where(rows, attacked=True, learner=name, epsilon=epsilon):
            limit = f"{100 * membership_limit(epsilon, DELTA):.1f}" if epsilon else "100"
            body.append(
                [
                    VICTIM_WORDS[name],
                    _budget(epsilon),
                    f"{row['accuracy']:.1f}",
                    *(_rate(row, a) for a in ATTACKS),
                    limit,
                ]
            )
    header = ["model", "epsilon", "test accuracy", *ATTACKS.values(), "limit of the guarantee"]
    return [
        "Accuracy of attacks that say who was in the training data, in percent, with a 95% CI; guessing reaches 50.",
        "The limit is (e^epsilon + delta) / (1 + e^epsilon) for every attacker.",
        *table(header, body, n_words=2),
    ]


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for name, title in TABLES.items():
        own = where(rows, table=name, learner="logistic", attacked=False)
        plain = mean(own, "accuracy", epsilon=NO_NOISE)
        costs = [f"{mean(own, 'accuracy', epsilon=e) - plain:+.1f} at epsilon {e:g}" for e in EPSILONS if e != NO_NOISE]
        yield (
            f"{title}: the private logistic regression reaches {mean(own, 'accuracy', epsilon=1.0):.1f}% at epsilon 1; "
            f"without noise {plain:.1f}%, majority-class baseline {mean(own, 'blind'):.1f}%. "
            f"In points against no noise: {', '.join(costs)}."
        )
    own = where(rows, learner="network", attacked=False)
    parts = [
        f"{TABLES[name].split(',')[0]} {mean(own, 'accuracy', table=name, epsilon=NO_NOISE):.1f}, at epsilon 3 "
        f"{mean(own, 'accuracy', table=name, epsilon=3.0):.1f} (scikit-learn's "
        f"{mean(rows, 'accuracy', table=name, learner='plain network', attacked=False):.1f})"
        for name in TABLES
    ]
    yield f"The private network, nearly without noise: {'; '.join(parts)}."
    yield on_attacks(rows)


def on_adult(rows: list[Row]) -> str:
    """Return what the first learner reaches on Adult, in words."""
    own = where(rows, table="adult-12", learner="logistic", attacked=False)
    found, plain = (mean(own, "accuracy", epsilon=epsilon) for epsilon in (1.0, NO_NOISE))
    return (
        f"Start with the first. On Adult it reaches {found:.1f}% at epsilon 1, and {plain:.1f}% without noise, in the "
        f"mean of {len(where(own, epsilon=1.0))} splits ([results](results/beyond-private-learners.md))."
    )


def on_attacks(rows: list[Row]) -> str:
    """Return what the attacks on private models reach, in words."""
    from sfumato.private.accounting import membership_limit

    private = [row for row in where(rows, attacked=True) if row["epsilon"]]
    rate, epsilon, learner = max(
        (found["rate"], row["epsilon"], row["learner"]) for row in private for found in row["attacks"].values()
    )
    above = [row for row in private if _strongest(row) > membership_limit(row["epsilon"], DELTA)]
    return (
        f"Of {len(private)} private models and {len(ATTACKS)} attacks on each, the strongest is right in "
        f"{100 * rate:.1f}% of the cases ({VICTIM_WORDS[learner]}, epsilon {epsilon:g}). "
        + (f"{len(above)} pass the limits of their guarantees." if above else "All stay below the limits.")
    )


def _strongest(row: Row) -> float:
    return max(float(found["rate"]) for found in row["attacks"].values())


def _budget(epsilon: float) -> str:
    return f"epsilon {epsilon:g}" if epsilon else "no noise"


def _shown(rows: list[Row], **fixed: Any) -> str:
    values = [row["accuracy"] for row in where(rows, **fixed)]
    if not values:
        return ""
    return f"{np.mean(values):.1f} [{', '.join(f'{end:.1f}' for end in interval(values))}]"


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95% confidence interval of a mean over splits, by Student's t."""
    from scipy import stats

    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def _shown_area(rows: list[Row], learner: str, epsilon: float) -> str:
    own = where(rows, learner=learner, epsilon=epsilon)
    return f"{mean(own, 'auc'):.3f}" if own else ""


def _rate(row: Row, attack: str) -> str:
    found = row["attacks"][attack]
    low, high = found["interval"]
    return f"{100 * found['rate']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


STYLES = {
    "logistic regression": Style("#0072b2", "circle", 2.0),
    "explainable boosting": Style("#d55e00", "square", 2.0),
    "logistic regression, no noise": Style("#0072b2", "", 1.0, "2 3"),
    "majority-class baseline": Style("#7a7a7a", "", 1.0, "2 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw accuracy over epsilon."""
    panels = []
    noisy = [epsilon for epsilon in EPSILONS if epsilon != NO_NOISE]
    for name, title in TABLES.items():
        own = where(rows, table=name, attacked=False)
        lines = {
            words: [(e, mean(own, "accuracy", learner=learner, epsilon=e)) for e in noisy]
            for learner, words in LEARNERS.items()
            if all(has(own, learner=learner, epsilon=e) for e in noisy)
        }
        levels = {
            "logistic regression, no noise": mean(own, "accuracy", learner="logistic", epsilon=NO_NOISE),
            "majority-class baseline": mean(own, "blind"),
        }
        panels.append(Panel(title, lines, levels, axis="epsilon"))
    label = "Accuracy of private learners in percent over epsilon"
    return {"beyond-private-learners.svg": draw(panels, STYLES, columns=2, label=label)}


KEYS = tuple(keys())
NEEDS = {
    "logistic": ("opendp",),
    "boosting": ("interpret",),
    "network": ("opendp", "opacus"),
    "counts": ("opendp",),
    "release": ("opendp",),
}
EXPERIMENT = Experiment(
    name="beyond_private_learners",
    by=("table", "learner", "epsilon", "seed", "attacked"),
    keys=KEYS,
    run=one_by_one(run),
    together=("table", "seed"),
    needs=lambda key: NEEDS.get(key["learner"], ()),
    views={"found": found(KEYS, findings, charts)},
    documents=documents("beyond-private-learners", KEYS, page, charts),
)
