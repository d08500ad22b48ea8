# SPDX-License-Identifier: Apache-2.0
"""Columns that nobody gave a role: commands drop those that name people and read codes as categories, in words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .conftest import call

N = 600


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    """A survey as offices export it: names, household numbers, amounts, and numbers that are codes."""
    rng = np.random.default_rng(3)
    age = rng.integers(18, 90, N)
    return pd.DataFrame(
        {
            "name": [f"Person {i}" for i in range(N)],
            "SERIALNO": [f"2024HU{i // 2:07d}" for i in range(N)],
            "AGEP": age,
            "OCCP": rng.choice([10, 440, 1105, 2310, 3255, 4720, 9620], N),
            "RAC1P": rng.choice([1, 2, 6, 9], N, p=[0.6, 0.2, 0.1, 0.1]),
            "PINCP": (rng.lognormal(10.3, 0.6, N) + 300 * age).astype(int),
            "wage": np.where(age + rng.normal(0, 10, N) > 50, "high", "low"),
        }
    )


@pytest.fixture(params=["csv", "parquet"])
def survey_file(request, survey, tmp_path: Path) -> Path:
    path = tmp_path / f"survey.{request.param}"
    if request.param == "csv":
        survey.to_csv(path, index=False)
    else:
        survey.to_parquet(path, index=False)
    return path


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


def said(done) -> str:
    return " ".join(done.output.split())


def test_anonymize_without_roles_releases_no_name_and_says_so(survey_file, survey):
    output = survey_file.with_name(f"released{survey_file.suffix}")
    done = call("anonymize", survey_file, "--target", "wage", "--test-fraction", "0", "-o", output)
    assert done.exit_code == 0, done.output
    assert "column 'name' is dropped: its name says" in said(done)
    assert "column 'SERIALNO' is dropped: its name is that of a number of people or households" in said(done)
    assert "To release it unchanged, name it in --keep" in said(done)
    # Every household has several records, every name one.
    assert said(done).count("If each value is one person, name it in --unit, and k counts persons") == 1
    released = read(output)
    assert list(released) == ["AGEP", "OCCP", "RAC1P", "PINCP", "wage"]
    assert released.groupby(["AGEP", "OCCP", "RAC1P", "PINCP"]).size().min() >= 10


def test_what_names_people_is_dropped_piece_by_piece_too(survey, tmp_path: Path):
    survey.to_parquet(tmp_path / "survey.parquet", index=False)
    output = tmp_path / "released.parquet"
    done = call("anonymize", tmp_path / "survey.parquet", "--target", "wage", "--out-of-core", "-o", output)
    assert done.exit_code == 0, done.output
    assert "column 'name' is dropped" in said(done)
    assert list(pd.read_parquet(output)) == ["AGEP", "OCCP", "RAC1P", "PINCP", "wage"]


@pytest.mark.parametrize("representative", ["mean", "midrange"])
def test_codes_are_not_averaged_by_default(survey, tmp_path: Path, representative):
    survey.drop(columns=["name", "SERIALNO"]).to_csv(tmp_path / "survey.csv", index=False)
    given = ["--target", "wage", "--test-fraction", "0", "--representative", representative]
    done = call("anonymize", tmp_path / "survey.csv", *given, "-o", tmp_path / "released.csv")
    assert done.exit_code == 0, done.output
    assert "column 'OCCP' looks like a code, so it is treated as categories: its name" in said(done)
    released = pd.read_csv(tmp_path / "released.csv")
    for name in ("OCCP", "RAC1P"):
        assert set(released[name]) <= set(survey[name])
    assert released["RAC1P"].mode()[0] == survey["RAC1P"].mode()[0]


def test_codes_that_a_user_names_are_those_and_no_others(survey, tmp_path: Path):
    survey.drop(columns=["name", "SERIALNO"]).to_csv(tmp_path / "survey.csv", index=False)
    given = ["--target", "wage", "--test-fraction", "0", "--categorical", "RAC1P"]
    done = call("anonymize", tmp_path / "survey.csv", *given)
    assert done.exit_code == 0, done.output
    assert "column 'OCCP' looks like a code" in said(done) and "name it in --categorical" in said(done)
    assert "'RAC1P' looks" not in said(done)


def test_measure_leaves_names_out_of_what_it_counts(survey_file):
    done = call("measure", survey_file, "--json")
    assert done.exit_code == 0, done.output
    assert "column 'name' is left out" in said(done)
    document = json.loads(done.output[done.output.index("{") :])
    assert document["quasi_identifiers"] == ["AGEP", "OCCP", "RAC1P", "PINCP", "wage"]


def test_anatomize_shares_names_only_when_asked_to(survey_file, tmp_path: Path):
    for more, has_name in (([], False), (["--keep", "name"], True)):
        folder = tmp_path / f"shared{has_name}"
        done = call("anatomize", survey_file, "--sensitive", "OCCP", "--no-attack", *more, "-o", folder)
        assert done.exit_code == 0, done.output
        identifying = read(folder / f"identifying{survey_file.suffix}")
        assert ("name" in identifying, "SERIALNO" in identifying) == (has_name, False)


def test_minimize_never_collects_names(survey, tmp_path: Path):
    survey.to_csv(tmp_path / "survey.csv", index=False)
    done = call("minimize", tmp_path / "survey.csv", "--target", "wage", "-o", tmp_path / "generalization.json")
    assert done.exit_code == 0, done.output
    assert "column 'name' is left out, and never collected" in said(done)
    assert "Person 1" not in (tmp_path / "generalization.json").read_text(encoding="utf-8")


def test_audit_warns_of_a_release_that_has_names(survey, tmp_path: Path):
    survey.to_csv(tmp_path / "before.csv", index=False)
    survey.to_csv(tmp_path / "after.csv", index=False)
    done = call("audit", tmp_path / "before.csv", tmp_path / "after.csv", "--min-k", "2")
    assert done.exit_code == 1
    assert "the release has the column 'name', but its name says" in said(done)


def test_what_init_proposes_run_accepts(survey_file, tmp_path: Path):
    policy = tmp_path / "policy.toml"
    done = call("init", survey_file, "--target", "wage", "-o", policy)
    assert done.exit_code == 0, done.output
    text = policy.read_text(encoding="utf-8")
    assert 'identifiers = ["name", "SERIALNO"]' in text
    assert 'categorical = ["OCCP", "RAC1P"]' in text
    assert '"PINCP": quasi-identifier' in text and '"SERIALNO": identifier: its name is that of a number of' in text
    done = call("run", policy, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "looks like a code" not in said(done)


def test_a_policy_without_quasi_identifiers_drops_what_names_people(survey_file, tmp_path: Path):
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f"""version = 1
[data]
file = "{survey_file.name}"
release = "released{survey_file.suffix}"
[columns]
target = "wage"
[model]
test_fraction = 0.0
[audit]
level = "none"
""",
        encoding="utf-8",
    )
    done = call("run", policy)
    assert done.exit_code == 0, done.output
    assert "column 'SERIALNO' is dropped" in said(done) and "column 'OCCP' looks like a code" in said(done)
    assert set(read(tmp_path / f"released{survey_file.suffix}")) == {"AGEP", "OCCP", "RAC1P", "PINCP", "wage"}


# ---- the target ----------------------------------------------------------------------------------------------------


def test_a_near_unique_target_is_warned_of_with_the_share_and_two_ways_out(survey_file, survey):
    done = call("anonymize", survey_file, "--target", "PINCP", "--test-fraction", "0")
    assert done.exit_code == 0, done.output
    share = survey["PINCP"].value_counts().eq(1).sum() / N
    assert f"the target 'PINCP' is released unchanged and {share:.2%} of its values are unique" in said(done)
    assert "--target-values round:1000" in said(done) and "--target-values group-mean" in said(done)


@pytest.mark.parametrize("how", ["round:5000", "group-mean"])
def test_a_target_is_released_rounded_or_as_the_mean_of_its_group(survey, tmp_path: Path, how):
    own = survey.drop(columns=["name", "SERIALNO"]).assign(PINCP=lambda f: f["PINCP"].astype("Int64"))
    own.loc[::7, "PINCP"] = pd.NA
    own.to_parquet(tmp_path / "survey.parquet", index=False)
    output = tmp_path / "released.parquet"
    done = call("anonymize", tmp_path / "survey.parquet", "--target", "PINCP", "--target-values", how, "-o", output)
    assert done.exit_code == 0, done.output
    assert f"Target 'PINCP' is released as {how}" in said(done)
    released = pd.read_parquet(output)
    groups = released.groupby(["AGEP", "OCCP", "RAC1P", "wage"])["PINCP"]
    assert groups.size().min() >= 10
    if how == "group-mean":
        assert groups.nunique().max() == 1
        # A mean of few known values would be theirs: no value is left of fewer than k of them.
        assert released["PINCP"].value_counts().min() >= 10
    else:
        assert (released["PINCP"].dropna() % 5000 == 0).all()
        assert released["PINCP"].isna().sum() == own["PINCP"].isna().sum()


def test_a_policy_says_what_is_released_of_the_target(survey, tmp_path: Path):
    survey.drop(columns=["name", "SERIALNO"]).to_parquet(tmp_path / "survey.parquet", index=False)
    policy = tmp_path / "policy.toml"
    text = """version = 1
