"""What the tests of faults share: other processes, to be killed or refused, and what an index holds, to be compared."""

from __future__ import annotations

import collections
import contextlib
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from index_files import index_file

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.store import SqliteStore
from openclaw_memory.types import ConnectionHook, SyncReport

ROOT = Path(__file__).parents[1]
STRACE = shutil.which("strace")
QUIET = MemoryConfig(sync=SyncConfig(on_search=False))  # a search changes nothing: what it finds is what was there
EVERY_LINE = "memo"  # these tests write no line without it: looking it up finds every chunk

# What lies between two calls of this kind, which nothing else makes, is the work; the rest is Python starting and ending.
MARK = "getpgid"
# They change no file: who is killed at one of them leaves what the call before it left.
HARMLESS = frozenset(
    "access brk clock_nanosleep clone3 close epoll_wait faccessat2 fcntl fstat fstatfs futex getcwd getdents64 geteuid"
    " getpid getrandom getrusage getuid gettid ioctl lseek lstat madvise mmap mprotect mremap munmap newfstatat poll"
    " pread64 prctl read readlink restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_getaffinity"
    " sched_yield select set_robust_list stat statfs statx sysinfo uname".split()
)

# Code before that of a process: `killed(3, "replace")` has it end with 9 in place of the fourth of these calls of `os`.
KILLED = """
import os
def killed(at, *names):
    calls = iter(range(at + 1))
    def counted(real):
        def call(*arguments, **more):
            if next(calls) == at:
                os._exit(9)
            return real(*arguments, **more)
        return call
    for name in names:
        setattr(os, name, counted(getattr(os, name)))
"""


def sync_traced(memory: Memory) -> tuple[SyncReport, int]:
    """Sync a memory; return the report, and the most bytes that Python held at once."""
    tracemalloc.start()
    try:
        return memory.sync(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bind_socket(place: Path) -> None:
    """Leave a socket in a place: its name, which may hold 107 bytes, is bound from within the folder."""
    with contextlib.chdir(place.parent), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place.name)


def python(code: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A Python process; what it prints is read from its `stdout`, what it complains of is shown where a test fails."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, text=True, **{"stdout": subprocess.PIPE, **options})


# Before the code that is traced: it waits at its first mark until strace is there. What Python does before that, whose
# calls differ from run to run, is neither counted nor slowed.
WAITING = """
import ctypes, os, sys
def mark(pid, getpgid=os.getpgid):
    os.getpgid = getpgid
    ctypes.CDLL(None).prctl({anyone_may_trace}, ctypes.c_ulong(-1), 0, 0, 0)
    print("ready", flush=True)
    sys.stdin.readline()
    return getpgid(pid)
os.getpgid = mark
"""
PR_SET_PTRACER = 0x59616D61  # prctl(2): else Yama lets a process be traced by its parents alone


def traced(code: str, *arguments: object, options: tuple[object, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run Python code, under strace with these options from the first mark on."""
    command = [sys.executable, "-c", f"{WAITING.format(anyone_may_trace=PR_SET_PTRACER)}\n{code}", *map(str, arguments)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        if process.stdout.readline() == "ready\n":
            tracing = [str(STRACE), "-f", *map(str, options), "-p", str(process.pid)]
            with subprocess.Popen(tracing, stderr=subprocess.PIPE, text=True) as strace:
                attached = strace.stderr.readline()  # it says so once it is there
                stdout, stderr = process.communicate("go\n")
                stderr += "" if "attached" in attached else attached
                strace.communicate()
        else:
            stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def why_not_traced() -> str | None:
    """Why no process can be traced here; None where it can be."""
    if STRACE is None:
        return "strace is not installed"
    tried = subprocess.run([STRACE, "-qq", "-o", os.devnull, "true"], capture_output=True, check=False)
    return "strace is not permitted here" if tried.returncode else None


def points(log: str) -> Iterator[tuple[str, int]]:
    """Every system call between two marks that could change a file: its name, and which one of that name it is.

    Those of the thread that makes the marks: strace counts the calls of each thread by themselves.
    """
    calls = re.findall(r"^(?:(\d+) +)?(\w+)\(", log, re.MULTILINE)
    marking = next(thread for thread, name in calls if name == MARK)
    count: collections.Counter[str] = collections.Counter()
    inside = False
    for thread, name in calls:
        if thread != marking:
            continue
        count[name] += 1
        inside ^= name == MARK
        if inside and name not in {MARK, *HARMLESS}:
            yield name, count[name]


class Scores(dict[tuple[str, int], float]):
    """Scores that equal others where no one differs by more than sums of another order do."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scores):
            return NotImplemented
        return self.keys() == other.keys() and all(math.isclose(self[name], other[name], abs_tol=1e-5) for name in self)

    def __ne__(self, other: object) -> bool:
        return not self == other


def content(index: Path, hook: ConnectionHook | None = None) -> dict[str, Any]:
    """Everything a sound index says: of each file its hash and its chunks, and how they are found. No ids, no times."""
    with closing(SqliteStore(index, hook=hook)) as store:
        assert store.verify() == ()
        names = {
            found.id: (path, found.chunk.start_line)
            for path in store.get_files()
            for found in store.get_file_chunks(path)
        }
        hits = {names[hit.chunk_id]: hit.score for hit in store.search_text([EVERY_LINE], 100_000)}
        query = HashingEmbedder().embed_query(f"{EVERY_LINE} apple")
        likeness = {at: float(vector @ query) for at, vector in store.get_vectors(sorted(names)).items()}
        return {
            "files": {path: (file.hash, file.source, file.size) for path, file in store.get_files().items()},
            "chunks": {path: [found.chunk for found in store.get_file_chunks(path)] for path in store.get_files()},
            "hits": Scores(hits),
            "likeness": Scores({names[number]: score for number, score in likeness.items()}),
        }


def synced(notes: Path, index: Path | None = None) -> dict[str, Any]:
    """What the index of a workspace says after one more sync, with nothing left to be swept."""
    path = index or index_file(notes)
    with Memory.open(notes, embedder="hashing", config=QUIET, index_path=path) as memory:
        assert memory.sync().ok
        assert memory.status(deep=True).problems == ()
    assert not list(path.parent.glob("*.rebuild-*"))
    return content(path)


def fresh(notes: Path) -> dict[str, Any]:
    """What an index says that is built from the files alone."""
    index = notes.with_name(f"{notes.name}-fresh") / "index.sqlite"
    shutil.rmtree(index.parent, ignore_errors=True)
    return synced(notes, index)
