# SPDX-License-Identifier: Apache-2.0
"""Words and number formats of the studio, one file per language in ``texts/``."""

from __future__ import annotations

import re
import tomllib
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "de")
_NUMBER = re.compile(r"\d{1,3}(,\d{3})*(\.\d+)?%?")
_COUNT, _COUNTS = r"[\d,.%-]+", ("n", "m", "k", "now")  # gaps of these names are numbers
_GAP = re.compile(r"\{(\w+)\}")
# A name of a column may look like a sentence of sentences.
_LONGEST_SENTENCE, _DEEPEST = 2_000, 4


class Words:
    """The texts of one language.

    Parameters
    ----------
    language : {"en", "de"}

    Examples
    --------
    >>> words = Words("de")
    >>> words.number(48842), words.percent(0.605)
    ('48.842', '60,5\\xa0%')
    """

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else LANGUAGES[0]
        self._texts = _texts(self.language)
        form = self._texts["format"]
        self._thousands, self._decimal, self._percent = form["thousands"], form["decimal"], form["percent"]

    def __call__(self, key: str, **values: Any) -> str:
        """Return a text, with numbers in the form of the language.

        A text with ``.one`` beside it is for several; that one is for ``n = 1``.
        """
        section, _, name = key.partition(".")
        own = self._texts[section]
        text: str = own[f"{name}_one"] if values.get("n") == 1 and f"{name}_one" in own else own[name]
        shown = {part: self.number(value) if isinstance(value, int) else value for part, value in values.items()}
        return text.format(**shown)

    def library(self, sentence: str) -> str:
        """Return a sentence of the library in the language, or in English and marked as such.

        Examples
        --------
        >>> Words("de").library("together with one other column it singles out 2.5% of the records")
        'zusammen mit einer anderen Spalte hebt sie 2,5\xa0% der Datensätze heraus'
        """
        found = self._translated(sentence)
        if found is not None or self.language == LANGUAGES[0]:
            return found or sentence
        from markupsafe import Markup

        marked: str = Markup('<span lang="en">{}</span>').format(sentence)
        return marked

    def _translated(self, sentence: str, depth: int = 0) -> str | None:
        """Return a sentence of the library in the language; parts that are sentences or numbers, too."""
        if len(sentence) > _LONGEST_SENTENCE or depth > _DEEPEST:
            return None
        for pattern, text in _sentences(self.language):
            if (found := pattern.fullmatch(sentence)) is not None:
                return text.format(**{name: self._part(part, depth + 1) for name, part in found.groupdict().items()})
        return None

    def _part(self, text: str, depth: int) -> str:
        if _NUMBER.fullmatch(text) is None:
            return "; ".join(self._translated(part, depth) or part for part in text.split("; "))
        number = text.rstrip("%").replace(",", "\0").replace(".", self._decimal).replace("\0", self._thousands)
        return number + (self._percent if text.endswith("%") else "")

    def has(self, key: str) -> bool:
        """Return True if there is such a text."""
        section, _, name = key.partition(".")
        return name in self._texts.get(section, {})

    def number(self, value: float, digits: int = 0) -> str:
        """Return a number with separators, and a minus that is one."""
        text = f"{value:,.{digits}f}".replace(",", "\0").replace(".", self._decimal).replace("\0", self._thousands)
        return text.replace("-", "\u2212")

    def plain(self, value: float) -> str:
        """Return a setting with the digits that it has."""
        return self.number(value, len(f"{value:g}".partition(".")[2]))

    def percent(self, share: float, digits: int = 1) -> str:
        """Return a share in percent."""
        return f"{self.number(100 * share, digits)}{self._percent}"

    def points(self, change: float) -> str:
        """Return a difference of two shares in percentage points, with its sign."""
        return ("+" if change > 0 else "") + self.number(100 * change, 1)

    def size(self, n_bytes: int) -> str:
        """Return the size of a file."""
        if n_bytes < 1000:
            return f"{n_bytes} B"
        return f"{self.number(n_bytes / 1e6, 1)} MB" if n_bytes >= 1e5 else f"{self.number(n_bytes / 1e3, 1)} kB"

    def time(self, moment: str) -> str:
        """Return the time of day of a moment in ISO's form, and the date if that is not today."""
        then = datetime.fromisoformat(moment).astimezone()
        is_today = then.date() == datetime.now().astimezone().date()
        return then.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M")


@cache
def _texts(language: str) -> dict[str, dict[str, str]]:
    text = files("sfumato.studio").joinpath("texts", f"{language}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _sentences(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the sentences of the library that are translated, as patterns with gaps."""
    found = []
    for english, own in _texts(language).get("library", {}).items():
        parts = _GAP.split(english)  # text and names of gaps in turn
        gaps = [f"(?P<{part}>{_COUNT if part in _COUNTS else '.+?'})" for part in parts[1::2]]
        pattern = "".join(re.escape(text) + gap for text, gap in zip(parts[::2], [*gaps, ""], strict=True))
        found.append((re.compile(pattern, re.DOTALL), own))  # a name of a column may have lines
    return found


def preferred(accepted: str) -> str:
    """Return the first language of an Accept-Language header that there is."""
    for part in accepted.split(","):
        name = part.split(";")[0].strip()[:2].lower()
        if name in LANGUAGES:
            return name
    return LANGUAGES[0]
