# SPDX-License-Identifier: Apache-2.0
"""Files on systems without Linux's calls: the same bytes, the same locks, nothing half written."""

import multiprocessing
import os
import sys
import threading
import time
import types

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import MondrianAnonymizer, PrivacyLedger, parquet, system_files
from sfumato.documents import unpublished, write_document
from sfumato.errors import InputError
from sfumato.files.publishing import check_output, unfinished
from sfumato.private import PrivacyGuarantee

LINUX = ("preadv", "pread", "pwrite", "O_TMPFILE", "sched_getaffinity")


@pytest.fixture
def elsewhere(monkeypatch):
    """Hide the calls that only some systems have; locks are those of Windows."""
    for name in LINUX:
        monkeypatch.delattr(os, name, raising=False)
    held = {}

    def locking(descriptor, _how, _n):
        about = os.fstat(descriptor)
        if held.get(about.st_ino, descriptor) != descriptor and _is_open(held[about.st_ino]):
            raise PermissionError(13, "somebody else has it")
        held[about.st_ino] = descriptor

    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
    monkeypatch.setattr(system_files, "find_spec", lambda name: None)
    monkeypatch.delattr("signal.pthread_sigmask", raising=False)


def _is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_parts_are_read_where_they_were_written(tmp_path, request, is_elsewhere):
    if is_elsewhere:
        request.getfixturevalue("elsewhere")
    values = np.random.default_rng(0).integers(0, 256, 200_000).astype(np.uint8)  # ends of lines among them
    file = system_files.new_file(tmp_path / "file")
    parts = [(start, values[start : start + 1_000]) for start in range(0, len(values), 1_000)]
    found = np.zeros_like(values)

    def write(some):
        for start, part in some:
            system_files.write_at(file, memoryview(part), start)

    def read(some):
        for start, part in some:
            assert system_files.read_at(file, memoryview(found)[start : start + len(part)], start) == len(part)

    for work in (write, read):
        threads = [threading.Thread(target=work, args=(parts[own::4],)) for own in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (found == values).all()
    assert system_files.read_at(file, memoryview(bytearray(10)), len(values) - 4) == 4  # no more were written
    os.close(file)
    with pytest.raises(FileExistsError):
        system_files.new_file(tmp_path / "file")


def _hold(path, started, seconds):
    with system_files.locked(path):
        started.set()
        time.sleep(seconds)


def test_one_process_at_a_time_holds_a_lock(tmp_path):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "lock", started, 0.5))
    other.start()
    assert started.wait(60)
    began = time.monotonic()
    with system_files.locked(tmp_path / "lock"):
        waited = time.monotonic() - began
    other.join()
    assert waited > 0.2


@pytest.mark.usefixtures("elsewhere")
def test_a_lock_of_windows_is_waited_for(tmp_path):
    order = []

    def second():
        with system_files.locked(tmp_path / "lock"):
            order.append("second")

    with system_files.locked(tmp_path / "lock"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.usefixtures("elsewhere")
def test_a_folder_is_locked_without_a_file_in_it(tmp_path):
    with system_files.locked_folder(tmp_path):
        assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("elsewhere")
def test_outputs_appear_whole_or_not_at_all(tmp_path):
    final = tmp_path / "release.csv"
    with unpublished(final) as temporary:
        temporary.write_text("a\n")
        assert not final.exists()
        assert temporary.stat().st_mode & 0o077 == 0
    assert final.read_text() == "a\n"
    with pytest.raises(RuntimeError), unpublished(final) as temporary:
        temporary.write_text("b\n")
        raise RuntimeError
    check_output(tmp_path / "more.csv", option="output", force=False)
    with unfinished(tmp_path / "more.csv") as [temporary]:
        temporary.write_text("c\n")
    write_document({"d": 1}, tmp_path / "document.json")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "release.csv": "a\n",
        "more.csv": "c\n",
        "document.json": '{"d":1}',
    }


def test_tables_outside_memory_come_out_the_same_elsewhere(tmp_path, request):
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.integers(18, 90, 3_000), "town": rng.choice(list("abcdef"), 3_000)})
    pq.write_table(table, tmp_path / "people.parquet", row_group_size=500)

    def released(name):  # sorted, since rows are shuffled
        anonymizer = MondrianAnonymizer(k=20, quasi_identifiers=["age", "town"])
        parquet.fit_transform(anonymizer, tmp_path / "people.parquet", tmp_path / name)
        return pq.read_table(tmp_path / name).sort_by([("age", "ascending"), ("town", "ascending")])

    here = released("here.parquet")
    request.getfixturevalue("elsewhere")
    assert released("elsewhere.parquet").equals(here)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("elsewhere")
def test_a_ledger_is_kept_elsewhere(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.json", epsilon=1.0)
    promise = PrivacyGuarantee(0.5, 0.0, "a record more or less", "a record", "counts", ())
    ledger.spend(promise, what="May")
    assert [entry.what for entry in PrivacyLedger(tmp_path / "ledger.json").entries] == ["May"]
    with pytest.raises(InputError, match="folder of the ledger"):
        PrivacyLedger(tmp_path / "absent" / "ledger.json").spend(promise, what="June")
