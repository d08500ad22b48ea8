# SPDX-License-Identifier: Apache-2.0
"""Spark DataFrames: what workers count, and what reaches the driver."""
