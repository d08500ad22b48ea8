# SPDX-License-Identifier: Apache-2.0
"""The plain document of a generalization, which clients read to apply it; it has a version and a fingerprint."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.documents import is_count, is_flag, is_number, is_plain, is_text, is_whole, one_of, or_none
from sfumato.errors import InputError
from sfumato.generalization.attributes import Attribute, Bucket, CategoryAttribute, OrderedAttribute

FORMAT = "sfumato-generalization"
VERSION = 1

_BUCKET = {
    "label": is_text,
    "representative": or_none(is_plain),
    "share": or_none(is_number),
    "at_most?": or_none(lambda value: is_number(value) or _is_digits(value)),
    "categories?": [is_plain],
}
_ATTRIBUTE = {
    "name": is_text,
    "kind": one_of("number", "moment", "category"),
    "moment?": one_of(None, "date", "datetime", "duration", "time"),
    "is_zoned?": is_flag,
    "is_real?": is_flag,
    "is_whole?": is_flag,
    "values?": one_of("text", "boolean", "number"),
    "order?": [is_count],
    "unseen?": is_count,
    "missing": is_count,
    "missing_was_seen": is_flag,
    "n_before": is_count,
    "buckets": [_BUCKET],
}
SHAPE = {
    "attributes": [_ATTRIBUTE],
    "minimizer?": or_none(is_text),
    "parameters?": or_none(lambda value: isinstance(value, Mapping)),
}
"""Shape of a document; whether its parts fit together is checked when attributes are made."""

_EXACT = 2**53  # beyond it, integers are written as text: many readers of JSON have floats only
_UNITS = {
    "date": "microseconds since 1970-01-01",
    "datetime": "microseconds since 1970-01-01T00:00:00, in UTC where there is a time zone",
    "duration": "microseconds",
    "time": "microseconds since midnight",
}


def attributes_to_list(attributes: Sequence[Attribute]) -> list[dict[str, Any]]:
    """Return attributes as plain lists, dicts, numbers and text."""
    return [_to_dict(attribute) for attribute in attributes]


def attributes_from_list(documents: Sequence[Mapping[str, Any]]) -> tuple[Attribute, ...]:
    """Rebuild attributes; a document that is not strict is refused."""
    try:
        attributes = tuple(_from_dict(document) for document in documents)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise InputError(
            f"a generalization with parts that are absent or not of their kind ({type(error).__name__}): expected what "
            "Generalization.to_json wrote. Write it again."
        ) from error
    if len({attribute.name for attribute in attributes}) != len(attributes):
        raise InputError(
            "a generalization that names an attribute twice: expected every name once. Write the document again."
        )
    return attributes


def fingerprint_of(attributes: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of the attributes in canonical form: equal fingerprints, equal buckets."""
    content = {"format": FORMAT, "version": VERSION, "attributes": attributes}
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _to_dict(attribute: Attribute) -> dict[str, Any]:
    document: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind}
    buckets = [
        {"label": label, "representative": _number_out(bucket.representative), "share": bucket.share}
        for label, bucket in zip(attribute.labels, attribute.buckets, strict=True)
    ]
    if isinstance(attribute, OrderedAttribute):
        if attribute.moment is not None:
            document |= {"moment": attribute.moment, "unit": _UNITS[attribute.moment], "is_zoned": attribute.is_zoned}
        else:
            document |= {"is_real": attribute.is_real, "is_whole": attribute.is_whole}
        for place, bucket in enumerate(buckets[: attribute.n_value_buckets]):
            bucket["at_most"] = _number_out(attribute.cuts[place]) if place < len(attribute.cuts) else None
    else:
        document["values"] = attribute.value_type
        for bucket, members in zip(buckets, attribute.members, strict=False):
            bucket["categories"] = [_number_out(value) for value in members]
        document["order"] = list(_order(attribute))
        document["unseen"] = attribute.unseen
    document |= {"missing": attribute.missing, "missing_was_seen": attribute.saw_missing}
    return document | {"n_before": attribute.n_before, "buckets": buckets}


