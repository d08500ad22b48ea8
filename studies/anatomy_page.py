# SPDX-License-Identifier: Apache-2.0
"""The page of the anatomy study: errors, box plots, t-tests, and a check of the reductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from studies.anatomy import ATTACKED_ROWS, MODELS, N_FOLDS, RIVALS, ROWS, ROWS_OF, TABLES, Cell, todo
from studies.anatomy_charts import box_plots

LEVEL = 0.05


class Errors:
    """The errors of a study, each an array over folds."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        found: dict[tuple[str, str, str, int], dict[int, Cell]] = {}
        for cell in cells:
            found.setdefault((cell.table, cell.model, cell.partner, cell.l), {})[cell.fold] = cell
        # A combination that a run left unfinished is not compared with finished ones.
        self.cells = {key: folds for key, folds in found.items() if len(folds) == N_FOLDS}

    def __contains__(self, key: tuple[str, str, str, int]) -> bool:
        return key in self.cells

    def of(self, table: str, model: str, partner: str, length: int = 0) -> NDArray[np.float64]:
        """Return the errors of a model in percent, in the order of the folds."""
        folds = self.cells[table, model, partner, length]
        return np.array([folds[fold].error for fold in range(N_FOLDS)])

    def mean(self, table: str, model: str, partner: str, length: int = 0) -> float:
        """Return the mean error in percent."""
        return float(self.of(table, model, partner, length).mean())

    def lengths(self, table: str, model: str, partner: str) -> list[int]:
        """Return every l that was finished."""
        return sorted(key[3] for key in self.cells if key[:3] == (table, model, partner))

    def any_cell(self, table: str, model: str, partner: str, length: int = 0) -> Cell:
        """Return the cell of the first fold, for what folds have in common."""
        return self.cells[table, model, partner, length][0]


