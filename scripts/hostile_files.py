# SPDX-License-Identifier: Apache-2.0
"""Cases of the hostile campaign that use sfumato as a library: Parquet files, saved partitions, anatomies."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import hostile_judge as judge
from hostile_cases import Found, chance, pick
from hostile_library import LibraryCase


def parquet(found: Found, random: np.random.Generator) -> None:
    """Release a Parquet file into a Parquet file, and compare it with the same in memory."""
    import pyarrow.parquet as pq

    import sfumato
    from sfumato.parquet import fit_transform as anonymize_file

    case = LibraryCase(found, random, library="pyarrow", with_row=True)
    guide = pick(random, (random.choice(["no", "yes"], case.table.n_records), random.normal(size=case.table.n_records)))
    case.frame = case.frame.append_column("guess", [guide])
    anonymizer = case.make()
    if anonymizer is None:
        return
    if chance(random, 0.95):
        if isinstance(anonymizer, sfumato.FullDomainAnonymizer | sfumato.HilbertAnonymizer):
            anonymizer = sfumato.MondrianAnonymizer(
                case.k, criteria=anonymizer.criteria, quasi_identifiers=case.roles.quasi
            )
        anonymizer.set_params(suppression_limit=0.0, hierarchies=None, quasi_identifiers=case.roles.quasi)
        anonymizer.set_params(keep=[case.roles.row], identifiers=case.roles.dropped)
        if isinstance(anonymizer, sfumato.MondrianAnonymizer):
            anonymizer.set_params(rule="median", strict=True)
    case.anonymizer, in_memory = anonymizer, copy.deepcopy(anonymizer)
    where = f"parquet {case.where}"
    with tempfile.TemporaryDirectory() as folder, found.careful(where, case.cells):
        source, destination = Path(folder, "people.parquet"), Path(folder, "released.parquet")
        is_mondrian = isinstance(anonymizer, sfumato.MondrianAnonymizer)
        if is_mondrian:
            case.frame = case.frame.drop_columns(["guess"])
        pq.write_table(case.frame, source, row_group_size=pick(random, (None, None, 7, 100)))
        # Types as the file has them: Parquet turns some into others.
        case.frame = pq.read_table(source)
        case.original, case.types = judge.columns_of(case.frame), judge.types_of(case.frame)
        anonymize_file(anonymizer, source, destination, guide_column=None if is_mondrian else "guess")
        written = pq.read_table(destination)
        case.judge_frame(written, None, list(range(case.table.n_records)), where)
        if judge.is_in_order(judge.columns_of(written)[str(case.roles.row)]):
            found.broken("order", ["the records are in the order of the input"], where)
        if not isinstance(anonymizer, sfumato.RPlusTreeAnonymizer):
            seen = case.frame if is_mondrian else case.frame.drop_columns(["guess"])
            expected = in_memory.fit_transform(seen, None if is_mondrian else guide)
            if _as_set(expected) != _as_set(written.select(expected.column_names)):
                found.broken("parquet", ["the file has other records than the same table in memory"], where)
        _judge_document(found, json.dumps(anonymizer.partition_.to_dict()), case, where)


def _as_set(table: Any) -> list[str]:
    return sorted(map(repr, zip(*judge.columns_of(table).values(), strict=True)))


def _judge_document(found: Found, document: str, case: LibraryCase, where: str) -> None:
    """A saved partition names no value that fewer than k records have."""
    quasi = {name: case.original[name] for name in case.roles.quasi}
    found.counts["documents"] += bool(document)
    found.broken("documents", judge.told(document, judge.canaries(quasi, case.k)), f"document of {where}")


def documents(found: Found, random: np.random.Generator) -> None:
    """Save a partition of a table with canaries, load it again, and use it on other records."""
    from sfumato import Partition

    case = LibraryCase(found, random)
    anonymizer = case.make()
    if anonymizer is None:
        return
    where = f"document {case.where}"
    with found.careful(where, case.cells):
        anonymizer.set_params(suppression_limit=0.0)
        released = anonymizer.fit_transform(case.frame, case.y)
        case.judge_frame(released, None, list(range(case.table.n_records)), where)
        if not isinstance(getattr(anonymizer, "partition_", None), Partition):
            return
        document = json.dumps(anonymizer.partition_.to_dict())
        _judge_document(found, document, case, where)
        again = Partition.from_dict(json.loads(document)).transform(case.frame)
        # Rare categories are not named; with persons, those count as rare that few persons may have.
        is_exact = case.roles.person is None and not judge.has_rare(case.original, case.roles.quasi, case.k)
        if is_exact and judge.columns_of(again) != judge.columns_of(released):
            found.broken("documents", ["a loaded partition gives other values"], where)


def anatomy(found: Found, random: np.random.Generator) -> None:
    """Divide a table in two, in memory or through Parquet files."""
    import pyarrow.parquet as pq

    from sfumato import Anatomizer
    from sfumato.parquet import anatomize

    through_files = chance(random, 0.3)
    case = LibraryCase(found, random, library="pyarrow" if through_files else None)
    sensitive = [case.roles.sensitive or pick(random, case.roles.quasi)]
    if len(case.roles.quasi) > 2 and chance(random, 0.3):
        sensitive = list(dict.fromkeys([*sensitive, case.roles.quasi[0]]))
    l = int(random.integers(2, 5))  # noqa: E741
    settings: dict[str, Any] = {
        "suppression_limit": float(pick(random, (0.0, 0.1, 0.5, 1.0))),
        "assignment": pick(random, ("largest", "random")),
        "identifiers": case.roles.dropped or None,
    }
    if chance(random, 0.8):  # else columns that seem to name people are refused
        settings["keep"] = [name for name in case.original if name not in (*sensitive, *case.roles.dropped)]
    where = f"anatomy {case.library} l={l} {settings['assignment']}"
    with tempfile.TemporaryDirectory() as folder, found.careful(where, case.cells):
        anatomizer = Anatomizer(l, sensitive=sensitive, **settings)
        if through_files:
            pq.write_table(case.frame, Path(folder, "people.parquet"))
            made = anatomize(anatomizer, Path(folder, "people.parquet"), Path(folder, "shared"))
            parts = [judge.read_file(made.path / f"{part}.parquet") for part in ("identifying", "sensitive")]
            n_suppressed = made.n_suppressed
        else:
            divided = anatomizer.fit_transform(case.frame)
            parts = [judge.columns_of(divided.identifying), judge.columns_of(divided.sensitive)]
            n_suppressed = divided.n_suppressed
        found.releases += 1
        parts = [
            {name if at < len(part) - 1 else "group": part[name] for at, name in enumerate(part)} for part in parts
        ]
        found.broken("guarantee", judge.breaks_anatomy(*parts, "group", l), where)
        if len(parts[0]["group"]) != case.table.n_records - n_suppressed:
            found.broken("rows", ["the number of records left out is wrong"], where)
        if n_suppressed > settings["suppression_limit"] * case.table.n_records:
            found.broken("guarantee", [f"{n_suppressed} records left out"], where)
        if case.roles.row in parts[0] and case.library != "numpy" and judge.is_in_order(parts[0][case.roles.row]):
            found.broken("order", ["the rows are in the order of the input"], where)
    case.judge_untouched(where)


KINDS = {"parquet": (parquet, 10), "document": (documents, 8), "anatomy": (anatomy, 10)}
