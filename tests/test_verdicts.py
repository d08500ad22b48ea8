# SPDX-License-Identifier: Apache-2.0
"""Verdicts: intervals, rules, multiplicity, claims in files, and the table of what changed."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

REPOSITORY = Path(__file__).parent.parent
sys.path.insert(0, str(REPOSITORY))

from studies import changes  # noqa: E402
from studies.catalogue import all_studies  # noqa: E402
from studies.claims import (  # noqa: E402
    HELD,
    INCONCLUSIVE,
    REFUTED,
    UNTESTED,
    Claim,
    Evidence,
    claim_lines,
    claim_rows,
    counted_verdicts,
)
from studies.verdicts import RULES, average, counted, holm, paired, share_error  # noqa: E402


def exact(estimate, error=0.1, where="here"):
    return counted(where, estimate, error)


# -- intervals ---------------------------------------------------------------------------------------------------------


def test_the_interval_over_splits_is_the_corrected_one_of_nadeau_and_bengio():
    values = [0.3, 0.5, 0.1, 0.4, 0.7]
    low, high = paired("here", values, overlap=0.25).interval()
    half = stats.t.ppf(0.975, 4) * np.std(values, ddof=1) * np.sqrt(1 / 5 + 0.25)
    assert (low, high) == pytest.approx((0.4 - half, 0.4 + half))


def test_one_split_has_no_interval_and_decides_nothing():
    single = paired("here", [5.0], overlap=0.25)
    assert single.interval() == (-np.inf, np.inf)
    for rule in RULES.values():
        assert rule([single], 0.5).verdict == INCONCLUSIVE


def test_a_difference_without_spread_is_a_point():
    assert paired("here", [0.2, 0.2], overlap=0.25).interval() == pytest.approx((0.2, 0.2))


def test_no_split_is_an_error():
    with pytest.raises(ValueError, match="no split of 'here': expected at least one"):
        paired("here", [], overlap=0.25)


@pytest.mark.parametrize(("truth", "level"), [(0.0, 0.95), (0.3, 0.99)])
def test_p_values_and_intervals_agree(truth, level):
    one = paired("here", [0.3, 0.5, 0.1, 0.4, 0.7], overlap=0.1)
    low, high = one.interval(level)
    assert (one.chance_below(truth) < (1 - level) / 2) == (high < truth)
    assert (one.turned().chance_below(-truth) < (1 - level) / 2) == (low > truth)


def test_a_share_of_nothing_is_not_sure():
    assert share_error(0.0, 100) == pytest.approx(np.sqrt(0.005 * 0.995 / 100))
    assert share_error(0.5, 100) == pytest.approx(0.05)


def test_the_mean_over_comparisons_goes_split_by_split():
    mean = average([paired("a", [1.0, 3.0, 9.0], overlap=0.25), paired("b", [3.0, 1.0], overlap=0.1)])
    assert mean.values == (2.0, 2.0)  # the splits that both have
    assert mean.error == 0.0  # what one loses the other wins, in the same split
    assert mean.overlap == 0.25


def test_counted_records_do_not_get_surer_by_comparing_them_more_often():
    assert average([exact(1.0, 0.2), exact(3.0, 0.4)]).error == pytest.approx(0.3)


# -- rules -------------------------------------------------------------------------------------------------------------


def test_an_interval_on_the_other_side_is_not_said_to_hold_both_signs():
    assert RULES["on average"]([exact(-0.4, 0.1)], 0.5).reason == "the interval reaches into the margin"
    assert RULES["on average"]([exact(0.1, 0.1)], 0.5).reason == "the interval holds differences of either sign"


def test_holm_goes_on_while_the_next_is_small_enough():
    assert holm([0.03, 0.001, 0.04, 0.02], 0.05) == [1]  # 0.02 > 0.05 / 3
    assert holm([0.016, 0.001, 0.9, 0.9], 0.05) == [1, 0]
    assert holm([0.2, 0.3], 0.05) == []


@pytest.mark.parametrize(
    ("rule", "estimates", "verdict"),
    [
        ("everywhere", [1.0, 2.0], HELD),
        ("everywhere", [1.0, -0.2], HELD),  # within the margin, and ahead on average
        ("everywhere", [0.0, 0.0], INCONCLUSIVE),  # no worse, but not ahead
        ("everywhere", [1.0, -0.6], INCONCLUSIVE),
        ("everywhere", [5.0, -0.8], REFUTED),
        ("on average", [0.9, -0.1], HELD),
        ("on average", [0.1, -0.1], INCONCLUSIVE),
        ("on average", [-0.2, -0.3], INCONCLUSIVE),
        ("on average", [-1.0, -0.9], REFUTED),
        ("not worse", [0.0, 0.0], HELD),
        ("not worse", [0.0, -0.5], INCONCLUSIVE),
        ("not worse", [3.0, -1.0], REFUTED),
        ("alike", [0.2, -0.2], HELD),
        ("alike", [0.4, 0.0], INCONCLUSIVE),
        ("alike", [0.0, 1.0], REFUTED),
        ("alike", [0.0, -1.0], REFUTED),
        ("somewhere", [-5.0, 0.3], HELD),
        ("somewhere", [-5.0, 0.1], REFUTED),  # 0.1 + 0.196 stays below the margin
        ("somewhere", [-5.0, 0.21], INCONCLUSIVE),  # alone it would be beyond chance, of two it is not
    ],
)
def test_a_rule_needs_an_interval_that_decides(rule, estimates, verdict):
    margin = 0.3 if rule == "somewhere" else 0.5
    assert RULES[rule]([exact(estimate) for estimate in estimates], margin).verdict == verdict


def test_one_wrong_cell_among_many_is_corrected_for_their_number():
    wrong = exact(-0.75)  # upper end -0.554: beyond the margin if it were the only one
    assert RULES["everywhere"]([wrong], 0.5).verdict == REFUTED
    found = RULES["everywhere"]([wrong, *(exact(2.0) for _ in range(44))], 0.5)
    assert found.verdict == INCONCLUSIVE
    assert found.level == pytest.approx(1 - 0.05 / 45)
    assert found.decisive is wrong


def test_what_is_shown_is_the_comparison_that_is_open():
    decided, still_open = exact(0.0, 0.0, where="decided"), exact(0.43, 0.5, where="open")
    for rule in ("everywhere", "not worse", "alike"):
        found = RULES[rule]([decided, still_open], 0.25)
        assert (rule, found.verdict, found.decisive.where) == (rule, INCONCLUSIVE, "open")


def test_where_all_speak_for_a_claim_the_weakest_is_shown_and_not_their_mean():
    found = RULES["everywhere"]([exact(5.0, where="far behind"), exact(0.3, where="next best")], 0.5)
    assert (found.verdict, found.decisive.where) == (HELD, "next best")
    assert found.reason.startswith("the mean of 2 is +2.65 [")
    assert RULES["everywhere"]([exact(5.0)], 0.5).reason == ""


def test_where_nothing_is_worse_and_nothing_ahead_the_mean_is_shown():
    found = RULES["everywhere"]([exact(0.0), exact(0.1)], 0.5)
    assert (found.verdict, found.decisive.where, found.level) == (INCONCLUSIVE, "mean of 2", 0.95)


def test_what_refutes_is_among_those_that_are_beyond_the_margin():
    unsure, sure = exact(-2.0, 2.0, where="unsure"), exact(-1.5, 0.1, where="sure")
    for rule in ("everywhere", "not worse", "alike"):
        found = RULES[rule]([unsure, sure], 0.5)
        assert (rule, found.verdict, found.decisive.where) == (rule, REFUTED, "sure")
    assert RULES["alike"]([unsure.turned(), sure.turned()], 0.5).decisive.estimate == 1.5


def test_what_shows_that_it_is_so_somewhere_is_the_surest():
    found = RULES["somewhere"]([exact(3.0, 2.0, where="unsure"), exact(1.0, 0.1, where="sure")], 0.5)
    assert (found.verdict, found.decisive.where) == (HELD, "sure")


def test_random_signs_refute_seldom():
    """Ten methods that differ by nothing, five splits: the first edition refuted nearly all, this rule hardly any."""
    rng = np.random.default_rng(0)
    verdicts = [
        RULES["everywhere"]([paired(str(i), rng.normal(0, 0.3, 5).tolist(), overlap=0.25) for i in range(10)], 0.5)
        for _ in range(200)
    ]
    assert sum(found.verdict == REFUTED for found in verdicts) <= 2


# -- claims ------------------------------------------------------------------------------------------------------------

CLAIM = Claim("heads", "Heads win.", "in all cases, heads win", "Section 4", "everywhere", 0.5, "points")


def test_a_claim_has_its_words_its_verdict_and_its_interval():
    judged = CLAIM.judged(Evidence([exact(2.0)], "200 coins"))
    assert judged.verdict == HELD
    assert judged.interval == "+2.00 [+1.80, +2.20] points"
    [row] = claim_rows([judged])[2:]
    assert row.startswith("| Heads win. *“in all cases, heads win”* (Section 4) | **held** | +2.00 [")
    assert row.endswith(" | 1, its records counted |")
    [line] = claim_lines([judged])
    assert "Rule: in every comparison, margin 0.5 points. 200 coins." in line


def test_an_interval_that_is_wider_for_many_comparisons_says_so():
    judged = CLAIM.judged(Evidence([exact(-3.0, where="small coins"), exact(3.0, where="large coins")]))
    assert judged.verdict == REFUTED
    assert judged.interval.endswith("points at 97.5% (small coins)")
    assert judged.reason == "1 of 2 comparisons lie beyond the margin on the other side"


def test_the_interval_of_a_claim_that_holds_is_said_to_be_the_weakest():
    judged = CLAIM.judged(Evidence([exact(5.0, where="far behind"), exact(0.3, where="next best")]))
    assert judged.interval == "+0.30 [+0.10, +0.50] points (the weakest of 2: next best)"
    assert judged.reason == "the mean of 2 is +2.65 [+2.45, +2.85]"


def test_other_data_support_a_claim_but_never_refute_it():
    claim = Claim(**{**vars(CLAIM), "stand_in": "coins of 2024 for 2014"})
    assert claim.judged(Evidence([exact(2.0)])).verdict == HELD
    against = claim.judged(Evidence([exact(-2.0)]))
    assert against.verdict == INCONCLUSIVE
    assert "coins of 2024 for 2014" in against.reason


def test_what_cannot_be_tested_needs_no_evidence():
    judged = Claim("lost", "Coins are lost.", "lost", "Section 1", cannot_test="the coins are lost").judged(None)
    assert (judged.verdict, judged.reason, judged.n_splits) == (UNTESTED, "the coins are lost", 0)
    assert counted_verdicts([judged]) == "Of 1 claims: 1 cannot be tested here."


def test_a_claim_without_evidence_is_an_error():
    with pytest.raises(KeyError, match="claim heads: expected evidence"):
        CLAIM.judged(None)


@pytest.mark.parametrize("wrong", [{"rule": "by gut"}, {"margin": 0.0}, {"unit": ""}, {"cannot_test": "why"}])
def test_a_claim_without_a_full_rule_is_refused(wrong):
    with pytest.raises(ValueError, match="claim heads: expected"):
        Claim(**{**vars(CLAIM), **wrong})


# -- the catalogue -----------------------------------------------------------------------------------------------------

CLAIMS = [(study, claim) for study in all_studies() for claim in study.claims]


def test_every_claim_has_a_name_of_its_own_and_is_quoted():
    names = [claim.name for _, claim in CLAIMS]
    assert len(names) == len(set(names)) > 60
    assert all(len(claim.quote) > 10 and claim.at and claim.says.endswith(".") for _, claim in CLAIMS)


def test_a_study_with_other_data_says_so_in_its_claims():
    for study, claim in CLAIMS:
        if claim.rule and all("stands in" in data for data in study.data):
            assert claim.stand_in, claim.name


def plain(text):
    """Return a text without line breaks, hyphens, marks, and what an editor put into brackets."""
    return re.sub(r"\[[a-z]+\]|[\s\-*`ℓ_“”]", "", text).replace("’", "'").replace("‘", "'")


@pytest.mark.skipif("SFUMATO_PAPERS" not in os.environ, reason="the papers' texts are not part of the repository")
@pytest.mark.parametrize(("study", "claim"), CLAIMS, ids=[claim.name for _, claim in CLAIMS])
def test_a_quotation_stands_in_a_paper(study, claim):
    texts = [plain(path.read_text("utf-8")) for path in Path(os.environ["SFUMATO_PAPERS"]).glob("*.txt")]
    assert any(all(plain(part) in text for part in claim.quote.split(" … ")) for text in texts)


# -- what changed ------------------------------------------------------------------------------------------------------


def test_every_verdict_of_the_first_edition_became_a_claim_or_was_withdrawn_for_a_reason():
    before = changes.first_edition()
    names = {claim.name for _, claim in CLAIMS}
    assert len(before) == 78
    for entry in before:
        assert entry.was in changes.SAME
        assert set(entry.became) <= names
        assert entry.became or entry.because


def test_the_table_of_changes_has_a_reason_for_every_difference():
    judged = {paper: [one for study in all_studies() if study.paper == paper for one in study.judged()]
              for paper in ("goldsteen", "staab", "mancuhan")}  # fmt: skip
    page = changes.page(judged, dict.fromkeys(judged, "title"))
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    table = [row for row in rows if len(row) == 6 and row[1] in (*changes.SAME, "")]
    assert len(table) >= 78
    then = ""
    for row in table:
        then = row[1] or then
        now = row[2].partition(":")[0]
        if changes.SAME[then] != now and "not all" not in now:
            assert row[5].rstrip(" |"), row
