# SPDX-License-Identifier: Apache-2.0
"""Predictions as a guide for tables that are read block by block: what must be known of all of them is learned first,
then each block gets its own channels.

A guide depends on the whole table in little: the labels that occur, or the ends and the variance of numbers. Records
that show these are put in front of every block, and the anonymizer's own way from predictions to a guide does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.guidance import kind_of_targets
from sfumato.anonymize.mondrian import MondrianAnonymizer
from sfumato.backends.base import TableBackend
from sfumato.errors import InputError, ParameterError
from sfumato.frames import read_table
from sfumato.partition.guides import Guide, Spread, unit_weights
from sfumato.schema import Schema


@dataclass(frozen=True, eq=False)
class BlockGuide:
    """Turns the predictions of any block into channels.

    Attributes
    ----------
    names : tuple of str
        The columns of predictions; none for a method that needs none, or where a model predicts.
    anonymizer : Anonymizer
        Unfitted; knows what the predictions are.
    schema : Schema
    known : ndarray or None
        Predictions that stand for the whole table: with them a block gets the codes and scales of all records.
    weights : ndarray of float64 or None
        Weights of the channels, where those of a block would differ.
    predicted : ndarray or None
        What a model predicted for every record.
    """

    names: tuple[str, ...]
    anonymizer: Anonymizer
    schema: Schema
    known: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    predicted: NDArray[Any] | None = None

    def of(self, block: Any, start: int = 0) -> Guide:
        """Return the guide of the records of a block, the first of which has this number; of no records with None."""
        if self.known is None:
            n_records = 0 if block is None else block.num_rows
            plain: Guide = self.anonymizer._make_guide(None, None, self.schema, n_records, None)
            return plain
        targets = self.known if block is None else np.concatenate([self.known, self.targets(block, start)])
        guide = self.anonymizer._make_guide(None, targets, self.schema, len(targets), None)
        own = slice(len(self.known), None)
        return replace(
            guide,
            dense=None if guide.dense is None else guide.dense[own],
            code_blocks=[block[own] for block in guide.code_blocks],
            classes=None if guide.classes is None else guide.classes[own],
            channel_weights=guide.channel_weights if self.weights is None else self.weights,
        )

    def targets(self, block: Any, start: int) -> NDArray[Any]:
        """Return the predictions of a block."""
        if self.predicted is None:
            return read_predictions(block, self.names)
        return self.predicted[start : start + block.num_rows]

    def asked(self, table: TableBackend, question: Callable[[int, Any], Any]) -> list[Any]:
        """Return what each block of the predictions answers."""
        return table.map_blocks(question, self.names or table.names[:1])


def learn_guide(
    anonymizer: Anonymizer, table: TableBackend, names: Sequence[str], schema: Schema, model: Any = None
) -> BlockGuide:
    """Ask all blocks of a table what must be known of the predictions.

    Parameters
    ----------
    anonymizer : Anonymizer
    table : TableBackend
    names : sequence of str
        The columns of predictions.
    schema : Schema
    model : fitted estimator, optional
        Predicts from all columns that are not dropped, where there are no columns of predictions.
    """
    if not names and model is None:
        if not isinstance(anonymizer, MondrianAnonymizer):
            raise ParameterError(
                f"{type(anonymizer).__name__} without predictions: expected the column that holds them. Pass "
                "guide_column=, or a model where the call takes one."
            )
        return BlockGuide((), anonymizer, schema)
    predicted = None
    if model is not None:
        every = [name for name in table.names if name not in schema.dropped]
        predicted = np.concatenate(table.map_blocks(lambda _, block: _predictions(model, block), every))
    source = BlockGuide(tuple(names), anonymizer, schema, predicted=predicted)
    asked = getattr(anonymizer, "guide_kind", "auto")

    def look(start: int, block: Any) -> Any:
        values = source.targets(block, start)
        is_number = values.dtype.kind in "iuf"
        ends = (values.min(axis=0), values.max(axis=0)) if is_number else None
        last_class = int(values.argmax(axis=1).max()) if is_number and values.ndim == 2 else 0
        return kind_of_targets(values) if asked == "auto" else asked, ends, last_class, values.shape[1:]

    def labels(start: int, block: Any) -> Any:
        return [np.unique(column) for column in np.atleast_2d(source.targets(block, start).T)]

    found = source.asked(table, look)
    kind = _kind({part[0] for part in found})
    if kind == "labels":
        parts = source.asked(table, labels)
        known = _as_rows([np.unique(np.concatenate(column)) for column in zip(*parts, strict=True)])
    elif kind == "probabilities":
        known = np.eye(*(found[0][3] or (1,)))[[max(part[2] for part in found)]]
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
        return BlockGuide((), anonymizer, schema)  # no classes, and nothing else of predictions is looked at
    guide = replace(source, anonymizer=anonymizer, known=known)
    return replace(guide, weights=_number_weights(table, guide)) if kind == "numbers" else guide


def _kind(kinds: set[str]) -> str:
    """Return what all predictions are: one fraction makes labels numbers, one odd row makes probabilities numbers."""
    return next(iter(kinds)) if len(kinds) == 1 else "numbers"


def _as_rows(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels of one or several outputs as predictions of as many records as the longest needs."""
    if len(columns) == 1:
        return columns[0]
    n_rows = max(map(len, columns))
    return np.column_stack([column[np.arange(n_rows) % len(column)] for column in columns])


def _number_weights(table: TableBackend, guide: BlockGuide) -> NDArray[np.float64]:
    """Return the weights that ``guides.from_numbers`` gives channels of numbers: one over the variance of each."""

    def sums(start: int, block: Any) -> list[Spread]:
        dense = guide.of(block, start).dense
        assert dense is not None
        return [Spread.of(channel) for channel in dense.T]

    found = zip(*guide.asked(table, sums), strict=True)
    return unit_weights([sum(parts, Spread()).variance for parts in found])


def _predictions(model: Any, block: Any) -> NDArray[Any]:
    return np.asarray(model.predict_proba(block) if hasattr(model, "predict_proba") else model.predict(block))


def read_predictions(block: Any, names: Sequence[str]) -> NDArray[Any]:
    """Return the predictions of a block, one column or several."""
    table = read_table(block.select(list(names)))
    columns = [table.column(name) for name in names]
    for column in columns:
        if column.missing is not None and column.missing.any():
            raise InputError(
                f"the column {column.name!r} has missing predictions: expected one per record. Fill them in."
            )
    values = [c.values if c.categories is None else c.categories[c.values].astype(str) for c in columns]
    return values[0] if len(values) == 1 else np.column_stack(values)
