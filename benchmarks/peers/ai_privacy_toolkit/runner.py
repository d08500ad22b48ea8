# SPDX-License-Identifier: Apache-2.0
"""Time ai-privacy-toolkit's anonymizer; runs in the toolkit's own environment, never in ours.

Reads the file that ``benchmarks/peers/exchange.py`` wrote and prints one line of JSON: the seconds of each
run, the number of groups, the smallest one, the versions. Loading and counting are not timed.
"""

import argparse
import gc
import json
import platform
import time
import warnings
from collections import Counter
from importlib.metadata import version

import numpy as np
import pandas as pd
from apt.anonymization import Anonymize
from apt.utils.datasets import ArrayDataset

VERSIONS_OF = ("ai-privacy-toolkit", "scikit-learn", "numpy", "pandas")


def read_exchange(path: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the table, its text columns as Python strings, and the predictions."""
    with np.load(path, allow_pickle=False) as arrays:
        columns = {}
        for position, name in enumerate(arrays["names"]):
            values = arrays[f"column_{position}"]
            columns[str(name)] = values.astype(object) if values.dtype.kind == "U" else values
        return pd.DataFrame(columns), arrays["predictions"]


def main() -> None:
    """Anonymize as often as asked and print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("exchange")
    parser.add_argument("--k", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()

    table, predictions = read_exchange(options.exchange)
    names = list(table.columns)
    categorical = [name for name in names if table[name].dtype == object]
    warnings.simplefilter("ignore", FutureWarning)  # a keyword of OneHotEncoder that 1.3 still takes
    seconds = []
    for _ in range(options.repeats):
        # A fresh one each time: a call overwrites the names it was given, so a second call would raise.
        anonymizer = Anonymize(options.k, list(names), categorical_features=list(categorical) or None)
        released = pd.DataFrame()  # lets go of the last one before the clock starts
        gc.collect()
        start = time.perf_counter()
        released = anonymizer.anonymize(ArrayDataset(table, predictions))
        seconds.append(time.perf_counter() - start)

    sizes = Counter(zip(*(released[name] for name in names), strict=True))
    answer = {
        "seconds": seconds,
        "n_records": len(table),
        "n_groups": len(sizes),
        "smallest_group": min(sizes.values()),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in VERSIONS_OF}},
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
