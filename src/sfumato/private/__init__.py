# SPDX-License-Identifier: Apache-2.0
"""Learners with differential privacy. Names load on first use; noise and most learners need the extra ``dp``.

Examples
--------
>>> import numpy as np
>>> from sfumato.private import PrivateLogisticRegression
>>> X = np.arange(4000).reshape(-1, 1) % 80
>>> model = PrivateLogisticRegression(epsilon=2.0, delta=1e-6, bounds={"x0": (0, 80)}, classes=[False, True])
>>> model.fit(X, X[:, 0] >= 40).score(X, X[:, 0] >= 40) > 0.8
True
"""

from typing import TYPE_CHECKING

from sfumato.registry import lazy_names

if TYPE_CHECKING:
    from sfumato.private.boosting import PrivateBoostingClassifier as PrivateBoostingClassifier
    from sfumato.private.guarantee import PrivacyGuarantee as PrivacyGuarantee
    from sfumato.private.linear import PrivateLinearRegression as PrivateLinearRegression
    from sfumato.private.linear import PrivateLogisticRegression as PrivateLogisticRegression
    from sfumato.private.network import PrivateNetworkClassifier as PrivateNetworkClassifier
    from sfumato.private.sampling_delta import exact_delta as exact_delta
    from sfumato.private.sampling_delta import smallest_k as smallest_k
    from sfumato.private.sampling_delta import theorem_delta as theorem_delta

_HOME_OF = {
    "PrivacyGuarantee": "guarantee",
    "PrivateBoostingClassifier": "boosting",
    "PrivateLinearRegression": "linear",
    "PrivateLogisticRegression": "linear",
    "PrivateNetworkClassifier": "network",
    "exact_delta": "sampling_delta",
    "smallest_k": "sampling_delta",
    "theorem_delta": "sampling_delta",
}

__all__ = [*_HOME_OF]

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
