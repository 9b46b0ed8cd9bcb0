# Every target creates .venv and installs what it needs, with the versions of requirements/pins.txt.
# Needs GNU make, Python 3.11 or newer with venv, and a package index.
#
#   make demo         pass a photograph through NumPy, PyTorch and JAX and back; writes a PNG
#   make test         run the tests with the libraries that install in a minute
#   make test-without-native  test the Python code that replaces the C extension, 2 minutes
#   make test-all     run `test`, then the tests of TensorFlow, Paddle, MLX, Warp, dpnp (8 GB more on disk)
#   make test-newest  run `test` with the newest Python and libraries, PyTorch built for CUDA (6 GB on disk)
#   make try-newest   run `test-newest` with today's newest versions instead of requirements/newest.txt
#   make test-lowest  run `test` with the lowest versions that pyproject.toml allows
#   make test-debian  run `test` on Debian's newest Pythons, in a debootstrap root; needs root (DEBIAN=forky DEBIAN_PYTHONS="3.14 3.15")
#   make test-arm64   test DLPack, the kernels and the C extension on Debian's arm64 under QEMU; needs root (PYTEST_ARGS: other files)
#   make lint         run ruff, import-linter, mypy, pyright (with PyTorch); check the workflows, templates and CITATION.cff
#   make docs         build the site in docs/_build/html; needs no network once its packages are installed
#   make docs-links   check every external link of the site; needs a network
#   make test-docs    test the site in a headless browser (chromium, google-chrome, ... must be installed)
#   make pictures     draw the pictures of the documentation in docs/pictures (a test compares them)
#   make bench        run the benchmarks for a CPU, 12 minutes; writes benchmarks/RESULTS.md and charts (QUICK=1: print only, 2 minutes)
#   make gpu          run the tests and benchmarks that need a CUDA device; see docs/gpu.md (GPU_PYTHON=...: another Python)
#   make gpu-carry    fill .carry with the packages for a GPU machine without a package index, for its Python (CARRY_FOR=3.12)
#   make matrix       convert every library to every other, also with their own functions; writes docs/matrix.md
#   make sanitize     run the C extension's stress program under the sanitizers of gcc or clang
#   make fuzz-native  test malformed structs for an hour under AddressSanitizer (MINUTES=60 SEED=...)
#   make fuzz         test copies between guard pages for an hour (MINUTES=60 SEED=...)
#   make conformance  run the official array API test suite (SUITE=<checkout> EXAMPLES=20 NAMESPACES=... WRITE=1)
#   make downstream   run the tests of SciPy, array-api-extra, scikit-learn, xarray (SUITES=... LIBRARIES=... WRITE=1)
#   make release-check  build and check the sdist and wheel of the last commit, install them on each Python (PYTHONS=3.12 TAG=v0.1.0); writes dist/
#   make clean        remove .venv and all build results and caches
#
# PYTEST_ARGS are passed to pytest: make test PYTEST_ARGS="-k capsule -x".
# On Linux, PyTorch's wheels on PyPI include CUDA (2 GB); with PyTorch's CPU index in PIP_EXTRA_INDEX_URL,
# pip installs the CPU build of the same version.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.SUFFIXES:
.NOTPARALLEL:

VENV := .venv
PY := $(VENV)/bin/python
GPU_PYTHON ?= $(PY)
CARRY_FOR ?= 3.12
PYTEST_ARGS ?=
# One process runs a file of tests, in order, with 1.5 GB of memory. Files are sorted by name: with
# xdist's order, by the number of tests, files with few long tests would run last, next to idle processes.
PARALLEL ?= -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
EXAMPLES ?= 20
MINUTES ?= 60
PIP_FLAGS ?= -qq

# The first Python that is new enough: `python3`, or one with a version in its name.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && { echo "$$p"; break; }; done)
endif

# The pinned versions; Python 3.15 gets the newest, as several pins have no wheels for it.
PINS := requirements/$(shell "$(PYTHON)" -c 'import sys; \
	print("newest" if sys.version_info >= (3, 15) else "pins")' 2>/dev/null || echo pins).txt

