# Every command of the project. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Debian's own Python: a virtual environment made with another one has dangling links inside a pod.
DEBIAN_PYTHON := /usr/bin/python3.11
PYTHON := .venv/bin/python
CLUSTER := $(PYTHON) -m local.cluster
INSIDE := $(CLUSTER) enter --
PYTEST := $(PYTHON) -m pytest
# One worker more than the cores that CI has: most of the cluster's tests wait.
PARALLEL := -n 3 --no-loadscope-reorder
ARGS ?=
PROMPT ?= The quick brown fox
export PATH := $(PATH):/usr/local/go/bin
export PYTHONUNBUFFERED := 1

.PHONY: help
help: ## List the commands.
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

## Set up

.PHONY: setup
setup: prerequisites .venv/ready ## Install all that the other commands need: packages, Python, the cluster's programs, vLLM.
	$(PYTHON) -m local.binaries
	$(PYTHON) -m local.vllm_environment

.PHONY: prerequisites
prerequisites:
	@test -x $(DEBIAN_PYTHON) || { echo "there is no $(DEBIAN_PYTHON): run: apt-get install python3.11" >&2; exit 1; }
	@$(DEBIAN_PYTHON) -m local.prerequisites --install

.venv/ready: requirements-dev.txt
	test -x $(PYTHON) || $(DEBIAN_PYTHON) -m venv .venv
	$(PYTHON) -m pip install --quiet --require-hashes -r requirements-dev.txt
	printf '%s\n' "$(CURDIR)/operator" "$(CURDIR)/images/vllm-plugin" \
		> "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/checkout.pth"
	touch $@

.PHONY: lock
lock: ## Pin what pyproject.toml asks for: the operator image's requirements and the developer's.
	LOCK="uv pip compile pyproject.toml --quiet --generate-hashes --python-version 3.11 \
		--python-platform x86_64-manylinux_2_28 --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links $(ARGS)"; \
	.venv/bin/$$LOCK -o images/operator/requirements.txt; \
	.venv/bin/$$LOCK --extra cli --group dev -o requirements-dev.txt

## Generated files

.PHONY: generate
generate: ## Write what is made from the code: CRD, reference pages, dashboards.
	$(PYTHON) -m tools.generate

.PHONY: docs
docs: .venv/ready ## Build the site of docs/ into dist/site; any warning is an error.
	.venv/bin/sphinx-build --quiet --fail-on-warning --nitpicky --fresh-env docs dist/site
	@echo "built: $(CURDIR)/dist/site/index.html"

.PHONY: docs-links
docs-links: .venv/ready ## Ask for every page of others that the docs link to; needs the Internet.
	.venv/bin/sphinx-build --quiet -b linkcheck docs dist/links

.PHONY: golden
golden: ## Rewrite the golden manifests of every example, and the golden statuses.
	$(PYTHON) -m tools.golden

## A Kubernetes of one's own

.PHONY: cluster
cluster: setup ## Start the local cluster, or do nothing when it runs.
	$(CLUSTER) up

.PHONY: install
install: cluster ## Install this checkout's images and chart into the local cluster.
	$(PYTHON) -m local.install

.PHONY: cluster-down
cluster-down: ## Stop the local cluster and remove all that it left on this machine.
	$(CLUSTER) down

.PHONY: images
images: prerequisites .venv/ready ## Build the two published images afresh, twice: digest and size of each.
	$(PYTHON) -m local.release --twice

.PHONY: kubectl
kubectl: ## Talk to the local cluster: make kubectl ARGS="get spm -A".
	@$(CLUSTER) kubectl $(ARGS)

.PHONY: shell
shell: cluster ## Open a shell inside the local cluster's network, with its kubectl and helm.
	@$(INSIDE) bash

.PHONY: demo
demo: install ## Serve a tiny model with the real vLLM on the CPU and watch its proposal length being tuned.
	$(INSIDE) $(PYTHON) -m local.demo

.PHONY: ask
ask: ## Ask the demo's model something: make ask PROMPT="Once upon a time".
	@$(INSIDE) $(PYTHON) -m local.demo ask "$(PROMPT)"

.PHONY: demo-down
demo-down: ## Delete the demo's model; the cluster stays.
	@$(INSIDE) $(PYTHON) -m local.demo down

## Checks

.PHONY: lint
lint: setup ## Style, types, import rules, Dockerfiles, chart and rendered manifests.
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	.venv/bin/hadolint $$(find images local -name Dockerfile)
	$(PYTHON) -m tools.validate

.PHONY: test-unit
test-unit: setup ## The tests that need no cluster.
	$(PYTEST) tests/unit $(PARALLEL) $(ARGS)

.PHONY: test
test: setup lint ## All checks, set-up included; a cluster that was not up before is taken down again.
	$(CLUSTER) status >/dev/null 2>&1 || trap '$(CLUSTER) down' EXIT; \
	$(CLUSTER) up; \
	$(PYTHON) -m local.install; \
	$(INSIDE) $(PYTEST) tests/cluster tests/local_cluster -m "not long" \
		$(PARALLEL) --durations=15 $(ARGS); \
	$(INSIDE) $(PYTEST) tests/e2e tests/unit -m "not long and not alone" \
		$(PARALLEL) --durations=15 $(ARGS); \
	$(INSIDE) $(PYTEST) tests/e2e tests/chaos -m "not long and alone" --durations=15 $(ARGS)

.PHONY: test-long
test-long: setup ## The tests that take longer than CI has.
	$(PYTHON) -m local.binaries --long
	$(PYTHON) -m tests.support.earlier
	$(CLUSTER) status >/dev/null 2>&1 || trap '$(CLUSTER) down' EXIT; \
	$(CLUSTER) up; \
	$(PYTHON) -m local.images; \
	$(INSIDE) $(PYTEST) tests -m long --ignore=tests/chaos --durations=15 $(ARGS)

.PHONY: chaos
chaos: setup ## All faults, one after the other, on a model under load: what broke, what was lost, what healed.
	$(CLUSTER) status >/dev/null 2>&1 || trap '$(CLUSTER) down' EXIT; \
	$(CLUSTER) up; \
	$(PYTHON) -m local.install; \
	$(INSIDE) $(PYTEST) tests/chaos -q $(ARGS)

## Benchmarks

.PHONY: benchmark
benchmark: setup ## What the operator costs beside a bare client: latency, CPU, requests, memory.
	$(CLUSTER) status >/dev/null 2>&1 || trap '$(CLUSTER) down' EXIT; \
	$(CLUSTER) up; \
	$(PYTHON) -m local.images vllm-plugin simulated-engine; \
	$(INSIDE) $(PYTHON) -m benchmarks.operator $(ARGS)
