# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    ?= runs/default
# A scenario file; none is the built-in one.
SCENARIO ?=
STAMP  := $(VENV)/.installed

.PHONY: help venv sweep test test-long bench check lint format reference constraints clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(STAMP) ## make .venv and install the project with pinned versions

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Diptych needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name another with make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade -c constraints.txt "pip>=25.1"
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable . --group dev
	@touch $@

sweep: $(STAMP) ## search for the training and inference chips; goes on where it was interrupted
	$(BIN)/diptych sweep $(SCENARIO) --out $(RUN) --resume

test: $(STAMP) ## the test suite
	$(BIN)/python -m pytest -n auto

test-long: $(STAMP) ## the suites that take minutes
	$(BIN)/python -m pytest -n auto -m long

bench: $(STAMP) ## evaluations per second, printed
	$(BIN)/python -m pytest -m benchmark -s tests/benchmarks

check: lint test ## everything CI runs

lint: $(STAMP) ## style, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## put the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(STAMP) ## renew runs/reference, which a test reproduces
	$(BIN)/diptych sweep runs/reference/scenario.toml --out runs/reference --overwrite

constraints: $(STAMP) ## pin what .venv holds now
	{ echo "# The versions that CI runs, for Python 3.11 and newer. \`make constraints\` renews the file."; \
	  $(BIN)/python -m pip freeze --exclude-editable; } > constraints.txt

clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
