"""The watcher: whatever happens to the files, the index soon says what they say, by few syncs."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest
from index_files import index_file
from msgspec.structs import replace
from watching import CONFIG, MESSAGE, FakeIndex, append, eventually, replace_all_notes, replace_atomically

from openclaw_memory.config.sections import FilesConfig, SyncConfig
from openclaw_memory.indexing.changes import SyncParts
from openclaw_memory.indexing.sync import sync
from openclaw_memory.indexing.watcher import PATIENCE, Watcher
from openclaw_memory.types import FileRecord, SyncReport
from openclaw_memory.workspace import Workspace


# --- notes
def save_as_vim_does(root: Path) -> None:
    note = root / "memory" / "a.md"
    (root / "memory" / "4913").touch()
    (root / "memory" / "4913").unlink()
    note.rename(f"{note}~")
    note.write_text("one, written again\n")
    Path(f"{note}~").unlink()


def delete_and_restore(root: Path) -> None:
    (root / "memory" / "a.md").unlink()
    (root / "memory" / "a.md").write_text("one, restored\n")


@pytest.mark.fault(24)
@pytest.mark.parametrize("change", [append, save_as_vim_does, replace_atomically, delete_and_restore])
def test_a_change_is_found_by_one_sync_and_the_file_is_never_dropped(watched, root, change):
    one, index = watched(root, replace(CONFIG, sync=SyncConfig(debounce_seconds=3600.0)))
    before = index.records["memory/a.md"]
    change(root)
    eventually(lambda: one.is_behind)
    assert len(index.reports) == 1
    one._pauses["memory"] = 0.0  # the pause is over, however long the change took
    eventually(lambda: index.records["memory/a.md"] != before and not one.is_behind)
    # The last event may arrive after the pause was ended: what follows it finds nothing new.
    findings = [(report.changed, report.removed) for report in index.reports[1:] if report.changed or report.removed]
    assert findings == [(("memory/a.md",), ())]


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
    (root / "memory" / "d.md").write_text("again\n")


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
def test_whatever_happens_to_folders_is_followed_and_so_is_what_comes_after_it(watched, root, change):
    one, index = watched(root)
    change(root)
    eventually(lambda: index.follows_the_disk() and not one.is_behind)
    for folder in [path for path in (root / "memory").rglob("*") if path.is_dir()] + [root / "memory"]:
        (folder / "later.txt").write_text("later\n")
    eventually(lambda: index.follows_the_disk() and not one.is_behind)
    assert "memory/later.txt" in index.records  # each ending of the settings counts


@pytest.mark.parametrize("name", ["memory", "extra", "sessions"])
def test_a_folder_that_appears_later_is_followed(watched, tmp_path, name):
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


def test_a_workspace_that_goes_away_is_told_and_followed_again_when_it_comes_back(watched, root):
    one, index = watched(root)
    root.rename(root.parent / "away")
    eventually(lambda: "WorkspaceError" in (one.last_error or ""))
    (root.parent / "away").rename(root)
    eventually(lambda: one.last_error is None and not one.is_behind)
    (root / "memory" / "b.md").write_text("two\n")
    eventually(lambda: "memory/b.md" in index.records)


@pytest.mark.fault(24)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 10))])
def test_any_sequence_of_changes_ends_with_an_index_that_follows_the_disk(watched, root, seed):
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


# --- bursts
@pytest.mark.fault(24)
@pytest.mark.nightly
def test_a_burst_of_thousands_of_events_is_followed_and_so_is_what_comes_after_it(watched, root):
    one, index = watched(root)
    for number in range(3000):
        new = root / "memory" / f"{number}.tmp"
        new.write_text("x")
        new.replace(root / "memory" / f"{number % 300}.md")
    eventually(lambda: len(index.records) == 302 and index.follows_the_disk() and not one.is_behind)
    (root / "memory" / "0.md").write_text("after the burst\n")
    eventually(lambda: index.follows_the_disk() and not one.is_behind)


def test_a_sync_comes_a_pause_after_the_last_event_and_soon_after_the_first_in_any_case(root):
    index = FakeIndex(Workspace.open(root))
    one = Watcher(index.workspace, index, replace(CONFIG, sync=SyncConfig(debounce_seconds=10.0)))
    for first, last, due in ((100.0, 100.0, 110.0), (100.0, 125.0, 135.0), (100.0, 139.0, 100.0 + PATIENCE * 10.0)):
        one._hints["memory"] = first, last
        assert one._list_due() == {"memory": due}


# --- transcripts
@pytest.fixture
def talk(root):
    talk = root / "sessions" / "talk.jsonl"
    talk.parent.mkdir()
    talk.write_text(MESSAGE * 3)
    return talk


def grow(talk: Path, text: str) -> None:
    with talk.open("a") as file:
        file.write(text)


def test_a_transcript_that_grew_a_little_can_wait(watched, root, talk):
    one, index = watched(root)
    looks = index.looks
    grow(talk, MESSAGE * 4)
    eventually(lambda: index.looks > looks and not one.is_behind)
    assert one.syncs == 1
    grow(talk, MESSAGE)
    eventually(lambda: one.syncs >= 2)


# --- with a real index
@pytest.mark.fault(24)
def test_what_is_written_is_found_in_the_index_a_moment_later(root, open_store):
    workspace, store = Workspace.open(root), open_store(index_file(root))

    class Index(FakeIndex):
        def sync(self, **_: object) -> SyncReport:
            return sync(SyncParts(workspace, store, None, CONFIG))

        def get_files(self) -> dict[str, FileRecord]:
            return dict(store.get_files())

    index = Index(workspace)
    with Watcher(workspace, index, CONFIG) as one:
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
