# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

unexport PYTHONDONTWRITEBYTECODE # hundreds of Pythons start; each would compile everything anew

.PHONY: help demo test test-tools lint types layers unit slow-test quick docs bench golden data-given accuracy serving fit replay experiments fuzz-telemetry fuzz-results prices-backtest focus-test export-test torch-test loops-test projects-test page-test loop chaos vm-test live-test mcp-test lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Python compiles what is imported, a tenth of what is installed.
INSTALL := $(BIN)/pip --quiet --disable-pip-version-check install --no-compile

$(VENV)/.venv: # a newer pip resolves in a third of the time of the one that Python 3.11 brings
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "gpucost needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo "The venv module is missing: apt-get install python3-venv, then make again."; exit 1; }
	$(INSTALL) --upgrade pip
	@touch $@

$(VENV)/.runtime: pyproject.toml $(VENV)/.venv
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.venv
	$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/.runtime

demo: $(VENV)/.runtime ## install, plan a bundled measured job, write ./report.md
	$(BIN)/gpucost demo --report report.md

test: $(VENV)/.dev ## all that CI runs: lint, types, layers, tests; types beside the tests, for it keeps one core busy
	@$(MAKE) --no-print-directory --jobs 2 lint types layers unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev # one more worker than cores: many tests wait for processes (7:46 -> 6:59 on two)
	$(BIN)/pytest -n $$(( $$(nproc) + 1 )) --reruns 2 --durations=20 -rR -m "not proof"

slow-test: $(VENV)/.dev ## the slow proofs that `make test` leaves out, and property tests on hundreds of other draws; every night
	GPUCOST_HYPOTHESIS=random $(BIN)/pytest -n auto --reruns 2 --durations=20 -rR -m "proof or hypothesis"
	GPUCOST_DRAWS=12 $(BIN)/pytest -n auto --reruns 2 -rR tests/planner/bills/test_generated.py
	GPUCOST_DRAWS=500 $(BIN)/pytest -n auto --reruns 2 -rR tests/planner/test_promises.py tests/planner/proof/test_simulated.py

quick: $(VENV)/.dev ## the inner loop: the tests that start no process and no server
	$(BIN)/pytest -n auto -m "not slow"

$(VENV)/.docs: $(VENV)/.runtime
	$(INSTALL) --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## build the docs site into site/; a link that leads nowhere ends it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

golden: $(VENV)/.dev ## rewrite the golden files; look at the diff
	$(BIN)/pytest -q tests --update-golden

data-given:
	@test -d "$(DATA)" || { echo "DATA names no folder: make $(MAKECMDGOALS) DATA=FOLDER (the published data sets; research/README.md lists them)"; exit 2; }

prices-backtest: $(VENV)/.dev ## fit how far prices move with age on the bundled history, score it with providers left out
	$(BIN)/python -m research.price_moves_page $$(date -u +%F)

experiments: $(VENV)/.dev ## 10,000 simulated experiments: false proofs, power, coverage, beside simpler rules
	$(BIN)/python -m research.experiments 10000

accuracy: data-given $(VENV)/.dev ## score predictions on DATA left out of their fit, write docs/accuracy.md and what ships
	$(BIN)/python -m research.accuracy "$(DATA)" --page docs/accuracy.md --scores planner/models/data/accuracy.json

serving: data-given $(VENV)/.dev ## print every bar of `gpucost serve` on the runs in DATA, beside simple baselines
	$(BIN)/python -m research.serving "$(DATA)"

fit: data-given $(VENV)/.dev ## fit the coefficients of predictions anew on the data sets in DATA
	$(BIN)/python -m research.fit "$(DATA)" $$(date -u +%F)

replay: data-given $(VENV)/.dev ## pack 1,000 jobs that behave as published pairs in DATA, run them: memory, latency, bill
	$(BIN)/python -m research.replay "$(DATA)"

fuzz-telemetry: $(VENV)/.dev ## 20,000 damaged files of telemetry: each is read or refused with a sentence
	$(BIN)/python -m tests.fuzz 20000 --seed $$(date -u +%s) --jobs 2 --seconds 1800

