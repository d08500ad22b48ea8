# SPDX-License-Identifier: Apache-2.0
"""Linear models with differential privacy: noisy full-batch gradients on one-hot records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from sfumato.errors import InputError, ParameterError, named
from sfumato.private.descent import PACE, Descent, Residuals, descend, row_length
from sfumato.private.estimator import PrivateClassifier, PrivateEstimator, fitted_table

Floats = NDArray[np.float64]
_FASTEST_OF_TWO, _FASTEST_OF_MORE = 8.0, 4.0  # the logistic loss has a curvature of at most 1/4, the softmax of 1/2
_FASTEST_OF_NUMBERS = 2.0  # squared errors have a curvature of 1
_PACE_OF_NUMBERS = 0.3  # chosen on Bank Marketing and FARS


class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression with differential privacy, by gradient descent with Gaussian noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole model. Infinite: no noise, for comparison.
    delta : float, default=1e-6
        Well below 1 over the number of persons.
    bounds : mapping of str to sequence of float
        Of each column of numbers the lowest and the highest possible value, cut into `n_intervals` of equal width; or
        the edges of its intervals. Known without the data, never looked up in it. Unequal edges suit amounts of money:
        ``(0, 1, 1000, 5000, 20000, 100000)``.
    categories : mapping of str to sequence
        The possible values of each other column, known without the data. Any other value counts as one more.
    classes : sequence, optional
        All labels. Without it they are read from `y`, with a warning: which labels occur is then not protected.
    unit : str, optional
        The column that names the person a record belongs to; it is no feature. A person's records share the weight of
        one record. None: every person has one record.
    n_intervals : int, default=16
    n_steps : int, default=200
        More steps get more noise each. The number of steps matters little; see the learning rate.
    learning_rate : float, optional
        None: as fast as the noise allows, which depends on the budget and a noisy count of persons.
    momentum : float, default=0.9
    clip : float, default=0.5
        The longest residual of a record. Shorter ones need less noise, and hard cases count for less. Without noise it
        is 1, which clips none of two classes.
    smoothing : float, default=4.0
        Neighboring intervals of a number learn together: what two have in common falls by e over so many intervals. It
        divides the noise of a curve among them, and still lets it have any form. 0: each interval learns alone.

    Attributes
    ----------
    classes_ : ndarray
    coef_ : ndarray of shape (1, n_cells) or (n_classes, n_cells)
        One weight for each cell of ``encoding_.cell_names()``.
    intercept_ : ndarray
    privacy_ : PrivacyGuarantee
    encoding_ : PublicEncoding
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy of the fitted model, for tables that differ in one record, or in
    all records of one person with `unit`. Noise is OpenDP's (extra ``dp``), drawn from the operating system without a
    seed, so two fits differ. It is exactly as large as the composition of Gaussian steps requires.

    *Not guaranteed.* What the owner of the records computes beside the model, such as its accuracy on them, is not
    private. Neither is the choice of settings by trying them on the same records: the defaults of `n_steps`,
    `momentum`, `clip`, `smoothing` and the learning rate were chosen on other public tables (Bank Marketing, FARS, the
    census of 1994/95, ACS employment and public coverage).

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from sfumato.private import PrivateLogisticRegression
    >>> ages = np.arange(4000) % 100
    >>> people = pa.table({"age": ages})
    >>> model = PrivateLogisticRegression(epsilon=1.0, bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> model.fit(people, np.where(ages >= 50, "yes", "no")).score(people, np.where(ages >= 50, "yes", "no")) > 0.9
    True
    >>> model.privacy_.epsilon, model.privacy_.delta, model.privacy_.adjacency
    (1.0, 1e-06, 'adding or removing one record')
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Mapping[str, Sequence[float]] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        classes: Sequence[Any] | None = None,
        unit: str | None = None,
        n_intervals: int = 16,
        n_steps: int = 200,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        clip: float = 0.5,
        smoothing: float = 4.0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.unit = unit
        self.n_intervals = n_intervals
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.clip = clip
        self.smoothing = smoothing

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on raw records.

        Parameters
        ----------
        X : frame or array
        y : array-like of shape (n_records,)
        """
        table, shares, n_persons = self._start(X, n_intervals=self.n_intervals)
        codes, assumed = self._labels(y, table.n_records)
        n_classes = len(self.classes_)
        settings = checked_descent(self, _FASTEST_OF_TWO if n_classes == 2 else _FASTEST_OF_MORE)
        rows = self.encoding_.one_hot(table)
        residuals = _logistic(codes) if n_classes == 2 else _softmax(codes, n_classes)
        smoothing = self.encoding_.smoothing(self.smoothing)
        weights = descend(rows, residuals, 1 if n_classes == 2 else n_classes, settings, shares, n_persons, smoothing)
        weights /= row_length(rows)
        self.coef_, self.intercept_ = weights[:-1].T, weights[-1]
        unit = None if self.unit is None else table.resolve([self.unit], "unit")[0]
        mechanism = f"{self.n_steps} gradients and a count with Gaussian noise"
        self.privacy_ = self._guarantee(mechanism, assumed, "settings were chosen without the records", unit=unit)
        return self

    def _logits(self, X: Any) -> Floats:
        scores = scores_of(self, X)
        return np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores


