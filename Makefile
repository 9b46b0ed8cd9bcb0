# Every target creates .venv and installs what it needs, with the versions of requirements/pins.txt.
# Needs GNU make, Python 3.11 or newer with venv, and a package index.
#
#   make demo           pass a photograph through NumPy, PyTorch and JAX and back; writes a PNG
#   make test           run the tests with the libraries that install in a minute, 4 minutes on two cores
#                       (FILES=tests/unit/core; PYTEST_ARGS="-k capsule -x"; WITHOUT_C=1: those of what C does, in Python)
#                       (VERSIONS=newest: newest Python and libraries, PyTorch for CUDA, 6 GB; UPGRADE=1: today's newest)
#                       (VERSIONS=lowest: the lowest versions that pyproject.toml allows)
#   make test-all       run `test`, then the tests of TensorFlow, Paddle, MLX, Warp, dpnp (8 GB more on disk)
#   make lint           run ruff, import-linter, mypy, pyright (with PyTorch); check the budget of lines, .github, CITATION.cff
#   make docs           build the site in docs/_build/html (BUILDER=linkcheck: its links)
#   make bench          run the benchmarks for a CPU, 12 minutes; writes benchmarks/RESULTS.md and charts (QUICK=1: print only)
#   make gpu            run the tests and benchmarks that need a CUDA device; see docs/gpu.md (GPU_PYTHON=...: another Python)
#   make gpu-carry      fill .carry with the packages for a GPU machine without a package index, for its Python (CARRY_FOR=3.12)
#   make matrix         convert every library to every other, also with their own functions; writes docs/matrix.md
#   make conformance    run the official array API test suite (SUITE=<checkout> EXAMPLES=20 NAMESPACES=... WRITE=1)
#   make downstream     run the tests of SciPy, array-api-extra, scikit-learn, xarray (SUITES=... LIBRARIES=... WRITE=1)
#   make release-check  build and check the sdist and wheel of the last commit, install them on each Python (PYTHONS=3.12 TAG=v0.1.0)
#   make clean          remove the environments that make made, all build results and caches
#
# On Linux, PyTorch's wheels on PyPI include CUDA (2 GB); with PyTorch's CPU index in PIP_EXTRA_INDEX_URL,
# pip installs the CPU build of the same version.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.SUFFIXES:
.NOTPARALLEL:

VERSIONS ?= pins
VENV := .venv$(patsubst %,-%,$(filter-out pins,$(VERSIONS)))
PY := $(VENV)/bin/python
GPU_PYTHON ?= $(PY)
CARRY_FOR ?= 3.12
FILES ?= $(if $(WITHOUT_C),$(OF_C),tests)
# One process runs a file of tests, in order, with 1.2 GB of memory. Files are sorted by name: with
# xdist's order, by the number of tests, files with few long tests would run last, next to idle processes.
PARALLEL ?= -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
EXAMPLES ?= 20
BUILDER ?= html
PIP_FLAGS ?= -qq

