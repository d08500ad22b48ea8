# SPDX-License-Identifier: Apache-2.0
"""diffprivlib and Opacus with the newest scikit-learn they run with: the environment of the extra ``dp``.

sfumato itself runs here, too, from the source folder::

    python -m benchmarks.peers.environment differential_privacy
    PYTHONPATH=src .peers/differential_privacy/bin/python -m pytest tests/audit/test_private_models.py
"""
