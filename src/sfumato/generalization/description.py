# SPDX-License-Identifier: Apache-2.0
"""Describe a generalization: a table and one plain sentence per attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.generalization.attributes import Attribute, CategoryAttribute

_MOST_LABELS = 6  # labels that a sentence lists
_LONGEST_LABEL = 60


@dataclass(frozen=True)
class DescribedAttribute:
    """One row of the table.

    Attributes
    ----------
    attribute : str
    before, after : int
        Number of distinct values (or fine bins of values), and of buckets.
    sentence : str
    """

    attribute: str
    before: int
    after: int
    sentence: str


@dataclass(frozen=True)
class Description:
    """A table with a row per attribute; prints as text, shows as HTML in notebooks."""

    rows: tuple[DescribedAttribute, ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as plain dicts."""
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        """Return the table as text: counts first, then the sentences."""
        width = max([len("attribute"), *(len(row.attribute) for row in self.rows)])
        lines = [f"{'attribute':<{width}}  before  after"]
        lines += [f"{row.attribute:<{width}}  {row.before:>6,}  {row.after:>5,}" for row in self.rows]
        return "\n".join([*lines, "", *(row.sentence for row in self.rows)])

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th scope='row'>{escape(r.attribute)}</th><td>{r.before:,}</td><td>{r.after:,}</td>"
            f"<td style='text-align:left'>{escape(r.sentence)}</td></tr>"
            for r in self.rows
        )
        head = "<tr><th>attribute</th><th>before</th><th>after</th><th></th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def describe_attributes(attributes: Sequence[Attribute]) -> Description:
    """Describe attributes one by one."""
    return Description(
        tuple(DescribedAttribute(a.name, a.n_before, a.n_buckets, describe_attribute(a)) for a in attributes)
    )


def describe_attribute(attribute: Attribute) -> str:
    """Describe in words how an attribute is collected, and the buckets of missing and unseen values."""
    name = attribute.name
    before = f"{attribute.n_before:,} {_values(attribute)}"
    if not attribute.is_collected:
        return f"{name} is not collected; it had {before}."
    if attribute.n_buckets == attribute.n_before:
        start = f"{name} keeps all of its {before}"
    else:
        start = f"{name} is asked in {attribute.n_buckets:,} buckets instead of {before}"
    labels = attribute.labels[: attribute.n_value_buckets]
    listed = [_short(label) for label in labels[:_MOST_LABELS]]
    listed += [f"and {len(labels) - _MOST_LABELS} more"] if len(labels) > _MOST_LABELS else []
    return f"{start}: {'; '.join(listed)}. {' '.join(_places(attribute))}"


def _places(attribute: Attribute) -> list[str]:
    if attribute.has_missing_bucket:
        sentences = ["Missing values have a bucket of their own."]
    else:
        seen = "" if attribute.saw_missing else ", though none was missing,"
        sentences = [f'Missing values{seen} count as "{_short(attribute.labels[attribute.missing])}".']
    if isinstance(attribute, CategoryAttribute):
        sentences.append(f'Values not listed count as "{_short(attribute.labels[attribute.unseen])}".')
    return sentences


def _values(attribute: Attribute) -> str:
    word = "categories" if isinstance(attribute, CategoryAttribute) else "values"
    if attribute.n_before == 1:
        word = "category" if isinstance(attribute, CategoryAttribute) else "value"
    return f"{word}, missing included" if attribute.saw_missing else word


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 3] + "..."
