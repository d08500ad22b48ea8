# SPDX-License-Identifier: Apache-2.0
"""Serve the studio on this machine alone, until somebody quits it or nobody uses it."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import MissingExtraError
from sfumato.studio.session import Studio

if TYPE_CHECKING:
    from sfumato.studio.security import Guard

IDLE_SECONDS = 30 * 60
_LOOPBACK = "127.0.0.1"
# Addresses and errors could name what people work on, and without handlers Python writes them to the terminal.
_NO_LOG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"nowhere": {"class": "logging.NullHandler"}},
    "loggers": {name: {"handlers": ["nowhere"], "propagate": False} for name in ("uvicorn", "asyncio")},
}


def serve(
    folder: Path,
    file: str | None = None,
    *,
    port: int = 0,
    show: Callable[[str], None],
    open_browser: bool = True,
    idle_seconds: float = IDLE_SECONDS,
) -> None:
    """Serve the studio until it is quit.

    Parameters
    ----------
    folder : Path
        The start folder.
    file : str, optional
        A table or policy in it to open at once.
    port : int
        0: a random one.
    show : callable
        Called with the address, which is good for one visit.
    open_browser : bool, default=True
    idle_seconds : float
        The studio ends after so long without a request or a job.

    Raises
    ------
    MissingExtraError
        Without the packages of the extra ``studio``.
    """
    try:
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingExtraError(
            "the studio needs Starlette, uvicorn and Jinja2. Install them with: pip install 'sfumato[studio]'"
        ) from None
    asyncio.run(_serve(uvicorn, folder, file, port, show, open_browser, idle_seconds))


async def _serve(
    uvicorn: Any,
    folder: Path,
    file: str | None,
    port: int,
    show: Callable[[str], None],
    open_browser: bool,
    idle_seconds: float,
) -> None:
    from sfumato.studio.application import create_application

    studio = Studio(folder)
    if file is not None:
        studio.open(file)

    def end() -> None:
        server.should_exit = True

    guard = create_application(studio, end)
    config = uvicorn.Config(
        guard, host=_LOOPBACK, port=port, log_config=_NO_LOG, access_log=False, server_header=False, date_header=False,
        timeout_graceful_shutdown=2, lifespan="off", ws="none",
    )  # fmt: skip
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    try:
        await _announce(server, running, guard, show, open_browser)
        while not running.done():
            await asyncio.wait([running], timeout=min(1.0, idle_seconds / 4))
            if studio.idle > idle_seconds:
                end()
            if server.should_exit:
                await studio.stop()
    finally:
        end()
        await studio.stop()
        await running


async def _announce(
    server: Any, running: asyncio.Task[None], guard: Guard, show: Callable[[str], None], open_browser: bool
) -> None:
    """Say the address as soon as the server listens."""
    while not server.started and not running.done():
        await asyncio.sleep(0.02)
    if running.done():
        return
    guard.port = server.servers[0].sockets[0].getsockname()[1]
    show(guard.address)
    if open_browser:
        webbrowser.open(guard.address)
