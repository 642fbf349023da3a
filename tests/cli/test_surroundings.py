"""What the doctor finds around a memory: each ill of the machine is told from its absence, with its cure."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli.doctor import around, clock, file_system, leftovers, room, time_zone, watch_limit
from openclaw_memory.config import JournalConfig
from openclaw_memory.types import MemoryFile

NOW = time.time_ns()
MB = 1_000_000


def written(path: str, seconds_from_now: float) -> MemoryFile:
    return MemoryFile(path, "memory", 1, NOW + int(seconds_from_now * 1e9), 1)


def level(findings) -> str:
    (finding,) = findings
    return finding.level


@pytest.mark.parametrize(("seconds", "told"), [(-1e9, "ok"), (0, "ok"), (30, "ok"), (3600, "note"), (1e9, "note")])
def test_a_file_from_the_future_is_told(seconds: float, told: str) -> None:
    (finding,) = clock([written("memory/old.md", -60), written("memory/a.md", seconds)], NOW)
    assert (finding.level, "memory/a.md" in finding.detail) == (told, told == "note")
    assert "memory/old.md" not in finding.detail


def test_a_time_zone_that_nobody_knows_is_a_problem_that_names_it() -> None:
    (finding,) = time_zone("Mars/Olympus")
    assert (finding.level, "Mars/Olympus" in finding.detail) == ("problem", True)
    assert [level(time_zone(name)) for name in (None, "Europe/Amsterdam")] == ["ok", "ok"]


def test_more_folders_than_may_be_watched_are_told_with_the_command_that_allows_them() -> None:
    (finding,) = watch_limit(600_000, 8192)
    assert finding.level == "note"
    assert "fs.inotify.max_user_watches=1200000" in finding.remedy
    assert level(watch_limit(8192, 8192)) == "ok"
    assert list(watch_limit(600_000, None)) == []


@pytest.mark.parametrize(("free", "told"), [(10 * MB, "problem"), (100 * MB, "note"), (300 * MB, "ok")])
def test_room_is_measured_by_what_the_next_build_needs(tmp_path: Path, free: int, told: str) -> None:
    index = tmp_path / "index.sqlite"
    with index.open("wb") as file:
        file.truncate(100 * MB)
    assert level(room(index, free)) == told


def test_a_place_that_is_not_there_yet_has_the_room_of_the_disk_it_will_be_on(tmp_path: Path) -> None:
    (finding,) = room(tmp_path / "not" / "yet" / "index.sqlite", 300 * MB)
    assert (finding.level, finding.detail) == ("ok", f"300.0 MB free in {tmp_path}")


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home {home} nfs4 rw 0 0
/dev/sdb1 {home}/local xfs rw 0 0
me@host: {home}/my\\040notes fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "told", "kind"),
    [
        ("home/agent", "problem", "nfs4"),
        ("home", "problem", "nfs4"),
        ("home/local/agent", "ok", "xfs"),
        ("home/localhost", "problem", "nfs4"),
        ("home/my notes/a", "problem", "fuse.sshfs"),
        ("homestead", "ok", "ext4"),
    ],
)
def test_the_innermost_mount_decides_whether_an_index_is_on_a_network(
    tmp_path: Path, folder: str, told: str, kind: str
) -> None:
    index = tmp_path / folder / "index.sqlite"
    (finding,) = file_system(index, MOUNTS.format(home=tmp_path / "home"))
    assert (finding.level, kind in finding.detail) == (told, True)


def test_what_was_mounted_last_on_a_folder_counts(tmp_path: Path) -> None:
    mounts = f"a {tmp_path} nfs rw 0 0\nb {tmp_path} tmpfs rw 0 0\n"
    assert level(file_system(tmp_path / "index.sqlite", mounts)) == "ok"


def test_without_a_list_of_mounts_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert list(file_system(tmp_path / "index.sqlite", "")) == []


def test_what_is_left_of_damage_and_of_cut_builds_is_told_with_its_size(tmp_path: Path) -> None:
    index = tmp_path / "my [index].sqlite"
    assert list(leftovers(index, "")) == []
    for suffix, bytes_ in (("", 5), (".damaged-20261122T101010", 1500), (".rebuild-1", 700), (".rebuild-1-wal", 1300)):
        Path(f"{index}{suffix}").write_bytes(b"x" * bytes_)
    damaged, cut = leftovers(index, " --workspace notes")
    assert (damaged.level, cut.level) == ("note", "note")
    assert ("1.5 kB" in damaged.detail, "2.0 kB" in cut.detail) == (True, True)
    assert "`openclaw-memory index --workspace notes`" in cut.remedy


def test_the_command_against_damaged_indexes_removes_them_and_nothing_else(tmp_path: Path) -> None:
    index = tmp_path / "my [index].sqlite"
    for suffix in ("", "-wal", ".damaged-1", ".damaged-1-wal"):
        Path(f"{index}{suffix}").touch()
    (finding,) = leftovers(index, "")
    subprocess.run(["bash", "-c", finding.remedy.partition(": ")[2]], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [index.name, f"{index.name}-wal"]


def test_a_real_memory_is_looked_at_all_around(notes: Path) -> None:
    with Memory.open(notes, config=MemoryConfig(journal=JournalConfig(timezone="Asia/Tokyo"))) as memory:
        memory.sync()
        found = {finding.check: finding.level for finding in around(memory, memory.workspace.scan().files, "")}
    assert {"clock": "ok", "time zone": "ok"}.items() <= found.items()
    assert {"disk", "clock", "time zone"} <= found.keys()
