# SPDX-License-Identifier: Apache-2.0
"""Let ART attack stored outputs of models; runs in ART's own environment, never in ours.

Reads the arrays that ``golden.py`` wrote, and writes what ART guessed for every record, each from an attack model that
was fitted on the other half. Prints one line of JSON: the versions.
"""

import argparse
import json
import platform
from importlib.metadata import version

import numpy as np
import torch
from art.attacks.inference.attribute_inference import AttributeInferenceBaseline, AttributeInferenceBlackBox
from art.attacks.inference.membership_inference import (
    MembershipInferenceBlackBox,
    MembershipInferenceBlackBoxRuleBased,
)
from art.estimators.classification import BlackBoxClassifier

VERSIONS_OF = ("adversarial-robustness-toolbox", "scikit-learn", "numpy", "torch")


def lookup(rows: np.ndarray, outputs: np.ndarray) -> BlackBoxClassifier:
    """Return a model that repeats stored outputs."""
    known = {row.tobytes(): output for row, output in zip(rows.astype(np.float32), outputs, strict=True)}

    def predict(x: np.ndarray) -> np.ndarray:
        return np.array([known[row.tobytes()] for row in np.ascontiguousarray(x, dtype=np.float32)])

    return BlackBoxClassifier(predict, (rows.shape[1],), outputs.shape[1])


def one_hot(codes: np.ndarray, n: int) -> np.ndarray:
    """Return one column per class."""
    return np.eye(n, dtype=np.float32)[codes]


def guess_members(case: dict, kind: str) -> np.ndarray:
    """Return who ART takes for a member."""
    outputs, codes, is_member, fold = (case[name] for name in ("outputs", "codes", "is_member", "fold"))
    rows = np.arange(len(codes), dtype=np.float32)[:, None]
    model = lookup(rows, outputs)
    labels = one_hot(codes, outputs.shape[1])
    if kind == "rule":
        return MembershipInferenceBlackBoxRuleBased(model).infer(rows, labels) == 1
    guessed = np.zeros(len(codes), bool)
    for held_out in (0, 1):
        inside, outside = ((fold != held_out) & (is_member == member) for member in (True, False))
        attack = MembershipInferenceBlackBox(model, attack_model_type=kind)
        attack.fit(rows[inside], labels[inside], rows[outside], labels[outside])
        tested = fold == held_out
        guessed[tested] = np.asarray(attack.infer(rows[tested], labels[tested])).ravel() == 1
    return guessed


def guess_attribute(case: dict, column: int, *, sees_model: bool) -> np.ndarray:
    """Return the value that ART guesses for the attacked column."""
    rows, codes, outputs, fold = (case[name] for name in ("rows", "codes", "outputs", "fold"))
    rows = rows.astype(np.float32)
    values = [float(value) for value in np.unique(rows[:, column])]
    guessed = np.zeros(len(rows))
    for held_out in (0, 1):
        known, tested = fold != held_out, fold == held_out
        others = np.delete(rows[tested], column, axis=1)
        if sees_model:
            attack = AttributeInferenceBlackBox(lookup(rows, outputs), "rf", attack_feature=column)
            attack.fit(rows[known], codes[known])
            answers = outputs[tested].argmax(axis=1).reshape(-1, 1)
            guessed[tested] = attack.infer(others, codes[tested], pred=answers, values=values)
        else:
            attack = AttributeInferenceBaseline("rf", attack_feature=column)
            attack.fit(rows[known])
            guessed[tested] = attack.infer(others, values=values)
    return guessed.astype(np.int8)


def main() -> None:
    """Attack every case and write the guesses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases")
    parser.add_argument("answers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with np.load(options.cases, allow_pickle=False) as arrays:
        stored = dict(arrays)
    answers = {}
    for name in sorted({key.split("/")[0] for key in stored}):
        case = {key.split("/")[1]: value for key, value in stored.items() if key.split("/")[0] == name}
        np.random.seed(0)
        torch.manual_seed(0)
        if name.startswith("membership"):
            for kind in ("rule", "rf", "gb", "nn"):
                answers[f"{name}/{kind}"] = guess_members(case, kind)
        else:
            column = int(case["column"])
            answers[f"{name}/black_box"] = guess_attribute(case, column, sees_model=True)
            answers[f"{name}/baseline"] = guess_attribute(case, column, sees_model=False)
    np.savez_compressed(options.answers, **answers)
    print(json.dumps({"versions": {"python": platform.python_version(), **{n: version(n) for n in VERSIONS_OF}}}))


if __name__ == "__main__":
    main()
