"""Children that are forked beside busy threads: they open a memory, or are told at once why not; none hangs."""

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
    with Memory.open(folder) as own:
        own.append("A child was here.", date="2026-02-01")
        sync(own)
        return own.search("boiler")[0].path

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
    said = json.loads(run(notes, BUSY, forks))
    assert sum(said.values()) == forks
    assert all(word == "memory/household.md" or "in the midst of work on an index" in word for word in said), said


SCENES = """
import asyncio
from openclaw_memory import AsyncMemory, Memories
path = lambda: memory.search("boiler")[0].path

def open_own():
    with Memory.open(folder) as own:
        return own.search("boiler")[0].path

awaiting, users = AsyncMemory(memory), Memories(folder)
asyncio.run(awaiting.search("boiler"))
calls = {
    "search": path,
    "append": lambda: memory.append("A child was here."),
    "sync": memory.sync,
    "await": lambda: asyncio.run(awaiting.search("boiler")),
    "use": lambda: users.use("anna").__enter__(),
}
said = {name: forked(call) for name, call in calls.items()}
said["close"] = forked(lambda: memory.close())
said["own"] = [forked(open_own), path()]

held, go = threading.Event(), threading.Event()
service = memory._builtin.service

def hold():
    wanted = memory._builtin._embedders._locks["wanted"]
    with service._opening, service._staleness._lock, service._background._changed, wanted:
        held.set()
        go.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
said["locked"] = [forked(path), forked(open_own), forked(lambda: "no call")]
go.set()

watcher = memory.watch()
while not (watcher.is_at_work and memory.status().watcher.startswith("watching")):
    time.sleep(0.01)
said["watched"] = [forked(open_own)]
while "in the midst of work" in said["watched"][0]:  # the watcher was at it
    time.sleep(0.01)
    said["watched"] = [forked(open_own)]
said["watched"] += [memory.status().watcher.partition(" ")[0], Memory.open(folder).status().watcher.partition(":")[0]]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What children say that one process forks."""
    notes = tmp_path_factory.mktemp("forked")
    (notes / "MEMORY.md").write_text("The boiler is serviced each October.\n", encoding="utf-8")
    return json.loads(run(notes, SCENES, 0))


@pytest.mark.fault(50)
def test_a_memory_that_was_opened_before_the_fork_says_so_in_the_child(said):
    for call in ("search", "append", "sync", "await", "use"):
        assert said[call].startswith("StoreError: ")
        assert said[call].endswith("was opened before this process was forked: open the memory in the child")


@pytest.mark.fault(50)
def test_a_child_opens_its_own_memory_and_waits_for_no_lock_of_its_parent(said):
    assert (said["close"], said["own"]) == ("None", ["MEMORY.md"] * 2)
    assert "open the memory in the child" in said["locked"][0]
    assert said["locked"][1:] == ["MEMORY.md", "no call"]


@pytest.mark.fault(50)
def test_a_child_that_ends_leaves_the_watcher_to_its_parent(said):
    assert said["watched"] == ["MEMORY.md", "watching", "in another process"]
