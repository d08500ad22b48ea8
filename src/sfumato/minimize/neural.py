# SPDX-License-Identifier: Apache-2.0
"""The neural minimizers: a generalization trained against an adversary, or against mutual information.

The estimators; the training itself is in ``neural_training``, which needs no frame. What is trained is hardened to a
strict generalization at the end, which is the only output. torch is needed (extra ``neural``); a GPU is used if there
is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from sfumato.arguments import Names, Seed, check_integer, check_share
from sfumato.errors import ParameterError, named
from sfumato.generalization.building import SAFE_SIZE
from sfumato.minimize.minimizer import Output, WeightedMinimizer
from sfumato.minimize.neural_training import (
    ADVERSARIAL_WEIGHTS,
    MUTUAL_INFORMATION_WEIGHTS,
    Objective,
    TrainingPlan,
    train_buckets,
)
from sfumato.minimize.sample import Buckets, Sample
from sfumato.minimize.soft_buckets import CodedAttribute
from sfumato.networks import pick_device
from sfumato.partition.binning import DEFAULT_MAX_BINS


def coded_attributes(sample: Sample) -> list[CodedAttribute]:
    """Return the attributes of a sample as the training takes them."""
    attributes = []
    for column in sample.columns:
        low, high = column.bins.positions
        attributes.append(CodedAttribute(column.bins.n_bins, (low + high) / 2 if column.bins.is_ordered else None))
    return attributes


class _NeuralMinimizer(WeightedMinimizer):
    """Base of both: the parameters and the call of the training."""

    privacy_weight: float
    n_buckets: int
    epochs: int
    batch_size: int
    learning_rate: float
    as_published: bool
    device: Any

    _objective: Objective

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("privacy_weight", self.privacy_weight, hint="0 counts predictions alone, 1 privacy alone.")
        for name in ("n_buckets", "epochs", "batch_size", *self._own_counts()):
            check_integer(name, getattr(self, name), 1)
        if not np.isfinite(self.learning_rate) or self.learning_rate <= 0:
            raise ParameterError(f"{named('learning_rate', self.learning_rate)}: expected a positive number. Try 0.01.")
        pick_device(self.device)

    def _own_counts(self) -> tuple[str, ...]:
        return ()

    def _plan(self) -> TrainingPlan:
        return TrainingPlan(
            n_buckets=int(self.n_buckets),
            epochs=int(self.epochs),
            batch_size=int(self.batch_size),
            learning_rate=float(self.learning_rate),
            as_published=bool(self.as_published),
        )

    def _buckets(self, sample: Sample) -> Buckets:
        return self._buckets_of_weights(sample, [float(self.privacy_weight)])[0]

    def _buckets_of_settings(self, sample: Sample, settings: Sequence[Mapping[str, Any]]) -> Iterable[Buckets]:
        done: dict[int, Buckets] = {}
        others = [{name: value for name, value in one.items() if name != "privacy_weight"} for one in settings]
        for position in range(len(settings)):
            if position not in done:
                alike = [place for place, other in enumerate(others) if other == others[position]]
                weights = [settings[place].get("privacy_weight", self.privacy_weight) for place in alike]
                own = clone(self).set_params(**others[position])
                for weight in weights:
                    own.set_params(privacy_weight=weight)._check_parameters()
                done.update(zip(alike, own._buckets_of_weights(sample, weights), strict=True))
            yield done.pop(position)

    def _told_parameters(self) -> dict[str, Any]:
        told = super()._told_parameters()
        told.pop("device", None)  # where it was computed says nothing about the buckets
        return told

    def _buckets_of_weights(self, sample: Sample, privacy_weights: Sequence[float]) -> list[Buckets]:
        """Return the buckets for several privacy weights, trained side by side.

        Training is one thread of small steps, so nine weights at once take about as long as two one after the other.
        """
        return train_buckets(
            np.stack([column.codes.astype(np.int64) for column in sample.columns], axis=1),
            coded_attributes(sample),
            sample.y,
            sample.n_classes,
            privacy_weights=privacy_weights,
            personal=sample.personal,
            objective=self._objective,
            weights=sample.weight,
            plan=self._plan(),
            seed=int(self._generator().integers(2**31)),
            device=self.device,
        )


class AdversarialMinimizer(_NeuralMinimizer):
    """Train a generalization with a classifier for it and an adversary against it.

    Every attribute has a small network that sends its values to at most `n_buckets` buckets: a monotone one for
    numbers and moments, a free one for categories and for missing. A classifier learns the target from the buckets, an
    adversary learns the personal attributes from them, and the generalization is trained to help the first and to
    hinder the second.

    Parameters
    ----------
    privacy_weight : float, default=0.5
        From 0 (only the classifier counts) to 1 (only the adversary's failure counts): the paper's lambda.
    n_buckets : int, default=5
        Maximum number of buckets of an attribute; the training may leave some unused.
    n_inner : int, default=1
        Steps of the adversary for each step of the generalization.
    epochs : int, default=20
        Passes over the records; the learning rate falls to a tenth after every 5.
    batch_size : int, default=256
        Records in a step.
    learning_rate : float, default=0.01
        Of Adam, at the start.
    as_published : bool, default=False
        Train on bucket probabilities and without a limit to the adversary's loss, exactly as in the paper. By default
        the networks see decided buckets, and an adversary counts for no worse than one who sees nothing.
    attributes : list of str or int, optional
        Columns to generalize, by name or position; None: all. Others pass through.
    personal : list of str or int, optional
        Attributes the adversary reconstructs; None: all categorical ones.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    floor : int, default=10
        Minimum number of sample records of a listed category or a bucket of numbers. Rarer categories are pooled as
        "other", smaller buckets are joined with a neighbor. 1 lists values of single people.
    max_bins : int, default=255
        Number of bins of a numeric column with more distinct values.
    output : {"codes", "labels", "representatives"}, default="codes"
        Output of `transform`.
    random_state : int or RandomState, optional
        Seed of weights and batches. The same seed gives the same generalization on a CPU.
    n_jobs : int, optional
        Threads that read columns. Training uses one, or a GPU.
    device : str, optional
        Device of torch, such as "cpu" or "cuda"; None: a GPU where there is one.

    Attributes
    ----------
    generalization_ : Generalization
    personal_ : tuple of str
    classes_ : ndarray

    Notes
    -----
    The privacy is empirical: it holds against the adversary of the training, and is to be measured against others
    (``sfumato.attack``).

    References
    ----------
    Staab, R. et al. (2024). From Principle to Practice: Vertical Data Minimization for Machine Learning, section 6,
    appendices C and F (AdvTrain).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import AdversarialMinimizer
    >>> age, town = np.tile(np.arange(20, 80), 10), np.repeat(np.arange(10), 60)
    >>> X, y = np.column_stack([age, town]), age >= 64
    >>> minimizer = AdversarialMinimizer(0.5, n_buckets=2, personal=[1], epochs=5, random_state=0).fit(X, y)
    >>> minimizer.generalization_.n_buckets
    (2, 1)
    """

    _objective: Objective = "adversarial"

    def __init__(
        self,
        privacy_weight: float = 0.5,
        *,
        n_buckets: int = 5,
        n_inner: int = 1,
        epochs: int = 20,
        batch_size: int = 256,
        learning_rate: float = 0.01,
        as_published: bool = False,
        attributes: Names | None = None,
        personal: Names | None = None,
        categorical_features: Collection[str | int] | None = None,
        floor: int = SAFE_SIZE,
        max_bins: int = DEFAULT_MAX_BINS,
        output: Output = "codes",
        random_state: Seed = None,
        n_jobs: int | None = None,
        device: Any = None,
    ) -> None:
        self.privacy_weight = privacy_weight
        self.n_buckets = n_buckets
        self.n_inner = n_inner
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.as_published = as_published
        self.attributes = attributes
        self.personal = personal
        self.categorical_features = categorical_features
        self.floor = floor
        self.max_bins = max_bins
        self.output = output
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def default_grid(self, sample: Sample, errors: tuple[float, float]) -> Mapping[str, Sequence[Any]]:
        """Return nine privacy weights, as many as in the paper, evenly from 0 to 1."""
        return {"privacy_weight": ADVERSARIAL_WEIGHTS}

    def _own_counts(self) -> tuple[str, ...]:
        return ("n_inner",)

    def _plan(self) -> TrainingPlan:
        return replace(super()._plan(), n_inner=int(self.n_inner))


class MutualInformationMinimizer(_NeuralMinimizer):
    """Train a generalization with a classifier for it, and against the mutual information of buckets and values.

    As :class:`AdversarialMinimizer`, with a bound on the mutual information between values and buckets in place of the
    adversary. It counts all attributes, not only the personal ones, and needs no second network.

    Parameters
    ----------
    privacy_weight : float, default=0.1
        From 0 (only the classifier counts) to 1 (only the bound counts): the paper's lambda. The bound is a sum over
        attributes, so small values go a long way.
    n_buckets : int, default=5
        Maximum number of buckets of an attribute; the training may leave some unused.
    epochs : int, default=20
        Passes over the records; the learning rate falls to a tenth after every 5.
    batch_size : int, default=256
        Records in a step.
    learning_rate : float, default=0.01
        Of Adam, at the start.
    as_published : bool, default=False
        Show the classifier bucket probabilities, exactly as in the paper. By default it sees decided buckets.
    attributes : list of str or int, optional
        Columns to generalize, by name or position; None: all. Others pass through.
    personal : list of str or int, optional
        Personal attributes, which an attacker wants to learn. None: all categorical ones. Not used by this method.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    floor : int, default=10
        Minimum number of sample records of a listed category or a bucket of numbers. Rarer categories are pooled as
        "other", smaller buckets are joined with a neighbor. 1 lists values of single people.
    max_bins : int, default=255
        Number of bins of a numeric column with more distinct values.
    output : {"codes", "labels", "representatives"}, default="codes"
        Output of `transform`.
    random_state : int or RandomState, optional
        Seed of weights and batches. The same seed gives the same generalization on a CPU.
    n_jobs : int, optional
        Threads that read columns. Training uses one, or a GPU.
    device : str, optional
        Device of torch, such as "cpu" or "cuda"; None: a GPU where there is one.

    Attributes
    ----------
    generalization_ : Generalization
    personal_ : tuple of str
    classes_ : ndarray

    Notes
    -----
    The bound is computed exactly from the shares of the values; the paper samples it. The privacy is empirical and to
    be measured with ``sfumato.attack``.

    References
    ----------
    Staab, R. et al. (2024). From Principle to Practice: Vertical Data Minimization for Machine Learning, section 6,
    appendices C and F (MutualInf).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import MutualInformationMinimizer
    >>> age, town = np.tile(np.arange(20, 80), 10), np.repeat(np.arange(10), 60)
    >>> X, y = np.column_stack([age, town]), age >= 64
    >>> minimizer = MutualInformationMinimizer(0.5, n_buckets=2, personal=[1], epochs=5, random_state=0).fit(X, y)
    >>> minimizer.generalization_.n_buckets
    (2, 1)
    """

    _objective: Objective = "mutual_information"

    def __init__(
        self,
        privacy_weight: float = 0.1,
        *,
        n_buckets: int = 5,
        epochs: int = 20,
        batch_size: int = 256,
        learning_rate: float = 0.01,
        as_published: bool = False,
        attributes: Names | None = None,
        personal: Names | None = None,
        categorical_features: Collection[str | int] | None = None,
        floor: int = SAFE_SIZE,
        max_bins: int = DEFAULT_MAX_BINS,
        output: Output = "codes",
        random_state: Seed = None,
        n_jobs: int | None = None,
        device: Any = None,
    ) -> None:
        self.privacy_weight = privacy_weight
        self.n_buckets = n_buckets
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.as_published = as_published
        self.attributes = attributes
        self.personal = personal
        self.categorical_features = categorical_features
        self.floor = floor
        self.max_bins = max_bins
        self.output = output
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def default_grid(self, sample: Sample, errors: tuple[float, float]) -> Mapping[str, Sequence[Any]]:
        """Return nine privacy weights, as many as in the paper, most of them small."""
        return {"privacy_weight": MUTUAL_INFORMATION_WEIGHTS}
