# SPDX-License-Identifier: Apache-2.0
"""Full-domain generalization: every column is released at one level of its hierarchy, chosen optimally."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.hierarchy_columns import (
    Domain,
    Records,
    as_read,
    checked_hierarchies,
    join_alike,
    read_domain,
)
from sfumato.anonymize.method import FACTS, NamedMethod
from sfumato.anonymize.partitioners import Fit
from sfumato.anonymize.release import (
    Release,
    check_releasable,
    in_released_order,
    remembered,
    verify,
    with_criteria,
)
from sfumato.arguments import Names
from sfumato.columns import GroupedLabels
from sfumato.criteria import Criterion
from sfumato.criteria.base import asks_records_alone, least_records
from sfumato.criteria.criterion_counts import Counter
from sfumato.errors import ParameterError
from sfumato.frames import Table
from sfumato.frames.pandas_frames import warn_of_telling_index
from sfumato.hierarchies import ANY
from sfumato.partition.lattice import MAX_NODES, Conditions, Found, find_levels

logger = logging.getLogger("sfumato")

_MOST_COUNTS = 1 << 24  # counts of values in groups that are held at once


class FullDomainAnonymizer(Anonymizer):
    """Make a table k-anonymous by publishing every quasi-identifier at one level of its hierarchy.

    All combinations of levels are compared: no other combination of levels of these hierarchies has a lower
    information loss.

    Parameters
    ----------
    k : int, default=10
        Minimum group size.
    quasi_identifiers : list of str or int, optional
        Columns that together could identify a person, by name or position. None: all columns.
    hierarchies : dict, optional
        For each column, by name or position, a `Hierarchy`, the path of a hierarchy file, or a nested mapping. A
        quasi-identifier without one has two levels: its values as they are, and ``"*"``.
    suppression_limit : float, default=0.0
        Share of the records that `release` may suppress.
    criteria : list of Criterion, optional
        Further conditions on every group, such as ``KAnonymity(10, unit="customer")``.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    keep : list of str or int, optional
        Columns to release unchanged although most of their values are unique.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.

    Attributes
    ----------
    levels_ : dict of str to int
        Level at which each quasi-identifier is released; 0: unchanged.
    hierarchies_ : dict of str to Hierarchy
        The hierarchies of the quasi-identifiers that have one.
    group_sizes_ : ndarray of int64
        Records of each group that is released.
    n_groups_ : int
    n_suppressed_ : int
        Fitted records in suppressed groups.
    information_loss_ : float
        Mean over all cells of (values under the published label - 1) / (values of the domain - 1); every cell of a
        suppressed record counts as 1.
    n_evaluated_ : int
        Combinations of levels whose groups were counted; no other could be better.
    schema_ : Schema

    Notes
    -----
    *Guarantee.* In the result of `fit_transform` and of `release`, every record shares its quasi-identifiers with at
    least k - 1 others, recounted on the result itself. It does not prevent attribute disclosure: a value shared by a
    whole group is known for each member. Columns that are not quasi-identifiers are released unchanged.

    Columns at level 0 keep their type; at other levels they become text. A missing value is a value of its own: it
    stays missing below the top level, and is ``"*"`` there like all others. The domain of a column with missing
    values has one value more.

    With a suppression limit, failing groups are suppressed; combinations of levels that would need more suppression are
    not considered. A criterion that compares groups with the whole table is checked against all records first, and
    then against the remaining ones.

    A value that the hierarchy does not have raises an error. `transform` and `release` accept it in columns at the top
    level, where it is ``"*"``; any other label would be a guess. Columns without a hierarchy take any value.

    References
    ----------
    Samarati, P. (2001). Protecting respondents' identities in microdata release.
    LeFevre, K., DeWitt, D., Ramakrishnan, R. (2005). Incognito: efficient full-domain k-anonymity.
    Ghinita et al. (2007). Fast data anonymization with low information loss.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import FullDomainAnonymizer, Hierarchy
    >>> people = pa.table({"age": [31, 34, 42, 47], "sex": ["f", "f", "m", "m"]})
    >>> ages = Hierarchy.from_intervals(range(100), [5, 10, 50])
    >>> anonymizer = FullDomainAnonymizer(k=2, hierarchies={"age": ages})
    >>> anonymizer.fit_transform(people).to_pydict()
    {'age': ['30-39', '30-39', '40-49', '40-49'], 'sex': ['f', 'f', 'm', 'm']}
    >>> anonymizer.levels_
    {'age': 2, 'sex': 0}
    """

    # Parameters of the other anonymizers that do not apply here: the labels come from the hierarchies.
    limits = None
    representative = "range"
    max_bins = 255
    random_state = None
    n_jobs = None

    def __init__(
        self,
        k: int = 10,
        *,
        quasi_identifiers: Names | None = None,
        hierarchies: Mapping[Any, Any] | None = None,
        suppression_limit: float = 0.0,
        criteria: list[Criterion] | None = None,
        identifiers: Names | None = None,
        keep: Names | None = None,
        categorical_features: Names | None = None,
    ) -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.hierarchies = hierarchies
        self.suppression_limit = suppression_limit
        self.criteria = criteria
        self.identifiers = identifiers
        self.keep = keep
        self.categorical_features = categorical_features

    # -- fitting ---------------------------------------------------------------------------------------------

    def _categorical_features(self, table: Table) -> Any:
        return self.categorical_features  # numbers with a hierarchy keep their type at level 0

    _counts_population = False
    _fitted_attribute = "levels_"

    def _grows_from_counts(self) -> bool:
        return False  # levels are compared by all records

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, target: Any = None, finer: int = 0) -> Fit:
        X, table, schema, counters = self._begin_fit(X, y if target is None else target)
        hierarchies = checked_hierarchies(self.hierarchies, table, schema.quasi_identifiers)
        domains = [read_domain(table.column(name), hierarchies.get(name)) for name in schema.quasi_identifiers]
        records = join_alike(domains)
        found = self._search(domains, records, counters, None)
        self.schema_ = schema
        self.hierarchies_ = hierarchies
        self.levels_ = dict(zip(schema.quasi_identifiers, found.levels, strict=True))
        self.group_sizes_ = _group_sizes(found, records)
        self.n_groups_ = found.n_groups
        self.n_suppressed_ = found.n_suppressed
        self.information_loss_ = found.loss
        self.n_evaluated_ = found.n_evaluated
        logger.info("%d groups of %d records", found.n_groups, table.n_records)
        return Fit(table, counters, found.group[records.inverse])

    def _rewrite_fitted(self, fitted: Fit) -> Any:
        return self._rewrite(fitted.table, self.levels_, None)

    def _search(
        self, domains: list[Domain], records: Records, counters: list[Counter], lowest: Sequence[int] | None
    ) -> Found:
        n_records = len(records.inverse)
        n_nodes = int(np.prod([float(domain.levels.n_levels) for domain in domains]))
        if n_nodes > MAX_NODES:
            raise ParameterError(
                f"{len(domains)} quasi-identifiers with {n_nodes:,} combinations of levels: expected at most "
                f"{MAX_NODES:,}. Leave out levels of the hierarchies, or quasi-identifiers."
            )
        found = find_levels(
            records.codes,
            records.weights,
            [domain.levels for domain in domains],
            min_records=max(least_records(c.criterion) for c in counters if _counts_records(c)),
            max_suppressed=int(self.suppression_limit * n_records),
            lowest=lowest,
            conditions=_conditions([c for c in counters if not _counts_records(c)], records.inverse),
        )
        assert found is not None  # the top level makes all records one group, which was found to be safe
        return found

    # -- using -----------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Rewrite the columns of other records at the fitted levels.

        Their number per group is not guaranteed, and categorical types keep their list of categories. To publish
        records other than the fitted ones, use `release`.
        """
        _, table = self._read_later(X)
        return self._rewrite(table, self.levels_, None)

    def release(
        self,
        X: Any,
        y: Any = None,
        target: Any = None,
        *,
        earlier: Any = (),
        persons: str | int | None = None,
        shuffle: bool | None = None,
        keep_index: bool = False,
        **mechanism: Any,
    ) -> Release:
        """Return a publishable version of any records, or raise.

        Groups that fail a criterion are suppressed within the limit. Beyond it, levels are raised: of all combinations
        at or above the fitted levels, the one with the least information loss for these records is taken. Categorical
        types list only categories of released records.

        Parameters
        ----------
        X : frame or array
        y, target : array-like, optional
            As in `fit`.
        earlier, persons : optional
            As for the other anonymizers; releases of this one can be compared only with `persons`.
        shuffle : bool, optional
            As for the other anonymizers: True to publish, False to keep the order of X, None to be warned.
        **mechanism
            Refused: levels are chosen again for the released records, so that no mechanism can promise anything.

        Returns
        -------
        Release
            Its `n_merged` counts the groups at the fitted levels that higher levels joined with others, and its
            measures have the ``levels``, and the ``information_loss`` with suppressed records counted as 1;
            ``loss_by_column`` is that of the released records.
        """
        if any(value is not None for value in mechanism.values()):
            raise ParameterError(
                f"{next(iter(mechanism))} for FullDomainAnonymizer, whose levels are chosen by the released records: "
                "expected an anonymizer with cells that are fixed beforehand. Take MondrianAnonymizer or "
                "ModelGuidedAnonymizer."
            )
        X, table = self._read_later(X)
        self.schema_.check_passing(table)
        target = y if target is None else target
        self._warn_of_unique_values(table, target)
        if keep_index:
            warn_of_telling_index(X)
        counters = self._counters(table, self._all_criteria(), target)
        check_releasable(np.zeros(table.n_records, np.int32), counters, self.k)
        lowest = list(self.levels_.values())
        domains = [
            read_domain(table.column(name), self.hierarchies_.get(name), is_top=self._is_top(name))
            for name in self.levels_
        ]
        records = join_alike(domains)
        found = self._search(domains, records, counters, lowest)
        group = found.group[records.inverse]
        kept = np.flatnonzero(group >= 0)
        rows = kept if found.n_suppressed else None
        levels = dict(zip(self.levels_, found.levels, strict=True))
        own = dict(zip(self.levels_, domains, strict=True))
        released = self._rewrite(table, levels, rows, own, compact_categories=True)
        counters = [counter.among(group >= 0) for counter in counters]
        smallest = verify(released, self._released_quasi_identifiers(released), counters, rows)
        measures: dict[str, Any] = {
            "n_records": len(kept),
            "n_groups": found.n_groups,
            "smallest_group": smallest,
            "information_loss": found.loss,
            "loss_by_column": _loss_by_column(own, levels, kept),
            "levels": levels,
        }
        measures = with_criteria(measures, counters, group, found.n_groups)
        made = Release(released, _n_merged(domains, records, lowest, found), found.n_suppressed, measures)
        made = remembered(made, self.k, group.astype(np.int32), table=table, earlier=earlier, persons=persons)
        return in_released_order(made, shuffle, keep_index=keep_index)

    def _read_later(self, X: Any) -> tuple[Any, Table]:
        X, table = super()._read_later(X)
        self.schema_.require(table)
        return X, table

    def _is_top(self, name: str) -> bool:
        own = self.hierarchies_.get(name)
        return self.levels_[name] == (1 if own is None else own.n_levels - 1)

    def _rewrite(
        self,
        table: Table,
        levels: Mapping[str, int],
        rows: NDArray[np.int64] | None,
        domains: Mapping[str, Domain] | None = None,
        *,
        compact_categories: bool = False,
    ) -> Any:
        """Return the table with every quasi-identifier at its level; read columns that have no domain yet."""
        new: dict[str, Any] = {}
        for name, level in levels.items():
            own = self.hierarchies_.get(name)
            top = 1 if own is None else own.n_levels - 1
            if level == top:
                label = ANY if own is None else own.labels[top][0]
                new[name] = GroupedLabels([label], np.zeros(table.n_records, np.int32))
            elif level == 0:
                column = table.column(name)
                if own is not None and domains is None:
                    read_domain(column, own)  # raises for values that the hierarchy does not have
                # Written again: None beside NaN, or -0.0 beside 0.0, are one value and must be released as one.
                new[name] = as_read(column)
            else:
                assert own is not None  # without a hierarchy, level 1 is the top
                domain = read_domain(table.column(name), own) if domains is None else domains[name]
                labels = domain.levels.labels[:, level].take(domain.codes)
                new[name] = GroupedLabels([*own.labels[level], None], labels)
        drop = [name for name in self.schema_.dropped if name in table.names]
        return table.replaced(new, drop=drop, keep_rows=rows, compact_categories=compact_categories)

    def _output_names(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self.schema_.dropped]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # labels are text
        return tags


