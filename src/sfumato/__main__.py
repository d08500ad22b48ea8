# SPDX-License-Identifier: Apache-2.0
"""``python -m sfumato`` is ``sfumato``."""

from sfumato.cli import main

if __name__ == "__main__":
    main()
