"""Each kind of door names itself in the log, which holds no text, no question and no name."""

from __future__ import annotations

import json
import shutil

import pytest
from faults.doors import KEEPING, SHOWING, WRITING, Place
from faults.test_policies_at_every_door import ASKED, CONFIG, TOML, begun  # noqa: F401 - a fixture

from openclaw_memory import Memory
from openclaw_memory.config.environment import locate_workspace_data
from openclaw_memory.events import acting_as

LOGGED = CONFIG.replace({"plugins": {"audit": {"enabled": True}}})
SETTINGS = f"[defaults.plugins.audit]\nenabled = true\n{TOML}"
# A door of each kind, and what its actor begins with: that each method emits its event is the law of tests/test_events.py.
KINDS = {
    "Memory.search": "library",
    "tool memory_search": "tool:",
    "command search": "cli:search",
    "command hook": "cli:hook/hook:",
    "MCP": "mcp:",
    "page": "web",
    "LangChain retriever": "langchain",
    "LlamaIndex retriever": "llama-index",
    "Memory.append": "library",
    "migrate, items": "cli:migrate",
    "LangGraph store": "langchain",
    "LangChain transcripts": "langchain",
    "LlamaIndex memory block": "llama-index",
}
WORDS = "The zebra of Zanzibar sings at dawn."
# Of what is there: lines of notes, a record's value, a message.
TEXTS = (ASKED[0].words, "zebra", "Zanzibar", "fiftyone", "Anna likes", "Bo likes", "dark cellar", "bad knee", "in May")
READING = {"get", "search", "list"}
CHANCE = ("seq", "ts", "session", "paths", "prev", "mac")  # what holds any digits


@pytest.fixture(scope="module")
def place(begun, tmp_path_factory):  # noqa: F811 - the fixture
    """One workspace for all doors, whose calls are logged."""
    folder = tmp_path_factory.mktemp("logged")
    settings = folder / "settings.toml"
    shutil.copytree(begun, folder / "notes")
    settings.write_text(SETTINGS, encoding="utf-8")
    with Memory.open(folder / "notes", config=LOGGED) as memory:
        memory.sync()
        yield Place(memory, str(settings))
        verdict = log_of(memory).verify()
        assert (verdict.ok, verdict.gaps) == (True, ())
        assert verdict.entries > 10


def log_of(memory):
    [log] = memory.events.observers
    return log


def entered(at, door):
    """The entries that a door leaves, the oldest first; nothing in clear says what is in the notes."""
    log = log_of(at.memory)
    before = next((one.seq for one in log.read_entries()), 0)
    door()
    found = [one for one in log.read_entries() if one.seq > before][::-1]
    folder = locate_workspace_data(at.memory.workspace.root) / "audit"
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_bytes().splitlines()]
    said = str([{name: line[name] for name in line if name not in CHANCE} for line in lines]).casefold()
    assert [text for text in TEXTS if text.casefold() in said] == []
    return found


@pytest.mark.fault(37)
@pytest.mark.parametrize("name", [name for name in KINDS if name in SHOWING])
def test_a_door_that_shows_something_is_named(place, name):
    found = entered(place, lambda: SHOWING[name](place, ASKED[0]))
    assert found
    assert all(one.actor.startswith(KINDS[name]) for one in found)


@pytest.mark.parametrize("name", [name for name in KINDS if name in WRITING | KEEPING])
def test_a_door_that_writes_something_is_named(place, name):
    write = (lambda: WRITING[name](place, WORDS)) if name in WRITING else (lambda: KEEPING[name](place, [WORDS]))
    assert [one for one in entered(place, write) if one.actor.startswith(KINDS[name]) and one.op not in READING]


def test_a_session_is_found_by_its_name_and_a_client_has_its_own(place):
    from openclaw_memory.tools import memory_tools

    tools = {tool.name: tool for tool in memory_tools(place.memory, session_key="agent:main:dm:anna")}
    with acting_as("a/bot@x\n"):
        tools["memory_search"].run({"query": "tea"})
    found = [one.actor for one in log_of(place.memory).read_entries(session="agent:main:dm:anna")]
    assert found == ["a_bot_x_/tool:memory_search"]
