# SPDX-License-Identifier: Apache-2.0
"""``sfumato anonymize``: make a policy from options, anonymize a table by it, and print the judged release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.anonymize import METHODS
from sfumato.cli import options
from sfumato.cli.console import Console
from sfumato.cli.printing import group_rows, show_utility
from sfumato.errors import ParameterError
from sfumato.models import MODELS
from sfumato.representatives import REPRESENTATIVES

if TYPE_CHECKING:
    from sfumato.auditing.anonymize_files import Anonymized
    from sfumato.files.table_file import Location
    from sfumato.policy import Policy

    ModelName = str
    RepresentativeName = str
    MethodName = str
else:
    ModelName = Literal[tuple(MODELS)]
    RepresentativeName = Literal[tuple(REPRESENTATIVES)]
    MethodName = Literal[tuple(METHODS)]

DEFAULT_REPRESENTATIVE = "phantom"
TaskName = Literal["classification", "regression"]

HELP = options.help_text(
    "Make a file k-anonymous, at the least cost to a model trained on it.",
    "Train a model, group records with similar predictions, give each group one set of quasi-identifier values, "
    "retrain, and report the change in accuracy. Without --target, groups keep as much detail as they can. The output "
    "is read back and verified before the file appears; then the release is checked for what the groups do not hide.",
    "List the direct identifiers (--identifiers: dropped) and the sensitive attributes (--sensitive: protected by --l "
    "or --t). All others are rewritten, unless you list --quasi-identifiers: then the rest is released unchanged. "
    "'sfumato init' suggests the roles.",
    examples=[
        "sfumato anonymize people.csv --identifiers name,ssn --target income\n    -o released.csv",
        "sfumato anonymize patients.csv --identifiers name --sensitive diagnosis\n"
        "    --l 3 --representative range -o released.csv",
        "sfumato anonymize people.csv --identifiers name,ssn --method full-domain\n"
        "    --hierarchies folder --suppression-limit 0.01 -o released.csv",
    ],
)


@options.command
def anonymize(
    file: options.File,
    target: Annotated[
        str | None,
        options.column("The column that the model predicts. It is not rewritten.", show_default="none: no model"),
    ] = None,
    target_values: Annotated[
        str,
        typer.Option(
            help="Released values of a numeric target: exact, round:WIDTH such as round:1000, or group-mean.",
            metavar="VALUES",
            rich_help_panel=options.COLUMNS,
        ),
    ] = "exact",
    quasi_identifiers: Annotated[
        list[str] | None,
        options.columns(
            "Columns that together could identify a person; they are rewritten.",
            show_default="all without another role that do not name people",
        ),
    ] = None,
    identifiers: options.Identifiers = None,
    sensitive: Annotated[
        list[str] | None,
        options.columns("Sensitive attributes: released unchanged, protected by --l and --t."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        options.columns("Columns to release unchanged even if nearly all their values are unique."),
    ] = None,
    unit: options.Unit = None,
    categorical: options.Categorical = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            help="The finest detail to release: width of numbers, letters of text, days of dates.",
            metavar="age=5,zip=3",
            rich_help_panel=options.COLUMNS,
            show_default="none",
        ),
    ] = None,
    hierarchies: Annotated[
        list[str] | None,
        typer.Option(
            help="Hierarchy files, one line per value: the value, then its coarser labels up to *. Pass "
            "age=FILE,zip=FILE, or a folder of files named like the columns, such as age.csv.",
            metavar="FOLDER",
            rich_help_panel=options.COLUMNS,
            show_default="none",
        ),
    ] = None,
    k: Annotated[
        int,
        typer.Option("--k", "-k", help="Minimum group size.", rich_help_panel=options.METHOD),
    ] = 10,
    method: Annotated[
        MethodName | None,
        options.choice(
            "How groups are formed: model-guided, workload-aware (by the target's labels), mondrian, information-loss, "
            "hilbert, r-plus-tree, or full-domain (one level of its hierarchy for every column).",
            show_default="model-guided; without --target information-loss",
        ),
    ] = None,
    l: Annotated[  # noqa: E741  # the literature's name
        int | None,
        typer.Option(
            "--l",
            help="Minimum distinct values of each sensitive column per group.",
            metavar="NUMBER",
            rich_help_panel=options.METHOD,
            show_default="none",
        ),
    ] = None,
    t: Annotated[
        float | None,
        typer.Option(
            "--t",
            help="Maximum distance between a group's sensitive values and those of all records, from 0 to 1.",
            metavar="NUMBER",
            rich_help_panel=options.METHOD,
            show_default="none",
        ),
    ] = None,
    suppression_limit: Annotated[
        float,
        typer.Option(
            help="Maximum share of suppressed records: those that cost the others most detail.",
            rich_help_panel=options.METHOD,
        ),
    ] = 0.0,
    model: Annotated[
        ModelName,
        options.choice(
            "The model that guides the groups and is retrained: gradient-boosting, logistic-regression, "
            "linear-regression, random-forest, neural-network or decision-tree."
        ),
    ] = "gradient-boosting",
    task: Annotated[
        TaskName | None,
        options.choice(
            "The task of the model: classification or regression.",
            show_default="regression for more than 20 distinct numbers",
        ),
    ] = None,
    guide: Annotated[
        str,
        typer.Option(
            help="Guide of the groups: the model's probabilities or predictions, the target's labels, or a column of "
            "precomputed predictions, as column:NAME (it is dropped).",
            metavar="GUIDE",
            rich_help_panel=options.METHOD,
        ),
    ] = "probabilities",
    representative: Annotated[
        RepresentativeName | None,
        options.choice(
            "The values written for a group: a typical combination that no record has (phantom), the median, mean or "
            "midrange, range labels, two columns of bounds, or the values of one real record (model, member, sample).",
            show_default=DEFAULT_REPRESENTATIVE,
        ),
    ] = None,
    test_fraction: Annotated[
        float,
        typer.Option(
            help="Share of the records held out to measure the model; 0 measures nothing.",
            rich_help_panel=options.METHOD,
        ),
    ] = 0.2,
    seed: Annotated[
        int, typer.Option(help="Random seed of the split, the models and samples.", rich_help_panel=options.METHOD)
    ] = 0,
    jobs: Annotated[int, options.jobs(options.METHOD)] = options.ALL_CORES,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The anonymized file, CSV or Parquet.",
            rich_help_panel=options.OUTPUT,
            show_default="nothing is written",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="The partition, as JSON, for 'sfumato apply'. It is personal data, too.",
            metavar="PARTITION",
            rich_help_panel=options.OUTPUT,
            show_default="nothing is written",
        ),
    ] = None,
    out_of_core: options.OutOfCore = None,
    keep_order: options.KeepOrder = False,
    force: options.Force = False,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Make a file k-anonymous at the least cost to a model trained on it; ``HELP`` is what users read."""
    from sfumato.auditing.anonymize_files import anonymize_table, obstacle_to_blocks
    from sfumato.auditing.open_tables import columns_of, open_table
    from sfumato.files.table_file import check_output, format_of
    from sfumato.policy import Policy

    options.check_jobs(jobs)
    if output is not None:
        check_output(output, force=force, inputs=[file])
        format_of(output)
    if save is not None:
        check_output(save, force=force, inputs=[file], outputs=[output] if output else [], option="--save")
    if not 0 <= test_fraction < 1:
        raise ParameterError(f"--test-fraction {test_fraction}: expected a share from 0 to below 1, such as 0.2.")
    how, column = _parse_guide(guide)
    if method is None:
        method = "model-guided" if target is not None or column is not None else "information-loss"
    own_limits = _limit_numbers(options.split_pairs(limits, "--limits", "age=5,zip=3"))
    files = _hierarchies_given(hierarchies)

    def policy(columns: Sequence[str] | None) -> Policy:
        """Make a policy from the options; names are split once the columns are known."""

        def names(given: list[str] | None) -> list[str]:
            return list(given or ()) if columns is None else options.split_names(given, columns)

        return Policy.from_options(
            _option_names(),
            data={
                "release": None if output is None else str(output),
                "artifact": None if save is None else str(save),
                "keep_order": "yes" if keep_order else "no",
                "report": None,
                "audit": None,
            },
            columns={
                "target": target,
                "quasi_identifiers": names(quasi_identifiers) or None,
                "identifiers": names(identifiers),
                "sensitive": names(sensitive),
                "keep": names(keep),
                "unit": unit,
                "categorical": None if categorical is None else names(categorical),
                "limits": own_limits,
                "hierarchies": files,
            },
            method={
                "name": method,
                "k": k,
                "l": l,
                "t": t,
                "target_values": target_values,
                "suppression_limit": suppression_limit,
                "seed": seed,
                **({} if representative is None else {"representative": representative}),
            },
            model={
                "name": model,
                "task": task,
                "guide": how,
                "guide_column": column,
                "test_fraction": test_fraction,
            },
            audit={"level": "none"},
        )

    obstacle = obstacle_to_blocks(policy(None))  # settings are checked before anything is read
    with (
        open_table(console, file, reading, out_of_core=out_of_core, obstacle=obstacle) as table,
        console.warnings_as_notes(),
    ):
        done = anonymize_table(console, policy(columns_of(table)), table, jobs)
    _report(console, file, done)


