# SPDX-License-Identifier: Apache-2.0
"""Mondrian: multidimensional k-anonymity from the quasi-identifiers alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.guide_from_target import guide_from
from sfumato.anonymize.method import FACTS, NamedMethod
from sfumato.anonymize.partitioners import (
    InformationLossPartitioner,
    Partitioner,
    RelaxedPartitioner,
    TreePartitioner,
)
from sfumato.arguments import Names, Seed, check_choice
from sfumato.criteria import Criterion
from sfumato.errors import ParameterError, named
from sfumato.partition.binning import DEFAULT_MAX_BINS
from sfumato.partition.guides import Guide, by_information_loss, by_median
from sfumato.representatives import Representative
from sfumato.schema import Schema

_RULES = {"median": by_median, "information_loss": by_information_loss}


class MondrianAnonymizer(Anonymizer):
    """Make a table k-anonymous from its quasi-identifiers alone, without a guide.

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
    rule : {"median", "information_loss"}, default="median"
        How a group is cut. ``"median"``: the column with the widest normalized range, at the admissible cut nearest
        its median (strict: equal values stay together). ``"information_loss"``: the cut with the largest fall of the
        normalized certainty penalty of all columns, looking one cut ahead. Records too few for a group are deferred and
        grouped with other deferred ones; see the notes.
    strict : bool, default=True
        With the rule ``"median"``: whether records with equal values of the column stay together. False: those with
        the median value are divided, so that the sides are as even as possible; see the notes.
    representative : str, default="phantom"
        How a group is rewritten: ``"phantom"`` (values of the group and its neighbors in the tree, changed until no
        record of the table has the combination, or at least k have),
        ``"median"``, ``"mean"``, ``"midrange"``, ``"range"`` (a label
        for the cell of the tree), ``"bounds"`` (its ends as two columns; categories by the order their type declares,
        else sorted), ``"tight-range"`` and ``"tight-bounds"`` (from the lowest to the highest member, which tells who
        is not in the table), or the values of one real record: ``"model"`` (of the tenth of the members whose
        predictions are nearest the group's mean prediction, the one nearest the group's median), ``"member"`` (the
        member nearest the group's median among those with the majority prediction), ``"sample"``. Numbers come from
        runs of values that at least k records share, and categories that fewer have are not named. Groups of
        ``strict=False`` and ``rule="information_loss"`` are not boxes: their ranges are always tight, and phantoms of
        ``strict=False`` are made of the group's own members.
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
    *Guarantee.* As for ``ModelGuidedAnonymizer``. Predictions passed as `y` never change the groups; the
    representative ``"member"`` uses them to prefer a group's majority.

    *Relaxed.* The side of a record with the median value depends on the codes of all its quasi-identifiers, never on
    the order of the records; equal records stay together. The partition stores the last record on the left as a
    threshold in several columns, so new records are divided by the same rule, and `release` finds the fitted groups.

    *Information loss.* Outliers would force their groups to be wide, so they are deferred. The records deferred below a
    cut form groups of their own, finer cuts first, and the few left over join the groups where they cost least. The
    labels of groups may then overlap, but every combination of values has exactly one group. No optimality is claimed.

    References
    ----------
    LeFevre, K., DeWitt, D., Ramakrishnan, R. (2006). Mondrian multidimensional k-anonymity.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import MondrianAnonymizer
    >>> MondrianAnonymizer(k=2).fit_transform(np.array([[25], [27], [31], [33], [58]])).tolist()
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
        rule: Literal["median", "information_loss"] = "median",
        strict: bool = True,
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
        self.rule = rule
        self.strict = strict
        self.representative = representative
        self.suppression_limit = suppression_limit
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("rule", self.rule, _RULES)
        if self.strict not in (True, False) or (self.rule != "median" and not self.strict):
            raise ParameterError(
                f"{named('strict', self.strict)} with {named('rule', self.rule)}: expected True, or False with "
                "rule='median'. Only cuts at a median can divide the records that have it."
            )

    def _make_guide(self, X: Any, y: Any, schema: Schema, n_records: int, sample_weight: Any) -> Guide:
        classes = None if y is None else guide_from(y, n_records=n_records).classes
        return replace(_RULES[self.rule](), classes=classes)

    def _make_guide_for_release(self, y: Any, n_records: int) -> Guide | None:
        return guide_from(y, n_records=n_records)

    def _partitioner(self) -> Partitioner:
        if self.rule == "information_loss":
            return InformationLossPartitioner()
        return TreePartitioner(fall_back=False) if self.strict else RelaxedPartitioner()


MONDRIAN = NamedMethod(FACTS["mondrian"], MondrianAnonymizer)
INFORMATION_LOSS = NamedMethod(
    FACTS["information-loss"],
    MondrianAnonymizer,
    {"rule": "information_loss"},
)