# A Python of one version: by its name, or from pyenv.
python = $(shell for p in python$(1) "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$(1)*/bin/python3; do \
	"$$p" -c 'import venv, ensurepip' 2>/dev/null && { echo "$$p"; break; }; done)
NEWEST_PYTHON ?= $(firstword $(foreach v,3.15 3.14 3.13 3.12,$(call python,$v)))
LOWEST_PYTHON ?= $(call python,3.11)
# The versions that `make release-check` installs the wheel on.
PYTHONS ?= 3.11 3.12 3.13 3.14 3.15
DEBIAN ?= forky
DEBIAN_PYTHONS ?= 3.14 3.15

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

.PHONY: help demo test test-without-native test-all test-newest try-newest test-lowest test-debian test-arm64 newest-python lint docs docs-links test-docs bench gpu gpu-carry matrix fuzz fuzz-native sanitize conformance downstream release-check clean

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

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
	"$(PYTHON)" -m venv --clear $(VENV)
	@touch $@

# One stamp per set of extras: `make` installs again only if the pins, the extras or the C sources change.
BUILT := pyproject.toml setup.py $(wildcard arraybridge/native/*.c arraybridge/native/*.h)
$(VENV)/.demo: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,demo,about a minute,2)
$(VENV)/.test: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test,about a minute,3)
$(VENV)/.heavy: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)heavy$(comma)engines,a few minutes,10)
$(VENV)/.bench: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)bench$(comma)engines,a few minutes,6)
$(VENV)/.lint: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,dev,half a minute,1)
$(VENV)/.docs: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,docs,half a minute,1)
$(VENV)/.site: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)site,a few seconds,3)
$(VENV)/.conformance: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)conformance,about a minute,3)
$(VENV)/.downstream: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)downstream,about a minute,3)
$(VENV)/.release: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,release,half a minute,1)
$(VENV)/.gpu: $(VENV)/.made $(BUILT) $(PINS)
	$(call INSTALL,test$(comma)cuda13,a few minutes,9)
comma := ,

demo: $(VENV)/.demo
	$(PY) examples/photograph.py

test: $(VENV)/.test
	$(PY) -m pytest $(PARALLEL) -m "not heavy and not site" $(PYTEST_ARGS)

# The folders with code in both C and Python; `make test` with ARRAYBRIDGE_NO_NATIVE=1 runs all.
WITHOUT_NATIVE := $(addprefix tests/,$(addprefix unit/,array core dlpack kernels native protocols cli/test_cli.py \
	test_copies.py test_namespace.py) processes)
test-without-native: $(VENV)/.test
	ARRAYBRIDGE_NO_NATIVE=1 $(PY) -m pytest $(PARALLEL) -m "not heavy and not site" $(WITHOUT_NATIVE) $(PYTEST_ARGS)

sanitize: $(VENV)/.test
	$(PY) -m tests.unit.native.sanitize

fuzz-native: $(VENV)/.test
	$(PY) -m tests.unit.native.sanitize -m tests.unit.native.fuzz $(MINUTES) $(SEED)

test-all: test $(VENV)/.heavy
	$(PY) -m pytest $(PARALLEL) -m heavy $(PYTEST_ARGS)

# Separate virtual environments, for another Python and other versions than the pins.
.venv-newest/.made .venv-lowest/.made:
	@test -n "$(OTHER_PYTHON)" || { echo "no Python found for $(@D): pass one with" \
		"NEWEST_PYTHON= or LOWEST_PYTHON=" >&2; exit 1; }
	"$(OTHER_PYTHON)" -m venv --clear $(@D)
	@touch $@
.venv-newest/.made: OTHER_PYTHON = $(NEWEST_PYTHON)
.venv-lowest/.made: OTHER_PYTHON = $(LOWEST_PYTHON)

.venv-%/.test: .venv-%/.made $(BUILT) requirements/%.txt
	$(if $(filter newest,$*),$(TEST_WITHOUT_TORCH))
	$(@D)/bin/python -m pip install --no-input $(PIP_FLAGS) -r requirements/$*.txt
	$(@D)/bin/python -m pip install --no-input $(PIP_FLAGS) --no-deps --editable . && touch $@

# Users may have no PyTorch: before it is installed, every file of tests is collected, and the tests that
# do not need it are run.
WITHOUT_TORCH := $(addprefix tests/,$(addsuffix .py,integration/test_library_pyarrow processes/test_first_use \
	processes/test_import properties/test_conversions $(addprefix unit/,adapt/test_adapt array/test_array audit/test_audit \
	cli/test_cli core/test_names core/test_routes protocols/test_arrow test_namespace xp/test_xp_alone xp/test_xp_asarray)))
define TEST_WITHOUT_TORCH
sed '/^torch==/d; /^nvidia-/d; /^triton==/d; /^cuda-toolkit==/d' requirements/newest.txt > $(@D)/without.txt
$(@D)/bin/python -m pip uninstall --yes $(PIP_FLAGS) torch
$(@D)/bin/python -m pip install --no-input $(PIP_FLAGS) -r $(@D)/without.txt
$(@D)/bin/python -m pip install --no-input $(PIP_FLAGS) --no-deps --editable .
$(@D)/bin/python -m pytest --collect-only -qq tests > $(@D)/collected.txt || { tail -50 $(@D)/collected.txt; exit 1; }
$(@D)/bin/python -m pytest $(PARALLEL) -q -m "not heavy and not site" $(WITHOUT_TORCH)
endef

test-newest test-lowest: test-%: .venv-%/.test
	.venv-$*/bin/python -m pytest $(PARALLEL) -m "not heavy and not site" $(PYTEST_ARGS)

try-newest: .venv-newest/.test
	rm .venv-newest/.test
	sed 's/==.*//' requirements/newest.txt > .venv-newest/names.txt
	.venv-newest/bin/python -m pip install --no-input $(PIP_FLAGS) --upgrade -r .venv-newest/names.txt
	.venv-newest/bin/python -m pytest $(PARALLEL) -m "not heavy and not site" $(PYTEST_ARGS)

test-debian:
	@test "$$(id -u)" = 0 || { echo "debootstrap and chroot must be run as root" >&2; exit 1; }
	"$(PYTHON)" -m tests.release.debian $(DEBIAN) $(DEBIAN_PYTHONS)

test-arm64:
	@test "$$(id -u)" = 0 || { echo "debootstrap and chroot must be run as root" >&2; exit 1; }
	@{ command -v debootstrap && command -v qemu-aarch64-static; } >/dev/null || \
		apt-get install --yes --no-install-recommends debootstrap qemu-user-static
	"$(PYTHON)" -m tests.release.arm64 $(if $(PYTEST_ARGS),-- $(PYTEST_ARGS))

newest-python: # prints its path, or nothing
	@echo "$(NEWEST_PYTHON)"

SCHEMA = $(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.
# Needs PyTorch for its class of memory formats, which tests/typing/refused.py names.
lint: $(VENV)/.lint $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
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
	$(PY) -m sphinx --fail-on-warning --keep-going --jobs auto -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

docs-links: $(VENV)/.docs
	$(PY) -m sphinx --keep-going --jobs auto -b linkcheck docs docs/_build/links

test-docs: docs $(VENV)/.site
	$(PY) -m pytest -m site tests/docs $(PYTEST_ARGS)

.PHONY: pictures
pictures: $(VENV)/.test
	$(PY) -m tests.pictures

bench: $(VENV)/.bench
	$(PY) -m benchmarks $(if $(QUICK),--quick)

gpu: $(if $(filter $(PY),$(GPU_PYTHON)),$(VENV)/.gpu)
	$(GPU_PYTHON) -m benchmarks.gpu $(if $(CALL),--call $(CALL))

gpu-carry: $(VENV)/.test
	$(PY) -m benchmarks.gpu.carry --python $(CARRY_FOR)

matrix: $(VENV)/.heavy
	$(PY) -m tests.matrix --write

fuzz: $(VENV)/.test
	$(PY) -m tests.guarded --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

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
	rm -rf $(VENV) .venv-newest .venv-lowest build dist docs/_build docs/api/generated *.egg-info .pytest_cache .ruff_cache .mypy_cache \
		.import_linter_cache .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
