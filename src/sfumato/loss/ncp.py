# SPDX-License-Identifier: Apache-2.0
"""The normalised certainty penalty: how wide the groups are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def group_ncp(widths: NDArray[np.float64], sizes: NDArray[np.int64]) -> float:
    """Return the mean over records and columns of their group's width.

    Parameters
    ----------
    widths : ndarray of shape (groups, columns)
        Width of each group as a share of the column's whole range, from 0 (one value) to 1.
    sizes : ndarray of shape (groups,)
        Records of each group.

    References
    ----------
    Ghinita et al. (2007). Fast data anonymization with low information loss.

    Examples
    --------
    >>> group_ncp(np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([3, 1]))
    0.375
    """
    if not widths.size:
        return 0.0
    return float((widths.mean(axis=1) * sizes).sum() / sizes.sum())
