"""Lines that were worked out for a search before: as those worked out anew, whatever came between."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np
import pytest

from openclaw_memory import Memory
from openclaw_memory.search import prepared
from openclaw_memory.search.prepared import Lexicon
from openclaw_memory.types import Chunk, StoredChunk

QUESTIONS = ("Who has the spare key?", "GEO-1000", "When is the boiler serviced?", "钥匙", "What happened in March?")


def word_vectors(words):
    """Different vectors for different words, the same each time."""
    return np.array([[len(word), ord(word[0]), ord(word[-1])] for word in words], np.float32).reshape(-1, 3)


def stored(ordinal, text, path="memory/a.md", start_line=1, start_char=0, section=0):
    chunk = Chunk(start_line, start_line + text.count("\n"), start_char, text, "", section)
    source = "sessions" if path.endswith(".jsonl") else "memory"
    return StoredChunk(ordinal + 1, path, source, chunk, ordinal)


def following(*texts, path="memory/a.md"):
    """Chunks of one section, one after the other."""
    chunks, line, char = [], 1, 0
    for ordinal, text in enumerate(texts):
        chunks.append(stored(ordinal, text, path, line, char))
        line, char = line + text.count("\n") + 1, char + len(text) + 1
    return chunks


def shown(lines, lexicon):
    words = [lexicon.words[number] for number in lines.words.tolist()]
    return list(lines.lines), lines.blocks.tolist(), lines.files.tolist(), words, lines.lengths.tolist()


def test_chunks_that_follow_one_another_lend_to_each_other_in_any_company():
    chunks = [*following("the spare key", "with Ines\nno", "of the boiler"), *following("other", path="memory/b.md")]
    lexicon = Lexicon(word_vectors)
    for count in range(1, 5):
        for some in permutations(chunks, count):
            alone = Lexicon(word_vectors)
            assert shown(lexicon.lines(some), lexicon) == shown(alone.lines(some), alone)
    one, _, three, _ = chunks
    assert lexicon.lines([one, three]).blocks.tolist() == [0, 1]
    assert lexicon.lines(chunks).blocks.tolist() == [0, 0, 0, 0, 1]
    assert lexicon.lines(chunks).lengths[0].tolist() != lexicon.lines([one]).lengths[0].tolist()


def test_a_chunk_of_the_same_id_and_place_with_another_text_is_another_one():
    lexicon = Lexicon(word_vectors)
    assert [line.text for line in lexicon.lines([stored(0, "before")]).lines] == ["before"]
    assert [line.text for line in lexicon.lines([stored(0, "after")]).lines] == ["after"]


def test_what_a_note_repeats_is_left_out_of_a_transcript_only_where_the_note_is_a_candidate():
    note, talk = stored(0, "the spare key"), stored(0, "User: a\nUser: the spare key\nUser: b", "sessions/a.jsonl")
    lexicon = Lexicon(word_vectors)
    for _ in range(2):
        assert [line.text for line in lexicon.lines([talk]).lines] == talk.chunk.text.split("\n")
        both = lexicon.lines([note, talk])
        assert [line.text for line in both.lines] == ["the spare key", "User: a", "User: b"]
        assert both.blocks.tolist() == [0, 1, 2]


def test_lines_beyond_the_limit_are_forgotten_and_worked_out_again(monkeypatch):
    monkeypatch.setattr(prepared, "MAX_LINE_BYTES", 3 * prepared.BYTES_OF_LINE)
    lexicon = Lexicon(word_vectors)
    chunks = [stored(0, f"number {at}\nof ten", f"memory/{at}.md") for at in range(10)]
    first = shown(lexicon.lines(chunks), lexicon)
    assert len(lexicon._parts) == 1
    assert shown(lexicon.lines(chunks), lexicon) == first


def test_a_full_lexicon_is_left_to_those_who_use_it(monkeypatch):
    lexicon = Lexicon(word_vectors)
    lines = lexicon.lines([stored(0, "the spare key")])
    assert lexicon.fresh() is lexicon
    monkeypatch.setattr(prepared, "MAX_WORD_BYTES", 0)
    assert not lexicon.fresh().words
    assert [lexicon.words[number] for number in lines.words.tolist()] == ["the", "spare", "key"]


def test_threads_that_add_words_at_once_get_the_right_vectors(monkeypatch):
    monkeypatch.setattr(prepared, "GROWTH", 1)
    lexicon = Lexicon(word_vectors)

    def look_up(start):
        words = [f"w{start + at}" for at in range(50)]
        numbers = lexicon.numbered(words)
        return np.array_equal(lexicon.vectors[numbers], word_vectors(words))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(look_up, range(0, 400, 10)))


@pytest.mark.parametrize("embedder", ["static", None])
def test_answers_are_the_same_with_room_for_no_lines_and_for_all(household, monkeypatch, tmp_path, embedder):
    def answers(limit):
        monkeypatch.setattr(prepared, "MAX_LINE_BYTES", limit)
        monkeypatch.setattr(prepared, "MAX_WORD_BYTES", limit)
        with Memory.open(household, embedder=embedder, index_path=tmp_path / "index.sqlite") as memory:
            return [[(found.citation, found.score) for found in memory.search(text)] for text in QUESTIONS * 2]

    assert answers(0) == answers(1 << 24)
