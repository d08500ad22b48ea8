# SPDX-License-Identifier: Apache-2.0
"""Pieces of files: counted, coded, written by several threads and put together to what one reading would give."""

import io
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import KAnonymity, MondrianAnonymizer, documents
from sfumato.backends.blocks.binning import ColumnLearner, ValueCounts, write_codes
from sfumato.backends.memory import MemorySource
from sfumato.backends.parquet import reader as files
from sfumato.backends.parquet.reader import ParquetFiles
from sfumato.backends.parquet.recount import claimed_sizes, recount
from sfumato.criteria.criterion_counts import make_counter
from sfumato.datasets import make_census
from sfumato.documents import unpublished
from sfumato.errors import GuaranteeError, InputError
from sfumato.frames import read_table
from sfumato.parquet import fit_transform
from sfumato.partition.binning import bin_counts
from sfumato.progress import PrintedProgress, describe
from strategies import in_examples


def columns_of_all_kinds(n: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    missing = random.random(n) < 0.1
    return pa.table(
        {
            "small": pa.array(random.integers(-5, 60, n).astype(np.int8), mask=missing),
            "far": pa.array(random.integers(-(2**40), 2**40, n)),
            "single": pa.array(random.normal(size=n).round(2).astype(np.float32), mask=missing),
            "double": pa.array(np.where(missing, np.nan, random.normal(size=n).round(2))),
            "text": pa.array(random.choice(["a", "b", "cc", None], n).tolist()),
            "listed": pa.array(random.choice(["x", "y"], n).tolist()).dictionary_encode(),
            "flag": pa.array(random.random(n) < 0.3),
            "day": pa.array(random.integers(0, 400, n).astype(np.int32)).cast(pa.date32()),
            "empty": pa.nulls(n, pa.float32()),
        }
    )


@pytest.mark.parametrize("categorical", [(), ("small",)])
@pytest.mark.parametrize("limits", [{}, {"small": 5, "single": 0.5, "text": 1}])
def test_pieces_get_the_bins_and_codes_of_the_whole(categorical: tuple[str, ...], limits: dict[str, Any]):
    table = columns_of_all_kinds(3_000)
    limits = {name: limit for name, limit in limits.items() if name not in categorical}
    whole = MemorySource(read_table(table, categorical=categorical), table.column_names, limits=limits, max_bins=40)
    learner = ColumnLearner(table.column_names, categorical=categorical, limits=limits, max_bins=40)
    pieces = [table.slice(start, 700) for start in range(0, 3_000, 700)]
    for piece in reversed(pieces):
        learner.count(piece)
    for own, expected in zip(learner.columns(), whole.columns, strict=True):
        assert own.kind == expected.kind and own.width == expected.width
        for name in ("values", "low", "high"):
            np.testing.assert_array_equal(getattr(own.bins, name), getattr(expected.bins, name), own.name)
        assert own.bins.has_missing == expected.bins.has_missing
        codes = np.empty(3_000, own.codes.dtype)
        for start, piece in zip(range(0, 3_000, 700), pieces, strict=True):
            write_codes(
                own, piece.column(own.name), codes[start : start + 700],
                as_category=own.name in categorical, limits=limits,
            )  # fmt: skip
        np.testing.assert_array_equal(codes, expected.codes, own.name)


@in_examples(100)
@given(
    st.lists(
        st.floats(width=32, allow_infinity=False) | st.none() | st.sampled_from([0.5, -0.0]), min_size=8, max_size=60
    ),
    st.integers(2, 9),
)
def test_single_precision_is_binned_as_its_values_are(values: list[float | None], max_bins: int):
    array = pa.array(values, pa.float32())
    present = np.array([v for v in values if v is not None and v == v], np.float64) + 0.0
    distinct, how_often = np.unique(present, return_counts=True)
    expected = bin_counts(distinct, how_often, has_missing=len(present) < len(values), max_bins=max_bins)
    counts = ValueCounts("x", max_bins)
    for piece in (array.slice(0, 7), array.slice(7)):
        counts.count(piece)
    bins = counts.coded().bins
    for name in ("values", "low", "high"):
        np.testing.assert_array_equal(getattr(bins, name), getattr(expected, name))
    assert bins.has_missing == expected.has_missing


def test_infinity_is_refused_by_name():
    with pytest.raises(InputError, match="'rent' contains infinity"):
        ValueCounts("rent", 10).count(pa.array([1.0, float("inf")], pa.float32()))


@pytest.mark.parametrize("row_group_size", [90, 450, 4_000])
def test_every_piece_comes_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row_group_size: int):
    monkeypatch.setattr(files, "RECORDS_AT_ONCE", 300)
    table = columns_of_all_kinds(4_000)
    for part in range(2):
        path = tmp_path / f"{part}.parquet"
        pq.write_table(table.slice(2_000 * part, 2_000), path, row_group_size=row_group_size)
    read = ParquetFiles(tmp_path)
    found = list(read.each(lambda start, piece: (start, piece), ["far", "text"], n_threads=2, text_as_categories=True))
    assert sum(n for n, _ in found) == 4_000
    assert [start for _, (start, _) in found] == np.cumsum([0, *(n for n, _ in found)])[:-1].tolist()
    for name in ("far", "text"):
        assert [v for _, (_, piece) in found for v in piece.column(name).to_pylist()] == table[name].to_pylist()


