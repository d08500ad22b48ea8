# SPDX-License-Identifier: Apache-2.0
"""Small random tables with random generalizations, and the best possible attack on them in plain Python."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sfumato.attack import FamilySettings, Samples
from sfumato.backends.memory import MemorySource
from sfumato.frames import read_table
from sfumato.generalization import Generalization, generalization_from_bins

EXACT = FamilySettings(adversaries=("table",))


@dataclass(frozen=True)
class People:
    """A table of categories and one number, with two generalizations of it."""

    rows: list[tuple[Any, ...]]
    names: tuple[str, ...]
    table: pa.Table
    generalizations: tuple[Generalization, Generalization]

    @property
    def personal(self) -> list[str]:
        return [name for name in self.names if name not in ("age", self.names[-1])]

    @property
    def samples(self) -> Samples:
        """The attacker knows everything: training, validation and test records are the whole population."""
        return Samples(self.table, self.table, self.table)


@st.composite
def people(draw: st.DrawFn, max_records: int = 40) -> People:
    n_categories = draw(st.integers(2, 4))
    n_records = draw(st.integers(3, max_records))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    hidden = generator.integers(0, 3, n_records)  # makes the attributes depend on each other
    columns: dict[str, list[Any]] = {"age": (20 + 3 * hidden + generator.integers(0, 6, n_records)).tolist()}
    for position in range(n_categories):
        n_values = draw(st.integers(1, 5))
        codes = np.where(
            generator.random(n_records) < 0.6, hidden % n_values, generator.integers(0, n_values, n_records)
        )
        columns[f"c{position}"] = [f"value {code}" for code in codes.tolist()]
    table = pa.table(columns)
    names = tuple(columns)
    generalizations = tuple(random_generalization(table, generator) for _ in range(2))
    return People(list(zip(*columns.values(), strict=True)), names, table, generalizations)  # type: ignore[arg-type]


def random_generalization(frame: Any, generator: np.random.Generator, n_buckets: int = 3) -> Generalization:
    """Put categories into buckets at random, and numbers into neighboring ones."""
    table = read_table(frame)
    columns = MemorySource(table, table.names).columns
    buckets = []
    for column in columns:
        drawn = generator.integers(0, n_buckets, column.bins.n_bins)
        buckets.append(np.sort(drawn) if column.bins.is_ordered else drawn)
    return generalization_from_bins(columns, buckets, floor=1)


def coarser(generalization: Generalization, generator: np.random.Generator) -> Generalization:
    """Join some buckets, of ordered attributes neighbors only."""
    new = {}
    for attribute in generalization.attributes:
        drawn = generator.integers(0, 2, attribute.n_buckets)
        new[attribute.name] = (np.sort(drawn) if attribute.kind != "category" else drawn).tolist()
    return generalization.coarsened(new)


def best_rate(who: People, name: str, seen: Any, known: Any = ()) -> float:
    """Return the rate of the attacker who guesses the most frequent value of all who look alike."""
    position = {column: place for place, column in enumerate(who.names)}
    alike: dict[Any, Counter] = defaultdict(Counter)
    buckets = [generalization.codes(who.table).tolist() for generalization in seen]
    for place, row in enumerate(who.rows):
        look = (*(tuple(part[place]) for part in buckets), *(row[position[other]] for other in known))
        alike[look][row[position[name]]] += 1
    return sum(max(counts.values()) for counts in alike.values()) / len(who.rows)
