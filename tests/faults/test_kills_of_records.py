"""A writer of a record that is killed at any system call leaves the record as it was, or the next version of it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from processes import points, traced, why_not_traced

from openclaw_memory import Memory

pytestmark = pytest.mark.skipif(why_not_traced() is not None, reason=str(why_not_traced()))

CHILD = """
import os, sys
from openclaw_memory import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    memory.records.get("fact", "k")
    memory.records.remember("fact", "warm", 1)
    os.getpgid(0)
    memory.records.{call}
    os.getpgid(0)
"""
some_or_all = pytest.mark.parametrize("most", [2, pytest.param(None, marks=pytest.mark.nightly)], ids=["some", "all"])

# The call, and the value and version of the record after it: it is 1 in version 1 before.
CALLS = {
    "remember": ("remember('fact', 'k', 2)", (2, 2)),
    "confirm": ("confirm('fact', 'k', value=3)", (3, 2)),
    "forget": ("forget('fact', 'k')", None),
}


def state(folder):
    with Memory.open(folder, embedder=None) as memory:
        assert memory.records.problems() == []
        record = memory.records.get("fact", "k")
        return record and (record.value, record.version)


def done_in(folder, call, *options):
    folder.mkdir()
    with Memory.open(folder, embedder=None) as memory:
        memory.records.remember("fact", "k", 1)
    return traced(CHILD.format(call=call), folder, options=options)


@some_or_all
@pytest.mark.parametrize(
    "name", ["remember", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("confirm", "forget"))]
)
def test_a_killed_writer_leaves_the_record_or_its_next_version(tmp_path, name, most):
    call, after = CALLS[name]
    done_in(tmp_path / "warm", call, "-o", os.devnull)
    calm = done_in(tmp_path / "calm", call, "-o", tmp_path / "log")
    assert calm.returncode == 0, calm.stderr
    found = list(points((tmp_path / "log").read_text(encoding="utf-8")))
    step = 1 if most is None else max(1, len(found) // most)

    def killed_at(point):
        name, number = point
        folder = tmp_path / f"{name}-{number}"
        done = done_in(folder, call, "-o", os.devnull, "-e", f"inject={name}:signal=KILL:when={number}")
        assert done.returncode, f"was not killed at {point}"
        there = state(folder)
        assert there in {(1, 1), after}, f"torn by a kill at {point}"
        with Memory.open(folder, embedder=None) as memory:  # work goes on, one version after the other
            again = memory.records.remember("fact", "k", 9, confidence=0.99).record
            assert again.version == (1 if there is None else there[1] + 1)
        assert not list(folder.rglob("memory/**/*.tmp"))
        return there

    with ThreadPoolExecutor(2) as pool:
        states = set(pool.map(killed_at, sorted({*found[::step], found[-1]}, key=found.index)))
    assert states == {(1, 1), after}
