# SPDX-License-Identifier: Apache-2.0
"""Packs are the same bytes for the same content; what is not a pack is refused; signatures are those of their key."""

import io
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, ParameterError
from sfumato.files.packs import is_signed_by, pack, sign, unpack
from strategies import in_examples

NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)


@in_examples(100)
@given(entries=st.dictionaries(NAMES, st.binary(max_size=200), max_size=8))
def test_a_pack_gives_back_what_was_put_in_and_is_the_same_in_any_order(entries):
    content = pack(entries)
    assert unpack(content, "pack.zip") == entries
    assert pack(dict(reversed(entries.items()))) == content


def test_a_pack_has_no_time_and_no_name_of_a_user():
    with zipfile.ZipFile(io.BytesIO(pack({"a": b"1"}))) as archive:
        [entry] = archive.infolist()
    assert entry.date_time == (1980, 1, 1, 0, 0, 0) and entry.compress_type == zipfile.ZIP_STORED
    assert not entry.extra and not entry.comment


def zipped(*names: str, content: bytes = b"1") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd", "/etc/passwd", "C:\\windows", "folder/audit.json", "audit.json\n", ".hidden", "a\u202eb",
        "AUDIT.JSON", "x" * 65, "-rf",
    ],
)  # fmt: skip
def test_a_name_that_points_elsewhere_is_refused(name):
    with pytest.raises(InputError, match="names that no pack has"):
        unpack(zipped("manifest.json", name), "pack.zip")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_refused():
    with pytest.raises(InputError, match="or one twice"):
        unpack(zipped("audit.json", "audit.json"), "pack.zip")


def test_a_bomb_is_refused_before_it_is_unpacked():
    with pytest.raises(InputError, match="larger than any pack"):
        unpack(zipped(*(f"a{i}" for i in range(65))), "pack.zip")
    with pytest.raises(InputError, match="larger than any pack"):
        unpack(zipped("a", "b", content=bytes(140 << 20)), "pack.zip")


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip" * 100, zipped("a")[:-30], zipped("a")[20:]])
def test_what_is_not_a_zip_file_is_refused(content):
    with pytest.raises(InputError, match="not a readable ZIP"):
        unpack(content, "pack.zip")


def test_a_flipped_bit_is_noticed():
    content = bytearray(pack({"a": b"0123456789"}))
    content[content.index(b"0123")] ^= 1
    with pytest.raises(InputError, match="not a readable ZIP"):
        unpack(bytes(content), "pack.zip")


# -- signatures ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen: OpenSSH is not installed")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("officer", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    return folder


def test_a_signature_is_that_of_one_key_and_one_content(keys):
    signature = sign(b"content", keys / "officer")
    assert is_signed_by(b"content", signature, keys / "officer.pub")
    assert not is_signed_by(b"Content", signature, keys / "officer.pub")
    assert not is_signed_by(b"content", signature, keys / "other.pub")
    assert not is_signed_by(b"content", b"no signature", keys / "officer.pub")


def test_a_signature_for_another_purpose_is_none(keys):
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(keys / "officer"), "-n", "git"]
    other = subprocess.run(command, input=b"content", capture_output=True, check=True).stdout
    assert not is_signed_by(b"content", other, keys / "officer.pub")


def test_what_is_not_a_key_cannot_sign_or_verify(keys, tmp_path):
    (tmp_path / "key").write_text("not a key")
    for path in (tmp_path / "key", tmp_path / "absent"):
        with pytest.raises(ParameterError, match="expected a private key of OpenSSH"):
            sign(b"content", path)
    two = tmp_path / "two.pub"
    two.write_text("\n".join((keys / name).read_text() for name in ("officer.pub", "other.pub")))
    for path in (tmp_path / "key", tmp_path / "absent", two):
        with pytest.raises(ParameterError, match="expected one public key"):
            is_signed_by(b"content", b"", path)


def test_a_key_without_openssh_is_refused_in_words(monkeypatch, tmp_path):
    (tmp_path / "key").write_text("key")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ParameterError, match="expected OpenSSH"):
        sign(b"content", tmp_path / "key")
