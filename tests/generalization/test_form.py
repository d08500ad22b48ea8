# SPDX-License-Identifier: Apache-2.0
"""The form, in a real browser: it asks for buckets, finds that of a typed value, and sends nothing else."""

import datetime as dt
import json
import re
import threading
import urllib.parse
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from sfumato.backends.memory import MemorySource
from sfumato.errors import ParameterError
from sfumato.frames import read_table
from sfumato.generalization import generalization_from_bins
from strategies import in_examples

from .cases import KINDS, cases


def made_from(table, buckets):
    source = MemorySource(read_table(table), list(buckets))
    return generalization_from_bins(source.columns, [np.array(b) for b in buckets.values()], floor=1)


@pytest.fixture(scope="module")
def small():
    table = pa.table(
        {
            "age": [10, 30, 70, None],
            "job": ["nurse", "smith", "teacher", "smith"],
            "married": [True, False, True, False],
            "town": [f"Town {i}" for i in range(4)],
            "zip": ["1", "2", "3", "4"],
        }
    )
    buckets = {"age": [0, 1, 2, 3], "job": [0, 1, 0], "married": [0, 1], "town": [0, 1, 2, 2], "zip": [0] * 4}
    return made_from(table, buckets)


@pytest.fixture
def open_form(browser, tmp_path):
    opened = []

    def open_it(generalization, **options):
        path = tmp_path / "form.html"
        path.write_text(generalization.to_form(**options), encoding="utf-8")
        opened.append(browser.open(path.as_uri()))
        return opened[-1]

    yield open_it
    for page in opened:
        assert page.errors == []
        assert page.requests[0].startswith("file:")
        page.close()


CHOOSE_ALL = """
for (const question of document.querySelectorAll("fieldset")) {
  const radio = question.querySelector("input[type=radio]");
  if (radio) radio.checked = true; else question.querySelector("select").selectedIndex = 1;
}
"""
SUBMIT = 'document.querySelector("button[type=submit]").click()'


def test_the_form_gives_a_record_of_buckets(small, open_form):
    page = open_form(small, title="About <you>")
    assert page.evaluate("document.title") == "About <you>"
    page.evaluate(CHOOSE_ALL)
    page.evaluate(SUBMIT)
    record = json.loads(page.evaluate('document.querySelector(".result pre").textContent'))
    assert record == {"age": "20 and under", "job": "{nurse, teacher}", "married": "False", "town": "Town 0"}
    schema = small.to_json_schema()
    assert set(record) == set(schema["required"])
    assert all(value in schema["properties"][name]["enum"] for name, value in record.items())
    assert len(page.requests) == 1  # the page itself, and nothing else


def test_a_typed_value_chooses_its_bucket_and_is_forgotten(small, open_form):
    page = open_form(small)
    page.evaluate('document.querySelector("details").open = true')
    page.type_into(".exact input", "45")
    assert page.evaluate('document.querySelector(".exact output").textContent') == "→ 21-50"
    assert page.evaluate('new FormData(document.querySelector("form")).get("age")') == "21-50"
    page.press("Enter", 13)
    assert page.evaluate('document.querySelector(".result").hidden') is True
    page.evaluate(CHOOSE_ALL)
    page.evaluate(SUBMIT)
    assert page.evaluate('document.querySelector(".result").hidden') is False
    assert page.evaluate('[...document.querySelectorAll(".exact input")].map((i) => i.value).join("")') == ""
    assert "45" not in page.evaluate("document.body.innerText")


def test_what_is_no_number_is_said_and_chooses_nothing(small, open_form):
    page = open_form(small)
    page.evaluate('document.querySelector("details").open = true')
    page.type_into(".exact input", "forty")
    assert page.evaluate('document.querySelector(".exact output").textContent') == "Expected a number."
    assert page.evaluate('new FormData(document.querySelector("form")).get("age")') is None


def test_every_question_must_be_answered(small, open_form):
    page = open_form(small)
    page.evaluate(SUBMIT)
    assert page.evaluate('document.querySelector(".result").hidden') is True


@given(case=cases(kinds=tuple(kind for kind in KINDS if "datetime" not in kind and kind != "time")))
@settings(in_examples(25), suppress_health_check=[HealthCheck.too_slow])
def test_typed_values_get_the_buckets_of_transform(browser, tmp_path_factory, case):
    path = tmp_path_factory.mktemp("form") / "form.html"
    path.write_text(case.generalization.to_form(), encoding="utf-8")
    page = browser.open(path.as_uri())
    labels = case.expected("labels")
    for place, attribute in enumerate(case.generalization.attributes):
        typed = [typed_text(value) for value in case.values[attribute.name]]
        found = page.evaluate(
            f"""(() => {{
              const question = document.querySelector('fieldset[data-attribute="{place}"]');
              const exact = question && question.querySelector(".exact input");
              if (!exact) return null;
              return {json.dumps(typed)}.map((text) => {{
                exact.value = text;
                exact.dispatchEvent(new Event("input", {{ bubbles: true }}));
                return new FormData(document.querySelector("form")).get({json.dumps(attribute.name)});
              }});
            }})()"""
        )
        for text, chosen, label in zip(typed, found or [], labels[attribute.name], strict=False):
            if text.strip() and not set(text) & set("\n\r"):  # what a line of text cannot hold cannot be typed
                assert chosen == label
    page.evaluate(CHOOSE_ALL)
    page.evaluate(SUBMIT)
    record = json.loads(page.evaluate('document.querySelector(".result pre").textContent') or "{}")
    assert set(record) == {a.name for a in case.generalization.attributes if a.is_collected}
    assert page.errors == []
    assert len(page.requests) == 1
    page.close()


