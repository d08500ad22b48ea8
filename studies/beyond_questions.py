# SPDX-License-Identifier: Apache-2.0
"""Personal minimization: how many questions a person must be asked before a model's decision is settled.

Staab et al. remark that what must be collected may differ from person to person. Here everybody of the test part is
interviewed: attributes in the buckets of a privacy-aware tree are asked one by one, until no answer can change the
decision of a model. Decisions are compared with those from all answers, for every person. And an attacker guesses
personal attributes from what the interview itself tells: how many questions there were, and which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from studies.charts import Panel, Style, draw
from studies.rows import Row, documents, found, how_it_was_run, mean, one_by_one, table, where
from studies.runner import Experiment

TABLES = {
    "adult": "Adult",
    "acs_income": "ACSIncome, New York 2024",
    "acs_employment": "ACSEmployment, Massachusetts 2015-2018",
    "lending_club": "Lending Club 2007-2011",
}
MODELS = {
    "tree": "decision tree",
    "linear": "logistic regression",
    "boosting": "gradient boosting",
}
EXACT = ("tree", "linear")
CERTAINTIES = (1.0, 0.95)
SEEDS = (0, 1, 2)
MOST_LEARNED, MOST_INTERVIEWED, MOST_OF_BOOSTING, MOST_COUNTED_OF_BOOSTING = 20_000, 10_000, 300, 1_000
_LEAST = 3
"""People whom an attacker must have seen with the same questions or answers; else it guesses from less."""
_COARSER = {
    "decision": "nothing",
    "number of questions": "nothing",
    "which questions": "number of questions",
    "answers given": "which questions",
    "all answers": "answers given",
}
"""What follows from each thing that an attacker sees."""
LEAVES, ALPHA, TREE_LEAVES, ROUNDS = 50, 3 / 11, 50, 30
REDUCTIONS = (
    f"At most {MOST_LEARNED:,} records to learn from and {MOST_INTERVIEWED:,} people to interview, "
    f"{MOST_OF_BOOSTING} with gradient boosting, whose bounds take longer. Gradient boosting has one split.",
    f"One generalization per table, chosen before anything was run: a privacy-aware tree with {LEAVES} leaves and "
    "alpha 3/11.",
    f"The models are trained on its buckets: a decision tree of at most {TREE_LEAVES} leaves, logistic regression on "
    f"one-hot buckets, gradient boosting with {ROUNDS} rounds.",
    "*95%*: questions end when the decision stays as it is with that probability, from people of the training part "
    "who gave the same answers, or, where they are few, from all of them.",
    f"The attacker interviews people of the training part as well ({MOST_COUNTED_OF_BOOSTING:,} with gradient "
    "boosting), whose full records it has, counts how often each personal value occurs with what is seen, and guesses. "
    "Where fewer than three of them have the same answers, it guesses from the questions. Counting is too "
    "weak an attacker where few people share their answers. Mean over the personal attributes.",
)


def keys() -> Iterator[Row]:
    """List the cells; those of gradient boosting, whose bounds take longer, with the first seed alone."""
    for name in TABLES:
        for seed in SEEDS:
            for model in MODELS if seed == SEEDS[0] else EXACT:
                for certainty in CERTAINTIES:
                    yield {"table": name, "seed": seed, "model": model, "certainty": certainty}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Interview people; `n_people` in the key, where there is one, limits how many: for trying out."""
    import numpy as np

    from sfumato.generalization.questions import Questionnaire

    generalization, learned, asked, personal = _people(key["table"], key["seed"])
    model = _model(key["model"], key["seed"]).fit(generalization.codes(learned[0]), learned[1])
    most = key.get("n_people") or (MOST_OF_BOOSTING if key["model"] == "boosting" else MOST_INTERVIEWED)
    X, y = asked[0].iloc[:most], asked[1][:most]
    background = learned[0] if key["certainty"] < 1 else None
    questionnaire = Questionnaire(generalization, model, probability=key["certainty"], background=background)
    told = questionnaire.interview(X)
    known = learned[0].iloc[: MOST_COUNTED_OF_BOOSTING if key["model"] == "boosting" else None]
    counts = np.bincount(told.n_asked, minlength=told.n_collected + 1)
    return {
        "proof": questionnaire.proof,
        "n_people": len(X),
        "n_attributes": len(generalization.attributes),
        "n_collected": told.n_collected,
        "n_asked": round(float(told.n_asked.mean()), 4),
        "n_changed": told.n_changed,
        "accuracy": round(100 * float((told.complete == y).mean()), 3),
        "asked": counts.tolist(),
        "guessed": _guessed(generalization, (known, questionnaire.interview(known)), (X, told), personal),
    }


