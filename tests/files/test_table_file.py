# SPDX-License-Identifier: Apache-2.0
"""What a CSV or Parquet file says survives being read and written, and nothing half-written stays."""

import csv
import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.errors import GuaranteeError, InputError, ParameterError
from sfumato.files.csv_columns import parse_types
from sfumato.files.csv_reading import GivenType
from sfumato.files.table_file import ReadingOptions, check_output, format_of, read_file, unfinished, write_file
from sfumato.files.verified_output import check_same, read_back, recount, write_judged
from strategies import in_examples


def read(folder: Path, content: bytes | str, name: str = "people.csv", **options):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_file(path, ReadingOptions(**options))


def written(folder: Path, file, name: str = "out.csv") -> bytes:
    path = folder / name
    write_file(file.table, path, format_of(path), file.style)
    check_same(file.table, read_back(file.table, path, format_of(path), file.style))
    return path.read_bytes()


def types_of(file) -> dict[str, str]:
    """Types of the values; text with few of them is held in a dictionary."""
    kinds = {field.name: field.type for field in file.table.schema}
    return {name: str(getattr(kind, "value_type", kind)) for name, kind in kinds.items()}


# Files and what is written of them: values, types, separator and encoding survive; spelling and quoting do not.
SURVIVORS = {
    "leading zeros": ("zip,n\n00123,1\n12345,2\n", 'zip,n\n"00123",1\n"12345",2\n'),
    "long digits": ("card,n\n4111111111111111,1\n511,2\n", 'card,n\n"4111111111111111",1\n"511",2\n'),
    "a leading plus": ("phone,n\n+4930123,1\n+4930124,2\n", 'phone,n\n"+4930123",1\n"+4930124",2\n'),
    "integers beside missing": ("age,n\n30,1\n,2\n41,4\n", "age,n\n30,1\n,2\n41,4\n"),
    "a word for missing": ("age,job\n30,x\n?,y\n41,?\n", 'age,job\n30,"x"\n,"y"\n41,"?"\n'),
    "spellings of numbers": ("x,n\n1e3,1\n2.50,2\n.5,3\n-0.25,4\n", "x,n\n1000,1\n2.5,2\n0.5,3\n-0.25,4\n"),
    "decimal commas": ("a;b\n1,5;x\n2,25;y\n;z\n", 'a;b\n"1,5";"x"\n"2,25";"y"\n;"z"\n'),
    "grouped thousands": ("a;b\n1.234,50;x\n999,00;y\n", 'a;b\n"1234,5";"x"\n"999";"y"\n'),
    "dates": ("born,n\n1980-02-29,1\n,2\n2001-12-31,3\n", "born,n\n1980-02-29,1\n,2\n2001-12-31,3\n"),
    "datetimes": ("seen,n\n2020-01-05T10:00,1\n,2\n", "seen,n\n2020-01-05 10:00:00.000000,1\n,2\n"),
    "datetimes with an offset": (
        "seen,n\n2020-01-05T10:00:00+02:00,1\n2021-01-05T11:30:15+02:00,2\n",
        "seen,n\n2020-01-05 08:00:00.000000Z,1\n2021-01-05 09:30:15.000000Z,2\n",
    ),
    "empty text beside missing text": ('name,n\n"",1\n,2\nx,3\n', 'name,n\n"",1\n,2\n"x",3\n'),
    "separators in quotes": ('name,n\n"Doe, Jane",1\nSmith,2\n', 'name,n\n"Doe, Jane",1\n"Smith",2\n'),
    "quotes in quotes": ('name,n\n"J ""J"" Doe",1\nSmith,2\n', 'name,n\n"J ""J"" Doe",1\n"Smith",2\n'),
    "a quote inside a field": ('pipe,n\n5" wide,1\n6",2\n', 'pipe,n\n"5"" wide",1\n"6""",2\n'),
    "line breaks in quotes": ('name,n\n"Jane\nDoe",1\nSmith,2\n', 'name,n\n"Jane\nDoe",1\n"Smith",2\n'),
    "semicolons": ("a;b\nx,y;1\nz;2\n", 'a;b\n"x,y";1\n"z";2\n'),
    "tabs": ("a\tb\nx\t1\ny, z\t2\n", 'a\tb\n"x"\t1\n"y, z"\t2\n'),
    "bars": ("a|b\nx|1\ny|2\n", 'a|b\n"x"|1\n"y"|2\n'),
    "windows line ends": ("a,b\r\nx,1\r\ny,2\r\n", 'a,b\n"x",1\n"y",2\n'),
    "old line ends": ("a,b\rx,1\ry,2", 'a,b\n"x",1\n"y",2\n'),
    "everything quoted": ('"a","b"\n"x","1"\n"y","2"\n', 'a,b\n"x",1\n"y",2\n'),
    "a space after the comma": ("a, b\nx, 1\ny, 2\n", 'a,b\n"x",1\n"y",2\n'),
    "an index without a name": (",a\n0,x\n1,y\n", 'column1,a\n0,"x"\n1,"y"\n'),
    "one column with a gap": ("a\n1\n\n3\n", "a\n1\n\n3\n"),
    "words for missing in text": ("land,n\nNA,1\nDE,2\nnull,3\n", 'land,n\n"NA",1\n"DE",2\n"null",3\n'),
    "booleans": ("a,b\ntrue,1\nFALSE,2\n", 'a,b\n"true",1\n"FALSE",2\n'),
}


