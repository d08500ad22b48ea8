# SPDX-License-Identifier: Apache-2.0
"""Read a fitted classifier as a decision over buckets.

Encoders in front of a classifier are looked through: each bucket of each attribute is sent through them once, which
says what the classifier sees of it. That is enough where every feature comes from one attribute, as with one-hot codes
and scaled numbers. Linear models, trees, forests and boosted trees of scikit-learn are then read themselves, and
compared with the model on drawn records; every other model is asked about drawn records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, ParameterError, named
from sfumato.generalization.attributes import Attribute, CategoryAttribute
from sfumato.generalization.questions.decisions import (
    Codes,
    Decision,
    DrawnDecision,
    EnsembleDecision,
    Leaves,
    LinearDecision,
    TreeDecision,
)

ModelInput = Literal["codes", "labels", "representatives"]
_PROBES = 200
_MOST_LEAVES = 4_000  # of one tree: borders between leaves are looked for pair by pair
_ONE_BY_ONE = (
    "OneHotEncoder", "OrdinalEncoder", "TargetEncoder", "StandardScaler", "MinMaxScaler", "MaxAbsScaler",
    "RobustScaler", "KBinsDiscretizer", "SimpleImputer", "VarianceThreshold", "SelectKBest", "SelectPercentile",
)  # fmt: skip
"""Transformers of scikit-learn whose features come from one column each."""


@dataclass(frozen=True, eq=False)
class BucketModel:
    """A fitted classifier that is asked with buckets.

    Parameters
    ----------
    attributes : sequence of OrderedAttribute or CategoryAttribute
    estimator : classifier
    encoders : sequence of transformers
        What stands before it in a pipeline.
    columns : sequence of int
        The attribute in each column that the model takes.
    names : sequence of str or None
        Names of these columns, where the model was trained with names.
    takes : {"codes", "labels", "representatives"}
        What the model was trained on.
    """

    attributes: Sequence[Attribute]
    estimator: Any
    encoders: Sequence[Any]
    columns: Sequence[int]
    names: Sequence[str] | None
    takes: ModelInput

    @classmethod
    def of(cls, attributes: Sequence[Attribute], fingerprint: str, model: Any, takes: ModelInput) -> BucketModel:
        """Take a model apart.

        Parameters
        ----------
        attributes : sequence of OrderedAttribute or CategoryAttribute
        fingerprint : str
            Of their generalization: a minimizer with the same one, in front of a pipeline, is left out.
        model : classifier, pipeline or search over parameters
        takes : {"codes", "labels", "representatives"}
        """
        model = getattr(model, "best_estimator_", model)
        steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
        own = getattr(steps[0], "generalization_", None)
        first = steps[0]
        if own is not None:
            if own.fingerprint != fingerprint:
                raise ParameterError(
                    f"{named('model')} begins with another generalization: expected this one, or none. Ask "
                    "the generalization of the pipeline's first step."
                )
            takes, steps = first.output, steps[1:]
        steps = [step for step in steps if step not in (None, "passthrough")]
        if not steps or not hasattr(steps[-1], "classes_"):
            raise ParameterError(
                f"{named('model')} is not a fitted classifier: expected one with classes_, or a pipeline that ends "
                "with one. Fit it first, on what transform of the generalization gives."
            )
        columns, names = _columns(attributes, first if own is not None else steps[0])
        return cls(attributes, steps[-1], steps[:-1], columns, names, takes)

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, in the model's order."""
        return np.asarray(self.estimator.classes_)

    def seen(self, codes: Codes) -> Any:
        """Return records as the model takes them."""
        columns = [self._values(place)[codes[:, place]] for place in self.columns]
        if self.names is None:
            matrix = np.empty((len(codes), len(columns)), object)
            for place, column in enumerate(columns):
                matrix[:, place] = column
            try:
                return matrix.astype(np.float64) if self.takes != "labels" else matrix
            except (TypeError, ValueError):
                return matrix
        import pandas as pd

        return pd.DataFrame(dict(zip(self.names, columns, strict=True)))

    def _values(self, place: int) -> NDArray[Any]:
        attribute = self.attributes[place]
        if self.takes == "codes":
            return np.arange(attribute.n_buckets, dtype=np.int32)
        if self.takes == "labels":
            return np.array(attribute.labels, object)
        values = [bucket.representative for bucket in attribute.buckets]
        if isinstance(attribute, CategoryAttribute) and attribute.value_type == "text":
            return np.array(values, object)
        return np.array([np.nan if value is None else value for value in values])

    def features(self, codes: Codes) -> NDArray[np.float64]:
        """Return records as the classifier behind all encoders sees them."""
        seen = self.seen(codes)
        for encoder in self.encoders:
            seen = encoder.transform(seen)
        if type(self.estimator).__name__ == "HistGradientBoostingClassifier":
            seen = self.estimator._preprocess_X(seen, reset=False)
        return np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, np.float64)

    def predict(self, codes: Codes) -> NDArray[np.int64]:
        """Return the place of the class that the model predicts for complete records."""
        seen = self.seen(codes)
        for encoder in self.encoders:
            seen = encoder.transform(seen)
        place = {value: number for number, value in enumerate(self.classes.tolist())}
        return np.array([place[value] for value in np.asarray(self.estimator.predict(seen)).tolist()], np.int64)

    def read(self, weights: NDArray[np.float64], complete: Callable[[Codes], Codes]) -> Decision:
        """Return the model as a decision over buckets, exact where its make is known.

        Parameters
        ----------
        weights : ndarray of float64
            Share of people in each bucket of every attribute, one after the other.
        complete : callable
            Takes answers, returns drawn records that agree with them.
        """
        drawn = DrawnDecision(self.predict, complete, len(self.attributes))
        reader = next((read for base, read in _readers() if isinstance(self.estimator, base)), None)
        if reader is None or not all(map(_is_one_by_one, self.encoders)):
            return drawn
        table = self._features_of_buckets()
        made = None if table is None else reader(self.estimator, table, weights)
        if made is None:
            return drawn
        records = complete(np.full(len(self.attributes), -1))[:_PROBES]
        agrees = np.array_equal(made.decide(records), self.predict(records))
        return made if agrees else drawn

    def _features_of_buckets(self) -> _FeatureTable | None:
        """Send every bucket through the encoders; None if a feature comes from several attributes."""
        sizes = [attribute.n_buckets for attribute in self.attributes]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.zeros((starts[-1], len(sizes)), np.int64)
        for place, size in enumerate(sizes):
            rows[starts[place] : starts[place + 1], place] = np.arange(size)
        try:
            found = self.features(rows)
        except ValueError as error:
            raise InputError(
                f"the model does not take every bucket ({type(error).__name__}): expected one that does, since any may "
                "be answered. Let its encoder accept unknown values (handle_unknown='ignore')."
            ) from error
        base = found[0]
        owner = np.full(found.shape[1], -1)
        for place in range(len(sizes)):
            own = found[starts[place] : starts[place + 1]]
            changes = ((own != base) & ~(np.isnan(own) & np.isnan(base))).any(axis=0)
            if (owner[changes] >= 0).any():
                return None
            owner[changes] = place
        return _FeatureTable(found, starts.astype(np.int64), owner)


