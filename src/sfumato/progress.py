# SPDX-License-Identifier: Apache-2.0
"""Report the progress of a long run: the stage, the records done, records per second, and the time left.

Passes over many records call a `Progress` with numbers; runs of several steps tell a `Reporter` of each.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TextIO

from sfumato.errors import PrivacyWarning

Progress = Callable[[str, int, int], Any]
"""Called with the stage, the records done and their total."""


class PrintedProgress:
    """Prints at most one line per second: ``writing: 12,000,000 of 96,000,000 records, 3,000,000 a second, 28 s left``.

    Parameters
    ----------
    stream : text file, optional
        Standard error where not given.
    every : float
        Fewest seconds between two lines; the first and the last of a stage are always printed.
    say : callable, optional
        Takes each line instead of the stream.

    Examples
    --------
    >>> import sys
    >>> progress = PrintedProgress(sys.stdout)
    >>> progress("coding", 0, 5_000)
    coding: 0 of 5,000 records
    """

    def __init__(
        self, stream: TextIO | None = None, *, every: float = 1.0, say: Callable[[str], None] | None = None
    ) -> None:
        stream = sys.stderr if stream is None else stream
        self._say = say or (lambda line: print(line, file=stream, flush=True))
        self._every = every
        self._what: str | None = None
        self._began = self._told = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Print a line, unless one was printed just now."""
        now = time.monotonic()
        if what != self._what or done == 0:
            self._what, self._began = what, now
        elif now - self._told < self._every and done < total:
            return
        self._told = now
        self._say(describe(what, done, total, now - self._began))


def describe(what: str, done: int, total: int, seconds: float) -> str:
    """Return the progress of a stage as text.

    Examples
    --------
    >>> describe("coding", 3_000_000, 10_000_000, 2.0)
    'coding: 3,000,000 of 10,000,000 records, 1,500,000 a second, 5 s left'
    """
    line = f"{what}: {done:,} of {total:,} records"
    if not done or seconds <= 0:
        return line
    rate = done / seconds
    return f"{line}, {rate:,.0f} a second, {(total - done) / rate:.0f} s left"


def told(results: Iterator[tuple[int, Any]], progress: Progress | None, what: str, total: int) -> Iterator[Any]:
    """Yield the results of blocks and report the number of their records."""
    done = 0
    if progress is not None:
        progress(what, 0, total)
    for n_records, result in results:
        done += n_records
        if progress is not None:
            progress(what, done, total)
        yield result


class Reporter(Protocol):
    """Receives the steps of a run: the console of the command line, a page, or none."""

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""

    @property
    def is_watched(self) -> bool:
        """Whether to show progress bars."""

    def step(self, what: str) -> AbstractContextManager[None]:
        """Enclose a step of the run."""

    def progress(self, sentence: str) -> None:
        """Report the progress of a long step."""

    def note(self, sentence: str, *, is_warning: bool = False) -> None:
        """Report a fact that the user should know."""


class QuietReporter:
    """Reports nothing on the way; notes on weakened protection become a `PrivacyWarning`.

    Examples
    --------
    >>> with QuietReporter().step("reading people.csv"):
    ...     pass
    """

    def __init__(self) -> None:
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since this was made."""
        return time.perf_counter() - self._began

    @property
    def is_watched(self) -> bool:
        """Whether to show progress bars: no."""
        return False

    def step(self, what: str) -> AbstractContextManager[None]:
        """Report nothing of a step."""
        return nullcontext()

    def progress(self, sentence: str) -> None:
        """Report nothing of progress."""

    def note(self, sentence: str, *, is_warning: bool = False) -> None:
        """Warn; other notes are in the result."""
        if is_warning:
            warnings.warn(sentence, PrivacyWarning, stacklevel=3)
