# SPDX-License-Identifier: Apache-2.0
"""The second paper's network as the classifier: it predicts the class from buckets as an attacker guesses an attribute.

Called by ``generalization_attacks`` for its table 6, and by ``minimizers_figures`` for the fronts that claims hang on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np


def question_about_classes(made: Sequence[Any], samples: Any, y: Any, personal: Sequence[str]) -> Any:
    """Return the question which class a record has, asked of the same cells as one about a personal attribute.

    Parameters
    ----------
    made : sequence of Generalization
        What is seen of each record.
    samples : Samples
    y : ndarray
        Classes of the records of all three parts.
    personal : sequence of str
    """
    from sfumato.attack.reconstruction_clues import ask

    about_cells = ask(tuple(made), samples, {personal[0]: ()})[0]
    classes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    n_classes = int(classes.max()) + 1
    return replace(
        about_cells,
        attribute="class",
        n_values=n_classes,
        values=classes,
        mask_of_cell=np.zeros(about_cells.cells.n_cells, np.int64),
        possible=np.ones((1, n_classes), bool),
    )


def errors_of_network(
    generalization: Any, samples: Any, y: Any, personal: Sequence[str], settings: Any, seed: int
) -> tuple[float, float]:
    """Return the shares of validation and of test records that the network classifies wrongly."""
    from sfumato.attack.reconstruction_learners import network_answers
    from sfumato.attack.reconstruction_questions import guess, rate_of
    from sfumato.generalization import Generalization

    # What is not collected tells nothing, and takes time.
    seen = (own for own in generalization.attributes if own.is_collected or own.name == personal[0])
    question = question_about_classes([Generalization(tuple(seen))], samples, y, personal)
    [[(_, scores)]] = network_answers([question], settings, seed=seed)
    guesses = guess(question, scores)
    validation, test = (1 - rate_of(question, guesses, part, 1.0) for part in (question.validation, question.test))
    return validation, test
