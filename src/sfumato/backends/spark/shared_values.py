# SPDX-License-Identifier: Apache-2.0
"""Find the publishable values of bins of a Spark DataFrame's columns, without moving their values.

The driver puts bins together into runs from what Spark counted of each bin. Only for runs without a common value do
workers look at the values, those of one run at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.spark.session import collected
from sfumato.partition.shared_values import InsideRun, Run, SharedValues, look_inside, runs_of, share_runs

_LOW_BITS = np.int64(np.iinfo(np.int64).max)


class Seen(Protocol):
    """The kind of a column's values in a share of a table."""

    @property
    def is_real(self) -> bool:
        """Whether there are fractions."""

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing."""

    @property
    def step(self) -> int:
        """The smallest step between two values."""

    @property
    def units(self) -> Sequence[int]:
        """The units of values between two others."""


@dataclass(frozen=True, eq=False)
class DescribedBins:
    """The runs of a column's bins, as far as the driver knows them."""

    runs: list[Run]
    is_single: NDArray[np.bool_]
    n_modes: NDArray[np.int64]
    floor: int
    units: Sequence[int]
    step: int
    is_real: bool

    @property
    def open_runs(self) -> list[int]:
        """Runs with several values: workers look for values within them that no single record has."""
        return [at for at, run in enumerate(self.runs) if run.low < run.high]

    def keys_of(self, end: str) -> NDArray[np.int64]:
        """Return the keys of the lowest or highest values of the open runs."""
        values = [getattr(self.runs[at], end) for at in self.open_runs]
        return as_keys(np.array(values, np.float64 if self.is_real else np.int64))


def as_keys(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return whole numbers in the order of the values; of fractions, their bits."""
    if values.dtype.kind == "i":
        return values
    bits = values.view(np.int64)
    return bits ^ ((bits >> np.int64(63)) & _LOW_BITS)


def from_keys(keys: NDArray[np.int64], is_real: bool) -> NDArray[Any]:
    """Return the values that `as_keys` made keys of."""
    return (keys ^ ((keys >> np.int64(63)) & _LOW_BITS)).view(np.float64) if is_real else keys


def describe_bins(floor: int, seen: Collection[Seen], rows: Sequence[Mapping[str, Any]]) -> DescribedBins:
    """Join the bins of a column to runs, given a row of counts for each bin."""
    known = [own for own in seen if not own.is_empty]
    is_real = any(own.is_real for own in known)
    rows = sorted(rows, key=lambda row: int(row["low"]))
    low, high, mode = (
        from_keys(np.array([row[end] for row in rows], np.int64), is_real) for end in ("low", "high", "mode")
    )
    n, n_mode, n_values, n_low, n_high = (
        np.array([row[name] for row in rows], np.int64) for name in ("n", "n_mode", "n_values", "n_low", "n_high")
    )
    runs = []
    for first, stop in runs_of(n, floor):
        most = first + int(n_mode[first:stop].argmax())
        runs.append(
            Run(
                first, stop, int(n[first:stop].sum()), low[first], high[stop - 1],
                int(n_low[first]), int(n_high[stop - 1]), mode[most], int(n_mode[most]), most, InsideRun(),
            )
        )  # fmt: skip
    step = min(own.step for own in known)
    return DescribedBins(runs, n_values == 1, n_mode, floor, known[0].units, step, is_real)


def share_bins(added: Any, described: Mapping[int, DescribedBins]) -> dict[int, SharedValues]:
    """Return the publishable values of columns, given the counts of their values in the whole table."""
    inside = _looked_inside(added, {place: own for place, own in described.items() if own.open_runs})
    found = {}
    for place, own in described.items():
        runs = [replace(run, inside=inside.get((place, at), InsideRun())) for at, run in enumerate(own.runs)]
        found[place] = share_runs(runs, own.is_single, own.n_modes, own.floor, own.units, own.step)
    return found


def _looked_inside(added: Any, wanted: Mapping[int, DescribedBins]) -> dict[tuple[int, int], InsideRun]:
    """Look inside each open run on workers."""
    from pyspark.sql import functions as sql

    if not wanted:
        return {}
    limits = {
        place: (own.keys_of("low"), own.keys_of("high"), np.array(own.open_runs)) for place, own in wanted.items()
    }

    def number(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            places, keys = (batch.column(name).to_numpy() for name in ("place", "number"))
            run = np.full(len(keys), -1, np.int32)
            for place, (lows, highs, numbers) in limits.items():
                own = np.flatnonzero(places == place)
                at = np.searchsorted(lows, keys[own], side="right") - 1
                is_inside = (at >= 0) & (keys[own] <= highs[at])
                run[own[is_inside]] = numbers[at[is_inside]]
            columns = [batch.column("place"), pa.array(run), batch.column("number"), batch.column("n")]
            numbered = pa.RecordBatch.from_arrays(columns, names=["place", "run", "number", "n"])
            yield numbered.filter(pa.array(run >= 0))

    def find(table: Any) -> Any:
        import pyarrow as pa

        table = table.sort_by("number")
        own = wanted[table["place"][0].as_py()]
        values = from_keys(table["number"].to_numpy(), own.is_real)
        found = look_inside(values, table["n"].to_numpy(), own.units, own.step)
        keys = [None if value is None else int(as_keys(np.array([value], values.dtype))[0]) for value in found]
        ends = {name: pa.array([key], pa.int64()) for name, key in zip(InsideRun._fields, keys, strict=True)}
        return pa.table({"place": table["place"][:1], "run": table["run"][:1], **ends})

    chosen = added.where(sql.col("place").isin(list(wanted)) & sql.col("text").isNull()).select("place", "number", "n")
    numbered = chosen.mapInArrow(number, "place int, run int, number bigint, n bigint")
    columns = ", ".join(f"{name} bigint" for name in InsideRun._fields)
    found = collected(numbered.groupBy("place", "run").applyInArrow(find, f"place int, run int, {columns}"))
    inside = {}
    for row in found.to_pylist():
        is_real = wanted[row["place"]].is_real
        keys = [row[name] for name in InsideRun._fields]
        values = [None if key is None else from_keys(np.array([key], np.int64), is_real)[0] for key in keys]
        inside[row["place"], row["run"]] = InsideRun(*values)
    return inside
