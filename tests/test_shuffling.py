# SPDX-License-Identifier: Apache-2.0
"""The order of a release says nothing about the order of the people it came from."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import MondrianAnonymizer
from sfumato.anonymize import FullDomainAnonymizer
from sfumato.errors import ParameterError, PrivacyWarning
from sfumato.frames.shuffling import in_order, random_order

N_PEOPLE = 400


def people() -> pd.DataFrame:
    random = np.random.default_rng(3)
    town = random.choice(["Rome", "Bern", "Oslo"], N_PEOPLE)
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, N_PEOPLE),
            "town": pd.Categorical(town, categories=["Rome", "Bern", "Oslo"]),
            "wage": np.arange(N_PEOPLE) // 2,  # sorted, and shared by two
        },
        index=pd.Index([f"p{place}" for place in range(N_PEOPLE)], name="person"),
    ).reset_index(drop=True)


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "numpy": lambda frame: frame[["age", "wage"]].to_numpy(),
}


def anonymizer(kind: str) -> MondrianAnonymizer:
    return MondrianAnonymizer(k=5, quasi_identifiers=[0] if kind == "numpy" else ["age"])


def as_rows(table: object) -> list[tuple[object, ...]]:
    if isinstance(table, np.ndarray):
        return [tuple(row) for row in table.tolist()]
    if isinstance(table, pa.Table):
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    rows = table.rows() if isinstance(table, pl.DataFrame) else table.itertuples(index=False, name=None)
    return [tuple(row) for row in rows]


def test_every_order_of_four_records_is_drawn_equally_often():
    drawn = Counter(tuple(random_order(4).tolist()) for _ in range(4_800))
    assert set(drawn) == set(itertools.permutations(range(4)))
    expected = 4_800 / 24
    assert sum((count - expected) ** 2 / expected for count in drawn.values()) < 55  # chi-squared, 23 degrees, p < 1e-4


def test_an_order_of_many_records_has_every_record_once():
    order = random_order(100_003)
    assert np.array_equal(np.sort(order), np.arange(100_003))
    assert abs(np.corrcoef(order, np.arange(100_003))[0, 1]) < 0.02


def test_a_seed_that_was_set_before_does_not_decide_the_order():
    drawn = []
    for _ in range(2):
        np.random.seed(0)
        drawn.append(random_order(50).tolist())
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_shuffled_release_has_the_same_rows_in_another_order(kind):
    frame = FRAMES[kind](people())
    fitted = anonymizer(kind).fit(frame)
    kept, shuffled = (as_rows(fitted.release(frame, shuffle=choice).table) for choice in (False, True))
    assert kept != shuffled
    assert Counter(kept) == Counter(shuffled)


def test_full_domain_releases_are_shuffled_too():
    frame = people()[["age", "wage"]]
    fitted = FullDomainAnonymizer(k=5, quasi_identifiers=["age"]).fit(frame)
    kept, shuffled = (fitted.release(frame, shuffle=choice).table for choice in (False, True))
    assert kept["wage"].tolist() == sorted(kept["wage"])
    assert shuffled["wage"].tolist() != sorted(shuffled["wage"])


def test_the_index_of_a_shuffled_frame_does_not_tell_the_old_order():
    frame = people()
    assert list(anonymizer("pandas").fit(frame).release(frame, shuffle=True).table.index) == list(range(N_PEOPLE))


def test_the_categories_of_a_shuffled_frame_do_not_tell_which_came_first():
    values = pa.array(["zinc", "lead", "zinc", "iron"]).dictionary_encode()
    assert in_order(pa.table({"metal": values}), np.array([3, 2, 1, 0])).column("metal").chunk(
        0
    ).dictionary.to_pylist() == ["iron", "lead", "zinc"]


def test_a_release_in_the_order_of_the_input_warns_with_the_line_that_shuffles():
    frame = people()
    fitted = anonymizer("pandas").fit(frame)
    with pytest.warns(PrivacyWarning, match=r"release\(\.\.\., shuffle=True\)") as caught:
        fitted.release(frame)
    assert caught[0].filename == __file__


def test_somebody_who_chose_the_order_is_not_warned(recwarn):
    frame = people()
    fitted = anonymizer("pandas").fit(frame)
    fitted.release(frame, shuffle=False)
    fitted.release(frame, shuffle=True)
    assert not [warning for warning in recwarn if issubclass(warning.category, PrivacyWarning)]


def test_a_word_for_shuffle_is_refused():
    frame = people()
    with pytest.raises(ParameterError, match="shuffle='yes': expected True, False or None"):
        anonymizer("pandas").fit(frame).release(frame, shuffle="yes")
