# Everything happens in .venv inside this clone; PYTHON picks the interpreter that makes it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Tests start Python more than a thousand times: without compiled files, each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup postgres rabbitmq kafka elasticmq chromium prometheus run test lint bench chaos mutants clean screenshots console console-types console-lint console-test console-where-node-is

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) console-where-node-is ## Make .venv with redrive and everything the other targets need

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "redrive needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[alerts,dev,bench,kafka,postgres,rabbitmq,schema,server,servicebus,sqs]'
	@touch $(READY)

# The console is built by Node.js where there is one. Without it everything else works, and the page at / says how.
NODE    := $(shell node -e 'const [major, minor] = process.versions.node.split("."); if (+major > 20 || (+major === 20 && +minor >= 19)) console.log("node")' 2>/dev/null)
MODULES := console/node_modules/.ready
CONSOLE := src/redrive/console/.vite/manifest.json
NO_NODE := echo 'no Node.js 20.19 or newer here: the console is neither built nor checked'

$(MODULES): console/package.json console/package-lock.json console/.npmrc
	cd console && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $(MODULES)

$(CONSOLE): $(MODULES) $(shell find console -name node_modules -prune -o -type f ! -name '*.test.ts*' -print)
	cd console && node_modules/.bin/vite build --logLevel warn
	@touch $(CONSOLE)

console: ## Build the web console into the package (needs Node.js)
	@$(if $(NODE),:,$(NO_NODE); exit 1)
	@$(MAKE) --no-print-directory $(CONSOLE)

console-where-node-is: $(if $(NODE),$(CONSOLE))
	@$(if $(NODE),:,$(NO_NODE))

console-types: $(READY) $(MODULES) ## Write the console's types of the API anew, from its OpenAPI
	console/scripts/types.sh src/api/schema.d.ts

console-lint: $(READY) console-where-node-is
ifneq ($(NODE),)
	@told=$$(mktemp); trap 'rm -f "$$told"' EXIT; console/scripts/types.sh "$$told" && cmp -s "$$told" console/src/api/schema.d.ts || \
	  { echo 'console/src/api/schema.d.ts is not of this API: make console-types'; exit 1; }
	cd console && node_modules/.bin/tsc --noEmit
	cd console && node_modules/.bin/eslint . --max-warnings 0
	cd console && node scripts/size.mjs
endif

console-test: console-where-node-is
ifneq ($(NODE),)
	cd console && CI=1 node_modules/.bin/vitest run --reporter=dot
endif

run: setup ## See it work: a small shop whose messages fail, are retried, set apart and put back
	@$(BIN)/redrive demo $(ARGS)

# The tests start a PostgreSQL of their own, so only its programs are needed: no cluster of the system's is made or started.
postgres: ## Install PostgreSQL's programs if the tests would miss them
	@if ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || [ -n "$$REDRIVE_TEST_POSTGRES" ]; then \
	  exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql-common && \
	  mkdir -p /etc/postgresql-common/createcluster.d && \
	  echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.d/redrive-tests.conf && \
	  apt-get install -y -qq --no-install-recommends postgresql; \
	else \
	  echo 'no PostgreSQL here, so its tests will be skipped: apt-get install postgresql (as root), or set REDRIVE_TEST_POSTGRES=postgresql://...'; \
	fi

# As above: a node of the tests' own needs the programs alone. Debian's package starts a broker when it is installed,
# which a policy in force for that moment forbids.
rabbitmq: ## Install RabbitMQ's programs if the tests would miss them
	@if [ -n "$$REDRIVE_TEST_RABBITMQ" ] || { { ls /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server >/dev/null 2>&1 || command -v rabbitmq-server >/dev/null; } && command -v amqp-publish >/dev/null && command -v openssl >/dev/null; }; then \
	  exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; policy=/usr/sbin/policy-rc.d; kept=$$policy.redrive-tests; \
	  if [ -e $$policy ]; then mv $$policy $$kept; fi; \
	  trap 'rm -f '$$policy'; if [ -e '$$kept' ]; then mv '$$kept' '$$policy'; fi' EXIT; trap 'exit 130' INT TERM; \
	  printf '#!/bin/sh\nexit 101\n' > $$policy && chmod 755 $$policy && \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends rabbitmq-server amqp-tools openssl; \
	else \
	  echo 'no RabbitMQ or amqp-tools here, so their tests will be skipped: apt-get install rabbitmq-server amqp-tools openssl (as root), or set REDRIVE_TEST_RABBITMQ=amqp://...'; \
	fi

