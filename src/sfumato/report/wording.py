# SPDX-License-Identifier: Apache-2.0
"""The sentences of a report, made from an audit's numbers. The page and the Markdown say the same words.

Nothing here judges data to be anonymous: a report shows evidence, and people decide.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from sfumato.report.data import Audit, GroupSizes, Risk, Subgroup, Uniqueness, UtilityResult
from sfumato.representatives import REPRESENTATIVES


def title(audit: Audit) -> str:
    """Name the report."""
    return f"Privacy audit of {audit.name}"


def titled(audit: Audit, column: str) -> str:
    """Return a column's title for readers, or its name if it has none."""
    return audit.titles.get(column, column)


def subgroup(audit: Audit, group: Subgroup) -> str:
    """Name a subgroup: the column that forms it, then its own name."""
    return f"{titled(audit, group.column)}: {group.group}"


def lead(audit: Audit) -> str:
    """Say in one sentence what the page is."""
    n_attacks = len(audit.risks)
    attacked = f"{n_attacks} attacks were run against it" if n_attacks else "it was not attacked"
    released = "the release" if audit.n_released is None else f"a release of {audit.n_released:,} records"
    return f"{audit.n_records:,} records became {released}, and {attacked}. What follows is what was measured."


def verdict(audit: Audit) -> str:
    """Say what the gate decided."""
    if audit.passed is None:
        return "No gate was set: nothing was required, so nothing passed or failed"
    n_failed = sum(not check.passed for check in audit.gate)
    if audit.passed:
        if len(audit.gate) == 1:
            return "The gate is passed: its one condition is met"
        return f"The gate is passed: all {len(audit.gate)} conditions are met"
    return (
        f"The gate is not passed: {n_failed} of {len(audit.gate)} conditions {'is' if n_failed == 1 else 'are'} not met"
    )


_ATTACK_VERDICTS = {
    "stronger than baseline": "above reference rate",
    "not shown": "no significant gain",
    "failed attack": "below baseline (attack invalid)",
}

BELOW_BASELINE = (
    "Below baseline: the attack did worse than guessing without the release. It was a poor attack: it does not show "
    "that the release is safe, and counts as no advantage."
)
FOUND_BY_UNCHANGED = (
    "Anyone who knows these values can find the record. Make the columns quasi-identifiers, or drop them."
)


def attack_verdict(risk: Risk) -> str:
    """Return what an attack has shown, in words for readers."""
    return _ATTACK_VERDICTS[str(risk.result["verdict"])]


def unique_records(uniqueness: Uniqueness, titles: Mapping[str, str]) -> str:
    """Say how many records are unique by the columns released unchanged, and by all released columns."""
    names = _listed([titles.get(name, name) for name in uniqueness.columns]) if uniqueness.columns else ""
    if not names:
        return "No column is released unchanged."
    if uniqueness.share is None:
        share = "Some records, too few to be counted here, are"
    else:
        share = f"{uniqueness.share:.1%} of the records are" if uniqueness.share else "No record is"
    return f"{share} unique by the columns released unchanged: {names}."


def uniqueness(audit: Audit) -> list[str]:
    """Say in the first box how many records are unique."""
    found = audit.uniqueness
    if found is None:
        return []
    sentences = [unique_records(found, audit.titles)]
    if found.share is None or found.share > 0:
        sentences.append(FOUND_BY_UNCHANGED)
    if found.share_by_all:
        sentences.append(f"Together with the groups, {found.share_by_all:.1%} are unique by all released columns.")
    return sentences


def verdict_kind(audit: Audit) -> str:
    """Return the style of the verdict."""
    return "open" if audit.passed is None else "passed" if audit.passed else "failed"


def what_was_done(audit: Audit) -> list[str]:
    """Tell in plain words what was done to the table."""
    roles: dict[str, list[str]] = {}
    for column in audit.columns:
        roles.setdefault(column.role, []).append(titled(audit, column.name))
    sentences = []
    # Without a number of values, a column that was rewritten left as two, the ends of ranges.
    if dropped := [titled(audit, c.name) for c in audit.columns if c.n_values_after is None and c.loss is None]:
        sentences.append(f"{_listed(dropped)} {'was' if len(dropped) == 1 else 'were'} dropped.")
    if rewritten := roles.get("quasi-identifier"):
        sentences.append(
            f"Records were put into {audit.sizes.n_groups:,} groups, and all records of a group got the same values in "
            f"{_listed(rewritten)}. The smallest group has {audit.sizes.smallest:,} records, a typical one "
            f"{audit.sizes.median:,.0f}."
        )
    sentences += [f"Counted again on the finished table: {guarantee}." for guarantee in audit.guarantees]
    if audit.n_suppressed is None:
        sentences.append(f"Fewer than {audit.smallest_shown} records were left out.")
    elif audit.n_suppressed:
        sentences.append(f"{audit.n_suppressed:,} records were left out.")
    else:
        sentences.append("No record was left out.")
    return sentences


