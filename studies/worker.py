# SPDX-License-Identifier: Apache-2.0
"""One process of the runner: reads the keys of a group from standard input, answers with one line per cell.

``python -m studies.worker EXPERIMENT``, started by ``runner`` with one thread, in the environment that the cells need.
"""

from __future__ import annotations

import contextlib
import json
import sys


def main() -> None:
    """Run a group and say each cell, or why the rest could not be run."""
    from sfumato.errors import SfumatoError
    from studies.experiments import load_experiment
    from studies.runner import run_group

    answers = sys.stdout
    asked = json.loads(sys.stdin.readline())
    with contextlib.redirect_stdout(sys.stderr):  # whatever an experiment prints is not an answer
        try:
            for cell in run_group(load_experiment(sys.argv[1]), asked["keys"], asked["paper_scale"]):
                print(json.dumps({"cell": cell}), file=answers, flush=True)
        except (ImportError, SfumatoError) as error:
            print(json.dumps({"stopped": str(error)}), file=answers, flush=True)


if __name__ == "__main__":
    main()
