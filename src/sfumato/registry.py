# SPDX-License-Identifier: Apache-2.0
"""Families of objects that users choose by name, and packages that load their names on first use.

A family maps each name to the place of its object. Listing the names imports nothing, so that options and policies can
offer them; an object is imported on first use. Each family is declared once, in the package of its members, one
line each. The object carries its own facts: title, sentence, limits and where it applies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, home_of: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported on first use.

    Parameters
    ----------
    package : str
        Its ``__name__``; its ``__all__`` lists the names.
    home_of : mapping of str to str
        The module of each name, absolute or inside the package. A module that has the name itself is returned whole.

    Examples
    --------
    >>> load, _ = lazy_names("json", {"JSONDecoder": "decoder"})
    >>> load("JSONDecoder").__module__
    'json.decoder'
    """

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; see dir({package})")
        module = import_module(home if home.startswith("sfumato.") else f"{package}.{home}")
        value = module if module.__name__ == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return load, names


class Family(Mapping[str, Any]):
    """Names in a fixed order, each with an object that is imported on first use.

    Parameters
    ----------
    kind : str
        Noun for a member in messages, such as ``"criterion"``.
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
        """The module of every member's attribute, for `lazy_names`."""
        return {attribute: module for module, _, attribute in (place.partition(":") for place in self._places.values())}
