"""Twelve threads that write, sync and look at one memory: no sync takes a sound index for a damaged one."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import ConflictError

THREADS = 12


@pytest.mark.parametrize("syncs", [24, pytest.param(5000, marks=pytest.mark.nightly)])
def test_threads_that_write_force_syncs_and_read_the_status_meet_no_damage(notes, syncs):
    with Memory.open(notes) as memory:
        memory.sync()

        def work(number: int) -> Counter[str]:
            said, draw = Counter[str](), random.Random(number)
            for turn in range(-(-syncs // THREADS)):
                memory.append(f"Turn {turn} of thread {number}.", date=f"2026-01-{number + 1:02}")
                seen = memory.get("memory/household.md", start=1, lines=1)
                try:
                    memory.edit(seen.path, 1, 1, f"# Household, turn {turn} of {number}", seen=seen)
                except ConflictError:
                    said["conflicts"] += 1  # as an edit of what another thread has just changed must
                said[str(memory.sync(force=True).rebuilt)] += 1
                said.update(memory.status(deep=draw.random() < 0.2).problems)
            return said

        with ThreadPoolExecutor(THREADS) as threads:
            said = sum(threads.map(work, range(THREADS)), Counter[str]())
    assert {what for what in said if what != "conflicts"} == {"it was asked for"}
    assert said["it was asked for"] >= syncs
    assert not list((notes / ".memory").glob("*damaged*"))
