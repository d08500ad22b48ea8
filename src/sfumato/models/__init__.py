# SPDX-License-Identifier: Apache-2.0
"""The models that policies and commands can train, on tables as they are. Their names import nothing."""

from importlib import import_module
from typing import TYPE_CHECKING

from sfumato.registry import Family

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

_NAMES = ("TableEncoder", "Task", "make_model")

__all__ = ["MODELS", "TableEncoder", "Task", "make_model"]


def __getattr__(name: str) -> object:
    """Load a name when it is first asked for."""
    if name not in _NAMES:
        raise AttributeError(f"module 'sfumato.models' has no attribute {name!r}; see dir(sfumato.models)")
    value: object = getattr(import_module(f"{__name__}.table_models"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return sorted(__all__)
