# SPDX-License-Identifier: Apache-2.0
"""What the screens show of measurements: curves over k or l, and ways to protect side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from sfumato.errors import InputError, ParameterError
from sfumato.policy.policy_file import toml
from sfumato.report.frontier_row import Estimate, FrontierRow
from sfumato.studio import charts
from sfumato.studio.project import Project
from sfumato.studio.session import CURVES, Studio
from sfumato.studio.texts import Words

View = dict[str, Any]
_UNSEEN = ("drop", "predict")  # roles of columns that a model does not learn from
_LEAST_MODEL, _LEAST_ATTACK = 0.02, 0.1  # smallest spans of the axes


def opened(studio: Studio) -> Project:
    """Return the open table with its policy; raise InputError if there is none."""
    if studio.project is None or not studio.project.has_policy:
        raise InputError("no table is open, or it is still being read: expected one. Open it, or wait.")
    return studio.project


def check_ready(studio: Studio) -> None:
    """Raise ParameterError while a role is still to be confirmed."""
    opened(studio)
    if left := studio.to_confirm():
        raise ParameterError(f"{len(left)} roles are still to be confirmed: expected none. Confirm them first.")


def safe(svg: str) -> Any:
    """Return a drawing that templates put in as it is."""
    from markupsafe import Markup

    return Markup(svg)  # the charts escape what they show


# -- frontier ------------------------------------------------------------------------------------------------------


def why_not(studio: Studio, t: Words) -> str | None:
    """Return why nothing can be measured yet; None if it can."""
    if studio.project is None or not studio.project.has_policy or studio.suggested is None:
        return t("frontier.why_reading")
    left = studio.to_confirm()
    return t("frontier.why_confirm", n=len(left)) if left else None


def row_of(document: Mapping[str, Any] | None) -> FrontierRow | None:
    """Return a kept row; None for none."""
    return None if document is None else FrontierRow.from_dict(document)


def frontier(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the curves over the stops of a tab, everything that is said at each stop, and one person's group."""
    is_drawing, group = studio.drawn("group", asked.get("drawn"))
    values: View = {
        "is_drawing": is_drawing,
        "drawing": t("table.drawing_later" if studio.waits_for_job else "frontier.group_drawing"),
        "drawn": asked.get("drawn", ""),
        "group": None if group is None else _group(t, group),
        # Shown once: a page that loads itself again would take it away.
        **({} if group is None else {"is_busy": False}),
    }
    return {**_curves(studio, t, asked), **values}


def _group(t: Words, found: Mapping[str, Any]) -> View:
    """Return the values of one person's group, before and after."""
    rows = []
    for one in found["columns"]:
        none = t("table.no_value")
        said = ", ".join(f"{none if value is None else value} ({t.number(n)})" for value, n in one["before"])
        if more := one["n"] - len(one["before"]):
            said = f"{said} {t('frontier.group_more', n=more)}"
            if one["ends"] is not None:
                said = t("frontier.group_range", n=one["n"], low=one["ends"][0], high=one["ends"][1])
        rows.append({"name": one["name"], "before": said, "after": none if one["after"] is None else one["after"]})
    size = found["size"]
    caption = t("frontier.group_none") if size is None else t("frontier.group_caption", k=found["k"], n=size)
    return {"caption": caption, "rows": rows}


