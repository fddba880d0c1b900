# SPDX-License-Identifier: BSD-3-Clause
# The front door: every target is one line here and does its work in tools/. `make` alone lists them.
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
FUZZ_SECONDS ?= 600
REF ?= HEAD~1
VENV := .venv/bin

.PHONY: help run test test-long bench bench-compare fuzz golden-update fmt lint build venv \
  install-packages clean

help: ## this list
	@echo "usage: make TARGET"
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

run: ## a gateway under full load, each flow promised SLO=30us: three controllers in turn (SIM=1: simulated beside it; PIPELINE=l2l3 DURATION_S=10 ARGS='nexthops=64': runs that one instead)
	@tools/install_packages.sh run
	@tools/make_venv.sh
	@tools/build.sh run batchplaned native
ifeq ($(PIPELINE),)
	@exec $(VENV)/batchplane compare gateway saturate=true --slo '*=$(SLO)' $(if $(SIM),--simulate $(or $(COSTS),kept)) $(ARGS)
else
	@exec $(VENV)/batchplane run $(PIPELINE) --duration $(DURATION_S) $(if $(SIM),--simulate $(or $(COSTS),prior)) $(ARGS)
endif

test: ## everything that must pass: builds, unit, property, golden, end to end, fuzz replay, sanitizers, linters
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/run_tests.sh routine

test-long: ## the same with many more packets, a soak, and clang-tidy on every file
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/run_tests.sh long

bench: ## measure: prints a table with intervals and writes JSON under bench/out (ARGS goes to bench/run.py)
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/build.sh release all
	@$(VENV)/python bench/run.py $(ARGS)

bench-compare: ## this tree against a commit, interleaved, with a verdict (REF=HEAD~1)
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/build.sh release all
	@$(VENV)/python bench/compare.py $(REF) $(ARGS)

fuzz: ## libFuzzer on every fuzz target, in turn (FUZZ_SECONDS=600 for each)
	@tools/install_packages.sh run test fuzz
	@tools/build.sh fuzz fuzz_targets
	@tools/run_fuzzers.sh build-fuzz $(FUZZ_SECONDS)

golden-update: ## write the golden cases anew from their models; look at the difference
	@tools/install_packages.sh run
	@tools/make_venv.sh
	@$(VENV)/python tests/golden/make.py
	@git --no-pager diff --stat -- 'src/modules/*/golden'

fmt: ## format C++ and Python in place
	@tools/install_packages.sh test
	@tools/make_venv.sh
	@tools/lint.sh fmt

lint: ## all linters and checks, without building anything (CLANG_TIDY_ALL=1: not only changed files)
	@tools/install_packages.sh run test
	@tools/make_venv.sh
	@tools/lint.sh all

build: ## the daemon and the tests, optimised, into build/
	@tools/install_packages.sh run test
	@tools/build.sh release all

venv: ## the Python environment in .venv
	@tools/install_packages.sh run
	@tools/make_venv.sh

install-packages: ## every Debian package that any target needs
	@tools/install_packages.sh run test fuzz
	@echo "packages: all there"

clean: ## remove what was built (not .venv)
	rm -rf build build-tidy build-asan-heap build-asan-dpdk build-tsan-heap build-fuzz
