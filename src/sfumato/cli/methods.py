# SPDX-License-Identifier: Apache-2.0
"""The anonymizers that a policy can name, made from its settings, and the document of a fitted one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.cli.csv_writing import CsvStyle
    from sfumato.policy import Policy


def make_anonymizer(policy: Policy, quasi_identifiers: list[str], dropped: list[str], n_jobs: int | None = None) -> Any:
    """Make the unfitted anonymizer that a policy asks for.

    Parameters
    ----------
    policy : Policy
    quasi_identifiers : list of str
        The columns to rewrite.
    dropped : list of str
        The columns that do not leave.
    n_jobs : int, optional
    """
    from sfumato import anonymize

    columns, method = policy.values["columns"], policy.values["method"]
    kept = dict.fromkeys([*columns["keep"], *([columns["target"]] if columns["target"] else [])])
    shared: dict[str, Any] = {
        "k": method["k"],
        "quasi_identifiers": quasi_identifiers,
        "identifiers": dropped or None,
        "keep": list(kept) or None,
        "criteria": make_criteria(policy) or None,
        "categorical_features": list(columns["categorical"]) or None,
        "limits": columns["limits"] or None,
        "representative": method["representative"],
        "suppression_limit": method["suppression_limit"],
        "random_state": method["seed"],
        "n_jobs": n_jobs,
    }
    if method["name"] == "model-guided":
        return anonymize.ModelGuidedAnonymizer(**shared)
    if method["name"] == "mondrian":
        return anonymize.MondrianAnonymizer(**shared)
    if method["name"] == "information-loss":
        return anonymize.MondrianAnonymizer(rule="information_loss", **shared)
    if method["name"] == "workload-aware":
        return anonymize.WorkloadAwareAnonymizer(**shared)
    if method["name"] == "hilbert":
        return anonymize.HilbertAnonymizer(**shared)
    assert method["name"] == "r-plus-tree"
    return anonymize.RPlusTreeAnonymizer(**shared)


def make_criteria(policy: Policy) -> list[Any]:
    """Make what groups must meet beside k."""
    from sfumato.criteria import KAnonymity, LDiversity, TCloseness

    columns, method = policy.values["columns"], policy.values["method"]
    criteria: list[Any] = []
    if columns["unit"] is not None:
        criteria.append(KAnonymity(method["k"], unit=columns["unit"]))
    for name in columns["sensitive"]:
        if method["l"] is not None:
            criteria.append(LDiversity(method["l"], name))
        if method["t"] is not None:
            criteria.append(TCloseness(method["t"], name))
    return criteria


def partition_document(
    anonymizer: Any, *, k: int, unit: str | None, keep: list[str], style: CsvStyle | None
) -> dict[str, Any]:
    """Return the partition with what 'sfumato apply' needs to read a later file the same way."""
    types = {}
    if style is not None:
        for name, column in style.columns.items():
            types[name] = column.type + (f":{column.format}" if column.format else "")
    document: dict[str, Any] = anonymizer.partition_.to_dict()
    return document | {"file": {"k": k, "unit": unit, "keep": keep, "types": types}}
