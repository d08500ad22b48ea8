# SPDX-License-Identifier: Apache-2.0
"""The models that policies and commands can train on raw tables. Listing their names imports nothing."""

from typing import TYPE_CHECKING

from sfumato.registry import Family, lazy_names

if TYPE_CHECKING:
    from sfumato.models.table_models import TableEncoder as TableEncoder
    from sfumato.models.table_models import Task as Task
    from sfumato.models.table_models import make_model as make_model

MODELS = Family(
    "model",
    {
        "gradient-boosting": "sfumato.models.table_models:GRADIENT_BOOSTING",
        "logistic-regression": "sfumato.models.table_models:LOGISTIC_REGRESSION",
        "linear-regression": "sfumato.models.table_models:LINEAR_REGRESSION",
        "random-forest": "sfumato.models.table_models:RANDOM_FOREST",
        "neural-network": "sfumato.models.table_models:NEURAL_NETWORK",
        "decision-tree": "sfumato.models.table_models:DECISION_TREE",
    },
)
"""Every model by the name that policies and commands call it."""

_HOME_OF = dict.fromkeys(("TableEncoder", "Task", "make_model"), "table_models")

__all__ = ["MODELS", *_HOME_OF]

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
