# SPDX-License-Identifier: Apache-2.0
"""What may be published of a column, written once more in plain Python: the twin of ``partition.shared_values``.

Values are plain numbers here: themselves, or microseconds. A test compares what an anonymizer wrote with this.
"""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

from sfumato.partition.round_numbers import NUMBER_UNITS, number_between

DAY = 86_400_000_000
TIME_UNITS = (DAY, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)


class PublishedNumbers:
    """Numbers, dates or times of a table, and what is published of each with a floor of k records."""

    def __init__(self, values, k, kind):
        self.k, self.n = k, Counter(values)
        self.distinct = sorted(self.n)
        self.units = NUMBER_UNITS if kind in ("integer", "float") else TIME_UNITS[:1] if kind == "date" else TIME_UNITS
        self.step = self._smallest_step(kind)
        self.runs = self._runs()
        self.published = [self._own_value(run) for run in self.runs]
        known = [at for at, value in enumerate(self.published) if value is not None]
        for at in range(len(self.runs)):
            if at not in known:
                self.published[at] = self._borrowed_value(at, known)
        self.lows, self.highs = self._ends()
        # Too few records have a value, or none is left but what one record has: nothing is published.
        shows_one = any(self.n[value] == 1 for value in self.published)
        self.is_hidden = sum(self.n.values()) < k or (shows_one and k > 1)

    def _smallest_step(self, kind):
        if kind == "float":
            is_whole = (
                all(v == int(v) for v in self.distinct) and max(abs(self.distinct[0]), abs(self.distinct[-1])) < 2**53
            )
            return 1 if is_whole else 0
        if kind == "integer":
            return 1
        return next(u for u in self.units if u == self.units[-1] or all(v % u == 0 for v in self.distinct))

    def _runs(self):
        runs, own = [], []
        for value in self.distinct:
            if own and sum(self.n[v] for v in own) >= self.k:
                runs.append(own)
                own = []
            own = [*own, value]
        if runs and sum(self.n[v] for v in own) < self.k:
            own = runs.pop() + own
        return [*runs, own]

    def _free(self, low, high):
        return number_between(low, high, self.units, self.step)

    def _own_value(self, run):
        most = max(self.n[v] for v in run)
        mode = next(v for v in run if self.n[v] == most)
        if most >= self.k:
            return mode
        total, passed, found = sum(self.n[v] for v in run), 0, []
        for at, value in enumerate(run[:-1]):
            passed += self.n[value]
            free = self._free(value, run[at + 1])
            if free is not None:
                following = run[at + 1]
                width = following / 2 - value / 2 if isinstance(value, float) else following - value
                found.append((abs(2 * passed - total), width, at, free))
        if found:
            return min(found)[3]
        return mode if most > 1 else None

    def _borrowed_value(self, at, known):
        run = self.runs[at]
        if at > 0 and (free := self._free(self.runs[at - 1][-1], run[0])) is not None:
            return run[0] - self.step if self.step else free
        if at + 1 < len(self.runs) and (free := self._free(run[-1], self.runs[at + 1][0])) is not None:
            return run[-1] + self.step if self.step else free
        if known:
            return self.published[min(known, key=lambda place: (abs(place - at), place))]
        if not self.step:
            return self.runs[at][0]
        is_upper = 2 * at >= len(self.runs) - 1 or 0 <= self.distinct[0] < self.step
        outside = self.distinct[-1] + self.step if is_upper else self.distinct[0] - self.step
        return outside if -(2**63) <= outside < 2**63 else self.runs[at][0]

    def _nobodys(self, run):
        """Return the values of a run that several records have, or none."""
        free = [self._free(a, b) for a, b in pairwise(run)]
        return [v for v in run if self.n[v] > 1] + [v for v in free if v is not None]

    def _ends(self):
        lows, highs = [run[0] for run in self.runs], [run[-1] for run in self.runs]
        for at in range(len(self.runs) - 1):
            below, above = self.runs[at], self.runs[at + 1]
            cut = self._free(below[-1], above[0])
            if cut is None:
                if self.n[below[-1]] == 1 and self._nobodys(above):
                    highs[at] = min(self._nobodys(above))
                if self.n[above[0]] == 1 and self._nobodys(below):
                    lows[at + 1] = max(self._nobodys(below))
                continue
            if self.n[below[-1]] < self.k:
                highs[at] = cut
            if self.n[above[0]] < self.k:
                lows[at + 1] = cut + self.step if self.step and cut + self.step < above[0] else cut
        if self.opens_below:
            lows[0] = min(self.published[0], highs[0])
        if self.opens_above:
            highs[-1] = max(self.published[-1], lows[-1])
        return lows, highs

    @property
    def opens_below(self):
        return self.n[self.distinct[0]] < self.k

    @property
    def opens_above(self):
        return self.n[self.distinct[-1]] < self.k

    def run_of(self, value):
        return next(at for at, run in enumerate(self.runs) if value in run)

    def value(self, value):
        """Return what is published for a value; None where nothing is."""
        return None if self.is_hidden else self.published[self.run_of(value)]

    def mean(self, values):
        """Return the exact mean of what is published for some values."""
        return sum(Fraction(self.value(v)) for v in values) / len(values)