fuzz-results: $(VENV)/.dev ## 10,000 hostile archives of a rented machine: nothing is written beside the folder of its run
	$(BIN)/python -m tests.fuzz.results 10000 --seed $$(date -u +%s)

bench: $(VENV)/.dev ## print ratios against their stated baselines: start-up, 20,000 offers, predictions, measuring
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/catalog.py
	$(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/sampler.py
	$(BIN)/python benchmarks/around.py
	$(BIN)/python benchmarks/probe.py

.venv-focus/.ready: # the official validator needs an older numpy and pandas than we do
	$(PYTHON) -m venv .venv-focus
	.venv-focus/bin/pip install --quiet --disable-pip-version-check 'focus-validator==1.0.0' 'multimethod<2' 'numpy<2' 'pandas<3'
	@touch $@

focus-test: $(VENV)/.runtime .venv-focus/.ready ## hold an export against the official FOCUS validator
	$(BIN)/python tests/focus_validator.py $(BIN)/gpucost .venv-focus/bin/focus-validator examples/visual-search.json

.venv-tools/.ready: # the tools themselves: what they pull in stays out of our own environment
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/pip install --quiet --disable-pip-version-check 'skypilot==0.14.1' 'dstack==0.22.5' 'kubernetes-validate==1.37.0' python-hcl2
	@touch $@

export-test: $(VENV)/.dev .venv-tools/.ready ## hold every exported task against the parser of its own tool
	@folder="$$(mktemp -d)" && $(BIN)/python -m tests.exported_tasks "$$folder" && .venv-tools/bin/python tests/task_validator.py "$$folder"; code=$$?; rm -rf "$$folder"; exit $$code

chaos: $(VENV)/.dev ## launches killed in worlds that lag, lie and fail: what is left, late, untrue; PAGE=docs/explanation/ending.md rewrites its tables
	$(BIN)/python -m tests.chaos --jobs 2 $(if $(PAGE),--into $(PAGE))

N ?= 3000
mcp-test: $(VENV)/.dev ## N hostile calls to the tools for agents, a third of them to real processes that are killed, too: dollars at risk, orphans
	$(BIN)/python -m tests.mcp_hostile $$(( $(N) / 3 )) --seed 1
	$(BIN)/python -m tests.mcp_hostile $$(( $(N) / 3 )) --seed 2
	$(BIN)/python -m tests.mcp_hostile $$(( $(N) / 3 )) --seed 3 --real

vm-test: $(VENV)/.dev ## boot the rendered user data on a real virtual machine (qemu; Debian: apt-get install qemu-system-x86 mmdebstrap genisoimage)
	GPUCOST_VM=1 $(BIN)/pytest -q -n 0 -s -rs tests/vm

live-test: $(VENV)/.dev ## hold live imports against a real Prometheus and a real VictoriaMetrics (Debian: apt-get install prometheus victoria-metrics)
	GPUCOST_LIVE=1 $(BIN)/pytest -q -n 0 -rs tests/live

# PyTorch first, and alone: its CPU file; any other pin would pull gigabytes of CUDA.
.venv-torch/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0'
	.venv-torch/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0' lightning accelerate transformers keras jax nbclient ipykernel 'pytest>=8.3' 'hypothesis>=6.100' 'pytest-xdist>=3.6' --editable .
	@touch $@

torch-test: $(VENV)/.runtime .venv-torch/.ready ## hold the probe against PyTorch, Lightning, Accelerate, HF Trainer, Keras
	.venv-torch/bin/python -m pytest -q tests/torch --deselect tests/torch/test_troubled_loops.py

loops-test: $(VENV)/.runtime .venv-torch/.ready ## 32 troubled loops under `gpucost profile`: verdict, line, share (12 minutes)
	.venv-torch/bin/python -m pytest -q -n 0 tests/torch/test_troubled_loops.py

projects-test: $(VENV)/.runtime .venv-torch/.ready ## six public projects under `gpucost run`, from clones in the folder CLONES
	@test -d "$(CLONES)" || { echo "CLONES names no folder: make projects-test CLONES=FOLDER (tests/torch/test_public_projects.py lists the projects)"; exit 2; }
	.venv-torch/bin/pip install --quiet --disable-pip-version-check gymnasium tyro tensorboard tiktoken requests
	GPUCOST_PUBLIC_PROJECTS="$(abspath $(CLONES))" .venv-torch/bin/python -m pytest -q -n 0 -rs tests/torch/test_public_projects.py

loop: $(VENV)/.runtime .venv-torch/.ready ## make a starved PyTorch script faster without editing it, and prove it
	rm -rf build/loop
	GPUCOST_STATE_DIR=build/loop/state $(BIN)/gpucost loop --folder build/loop --no-gpu --no-metadata --current aws/g4dn.xlarge/us-east-1 --yes -- .venv-torch/bin/python examples/loop/train.py

.venv-page/.ready: # Playwright drives the chromium of the system (Debian: apt-get install chromium)
	$(PYTHON) -m venv .venv-page
	.venv-page/bin/pip install --quiet --disable-pip-version-check playwright
	cd .venv-page && npm pack --silent axe-core@4.14.1 && tar xzf axe-core-4.14.1.tgz
	@touch $@

PAGES := one fleet pods keep many zh
page-test: $(VENV)/.runtime .venv-page/.ready ## look at the pages of five plans, one in Chinese too, in Chromium: errors, requests, accessibility, what-if; pictures in build/page
	mkdir -p build/page
	$(BIN)/python -m tests.page_series examples/visual-search.json build/page/series
	$(BIN)/python -m tests.page_many 400 build/page/many
	$(BIN)/gpucost plan examples/visual-search.json -q -o build/page/one.json > build/page/one.txt
	$(BIN)/gpucost plan examples/fleet -q -o build/page/fleet.json > build/page/fleet.txt
	$(BIN)/gpucost plan examples/hard/pods-one-machine -q -o build/page/pods.json > build/page/pods.txt
	$(BIN)/gpucost plan examples/well-used.json -q -o build/page/keep.json > build/page/keep.txt
	$(BIN)/gpucost plan build/page/many -q -o build/page/many.json > build/page/many.txt
	$(BIN)/gpucost report build/page/one.json --style html --series build/page/series -q -o build/page/one.html
	$(BIN)/gpucost report build/page/one.json --style html --series build/page/series --lang zh -q -o build/page/zh.html
	for page in fleet pods keep many; do $(BIN)/gpucost report build/page/$$page.json --style html -q -o build/page/$$page.html || exit 1; done
	.venv-page/bin/python tests/page_check.py .venv-page/package/axe.min.js build/page $(PAGES:%=build/page/%.html)

test-tools: ## install what the tests need from the system (Debian)
	@needed="$$($(PYTHON) -c 'import ensurepip' 2>/dev/null || echo python3-venv)"; \
	command -v gcc >/dev/null || needed="$$needed gcc libc6-dev"; \
	wanted="$$(command -v shellcheck >/dev/null && command -v cloud-init >/dev/null && command -v /usr/sbin/sshd >/dev/null && command -v rsync >/dev/null || \
	  echo shellcheck cloud-init openssh-server openssh-client rsync)"; \
	test -z "$$needed$$wanted" || apt-get update -qq; \
	test -z "$$needed" || apt-get install -y -qq $$needed || exit; \
	test -z "$$wanted" || apt-get install -y -qq --no-install-recommends $$wanted || \
	  echo "some tools are missing; their tests skip and say so"

lock: ## choose anew, with hashes, what a rented machine installs to run gpucost (needs uv)
	uv pip compile --quiet --universal --generate-hashes --only-binary :all: --python-version 3.11 --no-annotate --no-header --upgrade pyproject.toml -o templates/jobs/requirements.txt

clean: ## remove what the targets made
	rm -rf $(VENV) .venv-focus .venv-tools .venv-torch .venv-page build dist site *.egg-info report.md
