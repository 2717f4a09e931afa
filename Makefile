# Everything a newcomer needs, on a machine with python3, make and git; the first call sets up .venv.
#
#   make train                      ten minutes of training, ends with a curve and a summary
#   make train TASK=catch MINUTES=1
#   make test                       what CI runs: lint, then the quick tests
#   make lint

PYTHON ?= python3
VENV ?= .venv
TASK ?= minatar
MINUTES ?= 10
OUT ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help train test lint

help:
	@sed -n 's/^# \{0,1\}//p' Makefile

train: $(STAMP)
	$(BIN)/lbc train $(TASK) --minutes $(MINUTES) $(if $(OUT),--out $(OUT))

test: lint
	$(BIN)/python -m pytest -q -m "not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,minatar]'
	touch $@