# A Python of one version: by its name, or from pyenv.
python = $(shell for p in python$(1) "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$(1)*/bin/python3; do \
	"$$p" -c 'import venv, ensurepip' 2>/dev/null && { echo "$$p"; break; }; done)
# The versions that `make release-check` installs the wheel on.
PYTHONS ?= 3.11 3.12 3.13 3.14 3.15

# The first Python that is new enough: `python3`, or one with a version in its name.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifeq ($(VERSIONS),newest)
PYTHON ?= $(firstword $(foreach v,3.15 3.14 3.13 3.12,$(call python,$v)))
else ifeq ($(VERSIONS),lowest)
PYTHON ?= $(call python,3.11)
else
PYTHON ?= $(shell for p in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && { echo "$$p"; break; }; done)
endif

# The pinned versions; Python 3.15 gets the newest, as several pins have no wheels for it.
PINS := requirements/$(shell "$(PYTHON)" -c 'import sys; \
	print("newest" if sys.version_info >= (3, 15) else "pins")' 2>/dev/null || echo pins).txt

# Arguments: the extras, the time, and the GB on disk for a new .venv: pip's own message is only
# "No space left on device". Bytecode is written by the first import. The constraints are in the
# environment so that pip's isolated build environments get them as well (the second name is for newer
# versions of pip).
INSTALL = @free=$$(df -Pk . | awk 'NR == 2 { print int($$4 / 1048576) }'); \
	echo "installing $(1) into $(VENV), $(2)"; \
	if [ "$$free" -lt $(3) ]; then echo "a new $(VENV) takes about $(3) GB of disk for that," \
		"but only $$free GB are free here: free some space if pip fails." >&2; fi; \
	PIP_COMPILE=0 PIP_CONSTRAINT=$(PINS) PIP_BUILD_CONSTRAINT=$(PINS) PIP_DISABLE_PIP_VERSION_CHECK=1 \
	$(PY) -m pip install --no-input $(PIP_FLAGS) --editable '.[$(1)]' && touch $@

.PHONY: help demo test test-all lint docs bench gpu gpu-carry matrix conformance downstream release-check clean

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

# What make made has one of these files in it. Anything else of that name is somebody's own, and stays.
MADE = -e "$(1)/.making" -o -e "$(1)/.made"
$(VENV)/.made:
	@if [ -z "$(PYTHON)" ]; then \
		echo "arraybridge needs Python 3.11 or newer, but found none; python3 is:" \
			"$$(python3 --version 2>&1 || true)." >&2; \
		echo "On Debian 12, Ubuntu 24.04 or newer: sudo apt-get install python3 python3-venv" >&2; \
		echo "If it is installed elsewhere: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3" >&2; \
		exit 1; fi
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' || { \
		echo "arraybridge needs Python 3.11 or newer, but $(PYTHON) is:" \
			"$$("$(PYTHON)" --version 2>&1)." >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
		v=$$("$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "$(PYTHON) cannot make virtual environments: its venv or ensurepip is missing." >&2; \
		echo "On Debian or Ubuntu: sudo apt-get install python$$v-venv" >&2; exit 1; }
	@if [ -e "$(@D)" ] || [ -L "$(@D)" ]; then [ $(call MADE,$(@D)) ] || { \
		echo "$(@D) is here already, and make did not make it: move it away, or pass" \
			"VENV=another-folder, which make then makes." >&2; exit 1; }; fi
	@mkdir -p "$(@D)" && touch "$(@D)/.making"
	@cd "$(@D)" && rm -rf bin include lib lib64 pyvenv.cfg # of an interrupted make
	"$(PYTHON)" -m venv "$(@D)"
	@touch $@

# One stamp per set of extras: `make` installs again only if the pins, the extras or compiled sources change.
BUILT := pyproject.toml setup.py build_backend.py $(wildcard arraybridge/native/*.c arraybridge/native/*.h) \
	$(addprefix kernels/cpu/,$(addsuffix .py,build loader loops microkernels plan_types shuffle))
comma := ,
ifeq ($(VERSIONS),pins)
$(VENV)/.test: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test,about a minute,3)
else
$(VENV)/.test: $(VENV)/.made $(BUILT) requirements/$(VERSIONS).txt
	sed '$(if $(UPGRADE),s/==.*//)' requirements/$(VERSIONS).txt > $(VENV)/asked.txt
	$(PY) -m pip install --no-input $(PIP_FLAGS) $(if $(UPGRADE),--upgrade) -r $(VENV)/asked.txt
	$(PY) -m pip install --no-input $(PIP_FLAGS) --no-deps --editable .
	touch $@
endif
$(VENV)/.demo: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,demo,about a minute,2)
$(VENV)/.heavy: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)heavy$(comma)engines,a few minutes,10)
$(VENV)/.bench: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)bench,a few minutes,6)
$(VENV)/.lint: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,dev,half a minute,1)
$(VENV)/.docs: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,docs,half a minute,1)
$(VENV)/.conformance: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)conformance,about a minute,3)
$(VENV)/.downstream: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)downstream,about a minute,3)
$(VENV)/.release: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,release,half a minute,1)
$(VENV)/.gpu: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)cuda13,a few minutes,9)