@pytest.mark.parametrize(("content", "expected"), SURVIVORS.values(), ids=SURVIVORS.keys())
def test_values_and_types_of_a_csv_file_survive(tmp_path, content, expected):
    file = read(tmp_path, content)
    assert written(tmp_path, file).decode() == expected
    again = read_file(tmp_path / "out.csv", ReadingOptions(header=True))
    assert again.table.rename_columns(file.table.column_names).to_pydict() == file.table.to_pydict()


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_the_encoding_is_found_said_and_kept(tmp_path, codec):
    content = "näme;größe\nZoë;1,5\nJosé;2,5\n".encode(codec)
    file = read(tmp_path, content)
    assert file.table.column("näme").to_pylist() == ["Zoë", "José"]
    assert file.table.column("größe").to_pylist() == [1.5, 2.5]
    expected = 'näme;größe\n"Zoë";"1,5"\n"José";"2,5"\n'
    assert written(tmp_path, file) == expected.encode(codec)
    said = " ".join(file.notes)
    assert ("Windows-1252" in said) == (codec == "cp1252")
    assert ("UTF-16" in said) == codec.startswith("utf-16")


def test_a_given_encoding_wins(tmp_path):
    content = "name,n\nŽižek,1\nx,2\n".encode("cp1250")
    file = read(tmp_path, content, encoding="cp1250")
    assert file.table.column("name")[0].as_py() == "Žižek"
    assert written(tmp_path, file) == 'name,n\n"Žižek",1\n"x",2\n'.encode("cp1250")


def test_types_are_read_as_the_rules_say(tmp_path):
    file = read(
        tmp_path,
        'zip,quoted,card,age,score,born,seen,other_date,name\n00123,"5",1234567890123456,39,1.5,1980-01-31,'
        "2020-01-01 10:00,31/01/1980,Ann\n99999,6,2,NA,2,?,,01/02/1980,\n",
    )
    assert types_of(file) == {
        "zip": "string",
        "quoted": "int64",
        "card": "string",
        "age": "int64",
        "score": "double",
        "born": "date32[day]",
        "seen": "timestamp[us]",
        "other_date": "date32[day]",
        "name": "string",
    }
    assert [file.table.column(name).null_count for name in ("age", "born", "seen", "name")] == [1, 1, 1, 1]


def test_types_can_be_given(tmp_path):
    content = "zip,code,n,born\n10115,007,5,31.12.1980\n20095,008,6,1.2.1990\n"
    file = read(tmp_path, content, types=parse_types("zip=text,code=integer,n=real,born=date"))
    assert types_of(file) == {"zip": "string", "code": "int64", "n": "double", "born": "date32[day]"}
    expected = 'zip,code,n,born\n"10115",7,5,1980-12-31\n"20095",8,6,1990-02-01\n'
    assert written(tmp_path, file).decode() == expected


def test_a_day_that_does_not_exist_is_text(tmp_path):
    assert types_of(read(tmp_path, "d,n\n2021-02-30,1\n2021-03-01,2\n"))["d"] == "string"