def typed_text(value):
    if value is None:
        return ""
    if isinstance(value, dt.timedelta):
        whole, rest = divmod(abs(value) // dt.timedelta(microseconds=1), 1_000_000)
        return f"{'-' if value < dt.timedelta(0) else ''}{whole}.{rest:06}"
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def test_names_that_the_form_itself_has_do_no_harm(open_form):
    names = ["action", "submit", "addEventListener", "querySelectorAll", "dispatchEvent", "elements", "name"]
    made = made_from(pa.table({name: [1, 9] for name in names}), {name: [0, 1] for name in names})
    page = open_form(made)
    page.evaluate(CHOOSE_ALL)
    page.evaluate(SUBMIT)
    record = json.loads(page.evaluate('document.querySelector(".result pre").textContent'))
    assert record == dict.fromkeys(names, "5 and under")


def test_a_long_list_of_buckets_opens_as_a_list(open_form):
    made = made_from(pa.table({"x": list(range(40))}), {"x": [i // 4 for i in range(40)]})
    page = open_form(made)
    assert page.evaluate('document.querySelectorAll("select option").length') == 12  # and two that are no bucket
    page.evaluate('document.querySelector("details").open = true')
    page.type_into(".exact input", "17")
    assert page.evaluate('document.querySelector("select").value') == made.attributes[0].labels[4]


WIDER_THAN_THE_PHONE = """[...document.querySelectorAll("body *")]
  .filter((e) => e.getBoundingClientRect().right > innerWidth || (e.clientWidth && e.scrollWidth > e.clientWidth + 1))
  .map((e) => e.tagName)"""


def test_the_form_fits_a_phone_without_scrolling_sideways(browser, tmp_path):
    long = "Donaudampfschifffahrtsgesellschaftskapitaensmuetzenabzeichenhersteller"
    table = pa.table(
        {
            "A_COLUMN_WITH_A_NAME_THAT_IS_MUCH_LONGER_THAN_ANY_PHONE_IS_WIDE": [1, 50, 99, None],
            "job": [long, f"{long} of {long}", "smith", "nurse"],
            "town": [f"{long} {place}" for place in range(4)],
            "since": [dt.datetime(1990 + 10 * i, 5, 17, 8, 30, 12, 345) for i in range(4)],
            "zip": ["1", "2", "3", "4"],
        }
    )
    buckets = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 1, 1], [0, 1, 2, 3], [0] * 4]
    path = tmp_path / "form.html"
    path.write_text(made_from(table, dict(zip(table.column_names, buckets, strict=True))).to_form(), encoding="utf-8")
    page = browser.open(path.as_uri(), width=380, height=800)
    page.evaluate('for (const d of document.querySelectorAll("details")) d.open = true')
    page.evaluate(CHOOSE_ALL)
    page.evaluate(SUBMIT)
    assert page.evaluate('document.querySelector(".result").hidden') is False
    assert page.evaluate("document.documentElement.scrollWidth") == 380
    assert page.evaluate(WIDER_THAN_THE_PHONE) == []
    page.close()


def test_rather_not_say_gives_what_a_missing_value_gives(small, open_form):
    page = open_form(small)
    chosen = page.evaluate(
        """[...document.querySelectorAll("fieldset")].map((question) => {
          const found = [...question.querySelectorAll(".choice")].filter((c) => c.innerText.includes("Rather not say"));
          if (found.length === 1) found[0].querySelector("input").checked = true;
          return found.length;
        })"""
    )
    assert chosen == [1, 1, 1, 1]
    page.evaluate(SUBMIT)
    record = json.loads(page.evaluate('document.querySelector(".result pre").textContent'))
    nothing = pa.table({name: pa.nulls(1) for name in small.names})
    expected = small.transform(nothing, "labels").to_pylist()[0]
    assert record == {name: label for name, label in expected.items() if name != "zip"}
    assert record["age"] == "missing"


def test_a_person_whose_category_is_not_listed_finds_a_choice(open_form):
    table = pa.table({"sex": ["F"] * 30 + ["M"] * 20 + ["X"] * 3, "job": ["a"] * 30 + list("bbbbbbccccccddddddeeeee")})
    source = MemorySource(read_table(table), table.column_names)
    made = generalization_from_bins(source.columns, [np.arange(3), np.arange(5)])
    page = open_form(made)
    shown = page.evaluate('[...document.querySelectorAll(".choice")].map((c) => c.innerText)')
    assert shown == [
        "F", "M", "Something else (counts as: F)", "Rather not say (counts as: F)",
        "a", "Something else", "Rather not say (counts as: a)",
    ]  # fmt: skip


def test_questions_are_called_by_their_titles(open_form):
    table = pa.table({"AGEP": list(range(40)), "ZZ": [1] * 40, "SEX": ["F", "M"] * 20})
    made = made_from(table, {"AGEP": [i // 4 for i in range(40)], "ZZ": [0], "SEX": [0, 1]})
    page = open_form(made, titles={"AGEP": "Age in <years>", "ZZ": "Shoe size"})
    assert page.evaluate('[...document.querySelectorAll("legend")].map((l) => l.innerText)') == [
        "Age in <years>",
        "SEX",
    ]
    assert page.evaluate('document.querySelector("select").ariaLabel') == "Age in <years>"
    assert "Not collected: Shoe size." in page.evaluate('document.querySelector("footer").innerText')
    page.evaluate(CHOOSE_ALL)
    assert page.evaluate('[...new FormData(document.querySelector("form")).keys()]') == ["AGEP", "SEX"]


@pytest.mark.parametrize(
    ("titles", "words"), [({"agep": "Age"}, "names 'agep'"), ({"age": " "}, "no text"), ({"age": 1}, "no text")]
)
def test_titles_that_fit_no_attribute_are_refused(small, titles, words):
    with pytest.raises(ParameterError, match=words):
        small.to_form(titles=titles)


def test_scripts_beside_the_form_are_told_the_record(small, open_form):
    page = open_form(small)
    page.evaluate('document.addEventListener("sfumato:record", (event) => { window.told = event.detail; })')
    page.evaluate(CHOOSE_ALL)
    page.evaluate(SUBMIT)
    assert page.evaluate("window.told.married") == "False"


def test_only_buckets_are_posted(small, browser, tmp_path):
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        path = tmp_path / "form.html"
        path.write_text(small.to_form(action=f"http://127.0.0.1:{server.server_port}/records"), encoding="utf-8")
        page = browser.open(path.as_uri())
        page.evaluate(CHOOSE_ALL + 'document.querySelector("details").open = true')
        page.type_into(".exact input", "45")
        page.evaluate(SUBMIT)
        for _ in range(100):
            if received:
                break
            page.evaluate("new Promise((done) => setTimeout(done, 50))")
        assert page.errors == []
        page.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    expected = {"age": "21-50", "job": "{nurse, teacher}", "married": "False", "town": "Town 0"}
    assert dict(urllib.parse.parse_qsl(received[0])) == expected


def test_the_page_may_load_nothing(small):
    page = small.to_form()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "default-src &#x27;none&#x27;" in policy
    assert "form-action &#x27;none&#x27;" in policy
    assert not re.search(
        r"""(?:src|href)\s*=|url\(|@import|fetch\(|XMLHttpRequest|WebSocket|sendBeacon""",
        page.replace("link.href =", ""),
    )


@pytest.mark.parametrize(
    ("action", "allowed"),
    [("https://forms.example/a?b=c", "https://forms.example"), ("/records", "'self'"), ("records", "'self'")],
)
def test_the_page_may_send_only_where_it_was_told(small, action, allowed):
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, dict(attributes)))

    Reader().feed(small.to_form(action=action))
    policy = next(a["content"] for tag, a in found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.endswith(f"form-action {allowed}")
    assert next(a["action"] for tag, a in found if tag == "form") == action


@pytest.mark.parametrize("action", ["javascript:alert(1)", "mailto:a@b", "/a'; script-src *"])
def test_an_action_that_is_no_address_is_refused(small, action):
    with pytest.raises(ParameterError, match="action is not an address"):
        small.to_form(action=action)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(small, browser, tmp_path, theme):
    path = tmp_path / "form.html"
    path.write_text(small.to_form(), encoding="utf-8")
    page = browser.open(path.as_uri(), theme=theme)
    page.evaluate(CHOOSE_ALL)
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 20
    assert min(contrasts) >= 4.5
    page.close()


# The contrast of every piece of text with the nearest background behind it, as the accessibility guidelines count it.
CONTRASTS = """(() => {
  const read = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = read(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
  };
  const texts = [...document.querySelectorAll("main *")].filter((e) =>
    !["SCRIPT", "STYLE", "OPTION", "DATALIST"].includes(e.tagName) &&
    [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
  return texts.map((element) => {
    const [a, b] = [light(read(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
})()"""


def test_every_control_has_a_name(small, browser, tmp_path):
    path = tmp_path / "form.html"
    path.write_text(small.to_form(), encoding="utf-8")
    page = browser.open(path.as_uri())
    page.evaluate('for (const d of document.querySelectorAll("details")) d.open = true')
    page.call("Accessibility.enable")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    controls = [
        n for n in nodes if n.get("role", {}).get("value") in ("radio", "combobox", "textbox", "button", "group")
    ]
    assert len(controls) > 10
    assert all(n.get("name", {}).get("value") for n in controls if n["role"]["value"] != "group")
    page.close()
