# SPDX-License-Identifier: Apache-2.0
"""The attack network of the anonymization paper: from a model's outputs and the label to "was it trained on this?".

Two branches, one for the outputs f(x) and one for the one-hot label, joined by a last layer (Goldsteen et al. 2021,
appendix B, after Nasr et al. 2018)::

    f(x)   n - 512 - 100 - 64 \\
                                128 - 1
    label  n - 256 - 64       /

The last layer adds the two branches up, so the network cannot see how sure the model is of the *true* label, only how
sure it is: where a model is as sure of its mistakes, the forest of ``membership_scores`` is the stronger attacker. The
architecture is kept as published. A regressor's outputs come with minus the log of the squared error, which holds all
there is to see.

Used by ``membership`` beside the forest of ``membership_scores``; needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.networks import dense_network, epochs_for, fit_network, predict_network, require_torch, seeded_generator

if TYPE_CHECKING:  # so that numpy and torch are all that a machine with a GPU needs
    from sfumato.attack.membership_scores import Learner
    from sfumato.attack.membership_signals import Floats, Reader

OUTPUT_UNITS = (512, 100, 64)
LABEL_UNITS = (256, 64)


@dataclass(frozen=True)
class MembershipNetworkSettings:
    """Settings of the training, which the paper does not specify.

    Attributes
    ----------
    epochs : int
    least_steps : int
        With few records there are more epochs, until there are so many steps.
    batch_size : int
    learning_rate : float
        Falls to a tenth for the last third.
    """

    epochs: int = 30
    least_steps: int = 600
    batch_size: int = 256
    learning_rate: float = 0.001


class MembershipNetwork:
    """Learn from records whose membership is known, and score others.

    Parameters
    ----------
    n_classes : int or None
        Number of classes of the attacked model; None for a regressor, whose label is a number.
    settings : MembershipNetworkSettings, optional
    seed : int
    device : str, torch.device or None
    """

    def __init__(
        self,
        n_classes: int | None,
        *,
        settings: MembershipNetworkSettings | None = None,
        seed: int = 0,
        device: Any = None,
    ) -> None:
        self.n_classes = n_classes
        self.settings = settings or MembershipNetworkSettings()
        self.seed = seed
        self.device = device

    def fit(self, outputs: Floats, labels: NDArray[Any], is_member: NDArray[np.bool_]) -> MembershipNetwork:
        """Fit on outputs of the attacked model, labels (codes of classes, or numbers) and membership.

        Members weigh as much as others in all, so that a score above one half speaks for a member.
        """
        torch = require_torch()
        generator = seeded_generator(self.seed)
        outputs = np.asarray(outputs, np.float64)
        self._scale = _Scale.of(outputs)
        self._label_scale = None if self.n_classes is not None else _Scale.of(np.asarray(labels, np.float64)[:, None])
        features = self._features(outputs, labels)
        module = torch.nn.ModuleDict(
            {
                "outputs": dense_network((features[0].shape[1], *OUTPUT_UNITS), generator),
                "labels": dense_network((features[1].shape[1], *LABEL_UNITS), generator),
                "joined": dense_network((OUTPUT_UNITS[-1] + LABEL_UNITS[-1], 1), generator),
            }
        )
        truth = np.asarray(is_member, np.float64)
        share = truth.mean()
        weights = None if share in (0, 1) else np.where(truth > 0, 0.5 / share, 0.5 / (1 - share))
        settings = self.settings
        epochs = epochs_for(len(truth), settings.batch_size, epochs=settings.epochs, least_steps=settings.least_steps)

        def losses(network: Any, of_outputs: Any, of_labels: Any, target: Any) -> Any:
            logits = _logits(network, of_outputs, of_labels)
            return torch.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")

        fit_network(
            module,
            (*features, truth),
            losses,
            weights=weights,
            epochs=epochs,
            batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            schedule=(-(-2 * epochs // 3), 0.1),
            seed=self.seed,
            device=self.device,
        )
        self._module = module
        return self

    def scores(self, outputs: Floats, labels: NDArray[Any]) -> Floats:
        """Return a score per record; higher is more likely a member."""
        features = self._features(np.asarray(outputs, np.float64), labels)
        return predict_network(self._module, features, _logits, device=self.device).astype(np.float64)

    def predict_proba(self, outputs: Floats, labels: NDArray[Any]) -> Floats:
        """Return the probability that each record is a member, when half of them are."""
        return np.asarray(1 / (1 + np.exp(-np.clip(self.scores(outputs, labels), -700, 700))))

    def predict(self, outputs: Floats, labels: NDArray[Any]) -> NDArray[np.bool_]:
        """Return, for each record, whether it is more likely a member than not."""
        return self.scores(outputs, labels) > 0

    def _features(self, outputs: Floats, labels: NDArray[Any]) -> tuple[Floats, Floats]:
        if self._label_scale is None:
            assert self.n_classes is not None
            return self._scale.apply(outputs), np.eye(self.n_classes)[labels]
        return self._scale.apply(outputs), self._label_scale.apply(np.asarray(labels, np.float64)[:, None])


def network_learner(reader: Reader, seed: int, device: Any = None) -> Learner:
    """Return the attack network as a learner for `cross_fitted`, beside `forest_learner`."""

    def learn(
        outputs: Floats, codes: NDArray[Any], is_member: NDArray[np.bool_], others: Floats, other_codes: NDArray[Any]
    ) -> Floats:
        n_classes = None if reader.classes is None else len(reader.classes)
        if n_classes is None:
            outputs, others = (
                np.column_stack([of_model, reader.signal(of_model, truth)])
                for of_model, truth in ((outputs, codes), (others, other_codes))
            )
        network = MembershipNetwork(n_classes, seed=seed, device=device)
        return network.fit(outputs, codes, is_member).scores(others, other_codes)

    return learn


@dataclass(frozen=True, eq=False)
class _Scale:
    """Means and standard deviations of the known records' features."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, features: Floats) -> _Scale:
        deviation = features.std(axis=0)
        return cls(features.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def apply(self, features: Floats) -> Floats:
        return (features - self.mean) / self.deviation


def _logits(network: Any, of_outputs: Any, of_labels: Any) -> Any:
    torch = require_torch()
    branches = [network["outputs"](of_outputs).relu(), network["labels"](of_labels).relu()]
    return network["joined"](torch.cat(branches, dim=1))[:, 0]
