# SPDX-License-Identifier: Apache-2.0
"""Releases with a mechanism: only noisy counts of the cells reach them, and what the promise needs is checked."""

import datetime
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from sfumato import (
    AnonymizedClassifier,
    FullDomainAnonymizer,
    HilbertAnonymizer,
    InputError,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    ParameterError,
    Partition,
    PrivacyLedger,
)
from sfumato.anonymize import private_release
from sfumato.anonymize.private_release import PrivateSettings, release_privately
from sfumato.fingerprints import Overlap
from sfumato.frames import read_table
from sfumato.private.sampling_delta import exact_delta, smallest_k
from twins.seeded_noise import NoNoise, SeededNoise

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")

LABELS = ["no", "yes"]


def people(n, seed, *, start=0):
    """Return records that equal no others by chance, so that fingerprints can tell."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "job": pd.Categorical(random.choice(["cook", "nurse", "smith"], n)),
            "city": random.choice(["Bari", "Rome"], n),
            "pay": (start + random.random(n)).round(6),
        }
    )


def labels_of(frame):
    return np.where(frame["age"] > 50, "yes", "no")


@pytest.fixture
def others():
    return people(400, 0)


@pytest.fixture
def table():
    return people(300, 1)


@pytest.fixture
def anonymizer(others):
    return MondrianAnonymizer(k=20).fit(others)


def release(anonymizer, table, y=None, *, noise=None, **settings):
    """Release with a known noise."""
    asked = PrivateSettings(**{"mechanism": "counts", "epsilon": 1.0, "fitted_on": "others"} | settings)
    return release_privately(anonymizer.partition_, table, read_table(table), y, asked, noise=noise)


def test_only_counts_of_cells_and_labels_are_released(anonymizer, table):
    y = labels_of(table)
    made = release(anonymizer, table, y, labels=LABELS, noise=NoNoise())
    expected = Counter(zip(map(tuple, anonymizer.transform(table).astype(str).to_numpy()), y, strict=True))
    found = Counter(zip(map(tuple, made.table.astype(str).to_numpy()), made.target, strict=True))
    assert found == expected
    assert made.measures["n_records"] == len(made.table) == len(made.target) == 300
    assert made.measures["n_cells"] == anonymizer.n_groups_
    assert made.publication is None


def test_noise_goes_to_every_cell_and_label_and_is_clipped(anonymizer, table):
    class OneMore:
        def geometric(self, epsilon, size):
            self.asked = epsilon, size
            return np.where(np.arange(size) % 2, 1, -1000)

    noise = OneMore()
    made = release(anonymizer, table, labels_of(table), labels=LABELS, noise=noise)
    assert noise.asked == (1.0, 2 * anonymizer.n_groups_)
    assert set(made.target) == {"yes"}  # 1,000 fewer of each "no"
    filled = release(anonymizer, table.iloc[:1], noise=SeededNoise(0), ledger=PrivacyLedger())
    assert len(filled.table) > 5  # empty cells have noise, too


def test_equal_counts_give_equal_releases_whatever_the_records_are(anonymizer, table):
    cell = anonymizer.partition_.apply(table)
    moved = table.copy()
    first = {group: np.flatnonzero(cell == group)[0] for group in np.unique(cell)}
    for row, group in enumerate(cell):  # every record becomes the first one of its cell
        moved.iloc[row] = table.iloc[first[group]]
    assert not moved.equals(table)

    def released(frame):
        made = release(anonymizer, frame, noise=SeededNoise(5), ledger=PrivacyLedger())
        return sorted(map(tuple, made.table.astype(str).to_numpy())), made.table.dtypes.tolist(), made.measures

    assert released(moved) == released(table)


def test_types_come_from_the_partition_and_not_from_the_records(anonymizer, table):
    missing = table.copy()
    missing["age"] = missing["age"].astype(float)
    missing.loc[0, "age"] = np.nan  # pandas: floats, as soon as one value is missing
    listed = table.copy()
    listed["job"] = table["job"].cat.add_categories(["astronaut"])
    plain = release(anonymizer, table, ledger=PrivacyLedger()).table
    for frame in (missing, listed):
        made = release(anonymizer, frame, ledger=PrivacyLedger()).table
        assert made.dtypes.tolist() == plain.dtypes.tolist()
    assert plain["age"].dtype == np.int64
    assert set(plain["job"].cat.categories) <= {"cook", "nurse", "smith"}


def test_rows_are_shuffled(anonymizer, table):
    made = release(anonymizer, table, noise=NoNoise())
    again = release(anonymizer, table, noise=NoNoise(), ledger=PrivacyLedger())
    assert not made.table.equals(again.table)
    assert made.table.index.equals(pd.RangeIndex(300))


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "numpy", "labelled"])
def test_every_kind_of_frame_comes_back(kind):
    def frame(n, seed):
        given = people(n, seed)[["age", "pay"]] if kind == "numpy" else people(n, seed)
        if kind == "polars":
            return pl.from_pandas(given)
        if kind == "pyarrow":
            return pa.Table.from_pandas(given, preserve_index=False)
        return given.to_numpy() if kind == "numpy" else given.set_axis([7, 8, 9, 10], axis=1)

    anonymizer = MondrianAnonymizer(k=20).fit(frame(400, 0))
    made = anonymizer.release(frame(300, 1), mechanism="counts", epsilon=1.0, fitted_on="others")
    assert type(made.table) is type(frame(3, 1))
    if kind != "numpy":
        assert list(read_table(made.table).names) == list(read_table(frame(3, 1)).names)
    if kind == "labelled":
        assert list(made.table.columns) == [7, 8, 9, 10]
    assert len(made.table) == made.measures["n_records"]


def test_moments_ranges_and_bounds_are_written():
    days = [datetime.date(2000, 1, 1) + datetime.timedelta(days=int(d)) for d in range(400)]
    frame = pa.table({"born": days, "age": [18 + d % 70 for d in range(400)]})
    later = pa.table({"born": days[200:], "age": [20 + d % 60 for d in range(200)]})
    for representative in ("phantom", "range", "bounds"):
        anonymizer = MondrianAnonymizer(k=50, representative=representative).fit(frame)
        made = anonymizer.release(later, mechanism="counts", epsilon=1.0, fitted_on="others")
        assert made.table.num_rows == made.measures["n_records"]
        if representative == "bounds":
            assert made.table.column_names == ["born_low", "born_high", "age_low", "age_high"]
        else:
            assert made.table.column_names == ["born", "age"]
            assert (made.table.schema.field("born").type == pa.date32()) == (representative == "phantom")


@pytest.mark.parametrize("made_by", [ModelGuidedAnonymizer, HilbertAnonymizer])
def test_other_partitions_can_be_released(made_by, others, table):
    anonymizer = made_by(k=20).fit(others, labels_of(others))
    made = anonymizer.release(table, mechanism="counts", epsilon=1.0, fitted_on="others")
    assert made.privacy.epsilon == 1.0
    with pytest.raises(ParameterError, match="whose levels are chosen by the released records"):
        FullDomainAnonymizer(k=20).fit(others).release(table, mechanism="counts", epsilon=1.0)


def test_values_can_be_drawn_from_regions_of_the_other_people(others, table):
    classifier = AnonymizedClassifier(DecisionTreeClassifier(), k=20, random_state=0)
    classifier.fit(others[["age", "pay"]], labels_of(others))
    anonymizer, people = classifier.anonymizer_, table[["age", "pay"]]
    y = labels_of(people)

    def released(**settings):
        asked = {"mechanism": "counts", "epsilon": 1.0, "fitted_on": "others", "ledger": PrivacyLedger()}
        return anonymizer.release(people, y, **asked | {"labels": LABELS} | settings)

    made = released(regions=classifier.regions_)
    points = released()
    assert made.table["age"].nunique() > points.table["age"].nunique()
    assert list(made.table.columns) == ["age", "pay"]
    assert set(made.table["age"]) <= set(others["age"])
    # Labels that are listed in another order get the values of their own people.
    turned = released(regions=classifier.regions_, labels=LABELS[::-1])
    for own in (made, turned):
        ages = own.table["age"].to_numpy()
        assert ages[own.target == "yes"].mean() > ages[own.target == "no"].mean() + 15
    assert points.partition is None
    with pytest.raises(ParameterError, match="expected those of the fitted estimator"):
        released(regions="regions")
    with pytest.raises(ParameterError, match="groups and 2 labels for a partition of"):
        released(regions=classifier.regions_, labels=[*LABELS, "perhaps"])
    # As many labels, and others: a model would answer the labels of the other people.
    y = np.where(y == "yes", "high", "low")
    with pytest.raises(ParameterError, match="regions of other labels than the 2 of the release"):
        released(regions=classifier.regions_, labels=["low", "high"])


def test_a_model_learns_from_regions_with_the_released_counts(others, table):
    classifier = AnonymizedClassifier(DecisionTreeClassifier(random_state=0), k=20, random_state=0)
    classifier.fit(others[["age", "pay"]], labels_of(others))
    people = table[["age", "pay"]]
    y, labels = labels_of(people), LABELS[::-1]  # listed in another order than the regions'
    asked = PrivateSettings("counts", 1.0, labels=labels, fitted_on="others", regions=classifier.regions_)
    partition = classifier.anonymizer_.partition_
    made = release_privately(partition, people, read_table(people), y, asked, noise=NoNoise())
    regions = made.partition.regions
    counted = Counter(zip(partition.apply(people), y, strict=True))
    told = [[counted[group, label] for label in sorted(labels)] for group in range(partition.n_groups)]
    np.testing.assert_array_equal(regions.target.n_in_class, told)
    np.testing.assert_array_equal(regions.sizes, np.sum(told, axis=1))
    assert made.partition.fingerprints is None and partition.fingerprints is not None
    model = AnonymizedClassifier(DecisionTreeClassifier(max_depth=2), random_state=0)
    assert model.fit_partition(made.partition, frame=people).score(people, y) > 0.8
    # Cells without anybody are drawn for nobody.
    few = people[people["age"] > 50]
    asked = replace(asked, ledger=PrivacyLedger())
    made = release_privately(partition, few, read_table(few), y[people["age"] > 50], asked, noise=NoNoise())
    assert (made.partition.regions.sizes == 0).any()
    drawn = made.partition.regions.draw(np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(drawn.group, minlength=partition.n_groups), made.partition.regions.sizes)


# -- samples ---------------------------------------------------------------------------------------------------------


def test_a_sample_drops_rare_combinations_and_says_its_delta(anonymizer, table):
    y = labels_of(table)
    made = release(anonymizer, table, y, mechanism="sample", rate=0.5, k=5)
    seen = Counter(zip(map(tuple, made.table.astype(str).to_numpy()), made.target, strict=True))
    assert min(seen.values()) >= 5
    assert 0 < len(made.table) < 220
    assert made.privacy.delta == exact_delta(1.0, 0.5, 5)
    assert "a sample of 0.5 of the records" in made.privacy.mechanism


def test_the_type_of_labels_tells_nothing_of_those_that_were_dropped(anonymizer, table):
    y = labels_of(table)
    rare = np.array([*y[:-1], "a rare illness"])
    for given in (y, rare):
        made = release(anonymizer, table, given, mechanism="sample", rate=0.5, k=5, ledger=PrivacyLedger())
        assert made.target.dtype == np.dtype(f"<U{max(map(len, made.target))}")
        assert "a rare illness" not in made.target


def test_a_delta_finds_its_k(anonymizer, table):
    settings = PrivateSettings("sample", 1.0, delta=1e-3, rate=0.1, fitted_on="others").checked()
    assert settings.k == smallest_k(1.0, 1e-3, 0.1)
    assert settings.delta <= 1e-3
    with pytest.raises(ParameterError, match="neither k nor delta"):
        release(anonymizer, table, mechanism="sample", rate=0.1)
    with pytest.raises(ParameterError, match="rate=None: expected a number above 0"):
        release(anonymizer, table, mechanism="sample", k=5)
    with pytest.raises(ParameterError, match="rate with mechanism='counts'"):
        release(anonymizer, table, rate=0.1)


# -- persons ---------------------------------------------------------------------------------------------------------


def test_records_of_a_person_are_capped_and_the_noise_grows(anonymizer, table):
    class Asked(NoNoise):
        def geometric(self, epsilon, size):
            self.epsilon = epsilon
            return super().geometric(epsilon, size)

    table = table.assign(person=np.arange(300) // 10)
    noise = Asked()
    made = release(anonymizer, table, unit="person", most_per_person=3, noise=noise)
    assert len(made.table) == 30 * 3
    assert noise.epsilon == 1.0 / 3
    assert made.privacy.unit == "person"
    assert "person" not in made.table.columns
    assert not any("every person has one record" in sentence for sentence in made.privacy.rests_on)


def test_the_unit_need_not_be_known_when_fitting(anonymizer, table):
    table = table.assign(person=np.arange(300) // 10)
    settings = {"mechanism": "counts", "epsilon": 20.0, "fitted_on": "others"}
    made = anonymizer.release(table, unit="person", most_per_person=2, **settings)
    assert 0 < len(made.table) < 100  # 60 records count
    with pytest.raises(InputError, match="column 'person' is not rewritten"):
        anonymizer.release(table, ledger=PrivacyLedger(), **settings)


def test_bad_persons_are_explained(anonymizer, table):
    table = table.assign(person=np.arange(300.0))
    with pytest.raises(ParameterError, match="unit='person' without most_per_person"):
        release(anonymizer, table, unit="person")
    with pytest.raises(ParameterError, match="most_per_person=2 without unit"):
        release(anonymizer, table.drop(columns="person"), most_per_person=2)
    with pytest.raises(ParameterError, match="whose delta is for one record"):
        release(anonymizer, table, unit="person", most_per_person=2, mechanism="sample", rate=0.1, k=5)
    with pytest.raises(ParameterError, match="is a quasi-identifier of the partition"):
        release(anonymizer, table.drop(columns="person"), unit="age", most_per_person=1)
    table.loc[3, "person"] = np.nan
    with pytest.raises(InputError, match="column 'person' has missing values"):
        release(anonymizer, table, unit="person", most_per_person=1)


# -- conditions ------------------------------------------------------------------------------------------------------


def test_columns_outside_the_cells_are_refused(anonymizer, table):
    with pytest.raises(InputError, match="column 'note' is not rewritten by the partition"):
        release(anonymizer, table.assign(note="x"))
    sometimes = MondrianAnonymizer(k=20, quasi_identifiers=["age", "job", "city"], keep=["pay"]).fit(people(400, 0))
    with pytest.raises(InputError, match="column 'pay' is not rewritten"):
        sometimes.release(table, mechanism="counts", epsilon=1.0, fitted_on="others")


def test_a_partition_of_the_same_people_is_refused(anonymizer, others):
    with pytest.raises(InputError, match="the table to release has 400 records, of which about 100% were used"):
        anonymizer.release(others, mechanism="counts", epsilon=1.0)
    with pytest.raises(InputError, match="were used to make the artifact"):
        anonymizer.release(others.iloc[:200], mechanism="counts", epsilon=1.0, fitted_on="others")


def test_a_partition_of_a_few_of_the_people_is_refused(anonymizer, others):
    """One person in 126 is too few to be seen among those of the table, but all of the partition's are there."""
    every = pd.concat([people(50_000, 5, start=1), others], ignore_index=True).sample(frac=1.0, random_state=0)
    for stated in (None, "others"):
        with pytest.raises(InputError, match="has about 100% of the 400 records that the artifact was made from"):
            anonymizer.release(every, mechanism="counts", epsilon=1.0, fitted_on=stated)


