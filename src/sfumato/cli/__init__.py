# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command, each of which parses, calls the public API and prints."""

from __future__ import annotations


def main() -> None:
    """Run the command line; the entry point of ``sfumato`` and of ``python -m sfumato``."""
    import os
    import sys

    # Boosting on several threads waits by spinning, which on a busy machine made it ten times slower than sleeping.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    try:
        from sfumato.cli.application import application

        application(prog_name="sfumato")
    except KeyboardInterrupt:  # before a command has begun; from then on it answers itself
        sys.stderr.write("error: interrupted; nothing was done.\n")
        raise SystemExit(130) from None
