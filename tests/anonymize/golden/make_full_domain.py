# SPDX-License-Identifier: Apache-2.0
"""Visit every combination of levels of the Adult cut with ARX's hierarchies, and store the best ones.

Run it as ``python tests/anonymize/golden/make_full_domain.py FOLDER``, with the folder that has ``adult/arx``; it takes
half a minute. All 6,480 nodes are counted by sorting, none is left out. The hierarchies are read with the csv module
and counted here, so that nothing but the plain loop of ``naive_lattice`` is shared with the library.
"""

import csv
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from sfumato.partition.lattice_groups import Levels
from twins.naive_lattice import every_node, node_loss

COLUMNS = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
KS = (2, 5, 10, 50, 100)
LIMITS = (0.0, 0.05, 1.0)
OUTPUT = Path(__file__).with_name("full_domain_adult.json")


def read_rows(path: Path) -> list[list[str]]:
    """Return the cells of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file, delimiter=";") if row]


def read_levels(folder: Path, name: str) -> tuple[dict[str, int], Levels]:
    """Return the place of each value in its hierarchy, and what each level makes of the values."""
    rows = read_rows(folder / f"adult_hierarchy_{name}.csv")
    labels, losses = [], []
    for level in range(len(rows[0])):
        texts = [row[level] for row in rows]
        distinct = sorted(set(texts))
        labels.append([distinct.index(text) for text in texts])
        losses.append([(texts.count(text) - 1) / (len(rows) - 1) for text in texts])
    levels = Levels(np.array(labels, np.int32).T.copy(), np.array(losses).T.copy())
    return {row[0]: place for place, row in enumerate(rows)}, levels


def main(folder: Path) -> None:
    """Compare all nodes under all settings and write the best of each."""
    header, *records = read_rows(folder / "adult.csv")
    domains = [read_levels(folder, name) for name in COLUMNS]
    by_column = [[row[header.index(name)] for row in records] for name in COLUMNS]
    codes = np.column_stack([[own[0][v] for v in values] for own, values in zip(domains, by_column, strict=True)])
    distinct, weights = np.unique(codes, axis=0, return_counts=True)
    best: dict[tuple[int, float], tuple[float, int, tuple[int, ...], int]] = {}
    n_nodes = 0
    for levels, sizes, losses in every_node(distinct.astype(np.int32), weights, [own for _, own in domains]):
        n_nodes += 1
        for k in KS:
            for limit in LIMITS:
                found = node_loss(sizes, losses, k, int(limit * len(records)))
                if found is None:
                    continue
                loss, n_suppressed = found
                candidate = (round(loss, 12), n_suppressed, levels, int((sizes >= k).sum()))
                if (k, limit) not in best or candidate < best[k, limit]:
                    best[k, limit] = candidate
    optima = [
        {
            "k": k,
            "suppression_limit": limit,
            "information_loss": loss,
            "n_suppressed": n_suppressed,
            "n_groups": n_groups,
            "levels": dict(zip(COLUMNS, levels, strict=True)),
        }
        for (k, limit), (loss, n_suppressed, levels, n_groups) in sorted(best.items())
    ]
    document = {
        "about": "best of all combinations of levels, each one visited; ties: fewer suppressed, then lower levels",
        "table": "adult/arx/adult.csv",
        "table_sha256": hashlib.sha256((folder / "adult.csv").read_bytes()).hexdigest(),
        "n_records": len(records),
        "n_distinct_records": len(distinct),
        "n_nodes": n_nodes,
        "optima": optima,
    }
    OUTPUT.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "adult" / "arx")
