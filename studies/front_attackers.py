# SPDX-License-Identifier: Apache-2.0
"""Attack the kept fronts of the minimizers by boosting and by the paper's network, on a machine with many cores.

Three steps, the second of which may run elsewhere, with numpy, torch and scikit-learn and nothing else::

    python -m studies.front_attackers inputs FOLDER              # here: what an attacker sees of every front
    OMP_NUM_THREADS=1 PYTHONPATH=src python -m studies.front_attackers attack FOLDER OUT  # there: OUT/attackers.npz
    python -m studies.front_attackers count FOLDER OUT/attackers.npz  # here: studies/results/minimizers_attackers.npz

The last step adds what counting guesses. `against_all` takes the attacker of every attribute that is strongest on
validation records; ``sfumato study staab-tree-behind`` shows what comes out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.reconstruction_learners import BoostingSettings, NetworkSettings, fit_boosting, network_answers
from sfumato.attack.reconstruction_questions import Cells, Question, guess, is_open, rate_of
from sfumato.errors import InputError

KEPT = Path(__file__).parent / "results" / "minimizers_attackers.npz"
NETWORK = NetworkSettings(weight_decays=(1e-4,), device="cpu")
MEMBERS = ("boosting", NETWORK.architecture)
"""Who guesses elsewhere."""


@dataclass(frozen=True)
class Seen:
    """What an attacker sees of one generalization, as names of arrays in a file.

    Attributes
    ----------
    setting : str
        The parameters of the minimizer, as JSON.
    clues : list of str
        Buckets of every record, one array per attribute that is collected.
    is_ordered : list of bool
    questions : list of list of str
        For every personal attribute: its name, its values, the mask of every record, what each mask leaves.
    """

    setting: str
    clues: list[str]
    is_ordered: list[bool]
    questions: list[list[str]]


# -- here: what is seen ------------------------------------------------------------------------------------------


def write_inputs(folder: Path, tables: Sequence[str], seeds: Sequence[int]) -> None:
    """Write what attackers see of the fronts that are attacked again, a file for each table and seed."""
    from studies.minimization_tasks import load_task
    from studies.minimizers import Bench
    from studies.minimizers_keys import ATTACKED_AGAIN

    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        task = load_task(table)
        for seed in seeds:
            bench = Bench(task, seed)
            arrays: dict[bytes, tuple[str, NDArray[Any]]] = {}
            seen = {name: _seen(bench, name, arrays) for name in ATTACKED_AGAIN[table]}
            about = {name: [vars(one) for one in own] for name, own in seen.items()}
            samples, _ = bench.attacked
            ends = [samples.train.stop, samples.validation.stop, samples.test.stop]
            path = folder / f"{table}.{seed}.npz"
            np.savez_compressed(path, about=json.dumps(about), ends=ends, **dict(arrays.values()))  # type: ignore[arg-type]
            n_points = {name: len(own) for name, own in seen.items()}
            print(f"{table} {seed}: {n_points}, {path.stat().st_size / 1e6:.1f} MB", flush=True)


def _seen(bench: Any, minimizer: str, arrays: dict[bytes, tuple[str, NDArray[Any]]]) -> list[Seen]:
    def name_of(array: NDArray[Any]) -> str:
        most = int(array.max(initial=0))
        own = array if array.dtype == bool else array.astype(np.uint8 if most < 256 else np.uint16)
        key = own.tobytes() + repr((own.shape, own.dtype.str)).encode()
        return arrays.setdefault(key, (f"array {len(arrays)}", own))[0]

    found = []
    for point in made_again(bench, minimizer):
        asked = questions_about(point.generalization, bench)
        cells = asked[0].cells
        found.append(
            Seen(
                json.dumps(point.parameters),
                [name_of(clue[cells.cell_of]) for clue in cells.by_clue],
                list(cells.is_ordered),
                [
                    [one.attribute, *map(name_of, (one.values, one.mask_of_cell[cells.cell_of], one.possible))]
                    for one in asked
                ],
            )
        )
    return found


def questions_about(generalization: Any, bench: Any) -> list[Question]:
    """Return the questions of attack A1: every personal attribute, from buckets alone."""
    from sfumato.attack.reconstruction_clues import ask

    samples, personal = bench.attacked
    return ask((generalization,), samples, dict.fromkeys(personal, ()))


def made_again(bench: Any, minimizer: str) -> list[Any]:
    """Return the points of a kept front that are attacked, with their generalizations."""
    return make_again(bench, minimizer, attacked_points(kept_sweep(bench.task.name, minimizer, bench.seed)))


def make_again(bench: Any, minimizer: str, points: Sequence[Any]) -> list[Any]:
    """Return points of a kept front with their generalizations, or refuse where today's minimizer makes others."""
    made = bench.generalizations(minimizer, [point.parameters for point in points])
    for point, own in zip(points, made, strict=True):
        if sum(own.n_buckets) != point.n_buckets:
            raise InputError(
                f"{minimizer} on {bench.task.name} with seed {bench.seed} and {dict(point.parameters)} makes "
                f"{sum(own.n_buckets)} buckets and not the {point.n_buckets} of the kept front: run the fronts again."
            )
    return [replace(point, generalization=own) for point, own in zip(points, made, strict=True)]