def test_a_date_that_can_be_two_days_must_be_told_apart(tmp_path):
    content = "d,n\n01/02/2020,1\n03/04/2021,2\n"
    with pytest.raises(InputError, match="can be read in 2 ways"):
        read(tmp_path, content, types={"d": GivenType("date")})
    file = read(tmp_path, content, types=parse_types("d=date:%m/%d/%Y"))
    assert str(file.table.column("d")[0].as_py()) == "2020-01-02"
    assert written(tmp_path, file).decode() == "d,n\n2020-01-02,1\n2021-03-04,2\n"


def test_the_iso_dates_of_a_release_are_read_whatever_format_the_original_has(tmp_path):
    given = parse_types("d=date:%m/%d/%Y,t=datetime:%d.%m.%Y %H:%M")
    original = read(tmp_path, "d,t,n\n01/02/2020,1.2.2020 10:00,1\n03/04/2021,2.2.2020 11:00,2\n", types=given)
    written(tmp_path, original)
    again = read_file(tmp_path / "out.csv", ReadingOptions(types=given))
    assert again.table.equals(original.table)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["31.12.1999", "1.2.2000"], "date"),
        (["12/31/1999", "01/02/2000"], "date"),
        (["2000/02/01", "1999/12/31"], "date"),
        (["31.12.1999 13:45", "01.02.2000 08:00"], "datetime"),
    ],
)
def test_dates_that_can_be_read_in_one_way_are_dates(tmp_path, fields, kind):
    content = "born,n\n" + "".join(f"{field},x\n" for field in fields)
    file = read(tmp_path, content)
    assert types_of(file)["born"].startswith("date32" if kind == "date" else "timestamp")
    assert file.notes[0].startswith("column 'born' was read as dates written %")
    written(tmp_path, file)
    told = read(tmp_path, content, types=parse_types(f"born={kind}"))
    assert told.table == file.table and not told.notes


def test_dates_that_can_be_read_in_two_ways_are_text_and_said_to_look_like_dates(tmp_path):
    file = read(tmp_path, "born,n\n01/02/1980,x\n11/12/1990,x\n")
    assert types_of(file)["born"] == "string"
    assert file.notes[0].startswith("column 'born' was read as text: its values look like dates")
    assert file.notes[0].endswith("types={'born': 'date'}")


def test_fields_between_runs_of_blanks_are_read_and_written_between_tabs(tmp_path):
    content = b' age   town        pay\n 31    Rome       2000\n  4    "New York"    5\n'
    file = read(tmp_path, content, name="people.txt")
    assert file.table.to_pydict() == {"age": [31, 4], "town": ["Rome", "New York"], "pay": [2000, 5]}
    assert "separated by runs of blanks" in file.notes[0]
    assert written(tmp_path, file) == b'age\ttown\tpay\n31\t"Rome"\t2000\n4\t"New York"\t5\n'


def test_words_of_one_column_are_not_taken_apart(tmp_path):
    assert read(tmp_path, "full name\nAda Lovelace\nAlan Turing\n").table.column_names == ["full name"]


def test_the_line_that_declares_the_separator_for_excel_is_understood(tmp_path):
    content = b"sep=;\r\nage;town\r\n31;Rome, Italy\r\n34;Bern\r\n"
    file = read(tmp_path, content)
    assert file.table.column_names == ["age", "town"]
    assert file.table["town"].to_pylist() == ["Rome, Italy", "Bern"]
    assert written(tmp_path, file) == b'age;town\n31;"Rome, Italy"\n34;"Bern"\n'


@pytest.mark.parametrize(
    "first",
    [
        "Zacharias,41,nurse,low",  # a number above numbers
        "Zacharias,,nurse,low",  # a missing number
        "Zacharias,age,nurse,pay",  # one value that occurs below
    ],
)
def test_a_first_line_that_is_a_record_is_asked_about_and_not_shown(tmp_path, first):
    content = f"{first}\nAnn,36,nurse,high\nBen,52,clerk,low\nEve,47,nurse,low\n"
    with pytest.raises(InputError, match=r"header=False .* or header=True") as caught:
        read(tmp_path, content)
    assert not any(field and field in str(caught.value) for field in ("Zacharias", "41", "nurse", "high"))
    assert read(tmp_path, content, header=False).table.num_rows == 4
    assert read(tmp_path, content, header=True).table.num_rows == 3


