# SPDX-License-Identifier: Apache-2.0
"""The studio under attack: each test does what an attacker would."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pyarrow import csv

from sfumato.errors import InputError
from sfumato.studio.security import HEADERS, below

from .conftest import HOME, PORT, Visit, Visitor, looked_at


def test_a_foreign_name_that_leads_here_is_refused(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        for host in ("evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT}.evil.example", ""):
            answer = await visitor.get("/", host=host)
            assert answer.status_code == 403, host
        assert (await visitor.get("/")).status_code == 200

    visit(story)


def test_a_form_on_another_page_changes_nothing(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        foreign = [
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"origin": f"http://127.0.0.1:{PORT + 1}"},  # another server on this machine
            {"origin": HOME, "sec-fetch-site": "cross-site"},
            {"origin": HOME, "sec-fetch-site": "same-site"},
            {"origin": HOME, "sec-fetch-site": "none"},
        ]
        for headers in foreign:
            answer = await visitor.post("/quit", **headers)
            assert answer.status_code == 403, headers
        silent = await visitor.client.post("/quit")
        assert silent.status_code == 403
        await asyncio.sleep(0.3)
        assert not visitor.has_quit

    visit(story)


def test_another_page_cannot_look_either(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        for site in ("cross-site", "same-site"):
            assert (await visitor.get("/table", **{"sec-fetch-site": site})).status_code == 403
        assert (await visitor.get("/", origin="http://evil.example")).status_code == 403

    visit(story)


def test_the_token_works_once_and_only_the_right_one(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        token = visitor.guard.token
        assert (await visitor.client.get("/", params={"token": "x" * 43})).status_code == 403
        first = await visitor.client.get("/", params={"token": token})
        assert first.status_code == 303 and first.headers["location"] == "/"
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and token not in cookie
        visitor.client.cookies.clear()
        assert (await visitor.client.get("/", params={"token": token})).status_code == 403

    visit(story)


def test_nothing_is_served_without_the_cookie(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        for path in ("/", "/table", "/events", "/static/studio.js", "/nowhere"):
            answer = await visitor.get(path)
            assert answer.status_code == 403 and "studio" in answer.text
        assert (await visitor.post("/open", {"path": "people.csv"})).status_code == 403
        forged = await visitor.get("/", cookie=f"{visitor.guard.cookie}=guess")
        assert forged.status_code == 403

    visit(story)


def test_every_answer_forbids_inline_script_frames_and_foreign_contents(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        refused = await visitor.get("/")
        await visitor.enter()
        for answer in (refused, *[await visitor.get(path) for path in ("/", "/static/studio.js", "/x")]):
            for name, value in HEADERS.items():
                assert answer.headers[name] == value
        policy = HEADERS["content-security-policy"]
        assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy

    visit(story)


def test_no_page_has_inline_script_style_or_handler(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)
        await visitor.enter()
        for path in ("/", "/table", "/roles", "/frontier", "/compare", "/release", "/history"):
            text = (await visitor.get(path)).text
            assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text), path
            assert re.findall(r"<script[^>]*>", text) == ['<script src="/static/studio.js" defer>']
            assert not re.search(r"(src|href|action)=[\"']?(https?:)?//", text), path

    visit(story)


@pytest.mark.parametrize(
    "name", ["../secret.csv", "/etc/passwd", "..%2fsecret.csv", "people.csv/../../secret.csv", "link.csv", "out/x.csv",
             "people.csv\0.toml", "", ".", "loop.csv"],
)  # fmt: skip
def test_files_elsewhere_cannot_be_named(folder: Path, name: str) -> None:
    (folder.parent / "secret.csv").write_text("a\n1\n")
    (folder.parent / "elsewhere").mkdir()
    (folder.parent / "elsewhere" / "x.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    (folder / "out").symlink_to(folder.parent / "elsewhere")
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    with pytest.raises(InputError) as raised:
        below(folder, name)
    assert "secret" not in str(raised.value)
    assert below(folder, "people.csv") == (folder / "people.csv").resolve()


def test_a_policy_cannot_lead_out_of_the_folder(visit: Visit, folder: Path) -> None:
    (folder.parent / "secret.csv").write_text("a,b\n1,2\n")
    text = 'version = 1\n[data]\nfile = "../secret.csv"\nrelease = "out.csv"\n[columns]\ntarget = "b"\n'
    (folder / "p.toml").write_text(text)

    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        answer = await visitor.post("/open", {"path": "p.toml"})
        assert answer.status_code == 422 and "no such file" in answer.text
        assert visitor.studio.project is None

    visit(story)


@pytest.mark.parametrize(
    "line", ['release = "../out.csv"', 'release = "/far/out.csv"', 'release = "out/x.csv"', 'holdout = "../secret.csv"',
             'report = "../../report.html"', 'earlier = ["../secret.csv"]'],
)  # fmt: skip
def test_a_policy_cannot_read_or_write_elsewhere(visit: Visit, folder: Path, line: str) -> None:
    (folder.parent / "elsewhere").mkdir()
    (folder / "out").symlink_to(folder.parent / "elsewhere")
    release = "" if line.startswith("release") else 'release = "released.csv"\n'
    text = f'version = 1\n[data]\nfile = "people.csv"\n{release}{line}\n[columns]\ntarget = "ill"\n'
    (folder / "p.toml").write_text(text)

    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        answer = await visitor.post("/open", {"path": "p.toml"})
        assert answer.status_code == 422 and "outside the folder" in answer.text
        assert visitor.studio.project is None
        looked_at(visitor.studio)  # or in an editor, later
        project = visitor.studio.project
        assert project is not None
        project.set_role("race", "rewrite", confirm=True)
        project.set_role("ill", "predict", confirm=True)
        project.policy_file.write_text(text)
        assert (await visitor.post("/release/judge")).status_code == 422
        assert not visitor.studio.jobs.is_running

    visit(story)


@pytest.mark.parametrize(
    ("file", "rest", "said"),
    [
        ("people.csv", '[audit]\nunfinished = "../models"\n', "outside the folder"),
        ("../secret.csv", "", "another table"),
        ("others.csv", "", "another table"),
        (
            "people.csv",
            '[privacy]\nmechanism = "counts"\nepsilon = 1.0\npartition = "../p.json"\nlabels = ["no", "yes"]\n'
            'ledger = "../ledger.json"\nbudget_epsilon = 2.0\n',
            "its ledger",
        ),
    ],
)
def test_a_policy_changed_in_an_editor_starts_nothing_elsewhere(
    visit: Visit, folder: Path, file: str, rest: str, said: str
) -> None:
    for path in (folder.parent / "secret.csv", folder / "others.csv"):
        path.write_bytes((folder / "people.csv").read_bytes())
    text = f'version = 1\n[data]\nfile = "{file}"\nrelease = "out.csv"\n[columns]\ntarget = "ill"\n{rest}'

    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        looked_at(visitor.studio)
        project = visitor.studio.project
        assert project is not None
        project.set_role("race", "rewrite", confirm=True)
        project.set_role("ill", "predict", confirm=True)
        project.policy_file.write_text(text)
        for address, form in (("/release/judge", {}), ("/frontier/measure", {"by": "k"}), ("/minimize/learn", {})):
            answer = await visitor.post(address, form)
            assert answer.status_code == 422 and said in answer.text
        assert not visitor.studio.jobs.is_running

    visit(story)


def test_a_policy_with_a_mechanism_is_left_to_the_command(visit: Visit, folder: Path) -> None:
    """Judging it would spend its budget: looking must change nothing."""
    (folder / "p.toml").write_text(
        'version = 1\n[data]\nfile = "people.csv"\nrelease = "out.csv"\n[columns]\ntarget = "ill"\n'
        '[privacy]\nmechanism = "counts"\nepsilon = 1.0\npartition = "p.json"\nlabels = ["no", "yes"]\n'
    )

    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        answer = await visitor.post("/open", {"path": "p.toml"})
        assert answer.status_code == 422 and "sfumato run" in answer.text
        assert visitor.studio.project is None

    visit(story)


def test_lists_show_no_links_out_of_the_folder(visit: Visit, folder: Path) -> None:
    (folder.parent / "secret.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")

    async def story(visitor: Visitor) -> None:
        assert [name for name, _ in visitor.studio.tables()] == ["people.csv"]

    visit(story)


HOSTILE = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 701*997 }}",
    "a|b' onmouseover='x", "nasty\u202e",
]  # fmt: skip


def attributes(text: str) -> set[str]:
    """Return the names of all attributes of a page, as a browser reads them."""
    found: set[str] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.update(name for name, _ in attrs)

    Reader().feed(text)
    return found


def test_script_in_a_column_name_or_value_is_text(visit: Visit, folder: Path) -> None:
    n = 60
    columns = {name: [f"v{HOSTILE[row % len(HOSTILE)]}" for row in range(n)] for name in HOSTILE}
    csv.write_csv(pa.table({**columns, "y": ["no", "yes"] * (n // 2)}), folder / "hostile.csv")

    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio, "hostile.csv")
        await visitor.enter()
        for path in ("/table", "/roles", "/frontier", "/compare", "/release", "/history"):
            text = (await visitor.get(path)).text
            assert re.findall(r"<script[^>]*>", text) == ['<script src="/static/studio.js" defer>'], path
            assert "<img" not in text and str(701 * 997) not in text  # what a template would make of a name
            assert not [name for name in attributes(text) if name.startswith("on")]
        answer = await visitor.post("/roles/0", {"role": "protect"})
        assert answer.status_code == 303
        assert "&lt;script&gt;" in (await visitor.get("/history")).text

    visit(story)


def test_values_are_shown_only_when_asked_for(visit: Visit, folder: Path) -> None:
    marked = [f"zebra-{number:04d}" for number in range(60)]
    csv.write_csv(pa.table({"code": marked, "age": list(range(60)), "y": ["no", "yes"] * 30}), folder / "marked.csv")

    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio, "marked.csv")
        await visitor.enter()
        for path in ("/table", "/roles", "/frontier", "/compare", "/release", "/history"):
            assert "zebra" not in (await visitor.get(path)).text, path
        asked = await visitor.post("/table/preview")
        address = asked.headers["location"]
        assert re.fullmatch(r"/table\?drawn=preview-[\w-]{11}", address)  # which names no value
        while "zebra" not in (shown := await visitor.get(address)).text:
            await asyncio.sleep(0.05)
        assert len(set(re.findall(r"zebra-\d+", shown.text))) == 20
        assert shown.headers["cache-control"] == "no-store"
        for again in (address, "/table", "/table?drawn=", "/table?drawn=guess"):  # shown once
            assert "zebra" not in (await visitor.get(again)).text
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "marked.csv":
                assert "zebra" not in path.read_text(encoding="utf-8"), path

    visit(story)


def test_what_is_kept_is_for_its_owner_alone(visit: Visit, folder: Path) -> None:
    async def story(visitor: Visitor) -> None:
        looked_at(visitor.studio)

    visit(story)
    kept = folder / ".sfumato-studio"
    for path in (kept, *kept.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_an_error_of_the_server_tells_its_kind_alone(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(visitor: Visitor) -> None:
        def fail() -> None:
            raise ValueError("could not convert 'Jane Doe'")

        await visitor.enter()
        monkeypatch.setattr(visitor.studio, "open_example", fail)
        answer = await visitor.post("/example")
        assert answer.status_code == 500 and "ValueError" in answer.text and "Jane" not in answer.text

    visit(story)


def test_other_methods_and_preflights_are_refused(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        for method in ("OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"):
            answer = await visitor.client.request(method, "/open", headers={"origin": HOME})
            assert answer.status_code == 403
            assert not [name for name in answer.headers if name.startswith("access-control")]
        # A change by address, which a link or a picture on another page could ask for.
        for path in ("/quit", "/undo", "/use?by=k&value=2", "/open?path=people.csv"):
            assert (await visitor.get(path)).status_code in (404, 405)

    visit(story)


def test_the_file_is_named_by_path_over_the_wire_too(visit: Visit, folder: Path) -> None:
    (folder.parent / "secret.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")

    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        answers = set()
        for name in (
            "../secret.csv",
            "../nothing.csv",
            "/etc/passwd",
            "link.csv",
            "..//secret.csv",
            "%2e%2e/secret.csv",
        ):
            answer = await visitor.post("/open", {"path": name})
            assert answer.status_code == 422
            answers.add(re.search(r'role="status"><p>(.*?)</p>', answer.text).group(1))  # type: ignore[union-attr]
        assert len(answers) == 1  # what is there and what is not are answered alike
        for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2f..%2fpeople.csv", "/people.csv"):
            assert (await visitor.get(path)).status_code == 404

    visit(story)


def test_a_long_form_is_refused(visit: Visit) -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.enter()
        answer = await visitor.post("/open", {"path": "x" * 100_000})
        assert answer.status_code == 422

    visit(story)


# -- the process ---------------------------------------------------------------------------------------------------

SERVE = """
import sys
from pathlib import Path
from sfumato.studio.server import serve
serve(Path(sys.argv[1]), show=lambda address: print(address, flush=True), open_browser=False,
      idle_seconds=float(sys.argv[2]))
