# SPDX-License-Identifier: Apache-2.0
"""The bill of materials: the installed distributions that sfumato uses, in the form of CycloneDX 1.6.

Read from the metadata of the installed distributions alone; nothing is looked up elsewhere.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

_FOR_DEVELOPERS = ("test", "check", "docs")  # extras of sfumato that users do not install
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def bill_of_materials(date: str) -> dict[str, Any]:
    """Return the bill of materials as a CycloneDX document.

    Parameters
    ----------
    date : str
        Date and time in UTC.
    """
    found: dict[str, Distribution] = {}
    needs: dict[str, list[str]] = {}
    waiting = ["sfumato"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # an extra, or for another system
        needs[name] = _requirements(found[name], name)
        waiting += needs[name]
    references = {name: f"pkg:pypi/{name}@{own.version}" for name, own in found.items()}
    own = _component("sfumato", found["sfumato"], references, kind="application")
    others = [_component(name, found[name], references) for name in sorted(found) if name != "sfumato"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": date, "component": own},
        "components": others,
        "dependencies": [
            {"ref": references[name], "dependsOn": sorted(references[need] for need in needs[name] if need in found)}
            for name in sorted(found)
        ],
    }


def _requirements(own: Distribution, name: str) -> list[str]:
    """Return the names of what a distribution requires; of extras, only those of sfumato that users install."""
    listed = []
    for requirement in own.requires or ():
        matched, extra = _REQUIREMENT.match(requirement), _EXTRA.search(requirement)
        if extra is not None and (name != "sfumato" or extra[1] in _FOR_DEVELOPERS):
            continue
        if matched is not None:
            listed.append(_normalized(matched[1]))
    return sorted(set(listed))


def _normalized(name: str) -> str:
    """Return a name as package indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _component(name: str, own: Distribution, references: dict[str, str], kind: str = "library") -> dict[str, Any]:
    licensed = own.metadata.json.get("license_expression")
    return {
        "type": kind,
        "bom-ref": references[name],
        "name": name,
        "version": own.version,
        "purl": references[name],
        **({"licenses": [{"expression": licensed}]} if licensed else {}),
    }
