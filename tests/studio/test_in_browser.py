# SPDX-License-Identifier: Apache-2.0
"""The studio as people see it: journeys in a real browser, both themes, narrow windows, the rules of accessibility."""

import asyncio
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyarrow import csv

from browser import Browser, Page
from sfumato.documents import plain
from sfumato.report.frontier_row import CertifiedSecret, Estimate, FrontierAttack, FrontierRow, FrontierSubgroup
from sfumato.studio.session import LOSSES, SIZES, Studio

from .conftest import looked_at, people

uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed (extra: studio)")

SCREENS = (
    "",
    "table",
    "roles",
    "frontier?at=2",
    "frontier?by=t",
    "frontier?by=buckets",
    "frontier?by=epsilon",
    "compare",
    "release",
    "history",
    "minimize",
    "anatomize",
)


class Served:
    """A studio in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.studio: Studio
        self.address = self.home = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(folder)), daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    async def _serve(self, folder: Path) -> None:
        from sfumato.studio.application import create_application

        self._loop = asyncio.get_running_loop()
        self.studio = Studio(folder)
        guard = create_application(self.studio, lambda: setattr(self.server, "should_exit", True))
        config = uvicorn.Config(guard, port=0, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.server.install_signal_handlers = lambda: None
        running = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.02)
        guard.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.address, self.home = guard.address, f"http://127.0.0.1:{guard.port}"
        self._ready.set()
        while not self.server.should_exit:
            await asyncio.sleep(0.05)
        await self.studio.stop()
        await running

    def call(self, function: Any, *arguments: Any) -> None:
        """Call something where the studio runs."""
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (function(*arguments), done.set()))
        assert done.wait(30)

    def close(self) -> None:
        self.server.should_exit = True
        self._thread.join(20)


def measured(number: float | None, family: str = "k") -> dict[str, Any]:
    """Return a row as the frontier measures it."""

    def estimate(value: float) -> Estimate:
        return Estimate(value, (value - 0.01, value + 0.01), (value,))

    loss = 0.0 if number is None else 0.002 * number**0.6
    attacks = tuple(
        FrontierAttack(goal, goal, "table", goal, estimate(rate), base, None, None, None, "above reference rate")
        for goal, rate, base in (("membership", 0.7 - 5 * loss, 0.5), ("attribute", 0.5 - 4 * loss, 0.3))
    )
    subgroups = (FrontierSubgroup("race", "x", 40, estimate(0.8 - loss), None),)
    secret = None if number is None else CertifiedSecret("job", 0.6 - 3 * loss, 0.3)
    name = "no protection" if number is None else f"k = {number}"
    row = FrontierRow(name, family, number, "table", estimate(0.86 - loss), attacks=attacks, certificate=secret,
                      subgroups=subgroups, seconds=1.5)  # fmt: skip
    return plain(row)


def prepare(studio: Studio) -> None:
    """Confirm the roles, and keep some points as if they were measured."""
    looked_at(studio)
    project = studio.project
    assert project is not None
    project.set_role("race", "rewrite", confirm=True)
    project.set_role("ill", "predict", confirm=True)
    project.set_role("job", "protect")
    column = {"name": "age", "loss": 0.2, "sentence": "62 values became 12.", "values": 7}
    columns = {str(k): {"size": k + 2, "columns": [column]} for k in SIZES[:4]}
    for family in ("k-release", "l", "t", "anatomy"):
        rows = {f"{k:g}": measured(k) for k in (*SIZES[:4], 2, 3)}
        points = {"raw": measured(None), "rows": rows, "columns": columns, "about": None}
        project.keep(studio._key(family), points)
    questions = [{"name": "age", "answers": ["53 and under", "54 and over"]}, {"name": "race", "answers": []}]
    forms = {
        f"{loss:g}": {
            "loss": loss, "error": 0.1 + loss / 2, "risk": 0.4 - 2 * loss, "certified": 0.5 - 2 * loss,
            "full_error": 0.1, "base_risk": 0.3, "wanted": ["job"],
            "n_test": 400, "interval": (0.08, 0.13 + loss / 2),
            "questions": {"en": questions, "de": questions},
        }
        for loss in LOSSES
    }  # fmt: skip
    project.keep(project.key(family="forms in words"), forms)
    studio.count_again()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("studio")
    csv.write_csv(people(), folder / "people.csv")
    own = Served(folder)
    own.call(prepare, own.studio)
    yield own
    own.close()


@pytest.fixture
def enter(served: Served, browser: Browser) -> Iterator[Any]:
    """Return a function that opens a screen in a new tab; the first one brings the token."""
    pages: list[Page] = []

    def opened(path: str, **options: Any) -> Page:
        if "token" not in done:
            first = browser.open(served.address)
            first.close()
            done["token"] = True
        pages.append(browser.open(f"{served.home}/{path}", **options))
        return pages[-1]

    done = vars(served).setdefault("done", {})
    yield opened
    for page in pages:
        page.close()


def wait(page: Page, condition: str, seconds: float = 20) -> None:
    stop = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < stop, f"{condition} did not come true: {page.evaluate('document.body.innerText')}"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("theme", "language"),
    [
        ("light", "en"),
        ("dark", "de"),
        pytest.param("light", "de", marks=pytest.mark.thorough),
        pytest.param("dark", "en", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("path", SCREENS)
def test_axe_finds_nothing_and_nothing_overflows(
    served: Served, enter: Any, path: str, theme: str, language: str
) -> None:
    axe = find_spec("axe_core_python")
    if axe is None:
        pytest.skip("axe-core-python is not installed")
    script = (Path(axe.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    page = enter("history", theme=theme, width=380 if theme == "dark" else 1280)
    page.call("Network.setExtraHTTPHeaders", {"headers": {"accept-language": language}})
    go(page, served, path)
    assert page.evaluate("document.documentElement.lang") == language and page.errors == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    page.evaluate(script + "; undefined")
    found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")
    assert found == []


def test_a_wrong_role_is_corrected_and_two_tabs_agree(served: Served, enter: Any) -> None:
    first, second = enter("roles", width=1280), enter("history", width=900)
    role = "document.querySelector('#role-3')"
    before = first.evaluate(f"{role}.value")
    first.evaluate(
        f"{role}.focus(); {role}.value = 'drop'; {role}.dispatchEvent(new Event('change', {{bubbles: true}}))"
    )
    wait(first, "document.querySelector('#c3 .pill')?.textContent === 'changed'")
    assert served.studio.project is not None and served.studio.project.role("hours") == "drop"
    wait(second, "document.querySelector('#past li').textContent.includes('hours')")  # without a click
    first.evaluate("document.querySelector('form[data-undo] button').click()")
    wait(first, f"{role}.value === '{before}'")
    wait(second, "document.querySelector('#past li').textContent.includes('back to policy')")


def test_the_slider_moves_a_mark_and_changes_nothing_until_use(served: Served, enter: Any) -> None:
    page = enter("frontier?at=0", width=1280)
    project = served.studio.project
    assert project is not None
    before = project.policy.get("method", "k")
    page.evaluate("document.querySelector('#stop').focus()")
    page.press("ArrowRight", 39)
    page.press("ArrowRight", 39)
    assert page.evaluate("document.querySelector('#stop').getAttribute('aria-valuetext')").startswith("k = 20")
    assert page.evaluate("document.querySelector('.read .big').textContent") == "k = 20"
    assert page.evaluate("location.search") == "?at=2"
    assert project.policy.get("method", "k") == before
    assert page.evaluate("document.querySelectorAll('.ghost').length") > 0  # two stops are to come
    page.evaluate("document.querySelector('aside.read form').requestSubmit()")
    wait(page, "document.querySelector('aside.read form button').textContent.includes('is in the policy')")
    assert project.policy.get("method", "k") == project.policy.get("gate", "min_k") == 20
    page.evaluate("document.activeElement.blur()")
    page.call("Input.dispatchKeyEvent", {"type": "keyDown", "key": "z", "code": "KeyZ", "modifiers": 2})
    wait(page, "document.querySelector('aside.read form button').textContent.startsWith('Use')")
    assert project.policy.get("method", "k") == before


def test_a_preview_comes_when_asked_for_and_goes(enter: Any) -> None:
    page = enter("table", width=1280)
    assert page.evaluate("document.querySelectorAll('#preview tbody tr').length") == 0
    page.evaluate("document.querySelector('#preview form').requestSubmit()")
    wait(page, "document.querySelectorAll('#preview tbody tr').length === 20")
    assert page.evaluate("location.pathname") == "/table"
    page.evaluate("document.querySelector('#preview a').click()")
    wait(page, "document.querySelectorAll('#preview tbody tr').length === 0")


def test_everything_is_there_without_scripts(served: Served, enter: Any) -> None:
    page = enter("history")
    page.call("Emulation.setScriptExecutionDisabled", {"value": True})
    for path in SCREENS:
        page.call("Page.navigate", {"url": f"{served.home}/{path}"})
        time.sleep(0.3)
        page.wait_for_event("Page.loadEventFired")
    page.call("Emulation.setScriptExecutionDisabled", {"value": False})
    assert page.evaluate("document.querySelectorAll('main h1').length") == 1


def go(page: Page, served: Served, path: str) -> None:
    page.evaluate("document.body.dataset.old = 'yes'")
    page.call("Page.navigate", {"url": f"{served.home}/{path}"})
    wait(page, "document.readyState === 'complete' && document.body?.dataset.old !== 'yes'")


@pytest.mark.parametrize("width", [380, 800, 1440])
def test_german_fits_in_every_width(served: Served, enter: Any, width: int) -> None:
    page = enter("history", width=width)
    page.call("Network.setExtraHTTPHeaders", {"headers": {"accept-language": "de"}})
    for path in SCREENS:
        go(page, served, path)
        assert page.evaluate("document.documentElement.lang") == "de"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), path
        # What is running, and the other ways, can be reached in every width.
        if path:
            seen = "[...document.querySelectorAll('#job, .rail ul a')].every(e => e.offsetHeight > 0)"
            assert page.evaluate(seen), path
    assert page.errors == []


def test_the_screen_that_is_open_is_in_view_on_a_narrow_page(served: Served, enter: Any) -> None:
    page = enter("history", width=380)
    page.call("Network.setExtraHTTPHeaders", {"headers": {"accept-language": "de"}})  # whose words are longer
    go(page, served, "release")
    inside = """(() => {
      const now = document.querySelector('#rail [aria-current]').getBoundingClientRect();
      return now.left >= 0 && now.right <= innerWidth + 1;
    })()"""
    assert page.evaluate(inside)
    served.call(served.studio.publish, "policy")  # which renews the row
    time.sleep(0.5)
    assert page.evaluate(inside)


def test_no_label_lies_on_a_curve_at_any_stop(enter: Any) -> None:
    page = enter("frontier?at=0", width=380)
    overlap = """(() => {
      const boxes = [...document.querySelectorAll('svg.plot')].flatMap(svg => {
        const texts = [...svg.querySelectorAll('text')].filter(t => !t.closest('[hidden]'));
        return texts.map((t, i) => [svg, t.getBoundingClientRect(), t.textContent, i]);
      });
      const cross = (a, b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
      return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => a[0] === b[0] && cross(a[1], b[1]))
        .map(b => a[2] + ' / ' + b[2]));
    })()"""
    for stop in range(len(SIZES)):
        page.evaluate(f"document.querySelector('#stop').value = {stop}")
        page.evaluate("document.querySelector('#stop').dispatchEvent(new Event('input', {bubbles: true}))")
        assert page.evaluate(overlap) == [], stop


def test_the_keyboard_reaches_the_content_first(enter: Any) -> None:
    page = enter("roles", width=1280)
    page.press("Tab", 9)
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left >= 0")  # seen once it has the focus
    seen = []
    for _ in range(40):
        page.press("Tab", 9)
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        width = page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert width > 0 or page.evaluate("document.activeElement === document.body")
    assert "Undo" in seen and [one for one in seen if one.startswith("role-")]


def test_paper_and_forced_colors(served: Served, enter: Any) -> None:
    page = enter("release", width=1000)
    page.call("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "getComputedStyle(document.querySelector('{}')).display !== 'none'"
    assert not page.evaluate(shown.format("header.top")) and not page.evaluate(shown.format("nav.rail"))
    assert page.evaluate(shown.format("main h1")) and page.evaluate(shown.format(".lights"))
    page.call("Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]})
    go(page, served, "roles")
    border = page.evaluate("getComputedStyle(document.querySelector('.rail a[aria-current]')).borderTopStyle")
    assert border == "solid"  # where one is does not hang on a color


HOSTILE = [
    "<script>document.title = 'taken'</script>",
    '"><img src=x onerror="document.title=1">',
    "a|b' x='",
    "w" * 90,
]


def test_hostile_names_are_text_in_a_browser(tmp_path: Path, browser: Browser) -> None:
    table = people(200)
    for name in HOSTILE:
        table = table.append_column(name, [[f"{name}{row % 3}" for row in range(200)]])
    csv.write_csv(table, tmp_path / "people.csv")
    served = Served(tmp_path)
    try:
        served.call(prepare, served.studio)
        browser.open(served.address).close()
        for path in ("table", "roles", "frontier?at=1", "compare", "release", "history", "anatomize"):
            page = browser.open(f"{served.home}/{path}", width=380)
            assert page.evaluate("document.title").endswith("sfumato studio") and page.errors == []
            assert page.evaluate("document.querySelectorAll('img, main script').length") == 0
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), path
            page.close()
    finally:
        served.close()
