# SPDX-License-Identifier: Apache-2.0
"""Train, predict, anonymize, retrain: an estimator whose model has learned from groups of people only."""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.fit_inputs import names_target
from sfumato.anonymize.fitted_partition import Partition
from sfumato.anonymize.guide_from_target import GuideKind, as_target_array, fit_weighted, predictions_of, train_guide
from sfumato.anonymize.model_guided import ModelGuidedAnonymizer
from sfumato.anonymize.partitioners import Fit
from sfumato.anonymize.region_training import (
    checked_regions,
    chosen_floor,
    frame_of_regions,
    framed,
    mean_weights,
    train_on_regions,
    warn_if_alike,
    why_no_regions,
)
from sfumato.arguments import (
    Names,
    Seed,
    as_table_like,
    check_choice,
    check_integer,
    check_wrapped,
    checked_weight,
    wrapped_has,
)
from sfumato.criteria import Criterion
from sfumato.errors import InputError, KeptIndexWarning, ParameterError, named
from sfumato.frames import read_table
from sfumato.regions import code_target

_LOOKED_AT = 2_000  # records at most to see whether a model can be asked about raw ones
_DEFAULT_K = 10


class _Anonymized(MetaEstimatorMixin, BaseEstimator):
    """Base of the classifier and the regressor."""

    _guide_kind: GuideKind = "auto"

    def __init__(
        self,
        estimator: Any,
        *,
        k: int | None = None,
        quasi_identifiers: Names | None = None,
        identifiers: Names | None = None,
        anonymizer: Any = None,
        guide_estimator: Any = None,
        guide_fraction: float = 1.0,
        learn_from: str | None = None,
        floor: int | None = None,
        transform_at_predict: bool = False,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.identifiers = identifiers
        self.anonymizer = anonymizer
        self.guide_estimator = guide_estimator
        self.guide_fraction = guide_fraction
        self.learn_from = learn_from
        self.floor = floor
        self.transform_at_predict = transform_at_predict
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a guide on the raw records, put them into groups, and train the estimator on what the groups share.

        The guide, its predictions and the raw records are not kept.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
        y : array-like of shape (n,) or (n, outputs)
        sample_weight : array-like of shape (n,), optional
            How much each record counts when the guide and the estimator are trained, and in the splits of an
            anonymizer whose `fit` takes weights, as the default does. k counts records.
        """
        check_wrapped(self, y, such_as="LogisticRegression()")
        X = as_table_like(X)
        table = read_table(X)
        validate_data(self, X, skip_check_array=True)
        y = self._checked_target(y, table.n_records)
        weight = checked_weight(sample_weight, table.n_records)
        anonymizer = self._make_anonymizer()
        seen = self._without_dropped(X, table, anonymizer)
        guide = self._guide(seen, y, weight)
        # The labels are released beside the records, not the predictions that guide.
        more: dict[str, Any] = {"target": y} if self._protects_target(anonymizer, table, y) else {}
        if weight is not None and has_fit_parameter(anonymizer, "sample_weight"):
            more["sample_weight"] = weight
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KeptIndexWarning)  # nothing is released here
            if self._learns_from(anonymizer) == "regions":
                floor = chosen_floor(self.floor, anonymizer.k)
                fitted = anonymizer._fit_for_regions(X, guide, weight, floor)
                self.estimator_ = self._train_on_regions(anonymizer, fitted, y, weight, floor)
            else:
                self.estimator_ = fit_weighted(
                    clone(self.estimator), anonymizer.fit_transform(X, guide, **more), y, weight
                )
        self.anonymizer_ = anonymizer
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        if not self.transform_at_predict:
            self._warn_of_raw_records(X, y)
        return self

    def _learns_from(self, anonymizer: Any) -> str:
        """Return whether the estimator is trained on records drawn from regions, or on representatives."""
        check_choice("learn_from", self.learn_from, (None, "regions", "points"))
        chosen_floor(self.floor, 1)
        why: str | None
        if self.transform_at_predict:
            why = "transform_at_predict=True, which asks the model about representatives"
        elif not isinstance(anonymizer, Anonymizer):
            why = f"a {type(anonymizer).__name__}, which is not one of sfumato's anonymizers"
        else:
            why = why_no_regions(anonymizer._all_criteria())
        if why is None:
            return self.learn_from or "regions"
        if self.learn_from == "regions":
            raise ParameterError(f"learn_from='regions' with {why}: expected 'points', or None to have that chosen.")
        return "points"

    def _train_on_regions(self, anonymizer: Anonymizer, fitted: Fit, y: Any, weight: Any, floor: int) -> Any:
        target = as_target_array(y)
        coding = code_target(target, is_number=self._guide_kind == "numbers")
        self.regions_ = regions = anonymizer._describe_regions(fitted, coding, target, floor)
        partition = getattr(anonymizer, "partition_", None)
        if isinstance(partition, Partition):
            anonymizer.partition_ = replace(partition, regions=regions)
        table, schema, model = fitted.table, anonymizer.schema_, clone(self.estimator)
        generator = self._generator()
        n_threads = anonymizer._n_threads()
        write = functools.partial(table.replaced, drop=schema.dropped, n_threads=n_threads)
        classes = coding.classes(target)
        if not regions.target.is_known or set(table.names) != {*schema.dropped, *schema.quasi_identifiers}:
            # A drawn record keeps the other columns of the record that it stands for, and with them its target.
            drawn = regions.draw_beside(fitted.group, classes, generator, n_threads=n_threads)
            warn_if_alike(drawn, regions)
            return fit_weighted(model, write(drawn.columns), y, weight)
        return train_on_regions(
            model, regions, write, mean_weights(regions, fitted.group, classes, weight), generator, n_threads=n_threads
        )

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def fit_partition(self, partition: Partition, *, n_records: int | None = None, frame: Any = "pandas") -> Self:
        """Train the estimator on the regions of a partition, without any record.

        For partitions that were fitted where the records are: on a table larger than memory
        (``sfumato.parquet.fit_transform`` and ``sfumato.duckdb.fit_transform`` with `target`), or by an estimator that
        was fitted elsewhere, and saved. Also for ``release.partition`` of a release with epsilon. The model sees the
        quasi-identifiers; other columns of later records are left out. Settings that say how groups are formed are not
        used.

        Parameters
        ----------
        partition : Partition
            With regions, in memory or loaded.
        n_records : int, optional
            How many records are drawn to train with. None: one for each person.
        frame : {"pandas", "polars", "pyarrow", "numpy"} or table, default="pandas"
            The kind of table that the estimator is trained on. A table stands for its kind, order of columns and
            declared categories; its records are not used.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from sfumato import AnonymizedClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = AnonymizedClassifier(DecisionTreeClassifier(random_state=0), k=5, random_state=0).fit(X, y)
        >>> partition = model.anonymizer_.partition_  # partition.save(path) writes it, regions included
        >>> again = AnonymizedClassifier(DecisionTreeClassifier(), random_state=0).fit_partition(partition)
        >>> bool(again.score(X, y) > 0.8)
        True
        """
        check_wrapped(self, (), such_as="LogisticRegression()")
        if n_records is not None:
            check_integer("n_records", n_records, 1)
        regions = checked_regions(partition, is_number=self._guide_kind == "numbers")
        kind = frame_of_regions(regions, frame)
        self.estimator_ = train_on_regions(
            clone(self.estimator), regions, framed(kind), None, self._generator(), n_records=n_records
        )
        self.regions_, self.partition_ = regions, partition
        self.n_features_in_ = len(kind.labels)
        if kind.library != "numpy":
            self.feature_names_in_ = np.array(list(kind.labels.values()), object)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def _warn_of_raw_records(self, X: Any, y: Any) -> None:
        """Warn if the model cannot predict raw records; only a regressor overrides this."""

    def _checked_target(self, y: Any, n_records: int) -> Any:
        array = as_target_array(y)
        n_labels = len(array) if array.ndim else 1
        if n_labels != n_records:
            raise InputError(
                f"inconsistent numbers of samples: {n_labels} labels for {n_records} records: expected one per "
                "record. Pass the labels of the same rows."
            )
        return y

    def _make_anonymizer(self) -> Any:
        if self.anonymizer is None:
            return ModelGuidedAnonymizer(
                k=_DEFAULT_K if self.k is None else self.k,
                quasi_identifiers=self.quasi_identifiers,
                identifiers=self.identifiers,
                guide_kind=self._guide_kind,
                random_state=self.random_state,
            )
        if not hasattr(self.anonymizer, "fit_transform"):
            raise ParameterError(
                f"anonymizer is a {type(self.anonymizer).__name__}: expected an anonymizer such as "
                "ModelGuidedAnonymizer(k=10)."
            )
        if self.quasi_identifiers is not None or self.identifiers is not None:
            raise ParameterError(
                "anonymizer= together with quasi_identifiers= or identifiers=: expected one place that says which "
                "columns are which. Set them on the anonymizer."
            )
        own_k = getattr(self.anonymizer, "k", None)
        if self.k is not None and self.k != own_k:
            raise ParameterError(
                f"{named('k', self.k)} together with an anonymizer= that has {named('k', own_k)}: expected one place "
                "that says k. Leave k out, set it on the anonymizer, and search over anonymizer__k."
            )
        anonymizer = clone(self.anonymizer)
        if getattr(anonymizer, "guide_kind", None) == "auto":
            anonymizer.set_params(guide_kind=self._guide_kind)
        return anonymizer

    def _protects_target(self, anonymizer: Any, table: Any, y: Any) -> bool:
        criteria = getattr(anonymizer, "criteria", None) or ()
        every = [criteria] if isinstance(criteria, Criterion) else criteria
        return any(names_target(c, table, y) for c in every)

    def _without_dropped(self, X: Any, table: Any, anonymizer: Any) -> Any:
        """Return the records as the final model, and so the guide, sees them: without identifiers and unit."""
        dropped = table.resolve(anonymizer.identifiers or (), "identifiers")
        keep = table.resolve(anonymizer.keep or (), "keep")
        criteria = anonymizer.criteria or ()
        every = [criteria] if isinstance(criteria, Criterion) else criteria
        units = {c.column for c in every if getattr(c, "counting", None) == "distinct"}
        drop = [*dropped, *(u for u in units if u not in keep)]
        return table.replaced({}, drop=drop) if drop else X

    def _guide(self, X: Any, y: Any, sample_weight: Any) -> Any:
        if isinstance(self.guide_estimator, str):
            if self.guide_estimator != "labels":
                raise ParameterError(
                    f"{named('guide_estimator', self.guide_estimator)}: expected None, 'labels' or a model."
                )
            return y
        model = clone(self.estimator) if self.guide_estimator is None else self.guide_estimator
        fitted = train_guide(
            model, X, y,
            fraction=self.guide_fraction, sample_weight=sample_weight, random_state=self.random_state,
        )  # fmt: skip
        return predictions_of(fitted, X)

    def _recoded(self, X: Any) -> Any:
        """Return records as the final model takes them: without dropped columns, recoded if required."""
        check_is_fitted(self, "estimator_")
        X = as_table_like(X)
        table = read_table(X)
        if hasattr(self, "partition_"):  # trained without records: what it has not seen is left out
            own = {column.name for column in self.regions_.columns}
            dropped = [name for name in table.names if name not in own] if table.library != "numpy" else []
            X = table.replaced({}, drop=dropped) if dropped else X
            table, dropped = read_table(X), []
        else:
            dropped = list(self.anonymizer_.schema_.dropped)
        validate_data(self, X, reset=False, skip_check_array=True)
        if self.transform_at_predict:
            return self.anonymizer_.transform(X)
        new = self._known_values(X)
        return table.replaced(new, drop=dropped) if dropped or new else X

    def _known_values(self, X: Any) -> dict[str, Any]:
        """Return what stands for categories that the model has never seen: drawn records have only common ones."""
        if not hasattr(self, "regions_"):
            return {}
        partition = self.partition_ if hasattr(self, "partition_") else getattr(self.anonymizer_, "partition_", None)
        categorical = self.anonymizer_.schema_.categorical_features if partition is None else partition.categorical
        table = read_table(X, categorical=categorical)
        group = None if partition is None else functools.cache(lambda: partition.apply_to(table))
        return self.regions_.known_values(table, group)

    @available_if(wrapped_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict with the model that was trained on anonymized records."""
        recoded = self._recoded(X)
        return self.estimator_.predict(recoded)

    def __getstate__(self) -> dict[str, Any]:
        # The caller may have fitted the parameter on raw records; only its settings are needed.
        return {**super().__getstate__(), "estimator": clone(self.estimator, safe=False)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if not hasattr(self.estimator, "__sklearn_tags__"):  # it checks its input itself
            tags.input_tags.allow_nan = True
            return tags
        inner = get_tags(self.estimator)
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags.single_output = inner.target_tags.single_output
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags


_PARAMETERS = """
    Parameters
    ----------
    estimator : estimator
        The model to train; any that follows scikit-learn's conventions.
    k : int, optional
        Minimum group size. None: the k of the `anonymizer`, or 10 without one. A k that differs from that of the
        `anonymizer` raises an error.
    quasi_identifiers : list of str or int, optional
        Columns that together could identify a person. None: all.
    identifiers : list of str or int, optional
        Direct identifiers; dropped before any model sees them.
    anonymizer : anonymizer, optional
        An unfitted anonymizer with its own k and column roles, for settings beyond `k`.
    guide_estimator : estimator or "labels", optional
        The model whose predictions guide the anonymization. None: a copy of `estimator`. Pass another model, fitted or
        not, if someone else trains the final one. ``"labels"``: the labels themselves.
    guide_fraction : float, default=1.0
        Share of the records that an unfitted guide is trained on.
    learn_from : {"regions", "points"}, optional
        ``"regions"``: records drawn from the values that several people of a group share, class by class; what raw
        records are asked about lies inside them, so the model loses little even for large k. ``"points"``: the
        representatives, one record per group, as `fit_transform` returns them. None: regions, or points with
        `transform_at_predict`, criteria beyond k-anonymity of records, or an anonymizer that is not sfumato's.
    floor : int, optional
        The fewest people that a number of a region counts, those of several groups together if a group has fewer. None:
        k, but at least 20 and at most 50.
    transform_at_predict : bool, default=False
        Recode records with the fitted partition before predicting. The model then learns from points.
    random_state : int or RandomState, optional
        Seed of what is drawn from regions, and of `guide_fraction`.

    Attributes
    ----------
    estimator_ : estimator
        The model.
    anonymizer_ : anonymizer
    regions_ : Regions
        What the model has learned from, if that are regions; also part of ``anonymizer_.partition_``, and saved with
        it. ``regions_.describe(group)`` shows those of a group as text.

    Notes
    -----
    *Guarantee with points.* `estimator_` was trained on records whose quasi-identifiers are k-anonymous (see
    ``ModelGuidedAnonymizer``).

    *Guarantee with regions.* All that `estimator_` has seen of the quasi-identifiers are numbers that each count at
    least `floor` people who are of one class and of one group of at least k people, or of several neighboring groups;
    nobody is counted twice in a column. Of a target of numbers it has seen means of as many people, in steps that hide
    the number of a single one. Beside them it uses how many people of each group have which class, as a released table
    would show it (of groups with at least twice the floor of people in multiples of the floor), and two weights per
    column. The records that are drawn are not k-anonymous themselves and never leave `fit`. Columns that are not
    quasi-identifiers are used as they are.

    The model trained on raw records only makes the predictions that guide the groups. It is discarded with them: a
    fitted object holds neither that model nor raw rows. A fitted `guide_estimator` stays among this object's
    parameters. `estimator` itself is never fitted; copies and pickles hold its settings only.
"""


class AnonymizedClassifier(ClassifierMixin, _Anonymized):  # noqa: D101 - the text is put together below
    __doc__ = f"""Train a classifier on records that were anonymized for it.

    Fit a copy of the estimator on the raw records, let its predictions guide the anonymization, and train the
    estimator on the anonymized records.
    {_PARAMETERS}
    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sklearn.datasets import load_iris
    >>> from sfumato import AnonymizedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = AnonymizedClassifier(DecisionTreeClassifier(random_state=0), k=5).fit(X, y)
    >>> bool(classifier.anonymizer_.group_sizes_.min() >= 5)
    True
    """

    @available_if(wrapped_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities with the model that was trained on anonymized records."""
        recoded = self._recoded(X)
        return self.estimator_.predict_proba(recoded)

    @available_if(wrapped_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the model that was trained on anonymized records."""
        recoded = self._recoded(X)
        return self.estimator_.decision_function(recoded)


class AnonymizedRegressor(RegressorMixin, _Anonymized):  # noqa: D101 - the text is put together below
    __doc__ = f"""Train a regressor on records that were anonymized for it.

    Fit a copy of the estimator on the raw records, let its predictions guide the anonymization, and train the
    estimator on the anonymized records.
    {_PARAMETERS}
    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> from sfumato import AnonymizedRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = AnonymizedRegressor(DecisionTreeRegressor(random_state=0), k=5).fit(X, y)
    >>> bool(regressor.anonymizer_.group_sizes_.min() >= 5)
    True
    """

    # Whole numbers would pass for labels, and a regressor may well predict them.
    _guide_kind = "numbers"

    def _warn_of_raw_records(self, X: Any, y: Any) -> None:
        # Groups of many records hide how the target changes inside them; beyond what it has seen, a model can be far
        # off, which no class can.
        table = read_table(X)
        rows = np.unique(np.linspace(0, table.n_records - 1, _LOOKED_AT).astype(np.intp))
        some, true = table.replaced({}, keep_rows=rows), np.asarray(y)[rows]
        dropped = self.anonymizer_.schema_.dropped
        on_raw = self._explained(read_table(some).replaced({}, drop=dropped), true)
        on_recoded = self._explained(self.anonymizer_.transform(some), true)
        if on_recoded is None:
            return
        if on_raw is None:
            why = "the model has no answer for raw records, only for recoded ones"
        elif on_raw < 0 < on_recoded:
            why = (
                f"the model explains less of raw records than their mean does (R² {on_raw:.2f} on those it was trained "
                f"with; {on_recoded:.2f} once they are recoded)"
            )
        else:
            return
        warnings.warn(
            f"{why}, and it will be asked about raw records. Set transform_at_predict=True, or lower k.",
            UserWarning,
            stacklevel=3,
        )

    def _explained(self, records: Any, true: Any) -> float | None:
        """Return how much of the target the model explains on some records; None where it has no answer."""
        from sklearn.metrics import r2_score

        try:
            new = self._known_values(records)
            known = read_table(records).replaced(new) if new else records
            return float(r2_score(true, self.estimator_.predict(known)))
        except Exception:  # a look must not undo the fit: encoders refuse categories that went, models other columns
            return None
