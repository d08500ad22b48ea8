# SPDX-License-Identifier: Apache-2.0
"""What the commands share when they speak: steps on the way, tables, notes, errors and exit codes.

Results go to standard output, everything else to standard error, so that ``sfumato ... --json | jq`` works.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from sfumato.cli.setting_names import with_options

PASSED, GUARANTEE_FAILED, WRONG_USAGE, UNEXPECTED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141


_NARROW = 60  # columns of a terminal in which names, numbers and remarks do not fit side by side


class Terminated(BaseException):
    """The process was asked to end (SIGTERM); raised so that unfinished files are removed on the way out."""


class Console:
    """Speaks for one command.

    Parameters
    ----------
    quiet : bool, default=False
        Say nothing on the way; results, warnings and errors still appear.
    as_json : bool, default=False
        Results as one JSON document on standard output instead of tables.
    worded : callable, default=with_options
        Spells the settings that a sentence of the library names: as options, or as keys of a policy.
    """

    def __init__(
        self, *, quiet: bool = False, as_json: bool = False, worded: Callable[[str], str] = with_options
    ) -> None:
        from rich.console import Console as RichConsole

        self._worded = worded
        self.quiet = quiet
        self.as_json = as_json

        class Out(RichConsole):
            def on_broken_pipe(self) -> None:
                """Leave quietly when the reader of a pipe has enough, and not with the code of a failed guarantee."""
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise SystemExit(PIPE_CLOSED)

        self.out = Out(highlight=False, soft_wrap=False)
        self.err = RichConsole(stderr=True, highlight=False)
        self.started = time.perf_counter()

    @property
    def is_watched(self) -> bool:
        """Whether to show progress bars: on a terminal, unless quiet."""
        return not self.quiet and self.err.is_terminal

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Show what is being done: a spinner and then the seconds on a terminal, one plain line elsewhere."""
        if self.quiet:
            yield
            return
        if not self.err.is_terminal:
            self.err.print(_visible(what), markup=False, soft_wrap=True)
            yield
            return
        started = time.perf_counter()
        with self.err.status(f"[cyan]{_escaped(what)}[/cyan]"):
            yield
        self.err.print(f"[dim]{_escaped(what)}  {time.perf_counter() - started:.1f} s[/dim]", soft_wrap=True)

    def progress(self, sentence: str) -> None:
        """Say how far a long step is; silent with --quiet."""
        if not self.quiet:
            self.err.print(_visible(sentence), markup=False, style="dim", soft_wrap=True)

    def note(self, sentence: str, *, is_warning: bool = False) -> None:
        """Say something the user should know; notes fall silent with --quiet, warnings do not."""
        if self.quiet and not is_warning:
            return
        label = "[yellow]warning:[/yellow]" if is_warning else "[dim]note:[/dim]"
        self.err.print(f"{label} {_escaped(self._worded(sentence))}", soft_wrap=not self.err.is_terminal)

    def error(self, sentence: str) -> None:
        """Say why the command stops."""
        self.err.print(f"[red]error:[/red] {_escaped(self._worded(sentence))}", soft_wrap=not self.err.is_terminal)

    @contextlib.contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Turn what the library warns of into one line each; what other packages warn of is not for users."""
        from sfumato.errors import ColumnWarning, PrivacyWarning
        from sfumato.schema.role_checks import SimilarNamesWarning

        seen: set[str] = set()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            message = warning.message
            if isinstance(message, SimilarNamesWarning):
                continue  # said when the file was read
            if isinstance(message, ColumnWarning | PrivacyWarning) and message.sentence not in seen:
                seen.add(message.sentence)
                self.note(message.sentence, is_warning=isinstance(message, PrivacyWarning))

    # --- results ------------------------------------------------------------------------------------------

    def result(self, document: dict[str, Any]) -> None:
        """Print the JSON document; null stands for what is not a number."""
        text = json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)
        sys.stdout.write(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")

    def heading(self, text: str) -> None:
        """Print a heading over a table."""
        self.out.print()
        self.out.print(f"[bold]{_escaped(text)}[/bold]")

    def facts(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Print names and numbers in aligned columns, the numbers to the right; a third cell is a remark.

        Where the terminal is too narrow for that, each stands in lines of its own, and no digit is cut.
        """
        from rich.padding import Padding
        from rich.table import Table

        if self.out.width < _NARROW:
            for name, value, *remarks in rows:
                said = " ".join(
                    [f"{_escaped(name)}: {_escaped(value)}", *(f"[dim]{_escaped(one)}[/dim]" for one in remarks)]
                )
                self.out.print(Padding(said, (0, 0, 0, 2)))
            return
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(min_width=32)
        table.add_column(justify="right", no_wrap=True)
        table.add_column(style="dim", overflow="fold")
        for row in rows:
            table.add_row(*map(_escaped, row))
        self.out.print(Padding(table, (0, 0, 0, 2), expand=False))  # a label that wraps stays under itself

    def records(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a few records as a table; cells may be cut where there is no room, names of columns never are."""
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        is_room = sum(len(name) + 2 for name in names) <= self.out.width
        for name in names:
            least = len(name) if is_room else max(map(len, name.split()), default=0)
            table.add_column(_escaped(name), overflow="ellipsis", no_wrap=is_room, header_style="dim", min_width=least)
        for row in rows:
            table.add_row(*(_escaped(cell) for cell in row))
        self.out.print(table)

    def verdict(self, sentence: str, *, holds: bool) -> None:
        """Print the sentence that matters most."""
        style = "bold green" if holds else "bold red"
        self.out.print()
        self.out.print(f"[{style}]{_escaped(sentence)}[/{style}]")

    def spelled(self, sentence: str) -> str:
        """Return a sentence of the library with the settings that it names spelled for this command."""
        return self._worded(sentence)

    def text(self, sentence: str) -> None:
        """Print a plain sentence, wrapped at the width of the screen; blanks before it indent every line."""
        from rich.padding import Padding
        from rich.text import Text

        said = _visible(self._worded(sentence))
        plain = said.lstrip(" ")
        if indent := len(said) - len(plain):
            self.out.print(Padding(Text(plain), (0, 0, 0, indent), expand=False))
        else:
            self.out.print(said, markup=False)

    @property
    def seconds(self) -> float:
        """Seconds since the command began."""
        return time.perf_counter() - self.started


@contextlib.contextmanager
def exit_codes(console: Console, *, debug: bool) -> Iterator[None]:
    """Turn whatever happens inside into one sentence and an exit code; with debug, show the traceback too."""
    import typer

    from sfumato.errors import GuaranteeError, MissingExtraError, SfumatoError

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    earlier = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except GuaranteeError as error:
        _stop(console, error.sentence, GUARANTEE_FAILED, debug)
    except SfumatoError as error:
        _stop(console, error.sentence, WRONG_USAGE, debug)
    except MissingExtraError as error:
        _stop(console, str(error), WRONG_USAGE, debug)
    except (KeyboardInterrupt, Terminated) as reason:
        console.error("interrupted; no unfinished file is left.")
        is_interrupt = isinstance(reason, KeyboardInterrupt)
        raise typer.Exit(INTERRUPTED if is_interrupt else 128 + signal.SIGTERM) from None
    except MemoryError:
        _stop(console, "not enough memory for this file; nothing was written.", UNEXPECTED, debug)
    except (BrokenPipeError, typer.Exit):
        raise
    except OSError as error:  # what is written handles its own: this is standard output, or a name that cannot be
        why = f"{error.strerror or 'input/output error'}. Every file that was written is whole."
        if error.filename is None:
            _stop(console, f"the result could not be shown: {why}", UNEXPECTED, debug)
        _stop(console, f"{str(error.filename)!r} cannot be used: {why}", WRONG_USAGE, debug)
    except Exception as error:
        # The text of a foreign error may hold values of the table, so only its kind is shown.
        sentence = (
            f"something went wrong inside sfumato ({type(error).__name__}); nothing was written. "
            "Run again with --debug to see where, and please report it."
        )
        _stop(console, sentence, UNEXPECTED, debug)
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _stop(console: Console, sentence: str, code: int, debug: bool) -> None:
    import typer

    if debug:
        import traceback

        traceback.print_exc(file=sys.stderr)
    console.error(sentence)
    raise typer.Exit(code) from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(_visible(text))


# Characters that steer a terminal, or turn the direction of writing, but for the end of a line.
_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _visible(text: str) -> str:
    """Return text that steers no terminal: the name of a column may hold anything, also escape sequences."""
    return _UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)
