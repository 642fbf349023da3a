"""Who sees citations, and what is private."""

import json

import pytest
from index_files import write_files

from openclaw_memory.tools import search_for
from openclaw_memory.tools.visibility import Audience, find_audience


@pytest.mark.parametrize(
    ("key", "entry", "private"),
    [
        ("s7", {"chatType": "group"}, False),
        ("s7", {"chatType": "Direct"}, True),
        ("other", {"chatType": "group"}, True),
        ("id-7", {"chatType": "room"}, False),  # a session is known by its id as well
        (None, {"chatType": "group"}, True),
    ],
)
def test_what_is_private_stays_hidden_where_the_state_of_a_session_says_of_several_people(
    notes, memory, key, entry, private
):
    write_files(notes, {"sessions/sessions.json": json.dumps({"s7": {"sessionId": "id-7", **entry}})})
    assert find_audience(memory, key) == Audience(is_user_alone=private, citations=private)


def test_a_session_id_is_as_private_as_the_key_that_it_goes_by(notes, memory):
    (notes / "sessions").mkdir()
    states = {"agent:main:telegram:group:7": {"sessionId": "id-7"}}
    (notes / "sessions" / "sessions.json").write_text(json.dumps(states))
    assert not find_audience(memory, "id-7").is_user_alone


@pytest.mark.parametrize("content", ["{", "[]", "x"])
def test_where_the_state_cannot_be_read_what_is_private_stays_hidden(notes, memory, content):
    write_files(notes, {"sessions/sessions.json": content})
    audience = find_audience(memory, "agent:main:s7")
    assert not audience.is_user_alone
    assert "sessions.json is damaged" in audience.reason
    for private in (None, "main", "agent:main:main", "agent:main:telegram:dm:5"):
        assert find_audience(memory, private) == Audience()


def test_a_filter_does_not_show_a_group_what_is_private(memory):
    asked = {"session_key": "agent:main:telegram:group:1", "min_score": 0.0}
    assert search_for(memory, "trains boiler", session_key=None, min_score=0.0, filter={"path": "MEMORY.md"})
    found = search_for(memory, "trains boiler", filter={"path": ["MEMORY.md", "memory/household.md"]}, **asked)
    assert {hit.path for hit in found} == {"memory/household.md"}
    assert not search_for(memory, "trains boiler", filter={"path": "MEMORY.md"}, **asked)
    asked = {**asked, "min_score": 1.0, "options": {"explain": True}}
    assert {hit.path for hit in search_for(memory, "trains boiler", **asked).rejected} == {"memory/household.md"}
