# SPDX-License-Identifier: Apache-2.0
"""Attribute inference: guess one attribute of a person from a model and the person's other attributes.

Model inversion, after Fredrikson et al.: try every value of the attribute in the record, query the model, and weight
the values by how well the answers fit the true label. A second attacker learns from records known in full. Both are
compared with an attacker with the same knowledge who never queries the model.

References
----------
M. Fredrikson, S. Jha and T. Ristenpart, "Model inversion attacks that exploit confidence information and basic
countermeasures", CCS 2015. A. Goldsteen et al., "Anonymizing machine learning models", 2021, Table 2.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestClassifier

from sfumato.attack.membership_signals import Floats, Reader, reader_of
from sfumato.attack.named_attack import AttackFacts, NamedAttack
from sfumato.attack.result import AttackResult, Hits, bootstrap_interval, judge, wilson_interval
from sfumato.columns import Column, GroupedValues
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table

ATTACKS = ("confidence", "confusion", "learned")
_MOST_VALUES = 50
_FEWEST_RECORDS = 20
_N_TREES = 100
_TAG = 104  # keeps the halves apart from what others draw from the same seed


@dataclass(frozen=True, eq=False)
class _Victims:
    """Records whose attribute is to be guessed, and everything the attacker sees of them."""

    truth: NDArray[np.intp]  # position among the values
    known: Floats  # the other attributes and the label, as numbers
    codes: NDArray[Any]  # the label
    outputs: Floats  # of the model on the true record
    candidates: Floats  # (value, record, output): of the model with each value put in


def attack_attribute(
    model: Any,
    X: Any,
    y: ArrayLike,
    attribute: str | int,
    *,
    attacks: Sequence[str] = ATTACKS,
    positive: Any = None,
    control: tuple[Any, Any] | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Mapping[str, AttackResult]:
    """Guess an attribute of records from their other attributes, their label and a model.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba`` or ``decision_function``, or fitted regressor
        It must have been trained with the attribute among its features.
    X : frame or array
        The attacked records: those that the model was trained on.
    y : array-like of shape (n_records,)
        Their true labels, which the attacker knows, too.
    attribute : str or int
        The column to guess; at most 50 distinct values.
    attacks : sequence of {"confidence", "confusion", "learned"}
        ``"confidence"``: prior of the value times the model's confidence in the true label. ``"confusion"``: prior
        times the share of records with the true label among those that the model answers alike, for models that give
        labels only (a regressor gives no labels: there it is left out). ``"learned"``: a forest that knows half of the
        records in full, attacks the other half, and sees the model's answers to the true record and to all candidates.
    positive : value, optional
        Report precision and recall for this value.
    control : (X, y), optional
        Records that the model was not trained on. What is found out about them, too, is what the model says about
        people in general.
    confidence : float, default=0.95
    random_state : int, default=0
    n_jobs : int, optional
        Threads of the forests; None: one, -1: all cores.

    Returns
    -------
    dict of str to AttackResult
        The rate is the share of right guesses. The baseline is the better of the most frequent value and a forest that
        learns from the other attributes and the label without the model. The verdict compares the two on the same
        records, and with the control where there is one: what is as true of others was not learned of these.

    Examples
    --------
    An overfitted tree reveals who smokes, which nothing else predicts.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> generator = np.random.default_rng(0)
    >>> people = pd.DataFrame({"income": generator.normal(size=300), "smokes": generator.integers(0, 2, 300)})
    >>> label = generator.integers(0, 2, 300)
    >>> model = DecisionTreeClassifier(max_features=1, random_state=0).fit(people, label)
    >>> result = attack_attribute(model, people, label, "smokes", attacks=["confidence"])["confidence"]
    >>> result.rate > result.baseline, result.verdict
    (True, 'stronger than baseline')
    """
    chosen = _checked_attacks(attacks)
    table = read_table(X)
    name = table.resolve([attribute], "attribute")[0]
    column = table.column(name)
    values = _values_of(column)
    reader = reader_of(model, y)
    if reader.kind == "numbers":
        chosen = [attack for attack in chosen if attack != "confusion"]
    victims = _seen(model, reader, table, y, name, values, column)
    fold = np.random.default_rng([random_state, _TAG]).permutation(len(victims.truth)) % 2
    unseen = None
    if control is not None:
        other = read_table(control[0])
        unseen = _seen(model, reader, other, control[1], name, values, _recoded(other.column(name), column))
    prior = np.bincount(victims.truth, minlength=len(values)) / len(victims.truth)
    forest = _Forest(random_state, n_jobs)
    blind = forest.guesses(victims.known, victims.truth, fold)
    always = np.full(len(victims.truth), int(prior.argmax()))
    baseline = max((blind, always), key=lambda guesses: int((guesses == victims.truth).sum()))
    wanted = None if positive is None else _position_of(positive, column, values)
    results = {}
    for attack in chosen:
        start = time.perf_counter()
        guesses = _guesses(attack, reader, victims, prior, fold, forest)
        rate_of_control = None
        if unseen is not None:
            other_fold = np.random.default_rng([random_state, _TAG]).permutation(len(unseen.truth)) % 2
            found = _guesses(attack, reader, unseen, prior, other_fold, forest)
            rate_of_control = float((found == unseen.truth).mean())
        details = _details(guesses, baseline, victims.truth, wanted, confidence, random_state)
        details |= {"attribute": name, "n_values": len(values), "n_records": len(victims.truth)}
        rate = float((guesses == victims.truth).mean())
        interval = wilson_interval(int((guesses == victims.truth).sum()), len(guesses), confidence)
        verdict = judge(details["advantage"], details["advantage_interval"], baseline=0.0)
        if rate_of_control is not None and verdict == "stronger than baseline" and interval[0] <= rate_of_control:
            verdict = "not shown"  # as right about people whom the model has never seen
        results[attack] = AttackResult(
            attack=f"attribute inference by {attack}",
            rate=rate,
            interval=interval,
            baseline=float((baseline == victims.truth).mean()),
            control=rate_of_control,
            verdict=verdict,
            seconds=time.perf_counter() - start,
            seed=random_state,
            details=details,
            hits=Hits(np.arange(len(guesses)), guesses == victims.truth, baseline == victims.truth, victims.truth),
        )
    return results


def _seen(
    model: Any, reader: Reader, table: Table, y: ArrayLike, name: str, values: NDArray[Any], column: Column
) -> _Victims:
    codes = reader.codes(y)
    if len(codes) != table.n_records or table.n_records < _FEWEST_RECORDS:
        raise InputError(
            f"{len(codes)} labels for {table.n_records} records: expected one per record, and at least "
            f"{_FEWEST_RECORDS} records. Pass the labels of the same rows."
        )
    truth = np.searchsorted(values, column.values)
    others = [_as_numbers(table.column(other)) for other in table.names if other != name]
    label = codes if reader.classes is None else np.eye(len(reader.classes))[codes]
    first = np.zeros(table.n_records, np.intp)
    candidates = [
        reader.outputs(model, table.replaced({name: GroupedValues(values[[place]], None, first, column.categories)}))
        for place in range(len(values))
    ]
    own = np.stack(candidates)[truth, np.arange(table.n_records)]
    return _Victims(truth, np.column_stack([*others, label]), codes, own, np.stack(candidates))


def _guesses(
    attack: str, reader: Reader, victims: _Victims, prior: Floats, fold: NDArray[Any], forest: _Forest
) -> NDArray[np.intp]:
    if attack == "learned":
        asked = [victims.known, victims.outputs, *victims.candidates]
        return forest.guesses(np.column_stack(asked), victims.truth, fold)
    if attack == "confusion":
        fit = _share_of_label(victims.candidates.argmax(axis=2), victims.codes, victims.outputs.argmax(axis=1))
    else:
        scale = float(((victims.outputs[:, 0] - victims.codes) ** 2).mean()) if reader.classes is None else 1.0
        fit = reader.likelihood(victims.candidates, victims.codes, max(scale, 1e-300))
    return np.asarray((prior[:, None] * fit).argmax(axis=0))


def _share_of_label(answers: NDArray[Any], codes: NDArray[Any], true_answers: NDArray[Any]) -> Floats:
    """Return the share of records with the true label among those with the same answer of the model."""
    n_classes = int(max(answers.max(), codes.max())) + 1
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (true_answers, codes), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(shares[answers, codes])


class _Forest:
    """An attacker that learns the attribute from records known in full."""

    def __init__(self, seed: int, n_jobs: int | None) -> None:
        self._seed = seed
        self._n_jobs = n_jobs

    def guesses(self, known: Floats, truth: NDArray[np.intp], fold: NDArray[Any]) -> NDArray[np.intp]:
        """Return guesses for all records, each from a forest that was fitted on the other half."""
        guessed = np.empty(len(truth), np.intp)
        for held_out in (0, 1):
            is_known = fold != held_out
            forest = RandomForestClassifier(
                n_estimators=_N_TREES, min_samples_leaf=2, random_state=self._seed, n_jobs=self._n_jobs
            )
            forest.fit(known[is_known], truth[is_known])
            guessed[~is_known] = forest.predict(known[~is_known])
        return guessed


def _details(
    guesses: NDArray[Any],
    baseline: NDArray[Any],
    truth: NDArray[Any],
    wanted: int | None,
    confidence: float,
    seed: int,
) -> dict[str, Any]:
    advantage = (guesses == truth).astype(np.float64) - (baseline == truth)
    details: dict[str, Any] = {
        "advantage": float(advantage.mean()),
        "advantage_interval": bootstrap_interval(advantage, confidence=confidence, random_state=seed),
    }
    if wanted is None:
        return details
    for who, said in (("", guesses), ("baseline_", baseline)):
        n_said, n_true = int((said == wanted).sum()), int((truth == wanted).sum())
        n_hit = int(((said == wanted) & (truth == wanted)).sum())
        details[f"{who}precision"] = n_hit / n_said if n_said else None
        details[f"{who}precision_interval"] = wilson_interval(n_hit, n_said, confidence)
        details[f"{who}recall"] = n_hit / n_true if n_true else None
        details[f"{who}recall_interval"] = wilson_interval(n_hit, n_true, confidence)
    return details


def _checked_attacks(attacks: Sequence[str]) -> list[str]:
    if isinstance(attacks, str) or not attacks or any(name not in ATTACKS for name in attacks):
        raise ParameterError(
            f"{named('attacks', attacks)}: expected a list of some of {', '.join(ATTACKS)}. Correct the names."
        )
    return list(attacks)


def _values_of(column: Column) -> NDArray[Any]:
    if column.missing is not None and column.missing.any():
        raise InputError(
            f"column {column.name!r} has {int(column.missing.sum())} missing values: expected the truth for every "
            "attacked record. Leave those records out."
        )
    values = np.unique(column.values)
    if not 2 <= len(values) <= _MOST_VALUES:
        raise InputError(
            f"column {column.name!r} has {len(values)} distinct values: expected 2 to {_MOST_VALUES} to choose from. "
            "Group the values of a number before the attack."
        )
    return values


def _position_of(positive: Any, column: Column, values: NDArray[Any]) -> int:
    known = values.tolist() if column.categories is None else [column.categories[value] for value in values]
    if positive not in known:
        raise ParameterError(
            f"positive= is not a value of the column {column.name!r}: expected one of its {len(known)} values."
        )
    return known.index(positive)


def _recoded(column: Column, like: Column) -> Column:
    """Return a column with the codes of another one."""
    if like.categories is None:
        return column
    assert column.categories is not None
    place = {value: position for position, value in enumerate(like.categories.tolist())}
    if any(value not in place for value in column.categories.tolist()) or column.missing is not None:
        raise InputError(
            f"column {column.name!r} of the control has values that no attacked record has, or missing ones: expected "
            "the same values. Leave those records out."
        )
    codes = np.array([place[value] for value in column.categories.tolist()], column.values.dtype)
    return replace(column, values=codes[column.values], categories=like.categories)


def _as_numbers(column: Column) -> Floats:
    numbers = column.values.astype(np.float64)
    if column.missing is not None:
        numbers[column.missing] = np.nan
    return numbers


ATTRIBUTE = NamedAttack(
    AttackFacts(
        "attribute",
        "a column, from the model",
        "guesses a column of a person by asking the model with every value of it",
        "attribute",
        "inference",
    )
)
