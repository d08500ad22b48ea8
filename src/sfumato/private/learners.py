# SPDX-License-Identifier: Apache-2.0
"""Differentially private classifiers with scikit-learn's interface, to compare with the other protections.

The forest and the logistic regression are diffprivlib's, the network is trained with Opacus (extra ``dp``). All three
take frames. Differential privacy holds only if nothing about the data is looked up in the data. So ranges of numbers,
lists of categories and the classes are parameters, and diffprivlib's warning that it looked them up is an error here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import GuaranteeError, InputError, MissingExtraError, ParameterError, named
from sfumato.frames import Column, Table, read_table
from sfumato.networks import (
    as_tensors,
    dense_network,
    one_thread,
    pick_device,
    predict_network,
    require_torch,
    seeded_generator,
)

Floats = NDArray[np.float64]
_SEED_LIMIT = 2**31 - 1


class _PrivateClassifier(ClassifierMixin, BaseEstimator):
    """Base of the private classifiers: columns as bounded numbers, and classes given in advance."""

    epsilon: float
    bounds: Mapping[str, tuple[float, float]]
    categories: Mapping[str, Sequence[Any]]
    classes: Sequence[Any]
    random_state: Any

    _one_hot = True

    def _encoded(self, X: Any) -> Floats:
        return encode(read_table(X), self.bounds or {}, self.categories or {}, one_hot=self._one_hot)

    def _checked(self, X: Any, y: Any) -> tuple[Floats, NDArray[np.intp]]:
        if not isinstance(self.epsilon, int | float) or isinstance(self.epsilon, bool) or not self.epsilon > 0:
            raise ParameterError(f"{named('epsilon', self.epsilon)}: expected a number above 0. Smaller protects more.")
        if self.classes is None or len(self.classes) < 2:
            raise ParameterError(
                "classes= is missing: expected the list of labels, told and not looked up in the data, or the labels "
                "that occur would leak. Pass classes=[...]."
            )
        self.classes_ = np.unique(np.asarray(self.classes))
        labels = np.asarray(y)
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        if (self.classes_[codes] != labels).any():
            raise InputError(
                f"y has labels that are not among the {len(self.classes_)} of classes=: expected no others. Add them."
            )
        return self._encoded(X), codes

    def _seed(self) -> int:
        state = self.random_state
        if state is None or isinstance(state, int | np.integer):
            return int(np.random.default_rng(state).integers(_SEED_LIMIT))
        return int(state.randint(_SEED_LIMIT))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most likely class."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class."""
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.predict_proba(self._encoded(X)), np.float64)


class PrivateForestClassifier(_PrivateClassifier):
    """Random forest of diffprivlib on bounded columns: ordered codes for categories.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget of the whole forest.
    bounds : mapping of str to (float, float)
        Lowest and highest value of each column of numbers, known beforehand. Values outside are moved to the ends.
    categories : mapping of str to list
        The values of each other column, known beforehand. Any other value counts as one more.
    classes : list
        All labels.
    n_estimators, max_depth : int
    random_state : int or RandomState, optional
        Fixes the noise, too: for experiments only. A seed that is known takes the protection away.

    Notes
    -----
    *Guarantee.* Pure epsilon-differential privacy of the fitted forest, as diffprivlib implements it, for tables that
    differ in one record, under the assumption that `bounds`, `categories` and `classes` were chosen without the data.

    Examples
    --------
    >>> from sfumato.private import PrivateForestClassifier
    >>> model = PrivateForestClassifier(
    ...     epsilon=1.0, bounds={"age": (0, 120)}, categories={"sex": ["f", "m"]}, classes=["no", "yes"]
    ... )
    >>> model.get_params()["epsilon"]
    1.0
    >>> model.fit(people, labels).predict(people)  # doctest: +SKIP
    """

    _one_hot = False

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        categories: Any = None,
        classes: Any = None,
        n_estimators: int = 10,
        max_depth: int = 8,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on raw records."""
        numbers, codes = self._checked(X, y)
        highest = _highest(self.bounds or {}, self.categories or {}, read_table(X))
        forest = _diffprivlib().RandomForestClassifier(
            n_estimators=self.n_estimators,
            epsilon=float(self.epsilon),
            bounds=(np.zeros(numbers.shape[1]), highest),
            classes=list(range(len(self.classes_))),
            max_depth=self.max_depth,
            random_state=self._seed(),
        )
        with leaks_are_errors():
            self.model_ = forest.fit(numbers, codes)
        return self


class PrivateLogisticRegression(_PrivateClassifier):
    """Logistic regression of diffprivlib on bounded columns: numbers between 0 and 1, categories one-hot.

    Parameters
    ----------
    epsilon : float, default=1.0
    bounds, categories, classes
        As for `PrivateForestClassifier`. They also bound the length of a record, which the noise is made for.
    C : float, default=1.0
        Inverse of the regularization.
    max_iter : int, default=200
    random_state : int or RandomState, optional

    Notes
    -----
    *Guarantee.* Pure epsilon-differential privacy of the coefficients, as diffprivlib perturbs the objective,
    for tables that differ in one record, under the assumption that the bounds were chosen without the data. diffprivlib
    fits one model per class that occurs, so a class without records is refused: its absence would show.

    Examples
    --------
    >>> from sfumato.private import PrivateLogisticRegression
    >>> model = PrivateLogisticRegression(
    ...     epsilon=1.0, bounds={"age": (0, 120)}, categories={"sex": ["f", "m"]}, classes=["no", "yes"]
    ... )
    >>> model.get_params()["epsilon"]
    1.0
    >>> model.fit(people, labels).predict(people)  # doctest: +SKIP
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        categories: Any = None,
        classes: Any = None,
        C: float = 1.0,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.C = C
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on raw records."""
        numbers, codes = self._checked(X, y)
        n_absent = len(self.classes_) - len(np.unique(codes))
        if n_absent:
            raise InputError(
                f"{n_absent} of the {len(self.classes_)} classes have no record: expected records of each, since the "
                "coefficients would show which are absent. Take them out of classes=, or use PrivateForestClassifier."
            )
        with leaks_are_errors():
            model = _diffprivlib().LogisticRegression(
                epsilon=float(self.epsilon),
                data_norm=float(np.sqrt(len(read_table(X).names))),  # every column adds a length of at most 1
                C=self.C,
                max_iter=self.max_iter,
                random_state=self._seed(),
            )
            self.model_ = model.fit(numbers, codes)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the logits."""
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.decision_function(self._encoded(X)), np.float64)


