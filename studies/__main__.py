# SPDX-License-Identifier: Apache-2.0
"""``python -m studies``: the same as ``sfumato study``, in a clone of the repository."""

import typer

from sfumato.cli.application import Command
from studies.command import HELP, study

application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
application.command(cls=Command, help=HELP)(study)

if __name__ == "__main__":
    application(prog_name="python -m studies")
