"""What one request may hold: how much text and how many texts a service takes, and what it refuses."""

import embedding_faults as lies
import numpy as np
import pytest

from openclaw_memory import Memory
from openclaw_memory.embeddings.remote.errors import FailureKind
from openclaw_memory.errors import EmbedderError

pytest.importorskip("openai")

TEXTS = [f"note {number} about lock {number % 7}" for number in range(40)]


def unit(vectors):
    return bool(np.isfinite(vectors).all()) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


@pytest.mark.parametrize("status", [None, 413])
@pytest.mark.sampled(1)
def test_too_many_texts_are_asked_for_in_halves_and_the_limit_is_remembered(status, embedder, server):
    if status is not None:
        server.when_too_large = lies.status(status, words="batch size 40 > maximum allowed batch size 12")
    expected = embedder.embed_documents(TEXTS)
    server.max_items = 12
    assert np.array_equal(embedder.embed_documents(TEXTS), expected)
    before = len(server.seen())
    embedder.embed_documents(TEXTS)
    assert len(server.seen()) - before == 4  # 40 texts, ten at once


def test_too_much_text_is_asked_for_in_halves_and_the_limit_is_remembered(embedder, server):
    expected = embedder.embed_documents(TEXTS)
    server.max_bytes = 400
    assert np.array_equal(embedder.embed_documents(TEXTS), expected)
    before = [asked.texts for asked in server.seen()]
    embedder.embed_documents(TEXTS)
    after = [asked.texts for asked in server.seen()][len(before) :]
    assert all(sum(map(len, texts)) <= 400 for texts in after)
    assert max(map(len, after)) > 4


def test_a_text_that_turns_out_too_long_is_parted_and_the_limit_is_remembered(embedder, server):
    text = "a lock and a key, and a boat in the lock. " * 60
    server.max_text_bytes = 1000
    assert unit(embedder.embed_documents([text]))
    before = len(server.seen())
    embedder.embed_documents([text])
    after = [asked.texts for asked in server.seen()[before:]]
    assert "".join("".join(texts) for texts in after) == text
    assert all(len(part) <= 1000 for texts in after for part in texts)


def test_a_text_that_no_parting_makes_small_enough_fails_after_few_requests(embedder, server):
    embedder.embed_query("lock")
    server.max_text_bytes = 3
    with pytest.raises(EmbedderError, match="maximum context length"):
        embedder.embed_documents(["lock " * 400])
    assert len(server.seen()) < 20


def test_a_long_text_is_parted_and_nothing_of_it_is_lost(connect, server):
    embedder = connect(max_input_tokens=100)
    text = "ß🦄 een sluis, a lock, 水门 " * 40
    (vector,) = embedder.embed_documents([text])
    parts = [part for asked in server.seen() for part in asked.texts]
    assert "".join(parts) == text
    assert all(len(part.encode()) <= 100 for part in parts)
    assert unit(vector[None])
    assert vector @ embedder.embed_query("een sluis, a lock") > 0.5


def test_requests_hold_no_more_text_than_the_limit(embedder, server):
    embedder.embed_documents(["lock " * 300 for _ in range(20)])
    sizes = [sum(map(len, asked.texts)) for asked in server.seen()]
    assert max(sizes) <= 8000
    assert len(sizes) == 4  # five texts of 1,500 bytes in each


@pytest.mark.parametrize("words", ["unknown option", "too many inputs", "input is too large"])
def test_a_service_that_refuses_everything_is_not_asked_for_every_text(words, embedder, server):
    server.always(lies.status(400, words=words))
    (answer,) = embedder.submit(TEXTS).result(20)
    assert answer.error.kind is FailureKind.DENIED
    assert words in str(answer.error)
    assert len(server.seen()) == 2


def test_blank_texts_are_not_sent_and_have_the_zero_vector(embedder, server):
    vectors = embedder.embed_documents(["", "lock", " \n"])
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert [asked.texts for asked in server.seen()] == [("lock",)]


# --- what is learnt
def _requests(embedder, server, texts):
    before = len(server.seen())
    embedder.embed_documents(texts)
    return len(server.seen()) - before


@pytest.mark.parametrize("words", ["", "batch size 40 > maximum allowed batch size 12"], ids=["size", "number"])
@pytest.mark.sampled(1)
def test_a_refusal_that_was_none_of_the_texts_fault_is_forgotten(words, embedder, server):
    usual = _requests(embedder, server, TEXTS)
    server.script(*[lies.status(413, words=words)] * 3)
    assert unit(embedder.embed_documents(TEXTS))
    while _requests(embedder, server, TEXTS) > usual:
        assert len(server.seen()) < 400


# --- what is refused
@pytest.mark.parametrize("refused", [range(40), range(20), [3, 4]], ids=["all", "half", "neighbours"])
@pytest.mark.sampled(2)
def test_refused_texts_cost_only_themselves(refused, embedder, server):
    server.refused = {TEXTS[place] for place in refused}
    answers = embedder.submit(TEXTS).result(20)
    failed = [place for answer in answers if answer.error is not None for place in answer.places]
    assert sorted(failed) == list(refused)
    assert {answer.error.kind for answer in answers if answer.error is not None} == {FailureKind.REFUSED}
    assert sorted(place for answer in answers for place in answer.places) == list(range(40))


def test_a_failure_amid_the_halves_leaves_what_was_answered(embedder, server):
    embedder.embed_query("lock")
    server.script(lies.status(413), lies.honest, lies.status(401))
    good, bad = embedder.submit(TEXTS).result(20)
    assert (list(good.places), unit(good.vectors)) == (list(range(20)), True)
    assert (list(bad.places), bad.error.kind) == (list(range(20, 40)), FailureKind.DENIED)


def test_a_service_that_goes_down_amid_a_sync_is_not_asked_for_every_text(notes, connect, server):
    for number in range(200):
        (notes / f"memory/{number}.md").write_text(f"Note number {number}.\n")
    server.script(lies.honest, lies.honest, lies.honest)
    server.always(lies.status(500))
    with Memory.open(notes, embedder=connect({"first_wait": 0.001, "longest_wait": 0.001}, max_items=4)) as memory:
        report = memory.sync()
        assert (len(report.added), len(report.waiting)) == (204, 204 - report.embedded)
        assert 0 < report.embedded <= 12
        assert len(server.seen()) < 100
        assert all("500" in file.reason for file in report.waiting)
        assert memory.search("boiler")[0].path == "memory/household.md"
