"""A question for a day is answered with what there is of this day, in many languages, and never with another."""

from datetime import UTC, datetime

import pytest
from index_files import write_files

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import FilesConfig, SessionsConfig

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
    write_files(tmp_path, NOTES)
    config = MemoryConfig(files=FilesConfig(extra_paths=(".",)), sessions=SessionsConfig(timezone="UTC"))
    with Memory.open(tmp_path, config=config) as memory:
        memory.sync()
        yield memory


def search(memory, query, **arguments):
    return memory.search(query, now=NOW, **arguments)


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("yesterday|what did I do yesterday?|wat heb ik gisteren gedaan?|¿Qué hice ayer?", "memory/2026-11-28.md"),
        ("Qu'est-ce que j'ai fait hier ?|昨天我做了什么？|Что я делал вчера?", "memory/2026-11-28.md"),
        ("Co robiłem wczoraj?|Dün ne yaptım?|Vad gjorde jag igår?|Mitä tein eilen?", "memory/2026-11-28.md"),
        ("ماذا فعلت أمس؟|מה עשיתי אתמול?|เมื่อวานฉันทำอะไร|Hôm qua tôi đã làm gì?", "memory/2026-11-28.md"),
        ("what happened on Friday?|notes of 27 November", "Daily/2026-11-27.md"),
        ("what happened on 2026-11-24", "memory/log.md"),
        ("what happened on 3 February?", "memory/garden.md"),
    ],
)
def test_a_question_about_a_day_shows_what_there_is_of_it(memory, question, path):
    for each in question.split("|"):
        result = search(memory, each)[0]
        assert (result.path, result.score > 0.3) == (path, True), each


def test_of_a_longer_time_the_newest_day_comes_first(memory):
    paths = [result.path for result in search(memory, "what have I done since Monday?")]
    assert paths == ["memory/2026-11-28.md", "Daily/2026-11-27.md", "memory/log.md", "memory/log.md"]


@pytest.mark.parametrize("question", ["what did I do today?", "what happened on November 26?", "vor drei Tagen"])
def test_a_day_without_notes_is_said_and_not_answered_with_another(memory, question):
    results = search(memory, question)
    assert list(results) == []
    assert "no note is of 2026-11-2" in results.reason
    assert "the nearest are of 2026-11-27 and 2026-11-28" in results.reason
    assert "Daily" not in results.reason, "not everybody may see that file"


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


def test_a_time_without_notes_is_said(memory):
    results = search(memory, "what did I do last month?")
    assert (list(results), results.reason) == ([], "no note is of a day from 2026-10-01 to 2026-10-31")


@pytest.mark.parametrize(
    "question",
    [
        "what is planned on Friday", "what did I do before November 27", "what is new in 2.3.", "the last day of work",
        "boiler version 1.2.3", "bicycle by Friday",
    ],
)  # fmt: skip
def test_a_question_that_only_mentions_a_day_is_not_confined_to_it(memory, question):
    assert len({result.path for result in search(memory, question)}) > 1


@pytest.mark.parametrize(
    ("path", "text", "question"),
    [
        ("todo.md", "- 2026-11-26: call the plumber\n", "what do I have to do on Thursday"),
        ("plan.md", "On November 26 the dentist comes.\n", "what happens on November 26?"),
        ("log.md", "---\ncreated: 2025-01-01\n---\n# Log\n\n## 2026-11-26\n\n- painted the shed\n", "vor drei Tagen"),
        ("2026-11-26/standup.md", "Spoke of the shed.\n", "since Thursday"),
        ("2026/11/26/standup.md", "Spoke of the shed.\n", "am Donnerstag"),
    ],
)
def test_a_day_is_found_wherever_it_is_said(memory, path, text, question):
    file = memory.workspace.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    memory.sync()
    assert path in {result.path for result in search(memory, question)}


def test_a_heading_that_only_mentions_a_day_leaves_its_lines_to_the_day_of_the_note(memory):
    note = "# Notes\n\n## Prepare the launch of 2026-12-24\n\nBook the hall.\n"
    (memory.workspace.root / "memory/2026-11-26.md").write_text(note, encoding="utf-8")
    memory.sync()
    assert "Book the hall." in search(memory, "what happened on Thursday?")[0].snippet


def test_a_phrase_counts_in_a_question_for_a_day(memory):
    assert [own.path for own in search(memory, "Friday", filter={"phrases": ["bought plums"]})] == [
        "Daily/2026-11-27.md"
    ]
