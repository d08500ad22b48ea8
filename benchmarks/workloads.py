# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks run on: Adult with a model's predictions, and census-like tables of any size.

A workload is a table of quasi-identifiers with one or more guides; sfumato and a peer get the same of both.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult

SEED = 20210


@dataclass(frozen=True, eq=False)
class Workload:
    """A table whose columns are all quasi-identifiers, the labels, and guides: one class per record each."""

    name: str
    table: pd.DataFrame
    labels: np.ndarray
    guides: dict[str, np.ndarray]

    @property
    def n_records(self) -> int:
        """Number of rows."""
        return len(self.table)


def adult_workload(n_records: int | None = None) -> Workload:
    """Adult without missing values (45,222 records), twelve quasi-identifiers, and the classes models predict.

    The more a guide looks like noise, the more leaves a tree on it has: boosting predicts a smooth surface, a
    random forest nearly memorises the labels it was trained on, and the labels themselves are as rough as it gets.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    frame = load_adult(as_frame="pandas").frame.dropna().reset_index(drop=True)
    if n_records is not None:
        frame = frame.sample(n_records, random_state=SEED).reset_index(drop=True)
    table = frame[list(ADULT_QUASI_IDENTIFIERS[12])].copy()
    labels = (frame["income"] == ">50K").to_numpy().astype(np.int64)
    numbers = ordinal_matrix(table)
    boosting = HistGradientBoostingClassifier(random_state=SEED).fit(numbers, labels)
    forest = RandomForestClassifier(random_state=SEED).fit(numbers, labels)
    guides = {
        "gradient boosting": boosting.predict(numbers),
        "random forest": forest.predict(numbers),
        "true labels": labels,
    }
    return Workload("Adult", table, labels, guides)


def as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with categories as plain text, as a CSV reader would have it."""
    categories = [name for name in table.columns if isinstance(table[name].dtype, pd.CategoricalDtype)]
    return table.astype(dict.fromkeys(categories, "str"))


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