def _option_names() -> dict[str, str]:
    """Return the option for each setting of a policy."""
    from sfumato.policy.settings import SECTIONS

    alike = {f"{own}.{name}": f"--{name.replace('_', '-')}" for own, settings in SECTIONS.items() for name in settings}
    return alike | {
        "data.release": "-o",
        "data.artifact": "--save",
        "method.name": "--method",
        "model.name": "--model",
        "model.guide_column": "--guide",
    }


def _parse_guide(guide: str) -> tuple[str, str | None]:
    """Return what guides the groups, and the column of precomputed predictions if it is one."""
    from sfumato.policy.settings import GUIDES

    how, _, column = guide.partition(":")
    how = how.lower()
    if how not in (*GUIDES, "column") or (how == "column") != bool(column):
        raise ParameterError(
            f"--guide {guide!r}: expected {', '.join(GUIDES)}, or column:NAME for a column of precomputed predictions."
        )
    return GUIDES[0] if column else how, column or None


def _hierarchies_given(given: list[str] | None) -> str | dict[str, str]:
    """Return a folder, or files by column."""
    if not given:
        return {}
    if len(given) == 1 and Path(given[0]).is_dir():
        return given[0]
    if len(given) == 1 and "=" not in given[0]:
        raise ParameterError(
            f"--hierarchies {given[0]!r}: there is no such folder. Expected a folder of files called like the columns, "
            "or files by column, for example --hierarchies age=age.csv,zip=zip.csv."
        )
    return options.split_pairs(given, "--hierarchies", "age=age.csv")


