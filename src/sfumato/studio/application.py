# SPDX-License-Identifier: Apache-2.0
"""The addresses of the studio. Looking is GET and changes nothing; changes are POST and lead back to a page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from sfumato.errors import InputError, ParameterError, SfumatoError
from sfumato.policy.setting_names import with_keys
from sfumato.policy.settings import SECTIONS
from sfumato.studio import charts, screens
from sfumato.studio.measurements import check_ready, opened, ways
from sfumato.studio.security import MOST_BYTES_OF_A_FORM, Guard
from sfumato.studio.session import CURVES, DIVERSITIES, LOSSES, Studio
from sfumato.studio.texts import LANGUAGES, Words, preferred

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_THEMES = ("light", "dark")
_KINDS = {"studio.css": "text/css", "studio.js": "text/javascript"}
Form = Mapping[str, list[str]]


def create_application(studio: Studio, on_quit: Callable[[], None]) -> Guard:
    """Return the guarded application.

    Parameters
    ----------
    studio : Studio
    on_quit : callable
        Called when somebody asks the studio to end.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
    from starlette.routing import Route

    templates = Environment(
        loader=PackageLoader("sfumato.studio"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    for name in templates.list_templates():
        templates.get_template(name)  # compiled now, so that no first page waits for it
    templates.globals["shape"] = lambda shares: Markup(charts.shape(shares))

    def words_of(request: Request) -> Words:
        said = request.cookies.get("language")
        return Words(said if said in LANGUAGES else preferred(request.headers.get("accept-language", "")))

    def shown(request: Request, screen: str, template: str = "", status: int = 200, **more: Any) -> Response:
        """Return a screen."""
        t, theme = words_of(request), request.cookies.get("theme")
        view = {
            **screens.shell(studio, t, screen, request.query_params),
            **(screens.SCREENS[screen](studio, t, request.query_params) if screen in screens.SCREENS else {}),
            **more,
        }
        page = templates.get_template(template or f"{screen}.html")
        return HTMLResponse(page.render(t=t, screen=screen, theme=theme if theme in _THEMES else None, **view), status)

    def screen(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def show(request: Request) -> Response:
            if studio.project is None and name != "start":
                return RedirectResponse("/", 303)
            studio.refresh()
            return shown(request, name)

        return show

    def change(
        act: Callable[[Request, Form], str | Awaitable[str]], *, refresh: bool = True
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that changes something and goes to the page whose address `act` returns.

        Going back does not look at a policy that was changed outside first: it is the way out of one that is wrong.
        """

        async def handle(request: Request) -> Response:
            form = await _form(request)
            if refresh:
                studio.refresh()
            address = act(request, form)
            return RedirectResponse(address if isinstance(address, str) else await address, 303)

        return handle

    # -- opening ---------------------------------------------------------------------------------------------------

    def open_table(request: Request, form: Form) -> str:
        studio.open(_one(form, "path"))
        return "/table"

    async def open_example(request: Request, form: Form) -> str:
        studio.open_example()
        return "/table"

    def preview(request: Request, form: Form) -> str:
        return f"/table?drawn={studio.draw()}"

    # -- changing the policy ---------------------------------------------------------------------------------------

    def changed() -> None:
        studio.count_again()
        studio.publish("policy")

    def set_role(request: Request, form: Form) -> str:
        columns = [one["name"] for one in (studio.facts or {"columns": []})["columns"]]
        place = request.path_params["place"]
        if studio.project is None or place >= len(columns):
            raise InputError("there is no such column: expected one of the table. Load the page again.")
        role: Any = _one(form, "role")
        studio.project.set_role(columns[place], role, confirm="confirm" in form)
        changed()
        return "/roles"

    def use(request: Request, form: Form) -> str:
        by, given = _one(form, "by"), float(_one(form, "value"))
        if studio.project is None or by not in CURVES or CURVES[by].setting is None:
            raise InputError("there is no such setting: expected k, l or t. Load the page again.")
        value = int(given) if given.is_integer() else given
        method, gate = {by: value}, {f"min_{by}": value} if f"min_{by}" in SECTIONS["gate"] else {}
        studio.project.set("use", {"name": by, "value": value}, method=method, gate=gate)
        changed()
        return f"/frontier?by={by}&at={int(_one(form, 'at'))}" if "at" in form else "/compare"

    def answers(request: Request, form: Form) -> str:
        given = {name: _one(form, name).strip() or None for name in screens.QUESTIONS if name in form}
        opened(studio).set("answers", {}, context=given)
        changed()
        return "/release"

    def conditions(request: Request, form: Form) -> str:
        project = opened(studio)
        given = {name: screens.as_number(name, _one(form, name)) for name in SECTIONS["gate"] if name in form}
        project.set("conditions", {}, gate=given)
        changed()
        return "/release"

    def undo(request: Request, form: Form) -> str:
        opened(studio).undo()
        changed()
        return _page_of(request)

    def back(request: Request, form: Form) -> str:
        opened(studio).go_back(request.path_params["number"])
        changed()
        return "/history"

    # -- jobs ------------------------------------------------------------------------------------------------------

    def measure(request: Request, form: Form) -> str:
        by = _one(form, "by")
        if by not in CURVES:
            raise ParameterError(f"there is nothing of that name to measure: expected one of {', '.join(CURVES)}.")
        check_ready(studio)
        studio.measure(CURVES[by].family, CURVES[by].stops)
        return f"/frontier?by={by}"

    def measure_way(request: Request, form: Form) -> str:
        known = {way.family: way for way in ways(studio)}
        family = _one(form, "family")
        if family not in known:
            raise ParameterError("there is no such way to protect this table: expected one of the page.")
        check_ready(studio)
        studio.measure(family, [known[family].number])
        return "/compare"

    def judge(request: Request, form: Form) -> str:
        check_ready(studio)
        studio.judge()
        return "/release"

    def write(request: Request, form: Form) -> str:
        if studio.audit is None or studio.audit["passed"] is False:
            raise ParameterError(
                "the gate has not passed with this policy: expected it to, before anything is written."
            )
        studio.write(form.get("for", []), force="force" in form)
        return "/release"

    def learn(request: Request, form: Form) -> str:
        check_ready(studio)
        studio.learn_forms()
        return "/minimize"

    def divide(request: Request, form: Form) -> str:
        check_ready(studio)
        studio.measure("anatomy", DIVERSITIES)
        return "/anatomize"

    def write_other(kind: str, stops: Sequence[float]) -> Callable[[Request, Form], str]:
        def act(request: Request, form: Form) -> str:
            value = float(_one(form, "value"))
            if value not in stops:
                raise ParameterError("there is no such stop: expected one of the slider. Load the page again.")
            check_ready(studio)
            studio.write_other(kind, value, force="force" in form)
            return f"/{kind}?at={stops.index(value)}"

        return act

    async def cancel(request: Request, form: Form) -> str:
        await studio.jobs.cancel()
        return _page_of(request)

    async def events(request: Request) -> Response:
        async def lines() -> AsyncIterator[str]:
            yield f"event: hello\ndata: {studio.n_changes}\n\n"
            async for event in studio.events():
                yield f"event: {event}\ndata: {studio.n_changes}\n\n" if event else ": still here\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    # -- small things ----------------------------------------------------------------------------------------------

    def chosen(name: str, known: tuple[str, ...]) -> Callable[[Request], Awaitable[Response]]:
        async def choose(request: Request) -> Response:
            value = _one(await _form(request), name)
            response = RedirectResponse(_page_of(request), 303)
            if value in known:
                response.set_cookie(name, value, httponly=True, samesite="strict", max_age=31_536_000)
            return response

        return choose

    async def quit_studio(request: Request) -> Response:
        await _form(request)
        asyncio.get_running_loop().call_later(0.2, on_quit)
        t = words_of(request)
        return shown(request, "start", "stopped.html", title=t("shell.stopped"), hint=t("shell.stopped_hint"))

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _KINDS:
            return Response("There is no such file.", 404)
        text = files("sfumato.studio").joinpath("static", name).read_text(encoding="utf-8")
        return Response(text, media_type=_KINDS[name])

    async def refused(request: Request, error: Exception) -> Response:
        """Show the sentence of an error; what the library says holds no value of a cell."""
        assert isinstance(error, SfumatoError)
        title = words_of(request)("shell.refused")
        own = {"title": title, "sentence": with_keys(error.sentence), "back": _page_of(request)}
        return shown(request, "message", status=422, **own)

    async def failed(request: Request, error: Exception) -> Response:
        """Show that something went wrong, and nothing of the error but its kind."""
        return HTMLResponse(f"Something went wrong inside sfumato ({type(error).__name__}). Nothing was written.", 500)

    get = {"/": "start", **{f"/{name}": name for name in screens.SCREENS if name != "start"}}
    post: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/open": change(open_table), "/example": change(open_example), "/table/preview": change(preview),
        "/roles/{place:int}": change(set_role), "/use": change(use), "/release/answers": change(answers),
        "/release/conditions": change(conditions), "/undo": change(undo, refresh=False),
        "/back/{number:int}": change(back, refresh=False),
        "/frontier/measure": change(measure), "/compare/measure": change(measure_way),
        "/release/judge": change(judge), "/release/write": change(write), "/job/cancel": change(cancel),
        "/minimize/learn": change(learn), "/minimize/write": change(write_other("minimize", LOSSES)),
        "/anatomize/measure": change(divide), "/anatomize/write": change(write_other("anatomize", DIVERSITIES)),
        "/theme": chosen("theme", _THEMES), "/language": chosen("language", LANGUAGES), "/quit": quit_studio,
    }  # fmt: skip
    routes = [Route(path, screen(name), methods=["GET"]) for path, name in get.items()]
    routes += [Route(path, handle, methods=["POST"]) for path, handle in post.items()]
    routes += [Route("/events", events), Route("/static/{name}", static)]
    application = Starlette(routes=routes, exception_handlers={SfumatoError: refused, Exception: failed})
    return Guard(application, studio.seen)


async def _form(request: Request) -> Form:
    """Read a form of limited size."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES_OF_A_FORM:
            raise ParameterError("the form is too long: expected a few answers. Shorten them.")
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)


def _one(form: Form, name: str) -> str:
    if name not in form:
        raise ParameterError(f"the form has no {name}: expected one. Load the page again.")
    return form[name][0]


def _page_of(request: Request) -> str:
    """Return the page of the studio that a form stands on."""
    from urllib.parse import urlsplit

    page = urlsplit(request.headers.get("referer", ""))
    path = page.path if page.path.lstrip("/") in (*screens.SCREENS, "") else "/"
    return f"{path or '/'}?{page.query}" if page.query else path or "/"
