# SPDX-License-Identifier: Apache-2.0
"""Every table and figure of the papers on real data, beside ours; ``sfumato study`` lists them and runs them.

``catalogue`` holds one declarative file per table or figure, ``experiments`` lists the modules that say how their cells
come about, and ``runner`` runs both and explains how a new one plugs in. ``cells`` is what is kept of a run, ``views``
and ``charts`` what is shown of it, ``claims`` how the papers' claims are judged, ``papers`` writes the pages.
"""
