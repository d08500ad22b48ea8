# SPDX-License-Identifier: Apache-2.0
"""The application: from a policy and a table to a judged release and its report.

``run`` does what a policy says, step by step: ``pipeline`` gives columns their roles and makes models and anonymizers,
``utility`` measures what protection costs, ``attacks`` what an attacker still learns, ``gate`` judges. ``audit`` does
the same for a release that anyone made, ``comparison`` puts protections side by side. Nothing here prints: a
`Reporter` hears of each step.
"""
