# SPDX-License-Identifier: Apache-2.0
"""From one table to two and back: nothing lost, exact values, no link, and refusals in sentences."""

import json
import pickle
import re
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import AnatomizedTable, Anatomizer, GuaranteeError, InputError, ParameterError
from sfumato.frames import read_table
from sfumato.testing.counting import rows_of
from strategies import LIBRARIES, in_examples, tables


def people(n=200, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": random.integers(18, 90, n),
            "town": pd.Categorical(random.choice(["Bari", "Rome", "Pisa"], n)),
            "ill": random.choice(["flu", "cold", "gout", None], n, p=[0.3, 0.3, 0.3, 0.1]),
            "wage": random.integers(0, 9, n),
        },
        index=[f"row {i}" for i in range(n)],
    )


def diversity_by_hand(frame, sensitive_places):
    """Return the smallest group size per record of its most frequent value, counted in plain Python."""
    rows = rows_of(frame)
    groups = {}
    for row in rows:
        groups.setdefault(row[-1], []).append(row)
    return min(
        len(members) / max(Counter(row[place] for row in members).values())
        for members in groups.values()
        for place in sensitive_places
    )


@in_examples()
@given(
    table=tables(min_columns=2, min_records=6),
    library=st.sampled_from(LIBRARIES),
    diversity=st.integers(2, 4),
    how=st.sampled_from(["largest", "random"]),
    n_sensitive=st.integers(1, 3),
    joint=st.sampled_from([False, True, [[0, 1]]]),
)
def test_random_tables_are_divided_without_loss_and_diversely(table, library, diversity, how, n_sensitive, joint):
    names = list(table.columns)
    n_sensitive = min(n_sensitive, len(names) - 1)
    frame = table.to(library)
    places = list(range(n_sensitive))
    anatomizer = Anatomizer(
        diversity, sensitive=places, joint=joint if n_sensitive > 1 else False, suppression_limit=1.0, assignment=how,
        random_state=0,
    )  # fmt: skip
    try:
        anatomized, rows = anatomizer.fit_transform_with_rows(frame)
    except GuaranteeError as refused:
        assert "distinct values" in str(refused)
        return
    except InputError as refused:  # mixed digits, and the like: refused, not mangled
        assert "expected" in str(refused)
        return
    n_tables = len(anatomized.sensitive_tables)
    assert n_tables == (1 if joint is True or n_sensitive == 1 else n_sensitive - (joint is not False))
    assert len(anatomized.sensitive_columns) == n_sensitive
    assert len(anatomized.identifying_columns) == len(names) - n_sensitive
    original = rows_of(frame)
    kept = [original[row] for row in rows]
    assert len(kept) == len(original) - anatomized.n_suppressed == anatomized.n_records
    assert len(set(rows.tolist())) == len(rows)
    shown = rows_of(anatomized.identifying)
    # Exact values: the identifying part row by row, the sensitive parts as a whole.
    assert [row[:-n_tables] for row in shown] == [row[n_sensitive:] for row in kept]
    first = 0
    for number, sensitive in enumerate(anatomized.sensitive_tables):
        secret = rows_of(sensitive)
        n_columns = len(secret[0]) - 1
        true = [row[first : first + n_columns] for row in kept]
        first += n_columns
        assert diversity_by_hand(sensitive, range(n_columns)) >= diversity
        assert Counter(row[:-1] for row in secret) == Counter(true)
        # Both tables have the same groups, and the record's own value is among those of its group.
        group = [row[number - n_tables] for row in shown]
        assert Counter(group) == Counter(row[-1] for row in secret)
        of_group = {(row[-1], row[:-1]) for row in secret}
        assert all(pair in of_group for pair in zip(group, true, strict=True))


def test_identifiers_and_the_index_do_not_leave():
    frame = people()
    anatomized = Anatomizer(2, sensitive="ill", identifiers="name", random_state=0).fit_transform(frame)
    assert list(anatomized.identifying) == ["age", "town", "wage", "group"]
    assert list(anatomized.sensitive) == ["ill", "group"]
    for part in (anatomized.identifying, anatomized.sensitive):
        assert part.index.tolist() == list(range(len(frame)))
        assert part.attrs == {}


