# SPDX-License-Identifier: Apache-2.0
"""The interface to Spark: columns by name, records in blocks, and the only path of data to the driver."""

from __future__ import annotations

import pickle
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sfumato.errors import InputError, MissingExtraError, SfumatoError

PIECE = 1 << 16
"""Records that a worker reads, codes and stores together."""


def require_pyspark() -> Any:
    """Return the pyspark module, or raise an error that says how to install it."""
    try:
        import pyspark
    except ImportError as error:
        raise MissingExtraError(
            "pyspark is not installed: tables in Spark need it. Install it with pip install 'sfumato[spark]'."
        ) from error
    return pyspark


def check_frame(frame: Any) -> None:
    """Raise InputError unless `frame` is a Spark DataFrame with unique column names."""
    require_pyspark()
    if not hasattr(frame, "mapInArrow"):
        raise InputError(
            f"the input is a {type(frame).__name__}: expected a Spark DataFrame. Use the anonymizer itself for a table "
            "in memory, or sfumato.parquet for files."
        )
    repeated = sorted({name for name in frame.columns if frame.columns.count(name) > 1})
    if repeated:
        raise InputError(f"the table has several columns named {', '.join(map(repr, repeated))}: expected each once.")


def quoted(name: str) -> str:
    """Return the name of a column quoted for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def selected(frame: Any, names: Sequence[str]) -> Any:
    """Return some columns of a frame."""
    return frame.select(*[frame[quoted(name)] for name in names])


def joined(left: Any, right: Any, on: Any, how: str = "inner") -> Any:
    """Join two frames on the workers: by default Spark broadcasts a small one through the driver."""
    return left.join(right.hint("merge"), on, how)


def united(frames: Sequence[Any]) -> Any:
    """Return the rows of all frames, which have the same columns."""
    whole = frames[0]
    for own in frames[1:]:
        whole = whole.unionByName(own)
    return whole


def plain_column(frame: Any, name: str) -> Any:
    """Return a column for counting, with NaN as null: some tables mark missing values by NaN."""
    from pyspark.sql import functions as sql

    column = sql.col(quoted(name))
    is_real = frame.schema[name].dataType.typeName() in ("double", "float")
    return sql.nanvl(column, sql.lit(None).cast("double")) if is_real else column


def check_finite(frame: Any, names: Sequence[str]) -> int:
    """Raise InputError for infinity in some columns or a table without records; return the number of records."""
    from pyspark.sql import functions as sql

    reals = [name for name in names if frame.schema[name].dataType.typeName() in ("double", "float")]
    infinite = [
        sql.sum((sql.abs(sql.col(quoted(name))) == float("inf")).cast("int")).alias(f"infinite {place}")
        for place, name in enumerate(reals)
    ]
    found = collected(frame.agg(sql.count(sql.lit(1)).alias("n"), *infinite)).to_pylist()[0]
    if not found["n"]:
        raise InputError("the table has 0 records: expected some.")
    for place, name in enumerate(reals):
        if found[f"infinite {place}"]:
            raise InputError(
                f"column {name!r} contains infinity in {found[f'infinite {place}']} of {found['n']} records: expected "
                "finite numbers. Replace infinity by a number or by a missing value."
            )
    return int(found["n"])


def example_of(frame: Any) -> Any:
    """Return a table of one record without any value, of the types that workers will see."""
    import pyarrow as pa

    return pa.table([pa.nulls(1, field.type) for field in arrow_schema(frame)], names=frame.columns)


def arrow_schema(frame: Any) -> Any:
    """Return the Arrow types of a frame's columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema, timezone="UTC")


def pieces(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the records of one worker's share as tables of about `PIECE` records."""
    import pyarrow as pa

    held: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(part.num_rows for part in held) >= PIECE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def map_pieces(frame: Any, work: Callable[[Any], Any], names: Sequence[str]) -> list[Any]:
    """Return the results of a function for every block of some columns; they reach the driver."""

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for piece in pieces(batches):
            answer = pickle.dumps(work(piece))
            yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], names=["answer"])

    found = collected(map_in_arrow(selected(frame, names), answers, "answer binary"))
    return [pickle.loads(row) for row in found["answer"].to_pylist()]


@contextmanager
def kept(frame: Any) -> Iterator[Any]:
    """Cache a frame on the workers, in memory or on their disks, while the context is open."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


@contextmanager
def kept_apart(frame: Any) -> Iterator[Any]:
    """Cache a frame as `kept` does, and yield its records without the query that made them.

    A frame that is joined with its own counts names its query twice. After several such steps, the driver would plan,
    describe and hold twice as much for every step. Workers that die still cost nothing: the records remain computable.
    """
    session = frame.sparkSession
    with kept(frame):
        java = getattr(frame, "_jdf", None)
        if java is None:  # Spark Connect has no records but by queries
            yield frame
            return
        from pyspark.sql import DataFrame

        yield DataFrame(session._jsparkSession.createDataFrame(java.toJavaRDD(), java.schema()), session)


def collected(frame: Any) -> Any:
    """Bring a small frame to the driver as an Arrow table. All that the driver sees comes through here."""
    with own_errors():
        return frame.toArrow()


_REFUSED = "refused by sfumato: "  # before an error that crosses from a worker to the driver as text


def map_in_arrow(frame: Any, work: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
    """Map the record batches of a frame on workers; `own_errors` raises their errors again."""

    def told(batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from work(batches)
        except SfumatoError as error:  # Spark passes on the text of an error, and nothing else
            raise RuntimeError(f"{error} ({_REFUSED}{b64encode(pickle.dumps(error)).decode()})") from None

    return frame.mapInArrow(told, schema)


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise the errors of workers as sfumato's own errors."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if found := re.search(f"{_REFUSED}([A-Za-z0-9+/=]+)", str(error)):
            raise pickle.loads(b64decode(found[1])) from None
        raise
