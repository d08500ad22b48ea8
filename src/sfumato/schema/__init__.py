# SPDX-License-Identifier: Apache-2.0
"""The role and kind of each column of a table, and the finest detail of it to release.

Every verb calls :func:`build_schema` once, when it is fitted, keeps the :class:`Schema`, and calls
:meth:`Schema.require` on later tables. :func:`coarsen` applies a limit to a column before anything else sees it.
:func:`judge_column` judges what a column seems to hold, with reasons.
"""

from sfumato.errors import ColumnWarning
from sfumato.schema.judging import (
    Frequencies,
    Judgement,
    as_numbers,
    count_values,
    judge_column,
    judge_naming,
    may_name,
)
from sfumato.schema.limits import Limit, coarsen
from sfumato.schema.role_checks import (
    ExposedColumnError,
    check_naming,
    check_passing,
    is_near_unique,
    share_unique,
    warn_of_averaged_codes,
    warn_of_unique_values,
)
from sfumato.schema.roles import Role, Schema, build_schema

__all__ = [
    "ColumnWarning",
    "ExposedColumnError",
    "Frequencies",
    "Judgement",
    "Limit",
    "Role",
    "Schema",
    "as_numbers",
    "build_schema",
    "check_naming",
    "check_passing",
    "coarsen",
    "count_values",
    "is_near_unique",
    "judge_column",
    "judge_naming",
    "may_name",
    "share_unique",
    "warn_of_averaged_codes",
    "warn_of_unique_values",
]
