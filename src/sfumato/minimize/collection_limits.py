# SPDX-License-Identifier: Apache-2.0
"""Limits on what is collected, whatever a minimizer learns: required and forbidden attributes, and budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.arguments import is_integer
from sfumato.errors import ParameterError, named
from sfumato.minimize.bucket_steps import coarser, finer
from sfumato.minimize.sample import FORBIDDEN, Buckets, Sample


@dataclass(frozen=True)
class CollectionLimits:
    """Limits on what is collected.

    Attributes
    ----------
    required : tuple of str
        Attributes that are collected in at least two buckets.
    forbidden : tuple of str
        Attributes that are not collected.
    max_buckets : mapping of str to int
        Budgets: the most buckets of some attributes.
    """

    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    max_buckets: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, required: Iterable[str] | None, forbidden: Iterable[str] | None, max_buckets: Mapping[str, int] | None
    ) -> CollectionLimits:
        """Return the limits; raise ParameterError where they contradict each other."""
        made = cls(tuple(required or ()), tuple(forbidden or ()), dict(max_buckets or {}))
        for name, most in made.max_buckets.items():
            if not is_integer(most) or most < 1:
                raise ParameterError(
                    f"{named('max_buckets')} of {name!r}: expected an integer >= 1. 1 means that it is not collected."
                )
        both = [name for name in made.required if name in made.forbidden or made.max_buckets.get(name) == 1]
        if both:
            raise ParameterError(
                f"{named('required')} names {both[0]!r}, which {named('forbidden')} or {named('max_buckets')} rules "
                "out: expected one of them. Remove it from the other."
            )
        return made

    def check(self, names: Sequence[str]) -> None:
        """Raise ParameterError if a limit names what is not an attribute."""
        for setting in ("required", "forbidden", "max_buckets"):
            others = [name for name in getattr(self, setting) if name not in names]
            if others:
                raise ParameterError(
                    f"{named(setting)} names {others[0]!r}, which is not an attribute: expected some of the "
                    f"{len(names)} attributes. Correct the name, or remove it."
                )

    def on(self, sample: Sample) -> Sample:
        """Return the sample with forbidden attributes left out."""
        self.check(sample.names)
        places = [place for place, name in enumerate(sample.names) if name in self.forbidden]
        return replace(sample, left_out={**sample.left_out, **dict.fromkeys(places, FORBIDDEN)})

    def applied(self, sample: Sample, buckets: Buckets, floor: int) -> Buckets:
        """Return the buckets within the limits: joined down to the budget, cut in two where they are required."""
        made = list(buckets)
        for place, name in enumerate(sample.names):
            if name in self.required or name in self.max_buckets:
                made[place] = np.unique(made[place], return_inverse=True)[1].astype(np.int64)  # numbers without gaps
            if name in self.forbidden:
                made[place] = np.zeros(sample.n_codes[place], np.int64)
            most = self.max_buckets.get(name)
            while most is not None and made[place].max() >= most:
                joined = coarser(sample, place, made[place])
                assert joined is not None  # more than one bucket
                made[place] = joined
            if name in self.required and not made[place].any():
                cut = finer(sample, place, np.zeros(sample.n_codes[place], np.int64), floor)
                if cut is None:
                    raise ParameterError(
                        f"{named('required')} names {name!r}, which has no cut with {floor} records on both sides: "
                        f"expected an attribute that can be collected. Remove it, or lower {named('floor')}."
                    )
                made[place] = cut
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the limits that were given."""
        given = {"required": list(self.required), "forbidden": list(self.forbidden), "max_buckets": self.max_buckets}
        return {name: value for name, value in given.items() if value}
