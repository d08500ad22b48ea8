# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of results: numbers and names, escaped, and none of the records."""

import pandas as pd
import pytest

import sfumato

PEOPLE = pd.DataFrame(
    {"age": [21, 34, 55, 62] * 10, "<b>job": ["nurse", "clerk"] * 20, "ill": ["Zqsecret", "no", "no", "yes"] * 10}
)


@pytest.fixture(scope="module")
def release():
    return sfumato.MondrianAnonymizer(k=5, keep=["ill"]).fit(PEOPLE).release(PEOPLE, shuffle=True)


def test_a_release_shows_what_was_done(release):
    page = release._repr_html_()
    assert "<caption>Release</caption>" in page
    assert f"<td>{release.measures['n_groups']}</td>" in page
    assert "Zqsecret" not in page


def test_a_measurement_shows_k_and_escapes_names():
    page = sfumato.measure(PEOPLE, ["age", "<b>job"], sensitive=["ill"])._repr_html_()
    assert "smallest group (k)</th><td>10</td>" in page
    assert "unique records</th><td>0</td>" in page
    assert "&lt;b&gt;job" in page
    assert "<b>" not in page


def test_an_anatomy_shows_its_columns():
    page = sfumato.Anatomizer(l=2, sensitive="ill", random_state=0).fit_transform(PEOPLE)._repr_html_()
    assert "sensitive columns</th><td>ill</td>" in page
    assert "Zqsecret" not in page


def test_a_generalization_shows_its_description():
    target = (PEOPLE["age"] > 40).astype(int)
    minimizer = sfumato.PrivacyAwareTree(random_state=0).fit(PEOPLE[["age"]], target)
    assert minimizer.generalization_._repr_html_() == minimizer.generalization_.describe()._repr_html_()


def test_an_audit_shows_its_page_in_a_frame_of_its_own(release):
    page = sfumato.audit(PEOPLE, release.table, sensitive=["ill"], gate={"min_k": 5})._repr_html_()
    assert page.startswith("<iframe")
    assert "<script" not in page
    assert "&lt;html" in page
