# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command, each of which parses, calls one function of the library and prints."""

from __future__ import annotations


def main() -> None:
    """Run the command line; the entry point of ``sfumato`` and of ``python -m sfumato``."""
    import os
    import sys

    # Boosting on several threads waits by spinning, which on a busy machine made it ten times slower than sleeping. To
    # sleep at once made it two to six times slower where nobody else is. So it spins for some microseconds first.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    try:
        from sfumato.cli.application import application

        application(prog_name="sfumato")
    except KeyboardInterrupt:  # before a command has begun; from then on it answers itself
        sys.stderr.write("error: interrupted; nothing was done.\n")
        raise SystemExit(130) from None
