# SPDX-License-Identifier: Apache-2.0
"""The slow and simple twins of the engine: what the kernels compute, written so that it can be checked by reading."""
