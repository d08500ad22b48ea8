# SPDX-License-Identifier: Apache-2.0
"""Predictions in a Spark DataFrame as a guide: what must be known of all of them is learned first, then each worker
makes the channels of its own records.

A guide depends on the whole table in little: the labels that occur, or the ends and the variance of numbers. Records
that show these are put in front of every piece, and the anonymizer's own way from predictions to a guide does the rest.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.base import TreeAnonymizer
from sfumato.anonymize.guidance import kind_of_targets
from sfumato.anonymize.mondrian import MondrianAnonymizer
from sfumato.backends.spark.session import collected, pieces, selected
from sfumato.errors import InputError, ParameterError
from sfumato.parquet.guiding import read_predictions
from sfumato.partition.guides import Guide, Spread, unit_weights
from sfumato.schema import Schema


@dataclass(frozen=True, eq=False)
class Guiding:
    """How predictions of any records become channels.

    Attributes
    ----------
    names : tuple of str
        The columns of predictions; none for a method that needs none.
    anonymizer : TreeAnonymizer
        Unfitted; knows what the predictions are.
    schema : Schema
    known : ndarray or None
        Predictions that stand for the whole table: with them a piece gets the codes and scales of all records.
    weights : ndarray of float64 or None
        Weights of the channels, where those of a piece would differ.
    """

    names: tuple[str, ...]
    anonymizer: TreeAnonymizer
    schema: Schema
    known: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None

    def of(self, piece: Any) -> Guide:
        """Return the guide of the records of a piece, or with None that of no records."""
        if self.known is None:
            n_records = 0 if piece is None else piece.num_rows
            plain: Guide = self.anonymizer._make_guide(None, None, self.schema, n_records, None)
            return plain
        targets = self.known if piece is None else np.concatenate([self.known, read_predictions(piece, self.names)])
        guide = self.anonymizer._make_guide(None, targets, self.schema, len(targets), None)
        own = slice(len(self.known), None)
        return replace(
            guide,
            dense=None if guide.dense is None else guide.dense[own],
            code_blocks=[block[own] for block in guide.code_blocks],
            classes=None if guide.classes is None else guide.classes[own],
            channel_weights=guide.channel_weights if self.weights is None else self.weights,
        )


def learn_guide(anonymizer: TreeAnonymizer, frame: Any, names: Sequence[str], schema: Schema) -> Guiding:
    """Ask workers what must be known of all predictions."""
    if not names:
        if not isinstance(anonymizer, MondrianAnonymizer):
            raise ParameterError(
                f"{type(anonymizer).__name__} without predictions: expected the column that holds them. Pass "
                "guide_column=."
            )
        return Guiding((), anonymizer, schema)
    own = selected(frame, names)
    asked = getattr(anonymizer, "guide_kind", "auto")

    def look(values: NDArray[Any]) -> Any:
        is_number = values.dtype.kind in "iuf"
        ends = (values.min(axis=0), values.max(axis=0)) if is_number else None
        last_class = int(values.argmax(axis=1).max()) if is_number and values.ndim == 2 else 0
        return kind_of_targets(values) if asked == "auto" else asked, ends, last_class

    found = _asked(own, names, look)
    kind = _kind({part[0] for part in found})
    if kind == "labels":
        parts = _asked(own, names, lambda values: [np.unique(column) for column in np.atleast_2d(values.T)])
        known = _as_rows([np.unique(np.concatenate(column)) for column in zip(*parts, strict=True)])
    elif kind == "probabilities":
        last = max(part[2] for part in found)
        known = np.eye(len(names))[[last]]
    else:
        if any(part[1] is None for part in found):
            raise InputError(
                f"the columns {', '.join(map(repr, names))} hold no numbers: expected numbers for this guide_kind. Use "
                "guide_kind='labels' for classes."
            )
        low, high = (np.array([part[1][end] for part in found]) for end in (0, 1))
        known = np.stack([low.min(axis=0), high.max(axis=0)]).astype(np.float64)
    if "guide_kind" in anonymizer.get_params(deep=False):
        anonymizer = anonymizer.__class__(**anonymizer.get_params(deep=False)).set_params(guide_kind=kind)
    elif kind == "numbers":
        return Guiding((), anonymizer, schema)  # no classes, and nothing else of predictions is looked at
    guiding = Guiding(tuple(names), anonymizer, schema, known)
    return replace(guiding, weights=_number_weights(own, guiding)) if kind == "numbers" else guiding


def _kind(kinds: set[str]) -> str:
    """Return what all predictions are: one fraction makes labels numbers, one odd row makes probabilities numbers."""
    return next(iter(kinds)) if len(kinds) == 1 else "numbers"


def _as_rows(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels of one or several outputs as predictions of as many records as the longest needs."""
    if len(columns) == 1:
        return columns[0]
    n_rows = max(map(len, columns))
    return np.column_stack([column[np.arange(n_rows) % len(column)] for column in columns])


def _number_weights(frame: Any, guiding: Guiding) -> NDArray[np.float64]:
    """Return the weights that ``guides.from_numbers`` gives channels of numbers: one over the variance of each."""

    def sums(values: NDArray[Any]) -> list[Spread]:
        assert guiding.known is not None
        targets = np.concatenate([guiding.known, values])
        guide = guiding.anonymizer._make_guide(None, targets, guiding.schema, len(targets), None)
        assert guide.dense is not None
        return [Spread.of(channel) for channel in guide.dense[len(guiding.known) :].T]

    found = zip(*_asked(frame, guiding.names, sums), strict=True)
    return unit_weights([sum(parts, Spread()).variance for parts in found])


def _asked(frame: Any, names: Sequence[str], question: Callable[[NDArray[Any]], Any]) -> list[Any]:
    """Return what each piece of the predictions answers."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for piece in pieces(batches):
            answer = pickle.dumps(question(read_predictions(piece, names)))
            yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], names=["answer"])

    return [pickle.loads(row) for row in collected(frame.mapInArrow(work, "answer binary"))["answer"].to_pylist()]
