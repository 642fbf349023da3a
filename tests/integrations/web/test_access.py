"""The page of the access log: the newest first, filtered, with what the proof says; all of it without a script."""

import html
import re

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.environment import locate_workspace_data


@pytest.fixture
def logged(memory):
    """The same notes, opened with the log on, and used."""
    memory.close()
    config = MemoryConfig(plugins={"audit": {"enabled": True}})
    with Memory.open(memory.workspace.root, config=config) as again:
        again.append("Pancakes on Sunday.", date="2026-11-21")
        again.search("ferry")
        yield again


def rows(page):
    """The number, actor and operation of each entry that is shown."""
    cells = re.findall(r"<tr><td>(\d+)</td><td>[^<]*</td><td[^>]*>([^<]*)</td><td>([^<]*)", page)
    return [(int(seq), actor, op.strip()) for seq, actor, op in cells]


def file_of(memory):
    return next((locate_workspace_data(memory.workspace.root) / "audit").glob("access.*"))


def test_entries_come_newest_first_and_the_page_itself_leaves_some(logged, opened):
    page = opened(logged)
    page.get("/note?path=MEMORY.md")
    shown = page.get("/access")
    assert rows(shown)[-2:] == [(2, "library", "search"), (1, "library", "append")]
    assert ("web", "get") in [(actor, op) for _, actor, op in rows(shown)]
    assert "memory/2026-11-21.md#3" in shown
    assert "are as they were written, and none is missing" in shown


def test_entries_are_filtered_by_a_form_that_needs_no_script(logged, opened):
    page = opened(logged)
    assert rows(page.get("/access?op=append")) == [(1, "library", "append")]
    assert rows(page.get("/access?actor=library&path=2026-11-21")) == [(1, "library", "append")]
    assert "No entries match" in page.get("/access?since=2999-01-01")
    assert "since must be a day" in page.read("/access?since=soon", status=400)
    assert '<form method="get" action="/access"' in page.get("/access")


def test_what_is_wrong_is_said_with_the_entry(logged, opened):
    file = file_of(logged)
    file.write_bytes(file.read_bytes().replace(b'"op":"append"', b'"op":"ignore"'))
    shown = opened(logged).read("/access")
    assert "The log is not as it was written. Entry 1" in shown
    assert "none is missing" not in shown


def test_many_entries_are_on_several_pages(logged, opened):
    page = opened(logged)
    for _ in range(210):
        logged.get("MEMORY.md", start=1, lines=1)
    first = page.get("/access")
    assert len(rows(first)) == 200
    older = html.unescape(re.search(r'href="([^"]+)">Older', first)[1])
    assert [seq for seq, _, _ in rows(page.get(older))] == list(range(12, 0, -1))
    assert "Newer" in page.get(older)


def test_without_a_log_it_says_how_to_turn_it_on(page):
    assert "[plugins.audit] enabled = true" in page.read("/access")
