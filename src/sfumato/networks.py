# SPDX-License-Identifier: Apache-2.0
"""Small neural networks: find torch, build layers, fit, predict.

What the neural minimizers and the attack networks share, so that seeds, batches and devices are handled once. torch
is an extra and is imported when a function is called. No global state of torch is changed: weights and batches are
drawn from generators made from the seeds passed in, always on the CPU, so that a seed means the same on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import MissingExtraError, ParameterError, named

PREDICTION_ROWS = 65_536
"""Rows put through a network at a time when it only predicts."""


def require_torch() -> Any:
    """Return the torch module, or say how to install it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "torch is not installed: the neural methods need it. Install it with pip install 'sfumato[neural]'."
        ) from error
    return torch


def pick_device(device: Any = None) -> Any:
    """Return the device to compute on: the given one, else a GPU if there is one, else the CPU.

    Parameters
    ----------
    device : str, torch.device or None
    """
    torch = require_torch()
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ParameterError(
            f"{named('device', device)}: expected a device of torch such as 'cpu' or 'cuda'. Leave it None to have one "
            "picked."
        ) from error
    if picked.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(f"{named('device', device)}: no GPU is available here. Leave device None, or pass 'cpu'.")
    return picked


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread of the CPU inside, and as before afterwards.

    Layers this small are not worth sharing out: on a busy machine two threads that wait for each other at every step
    were ten times slower than one. It also keeps sums in one order, whatever the number of cores.
    """
    torch = require_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seeded_generator(seed: int) -> Any:
    """Return a torch generator on the CPU that starts from `seed`."""
    generator = require_torch().Generator()
    generator.manual_seed(int(seed))
    return generator


def linear_layer(n_inputs: int, n_outputs: int, generator: Any) -> Any:
    """Return a linear layer whose weights and biases are uniform in plus or minus one over the root of `n_inputs`."""
    torch = require_torch()
    # Built without its own initialisation, which would draw from torch's global generator.
    layer = torch.nn.utils.skip_init(torch.nn.Linear, n_inputs, n_outputs)
    bound = max(n_inputs, 1) ** -0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def dense_network(sizes: Sequence[int], generator: Any, *, activation: str = "ReLU") -> Any:
    """Return linear layers of the given sizes, inputs first, with an activation between them and none at the end.

    Parameters
    ----------
    sizes : sequence of int
        For example ``(30, 50, 2)``: 30 inputs, one hidden layer of 50, 2 outputs.
    generator : torch.Generator
        From `seeded_generator`.
    activation : str
        Name of a class in ``torch.nn``.
    """
    torch = require_torch()
    layers: list[Any] = []
    for n_inputs, n_outputs in pairwise(sizes):
        layers += [linear_layer(n_inputs, n_outputs, generator), getattr(torch.nn, activation)()]
    return torch.nn.Sequential(*layers[:-1])


def as_tensors(arrays: Sequence[Any], device: Any) -> list[Any]:
    """Return arrays or tensors as tensors on the device: numbers as float32, codes as int64."""
    torch = require_torch()
    tensors = []
    for array in arrays:
        if not isinstance(array, torch.Tensor):
            values = np.asarray(array)
            wanted = np.float32 if values.dtype.kind == "f" else np.int64
            array = torch.from_numpy(np.array(values, dtype=bool if values.dtype.kind == "b" else wanted))
        tensors.append(array.to(device))
    return tensors


class EpochSampler:
    """Row numbers of one epoch after the other, in random order.

    Without weights an epoch is every row once. With weights it has as many rows all the same, and a row stands in it
    its weight over the mean weight times, rounded up or down at random (systematic sampling): so a table whose equal
    records were merged trains as the whole table would, in fewer steps, and no single batch carries a heavy row alone.

    Parameters
    ----------
    n_rows : int
    weights : ndarray of float or None
        Not negative.
    generator : torch.Generator
    """

    def __init__(self, n_rows: int, weights: NDArray[np.float64] | None, generator: Any) -> None:
        self.n_rows = n_rows
        self.generator = generator
        self._cumulated = None
        if weights is not None:
            cumulated = np.cumsum(weights)
            self._cumulated = cumulated * (n_rows / cumulated[-1])

    def rows(self) -> Any:
        """Return the row numbers of the next epoch as a tensor on the CPU."""
        torch = require_torch()
        order = torch.randperm(self.n_rows, generator=self.generator)
        if self._cumulated is None:
            return order
        start = float(torch.rand((), dtype=torch.float64, generator=self.generator))
        drawn = np.searchsorted(self._cumulated, np.arange(self.n_rows) + start, side="right")
        # Rounding may leave the last sum a little below the number of rows.
        last = int(np.searchsorted(self._cumulated, self._cumulated[-1], side="left"))
        return torch.from_numpy(np.minimum(drawn, last))[order]


def epochs_for(n_rows: int, batch_size: int, *, epochs: int, least_steps: int) -> int:
    """Return how many epochs to train: `epochs`, or more where so few rows would mean too few steps.

    Examples
    --------
    >>> epochs_for(60_000, 256, epochs=20, least_steps=1000), epochs_for(300, 256, epochs=20, least_steps=1000)
    (20, 500)
    """
    steps = -(-n_rows // batch_size)
    return max(epochs, -(-least_steps // steps))


@one_thread()
def fit_network(
    module: Any,
    inputs: Sequence[Any],
    loss_of: Callable[..., Any],
    *,
    weights: ArrayLike | None = None,
    epochs: int = 20,
    batch_size: int = 256,
    learning_rate: float = 0.01,
    schedule: tuple[int, float] | None = (10, 0.1),
    weight_decay: float = 0.0,
    seed: int = 0,
    device: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Fit a network in mini-batches with Adam; everything stays on the device between steps.

    Parameters
    ----------
    module : torch.nn.Module
        Trained in place, moved to the device, and left in evaluation mode.
    inputs : sequence of arrays or tensors
        With the same number of rows: floats become float32, whole numbers int64.
    loss_of : callable
        ``loss_of(module, *rows_of_each_input)`` returns one loss per row.
    weights : array of float, shape (n_rows,), optional
        How many records each row stands for. More rows than one batch: rows are drawn accordingly (see
        `EpochSampler`). All rows in one batch: the mean is weighted.
    epochs, batch_size : int
    learning_rate : float
    schedule : tuple of int and float, optional
        ``(10, 0.1)`` multiplies the learning rate by 0.1 after every 10 epochs.
    weight_decay : float
        L2 penalty.
    seed : int
        Decides the batches. Build the module from `seeded_generator` to have its weights from a seed, too.
    device : str, torch.device or None
    progress : callable, optional
        Called after each epoch with the number of epochs done and their total.

    Returns
    -------
    losses : list of float
        Mean loss of each epoch.
    """
    torch = require_torch()
    device = pick_device(device)
    module.to(device).train()
    tensors = as_tensors(inputs, device)
    n_rows = len(tensors[0])
    row_weights = _checked_weights(weights, n_rows)
    in_one_batch = n_rows <= batch_size
    sampler = EpochSampler(n_rows, None if in_one_batch else row_weights, seeded_generator(seed))
    shares = None
    if in_one_batch and row_weights is not None:
        shares = as_tensors([row_weights / row_weights.sum()], device)[0]
    optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate, weight_decay=weight_decay)
    losses = []
    for epoch in range(epochs):
        if schedule is not None and epoch and epoch % schedule[0] == 0:
            for group in optimizer.param_groups:
                group["lr"] *= schedule[1]
        total = torch.zeros((), device=device)
        for rows in sampler.rows().to(device).split(batch_size):
            optimizer.zero_grad(set_to_none=True)
            row_losses = loss_of(module, *(tensor[rows] for tensor in tensors))
            loss = row_losses.mean() if shares is None else (row_losses * shares[rows]).sum()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(rows)
        losses.append(float(total) / n_rows)
        if not np.isfinite(losses[-1]):
            raise ParameterError(
                f"{named('learning_rate', learning_rate)}: the loss left the range of numbers in epoch {epoch + 1}. "
                "Lower learning_rate, or scale the inputs."
            )
        if progress is not None:
            progress(epoch + 1, epochs)
    module.eval()
    return losses


