# SPDX-License-Identifier: Apache-2.0
"""What each column of a table is for: its role, its kind, and the finest detail of it that may leave.

Every verb calls :func:`build_schema` once, when it is fitted, keeps the :class:`Schema`, and calls
:meth:`Schema.require` on later tables. :func:`coarsen` applies a limit to a column before anything else sees it.
"""

from sfumato.schema.limits import Limit, coarsen
from sfumato.schema.roles import ColumnWarning, Role, Schema, build_schema, is_near_unique

__all__ = ["ColumnWarning", "Limit", "Role", "Schema", "build_schema", "coarsen", "is_near_unique"]
