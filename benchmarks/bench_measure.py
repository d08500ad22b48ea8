# SPDX-License-Identifier: Apache-2.0
"""What does ``measure`` cost beside a pandas ``groupby(...).size()``, on 1,000,000 census-like records, 12 columns?

Both group by the same twelve columns and are timed in turns. pandas stops at the sizes of the groups; ``measure`` goes
on to the risks, the estimators and the ranking of all columns and pairs. A run whose group sizes differ fails.
"""

import numpy as np
import pandas as pd

from benchmarks.harness import Context, below
from benchmarks.workloads import census_workload
from sfumato import measure

TITLE = "measuring a table beside a pandas groupby"


def run(context: Context) -> None:
    """Time the two on exact columns and on coarse ones, and with a sensitive column."""
    table = census_workload(context.size(1_000_000, 2_000)).table
    compare(context, "exact values", table)
    compare(context, "coarse values", _coarse(table))
    others = [name for name in table.columns if name != "occupation"]
    measure(table.head(1000), others, ["occupation"])  # warms the kernels
    timing = context.measure(lambda: measure(table, others, ["occupation"]))
    context.record_seconds("with all criteria on 320 occupations", timing)


def compare(context: Context, label: str, table: pd.DataFrame) -> None:
    """Record both times and their ratio."""
    columns = list(table.columns)

    def group() -> pd.Series:
        return table.groupby(columns, observed=True, dropna=False).size()

    sizes, found = group(), measure(table)  # also warms the kernels
    if (len(sizes), sizes.min(), (sizes == 1).sum()) != (
        found.groups.n_groups,
        found.k,
        found.uniqueness.n_unique,
    ):
        raise AssertionError("measure and pandas found different groups; times of different work do not compare.")
    ours, theirs = context.measure_alternating([lambda: measure(table), group])
    context.record_seconds(f"{label}: measure", ours)
    context.record_seconds(f"{label}: pandas groupby", theirs, note=f"{len(sizes):,} groups")
    context.record(f"{label}: measure takes", ours.best / theirs.best, "x", target=below(3))


def _coarse(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with numbers cut to a few steps, as after anonymizing: fewer and larger groups."""
    coarse = table.copy()
    for name in ("age", "education_years", "hours_per_week", "capital_gain", "monthly_rent"):
        values = coarse[name].astype("float64")
        edges = np.unique(np.nanquantile(values, [0.25, 0.5, 0.75]))
        coarse[name] = np.where(values.isna(), -1, np.searchsorted(edges, values)).astype(np.int8)
    occupation = coarse["occupation"].astype("str").str.split("-").str[0]
    return coarse.assign(occupation=occupation.astype("category"), birth_country=coarse["birth_country"].isna())
