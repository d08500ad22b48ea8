# SPDX-License-Identifier: Apache-2.0
"""What a group proposes to be published as, written once more in plain Python: the twin of ``phantom_proposals``.

Surroundings are lists of records here, cells are sets of codes, and values are laid out one after the other.
"""

from collections import Counter

N_CHANGES, N_COMBINED, RARE = 32, 8, 10
STEP = 0x9E3779B97F4A7C15


def runs_of_groups(tree, sizes, group_of_leaf, at_least):
    """Return for each group the first and one past the last group below its nearest node with enough records."""
    found = {}

    def below(node):
        if tree.left[node] < 0:
            return {group_of_leaf[tree.group[node]]} - {-1}
        return below(tree.left[node]) | below(tree.right[node])

    def go(node, around):
        own = below(node)
        if own and sum(sizes[g] for g in own) >= at_least:
            around = own
        if tree.left[node] >= 0:
            go(tree.left[node], around)
            go(tree.right[node], around)
        for g in own if len(own) == 1 else ():
            found[g] = (min(around), max(around) + 1)

    go(0, below(0))
    return [found[g] for g in range(len(sizes))]


def bits(n, total):
    """Return 256 times the logarithm of total / n to the base 2, a straight line between powers of 2."""
    ratio = (total << 20) // n
    exponent = ratio.bit_length() - 1
    return (exponent - 20) * 256 + ((ratio << 8) >> exponent) - 256


class Twin:
    """What groups of codes propose, given what may be shown of the codes."""

    def __init__(self, layout, shown):
        self.layout, self.shown = layout, shown
        self.n_codes = [int(b - a) for a, b in zip(layout.offsets[:-1], layout.offsets[1:], strict=True)]

    def row(self, j, code):
        return int(self.layout.offsets[j]) + code

    def dealt(self, j, values, size, rank):
        """Return the code that the group of this rank and size gets, of the values around it that lie in its cell."""
        n = Counter(v for v in values if self.shown.may_show[self.row(j, v)])
        is_category = self.layout.is_category[j]
        laid_out = [v for v in sorted(n, key=lambda v: (-n[v] if is_category else 0, v)) for _ in range(n[v])]
        if not laid_out:
            return int(self.shown.fallback[j])
        step = STEP * (2 * j + 1) % 2**64
        turn = (rank * step + step // 2) % 2**64
        n_runs = max(1, len(laid_out) // size)
        run = (turn >> 32) * n_runs >> 32
        own = laid_out[run * len(laid_out) // n_runs : (run + 1) * len(laid_out) // n_runs]
        return max(own, key=own.count) if is_category else own[(len(own) - 1) // 2]

    def bits_of(self, j, values, code):
        place = int(self.shown.own[self.row(j, code)]) if code >= 0 else -1
        return bits(max(1, values.count(place)) if place >= 0 else 1, max(1, len(values)))

    def singles(self, j, values, own):
        """Yield the changes of one column: cost and code."""
        n, shown = Counter(values), self.shown
        others = [c for c in range(self.n_codes[j]) if c != own and shown.may_show[self.row(j, c)]]
        if self.layout.is_category[j] or own < 0 or own == self.layout.missing[j]:
            for code in sorted((c for c in others if n[c]), key=lambda c: (-n[c], c))[:2]:
                yield 1.0, code
            for code in [c for c in others if not n[c]][:2]:
                yield 5.0, code
            return
        centre = (self.layout.low + self.layout.high) / 2
        for side in (range(own - 1, -1, -1), range(own + 1, self.n_codes[j])):
            outside = None
            for code in side:
                if code == self.layout.missing[j]:
                    break
                if shown.run[self.row(j, code)] == shown.run[self.row(j, own)]:
                    continue
                cost = (centre[self.row(j, code)] - centre[self.row(j, own)]) ** 2
                if n[code]:
                    yield cost, code
                    break
                if outside is None:
                    outside = cost + 4.0, code
            if outside is not None:
                yield outside

    def propose(self, around, cells, size, rank):
        """Return typical codes, changes in order, whether the former are rare, and how many changes occur around."""
        every = [[r[j] for r in around] for j in range(len(self.n_codes))]
        values = [[v for v in own if v in cells[j]] or own for j, own in enumerate(every)]
        typical = [self.dealt(j, own, size, rank) for j, own in enumerate(values)]
        rarity = [self.bits_of(j, own, typical[j]) for j, own in enumerate(values)]
        single = [(cost, j, c) for j, own in enumerate(values) for cost, c in self.singles(j, own, typical[j])]
        single.sort(key=lambda own: own[0])
        inside = [((j, c),) for cost, j, c in single if cost < 4.0]
        outside = [((j, c),) for cost, j, c in single if cost >= 4.0]
        near = inside[:N_COMBINED]
        pairs = [near[b] + near[a] for a in range(len(near)) for b in range(a) if near[a][0][0] != near[b][0][0]]
        listed = []
        for change in inside + pairs:
            more = sum(self.bits_of(j, values[j], c) - rarity[j] for j, c in change)
            listed.append((sum(rarity) + more, change))
        needed = bits(1, RARE * size)
        rare = [change for own, change in listed if own >= needed]
        others = sorted((own for own in listed if own[0] < needed), key=lambda own: -own[0])
        around = (rare + [change for _, change in others])[:N_CHANGES]
        return typical, (around + outside)[:N_CHANGES], sum(rarity) >= needed, len(around)
