"""Lines that were worked out for a search before: as those worked out anew, whatever came between."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from openclaw_memory import Memory
from openclaw_memory.search import prepared
from openclaw_memory.search.prepared import Lexicon

QUESTIONS = ("Who has the spare key?", "GEO-1000", "When is the boiler serviced?", "钥匙", "What happened in March?")


def word_vectors(words):
    """Different vectors for different words, the same each time."""
    return np.array([[len(word), ord(word[0]), ord(word[-1])] for word in words], np.float32).reshape(-1, 3)


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
