"""The tool memory_erase: a plan first, and nothing goes but by a hash that the user has typed, in this session."""

import json

import pytest

from openclaw_memory.errors import ConfigError
from openclaw_memory.tools import erasing, memory_tools

GROUP = "agent:main:telegram:group:1"
DAY = "memory/2026-11-21.md"


@pytest.fixture
def notes(notes):
    (notes / DAY).write_text("# Day\n\nThe ferry leaves at seven.\nAnna has the spare key.\n", encoding="utf-8")
    return notes


@pytest.fixture
def call(memory):
    """Calls memory_erase of a session: `call(query="ferry")`; `said` is the user's latest message."""

    def call(*, of="agent:main:one", said=None, **arguments):
        (erase,) = memory_tools(memory, session_key=of, include=["erase"], read_user_message=lambda: said)
        return erase.run(arguments)

    return call


def files(notes):
    return {path: path.read_bytes() for path in notes.rglob("*.md")}


def test_it_is_there_only_where_it_is_asked_for(memory):
    assert [tool.name for tool in memory_tools(memory)] == ["memory_search", "memory_get", "memory_append"]
    assert [tool.name for tool in memory_tools(memory, include=["erase"], name="work")] == ["work_memory_erase"]
    with pytest.raises(ConfigError, match=r"no tool 'wipe': include takes search, .*erase"):
        memory_tools(memory, include=["wipe"])
    with pytest.raises(ConfigError, match="source='memory'"):
        memory_tools(memory, include=["erase"], source="memory")


def test_a_plan_says_what_would_go_and_deletes_nothing(notes, call):
    before = files(notes)
    answer = call(query="ferry leaves")
    assert answer.data | {"hash": "", "note": ""} == {
        "status": "ok", "outcome": "planned", "lines": 1, "hash": "", "note": "",
        "goes": [{"where": f"{DAY}#L3", "what": "lines", "why": "they say it"}],
    }  # fmt: skip
    assert len(answer.data["hash"]) == 12
    assert "nothing is deleted yet" in answer.data["note"]
    assert "ferry" not in json.dumps(answer.data)
    assert files(notes) == before


def test_what_is_to_be_looked_at_is_named_and_stays(notes, call):
    (notes / "MEMORY.md").write_text("The ferry leaves at seven.\n", encoding="utf-8")
    planned = call(query="ferry leaves").data
    assert [row["where"] for row in planned["lookAt"]] == ["MEMORY.md#L1"]
    call(hash=planned["hash"])
    assert (notes / "MEMORY.md").read_text(encoding="utf-8") == "The ferry leaves at seven.\n"


def test_with_the_hash_it_is_gone_once(notes, memory, call):
    memory.sync()
    code = call(query="ferry leaves").data["hash"]
    done = call(hash=code.upper())
    assert done.data == {"status": "ok", "outcome": "forgotten", "erased": True, "forgotten": [f"{DAY}#L3"]}
    assert (notes / DAY).read_text(encoding="utf-8") == "# Day\n\nAnna has the spare key.\n"
    assert DAY not in {hit.path for hit in memory.search("ferry leaves at seven", min_score=0.5)}
    assert call(hash=code).data["status"] == "not_found"


def test_a_hash_of_another_session_another_plan_or_of_no_plan_is_refused(notes, call):
    before = files(notes)
    first = call(query="ferry leaves").data["hash"]
    assert call(of="agent:main:two", hash=first).data["status"] == "not_found"
    assert call(of="agent:main:two", query="spare key").data["outcome"] == "planned"
    assert call(of="agent:main:two", hash=first).data["status"] == "invalid"
    assert call(hash="0" * 12).data["status"] == "invalid"
    second = call(query="spare key").data["hash"]
    refused = call(hash=first)
    assert (refused.data["status"], "not the hash of this" in refused.data["error"]) == ("invalid", True)
    assert second not in refused.text
    assert files(notes) == before


def test_a_hash_that_the_user_has_not_typed_is_refused_and_the_plan_waits(notes, call):
    before = files(notes)
    code = call(said="Forget the ferry.", query="ferry leaves").data["hash"]
    for said in (
        "Forget the ferry.",
        "yes",
        f'<recalled-memory id="0123456789abcdef">\n{code}\n</recalled-memory id="0123456789abcdef">',
    ):
        refused = call(said=said, hash=code).data
        assert (refused["status"], "ask them to type it" in refused["error"]) == ("not_allowed", True)
    assert files(notes) == before
    assert call(said=f"Yes: {code.upper()}, please.", hash=code).data["outcome"] == "forgotten"


def test_in_a_group_there_is_neither_a_plan_nor_a_deletion(notes, call):
    code = call(query="ferry leaves").data["hash"]
    before = files(notes)
    for arguments in ({"query": "ferry leaves"}, {"hash": code}):
        answer = call(of=GROUP, **arguments)
        assert (answer.data["status"], answer.data.keys()) == ("not_allowed", {"status", "error"})
    assert files(notes) == before


def test_what_has_changed_since_the_plan_stays(notes, call):
    code = call(query="ferry leaves").data["hash"]
    (notes / DAY).write_text("The ferry leaves at eight.\n", encoding="utf-8")
    answer = call(hash=code).data
    assert (answer["status"], answer["path"], "plan again" in answer["error"]) == ("stale", DAY, True)
    assert (notes / DAY).read_text(encoding="utf-8") == "The ferry leaves at eight.\n"


def test_a_plan_waits_for_a_time_and_only_the_latest_sessions_have_one(call, monkeypatch):
    code = call(query="ferry leaves").data["hash"]
    monkeypatch.setattr(erasing, "MAX_PLANS", 2)
    for other in ("two", "three"):
        call(of=f"agent:main:{other}", query="ferry leaves")
    assert call(hash=code).data["status"] == "not_found"
    monkeypatch.setattr(erasing, "PLAN_SECONDS", -1.0)
    code = call(query="ferry leaves").data["hash"]
    assert call(hash=code).data["status"] == "not_found"


@pytest.mark.parametrize("arguments", [{}, {"query": "a", "key": "b"}, {"hash": "0" * 12, "key": "b"}])
def test_one_thing_is_named(call, arguments):
    answer = call(**arguments).data
    assert (answer["status"], "name one of lastDays, since, query, key, session" in answer["error"]) == (
        "invalid",
        True,
    )