def paired_tests(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[float, float]:
    """Return the p-values of the paired t-test over folds, plain and with Nadeau and Bengio's variance.

    Training sets of folds overlap, so their errors are not independent: the corrected variance is that of the
    differences times (1/J + n_test/n_train) instead of 1/J.
    """
    differences = first - second
    n = len(differences)
    deviation = float(differences.std(ddof=1))
    if deviation == 0:
        return (1.0, 1.0) if differences.mean() == 0 else (0.0, 0.0)
    values = []
    for factor in (1 / n, 1 / n + 1 / (n - 1)):  # of n folds one tests and n - 1 train
        t = abs(float(differences.mean())) / (deviation * np.sqrt(factor))
        values.append(2 * float(stats.t.sf(t, n - 1)))
    return values[0], values[1]


def documents(
    cells: Sequence[Cell], libsvm: Sequence[Mapping[str, Any]], attacks: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the page and its drawings by their path."""
    errors = Errors(cells)
    drawings = {
        f"docs/results/anatomy-{model.replace(' ', '-')}.svg": box_plots(boxes_of(errors, model), title)
        for model, title in MODELS.items()
    }
    machines: dict[str, Any] = {}
    for cell in libsvm:
        machines.setdefault(cell["table"], {})[cell["machine"]] = cell
    return {"docs/results/anatomy.md": page(errors, machines, attacks), **drawings}


def boxes_of(errors: Errors, model: str) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return, for every table, the errors over folds by the label of their box."""
    labels = {"original": "original", "identifying": "identifying", "pruned": "l={}", "bucket": "all, l={}"}
    labels |= {rival: "k={}" + rival.removeprefix("anonymized").removesuffix(" left out") for rival in RIVALS}
    boxes: dict[str, dict[str, NDArray[np.float64]]] = {}
    for table, title in TABLES.items():
        for partner, label in labels.items():
            for length in errors.lengths(table, model, partner):
                boxes.setdefault(title, {})[label.format(length)] = errors.of(table, model, partner, length)
    return boxes


# ---- the table of errors ---------------------------------------------------------------------------------------------


def page(errors: Errors, libsvm: Mapping[str, Any], attacks: Sequence[Mapping[str, Any]]) -> str:
    """Put the page together."""
    lines = [
        "# What learning from anatomized data costs",
        "",
        "Mancuhan and Clifton, *Support vector classification with l-diversity*, repeated on public data: error in",
        f"percent, mean of {N_FOLDS} folds. *Original* is trained on the raw records, *identifying* without the",
        "sensitive column, *pruned* on one candidate per record of the anatomized table, *all candidates* on every",
        "candidate, weighted (beyond the paper), *anonymized* on k-anonymous records with k = l. Tests are on raw",
        "records; the anonymized model gets them generalized like its training data.",
        "",
        *_setting(),
        "",
    ]
    for model, title in MODELS.items():
        lines += [f"## {title[0].upper()}{title[1:]}", "", *_table(errors, model), ""]
        lines += [f"![Box plots of the errors over folds](anatomy-{model.replace(' ', '-')}.svg)", ""]
    lines += ["What the paper says and what held: [its page](mancuhan.md).", ""]
    lines += ["## Pruned against original: t-tests", "", *_tests_table(errors), ""]
    lines += ["## The theorem as a number", "", *_bounds_table(errors), ""]
    lines += ["## What attackers guess", "", *_attacks_table(attacks), ""]
    lines += ["## Our linear machine against LibSVM's", "", *_libsvm_table(libsvm), ""]
    lines += [
        "Run with `sfumato study 'mancuhan-*'`; every fold is in `studies/results/anatomy.jsonl`. It needs",
        "`SFUMATO_DATA`, the folder of the public tables.",
    ]
    return "\n".join(lines) + "\n"


def _setting() -> list[str]:
    shown = "; ".join(
        f"{title}: {'all records' if ROWS[model] is None else f'a stratified sample of {ROWS[model]:,} records'}"
        for model, title in MODELS.items()
    )
    exceptions = "; ".join(
        f"{MODELS[model]} on {TABLES[table]}: {'all records' if most is None else f'{most:,}'}"
        for (table, model), most in ROWS_OF.items()
    )
    return [
        "What differs from the paper:",
        "",
        f"- Records used, to keep the run short: {shown}. But {exceptions}. LibSVM's time grows with the square of the",
        "  records; in Bank Marketing most of them are equal to others, and equal ones are one with a weight.",
        "- Census-Income (the training file, 199,523 records, ten columns like Adult's) stands for the IPUMS extract,",
        "  which was not to be had.",
        "- The paper's coding is that of its appendix B; education and age groups are taken as ordered. Every machine",
        "  scales its coordinates to unit variance, which the paper does not mention; pruning happens before that.",
        "- Adult is shown with `education-num`, as the paper implies, which leaves out the final weight alone, and",
        "  without it: it says the same as the sensitive education, so that anatomizing hides nothing while it stays.",
        "- Census-Income's linear machines see a stratified sample of 50,000 records: the stand-in decides nothing.",
        "- Bank Marketing's age is cut into ten intervals of equal width, Weka's default.",
        "- Anonymized: full-domain generalization over ARX's hierarchies for Adult, intervals of 5, 10 and 20 for the",
        "  hours, in place of Inan et al.'s; columns without a hierarchy (relationship, the capital columns and, where",
        "  it is kept, education-num) stay as they are or vanish. Numbers that were generalized are coded by the",
        "  middle of their interval. Pruned leaves out as many records as l asks for; the paper does not say what its",
        "  anonymized machine may leave out. Here that is nothing, or at most 2% or 5% of the records that it is",
        "  trained on, those of groups of fewer than k. No record that is tested is left out.",
        "- C = 1 and gamma = 1 / columns, LibSVM's defaults. The linear machine has LibSVM's minimum, found by another",
        "  method; see the last table. In the two readings beyond the paper's (education unordered, one-hot coding) it",
        "  has the squared hinge loss.",
        "- The RBF machine is LibSVM's. It does not see Adult without education-num.",
        "",
        "What was tried before these settings were fixed, with errors in sight:",
        "",
        "- Education was first taken as unordered. One fold of Adult, linear, gave original 19.28, pruned 22.93 at",
        "  l = 2 and 18.86 at l = 4. It was then taken as ordered, and fold 0 of all four tables was looked at",
        "  (Adult: 16.29, 17.64, 17.95); fold 0 is one of the ten below. Appendix B has a rule for ordered attributes",
        "  and does not say which these are. Both readings are below.",
        "- The first edition's linear machine had the squared hinge loss, and no `education-num`. Its RBF machine was",
        "  Nystroem's map with 1,000 landmarks in front of a linear machine, on 4,000 records.",
        "- The RBF machine's sample was set by the time a fit took, before any of its folds had run.",
    ]


def _table(errors: Errors, model: str) -> list[str]:
    lines = [
        f"| table | original | identifying | l | pruned | left out by l | all candidates | {' | '.join(RIVALS)} |",
        f"| --- |{' ---: |' * (6 + len(RIVALS))}",
    ]
    for table in (table for table, planned, _ in todo() if planned == model):
        title = TABLES[table]
        if (table, model, "original", 0) not in errors:
            lines.append(f"| {title} | not finished |{' |' * (5 + len(RIVALS))}")
            continue
        for place, length in enumerate(errors.lengths(table, model, "pruned")):
            shown = [
                f"{errors.mean(table, model, partner, length):.2f}" if (table, model, partner, length) in errors else ""
                for partner in ("pruned", "bucket", *RIVALS)
            ]
            start = [title, *(f"{errors.mean(table, model, name):.2f}" for name in ("original", "identifying"))]
            cell = errors.any_cell(table, model, "pruned", length)
            left_out = f"{cell.n_suppressed:,} of {cell.n_train:,}" if cell.n_suppressed else "none"
            first = start if place == 0 else ["", "", ""]
            lines.append(f"| {' | '.join([*first, str(length), shown[0], left_out, *shown[1:]])} |")
    return lines


# ---- tests, bounds, LibSVM -------------------------------------------------------------------------------------------


def _tests_table(errors: Errors) -> list[str]:
    lines = [
        f"Paired over {N_FOLDS} folds: difference of the errors in points, and p-values of the plain test, which the",
        "paper uses, and of the one with Nadeau and Bengio's variance, which allows for training sets that overlap.",
        f"Bold: below {LEVEL}.",
        "",
        "| table | model | l | pruned - original | plain p | corrected p |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    n_plain = n_corrected = n_all = 0
    for model, title in MODELS.items():
        for table, name in TABLES.items():
            for length in errors.lengths(table, model, "pruned"):
                if (table, model, "original", 0) not in errors:
                    continue
                pruned, original = errors.of(table, model, "pruned", length), errors.of(table, model, "original")
                plain, corrected = paired_tests(pruned, original)
                n_all += 1
                n_plain += plain < LEVEL
                n_corrected += corrected < LEVEL
                texts = ("< 0.001" if p < 0.001 else f"{p:.3f}" for p in (plain, corrected))
                shown = (f"**{t}**" if p < LEVEL else t for t, p in zip(texts, (plain, corrected), strict=True))
                gap = float((pruned - original).mean())
                lines.append(f"| {name} | {title} | {length} | {gap:+.2f} | {' | '.join(shown)} |")
    return [
        *lines,
        "",
        f"Of {n_all} differences {n_plain} are significant by the plain test and {n_corrected} by the corrected one.",
    ]


def _bounds_table(errors: Errors) -> list[str]:
    lines = [
        "Theorem 4.1 for the linear machines, mean over folds, beside the observed excess of pruned over original as a",
        "share. It does not apply to the RBF machine, nor where records were suppressed; at 1 or more it is vacuous.",
        "",
        "| table | model | l | bound | observed excess |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for model, title in MODELS.items():
        for table, name in TABLES.items():
            for length in errors.lengths(table, model, "pruned") if model != "rbf" else ():
                bounds = [cell.bound for cell in errors.cells[table, model, "pruned", length].values()]
                known = [bound for bound in bounds if bound is not None]
                told = "does not apply (suppression)"
                if len(known) == len(bounds):
                    mean = float(np.mean(known))
                    told = f"vacuous ({mean:.3g})" if mean >= 1 else f"{mean:.3f}"
                excess = errors.mean(table, model, "pruned", length) - errors.mean(table, model, "original")
                lines.append(f"| {name} | {title} | {length} | {told} | {excess / 100:+.4f} |")
    return lines


def _attacks_table(attacks: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the share of sensitive values guessed, and count what the random assignment changes."""
    by_place: dict[tuple[str, int, str], dict[str, Mapping[str, Any]]] = {}
    for found in attacks:
        by_place.setdefault((found["table"], found["l"], found["attack"]), {})[found["assignment"]] = found
    rows, n_worse, n_better, n_minimal, n_pairs = [], 0, 0, 0, 0
    for (table, length, attack), pair in by_place.items():
        shown = [
            f"{100 * found['rate']:.1f} [{100 * found['interval'][0]:.1f}, {100 * found['interval'][1]:.1f}]"
            for found in (pair["largest"], pair["random"])
        ]
        verdicts = ", ".join(dict.fromkeys(pair[name]["verdict"] for name in ("largest", "random")))
        baseline = 100 * pair["largest"]["baseline"]
        rows.append(f"| {TABLES[table]} | {length} | {attack} | {baseline:.1f} | {' | '.join(shown)} | {verdicts} |")
        if attack == "definetti":
            n_pairs += 1
            n_worse += pair["random"]["interval"][0] > pair["largest"]["interval"][1]
            n_better += pair["random"]["interval"][1] < pair["largest"]["interval"][0]
        else:
            n_minimal += any(found["verdict"] == "stronger than baseline" for found in pair.values())
    return [
        f"Share of sensitive values guessed, in percent with 95% interval, on a sample of {ATTACKED_ROWS:,} records of",
        "each table; the baseline guesses the most frequent value of the group. The paper names random assignment as",
        "robust against minimality and correlation attacks. Here deFinetti's attack does clearly better on it in",
        f"{n_worse} and clearly worse in {n_better} of {n_pairs} cases (intervals that do not touch); the minimality",
        f"attack is stronger than its baseline in {n_minimal} of {n_pairs}, under one rule or the other.",
        "",
        "| table | l | attack | baseline | largest values | random assignment | verdict |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
        *rows,
    ]


def _libsvm_table(libsvm: Mapping[str, Any]) -> list[str]:
    lines = [
        "Error in percent on 5,000 records after training on 5,000 others, original data, the paper's coding. Both",
        "minimize the same sum; LibSVM takes hours on all records. Asked for: within 0.1 points.",
        "",
        "| table | interior-point method | LibSVM | difference | within 0.1 | seconds | LibSVM's |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for table, found in libsvm.items():
        ours, theirs = found["ours"]["error"], found["libsvm"]["error"]
        verdict = "yes" if abs(ours - theirs) <= 0.1 else "no"
        seconds = " | ".join(f"{found[name]['seconds']:.1f}" for name in ("ours", "libsvm"))
        shown = f"{ours:.2f} | {theirs:.2f} | {ours - theirs:+.2f} | {verdict} | {seconds}"
        lines.append(f"| {TABLES[table]} | {shown} |")
    return lines
