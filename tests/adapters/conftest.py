"""Memories of notes and of people, with copies of what is made once in a session, for the tests of every adapter."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from index_files import copy_workspace

from openclaw_memory import Memories, Memory, MemoryConfig
from openclaw_memory.config.sections import EmbeddingConfig

CONTRACTS = Path(__file__).parent / "contracts"
sys.path.append(str(CONTRACTS))
pytest.register_assert_rewrite(*(path.stem for path in CONTRACTS.glob("*.py")))


@pytest.fixture(scope="session")
def samples():
    """Workspaces with their indexes, of which tests have copies."""
    return {}


@pytest.fixture
def fill(request, samples, tmp_path_factory):
    """Fills a folder as the fixture `make_…` of one of the names says, where a test has the fixture of that name."""

    def fill(folder, *names):
        for make in (request.getfixturevalue(f"make_{name}") for name in names if name in request.fixturenames):
            key = make.__module__, make.__qualname__, request.cls
            if key in samples:
                shutil.rmtree(folder, ignore_errors=True)
                copy_workspace(samples[key], folder)
            else:
                make(folder)
                if "POSTGRES_EVERYWHERE" not in os.environ:  # there an index is no file to copy
                    samples[key] = tmp_path_factory.mktemp("samples") / "workspace"
                    copy_workspace(folder, samples[key])

    return fill


@pytest.fixture
def memory(tmp_path, fill):
    folder = tmp_path / "agent"
    folder.mkdir()
    fill(folder, "given")
    with Memory.open(folder, config=MemoryConfig(embedding=EmbeddingConfig(provider="none"))) as opened:
        yield opened


@pytest.fixture
def static_memory(tmp_path, fill):
    """A memory with the embedder that ships."""
    fill(tmp_path, "filled", "own")
    with Memory.open(tmp_path) as opened:
        opened.sync()
        yield opened


@pytest.fixture
def note(static_memory):
    """The citation of a person's own line."""
    path = static_memory.workspace.root / "memory" / "boat.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("Anna's boat is called Zeppelin.\n")
    static_memory.sync()
    return "memory/boat.md#L1"


@pytest.fixture
def lived_in(memory):
    (memory.workspace.root / "SOUL.md").write_text("You are Kit, and brief.\n", encoding="utf-8")
    (memory.workspace.root / "MEMORY.md").write_text("Anna lives in Delft.\n", encoding="utf-8")
    memory.append("The boiler was serviced.")
    return memory


@pytest.fixture
def users(tmp_path):
    """The memories of two people, each with a note that names the other nowhere."""
    with Memories(tmp_path / "users", embedder="hashing", max_open=4) as users:
        for name in ("anna", "bob"):
            with users.use(name) as memory:
                memory.append(f"{name} takes the ferry zebra-{name}.", date="2026-11-01")
        yield users


def sync(folder):
    with Memory.open(folder) as memory:
        memory.sync()


def open_filled(notes, fill, name):
    fill(notes, name)
    with Memory.open(notes) as opened:
        opened.sync()
        yield opened


@pytest.fixture
def make_synced():
    return sync


@pytest.fixture
def synced(notes, fill):
    """A synced memory of notes, with vectors of the model that ships."""
    yield from open_filled(notes, fill, "synced")


@pytest.fixture
def make_household():
    def make(folder):
        (folder / "sessions").mkdir()
        said = {"role": "user", "content": "The boiler man rang twice about the boiler."}
        entries = [{"type": "session", "id": "talk"}, {"type": "message", "id": "a", "message": said}]
        (folder / "sessions" / "talk.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
        sync(folder)

    return make


@pytest.fixture
def household(notes, fill):
    """A synced memory of notes and one transcript."""
    yield from open_filled(notes, fill, "household")


@pytest.fixture
def kept(memory):
    """A memory that nothing may change, of two notes."""
    memory.append("De ketel is nagekeken.", date="2026-11-20")
    memory.append("La caldera hace ruido.", date="2026-11-21")
    memory.sync()
    files = {path: path.read_bytes() for path in memory.workspace.root.rglob("*.md")}
    yield memory
    assert {path: path.read_bytes() for path in memory.workspace.root.rglob("*.md")} == files


@pytest.fixture
def noted(memory):
    """What the notes say."""
    return lambda: "\n".join(path.read_text() for path in sorted((memory.workspace.root / "memory").glob("*.md")))


@pytest.fixture
def spoken(memory):
    """The texts of a transcript."""
    from openclaw_memory.conversation import get_text

    return lambda session: [get_text(message) for message in memory.sessions.flush(session).log.read_messages()]
