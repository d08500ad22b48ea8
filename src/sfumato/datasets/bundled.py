# SPDX-License-Identifier: Apache-2.0
"""The datasets that come with sfumato: Adult and Nursery, as small Parquet files in ``data/``.

``scripts/build_datasets.py`` writes the files; attribution and license are inside them and become the
``DESCR`` of what is loaded. The demo, the tests and the benchmarks start here.
"""

from __future__ import annotations

from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.datasets._as_frame import AsFrame, as_bunch, resolve_kind, with_categories

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADULT_8 = (
    "workclass",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
    "education-num",
)
_ADULT_10 = (
    "age",
    "workclass",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "hours-per-week",
    "native-country",
)
_ADULT_12 = (*_ADULT_10[:8], "capital-gain", "capital-loss", *_ADULT_10[8:])

#: The three sets of quasi-identifiers of Adult in Goldsteen et al., *Anonymizing Machine Learning Models*
#: (2021), Table 4, by their number of columns.
ADULT_QUASI_IDENTIFIERS: Mapping[int, tuple[str, ...]] = MappingProxyType({8: _ADULT_8, 10: _ADULT_10, 12: _ADULT_12})


def load_adult(*, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load the Adult (census income) table: 48,842 records, the training part first, then the test part.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or {"auto", "pandas", "polars", "pyarrow"}, default=True
        ``True`` and ``"auto"`` give pandas where it is installed and pyarrow otherwise; ``False`` gives
        numpy arrays (an object array for the mixed columns, with NaN for missing values).

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (14 columns; text as categories, numbers as 64-bit integers), ``target`` (``income``:
        ``<=50K`` or ``>50K``), ``frame`` (both; None for numpy), ``feature_names``, ``target_names`` (the
        classes), ``target_column``, ``aside`` (None) and ``DESCR`` (origin, authors and license).

    Notes
    -----
    The first 32,561 records are the published training part. ``fnlwgt`` is a sampling weight of the survey,
    close to unique: neither a feature nor a quasi-identifier in the usual experiments. 3,620 records have
    missing values, all in ``workclass``, ``occupation`` and ``native-country``.

    Examples
    --------
    >>> from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult
    >>> table = load_adult(as_frame="pyarrow").data.select(ADULT_QUASI_IDENTIFIERS[8])
    >>> table.shape
    (48842, 8)
    """
    return _load_bundled("adult", target="income", return_X_y=return_X_y, as_frame=as_frame)


def load_nursery(*, return_X_y: bool = False, as_frame: AsFrame = True) -> Any:
    """Load the Nursery table: 12,960 applications for a nursery school, every combination of 8 features.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool or {"auto", "pandas", "polars", "pyarrow"}, default=True
        As for :func:`load_adult`.

    Returns
    -------
    sklearn.utils.Bunch
        As for :func:`load_adult`; the target is ``class`` with five values, one of which (``recommend``)
        occurs twice only.

    Examples
    --------
    >>> from sfumato.datasets import load_nursery
    >>> load_nursery(as_frame="pyarrow").data.shape
    (12960, 8)
    """
    return _load_bundled("nursery", target="class", return_X_y=return_X_y, as_frame=as_frame)


def _load_bundled(name: str, *, target: str, return_X_y: bool, as_frame: AsFrame) -> Any:
    import pyarrow.parquet as pq

    kind = resolve_kind(as_frame)
    with resources.files(__package__).joinpath("data", f"{name}.parquet").open("rb") as file:
        table = pq.read_table(file)
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    description = (
        f"{about['title']}, by {about['authors']}\n\n{about['citation']}\nLicence: {about['licence']}\n"
        f"Changes made for sfumato: {about['changes']}\n"
    )
    return as_bunch(with_categories(table), target=target, kind=kind, return_X_y=return_X_y, description=description)
