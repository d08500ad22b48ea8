# SPDX-License-Identifier: Apache-2.0
"""Install every distribution of a folder in a clean environment, and use it there as a newcomer would.

    python scripts/try_distributions.py dist                                # with this Python
    python scripts/try_distributions.py dist --python python3.12 python3.13 # with others, too

Each is installed without anything else, from a folder that knows nothing of the repository. Then the import, the
demo and the README's Python must work. A table of sizes and seconds is printed, and in brackets the seconds of the
processors (0 on Windows), which other work on the machine changes less.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = (
    "distribution", "Python", "packages", "installed, MB", "install, s", "import, s", "first demo, s", "second demo, s",
    "README, s",
)  # fmt: skip
README = Path(__file__).resolve().parents[1] / "README.md"
IMPORT = """
import sfumato
assert not sfumato.__file__.startswith({repository!r}), sfumato.__file__
X, y = sfumato.datasets.load_adult(return_X_y=True)
names = [name for name in sfumato.__all__ if getattr(sfumato, name) is None]
assert not names, names
"""


def main() -> int:
    """Try all distributions with all Pythons; return 1 when something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    chosen = parser.parse_args()
    found = sorted(path.resolve() for path in chosen.folder.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    if {path.suffix for path in found} != {".whl", ".gz"}:
        print(f"{chosen.folder} has {len(found)} distributions: expected a wheel and a source archive. Run make dist.")
        return 1
    print("| " + " | ".join(NAMES) + " |")
    print("|" + " --- |" * len(NAMES))
    for python in chosen.python:
        for path in found:
            print("| " + " | ".join(_tried(path, python)) + " |", flush=True)
    return 0


def _tried(distribution: Path, python: str) -> list[str]:
    """Install a distribution in a new environment, use it, and return the cells of its row."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        subprocess.run([python, "-m", "venv", home / "env"], check=True)
        programs = home / "env" / ("Scripts" if os.name == "nt" else "bin")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SFUMATO"))}
        # Compiled kernels are kept beside the package: nothing of this machine's caches may help.
        clean |= {"NUMBA_CACHE_DIR": str(home / "kernels"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

        def seconds(*command: str | Path) -> str:
            started, before = time.perf_counter(), os.times()
            done = subprocess.run(command, cwd=home, env=clean, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{distribution.name}, {python}: {command[1:]} failed\n{done.stdout}\n{done.stderr}")
            took, after = time.perf_counter() - started, os.times()
            busy = after.children_user - before.children_user + after.children_system - before.children_system
            return f"{took:.1f} ({busy:.1f})"

        own = programs / "python"
        repository = str(Path(__file__).resolve().parents[1])
        installed = seconds(
            own, "-m", "pip", "install", "-q", "--only-binary", "numpy,scipy,numba,pyarrow", distribution
        )
        imported = seconds(own, "-c", IMPORT.format(repository=repository))
        demos = [seconds(programs / "sfumato", "demo") for _ in range(2)]
        listed = subprocess.run(
            [own, "-m", "pip", "list", "--format=freeze"], env=clean, capture_output=True, text=True, check=True
        )
        n_packages = sum(1 for line in listed.stdout.splitlines() if not line.startswith(("pip==", "setuptools==")))
        size = sum(
            path.stat().st_size for path in (home / "env").rglob("*") if path.is_file() and not path.is_symlink()
        )
        seconds(own, "-m", "pip", "install", "-q", "pandas")  # as the README says
        snippets = "\n".join(re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S))
        told = seconds(own, "-c", snippets)
        version = subprocess.run([own, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
        return [distribution.name, version, str(n_packages), f"{size / 1e6:.0f}", installed, imported, *demos, told]


if __name__ == "__main__":
    sys.exit(main())
