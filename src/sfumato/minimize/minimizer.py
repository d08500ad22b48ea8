# SPDX-License-Identifier: Apache-2.0
"""Base of all minimizers: validate, read and bin the sample, compute buckets, and build the generalization.

A subclass assigns the fine codes of each attribute to buckets (``_buckets``); it sees codes and never frames. The sweep
calls the two steps separately, so that many settings share one reading.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymize.guide_from_target import as_target_array
from sfumato.arguments import (
    Names,
    Seed,
    as_table_like,
    check_choice,
    check_integer,
    checked_weight,
    distinct_labels,
    thread_count,
)
from sfumato.backends.memory import MemorySource
from sfumato.coded_columns import CodedColumn
from sfumato.errors import InputError, ParameterError, named
from sfumato.fingerprints import Fingerprints
from sfumato.frames import Table, read_table
from sfumato.generalization import Generalization
from sfumato.minimize.sample import Buckets, Sample
from sfumato.minimize.screening import narrowed, screened, widened
from sfumato.partition.binning import MAX_CODES, code_type

_FEWEST_JUDGED = 50
"""Smaller samples say little about unique values of a column."""

Output = Literal["codes", "labels", "representatives"]


class Minimizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of the minimizers: fit on a small full-resolution sample, then collect and transform buckets only."""

    # Parameters shared by all subclasses; each lists them in its own signature, as scikit-learn asks.
    attributes: Names | None
    personal: Names | None
    categorical_features: Collection[str | int] | None
    floor: int
    max_bins: int
    output: Output
    random_state: Seed
    n_jobs: int | None
    generalization_: Generalization

    _needs_target = True

    def _buckets(self, sample: Sample) -> Buckets:
        """Return, for every attribute, the bucket of each fine code; for ordered ones it never falls along the bins.

        The code of missing may have any bucket, also one of its own.
        """
        raise NotImplementedError

    def default_grid(self, sample: Sample, errors: tuple[float, float]) -> Mapping[str, Sequence[Any]]:
        """Return the values a sweep tries for each parameter unless told otherwise.

        Parameters
        ----------
        sample : Sample
        errors : tuple of float
            Errors of a classifier with nothing and with everything generalized.
        """
        return {}

    def _buckets_of_settings(self, sample: Sample, settings: Sequence[Mapping[str, Any]]) -> Iterable[Buckets]:
        """Return the buckets for each of many settings; subclasses share work between them where they can."""
        for own, _ in self._with_settings(settings):
            yield own._buckets(sample)

    def _learned(self, sample: Sample) -> Buckets:
        """Return the buckets of all attributes; those that are left out are not looked at."""
        own, kept = narrowed(sample)
        return widened(self._buckets(own), kept, sample)

    def _learned_of_settings(self, sample: Sample, settings: Sequence[Mapping[str, Any]]) -> Iterator[Buckets]:
        """Yield the buckets of all attributes for each of many settings."""
        own, kept = narrowed(sample)
        for buckets in self._buckets_of_settings(own, settings):
            yield widened(buckets, kept, sample)

    def _with_settings(self, settings: Sequence[Mapping[str, Any]], *varied: str) -> Iterator[tuple[Self, str]]:
        """Yield the minimizer with each of many settings, and a key that all have whose other parameters are equal.

        Parameters
        ----------
        settings : sequence of mapping
        *varied : str
            Parameters that the key leaves out: those between whose values work can be shared.
        """
        for setting in settings:
            own = clone(self).set_params(**setting)
            own._check_parameters()
            yield own, repr({**own.get_params(deep=False), **dict.fromkeys(varied)})

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how coarsely each attribute may be collected.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            A sample of records in full resolution.
        y : array-like of shape (n,)
            The class that will be predicted from the buckets.

        Returns
        -------
        self
        """
        return self._fit(X, y, None)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        X = as_table_like(X)
        read_table(X)  # explains what is not a table before scikit-learn looks at it
        validate_data(self, X, skip_check_array=True)
        sample = screened(self._read(X, y, sample_weight))
        self.classes_ = sample.classes
        self.personal_ = tuple(sample.names[position] for position in sample.personal)
        made = self._generalize(sample, self._learned(sample))
        self.left_out_ = {sample.names[position]: why for position, why in sample.left_out.items()}
        self.generalization_ = replace(made, fingerprints=Fingerprints.of(read_table(X), made.names))
        return self

    def transform(self, X: Any) -> Any:
        """Replace every value by its bucket; columns that are not generalized pass through.

        Parameters
        ----------
        X : frame or array of shape (n, columns)

        Returns
        -------
        frame or array
            Of the same kind; codes, labels or representative values as `output` says.
        """
        check_is_fitted(self, "generalization_")
        X = as_table_like(X)
        read_table(X)  # explains what is not a table before its columns are compared
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.generalization_.transform(X, output=self.output)

    def _check_parameters(self) -> None:
        check_integer("max_bins", self.max_bins, 2, MAX_CODES - 3, hint="255 suits most columns.")
        check_integer("floor", self.floor, 1, hint="10 keeps values that fewer than 10 records have out of it.")
        check_choice("output", self.output, get_args(Output), hint="Models take codes.")
        thread_count(self.n_jobs)

    def _categorical(self) -> tuple[str | int, ...]:
        """Return the columns whose numbers are codes."""
        return tuple(() if self.categorical_features is None else self.categorical_features)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Sample:
        """Read and bin the attributes and code the target."""
        table = read_table(X, categorical=self._categorical())
        weight = checked_weight(sample_weight, table.n_records)
        if y is None and not self._needs_target:
            codes, classes = np.zeros(table.n_records, np.uint8), np.zeros(1, np.int64)
        else:
            codes, classes = code_target(y, table.n_records)
        names = table.names if self.attributes is None else table.resolve(self.attributes, "attributes")
        if not names:
            raise ParameterError(
                f"{named('attributes')} is empty: expected the columns to generalize. None stands for all."
            )
        source = MemorySource(table, names, max_bins=self.max_bins, n_threads=thread_count(self.n_jobs))
        for column in source.columns:
            _refuse_names(column)
        personal = self._personal_positions(table, source.columns)
        is_named = self.personal is not None
        return Sample(source.columns, codes, classes, personal, weight, is_personal_named=is_named)

    def _personal_positions(self, table: Table, columns: Sequence[CodedColumn]) -> tuple[int, ...]:
        names = [column.name for column in columns]
        if self.personal is None:
            categories = tuple(i for i, column in enumerate(columns) if column.kind == "category")
            return categories or tuple(range(len(columns)))
        personal = table.resolve(self.personal, "personal")
        others = [name for name in personal if name not in names]
        if others:
            raise ParameterError(
                f"{named('personal')} names {', '.join(map(repr, others))}, which is not generalized: expected some of "
                "the attributes, since a column that passes through is known exactly. Add it to them, or "
                "drop it."
            )
        return tuple(names.index(name) for name in personal)

    def _generalize(self, sample: Sample, buckets: Buckets) -> Generalization:
        name, told = type(self).__name__, self._told_parameters()
        return sample.generalized(buckets, floor=int(self.floor), minimizer=name, parameters=told)

    def _told_parameters(self) -> dict[str, Any]:
        """Return the floor and the method's own parameters, as far as a document can hold them."""
        shared = set(Minimizer.__annotations__) - {"floor"}
        own = {name: value for name, value in self.get_params(deep=False).items() if name not in shared}
        return {name: value for name, value in own.items() if isinstance(value, bool | int | float | str | None)}

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = self._needs_target
        tags.transformer_tags.preserves_dtype = []  # buckets are integers, whatever the values were
        return tags


