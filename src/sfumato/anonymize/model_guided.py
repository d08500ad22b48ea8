# SPDX-License-Identifier: Apache-2.0
"""Anonymization guided by the model that will be trained on the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from sfumato.anonymize.anonymizer import GuidedAnonymizer
from sfumato.anonymize.guide_from_target import GuideKind, guide_from, is_fitted, predictions_of, train_guide
from sfumato.anonymize.method import FACTS, NamedMethod
from sfumato.anonymize.partitioners import TreePartitioner
from sfumato.anonymize.thorough_search import ThoroughPartitioner
from sfumato.arguments import Names, Seed, check_choice
from sfumato.criteria import Criterion
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import read_table
from sfumato.partition.binning import DEFAULT_MAX_BINS
from sfumato.partition.guides import Guide
from sfumato.representatives import Representative
from sfumato.schema import Schema


class ModelGuidedAnonymizer(GuidedAnonymizer):
    """Make a table k-anonymous at the least cost to a model's predictions.

    The quasi-identifiers are split top-down so that records with similar predictions stay together, while both sides
    keep at least k records. Then every group's quasi-identifiers are replaced by one set of values.

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
        Further conditions on every group, such as ``KAnonymity(10, unit="customer")``, or
        ``LDiversity(2, "diagnosis")`` and others on a sensitive column. That column is neither rewritten nor split
        on; ``"y"`` is the target, which `fit` and `release` also take as `target` where `y` holds predictions.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    limits : dict, optional
        Finest width (numbers), number of characters (text) or days (dates) to release, per column.
    hierarchies : dict, optional
        For each column, by name or position, a `Hierarchy`, the path of a hierarchy file, or a nested mapping. Such a
        column is categorical and split only between the children of a label; ``representative="range"`` publishes
        the lowest common ancestor of a cell, and information loss counts the values under that of a group.
    guide_estimator : estimator or "labels", optional
        None or ``"labels"``: `y` itself guides. A model: its predictions guide; an unfitted model is fitted on X and
        `y` first, and discarded afterwards.
    guide_fraction : float, default=1.0
        Share of the records an unfitted guide is trained on.
    guide_kind : {"auto", "labels", "probabilities", "numbers"}, default="auto"
        Kind of the guiding values. ``"auto"``: one column by scikit-learn's ``type_of_target``; several columns are
        probabilities when rows lie in [0, 1] and sum to 1, labels of several outputs when they are text, else
        numbers, each scaled to unit variance. The predictions of a regressor are numbers.
    split_on : {"quasi_identifiers", "all"}, default="quasi_identifiers"
        Columns the tree may split on. Only quasi-identifiers are ever rewritten.
    search : {"fast", "thorough"}, default="fast"
        ``"fast"``: one tree. ``"thorough"``: 24 trees for as many scales of the guiding probabilities or numbers, of
        which the one is kept whose groups say most about them (squared error, each record left out of its group's
        mean). Takes about 24 times as long to form groups. Labels have no scale, and are searched once.
    keep_splitting : bool, default=True
        Continue splitting by information loss where the guide has no more gain, so that groups end near size k. False
        stops at pure groups, like the decision tree of the paper.
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
        Seed for ``representative="sample"`` and for `guide_fraction`.
    n_jobs : int, optional
        Threads; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    partition_ : Partition
        The groups and their values; saved to and loaded from a plain document.
    group_sizes_ : ndarray of int64
    n_groups_ : int
    information_loss_ : float
        Normalized certainty penalty of the groups, from 0 to 1.
    hierarchies_ : dict of str to Hierarchy
    schema_ : Schema

    Notes
    -----
    *Guarantee.* In the result of `fit_transform` and of `release`, every record shares its quasi-identifiers with at
    least k - 1 others, recounted on the result itself, and every group meets the `criteria`. k alone does not prevent
    attribute disclosure: a value shared by a whole group is known for each member. A real record as representative
    (``"member"``, ``"model"``, ``"sample"``) shows that record's values. Columns that are not quasi-identifiers are
    released unchanged.

    References
    ----------
    Goldsteen, A., Ezov, G., Shmelkin, R., Moffie, M., Farkash, A. Anonymizing Machine Learning Models.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import ModelGuidedAnonymizer
    >>> X = np.array([[25, 1], [27, 1], [31, 0], [33, 0], [58, 1], [61, 1]])
    >>> predictions = np.array([0, 0, 0, 0, 1, 1])
    >>> ModelGuidedAnonymizer(k=2).fit_transform(X, predictions).tolist()
    [[26, 1], [26, 1], [32, 0], [32, 0], [59, 1], [59, 1]]
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
        guide_estimator: Any = None,
        guide_fraction: float = 1.0,
        guide_kind: GuideKind = "auto",
        split_on: str = "quasi_identifiers",
        search: str = "fast",
        keep_splitting: bool = True,
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
        self.guide_estimator = guide_estimator
        self.guide_fraction = guide_fraction
        self.guide_kind = guide_kind
        self.split_on = split_on
        self.search = search
        self.keep_splitting = keep_splitting
        self.representative = representative
        self.suppression_limit = suppression_limit
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _make_guide(
        self, X: Any, y: Any, schema: Schema, n_records: int, sample_weight: NDArray[np.float64] | None
    ) -> Guide:
        model = self.guide_estimator
        if model is None or isinstance(model, str):
            if model not in (None, "labels"):
                raise ParameterError(
                    f"{named('guide_estimator', model)}: expected None, 'labels' or a model. Pass the model itself."
                )
            return guide_from(y, kind=self.guide_kind, n_records=n_records)
        if y is None and not is_fitted(model):
            raise InputError(
                "guide_estimator is not fitted and the target y is None: requires y to be passed to train it. "
                "Pass the labels as y, or a fitted model."
            )
        # The guide sees the same columns as the final model: all but those that are dropped.
        seen = read_table(X).replaced({}, drop=schema.dropped) if schema.dropped else X
        fitted = train_guide(
            model, seen, y,
            fraction=self.guide_fraction, sample_weight=sample_weight, random_state=self.random_state,
        )  # fmt: skip
        return guide_from(predictions_of(fitted, seen), kind=self._kind_of_predictions(), n_records=n_records)

    def _make_guide_for_release(self, y: Any, n_records: int) -> Guide | None:
        return guide_from(y, kind=self._kind_of_predictions(), n_records=n_records)

    def _kind_of_predictions(self) -> str:
        # A regressor's predictions may happen to be whole numbers, which would pass for labels.
        has_tags = hasattr(self.guide_estimator, "__sklearn_tags__")
        is_number = self.guide_kind == "auto" and has_tags and is_regressor(self.guide_estimator)
        return "numbers" if is_number else self.guide_kind

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("search", self.search, ("fast", "thorough"))
        check_choice("keep_splitting", self.keep_splitting, (True, False), hint="True makes groups near size k.")

    def _partitioner(self) -> TreePartitioner:
        kind = ThoroughPartitioner if self.search == "thorough" else TreePartitioner
        return kind(fall_back=bool(self.keep_splitting))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = False
        return tags


MODEL_GUIDED = NamedMethod(
    FACTS["model-guided"],
    ModelGuidedAnonymizer,
)