"""


BROKEN = """
import asyncio
from sfumato.studio import screens

def broken(*_):
    asyncio.get_running_loop().create_task(fails())
    raise ValueError("could not convert 'Jane Doe'")

async def fails():
    raise ValueError("could not convert 'Jane Doe'")

screens.SCREENS["start"] = broken
"""


def started(folder: Path, idle: float, script: str = SERVE) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(idle)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def listening(pid: int) -> set[str]:
    """Return the addresses that a process listens on, as the system's table has them."""
    sockets = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            part = line.split()
            if part[3] == "0A" and f"socket:[{part[9]}]" in sockets:
                found.add(part[1].partition(":")[0])
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no table of sockets in /proc")
def test_it_listens_on_this_machine_alone_and_quits_when_asked(folder: Path) -> None:
    process, address = started(folder, 60)
    try:
        assert listening(process.pid) == {"0100007F"}
        home = address.partition("/?")[0]
        with httpx.Client(base_url=home) as client:
            assert client.get(address).status_code == 303
            assert client.get("/").status_code == 200
            with client.stream("GET", "/events") as events:  # an open page does not hold it back
                lines = events.iter_lines()
                assert next(lines) == "event: hello"
                assert client.post("/quit", headers={"origin": home}).status_code == 200
                assert any("stopped" in line for line in lines)
        output, errors = process.communicate(timeout=20)
        assert process.returncode == 0 and output == "" and errors == ""
    finally:
        process.kill()


