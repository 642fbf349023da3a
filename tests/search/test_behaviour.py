"""A question asked of small workspaces: what is found, what is not, and that citation and snippet say the same."""

from __future__ import annotations

import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SearchConfig
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.search import line_index

EITHER = pytest.mark.parametrize("way", ["hybrid", "keywords"])


@pytest.fixture
def memory(way, hybrid, keywords):
    return hybrid if way == "hybrid" else keywords


# --- what is found
WISHES = {
    "Which hotels would suit my stay on Malta?": "Huge resorts put me off, a small guesthouse is fine.",
    "Which films would suit my stay at home?": "Horror movies scare the children.",
}
OTHERS = "The fence is green.\nRivers carry sand.\n{}\nThe train leaves at noon.\nThe printer needs toner."
ALIKE = (
    "It would suit my desk to stay where it is.", "My stay at the office was short.", "The chair may stay upstairs.",
    "A quiet fan would suit the server.", "The tie would suit my brother.", "A suit would be too warm.",
)  # fmt: skip


@pytest.mark.parametrize("question", WISHES)
def test_a_wish_in_other_words_than_the_question_is_before_what_only_shares_words_with_it(remember, question):
    notes = [OTHERS.format(WISHES[question]), *ALIKE]
    memory = remember({f"memory/note-{number}.md": text for number, text in enumerate(notes)})
    assert any(WISHES[question] in result.snippet for result in memory.search(question)[:3])


@EITHER
@pytest.mark.parametrize(
    ("question", "path"),
    [row.split("\t") for row in Path(__file__).with_name("questions.tsv").read_text("utf-8").splitlines()],
)
def test_a_question_is_answered_in_its_own_language(memory, question, path):
    assert memory.search(question)[0].path == path


@EITHER
@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("GEO-1000", "memory/2026-02-09.md"),
        ("GEO-1002", "memory/2026-03-02.md"),
        ("What was the matter with E_CAL_DRIFT?", "memory/2026-02-26.md"),
        ("e_cal_drift", "memory/2026-02-26.md"),
        ("retry_limit", "memory/server.md"),
        ("parseHttpHeader", "memory/server.md"),
        ("What does config.toml say about the limits of gauges?", "memory/server.md"),
    ],
)
def test_an_identifier_is_found_before_vague_neighbours(memory, question, path):
    assert memory.search(question)[0].path == path


def test_words_of_another_language_are_met_by_meaning(remember):
    files = {
        "memory/pets.md": "The dog is called Bello.\n",
        "memory/car.md": "The car was repaired for little money.\n",
        "memory/tea.md": "Green tea is kept in the tin box.\n",
    }
    memory = remember(files)
    for question, path in [("Welcher Hund?", "pets"), ("¿Dónde está el té verde?", "tea"), ("l'automobile", "car")]:
        assert memory.search(question, min_score=0.0)[0].path == f"memory/{path}.md"


def test_a_line_that_only_asks_comes_after_one_that_answers(remember):
    files = {
        "memory/a.md": "Who has the spare key of the shed?\n",
        "memory/b.md": "Groen has the spare key of the shed.\n",
    }
    assert remember(files).search("Who has the spare key of the shed?")[0].path == "memory/b.md"


# --- what is not there ---

ANSWERED = ["Who has the spare key?", "Who services the boiler?", "What was the matter with E_CAL_DRIFT?"]
UNANSWERED = [
    "How many goats does the mayor of Tokyo own?",
    "What is the wavelength of the new laser?",
    "Which opera did Beatrix sing last summer?",
]


@EITHER
def test_scores_mean_the_same_from_one_question_to_the_next(memory):
    worst_answer = min(memory.search(question)[0].score for question in ANSWERED)
    best_guess = max([0.0, *(result.score for question in UNANSWERED for result in memory.search(question))])
    assert worst_answer > 0.5 > best_guess


@EITHER
@pytest.mark.parametrize("question", UNANSWERED)
def test_a_question_that_the_notes_do_not_answer_gets_nothing_above_a_modest_threshold(memory, question):
    results = memory.search(question, min_score=0.3)
    assert list(results) == []


