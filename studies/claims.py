# SPDX-License-Identifier: Apache-2.0
"""What a paper says, and what became of it here: claims, evidence and verdicts.

**How a study fixes its rule.** A claim stands in the study's file, before the study is run, with the paper's own words,
the rule and the margin of indifference. The experiment says nothing about verdicts: it returns differences::

    # studies/catalogue/coins-figure-2.toml
    [[claims]]
    name = "heads-win"                       # the experiment's evidence has the same name
    says = "Heads come up more often than tails with every coin."
    quote = "in all cases, heads outperform tails"   # exactly; an omission is " … "
    at = "Section 4.1"                       # where the words stand
    rule = "everywhere"                      # one of verdicts.RULES
    margin = 0.5                             # smaller differences count as none
    unit = "points"
    digits = 2                               # of differences on pages; 2 unless said
    stand_in = "coins of 2024 for those of 2014"     # other data or settings: never refuted
    # or, in the place of rule, margin and unit:
    cannot_test = "the coins are lost"

    [[rule_history]]                         # of the file: every rule that was changed after cells had been seen
    date = 2026-11-18
    was = "one wrong sign anywhere counted as refuted"
    because = "a sign is noise where splits differ by more than the difference"

    # studies/coins.py
    def evidence(cells):
        ahead = [cell["heads"] - cell["tails"] for cell in cells]      # one per split; positive speaks for the claim
        return {"heads-win": Evidence([paired("all coins", ahead, overlap=0.25)])}

    EXPERIMENT = Experiment(..., evidence=evidence)

``paired`` takes one difference per split, both sides on the same split, and `overlap`, the test records per training
record (0.25 for 80/20, 1/9 for ten folds): Nadeau and Bengio's corrected interval. ``counted`` takes a difference on
the records of one split and its standard error (``share_error``); it knows nothing of other splits, and the page says
so. One split without records to count has no interval: the verdict is *inconclusive*.

Rules (`verdicts.RULES`), each with a margin m and intervals of 95%:

========== ============================================ ===================================== =======================
rule       for words such as                            held                                  refuted
========== ============================================ ===================================== =======================
everywhere "in all cases A outperforms B"               every lower end > -m, mean's > 0      some upper end < -m, Holm
on average "a slight advantage of A"                    the mean's lower end > 0              its upper end < -m
not worse  "no significant degradation", "reaches 86.5" every lower end > -m                  some upper end < -m, Holm
alike      "very similar", "almost identical"           every interval inside (-m, m)         some outside, Holm
somewhere  "in some cases", "can sometimes"             some lower end > 0, Holm              every upper end < m
========== ============================================ ===================================== =======================

Everything else is *inconclusive*. Other data or settings (`stand_in`) can support a claim and cannot refute it: it
is *inconclusive* then, with the reason. Several statements are several claims; what a table prints and no sentence says
is not a claim.

**First edition.** ``studies/first_edition.toml`` lists every verdict of the first edition and the claim it became;
``changes`` makes the table of changes from it. A claim whose verdict differs has its reason there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from studies.verdicts import (
    HELD,
    INCONCLUSIVE,
    LEVEL,
    REFUTED,
    RULES,
    UNTESTED,
    VERDICTS,
    Difference,
    Judgement,
    counted,
    paired,
    share_error,
)

__all__ = ["HELD", "INCONCLUSIVE", "REFUTED", "UNTESTED", "VERDICTS", "Claim", "Evidence", "Judged", "RuleChange"]
__all__ += ["claim_lines", "claim_rows", "counted", "counted_verdicts", "paired", "rule_lines", "share_error"]

RULES_IN_WORDS = {
    "everywhere": "in every comparison",
    "on average": "on average",
    "not worse": "nowhere worse",
    "alike": "nowhere apart",
    "somewhere": "in some comparison",
}


@dataclass(frozen=True)
class Evidence:
    """Differences that speak for a claim where they are positive, and other numbers in words."""

    differences: Sequence[Difference]
    numbers: str = ""


@dataclass(frozen=True)
class RuleChange:
    """A rule that was changed after cells had been seen: when, what it was, and why."""

    date: str
    was: str
    because: str


@dataclass(frozen=True)
class Claim:
    """What a paper says, in its own words, and the rule of its verdict; the module's docstring says what is what."""

    name: str
    says: str
    quote: str
    at: str
    rule: str = ""
    margin: float = 0.0
    unit: str = ""
    digits: int = 2
    stand_in: str = ""
    cannot_test: str = ""

    def __post_init__(self) -> None:
        if bool(self.rule) == bool(self.cannot_test):
            raise ValueError(f"claim {self.name}: expected either rule or cannot_test.")
        if self.rule and (self.rule not in RULES or self.margin <= 0 or not self.unit):
            raise ValueError(f"claim {self.name}: expected a rule of {', '.join(RULES)}, a margin above 0 and a unit.")

    def judged(self, evidence: Evidence | None) -> Judged:
        """Return the claim with its verdict; without evidence only what cannot be tested has one."""
        if self.cannot_test:
            return Judged(self, UNTESTED, reason=self.cannot_test)
        if evidence is None or not evidence.differences:
            raise KeyError(f"claim {self.name}: expected evidence of that name. Add it to the experiment.")
        found = RULES[self.rule](evidence.differences, self.margin)
        verdict, reason = found.verdict, found.reason
        if verdict == REFUTED and self.stand_in:
            verdict, reason = INCONCLUSIVE, f"not so here, which cannot refute it ({self.stand_in})"
        return Judged(self, verdict, reason, found, tuple(evidence.differences), evidence.numbers)

    @property
    def rule_in_words(self) -> str:
        """The rule with its margin, for pages."""
        return f"{RULES_IN_WORDS[self.rule]}, margin {self.margin:g} {self.unit}" if self.rule else ""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and what decided it."""

    claim: Claim
    verdict: str
    reason: str = ""
    judgement: Judgement | None = None
    differences: tuple[Difference, ...] = ()
    numbers: str = ""

    @property
    def n_splits(self) -> int:
        """The fewest splits of a comparison; 0 where nothing was compared."""
        return min((one.n for one in self.differences), default=0)

    @property
    def interval(self) -> str:
        """What decided, with its interval, in words."""
        if self.judgement is None:
            return ""
        one, level = self.judgement.decisive, self.judgement.level
        low, high = one.interval(level)
        digits = self.claim.digits
        ends = "" if math.isinf(low) else f" [{low:+.{digits}f}, {high:+.{digits}f}]"
        share = "" if level == LEVEL or not ends else f" at {100 * level:.4g}%"
        n, words = len(self.differences), one.where
        if self.judgement.verdict == HELD and self.claim.rule in ("everywhere", "not worse"):
            words = f"the weakest of {n}: {words}"
        where = f" ({words})" if n > 1 else ""
        return f"{one.estimate:+.{digits}f}{ends} {self.claim.unit}{share}{where}"

    @property
    def splits(self) -> str:
        """The number of splits in words."""
        if not self.differences:
            return ""
        return "1, its records counted" if math.isinf(self.differences[0].freedom) else str(self.n_splits)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain data, for ``sfumato study --json``."""
        return {
            "name": self.claim.name,
            "claim": self.claim.says,
            "quote": self.claim.quote,
            "at": self.claim.at,
            "rule": self.claim.rule_in_words,
            "verdict": self.verdict,
            "reason": self.reason,
            "interval": self.interval,
            "n_splits": self.n_splits,
            "numbers": self.numbers,
        }


