# SPDX-License-Identifier: Apache-2.0
"""The gate: conditions that a release must meet, each judged by what was measured on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sfumato.errors import ParameterError
from sfumato.report.data import GateCheck, Risk, UtilityResult

NOTHING_COUNTED: Mapping[str, float] = MappingProxyType({})


def judge_gate(
    required: Mapping[str, Any],
    *,
    smallest_group: int,
    least_values: int | None,
    utility: UtilityResult | None,
    risks: tuple[Risk, ...],
    certified: float | None = None,
    reidentified: Mapping[str, float] = NOTHING_COUNTED,
    unique: Mapping[str, float] = NOTHING_COUNTED,
    n_suppressed: int = 0,
    n_records: int = 1,
    smallest_shown: int = 1,
    counted: str = "records",
    not_run: Collection[str] = (),
    to_run_them: str = "",
) -> tuple[GateCheck, ...]:
    """Judge every required condition.

    A condition on something that was not measured fails.

    Parameters
    ----------
    required : mapping
        ``min_k``, ``min_l``, ``max_risk``, ``max_journalist_risk``, ``max_marketer_risk``, ``max_share_at_risk``,
        ``max_population_unique``, ``max_attack_advantage``, ``max_certified_advantage``, ``max_unique``,
        ``max_unique_target``, ``min_accuracy_kept``, ``min_gain_kept``, ``max_suppressed``; None or absent: not
        required.
    smallest_group : int
        Records of the smallest group, as counted on the release, or persons where they were counted.
    least_values : int or None
        Fewest distinct values of a sensitive column in a group; None where there is none.
    utility : UtilityResult or None
    risks : tuple of Risk
    certified : float or None
        The certified advantage of any attacker; None where nothing was certified.
    reidentified : mapping
        Risks of re-identification as `measure_reidentification` gives them, by the name of the condition.
    unique : mapping
        Shares of unique records as `measure_uniqueness` gives them, by the name of the condition.
    n_suppressed, n_records : int
        Suppressed records, and all records.
    smallest_shown : int
        A smaller number of suppressed or unique records is judged, but masked.
    counted : {"records", "persons"}
        What `smallest_group` counts.
    not_run : collection of str
        Attacks that were wanted and could not be run. A bound on attacks fails then: the strongest may be among them.
    to_run_them : str
        How to make them run, in a few words.
    """
    unknown = set(required) - set(_JUDGES)
    if unknown:
        raise ParameterError(
            f"the gate has {', '.join(sorted(unknown))}: expected {', '.join(_JUDGES)}. Correct the name."
        )
    measured = {
        "min_k": smallest_group,
        "min_l": least_values,
        **{name: reidentified.get(name) for name in _OF_RISK},
        "max_attack_advantage": max((risk.advantage for risk in risks), default=None),
        "max_certified_advantage": certified,
        "max_unique": unique.get("max_unique"),
        "max_unique_target": unique.get("max_unique_target"),
        "min_accuracy_kept": None if utility is None else utility.kept,
        "min_gain_kept": None if utility is None else utility.gain_kept,
        "max_suppressed": n_suppressed / n_records,
    }
    checks = [
        _check(name, float(required[name]), measured[name], counted)
        for name in _JUDGES
        if required.get(name) is not None
    ]
    if utility is not None and not utility.has_gain:
        checks = [_of_no_gain(check) if check.name == "min_gain_kept" else check for check in checks]
    if not_run:
        checks = [
            _unjudged(check, not_run, to_run_them) if _hangs_on_attacks_not_run(check) else check for check in checks
        ]
    if 0 < n_suppressed < smallest_shown:
        checks = [_blurred(check, smallest_shown) if check.name == "max_suppressed" else check for check in checks]
    fewest = smallest_shown / n_records
    checks = [_of_few(check, smallest_shown) if _is_of_few(check, fewest) else check for check in checks]
    return tuple(checks)


# Sentences: the first of a pair is for a measured number, the second for none.
_JUDGES: dict[str, tuple[str, str]] = {
    "min_k": ("the smallest group has {measured:.0f} {counted}, {required:.0f} are required", "no group was counted"),
    "min_l": (
        "the least diverse group has {measured:.0f} values of a sensitive column, {required:.0f} are required",
        "no sensitive column was counted",
    ),
    "max_risk": (
        "the chance to re-identify a record is at most {measured:.3f}, limit {required:.3f}",
        "no risk was measured",
    ),
    "max_journalist_risk": (
        "for an attacker who does not know who is in the table, the chance to re-identify a record is at most "
        "{measured:.3f}, limit {required:.3f}",
        "no risk was measured",
    ),
    "max_marketer_risk": (
        "an attacker who matches all {counted} re-identifies {measured:.1%} of them on average, limit {required:.1%}",
        "no risk was measured",
    ),
    "max_share_at_risk": (
        "{measured:.1%} of the {counted} can be re-identified with a chance above the threshold of the context, limit "
        "{required:.1%}",
        "there is no threshold under [context]",
    ),
    "max_population_unique": (
        "an estimated {measured:.1%} of the {counted} are alone in the population, limit {required:.1%}",
        "there is no sampling_fraction under [context]",
    ),
    "max_attack_advantage": (
        "the strongest attack has an advantage of {measured:.3f}, limit {required:.3f}",
        "nothing was attacked",
    ),
    "max_certified_advantage": (
        "any attacker has an advantage of at most {measured:.3f}, limit {required:.3f}",
        "nothing was certified",
    ),
    "max_unique": (
        "{measured:.1%} of the records are unique by the columns released unchanged, limit {required:.1%}",
        "unique records were not counted",
    ),
    "max_unique_target": (
        "{measured:.1%} of the records have a unique target, limit {required:.1%}",
        "there is no target",
    ),
    "min_accuracy_kept": (
        "{measured:.1%} of the model's score is kept, {required:.1%} is required",
        "no model was measured",
    ),
    "min_gain_kept": (
        "{measured:.1%} of the model's gain over the baseline is kept, {required:.1%} is required",
        "no model was measured",
    ),
    "max_suppressed": ("{measured:.2%} of the records were suppressed, limit {required:.2%}", ""),
}


_OF_RISK = ("max_risk", "max_journalist_risk", "max_marketer_risk", "max_share_at_risk", "max_population_unique")


def _hangs_on_attacks_not_run(check: GateCheck) -> bool:
    """Return True if a condition depends on attacks and those that were run do not fail it already."""
    return check.name == "max_attack_advantage" and (check.passed or check.measured is None)


def _unjudged(check: GateCheck, not_run: Collection[str], to_run_them: str) -> GateCheck:
    names = "; ".join(not_run)
    sentence = f"not run, so this cannot pass: {names} ({to_run_them or 'the notes say why'})"
    return replace(check, measured=None, passed=False, sentence=sentence)


def _of_no_gain(check: GateCheck) -> GateCheck:
    """Return the condition on the gain of a model that has none: the release is not to blame."""
    kept = "so none can get lost" if check.passed else "so none of it can be kept"
    return replace(check, sentence=f"the model gains nothing over the baseline on raw records, {kept}")


def _is_of_few(check: GateCheck, fewest: float) -> bool:
    """Return True if a condition was judged by a number of records that must be masked."""
    return check.name in _OF_FEW and check.measured is not None and 0 < check.measured < fewest


def _of_few(check: GateCheck, smallest_shown: int) -> GateCheck:
    sentence = f"fewer than {smallest_shown} records {_OF_FEW[check.name]}, limit {check.required:.1%} of all"
    return replace(check, measured=None, sentence=sentence)


_OF_FEW = {
    "max_share_at_risk": "can be re-identified with a chance above the threshold of the context",
    "max_population_unique": "are alone in the population, as is estimated",
    "max_unique": "are unique by the columns released unchanged",
    "max_unique_target": "have a unique target",
}


def _blurred(check: GateCheck, smallest_shown: int) -> GateCheck:
    sentence = f"fewer than {smallest_shown} records were suppressed, limit {check.required:.2%} of all"
    return replace(check, measured=None, sentence=sentence)


def _check(name: str, required: float, measured: float | None, counted: str) -> GateCheck:
    worded, not_measured = _JUDGES[name]
    if measured is None:
        return GateCheck(name, required, None, False, f"{not_measured}, so this cannot pass")
    passed = measured >= required if name.startswith("min_") else measured <= required
    sentence = worded.format(measured=measured, required=required, counted=counted)
    return GateCheck(name, required, float(measured), passed, sentence)
