# SPDX-License-Identifier: Apache-2.0
"""Differentially private gradient descent with Opacus; called by ``private_models`` alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import MissingExtraError
from sfumato.networks import as_tensors, one_thread, pick_device, require_torch, seeded_generator


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
