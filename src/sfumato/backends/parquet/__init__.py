# SPDX-License-Identifier: Apache-2.0
"""Parquet files: reading them block by block, and writing one that appears only when it is judged."""
