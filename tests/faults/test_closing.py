"""A memory that is closed or dropped has released everything at once, without a garbage collection."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files and pages are counted in /proc")

OPEN_AND_CLOSE = """
import ctypes, gc, json, os, sys, threading
gc.disable()
from openclaw_memory import Memory
folder, times, closed = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "closed"
trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)

def once():
    memory = Memory.open(folder)
    assert memory.search("boiler")
    memory.status(), memory.documents.get(["unknown"])
    if closed:
        memory.close()

def held():
    maps = sum(".oms" in line for line in open("/proc/self/maps"))
    at_once = len(os.listdir("/proc/self/fd")), maps, threading.active_count()
    # It has nothing to find. The interpreter's free lists, which fill up with tuples to some MB, are emptied by it.
    found = gc.collect()
    blocks = sys.getallocatedblocks()
    trim(0)
    pages = int(open("/proc/self/statm").read().split()[1])
    return at_once, found, blocks, pages * os.sysconf("SC_PAGE_SIZE")

once()
links = map("/proc/self/fd/{}".format, os.listdir("/proc/self/fd")[:-1])
kept = [name for name in map(os.readlink, links) if "notes" in name]
kept += [line for line in open("/proc/self/maps") if ".oms" in line]
gc.collect()  # the cycles of what was imported
for _ in range(times // 2):
    once()
before = held()
for _ in range(times):
    once()
print(json.dumps([kept, before, held()]))
"""
# What so many memories may leave behind. Tables of the interpreter grow within the first few hundred, and then no more.
MOST_BYTES = {10: 4 * 2**20, 1000: 2**20}
MOST_BLOCKS = 500


@pytest.mark.fault(57)
@pytest.mark.parametrize("end", ["closed", "dropped"])
@pytest.mark.parametrize("times", [10, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.sampled(1)
def test_memories_that_are_opened_searched_and_ended_leave_nothing(notes, times, end):
    command = [sys.executable, "-c", OPEN_AND_CLOSE, str(notes), str(times), end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    kept, before, after = json.loads(done.stdout)
    (held, found, blocks, size), (held_after, found_after, blocks_after, size_after) = before, after
    assert kept == []  # neither files nor the model
    assert held_after == held
    assert found == found_after == 0
    assert blocks_after - blocks < MOST_BLOCKS
    assert size_after - size < MOST_BYTES[times]