def test_types_survive_and_categories_of_nobody_do_not():
    frame = people().assign(town=lambda f: f["town"].cat.add_categories(["Nowhere"]))
    anatomized = Anatomizer(2, sensitive="ill", identifiers="name", random_state=0).fit_transform(frame)
    assert anatomized.identifying["age"].dtype == frame["age"].dtype
    assert "Nowhere" not in anatomized.identifying["town"].cat.categories


def test_no_order_links_the_tables():
    # Records sorted by the sensitive value: any order kept would put equal values at equal places.
    frame = pd.DataFrame({"age": np.arange(1000), "ill": np.repeat(list("abcdefghij"), 100)})
    agreements = []
    for seed in range(20):
        anatomized, rows = Anatomizer(2, sensitive="ill", keep="age", random_state=seed).fit_transform_with_rows(frame)
        truth = frame["ill"].to_numpy()[rows]
        agreements.append((truth == anatomized.sensitive["ill"].to_numpy()).mean())
        inside = anatomized.identifying.assign(truth=truth).groupby("group")["truth"].first()
        first = anatomized.sensitive.groupby("group")["ill"].first()
        agreements[-1] = (agreements[-1], (inside == first).mean())
    across, within = np.mean(agreements, axis=0)
    assert across == pytest.approx(0.1, abs=0.01)  # 20,000 rows: chance is 1 in 10, standard error 0.002
    assert within == pytest.approx(0.5, abs=0.02)  # 10,000 groups: chance is 1 in 2, standard error 0.005


def test_the_group_says_nothing_about_the_order_of_the_input():
    frame = pd.DataFrame({"age": np.arange(2000), "ill": np.tile(list("abcd"), 500)})
    anatomized, rows = Anatomizer(2, sensitive="ill", keep="age", random_state=0).fit_transform_with_rows(frame)
    correlation = np.corrcoef(rows, anatomized.identifying["group"])[0, 1]
    assert abs(correlation) < 0.1  # 2,000 records: standard error 0.022


def coded_by_appearance(kind):
    """People whose categories are listed in the order in which they come up, as most writers of dictionaries do."""
    random = np.random.default_rng(0)
    who = [f"person with a long name {i:03d}!" for i in random.permutation(60)]
    ill = [f"illness with a long name {i}!" for i in random.permutation(60) % 6]
    table = pa.table({"who": who, "ill": ill})
    if kind == "text of polars":
        return pl.DataFrame({"who": who, "ill": ill}), who, ill
    if kind == "categories of polars":
        return pl.DataFrame({"who": who, "ill": ill}, schema={"who": pl.Categorical, "ill": pl.Categorical}), who, ill
    if kind == "views of text":
        return pa.table({"who": pa.array(who, pa.string_view()), "ill": pa.array(ill, pa.string_view())}), who, ill
    coded = pa.table({name: table.column(name).dictionary_encode() for name in table.column_names})
    if kind == "dictionaries":
        return coded, who, ill
    frame = coded.to_pandas(types_mapper=pd.ArrowDtype if kind == "dictionaries in pandas" else None)
    return frame, who, ill


KINDS = ["dictionaries", "categories", "dictionaries in pandas", "categories of polars", "text of polars"]


@pytest.mark.parametrize("kind", [*KINDS, "views of text"])
def test_nothing_inside_the_tables_is_in_the_order_of_the_input(kind):
    frame, who, ill = coded_by_appearance(kind)
    anatomized = Anatomizer(2, sensitive="ill", keep=["who"], random_state=0).fit_transform(frame)
    for part, values in ((anatomized.identifying, who), (anatomized.sensitive, ill)):
        assert sorted(row[0] for row in rows_of(part)) == sorted(values)
        stored = re.findall(rb"(?:person|illness) with a long name \d+!", pickle.dumps(part))
        in_order = list(dict.fromkeys(text.decode() for text in stored))
        assert set(in_order) == set(values)
        assert in_order != list(dict.fromkeys(values))


def test_categories_of_polars_are_numbered_by_value():
    frame, *_ = coded_by_appearance("categories of polars")
    identifying = Anatomizer(2, sensitive="ill", keep=["who"], random_state=0).fit_transform(frame).identifying
    by_number = sorted(zip(identifying["who"].to_physical().to_list(), identifying["who"].to_list(), strict=True))
    assert [name for _, name in by_number] == sorted(identifying["who"].to_list())


