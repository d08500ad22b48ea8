# SPDX-License-Identifier: Apache-2.0
"""Model outputs for a record: the numbers that all membership attacks start from.

``membership`` and ``shadows`` read a model's outputs here, one row per record: logits where the model has them,
probabilities where it votes (forests), the prediction of a regressor. From the outputs and the true label come the two
numbers that score attacks use, both larger when the model fits the record better: the *signal* (the logit of the
confidence in the true label, the angle of a share of votes, or minus the log squared error of a regressor) and the
*likelihood* (that confidence).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import is_classifier

from sfumato.arguments import check_choice
from sfumato.errors import InputError, ParameterError

OutputKind = Literal["logits", "probabilities", "numbers"]
Floats = NDArray[np.float64]

_LOWEST_PROBABILITY = 1e-12
_SHARE_OF_ZEROS_OF_A_VOTE = 1e-3  # a softmax is never exactly 0, a forest often is
_LOWEST_SHARE_OF_ERROR = 1e-12  # of the mean squared error, so that an exact prediction has a logarithm


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the outputs of a model: their kind, and the classes in their order.

    Attributes
    ----------
    kind : {"logits", "probabilities", "numbers"}
    classes : ndarray or None
        The labels, sorted; None for a regressor.
    is_vote : bool
        Whether probabilities are shares of votes, as a forest gives them.
    """

    kind: OutputKind
    classes: NDArray[Any] | None
    is_vote: bool = False

    def suited_to(self, outputs: Floats) -> Reader:
        """Return the reader that knows whether a model with these outputs votes."""
        is_vote = self.kind == "probabilities" and (outputs == 0).mean() >= _SHARE_OF_ZEROS_OF_A_VOTE
        return replace(self, is_vote=bool(is_vote))

    def codes(self, y: Any) -> NDArray[Any]:
        """Return the position of each label among the classes; the numbers themselves for a regressor."""
        labels = np.asarray(y)
        if self.classes is None:
            numbers = labels.astype(np.float64)
            if numbers.ndim != 1:
                raise InputError(
                    f"y has the shape {numbers.shape}: expected one number per record. Attack one output at a time."
                )
            return numbers
        position = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        n_unknown = int((self.classes[position] != labels).sum())
        if n_unknown:
            raise InputError(
                f"{n_unknown} labels are of no class that the model knows ({len(self.classes)} classes): expected "
                "labels it was trained on. Pass y as it was passed to fit."
            )
        return position

    def outputs(self, model: Any, X: Any) -> Floats:
        """Return the model's outputs, one column per class in the order of `classes`, or one for a regressor."""
        if self.kind == "numbers":
            return np.asarray(model.predict(X), np.float64).reshape(-1, 1)
        assert self.classes is not None
        has_logits = self.kind == "logits" and hasattr(model, "decision_function")
        found = np.asarray(model.decision_function(X) if has_logits else model.predict_proba(X), np.float64)
        if found.ndim == 1:
            found = np.column_stack([-found / 2, found / 2])
        if self.kind == "logits" and not has_logits:
            # The logarithm of what a softmax gives is the logits, up to one number per record.
            found = np.log(np.maximum(found, _LOWEST_PROBABILITY))
            found -= found.mean(axis=1, keepdims=True)
        known = np.searchsorted(self.classes, np.asarray(model.classes_))
        if len(known) == len(self.classes):
            return found
        # A shadow that has not met a class gives it nothing.
        nothing = 0.0 if self.kind == "probabilities" else found.min(axis=1, keepdims=True) - 20.0
        everything = np.broadcast_to(nothing, (len(found), len(self.classes))).copy()
        everything[:, known] = found
        return everything

    def signal(self, outputs: Floats, codes: NDArray[Any]) -> Floats:
        """Return the logit of the confidence in the true label, the angle of a share of votes, or minus the log
        squared error.

        Carlini et al. (2022) use the logit because it is close to normal where the confidence is not. A share of votes
        is often exactly 0 or 1 and has no logit. Its angle, twice the arc sine of its root, has about the same variance
        whatever the share (R. A. Fisher, "On the dominance ratio", 1922), and so needs no floor to be chosen.
        """
        if self.kind == "numbers":
            squared = (outputs[..., 0] - codes) ** 2
            floor = _LOWEST_SHARE_OF_ERROR * max(float(squared.mean()), np.finfo(np.float64).tiny)
            return np.asarray(-np.log(squared + floor))
        of_true = np.take_along_axis(outputs, _as_index(codes, outputs), axis=-1)[..., 0]
        if self.is_vote:
            return np.asarray(2 * np.arcsin(np.sqrt(np.clip(of_true, 0.0, 1.0))))
        others = _without(outputs, codes)
        if self.kind == "logits":
            return np.asarray(of_true - logsumexp(others, axis=-1))
        rest = others.sum(axis=-1)  # not one minus: what is left below rounding counts
        lowest = _LOWEST_PROBABILITY
        return np.asarray(np.log(np.maximum(of_true, lowest)) - np.log(np.maximum(rest, lowest)))

    def likelihood(self, outputs: Floats, codes: NDArray[Any], scale: float = 1.0) -> Floats:
        """Return the confidence in the true label, or the density of the error with the variance `scale`."""
        if self.kind == "numbers":
            return np.asarray(np.exp(-((outputs[..., 0] - codes) ** 2) / (2 * scale)))
        if self.is_vote:
            return np.asarray(np.take_along_axis(outputs, _as_index(codes, outputs), axis=-1)[..., 0])
        return np.asarray(1 / (1 + np.exp(-np.clip(self.signal(outputs, codes), -700, 700))))


