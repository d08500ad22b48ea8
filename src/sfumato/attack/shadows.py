# SPDX-License-Identifier: Apache-2.0
"""Shadow models: the whole pipeline repeated on random halves of the records, each with randomness of its own.

A shadow is a copy of the *unfitted* estimator. When that is an ``AnonymizedClassifier``, every shadow trains its own
guide, anonymizes its own half and retrains; a differentially private model draws its own noise. Shadows of an
unprotected model would say how unprotected models behave. ``membership`` calls `train_shadows`, and its attacks compare
the target with shadows that saw a record and with shadows that did not.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sfumato.attack.membership_signals import Floats, Reader
from sfumato.documents import written_whole
from sfumato.errors import ParameterError, named
from sfumato.frames import read_table

logger = logging.getLogger(__name__)
Progress = Callable[[int, int], None]
_SEED_LIMIT = 2**31 - 1
_TAG = 103


@dataclass(frozen=True, eq=False)
class ShadowOutputs:
    """The outputs of every shadow for every record.

    Attributes
    ----------
    outputs : ndarray of shape (n_shadows, n_records, n_outputs)
    was_in : ndarray of bool of shape (n_shadows, n_records)
        Whether the shadow was trained on the record.
    population : ndarray of shape (n_shadows, n_population, n_outputs)
        The same for records that no shadow was trained on; of length 0 when none were given.
    """

    outputs: Floats
    was_in: NDArray[np.bool_]
    population: Floats


def train_shadows(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    reader: Reader,
    n_shadows: int = 64,
    X_population: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> ShadowOutputs:
    """Fit copies of an estimator on random halves of the records and read all of them on all records.

    Every record is in exactly half of the halves, so that its in and out distributions are known equally well.

    Parameters
    ----------
    estimator : unfitted estimator
        The whole pipeline, protection included. It is cloned; every ``random_state`` in it is set again.
    X : frame or array
    y : array-like of shape (n_records,)
    reader : Reader
    n_shadows : int, default=64
        An even number.
    X_population : frame or array, optional
        Records that no shadow is trained on, to be read as well.
    random_state : int, default=0
    n_jobs : int, optional
        Processes, with one thread each; -1 for all cores. None or 1 trains in this process.
    cache : path, optional
        A folder that keeps the outputs of finished shadows (no records and no models), so that an interrupted run
        goes on where it was. A file is used again only for the same records, estimator, seed and number of shadows.
    progress : callable, optional
        Called with the number of finished shadows and their total.
    """
    if isinstance(n_shadows, bool) or not isinstance(n_shadows, int | np.integer) or n_shadows < 2 or n_shadows % 2:
        raise ParameterError(
            f"{named('n_shadows', n_shadows)}: expected an even number from 2 on, so that every record is in half of "
            "them. 64 is usual."
        )
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise ParameterError(
            f"estimator is {type(estimator).__name__}: expected an unfitted estimator to copy, the one that the "
            "attacked model was made with. Pass an instance, such as AnonymizedClassifier(...)."
        )
    n_records = read_table(X).n_records
    generator = np.random.default_rng([random_state, _TAG])  # apart from what others draw from the same seed
    was_in = balanced_halves(n_shadows, n_records, generator)
    seeds = generator.integers(0, _SEED_LIMIT, n_shadows)
    folder = None if cache is None else _Folder(Path(cache), _fingerprint(estimator, X, y, X_population, reader, seeds))
    found: dict[int, tuple[Floats, Floats]] = {} if folder is None else folder.read_all(n_shadows)
    if found:
        logger.info("%d of %d shadow models were finished before", len(found), n_shadows)
    waiting = [number for number in range(n_shadows) if number not in found]
    labels = np.asarray(y)
    tasks = [
        (number, clone(estimator), X, labels, was_in[number], int(seeds[number]), reader, X_population)
        for number in waiting
    ]
    if progress is not None:
        progress(len(found), n_shadows)
    for number, outputs, population in _run(tasks, n_jobs):
        if folder is not None:
            folder.write(number, outputs, population)
        found[number] = (outputs, population)
        if progress is not None:
            progress(len(found), n_shadows)
        logger.info("shadow model %d of %d", len(found), n_shadows)
    order = range(n_shadows)
    return ShadowOutputs(np.stack([found[i][0] for i in order]), was_in, np.stack([found[i][1] for i in order]))


def balanced_halves(n_shadows: int, n_records: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Return which shadow is trained on which record: each record in a random half of the shadows."""
    order = generator.random((n_shadows, n_records)).argsort(axis=0)
    return np.asarray(order < n_shadows // 2)


def with_seeds(estimator: Any, seed: int) -> Any:
    """Return a copy of an estimator with every ``random_state`` in it set from one seed."""
    copy = clone(estimator)
    names = sorted(name for name in copy.get_params(deep=True) if name.rpartition("__")[2] == "random_state")
    seeds = np.random.default_rng(seed).integers(0, _SEED_LIMIT, len(names))
    return copy.set_params(**{name: int(own) for name, own in zip(names, seeds, strict=True)})


def _train_one(
    number: int, estimator: Any, X: Any, y: Any, rows: NDArray[np.bool_], seed: int, reader: Reader, X_population: Any
) -> tuple[int, Floats, Floats]:
    table = read_table(X)
    kept = np.flatnonzero(rows)
    half = table.replaced({}, keep_rows=kept)
    model = with_seeds(estimator, seed).fit(half, y[kept])
    outputs = reader.outputs(model, X)
    nothing = np.empty((0, outputs.shape[1]))
    return number, outputs, nothing if X_population is None else reader.outputs(model, X_population)


def _run(tasks: list[tuple[Any, ...]], n_jobs: int | None) -> Iterator[tuple[int, Floats, Floats]]:
    """Train in this process, or in several with one thread each; yield what is finished first."""
    if n_jobs is None or n_jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield _train_one(*task)
        return
    from joblib import parallel_config
    from sklearn.utils.parallel import Parallel, delayed

    # More threads than cores made boosting ten times slower, so each process has one.
    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(_train_one)(*t) for t in tasks)


