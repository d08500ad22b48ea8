# SPDX-License-Identifier: Apache-2.0
"""What each screen shows: names, numbers and sentences for its template. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InputError, ParameterError
from sfumato.policy.settings import SECTIONS
from sfumato.report.frontier_row import Estimate, FrontierRow
from sfumato.report.questionnaires import NAMES as QUESTIONNAIRES
from sfumato.studio import charts
from sfumato.studio.project import ROLES, Project
from sfumato.studio.session import DIVERSITIES, SIZES, Studio
from sfumato.studio.texts import Words

View = dict[str, Any]
QUESTIONS = ("purpose", "recipient", "access", "population", "reviewer", "review_by")
_MORE_TO_CONFIRM = ("rewrite", "protect", "drop")
_ONE_OF_MANY = 0.02, 0.1  # smallest spans of the axes: the model's and attackers'


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


def _safe(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)  # the charts escape what they show


# -- around every screen -------------------------------------------------------------------------------------------


def shell(studio: Studio, t: Words, screen: str) -> View:
    """Return what stands around every screen."""
    project, looking = studio.project, studio.looking
    is_looking = looking is not None and looking.state == "running"
    return {
        "project": project,
        "looking": looking,
        "job": studio.jobs.last,
        "is_running": studio.jobs.is_running,
        "is_busy": studio.jobs.is_running or is_looking,
        "rail": {} if project is None else _rail(studio, t),
        "command": _command(project, screen),
    }


def _rail(studio: Studio, t: Words) -> dict[str, tuple[str, bool]]:
    """Return the state of each screen in words, and whether something is open there."""
    project = studio.project
    assert project is not None
    later = (t("rail.later"), False)
    states = dict.fromkeys(("table", "roles", "frontier", "compare", "release"), later)
    if studio.facts is not None:
        states["table"] = (t("rail.records", n=studio.facts["n_records"]), False)
    if not project.has_policy or studio.suggested is None:
        return states
    left = len(studio.to_confirm())
    states["roles"] = (t("rail.confirm", n=left), True) if left else (t("rail.confirmed"), False)
    if left:
        return states
    diversity = project.policy.get("method", "l")
    states["frontier"] = (f"k = {t.number(project.policy.get('method', 'k'))}" + (f", l = {diversity}" if diversity else ""), False)
    measured = sum(way.row is not None for way in ways(studio))
    states["compare"] = (t("rail.ways", n=len(ways(studio)), measured=measured), False)
    audit = studio.audit
    if audit is None:
        states["release"] = (t("rail.not_judged"), False)
    else:
        checks = audit["audit"]["gate"]
        met = sum(check["passed"] for check in checks)
        states["release"] = (t("rail.met", met=met, all=len(checks)), met < len(checks))
    return states


def _command(project: Project | None, screen: str) -> str:
    """Return the command that does the same."""
    if project is None or screen == "start":
        return "sfumato studio"
    policy = project.policy_file.name
    numbers = {
        "frontier": f"sfumato frontier {policy} --k-release {','.join(map(str, SIZES))} --splits 1",
        "compare": f"sfumato frontier {policy} --splits 1",
        "release": f"sfumato run {policy} && sfumato evidence {policy} -o {project.file.stem}-evidence.zip",
        "table": f"sfumato init {project.file.name} --target ... -o {policy}",
    }
    return numbers.get(screen, f"sfumato run {policy}")


# -- start, table, history -----------------------------------------------------------------------------------------


def start(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the tables and policies of the start folder."""
    return {"tables": studio.tables(), "policies": studio.policies(), "folder": studio.folder.name}


