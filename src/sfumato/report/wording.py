# SPDX-License-Identifier: Apache-2.0
"""Word an audit's numbers for the page and the Markdown alike.

Nothing here calls data anonymous: a report shows evidence, and people decide.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from sfumato.report.data import Audit, GroupSizes, Risk, Subgroup, Uniqueness, UtilityResult
from sfumato.report.risk_data import AttackedSubgroup, Reidentification
from sfumato.representatives import REPRESENTATIVES


def title(audit: Audit) -> str:
    """Return the title of the report."""
    return f"Privacy audit of {audit.name}"


def titled(audit: Audit, column: str) -> str:
    """Return a column's title for readers, or its name if it has none."""
    return audit.titles.get(column, column)


def subgroup(audit: Audit, group: Subgroup) -> str:
    """Return the name of a subgroup: its column, then its own name."""
    return f"{titled(audit, group.column)}: {group.group}"


def lead(audit: Audit) -> str:
    """Return the first sentence of the page."""
    n_attacks = len(audit.risks)
    attacked = f"{n_attacks} attacks were run against it" if n_attacks else "it was not attacked"
    released = "the release" if audit.n_released is None else f"a release of {audit.n_released:,} records"
    return f"{audit.n_records:,} records became {released}, and {attacked}. This page shows what was measured."


def verdict(audit: Audit) -> str:
    """Return the decision of the gate."""
    if audit.passed is None:
        return "No gate was set: nothing was required"
    n_failed = sum(not check.passed for check in audit.gate)
    if audit.passed:
        if len(audit.gate) == 1:
            return "Gate passed: its one condition is met"
        return f"Gate passed: all {len(audit.gate)} conditions are met"
    return f"Gate failed: {n_failed} of {len(audit.gate)} conditions {'is' if n_failed == 1 else 'are'} not met"


_ATTACK_VERDICTS = {
    "stronger than baseline": "above reference rate",
    "not shown": "no significant gain",
    "failed attack": "below baseline (attack invalid)",
}

BELOW_BASELINE = (
    "Below baseline: the attack did worse than guessing without the release. It is invalid: it does not show that the "
    "release is safe, and counts as no advantage."
)
FOUND_BY_UNCHANGED = (
    "Anyone who knows these values can find the record. Make the columns quasi-identifiers, or drop them."
)


def attack_verdict(risk: Risk) -> str:
    """Return the verdict of an attack in words for readers."""
    return verdict_in_words(str(risk.result["verdict"]))


def verdict_in_words(verdict: str) -> str:
    """Return a verdict, as results of attacks have it, in words for readers."""
    return _ATTACK_VERDICTS[verdict]


def unique_records(uniqueness: Uniqueness, titles: Mapping[str, str]) -> str:
    """Return the share of records that are unique by the columns released unchanged, as a sentence."""
    names = _listed([titles.get(name, name) for name in uniqueness.columns]) if uniqueness.columns else ""
    if not names:
        return "No column is released unchanged."
    if uniqueness.share is None:
        share = "Some records, too few to show their number, are"
    else:
        share = f"{uniqueness.share:.1%} of the records are" if uniqueness.share else "No record is"
    return f"{share} unique by the columns released unchanged: {names}."


def uniqueness(audit: Audit) -> list[str]:
    """Return the sentences about unique records for the first box."""
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
    """Return the sentences about the method."""
    roles: dict[str, list[str]] = {}
    for column in audit.columns:
        roles.setdefault(column.role, []).append(titled(audit, column.name))
    sentences = []
    # A rewritten column without a number of values was released as two columns, the ends of ranges.
    if dropped := [titled(audit, c.name) for c in audit.columns if c.n_values_after is None and c.loss is None]:
        sentences.append(f"{_listed(dropped)} {'was' if len(dropped) == 1 else 'were'} dropped.")
    if rewritten := roles.get("quasi-identifier"):
        sentences.append(
            f"Records were put into {audit.sizes.n_groups:,} groups; all records of a group have the same values in "
            f"{_listed(rewritten)}. The smallest group has {audit.sizes.smallest:,} records, the median group "
            f"{audit.sizes.median:,.0f}."
        )
    sentences += [f"Verified on the finished table: {guarantee}." for guarantee in audit.guarantees]
    if audit.n_suppressed is None:
        sentences.append(f"Fewer than {audit.smallest_shown} records were suppressed.")
    elif audit.n_suppressed:
        sentences.append(f"{audit.n_suppressed:,} records were suppressed.")
    else:
        sentences.append("No record was suppressed.")
    return sentences