def _counts_records(counter: Counter) -> bool:
    return asks_records_alone(counter.criterion)


def _conditions(counters: list[Counter], inverse: NDArray[np.int32]) -> Conditions | None:
    """Return the conditions of the search beyond group sizes."""
    if not counters:
        return None
    quick = [_by_distinct(counter, inverse) for counter in counters]

    def failing(group: NDArray[np.int32], n_groups: int) -> NDArray[np.bool_]:
        result = np.zeros(n_groups, np.bool_)
        for are_safe in quick:
            result |= ~are_safe(group, n_groups)
        return result

    def hold_for(group: NDArray[np.int32], n_groups: int) -> bool:
        own = group[inverse]
        left = [counter.among(own >= 0) for counter in counters]
        return all(bool(counter.are_safe(own, n_groups).all()) for counter in left)

    return Conditions(failing, hold_for, all(map(_is_inherited, counters)))


def _by_distinct(counter: Counter, inverse: NDArray[np.int32]) -> Callable[[NDArray[np.int32], int], NDArray[np.bool_]]:
    """Return a test of groups of distinct records that counts each of their values once, however many records."""
    if counter.value_of_row is None or counter.criterion.counting != "values":
        return lambda group, n_groups: counter.are_safe(group[inverse], n_groups)
    n_values, reference = counter.n_values, counter.reference
    pairs, n_alike = np.unique(inverse.astype(np.int64) * n_values + counter.value_of_row, return_counts=True)
    record, value = pairs // n_values, pairs % n_values

    def are_safe(group: NDArray[np.int32], n_groups: int) -> NDArray[np.bool_]:
        if n_groups * n_values > _MOST_COUNTS:
            return counter.are_safe(group[inverse], n_groups)
        cells = group[record].astype(np.int64) * n_values + value
        counts = np.bincount(cells, weights=n_alike, minlength=n_groups * n_values).astype(np.int64)
        return counter.criterion.passes(counter.seen(counts.reshape(n_groups, n_values)), reference)

    return are_safe


