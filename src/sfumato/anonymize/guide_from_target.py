# SPDX-License-Identifier: Apache-2.0
"""Turn labels, probabilities, numbers or a model's predictions into a guide for the engine."""

from __future__ import annotations

import inspect
import warnings
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sfumato.arguments import Seed, check_choice, distinct_labels
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import read_table
from sfumato.partition import guides
from sfumato.partition.binning import MAX_CODES, bin_numbers
from sfumato.partition.guides import Guide

GuideKind = Literal["auto", "labels", "probabilities", "numbers"]

_SUM_TOLERANCE = 1e-3  # probabilities in single precision, many classes

_MOST_NAMED = 10  # columns in a note


def guide_from(targets: Any, *, kind: str = "auto", n_records: int) -> Guide:
    """Turn labels, probabilities or numbers of all records into a guide.

    Parameters
    ----------
    targets : array-like of shape (n,) or (n, outputs), or list of such
        A list of arrays (a multi-output model's probabilities) guides by all of them.
    kind : {"auto", "labels", "probabilities", "numbers"}
        ``"auto"``: one column by scikit-learn's ``type_of_target``; several columns are probabilities when every
        row lies in [0, 1] and sums to 1, labels of several outputs when they are text, else numbers.
    n_records : int
    """
    check_choice("guide_kind", kind, get_args(GuideKind), hint="'auto' suits most.")
    if targets is None:
        raise InputError(
            "no predictions or labels were given: this anonymizer requires y to be passed, but the target y is None. "
            "Pass model.predict_proba(X), labels or numbers as the second argument."
        )
    if isinstance(targets, list) and len(targets) and getattr(targets[0], "ndim", 0) == 2:
        return _guide_from_several([_as_array(part, n_records) for part in targets])
    array = _as_array(targets, n_records)
    chosen = kind_of_targets(array) if kind == "auto" else kind
    if chosen == "labels":
        return _guide_from_labels(array)
    numbers = _as_numbers(array)
    if chosen == "probabilities":
        if kind != "auto":  # otherwise they are probabilities because they were found to be
            _check_probabilities(numbers)
        return guides.from_probabilities(numbers)
    return guides.from_numbers(numbers)


def as_target_array(targets: Any) -> NDArray[Any]:
    """Return predictions or labels as an array; raise InputError for missing or complex values."""
    try:
        array = np.asarray(targets)
    except ValueError:
        raise InputError(
            "the rows of y have different lengths: expected the same number of values for every record. "
            "Pass what model.predict or model.predict_proba returns."
        ) from None
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: expected labels, probabilities or numbers as y. Convert them.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"Input y contains NaN or infinity in {int((~np.isfinite(array)).sum())} places: expected a finite "
            "prediction or label for every record. Drop those records, or fill them in."
        )
    is_moment = array.dtype.kind in "mM"
    if (is_moment and np.isnat(array).any()) or (array.dtype.kind == "O" and any(map(_is_missing, array.ravel()))):
        raise InputError(
            "Input y contains NaN or None among the labels: expected a label for every record. "
            "Drop those records, or give them a label of their own."
        )
    return array


def _as_array(targets: Any, n_records: int) -> NDArray[Any]:
    array = as_target_array(targets)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(
            f"predictions of shape {array.shape}: expected one row per record and one or more columns. "
            "Pass what model.predict or model.predict_proba returns."
        )
    if len(array) != n_records:
        raise InputError(
            f"inconsistent numbers of samples: {len(array)} predictions for {n_records} records: expected one per "
            "record. Predict on the same rows that are anonymized."
        )
    return array


def _is_missing(value: Any) -> bool:
    # By name, since pandas may not be installed; and pandas.NA can be compared with nothing, itself included.
    return type(value).__name__ in ("NoneType", "NAType", "NaTType") or (isinstance(value, float) and value != value)


def kind_of_targets(array: NDArray[Any]) -> str:
    """Return the kind of predictions: "labels", "probabilities" or "numbers"."""
    if array.ndim == 1 and array.dtype.kind in "biu":
        return "labels"
    if array.ndim == 1:
        # Numbers beyond 64 bits are not integers; the failing cast must not warn.
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            # With many labels and few records, scikit-learn suspects a regression; as labels they guide all the same.
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            try:
                target = type_of_target(array, input_name="y")
            except TypeError:  # numbers beside text have no order
                target = "unknown"
        if target == "unknown":
            raise InputError(
                "Unknown label type: y is neither labels nor numbers: expected class labels, probabilities or numbers. "
                "Convert mixed labels to text."
            )
        return "numbers" if target.startswith("continuous") else "labels"
    if array.dtype.kind in "fiu":
        return "probabilities" if _are_probabilities(array) else "numbers"
    return "labels" if array.dtype.kind in "OU" and all(isinstance(value, str) for value in array.flat) else "numbers"


def _are_probabilities(array: NDArray[Any]) -> bool:
    if array.min() < 0 or array.max() > 1:
        return False
    # Faster than a sum along the few columns of many rows; and, as a product with ones would not, it leaves no threads
    # of a linear algebra library behind that wait busily for more, in the way of ours.
    sums = np.einsum("ij->i", array)
    return bool(abs(sums.max() - 1) <= _SUM_TOLERANCE and abs(sums.min() - 1) <= _SUM_TOLERANCE)


def _check_probabilities(array: NDArray[Any]) -> None:
    if array.ndim != 2 or not _are_probabilities(array):
        raise InputError(
            "guide_kind='probabilities' with rows that are not probabilities: expected one column per class, values "
            "from 0 to 1, and rows that sum to 1. Pass model.predict_proba(X)."
        )


