# SPDX-License-Identifier: Apache-2.0
"""Reports for people, made from an audit's data: one HTML page, or Markdown.

``wording`` has the sentences, ``charts`` the pictures, ``page`` and ``markdown`` put them together. Data first, page
second: everything shown stands in ``Audit.to_dict()`` too.
"""

from sfumato.report.markdown import to_markdown
from sfumato.report.page import to_html

__all__ = ["to_html", "to_markdown"]
