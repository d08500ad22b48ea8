# SPDX-License-Identifier: Apache-2.0
"""Advice after a failed gate: the column, k or representative to change, with the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.attack import ATTACKS
from sfumato.auditing.reidentification import smallest_group_for
from sfumato.errors import Sentence, named
from sfumato.report.data import Audit, ColumnChange, GateCheck, Point, Risk

_REAL_MEMBERS = ("model", "member", "sample")
_WIDE = ("range", "bounds", "tight-range", "tight-bounds", "midrange")
_TIGHT = {"tight-range": "range", "tight-bounds": "bounds"}  # and what covers all values instead
_MOST_NAMED = 3  # columns
_ENOUGH = 0.05  # of the records; a rounded target below this is worth naming


def what_to_try(audit: Audit, *, smallest_without: Callable[[], Mapping[str, int]] | None = None) -> tuple[str, ...]:
    """Return one sentence of advice per failed condition.

    Parameters
    ----------
    audit : Audit
        Its `method` names the settings of a policy, if one made the release.
    smallest_without : callable, optional
        Returns the size of the smallest group without each quasi-identifier; called only if groups are too small.
    """
    advice: list[str] = []
    for check in audit.gate:
        if not check.passed and (sentence := _ADVICE[check.name](audit, check, smallest_without)):
            advice.append(sentence)
    return tuple(dict.fromkeys(advice))


def _k(audit: Audit) -> int | None:
    return audit.method.get("k")


def _groups(audit: Audit, check: GateCheck, smallest_without: Callable[[], Mapping[str, int]] | None) -> str:
    if _k(audit) is not None and _k(audit) < check.required:  # type: ignore[operator]
        return f"min_k: set k = {check.required:.0f} under [method]; groups are formed with k = {_k(audit)}."
    found = {} if smallest_without is None else smallest_without()
    if found:
        name = max(found, key=lambda column: found[column])
        if found[name] > audit.sizes.smallest:
            return Sentence(
                f"min_k: without {_named(audit, name)} the smallest group would have {found[name]:,} records (now "
                f"{audit.sizes.smallest:,}). Make that column coarser or drop it; if it is what a model predicts or is "
                f"sensitive, say so with {named('target')} or {named('sensitive')}."
            )
    return "min_k: raise k where the release is made, or make columns with many values coarser."


def _diversity(audit: Audit, check: GateCheck, _: Any) -> str:
    if "k" in audit.method:
        return f"min_l: set l = {check.required:.0f} under [method]."
    return "min_l: require l-diversity where the release is made, or drop the sensitive column."


def _attack(audit: Audit, check: GateCheck, _: Any) -> str:
    if not audit.risks or check.measured is None:
        return ""
    risk = max(audit.risks, key=lambda risk: risk.advantage)
    about = f"max_attack_advantage: {risk.title} gains {risk.advantage:.3f}"
    remedy = _remedy(risk)
    if remedy == "shuffle":
        return f"{about}: shuffle the rows of the release; remove keep_order."
    if remedy == "protect columns":
        return _singling_out(audit, about, risk)
    if remedy == "representative":
        return _representative(audit, about)
    if remedy == "diversity" and "k" in audit.method:
        said = "raise l" if audit.method.get("l") else "set l = 2 or more under [method]"
        return f"{about}: {said}, or drop the column that is inferred."
    return f"{about}: {_larger_k(audit, check.required)}"


def _remedy(risk: Risk) -> str:
    """Return what lowers the advantage of an attack, as its facts say."""
    known = {attack.facts.result: attack.facts.remedy for attack in ATTACKS.values()}
    return str(known.get(risk.result["attack"], "larger k"))


def _singling_out(audit: Audit, about: str, risk: Risk) -> str:
    kind = str(risk.result.get("details", {}).get("predicates_from", ""))
    if kind in ("unchanged columns", "all released columns"):
        if audit.uniqueness is None or not audit.uniqueness.columns:
            return f"{about}: make more columns quasi-identifiers."
        return f"{about} by columns released unchanged: {_protect(audit)}"
    return _representative(audit, about, instead='"phantom", "mean" or "range"')


def _representative(audit: Audit, about: str, instead: str = '"phantom" or "mean"') -> str:
    """Return advice on what stands for a group; a larger k where that is neither a member nor a range."""
    shown = audit.method.get("representative")
    if shown in _REAL_MEMBERS:
        return (
            f'{about}: representative = "{shown}" releases the values of a real member. Set representative = {instead} '
            "under [method]."
        )
    if shown in _TIGHT:
        return (
            f'{about}: representative = "{shown}" releases ranges that end at values of members. Set representative = '
            f'"{_TIGHT[shown]}" under [method].'
        )
    return f"{about}: {_larger_k(audit, 0.0)}"


def _protect(audit: Audit) -> str:
    """Return advice about the unchanged column that makes most records unique."""
    assert audit.uniqueness is not None
    found, now = audit.uniqueness.without, audit.uniqueness.share or 0.0
    name = min(found, key=lambda column: found[column] or 0.0, default=None)
    if name is not None and (found[name] or 0.0) <= now / 2:
        share = found[name]
        left = (
            f"fewer than {audit.smallest_shown} records" if share is None else f"{share:.1%}" if share else "no record"
        )
        return (
            f"without {_named(audit, name)} {left} would be unique (now {now:.1%}). Make that column a "
            "quasi-identifier, round it, or drop it."
        )
    alone = sorted(audit.uniqueness.alone.items(), key=lambda part: -part[1])[:_MOST_NAMED]
    most = ", ".join(f"{_named(audit, column)} ({share:.1%})" for column, share in alone)
    first = f" Begin with those that make most records unique by themselves: {most}." if most else ""
    return (
        f"{now:.1%} are unique by several columns together. Make more columns quasi-identifiers, or drop some.{first}"
    )


def _unique(audit: Audit, check: GateCheck, _: Any) -> str:
    return "" if audit.uniqueness is None else f"max_unique: {_protect(audit)}"


def _target(audit: Audit, check: GateCheck, _: Any) -> str:
    rounded = {} if audit.uniqueness is None else audit.uniqueness.rounded_target
    so_many = ""
    for digits, share in rounded.items():
        if share <= _ENOUGH:
            so_many = f"to {digits} significant digit{'s' if digits != '1' else ''}, which leaves {share:.1%} unique, "
            break
    return (
        f"max_unique_target: round the target {so_many}or release the mean of each group (target_values under "
        "[method]); max_unique_target = 1 under [gate] releases it unchanged."
    )


def _score(audit: Audit, check: GateCheck, _: Any) -> str:
    utility = audit.utility
    if utility is None:
        return ""
    if check.name == "min_gain_kept" and not utility.has_gain:
        return (
            "min_gain_kept: the model gains nothing over the baseline on raw records either, so no k keeps a gain. Set "
            "another name under [model], add columns that tell the target, or leave out the condition."
        )
    kept = {
        point.at: utility.share_kept(point.score, of_gain=check.name == "min_gain_kept") for point in _others(audit)
    }
    if enough := [at for at, share in kept.items() if share >= check.required]:
        k = max(enough)
        return f"{check.name}: set k = {k:.0f} under [method], which keeps {kept[k]:.1%} (k = {_k(audit)} keeps less)."
    parts = []
    k_now = _k(audit)
    if k_now is not None and k_now > 2:
        some = ",".join(str(k) for k in sorted({max(2, k_now // 2), max(2, k_now // 4)}))
        parts.append(f"lower k ({k_now} now); 'sfumato sweep policy.toml --k {some}' measures it")
    lost = [column for column in audit.columns if column.loss is not None]
    if lost:
        parts.append(_most_lost(audit, max(lost, key=lambda column: column.loss or 0.0)))
    if audit.method.get("representative") in _WIDE:
        parts.append('set representative = "mean", which costs a model less than ranges')
    return f"{check.name}: {'; '.join(parts)}." if parts else ""


def _most_lost(audit: Audit, column: ColumnChange) -> str:
    lost = f"{column.loss or 0:.0%} of its detail is lost"
    return f"drop {_named(audit, column.name)} if the model can do without it ({lost})"


def _suppressed(audit: Audit, check: GateCheck, _: Any) -> str:
    return f"max_suppressed: set suppression_limit = {check.required:g} under [method]."


def _larger_k(audit: Audit, required: float) -> str:
    enough = [p for p in _others(audit) if p.attack is not None and p.attack - (p.baseline or 0.0) <= required]
    k = _k(audit)
    larger = [point for point in enough if k is not None and point.at > k]
    if larger:
        point = min(larger, key=lambda point: point.at)
        return f"set k = {point.at:.0f} under [method], where the loss-threshold attack succeeds in {point.attack:.3f}."
    if k is None:
        return "raise k where the release is made."
    return f"raise k ({k} now), for example to {5 * k}; 'sfumato sweep policy.toml --k {2 * k},{5 * k}' measures it."


def _others(audit: Audit) -> list[Point]:
    """Return the points of the curve for other k."""
    return [point for point in audit.curve if point.by == "k" and point.at != _k(audit) and point.at > 1]


def _named(audit: Audit, name: str) -> str:
    return f"“{audit.titles.get(name, name)}”"


def _risk(audit: Audit, check: GateCheck, _: Any) -> str:
    known = audit.reidentification
    if check.name == "max_population_unique":
        return f"{check.name}: nobody is alone in groups of at least 2; raise k where the release is made."
    limit = known.threshold if known is not None and check.name == "max_share_at_risk" else check.required
    fraction = None if known is None or check.name in ("max_risk", "max_share_at_risk") else known.sampling_fraction
    needed = smallest_group_for(limit or check.required, fraction)
    how = f"set k = {needed} under [method]" if "k" in audit.method else "raise k where the release is made"
    return f"{check.name}: groups of at least {needed} meet it; {how}."


def _certified(audit: Audit, check: GateCheck, _: Any) -> str:
    if audit.certificate is None:
        return ""
    secrets = audit.certificate["secrets"]
    name = max(secrets, key=lambda own: secrets[own]["advantage"])
    shown = secrets[name]["lower"] - secrets[name]["baseline"]
    about = f"max_certified_advantage: {_named(audit, name)} may be guessed with an advantage of {check.measured:.3f}"
    if shown <= check.required:
        return f"{about}, and {max(shown, 0):.3f} is shown: more holdout records narrow the bound; or raise k."
    return f"{about}, and {shown:.3f} is shown: raise k, or require l or t for that column."


_ADVICE: dict[str, Callable[[Audit, GateCheck, Any], str]] = {
    "min_k": _groups,
    "min_l": _diversity,
    "max_risk": _risk,
    "max_journalist_risk": _risk,
    "max_marketer_risk": _risk,
    "max_share_at_risk": _risk,
    "max_population_unique": _risk,
    "max_attack_advantage": _attack,
    "max_certified_advantage": _certified,
    "max_unique": _unique,
    "max_unique_target": _target,
    "min_accuracy_kept": _score,
    "min_gain_kept": _score,
    "max_suppressed": _suppressed,
}
