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


_EVERY = (
    MethodFacts("model-guided", "groups follow the predictions of a model", guided_by="model", by_counts=True),
    MethodFacts("mondrian", "groups are cut at the median of the widest column", by_counts=True),
    MethodFacts("information-loss", "groups are cut where most detail is kept"),
    MethodFacts("workload-aware", "groups follow the labels of the target", guided_by="labels", by_counts=True),
    MethodFacts("hilbert", "groups are runs along a Hilbert curve through all columns", groups="runs of a curve"),
    MethodFacts("r-plus-tree", "groups are the leaves of a spatial index, which takes in later batches"),
    MethodFacts(
        "full-domain",
        "every column is published at one level of its hierarchy",
        groups="levels of hierarchies",
        writes_labels=True,
    ),
)
FACTS: Mapping[str, MethodFacts] = {facts.name: facts for facts in _EVERY}
"""Facts of every method by its name, to be read without importing the method."""


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
