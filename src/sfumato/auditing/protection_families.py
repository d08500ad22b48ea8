# SPDX-License-Identifier: Apache-2.0
"""Families of protections by their numbers, ``{"k": [10, 100], "epsilon": [1]}``, and what is compared by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sfumato.anatomize import Anatomizer
from sfumato.anonymize import ModelGuidedAnonymizer, PrivateAnonymizer
from sfumato.auditing.made_tables import CellsOfOthers, LearnsFromCounts
from sfumato.auditing.protections import (
    K_BESIDE,
    NO_PROTECTION,
    Protection,
    Scope,
    check_classes,
    counts_release,
    protection_of,
)
from sfumato.criteria import LDiversity, TCloseness
from sfumato.errors import MissingExtraError, ParameterError, named
from sfumato.minimize import PrivacyAwareTree
from sfumato.private.linear import PrivateLinearRegression, PrivateLogisticRegression

_K_OF_OTHERS = 10  # of the partition that counts are made with


def _whole(low: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= low)


def _positive(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(value > 0)


@dataclass(frozen=True)
class ShortForm:
    """A family of protections by its numbers.

    Attributes
    ----------
    title : str
        Of a row; ``{}`` is the number.
    expected : str
    fits : callable
        Whether a number is possible.
    make : callable
        From the number and the scope to an object.
    needs : {"sensitive", "public", "others", ""}
    for_numbers : bool
        Whether it can protect a regressor.
    default : tuple
        Numbers that are tried where no protections are given.
    """

    title: str
    expected: str
    fits: Callable[[Any], bool]
    make: Callable[[Any, Scope], Any]
    needs: str = ""
    for_numbers: bool = True
    default: tuple[Any, ...] = ()

    @property
    def example(self) -> str:
        """Numbers as a command takes them."""
        return ",".join(f"{number:g}" for number in self.default) or "0.2,0.5"


def _k_model(k: int, scope: Scope) -> Any:
    return scope.anonymized(k=k, quasi_identifiers=scope.quasi_identifiers)


def _k_table(k: int, scope: Scope) -> Any:
    return ModelGuidedAnonymizer(k=k, quasi_identifiers=scope.quasi_identifiers, n_jobs=scope.n_jobs)


def _with_criteria(make: Callable[..., Any], number: Any, scope: Scope) -> Any:
    criteria = [make(number, sensitive=name) for name in scope.sensitive]
    return ModelGuidedAnonymizer(
        k=K_BESIDE, quasi_identifiers=scope.quasi_identifiers, criteria=criteria, n_jobs=scope.n_jobs
    )


def _leaves_tree(leaves: int, scope: Scope) -> Any:
    return PrivacyAwareTree(max_leaves=leaves, attributes=scope.quasi_identifiers, n_jobs=scope.n_jobs)


def _anatomizer(l: int, scope: Scope) -> Any:  # noqa: E741
    return Anatomizer(l, sensitive=scope.sensitive)


def _private_learner(epsilon: float, scope: Scope) -> Any:
    public: dict[str, Any] = {"bounds": scope.bounds, "categories": scope.categories, "delta": scope.delta}
    if scope.is_regression:
        return PrivateLinearRegression(float(epsilon), target_bounds=scope.target_bounds, **public)
    return PrivateLogisticRegression(float(epsilon), classes=_listed(scope.classes), **public)


def _private_release(epsilon: float, scope: Scope) -> Any:
    return PrivateAnonymizer(
        float(epsilon), scope.delta, bounds=scope.bounds, categories=scope.categories, labels=_listed(scope.classes)
    )


def _counts(epsilon: float, scope: Scope) -> Any:
    assert scope.others is not None
    cells = CellsOfOthers(scope.anonymized(k=_K_OF_OTHERS, quasi_identifiers=list(scope.names)), *scope.others)
    return LearnsFromCounts(clone(scope.model), cells, float(epsilon), _listed(scope.classes))


def _listed(classes: NDArray[Any] | None) -> list[Any]:
    assert classes is not None
    return list(classes.tolist())


_SIZE, _BUDGET = "integers from 2 on", "numbers above 0"
SHORT_FORMS: Mapping[str, ShortForm] = {
    "k": ShortForm("k = {}, model", _SIZE, _whole(2), _k_model, default=(10, 100)),
    "k-release": ShortForm("k = {}, table", _SIZE, _whole(2), _k_table, default=(10, 100)),
    "l": ShortForm(
        f"l = {{}}, k = {K_BESIDE}, table", _SIZE, _whole(2), partial(_with_criteria, LDiversity), "sensitive",
        default=(2,),
    ),
    "t": ShortForm(
        f"t = {{}}, k = {K_BESIDE}, table", "numbers above 0, up to 1", lambda v: _positive(v) and v <= 1,
        partial(_with_criteria, TCloseness), "sensitive",
    ),
    "buckets": ShortForm("{} leaves, buckets", _SIZE, _whole(2), _leaves_tree, for_numbers=False, default=(20,)),
    "anatomy": ShortForm(
        "l = {}, two tables", _SIZE, _whole(2), _anatomizer, "sensitive", for_numbers=False, default=(2,)
    ),
    "epsilon": ShortForm("epsilon = {:g}, model", _BUDGET, _positive, _private_learner, "public", default=(1.0,)),
    "counts": ShortForm(
        "epsilon = {:g}, counts", _BUDGET, _positive, _counts, "others", for_numbers=False, default=(1.0,)
    ),
    "private-release": ShortForm(
        "epsilon = {:g}, table", _BUDGET, _positive, _private_release, "public", for_numbers=False, default=(1.0,)
    ),
}  # fmt: skip
"""Families that are given as numbers: ``{"k": [10, 100], "epsilon": [1]}``."""


def protections_of(given: Mapping[str, Any] | None, scope: Scope, n_train: int) -> tuple[list[Protection], list[str]]:
    """Return the protections of a frontier, the unprotected model first, and notes on those that were left out.

    Parameters
    ----------
    given : mapping of str to object or numbers, or None
        None: a few of every kind that the scope allows.
    scope : Scope
    n_train : int
        Training records of a split.

    Raises
    ------
    ParameterError
        For everything that cannot work, before any work.
    """
    notes: list[str] = []
    if given is None:
        given = _usual(scope, n_train, notes)
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"protections is a {type(given).__name__}: expected a mapping from names to objects or numbers, such as "
            "{'k': [10, 100], 'my synthesizer': synthesizer}."
        )
    found: dict[str, Protection] = {}
    for key, value in given.items():
        for name, own in _expanded(str(key), value, scope):
            if name in found:
                raise ParameterError(f"protections has {name!r} twice: expected names that differ. Rename one.")
            found[name] = own
    if not any(one.family == "none" for one in found.values()):
        plain = protection_of(NO_PROTECTION, None, scope)
        found = {plain.name: plain, **found}
    return sorted(found.values(), key=lambda one: one.family != "none"), notes


def _expanded(key: str, value: Any, scope: Scope) -> list[tuple[str, Protection]]:
    """Return the protections of one entry: an object, or a family of numbers."""
    form = SHORT_FORMS.get(key)
    is_listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    numbers = list(value) if is_listed else [value]
    is_number = [isinstance(one, int | float | np.number) for one in numbers]
    if form is None:
        if is_listed or is_number[0] or isinstance(value, str):
            raise ParameterError(
                f"protections has {key!r} with a {type(value).__name__}: expected an object, or numbers under one of "
                f"{', '.join(SHORT_FORMS)}. Rename it, or pass the object."
            )
        return [(key, protection_of(key, value, scope))]
    if not is_listed and not is_number[0]:
        return [(key, protection_of(key, value, scope))]
    if not numbers or not all(map(form.fits, numbers)):
        raise ParameterError(f"protections: {key}={numbers!r}: expected {form.expected}, at least one.")
    _check_needs(key, form, scope)
    return [_numbered(key, form, number, scope) for number in dict.fromkeys(numbers)]


def _numbered(key: str, form: ShortForm, number: Any, scope: Scope) -> tuple[str, Protection]:
    name = form.title.format(number)
    made = form.make(number, scope)
    if isinstance(made, LearnsFromCounts):
        return name, counts_release(name, made)
    found = protection_of(name, made, scope)
    return name, replace(found, name="epsilon = infinite, model" if number == np.inf else name)


def _check_needs(key: str, form: ShortForm, scope: Scope) -> None:
    """Raise for a family that this scope lacks something for."""
    if scope.is_regression and not form.for_numbers:
        check_classes(key, scope)
    if form.needs == "sensitive" and not scope.sensitive:
        raise ParameterError(
            f"protections has {key!r} without {named('sensitive')}: expected the columns whose values must be "
            "protected. Name them."
        )
    if form.needs == "public":
        scope.check_public(key)
    if form.needs == "others" and scope.others is None:
        raise ParameterError(
            f"protections has {key!r} without {named('others')}: expected records of other people, (X, y), since the "
            "cells may not depend on the people who are counted. Pass them, or take 'private-release'."
        )


def _usual(scope: Scope, n_train: int, notes: list[str]) -> dict[str, Any]:
    """Return the defaults of all families that the scope allows, and note the others."""
    chosen: dict[str, Any] = {}
    for key, form in SHORT_FORMS.items():
        try:
            _check_needs(key, form, scope)
        except (ParameterError, MissingExtraError) as error:
            notes.append(f"Left out: {key}. {error.args[0]}")
            continue
        fitting = [one for one in form.default if not key.startswith("k") or 2 * one <= n_train]
        if fitting:
            chosen[key] = fitting
    return chosen
