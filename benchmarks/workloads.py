# SPDX-License-Identifier: Apache-2.0
"""Workloads of the benchmarks: Adult with a model's predictions, and census-like tables of any size.

A workload is a table of quasi-identifiers with one or more guides; sfumato and a peer get the same of both.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult, make_census

SEED = 20210


@dataclass(frozen=True, eq=False)
class Workload:
    """A table whose columns are all quasi-identifiers, and what can guide its partition.

    Attributes
    ----------
    table : pandas.DataFrame
    guides : dict
        Guides a peer understands too: one class per record, by the guide's name.
    probabilities : ndarray of float64, shape (n, 2)
        What a model's ``predict_proba`` returns.
    """

    table: pd.DataFrame
    guides: dict[str, np.ndarray]
    probabilities: np.ndarray


def adult_workload(n_records: int | None = None) -> Workload:
    """Adult without missing values (45,222 records), twelve quasi-identifiers, and the classes models predict.

    The more a guide looks like noise, the more leaves a tree on it has: boosting predicts a smooth surface, a
    decision tree (which guides in ai-privacy-toolkit's own example on Adult) or a random forest nearly memorises the
    labels it was trained on, and the labels themselves are as rough as it gets.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    frame = load_adult(as_frame="pandas").frame.dropna().reset_index(drop=True)
    if n_records is not None:
        frame = frame.sample(n_records, random_state=SEED).reset_index(drop=True)
    table = frame[list(ADULT_QUASI_IDENTIFIERS[12])].copy()
    labels = (frame["income"] == ">50K").to_numpy().astype(np.int64)
    numbers = ordinal_matrix(table)
    boosting = HistGradientBoostingClassifier(random_state=SEED).fit(numbers, labels)
    forest = RandomForestClassifier(random_state=SEED).fit(numbers, labels)
    one_hot = one_hot_matrix(table)
    tree = DecisionTreeClassifier(random_state=SEED).fit(one_hot, labels)
    guides = {
        "decision tree": tree.predict(one_hot),
        "gradient boosting": boosting.predict(numbers),
        "random forest": forest.predict(numbers),
        "true labels": labels,
    }
    return Workload(table, guides, boosting.predict_proba(numbers))


def census_workload(n_records: int, *, coarse_occupations: bool = False) -> Workload:
    """Census-like records with twelve quasi-identifiers, guided by the best model there can be.

    The generator knows each record's true probability, so no model has to be fitted to ten million records; its
    predicted class is the likelier one. ``coarse_occupations`` rolls 320 occupations up to their 12 groups: the
    one-hot matrix a peer needs then has some 90 columns, about as many as that of Adult.
    """
    census = make_census(n_records, random_state=SEED, return_probability=True, as_frame="pandas")
    table = census.data
    if coarse_occupations:
        table = table.assign(occupation=_rolled_up(table["occupation"]))
    probabilities = np.empty((n_records, 2))
    probabilities[:, 1] = census.probability
    probabilities[:, 0] = 1 - probabilities[:, 1]
    guides = {
        "predicted classes": (probabilities[:, 1] > 0.5).astype(np.int64),
        "true labels": census.target.to_numpy().astype(np.int64),
    }
    return Workload(table, guides, probabilities)


def _rolled_up(occupation: pd.Series) -> pd.Series:
    """Replace levels such as ``trade-07`` by what stands before the number."""
    groups = [level.rsplit("-", 1)[0] for level in occupation.cat.categories]
    names = sorted(set(groups))
    # Codes of -1 are missing values: they read the last entry, which stays -1.
    code_of_level = np.array([*(names.index(group) for group in groups), -1], dtype=np.int8)
    codes = code_of_level[occupation.cat.codes.to_numpy()]
    return pd.Series(pd.Categorical.from_codes(codes, categories=names), index=occupation.index)


def as_read_from_csv(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as pandas reads it from a file of text: categories as text, numbers with 64 bits."""
    wide: dict[str, str] = {}
    for name, dtype in table.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            wide[str(name)] = "str"
        else:
            wide[str(name)] = "int64" if dtype.kind == "i" else "float64"
    return table.astype(wide)


def ordinal_matrix(table: pd.DataFrame) -> np.ndarray:
    """Return categories as their codes and numbers as they are, NaN where missing: enough for tree models."""
    columns = []
    for name in table.columns:
        column = table[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy().astype(np.float32)
            columns.append(np.where(codes < 0, np.float32("nan"), codes))
        else:
            columns.append(column.to_numpy(dtype=np.float32, na_value=np.nan))
    return np.column_stack(columns)


def one_hot_matrix(table: pd.DataFrame) -> np.ndarray:
    """Return the dense float32 matrix that scikit-learn's tree needs, one column per category.

    A missing category is a category of its own and a missing number is -1: scikit-learn's tree is quicker
    without NaN, and the comparison should not cost it that.
    """
    columns: list[np.ndarray] = []
    for name in table.columns:
        column = table[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy()
            present = np.unique(codes)
            columns.extend(codes == code for code in present)
        else:
            columns.append(column.to_numpy(dtype=np.float32, na_value=-1.0))
    matrix = np.empty((len(table), len(columns)), dtype=np.float32)
    for position, values in enumerate(columns):
        matrix[:, position] = values
    return matrix
