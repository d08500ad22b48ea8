# SPDX-License-Identifier: Apache-2.0
"""l-diverse and t-close guided anonymization: what a model loses as l rises and t falls, and what attackers lose.

Goldsteen et al. name l-diversity and t-closeness as possible extensions of model-guided k-anonymity. Here they are
conditions on every group beside k; the sensitive column stays as it is, and the attacker who finds a person's group
says the value that is most frequent in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from studies.beyond_adult import percent, raw_model, split
from studies.charts import Panel, Style, draw
from studies.models import MODELS
from studies.rows import Row, documents, found, how_it_was_run, mean, one_by_one, signed, table, where
from studies.runner import Experiment

SENSITIVE = ("occupation", "marital-status")
METHODS = {"ours": "ours", "mondrian": "median Mondrian"}
CRITERIA = {
    "k": (0.0,),
    "distinct l": (3.0, 5.0),
    "entropy l": (1.5, 2.0, 3.0),
    "t": (0.5, 0.4, 0.3, 0.2, 0.1),
}
"""Kinds of criteria and their values; k alone has none."""

K = 10
SHOWN = ("hgb",)
SEEDS = (0, 1, 2)
REDUCTIONS = (
    f"Adult, k = {K} everywhere, splits of 80/20; the sensitive column and, of Adult's twelve "
    "quasi-identifiers, the eleven others. The model sees all twelve columns.",
    "*Distinct l*: at least l values in every group. *Entropy l*: the entropy of a group's values is at least log l. "
    "*t*: earth mover's distance with equal distances between values.",
    "The attacker finds the group of every training record and says its most frequent value. That is less than a "
    "learned attack could do with the columns of the release, and the same for all rows.",
    "Entropy 3-diversity of the marital status cannot be reached by the whole table where its entropy is lower; such "
    "rows are left out.",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for seed in SEEDS:
        for model in SHOWN:
            yield {"sensitive": "", "model": model, "seed": seed, "method": "raw", "criterion": "", "value": 0.0}
        for sensitive in SENSITIVE:
            for method in METHODS:
                for criterion, values in CRITERIA.items():
                    for value in values:
                        if (sensitive, criterion, value) == ("marital-status", "entropy l", 3.0):
                            continue  # the whole table has less
                        for model in SHOWN:
                            yield {
                                "sensitive": sensitive, "model": model, "seed": seed, "method": method,
                                "criterion": criterion, "value": value,
                            }  # fmt: skip


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Anonymize with one more criterion, train, test, and let the attacker guess.

    `n_records` in the key, where there is one, limits the records: for trying out.
    """
    from sfumato import LDiversity, ModelGuidedAnonymizer, MondrianAnonymizer, TCloseness
    from studies.models import make_model

    X_train, X_test, y_train, y_test, all_names = split(key["seed"], key.get("n_records"))
    raw = raw_model(key["model"], key["seed"], key.get("n_records"))
    if key["method"] == "raw":
        return {"accuracy": percent(raw.score(X_test, y_test))}
    sensitive, value = key["sensitive"], key["value"]
    names = [name for name in all_names if name != sensitive]
    criteria: list[Any] = {
        "k": list,
        "distinct l": lambda: [LDiversity(int(value), sensitive)],
        "entropy l": lambda: [LDiversity(value, sensitive, kind="entropy")],
        "t": lambda: [TCloseness(value, sensitive)],
    }[key["criterion"]]()
    make: Any = ModelGuidedAnonymizer if key["method"] == "ours" else MondrianAnonymizer
    anonymizer = make(K, quasi_identifiers=names, criteria=criteria, n_jobs=1)
    released = anonymizer.fit_transform(X_train, raw.predict_proba(X_train) if key["method"] == "ours" else None)
    model = make_model(key["model"], key["seed"], X_train).fit(released, y_train)
    return {
        "accuracy": percent(model.score(X_test, y_test)),
        "transformed": percent(model.score(anonymizer.transform(X_test), y_test)),
        "n_groups": int(anonymizer.n_groups_),
        **_guessed(released, names, sensitive),
    }


def _guessed(released: Any, names: list[str], sensitive: str) -> Row:
    """Return how often the most frequent value of a group, and of the table, is right."""
    counts = released.groupby([*names, sensitive], observed=True, dropna=False).size()
    of_group = counts.groupby(level=list(range(len(names))), dropna=False, observed=True).max()
    of_table = released[sensitive].value_counts(dropna=False).max()
    return {"guessed": percent(of_group.sum() / len(released)), "baseline": percent(of_table / len(released))}


