# SPDX-License-Identifier: Apache-2.0
"""Certificates: bounds on what any attacker can learn, from a sample of people who were set aside."""

from sfumato.certificates.certificate import Certificate, SecretBound
from sfumato.certificates.certifying import certify

__all__ = ["Certificate", "SecretBound", "certify"]