def test_a_partition_of_whom_a_quarter_is_there_is_refused(anonymizer, others):
    every = pd.concat([people(50_000, 5, start=1), others.iloc[:100]], ignore_index=True)
    with pytest.raises(InputError, match="has about 25% of the 400 records that the artifact was made from"):
        anonymizer.release(every, mechanism="counts", epsilon=1.0)
    anonymizer.release(every.iloc[:50_000], mechanism="counts", epsilon=1.0)


@pytest.mark.parametrize(
    "written",
    [
        lambda frame: frame.sample(frac=1.0, random_state=1)[frame.columns[::-1]],
        lambda frame: frame.astype({"age": float, "pay": "float32", "job": str}),
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        lambda frame: frame.iloc[::7],
        lambda frame: pd.concat([frame] * 3),
    ],
    ids=["reordered", "other types", "another frame", "a subset", "repeated"],
)
def test_the_same_people_are_refused_however_they_are_written(anonymizer, others, written):
    with pytest.raises(InputError, match=r"made from|were used to make"):
        anonymizer.release(written(others), mechanism="counts", epsilon=1.0, fitted_on="others")


def test_other_people_of_the_same_kind_are_not_refused():
    """Coarse records equal others by chance, more often in a larger table."""
    coarse = [people(n, seed)[["age", "job", "city"]] for n, seed in ((300, 0), (20_000, 1))]
    anonymizer = MondrianAnonymizer(k=20).fit(coarse[0])
    assert anonymizer.release(coarse[1], mechanism="counts", epsilon=1.0, fitted_on="others").privacy


