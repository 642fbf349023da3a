"""A question for a day is answered with what there is of this day, in six languages, and never with another."""

from datetime import UTC, datetime

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import FilesConfig, SessionsConfig

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOTES = {
    "memory/2026-11-28.md": "- Repaired the green bicycle.\n- Bought apples.\n",
    "Daily/2026-11-27.md": "Met the surveyor at noon, and bought plums.\n",
    "journals/2026_11_20.md": "- Painted the fence.\n- Bought pears.\n",
    "memory/log.md": "# Log\n\n## 2026-11-25\n\nCleaned the boiler.\n\n## 2026-11-24\n\nSwept the yard.\n",
    "memory/garden.md": "# Garden\n\nThe roses are cut on 3 February 2026.\n",
}


@pytest.fixture
def memory(tmp_path):
    for path, text in NOTES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    config = MemoryConfig(files=FilesConfig(extra_paths=(".",)), sessions=SessionsConfig(timezone="UTC"))
    with Memory.open(tmp_path, config=config) as memory:
        memory.sync()
        yield memory


def search(memory, query, **arguments):
    return memory.search(query, now=NOW, **arguments)


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("what did I do yesterday?", "memory/2026-11-28.md"),
        ("wat heb ik gisteren gedaan?", "memory/2026-11-28.md"),
        ("Was habe ich gestern gemacht?", "memory/2026-11-28.md"),
        ("Qu'est-ce que j'ai fait hier ?", "memory/2026-11-28.md"),
        ("¿Qué hice ayer?", "memory/2026-11-28.md"),
        ("昨天我做了什么？", "memory/2026-11-28.md"),
        ("Что я делал вчера?", "memory/2026-11-28.md"),
        ("yesterday", "memory/2026-11-28.md"),
        ("what happened on Friday?", "Daily/2026-11-27.md"),
        ("notes of 27 November", "Daily/2026-11-27.md"),
        ("letzte Woche", "journals/2026_11_20.md"),
        ("what happened on 2026-11-24", "memory/log.md"),
        ("what happened on 3 February?", "memory/garden.md"),
    ],
)
def test_a_question_about_a_day_shows_what_there_is_of_it(memory, question, path):
    results = search(memory, question)
    assert results[0].path == path
    assert results[0].score > 0.3


def test_of_a_longer_time_the_newest_day_comes_first(memory):
    paths = [result.path for result in search(memory, "what have I done since Monday?")]
    assert paths == ["memory/2026-11-28.md", "Daily/2026-11-27.md", "memory/log.md", "memory/log.md"]


@pytest.mark.parametrize("question", ["what did I do today?", "what happened on November 26?", "vor drei Tagen"])
def test_a_day_without_notes_is_said_and_not_answered_with_another(memory, question):
    results = search(memory, question)
    assert list(results) == []
    assert "no note is of 2026-11-2" in results.reason
    assert "Daily/2026-11-27.md" in results.reason or "memory/2026-11-28.md" in results.reason


def test_a_question_that_mentions_a_day_prefers_its_notes(memory):
    assert search(memory, "what did I buy yesterday")[0].path == "memory/2026-11-28.md"
    assert search(memory, "what did I buy on 2026-11-20")[0].path == "journals/2026_11_20.md"
    results = search(memory, "what did I buy on 2026-11-10")
    assert results, "it may be noted under another day"
    assert "no note is of 2026-11-10" in results.reason


def test_a_filter_narrows_a_question_about_days(memory):
    assert [own.path for own in search(memory, "since Monday", filter={"path": "Daily/"})] == ["Daily/2026-11-27.md"]
    without = search(memory, "yesterday", filter={"without": "bicycle"})
    assert [own.path for own in without] == []
