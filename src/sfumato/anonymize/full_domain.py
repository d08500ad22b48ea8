# SPDX-License-Identifier: Apache-2.0
"""Full-domain generalization: one level of its hierarchy for every column, the best there is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymize.anonymizer import Anonymizer, Fit
from sfumato.anonymize.domains import Domain, Records, as_read, join_alike, read_domain
from sfumato.anonymize.hierarchy_columns import checked_hierarchies
from sfumato.anonymize.method import MethodFacts, NamedMethod
from sfumato.anonymize.recounting import verify
from sfumato.anonymize.release import Release, check_releasable, in_released_order, remembered
from sfumato.arguments import as_table_like
from sfumato.columns import GroupedLabels
from sfumato.criteria import Criterion
from sfumato.criteria.base import asks_records_alone, least_records
from sfumato.criteria.criterion_counts import Counter, shown
from sfumato.errors import ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.frames.pandas_frames import warn_of_telling_index
from sfumato.hierarchies import ANY
from sfumato.partition.lattice import MAX_NODES, Conditions, Found, find_levels

logger = logging.getLogger("sfumato")

_MOST_COUNTS = 1 << 24  # counts of values in groups that are held at once


class FullDomainAnonymizer(Anonymizer):
    """Make a table k-anonymous by publishing every quasi-identifier at one level of its hierarchy.

    All combinations of levels are compared, and the one that gives up least is taken: no other combination of levels
    of these hierarchies has a lower information loss.

    Parameters
    ----------
    k : int, default=10
        Fewest records of a group.
    quasi_identifiers : list of str or int, optional
        Columns that, taken together, could point at a person, by name or position; None: all columns.
    hierarchies : dict, optional
        For each column, by name or position, a `Hierarchy`, the path of a hierarchy file, or a nested mapping. A
        quasi-identifier without one has two levels: its values as they are, and ``"*"``.
    suppression_limit : float, default=0.0
        Share of the records that `release` may leave out.
    criteria : list of Criterion, optional
        Further conditions on every group, such as ``KAnonymity(10, unit="customer")``.
    identifiers : list of str or int, optional
        Columns that name a person; dropped.
    keep : list of str or int, optional
        Columns that may pass through although nearly every record has a value of its own there.
    categorical_features : list of str or int, optional
        Columns of numbers that are codes, not amounts.

    Attributes
    ----------
    levels_ : dict of str to int
        Level at which each quasi-identifier leaves; 0: as it is.
    hierarchies_ : dict of str to Hierarchy
        The hierarchies of the quasi-identifiers that have one.
    group_sizes_ : ndarray of int64
        Records of each group that is released.
    n_groups_ : int
    n_suppressed_ : int
        Fitted records in groups that are left out.
    information_loss_ : float
        Mean over all cells of (values under the published label - 1) / (values of the domain - 1); every cell of a
        suppressed record counts as 1.
    n_evaluated_ : int
        Combinations of levels whose groups were counted; the others could not be better.
    schema_ : Schema

    Notes
    -----
    *Guarantee.* In the result of `fit_transform` and of `release`, every record shares its quasi-identifiers with at
    least k - 1 others, counted again on the result itself. It does not stop attribute disclosure: what all records of
    a group have in common is known of each. Columns that are not quasi-identifiers leave as they are.

    Columns at level 0 keep their type; at other levels they become text. A missing value is a value of its own: it
    stays missing below the top level, and is ``"*"`` there like all others. The domain of a column with missing
    values has one value more.

    With a suppression limit, the groups that fail are left out where they are within the limit; combinations of
    levels that would need more are out of the question. Groups that fail a criterion which compares them with the
    whole table are found by comparing with all records; what is left must also pass compared with itself.

    A value that the hierarchy does not have is refused. `transform` and `release` let it pass in columns that leave
    at the top level, where it is ``"*"``; elsewhere they refuse it as well, since any other label would be a guess.
    Columns without a hierarchy take any value.

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

    # What other anonymizers have as parameters and this one has no use for: its labels come from the hierarchies.
    limits = None
    representative = "range"
    max_bins = 255
    random_state = None
    n_jobs = None

    def __init__(
        self,
        k: int = 10,
        *,
        quasi_identifiers: Any = None,
        hierarchies: Mapping[Any, Any] | None = None,
        suppression_limit: float = 0.0,
        criteria: list[Criterion] | None = None,
        identifiers: Any = None,
        keep: Any = None,
        categorical_features: Any = None,
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

    def _grows_from_counts(self) -> bool:
        return False  # levels are compared by all records

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, target: Any = None) -> Fit:
        self._check_parameters()
        X = as_table_like(X)
        criteria = self._all_criteria()
        read_table(X)  # says what is wrong with something that is no table before scikit-learn looks at it
        validate_data(self, X, skip_check_array=True)
        target = y if target is None else target
        table, schema = self._read(X, criteria, target)
        counters = self._counters(table, criteria, target)
        self._check_feasible(counters, table.n_records)
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

    def fit(self, X: Any, y: Any = None, *, target: Any = None) -> Self:
        """Find the levels for the records of X.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            The records.
        y : array-like, optional
            The target, for criteria on it; it guides nothing.
        target : array-like of shape (n,), optional
            What a criterion on the target counts, where `y` is something else.

        Returns
        -------
        self
        """
        self._fit(X, y, None, target)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, target: Any = None) -> Any:
        """Find the levels for the records of X and return X rewritten; all rows are kept, in their order.

        The result is recounted before it is returned. It is for training: categorical types keep their list of
        categories, which models need and which names also those that no record has any more, and the order of the rows
        can tell which member of a group is which. Publish what ``release(X, shuffle=True)`` returns. Parameters as in
        `fit`.

        Raises
        ------
        GuaranteeError
            When a criterion does not hold on the result.
        """
        self._check_parameters()
        if self.suppression_limit > 0:
            raise ParameterError(
                f"{named('suppression_limit', self.suppression_limit)} with fit_transform, which keeps all rows: "
                "expected 0. Use fit(X).release(X), which may leave records out."
            )
        fitted = self._fit(X, y, None, target)
        released = self._rewrite(fitted.table, self.levels_, None)
        verify(released, self._released_quasi_identifiers(released), fitted.counters, None)
        self._warn_of_unique_values(fitted.table, y if target is None else target)
        warn_of_telling_index(X)
        return released

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
        """Publish the columns of other records at the levels that were found.

        Nothing is promised about how many of these records share a group, and categorical types keep their list of
        categories. To publish other records than the fitted ones use `release`.
        """
        return self._rewrite(self._read_again(X), self.levels_, None)

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
    ) -> Release:
        """Return a publishable version of any records, or raise.

        Groups that fail a criterion are left out where the suppression limit allows. Where it does not, levels are
        raised: of all combinations at or above the fitted levels, the one that gives up least for these records.
        Categorical types list only categories that a released record has.

        Parameters
        ----------
        X : frame or array
        y, target : array-like, optional
            As in `fit`.
        earlier, persons : optional
            As of the other anonymizers; releases of this one can be compared with `persons` only.
        shuffle : bool, optional
            As of the other anonymizers: True for what you publish, False to keep the order of X, None to be warned.

        Returns
        -------
        Release
            Its `n_merged` counts the groups at the fitted levels that higher levels joined with others, and its
            measures have the ``levels``, and the ``information_loss`` with suppressed records counted as 1;
            ``loss_by_column`` is that of the released records.
        """
        table = self._read_again(X)
        self.schema_.check_passing(table)
        self._warn_of_unique_values(table, y if target is None else target)
        if keep_index:
            warn_of_telling_index(X)
        counters = self._counters(table, self._all_criteria(), y if target is None else target)
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
        for counter in counters:
            measures[shown(counter.criterion)] = counter.value(group, found.n_groups)
        made = Release(released, _n_merged(domains, records, lowest, found), found.n_suppressed, measures)
        made = remembered(made, self.k, group.astype(np.int32), table=table, earlier=earlier, persons=persons)
        return in_released_order(made, shuffle, keep_index=keep_index)

    def _read_again(self, X: Any) -> Table:
        check_is_fitted(self, "levels_")
        X = as_table_like(X)
        table = read_table(X, categorical=self.schema_.categorical_features)
        validate_data(self, X, reset=False, skip_check_array=True)
        self.schema_.require(table)
        return table

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
        """Return the table with every quasi-identifier at its level; what is not read yet is read column by column."""
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
                    read_domain(column, own)  # refuses values that the hierarchy does not have
                # Written again: None beside NaN, or -0.0 beside 0.0, count as one value and must leave as one.
                new[name] = as_read(column)
            else:
                assert own is not None  # without a hierarchy, level 1 is the top
                domain = read_domain(table.column(name), own) if domains is None else domains[name]
                labels = domain.levels.labels[:, level].take(domain.codes)
                new[name] = GroupedLabels([*own.labels[level], None], labels)
        drop = [name for name in self.schema_.dropped if name in table.names]
        return table.replaced(new, drop=drop, keep_rows=rows, compact_categories=compact_categories)

    def _released_quasi_identifiers(self, released: Any) -> list[str]:
        names = list(self.levels_)
        if not isinstance(released, np.ndarray):
            return names
        every = list(self.schema_.released)  # arrays have no names: find the columns by their place in what leaves
        return [f"x{every.index(name)}" for name in names]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of the result."""
        check_is_fitted(self, "levels_")
        if input_features is not None and list(input_features) != list(self.schema_.names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array(self.schema_.released, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # labels are text
        return tags


def _counts_records(counter: Counter) -> bool:
    return asks_records_alone(counter.criterion)


def _conditions(counters: list[Counter], inverse: NDArray[np.int32]) -> Conditions | None:
    """Return what the search asks about groups beyond their sizes."""
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
    """Say whether every part of a group that fails the criterion fails it.

    So it is where different values or persons are counted. Not with entropies, shares or distances, and not where
    records without a value do not count: a part with nobody else in it is safe.
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
    MethodFacts(
        "full-domain",
        "every column is published at one level of its hierarchy",
        groups="levels of hierarchies",
        writes_labels=True,
    ),
    FullDomainAnonymizer,
)