class PrivateLinearRegression(RegressorMixin, PrivateEstimator):
    """Linear regression with differential privacy, by gradient descent with Gaussian noise.

    Residuals beyond a quarter of the target's range count as that much, as in Huber's loss.

    Parameters
    ----------
    target_bounds : (float, float)
        Lowest and highest possible target, known without the data. Targets and predictions outside are moved to the
        ends.
    epsilon, delta, bounds, categories, unit, n_intervals, n_steps, learning_rate, momentum, smoothing
        As for `PrivateLogisticRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_cells,)
        One weight for each cell of ``encoding_.cell_names()``.
    intercept_ : float
    privacy_ : PrivacyGuarantee
    encoding_ : PublicEncoding

    Notes
    -----
    *Guarantee.* As for `PrivateLogisticRegression`, with `target_bounds` chosen without the data, too.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from sfumato.private import PrivateLinearRegression
    >>> ages = np.arange(4000) % 100
    >>> people = pa.table({"age": ages})
    >>> model = PrivateLinearRegression(epsilon=1.0, bounds={"age": (0, 100)}, target_bounds=(0, 1000))
    >>> model.fit(people, 10 * ages).score(people, 10 * ages) > 0.8
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Mapping[str, Sequence[float]] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        target_bounds: tuple[float, float] | None = None,
        unit: str | None = None,
        n_intervals: int = 16,
        n_steps: int = 200,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        smoothing: float = 4.0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.target_bounds = target_bounds
        self.unit = unit
        self.n_intervals = n_intervals
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.smoothing = smoothing

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on raw records.

        Parameters
        ----------
        X : frame or array
        y : array-like of float of shape (n_records,)
        """
        table, shares, n_persons = self._start(X, n_intervals=self.n_intervals)
        low, high = _ends(self.target_bounds)
        settings = checked_descent(self, _FASTEST_OF_NUMBERS, pace=_PACE_OF_NUMBERS)
        # A quarter of the range is 1: then clipping the residuals at 1 is clipping them there.
        quarter = (high - low) / 4
        target = (np.clip(_numbers(y, table.n_records), low, high) - (low + high) / 2) / quarter
        rows = self.encoding_.one_hot(table)
        smoothing = self.encoding_.smoothing(self.smoothing)
        weights = descend(rows, lambda scores: scores - target[:, None], 1, settings, shares, n_persons, smoothing)
        weights = weights[:, 0] * quarter / row_length(rows)
        self.coef_, self.intercept_ = weights[:-1], float(weights[-1] + (low + high) / 2)
        unit = None if self.unit is None else table.resolve([self.unit], "unit")[0]
        self.privacy_ = self._guarantee(
            f"{self.n_steps} gradients and a count with Gaussian noise",
            "the bounds of the target were chosen without the records",
            "settings were chosen without the records",
            unit=unit,
        )
        return self

    def predict(self, X: Any) -> Floats:
        """Predict numbers inside `target_bounds`."""
        return np.clip(scores_of(self, X), *_ends(self.target_bounds))


def checked_descent(estimator: Any, fastest: float, *, pace: float = PACE) -> Descent:
    """Return the settings of an estimator's descent; raise ParameterError for values that cannot work."""
    steps = estimator.n_steps
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ParameterError(f"{named('n_steps', steps)}: expected an integer from 1 on.")
    if not isinstance(estimator.momentum, int | float) or not 0 <= estimator.momentum < 1:
        raise ParameterError(f"{named('momentum', estimator.momentum)}: expected a number from 0 to below 1.")
    rate, clip = estimator.learning_rate, getattr(estimator, "clip", 1.0)
    if rate is not None and not _is_number(rate, above=0.0):
        raise ParameterError(f"{named('learning_rate', rate)}: expected a number above 0, or None.")
    if not _is_number(clip, above=0.0):
        raise ParameterError(f"{named('clip', clip)}: expected a number above 0.")
    if not _is_number(estimator.smoothing, above=-1e-300):
        raise ParameterError(f"{named('smoothing', estimator.smoothing)}: expected a number from 0 on.")
    return Descent(
        float(estimator.epsilon),
        estimator.delta,
        int(steps),
        float(estimator.momentum),
        rate,
        fastest,
        pace,
        float(clip),
    )


def _is_number(value: Any, *, above: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and above < value < np.inf


def scores_of(estimator: Any, X: Any) -> Floats:
    """Return the linear scores of records, one column per output."""
    table = fitted_table(estimator, X)
    rows = estimator.encoding_.one_hot(table)[:, :-1]
    return np.asarray(rows @ estimator.coef_.T + estimator.intercept_)


def _ends(target_bounds: Any) -> tuple[float, float]:
    try:
        low, high = map(float, target_bounds)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(
            f"{named('target_bounds', target_bounds)}: expected the lowest and the highest possible target, known "
            "without the data, such as (0, 100000). Looked up in the data they would leak."
        )
    return low, high


def _numbers(y: Any, n_records: int) -> Floats:
    if y is None:
        raise InputError("PrivateLinearRegression requires y to be passed, but the target y is None. Pass numbers.")
    try:
        numbers = np.asarray(y, np.float64)
    except (TypeError, ValueError):
        raise InputError("y has something else than numbers: expected one number per record. Convert it.") from None
    if numbers.shape != (n_records,) or not np.isfinite(numbers).all():
        raise InputError(
            f"y has the shape {numbers.shape} and the table {n_records} records: expected one finite number per record."
        )
    return numbers


def _logistic(codes: NDArray[np.intp]) -> Residuals:
    is_second = codes.astype(np.float64)[:, None]

    def residuals(scores: Floats) -> Floats:
        return np.asarray(0.5 * (1 + np.tanh(scores / 2)) - is_second)

    return residuals


def _softmax(codes: NDArray[np.intp], n_classes: int) -> Residuals:
    wanted = np.eye(n_classes)[codes]

    def residuals(scores: Floats) -> Floats:
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True) - wanted)

    return residuals
