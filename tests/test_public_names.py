# SPDX-License-Identifier: Apache-2.0
"""The public list is what it says, documented, and free until a name is used."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

PUBLIC_NAMES = [
    "AdversarialMinimizer",
    "AlphaKAnonymity",
    "AnatomizedTable",
    "Anatomizer",
    "AnonymizedClassifier",
    "AnonymizedRegressor",
    "AptMinimizer",
    "Audit",
    "BetaLikeness",
    "BucketClassifier",
    "BucketClusterer",
    "Certificate",
    "DeltaDisclosure",
    "DeltaPresence",
    "EvidencePack",
    "FeatureSelectionMinimizer",
    "Frontier",
    "FullDomainAnonymizer",
    "Generalization",
    "GuaranteeError",
    "Hierarchy",
    "HilbertAnonymizer",
    "InputError",
    "IterativeMinimizer",
    "KAnonymity",
    "LDiversity",
    "Measurement",
    "MinimizerSweep",
    "MissingExtraError",
    "ModelGuidedAnonymizer",
    "MondrianAnonymizer",
    "MutualInformationMinimizer",
    "ParameterError",
    "Partition",
    "Policy",
    "PolicyRun",
    "PrivacyAwareTree",
    "PrivacyLedger",
    "PrivacyWarning",
    "PrivateAnonymizer",
    "ProportionClassifier",
    "PrunedClassifier",
    "Publication",
    "Questionnaire",
    "RPlusTreeAnonymizer",
    "Release",
    "SfumatoError",
    "SlicedTable",
    "Slicer",
    "TCloseness",
    "UniformMinimizer",
    "VerifiedEvidence",
    "WorkloadAwareAnonymizer",
    "__version__",
    "attack",
    "attribute_costs",
    "audit",
    "certify",
    "coarsest_generalization",
    "datasets",
    "evidence",
    "frontier",
    "measure",
    "read_hierarchy",
    "run",
    "sweep_minimizers",
    "verify_evidence",
]
PACKAGES = ["compat", "duckdb", "loss", "parquet", "private", "spark", "testing"]
ESTIMATORS = [name for name in PUBLIC_NAMES if name.startswith("Anonymized") or name.endswith("Anonymizer")]
HEAVY_PACKAGES = {"lightgbm", "narwhals", "numba", "numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn"}
HEAVY_PACKAGES |= {"rich", "torch", "typer", "xgboost"}


def run_python(source: str) -> str:
    """Run source in a fresh interpreter, where nothing is imported yet, and return what it printed."""
    command = [sys.executable, "-W", "error", "-c", source]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_public_list_changes_only_on_purpose():
    assert sorted(sfumato.__all__) == PUBLIC_NAMES
    assert dir(sfumato) == sorted(PUBLIC_NAMES + PACKAGES)


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_every_public_name_loads(name):
    assert getattr(sfumato, name) is not None


def package_names():
    folders = sorted(path.parent.name for path in Path(sfumato.__file__).parent.glob("*/__init__.py"))
    packages = [importlib.import_module(f"sfumato.{folder}") for folder in folders]
    return [(package.__name__, name) for package in packages for name in getattr(package, "__all__", ())]


@pytest.mark.parametrize(("package", "name"), package_names())
def test_every_name_that_a_package_lists_loads(package, name):
    assert getattr(importlib.import_module(package), name) is not None


@pytest.mark.parametrize("name", [name for name in PUBLIC_NAMES if name != "__version__"])
def test_every_public_name_has_a_docstring_of_its_own(name):
    documented = getattr(sfumato, name)
    # vars, not inspect.getdoc: an inherited docstring would speak of something else; a function inherits none
    own = documented.__doc__ if inspect.isfunction(documented) else vars(documented).get("__doc__")
    assert (own or "").strip()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_public_method_of_an_estimator_has_a_docstring(name):
    estimator = getattr(sfumato, name)
    undocumented = [
        method
        for method, value in inspect.getmembers(estimator, callable)
        if not method.startswith("_") and not inspect.getdoc(value)
    ]
    assert undocumented == []


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(sfumato.__file__).read_text(encoding="utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname for block in guarded for line in block.body for alias in line.names}
    assert seen | {"__version__"} == set(PUBLIC_NAMES + PACKAGES)


def test_importing_sfumato_loads_no_other_package():
    loaded = run_python("import sfumato, sys; print(*sys.modules)").split()
    assert "sfumato" in loaded
    assert not HEAVY_PACKAGES & {name.partition(".")[0] for name in loaded}
    assert [name for name in loaded if name.startswith("sfumato.")] == []


def test_public_packages_load_on_first_use():
    printed = run_python(f"import sfumato; print(*(getattr(sfumato, name).__name__ for name in {PACKAGES}))")
    assert printed.split() == [f"sfumato.{name}" for name in PACKAGES]


def test_a_name_is_the_same_object_each_time():
    assert sfumato.KAnonymity is sfumato.KAnonymity
    assert sfumato.errors.InputError is sfumato.InputError


def test_a_star_import_brings_every_name():
    brought = run_python("from sfumato import *; print(*dir())").split()
    assert set(PUBLIC_NAMES) <= set(brought)
    assert not set(PACKAGES) & set(brought)  # they would hide the user's own duckdb, for one


def test_an_unknown_name_is_an_attribute_error_that_says_where_to_look():
    with pytest.raises(AttributeError, match=r"no attribute 'KAnonimity'; see dir\(sfumato\)"):
        sfumato.KAnonimity  # noqa: B018
    assert not hasattr(sfumato, "KAnonimity")
