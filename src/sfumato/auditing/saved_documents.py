# SPDX-License-Identifier: Apache-2.0
"""Saved partitions and generalizations, with the notes that the commands write beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.documents import MapOf, check_shape, is_count, is_text, or_none, parse_json, read_document
from sfumato.errors import InputError, ParameterError, named

if TYPE_CHECKING:
    from sfumato.files.csv_reading import GivenType

_NOTES = {"k?": or_none(is_count), "unit?": or_none(is_text), "keep?": [is_text], "types?": MapOf(is_text)}
"""What ``sfumato anonymize`` and ``sfumato minimize`` note about the file that they read."""


@dataclass(frozen=True)
class SavedPartition:
    """A partition read from a file, and the notes beside it."""

    partition: Any
    k: int | None = None
    unit: str | None = None
    keep: tuple[str, ...] = ()
    types: Mapping[str, GivenType] = field(default_factory=dict)


@dataclass(frozen=True)
class SavedGeneralization:
    """A generalization read from a file, and the notes beside it."""

    generalization: Any
    types: Mapping[str, GivenType] = field(default_factory=dict)


def load_partition(path: Path) -> SavedPartition:
    """Read a partition, with or without notes beside it."""
    from sfumato.anonymize import Partition

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {what}. Expected a partition that 'sfumato anonymize --save' wrote.")
    document = read_document(path, "a partition", "sfumato anonymize --save")
    partition = Partition.from_dict(document)
    check_shape(document, {"file?": _NOTES}, "a partition document", "sfumato anonymize --save")
    texts = [
        column.name
        for column in partition.columns
        if column.kind == "category" and column.name not in partition.categorical
    ]
    notes = document.get("file", {})
    types = _types(texts, notes)
    return SavedPartition(partition, notes.get("k"), notes.get("unit"), tuple(notes.get("keep", ())), types)


def is_generalization(path: Path) -> bool:
    """Return True if a file is the document of a generalization; False for a file that cannot be read, too."""
    from sfumato.generalization.document import FORMAT

    try:
        document = parse_json(path.read_bytes(), "sfumato")
    except (OSError, InputError):
        return False
    return document.get("format") == FORMAT


def load_generalization(path: Path) -> SavedGeneralization:
    """Read a generalization, with or without notes beside it."""
    from sfumato.generalization import CategoryAttribute, Generalization

    document = parse_json(path.read_bytes(), "sfumato minimize")
    generalization = Generalization.from_dict(document)
    texts = [
        attribute.name
        for attribute in generalization.attributes
        if isinstance(attribute, CategoryAttribute) and attribute.value_type == "text" and attribute.categories
    ]
    check_shape(document, {"file?": {"types?": _NOTES["types?"]}}, "a generalization", "sfumato minimize")
    return SavedGeneralization(generalization, _types(texts, document.get("file", {})))


def _types(texts: Sequence[str], notes: Mapping[str, Any]) -> dict[str, GivenType]:
    """Return the types of columns: those noted, and text for the others that were text.

    A file of few records may not show that codes have leading zeros.
    """
    from sfumato.files.csv_columns import parse_type
    from sfumato.files.csv_reading import GivenType

    noted = {name: parse_type(name, text) for name, text in notes.get("types", {}).items()}
    return {name: GivenType("text") for name in texts} | noted


def check_promises(saved: SavedPartition) -> None:
    """Raise ParameterError for a partition whose promises a release of new records cannot keep.

    Only criteria that were saved as data count as promises: sentences are for people.
    """
    partition = saved.partition
    if not partition.criteria:
        raise ParameterError(
            f"{named('release')} with a partition that was saved without its criteria, by an earlier version: expected "
            "one whose promises are known. Save it again, or release in Python, with the anonymizer that made it."
        )
    promised = list(zip(partition.criteria, partition.guarantees, strict=True))
    others = [text for criterion, text in promised if criterion["name"] != "k-anonymity"]
    if others:
        raise ParameterError(
            f"{named('release')} with a partition that promises more than numbers of records and persons: "
            f"{'; '.join(others)}. Expected a partition that promises k alone. Release in Python, with the anonymizer "
            "that made it."
        )
    persons = [text for criterion, text in promised if criterion.get("unit") is not None]
    if persons and saved.unit is None:
        raise ParameterError(
            f"{named('release')} with a partition that promises that {persons[0]}, but does not name the column that "
            f"identifies the person of a record. Pass {named('unit')}."
        )
