# SPDX-License-Identifier: Apache-2.0
"""The partition engine: bin, count, split, grow, apply. Arrays only, no frames.

The layers, each in a file of its own and each using only those before it::

    binning    values -> small integer codes, the same for any order of the rows
    records    the codes and guide channels of all records, laid out for the kernels
    histogram  exact integer sums per bin
    scoring    what a split is worth
    candidates a short ranked list of splits per node
    single_best the everyday scans, in scalars
    taxonomy   hierarchies of columns; hierarchy_splits the cuts between the children of a label
    splitting  the best admissible splits of one node, read off its histogram
    dividing   records to their sides of a split
    tree       the nodes while they grow, and the flat tree that new records are run through
    conditions what both sides of a split must meet beside their number of records
    workers    the threads of one growth
    node_records where each node's records lie; kept_histograms what is known of nodes already
    node_search count nodes and find their candidates
    grower     level by level, or best-first under a leaf limit; streaming, where memory does not hold the records

``hilbert_curve`` and ``rplus`` form groups in their own way, along a curve and by bounding boxes; ``relaxed_mondrian``
by medians that divide equal values; ``set_aside`` by the widths of all columns (``boxes``), with odd records set aside.
``lattice`` finds the levels of hierarchies whose groups give up least.

``guides`` says what makes a split good, ``group_summaries`` collects records by group. Every kernel has
a slow twin in ``tests/twins``, which the tests compare with it.
"""
