# SPDX-License-Identifier: Apache-2.0
"""Experiments on real data, each a small declaration of its cells and of the page that they fill.

``python -m studies NAME`` runs what is missing of one study and writes its page; without a name it lists them. The
parts: ``cells`` (what is kept of a run), ``runner`` (what runs, resumes and writes), ``accuracy`` (how a cell comes
about) on ``tables``, ``models`` and ``methods``, and ``summaries`` and ``charts`` for the pages.
"""
