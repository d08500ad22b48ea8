# SPDX-License-Identifier: Apache-2.0
"""The result of a certification: for every secret, how well any attacker can guess it; data, words and HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from sfumato.certificates.bounds import BalancedBound
from sfumato.documents import plain
from sfumato.errors import ParameterError


@dataclass(frozen=True)
class WorstCells:
    """The cells in which a secret is easiest to guess.

    Attributes
    ----------
    upper : float
        In no cell with holdout records can any attacker guess the secret with a larger chance.
    threshold : float
    share_above : float
        Share of the holdout in cells whose bound exceeds the threshold.
    n_cells_above : int
    """

    upper: float
    threshold: float
    share_above: float
    n_cells_above: int


@dataclass(frozen=True)
class SecretBound:
    """How well any attacker can guess one secret from the cells.

    Attributes
    ----------
    secret : str
    tolerance : float or None
        A guess of a number counts as right within this distance; None: the exact value.
    n_records : int
    n_values : int
        Distinct values of the secret, missing included.
    n_cells : int
        Distinct cells in the holdout.
    baseline : float
        Share of the holdout that the most frequent value, or the fullest window, has: an attacker without the cells.
    observed : float
        Hits of the guess that is best on the holdout itself.
    lower : float
        The best attacker is right at least this often: shown by one that learned on half of the holdout.
    upper : float
        No attacker is right more often, on average over people.
    advantage : float
        No attacker gains more than this over the naive one.
    balanced : BalancedBound or None
        With every value counted the same; None for numbers within a tolerance.
    worst : WorstCells or None
        None where bounds are exact.
    is_exact : bool
        True for an anatomized table: the numbers are those of the people inside, not bounds.
    """

    secret: str
    tolerance: float | None
    n_records: int
    n_values: int
    n_cells: int
    baseline: float
    observed: float
    lower: float
    upper: float
    advantage: float
    balanced: BalancedBound | None = None
    worst: WorstCells | None = None
    is_exact: bool = False

    def describe(self) -> str:
        """Return the bounds as one sentence."""
        within = "" if self.tolerance is None else f" within {self.tolerance:g}"
        if self.is_exact:
            return (
                f"{self.secret}{within}: the best attacker who knows a person's group is right for {self.upper:.1%} of "
                f"the {self.n_records:,} people, beside {self.baseline:.1%} without the groups."
            )
        return (
            f"{self.secret}{within}: at least {self.lower:.1%}, at most {self.upper:.1%}, whoever attacks. Without the "
            f"cells {self.baseline:.1%}; the advantage is at most {self.advantage:.1%}."
        )


@dataclass(frozen=True)
class Certificate:
    """Bounds on what any attacker can learn from what an encoder shows; made by :func:`sfumato.certify`.

    Attributes
    ----------
    sees : str
        What the attacker sees of a record.
    known : tuple of str
        Columns that the attacker knows besides.
    n_records : int
        Records of the holdout, one per person.
    confidence : float
        Chance with which the upper ends of all secrets hold together; likewise all lower ends, all advantages, all
        balanced bounds, and all bounds on cells.
    secrets : dict of str to SecretBound
    assumptions : tuple of str
        What the bounds rest on, and what they do not say.
    overlap_checked : bool
        Whether fingerprints showed that the holdout was not used to make the encoder.

    Examples
    --------
    >>> from sfumato import UniformMinimizer, certify
    >>> from sfumato.datasets import load_adult
    >>> X, y = load_adult(return_X_y=True, as_frame="pyarrow")
    >>> asked = X.select(["age", "hours-per-week"])
    >>> minimizer = UniformMinimizer(4).fit(asked.slice(0, 1000), y.slice(0, 1000))
    >>> certificate = certify(minimizer, X.slice(1000, 5000), secrets=["sex"])
    >>> bound = certificate["sex"]
    >>> 0.5 < bound.lower <= bound.upper < 1
    True
    """

    sees: str
    known: tuple[str, ...]
    n_records: int
    confidence: float
    secrets: dict[str, SecretBound]
    assumptions: tuple[str, ...]
    overlap_checked: bool

    @property
    def advantage(self) -> float:
        """The largest advantage over all secrets: what a gate compares with its limit."""
        return max(bound.advantage for bound in self.secrets.values())

    @property
    def worst(self) -> SecretBound:
        """The secret with the largest advantage."""
        return max(self.secrets.values(), key=lambda bound: bound.advantage)

    def __getitem__(self, secret: str) -> SecretBound:
        """Return the bounds of a secret."""
        if secret not in self.secrets:
            raise ParameterError(
                f"the certificate has no secret {secret!r}: expected one of {', '.join(map(repr, self.secrets))}."
            )
        return self.secrets[secret]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and text."""
        document: dict[str, Any] = plain(self)
        for name, bound in self.secrets.items():
            if bound.balanced is not None:
                own = bound.balanced
                document["secrets"][name]["balanced"] |= plain(
                    {
                        "advantage": own.advantage,
                        "parity_distance": own.parity_distance,
                        "capacity": own.capacity,
                        "maximal_leakage": own.maximal_leakage,
                    }
                )
        return document | {"advantage": self.advantage}

    def describe(self) -> str:
        """Return the certificate as text: one line per secret, then what it rests on."""
        seen = f" An attacker knows {', '.join(self.known)} besides." if self.known else ""
        head = f"An attacker sees of a person {self.sees}.{seen}"
        lines = [bound.describe() for bound in self.secrets.values()]
        return "\n".join([head, *lines, "", *(f"- {sentence}" for sentence in self.assumptions)])

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        """Show the bounds in a notebook, and what they rest on."""
        names = ("secret", "without cells", "at least", "at most, any attacker", "advantage at most", "people above")
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        rows = "".join(_row(name, bound) for name, bound in self.secrets.items())
        said = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.assumptions)
        caption = f"Certificate: {escape(self.sees)}, {self.n_records:,} records, {self.confidence:.0%} confidence"
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f"<ul>{said}</ul>"
        )


def _row(name: str, bound: SecretBound) -> str:
    above = "" if bound.worst is None else f"{bound.worst.share_above:.1%} over {bound.worst.threshold:.0%}"
    cells = (*(f"{x:.1%}" for x in (bound.baseline, bound.lower, bound.upper, bound.advantage)), above)
    return f'<tr><th scope="row">{escape(name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def row_of(bound: SecretBound) -> Mapping[str, Any]:
    """Return a secret as one row of a table, in the order of its columns."""
    return {
        "secret": bound.secret if bound.tolerance is None else f"{bound.secret} ±{bound.tolerance:g}",
        "baseline": bound.baseline,
        "lower": bound.lower,
        "upper": bound.upper,
        "advantage": bound.advantage,
        "share_above": None if bound.worst is None else bound.worst.share_above,
    }
