# SPDX-License-Identifier: Apache-2.0
"""``sfumato studio``: a page on this machine to protect a table without writing code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import Console
from sfumato.errors import ParameterError

HELP = options.help_text(
    "Open a page on this machine to protect a table without writing code.",
    "See what is in a table, decide the role of each column, see what protection costs a model and leaves to "
    "attackers, and write the release with its evidence. The page edits a policy; what it writes is what 'sfumato run' "
    "writes. It is served to this machine only, to the browser that opens the printed address first, and can open "
    "files below the start folder: that of FILE, or the current one. It ends with Ctrl-C, with Quit on the page, or "
    "after 30 minutes without use. Needs the extra 'studio'.",
    examples=["sfumato studio", "sfumato studio people.csv", "sfumato studio people.csv --no-browser --port 8765"],
)


@options.command
def studio(
    file: Annotated[
        Path | None,
        typer.Argument(help="A CSV or Parquet file, or a policy (.toml), to open.", show_default="none"),
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on.", metavar="N", show_default="a random one")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address; do not open it.", show_default="off")
    ] = False,
    *,
    console: Console,
) -> None:
    """Serve the studio; ``HELP`` is what users read."""
    from sfumato.studio.server import serve

    if not 0 <= port <= 65_535:
        raise ParameterError(f"--port {port}: expected an integer from 0 to 65,535.")
    folder = Path.cwd() if file is None else file.absolute().parent

    def show(address: str) -> None:
        typer.echo(f"The studio is at {address}")  # in one line, however narrow the terminal is
        console.note("the address is good for one visit. Ctrl-C, or Quit on the page, ends the studio.")

    serve(folder, None if file is None else file.name, port=port, show=show, open_browser=not no_browser)
