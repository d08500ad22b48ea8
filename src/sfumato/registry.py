# SPDX-License-Identifier: Apache-2.0
"""Families of things that users choose by name: criteria, representatives, attacks, methods and models.

A family maps each name to the place of its object. Listing the names imports nothing, so that options and policies can
offer them; an object is imported when it is asked for. Each family is declared once, in the package of its members, one
line each. The object carries its own facts: title, sentence, limits and where it applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any


class Family(Mapping[str, Any]):
    """Names in a fixed order, each with an object that is imported on first use.

    Parameters
    ----------
    kind : str
        What a member is called in messages, such as ``"criterion"``.
    places : mapping of str to str
        Name to ``"module:attribute"``.

    Raises
    ------
    KeyError
        For a name that the family does not have; the message lists those it has.

    Examples
    --------
    >>> shapes = Family("shape", {"ordered": "collections:OrderedDict"})
    >>> list(shapes), shapes["ordered"].__name__
    (['ordered'], 'OrderedDict')
    """

    def __init__(self, kind: str, places: Mapping[str, str]) -> None:
        self.kind = kind
        self._places = dict(places)
        for name, place in self._places.items():
            module, colon, attribute = place.partition(":")
            if not (module and colon and attribute):
                raise ValueError(f"the {kind} {name!r} is at {place!r}: expected 'module:attribute'.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places  # Mapping's own would import the object

    def __getitem__(self, name: str) -> Any:
        if name not in self._places:
            raise KeyError(f"no {self.kind} is called {name!r}: expected one of {', '.join(self._places)}.")
        module, _, attribute = self._places[name].partition(":")
        return getattr(import_module(module), attribute)

    def __repr__(self) -> str:
        return f"Family({self.kind!r}: {', '.join(self._places)})"

    def where(self, **facts: Any) -> tuple[str, ...]:
        """Return the names of the members whose facts have these values; this imports all members.

        Parameters
        ----------
        **facts : object
            Attributes of a member's ``facts``, such as ``is_real_person=True``.
        """
        return tuple(
            name
            for name, member in self.items()
            if all(getattr(member.facts, fact) == value for fact, value in facts.items())
        )

    @property
    def exported(self) -> dict[str, str]:
        """The attribute of every member, and its module: what a package that loads names on first use looks up."""
        return {attribute: module for module, _, attribute in (place.partition(":") for place in self._places.values())}
