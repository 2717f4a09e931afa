# Everything a newcomer needs, on a machine with python3, make and git; the first call sets up .venv.
#
#   make train                      ten minutes of Pong, ends with a curve, a film and a summary
#   make train TASK=catch MINUTES=1
#   make test                       what CI runs: lint, then the quick tests
#   make lint
#   make soak                       two hours: a hundred kills, fifty of workers, and a run of an hour; MINUTES=60
#   make study STUDY=toy            hours: runs what the study is missing, ends with figures and findings
#   make tables                     the tables of runs in README.md and results/README.md, from their files
#   make benchmark                  hours: MinAtar, LBC-BM against Stable-Baselines3's PPO

PYTHON ?= python3
VENV ?= .venv
TASK ?= atari-laptop
MINUTES ?= 10
OUT ?=
STUDY ?= toy
ARGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help train test lint soak study tables benchmark

help:
	@sed -n 's/^# \{0,1\}//p' Makefile

train: $(STAMP)
	$(BIN)/lbc train $(TASK) --minutes $(MINUTES) --film $(if $(OUT),--out $(OUT))

test: lint
	$(BIN)/python -m pytest -q -m "not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

SOAK := $(BIN)/python -m tests.faults.soak
soak: MINUTES = 60
soak: $(STAMP)
	$(SOAK) kills --runtime serial --kills 50
	$(SOAK) kills --runtime local --kills 50
	$(SOAK) workers --kills 50
	$(SOAK) long --minutes $(MINUTES)

study: $(STAMP)
	$(BIN)/lbc study $(STUDY) $(if $(OUT),--out $(OUT)) $(ARGS)

tables: $(STAMP)
	$(BIN)/lbc scores --refresh README.md --refresh results/README.md

benchmark: $(STAMP)
	$(BIN)/python benchmarks/minatar_vs_ppo.py $(if $(OUT),--out $(OUT)) $(ARGS)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,minatar,dashboard,studies,export,video]'
	touch $@
