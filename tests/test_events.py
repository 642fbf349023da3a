"""Observers are told of every call that reads or writes, by whatever object it is made."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.aio import run_in_thread
from openclaw_memory.control.control import Control
from openclaw_memory.documents import Documents
from openclaw_memory.documents.files import DocumentFiles
from openclaw_memory.errors import ConfigError
from openclaw_memory.events import Event, acting_as, get_actor
from openclaw_memory.plugins import SHIPPED
from openclaw_memory.records import Records
from openclaw_memory.sessions import Sessions
from openclaw_memory.types import Document
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.notes import Notes
from openclaw_memory.workspace.session_log import SessionLog

# They hand out and change nothing of what is remembered, or are made of methods that are marked.
SILENT = {
    Memory: "append close delete documents edit embedder for_agent index_path open records status sync watch",
    Notes: "sync_soon",
    Sessions: "flush log open_conversation",
    Control: "list_sealed reseal",
    Workspace: """can_be_written count_added_lines events files find_note get_time list_notes_at locate open open_log policies read read_indexed
        refresh read_excerpt read_parts render_lines resolve root scan sessions suggest_setup zone""",
    SessionLog: """append append_entry append_message events files fit_entry folder keep keep_named keep_transcript parent_session path
        read_branch read_entries read_messages read_messages_since session_id size write_messages zone""",
    Records: "describe_result list_problems",
    Documents: "Filter compile_filter count_missing_vectors delete get_collection get_vector_identity get_vectors list_problems",
    DocumentFiles: "sync write",
}
DAY = "memory/2026-11-21.md"


@pytest.fixture
def events():
    return []


@pytest.fixture
def memory(tmp_path, events):
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.append("Anna likes tea.", date="2026-11-21")
        memory.sync()
        memory.events.add(events.append)
        yield memory


@pytest.mark.parametrize("owner", SILENT, ids=lambda owner: owner.__name__)
def test_every_public_method_is_observed_or_listed_as_silent(owner):
    public = {name for name in vars(owner) if not name.startswith("_")}
    marked = {name for name in public if hasattr(getattr(owner, name), "op")}
    assert public - marked == set(SILENT[owner].split()), "mark it with @observed, or say here that it is silent"


def test_an_observer_is_told_what_was_done_where_and_by_whom(memory, events):
    with acting_as("my-bot", session="anna"):
        memory.search("tea")
    memory.get(DAY, start=3, lines=1)
    assert events == [
        Event("search", ((DAY, "3"),), "ok", "my-bot", "anna"),
        Event("get", ((DAY, "3"),), "ok", "library", None),
    ]


def test_a_change_is_told_before_and_after(memory, events):
    memory.append("Bo likes milk.", date="2026-11-21")
    memory.delete(DAY, 3, 3, expected=memory.get(DAY, start=3, lines=1))
    assert [(one.op, one.places, one.result) for one in events] == [
        ("append", (), "started"),
        ("append", ((DAY, "4"),), "ok"),
        ("get", ((DAY, "3"),), "ok"),
        ("delete", (), "started"),
        ("delete", ((DAY, "3"),), "ok"),
    ]


def test_an_observer_that_raises_keeps_the_change_from_being_made(memory):
    def refuse(event):
        if event.result == "started":
            raise PermissionError(event.op)

    memory.events.add(refuse)
    for change in (
        lambda: memory.append("Bo likes milk.", date="2026-11-21"),
        lambda: memory.records.remember("fact", "a", "b"),
        lambda: memory.sessions.log("s").append("user", "milk"),
        lambda: memory.documents.add([Document("d", "milk")]),
        lambda: memory.documents.files.write(("memory/notes/milk.md", {}, "milk")),
        lambda: next(memory.documents.iterate(), None),
    ):
        with pytest.raises(PermissionError):
            change()
    assert "milk" not in "".join(file.read_text() for file in memory.workspace.root.rglob("*.*") if file.is_file())


def test_parts_of_a_memory_tell_its_observers(memory, events):
    memory.records.remember("fact", "office", "Lyon")
    memory.sessions.log("chat").append("user", "milk")
    [doc_id] = memory.documents.add([Document("d", "milk")])
    memory.documents.delete([doc_id])
    memory.documents.files.write(("memory/notes/tea.md", {}, "tea"))
    told = [(one.op, [path for path, _ in one.places]) for one in events if one.result == "ok"]
    assert told == [
        ("remember", ["memory/records/fact/office.md"]),
        ("write transcript", ["sessions/chat.jsonl"]),
        ("add", ["memory/notes/d.md"]),
        ("delete", ["memory/notes/d.md"]),
        ("add", ["memory/notes/tea.md"]),
    ]


def test_an_iteration_is_told_when_it_ends_or_is_left(memory, events):
    memory.documents.add([Document("a", "tea"), Document("b", "milk")])
    del events[:]
    items = memory.documents.iterate()
    next(items)
    items.close()
    assert [(one.result, len(one.places)) for one in events] == [("started", 0), ("ok", 1)]


def test_an_observer_may_have_notices_and_be_closed(tmp_path):
    class Observer:
        is_closed = False

        def __call__(self, event):
            pass

        def list_problems(self):
            return ["the observer is tired"]

        def close(self):
            self.is_closed = True

    observer = Observer()
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.events.add(observer)
        assert "the observer is tired" in memory.status().notices
    assert observer.is_closed


def test_an_observer_of_ours_that_is_not_installed_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(SHIPPED, "observers", {"gone": "no_such_package:make"})
    with pytest.raises(ConfigError, match="no installed package adds 'gone'"):
        Memory.open(tmp_path, config=MemoryConfig(plugins={"gone": {"enabled": True}}))


def test_a_memory_scans_no_installed_packages(tmp_path):
    code = f"""
import sys
from openclaw_memory import Memory, MemoryConfig
Memory.open({str(tmp_path)!r}, embedder=None, config=MemoryConfig(plugins={{"intent": {{"enabled": True}}}})).close()
print("importlib.metadata" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# --- who acts --------------------------------------------------------------------------------------------------------
def actor() -> str:
    door, session = get_actor()
    return f"{door}@{session}" if session else door


def test_doors_add_up_and_the_innermost_session_counts():
    with acting_as("mcp:zed", session="a"):
        assert actor() == "mcp:zed@a"
        with acting_as("tool:memory_get"), acting_as("tool:memory_get"):
            assert actor() == "mcp:zed/tool:memory_get@a"
        with acting_as("bot", session="b"):
            assert actor() == "mcp:zed/bot@b"
        assert actor() == "mcp:zed@a"
    assert actor() == "library"


def test_a_task_and_a_thread_are_in_the_block_that_began_them():
    async def both() -> list[str]:
        with acting_as("web"):
            task = asyncio.create_task(run_in_thread(actor))
        return [await task, await run_in_thread(actor)]

    assert asyncio.run(both()) == ["web", "library"]
    with acting_as("web"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(actor).result() == "library"  # a thread of another's has a way of its own