def front_of(swept: Any) -> list[Any]:
    """Return the front of a sweep, each generalization once and without the limits."""
    from studies.minimizers_claims import Found

    front = [point for point in Found.together([swept]).front(swept.minimizer) if not point.is_limit]
    return list({(point.validation_error, point.validation_risk): point for point in front}.values())


def attacked_points(swept: Any) -> list[Any]:
    """Return the points of a front but those that generalize everything: there is nothing to attack."""
    return [point for point in front_of(swept) if point.n_buckets > swept.points[1].n_buckets]


def kept_sweep(table: str, minimizer: str, seed: int) -> Any:
    """Return the cell of a front."""
    found = _kept_sweeps().get((table, minimizer, seed))
    if found is None:
        raise InputError(
            f"the front of {minimizer} on {table} with seed {seed} is not kept: run the fronts first, with "
            "sfumato study staab-figure-4 staab-figure-11."
        )
    return found


@cache
def _kept_sweeps() -> dict[tuple[str, str, int], Any]:
    from studies.minimizers import EXPERIMENT, as_cells
    from studies.minimizers_keys import FRONTS

    cells = as_cells(EXPERIMENT.cells())
    return {(cell.table, cell.minimizer, cell.seed): cell for cell in cells if cell.figure == FRONTS}


def count_all(folder: Path, attacked: Path, out: Path) -> None:
    """Add what counting guesses to a file of rates; fronts that the new file has already are not counted again."""
    from sfumato.attack.reconstruction_adversaries import FamilySettings, answer

    kept: dict[str, Any] = dict(np.load(attacked))
    known = dict(np.load(out)) if out.exists() else {}
    for path in sorted(folder.glob("*.npz")):
        parts, seen = read_seen(path)
        for minimizer, own in seen.items():
            key = _key(path, minimizer)
            if (name := f"{key}|counting") not in known:
                settings = FamilySettings(("table",), random_state=int(path.name.split(".")[1]), n_jobs=1)
                with np.load(path) as arrays:
                    rates = [_rates(answer(questions_of(one, arrays, parts), settings)) for one in own]
                known[name] = np.array(rates, np.float32)
                kept |= {name: rates for name, rates in known.items() if name.endswith("|counting")}
                np.savez_compressed(out, **kept)
        print(path.name, flush=True)


def _rates(answers: Sequence[Any]) -> list[list[float]]:
    return [
        [rate_of(one.question, one.guesses, part, 1.0) for part in (one.question.validation, one.question.test)]
        for one in answers
    ]


