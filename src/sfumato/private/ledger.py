# SPDX-License-Identifier: Apache-2.0
"""The privacy ledger: what was released of some people, under which promises, and what is left of a budget.

A plain JSON document beside the data. A release is entered before its noise is drawn: one that fails afterwards has
been paid for, and none is published without an entry.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.documents import check_shape, is_number, is_text, one_of, or_none, read_document, write_document
from sfumato.errors import GuaranteeError, InputError, ParameterError, named
from sfumato.notebooks import facts_as_html
from sfumato.private.accounting import check_delta, check_epsilon
from sfumato.private.composition import Part, Total, compose
from sfumato.private.guarantee import PrivacyGuarantee
from sfumato.system_files import locked, sync

FORMAT = "sfumato-ledger"
VERSION = 1

_in_memory = threading.Lock()  # of ledgers without a file, whose lock stands for it

_PROMISE = {
    "epsilon": lambda value: is_number(value) and value > 0,
    "delta": lambda value: is_number(value) and 0 <= value < 1,
    "adjacency": is_text,
    "unit": or_none(is_text),
    "mechanism": is_text,
    "rests_on": [is_text],
}
_SHAPE = {
    "format": one_of(FORMAT),
    "version": lambda value: value == VERSION,
    "budget?": {"epsilon": _PROMISE["epsilon"], "delta": _PROMISE["delta"]},
    "entries": [
        {
            "at": is_text,
            "what": is_text,
            "privacy": _PROMISE,
            "rho?": or_none(lambda value: is_number(value) and value > 0),
        }
    ],
}


@dataclass(frozen=True)
class LedgerEntry:
    """One release of a ledger.

    Attributes
    ----------
    at : str
        When it was made, in UTC.
    what : str
        What was released, in words.
    privacy : PrivacyGuarantee
    rho : float or None
        The same promise as rho-zCDP, if all of its noise is Gaussian.
    """

    at: str
    what: str
    privacy: PrivacyGuarantee
    rho: float | None = None

    @property
    def part(self) -> Part:
        """The numbers that are added up."""
        return Part(self.privacy.epsilon, self.privacy.delta, self.rho)


class PrivacyLedger:
    """The releases of some people with the promise of each, and the budget for all of them.

    Parameters
    ----------
    path : path, optional
        A JSON document beside the data; it is made with the first release. None: in memory, for experiments.
    epsilon : float, optional
        Budget: the epsilon that all releases together may reach. None: the budget of the document, or none.
    delta : float, optional
        The delta that all releases together may reach; 0 without one.

    Notes
    -----
    *Guarantee.* All releases entered here are together (`total().epsilon`, `total().delta`)-differentially private for
    the unit of their promises. It holds for people whose releases are all entered here. The composition is the smaller
    of simple sums and zCDP.

    A budget in the document holds until `change_budget` is called: opening the ledger with another one raises an error.

    Examples
    --------
    >>> from sfumato import PrivacyLedger
    >>> from sfumato.private import PrivacyGuarantee
    >>> ledger = PrivacyLedger(epsilon=1.0)
    >>> may = PrivacyGuarantee(0.75, 0.0, "adding or removing one record", None, "noisy counts", ())
    >>> ledger.spend(may, what="counts, May").epsilon
    0.75
    >>> ledger.spend(may, what="counts, June")
    Traceback (most recent call last):
    sfumato.errors.GuaranteeError: this release would bring ... to epsilon 1.5, ...
    >>> [entry.what for entry in ledger.entries]
    ['counts, May']
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, epsilon: float | None = None, delta: float | None = None
    ) -> None:
        if epsilon is None and delta is not None:
            raise ParameterError(
                f"{named('delta', delta)} without epsilon: expected a budget with both. Pass epsilon, too."
            )
        # Resolved: through two links to one file, two processes would hold two locks and write two ledgers.
        self.path = None if path is None else Path(path).resolve()
        self._entries: tuple[LedgerEntry, ...] = ()
        self._asked = None if epsilon is None else _checked_budget(epsilon, delta)
        self._budget = self._asked
        self._read()

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """The releases, the oldest first."""
        return self._entries

    @property
    def budget(self) -> tuple[float, float] | None:
        """Epsilon and delta that all releases together may reach; None without a budget."""
        return self._budget

    def total(self, delta: float | None = None) -> Total:
        """Return what all releases together promise.

        Parameters
        ----------
        delta : float, optional
            The delta for which epsilon is given. None: that of the budget, or the sum of the releases' own.
        """
        return self._total(self._entries, delta)

    def check(self, privacy: PrivacyGuarantee, *, rho: float | None = None) -> Total:
        """Return the total with one more release, and enter nothing.

        Raises
        ------
        GuaranteeError
            If it would pass the budget.
        InputError
            If the release counts other persons than those before.
        """
        return self._check(self._entries, LedgerEntry("", "", privacy, rho))

    def spend(self, privacy: PrivacyGuarantee, what: str, *, rho: float | None = None) -> Total:
        """Enter a release before it is made, and return the total with it.

        Parameters
        ----------
        privacy : PrivacyGuarantee
        what : str
            What is released, in words.
        rho : float, optional
            The same promise as rho-zCDP, if all of its noise is Gaussian; several of them add up to less.

        Raises
        ------
        GuaranteeError
            If the release would pass the budget. Nothing is entered.
        """
        with _locked(self.path):
            self._read()
            at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            entry = LedgerEntry(at, what, privacy, rho)
            total = self._check(self._entries, entry)
            self._write((*self._entries, entry), self._budget)
        return total

    def change_budget(self, epsilon: float, delta: float | None = None) -> None:
        """Set another budget, which may be below what was already released."""
        budget = _checked_budget(epsilon, delta)
        with _locked(self.path):
            self._asked = None
            self._read()
            self._write(self._entries, budget)
            self._asked = budget

    def _total(self, entries: tuple[LedgerEntry, ...], delta: float | None) -> Total:
        if delta is None:
            delta = 0.0 if self._budget is None else self._budget[1]
        return compose([entry.part for entry in entries], _checked_delta(delta))

    def _check(self, entries: tuple[LedgerEntry, ...], new: LedgerEntry) -> Total:
        privacy = new.privacy
        if not math.isfinite(privacy.epsilon):
            raise ParameterError(
                f"{named('epsilon', privacy.epsilon)}: expected a finite number. A result without noise has no place "
                "in a ledger."
            )
        # Checked here and not only in the document: a negative number would give budget back.
        check_epsilon(privacy.epsilon)
        _checked_delta(privacy.delta)
        if new.rho is not None and not 0 < new.rho < math.inf:
            raise ParameterError(f"{named('rho', new.rho)}: expected a finite number above 0, or None.")
        units = {(entry.privacy.unit, entry.privacy.adjacency) for entry in entries}
        if units and (privacy.unit, privacy.adjacency) not in units:
            unit, adjacency = next(iter(units))
            raise InputError(
                f"a release for {privacy.adjacency} (unit {privacy.unit!r}) and a ledger of releases for {adjacency} "
                f"(unit {unit!r}): expected the same unit, since their promises do not add up. Pass the same "
                f"{named('unit')}, or keep another ledger."
            )
        total = self._total((*entries, new), None)
        if self._budget is None:
            return total
        epsilon, delta = self._budget
        rounded = 1.0 + 1e-9  # 0.1 + 0.2 is within a budget of 0.3
        if total.epsilon > epsilon * rounded or total.delta > delta * rounded:
            left = max(0.0, epsilon - self._total(entries, None).epsilon) if entries else epsilon
            raise GuaranteeError(
                f"this release would bring the {len(entries) + 1} releases of the ledger to epsilon "
                f"{total.epsilon:.4g}, delta {total.delta:.2g}: expected at most epsilon {epsilon:g}, delta {delta:g}. "
                f"Nothing is released. About epsilon {left:.4g} is left: lower epsilon to it."
            )
        return total

    # -- the document ----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain lists, dicts, numbers and text."""
        return self._document(self._entries, self._budget)

    def _document(self, entries: tuple[LedgerEntry, ...], budget: tuple[float, float] | None) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            **({} if budget is None else {"budget": {"epsilon": budget[0], "delta": budget[1]}}),
            "entries": [_entry_to(entry) for entry in entries],
        }

    def _write(self, entries: tuple[LedgerEntry, ...], budget: tuple[float, float] | None) -> None:
        if self.path is not None:
            write_document(self._document(entries, budget), self.path)
            with contextlib.suppress(OSError):  # where a folder cannot be opened
                sync(self.path.parent)  # the entry is on the disk before noise is drawn
        self._entries, self._budget = entries, budget

    def _read(self) -> None:
        """Read the document again: another process may have released something."""
        if self.path is None or not self.path.exists():
            if self._entries and self.path is not None:
                raise InputError(
                    f"the ledger {self.path.name!r} is gone: expected the file with its {len(self._entries)} releases. "
                    "Put it back."
                )
            return
        document = read_document(self.path, "a privacy ledger", "PrivacyLedger")
        check_shape(document, _SHAPE, "a privacy ledger", "PrivacyLedger")
        self._entries = tuple(_entry_from(entry) for entry in document["entries"])
        if "budget" in document:
            self._take_budget((float(document["budget"]["epsilon"]), float(document["budget"]["delta"])))

    def _take_budget(self, own: tuple[float, float]) -> None:
        """Take the budget of the document; raise ParameterError if the ledger was opened with another one."""
        given = self._asked or own
        if given != own:
            raise ParameterError(
                f"a budget of epsilon {given[0]:g} and delta {given[1]:g} for a ledger with epsilon {own[0]:g} and "
                f"delta {own[1]:g}: expected the same. Call change_budget to change it on purpose."
            )
        self._budget = own

    def _repr_html_(self) -> str:
        """Show the totals in a notebook."""
        total = self.total()
        facts: list[tuple[str, Any]] = [("releases", total.n_releases), ("epsilon", total.epsilon)]
        facts += [("delta", total.delta), ("composition", total.by)]
        if self._budget is not None:
            facts += [("budget epsilon", self._budget[0]), ("budget delta", self._budget[1])]
        return facts_as_html("Privacy ledger", facts)