def _model(name: str, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    if name == "tree":
        return DecisionTreeClassifier(max_leaf_nodes=TREE_LEAVES, random_state=seed)
    if name == "linear":
        return make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
    return HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, random_state=seed)


@lru_cache(1)
def _people(name: str, seed: int) -> tuple[Any, Any, Any, tuple[str, ...]]:
    """Return a generalization, records to learn from, records to interview, and the personal attributes."""
    from sfumato import PrivacyAwareTree
    from studies.minimization_tasks import load_task

    task = _adult() if name == "adult" else load_task(name)
    train, _, test = task.parts(seed)
    learned = task.records(task._balanced(train)[:MOST_LEARNED])
    asked = task.records(task._balanced(test)[:MOST_INTERVIEWED])
    minimizer = PrivacyAwareTree(
        ALPHA, LEAVES, personal=list(task.personal), categorical_features=list(task.categorical), n_jobs=1
    )
    return minimizer.fit(*learned).generalization_, learned, asked, task.personal


def _adult() -> Any:
    from studies.minimization_tasks import Task
    from studies.tables import load

    adult = load("adult-12")
    categorical = tuple(str(name) for name in adult.X.columns if adult.X[name].dtype.kind not in "if")
    X = adult.X.assign(**{name: adult.X[name].astype(str) for name in categorical})
    return Task("adult", X, adult.y, categorical, categorical)


def _guessed(generalization: Any, known: Any, attacked: Any, personal: tuple[str, ...]) -> dict[str, float]:
    """Return how many personal values are guessed from nothing, from questions alone, and from answers."""
    import numpy as np
    import pandas as pd

    from sfumato.grouping import group_rows

    n_known = len(known[0])
    X = pd.concat([known[0], attacked[0]])
    asked = np.concatenate([known[1].asked, attacked[1].asked])
    decisions = np.unique(np.concatenate([known[1].decisions, attacked[1].decisions]), return_inverse=True)[1]
    codes = generalization.codes(X).astype(np.int64)
    seen = {
        "decision": [decisions],
        "number of questions": [asked.sum(axis=1)],
        "which questions": list(asked.T.astype(np.int64)),
        "answers given": list(np.where(asked, codes + 1, 0).T),
        "all answers": list(codes.T),
    }
    cells = {what: group_rows(columns, len(X)) for what, columns in seen.items()}
    rates: dict[str, list[float]] = {"nothing": [], **{what: [] for what in seen}}
    for name in personal:
        values = pd.factorize(X[name], use_na_sentinel=False)[0]
        guesses = {"nothing": np.full(len(X), np.bincount(values[:n_known]).argmax())}
        for what, coarser in _COARSER.items():
            counts = np.zeros((cells[what].max() + 1, values.max() + 1), np.int64)
            np.add.at(counts, (cells[what][:n_known], values[:n_known]), 1)
            is_counted = (counts.sum(axis=1) >= _LEAST)[cells[what]]
            guesses[what] = np.where(is_counted, counts.argmax(axis=1)[cells[what]], guesses[coarser])
        for what, guess in guesses.items():
            rates[what].append(float((guess[n_known:] == values[n_known:]).mean()))
    return {what: round(100 * float(np.mean(own)), 3) for what, own in rates.items()}


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Asking a person only what can change the decision",
        "",
        "Staab et al. (*From Principle to Practice: Vertical Data Minimization for Machine Learning*) remark that what",
        "must be collected may differ from person to person. Here every person of the test part is interviewed: the",
        "attributes that a generalization collects are asked one by one, until no answer can change the decision of",
        "the model any more. *Changed*: people whose decision would have been another one with all answers.",
        "",
        "![share of people over the number of questions](beyond-questions.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
        "## Questions",
        "",
    ]
    header = ["table", "model", "attributes", "collected", "asked", "changed", "asked at 95%", "changed at 95%"]
    body = []
    for name, title in TABLES.items():
        for model, words in MODELS.items():
            sure, likely = (where(rows, table=name, model=model, certainty=own) for own in CERTAINTIES)
            if sure:
                body.append(
                    [
                        title,
                        words,
                        f"{mean(sure, 'n_attributes'):.0f}",
                        f"{mean(sure, 'n_collected'):.1f}",
                        f"{mean(sure, 'n_asked'):.2f}",
                        _changed(sure),
                        f"{mean(likely, 'n_asked'):.2f}",
                        _changed(likely),
                    ]
                )
    lines += table(header, body, n_words=2)
    lines += [
        "## What the questions tell",
        "",
        "Personal values that an attacker guesses right, in percent, from what is seen of an interview. An attacker",
        "who has the answers given learns nothing more from which questions were asked: these follow from the answers.",
        "An attacker who sees only the questions, or only their number, learns something, too.",
        "",
    ]
    names = list(rows[0]["guessed"])
    body = [
        [title, words, *(f"{_mean_guess(rows, name, model, what):.1f}" for what in names)]
        for name, title in TABLES.items()
        for model, words in MODELS.items()
    ]
    lines += table(["table", "model", *names], body, n_words=2)
    lines += how_it_was_run(rows, "beyond-questions", REDUCTIONS)
    return "\n".join(lines) + "\n"


