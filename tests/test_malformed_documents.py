# SPDX-License-Identifier: Apache-2.0
"""Documents that somebody changed: they are refused with an InputError, or they work; nothing else may happen."""

import contextlib
import copy
import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sfumato import Anatomizer, Generalization, ModelGuidedAnonymizer, Partition, PrivacyAwareTree
from sfumato.anatomize import AnatomizedTable
from sfumato.anonymize import Publication
from sfumato.cli.application import application
from sfumato.errors import SfumatoError
from sfumato.generalization.document import fingerprint_of
from sfumato.policy import Policy
from strategies import in_examples

DEEP = "[" * 100_000 + "]" * 100_000
#: What may stand where something else should.
STRANGE = (
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, 10**30, -(2**63) - 1, 0.5, -0.0, 1e308, 1e-320, "", "a", "1",
    "left", "category", "not a number", "９", "1e5", [], [1], ["a"], [[]], {}, {"a": 1}, {"name": "a"}, [{}], [None],
    [{"a": {}}],
)  # fmt: skip


def places_in(document, path=()):
    """List the places of a document: keys and positions, from the outside to the inside."""
    found = [path] if path else []
    entries = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in entries:
        found += places_in(value, (*path, key))
    return found


def mutated(document, generator):
    """Change a document in one to three places: put something strange there, take it away, or copy a neighbor."""
    changed = copy.deepcopy(document)
    for _ in range(generator.integers(1, 4)):
        places = places_in(changed)
        *path, last = places[generator.integers(len(places))]
        holder = changed
        for key in path:
            holder = holder[key]
        how = generator.random()
        if how < 0.6:
            holder[last] = copy.deepcopy(STRANGE[generator.integers(len(STRANGE))])
        elif how < 0.8:
            del holder[last]
        elif isinstance(holder, list):
            holder.insert(last, copy.deepcopy(holder[generator.integers(len(holder))]))
        else:
            holder[last] = copy.deepcopy(holder[list(holder)[generator.integers(len(holder))]])
    return changed


def people(n=80):
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": generator.integers(18, 90, n),
            "rate": generator.normal(size=n).round(3),
            "job": generator.choice(["nurse", "smith", "clerk", None], n),
            "code": generator.choice([1, 2, 3], n),
            "born": pd.Timestamp("1970-01-01") + pd.to_timedelta(generator.integers(0, 10_000, n), "D"),
        }
    )


@pytest.fixture(scope="module", params=["range", "median"])
def partition(request):
    frame = people()
    anonymizer = ModelGuidedAnonymizer(5, representative=request.param, categorical_features=["code"])
    return anonymizer.fit(frame, frame["age"] > 50).partition_.to_dict()


@pytest.fixture(scope="module")
def generalization():
    frame = people()
    tree = PrivacyAwareTree(0.0, min_samples_leaf=2, floor=2, categorical_features=["code"])
    return tree.fit(frame, (frame["age"] > 50) ^ (frame["job"] == "nurse")).generalization_.to_dict()