def _is_inherited(counter: Counter) -> bool:
    """Return True if every part of a group that fails the criterion also fails it.

    This holds for counts of distinct values or persons. It does not hold for entropies, shares or distances, nor if
    records without a value do not count, since a part of such records alone is safe.
    """
    fails_in_parts = getattr(counter.criterion, "fails_in_parts", None)
    return fails_in_parts is not None and fails_in_parts(leaves_out_missing=counter.leaves_out_last)


def _group_sizes(found: Found, records: Records) -> NDArray[np.int64]:
    kept = found.group >= 0
    sizes = np.bincount(found.group[kept], weights=records.weights[kept], minlength=found.n_groups)
    return sizes.astype(np.int64)


def _loss_by_column(
    domains: Mapping[str, Domain], levels: Mapping[str, int], kept: NDArray[np.int64]
) -> dict[str, float]:
    """Return the mean loss of the released cells of every column."""
    return {
        name: float(domain.levels.losses[domain.codes[kept], levels[name]].mean()) for name, domain in domains.items()
    }


def _n_merged(domains: list[Domain], records: Records, lowest: Sequence[int], found: Found) -> int:
    """Return how many groups at the lowest levels share a group at the levels found with another."""
    if tuple(lowest) == found.levels:
        return 0
    kept = found.group >= 0
    finer = np.column_stack(
        [d.levels.labels[records.codes[kept, j], lowest[j]] for j, d in enumerate(domains)] + [found.group[kept]]
    )
    joined = np.bincount(np.unique(finer, axis=0)[:, -1])
    return int(joined[joined > 1].sum())


FULL_DOMAIN = NamedMethod(
    FACTS["full-domain"],
    FullDomainAnonymizer,
)
