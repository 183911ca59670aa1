# Everything a fresh machine with Python ≥ 3.11 needs; `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
BUILD ?= demo
unexport PYTHONDONTWRITEBYTECODE  # the tests start many processes: what one has compiled, the others read

.PHONY: help setup models tour demo test check format bench bench-peers serve clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 13

# uv where there is one: it takes a quarter of pip's time.
UV := $(shell command -v uv 2>/dev/null)
ifdef UV
NEW_VENV = $(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
INSTALL = $(UV) pip install --quiet --python $(BIN)/python -c constraints.txt
else
NEW_VENV = $(PYTHON) -m venv $(VENV)
INSTALL = $(BIN)/python -m pip install --quiet --progress-bar off --disable-pip-version-check -c constraints.txt
endif

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Colloquy needs Python 3.11 or newer; set PYTHON=")'
	@$(NEW_VENV)
	@echo "installing into $(VENV) with $(if $(UV),uv,pip): torch, Prefect, DuckDB …; gigabytes on disk, minutes the first time"
	@$(INSTALL) -e .
	@touch $@

$(READY_DEV): $(READY)
	@echo "installing what tests and checks need"
	@$(INSTALL) -e '.[dev]'
	@touch $@

setup: $(READY_DEV)  ## create .venv and install everything into it, developers' tools too

models: $(READY)  ## fetch the small embedded models and the encoder (once a machine)
	$(BIN)/colloquy models pull --demo

demo: models  ## the whole pipeline on embedded models and the bundled sample
	$(BIN)/colloquy run --profile demo --build $(BUILD) --tell
	$(BIN)/colloquy check --build $(BUILD)
	$(BIN)/colloquy report --build $(BUILD)
	$(BIN)/colloquy sql "select stage, n_in, n_produced, n_filtered, n_failed from history.stage_runs where build = '$(BUILD)' and state = 'committed' order by ended_at"
	@echo "look on: the report (its path is above) in a browser; \`make serve\` for the Prefect UI; \`$(BIN)/colloquy sql\` to ask more"

test: $(READY_DEV) models  ## all tests
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

check: $(READY_DEV)  ## style, types, import rules, SQL style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sqlfluff lint --disable-progress-bar sql

format: $(READY_DEV)  ## put code and SQL into shape
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/sqlfluff fix --disable-progress-bar --quiet sql

bench: $(READY_DEV)  ## speed, as ratios (not part of the tests)
	$(BIN)/python -m pytest tests/benchmarks -s -q -o python_files='bench_*.py'

bench-peers: $(READY_DEV)  ## install the libraries that bench compares with (3 GB, in the user's cache)
	$(BIN)/python -m tests.benchmarks.peers --install

tour: $(READY)  ## the pipeline on replies written beforehand: half a minute, no models
	$(BIN)/colloquy tour

serve: models  ## Prefect server, UI, deployments and worker
	$(BIN)/colloquy serve

clean:  ## remove the virtual environment and tool caches; artifacts/ stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
