# SPDX-License-Identifier: Apache-2.0
"""Adversarial Robustness Toolbox (ART): its black-box membership and attribute attacks, as a second opinion on ours."""