def utility_sentence(utility: UtilityResult) -> str:
    """Return the cost of protection for the model as a sentence."""
    change = utility.judged - utility.raw
    unit = "pp of accuracy" if utility.metric == "accuracy" else "of R2"
    amount = f"{abs(100 * change):.2f} {unit}" if utility.metric == "accuracy" else f"{abs(change):.4f} {unit}"
    low, high = utility.interval
    if low <= 0 <= high:
        cost = f"The difference of {amount} is not statistically significant on {utility.n_test:,} test records."
    else:
        cost = f"The model {'loses' if change < 0 else 'gains'} {amount}; it keeps {utility.kept:.1%} of its score."
    if utility.same_answer is not None and utility.has_gain:
        cost += f" Of its gain over the majority-class baseline, {utility.gain_kept:.1%} is kept."
    return cost if utility.has_learned else f"{cost} {no_better(utility)}"


def no_better(utility: UtilityResult) -> str:
    """Return the sentence for a model that learned nothing from the release, however high its score is."""
    answer = "the mean" if utility.same_answer is None else "the most frequent class"
    said = f"Trained on the release, it does no better than always predicting {answer}."
    return said if utility.has_gain else f"{said} It does no better when trained on raw records."


def limits(audit: Audit) -> list[str]:
    """Return the limits of the protection."""
    named = [
        titled(audit, c.name) for c in audit.columns if c.role in ("target", "sensitive", "other") and c.n_values_after
    ]
    sentences = [
        "Groups of k records hide which record is whose. They do not hide values that a whole group shares: if all "
        "records of a group have one diagnosis, it is known of each of them.",
    ]
    if named:
        sentences.append(
            f"{_listed(named)} {'is' if len(named) == 1 else 'are'} released unchanged. An attacker who knows a "
            "person's value there can search for it in the release."
        )
    representative = str(audit.method.get("representative"))
    if representative in REPRESENTATIVES and REPRESENTATIVES[representative].facts.is_real_person:
        sentences.append(
            "The values of a group are those of one of its real records. An attacker who knows that person's values "
            "finds the group."
        )
    sentences.append(
        "Attacks that fail here may succeed with other knowledge or later methods. A rate and its interval are "
        "evidence about the attacks that were run, nothing more."
    )
    sentences += earlier(audit) or [
        "The release was audited alone. An attacker can combine it with another release of the same people: compare "
        "the two with 'sfumato compare' before you publish the second."
    ]
    return sentences


def earlier(audit: Audit) -> list[str]:
    """Return what the release shows together with each earlier one that it was compared with."""
    found = []
    for own in audit.earlier:
        how = "people recognized" if own.is_counted else "by numbers of records, since people were not recognized"
        if own.is_safe:
            both = "everyone is hidden among k people in both together"
        elif own.n_below is None:
            both = f"fewer than {audit.smallest_shown} people share their two groups with fewer than k"
        elif own.n_below:
            both = f"{own.n_below:,} people share their two groups with fewer than k"
        else:
            both = "some people were added or removed with fewer than k"
        found.append(f"Compared with the earlier release in “{own.file}” ({how}): {both}.")
    return found


@cache
def terms() -> dict[str, Any]:
    """Return the versioned table of terms and their equivalents elsewhere."""
    return tomllib.loads(files("sfumato.report").joinpath("terms.toml").read_text(encoding="utf-8"))


