# SPDX-License-Identifier: Apache-2.0
"""Publish the outputs of a command together or not at all, and never over another run's.

An output is written under a temporary name in its folder, read back, verified and then moved into place. Any error or
interruption removes the temporary file. A process can still be killed between two renames. So the last file of a run
holds the SHA-256 of the others, and the next run warns if they do not belong together.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.backends.duckdb.address import DuckDBAddress, is_address
from sfumato.documents import FINGERPRINTS, permitted
from sfumato.errors import InputError, ParameterError, Sentence, named
from sfumato.system_files import locked_folder, new_file, sync

State = tuple[int, int, int, int] | None
"""Identifies a version of a file; None if there is no file."""

_OF_THE_OWNER = (FINGERPRINTS, ".publication")  # endings of files that recognize people
_SEEN: dict[Path, State] = {}  # the state of this command's outputs when it began


def check_output(
    path: Path,
    *,
    force: bool,
    inputs: Sequence[Path | DuckDBAddress] = (),
    outputs: Sequence[Path] = (),
    option: str = "-o",
) -> None:
    """Raise ParameterError for an output that cannot or should not be written, before any work is done."""
    if is_address(str(path)):
        raise ParameterError(
            f"{option} {str(path)!r} is a table of a database: expected a file. Give a name that ends in .parquet; "
            "sfumato.duckdb.fit_transform writes tables, from Python."
        )
    if path.is_dir():
        raise ParameterError(f"{option} {str(path)!r} is a folder. Give a file name in it.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ParameterError(f"{option} {str(path)!r}: the folder {str(folder)!r} does not exist. Create it first.")
    read = [other if isinstance(other, Path) else other.path for other in inputs]
    if any(path.absolute() == other.absolute() or _is_same_file(path, other) for other in read if other is not None):
        raise ParameterError(f"{option} {str(path)!r} is the input itself. Give another name; nothing was written.")
    if any(path.absolute() == other.absolute() or _is_same_file(path, other) for other in outputs):
        raise ParameterError(
            f"{option} {str(path)!r} is the file of another output, too: expected one file each. Give another name."
        )
    if path.exists() and not force:
        raise ParameterError(
            f"{option} {str(path)!r} exists already. Give another name, or {named('force', True)} to replace it."
        )
    if not os.access(folder, os.W_OK):
        raise ParameterError(f"{option} {str(path)!r}: the folder {str(folder)!r} is not writable.")
    look_at(path)


def look_at(path: Path) -> None:
    """Record the present state of an output's path: no other process may change it before the output appears."""
    _SEEN[path.absolute()] = _state(path)


def _state(path: Path) -> State:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


@contextlib.contextmanager
def unfinished(*finals: Path) -> Iterator[list[Path]]:
    """Yield a temporary path beside each final one; at the end move all into place, or remove all.

    Only the owner can read a file while it is unfinished. A process killed outright leaves
    ``NAME.unfinished-XXXXXXXX`` at most, never a part of NAME.

    Raises
    ------
    ParameterError
        When another process has written to one of the names since `check_output` looked at it. Nothing is written then.
    """
    expected = {final: _SEEN.pop(final.absolute(), _state(final)) for final in finals}
    temporary = [final.with_name(f"{final.name}.unfinished-{secrets.token_hex(4)}") for final in finals]
    try:
        for path in temporary:
            os.close(new_file(path))
        yield temporary
        for path, final in zip(temporary, finals, strict=True):
            sync(path)
            path.chmod(_mode_for(final))
        with _locked(finals), _uninterrupted():  # all of them or none
            _check_unchanged(expected)
            for path, final in zip(temporary, finals, strict=True):
                path.replace(final)
    except OSError as error:
        raise InputError(
            f"{str(finals[0])!r} cannot be written: {error.strerror or 'input/output error'}. Nothing was written."
        ) from None
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)


def _check_unchanged(expected: Mapping[Path, State]) -> None:
    for final, state in expected.items():
        if _state(final) != state:
            raise ParameterError(
                f"{str(final)!r} was written by another process while this one was at work: expected it as it was "
                "before. Nothing was written. Give another name, or run again when the other is done."
            )


@contextlib.contextmanager
def _locked(finals: Sequence[Path]) -> Iterator[None]:
    """Lock the folders of some files, so that two processes check and rename one after the other."""
    with contextlib.ExitStack() as held:
        for folder in sorted({final.absolute().parent for final in finals}):
            held.enter_context(locked_folder(folder))
        yield


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Block SIGINT and SIGTERM while files are renamed."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover - Windows
        yield
        return
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


def _mode_for(final: Path) -> int:
    if final.suffix in _OF_THE_OWNER:
        return 0o600  # whatever it was: only the owner may test who is in a table
    if final.exists():
        return final.stat().st_mode & 0o777
    return permitted(0o666)


# --- outputs of one run --------------------------------------------------------------------------------


def fingerprint_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def digest_of(table: Any) -> str:
    """Return the SHA-256 of an Arrow table: of its columns' names, types and values."""
    digest = hashlib.sha256(str(table.schema.remove_metadata()).encode())
    for batch in table.combine_chunks().to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()


def mixture_in(outputs: Mapping[str, Path], index: Path) -> str | None:
    """Return a warning if some existing outputs are not from the run that `index` describes, or None.

    Parameters
    ----------
    outputs : mapping of str to Path
        By their roles, without the index.
    index : Path
        The last file that a run writes; its ``outputs`` hold the name and the SHA-256 of each output by role.
    """
    present = {role: path for role, path in outputs.items() if path.exists()}
    try:
        known = json.loads(index.read_text(encoding="utf-8"))["outputs"]
        wrong = [
            path.name for role, path in present.items() if known.get(role, {}).get("sha256") != fingerprint_of(path)
        ]
        wrong += [part["file"] for role, part in known.items() if role in outputs and role not in present]
    except FileNotFoundError:
        wrong = [path.name for path in present.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # written by something else: nothing can be said
    if not wrong:
        return None
    return Sentence(
        f"{' and '.join(map(repr, wrong))} and {index.name!r} are not of one run: one was killed while it wrote, or a "
        "file was changed, moved or removed since. Do not publish them together; run again with "
        f"{named('force', True)}."
    )