def test_what_the_threshold_takes_is_counted(hybrid):
    everything = hybrid.search("Who has the spare key?", min_score=0.0)
    best = hybrid.search("Who has the spare key?", min_score=everything[0].score)
    assert len(best) == 1
    assert best.filtered == len(everything) - 1


def test_an_empty_workspace_answers_nothing(remember):
    for embedder in ("default", None):
        results = remember({}, embedder=embedder).search("anything")
        assert (list(results), results.filtered) == ([], 0)


# --- how many, and which
@EITHER
@pytest.mark.parametrize("count", [1, 2, 5, 1000, 10**9])
def test_no_more_results_come_than_are_wanted_best_first(memory, count):
    results = memory.search("the gauges of the supplier", max_results=count, min_score=0.0)
    scores = [result.score for result in results]
    assert 0 < len(scores) <= count
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_keywords_alone_find_every_note_that_holds_a_word(keywords):
    results = keywords.search("gauges", min_score=0.0)
    assert results.mode == "keyword"
    assert {result.path for result in results} == {f"memory/2026-{day}.md" for day in ("02-09", "02-26", "03-02")}


@pytest.mark.parametrize("version", ["2026.9", "2026.2"])
def test_nothing_passes_below_a_minimum_score_that_is_given_to_a_search(remember, version):
    files = {"memory/a.md": "The zeppelin lands on Friday.\n", "memory/b.md": "Nothing else.\n"}
    for embedder in (None, "static"):
        memory = remember(files, config=MemoryConfig.openclaw(version), embedder=embedder)
        assert [result.path for result in memory.search("zeppelin")] == ["memory/a.md"]
        assert list(memory.search("zeppelin", min_score=1.0)) == []
        least = memory.search("zeppelin")[0].score
        assert [result.path for result in memory.search("zeppelin", min_score=least)] == ["memory/a.md"]


def test_a_chunk_that_no_vector_speaks_for_fills_a_place_that_is_left_over(remember):
    class Blind(HashingEmbedder):
        """No vector for what mentions a zeppelin."""

        def embed_documents(self, texts: Any) -> Any:
            rows = super().embed_documents(texts)
            rows[["zeppelin" in text.lower() for text in texts]] = 0
            return rows

    rules = MemoryConfig.openclaw().replace({"search": {"min_score": 0.5}})
    files = {
        "memory/strong.md": "mooring mast of the airship\n",
        "memory/weak.md": f"{'Other words. ' * 60} The zeppelin has a mooring.\n",
    }
    found = remember(files, config=rules, embedder=Blind()).search("mooring mast of the airship")
    assert [result.path for result in found] == ["memory/strong.md", "memory/weak.md"]
    assert found[0].score >= 0.5 > found[1].score


# --- citation and snippet ---

LINES = st.sampled_from(
    [
        "", "", "# Heading", "## Another heading", "- item one of the list", "The boiler is loud.", "東京タワーに行った。",
        "```", "| a | b |", "word " * 60, "A long sentence about boilers. " * 40, "x" * 1500, "--- not front matter",
        "tab\tand\x0bform\x0cfeed", "a\u2028b", "Anna: the boiler?", "*emphasis* on the boiler",
    ]
)  # fmt: skip
FILES = st.dictionaries(
    st.sampled_from(["MEMORY.md", "memory/2026-01-02.md", "memory/a.md"]),
    st.lists(LINES, min_size=1, max_size=25).map("\n".join),
    min_size=1,
)
CONFIGS = [
    MemoryConfig(),
    MemoryConfig(search=SearchConfig(snippet_chars=120, max_results=20)),
    MemoryConfig.openclaw(),
]


