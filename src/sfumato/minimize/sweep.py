# SPDX-License-Identifier: Apache-2.0
"""Try many settings of one or several minimizers, and compare utility and risk on held-out records.

Generalizations are learned on the training part, compared on the validation part, and reported on the test part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sklearn.model_selection import ParameterGrid

from sfumato.certificates import certify
from sfumato.errors import ParameterError, named
from sfumato.minimize.bucket_utility import CodesClassifier
from sfumato.minimize.collection_limits import CollectionLimits
from sfumato.minimize.judge import CONFIDENCE, Judge, Risk, RiskName, as_risk
from sfumato.minimize.minimizer import Minimizer
from sfumato.minimize.privacy_aware_tree import PrivacyAwareTree
from sfumato.minimize.sweep_parts import SHARES, Part, Shares, parts_of, set_aside
from sfumato.minimize.sweep_result import MinimizerSweep


def sweep_minimizers(
    minimizers: Minimizer | Sequence[Minimizer],
    X: Any,
    y: Any,
    *,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
    validation: Part | None = None,
    test: Part | None = None,
    shares: Shares = SHARES,
    estimator: Any = None,
    risk: RiskName | Risk = "table",
    required: Sequence[str] | None = None,
    forbidden: Sequence[str] | None = None,
    max_buckets: Mapping[str, int] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> MinimizerSweep:
    """Evaluate a grid of settings for utility and for risk.

    Parameters
    ----------
    minimizers : Minimizer or list of Minimizer
        What to sweep over; parameters that a grid does not name stay as they are. All must look at the same
        attributes.
    X : frame or array
        Full-resolution records.
    y : array-like
        Their classes.
    grid : dict or list of dict, optional
        Values to try for each parameter, one dict per minimizer; None: the grids of the paper.
    validation, test : pair of records and classes, optional
        Parts to choose and to report on; X and y are then for learning alone. Both or none.
    shares : tuple of three floats, default=(0.6, 0.1, 0.3)
        Without parts of their own, how X is dealt to training, validation and test. The training part gets at least
        one record of every class and category.
    estimator : classifier, optional
        What predicts the class from a matrix of codes; None: gradient boosting. Records with equal codes are merged
        into one with a weight where its `fit` takes weights.
    risk : {"table", "family"} or callable, default="table"
        The attacker: counts of fine values per combination of buckets, or the strongest of the whole family of
        adversaries, or a function of a generalization, samples and personal attributes that returns the attacker's
        success on validation and on test.
    required, forbidden : list of str, optional
        Attributes that are collected in at least two buckets, and attributes that are not collected. A forbidden one
        may be personal: an attacker would still like to know it.
    max_buckets : dict of str to int, optional
        Budgets: the most buckets of some attributes. Buckets beyond it are joined where the class loses least.
    random_state : int, default=0
    n_jobs : int, optional
        Threads; None: one, -1: all cores.
    progress : bool, default=False
        Show a progress bar on standard error.

    Returns
    -------
    MinimizerSweep
        All points, with the two limits: nothing generalized and everything generalized. Both keep to the floor of
        the first minimizer, and to budgets and forbidden attributes: "nothing generalized" pools rare categories, too.
        Of a table with more than 128 attributes, those that say most of the class by themselves are looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sfumato.minimize import UniformMinimizer, sweep_minimizers
    >>> age, town = np.tile(np.arange(20, 80), 10), np.repeat(np.arange(10), 60)
    >>> X, y = np.column_stack([age, town]), age >= 50
    >>> grid = {"n_buckets": [2, 4]}
    >>> found = sweep_minimizers(UniformMinimizer(), X, y, grid=grid, estimator=DecisionTreeClassifier())
    >>> [(point.minimizer, point.n_buckets) for point in found.points]
    [('nothing generalized', 35), ('everything generalized', 2), ('UniformMinimizer', 4), ('UniformMinimizer', 8)]
    """
    every = [minimizers] if isinstance(minimizers, Minimizer) else list(minimizers)
    if not every:
        raise ParameterError("no minimizer was given: expected one or several. PrivacyAwareTree() suits most.")
    grids = _checked_grids(grid, len(every))
    limits = CollectionLimits.of(required, forbidden, max_buckets)
    parts = parts_of(every[0], X, y, validation, test, shares, random_state)
    attacker = as_risk(risk, seed=random_state, n_jobs=n_jobs)
    judge = Judge(every[0], parts, CodesClassifier(estimator, seed=random_state), attacker, limits)
    with _progress(progress) as advance:
        sample = judge.sample_for(every[0])
        points = [judge.point(name, {}, limit) for name, limit in judge.limits_of(sample, every[0].floor)]
        errors = (points[0].validation_error, points[1].validation_error)
        for minimizer, own_grid in zip(every, grids, strict=True):
            sample = judge.sample_for(minimizer)
            settings = list(ParameterGrid(own_grid or minimizer.default_grid(sample, errors)))
            made = minimizer._learned_of_settings(sample, settings)
            for setting, buckets in advance(zip(settings, made, strict=True), type(minimizer).__name__, len(settings)):
                generalization = judge.told(minimizer, setting, sample, buckets)
                points.append(judge.point(type(minimizer).__name__, setting, generalization))
        left_out = {sample.names[place]: why for place, why in sample.left_out.items()}
    return MinimizerSweep(tuple(points), judge.personal, limits.required, left_out, len(parts[2][1]))


def coarsest_generalization(
    X: Any,
    y: Any,
    *,
    max_loss: float | None = 0.01,
    max_risk: float | None = None,
    minimizer: Any = None,
    certified: bool = False,
    confidence: float = CONFIDENCE,
    **options: Any,
) -> Any:
    """Return the generalization with the lowest risk that costs a classifier at most `max_loss` of its accuracy.

    Without a limit of the loss, the one with the lowest error whose risk is at most `max_risk`.

    Parameters
    ----------
    X : frame or array
        Full-resolution records.
    y : array-like
        Their classes.
    max_loss : float or None, default=0.01
        Maximum increase of the error over full resolution, as a share; 0.01 is one percentage point.
    max_risk : float, optional
        Maximum share of personal values that the attacker guesses right.
    minimizer : Minimizer, optional
        None: a ``PrivacyAwareTree``.
    certified : bool, default=False
        Whether to return a certificate, too: bounds on any attacker from the test part, which nothing was learned or
        chosen on. Without a test part of its own, that part is drawn from X at random first.
    confidence : float, default=0.95
        Of the certificate.
    **options
        As for `sweep_minimizers`: among them `required`, `forbidden` and `max_buckets`.

    Returns
    -------
    Generalization, or pair of Generalization and Certificate

    Examples
    --------
    >>> from sfumato import UniformMinimizer, coarsest_generalization
    >>> from sfumato.datasets import load_adult
    >>> X, y = load_adult(return_X_y=True, as_frame="pyarrow")
    >>> X, y = X.select(["age", "education-num", "hours-per-week"]).slice(0, 2000), y.slice(0, 2000)
    >>> found = coarsest_generalization(X, y, max_loss=0.1, minimizer=UniformMinimizer(), grid={"n_buckets": [2, 4]})
    >>> found.names
    ('age', 'education-num', 'hours-per-week')
    """
    own = PrivacyAwareTree() if minimizer is None else minimizer
    if certified and options.get("test") is None and options.get("validation") is None:
        shares = options.pop("shares", SHARES)
        X, y, options["validation"], options["test"] = set_aside(X, y, shares, options.get("random_state", 0))
    swept = sweep_minimizers(own, X, y, **options)
    chosen = swept.coarsest(max_loss, max_risk=max_risk).generalization
    if not certified:
        return chosen
    if not swept.personal:
        raise ParameterError(
            f"{named('certified', True)} without personal attributes: expected at least one to bound. Name them in "
            f"{named('personal')} of the minimizer."
        )
    return chosen, certify(chosen, options["test"][0], secrets=swept.personal, confidence=confidence)


def _checked_grids(grid: Any, n_minimizers: int) -> list[Mapping[str, Sequence[Any]] | None]:
    if grid is None:
        return [None] * n_minimizers
    grids = [grid] if isinstance(grid, Mapping) else list(grid)
    if len(grids) != n_minimizers:
        raise ParameterError(
            f"{len(grids)} grids for {n_minimizers} minimizers: expected one each. Use None for the paper's grid."
        )
    return grids


@contextmanager
def _progress(is_shown: bool) -> Iterator[Any]:
    """Yield a function that passes an iterable through and shows how far it has come."""
    if not is_shown:
        yield lambda steps, name, n_steps: steps
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:

        def advance(steps: Iterable[Any], name: str, n_steps: int) -> Iterable[Any]:
            return bar.track(steps, total=n_steps, description=name)

        yield advance
