# SPDX-License-Identifier: Apache-2.0
"""A generalization as polars expressions, for lazy frames and streaming queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, get_args

from sfumato.arguments import check_choice
from sfumato.errors import MissingExtraError
from sfumato.generalization.attributes import Attribute, CategoryAttribute, OrderedAttribute

PolarsOutput = Literal["labels", "codes"]


def polars_expressions(attributes: Sequence[Attribute], output: PolarsOutput = "labels") -> list[Any]:
    """Return one expression per attribute, named like its column: ``frame.with_columns(expressions)``."""
    pl = _polars()
    check_choice("output", output, get_args(PolarsOutput))
    return [_expression(pl, attribute, output).alias(attribute.name) for attribute in attributes]


def _polars() -> Any:
    try:
        import polars as pl
    except ImportError as error:
        raise MissingExtraError(
            "polars is not installed: expected it for polars expressions. Install it with 'pip install polars'."
        ) from error
    return pl


def _expression(pl: Any, attribute: Attribute, output: PolarsOutput) -> Any:
    if output == "labels":
        results = [pl.lit(label) for label in attribute.labels]
    else:
        results = [pl.lit(code, dtype=pl.Int32) for code in range(attribute.n_buckets)]
    if not attribute.is_collected:
        return results[0]
    column = pl.col(attribute.name)
    if isinstance(attribute, OrderedAttribute):
        value = _comparable(pl, column, attribute)
        branches = [(value <= _literal(pl, cut), bucket) for bucket, cut in enumerate(attribute.cuts)]
        last = len(attribute.cuts)
        may_be_nan = attribute.is_real
    else:
        branches = _category_branches(pl, column, attribute)
        last = attribute.unseen
        may_be_nan = any(isinstance(category, float) for category in attribute.categories)
    missing = column.is_null() | column.is_nan() if may_be_nan else column.is_null()
    chain = pl.when(missing).then(results[attribute.missing])
    for condition, bucket in branches:
        chain = chain.when(condition).then(results[bucket])
    return chain.otherwise(results[last])


def _comparable(pl: Any, column: Any, attribute: OrderedAttribute) -> Any:
    """Return moments as whole microseconds: comparing moments of different units would round them."""
    if attribute.moment in ("date", "datetime"):
        return column.dt.epoch("us")
    if attribute.moment == "duration":
        return column.dt.total_microseconds()
    if attribute.moment == "time":
        return column.cast(pl.Int64) // 1_000
    return column


def _literal(pl: Any, value: Any) -> Any:
    return pl.lit(value, dtype=pl.Float64 if isinstance(value, float) else pl.Int64)


def _category_branches(pl: Any, column: Any, attribute: CategoryAttribute) -> list[tuple[Any, int]]:
    value = column.cast(pl.String) if attribute.value_type == "text" else column
    branches = []
    for bucket, members in enumerate(attribute.members):
        if not members or bucket == attribute.unseen:
            continue
        if attribute.value_type == "text":
            condition = value.is_in(list(members))
        elif attribute.value_type == "boolean":
            condition = reduce(lambda left, right: left | right, [value == pl.lit(member) for member in members])
        else:
            condition = reduce(lambda left, right: left | right, [value == _literal(pl, member) for member in members])
        branches.append((condition, bucket))
    return branches