@settings(max_examples=12)
@given(files=FILES, config=st.sampled_from(CONFIGS), embedder=st.sampled_from([None, HashingEmbedder()]))
def test_a_snippet_is_the_lines_that_are_cited_and_each_shows_something_new(files, config, embedder):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        with Memory.open(folder, embedder=embedder, config=config) as memory:
            results = memory.search("boiler word heading", min_score=0.0)
    seen: set[tuple[str, int]] = set()
    for result in results:
        lines = files[result.path].split("\n")
        assert (result.start_line, result.end_line) == (result.spans[0][0], result.spans[-1][1])
        assert result.snippet.strip()
        assert len(result.snippet) <= config.search.snippet_chars
        cited = [number for first, last in result.spans for number in range(first, last + 1)]
        if max(len(lines[number - 1]) for number in cited) > 500:  # pieces of one long line share its number
            continue
        runs = ["\n".join(lines[first - 1 : last]) for first, last in result.spans]
        assert result.snippet in "\n…\n".join(runs)
        if config.search.answer == "lines":
            assert result.snippet == "\n…\n".join(runs) or len(runs[0]) > config.search.snippet_chars
            assert not {(result.path, number) for number in cited} <= seen
            seen |= {(result.path, number) for number in cited}


def test_an_answer_in_a_long_note_is_shown_by_its_lines_alone(remember):
    day = [f"- At {hour:02}:{minute:02} the tide stood at {hour + minute} centimetres."
           for hour in range(24) for minute in (0, 20, 40)]  # fmt: skip
    day[40] = "- The harbour master is called Petronella Vos."
    memory = remember({"memory/2026-05-05.md": "# Tides\n\n" + "\n".join(day) + "\n"})
    found = memory.search("What is the name of the harbour master?")[0]
    assert found.start_line <= 43 <= found.end_line
    assert found.end_line - found.start_line < 20


# --- age, variety, sources
def test_mmr_puts_another_thought_before_the_same_one_again(remember):
    files = {
        "memory/a.md": "The ferry to Texel leaves at seven.\n",
        "memory/b.md": "The ferry to Texel leaves at seven!\n",
        "memory/c.md": "Ferry tickets for Texel are sold on board by Sietske.\n",
    }
    paths = {}
    for mmr in (None, 0.3):
        memory = remember(files, embedder=None, config=MemoryConfig(search=SearchConfig(min_score=0.0, mmr=mmr)))
        paths[mmr] = [result.path for result in memory.search("When leaves the ferry to Texel at seven?")]
    assert paths[None] == ["memory/a.md", "memory/b.md", "memory/c.md"]
    assert paths[0.3] == ["memory/a.md", "memory/c.md", "memory/b.md"]


# --- how it came about
@EITHER
def test_explaining_adds_parts_and_changes_nothing_else(memory):
    plain = memory.search("Where is E_CAL_DRIFT from 2026-02-26?")
    explained = memory.search("Where is E_CAL_DRIFT from 2026-02-26?", options={"explain": True})
    assert [replace(result, parts={}) for result in explained] == [replace(result, parts={}) for result in plain]
    parts = explained[0].parts
    assert set(plain[0].parts) < set(parts)
    assert (parts["exact"], parts["date"]) == (1.0, 1.0)


def test_both_presets_run_on_one_pipeline_and_differ_in_what_they_return(remember):
    text = "# House\n\n" + "".join(f"Room {number} has {number + 3} windows and a grey door.\n" for number in range(40))
    files = {"memory/house.md": text + "\nThe piano tuner is called Ludmila.\n"}
    lines = remember(files, embedder="static").search("Who tunes the piano?")
    chunks = remember(files, embedder="static", config=MemoryConfig.openclaw("2026.2")).search("Who tunes the piano?")
    assert "Ludmila" in lines[0].snippet
    assert set(lines[0].parts) == {"confidence", "share", "vector_share"}
    parts = chunks[0].parts
    assert chunks[0].score == pytest.approx(0.7 * parts["vector_score"] + 0.3 * parts["text_score"])
    assert chunks[0].snippet.startswith("Room 3")


# --- files of every size, names, codes and dates
@pytest.mark.parametrize("embedder", ["default", None])
def test_a_large_file_beside_a_small_one_is_searched_like_any_other(remember, embedder):
    many = "".join(f"Line {at} tells about the boat.\n" for at in range(600))
    memory = remember({"memory/a.md": many, "memory/b.md": "The launch was on Friday.\n"}, embedder=embedder)
    assert memory.search("When was the launch?")[0].citation == "memory/b.md#L1"