# Java's own programs run them, and Maven fetches them once, into the user's cache.
WITH_JAVA = if ! { command -v javac && command -v mvn; } >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends default-jdk-headless maven || exit 1; \
	fi

kafka: $(READY) ## Fetch Kafka into ~/.cache/redrive if the tests would miss it
	@if [ -n "$$REDRIVE_TEST_KAFKA" ]; then exit 0; fi; \
	$(WITH_JAVA); \
	PYTHONPATH=tests $(BIN)/python -m support.kafka_server

elasticmq: $(READY) ## Fetch ElasticMQ, which plays SQS, as Kafka is
	@if [ -n "$$REDRIVE_TEST_ELASTICMQ" ]; then exit 0; fi; \
	$(WITH_JAVA); \
	PYTHONPATH=tests $(BIN)/python -m support.elasticmq_server

# Debian's own, for the tests of the console: Playwright's programs drive it, and its own browser is not needed.
chromium: ## Install chromium if the tests would miss it
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then \
	  exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	else \
	  echo 'no chromium here, so the tests of the console will be skipped: apt-get install chromium (as root)'; \
	fi

# Its own programs check metrics and rules, and scrape in the tests. Debian's package starts a server when it is
# installed, as RabbitMQ's does.
prometheus: ## Install Prometheus's programs if the tests would miss them
	@if command -v promtool >/dev/null && command -v prometheus >/dev/null; then \
	  exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; policy=/usr/sbin/policy-rc.d; kept=$$policy.redrive-tests; \
	  if [ -e $$policy ]; then mv $$policy $$kept; fi; \
	  trap 'rm -f '$$policy'; if [ -e '$$kept' ]; then mv '$$kept' '$$policy'; fi' EXIT; trap 'exit 130' INT TERM; \
	  printf '#!/bin/sh\nexit 101\n' > $$policy && chmod 755 $$policy && \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus; \
	else \
	  echo 'no promtool here, so its tests will be skipped: apt-get install prometheus (as root)'; \
	fi

# A program of others that writes clients from our OpenAPI; apart, for it needs other versions than we do.
GENERATOR := $(VENV)/generator/.ready

$(GENERATOR): $(READY)
	$(PYTHON) -m venv $(VENV)/generator
	$(VENV)/generator/bin/python -m pip install --quiet --disable-pip-version-check 'openapi-python-client==0.29.1'
	@touch $(GENERATOR)

# For the tests' emulator of Service Bus, and for mypy, which reads it. It has to be compiled, which nobody should wait
# for who only wants to run.
EMULATOR := $(VENV)/.emulator

$(EMULATOR): $(READY)
	@if ! command -v cc >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev; \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[emulator]'
	@touch $(EMULATOR)

test: setup postgres rabbitmq kafka elasticmq chromium prometheus $(GENERATOR) $(EMULATOR) console-test ## Run all tests (ARGS="-n 0 -k name" for some, in one process)
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

lint: setup $(EMULATOR) console-lint ## ruff, mypy, import-linter; eslint, tsc, types and size of the console
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup $(if $(filter servicebus,$(NAME)),$(EMULATOR)) ## List the benchmarks, or run one: make bench NAME=embedded (ARGS="--letters 100000" for some)
	@$(BIN)/python -m bench $(NAME) $(ARGS)

screenshots: setup chromium ## Pictures of the console's pages into docs/images (ARGS="overview run" for some)
	@$(BIN)/python -m tools.screenshots $(ARGS)

chaos: setup postgres rabbitmq kafka elasticmq $(EMULATOR) ## The long kill tests: make chaos KILLS=2000
	@PYTHONPATH=tests $(BIN)/python -m support.debian_13
	REDRIVE_TEST_RABBITMQ_4=1 REDRIVE_CHAOS_KILLS=$(or $(KILLS),2000) REDRIVE_ENGINE_KILLS=$(or $(ENGINE_KILLS),500) \
	  REDRIVE_STATEFUL_STEPS=$(or $(STEPS),500000) REDRIVE_API_CASES=$(or $(CASES),50000) $(BIN)/python -m pytest tests/chaos tests/stateful tests/acceptance/test_api_schema.py tests/contract/test_search_equivalence.py $(ARGS)

mutants: setup rabbitmq ## Break the order of writes on purpose, each way once: the tests must notice (ARGS="--only NAME")
	@PYTHONPATH=tests $(BIN)/python -m mutants $(ARGS)

clean: ## Remove .venv, caches and the demonstration's files
	rm -rf console/node_modules src/redrive/console
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .redrive
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
