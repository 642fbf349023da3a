"""Locks of one process: a second store leaves those of the first, and a forked child opens its own."""

import os
import subprocess
import sys

import pytest

from openclaw_memory.store import SqliteStore

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks and POSIX locks are not for this system")

# Whoever is connected to a database holds a lock on these bytes of it: without it, another process that closes takes
# itself for the last one, and removes the write-ahead log.
SHARED_FIRST, SHARED_SIZE = 0x40000002, 510
TRY_THE_LOCK = f"""
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, {SHARED_SIZE}, {SHARED_FIRST})
    except OSError: print("in use")
    else: print("free")
"""
IN_USE = "in use\n"
FORKS = """
import os, subprocess, sys, threading
from openclaw_memory.errors import StoreError
from openclaw_memory.store import SqliteStore
path = sys.argv[1]
store = SqliteStore.open(path)
store.set_meta("parent", "before")
def try_the_lock():
    return subprocess.run([sys.executable, "-c", sys.argv[2], path], capture_output=True, text=True).stdout
def in_child(work):
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        try: print(work())
        except BaseException as error: print(type(error).__name__, error)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
def note(name):
    own = SqliteStore.open(path)
    own.set_meta(name, "noted")
    return own.get_meta("parent")
"""


def run(path, script):
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS + script, str(path), TRY_THE_LOCK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout


def test_opening_and_closing_a_second_store_leaves_the_locks_of_the_first(store, path):
    store.set_meta("name", "text")
    command = [sys.executable, "-c", TRY_THE_LOCK, str(path)]
    SqliteStore.open(path).close()
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == IN_USE
    store.close()
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "free\n"


def test_a_child_of_a_process_at_work_opens_no_index(path):
    script = """
with store.snapshot():
    in_child(lambda: note("child"))
in_child(lambda: note("child"))
"""
    refused, noted = run(path, script).splitlines()
    assert refused.startswith("StoreError this process was forked in the midst of work on an index")
    assert noted == "before"


def test_what_a_child_writes_after_its_parent_has_closed_is_kept(path):
    script = """
read, write = os.pipe()
if (child := os.fork()) == 0:
    own = SqliteStore.open(path)
    os.read(read, 1)
    own.set_meta("child", "noted")
    print(own.get_meta("parent"), try_the_lock(), flush=True)
    own.close()
    os._exit(0)
import time
time.sleep(0.5)
store.close()
os.write(write, b"x")
os.waitpid(child, 0)
"""
    assert run(path, script) == f"before {IN_USE}\n"
    again = SqliteStore.open(path)
    assert (again.get_meta("child"), again.verify()) == ("noted", ())
    again.close()


@pytest.mark.parametrize("ends", ["store.close()", "note('child')", "None"])
@pytest.mark.sampled(1)
def test_a_child_that_ends_leaves_the_locks_of_its_parent(path, ends):
    script = f"""
in_child(lambda: {ends})
print(try_the_lock())
store.set_meta("after", "noted")
print(store.get_meta("parent"))
"""
    assert run(path, script).split("\n", 1)[1] == f"{IN_USE}\nbefore\n"
