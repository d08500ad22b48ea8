# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests, driven over a pipe with its own protocol: nothing to install but the browser.

``browser`` is a session fixture; import it where it is needed. Without a Chromium, its tests are skipped.
"""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root, and see only pages of their own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# The browser reads commands from file 3 and answers on file 4.
_START = (
    "import os, sys; r, w = map(int, sys.argv[1:3]); os.dup2(r, 3); os.dup2(w, 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def find_chromium() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Browser"]:
    """Start a browser for all tests, and end it after the last."""
    path = find_chromium()
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    started = Browser(path, tmp_path_factory.mktemp("browser"))
    try:
        yield started
    finally:
        started.close()


class Browser:
    """One headless browser."""

    def __init__(self, path: str, folder: Path) -> None:
        ours_in, theirs_out = _pipe()
        theirs_in, ours_out = _pipe()
        command = [sys.executable, "-c", _START, str(theirs_in), str(theirs_out), path, *OPTIONS]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"--user-data-dir={folder}"], pass_fds=(theirs_in, theirs_out), stdout=log, stderr=log
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = ours_in, ours_out
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def open(self, url: str, *, theme: str = "light", width: int = 900, height: int = 900) -> "Page":
        """Open an address in a new tab, and wait until it is loaded."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", size)
        page.call("Page.navigate", {"url": url})
        page.wait_for_event("Page.loadEventFired")
        return page

    def call(self, method: str, parameters: dict[str, Any] | None = None, session: str | None = None) -> dict[str, Any]:
        """Send one command and return its result; events that come meanwhile are kept."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def read(self, timeout: float = 60.0) -> dict[str, Any]:
        """Read one message of the browser."""
        stop = time.monotonic() + timeout
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, stop - time.monotonic()))
            assert ready, f"the browser said nothing for {timeout} s"
            piece = os.read(self._in, 1 << 16)
            assert piece, f"the browser ended with status {self._process.wait()}"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def close(self) -> None:
        """End the browser."""
        try:
            self.call("Browser.close")
            self._process.wait(timeout=10)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def call(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command to the tab."""
        return self._browser.call(method, parameters, self._session)

    def evaluate(self, expression: str) -> Any:
        """Return what an expression of JavaScript gives, promises awaited; an exception fails the test."""
        options = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def type_into(self, selector: str, text: str) -> None:
        """Focus an element and type text as a keyboard would."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", {"text": text})

    def press(self, key: str, code: int) -> None:
        """Press and release one key, such as ("Tab", 9)."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code})

    def screenshot(self, path: Path) -> None:
        """Save the whole page as a picture."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        options = {"format": "png", "clip": clip, "captureBeyondViewport": True}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", options)["data"]))

    @property
    def errors(self) -> list[str]:
        """What went wrong on the page: exceptions, console errors, refused contents."""
        found = []
        for event in self._own_events():
            details = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(details["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and details["entry"]["level"] == "error":
                found.append(details["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and details["type"] in ("error", "assert"):
                found.append(str(details["args"]))
        return found

    @property
    def requests(self) -> list[str]:
        """Every address that the page asked for, its own first."""
        return [e["params"]["request"]["url"] for e in self._own_events() if e["method"] == "Network.requestWillBeSent"]

    def wait_for_event(self, method: str) -> None:
        """Wait until the tab reports something."""
        while not any(event["method"] == method for event in self._own_events()):
            self._browser.events.append(self._browser.read())

    def close(self) -> None:
        """Close the tab."""
        self._browser.call("Target.closeTarget", {"targetId": self._target})

    def _own_events(self) -> list[dict[str, Any]]:
        # What was sent before this call is read first: every command is answered in order.
        self._browser.call("Browser.getVersion")
        return [event for event in self._browser.events if event.get("sessionId") == self._session]


def _pipe() -> tuple[int, int]:
    """Return a pipe whose files have numbers above those that the browser wants."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
