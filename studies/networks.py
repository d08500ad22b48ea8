# SPDX-License-Identifier: Apache-2.0
"""The first paper's networks, to its 200 epochs: prepared here, trained on an accelerator, kept here.

A network takes half a minute of a core, and there are more than a thousand. Five steps, of which those with
`network_training` may run on a machine that has numpy and torch and nothing else::

    python -m studies.networks records FOLDER               # here: the records of every table and split
    python3 studies/network_training.py FOLDER RAW          # there: RAW/*.npz, what networks say of raw records
    python -m studies.networks releases MADE --raw RAW      # here: what each method makes of the training records
    python3 studies/network_training.py MADE OUT            # there: OUT/cells.jsonl
    python -m studies.networks keep OUT                     # here: into the kept cells of both experiments

Without ``--raw`` the third step makes what needs no guide, and adds the rest when it is called again with it.

`sfumato study` runs the same cells without an accelerator, with scikit-learn's network of the same settings.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies import classic_methods, predictions_or_labels
from studies.accuracy import RAW, Dealt, deal, made_by, released
from studies.cells import identity, write_cells
from studies.clock import processor_seconds
from studies.runner import environment
from studies.tables import Table, load

NETWORK = "nn-200"
LABELS = "labels"  # the tree of `predictions_or_labels`: the paper's method on true labels
EXPERIMENTS = {"classic_methods": classic_methods.EXPERIMENT, "predictions_or_labels": predictions_or_labels.EXPERIMENT}


def wanted() -> dict[tuple[str, int], list[tuple[str, int]]]:
    """Return the methods and k of every table and split for which a network is trained."""
    found: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for key in classic_methods.EXPERIMENT.keys:
        if key["model"] == NETWORK:
            found.setdefault((key["table"], key["seed"]), []).append((key["method"], key["k"]))
    for key in predictions_or_labels.EXPERIMENT.keys:
        if key["model"] == NETWORK:
            found.setdefault((key["table"], key["seed"]), []).append((LABELS, key["k"]))
    return found


def write_records(folder: Path) -> None:
    """Write the records on which raw networks are trained, once for all tables that share them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, seed in dict.fromkeys((_raw_of(name), seed) for name, seed in wanted()):
        table = load(name)
        dealt = deal(table, seed)
        coding = Coding(table.X)
        cells = [{"table": name, "model": NETWORK, "seed": seed, "method": RAW, "k": 0, "seconds": 0.0}]
        more = {"tree": coding(dealt.X_tree)} if table.has_paper_split else {}
        np.savez_compressed(folder / f"{name}.{seed}.npz", **_shared(table, dealt, coding, seed, cells), **more)
        print(f"{name} {seed}", flush=True)


def write_releases(folder: Path, raw: Path | None, tables: Sequence[str] = ()) -> None:
    """Write a file for every table and split; those methods that a raw network guides only where there is one."""
    warnings.filterwarnings("ignore")  # constant columns of small groups
    folder.mkdir(parents=True, exist_ok=True)
    order = list(classic_methods.SPLITS)
    for (name, seed), cells in sorted(wanted().items(), key=lambda own: order.index(own[0][0])):
        if tables and name not in tables:
            continue
        path = folder / f"{name}.{seed}.npz"
        content, done = _read(path)
        todo = [(method, k) for method, k in cells if (method, k) not in done and (raw or not _is_guided(method))]
        if not todo:
            continue
        start = processor_seconds()
        probabilities = None
        if raw:
            with np.load(raw / f"{_raw_of(name)}.{seed}.npz") as said:
                probabilities = tuple(np.stack([1 - own, own], axis=1) for own in (said["train"], said["tree"]))
        np.savez_compressed(path, **_releases(name, seed, todo, probabilities, content))
        print(f"{path.name}: {len(todo)} more, {path.stat().st_size / 2**20:.2f} MiB, "
              f"{processor_seconds() - start:.0f} s", flush=True)  # fmt: skip


def _read(path: Path) -> tuple[dict[str, Any], set[tuple[str, int]]]:
    """Return what a file has, and the methods and k in it."""
    if not path.exists():
        return {}, set()
    with np.load(path) as stored:
        content = dict(stored)
    return content, {(cell["method"], cell["k"]) for cell in json.loads(str(content["cells"]))}


def _is_guided(method: str) -> bool:
    return method not in (RAW, LABELS) and made_by(method).guide in ("probabilities", "predictions")


def _shared(table: Table, dealt: Dealt, coding: Coding, seed: int, cells: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "train": coding(dealt.X_train),
        "test": coding(dealt.X_test),
        "y_train": dealt.y_train,
        "y_test": dealt.y_test,
        "seed": np.array(seed),
        "n_categories": np.array(coding.n_categories),
        "is_released": np.array([column in table.quasi_identifiers for column in table.X]),
        "cells": np.array(json.dumps(cells)),
    }