@pytest.mark.parametrize("question", ["kestrel", "kestrel.md", "memory/kestrel.md", " KESTREL.md "])
def test_a_file_is_found_by_its_name_though_all_others_speak_of_it(remember, question):
    others = {f"memory/n{at}.md": "kestrel " * 8 + f"note {at}\n" for at in range(12)}
    memory = remember(others | {"memory/kestrel.md": "The gauges are blue.\n"})
    first, *rest = memory.search(question)
    assert (first.path, first.score, first.snippet) == ("memory/kestrel.md", 1.0, "The gauges are blue.")
    assert all(result.path != first.path for result in rest)


CODES = "ERR_LINK_042 means that the modem is lost.\nsvc-1234 was restarted.\nInvoice 20260117 was paid.\n"


@pytest.mark.parametrize("question", ["ERR_LINK_042", "svc-1234", "invoice 20260117"])
def test_a_code_that_the_notes_hold_is_found_with_confidence(remember, question):
    assert remember({"memory/a.md": CODES}).search(question)[0].score > 0.9


@pytest.mark.parametrize("question", ["ERR_LINK_043", "svc-9999", "12345", "invoice 20260118"])
def test_a_code_that_the_notes_do_not_hold_is_not_answered_by_one_like_it(remember, question):
    assert all(result.score < 0.1 for result in remember({"memory/a.md": CODES}).search(question))


DAILY = {
    "title and text": "# {day}\n\nWe met and talked.\n",
    "sections": "# {day}\n\n## Morning\nWe met and talked.\n",
    "no title": "- We met and talked.\n",
}


@pytest.mark.parametrize("shape", DAILY)
def test_a_date_finds_the_note_of_that_day_among_many_that_are_alike(remember, shape):
    days = [date(2025, 11, 1) + timedelta(days=at) for at in range(80)]
    memory = remember({f"memory/{day}.md": DAILY[shape].format(day=day) for day in days})
    for question in ("What happened on 6 January 2026?", "¿Qué pasó el 6 de enero?", "2026年1月6日"):
        assert memory.search(question)[0].path == "memory/2026-01-06.md", question


NAMED = {
    "memory/a.md": "Bins go out on Friday; the cover of a bin is green.\n",
    "memory/kestrel.md": "Five sensors hang there.\n",
    "memory/WinterCoverSizes.md": "4 by 9 metres\n",
}


@pytest.mark.parametrize("embedder", ["static", None])
def test_a_note_is_found_by_its_name_or_the_words_of_its_name(remember, embedder):
    memory = remember(NAMED, embedder=embedder)
    assert memory.search("What does kestrel.md say?")[0].citation == "memory/kestrel.md#L1"
    for question in ("What size is the winter cover?", "winter cover", "covers for winter"):
        assert memory.search(question)[0].citation == "memory/WinterCoverSizes.md#L1"


def test_code_is_shown_whole_though_its_comments_look_like_headings(remember):
    section = "## Restart the server\n\n```bash\n# step one\nstop it\n# step two\nstart it\n```"
    memory = remember({"memory/ops.md": f"# Operations\n\n{section}\n\n## Other\n\nNothing.\n"})
    assert memory.search("How do I restart the server?")[0].snippet == section


# --- what was worked out for a search before
QUESTIONS = ("Who has the spare key?", "GEO-1000", "When is the boiler serviced?", "钥匙", "What happened in March?")


@pytest.mark.parametrize("embedder", ["static", None])
def test_answers_are_the_same_with_room_for_no_lines_and_for_all(household, monkeypatch, tmp_path, embedder):
    def answers(limit):
        for name in ("MAX_WORDS", "MAX_LINES"):
            monkeypatch.setattr(line_index, name, limit)
        with Memory.open(household, embedder=embedder, index_path=tmp_path / "index.sqlite") as memory:
            return [[(found.citation, found.score) for found in memory.search(text)] for text in QUESTIONS * 2]

    assert answers(0) == answers(1 << 24)
