# SPDX-License-Identifier: Apache-2.0
"""sfumato opens no network connection: personal data stays where it is."""

import subprocess
import sys

# An audit hook hears of every socket the interpreter makes, also from code that took its own reference to
# socket.socket before; patching the name would miss that.
BLOCK_SOCKETS = """
import sys

def refuse(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError(f"the network was used: {event}")

sys.addaudithook(refuse)
"""

IMPORT_EVERY_MODULE = """
import importlib, pkgutil
import sfumato

names = [module.name for module in pkgutil.walk_packages(sfumato.__path__, "sfumato.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""

ANONYMIZE = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from sfumato import AnonymizedClassifier, ModelGuidedAnonymizer
from sfumato.datasets import load_adult

data = load_adult()
assert len(data.data) == 48842

random = np.random.default_rng(0)
X = random.integers(0, 50, size=(400, 3)).astype(float)
y = (X[:, 0] + X[:, 1] > 50).astype(int)
anonymizer = ModelGuidedAnonymizer(k=10)
released = anonymizer.fit_transform(X, y)
_, sizes = np.unique(released, axis=0, return_counts=True)
assert sizes.min() >= 10
AnonymizedClassifier(LogisticRegression(), k=10).fit(X, y).predict(X)
print("anonymized")
"""


def run_offline(source: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCK_SOCKETS + source]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_module_uses_the_network_when_imported():
    run = run_offline(IMPORT_EVERY_MODULE)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 10


def test_anonymizing_uses_no_network():
    run = run_offline(ANONYMIZE)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "anonymized\n"


def test_the_block_stops_a_socket_and_a_lookup():
    for attempt in ("socket.socket()", "socket.getaddrinfo('localhost', 80)"):
        run = run_offline(f"import socket; {attempt}")
        assert run.returncode == 1
        assert "the network was used" in run.stderr
