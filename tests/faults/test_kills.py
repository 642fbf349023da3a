"""Writers that are killed, or refused, at each of their system calls leave the old file or the new one, never half of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from index_files import write_files
from processes import points, traced, why_not_traced

from openclaw_memory import Memory

pytestmark = pytest.mark.skipif(why_not_traced() is not None, reason=str(why_not_traced()))


POINTS = 2  # of each work, taken evenly: in the nightly run it is all of them
some_or_all = pytest.mark.parametrize(
    "most", [POINTS, pytest.param(None, marks=pytest.mark.nightly)], ids=["some", "all"]
)


class Work(NamedTuple):
    """A piece of work: the files before, the code that does it, what it changes, and the versions that may be found.

    What it changes is the text of a file, or a record in `RECORD`, of which value and version are looked at.
    """

    files: Mapping[str, str]
    code: str
    path: str
    old: tuple[Any, ...]
    new: Any


RECORD, DAY = "memory/records/fact/k.md", "memory/2026-11-21.md"
LINES = "".join(f"line {number}\n" for number in range(4000))  # more than a page, and than a pipe holds
LONG = "plum " * 2000  # more than one write(2) is trusted with
WORKS = {
    "append to a note": Work(
        {DAY: LINES}, "memory.append('second\\nthird', date='2026-11-21', skip_existing=True)", DAY, (LINES,),
        f"{LINES}second\nthird\n",
    ),
    "append to a new note": Work(
        {}, "memory.append('first', date='2026-11-21')", DAY, (None, ""), "# 2026-11-21\n\nfirst\n"
    ),
    "append a long text": Work(
        {DAY: LINES}, f"memory.append({LONG!r}, date='2026-11-21', skip_existing=True)", DAY, (LINES,), f"{LINES}{LONG}\n",
    ),
    "append a long text to a new note": Work(
        {}, f"memory.append({LONG!r}, date='2026-11-21')", DAY, (None, ""), f"# 2026-11-21\n\n{LONG}\n"
    ),
    "edit": Work(
        {"memory/topic.md": LINES},
        "memory.edit('memory/topic.md', 2, 3, 'changed', expected=memory.get('memory/topic.md', start=2, lines=2))",
        "memory/topic.md", (LINES,), LINES.replace("line 1\nline 2\n", "changed\n"),
    ),
    "promote": Work(
        {"memory/topic.md": "- kept\n"},
        "memory.notes.promote('memory/topic.md', 1, 1)",
        "MEMORY.md",
        (None,),
        "# Long-term memory\n\n- kept\n",
    ),
    "remember": Work({}, "memory.records.remember('fact', 'k', 2)", RECORD, ((1, 1),), (2, 2)),
    "confirm": Work({}, "memory.records.confirm('fact', 'k', value=3)", RECORD, ((1, 1),), (3, 2)),
    "forget": Work({}, "memory.records.forget('fact', 'k')", RECORD, ((1, 1),), None),
}  # fmt: skip

CHILD = """
import os, sys
import filelock, hashlib, secrets
from openclaw_memory import Memory
from openclaw_memory.workspace import notes
memory = Memory.open(sys.argv[1], embedder=None)
memory.records.get("fact", "k")
memory.records.remember("fact", "warm", 1)
os.getpgid(0)
{code}
os.getpgid(0)
memory.close()
"""


def opened(folder: Path) -> Memory:
    return Memory.open(folder, embedder=None)


def traced_work(folder: Path, work: Work, *options: object) -> subprocess.CompletedProcess[str]:
    """Do a piece of work in a workspace of its own, under strace."""
    write_files(folder, {"memory/.keep": "", **work.files})
    if work.path == RECORD:
        with opened(folder) as memory:
            memory.records.remember("fact", "k", 1)
    return traced(CHILD.format(code=work.code), folder, options=options)


def content(folder: Path, work: Work) -> Any:
    if work.path != RECORD:
        file = folder / work.path
        return file.read_text(encoding="utf-8") if file.exists() else None
    with opened(folder) as memory:
        assert memory.records.list_problems() == []
        record = memory.records.get("fact", "k")
        return record and (record.value, record.version)


IN_THE_DEFAULT_RUN = {"append to a note", "append a long text to a new note", "edit", "remember"}


@pytest.fixture(
    params=[name if name in IN_THE_DEFAULT_RUN else pytest.param(name, marks=pytest.mark.nightly) for name in WORKS]
)
def work(request):
    return WORKS[request.param]


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """The system calls of a work that could change a file, in their order."""

    @cache
    def calls(name: str) -> list[tuple[str, int]]:
        folder, work = tmp_path_factory.mktemp("calls"), WORKS[name]
        traced_work(folder / "warm", work, "-o", os.devnull)  # the first run may still write byte code
        calm = traced_work(folder / "calm", work, "-o", folder / "log")
        assert calm.returncode == 0, calm.stderr
        found = list(points((folder / "log").read_text(encoding="utf-8")))
        assert {"openat", "write", "fsync"} <= {call for call, _ in found} or "forget" in work.code
        return found

    return calls


@pytest.fixture
def where(calls, request, most):
    """The system calls of the work that could change a file: the first, the last, and some or all in between."""
    found = calls(request.node.callspec.params["work"])
    step = 1 if most is None else max(1, len(found) // most)
    return sorted({*found[::step], found[-1]}, key=found.index)


@pytest.mark.fault(2, 52)
@some_or_all
@pytest.mark.sampled(1)
def test_a_writer_killed_at_any_system_call_leaves_the_old_file_or_the_new(tmp_path, work, where):
    def killed_at(point: tuple[str, int]) -> Any:
        call, number = point
        folder = tmp_path / f"{call}-{number}"
        done = traced_work(folder, work, "-o", os.devnull, "-e", f"inject={call}:signal=KILL:when={number}")
        assert done.returncode, f"was not killed at {call} {number}"
        found = content(folder, work)
        assert found in {*work.old, work.new}, f"torn by a kill at {call} {number}"
        check_that_work_goes_on(folder, work)
        return found

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(killed_at, where))
    assert work.new in found
    assert set(work.old) & set(found)


@pytest.mark.fault(8)
@some_or_all
@pytest.mark.sampled(1)
def test_a_disk_that_is_full_at_any_system_call_is_a_typed_error_and_the_old_file(tmp_path, work, where):
    def refused_at(point: tuple[str, int]) -> bool:
        call, number = point
        folder = tmp_path / f"{call}-{number}"
        done = traced_work(folder, work, "-o", os.devnull, "-e", f"inject={call}:error=ENOSPC:when={number}")
        is_done = done.returncode == 0 or "is written, but the disk did not confirm" in done.stderr
        assert is_done or "\nopenclaw_memory.errors." in done.stderr, done.stderr
        assert content(folder, work) in ({work.new} if is_done else work.old), f"torn by {call} {number}"
        check_that_work_goes_on(folder, work)
        return is_done

    with ThreadPoolExecutor(2) as pool:
        assert not all(pool.map(refused_at, where))


def check_that_work_goes_on(folder: Path, work: Work) -> None:
    """The lock fell with its holder, the next work can be done, and nothing half-done stays."""
    there = content(folder, work)
    with opened(folder) as memory:
        if work.path == RECORD:  # one version after the other
            again = memory.records.remember("fact", "k", 9, confidence=0.99).record
            assert again.version == (1 if there is None else there[1] + 1)
        elif there == work.new:
            memory.edit(work.path, 1, 1, "by the next", expected=memory.get(work.path, start=1, lines=1))
        else:
            exec(work.code, {"memory": memory})
            assert content(folder, work) == work.new
    assert not list(folder.rglob("*.tmp"))
