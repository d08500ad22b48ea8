# SPDX-License-Identifier: Apache-2.0
"""Child processes that do the work: one that keeps the table to count in it, and one for each long job.

Both do the tasks of ``child``. A job can be cancelled: its process is asked to end, and ended if it does not. What it
told until then is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.studio.failures import why_of

_SECONDS_TO_END = 5.0
_LONGEST_LINE = 1 << 26  # bytes of a message: an audit, or the facts of a table with thousands of columns

Message = dict[str, Any]
State = Literal["running", "done", "stopped", "failed"]


class Child:
    """A child process that does one task after the other."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.returncode is None

    async def messages(self, task: str, **arguments: Any) -> AsyncIterator[Message]:
        """Do a task and yield what it tells; the last message is ``done`` or ``failed``."""
        async with self._lock:
            if not self.is_running:
                await self._start()
            process = self._process
            assert process is not None and process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps({"task": task, **arguments}).encode() + b"\n")
            with contextlib.suppress(ConnectionError):
                await process.stdin.drain()
            while (line := await process.stdout.readline()).endswith(b"\n"):  # not what a process left half written
                message: Message = json.loads(line)
                yield message
                if message["kind"] in ("done", "failed"):
                    return
            code = await process.wait()
            # Ended from outside without a word: nearly always by the system, for want of memory.
            yield {"kind": "failed", "why": "memory" if code == -9 else "ended", "sentence": ""}

    async def _start(self) -> None:
        """Start the process; one that is there when the task is cancelled is kept, to be ended."""
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                sys.executable, "-m", "sfumato.studio.child",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                limit=_LONGEST_LINE, start_new_session=True,
            )
        )  # fmt: skip
        try:
            await asyncio.shield(starting)
        finally:
            self._process = await starting

    async def rest(self) -> None:
        """End the process once nobody waits for it; the next task starts it again."""
        async with self._lock:
            await self.end()

    async def end(self) -> None:
        """Ask the process to end; end it after some seconds."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _SECONDS_TO_END)
            except TimeoutError:
                process.kill()
                await process.wait()


@dataclass
class Job:
    """A long task, as pages show it.

    Attributes
    ----------
    kind : str
        The task: a key of the texts.
    state : {"running", "done", "stopped", "failed"}
    about : str
        What is measured: a family of the frontier.
    n_done, n_total : int
        Points that were measured, of how many; 0 of 0 if it does not come in points.
    step : str
        What is being done, in words of the library.
    why, sentence : str
        Why it failed.
    notes : list of (str, bool)
        What the library said on the way, and whether it is a warning.
    """

    kind: str
    n_total: int = 0
    about: str = ""
    n_done: int = 0
    state: State = "running"
    step: str = ""
    why: str = ""
    sentence: str = ""
    notes: list[tuple[str, bool]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def fail(self, why: str, sentence: str) -> None:
        """Note that it failed, and why."""
        self.state, self.why, self.sentence = "failed", why, sentence

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take; None before one point is measured."""
        if self.state != "running" or not self.n_done:
            return None
        return (time.monotonic() - self.began) / self.n_done * (self.n_total - self.n_done)


class Jobs:
    """At most one job at a time, in a process of its own.

    Parameters
    ----------
    publish : callable
        Called with the name of an event whenever something changes.
    """

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish = publish
        self._running: asyncio.Task[None] | None = None
        self.last: Job | None = None

    @property
    def is_running(self) -> bool:
        """Whether a job runs."""
        return self.last is not None and self.last.state == "running"

    def start(
        self,
        kind: str,
        on_message: Callable[[Message], bool],
        *,
        n_total: int = 0,
        about: str = "",
        **args: Any,
    ) -> Job:
        """Start a job, unless one runs.

        Parameters
        ----------
        kind : str
            The task of the child.
        on_message : callable
            Takes what the task tells; returns True if a point was measured.
        n_total : int
        about : str
        **args
            Of the task.
        """
        if self.last is not None and self.last.state == "running":
            return self.last
        self.last = Job(kind, n_total, about)
        self._running = asyncio.create_task(self._run(self.last, on_message, args, self._running))
        self._publish("job")
        return self.last

    async def _run(
        self, job: Job, on_message: Callable[[Message], bool], args: dict[str, Any], before: asyncio.Task[None] | None
    ) -> None:
        child = Child()
        try:
            if before is not None:
                await asyncio.wait([before])  # the process of a job that was cancelled holds its table until it ends
            async for message in child.messages(job.kind, **args):
                kind = message["kind"]
                if kind == "step":
                    job.step = message["what"]
                elif kind == "note":
                    job.notes.append((message["sentence"], message["is_warning"]))
                elif kind == "failed":
                    job.fail(message["why"], message["sentence"])
                elif kind == "done":
                    job.state = "done"
                elif on_message(message):
                    job.n_done += 1
                    self._publish("point")
                self._publish("job")
        except Exception as error:  # what it told cannot be kept: the disk is full
            job.fail(*why_of(error))
        finally:
            job.seconds = time.monotonic() - job.began
            await child.end()
            self._publish("job")

    async def ended(self) -> None:
        """Wait until no job runs."""
        if self._running is not None:
            await asyncio.wait([self._running])

    def ask_to_stop(self) -> None:
        """Stop the running job, without waiting for the end of its process; what it told is kept."""
        if self.last is None or self.last.state != "running" or self._running is None:
            return
        self.last.state, self.last.seconds = "stopped", time.monotonic() - self.last.began
        self._running.cancel()
        self._publish("job")

    async def cancel(self) -> None:
        """Stop the running job and wait for the end of its process."""
        self.ask_to_stop()
        await self.ended()
