# SPDX-License-Identifier: Apache-2.0
"""Choose the settings of a learner by cross-validation inside anatomized tables.

Folds are sets of groups. A model trained on some is judged on the candidates of the others: the share of right
predictions over all candidates of a record, weighed by what all groups show of them. The raw link of records and
sensitive values is never looked at, so that a recipient of the tables chooses as the owner would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from sfumato.anatomize.candidates import Candidates, weigh, weighted_rows
from sfumato.arguments import check_integer
from sfumato.errors import ParameterError, named

_MOST_JUDGED = 16  # candidates of a record that are looked at


@dataclass(frozen=True)
class Choice:
    """The settings that were chosen.

    Attributes
    ----------
    params : dict
    scores : list of (dict, float)
        All settings that were tried, with their expected accuracy on the groups left out.
    """

    params: dict[str, Any]
    scores: list[tuple[dict[str, Any], float]]


def choose_settings(
    learner: Any, candidates: Candidates, y: NDArray[Any], weight: NDArray[np.float64] | None, random: Any
) -> Choice:
    """Try all combinations of `learner.choose`, and return the best one; of equal ones, the first.

    Parameters
    ----------
    learner : estimator
        With ``choose``, ``cv`` and a method ``_learn(candidates, y, weight)`` that leaves ``estimator_`` and
        ``coding_``.
    candidates : Candidates
    y : ndarray
        The class of every identifying row.
    weight : ndarray or None
    random : numpy.random.Generator
    """
    if not isinstance(learner.choose, Mapping) or not learner.choose:
        raise ParameterError(
            f"{named('choose')} is of the type {type(learner.choose).__name__}: expected a dict of settings to lists "
            "of values, such as {'estimator__C': [0.1, 1]}."
        )
    check_integer("cv", learner.cv, 2, hint="5 is common.")
    unknown = [name for name in learner.choose if name not in learner.get_params(deep=True)]
    if unknown:
        raise ParameterError(
            f"{named('choose')} names {unknown[0]!r}: expected parameters of {type(learner).__name__}, or of its "
            "estimator with estimator__ before the name."
        )
    group = candidates.tables[0].group
    fold = random.permutation(int(group.max()) + 1)[group] % learner.cv
    weights = weigh(candidates, "learned")
    rows = weighted_rows(weights, candidates.n_records, _MOST_JUDGED, random)
    of_record = np.ones(len(y)) if weight is None else weight
    scores = []
    for params in ParameterGrid(dict(learner.choose)):
        own = clone(learner).set_params(choose=None, **params)
        right = 0.0
        for number in range(learner.cv):
            train = np.flatnonzero(fold != number)
            own._learn(candidates.some(train), y[train], None if weight is None else weight[train])
            some = fold[rows.records] == number
            coded = candidates.coordinates(own.coding_, rows.records[some], [table[some] for table in rows.rows])
            is_right = own.estimator_.predict(coded) == y[rows.records[some]]
            right += float((rows.weight[some] * of_record[rows.records[some]])[is_right].sum())
        scores.append((params, right / float(of_record.sum())))
    return Choice(max(scores, key=lambda entry: entry[1])[0], scores)
