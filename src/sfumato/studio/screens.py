# SPDX-License-Identifier: Apache-2.0
"""What each screen shows: names, numbers and sentences for its template. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.errors import ParameterError
from sfumato.policy.settings import SECTIONS
from sfumato.report.questionnaires import NAMES as QUESTIONNAIRES
from sfumato.studio import charts
from sfumato.studio.commands import commands
from sfumato.studio.measurements import View, compare, frontier, safe, stop_of, ways
from sfumato.studio.other_ways import anatomize, minimize
from sfumato.studio.project import ROLES, Project
from sfumato.studio.session import DIVERSITIES, LOSSES, Studio
from sfumato.studio.session import QUESTIONNAIRES as TICKED
from sfumato.studio.texts import Words

OUTPUTS = ("release", "artifact", "publication", "report", "audit")
"""Files that running a policy writes, by their names under [data]."""
QUESTIONS = ("purpose", "recipient", "access", "population", "reviewer", "review_by")
READING: Mapping[str, tuple[str, ...]] = {
    "separator": (",", ";", "tab", "|", "blanks"),
    "decimal": (".", ","),
    "encoding": ("utf-8", "cp1252", "latin-1", "utf-16", "cp437", "cp850", "mac-roman"),
    "header": ("yes", "no"),
}
"""Settings of a CSV file under [data], and what the screen offers for each."""
_BEGINS = {"minimize": 0.01, "anatomize": 3}  # the stops that sliders begin with
_MOST_NOTES = 30  # columns that need a second look; a table may have thousands
_MORE_TO_CONFIRM = ("rewrite", "protect", "drop")


# -- around every screen -------------------------------------------------------------------------------------------


def shell(studio: Studio, t: Words, screen: str, asked: Mapping[str, str]) -> View:
    """Return what stands around every screen."""
    project, looking = studio.project, studio.looking
    every = commands(studio, screen, asked, t.language)
    return {
        "project": project,
        "n_changes": studio.n_changes,
        "looking": looking,
        "job": studio.jobs.last,
        "is_running": studio.jobs.is_running,
        "is_busy": studio.is_busy,
        "rail": {} if project is None else _rail(studio, t),
        "commands": every,
        "command_at": stop_of(asked.get("at"), LOSSES if screen == "minimize" else DIVERSITIES, _BEGINS.get(screen)),
        "start_folder": studio.folder.name,
    }


def _rail(studio: Studio, t: Words) -> dict[str, tuple[str, bool]]:
    """Return the state of each screen in words, and whether something is open there."""
    project = studio.project
    assert project is not None
    states = dict.fromkeys(("table", "roles", "frontier", "compare", "release"), (t("rail.later"), False))
    is_failed = studio.looking is not None and studio.looking.state == "failed"
    states["table"] = (t("rail.failed" if is_failed else "rail.reading"), is_failed)
    states["roles"] = (t("rail.after_table"), False)
    if studio.facts is not None:
        states["table"] = (t("rail.records", n=studio.facts["n_records"]), False)
    if not project.has_policy or studio.suggested is None:
        return states
    left = len(studio.to_confirm())
    states["roles"] = (t("rail.confirm", n=left), True) if left else (t("rail.confirmed"), False)
    if left:
        return states
    diversity = project.policy.get("method", "l")
    states["frontier"] = (
        f"k = {t.number(project.policy.get('method', 'k'))}" + (f", l = {diversity}" if diversity else ""),
        False,
    )
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


# -- start, table, history -----------------------------------------------------------------------------------------


def start(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the tables and policies of the start folder."""
    return {"tables": studio.tables(), "policies": studio.policies(), "folder": studio.folder.name}


