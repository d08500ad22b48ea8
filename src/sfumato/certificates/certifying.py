# SPDX-License-Identifier: Apache-2.0
"""Certify: bound how well any attacker can guess secrets of people from what an encoder shows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import Names, as_list, as_table_like, check_share
from sfumato.certificates.bounds import balanced_bound, binomial_lower, binomial_upper, cell_bounds
from sfumato.certificates.certificate import Certificate, SecretBound, WorstCells
from sfumato.certificates.encoders import Encoder, TwoTables, as_encoder, cells_of
from sfumato.certificates.secret_values import CategorySecret, Secret, as_secret, best_learned
from sfumato.errors import InputError, ParameterError, named
from sfumato.fingerprints import Overlap
from sfumato.frames import Table, read_table
from sfumato.generalization import Generalization
from sfumato.grouping import number_values

FEWEST_RECORDS = 20
"""Fewer records bound nothing."""


def certify(
    encoder: Any,
    holdout: Any = None,
    *,
    secrets: Names | None = None,
    known: Names | None = None,
    tolerance: float | timedelta | Mapping[str, float | timedelta] | None = None,
    unit: str | int | None = None,
    confidence: float = 0.95,
    threshold: float = 0.9,
    random_state: int = 0,
) -> Certificate:
    """Bound how well any attacker can guess secrets of people from what an encoder shows of them.

    Attacks show what some attackers achieve. A certificate bounds what every attacker can achieve, with any amount of
    data and computing, on average over people of the same population.

    Parameters
    ----------
    encoder : Generalization, Partition, AnatomizedTable, fitted estimator or callable
        What an attacker sees of a record. A callable takes the holdout and returns one code, or a row of codes, per
        record. It must have been fixed before anyone looked at the holdout.
    holdout : frame or array, optional
        Records of people who were not used to make the encoder: drawn independently, one record each. None for an
        anatomized table, whose numbers are exact for the people inside.
    secrets : list of str or int, optional
        Columns to guess. None: the categories of a generalization, or the sensitive columns of an anatomized table.
    known : list of str or int, optional
        Columns that the attacker knows exactly besides, such as those that a release leaves unchanged.
    tolerance : float, datetime.timedelta or dict of these by column, optional
        Numbers are guessed right within this distance; None: exactly.
    unit : str or int, optional
        The column with the person of each record, if people have several: one record of each is drawn.
    confidence : float, default=0.95
        Chance with which the bounds on all secrets hold together (Bonferroni's correction).
    threshold : float, default=0.9
        People in cells where some attacker may be right with a larger chance are counted.
    random_state : int, default=0
        Seed of the halves between which the lower end is learned and tested, and of the records drawn for `unit`.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the holdout has records that the encoder was made from, as far as its fingerprints tell.

    Notes
    -----
    *Guarantee.* With the given confidence no attacker guesses a secret right more often than its ``upper``, on average
    over people. *Not guaranteed.* Single people may be guessed more often: see ``worst``. Other populations, people
    with several records in the data, attackers who see more than the cells and the columns in `known`, and attackers
    who see the records of the person's relatives are outside the bound.

    Examples
    --------
    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> age = draw.integers(18, 90, 4_000)
    >>> people = np.column_stack([age, draw.random(4_000) < np.where(age > 60, 0.4, 0.1)]).astype(int)
    >>> def over_60(records):
    ...     return records[:, 0] > 60
    >>> certificate = certify(over_60, people, secrets=["x1"])
    >>> bound = certificate["x1"]
    >>> round(bound.baseline, 2), bound.lower < bound.upper < 0.83
    (0.77, True)
    """
    check_share("confidence", confidence, is_open=True, hint="0.95 is usual.")
    check_share("threshold", threshold, hint="0.9 counts people who are guessed nine times out of ten.")
    if isinstance(encoder, TwoTables):
        return _certify_inside(encoder, holdout, secrets, confidence, tolerance)
    own = as_encoder(encoder)
    if holdout is None:
        raise InputError(
            f"no {named('holdout')} was given: expected records of people who were not used to make the encoder. Keep "
            "some aside."
        )
    holdout = as_table_like(holdout)
    table = read_table(holdout)
    overlap = None if own.fingerprints is None else own.fingerprints.check_unused(table)
    names = _secret_names(own, table, secrets)
    others = _known_names(table, known, names)
    generator = np.random.default_rng(random_state)
    rows = _one_per_person(table, unit, generator)
    if len(rows) < FEWEST_RECORDS:
        raise InputError(
            f"{named('holdout')} has {len(rows)} people: expected at least {FEWEST_RECORDS}, since fewer bound "
            "nothing. A few thousand give useful bounds."
        )
    cells = cells_of(own, holdout, [table.column(name, for_counting=True) for name in others])
    # Shuffled once, so that every part that is learned or tested on is one block of memory.
    order = generator.permutation(rows)
    cells = cells[order]
    n_cells = int(cells.max()) + 1
    error = (1 - confidence) / len(names)
    found = {}
    for name in names:
        secret = as_secret(table.column(name), tolerance).of(order)
        found[name] = _bound(secret, cells, n_cells, error, threshold)
    said = _assumptions(own, overlap, len(names), confidence, unit is not None and len(rows) < table.n_records)
    is_checked = overlap is not None and overlap.is_checked
    return Certificate(own.description, others, len(rows), confidence, found, said, is_checked)


def _bound(secret: Secret, cells: NDArray[np.int64], n_cells: int, error: float, threshold: float) -> SecretBound:
    """Bound one secret of shuffled records; every bound fails with a chance of at most `error`."""
    n_records, whole = len(cells), np.zeros_like(cells)
    counts = secret.counts(cells, n_cells)
    half, tenth = n_records // 2, n_records // 10
    learned = best_learned(secret.of(slice(half)), cells[:half], n_cells)
    tested = secret.of(slice(half, None)).hits(cells[half:], learned)
    # A tenth suffices to learn one guess for all; the more records test it, the narrower its bound.
    naive = secret.of(slice(tenth)).learned(whole[:tenth], 1, [0.0])[0]
    naive_hits = secret.of(slice(tenth, None)).hits(whole[tenth:], naive)
    upper = binomial_upper(counts.hits, n_records, error)
    of_cells = cell_bounds(counts, error)
    sizes = counts.of_cell[counts.of_cell > 0]
    is_above = of_cells > threshold
    gained = binomial_upper(counts.hits, n_records, error / 2)
    return SecretBound(
        secret=secret.name,
        tolerance=secret.tolerance,
        n_records=n_records,
        n_values=secret.n_values,
        n_cells=len(sizes),
        baseline=secret.counts(whole, 1).hits / n_records,
        observed=counts.hits / n_records,
        lower=min(upper, binomial_lower(tested, n_records - half, error)),
        upper=upper,
        advantage=max(0.0, gained - binomial_lower(naive_hits, n_records - tenth, error / 2)),
        balanced=balanced_bound(counts, error) if isinstance(secret, CategorySecret) else None,
        worst=WorstCells(
            float(of_cells.max()), threshold, float(sizes[is_above].sum() / n_records), int(is_above.sum())
        ),
    )


def _certify_inside(tables: TwoTables, holdout: Any, secrets: Any, confidence: float, tolerance: Any) -> Certificate:
    """Return the exact success of the best attacker who knows the groups of the people in an anatomized table."""
    if holdout is not None:
        raise ParameterError(
            f"{named('holdout')} with an anatomized table: expected none, since its groups are those of the people "
            "inside, and the numbers are exact for them. Leave it out."
        )
    frames = tables.sensitive if isinstance(tables.sensitive, tuple) else (tables.sensitive,)
    read = [read_table(frame) for frame in frames]
    home: dict[str, tuple[Table, str]] = {}
    for number, table in enumerate(read, start=1):
        for name in table.names[:-1]:  # arrays call the columns of every table alike
            home[f"{name} of table {number}" if name in home else name] = table, name
    wanted = list(home) if secrets is None else _named_secrets(home, read, as_list(secrets))
    found = {}
    for name in wanted:
        table, column = home[name]
        cells = number_values(table.column(table.names[-1])).astype(np.int64)
        secret = as_secret(table.column(column), tolerance)
        share = secret.counts(cells, int(cells.max()) + 1).hits / table.n_records
        baseline = secret.counts(np.zeros_like(cells), 1).hits / table.n_records
        found[name] = SecretBound(
            name, secret.tolerance, table.n_records, secret.n_values, int(cells.max()) + 1,
            baseline, share, share, share, share - baseline, is_exact=True,
        )  # fmt: skip
    said: tuple[str, ...] = (
        "Exact, not estimated: the mean over the people inside of the best guess from their group alone.",
        "An attacker who also learns from all groups how identifying and sensitive values are related can do better: "
        "see the deFinetti attack.",
    )
    if len(frames) > 1:
        said += (
            "Every sensitive table is looked at by itself. An attacker who knows how the sensitive columns depend on "
            "each other can combine them: see intersect_tables.",
        )
    return Certificate("the group of an anatomized table", (), read[0].n_records, confidence, found, said, False)


def _named_secrets(home: Mapping[str, Any], tables: Sequence[Table], secrets: list[Any]) -> list[str]:
    """Return the columns of sensitive tables that are named; of one table, also by position."""
    if len(tables) == 1:
        return list(tables[0].resolve(secrets, "secrets"))
    unknown = [name for name in secrets if name not in home]
    if unknown:
        raise ParameterError(
            f"{named('secrets')} names {unknown[0]!r}: expected columns of the sensitive tables: {', '.join(home)}."
        )
    return secrets


def _secret_names(encoder: Encoder, table: Table, secrets: Any) -> tuple[str, ...]:
    if secrets is not None:
        names = table.resolve(as_list(secrets), "secrets")
    elif isinstance(encoder.given, Generalization):
        own = [attribute for attribute in encoder.given.attributes if attribute.name in table.names]
        names = tuple(a.name for a in own if a.kind == "category") or tuple(a.name for a in own)
    else:
        names = ()
    if not names:
        raise ParameterError(
            f"{named('secrets')} names no column: expected the columns that an attacker wants to guess. Name them."
        )
    return names


def _known_names(table: Table, known: Any, secrets: Sequence[str]) -> tuple[str, ...]:
    names = table.resolve(as_list(known), "known")
    both = [name for name in names if name in secrets]
    if both:
        raise ParameterError(
            f"{named('known')} names {both[0]!r}, which is among the {named('secrets')}: expected other columns. A "
            "known secret needs no guess."
        )
    return names


def _one_per_person(table: Table, unit: Any, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows to count: all, or one drawn for each person."""
    if unit is None:
        return np.arange(table.n_records)
    person = number_values(table.column(table.resolve([unit], "unit")[0], for_counting=True))
    shuffled = generator.permutation(table.n_records)
    _, first = np.unique(person[shuffled], return_index=True)
    rows: NDArray[np.int64] = np.sort(shuffled[first])
    return rows


def _assumptions(
    encoder: Encoder, overlap: Overlap | None, n_secrets: int, confidence: float, is_drawn: bool
) -> tuple[str, ...]:
    together = f" on all {n_secrets} secrets together" if n_secrets > 1 else ""
    said = [
        "The holdout is an independent sample of the population that the bounds speak about, one record per person.",
        "The encoder was fixed before the holdout was looked at. " + _said_of(encoder, overlap),
        f"Each kind of bound holds with {confidence:.0%} confidence{together}.",
        "Bounds are averages over people. In some cells an attacker may be right more often: see the worst cells.",
        "The attacker sees nothing of a person but its cell and the columns named as known.",
    ]
    if is_drawn:
        said.append("People with several records are represented by one of them, drawn at random.")
    return tuple(said)


def _said_of(encoder: Encoder, overlap: Overlap | None) -> str:
    if overlap is None:
        return "Whether its records overlap with the holdout was not checked: it has no fingerprints of them."
    if not overlap.is_checked:
        return (
            "Whether its records overlap with the holdout could not be checked: too many records are equal by chance, "
            "or columns are absent."
        )
    return "Fingerprints show no overlap of its records with the holdout beyond chance."
