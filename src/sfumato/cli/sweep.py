# SPDX-License-Identifier: Apache-2.0
"""``sfumato sweep``: the privacy-utility trade-off of k, method and model, or of alpha and leaves, as a chart."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import Console
from sfumato.cli.setting_names import with_keys
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.auditing.policy_job import PolicyJob
    from sfumato.report.data import Point
    from sfumato.report.frontier import Frontier

_DEFAULT_K = "5,10,20,50,100,200"
_MINIMIZING = "Minimizing"

HELP = options.help_text(
    "Show the privacy-utility trade-off of k, methods and models, so that you can choose.",
    "Take a policy, vary k (and methods and models, if you name several), measure the model on held-out records each "
    "time, attack it, and draw both against k. With --alpha or --leaves, vary how coarsely 'sfumato minimize' collects "
    "the columns; the attacker then reconstructs personal values. Nothing is released.",
    examples=[
        "sfumato sweep policy.toml -o sweep.html",
        "sfumato sweep policy.toml --k 10,100,1000 --methods model-guided,mondrian -o sweep.html",
        "sfumato sweep policy.toml --models logistic-regression,random-forest --json",
        "sfumato sweep policy.toml --alpha 0,0.25,0.5,0.75,1 --leaves 5,20,100 -o sweep.html",
    ],
)


@options.command(worded=with_keys)
def sweep(
    policy: Annotated[Path, typer.Argument(help="A policy file.", show_default=False)],
    k: Annotated[
        str | None, typer.Option("--k", "-k", help="Values of k.", metavar="NUMBER,...", show_default=_DEFAULT_K)
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
            help="Weights of privacy, from 0 to 1.",
            metavar="NUMBER,...",
            rich_help_panel=_MINIMIZING,
            show_default="0.5 with --leaves",
        ),
    ] = None,
    leaves: Annotated[
        str | None,
        typer.Option(
            help="Maximum leaves of the tree.",
            metavar="NUMBER,...",
            rich_help_panel=_MINIMIZING,
            show_default="20 with --alpha",
        ),
    ] = None,
    personal: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns that an attacker wants.",
            metavar="A,B,...",
            rich_help_panel=_MINIMIZING,
            show_default="the policy's sensitive columns and subgroups, or those that look personal",
        ),
    ] = None,
    attack: Annotated[
        bool, typer.Option("--attack/--no-attack", help="Attack every model with the loss threshold.")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page, .html, or the numbers, .json.", show_default="none"),
    ] = None,
    jobs: Annotated[int, options.jobs()] = options.ALL_CORES,
    force: options.Force = False,
    *,
    console: Console,
) -> None:
    """Show the trade-off of other choices; ``HELP`` is what users read."""
    from sfumato.auditing.policy_job import open_job
    from sfumato.auditing.tradeoff import curve_of, frontier_over_k, personal_columns, points_over_minimizers
    from sfumato.files.table_file import check_output
    from sfumato.policy import Policy

    options.check_jobs(jobs)
    is_minimizing = alpha is not None or leaves is not None
    _check_one_kind(is_minimizing, {"--k": k, "--methods": methods, "--models": models}, personal)
    if output is not None:
        check_output(output, force=force, inputs=[policy])
        if output.suffix not in (".html", ".json"):
            raise ParameterError(f"-o {output.name!r}: expected a name that ends in .html or .json.")
    sizes = _numbers("--k", _DEFAULT_K if k is None else k, int, at_least=2)
    limits = _numbers("--leaves", "20" if leaves is None else leaves, int, at_least=2)
    alphas = _numbers("--alpha", "0.5" if alpha is None else alpha, float, at_least=0, at_most=1)
    with console.warnings_as_notes():
        job = open_job(console, Policy.read(policy), jobs)
        if job.target is None or job.policy.get("model", "test_fraction") == 0:
            raise ParameterError(
                f"{policy.name} measures no model: expected a target and a test_fraction above 0. Add them."
            )
        found = None
        if is_minimizing:
            wanted = personal_columns(job, options.split_names(personal, job.table.column_names))
            points = points_over_minimizers(console, job, alphas, limits, wanted)
        else:
            found = frontier_over_k(console, job, sizes, _choices(job, methods, models), attacks=attack)
            points = curve_of(found)
    if output is not None:
        _write(points, found, output, policy.name)
    if console.as_json:
        console.result(_document(points, found))
        return
    _show(console, points)
    if output is not None:
        console.text(f"Written: {output}")


def _write(points: list[Point], found: Frontier | None, output: Path, name: str) -> None:
    from sfumato.files.table_file import unfinished
    from sfumato.report.page import curve_page

    is_page = output.suffix == ".html"
    text = curve_page(points, name=name) if is_page else json.dumps(_document(points, found), indent=1, allow_nan=False)
    with unfinished(output) as [path]:
        path.write_text(text, encoding="utf-8")


def _check_one_kind(is_minimizing: bool, about_k: dict[str, Any], personal: list[str] | None) -> None:
    """Raise ParameterError for options of both kinds of sweep: some would have no effect."""
    if is_minimizing:
        for option, given in about_k.items():
            if given is not None:
                raise ParameterError(
                    f"{option} with --alpha or --leaves: expected one or the other, since anonymizing and minimizing "
                    "are swept apart. Run the command twice."
                )
    elif personal:
        raise ParameterError("--personal without --alpha or --leaves: expected it with them. Add one, or remove it.")


def _numbers(
    option: str, text: str, kind: Callable[[str], Any], *, at_least: float, at_most: float = math.inf
) -> list[Any]:
    """Return the numbers of a list, sorted, each once."""
    try:
        numbers = sorted({kind(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or not all(at_least <= number <= at_most for number in numbers):
        expected = f"integers >= {at_least:g}, such as {option} 5,10,50"
        if kind is float:
            expected = f"numbers from {at_least:g} to {at_most:g}, such as {option} 0,0.5,1"
        raise ParameterError(f"{option} {text!r}: expected {expected}.")
    return numbers


def _choices(job: PolicyJob, methods: list[str] | None, models: list[str] | None) -> list[tuple[str, str]]:
    from sfumato.policy.settings import METHODS, MODELS

    named = options.split_names(methods) or [job.method.method]
    trained = options.split_names(models) or [job.policy.get("model", "name")]
    for option, given, known in (("--methods", named, METHODS), ("--models", trained, MODELS)):
        for name in given:
            if name not in known:
                raise ParameterError(f"{option} {name!r}: expected some of {', '.join(known)}.")
    return [(method, model) for model in trained for method in named]


def _document(points: list[Point], found: Frontier | None) -> dict[str, object]:
    from sfumato.documents import plain

    return {"points": plain(points)} | ({} if found is None else {"frontier": found.to_dict()})


def _show(console: Console, points: list[Point]) -> None:
    by = points[0].by
    if not any(point.attack is not None for point in points):
        console.heading("score of the model on held-out records")
        console.records(["choice", by, "score"], [(p.label, f"{p.at:g}", f"{p.score:.4f}") for p in points])
        return
    attacked = "success of the membership attack" if by == "k" else "share of values that an attacker reconstructs"
    console.heading(f"score of the model on held-out records, and {attacked}")
    rows = [(p.label, f"{p.at:g}", f"{p.score:.4f}", _rate(p.attack)) for p in points]
    if any(point.certified is not None for point in points):
        certified = [(*row, _rate(p.certified)) for row, p in zip(rows, points, strict=True)]
        console.records(["choice", by, "score", "attack", "any attacker, at most"], certified)
    else:
        console.records(["choice", by, "score", "attack"], rows)
    if by == "k":
        console.text("Guessing succeeds in half of the cases: 0.500.")


def _rate(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"