@pytest.mark.parametrize(
    "make", [pl.DataFrame, lambda data: pa.table({"ill": pa.array(data["ill"], pa.string_view())})]
)
def test_text_of_records_that_are_left_out_is_not_in_the_bytes(make):
    table = read_table(make({"ill": [f"illness with a long name {i}" for i in range(9)]}))
    kept = table.replaced({}, keep_rows=np.array([4, 2]))
    assert set(re.findall(rb"name (\d)", pickle.dumps(kept))) == {b"4", b"2"}


def test_an_order_of_categories_that_was_declared_stays():
    frame = people()
    frame["town"] = frame["town"].cat.reorder_categories(["Rome", "Bari", "Pisa"], ordered=True)
    identifying = Anatomizer(2, sensitive="wage", identifiers="name", random_state=0).fit_transform(frame).identifying
    assert identifying["town"].cat.categories.tolist() == ["Rome", "Bari", "Pisa"]


def test_rows_are_not_in_the_order_of_the_input():
    frame = pd.DataFrame({"age": np.arange(2000), "ill": np.tile(list("abcd"), 500)})
    anatomized, rows = Anatomizer(2, sensitive="ill", keep="age", random_state=0).fit_transform_with_rows(frame)
    assert (anatomized.identifying["age"] == rows).all()
    assert abs(np.corrcoef(rows, np.arange(2000))[0, 1]) < 0.1  # 2,000 records: standard error 0.022


def test_the_same_seed_gives_the_same_tables_and_another_does_not():
    first, again, other = (
        Anatomizer(2, sensitive="ill", identifiers="name", random_state=seed).fit_transform(people())
        for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(first.sensitive, again.sensitive)
    pd.testing.assert_frame_equal(first.identifying, again.identifying)
    assert not first.identifying.equals(other.identifying)


def test_the_input_is_untouched():
    frame = people()
    before = frame.copy(deep=True)
    Anatomizer(2, sensitive="ill", identifiers="name").fit_transform(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_the_join_has_every_record_once_with_each_row_of_its_group():
    anatomized = Anatomizer(3, sensitive=["ill"], identifiers="name", random_state=0).fit_transform(people())
    joined = anatomized.join()
    assert list(joined) == ["age", "town", "wage", "ill"]
    sizes = Counter(anatomized.identifying["group"])
    assert len(joined) == sum(size * size for size in sizes.values())
    pairs = Counter(map(tuple, joined.astype(object).where(joined.notna(), None).itertuples(index=False)))
    of_group = {}
    for group, value in zip(anatomized.sensitive["group"], anatomized.sensitive["ill"], strict=True):
        of_group.setdefault(group, []).append(value if isinstance(value, str) else None)
    wanted = Counter(
        (*row[:-1], value)
        for row in anatomized.identifying.astype(object).itertuples(index=False)
        for value in of_group[row[-1]]
    )
    assert pairs == wanted


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_columns_with_a_value_that_is_too_frequent_are_named():
    table = pd.DataFrame({"age": range(12), "ill": list("aaaaaaaabcde"), "job": list("abcdefabcdef")})
    with pytest.raises(GuaranteeError, match=r"more than 1/2 of them \(there is one in 'ill'\), and"):
        Anatomizer(2, sensitive=["ill", "job"], random_state=0).fit_transform(table)
    with pytest.raises(GuaranteeError, match=r"more than 1/2 of them, and"):
        Anatomizer(2, sensitive="ill", random_state=0).fit_transform(table[["age", "ill"]])


def test_an_l_that_needs_suppression_is_refused_with_what_would_work():
    frame = pd.DataFrame({"age": range(100), "ill": ["flu"] * 40 + [f"rare {i % 20}" for i in range(60)]})
    with pytest.raises(GuaranteeError, match=r"largest l that works is 2. Lower l, or set suppression_limit to 0.1 "):
        Anatomizer(3, sensitive="ill").fit(frame)
    with pytest.raises(GuaranteeError, match="leaves out 10 records"):
        Anatomizer(3, sensitive="ill", suppression_limit=0.09).fit(frame)
    anatomized = Anatomizer(3, sensitive="ill", suppression_limit=0.1, random_state=0).fit_transform(frame)
    assert anatomized.n_suppressed == 10
    assert anatomized.n_records == 90
    assert diversity_by_hand(anatomized.sensitive, [0]) >= 3


def test_fewer_values_than_l_are_refused_whatever_the_limit():
    frame = pd.DataFrame({"age": range(10), "ill": ["flu", "cold"] * 5})
    with pytest.raises(GuaranteeError, match=r"at least 3 distinct values, and the largest l that works is 2"):
        Anatomizer(3, sensitive="ill", suppression_limit=1.0).fit(frame)


def test_no_message_tells_a_value_or_a_small_count():
    frame = pd.DataFrame({"age": range(7), "ill": ["secret"] * 3 + ["other"] * 2 + ["third"] * 2})
    with pytest.raises(GuaranteeError) as refused:
        Anatomizer(3, sensitive="ill").fit(frame)
    assert "secret" not in str(refused.value)
    assert "fewer than 3 records" in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"l": 1}, "l=1: expected an integer of at least 2"),
        ({"l": 2.5}, "l=2.5: expected an integer"),
        ({"l": True}, "l=True: expected an integer"),
        ({"sensitive": None}, "sensitive is not given: expected the columns"),
        ({"sensitive": []}, "sensitive names no column"),
        ({"sensitive": "illness"}, "does not have"),
        ({"identifiers": ["ill"]}, "named in sensitive and in identifiers"),
        ({"suppression_limit": 1.5}, "suppression_limit=1.5: expected a share from 0 to 1"),
        ({"assignment": "best"}, "assignment='best': expected 'largest' or 'random'"),
        ({"group": ""}, "group='': expected the name of a column"),
        ({"sensitive": ["name", "age", "town", "ill", "wage"]}, "no identifying column is left"),
    ],
)
def test_wrong_parameters_are_refused_in_a_sentence(changes, sentence):
    parameters = {"l": 2, "sensitive": "ill"} | changes
    with pytest.raises(ParameterError, match=sentence):
        Anatomizer(**parameters).fit(people())


