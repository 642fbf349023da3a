# The verbs of this project; `just --list` shows them.

# Install everything that development needs.
setup:
    pip install -e ".[dev]"

# Run the tests: `just test tests/store -k vector`.
test *arguments:
    pytest -n 3 {{arguments}}

# Run the tests that take long, or a part of them: `just nightly --part 2/5`.
nightly *arguments:
    pytest -n 3 -m nightly {{arguments}}

# Run the real programs that the integrations are for: the first run downloads them, some 400 MB, unless
# CLAUDE_CODE_BINARY names that program, and OPENCODE_MODULES and QMD_NODE_MODULES folders of npm's modules.
hosts *arguments:
    pytest -m hosts tests/hosts tests/integrations {{arguments}}

# Print which faults the library survives, by which figures: `just faults --run` runs the proofs first.
faults *arguments:
    python tests/faults/matrix.py {{arguments}}

# Check style and types.
lint:
    ruff check .
    ruff format --check .
    mypy --strict
    pyright

# Mend what a tool can mend.
format:
    ruff check --fix .
    ruff format .

# Execute the notebooks and keep what their cells put out: `just notebooks quickstart`.
notebooks *names:
    python tests/notebook_runs.py {{names}}

# Build the documentation into build/docs.
docs:
    sphinx-build -W --keep-going -n -b html docs build/docs

# Write what the documentation keeps of the code: the table of settings, and the picture of a search result.
picture:
    python docs/make.py

# Measure: see benchmarks/README.md.
bench *arguments:
    python benchmarks/retrieval.py {{arguments}}
    python benchmarks/speed.py

# Pin what CI installs to the newest versions that pyproject.toml allows. It takes the CPU build of torch, which needs no CUDA.
lock:
    uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade --no-header --no-annotate --quiet \
        | grep -vE '^(cuda-|nvidia-|triton=)' > .ci/constraints.txt

# Everything that must hold before a merge.
ci:
    .ci/run
