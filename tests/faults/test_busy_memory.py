"""Memories that many threads use, and that are upgraded meanwhile: no sync takes a sound index for a damaged one."""

import random
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import openclaw_memory
from openclaw_memory import Memory
from openclaw_memory.errors import ConflictError

THREADS = 12


@pytest.mark.fault(51)
@pytest.mark.parametrize("syncs", [12, pytest.param(5000, marks=pytest.mark.endurance)])
def test_threads_that_write_force_syncs_and_read_the_status_meet_no_damage(notes, syncs):
    with Memory.open(notes) as memory:
        memory.sync()

        def work(number: int) -> Counter[str]:
            said, draw = Counter[str](), random.Random(number)
            for turn in range(-(-syncs // THREADS)):
                memory.append(f"Turn {turn} of thread {number}.", date=f"2026-01-{number + 1:02}")
                seen = memory.get("memory/household.md", start=1, lines=1)
                try:
                    memory.edit(seen.path, 1, 1, f"# Household, turn {turn} of {number}", expected=seen)
                except ConflictError:
                    said["conflicts"] += 1  # as an edit of what another thread has just changed must
                said[str(memory.sync(force=True).rebuilt)] += 1
                said.update(memory.status(deep=draw.random() < 0.2).problems)
            return said

        with ThreadPoolExecutor(THREADS) as threads:
            said = sum(threads.map(work, range(THREADS)), Counter[str]())
    assert {what for what in said if what != "conflicts"} == {"it was asked for"}
    assert said["it was asked for"] >= syncs


UPGRADED = """
import sys
from pathlib import Path
import openclaw_memory
from openclaw_memory import Memory
memory = Memory.open(sys.argv[1])
memory.sync(force=True)
tables = Path(openclaw_memory.__file__).with_name("store") / "schema.sql"
assert "size INTEGER NOT NULL" in tables.read_text()
tables.write_text(tables.read_text().replace("size INTEGER NOT NULL", "size INTEGER NOT NULL, news INTEGER NOT NULL"))
report = memory.sync(force=True)
print(report.failed, report.rebuilt, memory.status(deep=True).problems, memory.search("boiler")[0].path)
"""


@pytest.mark.fault(51)
def test_a_process_whose_package_is_upgraded_meanwhile_builds_with_the_tables_that_it_knows(notes, tmp_path):
    """As `pip install --upgrade` does it under a server: a new table and old code would look like a damaged index."""
    package = Path(openclaw_memory.__file__).parent
    shutil.copytree(package, tmp_path / "site" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-c", UPGRADED, str(notes)], cwd=tmp_path / "site", capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("() it was asked for () memory/household.md\n", "")
