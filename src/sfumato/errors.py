# SPDX-License-Identifier: Apache-2.0
"""The errors and warnings of sfumato: what was given, what is expected, how to fix it."""


class SfumatoError(ValueError):
    """Anything sfumato refuses; a ``ValueError``, as scikit-learn expects of estimators."""


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
