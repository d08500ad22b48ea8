# SPDX-License-Identifier: Apache-2.0
"""The anonymizers that the studies compare, each as it comes, with what it is shown beside the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Method:
    """How an anonymizer is made, and what guides it.

    Attributes
    ----------
    title : str
    make : callable
        From k and the names of the quasi-identifiers to an anonymizer.
    guide : {"probabilities", "predictions", "labels", None}
        Of the model that was trained on raw records, or of the records.
    """

    title: str
    make: Callable[[int, list[str]], Any]
    guide: Literal["probabilities", "predictions", "labels"] | None = None


def _ours(k: int, names: list[str]) -> Any:
    from sfumato import ModelGuidedAnonymizer

    return ModelGuidedAnonymizer(k, quasi_identifiers=names, representative="model", n_jobs=1)


def _paper(k: int, names: list[str]) -> Any:
    from studies.paper_method import PaperAnonymizer

    return PaperAnonymizer(k, names)


def _paper_settings(k: int, names: list[str]) -> Any:
    from sfumato import ModelGuidedAnonymizer

    return ModelGuidedAnonymizer(k, quasi_identifiers=names, representative="member", keep_splitting=False, n_jobs=1)


def _default(k: int, names: list[str]) -> Any:
    from sfumato import ModelGuidedAnonymizer

    return ModelGuidedAnonymizer(k, quasi_identifiers=names, n_jobs=1, random_state=0)


def _median_mondrian(k: int, names: list[str]) -> Any:
    from sfumato import MondrianAnonymizer

    return MondrianAnonymizer(k, quasi_identifiers=names, representative="median", n_jobs=1)


def _information_loss(k: int, names: list[str]) -> Any:
    from sfumato import MondrianAnonymizer

    return MondrianAnonymizer(k, quasi_identifiers=names, rule="information_loss", representative="median", n_jobs=1)


def _workload_aware(k: int, names: list[str]) -> Any:
    """Return the paper's rival: the tree of its own method, on the true labels and by entropy."""
    from studies.paper_method import PaperAnonymizer

    return PaperAnonymizer(k, names, "entropy")


def workload_mondrian(k: int, names: list[str]) -> Any:
    """Return sfumato's own workload-aware anonymizer, for the front page."""
    from sfumato import WorkloadAwareAnonymizer

    return WorkloadAwareAnonymizer(k, quasi_identifiers=names, representative="member", n_jobs=1)


def _hilbert(k: int, names: list[str]) -> Any:
    from sfumato import HilbertAnonymizer

    return HilbertAnonymizer(k, quasi_identifiers=names, representative="median", n_jobs=1)


def _rplus_tree(k: int, names: list[str]) -> Any:
    from sfumato import RPlusTreeAnonymizer

    return RPlusTreeAnonymizer(k, quasi_identifiers=names, representative="median", n_jobs=1)


METHODS = {
    "ours": Method("ours", _ours, "probabilities"),
    "paper": Method("paper's AG", _paper, "predictions"),
    "workload_aware": Method("workload-aware", _workload_aware, "labels"),
    "information_loss": Method("information-loss Mondrian", _information_loss),
    "mondrian": Method("median Mondrian", _median_mondrian),
    "hilbert": Method("Hilbert", _hilbert),
    "rplus_tree": Method("R+-tree", _rplus_tree),
}
#: As it comes: phantoms stand for a group, where `ours` shows a typical member.
DEFAULT = {"default": Method("ours, the default", _default, "probabilities")}
#: Sfumato's engine with the paper's settings, which finds subsets of categories by itself: not Algorithm 1.
PAPER_SETTINGS = {"paper_settings": Method("paper's settings, our engine", _paper_settings, "predictions")}