def _mean_guess(rows: list[Row], name: str, model: str, what: str) -> float:
    own = where(rows, table=name, model=model, certainty=1.0)
    return sum(row["guessed"][what] for row in own) / len(own)


def _changed(rows: list[Row]) -> str:
    n_changed, n_people = sum(row["n_changed"] for row in rows), sum(row["n_people"] for row in rows)
    return f"{n_changed:,} of {n_people:,}"


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    exact = where(rows, model=EXACT, certainty=1.0)
    n_changed, n_people = sum(row["n_changed"] for row in exact), sum(row["n_people"] for row in exact)
    yield (
        f"Trees and linear models: {n_changed} of {n_people:,} decisions changed, over all tables, splits and people "
        "interviewed."
    )
    for name, title in TABLES.items():
        parts = [
            f"{mean(rows, 'n_asked', table=name, model=model, certainty=1.0):.1f} ({words})"
            for model, words in MODELS.items()
        ]
        collected = mean(rows, "n_collected", table=name, model="tree", certainty=1.0)
        yield f"{title}: of {collected:.1f} attributes collected, a person is asked {', '.join(parts)} on average."
    boosted = where(rows, model="boosting", certainty=1.0)
    n_changed, n_people = sum(row["n_changed"] for row in boosted), sum(row["n_people"] for row in boosted)
    yield (
        f"Gradient boosting: {n_changed} of {n_people:,} decisions changed. Bounds prove that a decision is settled, "
        "perhaps later than it is: more is asked than had to be."
    )
    rises = [
        _mean_guess(rows, name, model, "number of questions") - _mean_guess(rows, name, model, "nothing")
        for name in TABLES
        for model in MODELS
    ]
    yield (
        f"The number of questions alone lets an attacker guess {max(0.0, min(rises)):.1f} to {max(rises):.1f} points "
        "more of the personal values than nothing does."
    )


STYLES = {
    "decision tree": Style("#0072b2", "circle", 2.0),
    "logistic regression": Style("#d55e00", "square", 2.0),
    "gradient boosting": Style("#009e73", "triangle", 2.0),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw which share of people has been asked no more than so many questions."""
    panels = []
    for name, title in TABLES.items():
        lines = {}
        for model, words in MODELS.items():
            own = where(rows, table=name, model=model, certainty=1.0)
            longest = max(len(row["asked"]) for row in own)
            counts = [sum(row["asked"][n] if n < len(row["asked"]) else 0 for row in own) for n in range(longest)]
            total, reached = sum(counts), 0
            points = []
            for n, count in enumerate(counts):
                reached += count
                points.append((float(n), 100 * reached / total))
            lines[words] = points
        panels.append(Panel(title, lines, {}, axis="questions", is_even=True))
    label = "Share of people, in percent, who have been asked no more than so many questions"
    return {"beyond-questions.svg": draw(panels, STYLES, columns=2, label=label)}


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_questions",
    by=("table", "seed", "model", "certainty"),
    keys=KEYS,
    run=one_by_one(run),
    together=("table", "seed"),
    views={"found": found(KEYS, findings, charts)},
    documents=documents("beyond-questions", KEYS, page, charts),
)
