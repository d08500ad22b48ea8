# SPDX-License-Identifier: Apache-2.0
"""Store what ART's attacks guess: ``python -m benchmarks.peers.adversarial_robustness_toolbox.golden``.

Both sides attack the same models: they are trained here and their outputs stored, so that no version of a training
library comes between. ``tests/attack/test_art.py`` compares the guesses with ours.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from benchmarks.peers.environment import REPOSITORY, run_peer
from sfumato import AnonymizedClassifier
from sfumato.attack.membership_signals import reader_of
from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult, load_nursery

FOLDER = REPOSITORY / "tests" / "attack" / "golden"
ATTACKED = "social"


def coded(frame, n, seed):
    """Return a sample of a table with every column as whole numbers, its labels as codes, and two random halves."""
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(frame.data))[:n]
    data = frame.data.iloc[rows]
    numbers = [c.to_numpy() if c.dtype.kind in "if" else c.cat.codes.to_numpy() for _, c in data.items()]
    codes = np.unique(np.asarray(frame.target)[rows], return_inverse=True)[1]
    return np.column_stack(numbers), codes, generator.permutation(n) < n // 2, generator.permutation(n) % 2


def membership_cases(n=2000):
    """Return models of Adult and what they say about members and others."""
    adult = load_adult()
    adult.data = adult.data[list(ADULT_QUASI_IDENTIFIERS[10])]
    X, y, is_member, fold = coded(adult, n, 0)
    forest = RandomForestClassifier(n_estimators=30, random_state=0)
    models = {
        "forest": forest,
        "shallow tree": DecisionTreeClassifier(max_depth=10, random_state=0),
        "anonymized forest": AnonymizedClassifier(forest, k=50, random_state=0),
        "network": make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=400, tol=0, random_state=0)),
    }
    cases = {}
    for name, model in models.items():
        model.fit(X[is_member], y[is_member])
        reader = reader_of(model, y)
        outputs = reader.outputs(model, X).round(5).astype(np.float32)
        cases[f"membership, {name}"] = {"outputs": outputs, "codes": y, "is_member": is_member, "fold": fold}
    return cases


def attribute_cases(n=4000):
    """Return trees of Nursery and what they say about the training records with each value of the attacked column."""
    nursery = load_nursery()
    column = list(nursery.data.columns).index(ATTACKED)
    is_problem = nursery.data[ATTACKED].astype(str) == "problematic"
    nursery.data = nursery.data.assign(**{ATTACKED: is_problem.astype("int64")})
    X, y, _, fold = coded(nursery, n, 1)
    tree = DecisionTreeClassifier(random_state=0)
    cases = {}
    for name, model in {"tree": tree, "anonymized tree": AnonymizedClassifier(tree, k=100, random_state=0)}.items():
        model.fit(X, y)
        candidates = []
        for value in (0, 1):
            changed = X.copy()
            changed[:, column] = value
            candidates.append(model.predict_proba(changed).round(5).astype(np.float32))
        cases[f"attribute, {name}"] = {
            "rows": X.astype(np.int8), "codes": y, "fold": fold, "column": np.array(column),
            "outputs": np.stack(candidates)[X[:, column], np.arange(n)], "candidates": np.stack(candidates),
        }  # fmt: skip
    return cases


def main() -> None:
    """Train, ask ART, and write inputs, guesses and versions."""
    cases = {**membership_cases(), **attribute_cases()}
    flat = {f"{name}/{part}": value for name, case in cases.items() for part, value in case.items()}
    with tempfile.TemporaryDirectory() as folder:
        given, answered = Path(folder) / "cases.npz", Path(folder) / "answers.npz"
        np.savez(given, **flat)
        told = run_peer("adversarial_robustness_toolbox", [str(given), str(answered)])
        with np.load(answered, allow_pickle=False) as arrays:
            guesses = {f"{name}/art": value for name, value in arrays.items()}
    FOLDER.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(FOLDER / "art.npz", **flat, **guesses)
    (FOLDER / "art.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"{len(cases)} cases in {(FOLDER / 'art.npz').relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
