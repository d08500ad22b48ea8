# SPDX-License-Identifier: Apache-2.0
"""What the forms of the studio do: each changes something, and returns the address of the page to go to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

from sfumato.errors import InputError, ParameterError
from sfumato.policy.settings import SECTIONS
from sfumato.studio import screens
from sfumato.studio.measurements import check_ready, opened, ways
from sfumato.studio.session import CURVES, DIVERSITIES, LOSSES, Studio


@dataclass(frozen=True)
class Asked:
    """A form that was sent.

    Attributes
    ----------
    form : mapping of str to list of str
    page : str
        The page of the studio that it stands on.
    number : int or None
        In the address: of a column, or of a policy.
    language : str
        Of the page.
    """

    form: Mapping[str, list[str]]
    page: str
    number: int | None = None
    language: str = "en"

    def __contains__(self, name: str) -> bool:
        """Return True if the form has a field."""
        return name in self.form

    def __getitem__(self, name: str) -> str:
        """Return a field."""
        if name not in self.form:
            raise ParameterError(f"the form has no {name}: expected one. Load the page again.")
        return self.form[name][0]

    def real(self, name: str) -> float:
        """Return a field that is a number."""
        try:
            number = float(self[name])
        except ValueError:
            number = nan
        if not isfinite(number):
            raise ParameterError(f"the form's {name} is not a number: expected one. Load the page again.")
        return number


Change = Callable[[Studio, Asked], str]


# -- opening -------------------------------------------------------------------------------------------------------


def open_table(studio: Studio, asked: Asked) -> str:
    """Open a table or a policy."""
    studio.open(asked["path"])
    return "/table"


def open_example(studio: Studio, asked: Asked) -> str:
    """Write the example table and open it."""
    studio.open_example()
    return "/table"


def read_again(studio: Studio, asked: Asked) -> str:
    """Read a table that could not be read, as the form says."""
    given = {name: asked[name] for name, known in screens.READING.items() if name in asked and asked[name] in known}
    studio.read_again(given)
    return "/table"


def preview(studio: Studio, asked: Asked) -> str:
    """Draw some records."""
    return f"/table?drawn={studio.draw('preview')}"


def show_group(studio: Studio, asked: Asked) -> str:
    """Draw the values of one person's group."""
    check_ready(studio)
    at = int(asked.real("at"))
    if not 0 <= at < len(CURVES["k"].stops):
        raise ParameterError("there is no such stop: expected one of the slider. Load the page again.")
    return f"/frontier?by=k&at={at}&drawn={studio.draw('group', k=int(CURVES['k'].stops[at]))}"


# -- changing the policy -------------------------------------------------------------------------------------------


def set_role(studio: Studio, asked: Asked) -> str:
    """Give a column a role, or confirm it."""
    project = opened(studio)
    columns = [one["name"] for one in (studio.facts or {"columns": []})["columns"]]
    if asked.number is None or asked.number >= len(columns):
        raise InputError("there is no such column: expected one of the table. Load the page again.")
    role: Any = asked["role"]
    project.set_role(columns[asked.number], role, confirm="confirm" in asked)
    return _changed(studio, "/roles")


def use(studio: Studio, asked: Asked) -> str:
    """Take what the mark of a curve shows into the policy, and into its gate."""
    by, given = asked["by"], asked.real("value")
    if by not in CURVES or CURVES[by].setting is None:
        raise InputError("there is no such setting: expected k, l or t. Load the page again.")
    value = int(given) if given.is_integer() else given
    method, gate = {by: value}, {f"min_{by}": value} if f"min_{by}" in SECTIONS["gate"] else {}
    opened(studio).set("use", {"name": by, "value": value}, method=method, gate=gate)
    return _changed(studio, f"/frontier?by={by}&at={int(asked.real('at'))}")


def use_way(studio: Studio, asked: Asked) -> str:
    """Take one of the ways that are compared into the policy."""
    way = next((one for one in ways(studio) if one.family == asked["family"] and one.settings is not None), None)
    if way is None or way.settings is None:
        raise InputError("no policy does this: expected one of the ways that a policy can do. Load the page again.")
    diversity = way.settings["l"]
    about = {"name": "k", "value": way.settings["k"]} if diversity is None else {"name": "l", "value": diversity}
    opened(studio).set("use", about, method=way.settings, gate={f"min_{by}": n for by, n in way.settings.items()})
    return _changed(studio, "/compare")


