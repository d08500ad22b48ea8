# SPDX-License-Identifier: Apache-2.0
"""The document: plain JSON that says nothing about single persons, and is refused when it was changed."""

import copy
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from sfumato.backends.memory import MemorySource
from sfumato.errors import InputError
from sfumato.frames import read_table
from sfumato.generalization import Generalization, generalization_from_bins
from sfumato.generalization.building import safe_shares
from strategies import in_examples

from .cases import cases


@pytest.fixture(scope="module")
def people():
    generator = np.random.default_rng(5)
    n = 400
    ages = np.append(generator.integers(18, 80, n - 2), [7, 117])
    incomes = generator.normal(30_000, 9_000, n).round(2)
    jobs = generator.choice(["nurse", "teacher", "smith"], n, p=[0.61, 0.38, 0.01])
    return pa.table({"age": ages, "income": incomes, "job": jobs})


@pytest.fixture(scope="module")
def made(people):
    source = MemorySource(read_table(people), people.column_names)
    buckets = [np.arange(c.bins.n_bins) * 3 // c.bins.n_bins for c in source.columns]
    buckets[0][:] = 1
    buckets[0][0], buckets[0][-1] = 0, 2  # a bucket with one person at each end
    return generalization_from_bins(source.columns, buckets, minimizer="ByHand", parameters={"n": np.int64(3)}, floor=1)


def test_the_document_names_its_format_and_who_made_it(made):
    document = json.loads(made.to_json())
    assert (document["format"], document["version"]) == ("sfumato-generalization", 1)
    assert (document["minimizer"], document["parameters"]) == ("ByHand", {"n": 3})
    assert re.fullmatch("[0-9a-f]{64}", document["fingerprint"])
    first = document["attributes"][0]
    assert [bucket["at_most"] for bucket in first["buckets"]] == [10, 100, None]


def test_the_outermost_values_of_single_persons_are_not_in_the_document(people, made):
    for attribute in json.loads(made.to_json())["attributes"][:2]:
        name = attribute["name"]
        numbers = {float(number) for number in re.findall(r"\d+\.?\d*", json.dumps(attribute["buckets"]))}
        values = people.column(name).to_pylist()
        assert not {float(min(values)), float(max(values))} & numbers


def test_no_exact_value_of_a_single_person_stands_for_a_bucket(people, made):
    incomes = set(people.column("income").to_pylist())
    assert not {bucket.representative for bucket in made.attribute("income").buckets} & incomes


def test_rare_categories_of_what_is_not_collected_are_not_in_the_document():
    frame = pa.table({"job": ["nurse"] * 30 + ["cook"] * 20 + ["astronaut"], "code": [3] * 30 + [4] * 20 + [777]})
    columns = MemorySource(read_table(frame, categorical=["code"]), ["job", "code"]).columns
    kept = generalization_from_bins(columns, [np.arange(3), np.arange(3)], floor=1)
    dropped = generalization_from_bins(columns, [np.zeros(3, int), np.zeros(3, int)], floor=1)
    joined = kept.coarsened({"job": [0, 0, 0], "code": [0, 0, 0]})
    assert "astronaut" in kept.to_json() and "777" in kept.to_json()
    for generalization in (dropped, joined):
        text = generalization.to_json()
        again = Generalization.from_json(text)
        assert again == generalization
        assert not any(rare in text for rare in ("astronaut", "cook", "777"))
        assert generalization.describe().rows[0].before == 3
        for output in ("codes", "labels", "representatives"):
            assert len(again.transform(frame, output).column("job").unique()) == 1
        assert again.transform(frame, "representatives").to_pydict() == {"job": ["nurse"] * 51, "code": [3] * 51}


def test_shares_of_few_records_are_not_told(made):
    assert [bucket.share for bucket in made.attribute("age").buckets] == [None, None, None]
    shares = [bucket.share for bucket in made.attribute("job").buckets]
    assert shares.count(None) == 2  # the small bucket, and one more that hides it


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ([50, 50], [0.5, 0.5]),
        ([50, 49, 1], [0.5, None, None]),
        ([30, 30, 30, 9, 1], [0.3, 0.3, 0.3, None, None]),
        ([3], [None]),
        ([40, 0], [1.0, 0.0]),
    ],
)
def test_a_hidden_share_cannot_be_worked_out_from_the_others(sizes, shares):
    assert safe_shares(np.array(sizes)) == shares


@given(cases())
@in_examples()
def test_the_document_is_plain_json(case):
    text = case.generalization.to_json()

    def refuse(constant):
        raise AssertionError(constant)

    document = json.loads(text, parse_constant=refuse)
    numbers = [bucket.get("at_most") for a in document["attributes"] for bucket in a["buckets"]]
    assert all(abs(number) <= 2**53 for number in numbers if isinstance(number, int))


def changed(document, *path, to):
    copied = copy.deepcopy(document)
    at = copied
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return json.dumps(copied)


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (("format",), "something-else", "format 'something-else'"),
        (("version",), 2, "version 2"),
        (("fingerprint",), "0" * 64, "do not match its fingerprint"),
        (("attributes", 0, "buckets", 0, "at_most"), 11, "do not match its fingerprint"),
        (("attributes", 0, "buckets", 0, "at_most"), 500, "thresholds that do not rise"),
        (("attributes", 0, "missing"), 7, "no bucket for missing values"),
        (("attributes", 2, "unseen"), 7, "no bucket for unseen values"),
        (("attributes", 2, "buckets", 0, "categories"), ["nurse"] * 2, "absent or not of"),
        (("attributes", 2, "buckets", 0, "categories"), ["teacher"], "a category in two buckets"),
        (("attributes", 0, "buckets"), None, "absent or not of"),
        (("attributes", 1, "name"), "age", "names an attribute twice"),
        (("attributes",), {}, "part attributes is absent"),
    ],
)
def test_a_changed_document_is_refused(made, path, to, message):
    with pytest.raises(InputError, match=message):
        Generalization.from_json(changed(made.to_dict(), *path, to=to))


@pytest.mark.parametrize("text", ["", "[1]", "{", b"\xff"])
def test_what_is_no_document_is_refused(text):
    with pytest.raises(InputError, match=r"expected what Generalization\.to_json wrote"):
        Generalization.from_json(text)


def test_equal_buckets_have_equal_fingerprints_whoever_made_them(made):
    again = Generalization(made.attributes, "Another", {"n": 4})
    assert again.fingerprint == made.fingerprint
    assert made.coarsened({"job": [0, 0, 1]}).fingerprint != made.fingerprint


def test_the_description_counts_before_and_after_and_has_a_sentence_each(made):
    described = made.describe()
    assert [(row.attribute, row.before, row.after) for row in described.rows] == [
        ("age", 64, 3),
        ("income", 255, 3),
        ("job", 3, 3),
    ]
    text = str(described)
    assert text.splitlines()[0].split() == ["attribute", "before", "after"]
    assert "age is asked in 3 buckets instead of 64 values: 10 and under; 11-100; 101 and over." in text
    assert "job keeps all of its 3 categories: nurse; smith; teacher." in text
    nothing = made.coarsened({"income": [0, 0, 0]})
    assert "income is not collected; it had 255 values." in str(nothing.describe())
    assert described.to_dicts()[0]["attribute"] == "age"
    assert "<th scope='row'>age</th><td>64</td><td>3</td>" in described._repr_html_()
