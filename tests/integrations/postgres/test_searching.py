"""Both ways to answer a search find the same, and so do blocks that were changed and whole ones."""

import numpy as np
import pytest
from msgspec.structs import replace
from openclaw_memory_postgres import PostgresStore

from openclaw_memory.store.fts import LARGE_INDEX
from openclaw_memory.testing.contracts import make_key, make_meta, make_record, make_row, make_vectors
from openclaw_memory.types import HitRequest

DIMS = 4


def filled(store, files, rows_of_each=20):
    """Give a store files of two sources, whose chunks have words of many frequencies."""
    store.begin_build(make_meta()).publish()
    count = files * rows_of_each
    keys = [make_key(number) for number in range(count)]
    store.add_vectors(keys, make_vectors(count, dims=DIMS))
    made = []
    for at in range(files):
        record = make_record(f"memory/{at}.md")
        if at % 3 == 0:
            record = replace(record, path=f"sessions/{at}.jsonl", source="sessions")
        numbers = range(at * rows_of_each, (at + 1) * rows_of_each)
        made.append((record, [make_row(n, f"every mod{n % 3} mod7x{n % 7} n{n}", key=keys[n]) for n in numbers]))
    store.replace_files(made)
    return store


@pytest.mark.parametrize("files", [12, pytest.param(LARGE_INDEX // 20 + 5, marks=pytest.mark.nightly)])
def test_both_ways_of_a_search_find_the_same(server, files):
    store = filled(PostgresStore(server, tenant=f"both ways {files}"), files)
    random = np.random.default_rng(files)
    words = ["every", "mod0", "mod2", "mod7x3", "n5", "n77", "nothing"]
    for _ in range(12):
        terms = [str(word) for word in random.choice(words, random.integers(0, 5), replace=False)]
        vector = make_vectors(1, dims=DIMS, seed=int(random.integers(99)))[0] if random.random() < 0.8 else None
        request = HitRequest(
            terms,
            vector,
            source=[None, "memory", "sessions"][random.integers(3)],
            text_hits=int(random.integers(1, 30)),
            vector_hits=int(random.integers(1, 30)),
            all_cosines=bool(random.integers(2)),
            counted=terms,
        )
        short, long = store.find_hits(request), store.find_hits(replace(request, where=lambda *_: True))
        assert (short.frequencies, short.chunk_count) == (long.frequencies, long.chunk_count)
        assert len(short.by_source) == len(long.by_source)
        for one, other in zip(short.by_source, long.by_source, strict=True):
            assert (one.vector is None) == (other.vector is None)
            for mine, theirs in [(one.text, other.text), (one.vector, other.vector), (one.cosines, other.cosines)]:
                assert dict(mine or {}) == pytest.approx(dict(theirs or {}), abs=1e-6)


def test_what_is_left_of_a_block_ranks_as_if_it_were_all_that_was_ever_written(server):
    store = filled(PostgresStore(server, tenant="blocks"), 9)
    store.remove_files(["memory/1.md", "memory/4.md", "sessions/6.jsonl"])
    store.replace_files([(make_record("memory/2.md", content="new"), [make_row(2, "every mod1 mod7x3 new")])])
    store.extend_file(make_record("memory/5.md", content="longer"), [make_row(110, "every mod1 longer")], 105)
    assert store.verify() == ()
    fresh = PostgresStore(server, tenant="never in blocks")
    fresh.begin_build(make_meta()).publish()
    for path, record in store.get_files().items():
        rows = [make_row(one.chunk.start_line, one.chunk.text) for one in store.get_file_chunks(path)]
        fresh.replace_files([(record, rows)])
    for terms in (["every"], ["mod1", "n0"], ["mod7x3", "new", "longer"], ["n20"]):
        for match in ("any", "all"):
            one, other = (
                {(names[hit.chunk_id], round(hit.score, 9)) for hit in each.search_text(terms, 99, match=match)}
                for each in (store, fresh)
                for names in [{c.id: (c.path, c.chunk.start_line) for c in each.get_chunks(range(1, 400))}]
            )
            assert one == other
