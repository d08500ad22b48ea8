# SPDX-License-Identifier: Apache-2.0
"""Train many of the first paper's networks side by side, on a machine that has numpy and torch and nothing else.

The network is that of ``models`` (``nn-200``, scikit-learn's `MLPClassifier` with the paper's settings): one hidden
layer of 100, relu, Adam with a learning rate of 0.001, 200 epochs of batches of 200. All networks of a file learn from
the same records, each as another method made them. ``networks`` writes the files and reads what comes back::

    python3 studies/network_training.py FOLDER OUT   # OUT/cells.jsonl, a line for every network

Of files with raw records alone, OUT/NAME.npz says what their network holds of its training records, and of those on
which a tree is to grow.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

N_HIDDEN, LEARNING_RATE, PENALTY, EPOCHS, BATCH = 100, 1e-3, 1e-4, 200, 200
MOST_CATEGORIES = 64  # of one column, the rarer ones as one, as in ``models``
_BETA, _BETA_2, _TINY = 0.9, 0.999, 1e-8  # of Adam


def train_folder(folder: Path, out: Path, *, epochs: int = EPOCHS, device: str | None = None) -> None:
    """Train the networks of every file of a folder, and write a line for each."""
    import torch

    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    machine = torch.cuda.get_device_name() if place.type == "cuda" else "CPU"
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with (out / "cells.jsonl").open("a", encoding="utf-8") as file:
        for path in sorted(folder.glob("*.npz")):
            began = time.perf_counter()
            with np.load(path) as stored:
                found, said = train_file(stored, place, epochs)
            if said:
                np.savez_compressed(out / path.name, **said)
            each = (time.perf_counter() - began) / len(found)
            for cell in found:
                where = {"accelerator": machine, "torch": torch.__version__, "accelerator_seconds": round(each, 3)}
                file.write(json.dumps(cell | where) + "\n")
            file.flush()
            now = time.perf_counter()
            told = f"raw {found[0]['accuracy']}, {now - began:.1f} s, {now - start:.0f} s in all"
            print(f"{path.name}: {len(found)} networks, {told}", flush=True)


def train_file(stored: Any, place: torch.device, epochs: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Train the networks of one file, and test them; of raw records alone also what the network says of them."""
    import torch

    cells = json.loads(str(stored["cells"]))
    n_categories, is_released = stored["n_categories"], stored["is_released"]
    train, test = stored["train"], stored["test"]
    n_train = len(train)
    inputs, tests, moved = [], [], []
    for number in range(len(cells)):
        records, tested, transformed = train, test, None
        if f"groups_{number}" in stored:
            groups, points = stored[f"groups_{number}"], stored[f"points_{number}"]
            records = train.copy()
            records[:, is_released] = points[groups[:n_train]]
            if len(groups) > n_train:
                transformed = test.copy()
                transformed[:, is_released] = points[groups[n_train:]]
        coded = [coordinates(own, records, n_categories) for own in (records, tested, transformed) if own is not None]
        inputs.append(torch.from_numpy(coded[0]))
        tests.append(coded[1])
        moved.append(coded[2] if transformed is not None else None)
    seed = int(stored["seed"])
    X = torch.stack(inputs).to(place)
    y = torch.from_numpy(stored["y_train"].astype(np.float32)).to(place)
    weights = train_networks(X, y, seed, epochs)
    del X
    y_test = stored["y_test"]
    for number, cell in enumerate(cells):
        scores = decide(weights, number, tests[number])
        cell["accuracy"] = round(100 * float(((scores > 0) == y_test).mean()), 3)
        cell["ranking"] = round(100 * area_under_curve(scores, y_test), 3)
        if moved[number] is not None:
            cell["transformed"] = round(100 * float(((decide(weights, number, moved[number]) > 0) == y_test).mean()), 3)
    said = {}
    if len(cells) == 1:
        for name, records in (("train", train), ("tree", stored.get("tree", train))):
            logits = decide(weights, 0, coordinates(records, train, n_categories))
            said[name] = (1 / (1 + np.exp(-logits))).astype(np.float32)
    return cells, said


def coordinates(records: Any, learned: Any, n_categories: Any) -> Any:
    """Return records as a network sees them, by what is known of the records it learns from.

    Numbers are filled up with the median and scaled; a category is a coordinate, and those beyond `MOST_CATEGORIES`
    share one, as do categories that are new then. Otherwise new ones are none.
    """
    parts = []
    for column, n in enumerate(n_categories):
        own, known = records[:, column], learned[:, column]
        if n == 0:
            middle = np.nanmedian(known) if not np.isnan(known).all() else 0.0
            filled = np.where(np.isnan(known), middle, known)
            scale = float(filled.std()) or 1.0
            parts.append(((np.where(np.isnan(own), middle, own) - filled.mean()) / scale)[:, np.newaxis])
            continue
        counts = np.bincount(known.astype(int), minlength=n)
        order = np.argsort(-counts, kind="stable")[: (counts > 0).sum()]
        width = min(n, MOST_CATEGORIES)
        slots = np.full(n, -1)
        if len(order) > width:
            slots[:] = width - 1
            order = order[: width - 1]
        slots[order] = np.arange(len(order))
        place = slots[own.astype(int)]
        coded = np.zeros((len(own), width), np.float32)
        coded[np.flatnonzero(place >= 0), place[place >= 0]] = 1
        parts.append(coded)
    return np.concatenate(parts, axis=1).astype(np.float32)


