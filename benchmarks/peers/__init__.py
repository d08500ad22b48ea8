# SPDX-License-Identifier: Apache-2.0
"""Other people's tools, each in a virtual environment of its own, measured beside sfumato.

One folder per peer: ``requirements.txt`` says what its environment holds, ``runner.py`` runs inside that
environment and answers in JSON. ``environment.py`` builds and finds the environments, ``exchange.py`` writes
the file both sides read.
"""
