# SPDX-License-Identifier: Apache-2.0
"""Histograms that are kept: for the children of a node, while a tree grows, and for other growths on the same records.

The histogram of a node less that of one child is that of the other, so of two children only the smaller is counted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.histogram import subtract
from sfumato.partition.tree import NodeTable

_BUDGET = 256 << 20
"""Bytes of histograms kept at once; beyond it a child is counted from its records."""

_STORE_BUDGET = 512 << 20
"""Bytes of histograms in one store."""

Path = tuple[bytes, ...]
"""The splits and sides that lead from the root to a node, which tell its records whatever the guide."""


class HistogramStore:
    """Histograms by the splits that lead to a node: what several growths over the same records need not count twice.

    The histograms in it are never written to.
    """

    def __init__(self) -> None:
        self._histograms: dict[Path, NDArray[np.int64]] = {}
        self._n_bytes = 0

    def get(self, path: Path) -> NDArray[np.int64] | None:
        """Return the histogram of a node, or None where nobody has counted it."""
        return self._histograms.get(path)

    def put(self, path: Path, histogram: NDArray[np.int64]) -> None:
        """Keep a histogram while there is room."""
        if self._n_bytes <= _STORE_BUDGET:
            self._histograms[path] = histogram
            self._n_bytes += histogram.nbytes


class KeptHistograms:
    """The histograms of nodes that are about to be split, or wait for it.

    Parameters
    ----------
    nodes : NodeTable
    count : callable
        Counts a node's records.
    kept_from : int
        Nodes with more records are kept, while there is room.
    always_from : int
        Nodes with more records are kept in any case.
    store : HistogramStore, optional
        Where other growths over the same records find what was counted.
    """

    def __init__(
        self,
        nodes: NodeTable,
        count: Callable[[int], NDArray[np.int64]],
        *,
        kept_from: int,
        always_from: int,
        store: HistogramStore | None = None,
    ) -> None:
        self.nodes = nodes
        self.kept_from = kept_from
        self.always_from = always_from
        self.store = store
        self._count_records = count
        self._by_node: dict[int, NDArray[np.int64]] = {}
        self._n_bytes = 0

    def __len__(self) -> int:
        """Return how many nodes have a histogram at hand."""
        return len(self._by_node)

    def __getitem__(self, node: int) -> NDArray[np.int64]:
        """Return the histogram of a node."""
        return self._by_node[node]

    def has(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which nodes have a histogram at hand."""
        if len(nodes) <= 2:  # as when growing best-first, where the overhead of arrays adds up
            return np.array([int(node) in self._by_node for node in nodes], np.bool_)
        return np.isin(nodes, list(self._by_node)) if self._by_node else np.zeros(len(nodes), np.bool_)

    def keep(self, node: int, histogram: NDArray[np.int64]) -> None:
        """Keep the histogram of a node; it may be written to when the node is split."""
        self._by_node[node] = histogram
        self._n_bytes += histogram.nbytes

    def forget(self, node: int) -> None:
        """Let go of the histogram of a node, where it has one."""
        histogram = self._by_node.pop(node, None)
        if histogram is not None:
            self._n_bytes -= histogram.nbytes

    def clear(self) -> None:
        """Let go of all histograms."""
        self._by_node.clear()
        self._n_bytes = 0

    def count(self, nodes: NDArray[np.int64]) -> None:
        """Count those nodes that are large enough and have no histogram yet."""
        sizes = self.nodes.sizes(nodes)
        for node, size in zip(nodes[sizes > self.kept_from], sizes[sizes > self.kept_from], strict=True):
            has_room = size > self.always_from or self._n_bytes <= _BUDGET
            if int(node) not in self._by_node and has_room:
                self.keep(int(node), self._counted(int(node)))

    def pass_on(self, node: int) -> None:
        """Turn the histogram of a node that was split into those of its children, or let go of it."""
        left, right = int(self.nodes.left[node]), int(self.nodes.right[node])
        n_left, n_right = self.nodes.size(left), self.nodes.size(right)
        smaller, larger = (left, right) if n_left <= n_right else (right, left)
        if max(n_left, n_right) <= self.kept_from or self._n_bytes > _BUDGET:
            self.forget(node)
        else:
            self.divide(node, smaller, self._counted(smaller), larger)

    def divide(self, node: int, smaller: int, counted: NDArray[np.int64], larger: int) -> None:
        """Put the histogram of one child, and what is left for the other, in the place of that of a node."""
        whole = self._by_node[node]
        self.forget(node)
        self.keep(smaller, counted)
        self.keep(larger, self._rest(whole, counted, larger))

    def _rest(self, whole: NDArray[np.int64], part: NDArray[np.int64], node: int) -> NDArray[np.int64]:
        if self.store is None:
            subtract(whole, part, whole)
            return whole
        path = _path(self.nodes, node)
        known = self.store.get(path)
        if known is None:
            known = np.empty_like(whole)
            subtract(whole, part, known)
            self.store.put(path, known)
        return known

    def _counted(self, node: int) -> NDArray[np.int64]:
        if self.store is None:
            return self._count_records(node)
        path = _path(self.nodes, node)
        known = self.store.get(path)
        if known is None:
            known = self._count_records(node)
            self.store.put(path, known)
        return known


def _path(nodes: NodeTable, node: int) -> Path:
    """Return the splits that lead to a node, each as bytes."""
    steps = []
    while nodes.parent[node] >= 0:
        parent = int(nodes.parent[node])
        rule = (nodes.column[parent], nodes.last_bin[parent], nodes.missing_left[parent], nodes.left[parent] == node)
        steps.append(np.array(rule, np.int32).tobytes() + nodes.mask[parent].tobytes())
        node = parent
    return tuple(steps)
