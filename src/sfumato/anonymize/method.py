# SPDX-License-Identifier: Apache-2.0
"""A method of anonymization that users choose by name: an anonymizer, its presets and its facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class MethodFacts:
    """Facts of a method for policies, commands and the documentation.

    Attributes
    ----------
    name : str
    sentence : str
        How groups are formed, without the final point.
    guided_by : {"model", "labels"} or None
        The source of the guide; None: groups depend on the quasi-identifiers alone.
    groups : str or None
        Noun for groups that 'sfumato apply' cannot read from a document; None: it can.
    by_counts : bool
        Whether counts are enough, so that a table can be read in blocks that fit in memory.
    writes_labels : bool
        Whether the labels of hierarchies are written; representatives and limits do not apply then.
    """

    name: str
    sentence: str
    guided_by: str | None = None
    groups: str | None = None
    by_counts: bool = False
    writes_labels: bool = False

    @property
    def needs_guide(self) -> bool:
        """True if a target or a column of predictions is needed."""
        return self.guided_by is not None

    @property
    def has_document(self) -> bool:
        """True if the fitted groups can be saved for 'sfumato apply'."""
        return self.groups is None


@dataclass(frozen=True)
class NamedMethod:
    """A method that users choose by name.

    Attributes
    ----------
    facts : MethodFacts
    kind : type
        The anonymizer.
    presets : mapping
        Parameters that the name stands for.
    """

    facts: MethodFacts
    kind: type
    presets: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts_population(self) -> bool:
        """True if releases can meet a criterion on presence."""
        return bool(self.kind._counts_population)  # type: ignore[attr-defined]

    def new(self, **settings: Any) -> Any:
        """Return an unfitted anonymizer."""
        return self.kind(**self.presets, **settings)
