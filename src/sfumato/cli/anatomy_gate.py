# SPDX-License-Identifier: Apache-2.0
"""The gate of ``sfumato anatomize``: nothing is written if an attack guesses too much, and the message says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.errors import GuaranteeError

if TYPE_CHECKING:
    from sfumato.attack.result import AttackResult

_MOST_NAMED = 3
_LEAST_TOLD = 0.05  # a column that adds fewer right guesses is not worth dropping


def check_attacks(
    attacks: Sequence[tuple[str, AttackResult]],
    limit: float,
    l: int,  # noqa: E741 - the literature's own letter
    table: Any,
    identifying: Sequence[str],
) -> None:
    """Raise GuaranteeError if an attack is right in more records than `limit` beyond its baseline.

    Parameters
    ----------
    attacks : sequence of (str, AttackResult)
        Sensitive columns, and what an attack on each found.
    limit : float
    l : int
    table : pyarrow.Table
        The original records, from which columns that tell the sensitive one are found.
    identifying : sequence of str
        Columns that would be shared beside the sensitive ones.
    """
    if not attacks:
        return
    name, worst = max(attacks, key=lambda attack: attack[1].rate - attack[1].baseline)
    advantage = worst.rate - worst.baseline
    if advantage <= limit:
        return
    telling = telling_columns(table, name, [column for column in identifying if column in table.column_names])
    drop = "drop more columns with --identifiers"
    if telling:
        named = ", ".join(f"{column!r} (alone right in {rate:.0%})" for column, rate in telling)
        drop = f"drop with --identifiers what tells {name!r}, such as {named}"
    raise GuaranteeError(
        f"l = {l} holds, but the {worst.attack} attack guesses {name!r} right in {worst.rate:.1%} of the records, and "
        f"{worst.baseline:.1%} are guessed by the group alone: advantage {advantage:.1%}, limit {limit:.1%}. Nothing "
        f"was written. Raise --l, {drop}, or allow more with --max-attack."
    )


def telling_columns(table: Any, sensitive: str, columns: Sequence[str]) -> list[tuple[str, float]]:
    """Return the columns from which alone a sensitive column is guessed best, and how often that is right.

    Only columns that are right clearly more often than the most frequent value is; numbers count by their bins.
    """
    import numpy as np

    from sfumato.backends.memory import MemorySource
    from sfumato.frames import read_table

    source = MemorySource(read_table(table), [sensitive, *columns])
    truth = source.columns[0].codes.astype(np.int64)
    n_values = source.columns[0].bins.n_bins
    always = float(np.bincount(truth).max()) / len(truth)
    found = []
    for column in source.columns[1:]:
        n_bins = column.bins.n_bins
        if (
            n_bins * 5 > len(truth) or n_bins * n_values > 50_000_000
        ):  # so fine that it would know every record by itself
            continue
        counts = np.bincount(column.codes * np.int64(n_values) + truth, minlength=n_bins * n_values)
        rate = float(counts.reshape(n_bins, n_values).max(axis=1).sum()) / len(truth)
        if rate >= always + _LEAST_TOLD:
            found.append((column.name, rate))
    return sorted(found, key=lambda entry: -entry[1])[:_MOST_NAMED]