def answers(studio: Studio, asked: Asked) -> str:
    """Keep the answers about the release."""
    given = {name: asked[name].strip() or None for name in screens.QUESTIONS if name in asked}
    opened(studio).set("answers", {}, context=given)
    return _changed(studio, "/release")


def conditions(studio: Studio, asked: Asked) -> str:
    """Set the conditions of the gate."""
    given = {name: screens.as_number(name, asked[name]) for name in SECTIONS["gate"] if name in asked}
    opened(studio).set("conditions", {}, gate=given)
    return _changed(studio, "/release")


def undo(studio: Studio, asked: Asked) -> str:
    """Go back to the policy before this one."""
    opened(studio).undo()
    return _changed(studio, asked.page)


def go_back(studio: Studio, asked: Asked) -> str:
    """Take an earlier policy again."""
    opened(studio).go_back(asked.number or 0)
    return _changed(studio, "/history")


def _changed(studio: Studio, page: str) -> str:
    studio.count_again()
    studio.publish("policy")
    return page


# -- jobs ----------------------------------------------------------------------------------------------------------


def measure(studio: Studio, asked: Asked) -> str:
    """Measure what is missing of a curve."""
    by = asked["by"]
    if by not in CURVES:
        raise ParameterError(f"there is nothing of that name to measure: expected one of {', '.join(CURVES)}.")
    check_ready(studio)
    studio.measure(CURVES[by].family, CURVES[by].stops)
    return f"/frontier?by={by}"


def measure_way(studio: Studio, asked: Asked) -> str:
    """Measure one of the ways that are compared."""
    known = {way.family: way for way in ways(studio)}
    if asked["family"] not in known:
        raise ParameterError("there is no such way to protect this table: expected one of the page.")
    check_ready(studio)
    studio.measure(asked["family"], [known[asked["family"]].number])
    return "/compare"


def judge(studio: Studio, asked: Asked) -> str:
    """Judge the conditions of the gate."""
    check_ready(studio)
    studio.judge()
    return "/release"


def write(studio: Studio, asked: Asked) -> str:
    """Write the release and the evidence pack."""
    if studio.audit is None or studio.audit["passed"] is False:
        raise ParameterError("the gate has not passed with this policy: expected it to, before anything is written.")
    check_ready(studio)
    studio.write(asked.form.get("for", []), force="force" in asked)
    return "/release"


def learn(studio: Studio, asked: Asked) -> str:
    """Learn forms."""
    check_ready(studio)
    studio.learn_forms()
    return "/minimize"


def divide(studio: Studio, asked: Asked) -> str:
    """Measure two tables."""
    check_ready(studio)
    studio.measure("anatomy", DIVERSITIES)
    return "/anatomize"


def _write_other(kind: str, stops: Sequence[float]) -> Change:
    """Return what writes the form, or the two tables, of a stop."""

    def act(studio: Studio, asked: Asked) -> str:
        value = asked.real("value")
        if value not in stops:
            raise ParameterError("there is no such stop: expected one of the slider. Load the page again.")
        check_ready(studio)
        studio.write_other(kind, value, force="force" in asked, language=asked.language)
        return f"/{kind}?at={stops.index(value)}"

    return act


def cancel(studio: Studio, asked: Asked) -> str:
    """Stop the running job."""
    studio.jobs.ask_to_stop()
    return asked.page


CHANGES: dict[str, Change] = {
    "/open": open_table,
    "/example": open_example,
    "/table/read": read_again,
    "/table/preview": preview,
    "/roles/{number:int}": set_role,
    "/frontier/measure": measure,
    "/frontier/use": use,
    "/frontier/group": show_group,
    "/compare/measure": measure_way,
    "/compare/use": use_way,
    "/release/conditions": conditions,
    "/release/answers": answers,
    "/release/judge": judge,
    "/release/write": write,
    "/minimize/learn": learn,
    "/minimize/write": _write_other("minimize", LOSSES),
    "/anatomize/measure": divide,
    "/anatomize/write": _write_other("anatomize", DIVERSITIES),
    "/job/cancel": cancel,
    "/undo": undo,
    "/back/{number:int}": go_back,
}
WAYS_OUT = (undo, go_back)
"""They do not look at a policy that was changed outside first: they are the way out of one that is wrong."""