def utility_sentence(utility: UtilityResult) -> str:
    """Say what protection cost the model."""
    change = utility.judged - utility.raw
    unit = "points of accuracy" if utility.metric == "accuracy" else "of R2"
    amount = f"{abs(100 * change):.2f} {unit}" if utility.metric == "accuracy" else f"{abs(change):.4f} {unit}"
    low, high = utility.interval
    if low <= 0 <= high:
        cost = f"The difference of {amount} is within what chance explains on {utility.n_test:,} test records."
    else:
        cost = f"The model {'loses' if change < 0 else 'gains'} {amount}; it keeps {utility.kept:.1%} of its score."
    if utility.same_answer is not None and utility.raw > utility.same_answer:
        cost += f" Of what it learned beyond the majority-class baseline, {utility.gain_kept:.1%} is kept."
    return cost if utility.has_learned else f"{cost} {no_better(utility)}"


def no_better(utility: UtilityResult) -> str:
    """Say that a model has learned nothing from the release, however high its score is."""
    answer = "the mean" if utility.same_answer is None else "the most frequent class"
    return f"Trained on the release it does no better than giving everybody the same answer, {answer}."


def limits(audit: Audit) -> list[str]:
    """Say what the protection does not do."""
    named = [
        titled(audit, c.name) for c in audit.columns if c.role in ("target", "sensitive", "other") and c.n_values_after
    ]
    sentences = [
        "Groups of k records hide which record is whose, among k. They do not hide what all k have in common: if every "
        "record of a group has the same diagnosis, it is known of each of them.",
    ]
    if named:
        sentences.append(
            f"{_listed(named)} {'leaves' if len(named) == 1 else 'leave'} exact. Whoever knows a person's value there "
            "can look for it in the release."
        )
    representative = str(audit.method.get("representative"))
    if representative in REPRESENTATIVES and REPRESENTATIVES[representative].facts.is_real_person:
        sentences.append(
            "The values of a group are those of one real record of it. They reveal that such a person exists, not who."
        )
    sentences.append(
        "Attacks that fail here may succeed with other knowledge or later methods. A rate with its interval is "
        "evidence about the attacks that were run, nothing more."
    )
    sentences.append(
        "The release was looked at alone. Another release of the same people can be laid beside it: compare the two "
        "with 'sfumato compare' before the second one leaves."
    )
    return sentences


@cache
def terms() -> dict[str, Any]:
    """Return the versioned table of what our words correspond to elsewhere."""
    return tomllib.loads(files("sfumato.report").joinpath("terms.toml").read_text(encoding="utf-8"))


def parameters(audit: Audit) -> list[tuple[str, str]]:
    """List what one needs to do it again."""
    rows = [(str(name), shown(value)) for name, value in audit.method.items() if value not in (None, (), [], {})]
    rows += [(f"version of {name}", value) for name, value in audit.versions.items()]
    if audit.fingerprint:
        rows.append(("SHA-256 of the data", audit.fingerprint))
    rows.append(("time taken", f"{audit.seconds:.0f} s"))
    return rows


def shown(value: Any) -> str:
    """Show a parameter as text."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} = {part}" for name, part in value.items())
    return str(value)


def sizes_sentence(sizes: GroupSizes) -> str:
    """Say how large the groups are."""
    return (
        f"{sizes.n_groups:,} groups; the smallest has {sizes.smallest:,} records, the largest {sizes.largest:,}, "
        f"half of them at most {sizes.median:,.0f}."
    )


def size_labels(edges: tuple[int, ...]) -> list[str]:
    """Name classes of group sizes, the last one open."""
    names = [f"{a:,}" if b == a + 1 else f"{a:,}-{b - 1:,}" for a, b in pairwise(edges)]
    return [*names, f"{edges[-1]:,}+"]


def _listed(names: list[str], most: int = 14) -> str:
    quoted = [f"“{name}”" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(quoted)} and {len(names) - most} more columns"
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