def test_a_claim_about_a_file_is_compared_with_every_record(tmp_path: Path):
    claimed = pa.table({"age": [30, None, 41, 30], "sex": pa.array(["f", "m", "f", "f"]).dictionary_encode()})
    group = np.array([0, 1, 1, 2, 3, 3, 0], np.int32)
    path = tmp_path / "release.parquet"
    pq.write_table(claimed.take(pa.array(group)), path, row_group_size=3)
    # Groups 0 and 3 say the same, so they are one.
    assert sorted(claimed_sizes(ParquetFiles(path), ["age", "sex"], claimed, group, n_threads=2).tolist()) == [1, 2, 4]
    for wrong in range(len(group)):
        other = group.copy()
        other[wrong] = (group[wrong] + 1) % 3
        assert claimed_sizes(ParquetFiles(path), ["age", "sex"], claimed, other, n_threads=2) is None


def test_the_compression_of_the_release_is_that_of_the_files(tmp_path: Path):
    frame = make_census(600, random_state=1).frame[["age", "sex"]]
    for compression in ("snappy", "zstd", "none"):
        source = tmp_path / f"{compression}.parquet"
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), source, compression=compression)
        fit_transform(MondrianAnonymizer(20), source, tmp_path / "out.parquet")
        written = pq.read_metadata(tmp_path / "out.parquet").row_group(0).column(0).compression
        assert written.lower().replace("uncompressed", "none") == compression


def test_files_without_records_are_passed_over(tmp_path: Path):
    table = pa.Table.from_pandas(make_census(600, random_state=1).frame[["age", "sex"]], preserve_index=False)
    for name, part in (("a", table.slice(0, 0)), ("b", table), ("c", table.slice(0, 0))):
        pq.write_table(part, tmp_path / f"{name}.parquet")
    release = fit_transform(MondrianAnonymizer(20), tmp_path, tmp_path / "out")
    assert release.n_records == pq.read_metadata(tmp_path / "out").num_rows == 600


