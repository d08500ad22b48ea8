# SPDX-License-Identifier: Apache-2.0
"""What the screens show of the other ways: a form that asks for less, and two tables instead of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.studio import charts
from sfumato.studio.measurements import (
    View,
    attack_of,
    figure,
    interval,
    opened,
    percent,
    reference_of,
    row_of,
    safe,
    stop_of,
    why_not,
)
from sfumato.studio.session import DIVERSITIES, LOSSES, Studio
from sfumato.studio.texts import Words


def minimize(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the forms that were learned: what the model loses, what an attacker guesses, and the questions."""
    reason = why_not(studio, t)
    base: View = {
        "why_not": reason, "lead": t("minimize.lead_empty"), "leads": None, "stops": LOSSES, "is_measured": False,
    }  # fmt: skip
    if reason is not None:
        return base
    forms, keys = studio.forms, [f"{loss:g}" for loss in LOSSES]
    at = stop_of(asked.get("at"), LOSSES, 0.01)
    base |= {"at": at, **_outputs(studio, "minimize")}
    if any(key not in forms for key in keys):
        return base
    found = [forms[key] for key in keys]
    names = [t.percent(loss) for loss in LOSSES]
    right = [1 - one["error"] for one in found]
    has_risk = bool(found[0]["wanted"])
    sure = [(1 - one["interval"][1], 1 - one["interval"][0]) for one in found]
    none: list[None] = [None] * len(found)
    lines: list[tuple[str, Any, Sequence[float | None], Sequence[float | None], Sequence[Any], float]] = [
        ("model", "keep", right, none, sure, 1 - found[0]["full_error"])
    ]
    if has_risk:
        risks, certified = [one["risk"] for one in found], [one["certified"] for one in found]
        lines.append(("risk", "risk", risks, certified, none, found[0]["base_risk"]))
    figures = []
    for what, kind, values, bounds, intervals, reference in lines:
        said = ["" if value is None else t.percent(value) for value in values]
        drawn = [charts.Line(values, intervals, said)]
        if any(bound is not None for bound in bounds):
            most = ["" if bound is None else t("frontier.at_most", value=t.percent(bound)) for bound in bounds]
            drawn.insert(0, charts.Line(bounds, [None] * len(bounds), most))
        listed = "; ".join(f"{name}: {text}" for name, text in zip(names, said, strict=True))
        svg = charts.chart(
            drawn, at=at, kind=kind, title=f"{t(f'minimize.{what}')}. {listed}", least=0.1, base=reference,
            number=lambda value: t.number(100 * value, 0),
        )  # fmt: skip
        named = t(f"minimize.base_{what}", value=t.percent(reference))
        caption = t(f"minimize.caption_{what}")
        figures.append({"title": t(f"minimize.{what}"), "caption": caption, "base": named, "svg": safe(svg)})
    questions = [one["questions"][t.language] for one in found]
    n_questions = len(questions[0])
    n_asked = [sum(bool(question["answers"]) for question in own) for own in questions]
    says = [
        t("minimize.says", loss=name, n=n, all=n_questions, model=t.percent(value), sure=interval(t, ends))
        for name, n, value, ends in zip(names, n_asked, right, sure, strict=True)
    ]
    leads = [t("minimize.lead", loss=name, n=n, all=n_questions) for name, n in zip(names, n_asked, strict=True)]
    columns = ", ".join(found[0]["wanted"])
    return {
        **base,
        "is_measured": True,
        "lead": leads[at],
        "leads": leads,
        "figures": figures,
        "axis": safe(charts.axis(names)),
        "names": names,
        "says": says,
        "uses": [t("minimize.write", loss=name) for name in names],
        "forms": [
            {
                "asked": [question for question in own if question["answers"]],
                "not_asked": [question["name"] for question in own if not question["answers"]],
            }
            for own in questions
        ],
        "wanted": t("minimize.wanted", columns=columns) if has_risk else t("minimize.nothing_wanted"),
    }


def anatomize(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return what two tables leave to an attacker for each l, and which columns are in which table."""
    reason = why_not(studio, t)
    if reason is None and not opened(studio).policy.get("columns", "sensitive"):
        reason = t("frontier.why_sensitive")
    stops = DIVERSITIES
    base: View = {"why_not": reason, "lead": t("anatomize.lead"), "stops": stops, "is_measured": False}
    if reason is not None:
        return base
    project = opened(studio)
    at = stop_of(asked.get("at"), stops, project.policy.get("method", "l") or 3)
    columns = [one["name"] for one in (studio.facts or {"columns": []})["columns"]]
    sensitive = list(project.policy.get("columns", "sensitive"))
    base |= {
        "at": at,
        "exact": [name for name in columns if name not in sensitive and project.role(name) != "drop"],
        "sensitive": sensitive,
        "is_measuring": studio.measures("anatomy"),
        **_outputs(studio, "anatomize"),
    }
    points = studio.points("anatomy")
    rows = [row_of(points["rows"].get(f"{stop:g}")) for stop in stops]
    if not any(row is not None for row in rows):
        return base
    names = [t.number(stop) for stop in stops]
    raw = row_of(points["raw"])
    best = [None if row is None else row.best for row in rows]
    secret = [attack_of(row, "attribute") for row in rows]
    guessed = [None if one is None else one.rate for one in secret]
    reference = None if raw is None or raw.best is None else raw.best.value
    figures = [figure(t, "model", "l", names, at, best, base=reference)]
    if any(one is not None for one in guessed):
        figures.append(
            figure(t, "secret", "l", names, at, guessed, base=reference_of(secret), column=", ".join(sensitive))
        )
    return {
        **base,
        "is_measured": True,
        "n_missing": sum(row is None for row in rows),
        "figures": figures,
        "axis": safe(charts.axis(names)),
        "names": names,
        "says": [
            t("anatomize.says", l=name, model=percent(t, model), secret=percent(t, rate))
            for name, model, rate in zip(names, best, guessed, strict=True)
        ],
        "promise": [t("anatomize.promise", n=stop, share=t.percent(1 / stop)) for stop in stops],
        "uses": [t("anatomize.write", l=name) for name in names],
    }


def _outputs(studio: Studio, kind: str) -> View:
    names = studio.other_outputs(kind)
    folder = opened(studio).policy_file.parent
    is_there = any((folder / name).exists() for name in names)
    return {"outputs": names, "is_there": is_there, "written": studio.written_other(kind)}
