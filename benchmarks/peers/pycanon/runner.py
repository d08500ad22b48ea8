# SPDX-License-Identifier: Apache-2.0
"""Let pyCANON measure tables; runs in pyCANON's own environment, never in ours.

Reads a JSON file of cases, each with a table (or the file that ``benchmarks/peers/exchange.py`` wrote), its
quasi-identifiers and one sensitive column, and prints one line of JSON: what every measure said, or what it raised.
"""

import argparse
import json
import math
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from pycanon import anonymity
from pycanon.metrics import average_rir

VERSIONS_OF = ("pycanon", "numpy", "pandas")
MEASURES = {
    "k": lambda table, keys, _: anonymity.k_anonymity(table, keys),
    "distinct_l": anonymity.l_diversity,
    "entropy_l": anonymity.entropy_l_diversity,
    "recursive_c_l": anonymity.recursive_c_l_diversity,
    "alpha_k": anonymity.alpha_k_anonymity,
    "t": anonymity.t_closeness,
    "basic_beta": anonymity.basic_beta_likeness,
    "enhanced_beta": anonymity.enhanced_beta_likeness,
    "delta": anonymity.delta_disclosure,
    "average_risk": lambda table, keys, _: average_rir(table, keys),
}


def read_table(case: dict) -> pd.DataFrame:
    """Return the table of a case, text as Python strings."""
    if "file" not in case:
        return pd.DataFrame(case["table"], index=case.get("index"))
    columns = {}
    with np.load(case["file"], allow_pickle=False) as arrays:
        for position, name in enumerate(arrays["names"]):
            values = arrays[f"column_{position}"]
            columns[str(name)] = values.astype(object) if values.dtype.kind == "U" else values
    return pd.DataFrame(columns)


def plain(answer: object) -> object:
    """Return an answer as JSON holds it: numbers of Python, lists, null for NaN."""
    if isinstance(answer, tuple):
        return [plain(part) for part in answer]
    number = answer.item() if isinstance(answer, np.generic) else answer
    return None if isinstance(number, float) and math.isnan(number) else number


def main() -> None:
    """Measure every case and print the answers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases")
    cases = json.loads(Path(parser.parse_args().cases).read_text(encoding="utf-8"))
    answers = {}
    for name, case in cases.items():
        table = read_table(case)
        answers[name] = {}
        for measure, call in MEASURES.items():
            try:
                answers[name][measure] = plain(call(table, case["quasi_identifiers"], [case["sensitive"]]))
            except Exception as error:  # what a peer raises is part of its answer
                answers[name][measure] = {"raises": type(error).__name__}
    versions = {"python": platform.python_version(), **{package: version(package) for package in VERSIONS_OF}}
    print(json.dumps({"answers": answers, "versions": versions}))


if __name__ == "__main__":
    main()