@dataclass(frozen=True, eq=False)
class _FeatureTable:
    """What the classifier sees of each bucket.

    Attributes
    ----------
    values : ndarray of float64, shape (buckets of all attributes, features)
        Features of a record with this bucket, and the first bucket in all other attributes.
    starts : ndarray of int64
        First bucket of each attribute, and the number of all buckets in the end.
    owner : ndarray of int64
        The attribute that each feature comes from; -1 if it is constant.
    """

    values: NDArray[np.float64]
    starts: NDArray[np.int64]
    owner: NDArray[np.int64]

    def buckets(self, place: int) -> slice:
        """Return the buckets of an attribute."""
        return slice(int(self.starts[place]), int(self.starts[place + 1]))


def _columns(attributes: Sequence[Attribute], step: Any) -> tuple[list[int], list[str] | None]:
    """Return the attribute of each column that a model takes, and the names of the columns if it knows them."""
    by_name = {attribute.name: place for place, attribute in enumerate(attributes)}
    names = getattr(step, "feature_names_in_", None)
    if names is not None:
        unknown = [name for name in names if name not in by_name]
        if unknown:
            raise ParameterError(
                f"{named('model')} takes {len(unknown)} columns that are not attributes of the generalization, such as "
                f"{unknown[0]!r}: expected attributes alone, since nothing else is asked. Train it on those."
            )
        return [by_name[name] for name in names], list(names)
    collected = [place for place, attribute in enumerate(attributes) if attribute.is_collected]
    for columns in (list(range(len(attributes))), collected):
        if getattr(step, "n_features_in_", None) in (len(columns), None):
            return columns, None
    raise ParameterError(
        f"{named('model')} takes {step.n_features_in_} columns: expected {len(attributes)}, one per attribute, or "
        f"{len(collected)}, one per attribute that is collected. Train it on buckets."
    )


