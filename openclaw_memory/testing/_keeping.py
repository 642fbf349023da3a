"""Checks of what a store keeps, and of what it lets go: vectors by their model, notes, and the next index beside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from openclaw_memory.testing._rows import (
    DIMS,
    filled,
    ids_of,
    made_key,
    made_meta,
    made_record,
    made_row,
    made_vectors,
    refuses,
)
from openclaw_memory.types import SOURCES, Store


def check_identities(store: Store) -> None:
    """Vectors of different models never meet."""
    filled(store)
    store.reset(made_meta("check/another"))
    assert store.known_vectors([made_key(0)]) == set(), "vectors of another identity must stay unknown"
    store.add_vectors([made_key(0)], made_vectors(1, dims=DIMS * 2))
    store.replace_files([(made_record("memory/0.md"), [made_row(1, "one", key=made_key(0))])])
    hits = store.search_vector(made_vectors(1, dims=DIMS * 2)[0], 5)
    assert len(hits) == 1, f"an identity of other dimensions must find its one vector, not {hits}"
    store.reset(made_meta())
    assert store.known_vectors([made_key(1)]) == {made_key(1)}, "vectors of the first identity must still be there"


def check_gathered(store: Store) -> None:
    """Vectors of a model that is not the current one, or not yet."""
    keys, identity = [made_key(number) for number in range(900)], "check/next"
    assert store.known_vectors(keys, identity) == set(), "nothing is known of an identity without vectors"
    assert refuses(lambda: store.add_vectors(keys, made_vectors(900))), "without meta the identity must be named"
    store.add_vectors(keys, made_vectors(900, dims=DIMS * 2), identity)
    assert store.meta() is None, "vectors of a named identity need no meta, and make none"
    assert store.known_vectors([*keys, made_key("no")], identity) == set(keys), (
        "vectors of an identity must be known by its name"
    )
    filled(store)
    assert store.known_vectors(keys) == set(keys[:20]), "identities must be told apart, also where meta names one"
    assert store.known_vectors(keys, made_meta().identity) == set(keys[:20]), "the identity in meta may also be named"
    assert len(store.search_vector(made_vectors(1)[0], 100)) == 20, "vectors of another identity must not be found"
    for named in (identity, None):
        wrong = partial(store.add_vectors, [made_key("bad")], made_vectors(1, dims=3), named)
        assert refuses(wrong), f"add_vectors must hold identity {named!r} to its dimensions"
        assert store.known_vectors([made_key("bad")], named) == set(), "vectors of other dimensions must not be stored"
    store.reset(made_meta(identity))
    store.replace_files([(made_record("memory/0.md"), [made_row(1, "one", key=keys[7])])])
    hits = store.search_vector(made_vectors(900, dims=DIMS * 2)[7], 5)
    assert [round(hit.score, 5) for hit in hits] == [1], f"a gathered vector must be found once it is current: {hits}"


def check_prune(store: Store) -> None:
    """What is in no use goes first, the longest unused before all."""
    filled(store)
    store.add_vectors([made_key("next")], made_vectors(1, dims=3), "check/next")
    assert store.prune(21) == 0, "at the limit nothing must go"
    assert store.prune(0) == 1, "a vector in use must stay, one that is not must go"
    assert store.known_vectors([made_key("next")], "check/next") == set(), "a pruned vector must be unknown"
    store.add_vectors([made_key("next")], made_vectors(1, dims=4), "check/next")
    assert store.stats().vectors == 21, "an identity whose vectors are all gone may come back with other dimensions"
    shared = made_row(1, "every shared", key=made_key(5))
    store.replace_files([(made_record("memory/shared.md"), [shared])])
    for path in ("sessions/3.jsonl", "sessions/1.jsonl"):  # the vectors 15 to 19, then 5 to 9 without the shared one
        store.remove_files([path])
    store.replace_files([(made_record("memory/again.md"), [made_row(1, "every again", key=made_key(16))])])
    assert store.prune(17) == 4, "to 17 of 21, 4 must go"
    left = store.known_vectors(made_key(number) for number in range(20))
    gone = [number for number in range(20) if made_key(number) not in left]
    assert gone == [15, 17, 18], f"with the older one of another model, 15, 17 and 18 must go first, not {gone}"
    assert store.prune(0) == 5, "those that are in no use any more must go last"
    assert len(store.search_vector(made_vectors(1)[0], 100)) == 12, "all chunks must keep their vectors"
    store.reset(made_meta("check/another"))
    assert store.stats().vectors == 12, "reset must keep the vectors"
    assert store.prune(0) == 12, "after reset no vector is in use"


def check_beside(store: Store) -> None:
    """The next index is unseen until it is published, and then there is no other."""
    vectors = filled(store)
    store.note("name", "text")
    discarded = store.beside()
    assert discarded.chunk_count() == 20, "a store beside must begin with all that this one holds"
    discarded.remove_files(list(discarded.paths()))
    store.discard(discarded)
    assert store.chunk_count() == 20, "what is done in a store beside must not be seen here"
    built = store.beside()
    built.reset(made_meta())
    built.replace_files([(made_record("memory/new.md"), [made_row(1, "every next", key=made_key(3))])])
    built.finish("")
    assert store.search_text(["next"], 5) == [], "the next index must not be seen before it is published"
    assert len(store.search_vector(vectors[0], 100)) == 20, "the old index must answer until then"
    old = {hit.chunk_id for hit in store.search_text(["every"], 100)}
    store.publish(built)
    assert store.paths() == ["memory/new.md"], "publish must put the next index in the place of the old one"
    found = {hit.chunk_id for hit in store.search_text(["every"], 100)}
    assert len(found) == 1, "publish must bring the terms"
    assert found.isdisjoint(old), "an id that named a chunk of the old index must not come to name another one"
    assert [hit.chunk_id for hit in store.search_vector(vectors[3], 5)] == [*found], "publish must bring the vectors"
    assert store.noted("name") == "text", "notes must stay where an index is published"
    assert store.problems() == (), "a store must be sound after publish"


def check_notes(store: Store) -> None:
    """Notes outlive every reset."""
    assert store.noted("name") is None, "there is no note before one was kept"
    for text in ("one", "two"):
        store.note("name", text)
        assert store.noted("name") == text, "a note must come back, the latest one of its name"
    assert store.meta() is None, "a note must not make meta"
    store.reset(made_meta())
    store.reset(made_meta("check/another"))
    assert store.noted("name") == "two", "a note must outlive every reset"


def check_extend(store: Store) -> None:
    """A file that grows keeps its first chunks."""
    vectors = filled(store)
    path = "sessions/1.jsonl"
    before, last = ids_of(store, path), max(ids_of(store, "sessions/3.jsonl"))
    rows = [made_row(4, "every longer", key=made_key(19)), made_row(6, "every more")]
    longer = made_record(path, SOURCES[1], content="longer")
    store.extend_file(longer, rows, 4)
    assert store.files()[path] == longer, "extend_file must update the record"
    after = ids_of(store, path)
    assert after[:3] == before[:3], "the chunks before the line must stay"
    assert len(after) == 5, f"2 chunks must take the place of those from line 4 on: {after}"
    assert min(after[3:]) > last, "new chunks must have ids beyond all others"
    assert [found.chunk for found in store.chunks(after[3:])] == [row.chunk for row in rows], "new chunks must be there"
    assert store.search_text(["n8"], 5) == [], "the terms of the old chunks must go"
    assert after[3] in {hit.chunk_id for hit in store.search_vector(vectors[19], 2)}, "the new vectors must be found"
    assert store.chunk_count() == 20, f"20 - 2 + 2 chunks must be left, not {store.chunk_count()}"
    bad = [made_row(7, "every bad", key=made_key("bad"))]
    assert refuses(lambda: store.extend_file(made_record(path, SOURCES[1]), bad, 4)), "an unknown vector is refused"
    assert (store.files()[path], ids_of(store, path)) == (longer, after), "a refused extend_file must change nothing"
    unknown = made_record("sessions/unknown.jsonl", SOURCES[1])
    assert refuses(lambda: store.extend_file(unknown, rows, 4)), "a file that is not indexed has nothing to go on from"
    assert "sessions/unknown.jsonl" not in store.files(), "a refused extend_file must add no file"
    store.extend_file(longer, [made_row(7, "every last")], 7)
    assert ids_of(store, path)[:5] == after, "rows that come after all others must take the place of none"
    store.extend_file(longer, [], 1)
    assert ids_of(store, path) == [], "from line 1 on all rows must go"
    assert len(ids_of(store, "sessions/3.jsonl")) == 5, "other files must keep their rows"


CHECKS: tuple[Callable[[Store], None], ...] = (
    check_identities,
    check_gathered,
    check_prune,
    check_beside,
    check_notes,
    check_extend,
)
