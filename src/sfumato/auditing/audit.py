# SPDX-License-Identifier: Apache-2.0
"""``sfumato.audit``: measure and attack a release that anyone made, beside the table it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, ParameterError, named
from sfumato.progress import QuietReporter, Reporter

if TYPE_CHECKING:
    from sfumato.auditing.attacks import Attacks
    from sfumato.auditing.pairing import Pair
    from sfumato.report.data import Audit, Uniqueness
    from sfumato.report.risk_data import FileHash

_SIDE = "\x00side"  # no column of a table is called this
_FEWEST_TO_TELL = 10  # records that must be alone in a file before it is compared with another by them
_SMALLEST_SHOWN = 10  # records, where nothing is required
_LARGEST_SEED = 2**32 - 1  # what scikit-learn takes
_COUNTS, _SHARES = ("min_k", "min_l"), ("max_risk", "max_attack_advantage", "max_unique", "max_unique_target")


def audit(
    original: Any,
    released: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    target: str | None = None,
    control: Any = None,
    gate: Mapping[str, Any] | None = None,
    random_state: int = 0,
    reporter: Reporter | None = None,
) -> Audit:
    """Measure and attack any release, given the table it was made from.

    Parameters
    ----------
    original : frame
        The records before.
    released : frame
        The records after, in any order; some may be missing.
    quasi_identifiers : sequence of str, optional
        Columns that together could identify a person; those with changed values unless given.
    sensitive : sequence of str, optional
        Sensitive attributes.
    target : str, optional
        The column that a model predicts.
    control : frame, optional
        Holdout records (people outside the release), with the columns of `original`.
    gate : mapping, optional
        Conditions as under ``[gate]`` of a policy: ``min_k``, ``min_l``, ``max_risk``, ``max_attack_advantage``,
        ``max_unique``, ``max_unique_target``.
    random_state : int, default=0
        Seed of the attacks.
    reporter : Reporter, optional
        Hears of each step.

    Returns
    -------
    Audit
        `passed` is None without a gate. `to_html`, `to_json` and `show` present it.

    Examples
    --------
    >>> import pandas as pd, sfumato
    >>> people = pd.DataFrame({"age": [30, 31, 32, 33] * 5, "ill": ["no", "yes"] * 10})
    >>> released = people.assign(age=31)
    >>> found = sfumato.audit(people, released, sensitive=["ill"], gate={"min_k": 10})
    >>> found.passed, found.sizes.smallest
    (True, 20)
    """
    from sfumato.files.publishing import digest_of
    from sfumato.frames.assembling import as_arrow

    before, after, others = (None if frame is None else as_arrow(frame) for frame in (original, released, control))
    named = NamedTables(before, after, others, name="the table", fingerprint=digest_of(before))
    return audit_tables(
        reporter or QuietReporter(),
        named,
        quasi_identifiers=list(quasi_identifiers or ()),
        sensitive=list(sensitive),
        target=target,
        gate=dict(gate or {}),
        random_state=random_state,
    )[0]


@dataclass(frozen=True, eq=False)
class NamedTables:
    """The Arrow tables of an audit, their name in the report, and the hashes of the files they come from."""

    before: Any
    after: Any
    control: Any
    name: str
    fingerprint: str
    release: FileHash | None = None


def audit_tables(
    reporter: Reporter,
    tables: NamedTables,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    target: str | None,
    gate: Mapping[str, Any],
    random_state: int,
) -> tuple[Audit, Pair]:
    """Audit Arrow tables; return also the roles of their columns."""
    from sfumato.auditing.pairing import pair_tables
    from sfumato.auditing.roles import warn_of_names
    from sfumato.policy.settings import MAX_UNIQUE_TARGET

    check_gate(gate)
    if not 0 <= random_state <= _LARGEST_SEED:
        raise ParameterError(f"{named('random_state', random_state)}: expected an integer from 0 to {_LARGEST_SEED}.")
    before, after, control = tables.before, tables.after, tables.control
    pair = pair_tables(before, after, quasi_identifiers=quasi_identifiers, sensitive=sensitive, target=target)
    if not quasi_identifiers:
        warn_of_names(reporter, before, [*pair.quasi_identifiers, *pair.others])
    if control is not None:
        _check_control(control, [*pair.quasi_identifiers, *pair.sensitive])
        _check_other_people(before, control)
    required: dict[str, Any] = {name: gate.get(name) for name in (*_COUNTS, *_SHARES)}
    if target is None:
        required.pop("max_unique_target")
    elif required["max_unique_target"] is None and any(bound is not None for bound in required.values()):
        required["max_unique_target"] = MAX_UNIQUE_TARGET
    made = _audit(reporter, tables, pair, required, random_state)
    return made, pair


def check_gate(gate: Mapping[str, Any]) -> None:
    """Raise ParameterError for a condition that does not exist or cannot be met."""
    for name, bound in gate.items():
        if name not in (*_COUNTS, *_SHARES):
            raise ParameterError(f"gate has {name!r}: expected some of {', '.join((*_COUNTS, *_SHARES))}.")
        if bound is None:
            continue
        is_number = isinstance(bound, int | float) and not isinstance(bound, bool)
        if name in _COUNTS and not (is_number and bound == int(bound) and bound >= 1):
            raise ParameterError(f"{named(name, bound)}: expected an integer >= 1.")
        if name in _SHARES and not (is_number and 0 <= bound <= 1):
            raise ParameterError(f"{named(name, bound)}: expected a number from 0 to 1.")


def _check_control(others: Any, wanted: list[str]) -> None:
    if absent := [name for name in wanted if name not in others.column_names]:
        raise ParameterError(
            f"{named('control')} has no column {absent[0]!r}: expected the quasi-identifiers and the sensitive columns "
            "of the original. Give records of other people with the same columns."
        )


def _check_other_people(before: Any, others: Any) -> None:
    """Raise InputError if the control holds people of the release: findings about them would count as known.

    Of records that nobody shares, chance finds at most about one in e alone in the other file, too.
    """
    import numpy as np
    import pyarrow as pa

    from sfumato.files.verified_output import plain_values

    tables = [{name: plain_values(table.column(name)) for name in table.column_names} for table in (before, others)]
    common = [name for name in tables[0] if name in tables[1] and tables[0][name].type == tables[1][name].type]
    if not common:
        return
    sides = [
        pa.table({**{name: columns[name] for name in common}, _SIDE: np.full(len(columns[common[0]]), side)})
        for side, columns in enumerate(tables)
    ]
    groups = pa.concat_tables(sides).group_by(common).aggregate([(_SIDE, "sum"), ([], "count_all")])
    n_others = groups[f"{_SIDE}_sum"].to_numpy()
    is_alone = n_others == 1
    n_found = int((groups["count_all"].to_numpy()[is_alone] == 2).sum())
    if is_alone.sum() >= _FEWEST_TO_TELL and n_found > is_alone.sum() / 2:
        raise InputError(
            f"{named('control')}: {n_found:,} of its {int(is_alone.sum()):,} unique records also occur in the "
            "original: expected people outside the release. Give other people, or none."
        )


def _audit(reporter: Reporter, tables: NamedTables, pair: Pair, required: dict[str, Any], random_state: int) -> Audit:
    from sfumato.auditing.advice import what_to_try
    from sfumato.auditing.attacks import attack_release
    from sfumato.auditing.column_changes import describe_columns, describe_sizes, fewest_values, roles_of
    from sfumato.auditing.gate import judge_gate
    from sfumato.auditing.pipeline import versions
    from sfumato.auditing.reidentification import measure_reidentification
    from sfumato.auditing.run_outputs import moment
    from sfumato.auditing.unique_records import measure_uniqueness
    from sfumato.loss import ncp
    from sfumato.report.data import Audit
    from sfumato.verification import count_groups

    before, after, control, name, fingerprint = (
        tables.before, tables.after, tables.control, tables.name, tables.fingerprint,
    )  # fmt: skip
    names, secrets = pair.quasi_identifiers, pair.sensitive
    # Classes of the original values: a release that fails must not make them any finer.
    shown = max(2, required["min_k"] or _SMALLEST_SHOWN)
    n_suppressed = before.num_rows - after.num_rows
    with reporter.step("counting groups and losses"):
        sizes = count_groups(after, pair.released_as)
        losses = {}
        if pair.is_aligned:
            losses = {name: float(penalty.mean()) for name, penalty in ncp(before, after, names).items()}
        uniqueness, unique = measure_uniqueness(after, pair.released_as, target=pair.target, smallest_shown=shown)
        reidentification, reidentified = measure_reidentification(
            count_groups(before, names), sizes, context={}, smallest_shown=shown
        )
    with reporter.step("attacking the release"):
        attacks = attack_release(
            before,
            after,
            names,
            secrets=secrets,
            control=None
            if control is None
            else control.select([n for n in control.column_names if n in before.column_names]),
            is_aligned=pair.is_aligned,
            random_state=random_state,
        )
    warn_of_skipped(reporter, attacks)
    notes = attacks.sentences
    if not pair.is_aligned:
        notes = (
            *notes,
            "The rows are not in the order of the original: the information loss of each column was not measured.",
        )
        reporter.note(notes[-1])
    if control is None:
        notes = (
            *notes,
            "No holdout records were given: an attack may use what is true of people in general.",
        )
    targets = [] if pair.target is None else [pair.target]
    roles = roles_of(before.column_names, quasi_identifier=names, sensitive=secrets, target=targets)
    columns = describe_columns(before, after, roles, losses, smallest_shown=shown)
    warn_of_unique(reporter, uniqueness, {})
    made = Audit(
        name=name,
        n_records=before.num_rows,
        n_released=after.num_rows if n_suppressed == 0 or n_suppressed >= shown else None,
        n_suppressed=n_suppressed if n_suppressed == 0 or n_suppressed >= shown else None,
        method={"quasi_identifiers": names, "sensitive": secrets, "target": pair.target, "seed": random_state},
        guarantees=(f"every group has at least {int(sizes.min())} records",),
        gate=judge_gate(
            required,
            smallest_group=int(sizes.min()),
            least_values=fewest_values(after, pair.released_as, secrets),
            utility=None,
            risks=attacks.risks,
            reidentified=reidentified,
            unique=unique,
            n_records=after.num_rows,
            smallest_shown=shown,
            not_run=[attack.title for attack in attacks.not_run],
            to_run_them="the notes say why; give what they need, or leave the bound on attacks out",
        ),
        utility=None,
        sizes=describe_sizes(sizes),
        columns=columns,
        risks=attacks.risks,
        uniqueness=uniqueness,
        notes=notes,
        versions=versions(),
        fingerprint=fingerprint,
        smallest_shown=shown,
        seconds=reporter.seconds,
        made_at=moment().isoformat(timespec="seconds"),
        reidentification=reidentification,
        grouped_by=tuple(pair.released_as),
        outputs={} if tables.release is None else {"release": tables.release},
    )

    def smallest_without() -> dict[str, int]:
        """Return the smallest group without each quasi-identifier."""
        return {
            name: int(count_groups(after, [part for part in pair.released_as if part not in parts]).min())
            for name in names
            if (parts := {name, f"{name}_low", f"{name}_high"}) and len(names) > 1
        }

    return replace(made, advice=what_to_try(made, smallest_without=smallest_without))


def warn_of_unique(reporter: Reporter, uniqueness: Uniqueness, titles: Mapping[str, str]) -> None:
    """Warn if columns that no group protects make records unique; the report says it in its first box."""
    from sfumato.report import wording

    if uniqueness.share:
        reporter.note(f"{wording.unique_records(uniqueness, titles)} {wording.FOUND_BY_UNCHANGED}", is_warning=True)


def warn_of_skipped(reporter: Reporter, attacks: Attacks) -> None:
    """Warn of attacks that were wanted and could not be run."""
    for attack in attacks.not_run:
        reporter.note(f"not run: {attack.title}. " + attack.why, is_warning=True)
