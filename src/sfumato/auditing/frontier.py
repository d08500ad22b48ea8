# SPDX-License-Identifier: Apache-2.0
"""The frontier: protections of one model on the same splits under the same attackers, one row each.

``protections`` says what can be compared, ``frontier_rows`` measures it. Here it is checked what was asked for, before
any work, and splits are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_regressor

from sfumato.arguments import as_list, as_table_like, check_integer, check_share
from sfumato.attack.named_attack import LEVELS
from sfumato.auditing.attacks import ATTACKS, Effort, attacks_of, effort_of
from sfumato.auditing.frontier_rows import Setting, Splits, measured_rows
from sfumato.auditing.frontier_scores import subgroups_of
from sfumato.auditing.protection_families import protections_of
from sfumato.auditing.protections import Scope
from sfumato.auditing.utility import Target, split_records
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.progress import QuietReporter, Reporter
from sfumato.report.frontier import Frontier
from sfumato.report.frontier_row import FrontierRow

DEFAULT_ATTACKS = ("threshold", "attribute", "release_membership", "singling_out", "inference")
"""Attacks that a frontier runs unless told otherwise: none needs a further model."""
N_SHADOWS = 16
FEWEST_OF_A_SIDE = 20
"""Records of a split, to train with and to test on."""
_MOST_SECRETS = 6  # to guess with the model


def frontier(
    X: Any,
    y: ArrayLike,
    model: Any,
    protections: Mapping[str, Any] | None = None,
    *,
    attacks: str | Collection[str] = DEFAULT_ATTACKS,
    n_shadows: int | None = None,
    quasi_identifiers: Any = None,
    sensitive: Any = None,
    secrets: Any = None,
    subgroups: Any = None,
    bounds: Mapping[str, Sequence[float]] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    target_bounds: tuple[float, float] | None = None,
    delta: float = 1e-6,
    others: tuple[Any, Any] | None = None,
    groups: ArrayLike | None = None,
    n_splits: int = 5,
    n_attacked: int | None = None,
    test_fraction: float = 0.5,
    confidence: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    reporter: Reporter | None = None,
    on_row: Callable[[FrontierRow], Any] | None = None,
) -> Frontier:
    """Compare protections of a model: utility, attacks, bounds and costs, on the same splits.

    Parameters
    ----------
    X : frame or array
        Raw records, one per person, without direct identifiers.
    y : array-like of shape (n_records,)
    model : unfitted classifier or regressor
        Takes records as they are: usually a pipeline of an encoder and a model.
    protections : mapping of str to object or numbers, optional
        Either a name and an object: an anonymizer, an `AnonymizedClassifier`, a minimizer, an `Anatomizer`, a private
        learner, a `PrivateAnonymizer`, any synthesizer with ``fit(table)`` and ``sample(n)``, or any estimator. Or a
        family and its numbers: ``"k"`` (models that learn from groups), ``"k-release"`` (tables of such groups),
        ``"l"``, ``"t"``, ``"anatomy"`` (with `sensitive`), ``"buckets"`` (leaves of a `PrivacyAwareTree`),
        ``"epsilon"`` (private learners) and ``"private-release"`` (with `bounds` and `categories`), ``"counts"`` (with
        `others`). None: a few of every family. The unprotected model always comes first.
    attacks : {"none", "quick", "standard", "full"} or collection of str
        A level of audits, or names of attacks. Those on a model run on all of them, those on a release where a table is
        shared.
    n_shadows : int, optional
        Shadow models for LiRA, RMIA and the like; None: 16, or as many as the level has.
    quasi_identifiers : list of columns, optional
        What attackers may know and groups are made of; None: all columns that are not sensitive.
    sensitive : list of columns, optional
        For l, t and anatomy.
    secrets : list of columns, optional
        What attackers guess, from the model and the table, and certificates bound; None: the sensitive columns.
    subgroups : list of columns, optional
        Utility and membership attacks are repeated for their values; numbers and dates are put into four classes.
    bounds, categories, target_bounds, delta
        Public knowledge for private learners and releases, see `PrivateLogisticRegression`.
    others : (X, y), optional
        Records of other people, who are in no split: cells for ``"counts"`` are learned from them.
    groups : array-like of shape (n_records,), optional
        The person of each record, if people have several: they stay on one side of a split.
    n_splits : int, default=5
        Random splits, with the same shares of classes on both sides.
    n_attacked : int, optional
        Splits on which attacks run, which take longest; None: all.
    test_fraction : float, default=0.5
        One half lets shadow models train on as many records as the attacked model.
    confidence : float, default=0.95
    random_state : int, default=0
        Two runs are equal, but for the noise of differential privacy, which has no seed.
    n_jobs : int, optional
        Processes for shadows and threads; None: one, -1: all cores.
    cache : path, optional
        A folder for finished shadows.
    reporter : Reporter, optional
        Hears of every step; whatever it raises stops the run.
    on_row : callable, optional
        Called with each row as soon as it is measured. If it returns False, the run stops, and the frontier has the
        rows so far. So does Ctrl-C.

    Returns
    -------
    Frontier

    Notes
    -----
    A number that a protection cannot have is None, and the row's `reasons` say why. So are all numbers of a protection
    that fails on these records, such as a k above their number.

    What is measured here on raw records is for their owner: it is not private, whatever protection is measured.

    Examples
    --------
    >>> import numpy as np
    >>> import sfumato
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=600) > 0
    >>> found = sfumato.frontier(X, y, DecisionTreeClassifier(random_state=0), {"k": [20]}, n_splits=2)
    >>> [row.name for row in found.rows]
    ['no protection', 'k = 20, model']
    >>> raw, protected = (row.strongest("membership", "model").rate.value for row in found.rows)
    >>> raw > protected  # a deep tree knows its training records by heart
    True
    """
    reporter = reporter or QuietReporter()
    wanted, effort = _attacks(attacks, n_shadows)
    setting = setting_of(
        X, y, model,
        quasi_identifiers=quasi_identifiers, sensitive=sensitive, secrets=secrets, subgroups=subgroups,
        n_splits=n_splits, test_fraction=test_fraction, groups=groups, confidence=confidence,
        random_state=random_state, n_jobs=n_jobs, cache=cache, attacks=wanted, effort=effort,
        n_attacked=n_attacked,
    )  # fmt: skip
    scope = Scope(
        model, setting.table.names, setting.quasi_identifiers, setting.sensitive, setting.classes,
        bounds, categories, target_bounds, delta, _checked_others(others, setting.table),
        _free_name(setting.table.names), n_jobs,
    )  # fmt: skip
    chosen, notes = protections_of(protections, scope, setting.n_train)
    rows: list[FrontierRow] = []
    is_stopped = False
    try:
        for row in measured_rows(setting, chosen, reporter):
            rows.append(row)
            is_stopped = on_row is not None and on_row(row) is False
            if is_stopped:
                break
    except KeyboardInterrupt:  # hours of measuring are worth keeping
        if not rows:
            raise
        is_stopped = True
    return setting.frontier(rows, is_complete=not is_stopped or len(rows) == len(chosen), notes=notes)


# -- what was asked for --------------------------------------------------------------------------------------------


def setting_of(
    X: Any,
    y: ArrayLike,
    model: Any,
    *,
    quasi_identifiers: Any,
    sensitive: Any,
    secrets: Any,
    subgroups: Any,
    n_splits: int,
    test_fraction: float,
    groups: ArrayLike | None,
    random_state: int,
    **how: Any,
) -> Setting:
    """Check what was asked for and draw the splits; parameters as of `frontier`."""
    is_estimator = hasattr(model, "fit") and not isinstance(model, type)
    if not is_estimator or not (is_classifier(model) or is_regressor(model)):
        raise ParameterError(
            f"model is a {type(model).__name__}: expected an unfitted classifier or regressor. Pass an instance."
        )
    check_integer("n_splits", n_splits, 1, hint="5 give useful intervals.")
    if how.get("n_attacked") is not None:
        check_integer("n_attacked", how["n_attacked"], 1, n_splits)
    check_share("test_fraction", test_fraction, is_open=True, hint="0.5 suits shadow models.")
    X = as_table_like(X)
    table, labels = read_table(X), np.asarray(y)
    if labels.shape != (table.n_records,):
        raise InputError(
            f"y has the shape {labels.shape} for {table.n_records:,} records: expected one target each. Pass the "
            "target of the same rows."
        )
    is_number = is_regressor(model)
    classes = None if is_number else np.unique(labels)
    splits = _splits(labels, classes, n_splits, test_fraction, random_state, groups)
    own = list(table.resolve(as_list(sensitive), "sensitive"))
    known = [name for name in table.names if name not in own]
    if quasi_identifiers is not None:
        known = list(table.resolve(as_list(quasi_identifiers), "quasi_identifiers"))
    both = [name for name in known if name in own]
    if both or not known:
        what = f"{both[0]!r} is sensitive and a quasi-identifier" if both else "no quasi-identifier is left"
        raise ParameterError(
            f"{what}: expected {named('quasi_identifiers')} and {named('sensitive')} without a common column. Name "
            "fewer."
        )
    wanted = own if secrets is None else list(table.resolve(as_list(secrets), "secrets"))
    parts = {name: subgroups_of(table, name, splits) for name in table.resolve(as_list(subgroups), "subgroups")}
    return Setting(X, table, labels, classes, splits, known, own, wanted, parts, random_state=random_state, **how)


def _attacks(given: str | Collection[str], n_shadows: int | None) -> tuple[tuple[str, ...], Effort]:
    """Return the names of the attacks, and what they may cost."""
    if n_shadows is not None:
        check_integer("n_shadows", n_shadows, 2, hint="An even number; 64 is usual.")
    if isinstance(given, str):
        if given not in LEVELS:
            raise ParameterError(
                f"{named('attacks', given)}: expected one of {', '.join(LEVELS)}, or a list of names of attacks."
            )
        names, usual = attacks_of(given), effort_of(given).n_shadows
    else:
        names, usual = tuple(given), N_SHADOWS
        for name in names:
            if name not in ATTACKS:
                raise ParameterError(
                    f"{named('attacks')} has {name!r}: expected a level ({', '.join(LEVELS)}), or some of "
                    f"{', '.join(ATTACKS)}."
                )
    return names, Effort(usual if n_shadows is None else int(n_shadows), _MOST_SECRETS)


def _splits(
    labels: NDArray[Any],
    classes: NDArray[Any] | None,
    n_splits: int,
    test_fraction: float,
    random_state: int,
    groups: ArrayLike | None,
) -> Splits:
    persons = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if persons is not None and len(persons) != len(labels):
        raise InputError(f"{len(persons)} groups for {len(labels):,} records: expected the person of each record.")
    if classes is not None and len(classes) < 2:
        raise InputError("y has one class: expected at least two, or there is nothing to learn. Pass another target.")
    if min(test_fraction, 1 - test_fraction) * len(labels) < FEWEST_OF_A_SIDE:
        raise InputError(
            f"{len(labels):,} records with {named('test_fraction', test_fraction)}: expected at least "
            f"{FEWEST_OF_A_SIDE} on both sides of a split. Add records."
        )
    codes = labels if classes is None else np.searchsorted(classes, labels)
    is_known = np.ones(len(labels), bool)
    target = Target(codes, is_known, "regression", 0)
    if classes is not None:
        target = Target(codes, is_known, "classification", len(classes))
    return tuple(split_records(target, test_fraction, random_state + number, persons) for number in range(n_splits))


def _checked_others(others: Any, table: Table) -> tuple[Any, Any] | None:
    if others is None:
        return None
    if not isinstance(others, tuple) or len(others) != 2:
        raise ParameterError(
            f"others is a {type(others).__name__}: expected a pair, (X, y), of other people's records."
        )
    if set(read_table(others[0]).names) != set(table.names):
        raise ParameterError("others has other columns than X: expected the same. Select them.")
    return others


def _free_name(names: Sequence[str]) -> str:
    name = "target"
    while name in names:
        name += "_"
    return name
