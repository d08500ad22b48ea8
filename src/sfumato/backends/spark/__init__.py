# SPDX-License-Identifier: Apache-2.0
"""Spark DataFrames: counted on workers; only counts reach the driver."""
