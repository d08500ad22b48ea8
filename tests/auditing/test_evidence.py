# SPDX-License-Identifier: Apache-2.0
"""A pack of evidence: complete, without records, the same bytes again, and every change of a file is noticed."""

import io
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato
from report.audits import HOSTILE
from sfumato import GuaranteeError, InputError, ParameterError, Policy, evidence, verify_evidence
from sfumato.auditing.verify_evidence import MANIFEST
from sfumato.files.packs import pack as packed
from sfumato.files.packs import unpack
from sfumato.report.questionnaires import NAMES
from sfumato.report.schema import audit_schema

POLICY = """\
version = 1

[data]
file = "people.csv"
release = "released.csv"
artifact = "partition.json"

[columns]
sensitive = ["ill"]

[method]
name = "mondrian"
k = 5

[context]
purpose = "research"
"""


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 90, n),
            "height": draw.normal(170, 10, n).round(1),
            "town": draw.choice(["Ulm", "Bonn", "Kiel"], n),
            "ill": draw.choice(["flu", "gout"], n),
        }
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder in which a policy was run; copy it, and change the copy."""
    folder = tmp_path_factory.mktemp("finished")
    people().to_csv(folder / "people.csv", index=False)
    (folder / "policy.toml").write_text(POLICY)
    sfumato.run(folder / "policy.toml")
    return folder


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    shutil.copytree(finished, tmp_path / "work")
    return tmp_path / "work"


def entries_of(path: Path) -> dict[str, bytes]:
    return unpack(path.read_bytes(), path.name)


def make(folder: Path, name: str = "pack.zip", **settings: object) -> Path:
    return evidence(folder / "policy.toml", folder / name, date="2026-11-18", **settings).path


# -- what is in a pack ---------------------------------------------------------------------------------------------


def test_a_pack_has_the_documents_and_the_hashes_of_the_run(folder):
    entries = entries_of(make(folder, questionnaires=["hipaa", "edpb"]))
    assert set(entries) == {
        "audit.json", "audit.schema.json", "bom.json", MANIFEST, "policy.toml", "questionnaires.html",
        "questionnaires.json", "readme.txt", "report.html",
    }  # fmt: skip
    assert entries["audit.json"] == (folder / "audit.json").read_bytes()
    assert entries["report.html"] == (folder / "report.html").read_bytes()
    assert entries["policy.toml"] == (folder / "policy.toml").read_bytes()
    assert json.loads(entries["audit.schema.json"]) == audit_schema()
    manifest = json.loads(entries[MANIFEST])
    assert set(manifest["about"]) == {"original", "release", "artifact", "policy"}
    for own in manifest["about"].values():
        assert own["sha256"] == digest(folder / own["file"])
    assert manifest["date"] == "2026-11-18" and set(manifest["entries"]) == set(entries) - {MANIFEST}
    asked = json.loads(entries["questionnaires.json"])["questionnaires"]
    assert [own["name"] for own in asked] == ["edpb", "hipaa"]


def digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_bill_of_materials_has_what_is_installed_and_used(folder):
    bill = json.loads(entries_of(make(folder))["bom.json"])
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    from importlib.metadata import version

    found = {own["name"]: own["version"] for own in bill["components"]}
    core = ("numpy", "scipy", "scikit-learn", "numba", "narwhals", "pyarrow", "typer", "rich")
    assert {name: found[name] for name in core} == {name: version(name) for name in core}
    assert "joblib" in found and not {"pytest", "ruff", "mypy", "hypothesis"} & set(found)
    references = {own["bom-ref"] for own in (*bill["components"], bill["metadata"]["component"])}
    assert {own["ref"] for own in bill["dependencies"]} == references
    assert all(set(own["dependsOn"]) <= references for own in bill["dependencies"])


def test_the_same_files_give_the_same_bytes_but_for_the_date(folder, monkeypatch):
    first = make(folder, "a.zip", questionnaires=NAMES).read_bytes()
    assert make(folder, "b.zip", questionnaires=list(reversed(NAMES))).read_bytes() == first
    later = evidence(folder / "policy.toml", folder / "c.zip", questionnaires=NAMES, date="2026-11-19")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795046400")  # a second of 2026-11-19
    again = evidence(folder / "policy.toml", folder / "d.zip", questionnaires=NAMES)
    assert later.path.read_bytes() == again.path.read_bytes() != first
    old, new = (unpack(content, "") for content in (first, again.path.read_bytes()))
    assert [name for name in old if old[name] != new[name]] == ["bom.json", MANIFEST]


@pytest.mark.parametrize("said", ["yesterday", "99999999999999999999"])
def test_a_date_that_is_none_is_refused(folder, monkeypatch, said):
    with pytest.raises(ParameterError, match="expected a date"):
        evidence(folder / "policy.toml", folder / "pack.zip", date=said)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", said)
    with pytest.raises(ParameterError, match="SOURCE_DATE_EPOCH"):
        evidence(folder / "policy.toml", folder / "pack.zip")


def test_a_run_and_a_policy_of_python_make_packs_too(folder):
    data = {"release": "released.csv", "audit": "audit.json", "report": "report.html"}
    policy = Policy.of(
        data={name: str(folder / f"python-{file}") for name, file in data.items()},
        columns={"sensitive": ["ill"]},
        method={"name": "mondrian", "k": 5},
    )
    done = sfumato.run(policy, table=people())
    first = evidence(done, folder / "a.zip", date="2026-11-18")
    again = evidence(policy, folder / "b.zip", date="2026-11-18")
    assert first.path.read_bytes() == again.path.read_bytes()
    assert entries_of(first.path)["policy.toml"].decode() == policy.to_toml()
    assert verify_evidence(first.path, policy.file("release")).belongs_together


def test_nothing_is_overwritten_or_left_half_written(folder, monkeypatch):
    path = make(folder)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match="exists already"):
        make(folder, questionnaires=["nist"])
    with pytest.raises(ParameterError, match="is the input itself"):
        make(folder, "released.csv", force=True)
    monkeypatch.setattr("sfumato.report.questionnaire_page.questionnaires_page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make(folder, questionnaires=["nist"], force=True)
    assert path.read_bytes() == before and sorted(own.name for own in folder.glob("pack*")) == ["pack.zip"]


# -- no records ----------------------------------------------------------------------------------------------------

CANARIES = (
    "CANARYNAME",
    "8675309",
    "CANARYTOWN",
    "1911-11-11",
    "1911",
    "CANARYJOB",
    "CANARYILL",
    "CANARYKEEP",
    "42421",
)
COMMON = ("Ulmland", "Bonnland", "Kielland", "nursejob", "smithjob", "influenza", "goutiness", "keptA", "keptB")


@pytest.fixture(scope="module")
def with_canaries(tmp_path_factory) -> Path:
    """Every role of a column, each with values of single people; a model, attacks, a holdout and subgroups."""
    folder = tmp_path_factory.mktemp("canaries")
    n, draw = 900, np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "name": [f"CANARYNAME {i}" for i in range(n)],
            "pay": draw.normal(3000, 500, n).round(2),
            "town": draw.choice(["Ulmland", "Bonnland", "Kielland"], n),
            "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(draw.integers(0, 15_000, n), "D"),
            "job": draw.choice(["nursejob", "smithjob"], n),
            "ill": draw.choice(["influenza", "goutiness"], n),
            "kept": draw.choice(["keptA", "keptB"], n),
            "sex": draw.choice(["f", "m"], n),
            "score": draw.integers(0, 60, n),
        }
    )
    table["born"] = table["born"].dt.strftime("%Y-%m-%d")
    # Values that fewer than k people have, in every column, and spread over the table.
    few = slice(0, 700, 100)
    table.loc[few, "town"], table.loc[few, "job"] = "CANARYTOWN", "CANARYJOB"
    table.loc[few, "ill"], table.loc[few, "kept"] = "CANARYILL", "CANARYKEEP"
    table.loc[0, ["pay", "born", "score"]] = [8675309.25, "1911-11-11", 42421]
    table[:700].to_csv(folder / "people.csv", index=False)
    table[700:].to_csv(folder / "others.csv", index=False)
    (folder / "policy.toml").write_text(
        """\
