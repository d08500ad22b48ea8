# SPDX-License-Identifier: Apache-2.0
"""All minimizers side by side: Staab et al., *From Principle to Practice: Vertical Data Minimization*, figures 4, 11.

60/10/30 splits with every class and category in the training part, the paper's grids, three seeds; fronts are chosen on
validation and reported on test. Every finished sweep is kept in ``results/minimizers.jsonl``, so a run that stops goes
on where it was; ``minimizers_page`` writes the page and the pictures.

    SFUMATO_DATA=... python -m studies.minimizers [--tables A,B] [--minimizers A,B] [--seeds N] [--write-only]

Utility is the error of gradient boosting on buckets, risk the success of the counted table (A1): both quick enough for
thousands of generalizations. `ROWS` says how many records a minimizer sees at most.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread per process; must be set before numpy is imported

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CELLS = HERE / "results" / "minimizers.jsonl"

TABLES = {
    "employment": "ACSEmployment, Massachusetts 2015-2018",
    "income": "ACSIncome, Massachusetts 2018",
    "coverage": "ACSPublicCoverage, New York 2024",
    "loan": "Lending Club 2007-2011",
    "communities": "Communities and Crime",
}
MINIMIZERS = (
    "PrivacyAwareTree",
    "AptMinimizer",
    "IterativeMinimizer",
    "FeatureSelectionMinimizer",
    "UniformMinimizer",
    "AdversarialMinimizer",
    "MutualInformationMinimizer",
)
N_SEEDS = 3
#: Records that a minimizer's sweep sees at most, a random sample where a table has more; 60% of them are for training.
ROWS: dict[str, int] = {
    "AdversarialMinimizer": 100_000,
    "MutualInformationMinimizer": 100_000,
    "IterativeMinimizer": 50_000,
}
LOAN_NUMBERS = (
    "loan_amnt", "int_rate", "installment", "annual_inc", "dti", "delinq_2yrs", "inq_last_6mths",
    "mths_since_last_delinq", "mths_since_last_record", "open_acc", "pub_rec", "revol_bal", "revol_util", "total_acc",
    "pub_rec_bankruptcies",
)  # fmt: skip
#: The paper's personal attributes that are not constant in these years.
LOAN_PERSONAL = (
    "term", "grade", "sub_grade", "emp_length", "home_ownership", "verification_status", "purpose", "issue_d",
    "addr_state",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Records, classes, and which attributes are personal; all other attributes are numbers."""

    X: Any
    y: Any
    personal: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """One setting, measured."""

    minimizer: str
    parameters: dict[str, Any]
    n_buckets: int
    validation_error: float
    validation_risk: float
    test_error: float
    test_risk: float


