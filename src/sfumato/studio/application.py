# SPDX-License-Identifier: Apache-2.0
"""The addresses of the studio. Looking is GET and changes nothing; changes are POST and lead back to a page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from sfumato.errors import ParameterError, SfumatoError
from sfumato.studio import charts, screens
from sfumato.studio.changes import CHANGES, WAYS_OUT, Asked, Change
from sfumato.studio.failures import why_of
from sfumato.studio.security import MOST_BYTES_OF_A_FORM, Guard
from sfumato.studio.session import Studio
from sfumato.studio.texts import LANGUAGES, Words, preferred

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.requests import Request
    from starlette.responses import Response

_THEMES = ("light", "dark")
_KINDS = {"studio.css": "text/css", "studio.js": "text/javascript"}


def create_application(studio: Studio, on_quit: Callable[[], None]) -> Guard:
    """Return the guarded application.

    Parameters
    ----------
    studio : Studio
    on_quit : callable
        Called when somebody asks the studio to end.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    pages = Pages(studio, on_quit)
    routes = [
        Route("/" if name == "start" else f"/{name}", partial(pages.screen, name=name), methods=["GET"])
        for name in screens.SCREENS
    ]
    routes += [Route(path, partial(pages.change, act=act), methods=["POST"]) for path, act in CHANGES.items()]
    for name, known in (("theme", _THEMES), ("language", LANGUAGES)):
        routes.append(Route(f"/{name}", partial(pages.choose, name=name, known=known), methods=["POST"]))
    routes += [
        Route("/quit", pages.quit, methods=["POST"]),
        Route("/events", pages.events),
        Route("/static/{name}", pages.static),
    ]
    handlers: dict[Any, Any] = {SfumatoError: pages.refused, OSError: pages.refused, Exception: pages.failed}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), studio.seen)


class Pages:
    """Answers requests with pages.

    Parameters
    ----------
    studio : Studio
    on_quit : callable
    """

    def __init__(self, studio: Studio, on_quit: Callable[[], None]) -> None:
        self._studio, self._on_quit, self._templates = studio, on_quit, _templates()

    # -- screens -----------------------------------------------------------------------------------------------------

    async def screen(self, request: Request, name: str) -> Response:
        """Show a screen."""
        from starlette.responses import RedirectResponse

        if self._studio.project is None and name != "start":
            return RedirectResponse("/", 303)
        self._studio.refresh()
        return self._shown(request, name)

    def _shown(self, request: Request, screen: str, template: str = "", status: int = 200, **more: Any) -> Response:
        from starlette.responses import HTMLResponse

        t, theme = _words_of(request), request.cookies.get("theme")
        view = {
            **screens.shell(self._studio, t, screen, request.query_params),
            **(screens.SCREENS[screen](self._studio, t, request.query_params) if screen in screens.SCREENS else {}),
            **more,
        }
        page = self._templates.get_template(template or f"{screen}.html")
        return HTMLResponse(page.render(t=t, screen=screen, theme=theme if theme in _THEMES else None, **view), status)

    async def refused(self, request: Request, error: Exception) -> Response:
        """Show why something was not done; what the library says holds no value of a cell."""
        t, (why, sentence) = _words_of(request), why_of(error)
        said = t.library(sentence) if why == "sentence" else t(f"job.why_{why}", kind=sentence)
        return self._shown(
            request, "message", status=422, title=t("shell.refused"), sentence=said, back=_page_of(request)
        )

    async def failed(self, request: Request, error: Exception) -> Response:
        """Show that something went wrong, and nothing of the error but its kind."""
        from starlette.responses import HTMLResponse

        return HTMLResponse(f"Something went wrong inside sfumato ({type(error).__name__}). Nothing was written.", 500)

    # -- changes -----------------------------------------------------------------------------------------------------

    async def change(self, request: Request, act: Change) -> Response:
        """Change something and go to the page that comes after it."""
        from starlette.responses import RedirectResponse

        form, language = await _form(request), _words_of(request).language
        asked = Asked(form, _page_of(request), request.path_params.get("number"), language)
        if act not in WAYS_OUT:
            self._studio.refresh()
        return RedirectResponse(act(self._studio, asked), 303)

    async def choose(self, request: Request, name: str, known: tuple[str, ...]) -> Response:
        """Keep a choice of the browser in a cookie."""
        from starlette.responses import RedirectResponse

        asked = Asked(await _form(request), _page_of(request))
        response = RedirectResponse(asked.page, 303)
        if asked[name] in known:
            response.set_cookie(name, asked[name], httponly=True, samesite="strict", max_age=31_536_000)
        return response

    async def quit(self, request: Request) -> Response:
        """End the studio, once its last page is sent."""
        await _form(request)
        asyncio.get_running_loop().call_later(0.2, self._on_quit)
        t = _words_of(request)
        return self._shown(request, "start", "stopped.html", title=t("shell.stopped"), hint=t("shell.stopped_hint"))

    # -- the rest ----------------------------------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        """Tell a page what happens, as it happens."""
        from starlette.responses import StreamingResponse

        studio = self._studio

        async def lines() -> AsyncIterator[str]:
            yield f"event: hello\ndata: {studio.n_changes}\n\n"
            async for event in studio.events():
                yield f"event: {event}\ndata: {studio.n_changes}\n\n" if event else ": still here\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    async def static(self, request: Request) -> Response:
        """Return the script or the styles."""
        from starlette.responses import Response

        name = request.path_params["name"]
        if name not in _KINDS:
            return Response("There is no such file.", 404)
        text = files("sfumato.studio").joinpath("static", name).read_text(encoding="utf-8")
        return Response(text, media_type=_KINDS[name])


def _templates() -> Environment:
    """Return the templates, compiled now, so that no first page waits for it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = Environment(
        loader=PackageLoader("sfumato.studio"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    for name in templates.list_templates():
        templates.get_template(name)
    templates.globals["shape"] = lambda shares: Markup(charts.shape(shares))
    return templates


def _words_of(request: Request) -> Words:
    said = request.cookies.get("language")
    return Words(said if said in LANGUAGES else preferred(request.headers.get("accept-language", "")))


async def _form(request: Request) -> dict[str, list[str]]:
    """Read a form of limited size."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES_OF_A_FORM:
            raise ParameterError("the form is too long: expected a few answers. Shorten them.")
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)


def _page_of(request: Request) -> str:
    """Return the page of the studio that a form stands on."""
    page = urlsplit(request.headers.get("referer", ""))
    path = page.path if page.path.lstrip("/") in (*screens.SCREENS, "") else "/"
    return f"{path or '/'}?{page.query}" if page.query else path or "/"
