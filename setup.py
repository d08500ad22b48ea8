# SPDX-License-Identifier: Apache-2.0
"""The description for package indexes: the README, with links that work outside the repository, too.

Everything else is in ``pyproject.toml``.
"""

import re
from pathlib import Path

from setuptools import setup

REPOSITORY = "https://github.com/sfumato-privacy/sfumato"
RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?!\w+:|#)([^)\s]+)\)")


def with_full_links(text: str) -> str:
    """Return Markdown in which links to files of the repository, and its pictures, have full addresses."""

    def full(link: re.Match[str]) -> str:
        view = "raw" if link[1] else "blob"
        return f"{link[1]}{link[2]}({REPOSITORY}/{view}/main/{link[3]})"

    return RELATIVE.sub(full, text)


if __name__ == "__main__":
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    setup(long_description=with_full_links(readme), long_description_content_type="text/markdown")