def train_networks(X: torch.Tensor, y: torch.Tensor, seed: int, epochs: int) -> list[Any]:
    """Return the weights of one network per sheet of X; all see the records in the same order."""
    import torch

    n_networks, n, d = X.shape
    random = torch.Generator().manual_seed(seed)
    sizes = [d * N_HIDDEN, N_HIDDEN, N_HIDDEN, 1]
    shapes = [(d, N_HIDDEN), (1, N_HIDDEN), (N_HIDDEN, 1), (1, 1)]

    def views(flat: torch.Tensor) -> list[torch.Tensor]:
        return [part.view(n_networks, *shape) for part, shape in zip(flat.split(sizes, 1), shapes, strict=True)]

    # As scikit-learn begins: uniform, by the number of units on both sides.
    bounds = [(6 / (d + N_HIDDEN)) ** 0.5] * 2 + [(2 / (N_HIDDEN + 1)) ** 0.5] * 2
    first = torch.cat([(torch.rand(s, generator=random) * 2 - 1) * b for s, b in zip(sizes, bounds, strict=True)])
    flat = first.to(X.device).repeat(n_networks, 1)
    parts = [part.contiguous() for part in views(flat)]
    means = [torch.zeros_like(part) for part in parts]
    squares = [torch.zeros_like(part) for part in parts]
    order = torch.arange(n, device=X.device)
    t = torch.zeros((), device=X.device)

    def epoch() -> None:
        for begin in range(0, n, BATCH):
            rows = order[begin : begin + BATCH]
            x, target = X[:, rows], y[rows][None, :, None]
            hidden = torch.relu(torch.baddbmm(parts[1], x, parts[0]))
            change = (torch.sigmoid(torch.baddbmm(parts[3], hidden, parts[2])) - target) / len(rows)
            back = (change @ parts[2].transpose(1, 2)) * (hidden > 0)
            slopes = [
                x.transpose(1, 2) @ back + PENALTY / len(rows) * parts[0],
                back.sum(1, keepdim=True),
                hidden.transpose(1, 2) @ change + PENALTY / len(rows) * parts[2],
                change.sum(1, keepdim=True),
            ]
            t.add_(1)
            rate = LEARNING_RATE * torch.sqrt(1 - _BETA_2**t) / (1 - _BETA**t)
            torch._foreach_lerp_(means, slopes, 1 - _BETA)
            torch._foreach_mul_(squares, _BETA_2)
            torch._foreach_addcmul_(squares, slopes, slopes, 1 - _BETA_2)
            roots = torch._foreach_sqrt(squares)
            torch._foreach_add_(roots, _TINY)
            steps = torch._foreach_div(means, roots)
            torch._foreach_mul_(steps, rate)
            torch._foreach_sub_(parts, steps)

    with torch.no_grad():
        replay = epoch if X.device.type != "cuda" else _captured(epoch, [*parts, *means, *squares, t])
        for _ in range(epochs):
            order.copy_(torch.randperm(n, generator=random))
            replay()
    return [part.cpu().numpy() for part in parts]


def _captured(epoch: Any, state: list[torch.Tensor]) -> Any:
    """Return an epoch as one graph of kernels, so that none waits for Python; the state is as before."""
    import torch

    before = [own.clone() for own in state]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        epoch()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        epoch()
    for own, value in zip(state, before, strict=True):
        own.copy_(value)
    return graph.replay


def decide(weights: list[Any], number: int, X: Any) -> Any:
    """Return the logits of one network."""
    hidden = np.maximum(X @ weights[0][number] + weights[1][number], 0)
    return (hidden @ weights[2][number] + weights[3][number])[:, 0]


def area_under_curve(scores: Any, y: Any) -> float:
    """Return how often a record of class 1 has a higher score than one of class 0; equal scores count half."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    n_ones = int(y.sum())
    return float((ranks[y == 1].sum() - n_ones * (n_ones + 1) / 2) / (n_ones * (len(y) - n_ones)))


if __name__ == "__main__":
    train_folder(Path(sys.argv[1]), Path(sys.argv[2]), epochs=int(sys.argv[3]) if len(sys.argv) > 3 else EPOCHS)