version = 1
[data]
file = "people.csv"
release = "released.csv"
artifact = "partition.json"
publication = "first.publication"
holdout = "others.csv"
[columns]
target = "job"
identifiers = ["name"]
persons = "name"
quasi_identifiers = ["pay", "town", "born", "sex", "score"]
sensitive = ["ill"]
subgroups = ["sex", "town", "score", "born"]
[method]
k = 10
[model]
name = "decision-tree"
[audit]
leave_out = ["network"]
[gate]
min_k = 10
[context]
purpose = "research"
access = "public"
sampling_fraction = 0.01
threshold = 0.2
"""
    )
    sfumato.run(folder / "policy.toml")
    return folder


def test_no_cell_value_is_in_any_file_of_a_pack(with_canaries):
    path = evidence(with_canaries / "policy.toml", with_canaries / "pack.zip", questionnaires=NAMES).path
    entries = entries_of(path)
    assert len(entries) == 9
    subgroups = ("Ulmland", "Bonnland", "Kielland")  # asked for by the policy, and shared by hundreds
    for name, content in entries.items():
        text = content.decode()
        for canary in CANARIES:
            # Digits of a canary may also be some of a longer number's.
            assert not re.search(rf"(?<![0-9a-f.]){canary}(?![0-9a-f])", text), (name, canary)
        for value in COMMON:
            assert value not in text or value in subgroups, (name, value)
    # The canaries are in what was read, and one in what was written: the test could fail.
    assert all(canary in (with_canaries / "people.csv").read_text() for canary in CANARIES)
    assert "CANARYILL" in (with_canaries / "released.csv").read_text()


def test_all_that_a_full_run_finds_is_filled_in(with_canaries):
    path = evidence(with_canaries / "policy.toml", with_canaries / "all.zip", questionnaires=NAMES, force=True).path
    asked = json.loads(entries_of(path)["questionnaires.json"])["questionnaires"]
    filled = {line["text"] for own in asked for question in own["questions"] for line in question["filled"]}
    for part in ("purpose: research", "threshold: 0.2", "No attacker guesses", "prosecutor", "journalist", "SHA-256"):
        assert any(part in line for line in filled), part
    assert all(question["answer"] == "" for own in asked for question in own["questions"])
    assert any(not question["filled"] for own in asked for question in own["questions"])


# -- changes are noticed -------------------------------------------------------------------------------------------


def test_a_pack_and_its_release_belong_together(folder):
    found = verify_evidence(make(folder), folder / "released.csv", others=[folder / "partition.json"])
    assert found.belongs_together and found.smallest_group >= 5 and found.n_records == 300
    assert [check.name for check in found.checks] == ["pack", "audit", "policy", "release", "artifact", "groups", "k"]


@pytest.mark.parametrize("file", ["released.csv", "partition.json", "policy.toml"])
def test_a_file_that_changed_since_the_run_makes_no_pack(folder, file):
    (folder / file).write_text((folder / file).read_text() + "\n")
    with pytest.raises(GuaranteeError, match="has changed since the run"):
        make(folder)
    assert not (folder / "pack.zip").exists()


@pytest.mark.parametrize("file", ["released.csv", "partition.json", "audit.json"])
def test_a_file_that_is_gone_makes_no_pack(folder, file):
    (folder / file).unlink()
    with pytest.raises(InputError, match="is not there"):
        make(folder)


@pytest.mark.parametrize("file", ["released.csv", "partition.json", "policy.toml", "people.csv"])
def test_a_file_that_changed_after_the_pack_is_noticed(folder, file):
    path = make(folder)
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace("5", "6", 1) if file == "policy.toml" else text.replace("1", "2", 1))
    found = verify_evidence(path, folder / "released.csv", others=[] if file == "released.csv" else [folder / file])
    assert not found.belongs_together
    wrong = [check.name for check in found.checks if not check.holds]
    assert "release" in wrong if file == "released.csv" else wrong == ["file"]


def test_an_original_that_changed_is_told_and_the_pack_keeps_the_hash_of_the_run(folder):
    original = digest(folder / "people.csv")
    (folder / "people.csv").write_text("age\n1\n")
    with pytest.warns(sfumato.PrivacyWarning, match="has changed since the run"):
        path = make(folder)
    assert json.loads(entries_of(path)[MANIFEST])["about"]["original"]["sha256"] == original


def test_versions_that_differ_from_those_of_the_run_are_told(folder, monkeypatch):
    monkeypatch.setattr("sfumato.auditing.pipeline.versions", lambda: {"numpy": "0.1"})
    with pytest.warns(sfumato.PrivacyWarning, match="other versions of numpy"):
        make(folder)


def test_a_release_with_smaller_groups_is_counted(folder):
    path = make(folder)
    rows = (folder / "released.csv").read_text().splitlines()
    alone = rows[1].split(",")
    alone[0] = "999"
    (folder / "released.csv").write_text("\n".join([*rows, ",".join(alone)]) + "\n")
    found = verify_evidence(path, folder / "released.csv")
    assert found.smallest_group == 1
    assert {check.name for check in found.checks if not check.holds} == {"release", "groups", "k"}


def test_numbers_that_are_written_differently_are_different_groups(folder):
    # A reader that took 41 and 41.0 for one value would count larger groups than the file shows.
    path, file = make(folder), folder / "released.csv"
    lines = file.read_text().splitlines()
    age = lines[1].split(",")[0]
    changed = [lines[0], lines[1].replace(age, f"{age}.0", 1), *lines[2:]]
    file.write_text("\n".join(changed) + "\n")
    assert verify_evidence(path, file).smallest_group == 1


@pytest.mark.parametrize(
    "entry", ["audit.json", "policy.toml", "report.html", "bom.json", "readme.txt", "audit.schema.json"]
)
def test_a_pack_in_which_a_file_was_changed_is_noticed(folder, entry):
    path = make(folder)
    entries = entries_of(path)
    entries[entry] = (
        entries[entry].replace(b"research", b"Research") if entry == "policy.toml" else entries[entry] + b" "
    )
    path.write_bytes(packed(entries))
    found = verify_evidence(path, folder / "released.csv")
    assert not found.belongs_together and "pack" in {check.name for check in found.checks if not check.holds}


def test_a_manifest_that_was_changed_with_its_entry_is_noticed_by_the_audit(folder):
    import hashlib

    path = make(folder)
    entries = entries_of(path)
    manifest = json.loads(entries[MANIFEST])
    entries["policy.toml"] += b"\n"
    manifest["entries"]["policy.toml"] = hashlib.sha256(entries["policy.toml"]).hexdigest()
    manifest["about"]["release"]["sha256"] = "0" * 64
    path.write_bytes(packed({**entries, MANIFEST: json.dumps(manifest).encode()}))
    found = verify_evidence(path, folder / "released.csv")
    assert {check.name for check in found.checks if not check.holds} == {"audit", "policy", "release"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda entries: entries.pop(MANIFEST), "has no manifest.json"),
        (lambda entries: entries.pop("audit.json"), "has no audit.json"),
        (lambda entries: entries.update({MANIFEST: b"[]"}), "not one object"),
        (lambda entries: entries.update({MANIFEST: b'{"format": "other"}'}), "whose part format"),
        (lambda entries: entries.update({"audit.json": b"{}"}), "expected version 2"),
    ],
)
def test_what_is_no_pack_is_refused(folder, change, words):
    path = make(folder)
    entries = entries_of(path)
    change(entries)
    path.write_bytes(packed(entries))
    with pytest.raises(InputError, match=words):
        verify_evidence(path, folder / "released.csv")


def test_another_table_is_refused_in_words(folder):
    path = make(folder)
    (folder / "other.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InputError, match="has no column 'age'"):
        verify_evidence(path, folder / "other.csv")
    with pytest.raises(InputError, match="is not there"):
        verify_evidence(folder / "absent.zip", folder / "released.csv")


# -- signatures ----------------------------------------------------------------------------------------------------


@pytest.fixture
def key(tmp_path) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen: OpenSSH is not installed")
    path = tmp_path / "officer"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def test_a_signed_pack_is_verified_with_the_public_key(folder, key):
    made = evidence(folder / "policy.toml", folder / "pack.zip", key=key)
    assert made.signature == folder / "pack.zip.sig"
    public = key.with_suffix(".pub")
    assert verify_evidence(made.path, folder / "released.csv", key=public).belongs_together
    made.path.write_bytes(packed(entries_of(made.path) | {"x": b""}))
    wrong = [c.name for c in verify_evidence(made.path, folder / "released.csv", key=public).checks if not c.holds]
    assert wrong == ["pack", "signature"]
    made.signature.unlink()
    assert not verify_evidence(made.path, folder / "released.csv", key=public).checks[-1].holds


def test_a_key_that_cannot_sign_writes_nothing(folder, tmp_path):
    (tmp_path / "bad").write_text("no key")
    with pytest.raises(ParameterError, match="key"):
        evidence(folder / "policy.toml", folder / "pack.zip", key=tmp_path / "bad")
    assert not list(folder.glob("pack*"))


# -- runs without evidence, and releases of other kinds ------------------------------------------------------------


def test_a_policy_that_was_not_run_or_failed_its_gate_has_no_evidence(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.toml").write_text(POLICY + "[gate]\nmax_risk = 0.01\n")
    with pytest.raises(InputError, match="Run the policy first"):
        evidence(tmp_path / "policy.toml", tmp_path / "pack.zip")
    assert sfumato.run(tmp_path / "policy.toml", keep_report=True).passed is False
    with pytest.raises(InputError, match="no written release"):
        evidence(tmp_path / "policy.toml", tmp_path / "pack.zip")


def test_a_release_with_epsilon_has_evidence_without_a_hash_of_its_original(tmp_path):
    others, own = people(600, seed=1), people(400, seed=2)
    known = ["age", "height", "town"]
    anonymizer = sfumato.MondrianAnonymizer(k=30, quasi_identifiers=known).fit(others[known])
    anonymizer.partition_.save(tmp_path / "partition.json")
    own[[*known, "ill"]].to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.toml").write_text(
        """\