def parameters(audit: Audit) -> list[tuple[str, str]]:
    """Return the settings, versions and digest that reproduce the audit."""
    rows = [(str(name), shown(value)) for name, value in audit.method.items() if value not in (None, (), [], {})]
    rows += [(f"version of {name}", value) for name, value in audit.versions.items()]
    if audit.fingerprint:
        rows.append(("SHA-256 of the data", audit.fingerprint))
    if audit.policy_sha256:
        rows.append(("SHA-256 of the policy", audit.policy_sha256))
    hashed = {role: own for role, own in audit.outputs.items() if role != "report"}  # which cannot hold its own
    rows += [(f"SHA-256 of the {role} “{own.file}”", own.sha256) for role, own in hashed.items()]
    if audit.made_at:
        rows.append(("made at", audit.made_at))
    if audit.seconds:
        rows.append(("time taken", f"{audit.seconds:.0f} s"))
    return rows


def context(audit: Audit) -> list[tuple[str, str]]:
    """Return what a policy says about purpose, recipient and review, in words."""
    return [(name.replace("_", " "), shown(value)) for name, value in audit.context.items() if value is not None]


def precedents(audit: Audit) -> list[str]:
    """Return the risks that others have accepted for such access, with their sources; nothing without an access."""
    access = audit.context.get("access")
    own = [one for one in terms()["precedents"] if access in one["access"]]
    if not own:
        return []
    listed = " and ".join(f"{one['risk']:g} (groups of {one['group']})" for one in own)
    sources = "; ".join(dict.fromkeys(one["source"] for one in own))
    readers = "public releases" if access == "public" else "releases that are not public"
    return [
        f"For orientation: for {readers}, a chance to re-identify a record of at most {listed} has been accepted "
        f"elsewhere. A precedent is not a rule: people set the threshold and justify it. Sources: {sources}."
    ]


def shown(value: Any) -> str:
    """Return a parameter as text."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} = {part}" for name, part in value.items())
    return str(value)


def sizes_sentence(sizes: GroupSizes) -> str:
    """Return the sizes of the groups as a sentence."""
    return (
        f"{sizes.n_groups:,} groups; the smallest has {sizes.smallest:,} records, the largest {sizes.largest:,}, "
        f"half of them at most {sizes.median:,.0f}."
    )


def size_labels(edges: tuple[int, ...]) -> list[str]:
    """Return labels of classes of group sizes; the last class is open."""
    names = [f"{a:,}" if b == a + 1 else f"{a:,}-{b - 1:,}" for a, b in pairwise(edges)]
    return [*names, f"{edges[-1]:,}+"]


def _listed(names: list[str], most: int = 14) -> str:
    quoted = [f"“{name}”" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(quoted)} and {len(names) - most} more columns"
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


ANY_ATTACKER = "any attacker, at most"
"""The name of the column with upper ends of certificates."""


def certificate_table(audit: Audit) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of a certificate; the first cell of a row is the name of the secret."""
    assert audit.certificate is not None
    names = ["secret", "without the release", "at least", ANY_ATTACKER, "advantage, at most", "people in worse cells"]
    rows = []
    for name, bound in audit.certificate["secrets"].items():
        shares = [bound[part] for part in ("baseline", "lower", "upper", "advantage")]
        above = "-" if bound["worst"] is None else f"{bound['worst']['share_above']:.1%}"
        rows.append([name, *(f"{share:.3f}" for share in shares), above])
    return names, rows


def certificate_sentence(certificate: Mapping[str, Any]) -> str:
    """Return what was certified, with whom, and what the last column counts."""
    worst = next(iter(certificate["secrets"].values()))["worst"]
    worse = (
        "" if worst is None else f" In worse cells a guess may be right with a chance above {worst['threshold']:.0%}."
    )
    return (
        f"An attacker who sees of a person {certificate['sees']} is right at most this often, whatever the attack: "
        f"bounds with {certificate['confidence']:.0%} confidence, from {certificate['n_records']:,} people who are not "
        f"in the table.{worse}"
    )


# -- attackers -----------------------------------------------------------------------------------------------------

WORST_SUBGROUP = (
    "Worst subgroup: the one in which the lower end of the success rate is furthest above the baseline of the same "
    "people. The 95% confidence is shared by all subgroups that were compared."
)


