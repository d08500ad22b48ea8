# SPDX-License-Identifier: Apache-2.0
"""The calls of other packages on this engine, so that their programs run by changing one import.

``sfumato.compat.apt`` stands in for ai-privacy-toolkit's ``Anonymize`` and ``ArrayDataset``,
``sfumato.compat.holisticai`` for holisticai's ``Anonymize``. What they promise holds here: k is recounted on every
result, and what cannot be k-anonymous is refused.
"""
