# SPDX-License-Identifier: Apache-2.0
"""Who is in the table: what a release tells about who was released, for every representative.

Half of a table is released, the other half are people of the same population. Counted: released combinations that
exactly one of all people has, that person being released. Attacked: membership, by the released record that is nearest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from studies.rates import Rate
from studies.rows import Row, documents, found, how_it_was_run, one_by_one, table, where
from studies.runner import Experiment
from studies.tables import TITLES, load

TABLES = ("adult-12", "acs-income-10", "lending-club-18")
REPRESENTATIVES = ("phantom", "range", "bounds", "median", "model", "member")
K = (5, 10, 100)
SEEDS = (0, 1, 2, 3, 4)
_N_EACH = 10_000
REDUCTIONS = (
    "Five splits: half of the records are released with `ModelGuidedAnonymizer`, guided by histogram boosting.",
    "20,000 candidates at most in each, half of them released. Intervals: 95%, Wilson, over all splits.",
    "Bounds and ranges name no combination, so nobody's is counted.",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for name in TABLES:
        for k in K:
            for representative in REPRESENTATIVES:
                for seed in SEEDS:
                    yield {"table": name, "seed": seed, "k": k, "representative": representative}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Release half of a table, count combinations of one person, and attack membership.

    `n_records` in the key, where there is one, limits the records of the table: for trying out.
    """
    import warnings

    from sklearn.model_selection import train_test_split

    from sfumato import ModelGuidedAnonymizer
    from sfumato.attack import find_members_of_release
    from studies.models import make_model

    data = load(key["table"])
    X, y = data.X[: key.get("n_records")], data.y[: key.get("n_records")]
    names = data.quasi_identifiers
    inside, outside, y_inside, _ = train_test_split(X, y, test_size=0.5, random_state=key["seed"], stratify=y)
    inside = inside.reset_index(drop=True)
    guide = make_model("hgb", 0, X).fit(inside, y_inside).predict_proba(inside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some representatives warn of what is measured here
        anonymizer = ModelGuidedAnonymizer(
            key["k"], quasi_identifiers=names, representative=key["representative"], n_jobs=1
        )
        released = anonymizer.fit_transform(inside, guide)
    shown = [name for name in released.columns if name in names or name not in X.columns]
    found = find_members_of_release(
        inside[names], released[shown], control=outside[names].reset_index(drop=True), n_targets=_N_EACH
    )
    rules = {rule: judged["accuracy"] for rule, judged in found.details["rules"].items()}
    n_others = found.details["n_others"]
    return {
        "one_person": None
        if key["representative"] in ("range", "bounds")
        else _of_one(released, inside, outside, names),
        "rate": found.rate,
        "control": found.control,
        "rules": rules,
        "n_judged": found.details["n_members"] + n_others,
        "n_control": n_others,
        "n_candidates": 2 * min(_N_EACH, len(inside), len(outside) - len(outside) // 4),
    }


def _of_one(released: Any, inside: Any, outside: Any, names: list[str]) -> int:
    """Count released combinations that exactly one person has, that person being released."""
    import pandas as pd

    def combinations(frame: Any) -> Any:
        return pd.util.hash_pandas_object(frame[names].astype(str), index=False)

    everybody = pd.concat([combinations(inside), combinations(outside)])
    counts = everybody.value_counts()
    shown = combinations(released).drop_duplicates()
    own = shown[shown.map(counts).eq(1)]
    return int(own.isin(combinations(inside)).sum())


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Who is in the table",
        "",
        "A release can tell *that* somebody is in it, without any model. A random half of each table is released, the",
        "other half are people of the same population. *One person's*: released combinations of quasi-identifiers that",
        "exactly one of all people has, that person being released. Then how often an attacker is right who says",
        "*released* if a candidate equals a released record (for ranges: lies in a box), or differs in at most one or",
        "two columns, and one who learns what a difference says: in %, where guessing gives 50. *Control*: the learned",
        "attack on people none of whom was released. Means of five splits.",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
    ]
    for name in TABLES:
        own = where(rows, table=name)
        if own:
            lines += [f"## {TITLES[name]}", *_table(own)]
    lines += how_it_was_run(rows, "beyond-who-is-in", REDUCTIONS)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Pooled:
    """What all splits of one release say together: rates with their intervals."""

    one_person: int | None
    learned: Rate
    control: Rate
    rules: dict[str, Rate]

    @classmethod
    def of(cls, rows: list[Row]) -> Pooled:
        """Add up splits of the same release."""
        counts = [row["one_person"] for row in rows]
        return cls(
            None if None in counts else round(sum(counts) / len(counts)),
            Rate.of([(row["rate"], row["n_judged"]) for row in rows]),
            Rate.of([(row["control"], row["n_control"]) for row in rows]),
            {rule: Rate.of([(row["rules"][rule], row["n_candidates"]) for row in rows]) for rule in rows[0]["rules"]},
        )


def _releases(rows: list[Row]) -> Iterator[tuple[str, int, str, Pooled]]:
    """Yield the table, k and representative of each release, with what its splits say."""
    for name in TABLES:
        for k in K:
            for representative in REPRESENTATIVES:
                own = where(rows, table=name, k=k, representative=representative)
                if own:
                    yield name, k, representative, Pooled.of(own)


def _table(rows: list[Row]) -> list[str]:
    lines = []
    for _, k, representative, own in _releases(rows):
        count = "" if own.one_person is None else f"{own.one_person:,}"
        rules = [f"{100 * rule.rate:.1f}" for rule in own.rules.values()]
        lines.append([str(k), f"`{representative}`", count, *rules, str(own.learned), str(own.control)])
    header = [
        "k",
        "representative",
        "one person's",
        "equal or inside",
        "one column",
        "two columns",
        "learned",
        "control",
    ]
    return table(header, lines, n_words=2)


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    default = where(rows, representative="phantom")
    yield (
        f"The default, `phantom`: {sum(row['one_person'] for row in default)} combinations of one person in "
        f"{len(default)} releases."
    )
    releases = list(_releases(rows))
    for representative in REPRESENTATIVES:
        own = [(name, k, found) for name, k, kind, found in releases if kind == representative]
        above = [
            f"{_short(name)} k = {k} ({100 * found.learned.rate:.1f})"
            for name, k, found in own
            if found.learned.low > max(0.5, found.control.rate)
        ]
        yield f"`{representative}`: the learned attack is above chance and its control at {'; '.join(above) or 'none'}."
    fixed = [(rule, name, k) for name, k, kind, own in releases if kind == "phantom" for rule in own.rules.values()]
    if fixed:
        best, name, k = max(fixed)
        yield f"`phantom`: no fixed rule is right more often than {best} (in %), at {_short(name)} k = {k}."


def _short(name: str) -> str:
    return TITLES[name].split(",")[0]


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_who_is_in",
    by=("table", "seed", "k", "representative"),
    keys=KEYS,
    run=one_by_one(run),
    together=("table", "k"),
    views={"found": found(KEYS, findings)},
    documents=documents("beyond-who-is-in", KEYS, page, lambda rows: {}),
)