@pytest.mark.parametrize("first", ["31.12.1980", "A-17", "ada@example.org", "(030) 1234"])
def test_a_first_line_in_the_shape_of_the_values_below_is_asked_about(tmp_path, first):
    below = {"31.12.1980": "1.5.1977", "A-17": "B-4", "ada@example.org": "bob@test.com", "(030) 1234": "(089) 99"}
    with pytest.raises(InputError, match="in 1 of 2 columns") as caught:
        read(tmp_path, f"{first},n\n{below[first]},x\n{below[first]},y\n")
    assert first not in str(caught.value)


def test_names_of_columns_with_digits_are_still_names(tmp_path):
    assert read(tmp_path, "q1,income2019,x\n3,100,a\n4,250,b\n").table.num_rows == 2


def test_repeated_names_are_told_by_their_places(tmp_path):
    with pytest.raises(InputError, match="the same text in columns 1 and 3") as caught:
        read(tmp_path, "Zacharias,n,Zacharias\nx,1,y\n", header=True)
    assert "Zacharias" not in str(caught.value)


def test_names_that_differ_in_blanks_only_are_warned_of(tmp_path):
    file = read(tmp_path, "age,age ,Age\n1,2,3\n4,5,6\n")
    assert "'age' and 'age ' and 'Age' differ in blanks or capitals only" in file.notes[0]


@pytest.mark.parametrize("fields", [["31.12.1999", "soon"], ["1.2.3", "4.5.6"], ["10.1000", "20.2000"]])
def test_what_does_not_all_look_like_dates_is_not_said_to(tmp_path, fields):
    assert read(tmp_path, "a,n\n" + "".join(f"{field},x\n" for field in fields)).notes == ()


def test_mixed_zones_stay_text(tmp_path):
    assert types_of(read(tmp_path, "t,n\n2020-01-01T10:00Z,1\n2020-01-01T10:00+01:00,2\n"))["t"] == "string"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n1,5;x\n2;y\n", "double"),
        ("a;b\n1,234;x\n2,345;y\n", "string"),  # a thousand, or a little more than one?
        ("a;b\n1.234;x\n2.345;y\n", "double"),  # the point is the rule unless a comma is certain
        ("a;b\n1,5;2.5\n2,5;3.5\n", "string"),  # the columns contradict each other
    ],
)
def test_a_decimal_comma_is_taken_only_when_certain(tmp_path, content, expected):
    assert types_of(read(tmp_path, content))["a"] == expected


def test_the_decimal_mark_can_be_given(tmp_path):
    file = read(tmp_path, 'a,b\n"1,234",x\n"2,5",y\n', decimal=",")
    assert file.table.column("a").to_pylist() == [1.234, 2.5]
    assert written(tmp_path, file) == b'a,b\n"1,234","x"\n"2,5","y"\n'
    assert read(tmp_path, "a;b\n1,234;x\n", decimal=",").table.column("a").to_pylist() == [1.234]


def test_a_point_number_is_never_read_as_thousands_by_force(tmp_path):
    with pytest.raises(InputError, match="'a' cannot be read as real: 1 of its 2 values"):
        read(tmp_path, "a;b\n1.5;x\n2,5;y\n", decimal=",", types={"a": GivenType("real")})


def test_numbers_with_a_few_words_are_said_to_be_text(tmp_path):
    content = "n,a\n" + "1,x\n" * 30 + "-,y\n"
    file = read(tmp_path, content)
    assert types_of(file)["n"] == "string"
    assert "30 of its 31 values are numbers" in file.notes[0]
    again = read(tmp_path, content, missing=["-"])
    assert (types_of(again)["n"], again.table.column("n").null_count) == ("int64", 1)


