# SPDX-License-Identifier: Apache-2.0
"""The command that does what a screen does, to be run in the start folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.studio.measurements import curve_of, ways
from sfumato.studio.project import Project
from sfumato.studio.session import CURVES, DIVERSITIES, LOSSES, N_SPLITS, QUESTIONNAIRES, Studio


def commands(studio: Studio, screen: str, asked: Mapping[str, str], language: str = "en") -> list[str]:
    """Return the command of a screen; of one with a slider that writes, the command of each stop.

    Parameters
    ----------
    studio : Studio
    screen : str
    asked : mapping of str to str
        The query of the page.
    language : str
        Of a form.
    """
    project = studio.project
    if project is None or not project.has_policy or screen == "start":
        return ["sfumato studio"]
    own, policy, file = project.policy.values["columns"], project.policy_file, project.file

    def said(*parts: str | Path, **named: Any) -> str:
        """Return a command; paths as seen from the start folder, empty options left out."""
        words = ["sfumato", *(os.path.relpath(one, studio.folder) if isinstance(one, Path) else one for one in parts)]
        for name, value in named.items():
            if value in (None, (), [], "", {}):
                continue
            listed = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
            shown = os.path.relpath(listed, studio.folder) if isinstance(listed, Path) else f"{listed}"
            words += [f"--{name.replace('_', '-')}" if len(name) > 1 and name != "output" else _SHORT[name], shown]
        return shlex.join(words)

    def beside(name: str) -> Path:
        return policy.parent / name

    if screen == "table":
        return [said("init", file, target=own["target"], output=policy)]
    if screen == "roles":
        return [said("measure", file, quasi_identifiers=project.rewritten, **_reading(project))]
    if screen == "frontier":
        curve = CURVES[curve_of(asked)]
        numbers = {curve.family.replace("-", "_"): [f"{stop:g}" for stop in curve.stops]}
        public = studio.public if curve.family == "epsilon" else None
        return [said("frontier", policy, **numbers, public=public, splits=N_SPLITS)]
    if screen == "compare":
        numbers = {way.family.replace("-", "_"): [f"{way.number:g}"] for way in ways(studio)}
        public = studio.public if "epsilon" in numbers else None
        return [said("frontier", policy, **numbers, public=public, splits=N_SPLITS)]
    if screen == "release":
        pack = {"for": QUESTIONNAIRES, "output": beside(studio.pack)}
        return [f"{said('run', policy)} && {said('evidence', policy, **pack)}"]
    if screen == "minimize":
        document, form = (beside(name) for name in studio.other_outputs("minimize"))
        titles = policy if project.policy.titles else None
        codes = [name for name in own["categorical"] or () if name not in own["identifiers"]]
        return [
            said("minimize", file, target=own["target"], personal=own["sensitive"], identifiers=own["identifiers"],
                 categorical=codes, max_loss=f"{loss:g}", **_reading(project), titles=titles,
                 output=document, form=form, language=None if language == "en" else language)
            for loss in LOSSES
        ]  # fmt: skip
    if screen == "anatomize":
        [folder] = studio.other_outputs("anatomize")
        return [
            said("anatomize", file, sensitive=own["sensitive"], identifiers=own["identifiers"], l=stop,
                 seed=str(project.policy.get("method", "seed")), **_reading(project), output=beside(folder))
            for stop in DIVERSITIES
        ]  # fmt: skip
    return [said("run", policy)]


_SHORT = {"output": "-o", "k": "--k", "l": "--l", "t": "--t"}


def _reading(project: Project) -> dict[str, Any]:
    """Return the options by which a CSV file is read as the policy says."""
    own = project.policy.values["data"]
    types = [f"{name}={kind}" for name, kind in own["types"].items()]
    return {"types": types, **{name: own[name] for name in ("separator", "decimal", "encoding", "missing", "header")}}