def test_a_column_called_group_needs_another_name_for_the_group():
    frame = people().rename(columns={"wage": "group"})
    with pytest.raises(InputError, match="Choose another with group"):
        Anatomizer(2, sensitive="ill", keep=["name"]).fit(frame)
    anatomized = Anatomizer(2, sensitive="ill", keep=["name"], group="bucket").fit_transform(frame)
    assert list(anatomized.sensitive) == ["ill", "bucket"]


def test_fewer_records_than_l_are_refused():
    with pytest.raises(InputError, match=r"2 sample\(s\): expected at least l=3"):
        Anatomizer(3, sensitive="ill", keep=["name"]).fit(people(2))


def test_the_check_finds_groups_that_are_not_diverse():
    anatomized = Anatomizer(2, sensitive="ill", identifiers="name", random_state=0).fit_transform(people())
    spoiled = anatomized.sensitive.assign(ill="flu")
    with pytest.raises(GuaranteeError, match="l = 2 does not hold: a group has a value of 'ill' in more than 1/2"):
        AnatomizedTable(anatomized.identifying, spoiled, 2).check()
    shorter = anatomized.sensitive.iloc[1:]
    with pytest.raises(GuaranteeError, match="do not have the same numbers of records"):
        AnatomizedTable(anatomized.identifying, shorter, 2).check()


# ---- saving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_saved_tables_load_with_the_same_values(tmp_path, library, format):
    frame = people().drop(columns="name")
    if library == "numpy":
        frame, sensitive = frame.drop(columns="town").to_numpy(), 1
    else:
        frame, sensitive = frame if library == "pandas" else pa.Table.from_pandas(frame, preserve_index=False), "ill"
        if library == "polars":
            import polars as pl

            frame = pl.from_arrow(frame)
    anatomized = Anatomizer(3, sensitive=sensitive, random_state=0).fit_transform(frame)
    anatomized.save(tmp_path / "shared", format=format)
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == [
        f"identifying.{format}", "manifest.json", f"sensitive.{format}",
    ]  # fmt: skip
    loaded = AnatomizedTable.load(tmp_path / "shared")
    assert rows_of(loaded.sensitive) == rows_of(anatomized.sensitive)
    assert rows_of(loaded.identifying) == rows_of(anatomized.identifying)
    assert (loaded.l, loaded.n_suppressed, loaded.n_groups) == (3, 0, anatomized.n_groups)