def test_postcodes_are_not_called_numbers_with_something_odd_among_them(tmp_path):
    file = read(tmp_path, "zip,a\n" + "12345,x\n" * 30 + "01234,y\n")
    assert types_of(file)["zip"] == "string" and file.notes == ()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n", "no records"),
        (b"a,b\n1,2,3\n", "line 2: 3 fields where the first line has 2"),
        (b"a,b\n1,x\n\n2\n", "line 4: 1 field where the first line has 2"),
        (b"a,a\nx,1\n", "has the same text in columns 1 and 2"),
        (b"39,Private\n40,State\n", "looks like a record"),
        (b"usual,yes\ngreat,yes\nusual,no\n", "looks like a record"),
        (b'a,b\n1,"x\n2,y\n', "line 2: a quoted field is never closed"),
        (b'a,b\n1,x\n2,"y', "line 3: a quoted field is never closed"),
        (b'a\n1\n"', "line 3: a quoted field is never closed"),
        (b'a,b\n1,"x"y\n2\n', "line 2: text follows a closing quote"),
        (b"a,b\n\x81\x8d,1\n", "neither UTF-8 nor Windows-1252"),
        (b"a,b\n\x00,1\n", "zero bytes"),
    ],
)
def test_a_bad_file_gets_one_sentence(tmp_path, content, sentence):
    with pytest.raises(InputError, match=sentence):
        read(tmp_path, content)


def test_messages_show_no_cell_values(tmp_path):
    for content in (b"a,b\nsecret,1,2\n", b"secret,5\nother,6\nsecret,5\n", b'a,b\n1,"secret\n'):
        with pytest.raises(InputError) as caught:
            read(tmp_path, content)
        assert "secret" not in str(caught.value)


def test_bad_bytes_under_a_given_encoding_name_the_line(tmp_path):
    with pytest.raises(InputError, match="line 3 has bytes that are not utf-8"):
        read(tmp_path, b"a,b\nx,1\n\xe4,2\n", encoding="utf-8")
    with pytest.raises(ParameterError, match="'utf-99' is not known"):
        read(tmp_path, b"a,b\nx,1\n", encoding="utf-99")


