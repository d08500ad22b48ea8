# SPDX-License-Identifier: Apache-2.0
"""How the values of one CSV column are written: the style that reading finds, and text by that style.

``csv_columns`` fills in the styles, ``csv_writing`` writes by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

TypeName = Literal["text", "integer", "real", "date", "datetime"]


@dataclass(frozen=True)
class GivenType:
    """What ``--types`` says about one column: a type name and, for dates, perhaps a format."""

    name: TypeName
    format: str | None = None


@dataclass(frozen=True, eq=False)
class ColumnStyle:
    """How the values of one column are written.

    Attributes
    ----------
    type : str
        One of the type names.
    quoted : bool
        Whether values are always in quotes; otherwise only those that need it.
    missing : str
        A missing value exactly as it stands in the file, quotes included.
    decimal : str
        The decimal mark.
    decimals : int
        Numbers are written with at least so many places, since all of the input was.
    separator, precision, zone : str, int, str
        Datetimes: what stands between date and time; characters of the longest form; ``"Z"`` or an offset behind it.
    format : str or None
        A given or found date format other than ISO.
    spellings : tuple of (values, texts) or None
        Values that the input writes otherwise than the rules above would, such as ``1e3`` or ``1.10`` beside ``2.5``.
    """

    type: TypeName
    quoted: bool = False
    missing: str = ""
    decimal: str = "."
    decimals: int = 0
    separator: str = " "
    precision: int = 19
    zone: str = ""
    format: str | None = None
    spellings: tuple[Any, Any] | None = None

    def as_given(self) -> GivenType:
        """Return the type to read the column by again, without guessing."""
        return GivenType(self.type, self.format)


def format_values(values: Any, style: ColumnStyle) -> Any:
    """Write distinct values of one column as text, without quotes; the spellings of the input come first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = plain_text(values, style)
    if style.spellings is not None:
        known, spelled = style.spellings
        found = pc.index_in(values, value_set=known.cast(values.type) if known.type != values.type else known)
        text = pc.coalesce(spelled.take(found), text)
    return text.cast(pa.string())


def plain_text(values: Any, style: ColumnStyle) -> Any:
    """Write values by the rules of the style alone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if style.format is not None and pa.types.is_temporal(values.type):
        return pa.array([value and value.strftime(style.format) for value in values.to_pylist()], type=pa.string())
    if pa.types.is_timestamp(values.type):
        if style.zone == "Z" and values.type.tz != "UTC":
            values = values.cast(pa.timestamp(values.type.unit, tz="UTC"))
        full = (pc.local_timestamp(values) if values.type.tz else values).cast(pa.string())
        # A value between two of the input's (a mean) may need seconds where the input has none.
        fits = pc.match_substring_regex(pc.utf8_slice_codeunits(full, style.precision), "^[:.0]*$")
        text = pc.if_else(fits, pc.utf8_slice_codeunits(full, 0, style.precision), full)
        if style.separator != " ":
            text = pc.replace_substring(text, " ", style.separator, max_replacements=1)
        return pc.binary_join_element_wise(text, style.zone, "") if style.zone else text
    text = values.cast(pa.string())
    if pa.types.is_floating(values.type):
        for places in range(style.decimals):
            text = pc.replace_substring_regex(
                text,
                rf"^(-?[0-9]+\.[0-9]{{{places}}})$" if places else r"^(-?[0-9]+)$",
                "\\1" + ("" if places else ".") + "0" * (style.decimals - places),
            )
    if style.decimal == "," and (pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)):
        text = pc.replace_substring(text, ".", ",")
    return text
