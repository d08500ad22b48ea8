# SPDX-License-Identifier: Apache-2.0
"""A family lists its names without importing anything, and imports a member when it is asked for."""

import subprocess
import sys

import pytest

from sfumato.registry import Family

FAMILIES = {
    "sfumato.criteria": "CRITERIA",
    "sfumato.representatives": "REPRESENTATIVES",
    "sfumato.attack": "ATTACKS",
    "sfumato.anonymize": "METHODS",
    "sfumato.models": "MODELS",
}
HEAVY = ("numpy", "pyarrow", "sklearn", "numba", "narwhals", "torch")


def test_names_keep_their_order():
    family = Family("thing", {"b": "json:loads", "a": "json:dumps"})
    assert list(family) == ["b", "a"]
    assert len(family) == 2


def test_names_are_listed_without_importing_their_places():
    family = Family("thing", {"a": "no.such.module:Thing"})
    assert "a" in family
    assert tuple(family) == ("a",)
    with pytest.raises(ModuleNotFoundError):
        family["a"]


def test_a_member_is_the_object_at_its_place():
    import json

    assert Family("thing", {"write": "json:dumps"})["write"] is json.dumps


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(KeyError, match="no thing is called 'c': expected one of a, b"):
        Family("thing", {"a": "json:loads", "b": "json:dumps"})["c"]


@pytest.mark.parametrize("place", ["json", "json:", ":loads", ""])
def test_a_place_without_module_or_attribute_is_refused(place):
    with pytest.raises(ValueError, match="expected 'module:attribute'"):
        Family("thing", {"a": place})


@pytest.mark.parametrize(("module", "name"), FAMILIES.items())
def test_listing_a_family_imports_nothing_heavy(module, name):
    code = f"import sys; from {module} import {name}; list({name}); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("module", "name"), FAMILIES.items())
def test_every_member_has_facts_with_its_name_and_a_sentence(module, name):
    from importlib import import_module

    for called, member in getattr(import_module(module), name).items():
        assert member.facts.name == called
        assert member.facts.sentence[0].islower()
        assert not member.facts.sentence.endswith(".")


def test_policy_settings_import_nothing_heavy():
    code = f"import sys, sfumato.policy.settings; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
