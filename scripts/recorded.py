# SPDX-License-Identifier: Apache-2.0
"""Record results that a refactoring must not change, and compare them with what the code gives now.

    python scripts/recorded.py                          # compare all; exit code 1 when anything differs
    python scripts/recorded.py --only anonymize/        # only scenes whose names start like this
    python scripts/recorded.py --write                  # record again; say why in tests/recorded/CHANGES.md
    python scripts/recorded.py --dump FOLDER            # write everything that is compared as text files, for diff -r

A scene is a function that returns named parts: partitions, releases, documents, files of a command. tests/recorded
holds the SHA-256 of each part and a few words about it. CSV files and other releases whose order is random are
compared by value, everything else byte by byte; durations, paths, digests of files and versions are left out.

Floating-point numbers depend on the versions of the libraries below, which tests/recorded/versions.json names: with
other versions the comparison says so, and a difference may come from them. Scenes that need pyspark and Java, or
torch, are skipped where those are not installed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

REPOSITORY = Path(__file__).resolve().parents[1]
RECORD = REPOSITORY / "tests" / "recorded"
MODULES = ("recorded_scenes_groups", "recorded_scenes_verbs", "recorded_scenes_commands")
VERSIONS = (
    "numpy", "scipy", "scikit-learn", "numba", "narwhals", "pyarrow", "pandas", "polars", "torch", "pyspark", "typer",
)  # fmt: skip


@dataclass
class Outcome:
    """Result of one scene: digests and words of its parts, or why there are none."""

    name: str
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    skipped: str | None = None
    failed: str | None = None
    seconds: float = 0.0


def scene_names() -> list[str]:
    """Return the names of all scenes, in their order."""
    return list(_scenes())


def _scenes() -> dict[str, Any]:
    from importlib import import_module

    found: dict[str, Any] = {}
    for module in MODULES:
        found |= import_module(module).SCENES
    return found


def run_scene(name: str, folder: Path | None = None) -> Outcome:
    """Run one scene, and write its texts to a folder if there is one."""
    import numpy as np

    from recorded_plain import SkippedSceneError, digest, spelled, words_about

    outcome, started = Outcome(name), time.perf_counter()
    np.random.seed(0)  # what uses numpy's shared state is seeded, too
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for part, value in _scenes()[name]().items():
                text = spelled(value)
                outcome.parts[part] = {"sha256": digest(text), "about": words_about(value)}
                if folder is not None:
                    path = folder / name / f"{part.replace('/', '_').replace(' ', '_')}.txt"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    except SkippedSceneError as reason:
        outcome.skipped = str(reason)
    except Exception:
        outcome.failed = traceback.format_exc(limit=-6)
    outcome.seconds = time.perf_counter() - started
    return outcome


def run_all(names: list[str], jobs: int, folder: Path | None) -> Iterator[Outcome]:
    """Run scenes, one after another or in several processes; a session of Spark would keep those from ending."""
    here = [name for name in names if jobs == 1 or name.startswith("spark/")]
    elsewhere = [name for name in names if name not in here]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(run_scene, name, folder) for name in elsewhere]
        yield from (run_scene(name, folder) for name in here)
        yield from (future.result() for future in as_completed(futures))


# -- the record --------------------------------------------------------------------------------------------------


def file_of(scene: str) -> Path:
    """Return the file that holds a scene: one per first word of the names."""
    return RECORD / f"{scene.partition('/')[0]}.json"


def read_record() -> dict[str, dict[str, dict[str, str]]]:
    """Return what was recorded, by scene and part."""
    recorded: dict[str, dict[str, dict[str, str]]] = {}
    for path in sorted(RECORD.glob("*.json")):
        if path.name != "versions.json":
            recorded |= json.loads(path.read_text(encoding="utf-8"))
    return recorded


def write_record(outcomes: list[Outcome], known: list[str], here: dict[str, str]) -> None:
    """Write what the scenes gave; of scenes that did not run here, what was recorded stays."""
    recorded = {name: parts for name, parts in read_record().items() if name in known}
    recorded |= {outcome.name: outcome.parts for outcome in outcomes if outcome.parts and not outcome.failed}
    RECORD.mkdir(parents=True, exist_ok=True)
    files: dict[Path, dict[str, Any]] = {}
    for name in known:
        if name in recorded:
            files.setdefault(file_of(name), {})[name] = recorded[name]
    for path in RECORD.glob("*.json"):
        if path not in files and path.name != "versions.json":
            path.unlink()
    for path, scenes in files.items():
        _write(path, scenes)
    _write(RECORD / "versions.json", here)


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Return what floating-point results depend on."""
    found = {"Python": platform.python_version(), "machine": platform.machine()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def differences(outcome: Outcome, recorded: dict[str, dict[str, str]] | None) -> list[str]:
    """Return a line for everything that differs between a scene's parts and what was recorded of it."""
    name = outcome.name
    if outcome.failed:
        return [f"{name}: failed\n{outcome.failed}"]
    if outcome.skipped:
        return []
    if recorded is None:
        return [f"{name}: is not recorded"]
    lines = []
    for part, old in recorded.items():
        new = outcome.parts.get(part)
        if new is None:
            lines.append(f"{name} | {part}: is missing; was {old['about']}")
        elif new["sha256"] != old["sha256"]:
            lines.append(f"{name} | {part}\n    was {old['about']}\n    is  {new['about']}")
    lines += [f"{name} | {part}: is not recorded" for part in outcome.parts if part not in recorded]
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record what the code gives now")
    parser.add_argument("--only", default="", metavar="NAME", help="scenes whose names start like this")
    parser.add_argument("--list", action="store_true", help="list the scenes")
    parser.add_argument("--dump", type=Path, metavar="FOLDER", help="write all texts that are compared")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--threads", type=int, default=1, help="threads that results are made with; must not matter")
    asked = parser.parse_args(arguments)
    # Before numpy is loaded. Linear algebra adds up in another order with other threads, so it always has one.
    os.environ |= {"RECORDED_THREADS": str(asked.threads), "OMP_NUM_THREADS": str(asked.threads)}
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TZ": "UTC"}
    known = scene_names()
    names = [name for name in known if name.startswith(asked.only)]
    if asked.list or not names:
        print("\n".join(names) if names else f"no scene starts with {asked.only!r}; --list lists them")
        return 0 if names else 2
    recorded, here, started = read_record(), versions(), time.perf_counter()
    outcomes, different = [], 0
    for outcome in run_all(names, asked.jobs, asked.dump):
        outcomes.append(outcome)
        lines = [] if asked.write and not outcome.failed else differences(outcome, recorded.get(outcome.name))
        different += len(lines)
        state = f"skipped: {outcome.skipped}" if outcome.skipped else f"{len(outcome.parts)} parts"
        print(f"{outcome.name:40}{outcome.seconds:6.1f} s  {state}", flush=True)
        for line in lines:
            print(f"  DIFFERENT  {line}", flush=True)
    for name in sorted(set(recorded) - set(known)) if not asked.only and not asked.write else ():
        different += 1
        print(f"  DIFFERENT  {name}: is recorded, and there is no such scene")
    n_skipped = sum(outcome.skipped is not None for outcome in outcomes)
    print(f"{len(outcomes)} scenes in {time.perf_counter() - started:.0f} seconds, {n_skipped} skipped")
    if asked.write:
        if not different:
            write_record(outcomes, known, here)
        return int(different > 0)
    say_versions(here)
    print(f"{different} differences" if different else "no differences")
    return int(different > 0)


def say_versions(here: dict[str, str]) -> None:
    """Print which versions are not those that the record was made with."""
    path = RECORD / "versions.json"
    theirs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    others = [f"{name} {old} (here {here.get(name)})" for name, old in theirs.items() if here.get(name) != old]
    if others:
        print(f"the record was made with {', '.join(others)}: differences may come from that")


if __name__ == "__main__":
    raise SystemExit(main())
