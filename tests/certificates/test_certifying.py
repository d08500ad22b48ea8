# SPDX-License-Identifier: Apache-2.0
"""A certificate bounds secrets for every kind of encoder, says what it rests on, and refuses what it cannot bound."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato
from sfumato import Anatomizer, InputError, MondrianAnonymizer, ParameterError, UniformMinimizer, certify
from sfumato.certificates.bounds import binomial_upper


def people(n=3_000, seed=0):
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 90, n)
    return pd.DataFrame(
        {
            "age": age,
            "town": draw.choice(["Bari", "Rome", "Siena"], n, p=[0.2, 0.5, 0.3]),
            "wage": (1_000 + 20 * age + draw.normal(0, 100, n)).round(),
            "ill": np.where(draw.random(n) < np.where(age > 60, 0.6, 0.1), "yes", "no"),
            "since": pd.Timestamp("2000-01-01") + pd.to_timedelta(draw.integers(0, 3_000, n), unit="D"),
        }
    )


def decades(frame):
    return frame["age"].to_numpy() // 10


def test_the_bounds_enclose_the_best_attacker_of_a_known_law():
    certificate = certify(decades, people(20_000), secrets="ill")
    bound = certificate["ill"]
    over, under = 29 / 72, 43 / 72  # ages 61 to 89, and 18 to 60; in the decade of 60, 5.5 of 10 are ill
    best = (42 * 0.9 + 10 * 0.55 + 20 * 0.6) / 72
    assert bound.lower < best < bound.upper
    assert bound.upper - bound.lower < 0.03
    assert bound.baseline == pytest.approx(1 - over * 0.6 - under * 0.1, abs=0.01)
    assert 0 < best - bound.baseline <= bound.advantage < best - bound.baseline + 0.03
    assert bound.n_cells == 8 and bound.n_values == 2 and not bound.is_exact
    assert bound.balanced.n_values == 2 and 0.7 < bound.balanced.upper < 0.85
    assert bound.worst.threshold == 0.9 and 0 <= bound.worst.share_above <= 1
    assert bound.worst.upper >= bound.observed


def test_the_upper_end_is_that_of_the_most_hits_any_guess_has():
    frame = people()
    hits = frame.groupby([decades(frame), "ill"]).size().groupby(level=0).max().sum()
    assert certify(decades, frame, secrets=["ill"])["ill"].upper == binomial_upper(hits, len(frame), 0.05)


def test_several_secrets_share_the_error():
    frame = people()
    alone, both = certify(decades, frame, secrets=["ill"]), certify(decades, frame, secrets=["ill", "town"])
    hits = alone["ill"].observed * len(frame)
    assert both["ill"].upper == pytest.approx(binomial_upper(round(hits), len(frame), 0.025))
    assert both["ill"].upper > alone["ill"].upper and both["ill"].lower <= alone["ill"].lower
    assert "on all 2 secrets together" in both.describe()
    assert both.worst.secret == "ill" and both.advantage == both["ill"].advantage


def test_higher_confidence_widens_every_bound():
    frame = people()
    usual, sure = (certify(decades, frame, secrets=["ill"], confidence=c)["ill"] for c in (0.9, 0.999))
    assert sure.upper > usual.upper and sure.lower < usual.lower and sure.advantage > usual.advantage
    assert sure.balanced.upper > usual.balanced.upper and sure.worst.upper >= usual.worst.upper


def test_known_columns_make_cells_finer():
    frame = people()
    frame["nurse"] = frame["ill"].where(np.random.default_rng(5).random(len(frame)) < 0.9, "no")
    alone, besides = certify(decades, frame, secrets=["ill"]), certify(decades, frame, secrets=["ill"], known="nurse")
    assert besides["ill"].upper > alone["ill"].upper + 0.05
    assert besides.known == ("nurse",) and "An attacker knows nurse besides." in besides.describe()


@pytest.mark.parametrize("to", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_every_library_gets_the_same_bounds(to):
    frame = people()
    made = UniformMinimizer(3).fit(people(seed=1)[["age", "town"]], people(seed=1)["ill"]).generalization_
    assert certify(made, frame, secrets=["ill"])["ill"] == certify(made, to(frame), secrets=["ill"])["ill"]


# -- numbers -------------------------------------------------------------------------------------------------------


def test_numbers_within_a_tolerance_are_guessed_by_the_fullest_window():
    frame = people()
    exact = certify(decades, frame, secrets=["wage"])["wage"]
    near = certify(decades, frame, secrets=["wage"], tolerance=100.0)["wage"]
    nearer = certify(decades, frame, secrets=["wage"], tolerance={"wage": 10})["wage"]
    assert exact.upper < nearer.upper < near.upper
    most = sum(
        max(int(((own >= low) & (own <= low + 200)).sum()) for low in own)
        for own in (frame["wage"][decades(frame) == d].to_numpy() for d in np.unique(decades(frame)))
    )
    assert near.observed == most / len(frame)
    assert near.lower <= near.upper and near.balanced is None and near.tolerance == 100.0
    assert "wage within 100" in near.describe()


def test_missing_numbers_are_a_value_that_can_be_guessed():
    frame = people().assign(wage=lambda f: f["wage"].where(f["age"] < 60))
    bound = certify(decades, frame, secrets=["wage"], tolerance=50)["wage"]
    assert bound.observed > (frame["age"] >= 60).mean()
    assert bound.lower > 0.35


def test_moments_take_a_duration():
    day, month = (
        certify(decades, people(), secrets=["since"], tolerance=datetime.timedelta(days=d))["since"] for d in (1, 300)
    )
    assert day.upper < month.upper
    with pytest.raises(ParameterError, match=r"tolerance of 'since'.*expected a datetime\.timedelta"):
        certify(decades, people(), secrets=["since"], tolerance=3)


@pytest.mark.parametrize("tolerance", [-1, float("nan"), "wide"])
def test_a_tolerance_that_is_no_distance_is_refused(tolerance):
    with pytest.raises(ParameterError, match=r"tolerance of 'wage' is .* expected a number of at least 0"):
        certify(decades, people(), secrets=["wage"], tolerance=tolerance)


def test_a_tolerance_for_categories_is_refused_by_name_and_ignored_for_all():
    with pytest.raises(ParameterError, match="one for 'ill', which holds categories"):
        certify(decades, people(), secrets=["ill"], tolerance={"ill": 1})
    assert certify(decades, people(), secrets=["ill"], tolerance=1)["ill"].tolerance is None


# -- encoders ------------------------------------------------------------------------------------------------------


def test_a_generalization_is_certified_for_its_categories():
    sample, holdout = people(seed=1), people(seed=2)
    minimizer = UniformMinimizer(2).fit(sample[["age", "town", "wage"]], sample["ill"])
    certificate = certify(minimizer.generalization_, holdout)
    assert list(certificate.secrets) == ["town"]
    assert certificate.overlap_checked and "no overlap" in certificate.describe()
    assert certificate.secrets == certify(minimizer, holdout).secrets


def test_one_bucket_gives_no_advantage_beyond_the_sample():
    sample, holdout = people(seed=1), people(20_000, seed=2)
    made = UniformMinimizer(1).fit(sample[["age", "town"]], sample["ill"]).generalization_
    bound = certify(made, holdout, secrets=["town"])["town"]
    assert bound.n_cells == 1 and bound.observed == bound.baseline
    assert bound.advantage < 0.02


def test_a_partition_is_certified_and_its_own_records_are_refused():
    sample, holdout = people(seed=1), people(seed=2)
    anonymizer = MondrianAnonymizer(k=50, quasi_identifiers=["age", "town"], keep=["since"]).fit(sample)
    certificate = certify(anonymizer.partition_, holdout, secrets=["ill"])
    assert certificate["ill"].n_cells <= anonymizer.n_groups_ and certificate.overlap_checked
    with pytest.raises(InputError, match="about 100% were used to make the artifact"):
        certify(anonymizer, sample, secrets=["ill"])
    with pytest.raises(InputError, match="expected records that were not used for fitting"):
        certify(anonymizer, pd.concat([sample, holdout]), secrets=["ill"])


def test_without_fingerprints_the_certificate_says_that_nothing_was_checked():
    sample = people(seed=1)
    partition = MondrianAnonymizer(k=50, quasi_identifiers=["age", "town"], keep=["since"]).fit(sample).partition_
    loaded = sfumato.Partition.from_dict(partition.to_dict())
    certificate = certify(loaded, people(seed=2), secrets=["ill"])
    assert not certificate.overlap_checked
    assert any("was not checked" in sentence for sentence in certificate.assumptions)


def test_an_anatomized_table_has_exact_numbers_for_the_people_inside():
    frame = people(600)[["age", "town"]]
    tables = Anatomizer(l=2, sensitive="town", suppression_limit=0.1, random_state=0).fit_transform(frame)
    bound = certify(tables)["town"]
    shares = tables.sensitive.groupby("group")["town"].agg(lambda own: own.value_counts().max())
    assert bound.lower == bound.upper == bound.observed == shares.sum() / len(tables.sensitive)
    assert bound.is_exact and bound.upper <= 0.5 + 1e-12
    assert "without the groups" in bound.describe()
    with pytest.raises(ParameterError, match="holdout with an anatomized table"):
        certify(tables, frame)


def test_a_callable_may_return_rows_of_codes_or_text():
    frame = people()
    rows = certify(lambda f: np.column_stack([decades(f), f["town"] == "Rome"]), frame, secrets=["ill"])
    text = certify(
        lambda f: [f"{d} {t == 'Rome'}" for d, t in zip(decades(f), f["town"], strict=True)], frame, secrets=["ill"]
    )
    assert rows["ill"] == text["ill"]


# -- people and refusals -------------------------------------------------------------------------------------------


def test_people_with_several_records_count_once():
    frame = people(500).assign(person=lambda f: np.arange(len(f)))
    repeated = pd.concat([frame] * 6).assign(person=lambda f: f["person"])
    alone, counted = (certify(decades, f, secrets=["ill"], unit="person") for f in (frame, repeated))
    assert counted["ill"].upper == alone["ill"].upper and counted.n_records == 500
    assert certify(decades, repeated, secrets=["ill"])["ill"].upper < alone["ill"].upper  # what ignoring them would say
    assert any("drawn at random" in sentence for sentence in counted.assumptions)
    assert not any("drawn at random" in sentence for sentence in alone.assumptions)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"encoder": 3}, ParameterError, "encoder is of the type int"),
        ({"encoder": MondrianAnonymizer()}, ParameterError, "Fit estimators first"),
        ({"encoder": lambda f: [1, 2]}, InputError, r"shape \(2,\) for 3,000 records"),
        ({"encoder": lambda f: np.full(len(f), np.nan)}, InputError, "NaN or infinity"),
        ({"holdout": None}, InputError, "no holdout was given"),
        ({"holdout": people(19)}, InputError, "holdout has 19 people: expected at least 20"),
        ({"secrets": None}, ParameterError, "secrets names no column"),
        ({"secrets": ["sick"]}, ParameterError, "names the column 'sick', which the table does not have"),
        ({"known": ["ill"]}, ParameterError, "known names 'ill', which is among the secrets"),
        ({"confidence": 1.0}, ParameterError, "confidence=1.0"),
        ({"threshold": 2}, ParameterError, "threshold=2"),
    ],
)
def test_what_cannot_be_certified_is_refused_in_words(change, error, message):
    with pytest.raises(error, match=message):
        certify(**({"encoder": decades, "holdout": people(), "secrets": ["ill"]} | change))


def test_a_certificate_is_data_words_and_html():
    certificate = certify(decades, people(), secrets=["ill", "wage"], tolerance={"wage": 100})
    document = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert document["secrets"]["ill"]["balanced"]["maximal_leakage"] > 0
    assert document["secrets"]["wage"]["balanced"] is None and document["advantage"] == certificate.advantage
    assert "whoever attacks" in str(certificate) and "- Bounds are averages over people." in str(certificate)
    html = certificate._repr_html_()
    assert html.count("<tr>") == 3 and "at most, any attacker" in html
    with pytest.raises(ParameterError, match="no secret 'age': expected one of 'ill', 'wage'"):
        certificate["age"]


def test_the_same_seed_gives_the_same_certificate_and_the_upper_end_needs_none():
    first, again, other = (certify(decades, people(), secrets=["ill"], random_state=s)["ill"] for s in (0, 0, 7))
    assert first == again
    assert other.upper == first.upper and other.lower != first.lower
