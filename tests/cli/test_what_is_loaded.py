"""A command loads what it needs: most of its time is that of imports."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from openclaw_memory import Memory
from openclaw_memory.indexing.changes import compare_scan
from openclaw_memory.testing.fakes import sample_workspace

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from openclaw_memory.__main__ import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules, file=sys.stderr)
"""
# What no command needs that works offline and on a terminal.
NEVER = {
    "asyncio", "httpx", "tenacity", "watchdog", "pandas", "matplotlib", "IPython", "sentence_transformers", "torch",
    "numpy.random", "numpy.ma", "openclaw_memory_batch", "openclaw_memory.embeddings.service",
}  # fmt: skip
# What reads, cuts and embeds files.
WRITING = {
    f"openclaw_memory.{name}" for name in ("indexing.pipeline", "indexing.gathering", "embeddings.stream", "documents")
}
STATE = {"openclaw_memory.types.status", "openclaw_memory.indexing.status"}
INDEX = {"numpy", "apsw", "sqlite_vec", "filelock", "hashlib", "openclaw_memory.workspace", "openclaw_memory.memory"}


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes") / "workspace"
    sample_workspace(folder)
    with Memory.open(folder) as memory:
        memory.sync()
        # A file that was changed within a tick of the clock is read once more, which loads what reads.
        while compare_scan(memory.workspace.scan(), memory._engine.service.store().get_files()).doubtful:
            memory.sync()
    return folder


def load(*arguments):
    """Return the modules that a command has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {*done.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        pytest.param(["--help"], INDEX | STATE | WRITING, marks=pytest.mark.nightly),
        pytest.param(["search", "--help"], INDEX | STATE | WRITING, marks=pytest.mark.nightly),
        (["search", "Who has the spare key?"], STATE | WRITING),
        pytest.param(["index"], STATE | WRITING | {"numpy", "sqlite_vec"}, marks=pytest.mark.nightly),
        pytest.param(["status"], {"numpy"}, marks=pytest.mark.nightly),
        pytest.param(
            ["show", "MEMORY.md#L3"], STATE | WRITING | {"numpy", "sqlite_vec", "filelock"}, marks=pytest.mark.nightly
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_loads_nothing_that_it_does_not_need(notes, arguments, unneeded):
    place = () if "--help" in arguments else ("--workspace", notes)
    assert not load(*arguments, *place) & (NEVER | unneeded)


def test_the_script_that_is_installed_is_the_command():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, _, function = scripts["openclaw-memory"].partition(":")
    assert callable(getattr(import_module(module), function))


INTERRUPTED = """
import sys
from openclaw_memory.__main__ import main
class Interrupt:
    def find_spec(self, name, *_):
        if name == "openclaw_memory.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
main()
"""


def test_a_command_that_is_interrupted_while_it_loads_says_so_as_it_does_later():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")
