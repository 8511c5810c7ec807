# Two commands on a machine with only Python (3.11 or newer) and make do everything: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.hlorewrite-installed
DEMO_STAMP := $(VENV)/.hlorewrite-demo-installed

.PHONY: demo venv test lint nightly bench docs

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

# Style, types, import directions; then every unit, golden-file, oracle and end-to-end test, and the doctests.
test: lint
	$(BIN)/python -m pytest -q --doctest-modules hlorewrite tests

lint: venv
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/python tools/import_layers.py

# The same, with many more random programs and the slow cases.
nightly: lint
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -q --doctest-modules --run-slow hlorewrite tests

# The site, in build/docs/html; needs no network. A warning is an error.
docs: venv
	$(BIN)/python tools/docs/make_site.py

bench: venv
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done
