"""Children that are forked beside busy threads: they use the memory, or are told at once why not; none hangs."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")

SECONDS = 30  # a child that is at work for longer hangs
BEGIN = f"""
import collections, json, os, random, signal, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads, which is the point
from openclaw_memory import Memory
from openclaw_memory.errors import OpenClawMemoryError, SyncBusyError
folder, forks = sys.argv[1], int(sys.argv[2])
memory = Memory.open(folder)
memory.sync()

def forked(work):
    "What a child says: what `work` returns, the error that it raises, or that it hangs."
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm({SECONDS})
        try:
            said = work()
        except OpenClawMemoryError as error:
            said = f"{{type(error).__name__}}: {{error}}"
        except BaseException as error:
            said = f"wrong: {{error!r}}"
        os.write(write, str(said).encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with open(read) as pipe:
        return "hangs" if status else pipe.read()
"""
BUSY = """
def often(work):
    def run():
        while True:
            work()
            time.sleep(0.02)
    threading.Thread(target=run, daemon=True).start()

def sync(of, **options):
    try:
        of.sync(wait=0.1, **options)
    except SyncBusyError:
        pass  # a search in another thread has begun one

often(lambda: memory.search("boiler"))
often(lambda: memory.append("The zeppelin lands.", date=f"2026-01-{random.randrange(1, 28):02}"))
often(lambda: sync(memory, force=random.random() < 0.1))
often(memory.status)

def work():
    with memory if random.random() < 0.5 else Memory.open(folder) as used:
        found = used.search("boiler")[0].path
        used.append("A child was here.", date="2026-02-01")
        used.status()
        sync(used)
        return found

said = collections.Counter()
for _ in range(forks):
    time.sleep(random.random() * 0.02)
    said[forked(work)] += 1
print(json.dumps(said), flush=True)
os._exit(0)
"""


def run(folder, script, *arguments):
    command = [sys.executable, "-c", BEGIN + script, str(folder), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.fault(50)
@pytest.mark.parametrize(
    "forks", [pytest.param(20, marks=pytest.mark.nightly), pytest.param(1000, marks=pytest.mark.endurance)]
)
def test_no_child_that_is_forked_beside_busy_threads_hangs(notes, forks):
    assert json.loads(run(notes, BUSY, forks)) == {"memory/household.md": forks}


SCENES = """
import asyncio
from openclaw_memory import AsyncMemory
path = lambda: memory.search("boiler")[0].path

with memory._builtin.service.store().snapshot():
    said = {"inside": forked(path), "opened again": forked(lambda: Memory.open(folder).search("boiler"))}
said["after"] = forked(path)

held, go = threading.Event(), threading.Event()
service = memory._builtin.service

def hold():
    with service._opening, service._staleness._lock, service._background._changed, memory._builtin._embedders._lock:
        held.set()
        go.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
said["locked"] = forked(lambda: (path(), memory.sync().unchanged, memory.close()))
go.set()

awaiting = AsyncMemory(memory)
search = lambda: asyncio.run(awaiting.search("boiler"))[0].path
said["awaited"] = [search(), forked(search), search()]

watcher = memory.watch()
while not (watcher.is_at_work and memory.status().watcher.startswith("watching")):
    time.sleep(0.01)
said["watched"] = [forked(lambda: memory._builtin.service.watcher and memory.search("boiler"))]
said["watched"] += [memory.status().watcher.partition(" ")[0], Memory.open(folder).status().watcher.partition(":")[0]]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What children say that one process forks in the midst of work."""
    notes = tmp_path_factory.mktemp("forked")
    (notes / "MEMORY.md").write_text("The boiler is serviced each October.\n", encoding="utf-8")
    return json.loads(run(notes, SCENES, 0))


@pytest.mark.fault(50)
def test_a_child_that_is_forked_in_the_midst_of_work_is_told_so_by_every_memory(said):
    assert said["inside"] == said["opened again"]
    assert said["inside"].startswith("StoreError: this process was forked in the midst of work on an index")
    assert said["after"] == "MEMORY.md"


@pytest.mark.fault(50)
def test_locks_that_threads_of_the_parent_hold_are_free_in_the_child(said):
    assert said["locked"] == "('MEMORY.md', 1, None)"


@pytest.mark.fault(50)
def test_an_async_memory_has_threads_of_its_own_in_the_child(said):
    assert said["awaited"] == ["MEMORY.md"] * 3


@pytest.mark.fault(50)
def test_a_child_that_ends_leaves_the_watcher_to_its_parent(said):
    assert said["watched"] == ["None", "watching", "in another process"]