def test_wrong_paths_get_one_sentence(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_file(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_file(tmp_path)
    with pytest.raises(InputError, match="no ending that says what it is"):
        read(tmp_path, b"x", name="people.doc")
    with pytest.raises(InputError, match=r"is a spreadsheet.* save the sheet as CSV"):
        read(tmp_path, b"x", name="people.xlsx")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read(tmp_path, b"a,b\n1,2\n", name="people.parquet")
    with pytest.raises(InputError, match="is not a gzip file"):
        read(tmp_path, b"a,b\n1,2\n", name="people.csv.gz")


@pytest.mark.parametrize("types", ["zip", "zip=postcode", "n=integer:%d", "=text,"])
def test_bad_types_are_refused(types):
    with pytest.raises(ParameterError, match="expected a type for a column"):
        parse_types(types)


def test_types_of_unknown_columns_name_the_nearest(tmp_path):
    with pytest.raises(ParameterError, match="Did you mean 'zip'"):
        read(tmp_path, "zip,n\n1,2\n", types={"zipp": GivenType("text")})


def test_a_file_without_header_is_read_and_written_without(tmp_path):
    content = "39, Private\n40, State\n"
    file = read(tmp_path, content, header=False)
    assert types_of(file) == {"column1": "int64", "column2": "string"}
    assert written(tmp_path, file).decode() == '39,"Private"\n40,"State"\n'


def test_compressed_csv_is_read_and_written(tmp_path):
    file = read(tmp_path, gzip.compress(b"zip,n\n001,1\n002,2\n"), name="people.csv.gz")
    packed = written(tmp_path, file, "out.csv.gz")
    assert gzip.decompress(packed) == b'zip,n\n"001",1\n"002",2\n'
    assert packed == written(tmp_path, file, "again.csv.gz")


def test_long_files_are_read_in_blocks_and_written_in_pieces(tmp_path):
    lines = [f'{number},"name {number % 7}",{number / 4}' for number in range(150_000)]
    content = "a,b,c\n" + "\n".join(lines) + "\n"
    file = read(tmp_path, content)
    assert file.table.num_rows == 150_000
    assert file.table.column("c").to_pylist() == [number / 4 for number in range(150_000)]
    back = list(csv.reader(written(tmp_path, file).decode().splitlines()))
    assert [(int(a), b, float(c)) for a, b, c in back[1:]] == [
        (number, f"name {number % 7}", number / 4) for number in range(150_000)
    ]


FIELDS = st.one_of(
    st.none(),
    st.text(alphabet=st.sampled_from("aé0159.,;|\t\"'\n\r -?NA"), max_size=6),
    st.integers(-(10**17), 10**17).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.dates().map(str),
)


@settings(in_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(st.tuples(FIELDS, FIELDS, st.integers(0, 9)), min_size=1, max_size=8),
    separator=st.sampled_from(",;\t|"),
)
def test_any_text_survives_writing_and_reading(tmp_path, records, separator):
    # The csv module judges: its view of the output equals its view of the input when every column is text.
    source, target = tmp_path / "source.csv", tmp_path / "target.csv"
    with source.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=separator, lineterminator="\r\n")
        writer.writerow(["first", "second", "third"])
        writer.writerows(records)
    as_text = dict.fromkeys(["first", "second", "third"], GivenType("text"))
    file = read_file(source, ReadingOptions(separator=separator, header=True, types=as_text))
    write_file(file.table, target, "csv", file.style)
    check_same(file.table, read_back(file.table, target, "csv", file.style))
    views = []
    for path in (source, target):
        with path.open(newline="", encoding="utf-8") as stream:
            views.append(list(csv.reader(stream, delimiter=separator)))
    assert views[0] == views[1]


@settings(in_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    numbers=st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=9),
    integers=st.lists(st.integers(-(10**14), 10**14), min_size=9, max_size=9),
    moments=st.lists(st.datetimes(), min_size=9, max_size=9),
)
def test_any_table_survives_csv_without_a_known_style(tmp_path, numbers, integers, moments):
    n = len(numbers)
    table = pa.table(
        {
            "x": pa.array(numbers, pa.float64()),
            "i": integers[:n],
            "t": pa.array(moments[:n], pa.timestamp("us")),
            "digits": pa.array([str(abs(value)) for value in integers[:n]]),
            "b": pa.array([value % 2 == 0 for value in integers[:n]]),
        }
    )
    path = tmp_path / "table.csv"
    write_file(table, path, "csv")
    check_same(table, read_back(table, path, "csv"))
    again = read_file(path)
    assert [value for value in again.table.column("x").to_pylist() if value is not None] == [
        value for value in numbers if value is not None
    ]


def test_parquet_keeps_types_and_order_and_drops_metadata(tmp_path):
    table = pa.table(
        {
            "b": pa.array(["x", None, "y"]).dictionary_encode(),
            "a": pa.array([1, 2, None], pa.int16()),
            "t": pa.array([0, 1, 2], pa.timestamp("ns", tz="Europe/Berlin")),
        }
    ).replace_schema_metadata({"owner": "census"})
    path = tmp_path / "people.parquet"
    pq.write_table(table, path)
    file = read_file(path)
    out = tmp_path / "out.parquet"
    write_file(file.table, out, "parquet")
    assert pq.read_table(out).schema.equals(table.schema.remove_metadata(), check_metadata=True)
    assert pq.read_table(out).equals(table)
    assert b"census" not in out.read_bytes()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, None, False]),
        pa.array([3_600, None, 7_200], pa.time32("s")),
        pa.array(["1.10", None, "2.00"]).cast(pa.decimal128(10, 2)),
        pa.array([1, None, 3], pa.timestamp("ns", tz="Europe/Berlin")),
        pa.array([0.1, None, 3], pa.float32()),
        pa.array([0.5, None, 3], pa.float32()).cast(pa.float16()),
        pa.array([1, None, 3], pa.uint8()),
        pa.array(["1", None, "x"], pa.large_string()),
        pa.array(["1", None, "2"], pa.string_view()),
        pa.array([5, None, 6]).dictionary_encode(),
        pa.nulls(3),
    ],
    ids=lambda column: str(column.type),
)
def test_every_parquet_type_that_text_can_hold_becomes_csv(tmp_path, column):
    table = pa.table({"x": column, "n": [1, 2, 3]})
    write_file(table, tmp_path / "out.csv", "csv")
    check_same(table, read_back(table, tmp_path / "out.csv", "csv"))
    assert (
        read_file(tmp_path / "out.csv", ReadingOptions(header=True)).table.column("x").null_count == column.null_count
    )