def _checked_weights(weights: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n_rows,) or not np.isfinite(checked).all() or (checked < 0).any() or not checked.any():
        raise ParameterError(
            f"weights of shape {checked.shape} for {n_rows} rows: expected one finite number per row, none negative "
            "and not all zero. Leave weights None to count every row once."
        )
    return checked


def predict_network(
    module: Any, inputs: Sequence[Any], outputs_of: Callable[..., Any] | None = None, *, device: Any = None
) -> NDArray[Any]:
    """Return the network's outputs for all rows as a numpy array.

    Parameters
    ----------
    module : torch.nn.Module
    inputs : sequence of arrays or tensors
    outputs_of : callable, optional
        ``outputs_of(module, *rows_of_each_input)``; without it the module is called with the rows.
    device : str, torch.device or None
    """
    torch = require_torch()
    device = pick_device(device)
    module.to(device).eval()
    tensors = as_tensors(inputs, "cpu")
    parts = []
    with torch.no_grad():
        for start in range(0, max(len(tensors[0]), 1), PREDICTION_ROWS):
            rows = [tensor[start : start + PREDICTION_ROWS].to(device) for tensor in tensors]
            outputs = module(*rows) if outputs_of is None else outputs_of(module, *rows)
            parts.append(outputs.cpu().numpy())
    return np.concatenate(parts)
