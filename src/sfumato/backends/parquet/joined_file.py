# SPDX-License-Identifier: Apache-2.0
"""One Parquet file put together from pieces that several threads have written, each a small Parquet file in memory.

A Parquet file is its row groups one after the other and a directory at the end. The row groups of a piece are copied as
they are; the entries of its directory are moved by as many bytes. The directory is a Thrift structure in the compact
protocol, of which everything that is not moved is passed on as it was read.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)

# Numbers of the fields in Parquet's directory.
_N_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK_OFFSETS, _CHUNK_METADATA = (2, 4, 6), 3
_PAGE_OFFSETS = (9, 10, 11, 14)

Struct = dict[int, tuple[int, Any]]
"""The fields of a structure: kind and value by number."""


class JoinedFile:
    """A Parquet file that grows by whole Parquet files of the same schema; a context manager.

    Parameters
    ----------
    path : Path
        An existing file, which is overwritten.
    """

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("r+b")
        self._directory: Struct | None = None

    def __enter__(self) -> Self:
        """Return itself."""
        self._file.truncate()
        self._file.write(_MAGIC)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the directory, unless something went wrong, and close the file."""
        with self._file:
            if kind is None and self._directory is not None:
                footer = write_struct(self._directory)
                self._file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    def add(self, piece: memoryview) -> None:
        """Add the row groups of a whole Parquet file."""
        n_footer = int.from_bytes(piece[-8:-4], "little")
        directory, _ = read_struct(bytes(piece[-8 - n_footer : -8]), 0)
        moved_by = self._file.tell() - len(_MAGIC)
        self._file.write(piece[len(_MAGIC) : -8 - n_footer])
        if self._directory is None:
            self._directory = directory | {_N_ROWS: (6, 0), _ROW_GROUPS: (_LIST, (_STRUCT, []))}
        groups: list[Struct] = self._directory[_ROW_GROUPS][1][1]
        for group in directory[_ROW_GROUPS][1][1]:
            _move_group(group, moved_by, len(groups))
            groups.append(group)
        self._directory[_N_ROWS] = (6, self._directory[_N_ROWS][1] + directory[_N_ROWS][1])


def _move_group(group: Struct, moved_by: int, ordinal: int) -> None:
    _move(group, (_GROUP_OFFSET,), moved_by)
    if _ORDINAL in group:
        group[_ORDINAL] = (4, ordinal)
    for chunk in group[_COLUMNS][1][1]:
        _move(chunk, _CHUNK_OFFSETS, moved_by)
        _move(chunk[_CHUNK_METADATA][1], _PAGE_OFFSETS, moved_by)


def _move(fields: Struct, numbers: tuple[int, ...], moved_by: int) -> None:
    for number in numbers:
        if number in fields and fields[number][1]:  # 0 is no place in a file: its first bytes say what it is
            kind, offset = fields[number]
            fields[number] = (kind, offset + moved_by)


# -- the compact protocol --------------------------------------------------------------------------------------


def read_struct(data: bytes, at: int) -> tuple[Struct, int]:
    """Return a structure and where it ends."""
    fields: Struct = {}
    number = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        at += 1
        if step:
            number += step
        else:
            raw, at = _read_varint(data, at)
            number = _from_zigzag(raw)
        if kind in (_TRUE, _FALSE):
            fields[number] = (kind, None)
        else:
            value, at = _read_value(data, at, kind)
            fields[number] = (kind, value)
    return fields, at + 1


def _read_value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        raw, at = _read_varint(data, at)
        return _from_zigzag(raw), at
    if kind == _BINARY:
        n, at = _read_varint(data, at)
        return data[at : at + n], at + n
    if kind == _STRUCT:
        return read_struct(data, at)
    if kind in (_LIST, _SET):
        n, own = data[at] >> 4, data[at] & 15
        at += 1
        if n == 15:
            n, at = _read_varint(data, at)
        values = []
        for _ in range(n):
            value, at = _read_value(data, at, own)
            values.append(value)
        return (own, values), at
    n_bytes = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}[kind]
    return data[at : at + n_bytes], at + n_bytes


def write_struct(fields: Struct) -> bytes:
    """Return a structure as bytes."""
    out = bytearray()
    last = 0
    for number in sorted(fields):
        kind, value = fields[number]
        step = number - last
        out += bytes([step << 4 | kind]) if step < 16 else bytes([kind]) + _varint(_zigzag(number))
        last = number
        if kind not in (_TRUE, _FALSE):
            out += _value(kind, value)
    return bytes(out + b"\0")


def _value(kind: int, value: Any) -> bytes:
    if kind in _INTEGERS:
        return _varint(_zigzag(value))
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == _STRUCT:
        return write_struct(value)
    if kind in (_LIST, _SET):
        own, values = value
        head = bytes([len(values) << 4 | own]) if len(values) < 15 else bytes([15 << 4 | own]) + _varint(len(values))
        return head + b"".join(_value(own, one) for one in values)
    plain: bytes = value
    return plain


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _from_zigzag(value: int) -> int:
    return value >> 1 if value & 1 == 0 else -(value >> 1) - 1
