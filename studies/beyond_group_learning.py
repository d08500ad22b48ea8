# SPDX-License-Identifier: Apache-2.0
"""Learn from groups beyond classifiers of known classes: predict a sensitive column, and find clusters.

Mancuhan and Clifton name other classification and clustering algorithms for anatomized data as future work. *Classes*:
the class itself is sensitive, so that a group shows its classes in no order (learning from label proportions).
*Clusters*: three sensitive columns, k-means from pruned tables, from all candidates, and from candidates weighed by
what all groups show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from studies.beyond_sensitive_tables import COLUMNS, split
from studies.rows import Row, documents, found, how_it_was_run, mean, one_by_one, signed, table, where
from studies.runner import Experiment
from studies.summaries import interval

TABLES = {"adult": "Adult", "census": "Census-Income"}
TARGETS = {"adult": ("education", "occupation"), "census": ("education",)}
MODELS = {"logistic": "logistic regression", "tree": "decision tree"}
CLASS_LEARNERS = {
    "one": "one candidate",
    "even": "all candidates, even",
    "proportions": "proportions",
}
CLUSTER_LEARNERS = {
    "pruned": "pruned",
    "even": "all candidates, even",
    "learned": "all candidates, learned",
    "expected": "mean candidate, learned",
}
L_OF_CLASSES, L_OF_CLUSTERS = (2, 3, 4), (2, 3)
SEEDS = (0, 1, 2)
SEEDS_OF = {"logistic": SEEDS[:1], "tree": SEEDS}
"""Splits of the first part: logistic regression from proportions takes a quarter of a minute a cell."""
N_CLUSTERS = 8
BY = ("part", "table", "target", "l", "design", "learner", "model", "seed")
REDUCTIONS = (
    "Except with logistic regression, which has one split.",
    "4,800 training and 10,000 raw test records, one-hot coding, the same settings of a model for all learners: "
    "logistic regression with C = 1, a decision tree with at least 50 records in a leaf, k-means with 8 clusters and 5 "
    "starts.",
    "Classes: the sensitive column is the class, all other columns (and the income) are features. *One candidate*: "
    "every record with one class of its group, drawn at random. *Proportions*: `ProportionClassifier`, 5 rounds. "
    "Groups by the largest values; an l that needs records to be suppressed suppresses them.",
    "Clusters: education, occupation and marital status are sensitive. Clusters of raw test records by a model of "
    "anatomized tables, beside those by a model of raw records: the adjusted Rand index (1: the same clusters, 0: by "
    "chance), and the sum of squares within clusters relative to that of the raw model.",
)


def keys() -> Iterator[Row]:
    """List the cells of both parts."""
    for seed in SEEDS:
        for name in TABLES:
            for target in TARGETS[name]:
                for model in (own for own in MODELS if seed in SEEDS_OF[own]):
                    yield _key("classes", name, target, 0, "-", "raw", model, seed)
                    for length in L_OF_CLASSES:
                        for learner in CLASS_LEARNERS:
                            yield _key("classes", name, target, length, "-", learner, model, seed)
            yield _key("clusters", name, "-", 0, "none", "raw", "-", seed)
            for length in L_OF_CLUSTERS:
                for design in ("separate", "joint"):
                    for learner in CLUSTER_LEARNERS:
                        yield _key("clusters", name, "-", length, design, learner, "-", seed)


def _key(part: str, name: str, target: str, length: int, design: str, learner: str, model: str, seed: int) -> Row:
    return dict(zip(BY, (part, name, target, length, design, learner, model, seed), strict=True))


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Run one cell; `n_records` in the key, where there is one, limits the training records: for trying out."""
    X_train, X_test, y_train, y_test = split(key["table"], key["seed"], key.get("n_records"), paper_scale)
    if key["part"] == "clusters":
        return _clusters(key, X_train, X_test)
    return _classes(key, X_train.assign(income=y_train), X_test.assign(income=y_test))


# -- classes -----------------------------------------------------------------------------------------------------------


