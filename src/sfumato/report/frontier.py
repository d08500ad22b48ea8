# SPDX-License-Identifier: Apache-2.0
"""Protections side by side as data: utility, attacks, bounds and costs of each, with intervals over splits.

``sfumato.frontier`` makes it, commands and reports show it. No values of cells are in it but the names of subgroups,
which appear only where many people share them.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sfumato.documents import plain
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames.building import FrameKind, frame_from_arrow
from sfumato.report.frontier_row import Estimate, FrontierRow, FrontierSubgroup

VERSION = 1


@dataclass(frozen=True)
class Frontier:
    """Protections on the same splits under the same attackers; made by :func:`sfumato.frontier`.

    Attributes
    ----------
    rows : tuple of FrontierRow
    metric : {"accuracy", "R2"}
    blind : float
        Utility without a model: always the most frequent class, or the mean.
    n_train, n_test, n_splits : int
    confidence : float
    seed : int
    reference : str
        Name of the row that changes are measured against.
    is_complete : bool
        False if it was stopped before the last protection.
    notes : tuple of str
        What was left out, and why.

    Examples
    --------
    >>> import numpy as np
    >>> import sfumato
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> model = DecisionTreeClassifier(random_state=0)
    >>> found = sfumato.frontier(X, X[:, 0] > 0, model, {"k": [20]}, attacks="none", n_splits=2)
    >>> found["no protection"].utility.value > 0.95, found.change("k = 20, model").value <= 0
    (True, True)
    >>> found.to_frame()[["protection", "family"]].values.tolist()
    [['no protection', 'none'], ['k = 20, model', 'k']]
    """

    rows: tuple[FrontierRow, ...]
    metric: str
    blind: float
    n_train: int
    n_test: int
    n_splits: int
    confidence: float
    seed: int
    reference: str
    is_complete: bool = True
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> FrontierRow:
        """Return a protection's row by its name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise ParameterError(
            f"the frontier has no row {name!r}: expected one of {', '.join(repr(row.name) for row in self.rows)}."
        )

    @property
    def intervals(self) -> str:
        """How intervals were computed, in words."""
        level = f"{self.confidence:.0%}"
        if self.n_splits > 1:
            return (
                f"{level} confidence, Nadeau and Bengio's corrected t over {self.n_splits} splits, paired for changes"
            )
        return f"{level} confidence over the test records of one split; changes have none"

    def change(self, row: FrontierRow | str, of: str = "utility", against: str | None = None) -> Estimate | None:
        """Return the paired difference to another row, split by split, with its interval over splits.

        Parameters
        ----------
        row : FrontierRow or str
        of : {"utility", "auc", "recoded", "recoded_auc", "best"}
            What is compared. Recoded test records are compared with the other row's raw ones.
        against : str, optional
            Name of the other row; None: the unprotected model.
        """
        own_row = self[row] if isinstance(row, str) else row
        other_row = self[self.reference if against is None else against]
        raw = {"recoded": "utility", "recoded_auc": "auc", "best": "utility"}.get(of, of)
        own, other = getattr(own_row, of), getattr(other_row, raw)
        if own is None or other is None or own_row.name == other_row.name or len(own.per_split) != len(other.per_split):
            return None
        return self._of([a - b for a, b in zip(own.per_split, other.per_split, strict=True)])

    def worst_subgroup(self, row: FrontierRow | str) -> tuple[FrontierSubgroup, Estimate] | None:
        """Return the subgroup that pays most, and its change against the reference; None where none was measured."""
        own_row, other = (self[row] if isinstance(row, str) else row), self[self.reference]
        before = {(part.column, part.group): part.utility for part in other.subgroups}
        paid = []
        for part in own_row.subgroups:
            raw = before.get((part.column, part.group))
            if own_row.name != other.name and raw is not None and len(raw.per_split) == len(part.utility.per_split):
                pairs = zip(part.utility.per_split, raw.per_split, strict=True)
                paid.append((part, self._of([a - b for a, b in pairs])))
        return min(paid, key=lambda one: one[1].value, default=None)

    def _of(self, per_split: Sequence[float]) -> Estimate:
        return Estimate.of(per_split, self.n_test / self.n_train, self.confidence)

    def front(self) -> tuple[str, ...]:
        """Return the protections that no other one beats in both utility and risk.

        Utility is that of raw or recoded test records, whichever is higher; the risk is the success of the strongest
        membership attack on the model or the table. Rows that lack one of them are not among them.
        """
        points = {
            row.name: (row.best.value, -row.risk) for row in self.rows if row.best is not None and row.risk is not None
        }
        return tuple(
            name
            for name, (gain, calm) in points.items()
            if not any(g >= gain and c >= calm and (g, c) != (gain, calm) for g, c in points.values())
        )

    # -- as data -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and text; null for what was not measured."""
        document: dict[str, Any] = plain(self)
        for own, row in zip(document["rows"], self.rows, strict=True):
            worst = self.worst_subgroup(row)
            own["change"], own["auc_change"] = plain(self.change(row)), plain(self.change(row, "auc"))
            own["worst_subgroup"] = None
            if worst is not None:
                own["worst_subgroup"] = {"column": worst[0].column, "group": worst[0].group, **plain(worst[1])}
        return {"version": VERSION, "intervals": self.intervals, "front": list(self.front()), **document}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Frontier:
        """Rebuild a frontier from `to_dict`'s document."""
        if document.get("version") != VERSION:
            raise InputError(f"this is not a frontier of version {VERSION}: expected what Frontier.to_dict returned.")
        derived = ("version", "intervals", "front")
        rows = [
            {name: value for name, value in row.items() if name not in ("change", "auc_change", "worst_subgroup")}
            for row in document["rows"]
        ]
        own = {name: value for name, value in document.items() if name not in derived}
        parts = {"rows": tuple(map(FrontierRow.from_dict, rows)), "notes": tuple(document["notes"])}
        return cls(**{**own, **parts})

    def to_json(self) -> str:
        """Return the frontier as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Frontier:
        """Rebuild a frontier from `to_json`'s text."""
        return cls.from_dict(json.loads(text))

    def to_frame(self, library: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return the rows as a frame: means, and the ends of intervals in columns of their own.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, default="pandas"
        """
        import pyarrow as pa

        if library not in ("pandas", "polars", "pyarrow"):
            raise ParameterError(f"{named('library', library)}: expected 'pandas', 'polars' or 'pyarrow'.")
        table = pa.Table.from_pylist([self._flat(row) for row in self.rows])
        return frame_from_arrow(FrameKind(library, {name: name for name in table.column_names}, frozenset()), table)

    def _flat(self, row: FrontierRow) -> dict[str, Any]:
        flat: dict[str, Any] = {
            "protection": row.name, "family": row.family, "shares": row.shares, "parameter": row.parameter,
        }  # fmt: skip
        worst = self.worst_subgroup(row)
        of_attack = {
            "model_attack": row.strongest("membership", "model"),
            "table_attack": row.strongest("membership", "table"),
            "singling_out": row.strongest("singling out"),
            "attribute_from_model": row.strongest("attribute", "model"),
            "attribute_from_table": row.strongest("attribute", "table"),
        }
        measured: dict[str, Estimate | None] = {
            self.metric.lower(): row.utility,
            "change": self.change(row),
            "auc": row.auc,
            "auc_change": self.change(row, "auc"),
            "recoded": row.recoded,
            "recoded_auc": row.recoded_auc,
            **{name: None if attack is None else attack.rate for name, attack in of_attack.items()},
            "worst_subgroup_change": None if worst is None else worst[1],
        }
        for name, number in measured.items():
            flat[name] = None if number is None else number.value
            if number is not None and number.interval is not None:
                flat[f"{name}_low"], flat[f"{name}_high"] = number.interval
            else:
                flat[f"{name}_low"] = flat[f"{name}_high"] = None
        flat["any_attacker_at_most"] = None if row.certificate is None else row.certificate.upper
        flat["membership_at_most"] = row.limit
        flat["is_on_front"] = row.name in self.front()
        return {**flat, "seconds": row.seconds, "reasons": json.dumps(dict(row.reasons))}

    # -- for people ----------------------------------------------------------------------------------------------

    def plot(self) -> str:
        """Return a picture as SVG text: utility and membership attacks of every row, with intervals and limits."""
        from sfumato.report.frontier_page import standalone_picture

        return standalone_picture(self)

    def to_html(self, title: str = "Protections compared") -> str:
        """Return the picture and the table as one self-contained HTML page."""
        from sfumato.report.frontier_page import to_html

        return to_html(self, title)

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        from sfumato.report.frontier_page import to_markdown

        return to_markdown(self)

    def shown_as(self, suffix: str) -> str:
        """Return the text of a file: the page (.html), the table (.md), the data (.json) or the picture (.svg)."""
        ways = {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json, ".svg": self.plot}
        if suffix not in ways:
            raise ParameterError(f"a file of the kind {suffix!r}: expected .html, .md, .json or .svg. Rename it.")
        return ways[suffix]()

    def write(self, path: str | Path) -> None:
        """Write the page, the table, the data or the picture to a file: .html, .md, .json or .svg."""
        text = self.shown_as(Path(path).suffix)
        Path(path).write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own so that its styles stay in it."""
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe title="frontier" sandbox="" style="width:100%;height:44em;border:0" srcdoc="{page}"></iframe>'
