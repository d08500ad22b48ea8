# SPDX-License-Identifier: Apache-2.0
"""Questions in node and in a browser are those of Python, in the same order, with the same decisions."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato.errors import ParameterError
from sfumato.generalization.questions import Questionnaire

from .test_exports import needs_node, run_node
from .test_questions import NAMES, every_record, people

MODELS = {
    "tree": lambda: DecisionTreeClassifier(max_leaf_nodes=14, random_state=0),
    "linear": lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
}


def interviews(questionnaire, generalization, codes):
    """The attributes asked, in their order, and the decision, for every record."""
    told = []
    for record in codes:
        answers = {}
        question = questionnaire.ask(answers)
        while not question.is_settled:
            bucket = record[NAMES.index(question.attribute)]
            answers[question.attribute] = generalization.attribute(question.attribute).labels[bucket]
            question = questionnaire.ask(answers)
        told.append([list(answers), question.decision])
    return told


@needs_node
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_node_asks_the_same_questions_and_decides_the_same(name, n_classes):
    for seed in range(3):
        X, y, generalization = people(seed, n_classes=n_classes)
        model = MODELS[name]().fit(generalization.codes(X), y)
        records = every_record()
        labels = [
            {own.name: own.labels[code] for own, code in zip(generalization.attributes, record, strict=True)}
            for record in records.tolist()
        ]
        source = generalization.to_javascript(model) + f"const records = {json.dumps(labels)};\n"
        source += """
        const interview = (record) => {
          const answers = {};
          let found = questions.next(answers);
          while (found.attribute !== null) {
            if (!found.open.includes(found.attribute)) throw new Error("asked what cannot matter");
            answers[found.attribute] = record[found.attribute];
            found = questions.next(answers);
          }
          return [Object.keys(answers), found.decision];
        };
        """
        expected = interviews(Questionnaire(generalization, model), generalization, records)
        assert run_node(source, "records.map(interview)") == expected
        np.testing.assert_array_equal([decision for _, decision in expected], model.predict(records))


@needs_node
def test_node_takes_values_and_no_answer():
    X, y, generalization = people(1)
    X.loc[::5, "age"] = np.nan
    from sfumato import PrivacyAwareTree

    sample = PrivacyAwareTree(floor=1)._read(X, y, None)
    generalization = sample.generalized([np.arange(c.bins.n_bins) for c in sample.columns], floor=1)
    model = DecisionTreeClassifier(random_state=0).fit(generalization.codes(X), y)
    questionnaire = Questionnaire(generalization, model)
    answers = [{}, {"age": 2}, {"age": None}, {"age": 2, "color": 1}]
    found = run_node(generalization.to_javascript(model), f"{json.dumps(answers)}.map((a) => questions.next(a))")
    for given, own in zip(answers, found, strict=True):
        question = questionnaire.ask(given)
        assert (own["attribute"], own["decision"]) == (question.attribute, question.decision)
        assert set(own["open"]) == set(question.open)


@needs_node
def test_node_refuses_an_answer_to_what_is_no_attribute():
    # It would ask the same question for ever.
    X, y, generalization = people(1)
    source = generalization.to_javascript(DecisionTreeClassifier(random_state=0).fit(generalization.codes(X), y))
    source += """
    let said = null;
    try { questions.next({"Age": 2}); } catch (error) { said = error.message; }
    """
    assert run_node(source, "said") == "Age: not an attribute of this generalization"


def test_a_script_holds_no_shares_or_counts_of_the_training_records():
    X, y, generalization = people(2)
    model = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(generalization.codes(X), y)
    source = generalization.to_javascript(model)
    (decision,) = re.findall(r"const decision = (\{.*\});", source)
    leaves = re.search(r"leaves: (\[.*\]), weights", decision)[1]
    assert set(re.findall(r"[a-z]+", leaves)) == {"decision", "inside"}
    assert "." not in leaves
    shares = {f"{bucket.share}" for own in generalization.attributes for bucket in own.buckets}
    weights = re.findall(r"0\.\d+", decision.split("weights")[1])
    assert {f"{float(weight):.2f}".rstrip("0") for weight in weights} <= {share.rstrip("0") for share in shares}


@pytest.mark.parametrize(
    ("model", "options", "match"),
    [
        (RandomForestClassifier(5, random_state=0), {}, "model is neither linear nor a decision tree"),
        (DecisionTreeClassifier(random_state=0), {"probability": 0.9}, r"probability=0\.9 in a page: expected 1"),
    ],
)
def test_what_a_page_cannot_take_along_is_refused(model, options, match):
    X, y, generalization = people(0)
    model.fit(generalization.codes(X), y)
    with pytest.raises(ParameterError, match=match):
        generalization.to_form(model=model, **options)


# -- the form ------------------------------------------------------------------------------------------------

ANSWER = """(() => {
  const field = [...document.querySelectorAll("fieldset")].filter((own) => !own.hidden).pop();
  const attribute = generalization.attributes[Number(field.dataset.attribute)];
  const bucket = %s[attribute.name];
  field.querySelectorAll("input[type=radio]")[bucket].click();
  document.querySelector("button.next").click();
  return attribute.name;
})()"""
IS_DONE = '!document.querySelector(".send").hidden'


@pytest.mark.parametrize("name", MODELS)
def test_the_form_asks_one_by_one_and_sends_what_was_asked(browser, tmp_path, name):
    X, y, generalization = people(3)
    model = MODELS[name]().fit(generalization.codes(X), y)
    questionnaire = Questionnaire(generalization, model)
    path = tmp_path / "form.html"
    path.write_text(generalization.to_form(model=model), encoding="utf-8")
    n_asked = set()
    for record in every_record()[::7]:
        page = browser.open(path.as_uri())
        asked = []
        while not page.evaluate(IS_DONE):
            asked.append(page.evaluate(ANSWER % json.dumps(dict(zip(NAMES, record.tolist(), strict=True)))))
        ((expected, _),) = interviews(questionnaire, generalization, [record])
        assert asked == expected
        page.evaluate('document.querySelector("button[type=submit]").click()')
        sent = json.loads(page.evaluate('document.querySelector(".result pre").textContent'))
        assert set(sent) == set(asked)
        schema = generalization.to_json_schema(is_partial=True)
        assert schema["required"] == []
        assert all(value in schema["properties"][attribute]["enum"] for attribute, value in sent.items())
        assert page.errors == []
        n_asked.add(len(asked))
        page.close()
    assert len(n_asked) > 1


def test_an_answer_that_is_changed_takes_back_what_followed_from_it(browser, tmp_path):
    X, y, generalization = people(3)
    model = MODELS["tree"]().fit(generalization.codes(X), y)
    path = tmp_path / "form.html"
    path.write_text(generalization.to_form(model=model), encoding="utf-8")
    page = browser.open(path.as_uri())
    record = dict.fromkeys(NAMES, 0)
    first = page.evaluate(ANSWER % json.dumps(record))
    page.evaluate(ANSWER % json.dumps(record))
    page.evaluate(
        '[...document.querySelectorAll("fieldset")].filter((f) => !f.hidden)[0]'
        ".querySelectorAll('input[type=radio]')[1].click()"
    )
    open_fields = (
        '[...document.querySelectorAll("fieldset")].filter((f) => !f.disabled).map((f) => f.dataset.attribute)'
    )
    assert page.evaluate(open_fields) == [str(NAMES.index(first))]
    assert page.evaluate(IS_DONE) is False
    page.close()


def test_the_whole_table_is_decided_the_same_in_the_browser(browser, tmp_path):
    X, y, generalization = people(4)
    model = MODELS["tree"]().fit(generalization.codes(X), y)
    path = tmp_path / "form.html"
    path.write_text(generalization.to_form(model=model), encoding="utf-8")
    page = browser.open(path.as_uri())
    rows = pd.DataFrame(every_record().astype(float), columns=list(NAMES)).to_dict("records")
    decided = page.evaluate(f"{json.dumps(rows)}.map((record) => questions.next(record).decision)")
    np.testing.assert_array_equal(decided, model.predict(every_record()))
    page.close()
