# SPDX-License-Identifier: Apache-2.0
"""The errors and warnings of sfumato: what was given, what is expected, how to fix it."""


class SfumatoError(ValueError):
    """Anything sfumato refuses; a ``ValueError``, as scikit-learn expects of estimators.

    Parameters
    ----------
    sentence : str
        What was given, what is expected, how to fix it.
    parameter : str, optional
        The parameter it is about, as the sentence names it first; a command names its option instead.
    """

    def __init__(self, sentence: str = "", *, parameter: str | None = None) -> None:
        super().__init__(sentence)
        self.parameter = parameter

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, {"parameter": self.parameter}


class ParameterError(SfumatoError):
    """A parameter has a value that cannot work."""


class InputError(SfumatoError):
    """The data handed in cannot be used as it is."""


class GuaranteeError(SfumatoError):
    """The promised protection does not hold, so nothing is released."""


class MissingExtraError(ImportError):
    """An optional dependency is needed and not installed."""


class PrivacyWarning(UserWarning):
    """A choice that weakens protection, or a result that must not be mistaken for protection."""