# -- what goes wrong --------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system has no limit on the size of files")
@pytest.mark.parametrize(
    ("stage", "expected_words"),
    [
        ("coding", "the working file cannot be written (File too large)"),
        ("writing", "'out.parquet' cannot be written: File too large"),
    ],
)
def test_files_that_cannot_grow_are_said_and_nothing_is_left(tmp_path: Path, stage: str, expected_words: str):
    table = pa.Table.from_pandas(make_census(3_000, random_state=1).frame[["age", "sex"]], preserve_index=False)
    pq.write_table(table, tmp_path / "in.parquet")
    program = textwrap.dedent(f"""
        import resource, signal
        from sfumato import MondrianAnonymizer
        from sfumato.errors import InputError
        from sfumato.parquet import fit_transform
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        def stop(what, done, total):
            if what == {stage!r}:
                resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
        try:
            fit_transform(MondrianAnonymizer(20), {str(tmp_path / "in.parquet")!r}, {str(tmp_path / "out.parquet")!r},
                          progress=stop)
        except InputError as error:
            print(error)
    """)
    ended = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, timeout=600, check=True, capture_output=True, text=True
    )
    assert expected_words in ended.stdout and "Nothing was published" in ended.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet"]


@pytest.mark.parametrize("is_nameless", [True, False])
def test_an_unpublished_file_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_nameless: bool):
    if not is_nameless:
        monkeypatch.setattr(documents, "nameless_file", lambda folder: None)
    destination = tmp_path / "out.parquet"
    destination.write_bytes(b"before")
    with unpublished(destination) as temporary:
        temporary.write_bytes(b"after")
        assert temporary.stat().st_mode & 0o077 == 0
        assert destination.read_bytes() == b"before"
        assert len(list(tmp_path.iterdir())) == (1 if is_nameless and hasattr(os, "O_TMPFILE") else 2)
    assert destination.read_bytes() == b"after"
    with pytest.raises(RuntimeError), unpublished(destination) as temporary:
        temporary.write_bytes(b"half")
        raise RuntimeError
    assert destination.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [destination]


def test_a_file_cut_off_between_two_readings_is_refused(tmp_path: Path):
    frame = make_census(3_000, random_state=1).frame[["age", "sex"]]
    source = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), source, row_group_size=500)

    def cut(what: str, done: int, total: int) -> None:
        if what == "coding" and done == 0:
            source.write_bytes(source.read_bytes()[:400])

    with pytest.raises(InputError, match=r"'in.parquet' cannot be read as Parquet.*Nothing was published"):
        fit_transform(MondrianAnonymizer(20), source, tmp_path / "out.parquet", progress=cut)
    assert list(tmp_path.iterdir()) == [source]


# -- progress ---------------------------------------------------------------------------------------------------


def test_progress_tells_records_rate_and_time_left(tmp_path: Path):
    frame = make_census(2_000, random_state=1).frame[["age", "sex"]]
    source = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), source, row_group_size=500)
    stream = io.StringIO()
    fit_transform(MondrianAnonymizer(20), source, tmp_path / "out.parquet", progress=PrintedProgress(stream))
    lines = stream.getvalue().splitlines()
    for stage in ("counting values", "coding", "growing", "writing", "recounting"):
        assert f"{stage}: 0 of 2,000 records" in lines
        assert any(line.startswith(f"{stage}: 2,000 of 2,000 records, ") and " 0 s left" in line for line in lines)
    assert describe("coding", 25, 100, 5.0) == "coding: 25 of 100 records, 5 a second, 15 s left"


def test_every_criterion_on_numbers_of_records_is_recounted(tmp_path: Path):
    released = pa.table({"age": np.repeat([30, 40], 5)})
    pq.write_table(released, tmp_path / "out.parquet")
    claimed, group = pa.table({"age": [30, 40]}), np.repeat([0, 1], 5).astype(np.int32)
    counters = [make_counter(KAnonymity(2), None), make_counter(KAnonymity(5), None)]
    assert recount(tmp_path / "out.parquet", 10, ["age"], counters, claimed=claimed, group=group) == 5
    counters.append(make_counter(KAnonymity(6), None))
    with pytest.raises(GuaranteeError, match="at least 6 records"):
        recount(tmp_path / "out.parquet", 10, ["age"], counters, claimed=claimed, group=group)


