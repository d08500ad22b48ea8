# SPDX-License-Identifier: Apache-2.0
"""The interfaces of other packages on this engine, so that their programs run after changing one import.

``sfumato.compat.apt`` replaces ai-privacy-toolkit's ``Anonymize`` and ``ArrayDataset``, ``sfumato.compat.holisticai``
replaces holisticai's ``Anonymize``. k is recounted on every result, and an error is raised if it cannot be met.
"""