class WeightedMinimizer(Minimizer):
    """Base of the minimizers that learn from the classes of the records, which can have weights."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn how coarsely each attribute may be collected.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            A sample of records in full resolution.
        y : array-like of shape (n,)
            The class that will be predicted from the buckets.
        sample_weight : array-like of shape (n,), optional
            The weight of each record in learning and in errors. Bins, `floor` and `min_samples_leaf` count records,
            never weights.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)


def _refuse_names(column: CodedColumn) -> None:
    """Raise InputError if most categories are unique: a generalization lists its categories and is shared."""
    if column.kind != "category" or len(column.codes) < _FEWEST_JUDGED:
        return
    counts = column.counts[: column.bins.n_values]
    n_alone = int((counts == 1).sum())
    if 2 * n_alone > len(column.codes):
        raise InputError(
            f"column {column.name!r} has {n_alone} values that only one record has, of {len(column.codes)} records: "
            "expected categories that people share, since only those are collected. Leave the column out "
            f"({named('attributes')}) if it names people, or shorten its values."
        )


def code_target(y: Any, n_records: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the place of each record's class among the sorted classes, and the classes."""
    if y is None:
        raise InputError(
            "no target was given: this minimizer requires y to be passed, but the target y is None. Pass the class of "
            "every record as the second argument."
        )
    array = as_target_array(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"a target of shape {array.shape}: expected one class per record. Pass one column of labels.")
    if len(array) != n_records:
        raise InputError(
            f"inconsistent numbers of samples: {len(array)} labels for {n_records} records: expected one per record. "
            "Pass the target of the same records."
        )
    if array.dtype.kind == "f":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            if type_of_target(array, input_name="y").startswith("continuous"):
                raise InputError(
                    "Unknown label type: y holds numbers that are not classes (continuous): expected class labels. Cut "
                    "the target, for example at its median."
                )
    classes, codes = distinct_labels(array)
    if len(classes) >= MAX_CODES:
        raise InputError(f"{len(classes)} different labels: expected fewer than {MAX_CODES}. Cut the target.")
    return codes.astype(code_type(len(classes))), classes
