# Everything runs in .venv, made on first use; nothing is installed outside it.
PYTHON ?= python3
LOG ?= fixtures/logs/written/deepseek-r1-distill-qwen-32b-bf16-tp4.log
MODEL ?= fixtures/models/deepseek-r1-distill-qwen-32b

.PHONY: demo test lint types wheel-test clean

demo: .venv/ready
	.venv/bin/vlogcheck $(LOG) --expect-concurrency 16 --context 4096 --total-memory 65520MiB --model-config $(MODEL)

test: .venv/ready
	.venv/bin/python -m pytest -q -n 2

lint: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: .venv/ready
	.venv/bin/mypy

wheel-test:
	rm -rf build/wheel && mkdir -p build/wheel
	$(PYTHON) scripts/make_env.py build/wheel/builder build
	build/wheel/builder/bin/python -m build --quiet --wheel --outdir build/wheel/dist .
	$(PYTHON) scripts/make_env.py build/wheel/clean build/wheel/dist/*.whl
	cd build/wheel && clean/bin/python ../../scripts/wheel_test.py clean/bin/vlogcheck ../../fixtures/logs

.venv/ready: pyproject.toml scripts/make_env.py
	$(PYTHON) scripts/make_env.py .venv -e '.[dev]'

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
