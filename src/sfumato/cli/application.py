# SPDX-License-Identifier: Apache-2.0
"""The application that holds the commands; ``sfumato --help`` loads this and nothing heavy."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli import anatomize, anonymize, apply, audit, compare, demo, init, measure, minimize, run, study, sweep
from sfumato.cli.memory import give_back_large_arrays

application = typer.Typer(
    name="sfumato",
    help="Prepare personal tabular data for machine learning so that people hide among others in it.",
    epilog="Start with: sfumato demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"sfumato {version('sfumato')}")
        raise typer.Exit


@application.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    give_back_large_arrays()


application.command(help=demo.HELP)(demo.demo)
application.command(help=anonymize.HELP)(anonymize.anonymize)
application.command(help=anatomize.HELP)(anatomize.anatomize)
application.command(help=minimize.HELP)(minimize.minimize)
application.command(help=apply.HELP)(apply.apply)
application.command(help=measure.HELP)(measure.measure)
application.command(help=init.HELP)(init.init)
application.command(help=run.HELP)(run.run)
application.command(help=audit.HELP)(audit.audit)
application.command(help=compare.HELP)(compare.compare)
application.command(help=sweep.HELP)(sweep.sweep)
application.command(help=study.HELP)(study.study)