def against_all(table: str, minimizer: str, seed: int) -> list[Any]:
    """Return the points of a kept front with the risk by the strongest attacker of every attribute."""
    swept, key = kept_sweep(table, minimizer, seed), f"{table}|{minimizer}|{seed}"
    with np.load(KEPT) as stored:
        settings, elsewhere, counted = (stored[name] for name in (f"{key}|settings", key, f"{key}|counting"))
    points = attacked_points(swept)
    if json.loads(str(settings)) != [json.dumps(point.parameters) for point in points]:
        raise ValueError(f"{KEPT.name} is about other settings than those on the kept front: attack it again.")
    every = np.concatenate([counted[:, :, None], elsewhere], axis=2).astype(
        float
    )  # points, attributes, attackers, parts
    found = []
    for point, rates in zip(points, every, strict=True):
        if not np.allclose(rates[:, 0].mean(axis=0), (point.validation_risk, point.test_risk), atol=2e-6):
            raise ValueError(f"{KEPT.name}: counting finds another risk than on the kept front: attack it again.")
        strongest = rates[np.arange(len(rates)), rates[:, :, 0].argmax(axis=1)]
        validation, test = strongest.mean(axis=0).tolist()
        found.append(replace(point, validation_risk=validation, test_risk=test))
    return found


# -- there: guess ------------------------------------------------------------------------------------------------


def attack_all(folder: Path, out: Path, *, workers: int, seconds: float, known: Path | None = None) -> None:
    """Attack every front of a folder; what is finished is written every few seconds.

    Parameters
    ----------
    folder, out : Path
    workers : int
        Processes of one thread each.
    seconds : float
        What is not finished by then is given up.
    known : Path, optional
        A file of fronts that need not be attacked again; they are in the new file, too.
    """
    out.mkdir(parents=True, exist_ok=True)
    start, written = time.perf_counter(), time.perf_counter()
    kept: dict[str, Any] = dict(np.load(known)) if known else {}
    places = [place for place in _places(folder) if _key(*place[:2]) not in kept]
    found: dict[tuple[Path, str], dict[int, NDArray[np.float64]]] = {}
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        left = pool.imap_unordered(_attack, places)
        for n_done in range(1, len(places) + 1):
            try:
                place, rates = left.next(max(0.0, start + seconds - time.perf_counter()))
            except multiprocessing.TimeoutError:
                print(f"not all in {seconds:.0f} s", flush=True)
                break
            path, minimizer, number = place
            found.setdefault((path, minimizer), {})[number] = rates
            if n_done == len(places) or time.perf_counter() - written > 20:
                written = time.perf_counter()
                print(f"{n_done} of {len(places)} in {written - start:.0f} s", flush=True)
                _write(kept, found, out)
        pool.terminate()
    _write(kept, found, out)


def _places(folder: Path) -> Iterator[tuple[Path, str, int]]:
    """Yield a file, a minimizer and the number of a point: seed after seed."""
    for path in sorted(folder.glob("*.npz"), key=lambda path: path.name.split(".")[1::-1]):
        for minimizer, own in read_seen(path)[1].items():
            yield from ((path, minimizer, number) for number in range(len(own)))


def _key(path: Path, minimizer: str) -> str:
    table, seed, _ = path.name.split(".")
    return f"{table}|{minimizer}|{seed}"


def _write(kept: dict[str, Any], found: dict[tuple[Path, str], dict[int, NDArray[np.float64]]], out: Path) -> None:
    for (path, minimizer), rates in found.items():
        seen = read_seen(path)[1][minimizer]
        if len(rates) == len(seen):
            key = _key(path, minimizer)
            kept[key] = np.stack([rates[number] for number in range(len(seen))]).astype(np.float32)
            kept[f"{key}|settings"] = json.dumps([one.setting for one in seen])
    np.savez_compressed(out / "attackers.npz", **kept)