def test_text_that_looks_like_numbers_and_empty_text_survive_csv(tmp_path):
    table = pa.table(
        {
            "code": ["007", "", None, "1e3", 'say "no"', "a,b", "NA", "null"] * 2,
            "ill": pa.array([1.5, None, 2.0, 3.25, -0.5, 1e300, 7.0, 8.0] * 2),
            "born": pa.array([0, 1, None, 3, 4, 5, 6, 7] * 2, pa.int32()).cast(pa.date32()),
        }
    )
    anatomized = Anatomizer(2, sensitive="ill", random_state=0).fit_transform(table)
    anatomized.save(tmp_path / "shared", format="csv")
    loaded = AnatomizedTable.load(tmp_path / "shared")
    assert loaded.identifying.equals(anatomized.identifying)
    assert loaded.sensitive.equals(anatomized.sensitive)


def test_a_folder_that_exists_is_not_touched(tmp_path):
    anatomized = Anatomizer(2, sensitive="ill", keep=["name"], random_state=0).fit_transform(people())
    with pytest.raises(ParameterError, match="exists already"):
        anatomized.save(tmp_path)
    with pytest.raises(ParameterError, match="lies in a folder that does not exist"):
        anatomized.save(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_writing_fails(tmp_path):
    table = pa.table({"ill": ["a", "b"] * 4, "list": [[1]] * 8})
    broken = AnatomizedTable(
        table.drop(["ill"]).append_column("group", [[0, 0, 1, 1, 2, 2, 3, 3]]),
        table.drop(["list"]).append_column("group", [[0, 0, 1, 1, 2, 2, 3, 3]]),
        2,
    )
    with pytest.raises(InputError):
        broken.save(tmp_path / "shared", format="csv")
    assert list(tmp_path.iterdir()) == []


def test_files_that_were_changed_are_not_loaded(tmp_path):
    anatomized = Anatomizer(2, sensitive="ill", identifiers="name", random_state=0).fit_transform(people())
    anatomized.save(tmp_path / "shared", format="csv")
    path = tmp_path / "shared" / "sensitive.csv"
    path.write_text(path.read_text().replace("gout", "flu").replace("cold", "flu"))
    with pytest.raises(GuaranteeError, match="l = 2 does not hold"):
        AnatomizedTable.load(tmp_path / "shared")
    path.unlink()
    with pytest.raises(InputError, match="missing, damaged"):
        AnatomizedTable.load(tmp_path / "shared")
    manifest = json.loads((tmp_path / "shared" / "manifest.json").read_text())
    del manifest["files"]["sensitive"]
    (tmp_path / "shared" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"part files\.sensitive is absent"):
        AnatomizedTable.load(tmp_path / "shared")
    (tmp_path / "shared" / "manifest.json").write_text(json.dumps({"format": "else"}))
    with pytest.raises(InputError, match="describes something else"):
        AnatomizedTable.load(tmp_path / "shared")
    with pytest.raises(InputError, match="no readable manifest"):
        AnatomizedTable.load(tmp_path)


def test_a_small_number_of_suppressed_records_is_not_told(tmp_path):
    frame = pd.DataFrame({"age": range(20), "ill": ["flu"] * 8 + [f"rare {i}" for i in range(12)]})
    anatomized = Anatomizer(3, sensitive="ill", suppression_limit=1.0, random_state=0).fit_transform(frame)
    assert anatomized.n_suppressed == 2
    anatomized.save(tmp_path / "shared")
    assert json.loads((tmp_path / "shared" / "manifest.json").read_text())["n_suppressed"] is None


@pytest.mark.parametrize(("n_equal", "limit"), [(79, 0.58), (64, 0.28), (57, 0.14)])
def test_the_limit_that_a_refusal_names_is_enough(n_equal, limit):
    frame = pd.DataFrame({"age": range(100), "ill": ["x"] * n_equal + [f"v{i}" for i in range(100 - n_equal)]})
    with pytest.raises(GuaranteeError, match=f"suppression_limit to {limit} or more"):
        Anatomizer(2, sensitive="ill").fit(frame)
    anatomizer = Anatomizer(2, sensitive="ill", suppression_limit=limit).fit(frame)
    assert anatomizer.n_suppressed_ == round(100 * limit)


def test_without_a_seed_nobody_can_repeat_the_draw_by_seeding_numpy():
    state = np.random.get_state()
    made = []
    try:
        for _ in range(2):
            np.random.seed(0)  # what notebooks begin with
            shared = Anatomizer(2, sensitive="wage", keep=["name"]).fit_transform(people()).identifying
            made.append(shared["name"].tolist())
    finally:
        np.random.set_state(state)
    assert made[0] != made[1]


def test_columns_that_name_people_are_refused_unless_they_are_given_a_role():
    people = pd.DataFrame(
        {
            "name": [f"Ann Miller {i}" for i in range(40)],
            "age": [30, 40] * 20,
            "ill": ["flu", "cold", "gout", "flu"] * 10,
        }
    )
    with pytest.raises(
        InputError, match=r"column 'name' would be shared with its exact values.*List it in identifiers"
    ):
        Anatomizer(l=2, sensitive="ill").fit_transform(people)
    dropped = Anatomizer(l=2, sensitive="ill", identifiers=["name"]).fit_transform(people)
    assert dropped.identifying_columns == ("age",)
    kept = Anatomizer(l=2, sensitive="ill", keep=["name"]).fit_transform(people)
    assert sorted(kept.identifying["name"]) == sorted(people["name"])


# -- several sensitive tables ------------------------------------------------------------------------------------


def ill_people(n=1200, seed=0):
    random = np.random.default_rng(seed)
    ill = random.integers(0, 6, n)
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "ill": ill,
            "drug": np.where(random.random(n) < 0.7, ill, random.integers(0, 6, n)),
            "wage": random.integers(0, 9, n),
        }
    )


