# Two commands on a machine with only Python (3.11 or newer) and make do everything: `make demo` and `make test`.

# The newest supported Python of this machine, or the one that you put first on the path; PYTHON=python3.12 takes another.
# A .venv that is there is kept, unless PYTHON is given and is another version.
ifeq ($(origin PYTHON), undefined)
PYTHON := $(shell sh tools/find_python.sh)
else ifneq ($(wildcard .venv/pyvenv.cfg),)
VERSION_OF = $(shell $(1) -c "import sys; print('%d.%d' % sys.version_info[:2])")
ifneq ($(filter-out $(call VERSION_OF,.venv/bin/python),$(call VERSION_OF,$(PYTHON))),)
$(shell rm -rf .venv)
endif
endif
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.hlorewrite-installed
DEMO_STAMP := $(VENV)/.hlorewrite-demo-installed

# A worker for each core, because each takes 20 s to collect the tests; in `make pipelines` and `make heavy` one more,
# because tests of several processes wait. tests/conftest.py says which tests stay together, and which start first.
CORES := $(shell $(PYTHON) -c "import os; print(min(8, len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') \
	else os.cpu_count() or 1))")
TOGETHER := --dist loadscope --no-loadscope-reorder
WORKERS ?= -n $(CORES) $(TOGETHER)
MORE_WORKERS ?= -n $(shell expr $(CORES) + 1) $(TOGETHER)
QUICK := $(addprefix tests/unit/,rules analysis ops ir passes passmanager) tests/oracle/test_mutations.py \
	tests/oracle/test_conditions.py $(addprefix --ignore=tests/unit/,rules/test_unexecuted_rules.py \
	rules/test_partners.py rules/test_natives.py $(addprefix passes/,test_carried_fillings.py \
	test_interleave_halves_proof.py overlap/test_peeling_gain.py all_reduce_fusion/test_plan.py \
	comm_shift/test_comm_shift_programs_random.py))

PIPELINES := tests/unit/pipelines tests/e2e/test_pipeline_example.py

.PHONY: demo venv test pipelines heavy quick lint style nightly fuzz versions bench docs

venv: $(STAMP)

# The stamp depends on what pip reads, so a changed dependency list installs again.
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

# A real train step: rewritten, compiled for eight H200s without a GPU, run on eight CPU devices. Needs no test tools.
demo: $(DEMO_STAMP)
	$(BIN)/python tools/demo.py

$(DEMO_STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[aot]'
	touch $@

# Style and import directions; unit, golden-file, oracle and end-to-end tests of programs of one mesh, and all doctests.
# Sources are compiled once, not by each worker. Style is checked beside the tests, and what that says comes after them. `make pipelines` and `make heavy` run the
# other tests, `make lint` checks types too, .ci/run runs all.
test: venv
	@mkdir -p build; $(BIN)/python -m compileall -q hlorewrite passes patterns; \
	$(MAKE) --no-print-directory style >build/lint.txt 2>&1 & lint=$$!; \
	$(BIN)/python -m pytest -q $(WORKERS) --doctest-modules $(PIPELINES:%=--ignore=%) hlorewrite tests; tests=$$?; \
	wait $$lint; lint=$$?; cat build/lint.txt; test $$tests = 0 -a $$lint = 0

# Programs of several meshes.
pipelines: venv
	$(BIN)/python -m pytest -q $(MORE_WORKERS) $(PIPELINES)

# What `make test` and `make pipelines` leave out: tests/heavy.py lists it.
heavy: venv
	$(BIN)/python -m pytest -q $(MORE_WORKERS) --run-heavy -m heavy tests

# The inner loop, in under a minute: rules, spmd, ir, passes, the pass manager, and that each legality condition counts.
quick: venv
	$(BIN)/ruff check .
	@mkdir -p build; ($(BIN)/python tools/import_layers.py && $(BIN)/python tools/plain_words.py) >build/quick.txt 2>&1 \
	& lint=$$!; $(BIN)/python -m pytest -q $(WORKERS) $(QUICK); tests=$$?; \
	wait $$lint; lint=$$?; cat build/quick.txt; test $$tests = 0 -a $$lint = 0

lint: build/types-are-right style

style: venv
	$(BIN)/ruff check .
	$(BIN)/python tools/import_layers.py
	$(BIN)/python tools/op_lists.py
	$(BIN)/python tools/positional.py
	$(BIN)/python tools/plain_words.py

# Types take most of the time of lint, and are checked again when a file of the package or the environment has changed.
build/types-are-right: $(shell find hlorewrite passes patterns -name '*.py') pyproject.toml $(STAMP)
	$(BIN)/pyright
	@mkdir -p build; touch $@

# The same, with many more random programs and the slow cases, the notebooks, and real trainers (tools/trainers.py).
nightly: lint
	HLOREWRITE_NIGHTLY=1 HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -q --doctest-modules --run-slow hlorewrite tests
	$(BIN)/python tools/docs/run_notebook.py
	$(BIN)/python tools/trainers.py

# Damaged inputs of every form through the command, for FUZZ_SECONDS; then 10 000 random programs through every pipeline:
# none wrong, none hanging. What is found goes to build/fuzz.
FUZZ_SECONDS ?= 900
fuzz: venv
	PYTHONPATH=tests $(BIN)/python -m generators.hostile.fuzz --seconds $(FUZZ_SECONDS)
	PYTHONPATH=tests $(BIN)/python -m generators.fuzz

# The tests on each supported minor version of JAX, with the Pythons this machine has.
versions:
	$(PYTHON) tools/versions.py

# The site, in build/docs/html; needs no network. A warning is an error.
docs: venv
	$(BIN)/python tools/docs/make_site.py

# Every program in the folders of bench/. What other programs import is in bench/common; *_worker.py are started by others.
BENCHES = $(sort $(shell grep -l __main__ bench/*/*.py | grep -v -e bench/common/ -e _worker.py -e bench/evidence/)) bench/evidence
bench: venv
	@for script in $(BENCHES); do echo "== $$script"; $(BIN)/python $$script || exit 1; done
