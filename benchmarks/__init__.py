# SPDX-License-Identifier: Apache-2.0
"""What sfumato's speed and memory are, beside peers, in one run: ``python -m benchmarks [names]``.

Every ``bench_<name>.py`` holds one question and a ``run(context)`` that answers with results. The protocol is
in ``harness.py``: best of five, ratios only between times of the same run, kernels compiled beforehand and
the compilation reported apart, garbage collected between runs. ``results_file.py`` writes ``RESULTS.md``.
"""
