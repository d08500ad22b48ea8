# SPDX-License-Identifier: Apache-2.0
"""The private anonymizer: a release with epsilon and delta that needs no other people's records.

A private guide and noisy counts of columns are learnt from the records. Records drawn from these counts, with the
guide's predictions, show the unchanged engine where to cut. Nothing of that looks at the records again, until the cells
are counted with noise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymize.fitted_partition import Partition
from sfumato.anonymize.model_guided import ModelGuidedAnonymizer
from sfumato.anonymize.private_release import capped_rows, with_counts, write_cells
from sfumato.anonymize.region_training import drawn_classes
from sfumato.anonymize.release import Release
from sfumato.anonymize.target_labels import code_labels
from sfumato.arguments import as_table_like, check_choice, check_integer
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.frames.assembling import select
from sfumato.frames.building import frame_from_arrow, kind_of_frame
from sfumato.frames.shuffling import random_order
from sfumato.partition.group_summaries import Groups, collect
from sfumato.private.accounting import check_delta, check_epsilon, gaussian_epsilon, gaussian_mu
from sfumato.private.drawing import RowModel, draw_records, whole_columns
from sfumato.private.encoding import PublicEncoding, are_numbers
from sfumato.private.guarantee import PrivacyGuarantee, neighbors
from sfumato.private.ledger import PrivacyLedger
from sfumato.private.linear import PrivateLogisticRegression
from sfumato.private.marginals import noisy_marginals
from sfumato.private.mechanisms import noisy_counts
from sfumato.private.spanning_tree import noisy_tree
from sfumato.regions import Regions, code_target

DIVISION: Mapping[str, float] = {"guide": 0.3, "rows": 0.2, "counts": 0.5}
"""The default division of the budget; chosen, as the default of rows, on Bank Marketing and two tables of the ACS."""

ROWS = ("mst", "marginals")
"""The kinds of drawn records."""

_FEWEST_DRAWN, _MOST_DRAWN = 20_000, 1_000_000
_SIZE_OVER_K = 1.33  # a group of the engine has about so many times k records
_EXPECTED = 30.0  # records of a cell times epsilon of the counts, by default
_FLOOR = 10  # drawn records of a number of a region, which protects nobody; chosen on the same tables as the division


class _Budget(NamedTuple):
    """What each part may spend: epsilon (with the whole delta) of the guide, mu of the rows, epsilon of the counts."""

    guide: float
    rows: float
    counts: float


class _Drawn(NamedTuple):
    """Drawn records, and those of each cell: at least k."""

    records: Any
    groups: Groups

    def pick(self, group: NDArray[np.int64], random: np.random.Generator) -> Any:
        """Return a drawn record of each of some cells."""
        place = np.floor(random.random(len(group)) * self.groups.sizes[group]).astype(np.int64)
        return self.records.take(self.groups.order[self.groups.offsets[group] + place])


class PrivateAnonymizer(TransformerMixin, BaseEstimator):
    """Release a table with differential privacy, cells and counts, from its own records alone.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of everything together.
    delta : float, default=1e-6
        Well below 1 over the number of persons.
    bounds : mapping of str to sequence of float
        Of each column of numbers the lowest and the highest possible value, or the edges of its intervals, known
        without the records. All edges given as integers: a column of integers.
    categories : mapping of str to sequence
        The possible values of each other column, known without the records. Any other value counts as missing.
    labels : sequence
        All labels, listed without looking at `y`.
    unit : str, optional
        The column that says whose a record is; one random record of each person counts. None: every person has one.
    division : mapping, optional
        Shares of the budget for ``"guide"``, ``"rows"`` and ``"counts"``; they are scaled to sum up to 1. None: 0.3,
        0.2 and 0.5. The counts have their share of epsilon. Guide and rows have the rest together, by Gaussian noise
        whose ``mu**2`` they divide.
    rows : {"mst", "marginals"}, default="mst"
        The records that the tree is grown on. ``"mst"``: each column depends on another one, along a spanning tree that
        is chosen with noise. ``"marginals"``: columns are independent given the label.
    records_per_cell : int, optional
        Expected number of records in a cell. Fewer: finer cells, with more noise in each. None: 30 / epsilon of the
        counts.
    representative : str, default="phantom"
        The values written for a cell; all of them come from drawn records.
    n_intervals : int, default=16
        Intervals of a column whose bounds are two numbers.
    n_jobs : int, optional

    Attributes
    ----------
    partition_ : Partition
        Fitted on drawn records, with their regions, which have the noisy counts. Publishing it costs nothing more, and
        ``AnonymizedClassifier(model).fit_partition(partition_)`` trains a model for raw records on it.
    guide_ : PrivateLogisticRegression
    privacy_ : PrivacyGuarantee
        Of all fitted attributes and of the release together.
    counts_ : ndarray of int64, shape (cells, labels)
        Noisy records of each cell and label.
    labels_ : ndarray
    n_groups_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray
        Columns of X, if they have names.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy of everything that is fitted, for tables that differ in one
    person. Guide and rows have Gaussian noise, which composes exactly to their part of epsilon and all of delta. The
    counts have pure epsilon, which is added. Noise is OpenDP's (extra ``dp``), without a seed.

    *Not guaranteed.* k-anonymity: a cell may have one record, or one that nobody has. Utility that the owner measures
    with the raw records is not private. Neither is a choice of settings by trying them on the same records: enter every
    fit in a `PrivacyLedger`.

    *In pipelines.* It is a last step, and ``pipeline[-1].release()`` returns the release. With metadata routing,
    ``set_fit_request(ledger=True)`` lets a ledger through. Before a model it would hand on the records themselves, so
    `fit_transform` raises an error. Train the model on the release, and put both into a pipeline afterwards, each in a
    ``FrozenEstimator``.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from sfumato import PrivateAnonymizer
    >>> ages = np.arange(4000) % 80
    >>> people = pa.table({"age": ages, "sex": ["f", "m"] * 2000})
    >>> y = np.where(ages >= 40, "yes", "no")
    >>> anonymizer = PrivateAnonymizer(
    ...     epsilon=2.0, bounds={"age": (0, 80)}, categories={"sex": ["f", "m"]}, labels=["no", "yes"]
    ... )
    >>> release = anonymizer.fit(people, y).release()
    >>> release.table.column_names, 3500 < len(release.target) < 4500
    (['age', 'sex'], True)
    >>> release.privacy.epsilon, release.privacy.delta
    (2.0, 1e-06)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Mapping[str, Sequence[float]] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        labels: Sequence[Any] | None = None,
        unit: str | None = None,
        division: Mapping[str, float] | None = None,
        rows: str = "mst",
        records_per_cell: int | None = None,
        representative: str = "phantom",
        n_intervals: int = 16,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.labels = labels
        self.unit = unit
        self.division = division
        self.rows = rows
        self.records_per_cell = records_per_cell
        self.representative = representative
        self.n_intervals = n_intervals
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, ledger: PrivacyLedger | None = None) -> Self:
        """Learn cells and count them; the whole budget is spent here.

        Parameters
        ----------
        X : frame or array
            The records; every column in `bounds`, in `categories` or the unit.
        y : array-like of shape (n,)
            The label of each record.
        ledger : PrivacyLedger, optional
            Where the fit is entered before anything is learnt.
        """
        budget = self._budget()
        X = as_table_like(X)
        table = read_table(X)
        validate_data(self, X, skip_check_array=True)
        unit = None if self.unit is None else table.resolve(self.unit, "unit")[0]
        names = [name for name in table.names if name != unit]
        encoding = PublicEncoding(names, self.bounds, self.categories, self.n_intervals)
        if y is None:
            raise InputError("PrivateAnonymizer requires y to be passed, but the target y is None. Pass the labels.")
        labels, label = code_labels(y, self.labels, table.n_records)
        promise = self._guarantee(unit)
        if ledger is not None:
            ledger.spend(promise, what="fit and release of PrivateAnonymizer")
        rows = None if unit is None else capped_rows(table, unit, 1)
        model = self._row_model(encoding, table, label, len(labels), rows, budget.rows)
        self.guide_ = self._fit_guide(X, table, names, labels, label, rows, budget.guide)
        self.partition_, regions, self._drawn = self._grow(model, encoding, budget.counts, labels)
        self.n_groups_ = self.partition_.n_groups
        cell = self.partition_.apply(X).astype(np.int64) * len(labels) + label
        cell = cell if rows is None else cell[rows]
        counts = np.bincount(cell, minlength=self.n_groups_ * len(labels))
        self.counts_ = noisy_counts(counts, budget.counts).reshape(self.n_groups_, len(labels))
        counted = with_counts(self.partition_, regions, self.counts_, labels)
        self.partition_ = counted if unit is None else replace(counted, dropped=(*counted.dropped, unit))
        self.labels_, self.privacy_ = labels, promise
        self._kind = kind_of_frame(X, table)
        return self

    def release(self, *, values: str = "cells") -> Release:
        """Return the release of the fitted records, in a new random order; it costs nothing more.

        ``release.target`` has the labels.

        Parameters
        ----------
        values : {"cells", "drawn"}, default="cells"
            ``"cells"``: every record of a cell has the same values, those of its representative; test records should
            pass `transform`. ``"drawn"``: each record has the values of a record that was drawn from the marginals in
            its cell, which suits models that are tested on raw records.
        """
        check_is_fitted(self, "counts_")
        check_choice("values", values, ("cells", "drawn"))
        cell = np.repeat(np.arange(self.counts_.size), self.counts_.ravel())
        cell = cell[random_order(len(cell))]
        group = cell // len(self.labels_)
        released = (
            write_cells(self.partition_, self._kind, group)
            if values == "cells"
            else frame_from_arrow(self._kind, self._drawn.pick(group, np.random.default_rng()))
        )
        measures = {"n_records": len(cell), "n_cells": self.n_groups_, "n_filled": int((self.counts_ > 0).sum())}
        target = self.labels_[cell % len(self.labels_)]
        return Release(released, 0, 0, measures, target=target, privacy=self.privacy_, partition=self.partition_)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NoReturn:
        """Raise ParameterError: rewritten records have exact counts and labels, so they are not private.

        A model that was trained on them, such as the next step of a pipeline, would not be private, either.
        """
        raise ParameterError(
            "fit_transform would return the rewritten records themselves, and a model that learns from them is not "
            "private: expected fit(X, y).release(). Train on the table and the target of the release; in a pipeline, "
            "let the anonymizer be the last step."
        )

    def transform(self, X: Any) -> Any:
        """Rewrite records as those of the release: each gets the values of its cell, and the unit is dropped.

        For records at prediction time, with the columns of the fit; what is returned is not private.
        """
        check_is_fitted(self, "counts_")
        X = as_table_like(X)
        read_table(X)  # explains what is not a table before scikit-learn looks at it
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.partition_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform` and of the release."""
        check_is_fitted(self, "counts_")
        names = getattr(self, "feature_names_in_", [f"x{place}" for place in range(self.n_features_in_)])
        if input_features is not None and list(input_features) != list(names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array(self.partition_.output_names(names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    # -- the steps -------------------------------------------------------------------------------------------

    def _budget(self) -> _Budget:
        """Return what each part may spend."""
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_choice("rows", self.rows, ROWS)
        given = DIVISION if self.division is None else self.division
        is_valid = isinstance(given, Mapping) and set(given) == set(DIVISION)
        if not is_valid or not all(isinstance(v, int | float) and 0 < v < np.inf for v in given.values()):
            raise ParameterError(
                f"{named('division', self.division)}: expected a positive share of the budget for each of "
                f"{', '.join(DIVISION)}. Leave it out for {dict(DIVISION)}."
            )
        if self.records_per_cell is not None:
            check_integer("records_per_cell", self.records_per_cell, 1)
        counts = self.epsilon * given["counts"] / sum(given.values())
        mu = gaussian_mu(self.epsilon - counts, self.delta)
        guide = gaussian_epsilon(self.delta, mu * math.sqrt(given["guide"] / (given["guide"] + given["rows"])))
        if guide <= 0:
            raise ParameterError(
                f"{named('epsilon', self.epsilon)} with delta={self.delta:g}: expected a delta that is small beside "
                "epsilon, since delta alone would cover the guide. Lower delta, or raise epsilon."
            )
        # The rest of mu**2, after what the guide really uses.
        rows = math.sqrt(mu**2 - gaussian_mu(guide, self.delta) ** 2)
        return _Budget(guide, rows, counts)

    def _guarantee(self, unit: str | None) -> PrivacyGuarantee:
        said = ["bounds, categories and labels were chosen without the records"]
        if unit is None:
            said.append("every person has one record")
        return PrivacyGuarantee(
            float(self.epsilon), float(self.delta), neighbors(unit), unit,
            "a noisy guide, noisy counts of columns and noisy counts of cells", tuple(said),
        )  # fmt: skip

    def _fit_guide(
        self,
        X: Any,
        table: Table,
        names: list[str],
        labels: NDArray[Any],
        label: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
        epsilon: float,
    ) -> PrivateLogisticRegression:
        X = select(X, [table.position_of(name) for name in names])
        # Columns of an array are named by their places, which are others without the unit.
        named_anew = dict(zip(names, read_table(X).names, strict=True))
        guide = PrivateLogisticRegression(
            epsilon, delta=self.delta,
            bounds={named_anew[name]: ends for name, ends in (self.bounds or {}).items()},
            categories={named_anew[name]: values for name, values in (self.categories or {}).items()},
            classes=list(range(len(labels))), n_intervals=self.n_intervals,
        )  # fmt: skip
        if rows is not None:
            X, label = read_table(X).replaced({}, keep_rows=rows), label[rows]
        return guide.fit(X, label)

    def _row_model(
        self,
        encoding: PublicEncoding,
        table: Table,
        label: NDArray[np.int64],
        n_labels: int,
        rows: NDArray[np.int64] | None,
        mu: float,
    ) -> RowModel:
        """Count columns, or pairs of columns, with noise."""
        cells = encoding.cells(table)
        if rows is not None:
            cells, label = cells[rows], label[rows]
        if self.rows == "mst":
            return noisy_tree(encoding, cells, mu)
        return noisy_marginals(encoding, cells, label, n_labels, mu)

    def _grow(
        self, model: RowModel, encoding: PublicEncoding, epsilon: float, labels: NDArray[Any]
    ) -> tuple[Partition, Regions, _Drawn]:
        """Grow the tree on drawn records, as many as the noisy number of records; return it with their regions."""
        n_drawn = int(np.clip(model.n_records, _FEWEST_DRAWN, _MOST_DRAWN))
        per_cell = _EXPECTED / epsilon if self.records_per_cell is None else float(self.records_per_cell)
        k = max(2, round(n_drawn * per_cell / (_SIZE_OVER_K * model.n_records)))
        drawn = draw_records(model, encoding, n_drawn, whole_columns(self.bounds), np.random.default_rng())
        engine = ModelGuidedAnonymizer(
            k=min(k, n_drawn), representative=self.representative, n_jobs=self.n_jobs,
            quasi_identifiers=drawn.column_names,
            categorical_features=[name for name, values in (self.categories or {}).items() if are_numbers(values)],
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings would be about drawn records
            seen = drawn.rename_columns([column.name for column in self.guide_.encoding_.columns])
            said, floor = self.guide_.predict_proba(seen), min(engine.k, _FLOOR)
            fitted = engine._fit_for_regions(drawn, said, None, floor)
            # The guide says how values go with labels inside a cell; how many records a cell has, the counts will.
            label = labels[drawn_classes(said, np.random.default_rng())]
            regions = engine._describe_regions(fitted, code_target(label, is_number=False), label, floor)
        partition = engine.partition_
        assert isinstance(partition, Partition)
        # Fingerprints of drawn records would say that nobody is in it, and guarantees of k are about drawn records.
        partition = replace(partition, fingerprints=None, guarantees=(), criteria=())
        return partition, regions, _Drawn(drawn, collect(fitted.group, partition.n_groups))
