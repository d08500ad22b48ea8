# SPDX-License-Identifier: Apache-2.0
"""Which columns an attacker is assumed to want, and why: found by names and values, for a person to confirm.

``sfumato minimize`` and ``sfumato sweep`` attack these columns unless others are named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.columns import Column
from sfumato.frames import Table
from sfumato.policy.special_categories import has_word, special_category

_FEW = 20  # whole numbers of so few values are likely to be codes

# Traits by which people are told apart and treated unequally, with words that columns about them tend to have in their
# names; those without vowels are variables of census files.
_TRAITS: dict[str, tuple[str, ...]] = {
    "sex or gender": ("sex", "gender", "male", "female"),
    "age": ("age", "agep", "born", "birth", "birthday", "birthdate", "birthyear", "dob", "yob"),
    "family": (
        "marital", "mar", "married", "marriage", "divorced", "widowed", "spouse", "relationship", "relp", "relshipp",
        "children", "fer", "fertility", "family",
    ),
    "origin": (
        "nationality", "national origin", "citizen", "citizenship", "cit", "nativity", "native", "native country",
        "birthplace", "pobp", "immigrant", "immigration", "migrant", "ancestry", "anc1p", "anc2p", "language", "lanx",
        "lanp", "eng",
    ),
    "health": (
        "dear", "deye", "drem", "dphy", "ddrs", "dout", "hicov", "privcov", "pubcov", "insured", "medicaid",
        "medicare", "smoker", "smoking", "alcohol", "illness", "ill", "injury", "mental",
    ),
    "military service": ("mil", "military", "veteran"),
    "criminal record": ("criminal", "conviction", "convicted", "arrest", "arrested", "felony", "offense"),
}  # fmt: skip


def find_personal(table: Table, names: Sequence[str]) -> dict[str, str]:
    """Return the columns that an attacker is assumed to want, each with the reason.

    Columns whose name or values hint at a special category of personal data or at a trait such as sex, age or origin.
    If there is none: categories, and whole numbers of few values, which are likely to be codes. If there is none of
    those either: all columns.

    Parameters
    ----------
    table : Table
    names : sequence of str
        Columns to look at.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.frames import read_table
    >>> table = read_table(pa.table({"RAC1P": [1, 9], "SEX": [1, 2], "OCCP": [10, 20]}))
    >>> find_personal(table, table.names)
    {'RAC1P': 'may tell racial or ethnic origin (special category)', 'SEX': 'may tell sex or gender'}
    """
    found = {name: reason for name in names if (reason := _trait(table.column(name))) is not None}
    if found:
        return found
    codes = {name: reason for name in names if (reason := _code(table.column(name))) is not None}
    return codes or dict.fromkeys(names, "nothing says which columns are personal, so all are")


def is_sex(name: str) -> bool:
    """Return True if a name is that of sex or gender."""
    return any(has_word(name, word) for word in _TRAITS["sex or gender"])


def _trait(column: Column) -> str | None:
    special = special_category(column.name, () if column.categories is None else column.categories)
    if special is not None:
        return f"may tell {special} (special category)"
    for trait, words in _TRAITS.items():
        if any(has_word(column.name, word) for word in words):
            return f"may tell {trait}"
    return None


def _code(column: Column) -> str | None:
    if column.kind == "category":
        return "holds categories"
    if column.kind == "moment":
        return None
    values = column.values if column.missing is None else column.values[~column.missing]
    distinct = np.unique(values[:100_000])
    if 2 <= len(distinct) <= _FEW and bool((distinct == np.floor(distinct)).all()):
        return f"has {len(distinct)} distinct whole numbers, which may be codes"
    return None
