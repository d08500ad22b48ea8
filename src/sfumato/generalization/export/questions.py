# SPDX-License-Identifier: Apache-2.0
"""A questionnaire as JavaScript: which question comes next, worked out where the person is.

Of a tree, the boxes of its leaves and their classes travel, and the shares of buckets, as in the document; of a linear
model its weights. Shares of classes in the leaves do not.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sfumato.errors import ParameterError, named
from sfumato.generalization.export.javascript import literal, template
from sfumato.generalization.questions.decisions import LinearDecision, TreeDecision
from sfumato.generalization.questions.questionnaire import Questionnaire

MOST_LEAVES = 1_000
"""Of a tree that a page takes along: pairs of leaves are compared when it opens."""


def questions_source(questionnaire: Questionnaire) -> str:
    """Return a script that defines ``questions.next(answers)``; ``generalization`` must be defined before it."""
    if questionnaire.probability < 1:
        raise ParameterError(
            f"{named('probability', questionnaire.probability)} in a page: expected 1, since a page holds no "
            "records of other people. Leave it out."
        )
    decision = questionnaire.decision
    if isinstance(decision, TreeDecision) and len(decision.classes) <= MOST_LEAVES:
        document = _tree(decision)
    elif isinstance(decision, LinearDecision):
        document = _linear(decision)
    else:
        raise ParameterError(
            f"{named('model')} is neither linear nor a decision tree of at most {MOST_LEAVES:,} leaves: expected one "
            "of these, since a page takes it along. Ask with Python instead, or train such a model."
        )
    document["classes"] = [_class_name(value) for value in questionnaire.classes.tolist()]
    return (
        "\nconst questions = (() => {\n"
        '  "use strict";\n'
        f"  const decision = {literal(document)};\n\n"
        f"{template('questions.js')}"
    )


def _class_name(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else str(value)


def _tree(decision: TreeDecision) -> dict[str, Any]:
    starts = decision.leaves.starts
    leaves = []
    for row, tested, own in zip(decision.leaves.inside, decision.leaves.is_tested, decision.classes, strict=True):
        inside = {
            place: np.flatnonzero(row[starts[place] : starts[place + 1]]).tolist() for place in np.flatnonzero(tested)
        }
        leaves.append({"decision": int(own), "inside": {int(place): own for place, own in inside.items()}})
    weights = [decision.weights[start:stop].tolist() for start, stop in itertools.pairwise(starts)]
    return {"kind": "tree", "leaves": leaves, "weights": weights}


def _linear(decision: LinearDecision) -> dict[str, Any]:
    return {
        "kind": "linear",
        "scores": [own.tolist() for own in decision.contributions],
        "intercept": decision.intercept.tolist(),
        "order": decision.order,
        "tolerance": decision.tolerance,
    }
