# SPDX-License-Identifier: Apache-2.0
"""Sentences name settings as data: they read as Python, clients spell them their own way, and pickles keep them."""

import copy
import json
import pickle
import warnings
from types import SimpleNamespace

import pytest

from sfumato.cli.setting_names import options_of, with_keys, with_options
from sfumato.errors import (
    ColumnWarning,
    GuaranteeError,
    InputError,
    ParameterError,
    PrivacyWarning,
    Reference,
    Sentence,
    named,
)
from sfumato.policy import setting_names
from sfumato.schema import ExposedColumnError

TEXT = f"List it in {named('quasi_identifiers')} or {named('keep')}, or give {named('encoding', 'cp1252')}."


@pytest.mark.parametrize("kind", [ParameterError, InputError, GuaranteeError, PrivacyWarning, ColumnWarning])
def test_an_error_reads_as_python_and_keeps_what_it_names(kind):
    error = kind(TEXT)
    assert str(error) == "List it in quasi_identifiers or keep, or give encoding='cp1252'."
    assert repr(error) == f"{kind.__name__}({str(error)!r})"
    assert error.parameter == "quasi_identifiers"
    assert error.sentence.references[1:] == (Reference("keep"), Reference("encoding", "'cp1252'"))


def test_an_error_may_name_nothing():
    assert str(InputError("no records.")) == "no records."
    assert InputError("no records.").parameter is None
    assert str(ParameterError()) == ""


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("error", [InputError(TEXT), PrivacyWarning(TEXT), ExposedColumnError("id", "it is unique")])
def test_errors_survive_copies_and_pickles(error, again):
    found = again(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.sentence.references == error.sentence.references


def test_warnings_keep_what_they_name():
    with pytest.warns(PrivacyWarning) as caught:
        warnings.warn(PrivacyWarning(TEXT), stacklevel=1)
    assert with_options(caught[0].message.sentence).startswith("List it in --quasi-identifiers")


def test_the_command_line_names_options():
    assert with_options(TEXT) == "List it in --quasi-identifiers or --keep, or give --encoding cp1252."
    said = {
        named("header", False): "--header no",
        named("types", {"zip": "text", "born": "date:%d.%m.%Y"}): "--types zip=text,born=date:%d.%m.%Y",
        named("separator", ";"): "--separator ';'",
        named("categorical_features"): "--categorical",
        named("random_state", 3): "--seed 3",
    }
    assert [with_options(text) for text in said] == list(said.values())


def test_the_command_line_names_options_of_the_running_command_only():
    def option(name, *opts, is_flag=False):
        return SimpleNamespace(name=name, opts=[*opts], is_flag=is_flag, param_type_name="option")

    with options_of([option("output", "--output", "-o"), option("keep_order", "--keep-order", is_flag=True)]):
        assert with_options(named("output", "NAME.parquet")) == "-o NAME.parquet"
        assert with_options(named("keep_order", True)) == "--keep-order"
        assert with_options(named("quasi_identifiers")) == "quasi-identifiers"
        assert with_options(named("distance", "ordered")) == "distance='ordered'"
        assert with_keys(named("output", "NAME.parquet")) == 'release = "NAME.parquet" under [data]'
        assert with_keys(named("keep_order", True)) == 'keep_order = "yes" under [data]'


def test_a_policy_names_keys_and_each_section_once():
    assert setting_names.with_keys(TEXT) == (
        'List it in quasi_identifiers under [columns] or keep, or give encoding = "cp1252" under [data].'
    )
    assert setting_names.with_keys(named("model", "random-forest")) == 'name = "random-forest" under [model]'
    assert setting_names.with_keys(named("categorical_features")) == "categorical under [columns]"
    assert setting_names.with_keys(named("distance", "ordered")) == "distance='ordered'"


def test_sentences_keep_what_they_name_when_they_are_joined():
    whole = "people.csv: " + InputError(TEXT).sentence + " Or not."
    assert isinstance(whole, Sentence)
    assert with_options(whole).startswith("people.csv: List it in --quasi-identifiers")
    assert whole.endswith("'cp1252'. Or not.")
    assert json.loads(json.dumps({"note": whole})) == {"note": str(whole)}


def test_values_of_a_table_cannot_pass_for_a_setting():
    column = Sentence(named("keep"))._marked
    error = InputError(f"column {column!r}: see {named('types', {column: 'text'})}.")
    assert [one.name for one in error.sentence.references] == ["types"]
    assert error.sentence.references[0].value == {column: "text"}


def test_a_value_without_a_literal_is_shown_as_it_is():
    assert Sentence(named("estimator", ValueError)).references[0].value == "<class 'ValueError'>"
