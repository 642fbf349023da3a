"""The watcher: whatever happens to the files, the index soon says what they say, by few syncs."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watching import CONFIG, MESSAGE, append, eventually, replace_all_notes, replace_atomically

from openclaw_memory.config import FilesConfig
from openclaw_memory.indexing import sync, watcher
from openclaw_memory.indexing.watcher import PATIENCE, FileEvents, Pause, Watcher, settle
from openclaw_memory.store import SqliteStore
from openclaw_memory.types import SyncReport
from openclaw_memory.workspace import Workspace

# --- notes ---------------------------------------------------------------------------------------------------------


def save_as_vim_does(root: Path) -> None:
    note = root / "memory" / "a.md"
    (root / "memory" / "4913").touch()
    (root / "memory" / "4913").unlink()
    note.rename(f"{note}~")
    note.write_text("one, mended\n")
    Path(f"{note}~").unlink()


def delete_and_restore(root: Path) -> None:
    (root / "memory" / "a.md").unlink()
    (root / "memory" / "a.md").write_text("one, restored\n")


@pytest.mark.parametrize("change", [append, save_as_vim_does, replace_atomically, delete_and_restore])
def test_a_change_is_followed_by_one_sync_and_the_file_is_never_dropped(watched, root: Path, change) -> None:
    one, index = watched(root)
    before = index.records["memory/a.md"]
    change(root)
    eventually(lambda: index.records["memory/a.md"] != before and not one.is_behind)
    assert [(report.changed, report.removed) for report in index.reports[1:]] == [(("memory/a.md",), ())]


def make_a_folder_full(root: Path) -> None:
    for number in range(5):
        folder = root / "memory" / "deep" / "deeper" / str(number)
        folder.mkdir(parents=True)
        (folder / "note.md").write_text("new\n")


def move_a_folder_in(root: Path) -> None:
    folder = root.parent / "elsewhere"
    folder.mkdir()
    (folder / "b.md").write_text("moved\n")
    folder.rename(root / "memory" / "moved")


def move_a_folder_out(root: Path) -> None:
    move_a_folder_in(root)
    (root / "memory" / "moved").rename(root.parent / "out")


def delete_and_make_again(root: Path) -> None:
    shutil.rmtree(root / "memory")
    (root / "memory").mkdir()
    (root / "memory" / "d.md").write_text("anew\n")


def check_out_another_branch(root: Path) -> None:
    for number in range(150):
        (root / "memory" / f"{number}.md").write_text(f"{number}\n")
    (root / "memory" / "a.md").unlink()
    (root / "MEMORY.md").write_text("# Another\n")


BULK = [
    make_a_folder_full,
    move_a_folder_in,
    move_a_folder_out,
    replace_all_notes,
    delete_and_make_again,
    check_out_another_branch,
]


@pytest.mark.parametrize("change", BULK)
@pytest.mark.parametrize("flood", [3, 10_000], ids=["too many events to listen to", "few events"])
def test_whatever_happens_to_folders_is_followed_and_so_is_what_comes_after_it(
    watched, root: Path, monkeypatch: pytest.MonkeyPatch, change, flood: int
) -> None:
    monkeypatch.setattr(watcher, "FLOOD", flood)
    one, index = watched(root)
    change(root)
    eventually(lambda: index.follows_the_disk() and not one.is_behind)
    for folder in [path for path in (root / "memory").rglob("*") if path.is_dir()] + [root / "memory"]:
        (folder / "later.md").write_text("later\n")
    eventually(lambda: index.follows_the_disk() and not one.is_behind)
    assert "memory/later.md" in index.records


@pytest.mark.parametrize("name", ["memory", "extra", "sessions"])
def test_a_folder_that_appears_later_is_followed(watched, tmp_path: Path, name: str) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    place = tmp_path / "far" / "extra" if name == "extra" else root / name
    one, index = watched(root, replace(CONFIG, files=FilesConfig(extra_paths=(str(tmp_path / "far" / "extra"),))))
    for number in range(2):
        place.mkdir(parents=True, exist_ok=True)
        file = place / (f"{number}.jsonl" if name == "sessions" else f"{number}.md")
        file.write_text(MESSAGE)
        eventually(lambda number=number: len(index.records) == number + 1)
        eventually(lambda: not one.is_behind)
    assert "watching" in one.state


def test_a_workspace_that_goes_away_is_told_and_followed_again_when_it_comes_back(watched, root: Path) -> None:
    one, index = watched(root)
    root.rename(root.parent / "away")
    eventually(lambda: "WorkspaceError" in (one.last_error or ""))
    (root.parent / "away").rename(root)
    eventually(lambda: one.last_error is None and not one.is_behind)
    (root / "memory" / "b.md").write_text("two\n")
    eventually(lambda: "memory/b.md" in index.records)


@pytest.mark.parametrize("seed", range(3))
def test_any_sequence_of_changes_ends_with_an_index_that_follows_the_disk(watched, root: Path, seed: int) -> None:
    one, index = watched(root)
    choose = random.Random(seed)
    for _ in range(60):
        folders = [root / "memory", *[path for path in (root / "memory").rglob("*") if path.is_dir()]]
        notes = sorted((root / "memory").rglob("*.md"))
        folder = choose.choice(folders)
        match choose.randrange(6):
            case 0 | 1:
                (folder / f"{choose.randrange(20)}.md").write_text(f"{choose.random()}\n")
            case 2 if notes:
                choose.choice(notes).unlink()
            case 3 if notes:
                choose.choice(notes).replace(folder / f"{choose.randrange(20)}.md")
            case 4:
                (folder / f"folder{choose.randrange(4)}").mkdir(exist_ok=True)
            case 5 if folder != root / "memory":
                folder.rename(root / "memory" / f"moved{choose.random()}")
        time.sleep(choose.choice([0, 0, 0.02, 0.15]))
    eventually(lambda: index.follows_the_disk() and not one.is_behind)


# --- bursts --------------------------------------------------------------------------------------------------------

BURST = """
import os, sys
for number in range(3000):
    with open(f"{sys.argv[1]}/{number}.tmp", "w") as note:
        note.write("x")
    os.replace(f"{sys.argv[1]}/{number}.tmp", f"{sys.argv[1]}/{number % 300}.md")
