# SPDX-License-Identifier: Apache-2.0
"""What the folds of the anatomy study say about the claims of Mancuhan and Clifton. Called by ``anatomy``.

Differences are points of error over ten folds, positive where they speak for the claim; training sets of folds share
eight ninths of their records, so the variance is Nadeau and Bengio's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from studies.anatomy import MODELS, N_FOLDS, RIVALS, Cell
from studies.anatomy_page import Errors
from studies.claims import Evidence
from studies.verdicts import Difference, paired

OVERLAP = 1 / (N_FOLDS - 1)  # of ten folds one tests and nine train
EVERY = (2, 3, 4, 5)
LARGER_CLASS = {"adult-kept": 24.78}
"""Error in percent of always answering the larger class, where machines come down to it."""
NEARLY = 0.05
"""Points from it within which a fold does just that: the larger class is not the same share of every fold."""
Place = tuple[str, str]


def evidence(cells: Sequence[Cell]) -> dict[str, Evidence]:
    """Return the differences of every claim whose folds are there."""
    errors = Errors(cells)
    adult, adult_rbf = ("adult-kept", "linear"), ("adult-kept", "rbf")
    bank, bank_rbf = ("bank", "linear"), ("bank", "rbf")
    fars, fars_rbf = ("fars", "linear"), ("fars", "rbf")
    wanted = {
        "adult-identifying-better": _better(errors, adult, "identifying", "pruned", (2, 3, 4)),
        "adult-pruned-beats-anonymized": _beats_rivals(errors, adult, (3, 4, 5)),
        "anatomy-beats-generalization": [
            one
            for place, lengths in ((adult, (3, 4, 5)), (adult_rbf, EVERY))
            for one in _beats_rivals(errors, place, lengths, told=MODELS[place[1]])
        ],
        "adult-pruned-beats-anonymized-always": _beats_rivals(errors, adult, EVERY),
        "adult-pruned-better": _better(errors, adult, "pruned", "original"),
        "adult-error-falls": _change(errors, adult, falls=True),
        "adult-rbf-original-better": _better(errors, adult_rbf, "original", "pruned"),
        "adult-rbf-error-rises": _change(errors, adult_rbf, falls=False),
        "adult-rbf-beats-identifying": _better(errors, adult_rbf, "pruned", "identifying"),
        "adult-rbf-beats-anonymized": _beats_rivals(errors, adult_rbf, EVERY),
        "bank-original-better": _better(errors, bank, "original", "pruned"),
        "bank-identifying-better": _better(errors, bank, "identifying", "pruned"),
        "bank-spike": _spike(errors, bank),
        "bank-rbf-original-better": _better(errors, bank_rbf, "original", "pruned"),
        "bank-rbf-identifying-better": _better(errors, bank_rbf, "identifying", "pruned"),
        "fars-alike": _better(errors, fars, "original", "pruned"),
        "fars-rbf-original-better": _better(errors, fars_rbf, "original", "pruned"),
        "fars-rbf-identifying-better": _better(errors, fars_rbf, "identifying", "pruned"),
    }
    told: dict[str, list[str]] = {}
    if wanted["adult-pruned-beats-anonymized-always"]:
        beside = [_leads_over_all(errors, adult), _without_the_copy(errors), _fallen(errors, adult)]
        for name in ("", "-always"):
            told[f"adult-pruned-beats-anonymized{name}"] = beside
        told["anatomy-beats-generalization"] = beside
    if wanted["adult-rbf-beats-anonymized"]:
        told["adult-rbf-beats-anonymized"] = [_leads_over_all(errors, adult_rbf)]
    if wanted["bank-spike"]:
        cell = errors.any_cell(*bank, "pruned", EVERY[-1])
        told["bank-spike"] = [f"{cell.n_suppressed:,} of {cell.n_train:,} records are suppressed at l = {EVERY[-1]}"]
    return {
        name: Evidence(
            found, "; ".join([*([_numbers(found)] if len(found) > 1 else []), *_equal(found), *told.get(name, ())])
        )
        for name, found in wanted.items()
        if found
    }


def _key(place: Place, partner: str, length: int) -> tuple[str, str, str, int]:
    return (*place, partner, length if partner in ("pruned", *RIVALS) else 0)


def _better(
    errors: Errors, place: Place, better: str, worse: str, lengths: Sequence[int] = EVERY, *, told: str = ""
) -> list[Difference]:
    """Return by how much one partner errs less often than another, at every l that was run."""
    found = []
    for length in lengths:
        keys = [_key(place, name, length) for name in (worse, better)]
        if all(key in errors for key in keys):
            where = f"{told}, l = {length}" if told else f"l = {length}"
            found.append(paired(where, (errors.of(*keys[0]) - errors.of(*keys[1])).tolist(), overlap=OVERLAP))
    return found


def _beats_rivals(errors: Errors, place: Place, lengths: Sequence[int], *, told: str = "") -> list[Difference]:
    """Return by how much pruned errs less often than the anonymized machine that errs least at the same l = k."""
    found = []
    for length in lengths:
        rivals = [rival for rival in RIVALS if (*place, rival, length) in errors]
        if rivals and (*place, "pruned", length) in errors:
            strongest = min(rivals, key=lambda rival, length=length: errors.mean(*place, rival, length))
            [one] = _better(errors, place, "pruned", strongest, (length,), told=told)
            found.append(replace(one, where=f"{one.where}, at most {RIVALS[strongest]:.0%} left out"))
    return found


def _leads_over_all(errors: Errors, place: Place) -> str:
    """Return by how much pruned errs less often than every anonymized machine, in words."""
    leads = {f"{share:.0%}": _better(errors, place, "pruned", rival) for rival, share in RIVALS.items()}
    told = "; ".join(f"{share} {_in_turn(own)}" for share, own in leads.items())
    lengths = " / ".join(map(str, EVERY))
    return (
        f"lead at l = k = {lengths} over the anonymized {MODELS[place[1]].split(',')[0]} machine, by what it may leave "
        f"out at most: {told}"
    )


def _in_turn(differences: Sequence[Difference]) -> str:
    return " / ".join(f"{one.estimate:+.2f}" for one in differences)


def _without_the_copy(errors: Errors) -> str:
    """Return the leads over the strongest anonymized machine where the sensitive column has no copy."""
    return (
        "without education-num, which says the same as the sensitive column, the lead over the anonymized linear "
        f"machine that errs least is {_in_turn(_beats_rivals(errors, ('adult', 'linear'), EVERY))}"
    )


def _change(errors: Errors, place: Place, *, falls: bool) -> list[Difference]:
    """Return by how much the error of pruned falls, or rises, from the smallest l to the largest."""
    lengths = errors.lengths(*place, "pruned")
    if not lengths:
        return []
    first, last = (errors.of(*place, "pruned", length) for length in (lengths[0], lengths[-1]))
    where = f"l = {lengths[0]} to {lengths[-1]}"
    return [paired(where, (first - last if falls else last - first).tolist(), overlap=OVERLAP)]


def _spike(errors: Errors, place: Place) -> list[Difference]:
    """Return by how much pruned errs more often at the largest l than at the others on average."""
    if errors.lengths(*place, "pruned") != list(EVERY):
        return []
    *others, last = (errors.of(*place, "pruned", length) for length in EVERY)
    return [paired(f"l = {EVERY[-1]}", (last - sum(others) / len(others)).tolist(), overlap=OVERLAP)]


def _fallen(errors: Errors, place: Place) -> str:
    """Return in how many folds anonymized machines answer the larger class: these have learned nothing."""
    larger = LARGER_CLASS[place[0]]
    told = []
    for rival, share in RIVALS.items():
        lengths = errors.lengths(*place, rival)
        n_fallen = {k: int((abs(errors.of(*place, rival, k) - larger) < NEARLY).sum()) for k in lengths}
        counts = ", ".join(f"{n} of {N_FOLDS} at k = {k}" for k, n in n_fallen.items() if n)
        told.append(f"with at most {share:.0%} left out {counts or 'none'}")
    return (
        f"always answering the larger class errs in {larger:.2f}%, and the linear anonymized machine does just that in "
        f"so many folds: {'; '.join(told)}"
    )


def _equal(found: Sequence[Difference]) -> list[str]:
    """Say where two partners err alike in every fold: there the column that tells them apart does not matter."""
    same = [one.where for one in found if not any(one.values)]
    return [f"the same errors in every fold: {', '.join(same)}"] if same else []


def _numbers(found: Sequence[Difference]) -> str:
    return ", ".join(f"{one.where} {one.estimate:+.2f}" for one in found)