def _curves(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    by = curve_of(asked)
    curve, sign = CURVES[by], t(f"frontier.sign_{by}")
    reason = why_not(studio, t)
    if reason is None and by in ("l", "t") and not opened(studio).policy.get("columns", "sensitive"):
        reason = t("frontier.why_sensitive")
    if reason is None and by == "epsilon" and not studio.public.is_file():
        return {
            "by": by, "tabs": list(CURVES), "why_not": None, "needs_public": _public(studio), "n_missing": 0,
            "public": studio.public.name, "n_measured": 0, "lead": t("frontier.lead_empty"), "columns": [],
            "at": 0, "stops": curve.stops,
        }  # fmt: skip
    stops = curve.stops
    base: View = {
        "by": by, "tabs": list(CURVES), "sign": sign, "needs_public": None, "setting": curve.setting,
        "why_not": reason, "stops": stops, "at": 0, "lead": t("frontier.lead_empty"), "columns": [],
    }  # fmt: skip
    if reason is not None:
        return {**base, "n_missing": 0, "n_measured": 0}
    project = opened(studio)
    points = studio.points(curve.family)
    rows = [row_of(points["rows"].get(f"{stop:g}")) for stop in stops]
    raw, n_measured = row_of(points["raw"]), sum(row is not None for row in rows)
    used = None if curve.setting is None else project.policy.get("method", curve.setting)
    at = stop_of(asked.get("at"), stops, used)
    names = [t.plain(stop) for stop in stops]
    is_measuring = studio.measures(curve.family)
    view = {
        **base,
        "is_measuring": is_measuring,
        "at": at,
        "n_missing": len(stops) - n_measured,
        "n_measured": n_measured,
        "names": names,
    }
    if n_measured == 0:
        return view
    best = [None if row is None else row.best for row in rows]
    member = [attack_of(row, "membership") for row in rows]
    column = next((row.certificate.secret for row in rows if row is not None and row.certificate is not None), None)
    secret = [attack_of(row, "attribute", column) for row in rows]
    bound = [None if row is None or row.certificate is None else row.certificate.upper for row in rows]
    raw_best = None if raw is None else raw.best
    figures = [figure(t, "model", sign, names, at, best, base=None if raw_best is None else raw_best.value)]
    if any(one is not None for one in secret):
        upper = bound if any(value is not None for value in bound) else None
        figures.append(
            figure(t, "secret", sign, names, at, [None if one is None else one.rate for one in secret],
                    base=reference_of(secret), upper=upper, column=column)
        )  # fmt: skip
    limit = [None if row is None else row.limit for row in rows]
    rates = [None if one is None else one.rate for one in member]
    is_limited = any(value is not None for value in limit)
    figures.append(figure(t, "member", sign, names, at, rates, base=0.5, upper=limit if is_limited else None))
    said = [percent(t, one) for one in best]
    told = [percent(t, None if one is None else one.rate) for one in member]
    changes = [
        t("frontier.change", change=t.points(one.value - raw_best.value), raw=t.percent(raw_best.value),
          sure=_interval(t, one))
        if one is not None and raw_best is not None else t("frontier.to_come")
        for one in best
    ]  # fmt: skip
    readout = [{"title": t("frontier.model"), "said": said, "notes": changes}]
    if by == "k":
        odds = [t("frontier.odds", k=stop) for stop in stops]
        hint = t("frontier.odds_hint", n=len(project.rewritten))
        readout.insert(0, {"title": t("frontier.picking"), "said": odds, "notes": [hint] * len(stops)})
    if any(one is not None for one in secret):
        values = [percent(t, None if one is None else one.rate) for one in secret]
        limits = [
            t("frontier.to_come") if one is None
            else t("frontier.no_bound", sure=_interval(t, one.rate)) if value is None
            else t("frontier.bound", sure=_interval(t, one.rate), bound=t.percent(value))
            for one, value in zip(secret, bound, strict=True)
        ]  # fmt: skip
        readout.append({"title": t("frontier.secret", column=column or ""), "said": values, "notes": limits})
    notes = [
        t("frontier.to_come") if rate is None
        else t("frontier.measured_only", sure=_interval(t, rate)) if most is None
        else t("frontier.limited", sure=_interval(t, rate), most=t.percent(most))
        for rate, most in zip(rates, limit, strict=True)
    ]  # fmt: skip
    readout.append({"title": t("frontier.member"), "said": told, "notes": notes})
    says = [
        t("frontier.says", by=sign, stop=name, model=model, member=other)
        for name, model, other in zip(names, said, told, strict=True)
    ]
    columns = [
        (place, *_columns_at(t, stop, points["columns"][str(stop)]))
        for place, stop in enumerate(stops if by == "k" else ())
        if str(stop) in points["columns"]
    ]
    return {
        **view,
        "lead": _frontier_lead(t, sign, names, best, raw_best),
        "figures": figures,
        "axis": safe(charts.axis(names)),
        "says": says,
        "promise": [_promise(t, by, stop) for stop in stops],
        "readout": readout,
        "uses": [
            t("frontier.used" if stop == used else "frontier.use", by=sign, stop=name)
            for stop, name in zip(stops, names, strict=True)
        ],
        "numbers": _numbers(t, names, rows, column),
        "columns": columns,
    }


def _numbers(t: Words, names: Sequence[str], rows: Sequence[FrontierRow | None], secret: str | None) -> View:
    """Return what was measured at each stop as a table, each number with its interval."""
    found = []
    for name, row in zip(names, rows, strict=True):
        told = {"attribute": attack_of(row, "attribute", secret), "membership": attack_of(row, "membership")}
        cells = [_with_interval(t, None if row is None else row.best)]
        if secret is not None:
            cells.append(_with_interval(t, None if told["attribute"] is None else told["attribute"].rate))
            cells.append("-" if row is None or row.certificate is None else t.percent(row.certificate.upper))
        cells.append(_with_interval(t, None if told["membership"] is None else told["membership"].rate))
        found.append((name, *cells, "" if row is None else t.number(row.seconds, 1)))
    of_secret = [] if secret is None else [t("frontier.secret", column=secret), t("terms.atmost")]
    return {"names": [t("frontier.model"), *of_secret, t("frontier.member"), t("frontier.seconds")], "rows": found}


def _with_interval(t: Words, estimate: Estimate | None) -> str:
    if estimate is None or estimate.interval is None:
        return percent(t, estimate)
    low, high = estimate.interval
    return f"{t.percent(estimate.value)} [{t.percent(low)}; {t.percent(high)}]"


def curve_of(asked: Mapping[str, str]) -> str:
    """Return what is varied: the tab that an address names."""
    return asked["by"] if asked.get("by") in CURVES else "k"


def _promise(t: Words, by: str, stop: float) -> str:
    factor = t.number(exp(stop), 2 if stop < 5 else 0) if by == "epsilon" else ""
    return t(f"frontier.promise_{by}", n=t.plain(stop), factor=factor)


def _public(studio: Studio) -> str:
    """Return how a file of public knowledge begins: the columns that a model sees, with gaps for people to fill in."""
    project = opened(studio)
    codes = project.policy.get("columns", "categorical") or ()
    seen = [one for one in (studio.facts or {"columns": []})["columns"] if project.role(one["name"]) not in _UNSEEN]
    numbers = [toml(one["name"]) for one in seen if one["kind"] == "number" and one["name"] not in codes]
    others = [toml(one["name"]) for one in seen if toml(one["name"]) not in numbers]
    lines = ["[bounds]", *(f"{name} = [0, 100]" for name in numbers), "", "[categories]"]
    return "\n".join([*lines, *(f'{name} = ["...", "..."]' for name in others)])


def _columns_at(t: Words, k: float, found: Mapping[str, Any]) -> tuple[str, list[View]]:
    """Return what becomes of each column at a stop, and of one person's group; the most changed columns first."""
    size = found["size"]
    caption = t("frontier.columns_at", k=t.number(k)) + ("" if size is None else " " + t("frontier.group", n=size))
    rows = []
    for one in sorted(found["columns"], key=lambda one: -(one["loss"] or 0)):
        n = one["values"]
        said = "-" if n is None else t("frontier.stays") if n == 1 else t("frontier.become_one", n=n)
        rows.append({**one, "meter": safe(charts.meter(one["loss"] or 0, "keep")), "in_group": said})
    return caption, rows


def stop_of(asked: str | None, stops: Sequence[float], used: float | None) -> int:
    """Return the number of the stop that was asked for, or else the one that the policy uses, or is nearest to it."""
    if asked is not None and asked.isdecimal() and int(asked) < len(stops):
        return int(asked)
    return min(range(len(stops)), key=lambda place: abs(stops[place] - (used or stops[0])))


def attack_of(row: FrontierRow | None, goal: Any, secret: str | None = None) -> Any:
    """Return the strongest attack on a row, on one secret if any is; None if there is none.

    Secrets are guessed from what is shared: from the table where there is one. Attackers who query a model know more
    about a person, so their rates are no part of the same curve.
    """
    if row is None:
        return None
    on = row.shares if goal == "attribute" else None
    if secret is not None:  # an attack on another column is not beside the bound of this one
        name = re.escape(secret)
        named = re.compile(rf"(infer|guess) {name} (from|inside|in groups|up to) .*|{name}, from the model")
        own = [one for one in row.attacks if one.goal == goal and on in (None, one.on) and named.fullmatch(one.title)]
        if own:
            return max(own, key=lambda one: (one.advantage, one.rate.value))
    return row.strongest(goal, on)


def reference_of(attacks: Sequence[Any]) -> float:
    """Return how often an attacker succeeds without what is shared, on average over the stops."""
    known: list[float] = [max(one.baseline, one.control or 0.0) for one in attacks if one is not None]
    return sum(known) / len(known)


def percent(t: Words, estimate: Estimate | None) -> str:
    """Return a measured share in percent; a dash for none."""
    return "-" if estimate is None else t.percent(estimate.value)


def interval(t: Words, ends: tuple[float, float] | None) -> str:
    """Return a confidence interval in words."""
    if ends is None:
        return t("frontier.no_interval")
    low, high = ends
    return t("frontier.interval", low=t.percent(low), high=t.percent(high))


def _interval(t: Words, estimate: Estimate | None) -> str:
    return interval(t, None if estimate is None else estimate.interval)


def _frontier_lead(
    t: Words, by: str, names: Sequence[str], best: Sequence[Estimate | None], raw: Estimate | None
) -> str:
    """Return how far one can go before the model loses clearly more than it did at the first stop."""
    measured = [(name, one) for name, one in zip(names, best, strict=True) if one is not None]
    if raw is None or len(measured) < 2:
        return t("frontier.lead_partial")
    first, last = measured[0], measured[-1]
    return t(
        "frontier.lead", by=by, first=first[0], last=last[0], small=t.points(first[1].value - raw.value),
        large=t.points(last[1].value - raw.value),
    )  # fmt: skip


def figure(
    t: Words,
    what: str,
    by: str,
    names: Sequence[str],
    at: int,
    estimates: Sequence[Estimate | None],
    *,
    base: float | None,
    upper: Sequence[float | None] | None = None,
    column: str | None = None,
) -> View:
    """Return a curve with its title and caption."""
    values = [None if one is None else one.value for one in estimates]
    said = ["" if value is None else t.percent(value) for value in values]
    lines = []
    if upper is not None:
        said = ["" if value is None else t("frontier.at_least", value=t.percent(value)) for value in values]
        most = ["" if value is None else t("frontier.at_most", value=t.percent(value)) for value in upper]
        lines.append(charts.Line(upper, [None] * len(names), most))
    lines.append(charts.Line(values, [None if one is None else one.interval for one in estimates], said))
    listed = "; ".join(f"{by} {name}: {text or '-'}" for name, text in zip(names, said, strict=True))
    is_model, title = what == "model", t(f"frontier.{what}", column=column or "")
    svg = charts.chart(
        lines, at=at, kind="keep" if is_model else "risk", title=f"{title}. {listed}",
        base=base, least=_LEAST_MODEL if is_model else _LEAST_ATTACK,
        number=lambda value: t.number(100 * value, 0 if abs(100 * value - round(100 * value)) < 1e-6 else 1),
        height=160 if is_model else 140,
    )  # fmt: skip
    n_done = sum(value is not None for value in values)
    is_bounded = what != "secret" or upper is not None
    caption = t(f"frontier.caption_{what}" if is_bounded else "frontier.caption_measured")
    if what == "member" and upper is not None:
        caption = t("frontier.caption_limited")
    if n_done < len(values):
        caption += " " + t("frontier.hollow", done=n_done, all=len(values))
    named = None if base is None else t(f"frontier.base_{what}", value=t.percent(base))
    return {"title": title, "caption": caption, "base": named, "svg": safe(svg)}


# -- compare -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A way to protect the table, measured or not.

    Attributes
    ----------
    family : str
        As the frontier calls it.
    number : float
    row : FrontierRow or None
    raw : FrontierRow or None
        The unprotected model of the same splits.
    settings : dict of str to (int or None), or None
        Under [method] of a policy that does it; None: no policy does.
    """

    family: str
    number: float
    row: FrontierRow | None
    raw: FrontierRow | None
    settings: dict[str, int | None] | None = None


def ways(studio: Studio) -> list[Way]:
    """Return the ways to protect the open table."""
    project = opened(studio)
    k, diversity = project.policy.get("method", "k"), project.policy.get("method", "l") or 3
    wanted: list[tuple[str, float, dict[str, int | None] | None]] = [
        ("k-release", k, {"k": k, "l": None}),
        ("k", k, None),
    ]
    if project.policy.get("columns", "sensitive"):
        wanted += [("l", diversity, {"k": k, "l": diversity}), ("anatomy", diversity, None)]
    wanted.append(("buckets", 50, None))
    if studio.public.is_file():
        wanted.append(("epsilon", 1, None))
    found = []
    for family, number, settings in wanted:
        points = studio.points(family)
        found.append(Way(family, number, row_of(points["rows"].get(f"{number:g}")), row_of(points["raw"]), settings))
    return found


def compare(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the ways side by side, who pays, and what bounds any attacker."""
    reason = why_not(studio, t)
    if reason is not None:
        return {"why_not": reason, "lead": t("frontier.lead_empty"), "ways": [], "payers": [], "bounds": []}
    policy = opened(studio).policy
    used = "l" if policy.get("method", "l") else "k-release"
    every = ways(studio)
    measured = [way for way in every if way.row is not None]
    shown = [
        {**_shown_way(t, way, is_used=way.family == used), "is_measuring": studio.measures(way.family)} for way in every
    ]
    k, n_columns = policy.get("method", "k"), len(opened(studio).rewritten)
    odds = {"value": t("frontier.odds", k=k), "note": t("frontier.odds_hint", n=n_columns)}
    bounds = [{"title": t("frontier.picking"), **odds}]
    for way in measured:
        assert way.row is not None
        if way.row.certificate is not None:
            own = way.row.certificate
            bounds.append(
                {"title": f"{t(f'compare.{way.family}', n=int(way.number))}: {t('compare.secret')}",
                 "value": t("frontier.at_most", value=t.percent(own.upper)),
                 "note": t("compare.bound_note", column=own.secret, base=t.percent(own.baseline))}
            )  # fmt: skip
        if way.row.limit is not None:
            bounds.append(
                {"title": f"{t(f'compare.{way.family}', n=int(way.number))}: {t('compare.member')}",
                 "value": t("frontier.at_most", value=t.percent(way.row.limit)), "note": t("compare.limit_note")}
            )  # fmt: skip
    bounds.append({"title": t("frontier.member"), "value": t("compare.none"), "note": t("compare.member_note")})
    raw = next((way.raw.best for way in measured if way.raw is not None and way.raw.best is not None), None)
    payers = next((way for way in measured if way.family == used and way.row is not None and way.row.subgroups), None)
    return {
        "why_not": None,
        "lead": t("compare.lead", n=len(measured), all=len(every))
        + ("" if raw is None else f" {t('compare.lead_raw', raw=t.percent(raw.value))}"),
        "ways": shown,
        "bounds": bounds,
        "payers": [] if payers is None else _payers(t, payers),
        "payers_of": "" if payers is None else t(f"compare.{payers.family}", n=int(payers.number)),
    }


def _shown_way(t: Words, way: Way, *, is_used: bool) -> View:
    def cell(estimate: Estimate | None, css_class: str, note: str = "") -> View | None:
        if estimate is None:
            return None
        bar = safe(charts.meter(estimate.value, css_class))
        return {"text": t.percent(estimate.value), "meter": bar, "note": note or _interval(t, estimate)}

    row = way.row
    attacks = {goal: attack_of(row, goal) for goal in ("membership", "attribute")}
    return {
        "family": way.family,
        "title": t(f"compare.{way.family}", n=int(way.number)),
        "hint": t(f"compare.{way.family.replace('-', '_')}_hint"),
        "is_used": is_used,
        "is_measured": row is not None,
        "can_be_used": way.settings is not None,
        "model": None if row is None else cell(row.best, "keep"),
        "member": None if attacks["membership"] is None else cell(attacks["membership"].rate, "risk"),
        "secret": None if attacks["attribute"] is None else cell(attacks["attribute"].rate, "risk"),
        "promise": t(f"compare.{way.family.replace('-', '_')}_promise", n=int(way.number)),
    }


def _payers(t: Words, way: Way) -> list[View]:
    """Return the change of the model for each subgroup, and whether it may be chance."""
    assert way.row is not None
    before = {} if way.raw is None else {(one.column, one.group): one.utility for one in way.raw.subgroups}
    found = []
    for one in way.row.subgroups:
        raw = before.get((one.column, one.group))
        if raw is None:
            continue
        change, after, earlier = one.utility.value - raw.value, one.utility.interval, raw.interval
        # Cautious: a change is clear if the intervals before and after do not meet.
        is_loss = after is not None and earlier is not None and after[1] < earlier[0]
        is_gain = after is not None and earlier is not None and after[0] > earlier[1]
        sure = t("compare.loss") if is_loss else t("compare.gain") if is_gain else t("compare.chance")
        if after is None or earlier is None:
            sure = t("frontier.no_interval")
        found.append(
            {
                "group": one.group,
                "column": one.column,
                "n": t.number(one.n_records),
                "change": t.points(change),
                "sure": sure,
                "before": t.percent(raw.value),
                "after": t.percent(one.utility.value),
                "interval": _interval(t, one.utility),
            }
        )
    return sorted(found, key=lambda one: str(one["column"]))
