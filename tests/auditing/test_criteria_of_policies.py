# SPDX-License-Identifier: Apache-2.0
"""A run enforces the criteria of its policy, counts them again on the file and prints them as guarantees."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato
from sfumato.auditing.methods import promise_of
from sfumato.criteria import CRITERIA, BetaLikeness
from sfumato.errors import GuaranteeError, InputError
from sfumato.files.verified_output import check_holds, recount
from sfumato.policy.criteria import settings_of

COLUMNS = {"quasi_identifiers": ["age", "town"], "sensitive": ["illness"], "keep": ["illness"]}


@pytest.fixture
def people() -> pa.Table:
    random = np.random.default_rng(0)
    n = 400
    return pa.table(
        {
            "age": random.integers(20, 60, n),
            "town": random.choice(["A", "B", "C"], n),
            "illness": random.choice(["cold", "flu", "none"], n, p=[0.3, 0.3, 0.4]),
        }
    )


ENTRIES = {
    name: dict(kind.facts.example) | ({"column": "illness"} if "column" in settings_of(name) else {})
    for name, kind in CRITERIA.items()
}
ENTRIES["l-diversity"] = {"l": 2.2, "column": "illness", "kind": "entropy"}
ENTRIES["t-closeness"] |= {"distance": "ordered", "order": ["none", "cold", "flu"]}


def run(folder: Path, people: pa.Table, entries: list[dict], **method):
    pyarrow.csv.write_csv(people, folder / "people.csv")
    pyarrow.csv.write_csv(pa.concat_tables([people, people]), folder / "all.csv")
    policy = sfumato.Policy.of(
        data={"file": str(folder / "people.csv"), "release": str(folder / "out.csv"), "audit": str(folder / "a.json"),
              "report": str(folder / "r.md")},
        columns=COLUMNS, method={"name": "mondrian", "k": 5, **method}, criteria=entries, audit={"level": "none"},
    )  # fmt: skip
    return sfumato.run(policy)


def groups_of(folder: Path):
    import pandas as pd

    frame = pd.read_csv(folder / "out.csv", keep_default_na=False)
    return frame, frame.groupby(["age", "town"])["illness"]


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_is_enforced_and_told(tmp_path: Path, people: pa.Table, name: str):
    entry = {"name": name, **ENTRIES[name]}
    if name == "delta-presence":
        entry["population"] = str(tmp_path / "all.csv")
    done = run(tmp_path, people, [entry])
    assert len(done.audit.guarantees) == 2
    assert done.audit.guarantees[1] in (tmp_path / "r.md").read_text(encoding="utf-8")
    assert done.audit.guarantees[1] in json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["guarantees"]


def test_beta_likeness_holds_on_the_file_by_plain_counting(tmp_path: Path, people: pa.Table):
    run(tmp_path, people, [{"name": "beta-likeness", "beta": 0.5, "column": "illness"}])
    frame, groups = groups_of(tmp_path)
    usual = frame["illness"].value_counts(normalize=True)
    for _, illness in groups:
        shares = illness.value_counts(normalize=True)
        assert all(shares[value] <= 1.5 * usual[value] + 1e-9 for value in shares.index)


def test_a_criterion_changes_the_groups(tmp_path: Path, people: pa.Table):
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    run(tmp_path / "with", people, [{"name": "k-anonymity", "k": 40}])
    run(tmp_path / "without", people, [])
    sizes = [groups_of(tmp_path / part)[1].size().min() for part in ("with", "without")]
    assert sizes[0] >= 40 > sizes[1]


def test_distances_along_a_hierarchy_file_are_kept(tmp_path: Path, people: pa.Table):
    (tmp_path / "illness.csv").write_text("cold;ill;*\nflu;ill;*\nnone;well;*\n", encoding="utf-8")
    entry = {"name": "t-closeness", "t": 0.2, "column": "illness", "distance": "hierarchical"}
    done = run(tmp_path, people, [{**entry, "hierarchy": str(tmp_path / "illness.csv")}])
    assert "hierarchical distance 0.2" in done.audit.guarantees[1]


def test_a_hierarchy_file_that_does_not_exist_is_refused(tmp_path: Path, people: pa.Table):
    entry = {"name": "t-closeness", "t": 0.2, "column": "illness", "distance": "hierarchical", "hierarchy": "no.csv"}
    with pytest.raises(InputError, match=r"\[\[criteria\]\] hierarchy = 'no.csv': no file 'no.csv'"):
        run(tmp_path, people, [entry])


def test_a_criterion_with_a_unit_counts_persons(tmp_path: Path, people: pa.Table):
    with_person = people.append_column("person", pa.array(np.arange(400) // 2))
    policy = sfumato.Policy.of(
        columns={**COLUMNS, "unit": "person"}, method={"name": "mondrian", "k": 5}, audit={"level": "none"},
        criteria=[{"name": "k-anonymity", "k": 9, "unit": "person"}],
    )  # fmt: skip
    done = sfumato.run(policy, table=with_person)
    assert "every group has at least 9 different persons" in done.audit.guarantees


def test_a_file_that_breaks_a_criterion_is_not_kept():
    table = pa.table({"age": [1, 1, 2, 2], "illness": ["a", "a", "a", "b"]})
    counted = recount(table, ["age"], 2, promises=[promise_of(BetaLikeness(0.5, "illness"))])
    assert not counted.holds
    assert counted.to_dict()["criteria"][0]["n_failing"] == 1
    with pytest.raises(GuaranteeError, match="beta-likeness does not hold for 'illness'"):
        check_holds(counted, "the written file")


@pytest.mark.parametrize("missing", ["value", "suppress"])
def test_missing_values_are_counted_as_the_criterion_says(tmp_path: Path, people: pa.Table, missing: str):
    illness = pa.array([None if at % 7 == 0 else one for at, one in enumerate(people["illness"].to_pylist())])
    gaps = people.set_column(2, "illness", illness)
    run(tmp_path, gaps, [{"name": "delta-disclosure", "delta": 2.0, "column": "illness", "missing": missing}])