demo: $(VENV)/.demo
	$(PY) examples/photograph.py

# The tests of what is in C as well as in Python; with ARRAYBRIDGE_NO_NATIVE=1 all may run.
OF_C := $(wildcard $(addprefix tests/,$(addprefix unit/,array core dlpack kernels native protocols test_copies.py \
	test_namespace.py) processes))
test: $(VENV)/.test
	$(if $(WITHOUT_C),ARRAYBRIDGE_NO_NATIVE=1) $(PY) -m pytest $(PARALLEL) -m "not heavy" $(FILES) $(PYTEST_ARGS)

test-all: test $(VENV)/.heavy
	$(PY) -m pytest $(PARALLEL) -m heavy $(PYTEST_ARGS)

SCHEMA = $(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.
# Needs PyTorch for its class of memory formats, which tests/typing/refused.py names.
lint: $(VENV)/.lint $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(PY) -m tests.budget
	$(VENV)/bin/lint-imports --no-cache
	$(VENV)/bin/mypy
	$(VENV)/bin/basedpyright --pythonpath $(PY)
	$(VENV)/bin/zizmor --quiet --offline --pedantic --strict-collection .github
	$(SCHEMA)github-workflows .github/workflows/*.yml
	$(SCHEMA)dependabot .github/dependabot.yml
	$(SCHEMA)github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA)github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA)citation-file-format CITATION.cff

docs: $(VENV)/.docs
	$(PY) -m sphinx $(if $(filter html,$(BUILDER)),--fail-on-warning) --keep-going --jobs auto -b $(BUILDER) docs docs/_build/$(BUILDER)
	@echo "open docs/_build/html/index.html"

bench: $(VENV)/.bench
	$(PY) -m benchmarks $(if $(QUICK),--quick)

gpu: $(if $(filter $(PY),$(GPU_PYTHON)),$(VENV)/.gpu)
	$(GPU_PYTHON) -m benchmarks.gpu $(if $(CALL),--call $(CALL))

gpu-carry: $(VENV)/.test
	$(PY) -m benchmarks.gpu.carry --python $(CARRY_FOR)

matrix: $(VENV)/.heavy
	$(PY) -m tests.matrix --write

conformance: $(VENV)/.conformance
	@test -n "$(SUITE)" || { echo "make conformance SUITE=<checkout of data-apis/array-api-tests, with" \
		"its submodule array-api> [EXAMPLES=200] [NAMESPACES='numpy torch-native'] [JOBS=2] [WRITE=1]" >&2; exit 2; }
	$(PY) -m tests.conformance "$(SUITE)" --examples $(EXAMPLES) \
		$(if $(NAMESPACES),--namespaces $(NAMESPACES)) $(if $(WRITE),--write) $(if $(JOBS),--jobs $(JOBS))

downstream: $(VENV)/.downstream
	$(PY) -m tests.downstream $(if $(SUITES),--suites $(SUITES)) \
		$(if $(LIBRARIES),--libraries $(LIBRARIES)) $(if $(WRITE),--write)

release-check: $(VENV)/.release
	@$(foreach v,$(PYTHONS),$(if $(call python,$v),,echo "no Python $v with venv here: the wheel is not tried on it";))
	$(PY) -m tests.release $(if $(TAG),--tag $(TAG)) $(foreach v,$(PYTHONS),$(call python,$v))

clean:
	@for v in .venv .venv-newest .venv-lowest; do if [ $(call MADE,$$v) ]; then rm -rf "$$v"; fi; done
	rm -rf build/lib* build/temp.* build/bdist.* dist/arraybridge_dlpack-* docs/_build docs/api/generated \
		arraybridge/_native.* kernels/cpu/_kernels* \
		arraybridge_dlpack.egg-info .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	@for folder in build dist; do rmdir $$folder 2>/dev/null || true; done
	find arraybridge benchmarks docs examples kernels tests -name __pycache__ -type d -prune -exec rm -rf {} +