def settings(rows: list[Row], sensitive: str) -> list[tuple[str, float]]:
    """Return the criteria that were run for a sensitive column, in their order."""
    own = where(rows, sensitive=sensitive)
    return [(name, v) for name, values in CRITERIA.items() for v in values if where(own, criterion=name, value=v)]


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# l-diverse and t-close guided anonymization",
        "",
        "Named as an extension by Goldsteen et al. (*Anonymizing Machine Learning Models*, section 3). Beside k, "
        "every group must have l well represented sensitive values, or values distributed as in the whole table but "
        "for t. Test accuracy on Adult in percent, in brackets the change against raw training data. *Guessed*: how "
        "often the most frequent sensitive value of a person's group is that person's; *above blind*: how much more "
        "that is than the most frequent value of the whole table.",
        "",
        "![accuracy and success of guessing over t](beyond-criteria.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
    ]
    for sensitive in SENSITIVE:
        for method, words in METHODS.items():
            own = where(rows, sensitive=sensitive, method=method)
            lines += [f"## Sensitive: {sensitive}, {words}", ""]
            body = []
            for criterion, value in settings(rows, sensitive):
                at = {"criterion": criterion, "value": value}
                shown = [f"k = {K} alone" if criterion == "k" else f"{criterion} = {value:g}"]
                for model in SHOWN:
                    raw = mean(rows, "accuracy", method="raw", model=model)
                    for measure in ("accuracy", "transformed"):
                        accuracy = mean(own, measure, model=model, **at)
                        shown.append(f"{accuracy:.2f} ({signed(accuracy - raw)})")
                guessed = mean(own, "guessed", **at)
                blind = mean(own, "baseline", **at)
                body.append([*shown, f"{guessed:.2f}", signed(guessed - blind), f"{mean(own, 'n_groups', **at):,.0f}"])
            header = [
                "criterion",
                *(f"{MODELS[m].removeprefix('histogram ')}{t}" for m in SHOWN for t in ("", ", recoded test")),
            ]
            lines += table([*header, "guessed", "above blind", "groups"], body)
    lines += how_it_was_run(rows, "beyond-criteria", REDUCTIONS)
    return "\n".join(lines) + "\n"


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for sensitive in SENSITIVE:
        own = where(rows, sensitive=sensitive)
        alone = {"criterion": "k", "value": 0.0}
        free = mean(own, "guessed", method="ours", **alone) - mean(own, "baseline", method="ours", **alone)
        yield (
            f"{sensitive}, ours with k = {K} alone: an attacker guesses {signed(free)} points more than blindly; "
            f"k-anonymity leaves the sensitive value to be guessed."
        )
        for criterion, value in settings(rows, sensitive):
            if (criterion, value) not in (("entropy l", 2.0), ("t", 0.3), ("t", 0.1)):
                continue
            at = {"criterion": criterion, "value": value}
            costs = [
                mean(own, "accuracy", method="ours", model=m, **at)
                - mean(own, "accuracy", method="ours", model=m, **alone)
                for m in SHOWN
            ]
            left = mean(own, "guessed", method="ours", **at) - mean(own, "baseline", method="ours", **at)
            words = " and ".join(f"{signed(c)} ({MODELS[m]})" for c, m in zip(costs, SHOWN, strict=True))
            yield (
                f"{sensitive}, {criterion} = {value:g}: changes accuracy by {words} beside k alone and leaves the "
                f"attacker {signed(left)} points above blind guessing."
            )
    ahead = []
    for sensitive in SENSITIVE:
        for criterion, value in settings(rows, sensitive):
            for model in SHOWN:
                at = {"sensitive": sensitive, "model": model, "criterion": criterion, "value": value}
                ahead.append(
                    mean(rows, "accuracy", method="ours", **at) - mean(rows, "accuracy", method="mondrian", **at)
                )
    yield (
        f"With the same criterion ours is ahead of median Mondrian in {sum(v > 0 for v in ahead)} of {len(ahead)} "
        f"rows, by {signed(sum(ahead) / len(ahead))} points on average (from {signed(min(ahead))} to "
        f"{signed(max(ahead))})."
    )


STYLES = {
    "ours": Style("#d55e00", "circle", 2.6),
    "ours, recoded test": Style("#d55e00", "triangle", 1.6, "5 3"),
    "median Mondrian": Style("#56b4e9", "circle"),
    "attacker, ours": Style("#e69f00", "square"),
    "attacker, median Mondrian": Style("#0072b2", "diamond"),
    "raw records or blind guess": Style("#1f2328", "", 1.2, "6 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw accuracy and guesses over t, in percent of 1."""
    panels = []
    for sensitive in SENSITIVE:
        own = where(rows, sensitive=sensitive, criterion="t")
        over = [(round(100 * t), t) for t in CRITERIA["t"]][::-1]
        for model in SHOWN:
            lines = {
                "ours": [(x, mean(own, "accuracy", method="ours", model=model, value=t)) for x, t in over],
                "ours, recoded test": [
                    (x, mean(own, "transformed", method="ours", model=model, value=t)) for x, t in over
                ],
                "median Mondrian": [
                    (x, mean(own, "accuracy", method="mondrian", model=model, value=t)) for x, t in over
                ],
            }
            level = {"raw records or blind guess": mean(rows, "accuracy", method="raw", model=model)}
            title = f"{sensitive}: accuracy of {MODELS[model].removeprefix('histogram ')}"
            panels.append(Panel(title, lines, level, axis="100 t"))
        guesses = {
            f"attacker, {words}": [(x, mean(own, "guessed", method=method, value=t)) for x, t in over]
            for method, words in METHODS.items()
        }
        level = {"raw records or blind guess": mean(own, "baseline")}
        panels.append(Panel(f"{sensitive}: guessed", guesses, level, axis="100 t"))
    label = "Accuracy and the attacker's success in percent over t"
    return {"beyond-criteria.svg": draw(panels, STYLES, columns=3, label=label)}


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_criteria",
    by=("sensitive", "model", "seed", "method", "criterion", "value"),
    keys=KEYS,
    run=one_by_one(run),
    together=("seed",),
    views={"found": found(KEYS, findings, charts)},
    documents=documents("beyond-criteria", KEYS, page, charts),
)