class _Folder:
    """The outputs of finished shadows on disk."""

    def __init__(self, home: Path, fingerprint: str) -> None:
        self._home = home
        self._fingerprint = fingerprint
        home.mkdir(parents=True, exist_ok=True)

    def _path(self, number: int) -> Path:
        return self._home / f"shadow-{self._fingerprint[:16]}-{number:05d}.npz"

    def read_all(self, n_shadows: int) -> dict[int, tuple[Floats, Floats]]:
        found = {}
        for number in range(n_shadows):
            if self._path(number).exists():
                with np.load(self._path(number), allow_pickle=False) as arrays:
                    found[number] = (arrays["outputs"], arrays["population"])
        return found

    def write(self, number: int, outputs: Floats, population: Floats) -> None:
        # Moved into place when complete: a run that is stopped while it writes leaves nothing that could be read.
        with written_whole(self._path(number), mode=0o600) as temporary, temporary.open("wb") as file:
            np.savez(file, outputs=outputs, population=population)


def _fingerprint(estimator: Any, X: Any, y: Any, X_population: Any, reader: Reader, seeds: NDArray[Any]) -> str:
    """Return a hash of everything a shadow's outputs depend on."""
    parts = [repr(reader.kind), _settings_of(estimator), repr(seeds.tolist())]
    digest = hashlib.sha256("\n".join(parts).encode())
    for frame in (X, X_population):
        if frame is None:
            continue
        table = read_table(frame)
        for name in table.names:
            column = table.column(name, for_counting=True)
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(column.values).tobytes())
            digest.update(b"" if column.missing is None else column.missing.tobytes())
            digest.update(repr(None if column.categories is None else column.categories.tolist()).encode())
    digest.update(repr(np.asarray(y).tolist()).encode())
    return digest.hexdigest()


def _settings_of(estimator: Any) -> str:
    # An estimator among the parameters is followed by its own parameters, so of it the name is enough.
    parts = [type(estimator).__qualname__]
    with np.printoptions(threshold=sys.maxsize):  # an array that is cut short would look like another one
        for name, value in sorted(estimator.get_params(deep=True).items()):
            parts.append(f"{name}={type(value).__qualname__ if hasattr(value, 'get_params') else repr(value)}")
    return "\n".join(parts)
