# SPDX-License-Identifier: Apache-2.0
"""Programs written for the peers run here by changing one import, and what fails there holds here."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.compat import apt, holisticai

K = 10


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    n = 300
    colour = random.integers(0, 3, n)
    frame = pd.DataFrame({
        "age": random.integers(18, 80, n),
        "wage": random.normal(3000, 500, n).round(2),
        "job": random.choice(["nurse", "smith", "clerk"], n),
        "red": (colour == 0).astype(int),
        "green": (colour == 1).astype(int),
        "blue": (colour == 2).astype(int),
        "other": random.integers(0, 4, n),
    })  # fmt: skip
    return frame.set_index(np.arange(n) * 3 + 7)


@pytest.fixture(scope="module")
def labels(table: pd.DataFrame) -> np.ndarray:
    return (table.age + table.wage / 100 > 80).astype(int).to_numpy()


def by_apt(x: Any, y: Any, *arguments: Any, names: list[str] | None = None, **settings: Any) -> Any:
    return apt.Anonymize(*arguments, **settings).anonymize(apt.ArrayDataset(x, y, features_names=names))


def by_holisticai(x: Any, y: Any, *arguments: Any, names: list[str] | None = None, **settings: Any) -> Any:
    return holisticai.Anonymize(*arguments, features_names=names, **settings).anonymize(x, y)


both = pytest.mark.parametrize("call", [by_apt, by_holisticai], ids=["apt", "holisticai"])


def smallest(rows: list[tuple[Any, ...]]) -> int:
    return min(Counter(rows).values())


@both
@pytest.mark.parametrize("only", [False, True])
def test_frames_keep_their_index_types_and_other_columns_and_k_holds(call, table, labels, only: bool):
    released = call(table, labels, K, ["age", "wage", "job"], categorical_features=["job"], train_only_QI=only)
    assert smallest(list(released[["age", "wage", "job"]].itertuples(index=False, name=None))) >= K
    pd.testing.assert_index_equal(released.index, table.index)
    assert released.dtypes.equals(table.dtypes)
    pd.testing.assert_series_equal(released["other"], table["other"])
    assert not released["age"].equals(table["age"])


@both
def test_arrays_take_positions_and_names(call, table, labels):
    array = table[["age", "wage", "other"]].to_numpy()
    by_position = call(array, labels, K, [0, 1])
    by_name = call(array, labels, K, ["age", "wage"], names=["age", "wage", "other"])
    assert isinstance(by_position, np.ndarray) and by_position.shape == array.shape
    np.testing.assert_array_equal(by_position, by_name)
    assert smallest([tuple(row) for row in by_position[:, :2]]) >= K
    np.testing.assert_array_equal(by_position[:, 2], array[:, 2])


@both
@pytest.mark.parametrize("kind", ["frame", "booleans", "array"])
def test_one_hot_slices_stay_one_hot(call, table, labels, kind: str):
    columns = ["age", "red", "green", "blue", "other"]
    as_array = kind == "array"
    x = table[columns].to_numpy() if as_array else table[columns]
    if kind == "booleans":  # what get_dummies makes
        x = x.astype(dict.fromkeys(columns[1:4], bool))
    names = [0, 1, 2, 3] if as_array else columns[:4]
    slices = [[1, 2, 3]] if as_array else [["red", "green", "blue"]]
    released = call(x, labels, K, names, quasi_identifer_slices=slices)
    if not as_array:
        assert released.dtypes.equals(x.dtypes)
    released = np.asarray(released).astype(int)
    assert released.shape == (300, 5)
    np.testing.assert_array_equal(released[:, 1:4].sum(axis=1), np.ones(300))
    assert smallest([tuple(row) for row in released[:, :4]]) >= K
    np.testing.assert_array_equal(released[:, 4], table["other"])


@both
def test_regression_is_guided_by_numbers(call, table):
    released = call(table[["age", "wage"]], table.wage.to_numpy(), K, ["age", "wage"], is_regression=True)
    assert smallest(list(released.itertuples(index=False, name=None))) >= K


@both
def test_a_second_call_gives_the_same(call, table, labels):
    for module in (apt, holisticai):
        anonymizer = module.Anonymize(K, ["age", "wage"])
        x = table[["age", "wage"]]
        arguments = (apt.ArrayDataset(x, labels),) if module is apt else (x, labels)
        pd.testing.assert_frame_equal(anonymizer.anonymize(*arguments), anonymizer.anonymize(*arguments))


@both
def test_more_than_there_is_is_refused_and_never_returned_unchanged(call, table, labels):
    with pytest.raises(ValueError, match="k=500"):
        call(table, labels, 500, ["age"])


@both
def test_wrong_settings_are_refused_as_there(call, table, labels):
    with pytest.raises(ValueError, match="2 or higher"):
        call(table, labels, 1, ["age"])
    with pytest.raises(ValueError, match="cannot be empty"):
        call(table, labels, K, [])
    with pytest.raises(ValueError, match="ages"):
        call(table, labels, K, ["ages"])
    with pytest.raises(ValueError, match=r"rows|lengths"):
        call(table, labels[:-1], K, ["age"])


def test_a_dataset_hands_out_what_it_was_given(table, labels):
    dataset = apt.ArrayDataset(table, labels)
    assert dataset.is_pandas and dataset.features_names == list(table.columns)
    np.testing.assert_array_equal(dataset.get_labels(), labels)
    assert dataset.get_samples().shape == table.shape
    assert dataset.get_predictions() is None
    with pytest.raises(ValueError, match="not the same"):
        apt.ArrayDataset(table, labels, features_names=["a"])
