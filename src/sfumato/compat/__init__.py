# SPDX-License-Identifier: Apache-2.0
"""The interfaces of other packages on this engine, so that their programs run after changing one import.

``sfumato.compat.apt`` replaces ai-privacy-toolkit's ``Anonymize`` and ``ArrayDataset``, ``sfumato.compat.holisticai``
replaces holisticai's ``Anonymize``. k is recounted on every result, and an error is raised if it cannot be met.

Examples
--------
>>> import numpy as np
>>> from sfumato.compat.apt import Anonymize, ArrayDataset
>>> x = np.array([[30, 1], [30, 1], [40, 2], [40, 2]])
>>> Anonymize(2, [0]).anonymize(ArrayDataset(x, [0, 0, 1, 1])).tolist()
[[30, 1], [30, 1], [40, 2], [40, 2]]
"""