class PrivateNetworkClassifier(_PrivateClassifier):
    """Dense network trained with differentially private gradient descent (Abadi et al., 2016) by Opacus.

    Parameters
    ----------
    epsilon : float, default=1.0
    delta : float, default=1e-5
    bounds, categories, classes
        As for `PrivateForestClassifier`; numbers between 0 and 1, categories one-hot.
    hidden : tuple of int, default=(64,)
    epochs, batch_size : int
    learning_rate : float
    clip : float, default=1.0
        Longest gradient of a record.
    random_state : int or RandomState, optional
    device : str, torch.device or None

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy of the weights by Opacus' accountant, for tables that differ in
    one record, under the assumption that the bounds were chosen without the data. ``epsilon_`` is what was spent.

    Examples
    --------
    >>> from sfumato.private import PrivateNetworkClassifier
    >>> model = PrivateNetworkClassifier(
    ...     epsilon=1.0, bounds={"age": (0, 120)}, categories={"sex": ["f", "m"]}, classes=["no", "yes"]
    ... )
    >>> model.get_params()["epsilon"]
    1.0
    >>> model.fit(people, labels).predict(people)  # doctest: +SKIP
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        bounds: Any = None,
        categories: Any = None,
        classes: Any = None,
        hidden: tuple[int, ...] = (64,),
        epochs: int = 20,
        batch_size: int = 256,
        learning_rate: float = 0.01,
        clip: float = 1.0,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip = clip
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on raw records."""
        numbers, codes = self._checked(X, y)
        seed = self._seed()
        sizes = (numbers.shape[1], *self.hidden, len(self.classes_))
        self.module_, self.epsilon_ = train_privately(
            dense_network(sizes, seeded_generator(seed), activation="Tanh"),
            numbers,
            codes,
            epsilon=float(self.epsilon),
            delta=self.delta,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            clip=self.clip,
            seed=seed,
            device=self.device,
        )
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the logits: one column per class, or one number for two classes."""
        logits = self._logits(X)
        return np.asarray(logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits)

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class."""
        logits = self._logits(X)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _logits(self, X: Any) -> Floats:
        check_is_fitted(self, "module_")
        return predict_network(self.module_, [self._encoded(X)], device=self.device).astype(np.float64)


