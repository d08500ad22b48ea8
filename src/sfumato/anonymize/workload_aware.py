# SPDX-License-Identifier: Apache-2.0
"""Workload-aware anonymization: the labels of the task, not a model, decide the splits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.anonymize.anonymizer import GuidedAnonymizer
from sfumato.anonymize.guide_from_target import GuideKind, guide_from
from sfumato.anonymize.method import FACTS, NamedMethod
from sfumato.anonymize.partitioners import TreePartitioner
from sfumato.arguments import Names, Seed
from sfumato.criteria import Criterion
from sfumato.partition.binning import DEFAULT_MAX_BINS
from sfumato.partition.guides import ENTROPY, Guide, from_labels
from sfumato.representatives import Representative
from sfumato.schema import Schema


class WorkloadAwareAnonymizer(GuidedAnonymizer):
    """Make a table k-anonymous so that its true labels stay as separable as possible.

    Splits maximize information gain on the labels, or the reduction of variance for numbers. If all records of a group
    have one label, information loss decides.

    Parameters
    ----------
    k : int, default=10
        Minimum group size.
    quasi_identifiers : list of str or int, optional
        Columns that together could identify a person, by name or position. None: all columns.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    keep : list of str or int, optional
        Columns to release unchanged although most of their values are unique.
    criteria : list of Criterion, optional
        Further conditions on every group.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    limits : dict, optional
        Finest width (numbers), number of characters (text) or days (dates) to release, per column.
    hierarchies : dict, optional
        For each column, by name or position, a `Hierarchy`, the path of a hierarchy file, or a nested mapping. Such a
        column is categorical and split only between the children of a label; ``representative="range"`` publishes
        the lowest common ancestor of a cell, and information loss counts the values under that of a group.
    guide_kind : {"auto", "labels", "numbers"}, default="auto"
        Whether `y` holds classes or numbers; ``"auto"``: by scikit-learn's ``type_of_target``.
    split_on : {"quasi_identifiers", "all"}, default="quasi_identifiers"
        Columns the tree may split on. Only quasi-identifiers are ever rewritten.
    representative : str, default="phantom"
        How a group is rewritten: ``"phantom"`` (values of the group and its neighbors in the tree, changed until no
        record of the table has the combination, or at least k have),
        ``"median"``, ``"mean"``, ``"midrange"``, ``"range"`` (a label
        for the cell of the tree), ``"bounds"`` (its ends as two columns; categories by the order their type declares,
        else sorted), ``"tight-range"`` and ``"tight-bounds"`` (from the lowest to the highest member, which tells who
        is not in the table), or the values of one real record: ``"model"`` (of the tenth of the members whose
        predictions are nearest the group's mean prediction, the one nearest the group's median), ``"member"`` (the
        member nearest the group's median among those with the majority prediction), ``"sample"``. Numbers come from
        runs of values that at least k records share, and categories that fewer have are not named.
    suppression_limit : float, default=0.0
        Share of the records that `release` may suppress: failing groups first, then the costliest records.
    max_bins : int, default=255
        Number of bins of a numeric column with more distinct values.
    random_state : int or RandomState, optional
        Seed for ``representative="sample"``.
    n_jobs : int, optional
        Threads; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    partition_ : Partition
    group_sizes_ : ndarray of int64
    n_groups_ : int
    information_loss_ : float
    hierarchies_ : dict of str to Hierarchy
    schema_ : Schema

    Notes
    -----
    *Guarantee.* As for ``ModelGuidedAnonymizer``. The groups depend on the labels, so a label influences the released
    values of its record.

    References
    ----------
    LeFevre, K., DeWitt, D., Ramakrishnan, R. (2008). Workload-aware anonymization techniques for large-scale
    datasets.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import WorkloadAwareAnonymizer
    >>> X, y = np.array([[25], [27], [31], [33], [58]]), np.array(["a", "a", "b", "b", "b"])
    >>> WorkloadAwareAnonymizer(k=2).fit_transform(X, y).tolist()
    [[26], [26], [32], [32], [32]]
    """

    def __init__(
        self,
        k: int = 10,
        *,
        quasi_identifiers: Names | None = None,
        identifiers: Names | None = None,
        keep: Names | None = None,
        criteria: list[Criterion] | None = None,
        categorical_features: Names | None = None,
        limits: dict[Any, Any] | None = None,
        hierarchies: Mapping[Any, Any] | None = None,
        guide_kind: GuideKind = "auto",
        split_on: str = "quasi_identifiers",
        representative: Representative = "phantom",
        suppression_limit: float = 0.0,
        max_bins: int = DEFAULT_MAX_BINS,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.identifiers = identifiers
        self.keep = keep
        self.criteria = criteria
        self.categorical_features = categorical_features
        self.limits = limits
        self.hierarchies = hierarchies
        self.guide_kind = guide_kind
        self.split_on = split_on
        self.representative = representative
        self.suppression_limit = suppression_limit
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _partitioner(self) -> TreePartitioner:
        return TreePartitioner()

    def _make_guide(self, X: Any, y: Any, schema: Schema, n_records: int, sample_weight: Any) -> Guide:
        guide = guide_from(y, kind=self.guide_kind, n_records=n_records)
        if guide.classes is None:
            return guide
        return from_labels(guide.classes, int(guide.classes.max()) + 1, rule=ENTROPY)

    def _make_guide_for_release(self, y: Any, n_records: int) -> Guide | None:
        return guide_from(y, kind=self.guide_kind, n_records=n_records)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = False
        return tags


WORKLOAD_AWARE = NamedMethod(
    FACTS["workload-aware"],
    WorkloadAwareAnonymizer,
)
