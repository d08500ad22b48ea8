# SPDX-License-Identifier: Apache-2.0
"""Does the studio stay quick and small with 1,000,000 records while a job runs?

Census-like records in a CSV file, and the policy that the studio suggests. *First screen*: from starting the command
until the screen Table has its facts, less what it takes a process of its own to read the same file. *Answers*: every
screen is asked for in turn while a job runs, roles are changed and changed back, records are previewed; each answer is
timed by the client, headers and body. *Memory*: the highest sum over all processes (server, counting process, job),
shared pages divided among those that share them, while the studio judges the release; less that of ``sfumato run`` with
the same policy. Run once.
"""

import http.client
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from pyarrow import csv

from benchmarks.harness import Context, at_most
from benchmarks.workloads import SEED
from sfumato.datasets import make_census

TITLE = "the studio with a million records"
REPOSITORY = Path(__file__).parents[1]
SCREENS = ("/", "/table", "/roles", "/frontier", "/frontier?by=l", "/compare", "/release", "/minimize", "/anatomize")
READ = """
import sys
from pathlib import Path
from sfumato.files.table_file import ReadingOptions, read_file
read_file(Path(sys.argv[1]), ReadingOptions(), keep_types=False)
"""
EVERY = 0.05  # seconds between two looks at the memory


def run(context: Context) -> None:
    """Measure the studio beside the command on the same table and policy."""
    n_records = context.size(1_000_000, 3_000)
    with tempfile.TemporaryDirectory() as name:
        if not context.is_quick:  # kernels that are compiled now would count as memory and time of whoever comes first
            measure_table(Context(is_quick=True, say=lambda _: None), Path(name, "first"), 3_000)
        measure_table(context, Path(name, "second"), n_records)


def measure_table(context: Context, folder: Path, n_records: int) -> None:
    """Measure the studio on a new table."""
    folder.mkdir()
    csv.write_csv(make_census(n_records, random_state=SEED, as_frame="pyarrow").frame, folder / "people.csv")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", READ, str(folder / "people.csv")], check=True, cwd=REPOSITORY)
    reading = time.perf_counter() - began
    studio = Visit(folder / "people.csv")
    try:
        measure_studio(context, studio, n_records, reading)
    finally:
        studio.end()


def measure_studio(context: Context, studio: "Visit", n_records: int, reading: float) -> None:
    """Go through the studio as people do, with a clock and an eye on the memory."""
    studio.wait_for("/table", 'class="facts"')
    shown = time.perf_counter() - studio.began
    context.record("first screen after the table is read", shown - reading, "s", target=at_most(2),
                   note=f"{shown:.1f} s after the command was started; reading alone {reading:.1f} s")  # fmt: skip
    studio.wait_for("/roles", 'id="c0"')
    for place in sorted(set(re.findall(r'id="confirm-(\d+)"', studio.get("/roles")))):
        studio.post(f"/roles/{place}", role=studio.role(place), confirm="yes")
    studio.wait_for("/roles", "are the only ones")

    with Watch(studio.process.pid) as watch:
        studio.post("/release/judge")
        studio.seconds.clear()
        while 'action="/job/cancel"' in (page := studio.get("/release")):
            for path in SCREENS:
                studio.get(path)
            before = studio.role("1")
            studio.post("/roles/1", role="leave" if before == "rewrite" else "rewrite")
            studio.post("/undo")
            studio.post("/table/preview")
            time.sleep(0.2)  # somebody reads
    answers = studio.seconds
    slowest = max(answers, key=lambda path: max(answers[path]))
    every = sorted(one for own in answers.values() for one in own)
    assert "Ended early" not in page, "the job failed"
    note = f"{slowest}; median {1000 * every[len(every) // 2]:.0f} ms of {len(every)} answers"
    context.record("slowest answer while a job runs", 1000 * every[-1], "ms", target=at_most(200), note=note)

    command = [sys.executable, "-m", "sfumato", "run", "people-policy.toml"]
    with subprocess.Popen(command, cwd=studio.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        with Watch(process.pid) as alone:
            said, _ = process.communicate()
        assert process.returncode in (0, 1), said.decode()
    note = f"{n_records:,} records: {watch.peak:,.0f} MB beside {alone.peak:,.0f} MB of sfumato run"
    context.record("memory beside that of the command", watch.peak - alone.peak, "MB", target=at_most(150), note=note)


class Visit:
    """A running studio, and a browser without eyes.

    Attributes
    ----------
    seconds : dict of str to list of float
        How long each address took to answer.
    """

    def __init__(self, file: Path) -> None:
        self.folder = file.parent
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", "studio", file.name, "--no-browser"], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        address = urlsplit(self.process.stdout.readline().rsplit(" ", 1)[1].strip())
        self._home, self._cookie = address.netloc, ""
        self.seconds: dict[str, list[float]] = {}
        self._ask("GET", f"/?{address.query}")

    def _ask(self, method: str, path: str, body: str = "") -> str:
        headers = {"cookie": self._cookie, "origin": f"http://{self._home}", "referer": f"http://{self._home}/roles"}
        if body:
            headers["content-type"] = "application/x-www-form-urlencoded"
        began = time.perf_counter()
        line = http.client.HTTPConnection(self._home, timeout=120)
        line.request(method, path, body or None, headers)
        answer = line.getresponse()
        text = answer.read().decode()
        line.close()
        self.seconds.setdefault(f"{method} {path}", []).append(time.perf_counter() - began)
        self._cookie = (answer.headers["set-cookie"] or self._cookie).partition(";")[0]
        assert answer.status in (200, 303), f"{method} {path}: {answer.status}"
        return text

    def get(self, path: str) -> str:
        """Return a page."""
        return self._ask("GET", path)

    def post(self, path: str, **form: str) -> None:
        """Send a form."""
        self._ask("POST", path, urlencode(form))

    def role(self, place: str) -> str:
        """Return the role of a column, by its place."""
        [row] = re.findall(rf'id="role-{place}">(.*?)</select>', self.get("/roles"), re.DOTALL)
        return str(re.findall(r'value="(\w+)" selected', row)[0])

    def wait_for(self, path: str, text: str) -> None:
        """Ask for a page until it has a text."""
        while text not in self.get(path):
            assert self.process.poll() is None, "the studio ended"
            time.sleep(0.02)

    def end(self) -> None:
        """End the studio."""
        self.process.terminate()
        self.process.wait(30)


class Watch:
    """Looks again and again at the memory of a process and all that it started, while something runs.

    Attributes
    ----------
    peak : float
        The highest sum in MB.
    """

    def __init__(self, pid: int) -> None:
        self._pid, self.peak = pid, 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(EVERY):
            self.peak = max(self.peak, sum(map(_proportional, _tree(self._pid))))


def _tree(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _tree(int(child)))]


def _proportional(pid: int) -> float:
    """Return the resident size of a process in MB, shared pages divided among those that share them."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return 0.0 if found is None else int(found.group(1)) / 1000
