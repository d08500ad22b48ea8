# SPDX-License-Identifier: Apache-2.0
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from browser import browser as browser
from sfumato.studio.application import create_application
from sfumato.studio.child import Worker
from sfumato.studio.project import Project
from sfumato.studio.security import Guard
from sfumato.studio.session import Studio

httpx = pytest.importorskip("httpx", reason="httpx is not installed (extra: test)")
pytest.importorskip("starlette", reason="starlette is not installed (extra: studio)")

PORT = 4711
HOME = f"http://127.0.0.1:{PORT}"


def people(n: int = 400) -> pa.Table:
    random = np.random.default_rng(0)
    age, job = random.integers(18, 80, n), random.choice(["clerk", "nurse", "cook", "smith"], n)
    race = random.choice(["x", "y", "z"], n)
    ill = np.where(age + random.normal(0, 8, n) > 50, "yes", "no")
    return pa.table({"age": age, "job": job, "race": race, "hours": random.integers(10, 60, n), "ill": ill})


class Visitor:
    """A browser that got the studio's cookie."""

    def __init__(self, studio: Studio, guard: Guard) -> None:
        self.studio, self.guard = studio, guard
        self.has_quit = False
        transport = httpx.ASGITransport(app=guard, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url=HOME)

    async def enter(self) -> None:
        assert (await self.client.get("/", params={"token": self.guard.token})).status_code == 303

    async def get(self, path: str, **headers: str) -> Any:
        return await self.client.get(path, headers=headers)

    async def post(self, path: str, form: dict[str, Any] | None = None, **headers: str) -> Any:
        headers = {"origin": HOME, "referer": f"{HOME}/table", **headers}
        return await self.client.post(path, data=form or {}, headers=headers)


def looked_at(studio: Studio, name: str = "people.csv") -> None:
    """Open a table as the studio does, with the child's work done here instead of in a process."""
    told: dict[str, Any] = {}
    file = studio.folder / name
    project = Project(file)

    def tell(kind: str, **content: Any) -> None:
        told[kind] = content

    policy = str(project.policy_file) if project.has_policy else None
    Worker().look(tell, file=str(file), policy=policy, policy_file=str(project.policy_file))
    if told["suggested"]["policy"] is not None:
        project.begin(told["suggested"]["policy"])
    studio.project, studio.facts, studio.suggested = project, told["facts"]["facts"], told["suggested"]["roles"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    start = tmp_path / "start"
    start.mkdir()
    csv.write_csv(people(), start / "people.csv")
    return start


Visit = Callable[[Callable[[Visitor], Awaitable[None]]], None]


@pytest.fixture
def visit(folder: Path) -> Visit:
    """Return a function that runs a visit to a studio that was just started."""

    def run(story: Callable[[Visitor], Awaitable[None]]) -> None:
        async def whole() -> None:
            studio = Studio(folder)
            visitor = Visitor(studio, create_application(studio, lambda: setattr(visitor, "has_quit", True)))
            visitor.guard.port = PORT
            try:
                await story(visitor)
            finally:
                await visitor.client.aclose()
                await studio.stop()

        asyncio.run(whole())

    return run
