# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of the records that an artifact was made from, so that the same records are not used to judge it.

A record is one 64-bit hash of its values under the artifact's own random salt. The same values have the same hash in
pandas, polars, Arrow and CSV, as integers or as floats. Whoever has the hashes can test whether a person was in the
table, so they are the owner's: never inside an artifact's document, not pickled, and saved to a file of their own.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.documents import FINGERPRINTS, check_shape, is_text, one_of, read_document, write_document
from sfumato.errors import InputError
from sfumato.frames import Table, read_table
from sfumato.threads import map_in_threads

FORMAT = "sfumato-fingerprints"
VERSION = 1
NOTICE = (
    "For the owner of the records only. Anyone who has this file can test whether a person was in the table. Do not "
    "hand it on with the artifact."
)
MOST_REUSED = 0.01
"""A larger estimated share of reused records is refused, if chance does not explain it either."""

_ERRORS_APART = 5.0  # standard errors; independent halves of Adult and ACSEmployment stay within 2.4 of them
_MOST_BY_CHANCE = 0.5  # a larger chance that a record equals another one leaves nothing to tell
_MOST_INSIDE = 0.1  # of the artifact's own records, or the share that chance gives, if that is more
_LEAST_FOUND = 0.5  # a check that could not tell so large a share of reused records from chance is not one
_SHAPE = {
    "format": one_of(FORMAT),
    "version": lambda value: value == VERSION,
    "artifact": is_text,
    "salt": is_text,
    "sets": [{"columns": [is_text], "hashes": is_text}],
}


