# SPDX-License-Identifier: Apache-2.0
"""What every attack answers: one rate, how sure it is, and what it must be compared with.

All attacks return an `AttackResult`; audits collect them and reports print them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from sfumato import __version__
from sfumato.documents import plain, written_whole

Verdict = Literal["stronger than baseline", "not shown", "failed attack"]
"""What an attack has shown. A *failed attack* did worse than the attacker who ignores the protected data: it says
that the attack was badly made, never that the data is safe."""


@dataclass(frozen=True)
class AttackResult:
    """How often an attack succeeded, against whom, and at what cost.

    Attributes
    ----------
    attack : str
        Its name.
    rate : float
        Share of successes of the attacker, from 0 to 1; higher is riskier.
    interval : (float, float)
        Confidence interval of the rate.
    baseline : float
        Rate of the attacker who does not see what is attacked.
    control : float or None
        Rate of the same attack on records that it could not have learned from, where there is such a control.
    verdict : {"stronger than baseline", "not shown", "failed attack"}
    seconds : float
        What the attack cost.
    seed : int or None
        The seed of everything random in it; None when nothing was.
    details : mapping
        More numbers, by name. No cell values: names of columns and counts only.
    """

    attack: str
    rate: float
    interval: tuple[float, float]
    baseline: float
    control: float | None
    verdict: Verdict
    seconds: float
    seed: int | None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and text; None (null in JSON) where there is no finite number."""
        document: dict[str, Any] = plain(self)
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> AttackResult:
        """Rebuild a result from `to_dict`'s document."""
        return cls(**{**document, "interval": tuple(document["interval"])})

    def with_verdict(self, verdict: Verdict, **reasons: Any) -> AttackResult:
        """Return the same result under another verdict, with the reasons among its details."""
        return replace(self, verdict=verdict, details={**self.details, **reasons})


def recalled(cache: str | Path | None, key: object, run: Callable[[], AttackResult]) -> AttackResult:
    """Return the result of an attack that was run before with the same key, or run it and keep the result.

    Parameters
    ----------
    cache : path or None
        Folder of finished results; an interrupted audit goes on from there. None: nothing is kept.
    key : object
        Everything the result depends on, with a `repr` that says all of it.
    run : callable
    """
    if cache is None:
        return run()
    folder = Path(cache)
    # Another version may attack better; what an older one found is not its answer.
    path = folder / f"{hashlib.sha256(repr((__version__, key)).encode()).hexdigest()}.json"
    if path.exists():
        return AttackResult.from_dict(json.loads(path.read_text(encoding="utf-8")))
    result = run()
    folder.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(result.to_dict(), allow_nan=False), encoding="utf-8")
    return result
