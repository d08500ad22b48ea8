# SPDX-License-Identifier: Apache-2.0
"""Train generalizations by gradient descent: against an adversary, or against mutual information.

The array-level half of the neural minimizers (Staab et al. 2024, section 6, appendices C and F): codes in, bucket of
every code out. It imports numpy and torch only, so that it runs on a machine that has nothing else. Called by
``minimize.neural`` and by studies.

Three things differ from the paper unless `TrainingPlan.as_published` is set. First, the networks see decided buckets
instead of probabilities, and gradients pass through the probabilities (straight-through), so that training matches
measurement. Second, the generalization gains nothing from an adversary that does worse than one without input: such an
adversary is fooled, not uninformed, and the two chase each other. Third, small samples are trained for more epochs,
since a hundred steps hardly change the networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.minimize.soft_buckets import CodedAttribute, CodeTable, SoftBuckets
from sfumato.networks import (
    EpochSampler,
    as_tensors,
    epochs_for,
    one_thread,
    pick_device,
    require_torch,
    seeded_generator,
)

Objective = Literal["adversarial", "mutual_information"]

ADVERSARIAL_WEIGHTS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
MUTUAL_INFORMATION_WEIGHTS = (0.0, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Privacy weights to sweep; the bound of mutual information is a sum over attributes, so its weights are smaller."""

_BLIND_SHARE = 0.98  # of the loss of an adversary who sees nothing counts as having seen nothing

PLAYER_UNITS = 50
"""Units of the hidden layer of the classifier and of the adversary, as in the paper."""


