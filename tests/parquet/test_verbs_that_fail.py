# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong with files, no verb publishes anything, leaves anything, or lets others look on."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import Anatomizer, UniformMinimizer
from sfumato.backends.blocks import value_codes
from sfumato.errors import InputError
from sfumato.parquet import anatomize, measure, transform

N = 3_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        table = pa.table(
            {
                "age": random.integers(18, 90, N),
                "town": [f"town {place}" for place in random.integers(0, 400, N)],
                "noise": random.normal(size=N),
                "illness": random.choice(list("abcdef"), N),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


def measured(source: Path, folder: Path) -> Any:
    return measure(source, ["age", "town"], ["illness"], scratch=folder)


def anatomized(source: Path, folder: Path) -> Any:
    return anatomize(Anatomizer(3, sensitive="illness"), source, folder / "out")


def generalized(source: Path, folder: Path) -> Any:
    table = pq.read_table(source).select(["age", "town"])
    coarse = UniformMinimizer(4).fit(table, np.arange(table.num_rows) % 2).generalization_
    return transform(coarse, source, folder / "out.parquet")


VERBS = {"measure": measured, "anatomize": anatomized, "transform": generalized}


@contextmanager
def room_for(n_bytes: int) -> Iterator[None]:
    """Let no file grow beyond a size, as a full disk does; the system itself refuses to write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("n_bytes", [0, 2_000])
@pytest.mark.parametrize("verb", list(VERBS))
def test_where_there_is_no_room_nothing_is_published(source, tmp_path: Path, verb: str, n_bytes: int):
    with room_for(n_bytes), pytest.raises(InputError, match=r"cannot be written.*Nothing was published"):
        VERBS[verb](source, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_text_with_many_values_needs_room_too(source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(value_codes, "MOST_LISTED", 10)
    for n_bytes in (0, 3_000, 20_000):
        with room_for(n_bytes), pytest.raises(InputError, match="working files cannot be written"):
            measured(source, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("verb", list(VERBS))
def test_a_schema_that_changes_is_refused_by_column(source, tmp_path: Path, verb: str):
    table = pq.read_table(source / "0.parquet")
    pq.write_table(table.set_column(0, "age", table["age"].cast(pa.float64())), source / "9.parquet")
    with pytest.raises(InputError, match=r"'age' has the type double in '9.parquet'"):
        if verb == "transform":
            coarse = UniformMinimizer(2).fit(table.select(["age"]), np.arange(N) % 2).generalization_
            transform(coarse, source, tmp_path / "out.parquet")
        else:
            VERBS[verb](source, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["measure", "transform"])
def test_a_killed_process_leaves_nothing_that_others_can_read(source, tmp_path: Path, verb: str):
    program = textwrap.dedent(f"""
        import os, signal, sys
        import pyarrow.parquet as pq
        from sfumato import UniformMinimizer
        from sfumato.parquet import measure, transform
        def stop(what, done, total):
            if what in ("grouping", "writing") and done:
                os.kill(os.getpid(), signal.SIGKILL)
        if {verb!r} == "measure":
            measure({str(source)!r}, ["age"], scratch={str(tmp_path)!r}, progress=stop)
        else:
            table = pq.read_table({str(source)!r}).select(["age"])
            coarse = UniformMinimizer(2).fit(table, [row % 2 for row in range(table.num_rows)]).generalization_
            transform(coarse, {str(source)!r}, {str(tmp_path / "out.parquet")!r}, progress=stop)
    """)
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL
    left = [path for path in tmp_path.iterdir() if path.name != "in"]
    assert all(path.name.startswith(".") and path.stat().st_mode & 0o077 == 0 for path in left)
