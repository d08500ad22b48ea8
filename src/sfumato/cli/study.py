# SPDX-License-Identifier: Apache-2.0
"""``sfumato study``: the door to the studies, which live in the repository and not in the installed package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import typer

from sfumato.cli.console import Console, exit_codes
from sfumato.errors import InputError

HELP = "Show a table or figure of the papers on real data, the paper's figures beside ours; in a clone only."

TAKES_ALL = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""What is asked for is read by the studies' own command."""


def study(context: typer.Context) -> None:
    """Hand over to the studies of the repository; ``HELP`` is what users read."""
    with exit_codes(Console(), debug=False):
        root = find_repository()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    application = importlib.import_module("studies.__main__").application
    code = application(context.args, prog_name="sfumato study", standalone_mode=False)
    if code:
        raise typer.Exit(code)


def find_repository() -> Path:
    """Return the folder of the repository: the one that this package is in, or the current one."""
    for root in (Path(__file__).parents[3], Path.cwd()):
        if (root / "studies" / "catalogue").is_dir() and (root / "src" / "sfumato").is_dir():
            return root
    raise InputError(
        f"no studies in {Path.cwd()}: expected a clone of the repository, because the installed package does not hold "
        "them. Clone the repository named on the package's page, change into it, and run the command again."
    )
