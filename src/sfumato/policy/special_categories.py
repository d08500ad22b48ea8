# SPDX-License-Identifier: Apache-2.0
"""Words that hint at special categories of personal data in the sense of Article 9 of the GDPR.

A hint for a person to confirm, never a decision: names of columns mislead, and a column without any of these words
may be special all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# What the article names, with words that columns about it tend to have in their names or values.
WORDS: dict[str, tuple[str, ...]] = {
    "racial or ethnic origin": (
        "race", "racial", "ethnic", "ethnicity", "skin", "caucasian", "hispanic", "latino", "white", "black",
        "asian", "amer indian eskimo", "asian pac islander", "native american", "pacific islander", "rac1p", "hisp",
    ),
    "political opinions": ("political", "politics", "party", "vote", "voted", "democrat", "republican"),
    "religious or philosophical beliefs": (
        "religion", "religious", "faith", "church", "christian", "muslim", "jewish", "hindu", "buddhist", "atheist",
    ),
    "trade union membership": ("union", "trade union", "labor union"),
    "genetic or biometric data": ("gene", "genetic", "genome", "dna", "fingerprint", "biometric", "iris scan"),
    "health": (
        "health", "disease", "diagnosis", "icd", "medication", "drug", "treatment", "hospital", "disability", "dis",
        "dear", "deye", "drem", "dphy", "dout", "ddrs", "disabled",
        "pregnant", "pregnancy", "cancer", "diabetes", "hiv", "blood", "bmi", "symptom", "patient",
    ),
    "sex life or sexual orientation": ("sexual", "orientation", "gay", "lesbian", "bisexual", "heterosexual"),
}  # fmt: skip


def special_category(name: str, values: Iterable[object] = ()) -> str | None:
    """Return the special category that a column's name or values hint at, or None.

    Parameters
    ----------
    name : str
    values : iterable
        Categories of the column; text only is looked at, and two of them must match, since one word is chance.

    Examples
    --------
    >>> special_category("patient_diagnosis")
    'health'
    >>> special_category("c7", ["White", "Black", "Other"])
    'racial or ethnic origin'
    >>> special_category("trace")
    """
    for category, words in WORDS.items():
        if any(has_word(name, word) for word in words):
            return category
    texts = [value for value in values if isinstance(value, str)]
    for category, words in WORDS.items():
        if sum(any(_plain(text) == word for word in words) for text in texts) >= 2:
            return category
    return None


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()))


def has_word(text: str, word: str) -> bool:
    """Return True if a word, or several in a row, are among those of a name."""
    return f" {word} " in f" {_plain(text)} "