version = 1
[data]
file = "people.csv"
release = "released.csv"
[columns]
target = "ill"
[privacy]
mechanism = "counts"
epsilon = 1.0
partition = "partition.json"
labels = ["flu", "gout"]
fitted_on = "others"
ledger = "ledger.json"
[context]
purpose = "open data"
review_by = "2099-01-31"
"""
    )
    done = sfumato.run(tmp_path / "policy.toml")
    assert done.audit.privacy["epsilon"] == 1.0 and done.audit.privacy["ledger"]["n_releases"] == 1
    made = evidence(tmp_path / "policy.toml", tmp_path / "pack.zip", questionnaires=["nist"])
    # A hash of the records is a function of them without noise.
    assert set(made.manifest["about"]) == {"release", "policy"}
    found = verify_evidence(made.path, tmp_path / "released.csv")
    assert found.belongs_together and "k" not in {check.name for check in found.checks}
    asked = json.loads(entries_of(made.path)["questionnaires.json"])["questionnaires"][0]["questions"]
    texts = [line["text"] for question in asked for line in question["filled"]]
    assert any(text.startswith("Epsilon 1, delta 0, for one record") for text in texts)


def test_releases_in_parquet_and_with_ranges_are_counted_by_their_released_columns(tmp_path):
    people().to_parquet(tmp_path / "people.parquet")
    text = POLICY.replace(".csv", ".parquet") + '[titles]\nage = "Age"\n'
    (tmp_path / "policy.toml").write_text(text.replace("k = 5", 'k = 5\nrepresentative = "bounds"'))
    done = sfumato.run(tmp_path / "policy.toml")
    assert "age_low" in done.audit.grouped_by
    path = evidence(tmp_path / "policy.toml", tmp_path / "pack.zip").path
    assert verify_evidence(path, tmp_path / "released.parquet").belongs_together


def test_groups_that_are_counted_in_persons_are_verified_in_records(tmp_path):
    table = people().assign(person=np.arange(300) // 2)
    table.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.toml").write_text(POLICY.replace("[columns]", '[columns]\nunit = "person"'))
    sfumato.run(tmp_path / "policy.toml")
    found = verify_evidence(evidence(tmp_path / "policy.toml", tmp_path / "pack.zip").path, tmp_path / "released.csv")
    assert found.belongs_together and "it counts persons" in found.checks[-1].sentence


# -- hostile names -------------------------------------------------------------------------------------------------


def test_hostile_names_are_harmless(tmp_path):
    folder = tmp_path / "..%2f & <b>'\" \u202e"
    folder.mkdir()
    columns = ["<script>document.title='gotcha'</script>", "=cmd|' /C calc'!A0", "../../etc/passwd", "a\u202eb"]
    table = people().iloc[:, [0, 1, 0, 1]]
    table.columns = columns
    table = table.assign(**{"\"'><img src=x onerror=alert(1)>": people()["ill"]})
    table.to_csv(folder / "=people & <i>.csv", index=False)
    hostile = " ".join(HOSTILE)
    policy = Policy.of(
        data={
            "file": str(folder / "=people & <i>.csv"),
            "release": str(folder / "re\u2066leased<svg onload=alert(1)>.csv"),
            "audit": str(folder / "audit.json"),
            "report": str(folder / "report.html"),
        },
        columns={"quasi_identifiers": columns, "sensitive": ["\"'><img src=x onerror=alert(1)>"]},
        method={"name": "mondrian", "k": 5},
        context=dict.fromkeys(("purpose", "recipient", "population", "reviewer"), hostile),
    )
    with pytest.warns(sfumato.PrivacyWarning, match="for formulas"):
        sfumato.run(policy)
    made = evidence(policy, folder / "pack \u202e <b>.zip", questionnaires=NAMES)
    entries = entries_of(made.path)
    with zipfile.ZipFile(io.BytesIO(made.path.read_bytes())) as archive:
        assert all("/" not in name and ".." not in name and name.isascii() for name in archive.namelist())
    for name in ("report.html", "questionnaires.html"):
        html = entries[name].decode()
        assert "<script" not in html and "<img" not in html and "\u202e" not in html and "\u2066" not in html
        assert "<svg onload" not in html and "gotcha" in html
    for name in ("audit.json", MANIFEST, "questionnaires.json", "bom.json"):
        json.loads(entries[name])
    assert verify_evidence(made.path, policy.file("release")).belongs_together


@pytest.mark.parametrize("content", [*(name for name in ("report.html", "questionnaires.html", "readme.txt"))])
def test_nothing_in_a_pack_says_that_a_rule_is_met(with_canaries, content):
    path = evidence(with_canaries / "policy.toml", with_canaries / "words.zip", questionnaires=NAMES, force=True).path
    text = entries_of(path)[content].decode().lower()
    for word in ("compliant", "complies", "compliance", "certified by", "is anonymous", "are anonymous"):
        assert word not in text


def test_an_unknown_questionnaire_is_refused(folder):
    with pytest.raises(ParameterError, match="expected some of edpb, iso27559"):
        make(folder, questionnaires=["gdpr"])
