# SPDX-License-Identifier: Apache-2.0
"""What attackers guess from anatomized tables: deFinetti's attack and the minimality attack, under both assignments.

Shown on the page of ``anatomy``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from studies.anatomy import ATTACKED_ROWS, N_VALUES, TABLES, L, load, sample
from studies.runner import Experiment

BY = ("table", "l", "assignment", "attack")


def run(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Anatomize a sample of one table under one rule, and let the attacks guess the sensitive values."""
    from sfumato import Anatomizer
    from sfumato.attack import definetti, minimality

    name, length, assignment = (keys[0][entry] for entry in BY[:3])
    X, y, sensitive = load(name)
    X, y = sample(X, y, None if paper_scale else ATTACKED_ROWS)
    X = X.assign(**{sensitive: X[sensitive].astype(str), "target": y})  # the class leaves, as in the paper
    anatomizer = Anatomizer(length, sensitive=sensitive, suppression_limit=1.0, assignment=assignment, random_state=0)
    anatomized, rows = anatomizer.fit_transform_with_rows(X)
    published = anatomized.identifying, anatomized.sensitive, X[sensitive].to_numpy()[rows]
    for key in keys:
        result = definetti(*published) if key["attack"] == "definetti" else minimality(*published, l=length)
        yield {
            "n_records": len(rows),
            **{name: value for name, value in result.to_dict().items() if name != "attack"},
        }


EXPERIMENT = Experiment(
    name="anatomy_attacks",
    by=BY,
    keys=tuple(
        dict(zip(BY, (table, length, assignment, attack), strict=True))
        for table in TABLES
        for length in L
        if length <= N_VALUES[table]
        for assignment in ("largest", "random")
        for attack in ("definetti", "minimality")
    ),
    run=run,
    together=BY[:3],
    titles={**TABLES, "largest": "largest values", "random": "random assignment"},
)
