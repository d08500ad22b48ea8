# SPDX-License-Identifier: Apache-2.0
"""ai-privacy-toolkit: the authors' own implementation of model-guided anonymization."""