def test_every_sensitive_column_has_a_table_unless_it_is_asked_to_share_one():
    secret = ["ill", "drug", "wage"]
    apart, shared, some = (
        Anatomizer(3, sensitive=secret, joint=joint, random_state=0).fit_transform(ill_people())
        for joint in (False, True, [["drug", "ill"]])
    )
    assert list(apart.identifying) == ["age", "group_ill", "group_drug", "group_wage"]
    assert [list(own) for own in apart.sensitive] == [[name, f"group_{name}"] for name in secret]
    assert list(shared.identifying) == ["age", "group"]
    assert list(shared.sensitive) == [*secret, "group"]
    assert list(some.identifying) == ["age", "group_ill_drug", "group_wage"]
    assert [list(own) for own in some.sensitive] == [["ill", "drug", "group_ill_drug"], ["wage", "group_wage"]]
    assert [pair.n_groups for pair in apart.pairs] == [400] * 3
    assert apart.n_groups == 1200
    assert len(apart.join()) == 1200 * 27


def test_a_column_can_have_an_l_of_its_own():
    frame = ill_people()
    made = Anatomizer({"ill": 4, "wage": 2}, sensitive=["ill", "wage"], random_state=0).fit_transform(frame)
    assert made.l == (4, 2)
    assert [diversity_by_hand(own, [0]) for own in made.sensitive] == [4.0, 2.0]
    joint = Anatomizer({"ill": 4, 3: 2}, sensitive=["ill", "wage"], joint=True, random_state=0).fit_transform(frame)
    assert diversity_by_hand(joint.sensitive, [0]) >= 4
    assert diversity_by_hand(joint.sensitive, [1]) >= 2


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_several_tables_come_back_from_files(tmp_path, format):
    made = Anatomizer({"ill": 3, "drug": 2}, sensitive=["ill", "drug"], random_state=0).fit_transform(ill_people())
    made.save(tmp_path / "shared", format=format)
    names = {path.name for path in (tmp_path / "shared").iterdir()}
    assert names == {"manifest.json", *(f"{name}.{format}" for name in ("identifying", "sensitive-1", "sensitive-2"))}
    loaded = AnatomizedTable.load(tmp_path / "shared")
    assert (loaded.l, loaded.group, loaded.n_groups) == (made.l, made.group, made.n_groups)
    for one, other in zip(loaded.sensitive_tables, made.sensitive_tables, strict=True):
        assert rows_of(one) == rows_of(other)


