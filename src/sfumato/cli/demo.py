# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo``: the whole idea on census data that comes with the package, in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.errors import GuaranteeError, ParameterError

if TYPE_CHECKING:
    from sfumato.auditing.utility import Utility
    from sfumato.files.verified_output import Recount
    from sfumato.measurement.combinations import Combinations

_TARGET = "income"
_MODEL = "gradient-boosting"
#: What is shown of a record: enough to see the recoding, narrow enough for 80 columns.
_SHOWN = ("age", "workclass", "education-num", "occupation", "hours-per-week", "income")
_N_SHOWN = 5

HELP = options.help_text(
    "See a model survive k-anonymization of census data.",
    "Trains gradient boosting on the Adult census table that comes with sfumato, makes its training records "
    "k-anonymous in 12 quasi-identifiers, trains again, compares, and counts the groups independently. Nothing is "
    "written.",
    examples=["sfumato demo", "sfumato demo --k 100"],
)


def demo(
    k: Annotated[int, typer.Option("--k", "-k", help="Records that every group must have at least.")] = 10,
    rows: Annotated[
        int | None,
        typer.Option(help="Take only so many records, drawn by the seed.", show_default="all 48,842"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split and the model.")] = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """See a model survive k-anonymization of census data; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug), console.warnings_as_notes():
        _run(console, k, rows, seed)


def _run(console: Console, k: int, rows: int | None, seed: int) -> None:
    import numpy as np

    from sfumato.anonymize import ModelGuidedAnonymizer
    from sfumato.auditing.utility import guide_of, measure_utility, read_target, split_records
    from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult
    from sfumato.files.verified_output import recount
    from sfumato.measurement.combinations import count_combinations
    from sfumato.models import make_model

    quasi_identifiers = list(ADULT_QUASI_IDENTIFIERS[12])
    with console.step("loading the Adult census table"):
        bunch = load_adult(as_frame="pyarrow")
        table = bunch.frame.select([*quasi_identifiers, _TARGET])
    if rows is not None:
        if not 100 <= rows <= table.num_rows:
            raise ParameterError(f"--rows {rows}: expected 100 to {table.num_rows:,}.")
        drawn = np.random.default_rng(seed).permutation(table.num_rows)[:rows]
        table = table.take(np.sort(drawn))
    n_train = int(0.8 * table.num_rows)
    if not 2 <= k <= n_train:
        raise ParameterError(f"--k {k}: expected 2 to {n_train:,}, the number of training records.")
    target = read_target(table, _TARGET, "classification")
    split = split_records(target, 0.2, seed, None)

    def features(records: Any) -> Any:
        return records.select(quasi_identifiers)

    compared = measure_utility(
        console,
        table,
        target,
        new_model=lambda: make_model(_MODEL, "classification", seed),
        new_anonymizer=lambda: ModelGuidedAnonymizer(
            k=k, quasi_identifiers=quasi_identifiers, keep=[_TARGET], random_state=seed, n_jobs=-1
        ),
        guide=lambda model, train: guide_of(model, features(table.take(train)), "probabilities"),
        features=features,
        rows=split,
        is_comparable=True,
    )
    utility, anonymizer, released = compared.utility, compared.anonymizer, compared.released
    raw = table.take(split[0])
    with console.step("counting the groups again, without the engine"):
        counted = recount(released, quasi_identifiers, k)
        shown = count_combinations(raw, released, quasi_identifiers, quasi_identifiers)
    _report(console, raw, released, utility, anonymizer, counted, shown, k)
    if not counted.holds:
        raise GuaranteeError(f"k = {k} does not hold on the result. Please report this.")


def _report(
    console: Console,
    raw: Any,
    released: Any,
    utility: Utility,
    anonymizer: Any,
    counted: Recount,
    shown: Combinations,
    k: int,
) -> None:
    from sfumato.auditing.utility import utility_rows
    from sfumato.files.verified_output import verdict

    if console.as_json:
        console.result(
            {
                "dataset": "adult",
                "k": k,
                "model": _MODEL,
                "utility": utility.to_dict(),
                "release": counted.to_dict() | {"information_loss": float(anonymizer.information_loss_)},
                "combinations_of_one_record": shown.n_of_one_record,
                "holds": counted.holds,
                "judged_on": "the result in memory",
                "seconds": round(console.seconds, 3),
            }
        )
        return
    console.heading("Census records: does a person earn more than 50,000 a year?")
    console.text(f"{utility.n_train:,} people to train with and {utility.n_test:,} to test on; 12 quasi-identifiers.")
    console.text("Public data: Adult, UCI Machine Learning Repository, CC BY 4.0.")
    console.heading("the first records before")
    console.records(_SHOWN, _cells(raw))
    console.heading(f"the same records after: {k - 1} or more others share all 12 values")
    console.records(_SHOWN, _cells(released))
    console.heading(f"accuracy of {_MODEL} on the {utility.n_test:,} others")
    console.facts(utility_rows(utility))
    console.heading("the anonymized training records")
    console.facts(
        [
            ("records", f"{counted.n_records:,}", "all kept"),
            ("groups", f"{counted.n_groups:,}"),
            ("smallest group", f"{counted.smallest_group:,}"),
            ("median group", f"{counted.median_group:,.0f}"),
            ("combinations that one person has", f"{shown.n_of_one_record:,}", "each group shows a phantom"),
            ("information loss (0 none, 1 all)", f"{anonymizer.information_loss_:.3f}"),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    console.verdict(verdict(counted, "the result, not by the engine"), holds=counted.holds)
    console.text("It hides whose record is whose, not what all records of a group have in common.")
    if not console.quiet:
        console.heading("next")
        for command, purpose in (
            ("sfumato demo --k 100", "larger groups, at a price"),
            ("sfumato anonymize FILE --target COLUMN -o OUT", "your own data"),
            ("sfumato anonymize --help", "columns, models, limits"),
        ):
            console.text(f"  {command:<48}{purpose}")


def _cells(table: Any) -> list[list[str]]:
    columns = [table.column(name).slice(0, _N_SHOWN).to_pylist() for name in _SHOWN]
    return [["?" if value is None else str(value) for value in record] for record in zip(*columns, strict=True)]
