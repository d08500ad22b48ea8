# SPDX-License-Identifier: Apache-2.0
"""Phantoms are no nearer to the members of their groups than to other people: planted tables on which they would be."""

import numpy as np
import pandas as pd
import pytest

from sfumato import (
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    RPlusTreeAnonymizer,
    WorkloadAwareAnonymizer,
)
from sfumato.attack import find_members_of_release
from sfumato.partition import surroundings


def information_loss(k):
    """Make the anonymizer of `sfumato anonymize` without a target: its groups are not boxes."""
    return MondrianAnonymizer(k, rule="information_loss")


BOXES = [ModelGuidedAnonymizer, WorkloadAwareAnonymizer, MondrianAnonymizer, RPlusTreeAnonymizer]
METHODS = [*BOXES, information_loss]
MARKS = [f"mark {j}" for j in range(8)]


def people(n, seed):
    """Marks that say nothing of one another or of the labels, so that only somebody's own values agree with hers."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.choice([*"abcdef"], n) for name in MARKS})
    frame.insert(0, "age", rng.integers(0, 1_000, n))
    return frame, (frame["age"] + rng.normal(0, 50, n) > 500).astype(int)


def released(method, k, frame, labels):
    """Return a fitted anonymizer and what it wrote."""
    anonymizer = method(k=k)
    return anonymizer, anonymizer.fit_transform(frame, labels)


def agreement(shown, people):
    """Share of the marks in which people have what their groups show."""
    return float((shown[MARKS].to_numpy() == people[MARKS].to_numpy()).mean())


def lead_of_members(method, k):
    """How much more members agree with the phantoms of their groups than other people of the same cells do."""
    (members, labels), (others, _) = people(4_000, 0), people(4_000, 1)
    anonymizer, shown = released(method, k, members, labels)
    return agreement(shown, members) - agreement(anonymizer.transform(others), others)


@pytest.mark.parametrize("method", METHODS)
def test_members_agree_with_phantoms_no_more_than_others(method, monkeypatch):
    assert lead_of_members(method, 5) < 0.02
    monkeypatch.setattr(surroundings, "FEWEST_AROUND", 1)  # of its own members alone, as it must not be
    assert lead_of_members(method, 5) > 0.05


def test_the_attack_on_membership_is_not_above_its_control(monkeypatch):
    (members, labels), (others, _) = people(4_000, 0), people(4_000, 1)

    def attacked():
        _, shown = released(ModelGuidedAnonymizer, 5, members[MARKS], labels)
        return find_members_of_release(members[MARKS], shown, control=others[MARKS], n_targets=None)

    found = attacked()
    assert found.interval[0] <= max(0.5, found.control)
    monkeypatch.setattr(surroundings, "FEWEST_AROUND", 1)
    assert attacked().interval[0] > 0.54


@pytest.mark.parametrize("method", METHODS)
def test_later_records_and_joined_groups_get_phantoms_of_neighbors(method, monkeypatch):
    (members, labels), (later, _) = people(4_000, 0), people(4_000, 1)
    anonymizer, _ = released(method, 10, members, labels)

    def agree():
        made = anonymizer.release(later)
        assert made.n_merged > 0
        return agreement(pd.DataFrame(made.table), later)

    with_neighbors = agree()
    monkeypatch.setattr(surroundings, "FEWEST_AROUND", 1)
    assert with_neighbors < agree() - 0.03


@pytest.mark.parametrize("method", BOXES)
def test_a_phantom_lies_in_the_cell_of_its_group(method):
    members, labels = people(4_000, 0)
    anonymizer, shown = released(method, 20, members, labels)
    group = anonymizer.partition_.apply(members)
    assert (anonymizer.partition_.apply(shown) == group).mean() > 0.95
