# SPDX-License-Identifier: Apache-2.0
"""What a paper says, and what became of it here. Made by the experiments, shown by the pages and the command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HELD, NOT_HELD, UNTESTED = "held", "did not hold", "cannot be tested here"


@dataclass(frozen=True)
class Claim:
    """One row: what the paper says, whether it held, and the numbers."""

    text: str
    verdict: str
    numbers: str


def claim_rows(claims: Iterable[Claim]) -> list[str]:
    """Return claims as a table in Markdown."""
    return [
        "| claim | verdict | here |",
        "| --- | --- | --- |",
        *(f"| {claim.text} | {claim.verdict} | {claim.numbers} |" for claim in claims),
    ]
