# SPDX-License-Identifier: Apache-2.0
"""What does anatomizing and pruning cost beside sorting the same table?

Census-like records in a pandas frame, the occupation sensitive, l = 2 and l = 4; columns of categories and narrow
numbers, whose sort is nearly free, and columns of text as pandas reads them from a file. The sort is pandas'
``sort_values`` by the sensitive column, timed in turns with ours. Ours reads the frame, makes the groups, builds two
shuffled tables and counts their groups again; pruning codes all columns and chooses a candidate for every record.
"""

import pandas as pd

from benchmarks.harness import Context, below
from benchmarks.workloads import as_read_from_csv, census_workload
from sfumato import Anatomizer
from sfumato.anatomize import prune

TITLE = "anatomizing and pruning beside a sort"
SENSITIVE = "occupation"


def run(context: Context) -> None:
    """Measure the sort, the two steps and both together in turns, on both kinds of table."""
    n_records = context.size(1_000_000, 2_000)
    compact = census_workload(n_records).table
    measure(context, compact, "categories")
    measure(context, as_read_from_csv(compact), "text")


def measure(context: Context, table: pd.DataFrame, kind: str) -> None:
    """Measure on one table."""
    for length in (2, 4):
        anatomizer = Anatomizer(length, sensitive=SENSITIVE, suppression_limit=1.0, random_state=0)
        anatomized = anatomizer.fit_transform(table)  # compiles or loads kernels
        prune(anatomized)
        sorting, dividing, pruning, both = context.measure_alternating(
            [
                lambda: table.sort_values(SENSITIVE),
                lambda anatomizer=anatomizer: anatomizer.fit_transform(table),
                lambda anatomized=anatomized: prune(anatomized),
                lambda anatomizer=anatomizer: prune(anatomizer.fit_transform(table)),
            ]
        )
        where = f"{kind}, l={length}, {len(table):,} records"
        context.record_seconds(f"sort_values, {where}", sorting)
        context.record_seconds(f"anatomize, {where}", dividing)
        context.record_seconds(f"prune, {where}", pruning)
        ratio = both.best / sorting.best
        context.record(f"anatomize and prune beside sort_values, {where}", ratio, "x", target=below(5))
