# SPDX-License-Identifier: Apache-2.0
# Everything a contributor runs, and what CI runs. Needs only Python 3.11 or newer, pip and make:
# the first target you call sets up .venv, later ones find it ready.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
# Stamps are files inside the environment, so deleting .venv is all it takes to start over.
READY := $(VENV)/.ready
PINS := pyproject.toml constraints.txt
# A process for each core. Each gets a run of tests, so that those of one file share what is dear to set up; who is done
# takes over from the others.
IN_PARALLEL := -n auto --maxprocesses 4 --dist worksteal
TWINS := echo "Kernel twins once more, interpreted (NUMBA_DISABLE_JIT=1) ..."; NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest \
	$(IN_PARALLEL) tests/partition tests/attack/test_reconstruction_adversaries.py -k twin

# Without bytecode every process of a test run compiles the package anew, and rewrites the asserts of all tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # two installs into one environment would race
.PHONY: help demo test test-ci test-all coverage mutants test-lowest test-newest check bench hostile recorded studies docs dist neural dp spark clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)-core ## Anonymize the bundled census data for a model, and show what it cost
	@$(BIN)/sfumato demo

test: $(READY)-test ## Run the tests of the package in a few minutes, each property on fewer random tables than in CI
	@SFUMATO_EXAMPLES=0.3 $(BIN)/python -m pytest $(IN_PARALLEL) --ignore=tests/checkout -m "not slow and not thorough"

test-ci: $(READY)-test ## Run the tests as CI does: all but the slow ones, then the kernels' twins without compilation
	@$(BIN)/python -m pytest $(IN_PARALLEL)
	@$(TWINS)

test-all: $(READY)-test ## Run every test, those that take minutes included
	@$(BIN)/python -m pytest $(IN_PARALLEL) -m ""
	@$(TWINS)

check: $(READY)-check ## Lint, formatting, types, and the table of allowed imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python scripts/check_imports.py

coverage: $(READY)-coverage ## Run the tests and show which lines they never reach (compiled kernels count as not reached)
	@$(BIN)/python -m pytest $(IN_PARALLEL) --ignore=tests/checkout --cov=sfumato --cov-report=term:skip-covered

mutants: $(READY)-test ## Break the code that judges in 40 places a module, and list the breaks that no test notices (hours)
	@$(BIN)/python scripts/mutants.py --sample 40

bench: $(READY)-test ## Measure speed and memory as ratios inside one run
	@$(BIN)/python -m benchmarks

hostile: $(READY)-test ## Judge 5,000 random releases by code that shares nothing with sfumato (about 15 minutes)
	@$(BIN)/python scripts/hostile.py --cases 6000 --jobs 2

recorded: $(READY)-test ## Compare results with those that were recorded, so that a refactoring changes none (3 minutes)
	@$(BIN)/python scripts/recorded.py

studies: $(READY)-test $(READY)-neural $(READY)-dp ## Set up what the studies need, private learners included, and list them
	@$(BIN)/sfumato study

docs: $(READY)-docs ## Build the documentation as a site into site/; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "Open site/index.html; to search in it, serve it: $(PYTHON) -m http.server -d site"

dist: $(READY)-dist ## Build the wheel and the source archive, and try each in a clean environment
	@rm -rf build dist
	@$(BIN)/python -m build -v --outdir dist . >build.log 2>&1 || { cat build.log; exit 1; }
	@rm build.log
	@$(BIN)/python scripts/try_distributions.py dist

test-lowest: ## Run the tests with the lowest versions that pyproject.toml accepts, in an environment of their own
	@$(call tested_with,lowest-direct)

test-newest: ## Run the tests with the newest versions, in an environment of their own
	@$(call tested_with,highest)

neural: $(READY)-neural ## Install torch, for the tests and models that use it

dp: $(READY)-dp ## Install opacus and torch, for private networks (other private learners come with the tests)

spark: $(READY)-spark ## Install pyspark, for the tests and tables that use it (Java 17 is needed, too)

clean: ## Remove caches and build outputs (delete .venv yourself to start over)
	@rm -rf build dist site .venv-lowest-direct .venv-highest .pytest_cache .mypy_cache .ruff_cache .hypothesis .numba_cache .coverage src/*.egg-info
	@find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The second attempt is for Pythons packaged without ensurepip: there the outer pip fills the environment.
$(READY)-core: $(PINS)
	@echo "Setting up $(VENV) (once; a few minutes on a new machine) ..."
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python %d.%d found, 3.11 or newer needed: make PYTHON=/path/to/python3.11" % sys.version_info[:2])'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) 2>/dev/null || \
		{ $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install -qq pip; }
	@$(PIP_INSTALL) 'pip>=25.1' # the first that knows dependency groups
	@$(PIP_INSTALL) -e .
	@echo "Compiling the kernels (once; about a minute) ..."
	@$(BIN)/sfumato demo --rows 1000 --quiet >/dev/null
	@touch $@

$(READY)-test: $(READY)-core
	@echo "Adding what the tests need to $(VENV) (once) ..."
	@$(PIP_INSTALL) --group test
	@touch $@

$(READY)-coverage: $(READY)-test
	@echo "Adding pytest-cov to $(VENV) (once) ..."
	@$(PIP_INSTALL) --group coverage
	@touch $@

$(READY)-check: $(READY)-core
	@echo "Adding ruff and mypy to $(VENV) (once) ..."
	@$(PIP_INSTALL) --group check
	@touch $@

$(READY)-docs: $(READY)-core
	@echo "Adding mkdocs to $(VENV) (once) ..."
	@$(PIP_INSTALL) --group docs
	@touch $@

$(READY)-dist: $(READY)-core
	@echo "Adding build to $(VENV) (once) ..."
	@$(PIP_INSTALL) --group dist
	@touch $@

$(READY)-neural: $(READY)-core
	@echo "Adding torch to $(VENV) (once) ..."
	@$(PIP_INSTALL) -e '.[neural]'
	@touch $@

$(READY)-dp: $(READY)-core
	@echo "Adding private learners to $(VENV) (once) ..."
	@$(PIP_INSTALL) -e '.[dp]'
	@touch $@

$(READY)-spark: $(READY)-core
	@echo "Adding pyspark to $(VENV) (once) ..."
	@$(PIP_INSTALL) -e '.[spark]'
	@touch $@

# uv is asked, since pip cannot choose the lowest versions.
define tested_with
	echo "Setting up .venv-$(1) ..."; \
	$(PYTHON) -m venv .venv-$(1) && .venv-$(1)/bin/python -m pip install -qq --disable-pip-version-check uv && \
	.venv-$(1)/bin/uv pip install -q --python .venv-$(1)/bin/python --resolution $(1) -e . --group test && \
	.venv-$(1)/bin/python -m pytest $(IN_PARALLEL)
endef
