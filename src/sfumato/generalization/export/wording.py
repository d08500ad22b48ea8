# SPDX-License-Identifier: Apache-2.0
"""What a person reads in place of names, codes and labels; the form and its preview share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from sfumato.errors import ParameterError, named
from sfumato.generalization.attributes import Attribute, CategoryAttribute
from sfumato.generalization.export.texts import Language, Reason, Texts, texts_of
from sfumato.generalization.naming import moment_labels, number_labels, printable
from sfumato.labels import with_missing

MOST_CHOICES = 8  # more buckets than this are a list to open, and more values of a bucket are counted
_LONGEST_REMARK = 48


@dataclass(frozen=True)
class Choice:
    """One answer: the label that is sent, what a person reads, and a remark beside it."""

    label: str
    shown: str
    remark: str = ""


@dataclass(frozen=True)
class Wording:
    """The words of a page.

    Attributes
    ----------
    texts : Texts
    titles : mapping of str to str
        What the questions are called, by attribute.
    labels : mapping of str to mapping of str to str
        Words for values of categories, by attribute and value.
    reasons : mapping of str to Reason
    """

    texts: Texts
    titles: Mapping[str, str]
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: Mapping[str, Reason] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        attributes: Sequence[Attribute],
        language: Language,
        titles: Mapping[str, str] | None,
        labels: Mapping[str, Mapping[Any, str]] | None,
        reasons: Mapping[str, Reason] | None,
    ) -> Wording:
        """Return the words; raise ParameterError for those of no attribute, and for what is not text."""
        own = {attribute.name: attribute for attribute in attributes}
        for setting, given in (("titles", titles), ("labels", labels), ("reasons", reasons)):
            for name in given or {}:
                if name not in own:
                    raise ParameterError(
                        f"{setting} names {name!r}, which is not an attribute of the generalization: expected some of "
                        f"its {len(own)} attributes. Correct the name, or take it out."
                    )
        for name, words in (titles or {}).items():
            if not isinstance(words, str) or not words.strip():
                raise ParameterError(
                    f"titles has no text for {name!r}: expected what its question is called, such as 'Year of birth'."
                )
        told = {name: _checked_labels(own[name], words) for name, words in (labels or {}).items()}
        titled = {name: (titles or {}).get(name, name) for name in own}
        return cls(texts_of(language), titled, told, dict(reasons or {}))

    def title(self, attribute: Attribute) -> str:
        """Return what the question of an attribute is called."""
        return self.titles[attribute.name]

    def reason(self, attribute: Attribute) -> str | None:
        """Return why an attribute is asked, or why it is not; None if that is not known."""
        own = self.reasons.get(attribute.name)
        return None if own is None else self.texts.reason(own)

    def choices(self, attribute: Attribute) -> list[Choice]:
        """Return a choice for every bucket, then those for what is not listed and for no answer, where they share one.

        The first choices are the buckets, in their order.
        """
        shown = self.shown(attribute)
        choices = [Choice(label, words) for label, words in zip(attribute.labels, shown, strict=True)]
        if isinstance(attribute, CategoryAttribute) and attribute.has_rare and attribute.members[attribute.unseen]:
            choices.append(self._shared(attribute, attribute.unseen, self.texts.something_else, shown))
        if not attribute.has_missing_bucket:
            choices.append(self._shared(attribute, attribute.missing, self.texts.rather_not_say, shown))
        return choices

    def _shared(self, attribute: Attribute, bucket: int, words: str, shown: Sequence[str]) -> Choice:
        """Return a choice that shares the bucket of others, and says so."""
        other = shown[bucket]
        if len(other) > _LONGEST_REMARK:
            start = other[: _LONGEST_REMARK - 1]
            whole, comma, _ = start.rpartition("; " if "; " in start else ", ")
            other = (whole + comma if comma else start.rstrip()) + "…"
        return Choice(attribute.labels[bucket], words, self.texts.counts_as.format(other))

    def shown(self, attribute: Attribute) -> list[str]:
        """Return what stands beside each bucket: the label, in a person's words where they differ."""
        if isinstance(attribute, CategoryAttribute):
            shown = self._shown_categories(attribute)
        else:
            phrases = self.texts.phrases
            if attribute.moment is not None:
                shown = moment_labels(attribute.cuts, attribute.moment, is_zoned=attribute.is_zoned, phrases=phrases)
            else:
                shown = number_labels(attribute.cuts, is_whole=attribute.is_whole, phrases=phrases)
            if attribute.has_missing_bucket:
                shown.append(self.texts.rather_not_say)
        return shown

    def _shown_categories(self, attribute: CategoryAttribute) -> list[str]:
        shown = list(attribute.labels)
        if attribute.saw_missing and not attribute.has_missing_bucket:  # no answer is a choice of its own
            shown[attribute.missing] = shown[attribute.missing].removesuffix(with_missing(""))
        for bucket, members in enumerate(attribute.members):
            words = [self._word(attribute, member) for member in members]
            if len(words) > MOST_CHOICES:
                rest = self.texts.others.format(len(words) - MOST_CHOICES + 1)
                words = [*words[: MOST_CHOICES - 1], rest]
            if not words:
                shown[bucket] = self.texts.something_else
            elif all(word.strip() for word in words):
                # Values that have commas themselves would run into each other.
                comma = "; " if any("," in word for word in words) else ", "
                joined = f" {self.texts.and_or} " if words[1:] else ""
                shown[bucket] = comma.join(words[:-1]) + joined + words[-1]
        if attribute.has_missing_bucket:
            shown[-1] = self.texts.rather_not_say
        return shown

    def _word(self, attribute: CategoryAttribute, member: Any) -> str:
        own = self.labels.get(attribute.name, {})
        if str(member) in own:
            return own[str(member)]
        if isinstance(member, bool):
            return self.texts.yes if member else self.texts.no
        return str(member)


def _checked_labels(attribute: Attribute, words: Any) -> dict[str, str]:
    """Return words for values by the text of the value; raise ParameterError if they are not text."""
    if not isinstance(attribute, CategoryAttribute) or not isinstance(words, Mapping):
        raise ParameterError(
            f"{named('labels')} of {attribute.name!r}: expected a dict of categories and words, for an attribute of "
            "categories. Numbers and dates speak for themselves."
        )
    if not all(isinstance(word, str) and word.strip() for word in words.values()):
        raise ParameterError(f"{named('labels')} of {attribute.name!r} has a value without text: expected words.")
    return {str(value): word for value, word in words.items()}


def html_text(text: str) -> str:
    """Return text for a page, invisible characters escaped."""
    return escape(printable(text))
