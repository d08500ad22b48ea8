# SPDX-License-Identifier: Apache-2.0
"""The generalization: one bucket for every value of every attribute, applied to frames and written as a document."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import check_choice
from sfumato.coded_columns import CodedColumn
from sfumato.columns import GroupedLabels, GroupedValues
from sfumato.documents import check_shape, parse_json, read_document, write_document
from sfumato.errors import InputError, ParameterError
from sfumato.fingerprints import Fingerprints, save_beside
from sfumato.frames import Table, read_table
from sfumato.generalization.attributes import Attribute, CategoryAttribute
from sfumato.generalization.description import Description, describe_attributes
from sfumato.generalization.document import (
    FORMAT,
    SHAPE,
    VERSION,
    attributes_from_list,
    attributes_to_list,
    fingerprint_of,
)

if TYPE_CHECKING:
    from sfumato.generalization.export.texts import Language, Reason
    from sfumato.generalization.questions import NextQuestion

Output = Literal["codes", "labels", "representatives"]
ExportOutput = Literal["labels", "codes"]
DialectName = Literal["postgresql", "duckdb", "spark"]
OUTPUTS: tuple[Output, ...] = ("codes", "labels", "representatives")


@dataclass(frozen=True)
class Generalization:
    """The buckets in which each attribute is collected: global, single-dimensional and strict.

    Made by the minimizers, or by :func:`generalization_from_bins`.

    Attributes
    ----------
    attributes : tuple of OrderedAttribute or CategoryAttribute
        One per column; every value of a column has exactly one bucket, wherever the record stands.
    minimizer : str
        The minimizer that made it.
    parameters : dict
        The minimizer's parameters.
    fingerprints : Fingerprints or None
        Of the records it was learned and chosen on, for their owner: never part of the document, and not pickled.

    Notes
    -----
    A generalization learned from people is data about people. It holds thresholds rounded to few digits, open outer
    buckets, the categories that at least ``floor`` records had (10 by default), one value per bucket and shares in
    hundredths where a bucket has enough records; no counts, no rare category, and no outermost value of a few persons.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import UniformMinimizer
    >>> people = pa.table({"age": [20, 35, 50, 65] * 20, "sex": ["f", "m"] * 40})
    >>> collected = UniformMinimizer(2, random_state=1).fit(people).generalization_
    >>> collected.names, collected.n_buckets
    (('age', 'sex'), (2, 2))
    >>> collected.transform(people.slice(0, 2), output="labels").to_pylist()
    [{'age': '40 and under', 'sex': 'f'}, {'age': '40 and under', 'sex': 'm'}]
    """

    attributes: tuple[Attribute, ...]
    minimizer: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    fingerprints: Fingerprints | None = field(default=None, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}

    @property
    def n_buckets(self) -> tuple[int, ...]:
        """Number of buckets of every attribute; 1 means that it need not be collected."""
        return tuple(attribute.n_buckets for attribute in self.attributes)

    def attribute(self, name: str) -> Attribute:
        """Return an attribute by its name."""
        if name in self._by_name:
            return self._by_name[name]
        raise ParameterError(
            f"the generalization has no attribute {name!r}: expected one of its {len(self.attributes)} attributes, "
            f"such as {', '.join(map(repr, self.names[:5]))}."
        )

    # -- applying it -----------------------------------------------------------------------------------------

    def codes(self, X: Any) -> NDArray[np.int32]:
        """Return the bucket of every value: an array with a row per record and a column per attribute.

        Attributes that need not be collected may be absent from the frame.
        """
        return self._codes(self._read(X))

    def buckets_of(self, column: CodedColumn) -> NDArray[np.int32]:
        """Return the bucket of every fine code of a coded column, by the value that stands for the code."""
        return self.attribute(column.name).buckets_of(column)

    def transform(self, X: Any, output: Output = "codes") -> Any:
        """Replace every value by its bucket.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array-like of shape (n_records, n_columns)
            The records. Columns that are not attributes are unchanged.
        output : {"codes", "labels", "representatives"}, default="codes"
            Numbers of buckets, readable labels, or one value per bucket in the column's own type; the bucket "other"
            of rare categories becomes missing.

        Returns
        -------
        frame
            A frame of the same kind.
        """
        check_choice("output", output, OUTPUTS)
        table = self._read(X)
        codes = self._codes(table)
        new: dict[str, GroupedLabels | GroupedValues] = {}
        for attribute, buckets in zip(self.attributes, codes.T, strict=True):
            if attribute.name not in table.names:
                continue
            if output == "codes":
                new[attribute.name] = GroupedLabels(np.arange(attribute.n_buckets, dtype=np.int32), buckets)
            elif output == "labels":
                new[attribute.name] = GroupedLabels(attribute.labels, buckets)
            else:
                new[attribute.name] = _representatives(attribute, buckets)
        return table.replaced(new)

    def transform_batches(self, batches: Iterable[Any], output: Output = "codes") -> Iterator[Any]:
        """Transform a stream of frames, one at a time; pyarrow record batches too. Empty batches are left out."""
        import pyarrow as pa

        for batch in batches:
            if len(batch) == 0:
                continue
            if isinstance(batch, pa.RecordBatch):
                table = self.transform(pa.Table.from_batches([batch]), output)
                yield table.combine_chunks().to_batches()[0]
            else:
                yield self.transform(batch, output)

    def coarsened(self, buckets: Mapping[str, Sequence[int]]) -> Generalization:
        """Return a coarser generalization: first this one, then buckets of its buckets.

        Parameters
        ----------
        buckets : mapping of str to sequence of int
            For some attributes, the new bucket of every bucket. Ordered attributes join neighbors only.
        """
        for name in buckets:
            self.attribute(name)
        merged = tuple(a.merged(buckets[a.name]) if a.name in buckets else a for a in self.attributes)
        return Generalization(merged, self.minimizer, self.parameters, self.fingerprints)

    def _read(self, X: Any) -> Table:
        table = read_table(X)
        absent = [a.name for a in self.attributes if a.is_collected and a.name not in table.names]
        if absent:
            raise InputError(
                f"the table lacks {len(absent)} of the {len(self.attributes)} attributes of the generalization: "
                f"{', '.join(map(repr, absent[:5]))}. Expected the columns it was made from. Add them."
            )
        numbers = [
            a.name
            for a in self.attributes
            if isinstance(a, CategoryAttribute) and a.value_type == "number" and a.name in table.names
        ]
        return table.with_categorical(numbers) if numbers else table

    def _codes(self, table: Table) -> NDArray[np.int32]:
        codes = np.zeros((table.n_records, len(self.attributes)), np.int32, order="F")
        for place, attribute in enumerate(self.attributes):
            if attribute.is_collected:
                codes[:, place] = attribute.encode(table.column(attribute.name))
        return codes

    def ask(self, answers: Mapping[str, Any], model: Any, **options: Any) -> NextQuestion:
        """Return what a person must still be asked before a model can decide; see :class:`Questionnaire`.

        Parameters
        ----------
        answers : mapping of str to object
            The answers so far, by attribute: the label of a bucket, or a value; None for no answer.
        model : classifier or pipeline
            Fitted on what `transform` gives.
        **options
            As for :class:`Questionnaire`, which is quicker if many people are asked.

        Returns
        -------
        NextQuestion
            The attribute to ask next and its choices, or the decision if no answer can change it any more.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sfumato import PrivacyAwareTree
        >>> age, hours = np.tile(np.arange(20, 80), 10), np.repeat(np.arange(10), 60)
        >>> X, y = np.column_stack([age, hours]), (age >= 50) & (hours > 1)
        >>> generalization = PrivacyAwareTree(alpha=0, min_samples_leaf=20).fit(X, y).generalization_
        >>> model = LogisticRegression().fit(generalization.codes(X), y)
        >>> generalization.ask({}, model).attribute
        'x0'
        >>> generalization.ask({"x0": "49 and under"}, model).decision
        False
        """
        from sfumato.generalization.questions import Questionnaire

        return Questionnaire(self, model, **options).ask(answers)

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()

    def describe(self) -> Description:
        """Return a table with the buckets of every attribute before and after, and a plain sentence each."""
        return describe_attributes(self.attributes)

    # -- the document ----------------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the attributes: generalizations with the same fingerprint give the same buckets."""
        return fingerprint_of(attributes_to_list(self.attributes))

    def to_dict(self) -> dict[str, Any]:
        """Return the generalization as plain lists, dicts, numbers and text."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "minimizer": self.minimizer,
            "parameters": self.parameters,
            "attributes": attributes_to_list(self.attributes),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Generalization:
        """Rebuild a generalization from `to_dict`'s document; raise InputError if it was changed."""
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise InputError(
                f"a document with format {document.get('format')!r} and version {document.get('version')!r}: expected "
                f"{FORMAT!r} and {VERSION}. Write the generalization again with this version of sfumato."
            )
        check_shape(document, SHAPE, "a generalization", "Generalization.to_json")
        attributes = attributes_from_list(document["attributes"])
        made = cls(attributes, document.get("minimizer") or "", dict(document.get("parameters") or {}))
        if document.get("fingerprint") != made.fingerprint:
            raise InputError(
                "a generalization whose attributes do not match its fingerprint: expected the document as it was "
                "written. It was changed or damaged since; get it again from where it comes from."
            )
        return made

    def to_json(self, *, indent: int | None = 1) -> str:
        """Return the generalization as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Generalization:
        """Read a generalization that `to_json` wrote."""
        return cls.from_dict(parse_json(text, "Generalization.to_json"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the generalization as a JSON file; a file of that name is replaced only when all is written.

        Beside ``generalization.json``, the file ``generalization.fingerprints`` gets the fingerprints of the records it
        was learned on. It is the owner's: do not hand it on.
        """
        write_document(self.to_dict(), path)
        save_beside(self.fingerprints, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Generalization:
        """Read a generalization that `save` wrote, and the fingerprints of its records if they are beside it."""
        made = cls.from_dict(read_document(path, "a generalization", "Generalization.save"))
        return replace(made, fingerprints=Fingerprints.load(path))

    # -- exports ---------------------------------------------------------------------------------------------

    def to_sql(
        self, dialect: DialectName = "postgresql", *, table: str | None = None, output: ExportOutput = "labels"
    ) -> str:
        """Return SQL that gives the buckets: a query over `table`, or its list of columns where none is named.

        Parameters
        ----------
        dialect : {"postgresql", "duckdb", "spark"}, default="postgresql"
        table : str, optional
            The table to read; a dot separates schema and table.
        output : {"labels", "codes"}, default="labels"
        """
        from sfumato.generalization.export.sql import select_statement

        return select_statement(self.attributes, dialect, table=table, output=output)

    def to_polars(self, output: ExportOutput = "labels") -> list[Any]:
        """Return polars expressions, for ``frame.with_columns(...)`` on eager and lazy frames."""
        from sfumato.generalization.export.polars import polars_expressions

        return polars_expressions(self.attributes, output)

    def to_json_schema(self, output: ExportOutput = "labels", *, is_partial: bool = False) -> dict[str, Any]:
        """Return the JSON Schema of a minimized record, which has buckets and nothing else.

        Parameters
        ----------
        output : {"labels", "codes"}, default="labels"
        is_partial : bool, default=False
            Whether attributes may be absent, since people are not asked what cannot change a decision.
        """
        from sfumato.generalization.export.json_schema import record_schema

        return record_schema(self.attributes, self.fingerprint, output, is_partial=is_partial)

    def to_javascript(self, model: Any = None, **options: Any) -> str:
        """Return a JavaScript function without dependencies that turns a record into buckets.

        Parameters
        ----------
        model : classifier or pipeline, optional
            A linear model or a decision tree: the script then also says what a person must still be asked, by
            ``questions.next(answers)``. The model's weights, or the boxes and classes of its leaves, are in it.
        **options
            As for :class:`Questionnaire`.
        """
        from sfumato.generalization.export.javascript import javascript_source

        return javascript_source(self.attributes, self.fingerprint) + self._questions(model, options)

    def to_form(
        self,
        *,
        title: str | None = None,
        action: str | None = None,
        titles: Mapping[str, str] | None = None,
        labels: Mapping[str, Mapping[Any, str]] | None = None,
        reasons: Mapping[str, Reason] | None = None,
        language: Language = "en",
        model: Any = None,
        **options: Any,
    ) -> str:
        """Return a web page, in one file, that asks for buckets and can find the bucket of a typed value.

        Every question has the choice "Rather not say", which gives what a missing value gives.

        Parameters
        ----------
        title : str, optional
            Title of the page.
        action : str, optional
            URL to send the buckets to. None: the page shows the minimized record and sends nothing.
        titles : mapping of str to str, optional
            Titles of the questions, by attribute: ``{"AGEP": "Age in years"}``.
        labels : mapping of str to mapping, optional
            Words for categories, by attribute: ``{"SEX": {1: "male", 2: "female"}}``. What is sent stays the same.
        reasons : mapping of str to Reason, optional
            Why each attribute is asked, as ``AttributeCosts.reasons`` gives it.
        language : {"en", "de"}, default="en"
        model : classifier or pipeline, optional
            A linear model or a decision tree: questions then come one by one, and end when no answer can change its
            decision any more. What was not asked is not sent.
        **options
            As for :class:`Questionnaire`.
        """
        from sfumato.generalization.export.form import form_page

        wording = self._wording(language, titles, labels, reasons)
        questions = self._questions(model, options)
        return form_page(self.attributes, self.fingerprint, wording, title=title, action=action, questions=questions)

    def to_preview(
        self,
        *,
        title: str | None = None,
        titles: Mapping[str, str] | None = None,
        labels: Mapping[str, Mapping[Any, str]] | None = None,
        reasons: Mapping[str, Reason] | None = None,
        language: Language = "en",
        is_personal: bool = False,
    ) -> str:
        """Return a web page, in one file, that shows a person what will be asked and why, and what will not.

        Parameters
        ----------
        title, titles, labels, reasons, language
            As for `to_form`.
        is_personal : bool, default=False
            Whether questions end early where the decision of a model is settled, as with the `model` of `to_form`.
        """
        from sfumato.generalization.export.preview import preview_page

        wording = self._wording(language, titles, labels, reasons)
        return preview_page(self.attributes, self.fingerprint, wording, title=title, is_personal=is_personal)

    def _wording(self, language: Any, titles: Any, labels: Any, reasons: Any) -> Any:
        from sfumato.generalization.export.wording import Wording

        return Wording.of(self.attributes, language, titles, labels, reasons)

    def _questions(self, model: Any, options: Mapping[str, Any]) -> str:
        if model is None:
            return ""
        from sfumato.generalization.export.questions import questions_source
        from sfumato.generalization.questions import Questionnaire

        return questions_source(Questionnaire(self, model, **options))


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it: numpy's numbers as Python's, objects by the name of their type."""
    if hasattr(value, "item") and not isinstance(value, np.ndarray):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(part) for key, part in value.items()}
    if isinstance(value, Sequence | np.ndarray | set | frozenset) and not isinstance(value, bytes):
        return [json_value(part) for part in value]
    return type(value).__name__


def _representatives(attribute: Attribute, buckets: NDArray[np.int32]) -> GroupedValues:
    values = [bucket.representative for bucket in attribute.buckets]
    missing = np.array([value is None for value in values], np.bool_)
    if isinstance(attribute, CategoryAttribute):
        listed = list(dict.fromkeys(value for value in values if value is not None))
        categories = np.empty(len(listed), object)
        categories[:] = listed
        indexes = np.array([0 if value is None else listed.index(value) for value in values], np.int32)
        return GroupedValues(indexes, missing, buckets, categories, replaces_categories=True)
    dtype = np.float64 if attribute.is_real else np.int64
    numbers = np.array([0 if value is None else value for value in values], dtype)
    return GroupedValues(numbers, missing, buckets, moment=attribute.moment)
