# SPDX-License-Identifier: Apache-2.0
"""Store what pyCANON says about Adult, Nursery and a few small tables: ``python -m benchmarks.peers.pycanon.golden``.

The answers are a golden file of ``tests/criteria``, which compare them with ours: equal where both mean the same, and
where pyCANON errs or means something else, beside the answer that the definition gives.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.peers.environment import REPOSITORY, run_peer
from benchmarks.peers.exchange import write_exchange
from sfumato import datasets

GOLDEN = REPOSITORY / "tests" / "criteria" / "golden" / "pycanon.json"

# Columns without missing values: pyCANON leaves records with a missing key out, which has a case of its own below.
BUNDLED = {
    "adult: relationship by education and sex": ("adult", ["education", "sex"], "relationship"),
    "adult: income by education and sex": ("adult", ["education", "sex"], "income"),
    "adult: marital-status by sex and race": ("adult", ["sex", "race"], "marital-status"),
    "adult: age by sex and race": ("adult", ["sex", "race"], "age"),
    "adult: education-num by relationship": ("adult", ["relationship"], "education-num"),
    "nursery: class by parents and finance": ("nursery", ["parents", "finance"], "class"),
    "nursery: health by has_nurs and children": ("nursery", ["has_nurs", "children"], "health"),
    "nursery: class by health": ("nursery", ["health"], "class"),
}


def small_cases() -> dict[str, dict[str, object]]:
    """Return tables of a few records on which pyCANON errs or means something else."""

    def one_group(counts: list[int]) -> dict[str, object]:
        values = [f"v{value}" for value, n in enumerate(counts) for _ in range(n)]
        return {"table": {"q": [1] * len(values), "s": values}, "quasi_identifiers": ["q"], "sensitive": "s"}

    return {
        "one value dominates": one_group([8, 1, 1]),
        **{f"{n} equally frequent values": one_group([2] * n) for n in range(2, 9)},
        "a missing key": {
            "table": {"q": ["a", "a", "b", "b", None], "s": ["x", "y", "x", "y", "x"]},
            "quasi_identifiers": ["q"],
            "sensitive": "s",
        },
        "a permuted index": {
            "table": {"q": ["a", "a", "b", "b"], "s": ["x", "x", "y", "y"]},
            "index": [0, 2, 1, 3],
            "quasi_identifiers": ["q"],
            "sensitive": "s",
        },
        "an index that starts at 10": {
            "table": {"q": ["a", "a", "b", "b"], "s": ["x", "y", "x", "y"]},
            "index": [10, 11, 12, 13],
            "quasi_identifiers": ["q"],
            "sensitive": "s",
        },
        "groups of 99 and 1": {
            "table": {"q": ["a"] * 99 + ["b"], "s": ["x", "y"] * 50},
            "quasi_identifiers": ["q"],
            "sensitive": "s",
        },
        "a value that a group lacks": {
            "table": {"q": ["a", "a", "b", "b"], "s": ["x", "y", "x", "x"]},
            "quasi_identifiers": ["q"],
            "sensitive": "s",
        },
    }


def main() -> None:
    """Ask pyCANON and write its answers, with the cases and the versions."""
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name in ("adult", "nursery"):
            frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
            used = {column for table, keys, own in BUNDLED.values() if table == name for column in (*keys, own)}
            files[name] = Path(folder) / f"{name}.npz"
            chosen = frame[[column for column in frame.columns if column in used]]
            write_exchange(files[name], chosen, np.zeros(len(frame)))
        small = small_cases()
        bundled = {
            case: {"file": str(files[table]), "quasi_identifiers": keys, "sensitive": own}
            for case, (table, keys, own) in BUNDLED.items()
        }
        cases = Path(folder) / "cases.json"
        cases.write_text(json.dumps({**bundled, **small}), encoding="utf-8")
        answer = run_peer("pycanon", [str(cases)])
    named: dict[str, dict[str, object]] = {
        case: {"bundled": table, "quasi_identifiers": keys, "sensitive": own}
        for case, (table, keys, own) in BUNDLED.items()
    }
    answers = answer["answers"]
    assert isinstance(answers, dict)
    told = {case: {**given, "answers": answers[case]} for case, given in {**named, **small}.items()}
    document = {"versions": answer["versions"], "cases": told}
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{len(told)} cases in {GOLDEN.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
