# SPDX-License-Identifier: Apache-2.0
"""Train the neural minimizers of a study on a machine that has numpy and torch and nothing else.

Three steps, the second of which may run elsewhere::

    python -m studies.neural_gpu inputs FOLDER --data-home DATA   # here: codes of the tasks, one file per task and seed
    PYTHONPATH=src python -m studies.neural_gpu train FOLDER OUT  # there: OUT/buckets.npz, after every sweep again
    read_buckets(OUT/buckets.npz)                                  # here: bucket maps, made generalizations

A bucket map belongs to the bins of its training records: `training_sample` of the same task and seed has the same bins,
and ``generalization_from_bins(sample.columns, split_buckets(buckets, sample.n_codes))`` makes it a generalization.

A GPU is idle for most of such a training, which waits for the launch of one small kernel after the other: `train` takes
several sweeps at once, each in a process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.minimize.neural_training import (
    ADVERSARIAL_WEIGHTS,
    MUTUAL_INFORMATION_WEIGHTS,
    Objective,
    TrainingPlan,
    train_buckets,
)
from sfumato.minimize.soft_buckets import CodedAttribute

SEEDS = (0, 1, 2, 3, 4)
ADVERSARIAL: Objective = "adversarial"
WEIGHTS: dict[Objective, tuple[float, ...]] = {
    ADVERSARIAL: ADVERSARIAL_WEIGHTS,
    "mutual_information": MUTUAL_INFORMATION_WEIGHTS,
}
#: Attributes that the adversarial minimizer also protects alone (figure 10 of the paper).
ALONE = {"acs_employment": ("MAR", "SEX")}


@dataclass(frozen=True, order=True)
class Run:
    """One trained generalization: of which task and seed, and how it was trained; `protects`: one attribute, "" all."""

    task: str
    seed: int
    objective: Objective
    as_published: bool
    privacy_weight: float
    protects: str = ""

    @property
    def key(self) -> str:
        """Name of its array in the file."""
        way = "published" if self.as_published else "default"
        parts = (self.task, str(self.seed), self.objective, way, repr(self.privacy_weight), self.protects)
        return "|".join(parts).rstrip("|")

    @classmethod
    def of(cls, key: str) -> Run:
        """Return the run that a name stands for."""
        task, seed, objective, way, weight, *protects = key.split("|")
        return cls(task, int(seed), objective, way == "published", float(weight), *protects)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sweep:
    """Runs of one input file that train side by side: all privacy weights."""

    path: Path
    objective: Objective
    plan: TrainingPlan
    protects: str = ""

    @property
    def runs(self) -> list[Run]:
        """One run for every privacy weight."""
        task, seed, _ = self.path.name.split(".")
        first = Run(task, int(seed), self.objective, self.plan.as_published, 0.0, self.protects)
        return [replace(first, privacy_weight=weight) for weight in WEIGHTS[self.objective]]


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
        names=np.array(sample.names),
        n_codes=np.array([own.n_codes for own in attributes]),
        is_ordered=np.array([own.positions is not None for own in attributes]),
        n_positions=np.array([len(own) for own in positions]),
        positions=np.concatenate(positions),
    )


def sweeps_of(folder: Path, plans: Sequence[TrainingPlan]) -> Iterator[Sweep]:
    """Yield what there is to train: one plan after the other, the largest files first."""
    paths = sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_size, reverse=True)
    for plan in plans:
        for path in paths:
            yield from (Sweep(path, objective, plan) for objective in WEIGHTS)
            if not plan.as_published:
                alone = ALONE.get(path.name.split(".")[0], ())
                yield from (Sweep(path, ADVERSARIAL, plan, name) for name in alone)


def train_sweep(sweep: Sweep, device: str | None = None) -> tuple[dict[Run, list[NDArray[np.int64]]], float]:
    """Return the buckets of every run of a sweep, and the seconds that they took."""
    with np.load(sweep.path) as stored:
        parts = np.split(stored["positions"], np.cumsum(stored["n_positions"])[:-1])
        attributes = [
            CodedAttribute(int(n_codes), positions if is_ordered else None)
            for n_codes, is_ordered, positions in zip(stored["n_codes"], stored["is_ordered"], parts, strict=True)
        ]
        data = stored["codes"].astype(np.int64), attributes, stored["y"].astype(np.int64), int(stored["n_classes"])
        personal = stored["personal"].tolist()
        if sweep.protects:
            personal = [stored["names"].tolist().index(sweep.protects)]
    start = time.perf_counter()
    trained = train_buckets(
        *data,
        privacy_weights=WEIGHTS[sweep.objective],
        personal=personal,
        objective=sweep.objective,
        plan=sweep.plan,
        seed=sweep.runs[0].seed,
        device=device,
    )
    return dict(zip(sweep.runs, trained, strict=True)), time.perf_counter() - start


def train_all(
    sweeps: Iterable[Sweep],
    out: Path,
    *,
    device: str | None = None,
    workers: int = 1,
    seconds: float = 86_400,
    known: Path | None = None,
) -> None:
    """Train every sweep that is not in `known` or in the file already, so that a run that broke off can go on.

    Parameters
    ----------
    sweeps : iterable of Sweep
        In the order in which they are started.
    out : Path
        Folder of ``buckets.npz``, which is written after every sweep.
    device : str, optional
        None: a GPU where there is one.
    workers : int, default=1
        Processes; with one, all is trained in this process.
    seconds : float, default=86400
        What is not finished by then is given up.
    known : Path, optional
        A file of buckets that need not be trained again.
    """
    out.mkdir(parents=True, exist_ok=True)
    target, start = out / "buckets.npz", time.perf_counter()
    done: dict[str, NDArray[Any]] = {}
    if target.exists():
        with np.load(target) as stored:
            done = {key: stored[key] for key in stored.files}
    skipped = set(done) | (set(np.load(known).files) if known else set())
    todo = [(sweep, device) for sweep in sweeps if not {run.key for run in sweep.runs} <= skipped]

    def keep(found: tuple[dict[Run, list[NDArray[np.int64]]], float]) -> None:
        trained, taken = found
        done.update({run.key: np.concatenate(own).astype(np.uint8) for run, own in trained.items()})
        np.savez_compressed(target, **done)  # type: ignore[arg-type]
        print(f"{next(iter(trained)).key}: {taken:.1f} s, {time.perf_counter() - start:.0f} s in all", flush=True)

    if workers == 1:
        for one in todo:
            keep(train_sweep(*one))
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        left = pool.imap_unordered(_train, todo)
        for _ in todo:
            try:
                keep(left.next(max(0.0, start + seconds - time.perf_counter())))
            except multiprocessing.TimeoutError:
                print(f"{len(todo)} sweeps, not all in {seconds:.0f} s", flush=True)
                break
        pool.terminate()


def _train(sweep: tuple[Sweep, str | None]) -> tuple[dict[Run, list[NDArray[np.int64]]], float]:
    return train_sweep(*sweep)


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
    train.add_argument("--workers", type=int, default=1, help="processes")
    train.add_argument("--seconds", type=float, default=86_400, help="what is not finished by then is given up")
    train.add_argument("--known", type=Path, default=None, help="a file of buckets that need not be trained again")
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
    train_all(
        sweeps_of(arguments.folder, plans),
        arguments.out,
        device=arguments.device,
        workers=arguments.workers,
        seconds=arguments.seconds,
        known=arguments.known,
    )


if __name__ == "__main__":
    main()