def _releases(
    name: str, seed: int, todo: list[tuple[str, int]], probabilities: Any, content: dict[str, Any]
) -> dict[str, Any]:
    """Return what was there, and more releases."""
    table = load(name)
    dealt = deal(table, seed)
    coding = Coding(table.X[table.quasi_identifiers])
    cells = json.loads(str(content["cells"])) if content else []
    made: dict[str, Any] = {}
    for method, k in todo:
        start = processor_seconds()
        cell: dict[str, Any] = {"table": name, "model": NETWORK, "seed": seed, "method": method, "k": k}
        if method != RAW:
            frames, cell["n_groups"], loss = _made(table, dealt, method, k, probabilities)
            if loss is not None:
                cell["information_loss"] = round(float(loss), 4)
            points = np.concatenate([coding(frame[table.quasi_identifiers]) for frame in frames])
            rows = _rows(points)
            made[f"points_{len(cells)}"] = points[np.unique(rows, return_index=True)[1]]
            made[f"groups_{len(cells)}"] = rows.astype(np.uint16)
        cell["seconds"] = round(processor_seconds() - start, 2)
        cells.append(cell)
    return content | made | _shared(table, dealt, Coding(table.X), seed, cells)


def _rows(points: Any) -> Any:
    """Return the same number for equal rows, numbers from 0 on."""
    import pandas as pd

    found = np.zeros(len(points), np.int64)
    for column in points.T:
        own = pd.factorize(column, use_na_sentinel=False)[0]
        found = pd.factorize(found * (own.max() + 1) + own)[0]
    return found


def _made(
    table: Table, dealt: Dealt, method: str, k: int, probabilities: tuple[Any, Any] | None
) -> tuple[list[Any], int, float | None]:
    """Return released records, and test records through the same groups where there are any."""
    if method == LABELS:
        records, n_groups = predictions_or_labels.by_labels(table, dealt, k)
        return [records], n_groups, None
    found = released(table, dealt, method, k, probabilities)
    moved = [] if table.has_paper_split else [found.anonymizer.transform(dealt.X_test)]
    return [found.records, *moved], found.n_groups, found.information_loss


class Coding:
    """Columns as numbers: categories by their place, a missing one as one more category.

    Parameters
    ----------
    frame : DataFrame
    """

    def __init__(self, frame: Any) -> None:
        self._categories = {
            name: list(frame[name].astype("category").cat.categories)
            for name in frame
            if frame[name].dtype.kind not in "if"
        }
        self.n_categories = [
            len(self._categories[name]) + int(frame[name].isna().any()) if name in self._categories else 0
            for name in frame
        ]

    def __call__(self, frame: Any) -> Any:
        """Return records as an array."""
        import pandas as pd

        columns = []
        for name in frame:
            if name in self._categories:
                codes = pd.Categorical(frame[name], self._categories[name]).codes.astype(np.float32)
                columns.append(np.where(codes < 0, len(self._categories[name]), codes))
            else:
                columns.append(frame[name].to_numpy(np.float32, na_value=np.nan))
        return np.stack(columns, axis=1).astype(np.float32)


def _raw_of(name: str) -> str:
    """Return the table with the same columns and splits whose raw network serves for this one, too."""
    return name.replace("adult-10", "adult-12").replace("adult-8", "adult-12")


def keep(out: Path) -> None:
    """Add what was trained to the kept cells."""
    lines = [json.loads(line) for line in (out / "cells.jsonl").read_text(encoding="utf-8").splitlines()]
    here = environment()
    for name, experiment in EXPERIMENTS.items():
        kept = experiment.kept()
        for line in lines:
            if (line["method"] == LABELS) != (name == "predictions_or_labels"):
                continue
            own = {key: line[key] for key in experiment.by}
            more = {key: value for key, value in line.items() if key not in (*own, "method", "accelerator", "torch")}
            trained = f"networks: {line['accelerator']}, torch {line['torch']}"
            cell = {**own, **more, "environment": f"{here}; {trained}"}
            kept[identity(cell, experiment.by)] = cell
        declared = [identity(key, experiment.by) for key in experiment.keys]
        write_cells(experiment.path(), (kept[own] for own in declared if own in kept))


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(prog="python -m studies.networks", description="Networks of the first paper.")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("records", help="write the records of raw networks").add_argument("folder", type=Path)
    releases = steps.add_parser("releases", help="write what networks learn from")
    releases.add_argument("folder", type=Path)
    releases.add_argument("--raw", type=Path, default=None, help="what raw networks say")
    releases.add_argument("--tables", nargs="*", default=[], help="of these alone")
    steps.add_parser("keep", help="keep what was trained").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.step == "records":
        write_records(arguments.folder)
    elif arguments.step == "releases":
        write_releases(arguments.folder, arguments.raw, arguments.tables)
    else:
        keep(arguments.folder)


if __name__ == "__main__":
    main()