def test_fingerprints_or_a_statement_are_needed(anonymizer, table, tmp_path):
    made = anonymizer.release(table, mechanism="counts", epsilon=1.0)
    assert any("its fingerprints do not contradict" in sentence for sentence in made.privacy.rests_on)
    alone = Partition.from_dict(anonymizer.partition_.to_dict())
    with pytest.raises(ParameterError, match="has no fingerprints, so that nothing shows on whom it was fitted"):
        alone.release(table, mechanism="counts", epsilon=1.0)
    stated = alone.release(table, mechanism="counts", epsilon=1.0, fitted_on="others")
    assert "your statement that the partition was fitted on other people" in stated.privacy.rests_on
    anonymizer.partition_.save(tmp_path / "partition.json")
    loaded = Partition.load(tmp_path / "partition.json")
    assert loaded.release(table, mechanism="counts", epsilon=1.0).privacy.rests_on == made.privacy.rests_on
    with pytest.raises(ParameterError, match="fitted_on='me': expected 'others'"):
        alone.release(table, mechanism="counts", epsilon=1.0, fitted_on="me")
    prints = anonymizer.partition_.fingerprints
    assert alone.release(table, mechanism="counts", epsilon=1, fitted_on=prints, ledger=PrivacyLedger()).privacy


def test_the_words_of_a_promise_do_not_depend_on_the_records(anonymizer, table, monkeypatch):
    """Whether fingerprints had enough records to compare is a fact of the records, and the promise is published."""
    compared = release(anonymizer, table, ledger=PrivacyLedger()).privacy.rests_on
    monkeypatch.setattr(Overlap, "is_checked", False)
    assert release(anonymizer, table, ledger=PrivacyLedger()).privacy.rests_on == compared


