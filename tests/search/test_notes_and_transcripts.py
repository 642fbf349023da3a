"""A workspace with notes and transcripts: what is found in which, how much of each, and how it is cited."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_files import write_files
from msgspec.structs import replace

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SearchConfig, SessionsConfig
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.tools import memory_tools

EITHER = pytest.mark.parametrize("embedder", ["default", None])
EVERYTHING = MemoryConfig(search=SearchConfig(min_score=0.0))
OPENCLAW = replace(MemoryConfig.openclaw(), sessions=SessionsConfig())  # of itself, it leaves transcripts out


def transcript(turns: Iterable[tuple[str, str] | None], day: str = "2026-02-03") -> str:
    """JSONL with a header; a turn is a role and a text, None a line of a tool, which is not shown."""
    lines: list[dict[str, Any]] = [{"type": "session", "id": "s", "timestamp": f"{day}T09:00:00Z"}]
    for turn in turns:
        role, text = turn or ("toolResult", "row 1\nrow 2")
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        lines.append({"type": "message", "timestamp": f"{day}T10:00:00Z", "message": message})
    return "".join(json.dumps(line) + "\n" for line in lines)


def user(*texts: str) -> str:
    return transcript(("user", text) for text in texts)


def counted(results: Iterable[Any]) -> tuple[int, int]:
    """How many results are from notes, and how many from transcripts."""
    sources = [result.source for result in results]
    return sources.count("memory"), sources.count("sessions")


# --- how much of each ---


CHATTER = {f"sessions/{at}.jsonl": user(f"The ferry to Texel, ferry number {at}, Texel ferry!") for at in range(30)}
QUIET = {f"memory/{at}.md": f"On trip {at} the old boat to Texel was late.\n" for at in range(8)}


@EITHER
def test_transcripts_never_crowd_notes_out_and_have_a_third_of_the_places(remember, embedder):
    memory = remember(CHATTER | QUIET, embedder=embedder, config=EVERYTHING)
    results = memory.search("ferry to Texel")
    assert counted(results) == (4, 2)
    scores = [result.score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert counted(memory.search("ferry to Texel", max_results=1)) == (0, 1)
    assert counted(memory.search("ferry to Texel", max_results=12)) == (8, 4)


@pytest.mark.parametrize("config", [MemoryConfig(), OPENCLAW], ids=["default", "openclaw"])
def test_a_source_that_is_named_is_searched_alone(remember, config):
    memory = remember(CHATTER | QUIET, config=config)
    assert counted(memory.search("ferry to Texel", filter={"source": "sessions"}, min_score=0.0)) == (0, 6)
    assert counted(memory.search("ferry to Texel", filter={"source": "memory"}, min_score=0.0)) == (6, 0)
    assert counted(memory.search("ferry to Texel", min_score=0.0)) == (4, 2)


ANSWERED = [("user", "What is the harbour master called?"), ("assistant", "She is Petronella Vos.")]
TOLD = [("user", "The harbour master is called Petronella Vos."), ("assistant", "I see."), ("user", "It rains.")]


@EITHER
@pytest.mark.parametrize("said", [ANSWERED, TOLD])
def test_what_was_said_and_never_written_down_is_found_though_it_was_asked_in_vain(remember, embedder, said):
    vain = [("user", "What is the name of the harbour master?"), ("assistant", "I do not know.")]
    talks = {"sessions/a.jsonl": transcript(said), "sessions/b.jsonl": transcript(vain)}
    best = remember(QUIET | talks, embedder=embedder).search(vain[0][1])[0]
    assert (best.path, "Petronella Vos" in best.snippet) == ("sessions/a.jsonl", True)


@EITHER
def test_whoever_speaks_within_a_turn_is_known_by_name_and_not_by_the_role(remember, embedder):
    talk = [f"{name}: I sold boat number {at}." for at in range(4) for name in ("Anna", "Ben")]
    memory = remember({"sessions/a.jsonl": user(*talk)}, embedder=embedder)
    assert memory.search("Which boat did Anna sell?", options={"explain": True})[0].parts["name"] == 0.5


def test_a_session_whose_id_is_the_question_answers_like_any_other(remember):
    files = {"MEMORY.md": "The harbour is deep.\n", "sessions/harbour.jsonl": user("Hello there.")}
    assert remember(files, config=EVERYTHING).search("harbour")[0].path == "MEMORY.md"


# --- said twice
@EITHER
def test_what_an_agent_noted_word_for_word_is_shown_once(remember, embedder):
    said = "The spare key is with Mrs. Groen in number nine."
    files = {"MEMORY.md": f"# Keys\n\n- {said}\n", "sessions/a.jsonl": user("Good morning!", said)}
    memory = remember(files, embedder=embedder, config=EVERYTHING)
    holders = [result for result in memory.search("Who has the spare key?") if said in result.snippet]
    assert [result.path for result in holders] == ["MEMORY.md"]
    assert said in memory.search("Who has the spare key?", filter={"source": "sessions"})[0].snippet


# --- places and days
def test_a_snippet_leaves_out_what_is_not_shown_and_cites_lines_of_the_transcript(remember):
    turns = [("user", "Who tunes the piano?"), None, None, ("assistant", "Ludmila tunes the piano.")]
    for config in (MemoryConfig(), OPENCLAW):
        memory = remember({"sessions/a.jsonl": transcript(turns)}, config=config)
        best = memory.search("Who tunes the piano?", min_score=0.0)[0]
        assert best.citation == "sessions/a.jsonl#L2-L5"
        assert best.snippet == "User: Who tunes the piano?\nAssistant: Ludmila tunes the piano."


TURNS = st.sampled_from(
    [
        None, ("user", "Is the boiler loud?"), ("assistant", "The boiler is loud. " * 30), ("user", "word " * 200),
        ("assistant", "# a heading\n\nand boilers"), ("user", "```\ncode\n```"), ("user", "東京タワーに行った。"),
        ("assistant", "User: boiler"),
    ]
)  # fmt: skip


@settings(max_examples=12)
@given(
    talk=st.lists(TURNS, max_size=14),
    noted=st.lists(st.sampled_from(["", "The boiler is new.", "- Is the boiler loud?"]), max_size=4),
    config=st.sampled_from([EVERYTHING, OPENCLAW]),
    embedder=st.sampled_from([None, HashingEmbedder()]),
)
def test_a_snippet_is_what_the_cited_lines_of_the_transcript_say(talk, noted, config, embedder):
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), {"MEMORY.md": "\n".join(noted), "sessions/a.jsonl": transcript(talk)})
        with Memory.open(folder, embedder=embedder, config=config) as memory:
            results = memory.search("is the boiler a word?", min_score=0.0)
            lines = memory.workspace.read("sessions/a.jsonl").split("\n")
    for result in results:
        assert len(result.snippet) <= config.search.snippet_chars
        if result.source == "sessions":
            runs = ["\n".join(line for line in lines[first - 1 : last] if line) for first, last in result.spans]
            assert result.snippet.strip()
            assert "\n\n" not in result.snippet
            shown = result.snippet.split("\n…\n")
            assert all(any(part in run for run in runs) for part in shown)
            assert len(shown) == len(runs) or any(len(run) > config.search.snippet_chars for run in runs)
            assert lines[result.start_line - 1]
            assert lines[result.end_line - 1]


def two_days(older: str, newer: str) -> str:
    return transcript([("user", older)], "2026-01-06") + "".join(
        transcript([("user", newer)], "2026-02-17").splitlines(keepends=True)[1:]
    )


@EITHER
def test_a_date_finds_the_day_within_a_transcript_that_lasts_for_days(remember, embedder):
    files = {"sessions/a.jsonl": two_days("We met and talked.", "We met and talked."), "MEMORY.md": "Nothing.\n"}
    memory = remember(files, embedder=embedder, config=EVERYTHING)
    assert memory.search("Who met on 6 January 2026?")[0].citation == "sessions/a.jsonl#L2"
    assert memory.search("Who met on 17 February 2026?")[0].citation == "sessions/a.jsonl#L3"
    parts = memory.search("Who met on 17 February 2026?", options={"explain": True})[0].parts
    assert parts["date"] == 1.0


def test_age_takes_from_what_was_said_long_ago(remember):
    text = "The ferry to Texel leaves from pier four."
    files = {"sessions/a.jsonl": two_days(text, f"{text[:-1]}, too."), "memory/ferry.md": "Another thing.\n"}
    scores = {}
    for half_life in (None, 7.0):
        config = MemoryConfig(search=SearchConfig(min_score=0.0, half_life_days=half_life))
        found = remember(files, embedder=None, config=config).search("ferry to Texel", filter={"source": "sessions"})
        scores[half_life] = {result.start_line: result.score for result in found}
    plain, aged = scores[None], scores[7.0]
    # 42 days lie between the two lines.
    assert aged[2] / plain[2] == pytest.approx(aged[3] / plain[3] / 2**6)


@EITHER
def test_an_answer_of_the_assistant_is_no_better_than_a_note_however_often_it_was_given(remember, embedder):
    said = [("user", "What is the boiler pressure?"), ("assistant", "The boiler pressure is 2.4 bar.")]
    talks = {f"sessions/{at}.jsonl": transcript(said, f"2026-02-0{at}") for at in range(1, 8)}
    note = {"memory/boiler.md": "# Boiler\n\nBoiler pressure: 1.6 bar, says the engineer.\n"}
    memory = remember(note | QUIET | talks, embedder=embedder)
    found = memory.search("what is the boiler pressure")
    assert "1.6" in found[0].snippet
    assert sum("2.4" in result.snippet for result in found) == 1
    assert found[0].confidence == "strong"


@EITHER
def test_places_that_notes_leave_over_go_to_transcripts_and_a_model_is_shown_two(remember, embedder):
    memory = remember(CHATTER | {"MEMORY.md": "The ferry to Texel is red.\n"}, embedder=embedder, config=EVERYTHING)
    assert counted(memory.search("ferry to Texel")) == (1, 5)
    ask = {"query": "ferry to Texel", "maxResults": 6}
    shown = [memory_tools(memory, source=source)[0].run(ask).artifact for source in (None, "sessions")]
    assert [counted(results) for results in shown] == [(1, 2), (0, 6)]
