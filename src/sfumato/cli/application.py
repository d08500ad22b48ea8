# SPDX-License-Identifier: Apache-2.0
"""The application that holds the commands; ``sfumato --help`` loads this and nothing heavy."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from sfumato.allocator import give_back_large_arrays
from sfumato.cli import (
    anatomize,
    anonymize,
    apply,
    audit,
    certify,
    compare,
    demo,
    evidence,
    frontier,
    init,
    measure,
    minimize,
    run,
    studio,
    study,
    sweep,
)
from sfumato.cli.setting_names import options_of


class _FlagsWithoutType:
    """Shows a flag by its name alone: it takes no value, so a type behind it says nothing."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_FlagsWithoutType, TyperCommand):
    """A command whose flags are shown without a type, and whose options the console knows."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with options_of(self.params):
            return super().invoke(ctx)


class _Group(_FlagsWithoutType, TyperGroup):
    pass


application = typer.Typer(
    name="sfumato",
    cls=_Group,
    help="Protect personal data in machine-learning tables: anonymize them, minimize what you collect, attack the "
    "result, and report the accuracy lost and the risk that remains.",
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


application.command(cls=Command, help=demo.HELP)(demo.demo)
application.command(cls=Command, help=anonymize.HELP)(anonymize.anonymize)
application.command(cls=Command, help=anatomize.HELP)(anatomize.anatomize)
application.command(cls=Command, help=minimize.HELP)(minimize.minimize)
application.command(cls=Command, help=apply.HELP)(apply.apply)
application.command(cls=Command, help=measure.HELP)(measure.measure)
application.command(cls=Command, help=init.HELP)(init.init)
application.command(cls=Command, help=run.HELP)(run.run)
application.command(cls=Command, help=audit.HELP)(audit.audit)
application.command(cls=Command, help=evidence.HELP)(evidence.evidence)
application.command(cls=Command, help=certify.HELP)(certify.certify)
application.command(cls=Command, help=compare.HELP)(compare.compare)
application.command(cls=Command, help=sweep.HELP)(sweep.sweep)
application.command(cls=Command, help=frontier.HELP)(frontier.frontier)
application.command(cls=Command, help=studio.HELP)(studio.studio)
application.command(cls=Command, help=study.HELP, context_settings=study.TAKES_ALL)(study.study)