def _checked_budget(epsilon: float, delta: float | None) -> tuple[float, float]:
    check_epsilon(epsilon)
    return float(epsilon), _checked_delta(0.0 if delta is None else delta)


def _checked_delta(delta: float) -> float:
    if delta != 0:
        check_delta(delta)
    return float(delta)


def _entry_to(entry: LedgerEntry) -> dict[str, Any]:
    rho = {} if entry.rho is None else {"rho": entry.rho}
    return {"at": entry.at, "what": entry.what, "privacy": entry.privacy.to_dict(), **rho}


def _entry_from(document: dict[str, Any]) -> LedgerEntry:
    own = document["privacy"]
    known = {name: own[name] for name in ("epsilon", "delta", "adjacency", "unit", "mechanism")}
    promise = PrivacyGuarantee(**known, rests_on=tuple(own["rests_on"]))
    return LedgerEntry(document["at"], document["what"], promise, document.get("rho"))


@contextlib.contextmanager
def _locked(path: Path | None) -> Iterator[None]:
    """Let one process, or thread, at a time read a ledger and write it again."""
    if path is None:
        with _in_memory:
            yield
        return
    if not path.parent.is_dir():
        raise InputError(
            f"the folder of the ledger {path.name!r} does not exist: expected one to write the ledger to. Make the "
            "folder, or correct the path."
        )
    with locked(path.with_name(f".{path.name}.lock")):
        yield
