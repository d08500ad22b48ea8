# SPDX-License-Identifier: Apache-2.0
"""What a released table with epsilon is worth: models that are trained on it, and how a private budget is best divided.

Releases by noisy counts, everything private (`PrivateAnonymizer`) with two kinds of drawn rows and several divisions of
its budget, and synthetic tables by OpenDP's MST and AIM, on the same splits.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from studies.beyond_private_learners import area, interval
from studies.charts import Panel, Style, draw
from studies.public_knowledge import BOUNDS, categories_of, load_known
from studies.rows import Row, documents, found, has, how_it_was_run, mean, one_by_one, table, where
from studies.runner import Experiment

TABLES = {
    "adult-12": "Adult, 12 columns",
    "acs-income": "ACSIncome 2018, 10 columns",
    "nursery": "Nursery, 8 columns, 5 classes",
    "lending-club-18": "Lending Club 2007-2011, 24 columns",
}
MODEL = {"nursery": "rf"}  # all others: histogram boosting
MOST_RECORDS = 50_000
N_OTHERS, K_OF_OTHERS = 5_000, 10
DELTA = 1e-6
SEEDS = (0, 1, 2, 3, 4)
NONE, COUNTS, PRIVATE, MST, AIM = "none", "counts", "private", "mst", "aim"
OPENDP = {MST: "MST of OpenDP", AIM: "AIM of OpenDP"}
ROWS = {"marginals": "columns given the label", "mst": "spanning tree"}
DEFAULT = "default"
DIVISIONS: dict[str, tuple[float, float, float]] = {
    "mostly guide": (0.6, 0.2, 0.2),
    "mostly rows": (0.2, 0.6, 0.2),
    "mostly counts": (0.1, 0.1, 0.8),
    "no counts to speak of": (0.45, 0.45, 0.1),
    "a tenth of rows": (0.4, 0.1, 0.5),
    "equal": (1 / 3, 1 / 3, 1 / 3),
}
"""Shares of guide, rows and counts, beside the default."""

REDUCTIONS = (
    f"Splits of 80% and 20% of at most {MOST_RECORDS:,} records; delta {DELTA:g}; every record is a person.",
    "Models that are trained on releases: histogram boosting, on Nursery a random forest, with defaults.",
    f"*Counts*: {N_OTHERS:,} of the training records stand for other people. A model and a partition (k = "
    f"{K_OF_OTHERS}) are fitted on them; the others are released.",
    "*Recoded* tests: the records to test on pass the same partition. *Raw* tests: they stay as they are, and the "
    "release has values inside its cells (counts: from regions of the other people, but for Nursery, where they lack a "
    "label; `PrivateAnonymizer`: drawn).",
    "MST and AIM release synthetic records, label included, on the same public cells; values are drawn in the cells. "
    "They run with OpenDP's own settings in an environment of their own (`.peers/mbi`), since OpenDP pins an older "
    "polars for them, on one split. On Lending Club, where a column has 1,000 values, MST did not finish in ten "
    "minutes; AIM ran on Nursery alone. A spanning tree treats the label as any other column. OpenDP adds a null to "
    "the cells of every column, and noise lets some synthetic records have one: these are left out.",
    "Edges and categories are those of [the learners](beyond-private-learners.md).",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for seed in SEEDS:
        for name in TABLES:
            yield _key(name, NONE, 0.0, seed)
            for epsilon in (0.5, 1.0) if name == "adult-12" else (1.0,):
                yield _key(name, COUNTS, epsilon, seed)
            for epsilon in (0.5, 1.0, 2.0) if name == "adult-12" else (1.0,):
                for rows in ROWS:
                    yield _key(name, PRIVATE, epsilon, seed, rows)
        for division in DIVISIONS:
            yield _key("adult-12", PRIVATE, 1.0, seed, "mst", division)
    for name in TABLES:
        if name != "lending-club-18":  # it did not finish in ten minutes
            yield _key(name, MST, 1.0, SEEDS[0])
    yield _key("nursery", AIM, 1.0, SEEDS[0])


def _key(name: str, method: str, epsilon: float, seed: int, rows: str = "", division: str = DEFAULT) -> Row:
    return {"table": name, "method": method, "epsilon": epsilon, "rows": rows, "division": division, "seed": seed}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Release one table, train on the release and test.

    `n_records` in the key, where there is one, limits the records of the table: for trying out.
    """
    X, y = load_known(key["table"])
    order = np.random.default_rng(key["seed"]).permutation(len(y))
    order = order[: key.get("n_records") or (10**9 if paper_scale else MOST_RECORDS)]
    n_train = len(order) * 4 // 5
    train, test = order[:n_train], order[n_train:]
    split = Split(key, X.iloc[train], y[train], X.iloc[test], y[test], np.unique(y))
    release = {NONE: split.nothing, COUNTS: split.counts, PRIVATE: split.private}.get(key["method"], split.opendp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = release()
    _, sizes = np.unique(split.y_test, return_counts=True)
    return {"recoded": None, **measured, "blind": round(100 * float(sizes.max() / sizes.sum()), 3), "n_train": n_train}


class Split:
    """Training and test records of one cell, and what is done with them."""

    def __init__(self, key: Mapping[str, Any], X: Any, y: Any, X_test: Any, y_test: Any, classes: Any) -> None:
        self.key, self.X, self.y, self.X_test, self.y_test, self.classes = key, X, y, X_test, y_test, classes
        self.public = {"bounds": BOUNDS[key["table"]], "categories": categories_of(key["table"], X)}

    def nothing(self) -> Row:
        """Train on the raw records."""
        return self._scores("raw", self.X, self.y, self.X_test)

    def counts(self) -> Row:
        """Release noisy counts of a partition of other people."""
        from sfumato import AnonymizedClassifier, PrivacyLedger
        from studies.models import make_model

        n = min(N_OTHERS, len(self.y) // 3)
        estimator = make_model(self._model, self.key["seed"], self.X)
        fitted = AnonymizedClassifier(estimator, k=K_OF_OTHERS, random_state=self.key["seed"])
        fitted.fit(self.X.iloc[:n], self.y[:n])
        anonymizer = fitted.anonymizer_

        def release(epsilon: float, **more: Any) -> Any:
            return anonymizer.release(
                self.X.iloc[n:], self.y[n:], mechanism="counts", epsilon=epsilon, labels=list(self.classes),
                fitted_on="others", ledger=PrivacyLedger(), **more,
            )  # fmt: skip

        # Without people of every label, there are no regions of all labels: Nursery has a label of two records.
        regions = fitted.regions_ if len(np.unique(self.y[:n])) == len(self.classes) else None
        cells, drawn = release(self.key["epsilon"]), release(self.key["epsilon"], regions=regions)
        recoded = self._scores("recoded", cells.table, cells.target, anonymizer.transform(self.X_test))
        return recoded | self._scores("raw", drawn.table, drawn.target, self.X_test)

    def private(self) -> Row:
        """Release everything private."""
        from sfumato import PrivateAnonymizer

        shares = DIVISIONS.get(self.key["division"])
        anonymizer = PrivateAnonymizer(
            self.key["epsilon"],
            DELTA,
            labels=list(self.classes),
            rows=self.key["rows"],
            division=None if shares is None else dict(zip(("guide", "rows", "counts"), shares, strict=True)),
            **self.public,
        ).fit(self.X, self.y)
        cells, drawn = anonymizer.release(), anonymizer.release(values="drawn")
        recoded = self._scores("recoded", cells.table, cells.target, anonymizer.transform(self.X_test))
        codes = np.searchsorted(self.classes, self.y_test)
        guide = 100 * float((anonymizer.guide_.predict(self.X_test) == codes).mean())
        return recoded | self._scores("raw", drawn.table, drawn.target, self.X_test) | {"guide": round(guide, 3)}

    def opendp(self) -> Row:
        """Release synthetic records by OpenDP's marginal-based algorithms."""
        import opendp.extras.mbi._mst
        import opendp.prelude as dp
        import polars as pl

        from sfumato.frames import read_table
        from sfumato.private.accounting import zcdp_rho
        from sfumato.private.drawing import draw_records, whole_columns
        from sfumato.private.encoding import PublicEncoding

        dp.enable_features("contrib")
        # Its parts of a budget, rounded up and added, pass the whole by a last digit, and are refused then.
        opendp.extras.mbi._mst.prior = lambda value: value * (1 - 1e-9)
        encoding = PublicEncoding(list(self.X.columns), **self.public)
        cells = encoding.cells(read_table(self.X))
        columns = {f"c{place}": cells[:, place] for place in range(cells.shape[1])}
        columns["label"] = np.searchsorted(self.classes, self.y)
        listed = {f"c{place}": list(range(own.n_cells)) for place, own in enumerate(encoding.columns)}
        rho = zcdp_rho(self.key["epsilon"], DELTA)
        algorithm = dp.mbi.AIM() if self.key["method"] == AIM else dp.mbi.MST()
        context = dp.Context.compositor(
            data=pl.LazyFrame(columns),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(rho=rho * (1 + 1e-9)),
        )
        released = (
            context.query(rho=rho)
            .contingency_table(keys=listed | {"label": list(range(len(self.classes)))}, algorithm=algorithm)
            .release()
            .synthesize()
        )
        n_synthetic = len(released)
        released = released.drop_nulls()  # OpenDP adds a null to the keys of every column; noise lets some have one
        drawn = np.column_stack([released[name].to_numpy() for name in listed])
        random = np.random.default_rng(self.key["seed"])
        rows = draw_records(
            _Given(drawn), encoding, len(drawn), whole_columns(self.public["bounds"]), random
        ).to_pandas()
        typed = rows.astype({name: self.X[name].dtype for name in rows if self.X[name].dtype.name == "category"})
        scores = self._scores("raw", typed, self.classes[released["label"].to_numpy()], self.X_test)
        return scores | {"left_out": round(1 - len(released) / n_synthetic, 4)}

    @property
    def _model(self) -> str:
        return MODEL.get(self.key["table"], "hgb")

    def _scores(self, name: str, X: Any, y: Any, X_test: Any) -> Row:
        """Train on a release and return accuracy and area under the curve on test records."""
        from studies.models import make_model

        told = [name for name in self.X if X[name].notna().any()]  # a release may have no value of a rare column
        model = make_model(self._model, self.key["seed"], self.X[told]).fit(X[told], y)
        shares = np.zeros((len(self.y_test), len(self.classes)))
        shares[:, np.searchsorted(self.classes, model.classes_)] = model.predict_proba(X_test[told])
        accuracy = 100 * float((self.classes[shares.argmax(axis=1)] == self.y_test).mean())
        return {name: round(accuracy, 3), f"{name}_auc": round(area(self.y_test, shares, self.classes), 4)}


class _Given:
    """A model of rows that draws given ones."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells

    @property
    def n_records(self) -> float:
        """Number of records."""
        return float(len(self._cells))

    def draw_cells(self, n_records: int, random: Any) -> Any:
        """Return the first records."""
        return self._cells[:n_records].astype(np.int64)


# -- the page ------------------------------------------------------------------------------------------------


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Releases with differential privacy",
        "",
        "A model is trained on a released table and tested on people who are not in it. Accuracy in percent, mean over",
        "splits with a 95% CI. How to release: [releases with epsilon](../releases-with-epsilon.md).",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
    ]
    for name, title in TABLES.items():
        own = where(rows, table=name, division=DEFAULT)
        lines += [
            f"## {title}",
            "",
            f"{mean(own, 'n_train'):,.0f} training records. Majority-class baseline: {mean(own, 'blind'):.1f}.",
            *table(["release", "recoded", "raw", "AUC recoded", "AUC raw"], list(_lines(own))),
        ]
    lines += [
        "## How the budget is divided",
        "",
        "`PrivateAnonymizer` on Adult at epsilon 1, rows from a spanning tree. The guide decides where cells are cut,",
        "the rows how many people a cell is expected to have, and the counts how many are released.",
        "",
        "![accuracy over the share of the counts](beyond-private-releases.svg)",
        *division_lines(rows),
    ]
    lines += how_it_was_run(rows, "beyond-private-releases", REDUCTIONS)
    return "\n".join(lines) + "\n"


def _lines(rows: list[Row]) -> Iterator[list[str]]:
    """Yield the lines of a table's releases."""
    wanted: list[tuple[str, Row]] = [("no protection", {"method": NONE})]
    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"]})
    wanted += [(f"counts, epsilon {e:g}", {"method": COUNTS, "epsilon": e}) for e in epsilons]
    wanted += [
        (f"`PrivateAnonymizer`, epsilon {e:g}, {words}", {"method": PRIVATE, "epsilon": e, "rows": kind})
        for e in epsilons
        for kind, words in ROWS.items()
    ]
    wanted += [(f"{words}, epsilon 1", {"method": method}) for method, words in OPENDP.items()]
    for words, fixed in wanted:
        if has(rows, **fixed):
            own = where(rows, **fixed)
            areas = [
                f"{mean(own, f'{part}_auc'):.3f}" if f"{part}_auc" in own[0] else "" for part in ("recoded", "raw")
            ]
            yield [words, _shown(own, "recoded"), _shown(own, "raw"), *areas]


def division_lines(rows: list[Row]) -> list[str]:
    """Return the table of divisions, by the share of the counts."""
    from sfumato.anonymize.private_anonymizer import DIVISION

    own = where(rows, table="adult-12", method=PRIVATE, epsilon=1.0, rows="mst")
    shares = {DEFAULT: tuple(DIVISION[part] for part in ("guide", "rows", "counts")), **DIVISIONS}
    body = []
    for name in sorted(shares, key=lambda name: shares[name][2]):
        cells = where(own, division=name)
        words = " / ".join(f"{share:.2g}" for share in shares[name]) + (" (default)" if name == DEFAULT else "")
        body.append([words, _shown(cells, "guide"), _shown(cells, "recoded"), _shown(cells, "raw")])
    return table(["guide / rows / counts", "the guide itself", "recoded", "raw"], body)


def costs(rows: list[Row]) -> list[str]:
    """Return the releases of Adult as a table, and those of the other tables as sentences."""
    own = where(rows, table="adult-12", division=DEFAULT)
    first, *others = findings(rows)
    body = [line[:3] for line in _lines(own)]
    return [*table([first.split(",")[0], "recoded", "raw"], body), *(f"- {sentence}" for sentence in others)]


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for name, title in TABLES.items():
        own = where(rows, table=name, division=DEFAULT)
        plain = mean(own, "raw", method=NONE)
        private = where(own, method=PRIVATE, epsilon=1.0)
        parts = [
            f"counts {mean(own, 'recoded', method=COUNTS, epsilon=1.0):.1f} recoded and "
            f"{mean(own, 'raw', method=COUNTS, epsilon=1.0):.1f} raw",
            *(
                f"everything private with rows by {words} {mean(private, 'recoded', rows=kind):.1f} and "
                f"{mean(private, 'raw', rows=kind):.1f}"
                for kind, words in ROWS.items()
            ),
            *(f"{words} {mean(own, 'raw', method=m):.1f} raw" for m, words in OPENDP.items() if has(own, method=m)),
        ]
        yield f"{title}, epsilon 1: {'; '.join(parts)}; no protection {plain:.1f}."


def _shown(rows: list[Row], name: str) -> str:
    values = [row[name] for row in rows if row.get(name) is not None]
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else ""
    return f"{np.mean(values):.1f} [{', '.join(f'{end:.1f}' for end in interval(values))}]"


STYLES = {
    "recoded": Style("#0072b2", "circle", 2.0),
    "raw": Style("#d55e00", "square", 2.0),
    "the guide itself": Style("#7a7a7a", "", 1.0, "2 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw accuracy over the share of the counts, where guide and rows have the same share, or nearly."""
    own = where(rows, table="adult-12", method=PRIVATE, epsilon=1.0, rows="mst")
    chosen = [name for name, (guide, other, _) in DIVISIONS.items() if guide == other]
    lines = {
        part: sorted((DIVISIONS[name][2], mean(own, part, division=name)) for name in chosen)
        for part in ("recoded", "raw")
    }
    levels = {"the guide itself": mean(own, "guide", division=DEFAULT)}
    panel = Panel("Adult, epsilon 1, equal shares of guide and rows", lines, levels, axis="share of the counts")
    label = "Accuracy of models trained on private releases in percent over the share of the counts"
    return {"beyond-private-releases.svg": draw([panel], STYLES, columns=1, label=label)}


KEYS = tuple(keys())
#: What a split must have to be shown; OpenDP's algorithms need an environment of their own, and hours.
OURS = tuple(key for key in KEYS if key["method"] not in OPENDP)
EXPERIMENT = Experiment(
    name="beyond_private_releases",
    by=("table", "method", "epsilon", "rows", "division", "seed"),
    keys=KEYS,
    run=one_by_one(run),
    together=("table", "method", "seed"),
    needs=lambda key: () if key["method"] == NONE else ("mbi",) if key["method"] in OPENDP else ("opendp",),
    views={"found": found(OURS, findings, charts)},
    documents=documents("beyond-private-releases", OURS, page, charts),
)
