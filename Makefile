# `make demo`: the whole study, small. `make test`: the tests. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Threads that wait for each other sleep: tests run beside each other, and spinning ones block them.
export OMP_WAIT_POLICY ?= PASSIVE
READY := $(VENV)/.ready

.PHONY: help setup demo quick test test-more test-slurm soak sweep rot docs lint lock clean

help:
	@echo "make demo   set up and run the whole study small, on real data and a real model"
	@echo "make quick  a page for a task of your own within twenty minutes (TASK=mine/reviews.yaml)"
	@echo "make test   set up and run the tests"
	@echo "make test-more   kills, full disks, a second user (root), the page in a Chromium"
	@echo "make test-slurm   the tests on a Slurm cluster of their own (Debian, root)"
	@echo "make soak   kill a small study's jobs and driver at random (KILLS=20 SEED=0)"
	@echo "make sweep  kill every kind of job before each change that it makes on the disk"
	@echo "make rot    let one file of every kind decay, and see that jobs refuse it (SEED=0)"
	@echo "make setup  set up $(VENV) from envs/requirements.lock"
	@echo "make docs   write docs/api.md from the docstrings, and run the notebooks of docs/"
	@echo "make lint   check style and types"
	@echo "make lock   pin anew what envs/requirements.in brings along"
	@echo "make clean  remove $(VENV)"

setup: $(READY)

$(READY): envs/requirements.lock envs/demo.lock
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("memloc needs Python >= 3.11; name one: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --requirement envs/requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-compile --require-hashes --only-binary :all: --requirement envs/demo.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@# pip compiles on one core; some packages ship tests in a syntax of newer Pythons
	@$(BIN)/python -m compileall -qq -j 0 -x /tests/ $(VENV)/lib || true
	@touch $@

demo: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" snakemake --profile profiles/demo
	@PYTHONPATH=workflow $(BIN)/python workflow/scripts/show.py results/demo

TASK ?= $(error name a task file: make quick TASK=mine/reviews.yaml)
quick: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" snakemake --profile profiles/quick --config 'task_folders=[$(patsubst %/,%,$(dir $(TASK)))]' 'tasks=[$(basename $(notdir $(TASK)))]' $(CONFIG)
	@PYTHONPATH=workflow $(BIN)/python workflow/scripts/show.py results/quick

# Kills, and what needs a browser or root's rights, without which its tests say so and are skipped.
MORE := tests/browser tests/chaos
test: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" python -m pytest $(MORE:%=--ignore=%)

test-more: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" python -m pytest $(MORE)

# Slurm itself: python3 tests/slurm/cluster.py install
test-slurm: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" MEMLOC_TEST_SLURM=1 python -m pytest --numprocesses=0 tests/slurm

KILLS ?= 20
SEED ?= 0
soak: $(READY)
	PYTHONPATH="$(CURDIR)/tests/workflow" $(BIN)/python tests/chaos/soak.py --kills $(KILLS) --seed $(SEED)

SWEEP ?=
sweep: $(READY)
	PYTHONPATH="$(CURDIR)/workflow:$(CURDIR)/tests/workflow" OMP_NUM_THREADS=1 $(BIN)/python tests/chaos/sweep.py $(SWEEP)

rot: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH="$(CURDIR)/workflow:$(CURDIR)/workflow/scripts:$(CURDIR)/tests/workflow" python tests/chaos/rot.py --seed $(SEED)

docs: $(READY)
	$(BIN)/python docs/build.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile rules
	PATH="$(CURDIR)/$(BIN):$$PATH" snakemake --lint --profile profiles/demo

lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --requirement envs/requirements.in
	(sed -n '/^#/p' envs/requirements.lock; \
	 $(VENV)-lock/bin/python -m pip freeze | grep -v '^nvidia\|^triton' | sed 's/+cpu$$//; s/+cu.*$$//') > envs/new.lock
	mv envs/new.lock envs/requirements.lock
	(sed '/==/d' envs/memloc.yaml; sed -n '/^#/!s/^/      - /p' envs/requirements.lock) > envs/new.yaml
	mv envs/new.yaml envs/memloc.yaml
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV)