@one_thread()
def train_privately(
    module: Any,
    numbers: NDArray[np.float64],
    codes: NDArray[np.intp],
    *,
    epsilon: float,
    delta: float,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    clip: float,
    seed: int,
    device: Any = None,
) -> tuple[Any, float]:
    """Train a classifier with clipped and noised gradients; return it and the epsilon that was spent.

    Batches are drawn by independent coin flips per record, as the accountant assumes. The noise is the least that keeps
    to `epsilon` over all epochs. Gradients of single records are never written down: their lengths follow from the
    layers' inputs and outputs, and a second pass clips (ghost clipping), which is several times as fast.
    """
    torch = require_torch()
    try:
        from opacus import PrivacyEngine
    except ImportError as error:
        raise MissingExtraError(
            "opacus is not installed: private networks need it. Install it with pip install 'sfumato[dp]'."
        ) from error
    device = pick_device(device)
    module.to(device).train()
    dataset = torch.utils.data.TensorDataset(*as_tensors([numbers, codes], "cpu"))
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=min(batch_size, len(codes)), generator=seeded_generator(seed)
    )
    optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate)
    with warnings.catch_warnings():
        # Its random numbers are not cryptographic, and the hooks on the first layer need no gradient of the input.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        engine = PrivacyEngine(accountant="rdp", secure_mode=False)
        private, optimizer, criterion, loader = engine.make_private_with_epsilon(
            module=module,
            optimizer=optimizer,
            data_loader=loader,
            criterion=torch.nn.CrossEntropyLoss(),
            grad_sample_mode="ghost",
            target_epsilon=epsilon,
            target_delta=delta,
            epochs=epochs,
            max_grad_norm=clip,
            noise_generator=torch.Generator(device=device).manual_seed(seed),
        )
        for _ in range(epochs):
            for rows, labels in loader:
                # A batch may be empty; the step is taken all the same, with noise alone, as the accountant assumes.
                optimizer.zero_grad()
                criterion(private(rows.to(device)), labels.to(device)).backward()
                optimizer.step()
        spent = float(engine.get_epsilon(delta))
    trained = private._module if hasattr(private, "_module") else private
    return trained.eval(), spent


def encode(
    table: Table, bounds: Mapping[str, tuple[float, float]], categories: Mapping[str, Sequence[Any]], *, one_hot: bool
) -> Floats:
    """Return all columns as numbers whose range follows from `bounds` and `categories` alone.

    Numbers lie between 0 and 1, missing ones in the middle. Categories become one column each (`one_hot`, where any
    other value, missing included, gets a column of its own), or their place in the list.
    """
    parts = []
    for name in table.names:
        column = table.column(name)
        if name in bounds:
            parts.append(_scaled(column, *bounds[name])[:, None])
        elif name in categories:
            places = _places(column, list(categories[name]))
            parts.append(np.eye(len(categories[name]) + 1)[places] if one_hot else places[:, None].astype(np.float64))
        else:
            raise ParameterError(
                f"column {name!r} is neither in bounds= nor in categories=: expected a range or a list of values for "
                "every column, known beforehand. Add it; looked up in the data it would leak."
            )
    return np.column_stack(parts)


def _scaled(column: Column, low: float, high: float) -> Floats:
    if column.kind == "category":
        raise ParameterError(
            f"column {column.name!r} holds categories and is in bounds=: expected it in categories=. Move it there."
        )
    if not low < high:
        raise ParameterError(f"bounds of column {column.name!r}: expected the low end below the high end. Swap them.")
    scaled = np.clip((column.values.astype(np.float64) - low) / (high - low), 0.0, 1.0)
    return scaled if column.missing is None else np.where(column.missing, 0.5, scaled)


def _places(column: Column, known: list[Any]) -> NDArray[np.intp]:
    place = {value: position for position, value in enumerate(known)}
    found = column.values.tolist() if column.categories is None else column.categories.tolist()
    of_value = np.array([place.get(value, len(known)) for value in found], np.intp)
    places = of_value if column.categories is None else of_value[column.values]
    return places if column.missing is None else np.where(column.missing, len(known), places)


def _highest(
    bounds: Mapping[str, tuple[float, float]], categories: Mapping[str, Sequence[Any]], table: Table
) -> Floats:
    return np.array([1.0 if name in bounds else float(len(categories[name])) for name in table.names])


def _diffprivlib() -> Any:
    try:
        from diffprivlib import models
    except ImportError as error:
        raise MissingExtraError(
            "diffprivlib cannot be imported: it is not installed, or scikit-learn is too new for it (diffprivlib 0.6.6 "
            "runs with scikit-learn up to 1.7). Install both with pip install 'sfumato[dp]', best in a new environment."
        ) from error
    return models


@contextmanager
def leaks_are_errors() -> Iterator[None]:
    """Turn diffprivlib's warning that it looked something up in the data into an error."""
    from diffprivlib.utils import PrivacyLeakWarning

    with warnings.catch_warnings():
        # Keywords of scikit-learn and scipy that it still passes.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("error", PrivacyLeakWarning)
        try:
            yield
        except PrivacyLeakWarning as leak:
            raise GuaranteeError(
                f"diffprivlib had to look at the data: {leak} Expected bounds, categories and classes for everything. "
                "Pass them; without them there is no differential privacy."
            ) from None
