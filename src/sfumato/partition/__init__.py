# SPDX-License-Identifier: Apache-2.0
"""The partition engine: bin, count, split, grow, apply. Arrays only, no frames.

The layers, each in a module of its own and each using only those before it::

    binning      values -> small integer codes, the same for any order of the rows
    records      the codes and guide channels of all records, laid out for the kernels
    guides       the gain of a split: channels of integers, information loss or medians
    candidates   ranked splits per node, and the side a code goes to
    tree         the nodes while they grow, and the flat tree that new records are run through
    histogram    exact integer sums per bin, kept for the children of a node
    taxonomy     hierarchies of columns
    scoring      gains from exact sums, entered into ranked lists
    splitting    the best admissible splits of one node, from its histogram; category_splits for categories
    conditions   conditions on both sides of a split beyond their number of records
    workers      the threads of one growth
    node_records the records of each node, moved to their sides of a split
    node_search  count nodes and find their candidates
    grower       level by level, or best-first under a leaf limit; streaming, for more records than memory holds

``hilbert_curve`` and ``rplus`` form groups along a curve and by bounding boxes; ``relaxed_mondrian`` by medians that
divide equal values; ``set_aside`` by the widths of all columns (``boxes``), with outliers set aside. ``lattice`` finds
the levels of hierarchies with the least information loss.

Kernels take named tuples of arrays. Each has a reference implementation in ``tests/twins``, which the tests compare it
with.
"""