def table(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return what is in the table."""
    facts = studio.facts
    if facts is None:
        return {"lead": t("table.lead_reading"), "facts": None, "notes": [], "preview": None}
    special = {one["name"]: one["special"] for one in studio.suggested or [] if one["special"] is not None}
    identifiers = {one["name"]: one["reason"] for one in studio.suggested or [] if one["role"] == "identifier"}
    notes = []
    for place, column in enumerate(facts["columns"]):
        name = column["name"]
        text = None
        if name in identifiers:
            text = t("table.names_people")
        elif column["is_near_unique"] or (column["alone"] or 0) > facts["n_records"] / 4:
            text = t("table.near_unique", share=t.percent((column["alone"] or 0) / facts["n_records"]))
        elif name in special:
            text = t("table.special", category=special[name])
        elif column["n_values"] < 2:
            text = t("table.constant")
        if text is not None:
            notes.append({"column": name, "place": place, "text": text})

    def share(n: int | None) -> str:
        if n is None:
            return t("table.few")
        return t("table.none") if n == 0 else t.percent(n / facts["n_records"])

    lead = t("table.lead", records=facts["n_records"], columns=len(facts["columns"]))
    return {
        "lead": f"{lead} {t('table.lead_notes', n=len(notes))}" if notes else f"{lead} {t('table.lead_calm')}",
        "facts": facts,
        "notes": notes,
        "n_numbers": sum(column["kind"] == "number" for column in facts["columns"]),
        "share": share,
        "preview": None,
    }


def history(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return all policies that were, the one of now first."""
    versions = [] if studio.project is None else studio.project.versions[::-1]
    shown = []
    for one in versions:
        about = dict(one.about)
        if "role" in about:
            about["role"] = t(f"roles.{about['role']}")
        if "at" in about:
            about["at"] = t.time(about["at"])
        shown.append({"number": one.number, "at": one.at, "text": t(f"history.{one.what}", **about)})
    return {"versions": shown}


# -- roles ---------------------------------------------------------------------------------------------------------


def roles(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the role of every column, with the reason and how many people are alone without it."""
    project, facts = studio.project, studio.facts
    if project is None or not project.has_policy or facts is None or studio.suggested is None:
        return {"lead": t("roles.lead_reading"), "rows": [], "open": []}
    every, n_records = project.rewritten, facts["n_records"]
    is_counted, n_alone = studio.alone(every)
    places = {column["name"]: place for place, column in enumerate(facts["columns"])}
    left = {one["name"] for one in studio.to_confirm()}
    rows = []
    for name, place in places.items():
        role, suggested = project.role(name), studio.suggestion(name)
        counted, n = studio.alone([other for other in every if other != name]) if role == "rewrite" else (False, None)
        told = (n_alone or 0) - (n or 0) if counted and is_counted else 0
        rows.append(
            {
                "name": name, "place": place, "role": role, "suggested": suggested["role"], "is_open": name in left,
                "reason": suggested["reason"], "chosen": project.now.chosen.get(name), "told": told,
                "meter": _safe(charts.meter(told / max(n_alone or 1, 1))) if counted else "",
                "without": "-" if role != "rewrite" else _of_people(t, n, n_records) if counted else t("roles.counting"),
            }
        )  # fmt: skip
    rows.sort(key=lambda row: (ROLES.index(row["role"]), -row["told"], row["place"]))
    now = _of_people(t, n_alone, n_records) if is_counted else t("roles.counting")
    lead = t("roles.lead_counting", n=len(every))
    if is_counted:
        people = t("roles.few") if n_alone is None else t.number(n_alone)
        lead = t("roles.lead", n=len(every), people=people, all=n_records)
    return {"lead": lead, "rows": rows, "now": now, "open": [_question(project, t, one, places) for one in studio.to_confirm()]}


def _of_people(t: Words, n: int | None, n_records: int) -> str:
    return t("roles.few") if n is None else t.percent(n / n_records)


def _question(project: Project, t: Words, one: Mapping[str, Any], places: Mapping[str, int]) -> View:
    """Return a role that a person has to confirm."""
    name, role = one["name"], project.role(one["name"])
    is_target = role == "predict"
    title = t("roles.ask_target", column=name) if is_target else t("roles.ask_special", column=name, category=one["special"])
    choices = ("predict", *_MORE_TO_CONFIRM) if is_target else _MORE_TO_CONFIRM
    if is_target:
        choices = ("predict",)
    return {
        "place": places[name], "title": title, "role": role if role in choices else choices[0], "roles": choices,
        "hint": t("roles.ask_target_hint") if is_target else t("roles.ask_special_hint"),
    }  # fmt: skip


# -- frontier ------------------------------------------------------------------------------------------------------


def _why_not(studio: Studio, t: Words) -> str | None:
    """Return why nothing can be measured yet; None if it can."""
    if studio.project is None or not studio.project.has_policy or studio.suggested is None:
        return t("frontier.why_reading")
    left = studio.to_confirm()
    return t("frontier.why_confirm", n=len(left)) if left else None


def _row(document: Mapping[str, Any] | None) -> FrontierRow | None:
    return None if document is None else FrontierRow.from_dict(document)


def frontier(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the curves over k or l, and everything that is said at each stop."""
    by = "l" if asked.get("by") == "l" else "k"
    why_not = _why_not(studio, t)
    if why_not is None and by == "l" and not opened(studio).policy.get("columns", "sensitive"):
        why_not = t("frontier.why_sensitive")
    stops = SIZES if by == "k" else DIVERSITIES
    base: View = {"by": by, "why_not": why_not, "stops": stops, "lead": t("frontier.lead_empty"), "columns": []}
    if why_not is not None:
        return {**base, "n_missing": 0, "n_measured": 0}
    project = opened(studio)
    points = studio.points("k-release" if by == "k" else "l")
    rows = [_row(points["rows"].get(f"{stop:g}")) for stop in stops]
    raw, n_measured = _row(points["raw"]), sum(row is not None for row in rows)
    used = project.policy.get("method", by)
    at = _stop(asked.get("at"), stops, used)
    names = [t.number(stop) for stop in stops]
    view = {**base, "at": at, "n_missing": len(stops) - n_measured, "n_measured": n_measured, "names": names}
    if n_measured == 0:
        return view
    best = [None if row is None else row.best for row in rows]
    member = [_attack_of(row, "membership") for row in rows]
    secret = [_attack_of(row, "attribute") for row in rows]
    bound = [None if row is None or row.certificate is None else row.certificate.upper for row in rows]
    raw_best = None if raw is None else raw.best
    figures = [_figure(t, "model", by, names, at, best, base=None if raw_best is None else raw_best.value)]
    column = next((row.certificate.secret for row in rows if row is not None and row.certificate is not None), None)
    if any(one is not None for one in secret):
        known = next(one for one in secret if one is not None)
        upper = bound if any(value is not None for value in bound) else None
        figures.append(
            _figure(t, "secret", by, names, at, [None if one is None else one.rate for one in secret],
                    base=known.baseline, upper=upper, column=column)
        )  # fmt: skip
    figures.append(
        _figure(t, "member", by, names, at, [None if one is None else one.rate for one in member], base=0.5)
    )
    said = [_percent(t, one) for one in best]
    told = [_percent(t, None if one is None else one.rate) for one in member]
    changes = [
        t("frontier.change", change=t.points(one.value - raw_best.value), raw=t.percent(raw_best.value), sure=_interval(t, one))
        if one is not None and raw_best is not None else t("frontier.to_come")
        for one in best
    ]  # fmt: skip
    readout = [{"title": t("frontier.model"), "said": said, "notes": changes}]
    if by == "k":
        odds = [t("frontier.odds", k=stop) for stop in stops]
        hint = t("frontier.odds_hint", n=len(project.rewritten))
        readout.insert(0, {"title": t("frontier.picking"), "said": odds, "notes": [hint] * len(stops)})
    if any(one is not None for one in secret):
        values = [_percent(t, None if one is None else one.rate) for one in secret]
        limits = [t("frontier.bound", bound=t.percent(value)) if value is not None else t("frontier.no_bound") for value in bound]
        readout.append({"title": t("frontier.secret", column=column or ""), "said": values, "notes": limits})
    notes = [t("frontier.measured_only", sure=_interval(t, None if one is None else one.rate)) for one in member]
    readout.append({"title": t("frontier.member"), "said": told, "notes": notes})
    says = [
        t("frontier.says", by=by, stop=name, model=model, member=other)
        for name, model, other in zip(names, said, told, strict=True)
    ]
    columns = []
    for place, stop in enumerate(stops if by == "k" else ()):
        found = points["columns"].get(str(stop))
        if found is not None:
            ordered = sorted(found, key=lambda one: -(one["loss"] or 0))
            columns.append((place, [{**one, "meter": _safe(charts.meter(one["loss"] or 0, "keep"))} for one in ordered]))
    return {
        **view,
        "lead": _frontier_lead(t, by, names, best, raw_best),
        "figures": figures,
        "axis": _safe(charts.axis(names)),
        "says": says,
        "promise": [t(f"frontier.promise_{by}", n=stop) for stop in stops],
        "readout": readout,
        "uses": [t("frontier.used" if stop == used else "frontier.use", by=by, stop=name) for stop, name in zip(stops, names, strict=True)],
        "numbers": {
            "names": [t("frontier.model"), t("frontier.member"), t("frontier.seconds")],
            "rows": [
                (name, model, other, "" if row is None else t.number(row.seconds, 1))
                for name, model, other, row in zip(names, said, told, rows, strict=True)
            ],
        },
        "columns": columns,
    }


def _stop(asked: str | None, stops: Sequence[int], used: int | None) -> int:
    """Return the number of the stop that was asked for, or else the one that the policy uses, or is nearest to it."""
    if asked is not None and asked.isdecimal() and int(asked) < len(stops):
        return int(asked)
    return min(range(len(stops)), key=lambda place: abs(stops[place] - (used or stops[0])))


def _attack_of(row: FrontierRow | None, goal: Any) -> Any:
    return None if row is None else row.strongest(goal)


def _percent(t: Words, estimate: Estimate | None) -> str:
    return "-" if estimate is None else t.percent(estimate.value)


def _interval(t: Words, estimate: Estimate | None) -> str:
    if estimate is None or estimate.interval is None:
        return t("frontier.no_interval")
    low, high = estimate.interval
    return t("frontier.interval", low=t.percent(low), high=t.percent(high))


def _frontier_lead(t: Words, by: str, names: Sequence[str], best: Sequence[Estimate | None], raw: Estimate | None) -> str:
    """Return how far one can go before the model loses clearly more than it did at the first stop."""
    measured = [(name, one) for name, one in zip(names, best, strict=True) if one is not None]
    if raw is None or len(measured) < 2:
        return t("frontier.lead_partial")
    first, last = measured[0], measured[-1]
    return t(
        "frontier.lead", by=by, first=first[0], last=last[0], small=t.points(first[1].value - raw.value),
        large=t.points(last[1].value - raw.value),
    )  # fmt: skip


def _figure(
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
    is_model = what == "model"
    svg = charts.chart(
        lines, at=at, kind="keep" if is_model else "risk", title=f"{t(f'frontier.{what}', column=column or '')}. {listed}",
        base=None if base is None else (base, t(f"frontier.base_{what}", value=t.percent(base))),
        least=_ONE_OF_MANY[0] if is_model else _ONE_OF_MANY[1], number=lambda value: t.number(100 * value, 0 if value * 1000 % 10 < 1e-6 else 1),
        height=160 if is_model else 140,
    )  # fmt: skip
    n_done = sum(value is not None for value in values)
    caption = t(f"frontier.caption_{what}")
    if n_done < len(values):
        caption += " " + t("frontier.hollow", done=n_done, all=len(values))
    return {"title": t(f"frontier.{what}", column=column or ""), "caption": caption, "svg": _safe(svg)}


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
    use : (str, int) or None
        The setting of the policy that does it.
    """

    family: str
    number: float
    row: FrontierRow | None
    raw: FrontierRow | None
    use: tuple[str, int] | None = None


def ways(studio: Studio) -> list[Way]:
    """Return the ways to protect the open table."""
    project = opened(studio)
    k, diversity = project.policy.get("method", "k"), project.policy.get("method", "l") or 3
    wanted: list[tuple[str, float, tuple[str, int] | None]] = [("k-release", k, ("k", k)), ("k", k, None)]
    if project.policy.get("columns", "sensitive"):
        wanted += [("l", diversity, ("l", diversity)), ("anatomy", diversity, None)]
    wanted.append(("buckets", 50, None))
    found = []
    for family, number, use in wanted:
        points = studio.points(family)
        found.append(Way(family, number, _row(points["rows"].get(f"{number:g}")), _row(points["raw"]), use))
    return found


def compare(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the ways side by side, who pays, and what bounds any attacker."""
    why_not = _why_not(studio, t)
    if why_not is not None:
        return {"why_not": why_not, "lead": t("frontier.lead_empty"), "ways": [], "payers": [], "bounds": []}
    policy = opened(studio).policy
    used = "l" if policy.get("method", "l") else "k-release"
    every = ways(studio)
    measured = [way for way in every if way.row is not None]
    shown = [_shown_way(t, way, is_used=way.family == used) for way in every]
    bounds = []
    for way in measured:
        assert way.row is not None
        if way.row.certificate is not None:
            own = way.row.certificate
            bounds.append(
                {"title": t(f"compare.{way.family}", n=int(way.number)), "value": t("frontier.at_most", value=t.percent(own.upper)),
                 "note": t("compare.bound_note", column=own.secret, base=t.percent(own.baseline))}
            )  # fmt: skip
    payers = next((way for way in measured if way.family == used and way.row is not None and way.row.subgroups), None)
    return {
        "why_not": None,
        "lead": t("compare.lead", n=len(measured), all=len(every)),
        "ways": shown,
        "bounds": bounds,
        "payers": [] if payers is None else _payers(t, payers),
        "payers_of": "" if payers is None else t(f"compare.{payers.family}", n=int(payers.number)),
    }


def _shown_way(t: Words, way: Way, *, is_used: bool) -> View:
    def cell(estimate: Estimate | None, css_class: str, note: str = "") -> View | None:
        if estimate is None:
            return None
        bar = _safe(charts.meter(estimate.value, css_class))
        return {"text": t.percent(estimate.value), "meter": bar, "note": note or _interval(t, estimate)}

    row = way.row
    attacks = {goal: _attack_of(row, goal) for goal in ("membership", "attribute")}
    return {
        "family": way.family,
        "title": t(f"compare.{way.family}", n=int(way.number)),
        "hint": t(f"compare.{way.family.replace('-', '_')}_hint"),
        "is_used": is_used,
        "is_measured": row is not None,
        "use": way.use,
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
        change, ends = one.utility.value - raw.value, one.utility.interval
        # The interval is of the protected model's score; a loss is clear if it ends below the raw one.
        is_loss, is_gain = ends is not None and ends[1] < raw.value, ends is not None and ends[0] > raw.value
        sure = t("compare.loss") if is_loss else t("compare.gain") if is_gain else t("compare.chance")
        found.append(
            {"group": one.group, "column": one.column, "n": t.number(one.n_records), "change": t.points(change), "sure": sure}
        )
    return sorted(found, key=lambda one: str(one["column"]))


# -- release -------------------------------------------------------------------------------------------------------


def release(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the lights of the gate, the questions, and what would be written."""
    from sfumato.auditing.run_outputs import outputs_of

    project = studio.project
    assert project is not None
    if not project.has_policy:
        return {
            "lead": t("roles.lead_reading"), "audit": None, "lights": [], "conditions": [], "limits": [], "questions": [],
            "n_answered": 0, "outputs": [], "questionnaires": QUESTIONNAIRES, "is_there": False, "place": "",
            "why_not": t("frontier.why_reading"), "written": [], "is_ready": False,
        }  # fmt: skip
    policy, audit, written = project.policy, studio.audit, studio.written
    gate = {name: value for name, value in policy.values["gate"].items() if value is not None}
    checks = {} if audit is None else {check["name"]: check for check in audit["audit"]["gate"]}
    lights = [_light(t, name, checks.get(name)) for name in gate]
    outputs = [(path.name, role) for role, path in outputs_of(policy).items()]
    outputs += [(studio.pack, "evidence"), (project.policy_file.name, "policy")]
    is_there = any((project.policy_file.parent / name).exists() for name, role in outputs if role != "policy")
    why_not = None
    if audit is None:
        why_not = t("release.why_judge")
    elif audit["passed"] is False:
        why_not = t("release.why_gate")
    elif studio.jobs.is_running:
        why_not = t("release.why_running")
    n_met = sum(light["passed"] for light in lights)
    lead = t("release.lead_open") if audit is None else t("release.lead_met", n=len(lights)) if n_met == len(lights) else t(
        "release.lead_refused", n=len(lights) - n_met, all=len(lights)
    )  # fmt: skip
    questions = [
        {"name": name, "value": policy.get("context", name), "choices": SECTIONS["context"][name].choices} for name in QUESTIONS
    ]
    exact = [name for name in (policy.get("columns", "target"), *policy.get("columns", "sensitive")) if name]
    return {
        "lead": lead,
        "audit": audit,
        "lights": lights,
        "conditions": [
            {"name": name, "title": _condition(t, name), "value": "" if value is None else f"{value:g}",
             "sentence": SECTIONS["gate"][name].sentence}
            for name, value in policy.values["gate"].items() if name in _CONDITIONS
        ],
        "limits": [
            t("release.limit_groups", n=policy.get("method", "k")),
            t("release.limit_exact", columns=", ".join(exact)),
            t("release.limit_attacks"),
            t("release.limit_twice"),
        ],
        "questions": questions,
        "n_answered": sum(one["value"] is not None for one in questions),
        "outputs": outputs,
        "questionnaires": QUESTIONNAIRES,
        "is_there": is_there,
        "place": project.policy_file.parent.name,
        "why_not": why_not,
        "written": written,
        "is_ready": not studio.to_confirm() and studio.suggested is not None,
    }  # fmt: skip


_CONDITIONS = (
    "min_k", "min_l", "max_attack_advantage", "max_unique", "max_unique_target", "min_accuracy_kept", "min_gain_kept",
    "max_suppressed",
)  # fmt: skip


def _condition(t: Words, name: str) -> str:
    return t(f"release.{name}") if t.has(f"release.{name}") else name.replace("_", " ")


def _light(t: Words, name: str, check: Mapping[str, Any] | None) -> View:
    """Return a condition as a light: met, not met, or not measured, which counts as not met."""
    title = _condition(t, name)
    if check is None:
        return {"css": "look", "sign": "?", "word": "not_measured", "title": title, "sentence": "", "passed": False}
    sentence = check["sentence"]
    if check["passed"]:
        return {"css": "ok", "sign": "✓", "word": "met", "title": title, "sentence": sentence, "passed": True}
    if check["measured"] is None and "cannot pass" in sentence:
        return {"css": "look", "sign": "?", "word": "not_measured", "title": title, "sentence": sentence, "passed": False}
    return {"css": "no", "sign": "✗", "word": "not_met", "title": title, "sentence": sentence, "passed": False}


def as_number(name: str, text: str) -> float | None:
    """Read a condition of the gate; nothing means that it is not required."""
    text = text.strip().replace(",", ".")
    if not text:
        return None
    try:
        return int(text) if SECTIONS["gate"][name].kind == "integer" else float(text)
    except ValueError:
        raise ParameterError(f"[gate] {name}: expected a number, or nothing. Correct it.") from None


SCREENS: dict[str, Callable[[Studio, Words, Mapping[str, str]], View]] = {
    "start": start,
    "table": table,
    "roles": roles,
    "frontier": frontier,
    "compare": compare,
    "release": release,
    "history": history,
}