def attackers_table(audit: Audit) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of what each attacker knows and sees."""
    rows = [
        [
            risk.title,
            risk.knowledge,
            risk.access,
            "-" if risk.attempts is None else f"{risk.attempts:,}",
            "-" if risk.worst is None else _worst(audit, risk.worst),
        ]
        for risk in audit.risks
    ]
    return ["attack", "knows", "sees", "attempts", "worst subgroup"], rows


def _worst(audit: Audit, own: AttackedSubgroup) -> str:
    low, high = own.interval
    return (
        f"{titled(audit, own.column)}: {own.group}, {own.rate:.3f} [{low:.3f}, {high:.3f}], baseline "
        f"{own.baseline:.3f}, {own.n_people:,} people"
    )


_USUAL_THRESHOLD = 0.09  # whose share is shown where the policy names no threshold


def reidentification_table(found: Reidentification) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of the risks of re-identification, before and after."""
    profiles = (found.before, found.after)
    threshold = f"{_USUAL_THRESHOLD if found.threshold is None else found.threshold:g}"
    rows = []
    for place, attacker in enumerate(found.after.attackers):
        both = [profile.attackers[place] for profile in profiles]
        name = attacker.attacker
        if attacker.maximum is not None:
            rows.append([f"{name}, maximum", *(f"{own.maximum:.3f}" for own in both)])
        if name != "journalist":  # whose average is the marketer's
            rows.append([f"{name}, average", *(f"{own.average:.3f}" for own in both)])
        if threshold in attacker.above:
            shares = (_share(own.above[threshold]) for own in both)
            rows.append([f"{name}, share of {found.counted} above {threshold}", *shares])
    rows.append(["unique in the table", *(_share(profile.unique) for profile in profiles)])
    if found.sampling_fraction is not None:
        rows.append(
            ["unique in the population, estimated", *(_estimates(profile.population_unique) for profile in profiles)]
        )
    return ["risk", "before", "after"], rows


def _share(share: float | None) -> str:
    return "masked" if share is None else f"{share:.1%}"


def _estimates(shares: Mapping[str, float | None]) -> str:
    known = [share for share in shares.values() if share is not None]
    if not known:
        return "no estimate"
    low, high = min(known), max(known)
    return f"{low:.1%}" if low == high else f"{low:.1%} to {high:.1%}"


def reidentification(found: Reidentification) -> list[str]:
    """Return who the attackers are and what their numbers rest on."""
    sentences = [
        "By the quasi-identifiers alone. The prosecutor knows that a person is in the table; the journalist and the "
        "marketer know only that the person is in the population. The marketer matches all records at once, so only an "
        "average counts."
    ]
    if found.sampling_fraction is None:
        sentences.append(
            "No sampling fraction is given. The table counts as the whole population, which overstates what the "
            "journalist and the marketer achieve."
        )
    else:
        sentences.append(
            f"With {found.sampling_fraction:.3g} of the population in the table, the journalist and the marketer are "
            "estimated by a negative binomial model (Benedetti and Franconi 1998), unique people by several models."
        )
    if found.threshold is not None:
        sentences.append(f"The policy accepts a chance of at most {found.threshold:g}.")
    return sentences


# -- people --------------------------------------------------------------------------------------------------------

SIGN_OFF = (
    "The numbers on this page are evidence. Whether the release may be handed to its recipients is for the people who "
    "sign to decide."
)


def signatories(audit: Audit) -> list[tuple[str, str]]:
    """Return who signs, by role; a name where the policy says it."""
    return [
        ("prepared by", ""),
        ("reviewed by", str(audit.context.get("reviewer", ""))),
        ("approved by", ""),
    ]


def parameters_sentence(utility: UtilityResult) -> str:
    """Return how many records the model had for each number that it learned."""
    if not utility.n_parameters:
        return ""
    per = utility.n_train / utility.n_parameters
    return (
        f"The model learned {utility.n_parameters:,} numbers from {utility.n_train:,} records of the release: "
        f"{per:.3g} records per parameter. Few records per parameter make it easier for a model to remember people."
    )
