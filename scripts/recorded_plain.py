# SPDX-License-Identifier: Apache-2.0
"""Recorded results as text: one spelling for every kind of value, a digest of it, and a few words about it."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = {"seconds", "shadow_seconds"}
PERSON_BY_PERSON = {"hits"}  # of attacks: the rates that they add up to are recorded
LONGEST_WORDS = 150


class SkippedSceneError(Exception):
    """A scene cannot be recorded here; the message says why."""


def plain(value: Any) -> Any:
    """Return lists, dicts, numbers and text that stand for a value; equal values have equal stand-ins."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.generic):
        return plain(value.item()) if value.dtype.kind not in "mM" else str(value)
    if isinstance(value, decimal.Decimal | datetime.timedelta | Path):
        return str(value)
    if isinstance(value, datetime.date | datetime.datetime | datetime.time):
        return value.isoformat()
    if isinstance(value, np.ndarray):
        return {"array": str(value.dtype), "shape": list(value.shape), "values": [plain(v) for v in value.ravel()]}
    if isinstance(value, Mapping):
        return {str(plain(name)): plain(own) for name, own in value.items() if name not in SECONDS}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name not in PERSON_BY_PERSON]
        return plain({name: getattr(value, name) for name in names})
    if isinstance(value, set | frozenset):
        return sorted((plain(own) for own in value), key=repr)
    frame = _plain_frame(value)
    if frame is not None:
        return frame
    if isinstance(value, Iterable):
        return [plain(own) for own in value]
    if hasattr(value, "value") and not callable(value.value):  # an enumeration
        return plain(value.value)
    if str(value) in ("NaT", "<NA>", "nan"):
        return str(value)
    raise TypeError(f"a recorded result has a {type(value).__name__}, which has no stand-in: add one to plain()")


def _plain_frame(value: Any) -> dict[str, Any] | None:
    library = type(value).__module__.partition(".")[0]
    if library == "pandas" and hasattr(value, "columns"):
        names = list(value.columns)
        columns = [_pandas_column(value.iloc[:, place]) for place in range(len(names))]
        index = [plain(own) for own in value.index.tolist()]
        is_counted = index == list(range(len(index)))
        return {"frame": "pandas", "names": plain(names), "columns": columns, "index": None if is_counted else index}
    if library == "pandas" and hasattr(value, "dtype"):
        return {"frame": "pandas series", "columns": [_pandas_column(value)]}
    if library == "polars" and hasattr(value, "get_columns"):
        columns = [{"type": str(own.dtype), "values": plain(own.to_list())} for own in value.get_columns()]
        return {"frame": "polars", "names": value.columns, "columns": columns}
    if library == "pyarrow" and hasattr(value, "column_names"):
        columns = [
            {"type": str(value.schema.field(place).type), "values": plain(value.column(place).to_pylist())}
            for place in range(value.num_columns)
        ]
        return {"frame": "pyarrow", "names": value.column_names, "columns": columns}
    return None


def _pandas_column(column: Any) -> dict[str, Any]:
    found = {"type": str(column.dtype), "values": [plain(own) for own in column.tolist()]}
    if found["type"] == "category":
        found["categories"] = [plain(own) for own in column.cat.categories.tolist()]
        found["is_ordered"] = bool(column.cat.ordered)
    return found


def sorted_records(table: Any) -> dict[str, Any]:
    """Return a pyarrow table with its records sorted, for results whose order is random or means nothing."""
    found = plain(table)
    columns = [column["values"] for column in found["columns"]]
    records = sorted(zip(*columns, strict=True), key=repr)
    types = [column["type"] for column in found["columns"]]
    return {"frame": "sorted", "names": found["names"], "types": types, "records": [list(own) for own in records]}


def rounded(value: Any, digits: int = 9) -> Any:
    """Return a stand-in with numbers of so many significant digits, for sums whose order of addition may differ."""
    value = plain(value)
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, list):
        return [rounded(own, digits) for own in value]
    if isinstance(value, dict):
        return {name: rounded(own, digits) for name, own in value.items()}
    return value


def spelled(value: Any) -> str:
    """Return the text that is compared: text as it is, everything else as JSON with sorted keys."""
    if isinstance(value, str):
        return value
    return json.dumps(plain(value), ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def words_about(value: Any) -> str:
    """Return a few words about a result: its shape, its first values and numbers."""
    words = _words(plain(value) if not isinstance(value, str) else value, 3)
    return words if len(words) <= LONGEST_WORDS else f"{words[: LONGEST_WORDS - 1]}…"


def _words(value: Any, depth: int) -> str:
    if isinstance(value, str):
        lines = value.splitlines()
        return repr(value) if len(value) <= 40 else f"{len(lines)} lines, {len(value)} characters"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        firsts = ", ".join(_words(own, depth - 1) for own in value[:4]) if depth > 0 else "…"
        return f"[{firsts}]" if len(value) <= 4 else f"{len(value)} × [{firsts}, …]"
    if isinstance(value, dict) and "records" in value and "names" in value:
        return f"{len(value['records'])} × {len(value['names'])}: {_words(value['records'][:1], 2)}"
    if isinstance(value, dict) and "columns" in value and "frame" in value:
        firsts = [column["values"][:2] for column in value["columns"]]
        n_records = len(value["columns"][0]["values"]) if value["columns"] else 0
        return f"{value['frame']} {n_records} × {len(firsts)}: {_words(firsts, 2)}"
    if isinstance(value, dict) and "array" in value:
        return f"{value['array']} {tuple(value['shape'])}: {_words(value['values'], 2)}"
    if isinstance(value, dict):
        if depth <= 0:
            return f"{{{len(value)}}}"
        simple = {name: own for name, own in value.items() if not isinstance(own, dict | list)}
        nested = {name: own for name, own in value.items() if name not in simple}
        return "; ".join(f"{name} {_words(own, depth - 1)}" for name, own in [*simple.items(), *nested.items()])
    return str(value)