def table(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return what is in the table."""
    facts = studio.facts
    assert studio.project is not None
    if facts is None:
        is_failed = studio.looking is not None and studio.looking.state == "failed"
        can_differ = is_failed and not studio.project.has_policy and ".csv" in studio.project.file.suffixes
        return {
            "lead": t("table.lead_failed" if is_failed else "table.lead_reading"), "facts": None, "notes": [],
            "reading": READING if can_differ else None,
        }  # fmt: skip
    special = {one["name"]: one["special"] for one in studio.suggested or [] if one["special"] is not None}
    identifiers = {one["name"]: one["reason"] for one in studio.suggested or [] if one["role"] == "identifier"}
    project = studio.project
    decided = {*project.now.confirmed, *project.now.chosen} if project is not None and project.has_policy else set()
    notes = []
    for place, column in enumerate(facts["columns"]):
        name = column["name"]
        text = None
        if name in decided:
            continue  # somebody looked at it
        if name in identifiers:
            text = t("table.names_people")
        elif column["alone"] is None and column["is_near_unique"]:
            text = t("table.near_unique_few")
        elif column["is_near_unique"] or (column["alone"] or 0) > facts["n_records"] / 4:
            text = t("table.near_unique", share=t.percent((column["alone"] or 0) / facts["n_records"]))
        elif name in special:
            text = t("table.special", category=t.library(special[name]))
        elif column["n_values"] < 2:
            text = t("table.constant")
        if text is not None:
            notes.append({"column": name, "place": place, "text": text})

    def share(n: int | None) -> str:
        if n is None:
            return t("table.few")
        return t("table.none") if n == 0 else t.percent(n / facts["n_records"])

    is_drawing, preview = studio.drawn("preview", asked.get("drawn"))
    lead = t("table.lead", records=facts["n_records"], columns=len(facts["columns"]))
    return {
        "lead": f"{lead} {t('table.lead_notes', n=len(notes))}" if notes else f"{lead} {t('table.lead_calm')}",
        "facts": facts,
        "reading": None,
        "notes": notes[:_MOST_NOTES],
        "n_more": max(len(notes) - _MOST_NOTES, 0),
        "n_numbers": sum(column["kind"] == "number" for column in facts["columns"]),
        "share": share,
        "is_drawing": is_drawing,
        "drawing": t("table.drawing_later" if studio.waits_for_job else "table.drawing"),
        "preview": None if preview is None else preview["rows"],
        "drawn": asked.get("drawn", ""),
        # Shown once: a page that loads itself again would take it away.
        **({} if preview is None else {"is_busy": False}),
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
        return {"lead": t("roles.lead_reading"), "rows": [], "open": [], "uncounted": None}
    every, n_records = project.rewritten, facts["n_records"]
    is_counted, n_alone = studio.alone(every)
    places = {column["name"]: place for place, column in enumerate(facts["columns"])}
    left = {one["name"] for one in studio.to_confirm()}
    suggestions, together = studio.suggestions, frozenset(every)  # tables may have thousands of columns
    counting = t("roles.counting_later" if studio.waits_for_job else "roles.counting")
    rows = []
    for name, place in places.items():
        role, suggested = project.role(name), suggestions[name]
        counted, n = studio.alone(together - {name}) if role == "rewrite" else (False, None)
        told = (n_alone or 0) - (n or 0) if counted and is_counted else 0
        without = _of_people(t, n, n_records) if counted else counting
        rows.append(
            {
                "name": name, "place": place, "role": role, "suggested": suggested["role"], "is_open": name in left,
                "reason": suggested["reason"], "chosen": project.now.chosen.get(name), "told": told,
                "meter": safe(charts.meter(told / max(n_alone or 1, 1))) if counted else "",
                "without": without if role == "rewrite" else "-",
            }
        )  # fmt: skip
    rows.sort(key=lambda row: (ROLES.index(row["role"]), -row["told"], row["place"]))
    now = _of_people(t, n_alone, n_records) if is_counted else counting
    lead = t("roles.lead_later" if studio.waits_for_job else "roles.lead_counting", n=len(every))
    if is_counted:
        people = t("roles.few") if n_alone is None else t.number(n_alone)
        lead = t("roles.lead", n=len(every), people=people, all=n_records)
    return {
        "lead": lead,
        "rows": rows,
        "now": now,
        "open": [_question(project, t, one, places) for one in studio.to_confirm()],
        "uncounted": studio.uncounted,
    }


def _of_people(t: Words, n: int | None, n_records: int) -> str:
    return t("roles.few") if n is None else t.percent(n / n_records)


def _question(project: Project, t: Words, one: Mapping[str, Any], places: Mapping[str, int]) -> View:
    """Return a role that a person has to confirm."""
    name, role = one["name"], project.role(one["name"])
    is_target = role == "predict"
    title = (
        t("roles.ask_target", column=name)
        if is_target
        else t("roles.ask_special", column=name, category=t.library(one["special"]))
    )
    choices: tuple[str, ...] = ("predict",) if is_target else _MORE_TO_CONFIRM
    return {
        "place": places[name], "title": title, "role": role if role in choices else choices[0], "roles": choices,
        "hint": t("roles.ask_target_hint") if is_target else t("roles.ask_special_hint"),
    }  # fmt: skip


# -- release -------------------------------------------------------------------------------------------------------


def release(studio: Studio, t: Words, asked: Mapping[str, str]) -> View:
    """Return the lights of the gate, the questions, and what would be written."""
    project = studio.project
    assert project is not None
    if not project.has_policy:
        return {
            "lead": t("roles.lead_reading"), "audit": None, "lights": [], "conditions": [], "limits": [],
            "questions": [], "n_answered": 0, "outputs": [], "questionnaires": QUESTIONNAIRES,
            "ticked": TICKED, "is_there": False, "place": "",
            "why_not": t("frontier.why_reading"), "written": [], "is_ready": False,
        }  # fmt: skip
    policy, audit, written = project.policy, studio.audit, studio.written
    gate = {name: value for name, value in policy.values["gate"].items() if value is not None}
    checks = {} if audit is None else {check["name"]: check for check in audit["audit"]["gate"]}
    lights = [{**_light(t, name, checks.get(name)), "limit": _limit(t, name, value)} for name, value in gate.items()]
    outputs = [(path.name, role) for role in OUTPUTS if (path := policy.file(role)) is not None]
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
    if audit is None:
        lead = t("release.lead_open")
    elif n_met == len(lights):
        lead = t("release.lead_met", n=len(lights))
    else:
        lead = t("release.lead_refused", n=len(lights) - n_met, all=len(lights))
    questions = [
        {"name": name, "value": policy.get("context", name), "choices": SECTIONS["context"][name].choices}
        for name in QUESTIONS
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
        "questionnaires": QUESTIONNAIRES, "ticked": TICKED,
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


def _limit(t: Words, name: str, value: float) -> str:
    """Return what a condition asks for."""
    said = t.number(value) if SECTIONS["gate"][name].kind == "integer" else t.percent(value)
    return t("release.at_least" if name.startswith("min_") else "release.at_most", value=said)


def _light(t: Words, name: str, check: Mapping[str, Any] | None) -> View:
    """Return a condition as a light: met, not met, or not measured, which counts as not met."""
    title = _condition(t, name)
    if check is None:
        return {"css": "look", "sign": "?", "word": "not_measured", "title": title, "sentence": "", "passed": False}
    sentence = check["sentence"]
    if check["passed"]:
        return {"css": "ok", "sign": "✓", "word": "met", "title": title, "sentence": sentence, "passed": True}
    if check["measured"] is None and "cannot pass" in sentence:
        return {
            "css": "look",
            "sign": "?",
            "word": "not_measured",
            "title": title,
            "sentence": sentence,
            "passed": False,
        }
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
    "minimize": minimize,
    "anatomize": anatomize,
    "history": history,
}
