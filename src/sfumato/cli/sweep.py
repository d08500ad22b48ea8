# SPDX-License-Identifier: Apache-2.0
"""``sfumato sweep``: what other choices of k, method and model, or of alpha and leaves, would cost, as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.cli.spelling import with_keys

if TYPE_CHECKING:
    from sfumato.auditing.pipeline import PolicyJob
    from sfumato.report.data import Point

_DEFAULT_K = "5,10,20,50,100,200"
_MINIMIZING = "Minimizing"

HELP = options.help_text(
    "Show what other choices of k, method and model would cost, so that a person can choose.",
    "Takes a policy, varies k (and methods and models, where several are named), measures the model on held-out "
    "records every time, attacks it, and draws both against k. With --alpha or --leaves it varies how coarsely "
    "'sfumato minimize' would have the columns collected, and the attacker reconstructs personal values. Nothing is "
    "released.",
    examples=[
        "sfumato sweep policy.toml -o sweep.html",
        "sfumato sweep policy.toml --k 10,100,1000 --methods model-guided,mondrian -o sweep.html",
        "sfumato sweep policy.toml --models logistic-regression,random-forest --json",
        "sfumato sweep policy.toml --alpha 0,0.25,0.5,0.75,1 --leaves 5,20,100 -o sweep.html",
    ],
)


def sweep(
    policy: Annotated[Path, typer.Argument(help="A policy file.", show_default=False)],
    k: Annotated[
        str | None, typer.Option("--k", "-k", help="Values of k.", metavar="A,B,...", show_default=_DEFAULT_K)
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(help="Methods to compare.", metavar="A,B,...", show_default="the policy's"),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option(help="Models to compare.", metavar="A,B,...", show_default="the policy's")
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            help="For minimizing: weights of privacy, from 0 to 1.",
            metavar="A,B,...",
            rich_help_panel=_MINIMIZING,
            show_default="0.5 with --leaves",
        ),
    ] = None,
    leaves: Annotated[
        str | None,
        typer.Option(
            help="For minimizing: leaves that the tree may have.",
            metavar="A,B,...",
            rich_help_panel=_MINIMIZING,
            show_default="20 with --alpha",
        ),
    ] = None,
    personal: Annotated[
        list[str] | None,
        typer.Option(
            help="For minimizing: columns that an attacker would like to know.",
            metavar="A,B,...",
            rich_help_panel=_MINIMIZING,
            show_default="the policy's sensitive columns and subgroups, or those whose names or values say so",
        ),
    ] = None,
    attack: Annotated[bool, typer.Option("--attack/--no-attack", help="Attack every model, by its loss.")] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the page goes, .html, or the numbers, .json.", show_default="none"),
    ] = None,
    jobs: Annotated[int, options.jobs()] = options.ALL_CORES,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Show what other choices would cost; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json, worded=with_keys)
    with exit_codes(console, debug=debug):
        from sfumato.auditing.pipeline import open_job
        from sfumato.auditing.tradeoff import points_over_k, points_over_minimizers
        from sfumato.errors import ParameterError
        from sfumato.files.table_file import check_output, unfinished
        from sfumato.policy import Policy

        options.check_jobs(jobs)
        is_minimizing = alpha is not None or leaves is not None
        _check_one_kind(is_minimizing, {"--k": k, "--methods": methods, "--models": models}, personal)
        if output is not None:
            check_output(output, force=force, inputs=[policy])
            if output.suffix not in (".html", ".json"):
                raise ParameterError(f"-o {output.name!r}: expected a name that ends in .html or .json.")
        sizes = _numbers("--k", _DEFAULT_K if k is None else k, at_least=2)
        limits = _numbers("--leaves", "20" if leaves is None else leaves, at_least=2)
        alphas = _shares("--alpha", "0.5" if alpha is None else alpha)
        job = open_job(console, Policy.read(policy), jobs)
        if job.target is None or job.policy.get("model", "test_fraction") == 0:
            raise ParameterError(
                f"{policy.name} measures no model: expected a target and a test_fraction above 0. Add them."
            )
        with console.warnings_as_notes():
            if is_minimizing:
                is_watched = not quiet and console.err.is_terminal
                points = points_over_minimizers(
                    console, job, alphas, limits, _personal(job, personal), shows_progress=is_watched
                )
            else:
                points = points_over_k(console, job, sizes, _choices(job, methods, models), attacks=attack)
        if not points:
            raise ParameterError(
                f"{job.table.num_rows:,} records are too few for any of these k: expected enough to hold some out and "
                "protect the rest. Give smaller ones."
            )
        if output is not None:
            from sfumato.report.page import curve_page

            written = (
                curve_page(points, name=policy.name)
                if output.suffix == ".html"
                else json.dumps(_document(points), indent=1, allow_nan=False)
            )
            with unfinished(output) as [path]:
                path.write_text(written, encoding="utf-8")
        if as_json:
            console.result(_document(points))
        else:
            _show(console, points)
            if output is not None:
                console.text(f"Written: {output}")


def _check_one_kind(is_minimizing: bool, about_k: dict[str, Any], personal: list[str] | None) -> None:
    """Refuse options of the two kinds of sweep together: one of them would have no effect."""
    from sfumato.errors import ParameterError

    if is_minimizing:
        for option, given in about_k.items():
            if given is not None:
                raise ParameterError(
                    f"{option} with --alpha or --leaves: expected one or the other, since anonymizing and minimizing "
                    "are swept apart. Run the command twice."
                )
    elif personal:
        raise ParameterError("--personal without --alpha or --leaves: expected it with them. Add one, or leave it out.")


def _numbers(option: str, text: str, *, at_least: int) -> list[int]:
    from sfumato.errors import ParameterError

    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < at_least:
        raise ParameterError(f"{option} {text!r}: expected whole numbers from {at_least} on, such as {option} 5,10,50.")
    return numbers


def _shares(option: str, text: str) -> list[float]:
    from sfumato.errors import ParameterError

    try:
        numbers = sorted({float(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or not all(0 <= number <= 1 for number in numbers):
        raise ParameterError(f"{option} {text!r}: expected numbers from 0 to 1, such as {option} 0,0.5,1.")
    return numbers


def _personal(job: PolicyJob, given: list[str] | None) -> list[str]:
    """Return the columns that an attacker wants: those named here, or those that the policy is careful about."""
    from sfumato.errors import ParameterError
    from sfumato.files.table_file import unknown_column
    from sfumato.frames import read_table
    from sfumato.policy.personal import find_personal

    columns = job.features(job.table).column_names
    named = options.split_names(given, columns)
    for name in named:
        if name not in columns:
            raise ParameterError(unknown_column("--personal", name, columns))
    if named:
        return named
    careful = [*job.policy.get("columns", "sensitive"), *job.policy.get("columns", "subgroups")]
    chosen = [name for name in dict.fromkeys(careful) if name in columns]
    return chosen or list(find_personal(read_table(job.features(job.table)), columns))


def _choices(job: PolicyJob, methods: list[str] | None, models: list[str] | None) -> list[tuple[str, str]]:
    from sfumato.errors import ParameterError
    from sfumato.policy.settings import METHODS, MODELS

    named = options.split_names(methods) or [job.method.method]
    trained = options.split_names(models) or [job.policy.get("model", "name")]
    for option, given, known in (("--methods", named, METHODS), ("--models", trained, MODELS)):
        for name in given:
            if name not in known:
                raise ParameterError(f"{option} {name!r}: expected some of {', '.join(known)}.")
    return [(method, model) for model in trained for method in named]


def _document(points: list[Point]) -> dict[str, object]:
    from sfumato.documents import plain

    return {"points": plain(points)}


def _show(console: Console, points: list[Point]) -> None:
    by = points[0].by
    if not any(point.attack is not None for point in points):
        console.heading("score of the model on held-out records")
        console.records(["choice", by, "score"], [(p.label, f"{p.at:g}", f"{p.score:.4f}") for p in points])
        return
    attacked = "how often an attacker tells members apart" if by == "k" else "what an attacker reconstructs"
    console.heading(f"score of the model on held-out records, and {attacked}")
    console.records(
        ["choice", by, "score", "attack"],
        [(p.label, f"{p.at:g}", f"{p.score:.4f}", "-" if p.attack is None else f"{p.attack:.3f}") for p in points],
    )
    if by == "k":
        console.text("An attacker who guesses is right in half of the cases: 0.500.")
