# `make demo` and `make test` do their own set-up: they create .venv when it is missing.
PYTHON ?= python3
DATA := ../shared/data/scikit_learn_data
ifneq ($(wildcard $(DATA)),)
export SCIKIT_LEARN_DATA ?= $(abspath $(DATA))
endif

demo: .venv/installed
	.venv/bin/python -m benchmarks demo

# The tests; and those on small tables again with the JIT off, where an index out of bounds is an error.
PLAIN := @tests/plain.txt
test: .venv/installed
	.venv/bin/python -m pytest -q -n auto
	NUMBA_DISABLE_JIT=1 .venv/bin/python -m pytest -q -n auto $(PLAIN)

# scikit-learn's own tests on our classes, the slow ones as well.
conformance: .venv/installed
	.venv/bin/python -m tests.conformance --slow
	.venv/bin/python -m tests.conformance around

# All tests, with kernels that refuse indices that are out of bounds.
bounds: .venv/installed
	NUMBA_BOUNDSCHECK=1 .venv/bin/python -m pytest -q -n auto

# Lines that tests reach: all tests, kernels compiled anew, and then small tables with the JIT off, for
# the lines of kernels.
coverage: .venv/installed
	rm -f .coverage .coverage.*
	COVERAGE_FILE=.coverage.jit NUMBA_CACHE_DIR=$$(mktemp -d) .venv/bin/python -m pytest -q -n auto --cov --cov-report=
	COVERAGE_FILE=.coverage.plain NUMBA_DISABLE_JIT=1 .venv/bin/python -m pytest -q -n auto --cov --cov-report= $(PLAIN)
	.venv/bin/coverage combine
	.venv/bin/coverage report --fail-under=95

# README, docs, examples and the tests of the front door in a new environment, against a wheel.
wheel-test: .venv/installed
	.venv/bin/python -m tests.fresh_environment

# What a release must pass: texts, sdist, and a wheel of it in an empty environment for each Python.
release-check: .venv/installed
	.venv/bin/python -m tests.release_check

lint: .venv/installed
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

# Damaged models, fast paths around their limits, hostile fits for so many seconds; and properties on
# other examples than the tests', so many times as many (of partitions, too).
TIME ?= 600
EXAMPLES ?= 10
fuzz: .venv/installed
	.venv/bin/python -m benchmarks fuzz
	.venv/bin/python -m benchmarks limits
	.venv/bin/python -m benchmarks fits --seconds $(TIME)
	EXAMPLES=$(EXAMPLES) .venv/bin/python -m pytest -q -n auto -m hypothesis

# Sixty small faults in the code, for so many seconds: which do the nearest tests see?
mutants: .venv/installed
	.venv/bin/python -m benchmarks mutants --seconds $(TIME)

# The suite against all peers, and what speed is made of: hours.
bench: .venv/installed
	.venv/bin/pip install -q -c constraints.txt -e ".[test,flights]"
	.venv/bin/python -m benchmarks
	.venv/bin/python -m benchmarks phases
	.venv/bin/python -m benchmarks startup
	.venv/bin/python -m benchmarks tables

# Other studies that docs/benchmarks.md shows: hours. Not kinds, book, book_missing, book_speed,
# distributed, calibration, words, conditional and shap, which have a command each.
studies: .venv/installed
	.venv/bin/pip install -q -c constraints.txt -e ".[test,flights]"
	.venv/bin/python -m benchmarks identity
	.venv/bin/python -m benchmarks groups
	.venv/bin/python -m benchmarks categorical
	.venv/bin/python -m benchmarks forest
	.venv/bin/python -m benchmarks importance
	.venv/bin/python -m benchmarks lessons
	.venv/bin/python -m benchmarks tables

# Every script of examples/, in the folder that takes their figures.
examples: .venv/installed
	cd docs/figures && for script in ../../examples/*.py; do MPLBACKEND=Agg ../../.venv/bin/python $$script || exit 1; done

# The pages: every block of code is run, then the site is built; warnings are errors.
docs: .venv/installed
	.venv/bin/pip install -q -c constraints.txt -e ".[test,docs]"
	ALL_PAGES=1 .venv/bin/python -m pytest -q tests/test_code_blocks.py
	.venv/bin/python -m sphinx -q -W --keep-going -b html docs site
	@echo "the site is site/index.html"

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install -q -c constraints.txt -e ".[test]"
	touch $@

.PHONY: demo test conformance fuzz mutants bounds coverage wheel-test release-check lint bench studies examples docs
