# SPDX-License-Identifier: Apache-2.0
"""What files need of the system, on every system: parts at a position, locks, files without a name.

Linux has a call for each of them. Elsewhere the same is done with what Windows has, too, a little slower.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

_AS_THEY_ARE = getattr(os, "O_BINARY", 0)  # of Windows, which else writes two bytes for the end of a line
_MOVING = threading.Lock()  # where a file has one position only, threads take turns
_PAUSE = 0.05  # seconds between two looks at a lock that somebody else has


def new_file(path: str | os.PathLike[str], mode: int = 0o600) -> int:
    """Create a file that must not exist, open for reading and writing; for its owner alone, if not said otherwise."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _AS_THEY_ARE, mode)


def write_at(file: int, content: memoryview, offset: int) -> None:
    """Write bytes from a position on; a full disk takes a part, and raises an error for the rest."""
    while len(content):
        if hasattr(os, "pwrite"):
            n_written = os.pwrite(file, content, offset)
        else:
            with _MOVING:
                os.lseek(file, offset, os.SEEK_SET)
                n_written = os.write(file, content)
        content, offset = content[n_written:], offset + n_written


def read_at(file: int, room: memoryview, offset: int) -> int:
    """Fill a buffer from a position on, and return how many bytes there were."""
    n_read = 0
    while n_read < len(room):
        if hasattr(os, "preadv"):
            n_more = os.preadv(file, [room[n_read:]], offset + n_read)
        else:
            with _MOVING:
                os.lseek(file, offset + n_read, os.SEEK_SET)
                found = os.read(file, len(room) - n_read)
            n_more = len(found)
            room[n_read : n_read + n_more] = found
        if n_more == 0:
            break
        n_read += n_more
    return n_read


def sync(path: Path) -> None:
    """Wait until a file, or the list of files in a folder, is on the disk."""
    # Windows writes nothing out through a file that is open for reading; other systems open folders for reading only.
    descriptor = os.open(path, os.O_RDWR | _AS_THEY_ARE if _AS_THEY_ARE else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created where it is missing: one process at a time, the others wait.

    The file stays. Where a folder has no locks, as some on a network, there is none.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | _AS_THEY_ARE, 0o600)
    try:
        with contextlib.suppress(OSError):
            _wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)  # which ends the lock


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, without a file in it."""
    if not _has_lockable_folders():
        name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
        with locked(Path(tempfile.gettempdir()) / f"sfumato-{name[:16]}.lock"):
            yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            _wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _has_lockable_folders() -> bool:
    return find_spec("fcntl") is not None  # Windows opens files only


def _wait_for_lock(descriptor: int) -> None:
    if find_spec("fcntl") is not None:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    import msvcrt

    while True:  # its call that waits gives up after ten seconds
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except PermissionError:
            time.sleep(_PAUSE)
        else:
            return


def nameless_file(folder: Path) -> int | None:
    """Open a file without a name in a folder, for its owner alone; None if the system has no such files."""
    if not hasattr(os, "O_TMPFILE") or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return None
