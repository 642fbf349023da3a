"""Whoever reads or writes leaves an entry with the door that they came through, and never a text or a question."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from faults.test_policies_at_every_door import (
    ASKED,
    KEEPING,
    SHOWING,
    WRITING,
    Place,
    begun,  # noqa: F401 - a fixture
)
from faults.test_policies_at_every_door import (
    CONFIG as POLICIES,
)
from faults.test_policies_at_every_door import (
    TOML as RULES_IN_TOML,
)

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.audit import acting_as, entries, verify
from openclaw_memory.audit.calls import RULES
from openclaw_memory.config import AuditConfig
from openclaw_memory.documents import Documents
from openclaw_memory.records import Records

CONFIG = MemoryConfig(audit=AuditConfig(enabled=True), policies=POLICIES.policies)
TOML = f"[defaults.audit]\nenabled = true\n{RULES_IN_TOML}"
# By the first word of a door, what an actor begins with, or holds.
ACTORS = {
    "Memory": "library", "Documents": "library", "Records": "library", "session": "library", "tool": "tool:",
    "command": "cli:", "migrate": "cli:migrate", "MCP": "mcp:", "page": "web", "LangChain": "langchain", "LangGraph": "langchain",
    "LlamaIndex": "llama-index", "notebook": "library", "heartbeat's": "library",
}  # fmt: skip
# They say how the memory is, and hand out nothing of what is in it.
SILENT = {
    "Memory.status", "Memory.flush", "Records.problems", "command status", "command status, human", "command doctor", "command index",
    "text for the embedder", "conflict of lines", "conflict of a record", "damaged record", "LlamaIndex intent", "Records.history", "MCP tool",
}  # fmt: skip
# Before them, the table itself reads the line that they change.
LOOKING = {"tool memory_edit", "tool memory_promote", "command edit"}
WORDS = "The zebra of Zanzibar sings at dawn."
SAID = [WORDS, "Where does the zebra of Zanzibar sing?"]
# Of what is there: lines of notes, a record's value, a message.
TEXTS = (
    ASKED,
    "zebra",
    "Zanzibar",
    "fiftyone",
    "sixtyone",
    "Anna likes",
    "Bo likes",
    "dark cellar",
    "bad knee",
    "lands in May",
)
CHANCE = ("seq", "ts", "prev", "mac")  # what holds any digits


@pytest.fixture(scope="module")
def place(begun, tmp_path_factory):  # noqa: F811 - the fixture
    """One workspace for all doors, whose calls are logged."""
    folder = tmp_path_factory.mktemp("logged")
    settings = folder / "settings.toml"
    shutil.copytree(begun, folder / "notes")
    settings.write_text(TOML, encoding="utf-8")
    with Memory.open(folder / "notes", config=CONFIG) as memory:
        memory.sync()
        yield Place(memory, str(settings))
        verdict = verify(memory.workspace.root, memory.config.audit)
        assert (verdict.ok, verdict.gaps) == (True, ())
        assert verdict.entries > 100


def said_in(folder) -> str:
    """Return what the log says, in lower case, without its times and hashes, where any five digits come up by chance."""
    lines = [
        json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()
    ]
    return "\n".join(str({name: one[name] for name in one if name not in CHANCE}) for one in lines).casefold()


def entered(at: Place, door):
    """The entries that a door leaves, the oldest first."""
    root, rules = at.memory.workspace.root, at.memory.config.audit
    before = next((one.seq for one in entries(root, rules)), 0)
    door()
    said = said_in(root / ".memory" / "audit")
    assert [text for text in TEXTS if text.casefold() in said] == []
    return [one for one in entries(root, rules) if one.seq > before][::-1]


def expected(name: str) -> str:
    if name.startswith("command hook"):
        return "cli:hook/hook:"
    return ACTORS[name.split(".", maxsplit=1)[0].split(" ", maxsplit=1)[0].rstrip(",")]


def check(name: str, found) -> None:
    if name in LOOKING:
        found = [one for one in found if (one.actor, one.op, one.path) != ("library", "get", ("memory/plain.md",))]
    assert found, "it leaves no entry"
    assert [one.actor for one in found if not one.actor.startswith(expected(name))] == []


@pytest.mark.parametrize("name", [name for name in SHOWING if name not in SILENT])
def test_who_is_shown_something_leaves_an_entry(place, name):
    check(name, entered(place, lambda: SHOWING[name](place)))


@pytest.mark.parametrize("name", [name for name in WRITING if name not in SILENT])
def test_who_writes_something_leaves_an_entry(place, name):
    found = entered(place, lambda: WRITING[name](place, WORDS))
    check(name, found)
    assert {one.op for one in found} & {
        "append", "edit", "promote", "snapshot", "write transcript", "add", "remember", "confirm", "import", "migrate",
    }  # fmt: skip


@pytest.mark.parametrize("name", KEEPING)
def test_who_keeps_a_conversation_leaves_an_entry(place, name):
    check(name, entered(place, lambda: KEEPING[name](place, SAID)))


@pytest.mark.parametrize("name", sorted((SILENT & SHOWING.keys()) - {"text for the embedder"}))
def test_who_is_shown_nothing_of_it_leaves_no_text_either(place, name):
    entered(place, lambda: SHOWING[name](place))


def test_a_session_is_named_with_the_tool_and_a_client_with_its_own_name(place):
    from openclaw_memory.tools import memory_tools

    tools = {tool.name: tool for tool in memory_tools(place.memory, session_key="agent:main:dm:anna")}

    def door():
        with acting_as("a/bot@x\n"):
            tools["memory_search"].run({"query": "tea"})

    assert [one.actor for one in entered(place, door)] == ["a_bot_x_/tool:memory_search@agent:main:dm:anna"]


def test_what_is_refused_leaves_an_entry_too(place):
    from openclaw_memory.errors import OpenClawMemoryError

    def door():
        for path in ("../../etc/passwd", "memory/zebra.md"):
            with pytest.raises(OpenClawMemoryError):
                place.memory.get(path)

    assert [(one.op, one.result, one.path) for one in entered(place, door)] == [
        ("get", "PathNotAllowedError", ()),
        ("get", "NotFoundError", ()),
    ]


def test_every_public_call_is_known_to_the_log_or_reads_and_writes_nothing():
    elsewhere = {
        "append", "edit", "delete", "promote", "bootstrap", "session_log", "flush",  # by the workspace
        "open", "for_agent", "sync", "sync_soon", "watch", "status", "close", "index_path", "embedder", "documents", "records",
        "history", "holding", "problems",  # of records that `get` and `everything` have read
        "collection", "damaged", "vectors", "vector_identity", "adopt", "missing_vectors", "Filter",
    }  # fmt: skip
    for kind, owner in (("memory", Memory), ("documents", Documents), ("records", Records)):
        public = {name for name in vars(owner) if not name.startswith("_")}
        assert public - RULES[kind].keys() <= elsewhere, "say in audit/calls.py what it leaves, or here why nothing"


def test_a_session_of_everything_is_one_chain_and_its_memory_says_so(tmp_path):
    with Memory.open(tmp_path, config=CONFIG, embedder=None) as memory:
        memory.append("tea", date="2026-11-21")
        assert "access log" not in str(memory.status().notices)
        shutil.rmtree(tmp_path / ".memory" / "audit")
        (tmp_path / ".memory" / "audit").write_text("")
        memory.close()
    with Memory.open(tmp_path, config=CONFIG, embedder=None) as memory:
        memory.append("milk", date="2026-11-21")
        assert "the access log lacks 1 entries" in str(memory.status().notices)


def test_required_does_nothing_that_leaves_no_entry(tmp_path):
    from openclaw_memory.errors import AuditError

    required = MemoryConfig(audit=AuditConfig(enabled=True, required=True))
    with Memory.open(tmp_path, config=required, embedder=None) as memory:
        memory.append("tea", date="2026-11-21")
        assert [one.result for one in entries(tmp_path, required.audit)] == ["ok", "started"]
        memory.close()
        shutil.rmtree(tmp_path / ".memory" / "audit")
        (tmp_path / ".memory" / "audit").write_text("")
    with Memory.open(tmp_path, config=required, embedder=None) as memory:
        for refused in (
            lambda: memory.append("milk", date="2026-11-21"),
            lambda: memory.get("memory/2026-11-21.md"),
            lambda: memory.records.remember("fact", "a", "b"),
            lambda: next(memory.documents.iterate(), None),
            lambda: memory.session_log("s").append("user", "milk"),
        ):
            with pytest.raises(AuditError, match=r"audit\.required"):
                refused()
    assert "milk" not in (tmp_path / "memory" / "2026-11-21.md").read_text(encoding="utf-8")
    assert not (tmp_path / "sessions").exists()
    assert not list(tmp_path.glob("memory/records/**/*.md"))


def test_off_it_is_neither_loaded_nor_called(tmp_path):
    code = f"""
import sys
from openclaw_memory import Memory
with Memory.open({str(tmp_path)!r}, embedder=None) as memory:
    memory.append("tea", date="2026-11-21")
    memory.search("tea"), memory.get("memory/2026-11-21.md"), memory.status()
    memory.records.remember("fact", "a", "b"), list(memory.documents.iterate()), memory.session_log("s").append("user", "a")
    assert (type(memory), type(memory.records).__name__, type(memory.workspace).__name__) == (Memory, "Records", "Workspace")
print([name for name in sys.modules if name.startswith("openclaw_memory.audit")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert not (tmp_path / ".memory" / "audit").exists()
