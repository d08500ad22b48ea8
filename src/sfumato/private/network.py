# SPDX-License-Identifier: Apache-2.0
"""Dense networks with differential privacy: gradient descent on random batches, by Opacus (Abadi et al., 2016)."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import MissingExtraError
from sfumato.networks import (
    as_tensors,
    dense_network,
    one_thread,
    pick_device,
    predict_network,
    require_torch,
    seeded_generator,
)
from sfumato.private.estimator import PrivateClassifier, fitted_table

Floats = NDArray[np.float64]


class PrivateNetworkClassifier(PrivateClassifier):
    """Dense network trained by gradient descent with differential privacy (Abadi et al., 2016), by Opacus.

    Parameters
    ----------
    epsilon : float, default=1.0
    delta : float, default=1e-6
    bounds, categories, classes, n_intervals
        As for `PrivateLogisticRegression`.
    hidden : tuple of int, default=(64,)
    epochs, batch_size : int
    learning_rate : float
    clip : float, default=1.0
        Longest gradient of a record.
    device : str, torch.device or None

    Attributes
    ----------
    classes_ : ndarray
    module_ : torch.nn.Module
    privacy_ : PrivacyGuarantee
        Its epsilon is what was spent, at most the one that was asked for.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy of the weights by Opacus' accountant, for tables that differ in
    one record. Batches and noise come from torch's generators, seeded by the operating system. These generators are not
    cryptographic; Opacus' secure ones need a package that today's torch has no release of.

    *Settings.* The defaults of epochs, batch size, learning rate and clip were chosen on Bank Marketing, a public
    table.

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

    unit = None  # a person is one record: Opacus clips the gradients of records

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Mapping[str, Sequence[float]] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        classes: Sequence[Any] | None = None,
        n_intervals: int = 16,
        hidden: tuple[int, ...] = (64,),
        epochs: int = 20,
        batch_size: int = 1024,
        learning_rate: float = 0.01,
        clip: float = 1.0,
        device: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.n_intervals = n_intervals
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip = clip
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on raw records."""
        table, _, _ = self._start(X, n_intervals=self.n_intervals, allows_infinite=False)
        codes, assumed = self._labels(y, table.n_records)
        numbers = self.encoding_.one_hot(table)[:, :-1].toarray()
        sizes = (numbers.shape[1], *self.hidden, len(self.classes_))
        self.module_, spent = train_privately(
            dense_network(sizes, seeded_generator(_secret_seed()), activation="Tanh"),
            numbers,
            codes,
            epsilon=float(self.epsilon),
            delta=self.delta,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            clip=self.clip,
            device=self.device,
        )
        guarantee = self._guarantee(
            f"{self.epochs} epochs of clipped gradients with Gaussian noise, by Opacus",
            assumed,
            "the number of records is public",
            "settings were chosen without the records",
            "torch's random numbers cannot be predicted",
        )
        self.privacy_ = replace(guarantee, epsilon=spent)
        return self

    def _logits(self, X: Any) -> Floats:
        table = fitted_table(self, X)
        numbers = self.encoding_.one_hot(table)[:, :-1].toarray()
        return predict_network(self.module_, [numbers], device=self.device).astype(np.float64)


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
        dataset, batch_size=min(batch_size, len(codes)), generator=seeded_generator(_secret_seed())
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
            noise_generator=torch.Generator(device=device).manual_seed(_secret_seed()),
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


def _secret_seed() -> int:
    return secrets.randbits(63)
