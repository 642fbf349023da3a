"""What a search asks of a store, and the fusion of what keyword and vector search found."""

import pytest

from openclaw_memory.types import Store

TURN = '{"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": "A boiler!"}]}}\n'


MOST_CALLS = 9  # snapshot, meta, languages, words, hits, chunks, files, the one that is named, and the last sync


@pytest.mark.parametrize("embedder", ["static", None])
def test_a_whole_search_calls_the_store_nine_times_at_most(remember, open_store, tmp_path, monkeypatch, embedder):
    files = {"memory/boiler.md": "The boiler is red.\n", "sessions/a.jsonl": TURN, "memory/b.md": "Other.\n"}
    memory = remember(files, embedder=embedder)
    memory.search("first")
    calls, inside = [], []

    def counted(name, method):
        def call(*arguments, **options):
            if not inside:  # what the store calls in itself is no call of the search
                calls.append(name)
            inside.append(name)
            try:
                return method(*arguments, **options)
            finally:
                inside.pop()

        return call

    names = [name for name in dir(Store) if not name.startswith("_")]
    kind = type(open_store(tmp_path / "other.sqlite"))
    for name in names:
        monkeypatch.setattr(kind, name, counted(name, getattr(kind, name)))
    for query in ("Is the boiler red?", "boiler", "boiler.md"):
        calls.clear()
        assert memory.search(query, min_score=0.0)
        assert "find_hits" in calls
        assert len(calls) <= MOST_CALLS, calls
