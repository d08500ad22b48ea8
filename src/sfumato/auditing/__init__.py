# SPDX-License-Identifier: Apache-2.0
"""The application: from a policy and a table to a judged release and its report.

``run`` runs a policy: ``policy_tables`` reads its table, ``policy_job`` gives columns their roles, ``pipeline``
compares models and releases, ``utility`` measures the cost of protection, ``attacks`` the remaining risk, and ``gate``
judges. ``audit`` does the same for any release, ``frontier`` compares protections. The modules ``*_files`` do the work
of the other commands. Nothing here prints: a `Reporter` hears of each step.
"""