"""


def test_a_burst_of_thousands_of_events_costs_few_syncs_and_nothing_after_it_is_missed(
    watched, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute, muted = FileEvents.mute, []
    monkeypatch.setattr(FileEvents, "mute", lambda self: (muted.append(self), mute(self)))
    one, index = watched(root)
    subprocess.run([sys.executable, "-c", BURST, str(root / "memory")], check=True)
    eventually(lambda: len(index.records) == 302 and index.follows_the_disk() and not one.is_behind)
    assert one.syncs <= 6
    assert muted, "it listened to every event"
    (root / "memory" / "0.md").write_text("after the burst\n")
    eventually(lambda: index.follows_the_disk() and not one.is_behind)


@given(seconds=st.floats(0, 10), gaps=st.lists(st.floats(0, 10), min_size=1))
def test_hints_are_acted_on_after_a_pause_and_never_much_later_than_the_first(
    seconds: float, gaps: list[float]
) -> None:
    pause, now = Pause(seconds), 100.0
    assert pause.due == float("inf")
    for number, gap in enumerate(gaps):
        now += gap
        assert pause.hint(now) is (number == 0)
        first = 100.0 + gaps[0]
        assert pause.due == min(now + seconds, first + PATIENCE * seconds)
    pause.clear()
    assert pause.due == float("inf")


def test_a_note_is_given_time_to_settle_before_it_is_read(watched, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = watched(root)
    settled: list[tuple[list[str], int]] = []
    monkeypatch.setattr(watcher, "settle", lambda paths, _: settled.append((list(paths), one.syncs)))
    append(root)
    eventually(lambda: one.syncs == 2)
    paths, syncs = settled[0]
    assert str(root / "memory" / "a.md") in paths
    assert syncs == 1


def test_it_waits_until_a_file_is_no_longer_written(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    pieces = iter("abcd")

    def write_on(_: float) -> bool:
        with note.open("a") as file:
            file.write(next(pieces, ""))
        return False

    assert settle([str(note)], write_on)
    assert note.read_text() == "abcd"


def test_it_does_not_wait_for_ever_for_a_file_that_is_always_written(tmp_path: Path) -> None:
    note = tmp_path / "note.md"

    def write_on(_: float) -> bool:
        with note.open("a") as file:
            file.write("x")
        return False

    assert not settle([str(note)], write_on)
    assert not settle([str(note)], lambda _: True)


# --- transcripts ---------------------------------------------------------------------------------------------------


@pytest.fixture
def talk(root: Path) -> Path:
    talk = root / "sessions" / "talk.jsonl"
    talk.parent.mkdir()
    talk.write_text(MESSAGE * 3)
    return talk


def grow(talk: Path, text: str) -> None:
    with talk.open("a") as file:
        file.write(text)


def test_a_transcript_that_grew_a_little_can_wait(watched, root: Path, talk: Path) -> None:
    one, index = watched(root)
    looks = index.looks
    grow(talk, MESSAGE * 4)
    eventually(lambda: index.looks > looks and not one.is_behind)
    assert one.syncs == 1
    grow(talk, MESSAGE)
    eventually(lambda: one.syncs == 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda talk: grow(talk, MESSAGE * 5),
        lambda talk: grow(talk, MESSAGE.replace("memo", "m" * 3000)),
        lambda talk: talk.write_text(MESSAGE),
        lambda talk: talk.unlink(),
        lambda talk: talk.with_name("other.jsonl").write_text(MESSAGE),
        lambda talk: talk.parent.rename(talk.parent.with_name("away")),
    ],
    ids=["lines", "bytes", "written anew", "deleted", "a new one", "folder gone"],
)
def test_a_transcript_is_synced_once_it_has_changed_enough(watched, root: Path, talk: Path, change) -> None:
    one, index = watched(root)
    change(talk)
    eventually(lambda: one.syncs == 2 and index.follows_the_disk())


# --- with a real index ---------------------------------------------------------------------------------------------


def test_what_is_written_is_found_in_the_index_a_moment_later(root: Path) -> None:
    workspace, index_path = Workspace.open(root), root / ".memory" / "index.sqlite"
    store = SqliteStore.open(index_path)

    def bring_up_to_date() -> SyncReport:
        return sync(workspace, store, None, CONFIG, index_path=index_path)

    with Watcher(workspace, bring_up_to_date, CONFIG, index_path=index_path, known=store.files) as one:
        eventually(lambda: not one.is_behind)
        with (root / "memory" / "a.md").open("a") as note:
            note.write("the zeppelin lands at noon\n")
        eventually(lambda: store.search_text(["zeppelin"], 3))
        (root / "memory" / "a.md").unlink()
        eventually(lambda: not store.search_text(["zeppelin"], 3))
        eventually(lambda: not one.is_behind)
        # Its own writing to the index, which lies in the workspace, is no change.
        assert one.syncs == 3
    store.close()
    assert os.listdir(root / "memory") == []


def test_where_nothing_reads_the_events_any_more_files_are_looked_at_and_the_state_says_why(
    watched, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.05)
    one, index = watched(root)
    monkeypatch.setattr("openclaw_memory.indexing.watcher._reader_has_ended", lambda: True)
    eventually(lambda: "polling" in one.state and "has ended" in one.state)
    (root / "memory" / "new.md").write_text("new\n")
    eventually(lambda: "memory/new.md" in index.records)