def _as_numbers(array: NDArray[Any]) -> NDArray[np.float64]:
    try:
        numbers: NDArray[np.float64] = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(
            "predictions that are not numbers: expected numbers for this guide_kind. "
            "Use guide_kind='labels' for classes."
        ) from None
    return numbers.reshape(len(numbers), -1)


def _guide_from_labels(array: NDArray[Any]) -> Guide:
    """Guide by one label per record, or by the labels of several outputs, each of which weighs the same."""
    if array.ndim == 1:
        return guides.from_labels(*_label_codes(array))
    return guides.join([guides.from_labels(*_label_codes(array[:, output])) for output in range(array.shape[1])])


def _label_codes(array: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return each record's place among the sorted labels, and how many labels there are."""
    if array.dtype.kind in "biu":  # the same as below, without sorting all records
        bins, codes = bin_numbers(array.astype(np.int64), max_bins=MAX_CODES)
        if bins.n_values < MAX_CODES:
            return codes, bins.n_values
    classes, codes = distinct_labels(array)
    if len(classes) >= MAX_CODES:
        raise InputError(
            f"{len(classes)} different labels: expected fewer than {MAX_CODES}. "
            "Use guide_kind='numbers' if they are numbers."
        )
    return codes, len(classes)


def _guide_from_several(parts: list[NDArray[Any]]) -> Guide:
    """Join the probabilities of several outputs; each output weighs the same."""
    made = []
    for part in parts:
        numbers = _as_numbers(part)
        _check_probabilities(numbers)
        made.append(guides.from_probabilities(numbers))
    return guides.join(made)


def predictions_of(model: Any, X: Any) -> Any:
    """Return a model's probabilities where it has them, else its predictions."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    return model.predict(X)


def train_guide(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    fraction: Any = 1.0,
    sample_weight: NDArray[np.float64] | None = None,
    random_state: Seed = None,
) -> Any:
    """Fit a copy of an estimator on the raw records, or on a random share of them.

    A model that is already fitted is returned as it is.
    """
    if is_fitted(estimator):
        return estimator
    if not isinstance(fraction, Real) or not 0 < float(fraction) <= 1:
        raise ParameterError(
            f"{named('guide_fraction', fraction)}: expected a share above 0 and up to 1. 1.0 trains the guide on all "
            "records."
        )
    weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
    if float(fraction) < 1:
        table = read_table(X)
        n_kept = max(1, round(float(fraction) * table.n_records))
        rows = np.sort(check_random_state(random_state).permutation(table.n_records)[:n_kept])
        X = table.replaced({}, keep_rows=rows)
        y = np.asarray(y)[rows]
        weight = None if weight is None else weight[rows]
    return fit_weighted(clone(estimator), X, y, weight)


def fit_weighted(estimator: Any, X: Any, y: Any, sample_weight: NDArray[np.float64] | None) -> Any:
    """Fit an estimator, with weights where some are given; a pipeline hands them to its last step."""
    if sample_weight is None:
        return _fit(estimator, X, y)
    if not takes_weights(estimator):
        raise ParameterError(
            f"sample_weight with {type(estimator).__name__}, whose fit takes none: expected an estimator that does. "
            "Leave the weights out, or choose another estimator."
        )
    steps = getattr(estimator, "steps", None)
    name = f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"
    return _fit(estimator, X, y, **{name: sample_weight})


def _fit(estimator: Any, X: Any, y: Any, **weights: Any) -> Any:
    try:
        return estimator.fit(X, y, **weights)
    except (TypeError, ValueError) as error:
        if others := _columns_that_are_no_numbers(X):
            shown = ", ".join(map(repr, others[:_MOST_NAMED])) + (" and others" if len(others) > _MOST_NAMED else "")
            error.add_note(
                f"sfumato hands {type(estimator).__name__} the columns as they are, and not all are numbers: {shown}. "
                "If it cannot take them, wrap what it would need without sfumato, too, such as make_pipeline("
                "make_column_transformer((OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=-1), "
                "columns), remainder='passthrough'), model)."
            )
        raise


def _columns_that_are_no_numbers(X: Any) -> list[str]:
    try:
        table = read_table(X)
        return [name for name in table.names if table.column(name).kind != "number"]
    except InputError:  # not a table that sfumato reads: the estimator's own error says what is wrong
        return []


def takes_weights(estimator: Any) -> bool:
    """Return True if the `fit` of an estimator, or of the last step of a pipeline, takes ``sample_weight``."""
    steps = getattr(estimator, "steps", None)
    return bool(has_fit_parameter(steps[-1][1] if steps else estimator, "sample_weight"))


def is_fitted(estimator: Any) -> bool:
    """Return True if a model is fitted; an object with predict and without fit counts as fitted."""
    if not hasattr(estimator, "fit"):
        if hasattr(estimator, "predict") or hasattr(estimator, "predict_proba"):
            return True
        raise ParameterError(
            f"guide_estimator is a {type(estimator).__name__}: expected 'labels', or a model with fit and predict. "
            "Pass a scikit-learn estimator, fitted or not."
        )
    if inspect.isclass(estimator):
        raise ParameterError(
            f"guide_estimator is the class {estimator.__name__}: expected an instance. Add parentheses."
        )
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    except (TypeError, AttributeError):  # inherits nothing of scikit-learn: its convention is what tells
        return any(name.endswith("_") and not name.startswith("_") for name in vars(estimator))
    return True