def test_numbers_of_half_precision_are_judged_like_others(tmp_path):
    table = pa.table({"x": pa.array([0.5, 0.5, None, None], pa.float32()).cast(pa.float16())})
    path = tmp_path / "out.parquet"
    counted = write_judged(table, path, style=None, judge=lambda read: recount(read, ["x"], 2))
    assert counted.sizes.tolist() == [2, 2]
    assert pq.read_table(path).equals(table)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.duration("s"), pa.binary()], ids=str)
def test_types_that_text_cannot_hold_are_refused(tmp_path, kind):
    with pytest.raises(InputError, match="cannot be written as CSV"):
        write_file(pa.table({"x": pa.nulls(2, kind)}), tmp_path / "out.csv", "csv")


def test_a_tsv_file_is_separated_by_tabs_whatever_the_input_was(tmp_path):
    file = read(tmp_path, "a;b\n1,5;x\ty\n2,5;z\n")
    path = tmp_path / "out.tsv"
    write_judged(file.table, path, style=file.style, judge=lambda table: recount(table, [], 2))
    assert path.read_text() == 'a\tb\n"1,5"\t"x\ty"\n"2,5"\t"z"\n'


def test_utf8_with_a_few_bad_bytes_is_not_read_as_something_else(tmp_path):
    with pytest.raises(InputError, match="UTF-8 but for some bytes, the first in line 4"):
        read(tmp_path, "name,n\nZoë,1\nJosé,2\n".encode() + b"\xe4,3\n")


