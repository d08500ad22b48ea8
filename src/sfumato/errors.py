# SPDX-License-Identifier: Apache-2.0
"""The errors and warnings of sfumato: the given value, the expected one, and a fix.

A sentence names settings by :func:`named`. It reads as Python spells them; the command line and policies spell the
same settings as options and keys, from data and not from the words around them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Around a name inside a text. They are for private use, so that `repr` never leaves them in a value.
_OPEN, _VALUE, _CLOSE = "\ue000", "\ue001", "\ue002"
_MARKED = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_NOT_GIVEN = object()


@dataclass(frozen=True)
class Reference:
    """A setting that a sentence names.

    Attributes
    ----------
    name : str
        The parameter, as the library calls it.
    shown : str or None
        Its value as Python writes it; None where only the setting is named.
    """

    name: str
    shown: str | None = None

    @property
    def value(self) -> Any:
        """The value; of an object that has no literal, what it is shown as."""
        try:
            return None if self.shown is None else ast.literal_eval(self.shown)
        except (ValueError, SyntaxError):
            return self.shown

    def __str__(self) -> str:
        """Return the setting as Python spells it: ``keep``, ``encoding='cp1252'``."""
        return self.name if self.shown is None else f"{self.name}={self.shown}"


Spelling = Callable[[Reference], str]
"""Returns the spelling of a setting by a client."""


def named(name: str, value: Any = _NOT_GIVEN) -> str:
    """Name a setting inside the text of an error, a warning or a `Sentence`.

    Parameters
    ----------
    name : str
        The parameter.
    value : object, optional
        What it is, or should be, set to.

    Examples
    --------
    >>> error = ParameterError(f"{named('k', 1)}: expected at least 2. Raise {named('k')}.")
    >>> str(error)
    'k=1: expected at least 2. Raise k.'
    >>> error.sentence.spelled(lambda setting: f"--{setting.name}")
    '--k: expected at least 2. Raise --k.'
    """
    return f"{_OPEN}{name}{'' if value is _NOT_GIVEN else _VALUE + repr(value)}{_CLOSE}"


class Sentence(str):
    """Text with references to the settings it names. As a str it spells them as Python does.

    Parameters
    ----------
    text : str
        With :func:`named` where it names a setting, or another sentence. ``+`` keeps what both name.
    """

    _marked: str

    def __new__(cls, text: str = "") -> Sentence:
        """Read the marks of `named` off a text."""
        marked = _marks_of(text)
        sentence = super().__new__(cls, _MARKED.sub(lambda found: str(_reference(found)), marked))
        sentence._marked = marked
        return sentence

    @property
    def references(self) -> tuple[Reference, ...]:
        """The settings it names, in their order."""
        return tuple(map(_reference, _MARKED.finditer(self._marked)))

    def spelled(self, spelling: Spelling) -> str:
        """Return the text as a client spells the settings."""
        return _MARKED.sub(lambda found: spelling(_reference(found)), self._marked)

    def __add__(self, other: str) -> Sentence:
        """Append a text."""
        return Sentence(self._marked + _marks_of(other))

    def __radd__(self, other: str) -> Sentence:
        """Prepend a text."""
        return Sentence(_marks_of(other) + self._marked)

    def __reduce__(self) -> tuple[Any, ...]:
        return Sentence, (self._marked,)


def _marks_of(text: str) -> str:
    return text._marked if isinstance(text, Sentence) else text


def _reference(found: re.Match[str]) -> Reference:
    name, is_set, shown = found[1].partition(_VALUE)
    return Reference(name, shown if is_set else None)


class _Worded(Exception):  # noqa: N818 - of warnings, too
    """Base of errors and warnings: one sentence.

    Parameters
    ----------
    sentence : str
        The given value, the expected one and a fix; with :func:`named` for parameters.
    """

    def __init__(self, sentence: str = "") -> None:
        super().__init__(Sentence(sentence))

    @property
    def sentence(self) -> Sentence:
        """The sentence, with its references."""
        return Sentence(self.args[0])

    @property
    def parameter(self) -> str | None:
        """The parameter that it names first; None where it names none."""
        references = self.sentence.references
        return references[0].name if references else None


class SfumatoError(_Worded, ValueError):
    """Base of all errors of sfumato; a ``ValueError``, as scikit-learn expects of estimators.

    Examples
    --------
    >>> import sfumato
    >>> try:
    ...     sfumato.KAnonymity(0)
    ... except sfumato.SfumatoError as error:
    ...     print(type(error).__name__)
    ParameterError
    """


class ParameterError(SfumatoError):
    """A parameter has a value that cannot work.

    Examples
    --------
    >>> import sfumato
    >>> sfumato.KAnonymity(0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    sfumato.errors.ParameterError: k=0: expected ...
    """


class InputError(SfumatoError):
    """The data cannot be used as it is.

    Examples
    --------
    >>> import numpy as np
    >>> import sfumato
    >>> sfumato.measure(np.empty((0, 2)))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    sfumato.errors.InputError: the table has no records: ...
    """


class GuaranteeError(SfumatoError):
    """The guaranteed protection does not hold, so nothing is released.

    Examples
    --------
    >>> import sfumato
    >>> from sfumato.private import PrivacyGuarantee
    >>> promise = PrivacyGuarantee(2.0, 0.0, "adding or removing one record", None, "noisy counts", ())
    >>> sfumato.PrivacyLedger(epsilon=1.0).spend(promise, what="counts")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    sfumato.errors.GuaranteeError: this release would bring ... to epsilon 2, ...
    """


class MissingExtraError(ImportError):
    """An optional dependency is needed and not installed."""


class PrivacyWarning(_Worded, UserWarning):
    """A choice that weakens protection, or a result that must not be mistaken for protection.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import sfumato
    >>> X = np.arange(40).reshape(20, 2)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", sfumato.PrivacyWarning)
    ...     sfumato.MondrianAnonymizer(k=5).fit(X).release(X)  # in the order of X
    Traceback (most recent call last):
    sfumato.errors.PrivacyWarning: ...
    """


class RealRecordsWarning(PrivacyWarning):
    """Released groups show the values of real records."""


class KeptIndexWarning(PrivacyWarning):
    """The index of a frame is released with it, and its entries identify records."""


class ColumnWarning(_Worded, UserWarning):
    """Columns that are allowed but useless as they are, such as constant ones."""