@pytest.mark.parametrize("is_ordered", [False, True])
def test_categories_of_nobody_do_not_pass_through(tmp_path: Path, is_ordered: bool):
    codes = pa.array(np.arange(40) % 2, pa.int8())
    illness = pa.DictionaryArray.from_arrays(codes, pa.array(["flu", "cold", "kuru"]), ordered=is_ordered)
    pq.write_table(pa.table({"age": np.arange(40), "illness": illness}), tmp_path / "in.parquet")
    anonymizer = MondrianAnonymizer(4, quasi_identifiers=["age"])
    release = fit_transform(anonymizer, tmp_path / "in.parquet", tmp_path / "out.parquet")
    read = pq.read_table(tmp_path / "out.parquet")["illness"]
    assert read.to_pylist() == illness.take(release.order).to_pylist()
    assert read.type == illness.type
    # An order that was declared has to be the same in every piece.
    listed = read.chunk(0).dictionary.to_pylist()
    assert listed == ["flu", "cold", "kuru"] if is_ordered else sorted(listed) == ["cold", "flu"]
    assert (b"kuru" in (tmp_path / "out.parquet").read_bytes()) is is_ordered


def test_columns_of_one_name_are_refused(tmp_path: Path):
    pq.write_table(pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["age", "age"]), tmp_path / "in.parquet")
    with pytest.raises(InputError, match="several columns named 'age'"):
        ParquetFiles(tmp_path / "in.parquet")


def test_numbers_are_counted_where_another_thread_gave_up_on_their_table():
    counts = ValueCounts("height", 8)

    class TakenMeanwhile:
        def __enter__(self) -> None:
            counts._floats = None

        def __exit__(self, *error: object) -> None: ...

    counts._lock = TakenMeanwhile()  # type: ignore[assignment]
    counts.count(pa.chunked_array([pa.array([1.5, 2.5, 1.5], pa.float32())]))
    assert counts.coded().bins.n_bins == 2


def test_views_of_text_are_rewritten_as_text(tmp_path: Path):
    table = pa.table({"town": pa.array([f"town {i % 5}" for i in range(40)], pa.string_view()), "age": np.arange(40)})
    note = pa.array([f"note {i % 7}" for i in range(40)], pa.string_view())
    table = table.append_column("note", note)
    pq.write_table(table, tmp_path / "in.parquet")
    anonymizer = MondrianAnonymizer(4, quasi_identifiers=["town", "age"])
    release = fit_transform(anonymizer, tmp_path / "in.parquet", tmp_path / "out.parquet")
    expected = MondrianAnonymizer(4, quasi_identifiers=["town", "age"]).fit_transform(table).to_pylist()
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [expected[row] for row in release.order]


def test_pieces_hold_plain_text_for_views_of_it(tmp_path: Path):
    pq.write_table(
        pa.table({"town": pa.array(["a", "b", None], pa.string_view()), "age": [1, 2, 3]}), tmp_path / "in.parquet"
    )
    files = ParquetFiles(tmp_path / "in.parquet")
    read = [files.head(), *files.batches(), *(piece for _, piece in files.each(lambda start, piece: piece))]
    assert [table.schema.types for table in read] == [[pa.large_string(), pa.int64()]] * 3
    assert [table.take([2, 0])["town"].to_pylist() for table in read] == [[None, "a"]] * 3


@pytest.mark.parametrize("end", [2**63 - 1, -(2**63)])
def test_columns_at_the_ends_of_64_bits_are_counted(end: int, tmp_path: Path):
    inward = -1 if end > 0 else 1
    people = pa.table({"number": pa.array([end, end, end + inward, end + inward] * 5, pa.int64())})
    pq.write_table(people, tmp_path / "in.parquet")
    fit_transform(MondrianAnonymizer(k=2), tmp_path / "in.parquet", tmp_path / "out.parquet")
    released = pq.read_table(tmp_path / "out.parquet")["number"].to_pylist()
    assert sorted(released) == sorted(people["number"].to_pylist())