def test_text_of_parquet_is_held_as_a_dictionary_where_types_need_not_be_kept(tmp_path):
    table = pa.table(
        {
            "city": pa.chunked_array([["Rome", None], ["Bari", "Rome"]], pa.large_string()),
            "name": ["Ada", "Bob", "Cyd", "Dan"],
            "age.n": pa.array([1, None, 3, 4], pa.int16()),
            "age": pa.array([5.5, 6.5, 7.5, 8.5], pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "people.parquet", row_group_size=2)
    kept = read_file(tmp_path / "people.parquet")
    file = read_file(tmp_path / "people.parquet", keep_types=False)
    assert kept.table.equals(table) and file.table.to_pydict() == table.to_pydict()
    assert file.table.schema.field("city").type == pa.dictionary(pa.int8(), pa.large_string())
    assert file.table.schema.field("name").type == pa.string()  # as many values as records
    assert [file.columns.column(at).to_pylist() for at in range(4)] == [c.to_pylist() for c in table.columns]
    assert file.columns.schema.types == table.schema.types


def test_csv_options_are_refused_for_parquet(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(ParameterError, match="which has its own types"):
        read_file(path, ReadingOptions(separator=";"))


# --- writing ----------------------------------------------------------------------------------------------


def test_outputs_that_should_not_be_written_are_refused(tmp_path):
    existing = tmp_path / "there.csv"
    existing.write_text("a\n1\n")
    with pytest.raises(ParameterError, match="exists already"):
        check_output(existing, force=False)
    check_output(existing, force=True)
    with pytest.raises(ParameterError, match="is the input itself"):
        check_output(existing, force=True, inputs=[existing])
    link = tmp_path / "link.csv"
    link.symlink_to(existing)
    with pytest.raises(ParameterError, match="is the input itself"):
        check_output(link, force=True, inputs=[existing])
    with pytest.raises(ParameterError, match="is a folder"):
        check_output(tmp_path, force=False)
    with pytest.raises(ParameterError, match="does not exist"):
        check_output(tmp_path / "none" / "out.csv", force=False)


def test_an_unfinished_file_is_private_and_moved_at_the_end(tmp_path):
    final = tmp_path / "out.csv"
    with unfinished(final) as (path,):
        assert path.parent == final.parent
        assert ".unfinished-" in path.name
        assert path.stat().st_mode & 0o777 == 0o600
        path.write_text("done")
        assert not final.exists()
    assert final.read_text() == "done"
    mask = os.umask(0)
    os.umask(mask)
    assert final.stat().st_mode & 0o777 == 0o666 & ~mask
    assert list(tmp_path.iterdir()) == [final]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_nothing_and_keeps_the_old_file(tmp_path, error):
    final = tmp_path / "out.csv"
    final.write_text("old")
    with pytest.raises(error), unfinished(final, tmp_path / "beside.json") as paths:
        paths[0].write_text("half")
        raise error
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert final.read_text() == "old"


TABLE = pa.table(
    {"age": [30, 30, 40, 40, None, None], "zip": ["01", "01", "02", "02", "03", "03"], "y": list("abcdef")}
)


def test_a_judged_file_appears_when_k_holds(tmp_path):
    result = write_judged(
        TABLE,
        tmp_path / "out.csv",
        style=None,
        judge=lambda table: recount(table, ["age", "zip"], 2),
        beside={tmp_path / "partition.json": lambda path, _: path.write_text("{}")},
    )
    assert (result.n_groups, result.smallest_group, result.n_records_in_small_groups) == (3, 2, 0)
    assert (tmp_path / "out.csv").exists()
    assert (tmp_path / "partition.json").read_text() == "{}"


def test_nothing_is_written_when_k_fails(tmp_path):
    with pytest.raises(
        GuaranteeError, match=r"k-anonymity does not hold .k = 3.: 6 of 6 records .*written file.* Nothing was written"
    ):
        write_judged(TABLE, tmp_path / "out.csv", style=None, judge=lambda table: recount(table, ["age", "zip"], 3))
    assert not list(tmp_path.iterdir())


def test_a_file_that_reads_back_otherwise_is_refused(tmp_path, monkeypatch):
    from sfumato.files import verified_output as judging

    def swap_two_values(table, path, as_format, style=None):
        return write_file(table.set_column(2, "y", pa.array(list("bacdef"))), path, as_format, style)

    monkeypatch.setattr(judging, "write_file", swap_two_values)
    with pytest.raises(GuaranteeError, match="'y' of the written file does not read back"):
        write_judged(TABLE, tmp_path / "out.csv", style=None, judge=lambda table: recount(table, ["age"], 2))
    assert not list(tmp_path.iterdir())


def test_missing_values_and_both_zeros_count_as_one_value():
    nan = float("nan")
    table = pa.table({"x": pa.array([nan, None, nan, 0.0, -0.0, 0.0])})
    result = recount(table, ["x"], 3)
    assert (result.n_groups, result.smallest_group) == (2, 3)


def test_persons_are_counted_once_per_group():
    table = pa.table({"x": [1, 1, 1, 2, 2, 2], "person": list("aabcde")})
    result = recount(table, ["x"], 3, units=table.column("person"))
    assert (result.smallest_group, result.n_records_in_small_groups) == (2, 3)
    assert recount(table, ["x"], 3).holds
    assert recount(table, [], 5, units=table.column("person")).smallest_group == 5  # no columns: one group


WRITER = """
import sys, time
from pathlib import Path
from sfumato.files.table_file import unfinished
with unfinished(Path(sys.argv[1])) as (path,):
    with path.open("w") as stream:
        stream.write("half a file")
        stream.flush()
        print("writing", flush=True)
        time.sleep(60)
"""


def test_a_process_killed_outright_leaves_no_output_under_the_final_name(tmp_path):
    final = tmp_path / "out.csv"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(final)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=20)
    process.stdout.close()
    time.sleep(0.05)
    left = [path.name for path in tmp_path.iterdir()]
    assert len(left) == 1
    assert left[0].startswith("out.csv.unfinished-")


def test_a_small_file_is_parsed_on_the_thread_of_the_command(tmp_path: Path, monkeypatch):
    # What a parser's own threads still hold when the process ends makes it abort, with an exit code of its own.
    asked = []
    parse = arrow_csv.read_csv
    monkeypatch.setattr(
        arrow_csv, "read_csv", lambda *a, **k: asked.append(k["read_options"].use_threads) or parse(*a, **k)
    )
    for name, n_records in (("small.csv", 10), ("large.csv", 600_000)):
        (tmp_path / name).write_text("a,b\n" + "12345,x\n" * n_records, encoding="utf-8")
        read_file(tmp_path / name)
    assert asked == [False, True]
