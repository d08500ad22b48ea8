# SPDX-License-Identifier: Apache-2.0
"""The anonymizers that a policy or the command line can name, made from its settings; the document of a fitted one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.anonymize import METHODS
from sfumato.auditing.target_values import EXACT, TargetValues, parse_target_values
from sfumato.criterion_recount import Promise
from sfumato.errors import ParameterError
from sfumato.representatives import REPRESENTATIVES

if TYPE_CHECKING:
    from sfumato.files.csv_reading import CsvStyle
    from sfumato.policy import Policy

GUIDED = METHODS.where(needs_guide=True)
"""The methods whose groups follow a target."""
BY_COUNTS = METHODS.where(by_counts=True)
"""The methods that need counts only, and so can read a table in pieces."""
WITHOUT_DOCUMENT = METHODS.where(has_document=False)
"""The methods whose groups are no tree that 'sfumato apply' could read."""


@dataclass(frozen=True)
class Method:
    """An anonymizer and its settings, with every column of the table in its role.

    Attributes
    ----------
    method : str
        One of `sfumato.anonymize.METHODS`.
    k : int
    quasi_identifiers : list of str
        The columns to rewrite.
    dropped : list of str
        The columns that are not released.
    keep : list of str
        The columns that are released unchanged whatever they hold, the target among them.
    categorical : list of str
    limits : dict
    hierarchies : dict
        Column to hierarchy file.
    unit : str or None
    sensitive : list of str
    l : int or None
    t : float or None
    representative : str
    suppression_limit : float
    seed : int
    jobs : int
    target : str or None
    guide : str or None
        What guides the groups: ``"probabilities"``, ``"predictions"``, ``"labels"`` or ``"column"``; None for methods
        that nothing guides.
    guide_column : str or None
    model : str
    target_values : TargetValues
        What is released of the target.
    more : tuple of Criterion
        What groups must meet beside k, l and t.
    """

    method: str
    k: int
    quasi_identifiers: list[str]
    dropped: list[str]
    keep: list[str]
    categorical: list[str]
    limits: dict[Any, float]
    hierarchies: dict[str, Path]
    unit: str | None
    sensitive: list[str]
    l: int | None  # noqa: E741  # the literature's name
    t: float | None
    representative: str
    suppression_limit: float
    seed: int
    jobs: int
    target: str | None = None
    guide: str | None = None
    guide_column: str | None = None
    model: str = "gradient-boosting"
    target_values: TargetValues = EXACT
    more: tuple[Any, ...] = ()

    @property
    def needs_model(self) -> bool:
        """Whether a model must be trained on all records before the groups can be formed."""
        return self.guide in ("probabilities", "predictions")

    def features(self, table: Any) -> Any:
        """Return what a model may see of a table, raw or rewritten: neither target nor what never leaves."""
        hidden = {self.target, *self.dropped, self.unit if self.unit not in self.keep else None}
        return table.select([name for name in table.column_names if name not in hidden])

    def publish(self, anonymizer: Any, released: Any) -> Any:
        """Return a release with the values of the target that were asked for."""
        names = rewritten_columns(anonymizer)
        return self.target_values.applied(released, self.target, names, self.k, of_persons=self.unit is not None)

    @property
    def is_comparable(self) -> bool:
        """Whether rewritten columns keep their kind, so that a model can predict raw records."""
        writes_labels = METHODS[self.method].facts.writes_labels
        return not writes_labels and bool(REPRESENTATIVES[self.representative].facts.keeps_type)

    def criteria(self) -> list[Any]:
        """Make what groups must meet beside k."""
        from sfumato.criteria import KAnonymity, LDiversity, TCloseness

        criteria: list[Any] = []
        if self.unit is not None:
            criteria.append(KAnonymity(self.k, unit=self.unit))
        for name in self.sensitive:
            if self.l is not None:
                criteria.append(LDiversity(self.l, name))
            if self.t is not None:
                criteria.append(TCloseness(self.t, name))
        return [*criteria, *self.more]

    def new_anonymizer(self) -> Any:
        """Make an unfitted anonymizer."""
        method = METHODS[self.method]
        shared: dict[str, Any] = {
            "k": self.k,
            "quasi_identifiers": self.quasi_identifiers,
            "identifiers": self.dropped or None,
            "keep": self.keep or None,
            "criteria": self.criteria() or None,
            "categorical_features": self.categorical or None,
            "hierarchies": {name: str(path) for name, path in self.hierarchies.items()} or None,
            "suppression_limit": self.suppression_limit,
        }
        if method.facts.writes_labels:
            return method.new(**shared)
        shared |= {
            "limits": self.limits or None,
            "representative": self.representative,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }
        return method.new(**shared)

    def promises(self) -> dict[str, Any]:
        """Return what `verified_output.recount` counts again beside k."""
        promises = [promise_of(criterion) for criterion in self.more if is_seen_in_files(criterion)]
        return {"sensitive": self.sensitive, "l": self.l, "t": self.t, "promises": promises}


def is_seen_in_files(criterion: Any) -> bool:
    """Return True if a criterion can be counted on the released file.

    A population cannot: it is counted on the release before that is written, and the file must then read back as what
    was counted.
    """
    return bool(criterion.counting != "presence")


def promise_of(criterion: Any) -> Promise:
    """Return a criterion as the data that the judge of files takes."""
    from sfumato.criteria import KnowsValues
    from sfumato.criteria.base import saved_fields

    name = criterion.facts.name
    if criterion.counting == "distinct" and name != "k-anonymity":
        raise ParameterError(f"the criterion {name} counts persons: expected k-anonymity where persons are counted.")

    def otherwise(values: Sequence[Any], counts: Any, everybody: Any) -> Any:
        own = criterion.for_values(values) if isinstance(criterion, KnowsValues) else criterion
        return own.passes(counts, everybody)

    return Promise(
        name,
        criterion.column if criterion.counting == "values" else None,
        saved_fields(criterion),
        criterion.describe(),
        order=getattr(criterion, "order", None),
        hierarchy=getattr(criterion, "hierarchy", None),
        otherwise=otherwise,
    )


def criteria_of(policy: Policy, read_table: Callable[[Path], Any]) -> tuple[Any, ...]:
    """Make the criteria that ``[[criteria]]`` asks for; files are relative to the policy's folder.

    Parameters
    ----------
    policy : Policy
    read_table : callable
        Reads the file of a population.
    """
    from sfumato.hierarchies import read_hierarchy
    from sfumato.policy.criteria import make_criterion

    def open_file(kind: str, name: str) -> Any:
        path = policy.folder / name
        return read_hierarchy(path) if kind == "hierarchy file" else read_table(path)

    return tuple(
        make_criterion(entry, partial(policy.places.of_criterion, number), open_file)
        for number, entry in enumerate(policy.criteria)
    )


def method_of(
    policy: Policy, quasi_identifiers: list[str], dropped: list[str], n_jobs: int, criteria: tuple[Any, ...] = ()
) -> Method:
    """Return the method that a policy asks for.

    Parameters
    ----------
    policy : Policy
    quasi_identifiers : list of str
        The columns to rewrite.
    dropped : list of str
        The columns that are not released.
    n_jobs : int
    criteria : tuple of Criterion
        Those of ``[[criteria]]``.
    """
    columns, method = policy.values["columns"], policy.values["method"]
    kept = dict.fromkeys([*columns["keep"], *([columns["target"]] if columns["target"] else [])])
    where = policy.where("columns", "hierarchies")
    return Method(
        method=method["name"],
        k=method["k"],
        quasi_identifiers=quasi_identifiers,
        dropped=dropped,
        keep=list(kept),
        categorical=list(columns["categorical"]),
        limits=columns["limits"],
        hierarchies=hierarchy_files(columns["hierarchies"], quasi_identifiers, where, policy.folder),
        unit=columns["unit"],
        sensitive=list(columns["sensitive"]),
        l=method["l"],
        t=method["t"],
        representative=method["representative"],
        suppression_limit=method["suppression_limit"],
        seed=method["seed"],
        jobs=n_jobs,
        target=columns["target"],
        guide=guide_of_method(method["name"], policy.get("model", "guide"), policy.get("model", "guide_column")),
        guide_column=policy.get("model", "guide_column"),
        model=policy.get("model", "name"),
        target_values=parse_target_values(method["target_values"], policy.said("method", "target_values")),
        more=criteria,
    )


def guide_of_method(method: str, how: str, column: str | None) -> str | None:
    """Return what guides the groups of a method, given what was asked for; None for methods that nothing guides."""
    if method not in GUIDED:
        return None
    if column is not None:
        return "column"
    return "labels" if method == "workload-aware" else how


def hierarchy_files(
    given: str | Mapping[str, str], quasi_identifiers: Sequence[str], where: str, folder: Path = Path()
) -> dict[str, Path]:
    """Return the hierarchy file of each column that has one.

    Parameters
    ----------
    given : str or mapping
        Column to file; or a folder, whose files are called like the columns: ``age.csv``, or ``..._age.csv``.
    quasi_identifiers : sequence of str
    where : str
        What messages call the setting.
    folder : Path
        What paths are relative to.
    """
    if isinstance(given, Mapping):
        files = {name: folder / file for name, file in given.items()}
    else:
        files = _files_of_folder(folder / given, quasi_identifiers, where)
    for name, file in files.items():
        if not file.is_file():
            raise ParameterError(
                f"{where}: there is no file {str(file)!r} for the column {name!r}. Expected a text file with one line "
                "per value: the value, then its coarser labels up to *. Check the path."
            )
        if name not in quasi_identifiers:
            raise ParameterError(
                f"{where} names the column {name!r}, which is not a quasi-identifier: expected columns that are "
                "rewritten. Make it a quasi-identifier, or leave its hierarchy out."
            )
    return files


def _files_of_folder(folder: Path, quasi_identifiers: Sequence[str], where: str) -> dict[str, Path]:
    if not folder.is_dir():
        raise ParameterError(
            f"{where}: there is no folder {str(folder)!r}. Expected a folder of files called like the columns, such as "
            "age.csv, or one COLUMN=FILE per column."
        )
    files: dict[str, Path] = {}
    for name in quasi_identifiers:
        found = [path for path in sorted(folder.iterdir()) if path.is_file() and path.stem == name]
        found = found or [
            path for path in sorted(folder.iterdir()) if path.is_file() and path.stem.endswith(f"_{name}")
        ]
        if len(found) > 1:
            raise ParameterError(
                f"{where}: the folder has {len(found)} files for the column {name!r}: expected one. Name the file "
                f"itself, as {name}=FILE."
            )
        if found:
            files[name] = found[0]
    if not files:
        raise ParameterError(
            f"{where}: no file in {str(folder)!r} is called like a quasi-identifier: expected names such as "
            f"{quasi_identifiers[0]}.csv. Rename the files, or name them as COLUMN=FILE."
        )
    return files


def rewritten_columns(anonymizer: Any) -> list[str]:
    """Return the quasi-identifiers by the names that they are released with."""
    names = anonymizer.schema_.quasi_identifiers
    partition = getattr(anonymizer, "partition_", None)  # full-domain levels are no partition
    return list(names) if partition is None else list(partition.output_names(names))


def recoding_of(anonymizer: Any) -> Any:
    """Return a function that rewrites records the way the fitted ones were, whatever other columns they have."""
    partition = getattr(anonymizer, "partition_", None)
    return partial(_at_levels, anonymizer) if partition is None else partition.transform


def _at_levels(anonymizer: Any, table: Any) -> Any:
    from sfumato.frames import read_table

    read = read_table(table, categorical=anonymizer.schema_.categorical_features)
    return anonymizer._rewrite(read, anonymizer.levels_, None)


def partition_document(
    anonymizer: Any, *, k: int, unit: str | None, keep: list[str], style: CsvStyle | None
) -> dict[str, Any]:
    """Return the partition with what 'sfumato apply' needs to read a later file the same way."""
    types = {} if style is None else {name: str(given) for name, given in style.types.items()}
    document: dict[str, Any] = anonymizer.partition_.to_dict()
    return document | {"file": {"k": k, "unit": unit, "keep": keep, "types": types}}