@cache
def read_seen(path: Path) -> tuple[tuple[slice, slice, slice], dict[str, list[Seen]]]:
    """Return the parts of a file's records, and what is seen of the front of every minimizer."""
    with np.load(path) as stored:
        ends = [0, *stored["ends"].tolist()]
        about = json.loads(str(stored["about"]))
    parts = (slice(ends[0], ends[1]), slice(ends[1], ends[2]), slice(ends[2], ends[3]))
    return parts, {name: [Seen(**one) for one in own] for name, own in about.items()}


def _attack(place: tuple[Path, str, int]) -> tuple[tuple[Path, str, int], NDArray[np.float64]]:
    path, minimizer, number = place
    parts, seen = read_seen(path)
    with np.load(path) as stored:
        asked = questions_of(seen[minimizer][number], stored, parts)
    return place, rates_of(asked, seed=int(path.name.split(".")[1]))


def questions_of(seen: Seen, arrays: Any, parts: tuple[slice, slice, slice]) -> list[Question]:
    """Return the questions that were written, about the same records."""
    n_records = parts[2].stop
    columns = [arrays[name].astype(np.int64) for name in seen.clues]
    matrix = np.stack([*columns, np.zeros(n_records, np.int64)], axis=1)
    rows, first, cell_of = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    sizes = tuple(int(column.max()) + 1 for column in columns)
    cells = Cells(rows[:, :-1], sizes, tuple(seen.is_ordered), np.asarray(cell_of).ravel())
    made = []
    for attribute, values, mask, possible in seen.questions:
        left = arrays[possible]
        own = arrays[values].astype(np.int64), cells, arrays[mask][first].astype(np.int64), left
        made.append(Question(attribute, left.shape[1], *own, *parts))
    return made


def rates_of(asked: Sequence[Question], *, seed: int) -> NDArray[np.float64]:
    """Return the shares of right guesses: attributes, `MEMBERS`, validation and test records."""
    found = np.zeros((len(asked), len(MEMBERS), 2))

    def keep(position: int, member: int, scores: Any) -> None:
        question = asked[position]
        guesses = guess(question, scores)
        found[position, member] = [
            rate_of(question, guesses, part, 1.0) for part in (question.validation, question.test)
        ]

    undecided = [position for position, question in enumerate(asked) if is_open(question)]
    for position in undecided:
        keep(position, 0, fit_boosting(asked[position], BoostingSettings(), seed=seed))
    networks = network_answers([asked[position] for position in undecided], NETWORK, seed=seed)
    for position, [(_, scores)] in zip(undecided, networks, strict=True):
        keep(position, 1, scores)
    return found


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(prog="python -m studies.front_attackers", description="Attack the kept fronts.")
    steps = parser.add_subparsers(dest="step", required=True)
    inputs = steps.add_parser("inputs", help="write what attackers see")
    inputs.add_argument("folder", type=Path)
    inputs.add_argument("--tables", nargs="*", default=None)
    inputs.add_argument("--seeds", nargs="*", type=int, default=None)
    attack = steps.add_parser("attack", help="attack every front of a folder")
    attack.add_argument("folder", type=Path)
    attack.add_argument("out", type=Path)
    attack.add_argument("--workers", type=int, default=1, help="processes")
    attack.add_argument("--seconds", type=float, default=86_400, help="what is not finished by then is given up")
    attack.add_argument("--known", type=Path, default=None, help="a file of fronts that need not be attacked again")
    count = steps.add_parser("count", help="add what counting guesses")
    count.add_argument("folder", type=Path)
    count.add_argument("attacked", type=Path)
    count.add_argument("out", type=Path, nargs="?", default=KEPT)
    arguments = parser.parse_args()
    if arguments.step == "count":
        count_all(arguments.folder, arguments.attacked, arguments.out)
        return
    if arguments.step == "inputs":
        from studies.minimizers_keys import SEEDS, TABLES

        write_inputs(arguments.folder, arguments.tables or TABLES, arguments.seeds or SEEDS)
        return
    options = {"workers": arguments.workers, "seconds": arguments.seconds, "known": arguments.known}
    attack_all(arguments.folder, arguments.out, **options)


if __name__ == "__main__":
    main()
