# SPDX-License-Identifier: Apache-2.0
"""All attacks on one generalization, A1 to A8, with the order between them checked. Called by audits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sfumato.attack.linkability import link_records
from sfumato.attack.reconstruction import (
    Names,
    reconstruct,
    reconstruct_from_breaches,
    reconstruct_leaving_one_out,
    reconstruct_with_non_personal,
    reconstruct_with_some_personal,
)
from sfumato.attack.reconstruction_adversaries import FamilySettings
from sfumato.attack.reconstruction_scoring import check_order
from sfumato.attack.result import AttackResult
from sfumato.attack.samples import Samples
from sfumato.attack.singling_out import single_out
from sfumato.errors import ParameterError
from sfumato.generalization import Generalization

logger = logging.getLogger(__name__)

#: Pairs of attacks, the one that knows less first.
ORDER = (("A1", "A3"), ("A3", "A5"), ("A5", "A4"), ("A1", "A6"))


def attack_generalization(
    generalization: Generalization,
    samples: Samples,
    personal: Names | None = None,
    *,
    attacks: Iterable[str] | None = None,
    certainty: float = 0.05,
    other_breaches: Sequence[Generalization] = (),
    link: tuple[Names, Names] | None = None,
    known: Names = (),
    settings: FamilySettings | None = None,
    cache: str | Path | None = None,
    progress: Callable[[str], Any] | None = None,
) -> dict[str, AttackResult]:
    """Run the attacks of the minimization paper on a generalization.

    Parameters
    ----------
    generalization : Generalization
    samples : Samples
    personal : list of str or int, optional
        Attributes to reconstruct, in the order in which A5 comes to know them; None: all categories.
    attacks : iterable of str, optional
        Some of ``"A1"`` to ``"A8"``; None: all that the other arguments allow.
    certainty : float, default=0.05
        Share of the surest guesses that count in A2.
    other_breaches : sequence of Generalization, default=()
        Other generalizations that the same people were breached under, for A6.
    link : pair of lists of str or int, optional
        Attributes on either side, for A7.
    known : list of str or int, default=()
        Columns that were breached as they are.
    settings : FamilySettings, optional
        The adversaries of A1 to A6.
    cache : path, optional
        Folder of finished results; an interrupted run goes on from there.
    progress : callable, optional
        Called with the name of each attack before it runs.

    Returns
    -------
    dict of str to AttackResult
        By the number of the attack. One that knows more than another and does worse is marked a failed attack.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.attack import FamilySettings, Samples
    >>> from sfumato.minimize import UniformMinimizer
    >>> people = pa.table({"sex": ["f", "m", "m"] * 20, "title": ["Ms", "Mr", "Mr"] * 20})
    >>> generalization = UniformMinimizer(n_buckets=1).fit(people).generalization_
    >>> counting = FamilySettings(adversaries=("table",))
    >>> found = attack_generalization(generalization, Samples(people, people, people), ["sex"], settings=counting)
    >>> {attack: round(result.rate, 2) for attack, result in found.items()}
    {'A1': 0.67, 'A2': 0.67, 'A3': 1.0, 'A4': 1.0, 'A5': 1.0, 'A8': 0.0}
    """
    arguments: dict[str, Any] = {"known": known, "settings": settings, "cache": cache}
    train, _, test = samples.frames
    runs: dict[str, Callable[[], AttackResult]] = {
        "A1": lambda: reconstruct(generalization, samples, personal, **arguments),
        "A2": lambda: reconstruct(generalization, samples, personal, certainty=certainty, **arguments),
        "A3": lambda: reconstruct_with_non_personal(generalization, samples, personal, **arguments),
        "A4": lambda: reconstruct_leaving_one_out(generalization, samples, personal, **arguments),
        "A5": lambda: reconstruct_with_some_personal(generalization, samples, personal, **arguments),
        "A8": lambda: single_out(generalization, test, prior=train),
    }
    if other_breaches:
        breaches = [generalization, *other_breaches]
        runs["A6"] = lambda: reconstruct_from_breaches(breaches, samples, personal, **arguments)
    if link is not None:
        left, right = link
        runs["A7"] = lambda: link_records(generalization, test, test, left, right, control=train)
    results = {}
    for attack in _checked(attacks, sorted(runs)):
        logger.info("running %s", attack)
        if progress is not None:
            progress(attack)
        results[attack] = runs[attack]()
    for weaker, stronger in ORDER:
        if weaker in results and stronger in results:
            results[stronger] = check_order(results[weaker], results[stronger])
    return results


def _checked(attacks: Iterable[str] | None, possible: list[str]) -> list[str]:
    if attacks is None:
        return possible
    wanted = list(attacks)
    unknown = [attack for attack in wanted if attack not in possible]
    if unknown:
        raise ParameterError(
            f"attacks names {', '.join(map(repr, unknown))}: expected some of {', '.join(possible)}. A6 needs "
            "other_breaches=, A7 needs link=."
        )
    return wanted
