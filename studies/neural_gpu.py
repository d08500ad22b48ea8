# SPDX-License-Identifier: Apache-2.0
"""Train the neural minimizers of a study on a machine that has numpy and torch and nothing else.

Three steps, the second of which may run elsewhere::

    python -m studies.neural_gpu inputs FOLDER --data-home DATA   # here: codes of the tasks, one file per task and seed
    PYTHONPATH=src python -m studies.neural_gpu train FOLDER OUT  # there: OUT/buckets.npz, after every file again
    read_buckets(OUT/buckets.npz)                                  # here: bucket maps, made generalizations

A bucket map belongs to the bins of its training records: `training_sample` of the same task and seed has the same bins,
and ``generalization_from_bins(sample.columns, split_buckets(buckets, sample.n_codes))`` makes it a generalization.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.minimize.neural_training import (
    ADVERSARIAL_WEIGHTS,
    MUTUAL_INFORMATION_WEIGHTS,
    TrainingPlan,
    train_buckets,
)
from sfumato.minimize.soft_buckets import CodedAttribute

SEEDS = (0, 1, 2)
WEIGHTS = {"adversarial": ADVERSARIAL_WEIGHTS, "mutual_information": MUTUAL_INFORMATION_WEIGHTS}


@dataclass(frozen=True, order=True)
class Run:
    """One trained generalization: of which task and seed, and how it was trained."""

    task: str
    seed: int
    objective: str
    as_published: bool
    privacy_weight: float

    @property
    def key(self) -> str:
        """Name of its array in the file."""
        way = "published" if self.as_published else "default"
        return "|".join((self.task, str(self.seed), self.objective, way, repr(self.privacy_weight)))

    @classmethod
    def of(cls, key: str) -> Run:
        """Return the run that a name stands for."""
        task, seed, objective, way, weight = key.split("|")
        return cls(task, int(seed), objective, way == "published", float(weight))


def write_inputs(folder: Path, data_home: Any, tasks: Sequence[str], seeds: Sequence[int]) -> None:
    """Write the codes of every task's training records."""
    from studies.minimization_tasks import load_task

    folder.mkdir(parents=True, exist_ok=True)
    for name in tasks:
        task = load_task(name, data_home)
        for seed in seeds:
            sample = training_sample(task, seed)
            _save_sample(folder / f"{name}.{seed}.npz", sample)
            print(f"{name} {seed}: {sample.n_records} records, {len(sample.columns)} attributes", flush=True)


def training_sample(task: Any, seed: int) -> Any:
    """Return what a minimizer reads of a task's training records: bins, codes, classes, personal attributes."""
    from sfumato.minimize.neural import AdversarialMinimizer

    rows = task.network_rows(seed)
    reader = AdversarialMinimizer(personal=list(task.personal), categorical_features=list(task.categorical))
    return reader._read(task.X.iloc[rows], task.y[rows], None)


def _save_sample(path: Path, sample: Any) -> None:
    from sfumato.minimize.neural import coded_attributes

    attributes = coded_attributes(sample)
    positions = [np.zeros(0) if own.positions is None else own.positions for own in attributes]
    np.savez_compressed(
        path,
        codes=np.stack([column.codes.astype(np.uint16) for column in sample.columns], axis=1),
        y=sample.y,
        n_classes=sample.n_classes,
        personal=np.array(sample.personal),
        n_codes=np.array([own.n_codes for own in attributes]),
        is_ordered=np.array([own.positions is not None for own in attributes]),
        n_positions=np.array([len(own) for own in positions]),
        positions=np.concatenate(positions),
    )