def reader_of(model: Any, y: Any, kind: Literal["auto", "logits", "probabilities"] = "auto") -> Reader:
    """Find out how to read a model, fitted or not.

    Parameters
    ----------
    model : estimator
    y : array-like
        All labels of the records; they name the classes when the model is not fitted yet.
    kind : {"auto", "logits", "probabilities"}
        ``"auto"``: logits where the model has a ``decision_function`` or is a network, else probabilities.
    """
    check_choice("outputs", kind, ("auto", "logits", "probabilities"), hint="'auto' suits most.")
    has_scores, has_probabilities = hasattr(model, "decision_function"), hasattr(model, "predict_proba")
    if not has_scores and not has_probabilities:
        # Other models than scikit-learn's have no tags; with a plain predict they count as regressors.
        is_known_classifier = hasattr(model, "__sklearn_tags__") and is_classifier(model)
        if is_known_classifier or not hasattr(model, "predict"):
            raise ParameterError(
                f"a {type(model).__name__} gives neither probabilities nor a decision function: expected a classifier "
                "with predict_proba or decision_function, or a regressor. Choose a model that tells how sure it is."
            )
        return Reader("numbers", None)
    classes = np.unique(np.asarray(model.classes_ if hasattr(model, "classes_") else y))
    if kind == "probabilities" and not has_probabilities:
        raise ParameterError(
            f"outputs='probabilities' with a {type(model).__name__}, which has no predict_proba: expected one that "
            "does. Use outputs='logits'."
        )
    chosen: OutputKind = kind if kind != "auto" else "logits" if has_scores or _is_network(model) else "probabilities"
    return Reader(chosen, classes)


def _is_network(model: Any) -> bool:
    """Return True if a scikit-learn network makes the predictions, also inside another estimator."""
    from sklearn.neural_network import MLPClassifier

    while model is not None:
        if isinstance(model, MLPClassifier):
            return True
        if getattr(model, "steps", None):
            model = model.steps[-1][1]
        else:
            model = getattr(model, "best_estimator_", None) or getattr(model, "estimator", None)
    return False


def _as_index(codes: NDArray[Any], outputs: Floats) -> NDArray[Any]:
    return np.broadcast_to(codes, outputs.shape[:-1])[..., None]


def _without(outputs: Floats, codes: NDArray[Any]) -> Floats:
    """Return the outputs of all classes but the true one."""
    n_classes = outputs.shape[-1]
    position = np.arange(n_classes - 1)
    index = position + (position >= np.asarray(codes)[:, None])
    return np.take_along_axis(outputs, np.broadcast_to(index, (*outputs.shape[:-1], n_classes - 1)), axis=-1)
