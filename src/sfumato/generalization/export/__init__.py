# SPDX-License-Identifier: Apache-2.0
"""Generalizations written for the places where data is born; each gives the buckets that ``transform`` gives.

One module per place: `sql`, `polars`, `json_schema`, `javascript` and `form`. :class:`Generalization` calls them.
"""