@dataclass(frozen=True)
class Cell:
    """One sweep: a minimizer on a table with a seed, the two limits first."""

    table: str
    minimizer: str
    seed: int
    n_records: int
    seconds: float
    points: tuple[Point, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from other cells."""
        return self.table, self.minimizer, self.seed


# -- tables --------------------------------------------------------------------------------------------------


def _employment() -> Table:
    from sfumato.datasets import load_acs_employment

    return _with_numbers(load_acs_employment(as_frame="pandas"), ("AGEP", "SCHL"))


def _income() -> Table:
    from sfumato.datasets import load_acs_income

    return _with_numbers(load_acs_income(state="MA", as_frame="pandas"), ("AGEP", "SCHL", "WKHP"))


def _coverage() -> Table:
    from sfumato.datasets import load_acs_public_coverage

    return _with_numbers(load_acs_public_coverage(as_frame="pandas"), ("AGEP", "SCHL", "PINCP"))


def _with_numbers(loaded: Any, numbers: tuple[str, ...]) -> Table:
    """Take all attributes but some as categories, and those as personal."""
    X = loaded.data.copy()
    personal = tuple(name for name in X.columns if name not in numbers)
    for name in personal:
        X[name] = X[name].astype("category")
    return Table(X, loaded.target.to_numpy(), personal)


def _loan() -> Table:
    from sfumato.datasets import load_lending_club

    loaded = load_lending_club(as_frame="pandas")
    return Table(loaded.data[[*LOAN_NUMBERS, *LOAN_PERSONAL]], loaded.target.to_numpy(), LOAN_PERSONAL)


def _communities() -> Table:
    from sfumato.datasets import load_communities

    loaded = load_communities(as_frame="pandas")
    shares = ["racepctblack", "racePctWhite", "racePctAsian", "racePctHisp"]
    X = loaded.data.loc[:, loaded.data.notna().mean() > 0.5].copy()
    X["race"] = X[shares].idxmax(axis=1).astype("category")
    X["state"] = loaded.aside["state"].astype("category")
    target = loaded.target
    return Table(X.drop(columns=shares), (target > target.median()).to_numpy(), ("race", "state"))


LOADERS: dict[str, Callable[[], Table]] = {
    "employment": _employment,
    "income": _income,
    "coverage": _coverage,
    "loan": _loan,
    "communities": _communities,
}


# -- running -------------------------------------------------------------------------------------------------


def run(tables: list[str], minimizers: list[str], n_seeds: int) -> None:
    """Run the sweeps that are not kept yet and keep each as it is finished."""
    CELLS.parent.mkdir(exist_ok=True)
    kept = {cell.key for cell in read_cells()}
    for seed in range(n_seeds):
        for name in tables:
            missing = [one for one in minimizers if (name, one, seed) not in kept]
            table = LOADERS[name]() if missing else None
            for one in missing:
                assert table is not None
                cell = run_cell(table, name, one, seed)
                with CELLS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(cell)) + "\n")
                print(f"{name} {one} seed {seed}: {len(cell.points)} points in {cell.seconds:.0f} s", flush=True)


def run_cell(table: Table, name: str, minimizer: str, seed: int, *, max_records: int | None = None) -> Cell:
    """Sweep over the paper's grid of one minimizer."""
    import numpy as np

    from sfumato import minimize

    most = min(part for part in (ROWS.get(minimizer), max_records, len(table.y)) if part is not None)
    rows = np.sort(np.random.default_rng(seed).permutation(len(table.y))[:most])
    start = time.perf_counter()
    own = getattr(minimize, minimizer)(personal=list(table.personal), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of logistic regressions that stop early
        swept = minimize.sweep_minimizers(own, table.X.iloc[rows], table.y[rows], random_state=seed)
    points = tuple(
        Point(
            point.minimizer,
            dict(point.parameters),
            point.n_buckets,
            *(round(value, 6) for value in (point.validation_error, point.validation_risk)),
            *(round(value, 6) for value in (point.test_error, point.test_risk)),
        )
        for point in swept.points
    )
    return Cell(name, minimizer, seed, most, round(time.perf_counter() - start, 1), points)


def read_cells() -> list[Cell]:
    """Return the sweeps kept so far, in the order of the study."""
    if not CELLS.exists():
        return []
    found = {}
    for line in CELLS.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        points = tuple(Point(**point) for point in document.pop("points"))
        cell = Cell(**document, points=points)
        found[cell.key] = cell
    order = [(name, one, seed) for name in TABLES for one in MINIMIZERS for seed in range(N_SEEDS)]
    return [found[key] for key in order if key in found]


def _chosen(given: str | None, known: Any, option: str) -> list[str]:
    names = list(known) if given is None else given.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"{option} names {unknown[0]!r}: expected some of {', '.join(known)}.")
    return names


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.minimizers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tables", help=f"some of {', '.join(TABLES)}, separated by commas")
    parser.add_argument("--minimizers", help=f"some of {', '.join(MINIMIZERS)}, separated by commas")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="seeds 0, 1, ... up to this many")
    parser.add_argument("--write-only", action="store_true", help="write the page from the sweeps at hand")
    arguments = parser.parse_args()
    tables = _chosen(arguments.tables, TABLES, "--tables")
    minimizers = _chosen(arguments.minimizers, MINIMIZERS, "--minimizers")
    if not arguments.write_only:
        run(tables, minimizers, min(arguments.seeds, N_SEEDS))
    from studies.minimizers_page import write

    write(read_cells())


if __name__ == "__main__":
    main()
