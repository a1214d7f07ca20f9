test: .venv/installed
	.venv/bin/python -m pytest -q

.venv/installed: pyproject.toml constraints.txt
	python3 -m venv .venv
	.venv/bin/pip install -q -c constraints.txt -e ".[test]"
	touch $@

.PHONY: test
