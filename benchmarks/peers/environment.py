# SPDX-License-Identifier: Apache-2.0
"""Build and find a peer's virtual environment; ``python -m benchmarks.peers.environment NAME`` builds one.

The peers pin versions that sfumato does not run with, so none of them can live in our environment. Theirs lie
under ``.peers/`` in the repository (ignored by git), or under the folder that ``SFUMATO_PEERS`` names.
``SFUMATO_PEER_PYTHON`` names another interpreter, for a Python too new for a peer's pins. Called by the
benchmarks that have a peer.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PEERS = Path(__file__).parent
REPOSITORY = PEERS.parents[1]


class PeerError(RuntimeError):
    """A peer's environment could not be built, or its run failed."""


def home_of(peer: str) -> Path:
    """Return the folder of a peer's environment, built or not."""
    folder = os.environ.get("SFUMATO_PEERS")
    return (Path(folder) if folder else REPOSITORY / ".peers") / peer


def is_ready(peer: str) -> bool:
    """Return True if the environment exists and was built from the requirements as they are now."""
    stamp = home_of(peer) / ".ready"
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _fingerprint(peer)


def ensure_environment(peer: str) -> Path:
    """Return the python of a peer's environment, building the environment when it is missing or stale."""
    home = home_of(peer)
    python = home / "bin" / "python"
    if is_ready(peer):
        return python
    base = os.environ.get("SFUMATO_PEER_PYTHON", sys.executable)
    print(f"Building the environment of {peer} (once; a minute or more) ...", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)  # a half-built one has no stamp and cannot be trusted
    _call([base, "-m", "venv", str(home)], f"No virtual environment for {peer}")
    requirements = PEERS / peer / "requirements.txt"
    install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(requirements)]
    _call(install, f"The requirements of {peer} do not install; SFUMATO_PEER_PYTHON can name a Python 3.11")
    # Written last: only a complete environment has a stamp.
    (home / ".ready").write_text(_fingerprint(peer), encoding="utf-8")
    return python


def run_peer(peer: str, arguments: Sequence[str], *, timeout: float = 1800.0) -> dict[str, object]:
    """Run a peer's ``runner.py`` in its environment and return the JSON object of its last line."""
    python = ensure_environment(peer)
    command = [str(python), "-I", str(PEERS / peer / "runner.py"), *arguments]
    output = _call(command, f"The run of {peer} failed", timeout=timeout)
    answer: dict[str, object] = json.loads(output.strip().splitlines()[-1])
    return answer


def _fingerprint(peer: str) -> str:
    return hashlib.sha256((PEERS / peer / "requirements.txt").read_bytes()).hexdigest()


def _call(command: Sequence[str], failure: str, *, timeout: float | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"{failure}: stopped after {timeout:.0f} s.") from error
    except OSError as error:
        raise PeerError(f"{failure}: {error.strerror}.") from error
    if done.returncode:
        raise PeerError(f"{failure}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.parent.name for path in PEERS.glob("*/requirements.txt")):
        ensure_environment(name)
        print(f"{name} is ready")
