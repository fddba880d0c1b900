# SPDX-License-Identifier: BSD-3-Clause
# Every target is short and does its work in tools/. `make` by itself lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PIPELINE ?=
ARGS ?=
DURATION_S ?= 10
SLO ?= 30us
SIM ?=
COSTS ?=
CORES ?=
FUZZ_SECONDS ?= 600
REF ?= HEAD~1
VENV := .venv/bin

.PHONY: help run test test-long bench bench-compare fuzz golden-update fmt lint build venv \
  install-packages clean

help: ## show this list
	@echo "usage: make TARGET"
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

run: ## run a gateway under full load with SLO=30us per flow: three controllers in turn (SIM=1 adds a simulation; PIPELINE=l2l3 DURATION_S=10 ARGS='nexthops=64' runs that pipeline instead; PIPELINE=vrf CORES=2 lets a part move to a second core and back)
	@tools/install_packages.sh run
	@tools/make_venv.sh
	@tools/build.sh run batchplaned native
ifeq ($(PIPELINE),)
	@exec $(VENV)/batchplane compare gateway saturate=true --slo '*=$(SLO)' $(if $(SIM),--simulate $(or $(COSTS),kept)) $(ARGS)
else ifneq ($(CORES),)
	@exec $(VENV)/batchplane run $(PIPELINE) inline=1 spare=$$(($(CORES) - 1)) --duration 20 --slo '*=$(or $(filter-out 30us,$(SLO)),100us)' \
	  -s controller=optimal -s controller.decompose=balance -s controller.master_periods=100 --scenario pipelines/scenarios/rush.yaml $(ARGS)
else
	@exec $(VENV)/batchplane run $(PIPELINE) --duration $(DURATION_S) $(if $(SIM),--simulate $(or $(COSTS),prior)) $(ARGS)
endif

test: ## run everything that must pass: builds, unit, property, golden and end-to-end tests, fuzz replay, sanitizers, linters
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/run_tests.sh routine

test-long: ## run the same with many more packets, a soak test, and clang-tidy on every file
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/run_tests.sh long

bench: ## run the benchmarks: print a table with intervals, write JSON under bench/out (ARGS is passed to bench/run.py)
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/build.sh release all
	@$(VENV)/python bench/run.py $(ARGS)

bench-compare: ## benchmark this tree against a commit, interleaved, with a verdict (REF=HEAD~1)
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/build.sh release all
	@$(VENV)/python bench/compare.py $(REF) $(ARGS)

fuzz: ## run libFuzzer on every fuzz target in turn (FUZZ_SECONDS=600 each)
	@tools/install_packages.sh run test fuzz
	@tools/build.sh fuzz fuzz_targets
	@tools/run_fuzzers.sh build-fuzz $(FUZZ_SECONDS)

golden-update: ## regenerate the golden cases from their models; review the diff
	@tools/install_packages.sh run
	@tools/make_venv.sh
	@$(VENV)/python tests/golden/make.py
	@git --no-pager diff --stat -- 'src/modules/*/golden'

fmt: ## format C++ and Python in place
	@tools/install_packages.sh test
	@tools/make_venv.sh
	@tools/lint.sh fmt

lint: ## run all linters and checks without building (CLANG_TIDY_ALL=1 includes unchanged files)
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/lint.sh all

build: ## build the daemon and the tests, optimised, into build/
	@tools/install_packages.sh run test
	@tools/build.sh release all

venv: ## create the Python environment in .venv
	@tools/install_packages.sh run
	@tools/make_venv.sh

install-packages: ## install the Debian packages that all targets need
	@tools/install_packages.sh run test fuzz
	@echo "packages: all installed"

clean: ## remove build output (but not .venv)
	rm -rf build build-tidy build-asan-heap build-asan-dpdk build-tsan-heap build-fuzz
