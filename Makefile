# Every target sets itself up: all that is needed beforehand is Python 3.11 or newer, git and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ROOT_DIRECTORY ?= .kcp

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kcp needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.13 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked dependencies into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@$(BIN)/python -m compileall -q src
	@touch $(READY)

.PHONY: setup
setup: $(READY) ## Make the virtual environment

.PHONY: run
run: $(READY) ## Start kcp, with its data in .kcp
	@exec $(BIN)/kcp start --root-directory $(ROOT_DIRECTORY)

.PHONY: test
test: $(READY) ## Run the tests (etcd included)
	@$(BIN)/python -m pytest

.PHONY: check
check: $(READY) ## Format, lint, types, layout and tests, as CI does
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest --cov

.PHONY: format
format: $(READY) ## Rewrite the code in the house's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: bench
bench: $(READY) ## Measure, and print the tables
	@$(BIN)/python -m benchmarks.store

.PHONY: bench-api
bench-api: $(READY) ## Measure the API server over TLS
	@$(BIN)/python -m benchmarks.api

.PHONY: soak
soak: $(READY) ## Long crash and fault runs
	@$(BIN)/python -m pytest -m soak --timeout 3600

.PHONY: lock
lock: $(READY) ## Renew requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--group dev --output-file requirements.lock pyproject.toml

.PHONY: clean
clean: ## Remove what the targets made, but no data
	@rm -rf $(VENV) dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
