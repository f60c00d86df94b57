# Two commands: `make tune` does the main job on a bundled example, `make test` runs the short tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ORACLE := $(VENV)/.oracle
BROWSER := $(VENV)/.browser

.PHONY: tune test test-long check install clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,models,onnx,xgboost]'
	touch $@

# The tests compare with mamba-ssm's own code, which needs no GPU for that, but says it does when it is installed.
$(ORACLE): $(INSTALLED)
	MAMBA_FORCE_BUILD=TRUE MAMBA_SKIP_CUDA_BUILD=TRUE $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-build-isolation --no-deps mamba-ssm==2.3.2.post1
	touch $@

# The tests look at the HTML report with chromium; without it those tests are skipped, so nothing here may fail.
$(BROWSER): $(INSTALLED)
	@if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		export DEBIAN_FRONTEND=noninteractive; \
		{ apt-get install -y chromium || { apt-get update && apt-get install -y chromium; }; } >$(VENV)/browser.log 2>&1 \
			|| echo "chromium could not be installed (see $(VENV)/browser.log): its tests are skipped"; \
	fi
	@touch $@

tune: $(INSTALLED)
	$(BIN)/tcl-iree tune examples/small_cnn.py:build --target cpu --scope quick --trials 32 --time-limit 90 --min-share 0.01 --seconds 5 --db out/trials.db -o out

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check $(ORACLE) $(BROWSER)
	$(BIN)/python -m pytest -m "not long" --numprocesses 2 --dist loadfile --durations 20

test-long: check $(ORACLE) $(BROWSER)
	$(BIN)/python -m pytest

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache
