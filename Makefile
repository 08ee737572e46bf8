# Two commands from a fresh clone: `make book` builds the site, `make test` checks everything. `make help` lists the rest.
# They need Python 3.11, 3.12 or 3.13 (with venv), make and git, and a connection to PyPI for the first run.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help test lint book lab student serve bench lock clean distclean

# The first of these that runs and is new enough; `make PYTHON=/path/to/python` overrides it.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
endif

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PORT ?= 8000

# What is built and tested runs on the simulated NPU, even on a machine that has a real one; make lab takes what it finds.
test book bench: export NPULAB_BACKEND ?= sim
export JUPYTER_PREFER_ENV_PATH := 1

help:
	@echo 'make book    build the site into _build/html, running every notebook on the simulated NPU'
	@echo 'make test    linter, type checker and all tests'
	@echo 'make student open the notebooks without their solutions in JupyterLab (they are written into student/)'
	@echo 'make lab     open the notebooks of the book itself in JupyterLab, solutions included'
	@echo 'make serve   serve the built site on http://127.0.0.1:$(PORT)'
	@echo 'make bench   speed of the simulator, beside the same workload on SimPy'
	@echo 'make lock    resolve pyproject.toml into requirements.lock again'
	@echo 'make clean   remove what the build made (make distclean: the environment too)'

# The stamp is written last, so an interrupted install is started again from nothing; with a stamp, a changed lock is
# installed over what is there. The lock names everything that is needed, and pip is told to look for no more.
$(VENV): $(STAMP)
$(STAMP): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo 'error: Python 3.11, 3.12 or 3.13 is needed; none of python3, python3.13, python3.12, python3.11, python is one.'; \
		echo '       Install one, or name it: make PYTHON=/path/to/python'; exit 1; fi
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
		echo 'error: $(PYTHON) is not Python 3.11, 3.12 or 3.13; make PYTHON=/path/to/python names another.'; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
		echo 'error: $(PYTHON) cannot make virtual environments (the module ensurepip is missing).'; \
		echo '       On Debian and Ubuntu: apt install python3-venv'; exit 1; }
	@if [ -f $(STAMP) ]; then echo "Updating $(VENV) from requirements.lock ..."; \
	else echo "Installing into $(VENV) from requirements.lock (about a minute) ..."; "$(PYTHON)" -m venv --clear $(VENV); fi
	@rm -f $(STAMP)
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps -r requirements.lock
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

lint: $(STAMP)
	@$(PY) -m ruff check --output-format concise .
	@$(PY) -m mypy utils/npusim utils/npulab

# One pytest run for everything: unit tests, the notebooks as they are (nbval), the student versions, and, where a fresh
# site stands, the site. `make test ARGS='-k saxpy'` passes options on.
test: lint
	@$(PY) -m pytest $(ARGS)

book: $(STAMP)
	@$(PY) -m npulab book
	@echo 'Checking the site (about a minute) ...'
	@$(PY) -m pytest -q -m site tests/book/test_site.py

# Options for JupyterLab: `make lab ARGS=--allow-root` in a container.
lab: $(STAMP)
	@$(PY) -m jupyterlab $(ARGS) book

# What you have changed in student/ stays as it is. `make student ARGS=--no-browser` passes options on to JupyterLab.
student: $(STAMP)
	@$(PY) -m npulab student book
	@$(PY) -m jupyterlab $(ARGS) student

serve: $(STAMP)
	@test -f _build/html/index.html || { echo 'error: no site yet; run make book first'; exit 1; }
	@echo 'http://127.0.0.1:$(PORT) (Ctrl-C ends it)'
	@$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

bench: $(STAMP)
	@$(PY) -m npusim bench

# Keeps the pins that still fit; `make lock ARGS=--upgrade` takes the newest of everything.
lock: $(STAMP)
	@$(PY) -m uv --version >/dev/null 2>&1 || $(PY) -m pip install -qq --disable-pip-version-check uv
	@$(PY) -m uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-header --no-annotate \
		$(ARGS) --output-file requirements.lock pyproject.toml
	@{ echo '# The whole environment, pinned, for Python 3.11 to 3.13. Made from pyproject.toml by make lock; not to be edited.'; \
	   cat requirements.lock; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock

# Not student/, which holds what its reader has written.
clean:
	@rm -rf _build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	@rm -rf .venv *.egg-info
