"""Which folders are followed, and which of their events may count."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from watchdog.events import DirDeletedEvent, DirMovedEvent, FileModifiedEvent, FileMovedEvent, FileSystemEvent

from openclaw_memory.config import FilesConfig, SessionsConfig
from openclaw_memory.indexing.watcher import FileEvents, folders_of
from openclaw_memory.types import Source
from openclaw_memory.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "w" / "memory").mkdir(parents=True)
    return tmp_path / "w"


@pytest.mark.parametrize(
    ("extra", "sessions", "expected"),
    [
        ((), SessionsConfig(), {".": False, "memory": True, "sessions": False}),
        ((), SessionsConfig(index=False), {".": False, "memory": True}),
        ((), SessionsConfig(folder="../talks"), {".": False, "memory": True, "../talks": False}),
        (("docs",), SessionsConfig(index=False), {".": False, "memory": True, "docs": True}),
        (("docs", "docs/deep", "memory/x"), SessionsConfig(index=False), {".": False, "memory": True, "docs": True}),
        (("docs/plan.md",), SessionsConfig(index=False), {".": False, "memory": True, "docs": False}),
        (("../far",), SessionsConfig(index=False), {".": False, "memory": True, "../far": True}),
        ((".",), SessionsConfig(), {".": True, "sessions": False}),
        (("..", ".memory", " "), SessionsConfig(index=False), {".": False, "memory": True}),
    ],
)
def test_the_folders_are_those_that_a_scan_looks_into(root: Path, extra, sessions, expected) -> None:
    found = folders_of(Workspace.open(root, FilesConfig(extra_paths=extra), sessions))
    assert {os.path.relpath(path, root): is_tree for path, is_tree in found.items()} == expected


def modified(path: str) -> FileSystemEvent:
    return FileModifiedEvent(path)


@pytest.mark.parametrize(
    ("folder", "event", "kind"),
    [
        (".", FileModifiedEvent("MEMORY.md"), "memory"),
        (".", FileModifiedEvent("memory.md"), "memory"),
        (".", FileModifiedEvent("USER.md"), "memory"),
        (".", FileModifiedEvent("README.md"), None),
        (".", DirMovedEvent("old", "memory"), "memory"),
        (".", DirMovedEvent("memory", "old"), "memory"),
        (".", DirMovedEvent("build", "dist"), None),
        (".", DirMovedEvent("data", "elsewhere"), "memory"),
        (".", DirMovedEvent("docs", "elsewhere"), "memory"),
        (".", DirDeletedEvent("."), "memory"),
        ("memory", FileModifiedEvent("memory/a.md"), "memory"),
        ("memory", FileModifiedEvent("memory/deep/a.md"), "memory"),
        ("memory", FileMovedEvent("memory/.a.tmp", "memory/a.md"), "memory"),
        ("memory", FileMovedEvent("memory/a.md", "memory/a.md~"), "memory"),
        ("memory", FileModifiedEvent("memory/.a.md.swp"), None),
        ("memory", FileModifiedEvent("memory/.git/index.md"), None),
        ("memory", FileModifiedEvent("memory/.memory/a.md"), None),
        ("memory", DirDeletedEvent("memory/deep"), "memory"),
        ("data/sessions", FileModifiedEvent("data/sessions/talk.jsonl"), "sessions"),
        ("data/sessions", FileModifiedEvent("data/sessions/talk.jsonl.lock"), None),
        ("data/sessions", FileModifiedEvent("data/sessions/deep/talk.jsonl"), None),
        ("data/sessions", DirDeletedEvent("data/sessions"), "sessions"),
        ("docs", FileModifiedEvent("docs/a.md"), "memory"),
        ("docs", FileModifiedEvent("docs/a.jsonl"), None),
    ],
    ids=str,
)
def test_an_event_counts_where_a_scan_may_see_it(root: Path, folder: str, event: FileSystemEvent, kind) -> None:
    told: list[Source | None] = []
    workspace = Workspace.open(root, FilesConfig(extra_paths=("docs",)), SessionsConfig(folder="data/sessions"))
    events = FileEvents(workspace, told.append)
    places = [os.path.normpath(root / os.fsdecode(path)) if path else "" for path in (event.src_path, event.dest_path)]
    events.hear(os.path.normpath(root / folder), type(event)(*places))
    events.close()
    assert told == [kind]


def test_folders_below_one_with_an_unheard_name_count_all_the_same(tmp_path: Path) -> None:
    root = tmp_path / ".git" / "w"
    (root / "memory").mkdir(parents=True)
    told: list[Source | None] = []
    events = FileEvents(Workspace.open(root), told.append)
    events.hear(str(root / "memory"), modified(str(root / "memory" / "a.md")))
    events.close()
    assert told == ["memory"]


def test_it_follows_what_is_there_and_says_when_that_changes(root: Path) -> None:
    events = FileEvents(Workspace.open(root), lambda _: None)
    assert (events.follow(), len(events)) == (True, 2)
    assert not events.follow()
    (root / "sessions").mkdir()
    assert (events.follow(), len(events)) == (True, 3)
    (root / "sessions").rmdir()
    assert (events.follow(), len(events)) == (True, 2)
    (root / "memory").rename(root / "old")
    (root / "memory").mkdir()
    assert (events.follow(), len(events)) == (True, 2)
    events.close()


def test_it_follows_no_symlink(root: Path, tmp_path: Path) -> None:
    (tmp_path / "talks").mkdir()
    (root / "sessions").symlink_to(tmp_path / "talks")
    events = FileEvents(Workspace.open(root), lambda _: None)
    events.follow()
    assert len(events) == 2
    events.close()


def test_what_happens_while_it_is_muted_is_not_told(root: Path) -> None:
    told: list[Source | None] = []
    heard = threading.Event()

    def tell(kind: Source | None) -> None:
        told.append(kind)
        if kind == "sessions":
            heard.set()

    (root / "sessions").mkdir()
    events = FileEvents(Workspace.open(root), tell)
    events.follow()
    events.mute()
    (root / "memory" / "a.md").write_text("unheard\n")
    assert events.follow()
    (root / "sessions" / "a.jsonl").write_text("{}\n")
    assert heard.wait(30)
    events.close()
    assert "memory" not in told
