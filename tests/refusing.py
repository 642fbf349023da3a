"""Work on a memory whose disk or system refuses: run as a script, in a file system or with limits of its own.

`python refusing.py full FOLDER` expects FOLDER to be an empty file system of a few MB. It fails with a traceback, and
prints what it saw as JSON where all went as it should.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from index_files import index_file, index_folder
from processes import QUIET, fresh, synced

from openclaw_memory import Memory
from openclaw_memory.errors import OpenClawMemoryError, StoreError, WriteError
from openclaw_memory.types import Excerpt

PAGE = 4096  # a tmpfs gives room by pages
DAY = "2026-11-21"
NOTE, TOPIC, TALK = f"memory/{DAY}.md", "memory/topic.md", "sessions/talk.jsonl"
LONG = "\n".join(f"memo {number} plum" for number in range(600))  # 8 kB: takes several pages
Work = Callable[[Memory, int], object]


def notes(root: Path, index: Path | None = None) -> Memory:
    return Memory.open(root, embedder="hashing", config=QUIET, index_path=index)


def append(memory: Memory, turn: int) -> Excerpt:
    return memory.append(f"memo turn {turn}\n{LONG}", date=DAY)


def append_to_a_new_note(memory: Memory, turn: int) -> Excerpt:
    return memory.append(f"memo turn {turn}\n{LONG}", date="2026-11-22")


def edit(memory: Memory, turn: int) -> Excerpt:
    return memory.edit(TOPIC, 1, 1, f"memo turn {turn}", expected=memory.get(TOPIC, start=1, lines=1))


def say(memory: Memory, turn: int) -> str:
    return memory.sessions.log("talk").append("user", f"memo turn {turn} {LONG}")


WRITERS: dict[str, Work] = {"append": append, "append to a new note": append_to_a_new_note, "edit": edit, "say": say}


def files(root: Path) -> dict[str, bytes]:
    """All that is memory, and whatever else lies beside it but for locks."""
    found = (path for folder in ("memory", "sessions") for path in (root / folder).rglob("*"))
    return {str(path.relative_to(root)): path.read_bytes() for path in found if path.name != ".lock"}


def begin(root: Path) -> None:
    for folder in ("memory", "sessions"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / TOPIC).write_text(LONG)
    (root / NOTE).write_text(f"# {DAY}\n\nmemo kept\n")
    with notes(root) as memory:
        memory.sessions.log("talk").append("user", "memo kept")
        memory.sync()


# --- a full disk
class Disk:
    """A file system that is filled up to what shall be free."""

    def __init__(self, folder: Path) -> None:
        self.ballast = folder / "ballast"
        self.folder = folder

    def leave(self, free: int) -> None:
        self.empty()
        state = os.statvfs(self.folder)
        size = state.f_bavail * state.f_frsize - free
        with self.ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)

    def empty(self) -> None:
        self.ballast.unlink(missing_ok=True)


def full(folder: Path, step: int = 16 * PAGE, writers: tuple[str, ...] = tuple(WRITERS)) -> dict[str, dict[str, int]]:
    """Each writer with 0, 1, 2, ... pages free until it can do its work, and each kind of sync with so many `step`."""
    disk = Disk(folder)
    root = folder / "notes"
    begin(root)
    attempts = {
        name: (PAGE, partial(attempt_to_write, disk, root, work)) for name, work in WRITERS.items() if name in writers
    }
    attempts |= {
        "sync": (step // 2, partial(attempt_to_sync, disk, root, False)),
        "rebuild": (step, partial(attempt_to_sync, disk, root, True)),
        "first index": (step, partial(attempt_to_index, disk, root)),
    }
    return {name: fill(disk, *attempt) for name, attempt in attempts.items()}


def fill(disk: Disk, step: int, attempt: Callable[[int, int], bool]) -> dict[str, int]:
    """How often an attempt is refused, with more and more free, before it is done."""
    for turn in range(1000):
        disk.empty()
        if attempt(turn, turn * step):
            return {"refused": turn, "done": 1}
    raise AssertionError("a disk with 8 MB is not full")


def attempt_to_write(disk: Disk, root: Path, work: Work, turn: int, free: int) -> bool:
    before = files(root)
    with notes(root) as memory:
        assert memory.search("memo kept")
        disk.leave(free)
        try:
            work(memory, turn)
        except WriteError as error:
            told(error, os.strerror(errno.ENOSPC), "took")
            assert files(root) == before, "something half-written stays"
            assert memory.search("memo kept")  # what is indexed answers, full disk or not
            disk.empty()
            work(memory, -turn - 1)  # it recovers
            return False
        assert files(root) != before
        return True


def attempt_to_sync(disk: Disk, root: Path, force: bool, turn: int, free: int) -> bool:
    with (root / NOTE).open("a") as note:  # what is there to be indexed
        note.write(f"memo {turn} quince\n")
    with notes(root) as memory:
        assert memory.search("memo kept")
        disk.leave(free)
        try:
            report = memory.sync(force=force)
        except StoreError as error:
            told(error, "disk", "full")
            results = memory.search("memo kept")
            assert results
            assert "damaged" not in str(results.reason)
            assert not list(index_folder(root).glob("*.rebuild-*"))
            return False
        assert report.ok
        assert "damaged" not in str(report.rebuilt)
    disk.empty()
    check_index(root)
    return True


def attempt_to_index(disk: Disk, root: Path, turn: int, free: int) -> bool:
    for file in index_folder(root).iterdir():
        file.unlink()
    disk.leave(free)
    try:
        with notes(root) as memory:
            memory.sync()
    except OpenClawMemoryError as error:
        told(error, "disk", "space")
        disk.empty()
        if turn % 4 == 0:
            check_index(root)  # it goes on from there
        return False
    disk.empty()
    check_index(root)
    return True


def no_names_left(folder: Path) -> dict[str, object]:
    """What is said where a file system that has room takes no more files, and whether the index answers afterwards."""
    root = folder / "notes"
    begin(root)
    index = index_file(root)
    content, many = index.read_bytes(), folder / "many"
    many.mkdir()
    with suppress(OSError):
        for number in range(1000):
            (many / str(number)).touch()
    with notes(root) as memory:
        said = refusal(lambda: memory.search("memo kept"), StoreError)
        assert index.read_bytes() == content
        shutil.rmtree(many)
        return {"search": said, "answers": len(memory.search("memo kept"))}


def told(error: OpenClawMemoryError, *words: str) -> None:
    assert any(word in str(error) for word in words), error


def check_index(root: Path) -> None:
    now, new = synced(root), fresh(root)
    assert all(now[part] == new[part] for part in now), "the index does not equal a fresh one"


# --- a disk that turned read-only
def read_only(folder: Path) -> dict[str, str]:
    """Everything but reading is refused, in words; an index that is there answers."""
    root = folder / "notes"
    begin(root)
    before = files(root)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    told = {}
    for name, index in (("its index", None), ("an index elsewhere", folder.parent / "elsewhere.sqlite")):
        with notes(root, index) as memory:
            assert memory.search("memo kept")[0].path in {NOTE, TALK}
            assert memory.get(NOTE, start=3, lines=1).text == "memo kept"
            for writer, work in WRITERS.items():
                told[f"{writer} beside {name}"] = refusal(lambda work=work, memory=memory: work(memory, 1), WriteError)
            if index is None:
                told["rebuild"] = refusal(lambda memory=memory: memory.sync(force=True), StoreError)
            else:
                assert memory.sync(force=True).ok
            assert memory.search("memo kept")
    assert files(root) == before
    return told


def refusal(work: Callable[[], object], kind: type[OpenClawMemoryError]) -> str:
    try:
        work()
    except kind as error:
        return str(error)
    raise AssertionError("it was not refused")


# --- no descriptors left
def no_descriptors(folder: Path) -> dict[str, int]:
    """Each writer, a search and a sync with 0, 1, 2, ... descriptors to be had."""
    root = folder / "notes"
    begin(root)
    with notes(root) as memory:
        for work in WRITERS.values():  # whatever is loaded late is loaded now
            work(memory, 0)
        memory.sync()
        memory.search("memo kept")
    outcomes: Counter[str] = Counter()
    for spare in range(16):
        for name, work in {**WRITERS, "search": search, "sync": sync}.items():
            before = files(root)
            with notes(root) as memory:
                try:
                    with descriptors(spare):
                        work(memory, spare)
                except OpenClawMemoryError as error:
                    told(error, os.strerror(errno.EMFILE), "unable to open", "I/O error")
                    assert files(root) == before, f"{name} left something half-written"
                    outcomes[f"{name} refused"] += 1
                else:
                    outcomes[f"{name} done"] += 1
    check_index(root)
    return dict(outcomes)


def search(memory: Memory, _: int) -> None:
    results = memory.search("memo kept")
    assert results or results.reason  # what cannot be read is not cited, and the answer says so


def sync(memory: Memory, _: int) -> None:
    memory.sync()


class descriptors:  # noqa: N801
    """Within the block, no more than `spare` files can be opened."""

    def __init__(self, spare: int) -> None:
        self.spare = spare

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = max(int(name) for name in os.listdir("/proc/self/fd"))
        holes = [number for number in range(taken) if not os.path.exists(f"/proc/self/fd/{number}")]
        self.plugs = [os.open(os.devnull, os.O_RDONLY) for _ in holes]
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 1 + self.spare, self.before[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, self.before)
        for plug in self.plugs:
            os.close(plug)


if __name__ == "__main__":
    scenes = {
        "full": full,
        "full by many pages": partial(full, step=128 * PAGE, writers=("edit", "say")),
        "full by each page": partial(full, step=2 * PAGE),
        "no names left": no_names_left,
        "read-only": read_only,
        "no descriptors": no_descriptors,
    }
    print(json.dumps(scenes[sys.argv[1]](Path(sys.argv[2])), indent=1))
