"""Many processes that write to one server at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from openclaw_memory_postgres import PostgresStore

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