@dataclass(frozen=True)
class Overlap:
    """How many records of a table an artifact was made from, compared with what chance gives.

    Attributes
    ----------
    n_records : int
        Records of the table.
    columns : tuple of str
        The columns that were compared; empty if none could be.
    share : float
        Share of records that equal one the artifact was made from.
    chance : float
        The same share for independent records of the same population, estimated from the artifact's own records:
        how many of those equal another one of them.
    error : float
        Standard error of the difference of both.
    """

    n_records: int
    columns: tuple[str, ...] = ()
    share: float = math.nan
    chance: float = math.nan
    error: float = math.nan

    @property
    def reused(self) -> float:
        """Estimated share of reused records: with r reused, the share of equal ones is ``r + (1 - r) chance``."""
        return max(0.0, (self.share - self.chance) / (1 - self.chance)) if self.chance < 1 else math.nan

    @property
    def is_checked(self) -> bool:
        """True if reuse of half of the records could not have gone unnoticed."""
        return self.chance < 1 and _ERRORS_APART * self.error <= _LEAST_FOUND * (1 - self.chance)

    @property
    def is_reused(self) -> bool:
        """True if more records are equal than chance explains."""
        if not self.is_checked or self.reused <= MOST_REUSED:
            return False
        return self.share - self.chance > _ERRORS_APART * self.error


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Salted hashes of the records that an artifact was fitted, chosen or tuned on.

    Attributes
    ----------
    salt : bytes
    sets : tuple of (tuple of str, ndarray of uint64)
        Columns, and one hash per record over them: first the columns that the artifact reads, then all.
    """

    salt: bytes
    sets: tuple[tuple[tuple[str, ...], NDArray[np.uint64]], ...]

    @classmethod
    def of(
        cls, table: Table, read: Sequence[str], every: Sequence[str] | None = None, *, n_threads: int = 1
    ) -> Fingerprints:
        """Hash the records of a table under a new random salt.

        Parameters
        ----------
        table : Table
        read : sequence of str
            The columns that the artifact reads; later tables have them.
        every : sequence of str, optional
            These and all others whose values belong to the records. None: all columns of the table.
        n_threads : int
        """
        salt = secrets.token_bytes(16)
        own = tuple(sorted(read))
        others = tuple(sorted(set(table.names if every is None else every) - set(own)))
        narrow = _hash_records(table, own, salt, n_threads)
        sets = [(own, narrow)]
        if others:
            sets.append((tuple(sorted((*own, *others))), narrow + _hash_records(table, others, salt, n_threads)))
        return cls(salt, tuple(sets))

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.sets[0][1])

    def with_records(self, X: Any) -> Fingerprints:
        """Return fingerprints that cover the records of another table, too, such as those a setting was chosen on.

        A set of columns that the other table lacks is left out.
        """
        table = X if isinstance(X, Table) else read_table(X)
        kept = [
            (columns, np.concatenate([hashes, _hash_records(table, columns, self.salt)]))
            for columns, hashes in self.sets
            if set(columns) <= set(table.names)
        ]
        if not kept:
            raise InputError(
                "the table lacks columns that the artifact reads: expected the records it was chosen on. Pass the "
                "table with all columns."
            )
        return Fingerprints(self.salt, tuple(kept))

    def overlap(self, X: Any) -> Overlap:
        """Compare a table with the fingerprinted records, by every set of columns that the table has.

        Returns
        -------
        Overlap
            That of the set that shows most reuse among those that could be checked.
        """
        return _most_reused([_overlap(*part) for part in self._compared([X])])

    def check_unused(self, X: Any, *, what: str = "the holdout") -> Overlap:
        """Raise InputError if a table has more of the artifact's own records than chance explains."""
        return _unused(self.overlap(X), what)

    def check_apart(self, blocks: Iterable[Any], *, what: str) -> Overlap:
        """Raise InputError if a table has records of the artifact, or the artifact was made from some of the table.

        An artifact made from a few records of a large table is a small share of it, which `check_unused` allows.

        Parameters
        ----------
        blocks : iterable of frames
            The table in parts. 8 bytes are kept for each record and set of columns.
        what : str
            The table, in words.
        """
        compared = list(self._compared(blocks))
        overlap = _unused(_most_reused([_overlap(*part) for part in compared]), what)
        for columns, own, theirs in compared:
            inside = _overlap(columns, theirs, own)
            most = max(_MOST_INSIDE, inside.chance)  # what chance gives differs a little between populations
            if inside.chance <= _MOST_BY_CHANCE and inside.reused > most and inside.is_reused:
                raise InputError(
                    f"{what} has about {inside.reused:.0%} of the {inside.n_records:,} records that the artifact was "
                    f"made from ({inside.share:.1%} occur in it, {inside.chance:.1%} would by chance): expected an "
                    "artifact made from other records. Make it again from others, or leave those records out."
                )
        return overlap

    def _compared(self, blocks: Iterable[Any]) -> Iterator[tuple[tuple[str, ...], NDArray[np.uint64], Any]]:
        """Yield every set of columns that a table in parts has, with the hashes of the artifact and of the table."""
        sets = [(columns, own) for columns, own in self.sets if columns]
        hashed: list[list[NDArray[np.uint64]]] = [[] for _ in sets]
        n_records = 0
        for block in blocks:
            table = block if isinstance(block, Table) else read_table(block)
            n_records += table.n_records
            for (columns, _), parts in zip(sets, hashed, strict=True):
                if set(columns) <= set(table.names):
                    parts.append(_hash_records(table, columns, self.salt))
        found = False
        for (columns, own), parts in zip(sets, hashed, strict=True):
            if parts:
                found = True
                yield columns, own, np.concatenate(parts)
        if not found:
            yield (), np.zeros(0, np.uint64), np.zeros(n_records, np.uint64)

    # -- the owner's file ------------------------------------------------------------------------------------

    def save(self, artifact: str | os.PathLike[str]) -> Path:
        """Write the fingerprints beside the file of the artifact, readable by their owner only; return the path."""
        path = fingerprints_path(artifact)
        write_document(self.to_dict(_digest(artifact)), path, mode=0o600)
        return path

    def to_dict(self, artifact: str) -> dict[str, Any]:
        """Return the content of the owner's file, given the SHA-256 of the artifact's file.

        The hashes are sorted, so that their order says nothing about that of the records.
        """
        return {
            "format": FORMAT,
            "version": VERSION,
            "notice": NOTICE,
            "artifact": artifact,
            "salt": self.salt.hex(),
            "sets": [
                {"columns": list(columns), "hashes": base64.b64encode(np.sort(hashes).astype("<u8").tobytes()).decode()}
                for columns, hashes in self.sets
            ],
        }

    @classmethod
    def load(cls, artifact: str | os.PathLike[str]) -> Fingerprints | None:
        """Read the fingerprints beside the file of an artifact; None if there are none.

        Raises
        ------
        InputError
            If they belong to another artifact, or are damaged.
        """
        path = fingerprints_path(artifact)
        if not path.exists():
            return None
        document = read_document(path, "fingerprints", "Fingerprints.save")
        check_shape(document, _SHAPE, "fingerprints", "Fingerprints.save")
        if document["artifact"] != _digest(artifact):
            raise InputError(
                f"{path.name!r} belongs to another version of {Path(artifact).name!r}: expected the fingerprints that "
                "were written with it. Save the artifact again, or delete the file to go on without the check."
            )
        try:
            salt = bytes.fromhex(document["salt"])
            sets = tuple(
                (tuple(part["columns"]), np.frombuffer(base64.b64decode(part["hashes"], validate=True), "<u8"))
                for part in document["sets"]
            )
        except ValueError:
            raise InputError(
                f"{path.name!r} has hashes that cannot be read: expected what Fingerprints.save wrote. Save the "
                "artifact again."
            ) from None
        return cls(salt, sets)

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickled estimator may be handed on, and hashes with their salt tell who was in the table.
        return _forgotten, ()

    def __copy__(self) -> Fingerprints:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Fingerprints:
        return self


