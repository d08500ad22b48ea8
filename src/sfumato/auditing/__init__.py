# SPDX-License-Identifier: Apache-2.0
"""The application: from a policy and a table to a judged release and its report.

``run`` runs a policy: ``pipeline`` gives columns their roles and makes models and anonymizers, ``utility`` measures the
cost of protection, ``attacks`` the remaining risk, and ``gate`` judges. ``audit`` does the same for any release,
``comparison`` compares protections. The modules ``*_files`` do the work of the commands. Nothing here prints: a
`Reporter` hears of each step.
"""