def _classes(key: Mapping[str, Any], train: Any, test: Any) -> Row:
    from sfumato import ProportionClassifier
    from studies.anatomy_partners import train_partners

    target = key["target"]
    X, y = train.drop(columns=target), train[target].to_numpy()
    X_test, y_test = test.drop(columns=target), test[target].to_numpy()
    estimator, n_kept = _model(key["model"], key["seed"]), len(y)
    if key["learner"] in ("raw", "one"):
        if key["learner"] == "one":
            X, y = _one_candidate(key, train)
            n_kept = len(y)
        own: Any = train_partners(
            estimator, X, y, l=2, sensitive=[X.columns[0]], coding="one-hot", partners=["original"]
        ).models["original"]  # fmt: skip
    else:
        own = ProportionClassifier(
            estimator, key["l"], n_iterations=5 if key["learner"] == "proportions" else 0, suppression_limit=1.0,
            random_state=key["seed"],
        ).fit(X, y)  # fmt: skip
        n_kept -= own.n_suppressed_
    return {
        "error": round(100 * float((own.predict(X_test) != y_test).mean()), 3),
        "majority": round(100 * float((y_test != _most_frequent(train[target])).mean()), 3),
        "n_kept": int(n_kept),
    }


def _one_candidate(key: Mapping[str, Any], train: Any) -> tuple[Any, Any]:
    """Return the identifying rows of an anatomy, each with a class of its group."""
    from sfumato import Anatomizer

    made = Anatomizer(
        key["l"], sensitive=key["target"], suppression_limit=1.0, random_state=key["seed"]
    ).fit_transform(train)  # fmt: skip
    first = made.sensitive.drop_duplicates("group").set_index("group")[key["target"]]  # rows are in a random order
    return made.identifying.drop(columns="group"), first.loc[made.identifying["group"]].to_numpy()


def _most_frequent(values: Any) -> Any:
    return values.value_counts().index[0]


def _model(name: str, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    if name == "tree":
        return DecisionTreeClassifier(min_samples_leaf=50, random_state=seed)
    return LogisticRegression(max_iter=200)


# -- clusters ----------------------------------------------------------------------------------------------------------


def _clusters(key: Mapping[str, Any], X: Any, X_test: Any) -> Row:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    from sfumato import BucketClusterer
    from sfumato.anatomize.coordinates import learn_coding
    from sfumato.frames import read_table

    train, test = read_table(X), read_table(X_test)
    coding = learn_coding([train.column(name) for name in train.names], "one-hot")
    known, shown = (coding.coordinates([own.column(name) for name in train.names]) for own in (train, test))
    raw = KMeans(N_CLUSTERS, n_init=5, random_state=key["seed"]).fit(known).predict(shown)
    if key["learner"] == "raw":  # the same records, other starts
        own = KMeans(N_CLUSTERS, n_init=5, random_state=key["seed"] + 100).fit(known).predict(shown)
    else:
        learner = key["learner"]
        own = BucketClusterer(
            KMeans(N_CLUSTERS, n_init=5, random_state=key["seed"]), key["l"],
            sensitive=[name for name in X.columns if name in COLUMNS[key["table"]][:3]],
            joint=key["design"] == "joint", suppression_limit=1.0, random_state=key["seed"],
            learn_from={"pruned": "pruned", "expected": "expected"}.get(learner, "candidates"),
            weights="even" if learner == "even" else "learned",
        ).fit(X).predict(X_test)  # fmt: skip
    return {
        "rand": round(float(adjusted_rand_score(raw, own)), 4),
        "squares": round(_within(shown, own) / _within(shown, raw), 4),
    }


def _within(points: Any, labels: Any) -> float:
    """Return the sum of squares within clusters."""
    return float(sum(((points[labels == k] - points[labels == k].mean(axis=0)) ** 2).sum() for k in np.unique(labels)))


# -- page --------------------------------------------------------------------------------------------------------------


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Classes and clusters from groups",
        "",
        "Mancuhan and Clifton name other algorithms for anatomized data as future work. Here the class itself is",
        "sensitive, and a group shows the classes of its records in no order; then records are clustered.",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for part in ("classes", "clusters") for sentence in _FINDINGS[part](rows)),
        "",
        "## Predicting a sensitive column",
        "",
        "Error in % on raw test records; in brackets the change against true classes.",
        *_classes_table(where(rows, part="classes")),
        "## Clusters",
        "",
        "Adjusted Rand index with the clusters of raw records; in brackets the sum of squares within clusters beside",
        "theirs.",
        *_clusters_table(where(rows, part="clusters")),
    ]
    studies = ("beyond-label-proportions", "beyond-clusters-from-groups")
    lines += how_it_was_run(rows, "beyond-group-learning", REDUCTIONS, studies)
    return "\n".join(lines) + "\n"


