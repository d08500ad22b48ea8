# SPDX-License-Identifier: Apache-2.0
"""Mondrian: multidimensional k-anonymity that looks at the quasi-identifiers alone."""

from __future__ import annotations

from typing import Any, Literal

from sfumato.anonymize.base import TreeAnonymizer
from sfumato.anonymize.guidance import guide_from
from sfumato.criteria import Criterion
from sfumato.errors import ParameterError
from sfumato.partition.binning import DEFAULT_MAX_BINS
from sfumato.partition.guides import INFORMATION_LOSS, MEDIAN, Guide
from sfumato.representatives import Representative
from sfumato.schema import Schema

_RULES = {"median": MEDIAN, "information_loss": INFORMATION_LOSS}


class MondrianAnonymizer(TreeAnonymizer):
    """Make a table k-anonymous without knowing what it is for.

    Parameters
    ----------
    k : int, default=10
        Fewest records of a group.
    quasi_identifiers : list of str or int, optional
        Columns that, taken together, could point at a person, by name or position; None: all columns.
    identifiers : list of str or int, optional
        Columns that name a person; dropped.
    keep : list of str or int, optional
        Columns that may pass through although nearly every record has a value of its own there.
    criteria : list of Criterion, optional
        Further conditions on every group.
    categorical_features : list of str or int, optional
        Columns of numbers that are codes, not amounts.
    limits : dict, optional
        Finest width (numbers), number of characters (text) or days (dates) that may leave, per column.
    rule : {"median", "information_loss"}, default="median"
        How a group is cut. ``"median"``: the column with the widest normalised range, at the admissible cut nearest
        its median (strict: equal values stay together). ``"information_loss"``: the greedy method, which takes the
        cut with the largest fall of the normalised certainty penalty of the column that is cut.
    representative : str, default="median"
        How a group is rewritten; see ``ModelGuidedAnonymizer``.
    suppression_limit : float, default=0.0
        Share of the records that `release` may leave out.
    max_bins : int, default=255
        Bins of a number column with more distinct values.
    random_state : int or RandomState, optional
        Seed for ``representative="sample"``.
    n_jobs : int, optional
        Threads; None or -1: all cores. Their number never changes the result.

    Attributes
    ----------
    partition_ : Partition
    group_sizes_ : ndarray of int64
    n_groups_ : int
    information_loss_ : float
    schema_ : Schema

    Notes
    -----
    *Guarantee.* As for ``ModelGuidedAnonymizer``. Predictions passed as `y` never change the groups; the
    representative ``"member"`` uses them to prefer a group's majority.

    References
    ----------
    LeFevre, K., DeWitt, D., Ramakrishnan, R. (2006). Mondrian multidimensional k-anonymity.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import MondrianAnonymizer
    >>> MondrianAnonymizer(k=2).fit_transform(np.array([[25], [27], [31], [33], [58]])).tolist()
    [[25], [25], [33], [33], [33]]
    """

    def __init__(
        self,
        k: int = 10,
        *,
        quasi_identifiers: Any = None,
        identifiers: Any = None,
        keep: Any = None,
        criteria: list[Criterion] | None = None,
        categorical_features: Any = None,
        limits: dict[Any, Any] | None = None,
        rule: Literal["median", "information_loss"] = "median",
        representative: Representative = "median",
        suppression_limit: float = 0.0,
        max_bins: int = DEFAULT_MAX_BINS,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.identifiers = identifiers
        self.keep = keep
        self.criteria = criteria
        self.categorical_features = categorical_features
        self.limits = limits
        self.rule = rule
        self.representative = representative
        self.suppression_limit = suppression_limit
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    split_on = "quasi_identifiers"  # nothing but the quasi-identifiers speaks for a cut

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.rule not in _RULES:
            raise ParameterError(f"rule={self.rule!r}: expected {' or '.join(map(repr, _RULES))}. Choose one.")

    def _make_guide(self, X: Any, y: Any, schema: Schema, n_records: int, sample_weight: Any) -> Guide:
        classes = None if y is None else guide_from(y, n_records=n_records).classes
        return Guide(_RULES[self.rule], classes=classes)

    def _make_guide_for_release(self, y: Any, n_records: int) -> Guide | None:
        return guide_from(y, n_records=n_records)

    def _falls_back(self) -> bool:
        return False