def _limit_numbers(pairs: dict[str, str]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, text in pairs.items():
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not abs(value) < 2.0**63:
            raise ParameterError(f"--limits {name}={text}: expected a number, for example --limits age=5.")
        numbers[name] = int(value) if value == int(value) else value
    return numbers


def _report(console: Console, file: Location, done: Anonymized) -> None:
    """Print the release, its cost, and whether k holds."""
    from sfumato.files.verified_output import blurred, verdict

    method, counted, utility = done.method, done.counted, done.utility
    output, save = done.policy.file("release"), done.policy.file("artifact")
    if console.as_json:
        console.result(_document(file, done) | {"seconds": round(console.seconds, 3)})
        return
    if utility is not None:
        show_utility(console, utility, method.model)
    console.heading(f"release of {file.name}")
    console.facts(
        [
            ("records", f"{counted.n_records:,}"),
            *([("suppressed records", blurred(done.n_suppressed, method.k))] if method.suppression_limit else []),
            ("rewritten columns", f"{len(method.quasi_identifiers)}"),
            *group_rows(counted),
            ("information loss (0 none, 1 all)", f"{done.information_loss:.3f}"),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    console.heading("what the groups do not hide")
    for sentence in done.checks.sentences():
        console.text(sentence)
    if method.target_values.how != "exact":
        console.text(f"Target {method.target!r} is released as {method.target_values}.")
    console.verdict(verdict(counted, done.judged_on, is_by_person=method.unit is not None), holds=counted.holds)
    if output is None:
        console.text("No records were written; pass -o FILE to release them.")
    if written := [str(path) for path in (output, save) if path is not None]:
        console.text(f"Written: {', '.join(written)}")
    if utility is not None and not console.quiet:
        console.text(
            f"The {utility.metric} was measured on a split with {utility.n_train:,} training records; the release was "
            "fitted on all records."
        )


def _document(file: Location, done: Anonymized) -> dict[str, Any]:
    method, policy, counted = done.method, done.policy, done.counted
    output, save = policy.file("release"), policy.file("artifact")
    is_kept = policy.get("data", "keep_order") == "yes"
    return {
        "file": str(file),
        "output": None if output is None else str(output),
        "partition": None if save is None else str(save),
        "method": method.method,
        "k": method.k,
        "l": method.l,
        "t": method.t,
        "target": method.target,
        "target_values": str(method.target_values),
        "task": None if done.target is None else done.target.task,
        "model": method.model,
        "guide": method.guide if method.guide_column is None else f"column:{method.guide_column}",
        "representative": None if method.method == "full-domain" else method.representative,
        "quasi_identifiers": method.quasi_identifiers,
        "sensitive": method.sensitive,
        "dropped": done.dropped,
        "unchanged": done.unchanged,
        "order": None if output is None else "kept" if is_kept else "shuffled",
        "utility": None if done.utility is None else done.utility.to_dict(),
        "release": counted.to_dict() | {"n_suppressed": done.n_suppressed, "information_loss": done.information_loss},
        "checks": done.checks.to_dict(),
        "holds": counted.holds,
        "judged_on": done.judged_on,
    }
