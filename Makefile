.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Every core works on the tests; a file stays on one worker so that its servers start once.
PARALLEL := -n auto --dist loadfile

.PHONY: help demo test quick check fix docs bench clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "cloister needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "Installing cloister into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing cloister and its development tools into $(VENV) (some minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo ## a first private answer on example data
	@$(BIN)/cloister demo

test: $(VENV)/.dev ## every test, with coverage
	$(PYTEST) $(PARALLEL) --cov --cov-report=term

quick: $(VENV)/.dev ## the fast tests only
	$(PYTEST) $(PARALLEL) -m "not slow and not spark and not postgres"

check: $(VENV)/.dev ## what every commit passes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell
	$(MAKE) quick

fix: $(VENV)/.dev ## format and mend what can be mended safely
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.dev ## strict build of the documentation into site/
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.dev ## benchmarks beside their peers, into benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks

clean: ## remove the virtual environment and build products
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
