# The verbs of this project; `just --list` shows them.

# Install everything that development needs.
setup:
    pip install -e ".[dev]"

# Run the tests: `just test tests/store -k vector`.
test *arguments:
    pytest -n 2 {{arguments}}

# Run the long tests too.
nightly:
    pytest -n 2 -m "nightly or not nightly"

# Check style and types.
lint:
    ruff check .
    ruff format --check .
    mypy --strict

# Mend what a tool can mend.
format:
    ruff check --fix .
    ruff format .

# Measure: see benchmarks/README.md.
bench *arguments:
    python benchmarks/retrieval.py {{arguments}}
    python benchmarks/speed.py

# Everything that must hold before a merge.
ci:
    .ci/run
