# SPDX-License-Identifier: Apache-2.0
"""``sfumato sweep``: what other choices of k, method and model would cost, as a picture to choose from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes

if TYPE_CHECKING:
    from sfumato.audit.result import Point
    from sfumato.cli.job import Job

_DEFAULT_K = "5,10,20,50,100,200"

HELP = options.help_text(
    "Show what other choices of k, method and model would cost, so that a person can choose.",
    "Takes a policy, varies k (and methods and models, where several are named), measures the model on held-out "
    "records every time, attacks it, and draws both against k. Nothing is released.",
    examples=[
        "sfumato sweep policy.toml -o sweep.html",
        "sfumato sweep policy.toml --k 10,100,1000 --methods model-guided,mondrian -o sweep.html",
        "sfumato sweep policy.toml --models logistic-regression,random-forest --json",
    ],
)


def sweep(
    policy: Annotated[Path, typer.Argument(help="A policy file.", show_default=False)],
    k: Annotated[str, typer.Option("--k", "-k", help="Values of k.", metavar="A,B,...")] = _DEFAULT_K,
    methods: Annotated[
        list[str] | None,
        typer.Option(help="Methods to compare.", metavar="A,B,...", show_default="the policy's"),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option(help="Models to compare.", metavar="A,B,...", show_default="the policy's")
    ] = None,
    attack: Annotated[bool, typer.Option("--attack/--no-attack", help="Attack every model, by its loss.")] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the page goes, .html, or the numbers, .json.", show_default="none"),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Threads.", show_default="all cores")] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Show what other choices would cost; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug, in_words_of_options=False):
        from sfumato.cli.files import check_output, unfinished
        from sfumato.cli.job import open_job
        from sfumato.errors import ParameterError
        from sfumato.policy import read_policy

        if output is not None:
            check_output(output, force=force, inputs=[policy])
            if output.suffix not in (".html", ".json"):
                raise ParameterError(f"-o {output.name!r}: expected a name that ends in .html or .json.")
        sizes = _numbers(k)
        job = open_job(console, read_policy(policy), jobs)
        if job.target is None or job.policy.get("model", "test_fraction") == 0:
            raise ParameterError(
                f"{policy.name} measures no model: expected a target and a test_fraction above 0. Add them."
            )
        choices = _choices(job, methods, models)
        with console.warnings_as_notes():
            points = _points(console, job, sizes, choices, attacks=attack)
        if output is not None:
            from sfumato.report.page import curve_page

            written = (
                curve_page(points, name=job.policy.path.name)
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


def _numbers(text: str) -> list[int]:
    from sfumato.errors import ParameterError

    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 2:
        raise ParameterError(f"--k {text!r}: expected whole numbers from 2 on, such as --k 5,10,50.")
    return numbers


def _choices(job: Job, methods: list[str] | None, models: list[str] | None) -> list[tuple[str, str]]:
    from sfumato.errors import ParameterError
    from sfumato.policy.settings import METHODS, MODELS

    named = options.split_names(methods) or [job.method]
    trained = options.split_names(models) or [job.policy.get("model", "name")]
    for option, given, known in (("--methods", named, METHODS), ("--models", trained, MODELS)):
        for name in given:
            if name not in known:
                raise ParameterError(f"{option} {name!r}: expected some of {', '.join(known)}.")
    return [(method, model) for model in trained for method in named]


def _points(
    console: Console, job: Job, sizes: list[int], choices: list[tuple[str, str]], *, attacks: bool
) -> list[Point]:
    import numpy as np

    from sfumato.attack.membership import attack_membership
    from sfumato.audit.result import Point
    from sfumato.cli.job import compare_models
    from sfumato.cli.training import rows_of

    points: list[Point] = []
    raw: dict[str, Point] = {}
    is_one_model = len({model for _, model in choices}) == 1
    silent = Console(quiet=True)
    for method, model in choices:
        label = method if is_one_model else f"{method}, {model}"
        for k in sizes:
            own = job.with_settings("method", name=method, k=k).with_settings("model", name=model)
            with console.step(f"{label}, k = {k}"):
                compared = compare_models(silent, own)
                if compared is None:
                    console.note(f"k = {k} was left out: there are too few records to hold some out and protect others")
                    continue
                if model not in raw:
                    label_of_raw = "raw records" if is_one_model else f"raw records, {model}"
                    raw[model] = Point(label_of_raw, 1, compared.utility.raw)
                found = None
                if attacks and own.is_comparable:
                    assert own.target is not None
                    rows = np.concatenate(compared.rows)
                    inside = np.arange(len(rows)) < len(compared.rows[0])
                    found = attack_membership(
                        compared.model, own.features(rows_of(own.table, rows)), own.target.values[rows], inside,
                        attacks=["threshold"], random_state=own.policy.get("audit", "seed"),
                    )["threshold"]  # fmt: skip
            score = compared.utility.transformed
            if compared.utility.anonymized is not None:
                score = compared.utility.anonymized
            points.append(Point(label, k, score, None if found is None else found.rate, None if found is None else 0.5))
    return [*raw.values(), *points]


def _document(points: list[Point]) -> dict[str, object]:
    from sfumato.audit.result import plain

    return {"points": plain(points)}


def _show(console: Console, points: list[Point]) -> None:
    console.heading("score of the model on held-out records, and how often an attacker tells members apart")
    console.records(
        ["choice", "k", "score", "attack"],
        [(p.label, f"{p.k}", f"{p.score:.4f}", "-" if p.attack is None else f"{p.attack:.3f}") for p in points],
    )
    if any(point.attack is not None for point in points):
        console.text("An attacker who guesses is right in half of the cases: 0.500.")
