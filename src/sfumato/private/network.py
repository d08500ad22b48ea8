# SPDX-License-Identifier: Apache-2.0
"""Dense networks with differential privacy: gradient descent on random batches, by Opacus (Abadi et al., 2016)."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import check_integer
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
from sfumato.private.mechanisms import noisy_counts, sample_rows

Floats = NDArray[np.float64]
_SHARE_OF_COUNT = 0.01  # of epsilon, for a noisy number of records
_ORDERS = (*(1 + tenth / 10 for tenth in range(1, 100)), *range(12, 64), 80, 128, 256, 512, 1024, 2048)
"""Orders of Renyi divergence that the accountant tries: its own list ends at 63, too soon for an epsilon of 0.1."""


class PrivateNetworkClassifier(PrivateClassifier):
    """Dense network trained by gradient descent with differential privacy (Abadi et al., 2016), by Opacus.

    Parameters
    ----------
    epsilon : float, default=1.0
    delta : float, default=1e-6
    bounds, categories, classes, n_intervals
        As for `PrivateLogisticRegression`.
    hidden : tuple of int, default=(64,)
    n_steps : int, default=250
    batch_size : int, default=4096
        Expected records of a step's random batch; all of them, if the table has no more.
    learning_rate : float, default=0.02
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
    one record. A noisy number of records, for a hundredth of epsilon, decides the share of a batch. Batches come from
    the operating system's secure source, and noise from torch's generator, seeded by it. That generator is not
    cryptographic, and its noise is added to floats as they are; Opacus' secure one needs a package that today's torch
    has no release of. `PrivateLogisticRegression` has neither weakness.

    *Settings.* The defaults of steps, batch size, learning rate and clip were chosen on Bank Marketing, ACS employment
    and ACS public coverage, which are public.

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
        n_steps: int = 250,
        batch_size: int = 4096,
        learning_rate: float = 0.02,
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
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip = clip
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on raw records."""
        table, _, _ = self._start(X, n_intervals=self.n_intervals, allows_infinite=False)
        codes, assumed = self._labels(y, table.n_records)
        for name in ("n_steps", "batch_size"):
            check_integer(name, getattr(self, name), 1)
        numbers = self.encoding_.one_hot(table)[:, :-1].toarray()
        sizes = (numbers.shape[1], *self.hidden, len(self.classes_))
        # Nothing but a noisy number of records decides how large batches are.
        for_counting = _SHARE_OF_COUNT * float(self.epsilon)
        n_records = max(1, int(noisy_counts(np.array([len(codes)]), for_counting)[0]))
        rate = min(1.0, self.batch_size / n_records)
        schedule = PrivateSteps.of_budget(
            float(self.epsilon) - for_counting, self.delta, n_steps=int(self.n_steps), rate=rate
        )
        trained, self.module_ = (
            dense_network(sizes, seeded_generator(_secret_seed()), activation="Tanh") for _ in range(2)
        )
        train_privately(
            trained,
            numbers,
            codes,
            schedule,
            batch_size=rate * n_records,
            learning_rate=self.learning_rate,
            clip=self.clip,
            device=self.device,
        )
        # Opacus leaves sums without noise, and lengths of gradients of single records, at the parameters it trains.
        self.module_.load_state_dict(trained.state_dict())
        self.module_.eval()
        guarantee = self._guarantee(
            f"{schedule.n_steps} clipped gradients of random batches with Gaussian noise, by Opacus",
            assumed,
            "settings were chosen without the records",
            "torch's random numbers cannot be predicted, and its noise is that of real numbers",
        )
        self.privacy_ = replace(guarantee, epsilon=for_counting + schedule.epsilon)
        return self

    def _logits(self, X: Any) -> Floats:
        table = fitted_table(self, X)
        numbers = self.encoding_.one_hot(table)[:, :-1].toarray()
        return predict_network(self.module_, [numbers], device=self.device).astype(np.float64)


@dataclass(frozen=True)
class PrivateSteps:
    """Steps of noisy gradients of random batches, and what they spend.

    Attributes
    ----------
    n_steps : int
    rate : float
        Probability of each record to be in a batch.
    noise : float
        Standard deviation of the noise, in lengths of the longest gradient of a record.
    epsilon : float
        Of all steps together, by Opacus' accountant.
    """

    n_steps: int
    rate: float
    noise: float
    epsilon: float

    @classmethod
    def of_budget(cls, epsilon: float, delta: float, *, n_steps: int, rate: float) -> PrivateSteps:
        """Return steps with the least noise that keeps to a budget."""
        accountants = require_opacus().accountants
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about orders at the ends of their list
            noise = accountants.utils.get_noise_multiplier(
                target_epsilon=epsilon,
                target_delta=delta,
                sample_rate=rate,
                steps=n_steps,
                accountant="rdp",
                epsilon_tolerance=epsilon / 100,
                alphas=_ORDERS,
            )
            accountant = accountants.RDPAccountant()
            accountant.history = [(noise, rate, n_steps)]
            return cls(n_steps, rate, noise, float(accountant.get_epsilon(delta, alphas=_ORDERS)))


@one_thread()
def train_privately(
    module: Any,
    numbers: NDArray[np.float64],
    codes: NDArray[np.intp],
    schedule: PrivateSteps,
    *,
    batch_size: float,
    learning_rate: float,
    clip: float,
    device: Any = None,
) -> None:
    """Train a classifier in place with clipped and noised gradients. Its weights alone are private.

    Batches are drawn by independent coin flips per record, from the operating system's secure source. Gradients of
    single records are never written down: their lengths follow from the layers' inputs and outputs, and a second pass
    clips (ghost clipping), which is several times as fast.
    """
    torch = require_torch()
    device = pick_device(device)
    numbers, codes = as_tensors([numbers, codes], device)
    private, optimizer, criterion = _private_parts(
        module.to(device), schedule.noise, batch_size=batch_size, learning_rate=learning_rate, clip=clip, device=device
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # hooks on the first layer need no gradient of the input
        for _ in range(schedule.n_steps):
            rows = torch.from_numpy(_batch(len(codes), schedule.rate)).to(device)
            # A batch may be empty; the step is taken all the same, with noise alone, as the accountant assumes.
            optimizer.zero_grad()
            criterion(private(numbers[rows]), codes[rows]).backward()
            optimizer.step()


def _private_parts(
    module: Any, noise: float, *, batch_size: float, learning_rate: float, clip: float, device: Any
) -> tuple[Any, Any, Any]:
    """Return a module, its optimizer and its loss, as Opacus makes them private."""
    torch = require_torch()
    require_opacus()
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    private = GradSampleModuleFastGradientClipping(module, max_grad_norm=clip, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.Adam(private.parameters(), lr=learning_rate),
        noise_multiplier=noise,
        max_grad_norm=clip,
        expected_batch_size=batch_size,
        generator=torch.Generator(device=device).manual_seed(_secret_seed()),
    )
    return private, optimizer, DPLossFastGradientClipping(private, optimizer, torch.nn.CrossEntropyLoss())


def _batch(n_records: int, rate: float) -> NDArray[np.int64]:
    return np.arange(n_records) if rate >= 1 else sample_rows(n_records, rate)


def require_opacus() -> Any:
    """Return Opacus.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    require_torch()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import opacus.accountants.utils
    except ImportError as error:
        raise MissingExtraError(
            "opacus is not installed: private networks need it. Install it with pip install 'sfumato[dp]'."
        ) from error
    return opacus


def _secret_seed() -> int:
    return secrets.randbits(63)
