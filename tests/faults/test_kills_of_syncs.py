"""A sync that is killed at each of its system calls leaves of each file the old rows or the new ones, never a mixture."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from index_files import copy_workspace, index_file
from processes import QUIET, fresh, points, synced, traced, why_not_traced

from openclaw_memory import Memory
from openclaw_memory.store import SqliteStore

pytestmark = pytest.mark.skipif(why_not_traced() is not None, reason=str(why_not_traced()))

POINTS = 2  # of each kind of sync, taken evenly: in the nightly run it is all of them
CHILD = """
import os, sys
from openclaw_memory import Memory
with Memory.open(sys.argv[1], embedder="hashing") as memory:
    os.getpgid(0)
    memory.sync(force=len(sys.argv) > 2)
    os.getpgid(0)
"""


class Kind(NamedTuple):
    """A kind of sync: what was indexed before (nothing, or the old files), what changed, and whether it is forced."""

    indexed: bool
    change: Callable[[Path], None]
    force: bool = False


def write(root: Path, path: str, *lines: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def say(root: Path, *texts: str) -> None:
    (root / "sessions").mkdir(exist_ok=True)
    with (root / "sessions/talk.jsonl").open("a", encoding="utf-8") as file:
        for text in texts:
            file.write(f"{json.dumps({'type': 'message', 'message': {'role': 'user', 'content': text}})}\n")


def old_files(root: Path) -> None:
    for number in range(6):
        write(
            root, f"memory/{number}.md", f"# Memo {number}", "", *(f"memo {number} {line} apple" for line in range(9))
        )
    say(root, *(f"memo said {number} pear" for number in range(9)))


def many_changes(root: Path) -> None:
    for number in range(3):
        write(root, f"memory/{number}.md", f"# Memo {number}", "", *(f"memo {number} {line} plum" for line in range(7)))
    (root / "memory/3.md").unlink()
    (root / "memory/4.md").rename(root / "memory/renamed.md")
    write(root, "MEMORY.md", "memo of a new file")
    say(root, *(f"memo said later {number} fig" for number in range(5)))


KINDS = {
    "a first index": Kind(indexed=False, change=lambda _: None),
    "an index that follows its files": Kind(indexed=True, change=many_changes),
    "an index that is built again": Kind(indexed=True, change=many_changes, force=True),
}


IN_THE_DEFAULT_RUN = {"an index that follows its files", "an index that is built again"}


@pytest.fixture(
    params=[name if name in IN_THE_DEFAULT_RUN else pytest.param(name, marks=pytest.mark.nightly) for name in KINDS]
)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def begun(tmp_path, kind):
    """A workspace as it is before the sync, to be copied."""
    root = tmp_path / "begun"
    (root / ".memory").mkdir(parents=True)
    old_files(root)
    if kind.indexed:
        synced(root)
    kind.change(root)
    return root


def rows(index: Path) -> tuple[bool, dict[str, Any]]:
    """Whether the index is whole, and the chunks of each file in it."""
    if not index.exists():
        return False, {}
    with closing(SqliteStore.open(index)) as store:
        assert store.verify() == ()
        meta = store.read_meta()
        return meta is not None and meta.complete, {
            path: [found.chunk for found in store.get_file_chunks(path)] for path in store.get_files()
        }


def run(begun: Path, kind: Kind, name: str, *options: object) -> tuple[Path, int]:
    root = begun.with_name(name)
    if kind.indexed:
        copy_workspace(begun, root)  # with its times: what was indexed is not in doubt
    else:
        shutil.copytree(begun, root)
    done = traced(CHILD, root, *["force"][: kind.force], options=options)
    assert done.returncode == 0 or "inject" in str(options), done.stderr
    return root, done.returncode


@pytest.mark.fault(2, 3)
@pytest.mark.parametrize("most", [POINTS, pytest.param(None, marks=pytest.mark.nightly)], ids=["some", "all"])
@pytest.mark.sampled(1)
def test_a_sync_killed_at_any_system_call_leaves_old_rows_or_new_ones(tmp_path, kind, begun, most):
    before = rows(index_file(begun))
    run(begun, kind, "warm", "-o", os.devnull)  # the first run may still write byte code
    calm, _ = run(begun, kind, "calm", "-o", tmp_path / "log")
    after = rows(index_file(calm))
    expected = fresh(calm)
    found = list(points((tmp_path / "log").read_text(encoding="utf-8")))
    assert {"openat", "pwrite64", "fdatasync"} <= {call for call, _ in found}
    step = 1 if most is None else max(1, len(found) // most)

    def killed_at(point: tuple[str, int]) -> bool:
        call, number = point
        options = ("-o", os.devnull, "-e", f"inject={call}:signal=KILL:when={number}")
        root, code = run(begun, kind, f"{call}-{number}", *options)
        state = rows(index_file(root))
        check(kind, before, state, after, f"at {call} {number}")
        if state[0]:
            with Memory.open(root, embedder="hashing", config=QUIET) as memory:
                assert memory.search("memo 5 apple")[0].path == "memory/5.md"
        ended = synced(root)
        assert ended["chunks"] == expected["chunks"]
        assert (ended["hits"], ended["likeness"]) == (expected["hits"], expected["likeness"])
        shutil.rmtree(root)
        return code != 0

    with ThreadPoolExecutor(2) as pool:
        killed = list(pool.map(killed_at, found[::step]))
    assert sum(killed) >= 0.9 * len(killed)  # a sync may have ended before a call that it makes now and then only


def check(kind: Kind, before: Any, state: Any, after: Any, where: str) -> None:
    """That a state of the index is one in between: of each file the rows are old or new, and a rebuild is whole."""
    (was_whole, old), (is_whole, now), (_, new) = before, state, after
    assert is_whole or not was_whole, f"an index that answered does not any more: {where}"
    for path, chunks in now.items():
        assert chunks in (old.get(path), new.get(path)), f"{path} is a mixture: {where}"
    if kind.force:
        assert now in (old, new), f"the index is a mixture: {where}"