def _classes_table(rows: list[Row]) -> list[str]:
    body = []
    for name, title in TABLES.items():
        for target in TARGETS[name]:
            for model, words in MODELS.items():
                own = where(rows, table=name, target=target, model=model)
                raw = mean(own, "error", learner="raw")
                for length in L_OF_CLASSES:
                    errors = [mean(own, "error", learner=learner, l=length) for learner in CLASS_LEARNERS]
                    body.append([
                        title, target, words, str(length), f"{raw:.2f}", f"{mean(own, 'majority'):.2f}",
                        *(f"{error:.2f} ({signed(error - raw)})" for error in errors),
                    ])  # fmt: skip
    header = ["table", "class", "classifier", "l", "true classes", "most frequent", *CLASS_LEARNERS.values()]
    return table(header, body, n_words=4)


def _clusters_table(rows: list[Row]) -> list[str]:
    body = []
    for name, title in TABLES.items():
        own = where(rows, table=name)
        for length in L_OF_CLUSTERS:
            for design in ("separate", "joint"):
                at = {"l": length, "design": design}
                body.append([
                    title, design, str(length), _pair(own, learner="raw"),
                    *(_pair(own, learner=learner, **at) for learner in CLUSTER_LEARNERS),
                ])  # fmt: skip
    header = ["table", "design", "l", "raw records, other starts", *CLUSTER_LEARNERS.values()]
    return table(header, body, n_words=3)


def _pair(rows: list[Row], **at: Any) -> str:
    return f"{mean(rows, 'rand', **at):.3f} ({mean(rows, 'squares', **at):.3f})"


def findings_on_classes(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions of the first part in words."""
    own = where(rows, part="classes")
    for learner, words in CLASS_LEARNERS.items():
        costs, shares = [], []
        for name in TABLES:
            for target in TARGETS[name]:
                for model in MODELS:
                    some = where(own, table=name, target=target, model=model)
                    raw, always = mean(some, "error", learner="raw"), mean(some, "majority")
                    for length in L_OF_CLASSES:
                        error = mean(some, "error", learner=learner, l=length)
                        costs.append(error - raw)
                        shares.append((always - error) / (always - raw))
        yield (
            f"{words[0].upper()}{words[1:]}: {signed(float(np.mean(costs)))} points of error against true classes on "
            f"average (from {signed(min(costs))} to {signed(max(costs))}); of what true classes gain over the most "
            f"frequent one, {100 * float(np.mean(shares)):.0f}% is kept."
        )


def findings_on_clusters(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions of the second part in words."""
    own = where(rows, part="clusters")
    for learner, words in CLUSTER_LEARNERS.items():
        parts = []
        for length in L_OF_CLUSTERS:
            for design in ("separate", "joint"):
                some = where(own, learner=learner, l=length, design=design)
                parts.append(f"{design} l = {length} {mean(some, 'rand'):.2f}")
        yield f"Clusters, {words}: adjusted Rand index {', '.join(parts)}."
    yield f"Raw records clustered again from other starts: {mean(own, 'rand', learner='raw'):.2f}."
    for learner in (name for name in CLUSTER_LEARNERS if name != "pruned"):
        beside = np.array([
            mean(own, "rand", learner=learner, seed=seed) - mean(own, "rand", learner="pruned", seed=seed)
            for seed in sorted({row["seed"] for row in own})
        ])  # fmt: skip
        if len(beside) > 1:
            low, high = interval(beside)
            yield (
                f"Beside pruning, {CLUSTER_LEARNERS[learner]}: {signed(float(beside.mean()))} of the adjusted Rand "
                f"index, 95% CI over {len(beside)} splits [{signed(low)}, {signed(high)}]."
            )


_FINDINGS = {"classes": findings_on_classes, "clusters": findings_on_clusters}
KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_group_learning",
    by=BY,
    keys=KEYS,
    run=one_by_one(run),
    together=("part", "table", "seed"),
    views={part: found([key for key in KEYS if key["part"] == part], _FINDINGS[part]) for part in _FINDINGS},
    documents=documents("beyond-group-learning", KEYS, page, lambda rows: {}),
)