def _is_one_by_one(encoder: Any) -> bool:
    """Return True if every feature of a transformer comes from one of its columns."""
    if hasattr(encoder, "steps"):
        return all(_is_one_by_one(step) for _, step in encoder.steps)
    if hasattr(encoder, "transformers_"):
        return all(_is_one_by_one(own) for _, own, _ in encoder.transformers_)
    if isinstance(encoder, str):
        return encoder in ("passthrough", "drop")
    kind = type(encoder)
    if kind.__name__ == "FunctionTransformer":
        return encoder.func is None  # what a column transformer passes through
    return kind.__name__ in _ONE_BY_ONE and kind.__module__.startswith("sklearn.")


# -- makes of models ---------------------------------------------------------------------------------------------

_Reader = Callable[[Any, _FeatureTable, NDArray[np.float64]], "Decision | None"]


def _readers() -> list[tuple[Any, _Reader]]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model._base import LinearClassifierMixin
    from sklearn.tree import DecisionTreeClassifier

    return [
        ((LinearClassifierMixin, LinearDiscriminantAnalysis), _linear),
        (DecisionTreeClassifier, _tree),
        ((RandomForestClassifier, ExtraTreesClassifier), _forest),
        (GradientBoostingClassifier, _boosted),
        (HistGradientBoostingClassifier, _histogram_boosted),
    ]


def _linear(model: Any, table: _FeatureTable, weights: NDArray[np.float64]) -> Decision | None:
    coefficients = np.atleast_2d(np.asarray(model.coef_, np.float64))
    if np.isnan(table.values).any() or coefficients.shape[1] != table.values.shape[1]:
        return None
    intercept = np.broadcast_to(np.asarray(model.intercept_, np.float64), len(coefficients))
    base = table.values[0] @ coefficients.T + intercept
    parts = [
        (table.values[table.buckets(place)] - table.values[0]) @ coefficients.T
        for place in range(len(table.starts) - 1)
    ]
    if len(coefficients) == 1:  # two classes: the second one where the score is above zero
        parts = [np.column_stack([np.zeros(len(own)), own[:, 0]]) for own in parts]
        base = np.append(0.0, base)
    return LinearDecision(parts, base)


def _tree(model: Any, table: _FeatureTable, weights: NDArray[np.float64]) -> Decision | None:
    if model.n_outputs_ != 1:
        return None
    inside, values = _boxes(model.tree_, table)
    if len(inside) > _MOST_LEAVES:
        return None
    return TreeDecision(Leaves(inside, table.starts), values.argmax(axis=1), weights)


def _forest(model: Any, table: _FeatureTable, weights: NDArray[np.float64]) -> Decision | None:
    if model.n_outputs_ != 1:
        return None
    boxes = [_boxes(own.tree_, table) for own in model.estimators_]
    parts = [(inside, values / values.sum(axis=1, keepdims=True) / len(boxes)) for inside, values in boxes]
    return _ensemble(parts, np.zeros(len(model.classes_)), table, weights)


def _boosted(model: Any, table: _FeatureTable, weights: NDArray[np.float64]) -> Decision | None:
    if model.init_ != "zero" and type(model.init_).__name__ != "DummyClassifier":
        return None  # another model starts it, which may see the record as a whole
    n_scores = model.estimators_.shape[1]
    base = np.asarray(model._raw_predict_init(table.values[:1].astype(np.float32)), np.float64)[0]
    parts = []
    for row in model.estimators_:
        for score, own in enumerate(row):
            inside, values = _boxes(own.tree_, table)
            parts.append((inside, _of_score(model.learning_rate * values[:, 0], score, n_scores)))
    return _ensemble(parts, _with_zero(base), table, weights)


