"""The sign that somebody is at work on an index: it stands while a block runs, and falls with its process."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from openclaw_memory.sync.at_work import SUFFIX, at_work, somebody_is_at_work

KILLED = """
import os, sys
from pathlib import Path
from openclaw_memory.sync.at_work import at_work, somebody_is_at_work
with at_work(Path(sys.argv[1])):
    os._exit(7 if somebody_is_at_work(Path(sys.argv[1])) else 1)
"""


def test_the_sign_stands_while_somebody_is_at_work(tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    assert not somebody_is_at_work(index)
    with at_work(index):
        with at_work(index):
            assert somebody_is_at_work(index)
        assert somebody_is_at_work(index)
    assert not somebody_is_at_work(index)


def test_asking_leaves_no_file_and_the_sign_is_for_its_owner_alone(tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    somebody_is_at_work(index)
    assert list(tmp_path.iterdir()) == []
    with at_work(index):
        assert stat.S_IMODE(Path(f"{index}{SUFFIX}").stat().st_mode) == 0o600


def test_the_sign_falls_with_a_process_that_is_killed(tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    assert subprocess.run([sys.executable, "-c", KILLED, str(index)], check=False).returncode == 7
    assert not somebody_is_at_work(index)


def test_where_no_sign_can_be_put_up_the_work_goes_on(tmp_path: Path) -> None:
    for index in (None, tmp_path / "none" / "index.sqlite"):
        with at_work(index):
            assert not somebody_is_at_work(index)
