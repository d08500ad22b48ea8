# SPDX-License-Identifier: Apache-2.0
"""A private PostgreSQL server for tests: a new cluster in a temporary folder, reached by a socket file in it.

``postgres`` is a session fixture; import it where it is needed. Without a PostgreSQL, its tests are skipped.
"""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def find_programs() -> Path | None:
    """Return the folder with initdb, pg_ctl and psql, or None; some systems keep them off the search path."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if all((f / p).exists() for p in ("initdb", "pg_ctl", "psql"))), None)


@pytest.fixture(scope="session")
def postgres() -> Iterator["Postgres"]:
    """Start a server for all tests, and end it after the last."""
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL: initdb, pg_ctl and psql are not installed")
    user = _unprivileged_user()
    if os.geteuid() == 0 and user is None:
        pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' to run it")
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short path: that of a socket may have 107 characters
    server = Postgres(programs, folder, user)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Postgres:
    """One server."""

    def __init__(self, programs: Path, folder: Path, user: str | None) -> None:
        self._programs, self._folder, self._user = programs, folder, user
        if user is not None:
            shutil.chown(folder, user)

    def start(self) -> None:
        """Make a cluster and start its server."""
        data = str(self._folder / "data")
        self._run("initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-k {self._folder} -c listen_addresses='' -c fsync=off -c timezone=America/New_York"
        self._run("pg_ctl", "-D", data, "-o", options, "-l", str(self._folder / "log"), "-w", "start")

    def stop(self) -> None:
        """End the server."""
        if (self._folder / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "-w", "stop")

    def rows(self, script: str, query: str) -> list[dict[str, Any]]:
        """Run statements, then return the rows of a query; all is rolled back."""
        wrapped = (
            f"BEGIN;\n{script}\nSELECT coalesce(json_agg(row_to_json(q)), '[]') FROM (\n{query}\n) q;\nROLLBACK;\n"
        )
        options = ["-h", str(self._folder), "-U", "tester", "-d", "postgres", "-X", "-q", "-A", "-t"]
        return json.loads(self._run("psql", *options, "-v", "ON_ERROR_STOP=1", text=wrapped))

    def _run(self, program: str, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            [self._programs / program, *arguments],
            input=text,
            stdout=subprocess.PIPE if program == "psql" else subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "psql" else subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            user=self._user,
            cwd=self._folder,
            env=os.environ | {"PGCLIENTENCODING": "UTF8"},
            timeout=120,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"
        return done.stdout or ""


def _unprivileged_user() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)
