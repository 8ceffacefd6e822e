.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# One thread for each worker: the workers keep all cores busy, and more threads would wait for each other. What was
# compiled is kept whatever the environment says, or each of the hundreds of processes of the tests compiles all anew.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest
# Every core works on the tests; a file stays on one worker so that its servers start once, and all of Spark does. The
# longest files come first (tests/support/work_units.py), so that no worker is left alone with one of them at the end.
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
# Where every branch must be tested.
PROVEN := src/cloister/core/*,src/cloister/accounting/*,src/cloister/mechanisms/*,src/cloister/crypto/*

.PHONY: help demo test audit quick lint check fix generated docs bench clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@for python in $(PYTHON) python3.14 python3.13 python3.12 python3.11; do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			$$python -m venv $(VENV) && exit 0; \
			rm -rf $(VENV); exit 1; \
		fi; \
	done; \
	echo "cloister needs Python 3.11 or newer. Install it, or name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 1

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "Installing cloister into $(VENV) ..."
	@$(PIP) -e ".[hub,learn]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing cloister and its development tools into $(VENV) (some minutes the first time) ..."
	@$(PIP) -e ".[dev]"
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo ## a hub on this machine with made-up people, one login per role
	@$(BIN)/cloister demo || [ $$? -eq 130 ] # Ctrl-C is how it is meant to end

test: $(VENV)/.dev ## every test but the long audits, with coverage
	$(PYTEST) $(PARALLEL) -m "not audit" --cov --cov-report=
	@echo "Branch coverage, all packages (at least 95%):"
	@$(BIN)/coverage report --fail-under=95
	@echo "Branch coverage, core, accounting, mechanisms and crypto (100%):"
	@$(BIN)/coverage report --include='$(PROVEN)' --fail-under=100

audit: $(VENV)/.dev ## the long audits, and random tests with many more examples
	CLOISTER_THOROUGH=1 $(PYTEST) $(PARALLEL) -m audit
	CLOISTER_THOROUGH=1 $(PYTEST) $(PARALLEL) -m "not audit" $$(grep -rlwE 'thoroughness|hypothesis' tests --include='test_*.py')

quick: $(VENV)/.dev ## the fast tests only
	$(PYTEST) $(PARALLEL) -m "not slow and not audit and not spark and not postgres"

lint: $(VENV)/.dev ## format, style, types, layers, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

check: lint quick ## what every commit passes

fix: $(VENV)/.dev generated ## format and mend what can be mended safely
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generated: $(VENV)/.dev ## the pages that follow from the code, and the changelog from its fragments
	$(BIN)/python docs/generated.py

docs: $(VENV)/.dev ## strict build of the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.dev ## benchmarks beside their peers, into benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks

clean: ## remove the virtual environment and build products
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