def _histogram_boosted(model: Any, table: _FeatureTable, weights: NDArray[np.float64]) -> Decision | None:
    n_scores = model.n_trees_per_iteration_
    base = np.asarray(model._baseline_prediction, np.float64).reshape(-1)
    parts = []
    for row in model._predictors:
        for score, predictor in enumerate(row):
            inside, leaves = _histogram_boxes(predictor, table)
            values = predictor.nodes["value"][leaves].astype(np.float64)
            parts.append((inside, _of_score(values, score, n_scores)))
    return _ensemble(parts, _with_zero(base), table, weights)


def _histogram_boxes(predictor: Any, table: _FeatureTable) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    nodes = predictor.nodes
    children = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    is_leaf, feature = nodes["is_leaf"].astype(np.bool_), nodes["feature_idx"].astype(np.int64)
    return _leaf_boxes(*children, is_leaf, feature, lambda node, seen: _goes_left(predictor, node, seen), table)


def _goes_left(predictor: Any, node: int, seen: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values go left at a node of a boosted tree; categories by bits, missing values by their side."""
    own = predictor.nodes[node]
    missing = np.isnan(seen)
    if not own["is_categorical"]:
        left = seen <= own["num_threshold"]
    else:
        values = np.where(missing | (seen < 0) | (seen > 255), 0, seen).astype(np.int64)
        words = predictor.raw_left_cat_bitsets[own["bitset_idx"]]
        left = (words[values >> 5] >> (values & 31).astype(np.uint32)) & 1 == 1
    return np.where(missing, bool(own["missing_go_to_left"]), left)


def _of_score(values: NDArray[np.float64], score: int, n_scores: int) -> NDArray[np.float64]:
    """Return leaf values as what they add to every class; with one score for two classes, to the second."""
    made = np.zeros((len(values), 2 if n_scores == 1 else n_scores))
    made[:, 1 if n_scores == 1 else score] = values
    return made


def _with_zero(base: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.append(0.0, base) if len(base) == 1 else base


def _ensemble(
    parts: Sequence[tuple[NDArray[np.bool_], NDArray[np.float64]]],
    base: NDArray[np.float64],
    table: _FeatureTable,
    weights: NDArray[np.float64],
) -> EnsembleDecision:
    sizes = [len(values) for _, values in parts]
    return EnsembleDecision(
        Leaves(np.concatenate([inside for inside, _ in parts]), table.starts),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        np.concatenate([values for _, values in parts]),
        base,
        weights,
    )


def _boxes(tree: Any, table: _FeatureTable) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the leaves of a tree of scikit-learn as boxes of buckets, and their values."""

    def goes_left(node: int, seen: NDArray[np.float64]) -> NDArray[np.bool_]:
        narrow = seen.astype(np.float32)  # as the tree compares them
        missing_left = getattr(tree, "missing_go_to_left", None)
        left = narrow <= tree.threshold[node]
        return left if missing_left is None else np.where(np.isnan(narrow), bool(missing_left[node]), left)

    is_leaf = tree.children_left < 0
    inside, leaves = _leaf_boxes(tree.children_left, tree.children_right, is_leaf, tree.feature, goes_left, table)
    return inside, np.asarray(tree.value[leaves][:, 0, :], np.float64)


def _leaf_boxes(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    is_leaf: NDArray[np.bool_],
    feature: NDArray[np.int64],
    goes_left: Callable[[int, NDArray[np.float64]], NDArray[np.bool_]],
    table: _FeatureTable,
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return the buckets of each attribute that lead to a leaf, and its node; leaves that none lead to are left out."""
    inside = np.ones((len(left), table.starts[-1]), np.bool_)
    for node in range(len(left)):  # children come after their parent
        if is_leaf[node]:
            continue
        place = int(table.owner[feature[node]])
        own = slice(0, len(table.values)) if place < 0 else table.buckets(place)
        side = goes_left(node, table.values[own, feature[node]])
        inside[left[node]] = inside[right[node]] = inside[node]
        inside[left[node], own] &= side
        inside[right[node], own] &= ~side
    possible = np.logical_or.reduceat(inside, table.starts[:-1], axis=1).all(axis=1)
    leaves = np.flatnonzero(is_leaf & possible)
    return inside[leaves], leaves