def test_files_of_several_tables_that_were_changed_are_not_loaded(tmp_path):
    made = Anatomizer(3, sensitive=["ill", "drug"], random_state=0).fit_transform(ill_people())
    made.save(tmp_path / "shared", format="csv")
    path = tmp_path / "shared" / "sensitive-2.csv"
    path.write_text(re.sub(r"^[345],", "0,", path.read_text(), flags=re.MULTILINE))
    with pytest.raises(GuaranteeError, match="l = 3 does not hold: a group has a value of 'drug'"):
        AnatomizedTable.load(tmp_path / "shared")
    manifest = json.loads((tmp_path / "shared" / "manifest.json").read_text())
    (tmp_path / "shared" / "manifest.json").write_text(json.dumps({**manifest, "l": [3, 3, 3]}))
    with pytest.raises(InputError, match="3 values of l for 2 sensitive columns"):
        AnatomizedTable.load(tmp_path / "shared")
    del manifest["files"]["sensitive-2"]
    (tmp_path / "shared" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"part files\.sensitive-2 is absent"):
        AnatomizedTable.load(tmp_path / "shared")


@pytest.mark.filterwarnings("ignore:'.*' follows from:sfumato.PrivacyWarning")
def test_neither_the_order_of_rows_nor_the_numbers_of_groups_connect_the_sensitive_tables():
    # The columns are equal, so any connection of the two tables beyond chance would show as equal values side by side.
    frame = ill_people(6000).assign(drug=lambda f: f["ill"])
    made, rows = Anatomizer(3, sensitive=["ill", "drug"], random_state=0).fit_transform_with_rows(frame)
    one, two = made.sensitive
    same_place = (one["ill"].to_numpy() == two["drug"].to_numpy()).mean()
    assert abs(same_place - 1 / 6) < 0.03  # 6,000 rows: standard error 0.005
    by_group = [own.sort_values(own.columns[-1], kind="stable").iloc[:, 0].to_numpy() for own in (one, two)]
    assert abs((by_group[0] == by_group[1]).mean() - 1 / 6) < 0.03
    numbers = made.identifying[["group_ill", "group_drug"]].to_numpy()
    assert abs(np.corrcoef(numbers.T)[0, 1]) < 0.08  # standard error 0.013
    # Nor do members of a group of one table meet again in the other more often than by chance: 6,000 pairs of
    # partners, each with a chance of 2 in 6,000 / 1/6 of the records to be partners again.
    partners = [set(map(tuple, _pairs_of(column))) for column in numbers.T]
    assert len(partners[0] & partners[1]) < 40
    assert rows.tolist() != sorted(rows.tolist())


def _pairs_of(group):
    order = np.argsort(group, kind="stable").reshape(-1, 3)
    return [sorted(pair) for row in order.tolist() for pair in ((row[0], row[1]), (row[0], row[2]), (row[1], row[2]))]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"joint": "ill"}, "joint is str: expected True, False, or a list of lists"),
        ({"joint": ["ill", "drug"]}, "joint is list: expected True, False, or a list of lists"),
        ({"joint": [["ill", "age"]]}, "joint names 'age': expected sensitive columns only"),
        ({"joint": [["ill", "drug"], ["drug", "wage"]]}, "joint names a column twice"),
        ({"l": {"ill": 2, "drug": 2}}, "the column 'wage' has no entry in l"),
        ({"l": {"ill": 2, "drug": 2, "wage": 2, "age": 2}}, "the column 'age' is not sensitive but has an entry in l"),
        ({"l": {"ill": 2, "drug": 2, "wage": 1}}, "l=1: expected an integer of at least 2. That of 'wage'"),
    ],
)
def test_settings_of_several_tables_are_checked(settings, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        Anatomizer(sensitive=["ill", "drug", "wage"], **settings).fit(ill_people())


def test_a_group_name_that_is_taken_is_refused():
    frame = ill_people().rename(columns={"age": "group_ill"})
    with pytest.raises(InputError, match="has a column 'group_ill' already"):
        Anatomizer(sensitive=["ill", "drug"]).fit(frame)


def test_different_l_are_named_in_a_refusal():
    frame = ill_people().assign(wage=lambda f: np.where(f["age"] < 70, 0, f["wage"]))
    with pytest.raises(GuaranteeError, match=r"the largest l that works is 1|a value has more than half"):
        Anatomizer({"ill": 2, "wage": 3}, sensitive=["ill", "wage"]).fit(frame)
