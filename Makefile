# The everyday commands; CMake does the work (see CMakePresets.json). `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

PRESET ?= release
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 600
IDLE ?= 5
BUSY ?= 5
HOURS ?= 1
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

CONFIGURE = cmake --preset $(1) $(2) | { grep -E '^-- (CUDA|MPI|Python|Explorer page):' || true; }
BUILD = cmake --build --preset $(1) -j $(JOBS)
# Tests count quarters of cores (tests/CMakeLists.txt).
TEST = ctest --preset $(1) -j $$((4 * $(JOBS)))

.PHONY: help demo tour docs web web-test test test-full repeat soak build bench lint format install fuzz golden clean package picture setup

help: ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: ## install the Debian packages that the build needs and that are missing
	@scripts/setup.sh build

build: setup ## build everything but the benchmarks (PRESET=release|dev|asan|tsan)
	@$(call CONFIGURE,$(PRESET))
	@$(call BUILD,$(PRESET))

# In the directory of `make build` and `make test`, but only what it runs: no CUDA, one MPI, no tests.
demo: setup ## half a minute: fit this machine, plan, prove and run an AllReduce, against MPI's own; one number
	@scripts/setup.sh tcp openmpi testbed
	@$(call CONFIGURE,release)
	@$(call BUILD,release) --target gar_demo
	@build/release/bin/gar demo --html build/demo.html

tour: setup ## the long way round: a network, predictions, a plan, its proof, a simulation, and this machine
	@scripts/setup.sh tcp openmpi testbed
	@$(call CONFIGURE,release)
	@$(call BUILD,release) --target gar_demo
	@scripts/tour.sh build/release/bin/gar

test: setup ## all tests: of whole programs, and property tests; of parts, programs and the runtime under the address and undefined behaviour sanitizers; of threads under the thread sanitizer
	@scripts/setup.sh simgrid tcp mpi testbed python
	@scripts/setup.sh clients torch
	@scripts/test.sh $(JOBS)

test-full: test ## make test, plus the tests of parts without sanitizers, property tests with them, all in the debug and thread sanitizer builds, and every combination and case in the runtime's and the property tests (hours)
	@$(call CONFIGURE,release,-DGAR_BUILD_PART_TESTS=ON)
	@$(call BUILD,release)
	@$(call TEST,release) -L '^(unit|fuzz)$$'
	@$(call CONFIGURE,asan,-DGAR_BUILD_PROPERTY_TESTS=ON)
	@$(call BUILD,asan)
	@$(call TEST,asan) -L '^property$$'
	@$(call CONFIGURE,dev)
	@$(call BUILD,dev) --target benchmarks
	@for preset in dev tsan; do \
	  $(call CONFIGURE,$$preset) && $(call BUILD,$$preset) && $(call TEST,$$preset) || exit 1; \
	done
	@for program in build/release/tests/runtime_*_test build/release/tests/property_*_test; do \
	  echo "== $${program##*/}, everything"; GAR_TEST_FULL=1 $$program --gtest_brief=1 || exit 1; \
	done
	@GAR_TEST_FULL=1 $(call TEST,release) -R '^(golden_fit_mpi_test|testbed_preload_.*|preload_(refusals|report)_test)$$'
	@scripts/setup.sh clients-full
	@$(call TEST,release) -C Full -L '^(mpi|preload)-full$$'

repeat: build ## the tests of build/PRESET IDLE=5 times, then BUSY=5 times next to two busy processes, until one fails
	@scripts/repeat.sh --idle $(IDLE) --busy $(BUSY) --build build/$(PRESET)

soak: setup ## faults, random collectives and mutated files with new seeds in every round, for HOURS=1, until one fails
	@$(call CONFIGURE,$(PRESET),-DGAR_BUILD_PART_TESTS=ON)
	@$(call BUILD,$(PRESET))
	@scripts/soak.sh --hours $(HOURS) --build build/$(PRESET)

bench: setup ## build and run the benchmarks
	@scripts/setup.sh simgrid tcp mpi
	@$(call CONFIGURE,release)
	@$(call BUILD,release) --target benchmarks
	@for program in build/release/bench/bench_*; do \
	  if [[ -f $$program && -x $$program ]]; then echo "== $${program##*/}"; $$program || exit 1; fi; \
	done

lint: ## clang-format and clang-tidy, without changing anything
	@scripts/setup.sh build lint
	@scripts/setup.sh tcp mpi
	@scripts/lint.sh

format: ## format all C++ files
	@scripts/setup.sh lint
	@scripts/lint.sh --fix-format

docs: ## the documents as pages, build/docs/index.html, with the C++ and C interface; every public symbol must be documented
	@scripts/setup.sh docs
	@scripts/docs.sh

# npm ci, when what is installed is older than what is asked for. Nothing of it runs while it is installed.
web/node_modules/.package-lock.json: web/package-lock.json
	@cd web && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@touch $@

web: setup ## the explorer page, build/web/gar.html, which gar explore writes a network into (npm, emscripten)
	@scripts/setup.sh web
	@$(MAKE) --no-print-directory web/node_modules/.package-lock.json
	@JOBS=$(JOBS) node web/build.mjs build/web

web-test: web ## what make test leaves out: the page in Chromium and Firefox, and its core against the native one
	@scripts/setup.sh web-test
	@$(call CONFIGURE,release)
	@cmake --build --preset release -j $(JOBS) --target gar_cli gar_ask
	@cd web && npx --no-install eslint . && node --test test/unit
	@cd web && node test/requests.mjs ../build/web/core ../build/release/bin/gar-ask
	@cd web && node test/walk.mjs ../build/web ../build/release/bin/gar && node test/firefox.mjs ../build/web/gar.html

fuzz: ## libFuzzer on every reader, FUZZ_SECONDS=600 each
	@scripts/setup.sh build tcp fuzz
	@$(call CONFIGURE,fuzz)
	@$(call BUILD,fuzz)
	@scripts/fuzz.sh build/fuzz $(FUZZ_SECONDS)

golden: build ## rewrite the expected output in the golden tests and documents; look at the difference before you commit it
	@for transcript in tests/golden/*.transcript; do \
	  tests/golden/run_transcript.sh --update build/$(PRESET)/bin/gar $$transcript || exit 1; \
	done
	@tests/golden/docs_test.sh --update build/$(PRESET)/bin/gar .

install: setup ## build and install below PREFIX=/usr/local (DESTDIR is honoured)
	@$(call CONFIGURE,release)
	@$(call BUILD,release)
	@cmake --install build/release --prefix $(PREFIX)

package: setup ## build everything into a tarball in build/package, which can be unpacked and used anywhere, without root
	@if command -v emcc >/dev/null && command -v npm >/dev/null; then $(MAKE) --no-print-directory web; \
	elif [[ ! -f build/web/gar.html ]]; then echo "make package: left out: the explorer page, which needs npm and emscripten (make web)" >&2; fi
	@$(call CONFIGURE,release)
	@$(call BUILD,release)
	@cpack --config build/release/CPackConfig.cmake -B build/package | sed -n 's/^CPack: - package: \(.*\) generated\.$$/\1/p'

picture: ## draw docs/img/networks.svg from data/measurements/networks.json
	@bench/network/picture >docs/img/networks.svg

clean: ## remove the build directories of the presets, the pages of make docs and make web, and packages
	@rm -rf build/release build/dev build/asan build/tsan build/fuzz build/docs build/package build/web web/node_modules