def test_a_second_release_needs_a_ledger(anonymizer, table):
    anonymizer.release(table, mechanism="counts", epsilon=1.0)
    with pytest.raises(ParameterError, match="a second private release by the same partition without a ledger"):
        anonymizer.release(table, mechanism="counts", epsilon=1.0)
    ledger = PrivacyLedger()
    anonymizer.release(table, mechanism="counts", epsilon=0.5, ledger=ledger)
    anonymizer.release(table, mechanism="counts", epsilon=0.25, ledger=ledger)
    assert ledger.total().epsilon == 0.75
    with pytest.raises(ParameterError, match="expected a PrivacyLedger"):
        anonymizer.release(table, mechanism="counts", epsilon=1.0, ledger="ledger.json")


def test_nothing_is_drawn_when_the_budget_is_spent(anonymizer, table, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(private_release, "noisy_counts", never)
    with pytest.raises(ValueError, match=r"to epsilon 1, .*: expected at most epsilon 0.5"):
        anonymizer.release(table, mechanism="counts", epsilon=1.0, ledger=PrivacyLedger(epsilon=0.5))


def test_labels_are_a_public_list(anonymizer, table):
    y = labels_of(table)
    with pytest.raises(ParameterError, match="y without labels: expected the list of all labels"):
        release(anonymizer, table, y)
    with pytest.raises(InputError, match="y has labels that are not among the 1 of labels"):
        release(anonymizer, table, y, labels=["no"])
    with pytest.raises(ParameterError, match="labels has 2 entries, of which 1 are different"):
        release(anonymizer, table, y, labels=["no", "no"])
    with pytest.raises(ParameterError, match="labels without y"):
        release(anonymizer, table, labels=LABELS)
    with pytest.raises(InputError, match="y has missing labels"):
        release(anonymizer, table, [None, *y[1:]], labels=LABELS)
    with pytest.raises(InputError, match="the target has 3 values for 300 records"):
        release(anonymizer, table, y[:3], labels=LABELS)


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["a", "b", "never"], [1.5, 2.5]])
def test_labels_of_any_type(anonymizer, table, labels):
    y = np.asarray(labels)[np.arange(300) % 2]
    made = release(anonymizer, table, y, labels=labels, noise=NoNoise())
    assert made.target.dtype == np.asarray(labels).dtype
    assert Counter(made.target.tolist()) == Counter(y.tolist())


def test_settings_that_make_no_sense_are_explained(anonymizer, table):
    with pytest.raises(ParameterError, match="epsilon without a mechanism"):
        anonymizer.release(table, epsilon=1.0, shuffle=True)
    with pytest.raises(ParameterError, match="mechanism='noise'"):
        anonymizer.release(table, mechanism="noise", epsilon=1.0)
    with pytest.raises(ParameterError, match="epsilon=None: expected a number above 0"):
        anonymizer.release(table, mechanism="counts")
    for setting in ({"keep_index": True}, {"persons": "age"}, {"earlier": [1]}, {"target": table["age"]}):
        with pytest.raises(ParameterError, match="with a mechanism: expected it only without one"):
            anonymizer.release(table, mechanism="counts", epsilon=1.0, **setting)


def test_the_promise_reads_as_sentences(anonymizer, table):
    made = release(anonymizer, table, labels_of(table), labels=LABELS)
    text = made.privacy.describe()
    assert (
        "as likely in the table as not, no membership attack by this result alone is right more often than 73.1%"
        in text
    )
    assert "Results about the same people add up." in text
    assert "every person has one record" in text
    assert "epsilon" in made._repr_html_()
    assert made.privacy.to_dict()["adjacency"] == "adding or removing one record"