[data]
file = "survey.parquet"
release = "released.parquet"
[columns]
target = "PINCP"
categorical = ["OCCP", "RAC1P"]
[method]
target_values = "{how}"
[audit]
level = "none"
"""
    policy.write_text(text.format(how="group-mean"), encoding="utf-8")
    done = call("run", policy)
    assert done.exit_code == 0, done.output
    released = pd.read_parquet(tmp_path / "released.parquet")
    assert released["PINCP"].value_counts().min() >= 10
    policy.write_text(text.format(how="exact"), encoding="utf-8")
    done = call("run", policy, "--force")
    assert 'target_values = "group-mean"' in said(done)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--target", "PINCP", "--target-values", "thousands"], "expected exact, group-mean, or round:WIDTH"),
        (["--target", "PINCP", "--target-values", "round:-5"], "expected exact, group-mean, or round:WIDTH"),
        (["--target", "PINCP", "--target-values", "round:0.5"], "expected a whole width"),
        (["--target", "wage", "--target-values", "group-mean"], "with a target of classes: expected a target of num"),
    ],
)
def test_values_of_a_target_that_cannot_be_are_refused(survey_file, given, message):
    done = call("anonymize", survey_file, "--test-fraction", "0", *given)
    assert done.exit_code == 2
    assert message in said(done)
