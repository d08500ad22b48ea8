# SPDX-License-Identifier: Apache-2.0
"""The normalised certainty penalty: how wide the groups are, cell by cell (NCP) and for a whole table (GCP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.hierarchies import Hierarchy
from sfumato.loss.extents import CategoryWidth, category_width, hierarchy_width, ordered_width
from sfumato.loss.released_groups import Loss, Names, check_suppressed, columns_of, group_released, read_both


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


def ncp(
    original: Any,
    released: Any,
    quasi_identifiers: Names | None = None,
    *,
    categorical_features: Names | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    categories: CategoryWidth = "share",
    domain: Any = None,
) -> dict[str, NDArray[np.float64]]:
    """Return the certainty penalty of every cell: how much of its column the released value stands for.

    Parameters
    ----------
    original, released : frame or array
        The same records in the same order, before and after.
    quasi_identifiers : names or positions of columns, optional
        The rewritten columns; all of the original unless named.
    categorical_features : names or positions of columns, optional
        Columns of numbers that are codes.
    hierarchies : mapping of str to Hierarchy, optional
        For columns released as labels of a hierarchy: the values under a label count, whether they occur or not, and
        missing is one value more where it occurs.
    categories : {"share", "steps"}, default="share"
        A label for z of D values costs z / D, and nothing for one value; or (z - 1) / (D - 1).
    domain : frame or array, optional
        The table whose values are the domain; the original unless given.

    Returns
    -------
    penalties : dict of str to ndarray of shape (n_records,)
        From 0 (the value is known) to 1 (nothing is known), per column.

    Notes
    -----
    Numbers, dates and times: the length of the range over that of the domain. What a cell stands for:

    - a label such as ``31-34``, ``[20, 30)``, ``{nurse, teacher}`` or ``*``, and bounds in two columns: what it says;
    - a label of a hierarchy: the values under it, or, without the hierarchy, the originals it replaced in the column;
    - a value (a representative): the originals of all records that were released with equal quasi-identifiers, and
      itself, since no more can be concluded from it by someone who knows how groups were made;
    - a missing value in place of a present one: anything.

    A range that also stands for missing values penalises as much as anything does; among categories missing is one.

    References
    ----------
    Xu, J. et al. (2006). Utility-based anonymization using local recoding.
    Ghinita, G. et al. (2007). Fast data anonymization with low information loss.
    Staab, R. et al. (2024). From principle to practice: vertical data minimization for machine learning, section 2.2.

    Examples
    --------
    >>> import pyarrow as pa
    >>> before = pa.table({"age": [30, 34, 40], "job": ["a", "b", "c"]})
    >>> after = pa.table({"age": ["30-34", "30-34", "40"], "job": ["{a, b}", "{a, b}", "c"]})
    >>> {name: penalty.round(3).tolist() for name, penalty in ncp(before, after).items()}
    {'age': [0.4, 0.4, 0.0], 'job': [0.667, 0.667, 0.0]}
    """
    if categories not in get_args(CategoryWidth):
        raise ParameterError(
            f"{named('categories', categories)}: expected 'share' (z / D) or 'steps' ((z - 1) / (D - 1))."
        )
    before, after, names = read_both(original, released, quasi_identifiers)
    codes = () if categorical_features is None else before.resolve(categorical_features, "categorical_features")
    before = before.with_categorical(codes)
    after = after.with_categorical([name for name in codes if name in after.names])
    whole = before if domain is None else read_table(domain, categorical=codes)
    known = dict(hierarchies or {})
    before.resolve(list(known), "hierarchies")
    group = group_released(after, names)
    return {name: _widths(before, after, whole, name, group, known.get(name), categories)[group] for name in names}


def _widths(
    before: Table,
    after: Table,
    whole: Table,
    name: str,
    group: NDArray[np.int64],
    hierarchy: Hierarchy | None,
    categories: CategoryWidth,
) -> NDArray[np.float64]:
    own, domain = before.column(name), whole.column(name)
    shown = tuple(after.column(part) for part in columns_of(after, name))
    if hierarchy is not None and len(shown) == 1:
        return hierarchy_width(own, shown[0], group, hierarchy, domain, categories)
    if own.categories is None:
        return ordered_width(own, shown, group, domain)
    if len(shown) == 2:  # bounds of categories: the originals of the group, since bounds name no set
        return category_width(own, own, group, domain, categories)
    return category_width(own, shown[0], group, domain, categories)


def gcp(
    original: Any,
    released: Any,
    quasi_identifiers: Names | None = None,
    *,
    categorical_features: Names | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    categories: CategoryWidth = "share",
    domain: Any = None,
    n_suppressed: int = 0,
) -> Loss:
    """Return the global certainty penalty: the mean of `ncp` over all records, every column with the weight 1/d.

    Parameters
    ----------
    original, released, quasi_identifiers, categorical_features, hierarchies, categories, domain
        As for :func:`ncp`.
    n_suppressed : int, default=0
        Records that were left out of both tables; each counts 1 in every column.

    Returns
    -------
    Loss
        ``total`` within [0, 1], and the mean penalty of each column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> before, after = pa.table({"age": [30, 34, 40]}), pa.table({"age": ["30-34", "30-34", "40"]})
    >>> round(gcp(before, after).total, 3), round(gcp(before, after, n_suppressed=1).total, 3)
    (0.267, 0.45)
    """
    left_out = check_suppressed(n_suppressed)
    penalties = ncp(
        original,
        released,
        quasi_identifiers,
        categorical_features=categorical_features,
        hierarchies=hierarchies,
        categories=categories,
        domain=domain,
    )
    columns = {
        name: float((penalty.sum() + left_out) / (len(penalty) + left_out)) for name, penalty in penalties.items()
    }
    total = min(1.0, sum(columns.values()) / len(columns))
    return Loss("global certainty penalty", total, columns, total)
