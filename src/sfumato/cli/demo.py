# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo``: anonymize the bundled census data, and compare protections of a model on it."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import Console
from sfumato.cli.printing import group_rows, show_utility
from sfumato.errors import GuaranteeError, ParameterError

if TYPE_CHECKING:
    from sfumato.auditing.utility import Utility
    from sfumato.files.verified_output import Recount
    from sfumato.measurement.combinations import Combinations
    from sfumato.report.frontier import Frontier

_TARGET = "income"
_MODEL = "gradient-boosting"
#: Columns that are printed: enough to see the recoding, narrow enough for 80 characters.
_SHOWN = ("age", "workclass", "education-num", "occupation", "hours-per-week", "income")
_N_SHOWN = 5
#: Of the frontier: none trains a further model, so that a minute is enough for all rows.
_ATTACKS = ("threshold", "release_membership", "singling_out")
_MOST_COMPARED = 20_000

HELP = options.help_text(
    "Anonymize census data and see what it costs a model.",
    "Train gradient boosting on the bundled Adult census table, make its training records k-anonymous in 12 "
    "quasi-identifiers, retrain, compare, and count the groups independently. Then attack several protections of the "
    "same model, and draw them on a page in a temporary folder, which the demo offers to open.",
    examples=["sfumato demo", "sfumato demo --k 100"],
)


@options.command
def demo(
    k: Annotated[int, typer.Option("--k", "-k", help="Minimum group size.")] = 10,
    rows: Annotated[
        int | None,
        typer.Option(help="Use a random sample of this many records.", show_default="all 48,842"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the split and the model.")] = 0,
    *,
    console: Console,
) -> None:
    """Anonymize census data and compare two models; ``HELP`` is what users read."""
    with console.warnings_as_notes():
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
    found = _compared(console, table, quasi_identifiers, k, seed)
    _report(console, raw, released, utility, anonymizer, counted, shown, found, k)
    if not counted.holds:
        raise GuaranteeError(f"k = {k} does not hold on the result. Please report this.")
    if not console.as_json:
        _show_page(console, found)
        _say_next(console)


def _compared(console: Console, table: Any, quasi_identifiers: list[str], k: int, seed: int) -> Frontier:
    """Measure and attack models and tables of groups of two sizes, on one split."""
    import numpy as np

    from sfumato.auditing.frontier import frontier
    from sfumato.models import make_model

    some = table.slice(0, _MOST_COMPARED)
    sizes = [size for size in (k, 10 * k) if size <= some.num_rows // 4] or [k]
    with console.step("attacking the model and the table under several protections"):
        return frontier(
            some.select(quasi_identifiers),
            np.asarray(some.column(_TARGET).to_pylist()),
            make_model(_MODEL, "classification", seed),
            {"k": sizes, "k-release": sizes},
            attacks=_ATTACKS,
            n_splits=1,
            random_state=seed,
            n_jobs=-1,
        )


def _report(
    console: Console,
    raw: Any,
    released: Any,
    utility: Utility,
    anonymizer: Any,
    counted: Recount,
    shown: Combinations,
    found: Frontier,
    k: int,
) -> None:
    from sfumato.anonymize.region_training import chosen_floor
    from sfumato.files.verified_output import verdict
    from sfumato.report.frontier_page import console_table

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
                "frontier": found.to_dict(),
                "seconds": round(console.seconds, 3),
            }
        )
        return
    console.heading("Census records: does a person earn more than 50,000 a year?")
    console.text(f"{utility.n_train:,} training records, {utility.n_test:,} test records, 12 quasi-identifiers.")
    console.text("Public data: Adult, UCI Machine Learning Repository, CC BY 4.0.")
    console.heading("the first records before")
    console.records(_SHOWN, _cells(raw))
    console.heading(f"the same records after: {k - 1} or more others share all 12 values")
    console.records(_SHOWN, _cells(released))
    show_utility(console, utility, _MODEL)
    console.heading("the anonymized training records")
    console.facts(
        [
            ("records", f"{counted.n_records:,}", "all kept"),
            *group_rows(counted),
            ("combinations of exactly one person", f"{shown.n_of_one_record:,}", "each group shows a phantom"),
            ("information loss (0 none, 1 all)", f"{anonymizer.information_loss_:.3f}"),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    console.verdict(verdict(counted, "the result, not by the engine"), holds=counted.holds)
    console.text("It hides which record is whose, not values a whole group shares.")
    console.heading("protections of the model, in percent")
    console.records(*console_table(found, console.out.width))
    console.text("")
    console.text(
        "by model, by table: how often the strongest attacker tells who was among the training records; who guesses "
        "is right in half of the cases. A shared table shows phantoms, records of nobody. A shared model learns from "
        f"regions, numbers that each count at least {chosen_floor(None, k)} people."
    )


def _show_page(console: Console, found: Frontier) -> None:
    """Write the frontier as a page, and open it if somebody who can be asked says so."""
    page = Path(tempfile.mkdtemp(prefix="sfumato-")) / "frontier.html"
    page.write_text(found.to_html("Protections of a model of census records"), encoding="utf-8")
    console.text("")
    console.out.print(f"The picture: {page}", markup=False, soft_wrap=True)  # a broken path cannot be opened
    if not console.quiet and console.is_watched and sys.stdin.isatty() and typer.confirm("Open it?", default=True):
        webbrowser.open(page.as_uri())


def _say_next(console: Console) -> None:
    if console.quiet:
        return
    console.heading("next")
    for command, purpose in (
        ("sfumato demo --k 100", "larger groups"),
        ("sfumato anonymize FILE --target COLUMN -o OUT", "your own data"),
        ("sfumato frontier FILE --target COLUMN", "what would fit your own data"),
    ):
        console.text(f"  {command:<48}{purpose}")


def _cells(table: Any) -> list[list[str]]:
    columns = [table.column(name).slice(0, _N_SHOWN).to_pylist() for name in _SHOWN]
    return [["?" if value is None else str(value) for value in record] for record in zip(*columns, strict=True)]
