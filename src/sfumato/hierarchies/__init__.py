# SPDX-License-Identifier: Apache-2.0
"""Hierarchies of labels: every value of a column, the coarser labels above it, and one label above all.

A hierarchy is a table with one row per value: the value, then each coarser label, the last one the same for all.
Full-domain generalization publishes one level of it; tree methods publish the lowest common ancestor of a group;
t-closeness measures distance along it. Read one from a file with :func:`read_hierarchy`, or build one from a nested
mapping, from widths of intervals or from lengths of prefixes.
"""

from sfumato.hierarchies.hierarchy import CodePaths, Hierarchy
from sfumato.hierarchies.hierarchy_files import read_hierarchy
from sfumato.hierarchies.rows import ANY

__all__ = ["ANY", "CodePaths", "Hierarchy", "read_hierarchy"]
