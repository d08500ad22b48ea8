# SPDX-License-Identifier: Apache-2.0
"""Packs: ZIP files that are the same, byte for byte, for the same content, and detached signatures of them.

A pack is read in memory and never unpacked. Its names are plain, so nothing in it can point elsewhere. Signatures are
those of OpenSSH, by the key that a user brings: ``ssh-keygen`` makes and checks them, and no key passes through here.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from sfumato.errors import InputError, ParameterError, named

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the earliest time that ZIP knows
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MOST_ENTRIES = 64
_MOST_BYTES = 256 << 20
_NAMESPACE = "sfumato-evidence"  # a signature for another purpose is not one of a pack
_PUBLIC_KEY = re.compile(r"([a-z0-9@.-]+) (AAAA[A-Za-z0-9+/=]{20,})( .*)?")


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(content).hexdigest()


def pack(entries: Mapping[str, bytes]) -> bytes:
    """Return a ZIP file: sorted, without times, and stored as it is, since compressors differ between machines.

    Examples
    --------
    >>> pack({"b": b"2", "a": b"1"}) == pack({"a": b"1", "b": b"2"})
    True
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name, _FIRST_DAY)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, entries[name])
    return file.getvalue()


def unpack(content: bytes, name: str) -> dict[str, bytes]:
    """Return the entries of a pack; raise InputError for a file that is not one.

    Parameters
    ----------
    content : bytes
    name : str
        What messages call it.
    """
    unreadable = f"{name!r} is not a readable ZIP file: expected a pack that 'sfumato evidence' wrote."
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        raise InputError(unreadable) from None
    with archive:
        listed = archive.infolist()
        names = [entry.filename for entry in listed]
        if len(names) > _MOST_ENTRIES or sum(entry.file_size for entry in listed) > _MOST_BYTES:
            raise InputError(f"{name!r} is larger than any pack: expected what 'sfumato evidence' wrote.")
        if len(set(names)) < len(names) or not all(_PLAIN_NAME.fullmatch(own) for own in names):
            raise InputError(
                f"{name!r} has names that no pack has, or one twice: expected what 'sfumato evidence' wrote."
            )
        try:
            return {entry.filename: archive.read(entry) for entry in listed}
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError):
            raise InputError(unreadable) from None


# -- signatures ----------------------------------------------------------------------------------------------------


def sign(content: bytes, key: Path) -> bytes:
    """Return the detached OpenSSH signature of some bytes.

    Parameters
    ----------
    content : bytes
    key : Path
        A private key of OpenSSH, or the public key of one that an agent or a token holds.

    Raises
    ------
    ParameterError
        If the key cannot sign.
    """
    if not key.is_file():
        raise ParameterError(f"{named('key', str(key))} is not a file: expected a private key of OpenSSH.")
    made = _ssh_keygen(["-Y", "sign", "-q", "-f", str(key), "-n", _NAMESPACE], content)
    if made.returncode or not made.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise ParameterError(
            f"{named('key', str(key))} could not sign: expected a private key of OpenSSH, such as 'ssh-keygen -t "
            "ed25519' makes, and its passphrase. Nothing was written."
        )
    return made.stdout


def is_signed_by(content: bytes, signature: bytes, public_key: Path) -> bool:
    """Return True if a detached signature of some bytes was made with a key, given its public part.

    Raises
    ------
    ParameterError
        If the file is not one public key.
    """
    try:
        found = _PUBLIC_KEY.fullmatch(public_key.read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError):
        found = None
    if found is None:
        raise ParameterError(
            f"{named('key', str(public_key))}: expected one public key of OpenSSH, such as a file that ends in .pub."
        )
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        signers, signed = Path(folder) / "signers", Path(folder) / "signature"
        signers.write_text(f'* namespaces="{_NAMESPACE}" {found[1]} {found[2]}\n', encoding="ascii")
        signed.write_bytes(signature)
        asked = ["-Y", "verify", "-f", str(signers), "-I", "signer", "-n", _NAMESPACE, "-s", str(signed)]
        return _ssh_keygen(asked, content).returncode == 0


def _ssh_keygen(arguments: list[str], content: bytes) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise ParameterError(
            f"{named('key')} without ssh-keygen: expected OpenSSH 8.1 or newer, which signs. Install it, or leave the "
            "key out."
        )
    return subprocess.run([program, *arguments], input=content, capture_output=True, check=False)