def test_nothing_of_an_error_reaches_the_terminal(folder: Path) -> None:
    """Where people see it, and where it may be kept: the text of an error of a package can be a value of a cell."""
    process, address = started(folder, 60, BROKEN + SERVE)
    try:
        home = address.partition("/?")[0]
        with httpx.Client(base_url=home) as client:
            client.get(address)
            assert client.get("/").status_code == 500
            with socket.create_connection(("127.0.0.1", int(home.rpartition(":")[2]))) as raw:
                raw.sendall(b"Jane Doe\r\n\r\n")
                assert raw.recv(100).startswith(b"HTTP/1.1 400")
            client.post("/quit", headers={"origin": home})
        output, errors = process.communicate(timeout=20)
        assert output == "" and errors == ""
    finally:
        process.kill()


def test_it_quits_when_nobody_uses_it(folder: Path) -> None:
    process, _ = started(folder, 0.5)
    try:
        began = time.monotonic()
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0 and errors == "" and time.monotonic() - began < 15
    finally:
        process.kill()


def test_the_command_opens_a_file_and_ends_with_ctrl_c(folder: Path) -> None:
    command = [sys.executable, "-m", "sfumato", "studio", str(folder / "people.csv"), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said, _, address = process.stdout.readline().strip().rpartition(" ")
        assert said == "The studio is at" and len(address) > 60
        with httpx.Client(follow_redirects=True) as client:
            assert "people.csv" in client.get(address).text
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 130 and "Traceback" not in errors
    finally:
        process.kill()
