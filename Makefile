# Everything happens in .venv inside this clone; PYTHON picks the interpreter that makes it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run test lint bench chaos clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with redrive and everything the other targets need

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "redrive needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	@touch $(READY)

run: setup ## See it work: a small shop whose messages fail, are retried, set apart and put back
	@$(BIN)/redrive demo $(ARGS)

test: setup ## Run all tests (ARGS="-k name" for some)
	$(BIN)/python -m pytest $(ARGS)

lint: setup ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup ## List the benchmarks, or run one: make bench NAME=embedded
	@$(BIN)/python -m bench $(NAME)

chaos: setup ## The long kill tests: make chaos KILLS=2000
	REDRIVE_CHAOS_KILLS=$(or $(KILLS),2000) $(BIN)/python -m pytest tests/chaos $(ARGS)

clean: ## Remove .venv, caches and the demonstration's files
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .redrive
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