seeds = st.integers(0, 2**32)
campaign = settings(in_examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(seeds)
@campaign
def test_a_mutated_partition_is_refused_or_works(partition, seed):
    document = mutated(partition, np.random.default_rng(seed))
    with contextlib.suppress(SfumatoError):
        loaded = Partition.from_dict(json.loads(json.dumps(document)))
        loaded.transform(people(9))
        loaded.to_dict()


@given(seeds)
@campaign
def test_a_mutated_generalization_is_refused_or_works(generalization, seed):
    document = mutated(generalization, np.random.default_rng(seed))
    if isinstance(document.get("attributes"), list):
        document["fingerprint"] = fingerprint_of(document["attributes"])  # as somebody would who wants it to be read
    with contextlib.suppress(SfumatoError):
        loaded = Generalization.from_json(json.dumps(document))
        for output in ("codes", "labels", "representatives"):
            loaded.transform(people(9), output)
        loaded.to_form()
        loaded.to_javascript()
        loaded.to_sql()
        loaded.to_json_schema()
        loaded.to_polars()
        str(loaded.describe())


@given(seeds)
@campaign
def test_a_mutated_publication_is_refused_or_works(seed):
    document = {
        "format": "sfumato-publication", "version": 1, "k": 5, "partition": "p", "groups": [0, 0, 1, -1],
        "records": [3, 3, 5, 0], "persons": {"secret": "YWJj", "digests": "YWJj" * 32, "groups": [0, 1, 1]},
    }  # fmt: skip
    with contextlib.suppress(SfumatoError):
        loaded = Publication.from_dict(mutated(document, np.random.default_rng(seed)))
        loaded.with_later(loaded)


@pytest.fixture(scope="module", params=["csv", "parquet"])
def anatomy(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("anatomy") / request.param
    table = pa.Table.from_pandas(people().drop(columns="rate").dropna(), preserve_index=False)
    Anatomizer(2, sensitive=["job"], random_state=0).fit_transform(table).save(folder, format=request.param)
    return folder


@given(seeds)
@campaign
def test_a_mutated_anatomy_is_refused_or_works(anatomy, tmp_path, seed):
    manifest = json.loads((anatomy / "manifest.json").read_text(encoding="utf-8"))
    folder = tmp_path / "changed"
    shutil.copytree(anatomy, folder, dirs_exist_ok=True)
    changed = json.dumps(mutated(manifest, np.random.default_rng(seed)))
    (folder / "manifest.json").write_text(changed, encoding="utf-8")
    with contextlib.suppress(SfumatoError):
        assert AnatomizedTable.load(folder).n_records > 0


LINES = [
    "version = 1", "[data]", 'input = "people.csv"', 'output = "release.csv"', "[columns]", 'target = "wage"',
    'quasi_identifiers = ["age", "job"]', "[columns.limits]", "age = 5", "[method]", 'name = "mondrian"', "k = 10",
    "[gate]", "max_attack_advantage = 0.1", "[titles]", 'age = "Age"',
]  # fmt: skip
WRITTEN = (
    "1", "-1", "0.5", "1e400", "nan", "inf", "true", '""', '"a"', "[]", "[1]", '["a", 1]', "[[]]", "{}", "{a = 1}",
    "2020-01-01", "2020-01-01T00:00:00Z", "12:00:00", "1" * 5000, "[" * 5000, "'''\n'''", "[{a = {b = 1}}]",
)  # fmt: skip


@given(seeds)
@campaign
def test_a_mutated_policy_is_refused_or_read(tmp_path, seed):
    generator = np.random.default_rng(seed)
    lines = list(LINES)
    for _ in range(generator.integers(1, 4)):
        at = int(generator.integers(len(lines)))
        key = lines[at].split("=")[0] if "=" in lines[at] else "columns "
        change = [
            f"{key}= {WRITTEN[generator.integers(len(WRITTEN))]}",
            "",
            lines[generator.integers(len(lines))],
            "[[x]]",
        ]
        lines[at] = change[generator.choice(4, p=[0.7, 0.1, 0.1, 0.1])]
    path = tmp_path / "policy.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    with contextlib.suppress(SfumatoError):
        Policy.read(path)


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        '{"a": ' * 100_000,
        '{"format": ' + DEEP + "}",
        "1" * 100_000,
        "NaN",
        '{"a": NaN}',
        "",
        "\x00",
        "null",
        '"x"',
    ],
    ids=["lists", "objects", "format", "digits", "nan", "nan inside", "empty", "zero", "null", "text"],
)
def test_every_command_refuses_what_is_no_document_with_exit_code_2(tmp_path, text):
    path = tmp_path / "document.json"
    path.write_text(text, encoding="utf-8")
    table = tmp_path / "people.csv"
    people().to_csv(table, index=False)
    (tmp_path / "policy.toml").write_text("a = " + text, encoding="utf-8")
    for command in (
        ["apply", path, table, "-o", tmp_path / "out.csv"],
        ["run", tmp_path / "policy.toml"],
    ):
        found = CliRunner().invoke(application, [str(part) for part in command])
        assert found.exit_code == 2, found.output
    for load in (Generalization.from_json, lambda text: Partition.load(path), lambda text: Publication.load(path)):
        with pytest.raises(SfumatoError):
            load(text)


@pytest.mark.parametrize("category", [{"a": 1}, ["a"], None, 1e999, 10**40])
def test_a_category_that_is_no_category_is_refused_when_the_document_is_read(partition, category):
    changed = copy.deepcopy(partition)
    next(column for column in changed["columns"] if column["name"] == "job")["categories"][0] = category
    with pytest.raises(SfumatoError, match=r"whose part columns\[\d\].categories\[0\] is absent or not of its kind"):
        Partition.from_dict(changed)
