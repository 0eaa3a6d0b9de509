# Every target sets itself up in a fresh clone: its own virtual environment, from the lock files.
# `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python -m
CREATED := $(VENV)/.created
BASE := $(VENV)/.base-installed
DEV := $(VENV)/.dev-installed
ALL := $(VENV)/.all-installed
EMULATOR := $(VENV)-emulator/.installed
INSTALL := $(BIN)/python requirements/install.py
# --quiet twice: a machine's own settings of pip may make it warn about every package; errors are always shown.
EDITABLE := $(RUN) pip --disable-pip-version-check --quiet --quiet install --no-deps --no-index --no-build-isolation --editable .
LOCK := $(VENV)-lock/bin/python -m uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade)
TESTS ?=
# Tests wait more than they work: for processes to start, polls to end, leases to run out.
JOBS ?= 6

.DELETE_ON_ERROR:
.PHONY: dist docs up up-aws test test-fast test-aws collect simulate fuzz soak prove check lint types bench conformance lock clean help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' Makefile

up: $(BASE) ## run it all; PORT= SMTP_PORT= PREVIEW_PORT= DATA= let two run side by side
	@exec $(RUN) webordinary up $(if $(DATA),--data "$(DATA)") $(if $(PORT),--port $(PORT)) \
		$(if $(SMTP_PORT),--smtp-port $(SMTP_PORT)) $(if $(PREVIEW_PORT),--preview-port $(PREVIEW_PORT))

up-aws: $(ALL) $(EMULATOR) ## run it all on an emulator of AWS; PORT= PREVIEW_PORT= DATA= let two run side by side
	@exec $(RUN) webordinary aws local --emulator $(VENV)-emulator/bin/ministack --data "$(or $(DATA),data-aws)" \
		$(if $(PORT),--port $(PORT)) $(if $(PREVIEW_PORT),--preview-port $(PREVIEW_PORT))

test: ## check, then run every test; TESTS=tests/unit runs some, JOBS=2 fewer at once
	@$(MAKE) --no-print-directory --jobs 2 check collect $(EMULATOR)
	$(RUN) pytest -n $(JOBS) --dist loadgroup $(TESTS)

# Compiles the tests once, beside the checks: the processes that run them would each do it for themselves.
collect: $(ALL)
	@$(RUN) pytest --collect-only -qq $(TESTS) >/dev/null || true # the run itself says what is wrong

test-fast: $(ALL) ## the unit tests that take no second: what to run while you write
	@$(RUN) pytest -n 2 --dist worksteal -m "not slow" tests/unit

test-aws: $(ALL) $(EMULATOR) ## the tests on the emulators of AWS
	$(RUN) pytest -n $(JOBS) --dist loadgroup tests/aws tests/contract

simulate: $(DEV) ## many seeded worlds of the real code with faults; SEEDS=10000 FIRST=0
	@$(RUN) tests.simulation --seeds $(or $(SEEDS),10000) --first $(or $(FIRST),0)

fuzz: $(ALL) ## seeded hostile inputs to mail parser, SMTP server, sandbox proxy and SES reader; MINUTES=10 FIRST=
	@$(RUN) tests.fuzz --minutes $(or $(MINUTES),10) $(if $(FIRST),--first $(FIRST))

soak: $(DEV) ## faults under load, in turn; MINUTES=30 SEED= KINDS=kills,freezes,disk,clock,power,memory,descriptors
	@$(RUN) tests.acceptance.soak --minutes $(or $(MINUTES),30) $(if $(KINDS),--kinds $(KINDS)) $(if $(SEED),--seed $(SEED))

prove: $(CREATED) ## check the models of docs/proofs exhaustively; needs spin and gcc
	@$(BIN)/python docs/proofs/prove.py

check: types lint ## lint, formatting, types, import directions, lock files

types: $(ALL)
	$(RUN) mypy

lint: $(ALL)
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(BIN)/lint-imports --no-cache
	@! grep -nEi 'index-url|find-links|https?://' requirements/*.lock infra/cdk/package-lock.json \
		|| { echo "a lock file names a package index; make it again with: make lock"; exit 1; }

bench: $(DEV) ## run one benchmark and print JSON; BENCH=name
	@test -f "benchmarks/$(BENCH).py" || { echo "make bench BENCH=name, where name is one of:"; \
		ls benchmarks | sed -n 's/\.py$$//p'; exit 2; }
	@$(BIN)/python benchmarks/$(BENCH).py

conformance: $(DEV) ## run a corpus of others: KIND=mail or asl, DIR=folder of *.jsonl; FAILED=1 names what fails
	@test -n "$(KIND)" -a -d "$(DIR)" || { echo "make conformance KIND=mail DIR=path (KIND is mail or asl)"; exit 2; }
	@$(RUN) tests.conformance.run $(KIND) "$(DIR)" $(if $(FAILED),--failed)

docs: $(DEV) ## build the docs as a site, build/site; a broken link fails
	@$(RUN) mkdocs build --strict

dist: $(BASE) ## build the wheel and the source distribution, dist/
	@rm -rf dist && $(RUN) hatchling build -d dist

lock: $(CREATED) ## pin the dependencies again; UPGRADE=1 takes newer versions (needs the network)
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements/uv.lock
	$(LOCK) -o requirements/uv.lock requirements/uv.in
	$(LOCK) --all-extras -o requirements/all.lock pyproject.toml
	$(LOCK) --extra dev -c requirements/all.lock -o requirements/dev.lock pyproject.toml
	$(LOCK) -c requirements/dev.lock -o requirements/base.lock pyproject.toml
	$(LOCK) --extra acp --extra aws -c requirements/all.lock -o requirements/worker.lock pyproject.toml
	$(LOCK) --extra acp --extra aws --extra claude -c requirements/all.lock -o requirements/worker-claude.lock pyproject.toml
	$(LOCK) -c requirements/dev.lock -o requirements/build.lock requirements/build.in
	$(LOCK) -c requirements/all.lock -o requirements/lambda.lock requirements/lambda.in
	$(LOCK) -c requirements/all.lock -o requirements/lambda-emulator.lock requirements/lambda-emulator.in
	$(LOCK) -o requirements/emulator.lock requirements/emulator.in

clean: ## remove what make made; your data folder stays
	rm -rf $(VENV) $(VENV)-lock $(VENV)-emulator build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "WebOrdinary needs Python 3.11 or newer, '$(PYTHON)' is another or missing." >&2; \
		echo "Name one that fits: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments; install that part of it" >&2; \
		echo "(Debian, Ubuntu: apt install python3-venv) and try again." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(BASE): requirements/base.lock requirements/build.lock requirements/install.py pyproject.toml $(CREATED)
	@$(INSTALL) "what WebOrdinary runs on" requirements/base.lock requirements/build.lock
	@$(EDITABLE)
	@touch $@

$(DEV): requirements/dev.lock $(BASE)
	@$(INSTALL) "tools for checks and tests" requirements/dev.lock
	@touch $@

# --no-compile: half of the work would be bytecode of modules that are never imported.
$(ALL): requirements/all.lock $(DEV)
	@$(INSTALL) "every extra (1 GB)" requirements/all.lock -- --no-compile
	@touch $@

# Emulators of AWS, apart: what they pin must not hold back what we use.
$(EMULATOR): requirements/emulator.lock requirements/install.py | $(CREATED)
	@$(PYTHON) -m venv $(VENV)-emulator
	@$(VENV)-emulator/bin/python requirements/install.py "emulators of AWS (0.4 GB)" requirements/emulator.lock -- --no-compile
	@touch $@
