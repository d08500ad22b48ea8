# SPDX-License-Identifier: Apache-2.0
"""The section ``[privacy]`` of a policy: check its settings together. They are declared in ``settings``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.policy.policy import Policy

_OF_SAMPLES = ("rate", "k")


def check_privacy(policy: Policy) -> None:
    """Raise ParameterError for settings of a private release that are missing, or that contradict each other."""
    own: dict[str, Any] = policy.values["privacy"]
    if own["mechanism"] is None:
        given = [name for name, value in own.items() if value is not None]
        if given:
            raise ParameterError(
                f'{policy.where("privacy", given[0])} without a mechanism: expected one. Write mechanism = "counts" '
                "under [privacy], or remove the setting."
            )
        return
    _check_needed(policy, own)
    if own["mechanism"] == "counts" and (given := [name for name in _OF_SAMPLES if own[name] is not None]):
        raise ParameterError(
            f"{policy.where('privacy', given[0])} with the mechanism counts, which has none: expected a sample. Remove "
            'it, or write mechanism = "sample".'
        )
    if (own["most_per_person"] is None) != (policy.get("columns", "unit") is None):
        raise ParameterError(
            f"{policy.where('privacy', 'most_per_person')} and unit under [columns]: expected both or neither. The "
            "unit says whose a record is, and most_per_person how many records of a person count."
        )
    budgets = [name for name in ("budget_epsilon", "budget_delta") if own[name] is not None]
    if budgets and (own["ledger"] is None or own["budget_epsilon"] is None):
        raise ParameterError(
            f"{policy.where('privacy', budgets[0])} without {'a ledger' if own['ledger'] is None else 'budget_epsilon'}"
            ": expected the budget of a ledger. Add it under [privacy]."
        )
    for section, name in (("data", "artifact"), ("data", "earlier"), ("data", "publication"), ("columns", "persons")):
        if policy.get(section, name):
            raise ParameterError(
                f"{policy.where(section, name)} with a mechanism, which forms no groups and compares no releases: "
                "expected none. Remove it. A ledger under [privacy] adds releases up."
            )
    conditions = [name for name, value in policy.values["gate"].items() if value is not None]
    if asked := [name for name in conditions if f"gate.{name}" in policy.places.given]:
        raise ParameterError(
            f"{policy.where('gate', asked[0])} with a mechanism, which promises epsilon and not k: expected no gate. "
            "The budget of the ledger is the gate. Remove the section."
        )


def _check_needed(policy: Policy, own: dict[str, Any]) -> None:
    needed = ["epsilon", "partition", *(_OF_SAMPLES if own["mechanism"] == "sample" else ())]
    if policy.get("columns", "target") is not None and own["mechanism"] == "counts":
        needed.append("labels")
    for name in needed:
        if own[name] is None:
            raise ParameterError(
                f"{policy.where('privacy', name)}: not given, and the mechanism {own['mechanism']} needs it. Add it "
                "under [privacy]."
            )
