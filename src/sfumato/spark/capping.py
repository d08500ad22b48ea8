# SPDX-License-Identifier: Apache-2.0
"""Count the cells of at most so many records of each person of a Spark DataFrame; called by ``release``."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.private_blocks import BlockCounter
from sfumato.backends.spark.session import collected, map_in_arrow, pieces, plain_column, quoted
from sfumato.private.encoding import nobody
from sfumato.private.mechanisms import sample_rows

_PERSON, _CELL, _ORDER, _IS_DRAWN = "sfumato_person", "sfumato_cell", "sfumato_order", "sfumato_drawn"


def count_capped(frame: Any, counter: BlockCounter, most: int) -> NDArray[np.int64]:
    """Return the counts of cells and labels.

    Workers find the cell of each record and draw a random number for it, from their secure source. Spark keeps the
    records of each person with the smallest numbers. A block that is computed again draws again, and the cap holds all
    the same: it is applied once to all records of a person.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    counter : BlockCounter
        With a unit.
    most : int
        Records of a person.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    assert counter.unit is not None
    person = plain_column(frame, counter.unit)
    nameless = collected(frame.select(sql.sum(person.isNull().cast("long")).alias("n"))).to_pylist()[0]["n"]
    if nameless:
        raise nobody(counter.unit)
    read = frame.select(*(frame[quoted(name)] for name in counter.names), person.alias(_PERSON))
    kind = read.schema[_PERSON].dataType.simpleString()
    schema = f"{_PERSON} {kind}, {_CELL} long, {_ORDER} long, {_IS_DRAWN} boolean"
    ordered = Window.partitionBy(_PERSON).orderBy(_ORDER)
    kept = (
        map_in_arrow(read, _numbered(counter), schema)
        .withColumn("place", sql.row_number().over(ordered))
        .where(f"place <= {int(most)} and {_IS_DRAWN}")
    )
    found = collected(kept.groupBy(_CELL).agg(sql.count(sql.lit(1)).alias("n")))
    counts = np.zeros(counter.n_cells, np.int64)
    counts[found[_CELL].to_numpy()] = found["n"].to_numpy()
    return counts


def _numbered(counter: BlockCounter) -> Any:
    """Return the worker's function: the cell of every record, a random number, and whether a sample has it."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for block in pieces(batches):
            n = block.num_rows
            order = np.frombuffer(secrets.token_bytes(8 * n), np.int64)
            is_drawn = np.ones(n, np.bool_)
            if counter.rate is not None:
                is_drawn[:] = False
                is_drawn[sample_rows(n, counter.rate)] = True
            columns = {
                _PERSON: block.column(_PERSON),
                _CELL: counter.cells(block.drop_columns([_PERSON])),
                _ORDER: order,
                _IS_DRAWN: is_drawn,
            }
            yield from pa.table(columns).to_batches()

    return work