@dataclass(frozen=True)
class TrainingPlan:
    """Length and rate of the training; the defaults are those of the paper's appendix F.

    Attributes
    ----------
    n_buckets : int
        Maximum number of buckets of an attribute.
    n_inner : int
        Steps of the adversary for each step of the generalization.
    epochs : int
        Passes over the records.
    least_steps : int
        With few records there are more epochs, until there are so many steps.
    batch_size : int
    learning_rate : float
        At the start; it falls to a tenth after each quarter of the epochs.
    temperatures : tuple of float
        Of the softmax in the first and in the last epoch; in between it falls in equal steps.
    as_published : bool
        Train on probabilities, without a limit to the adversary's loss and without a least number of steps, exactly
        as in the paper.
    """

    n_buckets: int = 5
    n_inner: int = 1
    epochs: int = 20
    least_steps: int = 1000
    batch_size: int = 256
    learning_rate: float = 0.01
    temperatures: tuple[float, float] = (2.0, 0.5)
    as_published: bool = False

    def n_epochs(self, n_rows: int) -> int:
        """Return the number of epochs for so many records."""
        if self.as_published:
            return self.epochs
        return epochs_for(n_rows, self.batch_size, epochs=self.epochs, least_steps=self.least_steps)

    def temperature(self, epoch: int, n_epochs: int) -> float:
        """Return the temperature of an epoch, counted from 0."""
        first, last = self.temperatures
        return first + (last - first) * epoch / max(n_epochs - 1, 1)

    def rate(self, epoch: int, n_epochs: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        return float(self.learning_rate * 0.1 ** (4 * epoch // n_epochs))


class _Player:
    """One network per run: a hidden layer with ReLU, then one group of scores per thing to predict."""

    def __init__(self, n_inputs: int, n_classes: Sequence[int], n_runs: int, generator: Any, device: Any) -> None:
        torch = require_torch()
        self.n_classes = list(n_classes)
        self.parameters = []
        for n_rows, n_columns in ((n_inputs, PLAYER_UNITS), (PLAYER_UNITS, sum(n_classes))):
            bound = max(n_rows, 1) ** -0.5
            for shape in ((n_rows, n_columns), (1, n_columns)):
                start = torch.empty(shape).uniform_(-bound, bound, generator=generator)
                self.parameters.append(start.expand(n_runs, *shape).clone().to(device).requires_grad_())

    def losses(self, inputs: Any, targets: Any) -> Any:
        """Return the mean cross-entropy over the records, one row per thing predicted and one column per run."""
        torch = require_torch()
        weights, biases, out_weights, out_biases = self.parameters
        hidden = torch.baddbmm(biases, inputs, weights).relu()
        scores = torch.baddbmm(out_biases, hidden, out_weights)
        n_runs = len(scores)
        losses = []
        for part, target in zip(scores.split(self.n_classes, dim=-1), targets, strict=True):
            chosen = part.gather(-1, target.expand(n_runs, -1)[..., None])[..., 0]
            losses.append((part.logsumexp(dim=-1) - chosen).mean(dim=-1))
        return torch.stack(losses)


@one_thread()
def train_buckets(
    codes: NDArray[Any],
    attributes: Sequence[CodedAttribute],
    y: NDArray[Any],
    n_classes: int,
    *,
    privacy_weights: Sequence[float],
    personal: Sequence[int],
    objective: Objective = "adversarial",
    weights: NDArray[np.float64] | None = None,
    plan: TrainingPlan | None = None,
    seed: int = 0,
    device: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[list[NDArray[np.int64]]]:
    """Train one generalization per privacy weight, side by side, and harden each to a strict one.

    Parameters
    ----------
    codes : ndarray of int, shape (n, d)
        Fine codes of the records.
    attributes : sequence of CodedAttribute
    y : ndarray of int, shape (n,)
        Class of each record.
    n_classes : int
    privacy_weights : sequence of float
        The paper's lambda, from 0 (only the classifier counts) to 1 (only privacy counts).
    personal : sequence of int
        Positions of the attributes that the adversary reconstructs; not used for mutual information.
    objective : {"adversarial", "mutual_information"}
    weights : ndarray of float, shape (n,), optional
        How many records each row stands for.
    plan : TrainingPlan, optional
    seed : int
        Same seed, same buckets on a CPU.
    device : str, torch.device or None
    progress : callable, optional
        Called after each epoch with the number of epochs done and their total.

    Returns
    -------
    list of list of ndarray of int
        For every privacy weight and attribute, the bucket of each fine code. Along ordered codes it never falls.
    """
    torch = require_torch()
    plan = plan or TrainingPlan()
    device = pick_device(device)
    if objective == "adversarial" and not len(personal):
        raise ParameterError(
            "no personal attributes: the adversary needs at least one attribute to reconstruct. Name some, or minimize "
            "mutual information instead."
        )
    generator = seeded_generator(seed)
    table = CodeTable(attributes)
    row_of_value = table.rows_of_records(np.asarray(codes))
    shares = table.shares(row_of_value, weights)
    n_runs = len(privacy_weights)
    buckets = SoftBuckets(
        attributes, table, shares, n_buckets=plan.n_buckets, n_runs=n_runs, generator=generator, device=device
    )
    n_inputs = len(attributes) * plan.n_buckets
    classifier = _Player(n_inputs, [n_classes], n_runs, generator, device)
    privacy: _Adversary | _MutualInformation
    if objective == "adversarial":
        n_codes = [attributes[place].n_codes for place in personal]
        own_shares = None if plan.as_published else [shares[table.rows[place]] for place in personal]
        privacy = _Adversary(_Player(n_inputs, n_codes, n_runs, generator, device), own_shares, device)
    else:
        privacy = _MutualInformation(table, shares, len(attributes), device)
    rows, labels = as_tensors([row_of_value, y], device)
    personal_codes = as_tensors([np.asarray(codes)[:, list(personal)]], device)[0]
    trade_off = torch.tensor(list(privacy_weights), dtype=torch.float32, device=device)
    learned = buckets.parameters + classifier.parameters
    optimizer = torch.optim.Adam(learned, lr=plan.learning_rate)
    sampler = EpochSampler(len(rows), weights, generator)
    n_epochs = plan.n_epochs(len(rows))
    for epoch in range(n_epochs):
        temperature = plan.temperature(epoch, n_epochs)
        for group in (*optimizer.param_groups, *privacy.optimizer_groups):
            group["lr"] = plan.rate(epoch, n_epochs)
        for batch in sampler.rows().to(device).split(plan.batch_size):
            log_probabilities = buckets.log_probabilities(temperature)
            shown = log_probabilities.exp() if plan.as_published else _decided(log_probabilities)
            inputs = shown.index_select(1, rows[batch].flatten()).view(n_runs, len(batch), n_inputs)
            personal_targets = personal_codes[batch].T
            for _ in range(plan.n_inner):
                privacy.improve(inputs.detach(), personal_targets)
            utility_losses = classifier.losses(inputs, labels[batch][None])[0]
            privacy_losses = privacy.losses(log_probabilities, inputs, personal_targets)
            # Runs share no parameter, so the sum over them trains each by its own loss.
            loss = ((1 - trade_off) * utility_losses + trade_off * privacy_losses).sum()
            gradients = torch.autograd.grad(loss, learned, allow_unused=True, materialize_grads=True)
            for tensor, gradient in zip(learned, gradients, strict=True):
                tensor.grad = gradient
            optimizer.step()
        if progress is not None:
            progress(epoch + 1, n_epochs)
    return buckets.harden()


def _decided(log_probabilities: Any) -> Any:
    """Return 1 for the most probable bucket and 0 for the others, with the gradients of the probabilities."""
    probabilities = log_probabilities.exp()
    best = require_torch().zeros_like(probabilities).scatter_(-1, probabilities.argmax(-1, keepdim=True), 1.0)
    return best + (probabilities - probabilities.detach())


class _Adversary:
    """Reconstructs the personal attributes from the buckets; what it loses, the generalization gains.

    Parameters
    ----------
    player : _Player
    shares : list of ndarray of float or None
        For every personal attribute, how many of the records have each code: what an adversary knows who sees nothing.
        More than nearly as much as it loses is not counted. None: all is counted.
    device : torch.device
    """

    def __init__(self, player: _Player, shares: list[NDArray[np.float64]] | None, device: Any) -> None:
        torch = require_torch()
        self._player = player
        self._surprises = None
        if shares is not None:
            # Codes without a record are never used; their logarithm only has to exist.
            self._surprises = as_tensors([-np.log(np.where(own > 0, own, 1.0)) for own in shares], device)
        self._optimizer = torch.optim.Adam(player.parameters)
        self.optimizer_groups = self._optimizer.param_groups

    def improve(self, inputs: Any, personal_targets: Any) -> None:
        """Train the adversary by one step."""
        self._optimizer.zero_grad(set_to_none=True)
        self._player.losses(inputs, personal_targets).mean(0).sum().backward()
        self._optimizer.step()

    def losses(self, log_probabilities: Any, inputs: Any, personal_targets: Any) -> Any:
        """Return minus the adversary's own losses, one per run."""
        losses = self._player.losses(inputs, personal_targets)
        if self._surprises is not None:
            # On the same records, so that a batch of rare values does not look like a win.
            pairs = zip(self._surprises, personal_targets, strict=True)
            blind = require_torch().stack([own[target].mean() for own, target in pairs])
            losses = require_torch().minimum(losses, blind[:, None] * _BLIND_SHARE)
        return -losses.mean(0)


class _MutualInformation:
    """The paper's bound on what the buckets tell of the values; needs no network and no sampling.

    The bound of I(z, x) is the difference of two expectations over values and buckets, attribute by attribute. The
    values are codes with known shares, so both are sums over the table instead of averages over samples. The
    difference is the mean Kullback-Leibler divergence between the bucket probabilities of two independently drawn
    records: never negative, and 0 exactly when the bucket says nothing.
    """

    optimizer_groups: tuple[Any, ...] = ()

    def __init__(self, table: CodeTable, shares: NDArray[np.float64], n_attributes: int, device: Any) -> None:
        averaging = np.zeros((n_attributes, table.n_rows), np.float32)
        averaging[table.owner, np.arange(table.n_rows)] = shares
        self._averaging = as_tensors([averaging], device)[0]

    def improve(self, inputs: Any, personal_targets: Any) -> None:
        """Do nothing: there is no adversary to train."""

    def losses(self, log_probabilities: Any, inputs: Any, personal_targets: Any) -> Any:
        """Return the bound for each run."""
        probabilities = log_probabilities.exp()
        entropy_bound = -(self._averaging @ probabilities) * (self._averaging @ log_probabilities)
        conditional = self._averaging @ (probabilities * log_probabilities)
        return (entropy_bound + conditional).sum(dim=(1, 2))