def _order(attribute: CategoryAttribute) -> list[int]:
    """Return the place of every category, bucket by bucket, in the order of the attribute."""
    place = {value: position for position, value in enumerate(attribute.categories)}
    return [place[value] for members in attribute.members for value in members]


def _from_dict(document: Mapping[str, Any]) -> Attribute:
    name, kind = document["name"], document["kind"]
    given = document["buckets"]
    missing, saw_missing = int(document["missing"]), bool(document["missing_was_seen"])
    n_before = int(document["n_before"])
    attribute: Attribute
    if kind == "category":
        listed = [
            [_number_in(value, document["values"]) for value in b["categories"]] for b in given if "categories" in b
        ]
        flat = [(value, bucket) for bucket, members in enumerate(listed) for value in members]
        by_place = sorted(zip(document["order"], flat, strict=True), key=lambda pair: pair[0])
        buckets = tuple(Bucket(_number_in(b["representative"], document["values"]), b["share"]) for b in given)
        attribute = CategoryAttribute(
            name,
            tuple(value for _, (value, _) in by_place),
            tuple(bucket for _, (_, bucket) in by_place),
            missing,
            int(document["unseen"]),
            saw_missing,
            buckets,
            n_before,
        )
        _check(len(set(attribute.categories)) == len(attribute.categories), name, "a category in two buckets")
        kinds = {"text": str, "boolean": bool}.get(document["values"], int | float)
        told = [value for value in (*attribute.categories, *(b.representative for b in buckets)) if value is not None]
        _check(all(isinstance(value, kinds) for value in told), name, "categories of several kinds")
        _check(sorted(document["order"]) == list(range(len(flat))), name, "categories without an order")
        _check(0 <= attribute.unseen < len(given), name, "no bucket for unseen values")
    else:
        is_real = bool(document.get("is_real", False))
        number = "real" if is_real else "number"
        cuts = [_number_in(b["at_most"], number) for b in given if b.get("at_most") is not None]
        attribute = OrderedAttribute(
            name,
            kind,
            tuple(cuts),
            missing,
            saw_missing,
            tuple(Bucket(_number_in(b["representative"], number), b["share"]) for b in given),
            n_before,
            document.get("moment"),
            bool(document.get("is_zoned", False)),
            is_real,
            bool(document.get("is_whole", False)),
        )
        _check((kind == "moment") == (attribute.moment is not None), name, "moments of no kind")
        _check(all(is_real or isinstance(cut, int) for cut in cuts), name, "thresholds that are not whole")
        told = [bucket.representative for bucket in attribute.buckets if bucket.representative is not None]
        _check(all(isinstance(value, float if is_real else int) for value in told), name, "values of another kind")
        _check(all(low < high for low, high in itertools.pairwise(cuts)), name, "thresholds that do not rise")
        _check(given[len(cuts)].get("at_most", 0) is None, name, "no open last bucket")
    _check(0 <= missing < len(given), name, "no bucket for missing values")
    _check(len(given) - attribute.n_value_buckets in (0, 1), name, "buckets without values")
    _check(not attribute.has_missing_bucket or missing == len(given) - 1, name, "a bucket without values")
    return attribute


def _check(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise InputError(
            f"a generalization whose attribute {name!r} has {what}: expected exactly one bucket for every value. Write "
            "the document again with Generalization.to_json."
        )


def _number_out(value: Any) -> Any:
    is_large = isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT
    return str(value) if is_large else value


def _number_in(value: Any, kind: str) -> Any:
    if value is None or kind in ("text", "boolean"):
        return value
    if isinstance(value, bool) or (isinstance(value, str) and not _is_digits(value)):
        raise TypeError("not a number")
    if isinstance(value, str):
        value = int(value)
    return float(value) if kind == "real" else value


def _is_digits(value: Any) -> bool:
    """Return True for a whole number as text that 64 bits can hold, as `_number_out` writes large ones."""
    return isinstance(value, str) and re.fullmatch("-?[0-9]{1,19}", value) is not None and is_whole(int(value))