def train_file(
    path: Path, *, plan: TrainingPlan, device: str | None
) -> Iterator[tuple[Run, list[NDArray[np.int64]], float]]:
    """Train all runs of one input file; yield each with its buckets and the seconds that its sweep took."""
    task, seed, _ = path.name.split(".")
    with np.load(path) as stored:
        parts = np.split(stored["positions"], np.cumsum(stored["n_positions"])[:-1])
        attributes = [
            CodedAttribute(int(n_codes), positions if is_ordered else None)
            for n_codes, is_ordered, positions in zip(stored["n_codes"], stored["is_ordered"], parts, strict=True)
        ]
        data = stored["codes"].astype(np.int64), attributes, stored["y"].astype(np.int64), int(stored["n_classes"])
        personal = stored["personal"].tolist()
    for objective, weights in WEIGHTS.items():
        start = time.perf_counter()
        trained = train_buckets(
            *data,
            privacy_weights=weights,
            personal=personal,
            objective=objective,  # type: ignore[arg-type]
            plan=plan,
            seed=int(seed),
            device=device,
        )
        seconds = time.perf_counter() - start
        for weight, buckets in zip(weights, trained, strict=True):
            yield Run(task, int(seed), objective, plan.as_published, weight), buckets, seconds


def train_folder(folder: Path, out: Path, *, plans: Sequence[TrainingPlan], device: str | None) -> None:
    """Train on every input file; what is there already is kept, so that a run that broke off can go on."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / "buckets.npz"
    done: dict[str, NDArray[Any]] = {}
    if target.exists():
        with np.load(target) as stored:
            done = {key: stored[key] for key in stored.files}
    for path in sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_size):
        task, seed, _ = path.name.split(".")
        for plan in plans:
            is_done = [
                Run(task, int(seed), objective, plan.as_published, weight).key in done
                for objective, weights in WEIGHTS.items()
                for weight in weights
            ]
            if all(is_done):
                continue
            for run, buckets, seconds in train_file(path, plan=plan, device=device):
                done[run.key] = np.concatenate(buckets).astype(np.uint8)
                if run.privacy_weight == 0:
                    print(f"{run.key}: {seconds:.1f} s for {len(WEIGHTS[run.objective])} weights", flush=True)
            np.savez_compressed(target, **done)  # type: ignore[arg-type]


def read_buckets(path: Path) -> dict[Run, NDArray[np.int64]]:
    """Return the bucket of every fine code, attributes one after the other; `split_buckets` takes them apart."""
    with np.load(path) as stored:
        return {Run.of(key): stored[key].astype(np.int64) for key in stored.files}


def split_buckets(buckets: NDArray[np.int64], n_codes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return one array per attribute, as ``generalization_from_bins`` takes them."""
    return np.split(buckets, np.cumsum(n_codes)[:-1])


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(prog="python -m studies.neural_gpu", description="Train the neural minimizers.")
    steps = parser.add_subparsers(dest="step", required=True)
    inputs = steps.add_parser("inputs", help="write the codes of the tasks")
    inputs.add_argument("folder", type=Path)
    inputs.add_argument("--data-home", default=None)
    inputs.add_argument("--tasks", nargs="*", default=None)
    inputs.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    train = steps.add_parser("train", help="train on every file of a folder")
    train.add_argument("folder", type=Path)
    train.add_argument("out", type=Path)
    train.add_argument("--device", default=None, help="default: a GPU where there is one")
    train.add_argument("--epochs", type=int, default=TrainingPlan.epochs)
    train.add_argument("--least-steps", type=int, default=TrainingPlan.least_steps)
    train.add_argument(
        "--way", choices=("default", "published", "both"), default="both", help="published: as the paper"
    )
    arguments = parser.parse_args()
    if arguments.step == "inputs":
        from studies.minimization_tasks import TASKS

        write_inputs(arguments.folder, arguments.data_home, arguments.tasks or list(TASKS), arguments.seeds)
        return
    ways = {"default": (False,), "published": (True,), "both": (False, True)}[arguments.way]
    plans = [TrainingPlan(epochs=arguments.epochs, least_steps=arguments.least_steps, as_published=way) for way in ways]
    train_folder(arguments.folder, arguments.out, plans=plans, device=arguments.device)


if __name__ == "__main__":
    main()
