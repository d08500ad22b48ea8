# SPDX-License-Identifier: Apache-2.0
"""Explainable boosting with differential privacy, by interpret-core (Nori et al., ICML 2021)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import GuaranteeError, MissingExtraError, ParameterError, named
from sfumato.private.estimator import PrivateClassifier, fitted_table

Floats = NDArray[np.float64]


class PrivateBoostingClassifier(PrivateClassifier):
    """Explainable boosting machine of interpret-core with differential privacy, for two classes.

    A sum of one curve per column, learned by boosting with random splits and Gaussian noise.

    Parameters
    ----------
    epsilon : float, default=1.0
    delta : float, default=1e-6
    bounds, categories, classes, n_intervals
        As for `PrivateLogisticRegression`. Columns reach interpret-core as the numbers of their public cells, so that
        it looks up no category in the data.
    n_rounds : int, default=50
        Rounds over all columns. More rounds get more noise each.
    learning_rate : float, default=1.0

    Attributes
    ----------
    classes_ : ndarray
    model_ : interpret.privacy.DPExplainableBoostingClassifier
    privacy_ : PrivacyGuarantee

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy of the fitted model, as interpret-core implements it and accounts
    for it. It uses the number of records as it is, and keeps it in the model: two neighboring tables differ in one
    record, and are taken to have the same number. Whoever knows who else is in the table, and their number, can count;
    take `PrivateLogisticRegression` where that matters. Noise is added to floats as they are, from the operating
    system's random device. Two made-up records, one of each class, are added to every table, so that no class is ever
    absent.

    *Settings.* interpret-core's own defaults, 300 rounds at a rate of 0.01, stop long before the curves are learned.
    The order of the scores is right then, and their size is not. The defaults here were chosen on Bank Marketing, a
    public table.

    Examples
    --------
    >>> from sfumato.private import PrivateBoostingClassifier
    >>> model = PrivateBoostingClassifier(
    ...     epsilon=1.0, bounds={"age": (0, 120)}, categories={"sex": ["f", "m"]}, classes=["no", "yes"]
    ... )
    >>> model.get_params()["n_rounds"]
    50
    >>> model.fit(people, labels).predict(people)  # doctest: +SKIP
    """

    unit = None  # a person is one record: interpret-core bounds no others

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Mapping[str, Sequence[float]] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        classes: Sequence[Any] | None = None,
        n_intervals: int = 16,
        n_rounds: int = 50,
        learning_rate: float = 1.0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.n_intervals = n_intervals
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on raw records."""
        table, _, _ = self._start(X, n_intervals=self.n_intervals, allows_infinite=False)
        codes, assumed = self._labels(y, table.n_records)
        if len(self.classes_) > 2:
            raise ParameterError(
                f"{named('classes')} has {len(self.classes_)} labels: expected two, which is all that interpret-core "
                "boosts with differential privacy. Use PrivateLogisticRegression."
            )
        cells = self.encoding_.cells(table).astype(np.float64)
        # Two made-up records, one of each class: interpret-core reads the list of classes from the labels, so the last
        # record of a class would show, in the model or in an error. They are the same for every table.
        cells, codes = np.vstack([cells, np.zeros((2, cells.shape[1]))]), np.append(codes, [0, 1])
        ends = {place: (-0.5, column.n_cells - 0.5) for place, column in enumerate(self.encoding_.columns)}
        model = require_interpret().DPExplainableBoostingClassifier(
            feature_types=["continuous"] * len(ends),
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            privacy_bounds=ends,
            max_rounds=self.n_rounds,
            learning_rate=self.learning_rate,
            n_jobs=1,
            random_state=None,
        )
        with warnings.catch_warnings():
            # It warns where it looks something up in the data; then there is no differential privacy.
            warnings.simplefilter("error")
            try:
                self.model_ = model.fit(cells, codes)
            except (RuntimeWarning, ValueError):  # of its accountant; the records are numbers of cells and labels
                raise ParameterError(
                    f"{named('epsilon', self.epsilon)} with delta={self.delta:g}: expected a budget that "
                    "interpret-core can account for. Take another one, or PrivateLogisticRegression."
                ) from None
            except Warning as leak:
                raise GuaranteeError(
                    f"interpret-core warns: {leak} Expected bounds, categories and classes for everything."
                ) from None
        self.privacy_ = self._guarantee(
            f"explainable boosting of interpret-core, {self.n_rounds} rounds with Gaussian noise",
            assumed,
            "the number of records is public and does not tell who is in the table",
            "interpret-core's noise is that of real numbers",
            "settings were chosen without the records",
        )
        return self

    def _logits(self, X: Any) -> Floats:
        table = fitted_table(self, X)
        cells = self.encoding_.cells(table).astype(np.float64)
        scores = np.asarray(self.model_.decision_function(cells), np.float64)
        return np.column_stack([np.zeros(len(scores)), scores])


def require_interpret() -> Any:
    """Return interpret's private models.

    Raises
    ------
    MissingExtraError
        If interpret-core is not installed.
    """
    try:
        import interpret.privacy
    except ImportError as error:
        raise MissingExtraError(
            "interpret-core is not installed: private boosting needs it. Install it with pip install 'sfumato[dp]'."
        ) from error
    return interpret.privacy