def save_beside(fingerprints: Fingerprints | None, artifact: str | os.PathLike[str]) -> None:
    """Write the fingerprints of a saved artifact beside it; without any, remove those of the file it replaced."""
    if fingerprints is None:
        fingerprints_path(artifact).unlink(missing_ok=True)
    else:
        fingerprints.save(artifact)


def fingerprints_path(artifact: str | os.PathLike[str]) -> Path:
    """Return the path of the fingerprints of an artifact: ``partition.json`` has ``partition.fingerprints``.

    Examples
    --------
    >>> fingerprints_path("partition.json").name, fingerprints_path("old.parquet").name
    ('partition.fingerprints', 'old.parquet.fingerprints')
    """
    path = Path(artifact)
    return path.with_name((path.stem if path.suffix == ".json" else path.name) + FINGERPRINTS)


def _forgotten() -> None:
    """Stand for fingerprints in a pickle."""


def _digest(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


# -- comparing -----------------------------------------------------------------------------------------------------


def _unused(overlap: Overlap, what: str) -> Overlap:
    if overlap.is_reused:
        raise InputError(
            f"{what} has {overlap.n_records:,} records, of which about {overlap.reused:.0%} were used to make the "
            f"artifact ({overlap.share:.1%} occur among its records, {overlap.chance:.1%} would by chance): "
            "expected records that were not used for fitting, choosing or tuning. Pass other records, or make the "
            "artifact again without these."
        )
    return overlap


def _most_reused(found: Sequence[Overlap]) -> Overlap:
    """Return the overlap that shows most reuse among those that could be checked, or the last one."""
    checked = [overlap for overlap in found if overlap.is_checked]
    return max(checked, key=lambda overlap: (overlap.is_reused, overlap.reused)) if checked else found[-1]


def _overlap(columns: tuple[str, ...], own: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> Overlap:
    if not columns:
        return Overlap(len(theirs))
    ordered = np.sort(own)
    place = np.searchsorted(ordered, theirs)
    share = float((ordered[np.minimum(place, len(ordered) - 1)] == theirs).mean()) if len(ordered) else 0.0
    # A record of the artifact and a new one are alike: each equals one of the others with the same chance, but for
    # the one record by which the others are fewer.
    is_next = ordered[1:] == ordered[:-1]
    has_equal = np.append(is_next, False) | np.insert(is_next, 0, False)
    chance = float(has_equal.mean()) if len(ordered) else 0.0
    n_own, n_theirs = max(len(own), 1), len(theirs)
    # Half a record more of each kind: no variance of 0 where nothing, or everything, is equal.
    pooled = (share * n_theirs + chance * n_own + 0.5) / (n_theirs + n_own + 1)
    error = math.sqrt(pooled * (1 - pooled) * (1 / n_theirs + 1 / n_own))
    return Overlap(n_theirs, columns, share, chance, error)


# -- hashing -------------------------------------------------------------------------------------------------------


def _hash_records(table: Table, names: Sequence[str], salt: bytes, n_threads: int = 1) -> NDArray[np.uint64]:
    """Return the sum of the hashes of every record's values, each under a key of its column."""
    if n_threads > 1 and len(names) > 1:  # sums of unsigned numbers do not depend on their order
        shares = [names[start::n_threads] for start in range(min(n_threads, len(names)))]
        first, *others = map_in_threads(lambda own: _hash_records(table, own, salt), shares, n_threads)
        for part in others:
            first += part
        return first
    total = np.zeros(table.n_records, np.uint64)
    for name in names:
        key = np.uint64(_keyed(salt, f"column {name}"))
        column = table.column(name, for_counting=True, narrow=True)
        missing = column.missing if column.missing is not None else np.zeros(0, np.bool_)
        if column.categories is not None:
            of_category = np.array([_hash_category(value, key, salt) for value in column.categories], np.uint64)
            _add_categories(total, column.values, of_category if len(of_category) else key.reshape(1), missing, key)
        else:
            _add_numbers(total, column.values, column.values.dtype.kind == "i", missing, key)
    return total


def _hash_category(value: Any, key: np.uint64, salt: bytes) -> int:
    """Return the hash of a category: numbers as in a column of numbers, everything else by its text."""
    if isinstance(value, bool | np.bool_):
        return _keyed(salt, f"{int(key)} {str(bool(value)).lower()}")
    if isinstance(value, int | float | np.integer | np.floating):
        total = np.zeros(1, np.uint64)
        _add_numbers(total, np.array([value], np.float64), False, np.zeros(0, np.bool_), key)
        return int(total[0])
    text = str(value)
    return _keyed(salt, f"{int(key)} {text.lower() if text.lower() in ('true', 'false') else text}")


def _keyed(salt: bytes, text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=salt).digest())


@njit(cache=True, nogil=True, inline="always")
def _mixed(word: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """Return a 64-bit word with all bits mixed (the finalizer of SplitMix64, Steele et al. 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def _add_numbers(
    total: NDArray[np.uint64], values: NDArray[Any], is_whole: bool, missing: NDArray[np.bool_], key: np.uint64
) -> None:
    """Add the hash of every number; one that is not whole is rounded to what a 32-bit float can hold."""
    one = np.empty(1, np.float64)
    bits = one.view(np.uint64)
    for i in range(values.shape[0]):
        if missing.shape[0] and missing[i]:
            total[i] += _mixed(~key)
            continue
        value = np.float64(values[i])
        if not is_whole and value != np.rint(value):
            value = np.float64(np.float32(value))
        one[0] = value + 0.0  # no negative zero
        total[i] += _mixed(bits[0] ^ key)


@njit(cache=True, nogil=True)
def _add_categories(
    total: NDArray[np.uint64],
    codes: NDArray[np.integer[Any]],
    of_category: NDArray[np.uint64],
    missing: NDArray[np.bool_],
    key: np.uint64,
) -> None:
    """Add the hash of every category."""
    for i in range(codes.shape[0]):
        total[i] += _mixed(~key) if missing.shape[0] and missing[i] else of_category[codes[i]]
