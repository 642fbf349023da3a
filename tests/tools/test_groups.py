"""In groups and channels neither long-term memory nor transcripts appear, whatever is asked and however."""

import pytest

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.flush import Session
from openclaw_memory.tools import memory_tools, recall

GROUP = "agent:main:telegram:group:1"


@pytest.fixture
def notes(notes):
    (notes / "USER.md").write_text("# User\n\nThe birthday of the user is in October.\n", encoding="utf-8")
    return notes


@pytest.fixture
def memory(memory):
    memory.sessions.log("monday").append("user", "My salary was raised in October.")
    memory.sync()
    return memory


QUESTIONS = [
    "trains", "spare key", "birthday October", "salary October", "MEMORY.md", "USER.md", "sessions/monday.jsonl",
]  # fmt: skip


@pytest.mark.fault(55)
@pytest.mark.parametrize("query", QUESTIONS)
@pytest.mark.parametrize("key", [GROUP, "agent:main:slack:channel:x", "telegram:group:1", "agent:main:matrix:room:!x"])
@pytest.mark.sampled(7)
def test_no_search_finds_them(memory, call, query, key):
    shown = call("memory_search", key=key, query=query, minScore=0, maxResults=100)
    paths = {row["path"] for row in shown.data["results"]}
    assert all(path.startswith("memory/") for path in paths)
    assert all(hit.path in paths for hit in shown.artifact)
    assert "filtered" not in shown.data  # it would count them
    said = recall(memory, query, session_key=key, min_score=0)
    for words in ("Ines", "Groen", "birthday", "salary"):
        assert words not in shown.text + said


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md", "./MEMORY.md", "memory/../MEMORY.md", " MEMORY.md", "MEMORY.md#L1", "USER.md",
        "sessions/monday.jsonl",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["memory_get", "memory_edit", "memory_forget", "memory_promote"])
@pytest.mark.sampled(7)
def test_no_tool_reads_or_changes_them(notes, memory, call, name, path):
    before = {file: file.read_bytes() for file in notes.glob("*.md")}
    more = {} if name == "memory_get" else {"from_": 1, "lines": 1, "hash": memory.get("MEMORY.md", lines=1).hash}
    more |= {"text": "x"} if name == "memory_edit" else {}
    answer = call(name, key=GROUP, path=path, **more)
    assert answer.data["status"] == "not_allowed"
    assert {file: file.read_bytes() for file in notes.glob("*.md")} == before


def test_nothing_is_promoted_by_a_group(notes, memory, call):
    before = (notes / "MEMORY.md").read_bytes()
    seen = memory.get("memory/household.md", start=3, lines=1).hash
    place = {"path": "memory/household.md", "from_": 3, "lines": 1, "hash": seen}
    answer = call("memory_promote", key=GROUP, **place)
    assert answer.data["status"] == "not_allowed"
    assert "MEMORY.md is private" in answer.data["error"]
    assert (notes / "MEMORY.md").read_bytes() == before
    assert call("memory_promote", **place).ok


def test_a_long_private_memory_takes_no_places_from_the_notes(notes, memory, call):
    lines = "\n".join(f"- The boiler of house {number} hums in October." for number in range(200))
    (notes / "MEMORY.md").write_text(f"# Long-term memory\n\n{lines}\n", encoding="utf-8")
    memory.sync()
    found = call("memory_search", key=GROUP, query="boiler October", maxResults=1).data["results"]
    assert [row["path"] for row in found] == ["memory/household.md"]


def test_a_session_that_becomes_a_groups_sees_nothing_private_from_then_on(memory):
    tools = {tool.name: tool for tool in memory_tools(memory, session_key="s7")}
    assert tools["memory_get"].run({"path": "MEMORY.md"}).ok
    assert "Ines" in recall(memory, "trains", session_key="s7", min_score=0)
    memory.sessions.flush(Session("s7", kind="group")).record_compaction()
    assert tools["memory_get"].run({"path": "MEMORY.md"}).data["status"] == "not_allowed"
    assert "Ines" not in tools["memory_search"].run({"query": "trains", "minScore": 0}).text
    assert "Ines" not in recall(memory, "trains", session_key="s7", min_score=0)


def test_one_session_says_to_each_part_who_reads_along_and_which_transcript_it_has(memory):
    team = Session("main", "team", kind="group", user="anna")
    assert "Ines" not in recall(memory, "trains", session_key=team, min_score=0)
    tools = {tool.name: tool for tool in memory_tools(memory, session_key=team)}
    assert tools["memory_get"].run({"path": "MEMORY.md"}).data["status"] == "not_allowed"
    assert memory.sessions.log(team).path == memory.sessions.flush(team).log.path == "sessions/team.jsonl"
    memory.sessions.log(team).append("user", "Hello, all.")
    assert len(memory.sessions.resume(team)) == 1


def test_where_it_is_unknown_who_reads_what_is_private_is_hidden_and_that_is_said(notes, memory, call, caplog):
    (notes / "sessions" / "sessions.json").write_text("{")
    answer = call("memory_search", key="agent:main:s7", query="trains boiler", minScore=0)
    assert [row["path"] for row in answer.data["results"]] == ["memory/household.md"]
    assert "sessions.json is damaged" in answer.data["note"]
    assert "sessions.json is damaged" in call("memory_get", key="agent:main:s7", path="MEMORY.md").data["error"]
    assert "Ines" not in recall(memory, "trains", session_key="agent:main:s7", min_score=0)
    assert "Ines" in recall(memory, "trains", session_key="agent:main:main", min_score=0)
    assert "what is private is not recalled" in caplog.text
    assert call("memory_get", path="MEMORY.md").ok


@pytest.mark.parametrize("key", [5, 0, False, b"agent:main:main", ["agent:main:main"]], ids=str)
def test_a_session_key_that_is_no_text_is_refused(memory, key):
    with pytest.raises(InvalidInputError, match="session_key must be a text"):
        recall(memory, "spare key", session_key=key)