def claim_rows(judged: Iterable[Judged]) -> list[str]:
    """Return claims as a table in Markdown: the paper's words, the verdict, what decided."""
    return [
        "| the paper | verdict | difference, 95% CI | splits |",
        "| --- | --- | --- | ---: |",
        *(
            f"| {one.claim.says} *“{one.claim.quote}”* ({one.claim.at}) | **{one.verdict}** | {one.interval} | "
            f"{one.splits} |"
            for one in judged
        ),
    ]


def claim_lines(judged: Iterable[Judged]) -> list[str]:
    """Return claims as a list in Markdown, with rules, reasons and all numbers."""
    lines = []
    for one in judged:
        claim = one.claim
        splits = f"; splits: {one.splits}" if one.splits else ""
        parts = [
            f"**{one.verdict[0].upper()}{one.verdict[1:]}**: {claim.says} *“{claim.quote}”* ({claim.at}).",
            f"{one.interval}{splits}." if one.interval else "",
            f"Rule: {claim.rule_in_words}." if claim.rule else "",
            f"Other than in the paper: {claim.stand_in}." if claim.stand_in else "",
            *(f"{said[0].upper()}{said[1:].rstrip('.')}." for said in (one.reason, one.numbers) if said),
        ]
        lines.append(f"- {' '.join(part for part in parts if part)}")
    return lines


def counted_verdicts(judged: Sequence[Judged]) -> str:
    """Return how many claims have which verdict, in a sentence."""
    shares = [(sum(one.verdict == verdict for one in judged), verdict) for verdict in VERDICTS]
    told = ", ".join(f"{n} {verdict}" for n, verdict in shares if n)
    return f"Of {len(judged)} claims: {told}."


def rule_lines() -> list[str]:
    """Return what verdicts mean, for a page."""
    return [
        "A verdict comes from paired differences over splits, with intervals of 95% that allow for the records which "
        "splits share (Nadeau and Bengio). Positive differences speak for the claim. Each claim has its rule and its "
        "margin of indifference in the study's file, fixed before the study is run.",
        "",
        "- *Held* and *refuted* need an interval that decides. Everything else is *inconclusive*.",
        "- Where several comparisons are tested, one of them refutes only after Holm's correction for their number.",
        "- Other data or settings than the paper's can support a claim and cannot refute it.",
        "- *1, its records counted*: the interval is that of one split's records and knows nothing of other splits.",
        "- Of several comparisons, the one that refutes or is still open is shown, or the weakest where all speak for "
        "the claim.",
        "- A model that does no better than always answering the larger class has no accuracy to lose, though it may "
        "leak: where every model of a claim stays within about a point of that, the claim *cannot be tested here*. "
        "Where only an opponent comes down to it, the claim says in how many folds.",
    ]
