# SPDX-License-Identifier: Apache-2.0
"""Guard the studio: who may ask for anything, what a page may load, and which files can be named."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.policy import Policy

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BYTES_OF_A_FORM = 64 * 1024
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Guard:
    """Lets requests pass that come from the studio's own pages with its cookie, and refuses all others.

    Parameters
    ----------
    application : ASGI application
    seen : callable
        Called for every request that passes: the studio is in use.

    Attributes
    ----------
    token : str or None
        Exchanged once for the cookie; None once that was done.
    port : int or None
        Where the studio listens; nothing passes before it is known.
    """

    def __init__(self, application: Any, seen: Callable[[], None]) -> None:
        self._application, self._seen = application, seen
        self._secret = secrets.token_urlsafe(32)
        self.token: str | None = secrets.token_urlsafe(32)
        self.port: int | None = None

    @property
    def address(self) -> str:
        """The address to open, good for one visit."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers share cookies between ports, so each studio has its own."""
        return f"sfumato-studio-{self.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        why = self._refused(scope["method"], headers)
        if why is not None:
            await _answer(send, 403, why)
            return
        given = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token")
        if given is not None:
            await self._exchange(scope, given, send)
            return
        if not self._has_cookie(headers.get("cookie", "")):
            await _answer(send, 403, "Open the studio with the address that was printed when it was started.")
            return
        self._seen()
        await self._application(scope, receive, _with_headers(send))

    def _refused(self, method: str, headers: dict[str, str]) -> str | None:
        """Return why a request is refused before its cookie is looked at; None if it is not."""
        hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")
        if self.port is None or headers.get("host") not in hosts:
            return "This address is not the studio's."  # a foreign name that leads here: DNS rebinding
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin != f"http://{headers['host']}":
            return "Another page asked for this."
        if method not in ("GET", "HEAD", "POST"):
            return "The studio has no such request."
        if site not in (None, "same-origin", *(("none",) if method != "POST" else ())):
            return "Another page asked for this."
        if method == "POST" and origin is None and site is None:
            return "Nothing says which page asked for this."
        return None

    def _has_cookie(self, text: str) -> bool:
        given = dict(part.strip().partition("=")[::2] for part in text.split(";")).get(self.cookie, "")
        return hmac.compare_digest(given.encode(), self._secret.encode())

    async def _exchange(self, scope: Scope, given: str, send: Send) -> None:
        """Give the cookie for the token, once."""
        is_right = self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())
        if scope["method"] != "GET" or scope["path"] != "/" or not is_right:
            await _answer(send, 403, "This address was used already, or is wrong. Start the studio again.")
            return
        self.token = None
        self._seen()
        cookie = f"{self.cookie}={self._secret}; Path=/; HttpOnly; SameSite=Strict"
        await _answer(send, 303, "", {"location": "/", "set-cookie": cookie})


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            others = [(name, value) for name, value in message["headers"] if name.decode().lower() not in HEADERS]
            message["headers"] = [*others, *own]
        await send(message)

    return sending


async def _answer(send: Send, status: int, text: str, headers: dict[str, str] | None = None) -> None:
    own = {**HEADERS, "content-type": "text/plain; charset=utf-8", **(headers or {})}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in own.items()],
        }
    )
    await send({"type": "http.response.body", "body": text.encode()})


def check_places(folder: Path, policy: Policy, table: Path) -> None:
    """Raise InputError if a policy is not one that the studio can work with.

    Parameters
    ----------
    folder : Path
        Below which all files lie that the policy reads or writes, links resolved.
    policy : Policy
    table : Path
        That is open, and that the policy must be about.
    """
    if policy.get("privacy", "mechanism") is not None:
        raise InputError(
            "the policy has a mechanism under [privacy]: expected none, since every look at such a release would count "
            "in its ledger. Run the policy with 'sfumato run'."
        )
    source = policy.source()
    if not isinstance(source, Path) or source.resolve() != table:
        raise InputError(
            "the policy is about another table than the one that is open: expected the same. Open it again."
        )
    data, hierarchies = policy.values["data"], policy.values["columns"]["hierarchies"]
    named = [data[name] for name in ("release", "artifact", "publication", "report", "audit", "holdout")]
    named += [
        policy.values["audit"]["unfinished"],
        *data["earlier"],
        *([hierarchies] if isinstance(hierarchies, str) else hierarchies.values()),
    ]
    named += [said for one in policy.criteria for said in one.values() if isinstance(said, str)]
    for name in named:
        if name is not None and not (policy.folder / name).resolve().is_relative_to(folder.resolve()):
            raise InputError(
                "the policy names a file outside the folder where the studio was started: expected all of its files "
                "below that folder. Change the policy, or start the studio in a folder above both."
            )


def below(folder: Path, name: str) -> Path:
    """Return the file of that name below a folder, links resolved.

    Raises
    ------
    InputError
        For what is not a file, or lies elsewhere; both are answered alike, so that nothing is told about other folders.
    """
    try:
        path = (folder / name).resolve(strict=True)
        is_below = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle
        is_below = False
    if not is_below:
        raise InputError(
            "there is no such file below the folder where the studio was started. Check the name, or start the studio "
            "in the folder of the file."
        )
    return path
