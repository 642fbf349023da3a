"""The pipeline that every service is asked through, with the real OpenAI SDK against a server that lies."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import embedding_faults as lies
import numpy as np
import pytest

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings._failures import Meaning, ServiceError
from openclaw_memory.embeddings._pace import Pace
from openclaw_memory.embeddings._remote import Limits, RemoteEmbedder, Service
from openclaw_memory.errors import EmbedderError

pytest.importorskip("openai")

WAITS = {"first_wait": 0.01, "longest_wait": 0.02, "busy_first_wait": 0.01, "busy_longest_wait": 0.02}
TEXTS = [f"note {number} about lock {number % 7}" for number in range(40)]
# What a busy machine may take beyond a deadline, in seconds, where the deadline is what is tested.
ALLOWANCE = 1.5

PASSING = {
    "500": lies.status(500),
    "502": lies.status(502),
    "503": lies.status(503),
    "520": lies.status(520),
    "reset": lies.reset,
    "half a body": lies.half_body,
    "not JSON": lies.not_json,
    "one vector too few": lies.wrong_count(),
    "one vector too many": lies.wrong_count(1),
    "unequal dimensions": lies.mixed_dims,
    "null": lies.null,
    "zeros": lies.zeros,
    "no number": lies.all_nan,
    "the same index": lies.same_index,
}
LASTING = {
    "401": lies.status(401),
    "403": lies.status(403),
    "404": lies.status(404),
    "quota": lies.quota(),
    "redirect": lies.redirect(),
    "gzip": lies.gzip_bomb(lies.MEGABYTE),
}


def table(cases):
    return pytest.mark.parametrize("lie", cases.values(), ids=cases.keys())


@pytest.fixture
def connect(server):
    """An embedder of the server: `connect(max_items=2, pace=...)`; numbers of the pace may be given by name."""
    made = []

    def connect(pace=None, **options):
        numbers = WAITS | (pace or {})
        made.append(load_embedder("openai", base_url=server.base_url("openai"), pace=Pace(**numbers), **options))
        return made[-1]

    yield connect
    for embedder in made:
        embedder.close()


@pytest.fixture
def embedder(connect):
    return connect()


def unit(vectors):
    return bool(np.isfinite(vectors).all()) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


# --- failures ----------------------------------------------------------------------------------------------------


@table(PASSING)
def test_a_failure_that_may_pass_is_met_with_three_tries(lie, embedder, server):
    server.always(lie)
    with pytest.raises(EmbedderError, match=r"127\.0\.0\.1"):
        embedder.embed_documents(TEXTS[:2])
    assert len(server.seen()) == 3


def test_a_question_too_has_three_tries(embedder, server):
    server.always(lies.status(500))
    with pytest.raises(EmbedderError, match="500"):
        embedder.embed_query("lock")
    assert len(server.seen()) == 3


@table(PASSING)
def test_a_failure_that_passes_leaves_no_trace(lie, embedder, server):
    expected = embedder.embed_documents(TEXTS[:3])
    server.script(lie, lie)
    assert np.array_equal(embedder.embed_documents(TEXTS[:3]), expected)


@table(LASTING)
def test_a_failure_that_will_not_pass_is_met_with_one_try(lie, embedder, server):
    server.always(lie)
    with pytest.raises(EmbedderError):
        embedder.embed_documents(TEXTS[:2])
    assert len(server.seen()) == 1


def test_a_server_that_is_not_there_is_named(embedder, server):
    server.stop()
    with pytest.raises(EmbedderError, match=f"{server.root}.*cannot be reached.*ConnectError"):
        embedder.embed_query("lock")


def test_a_redirect_is_not_followed(embedder, server):
    server.always(lies.redirect(server.root + "/elsewhere"))
    with pytest.raises(EmbedderError, match="base_url"):
        embedder.embed_query("lock")
    assert server.seen("elsewhere") == []


def test_a_busy_service_is_given_more_tries_for_documents_than_for_a_question(embedder, server):
    server.always(lies.status(429))
    with pytest.raises(EmbedderError):
        embedder.embed_documents(TEXTS[:1])
    for_documents = len(server.seen())
    with pytest.raises(EmbedderError):
        embedder.embed_query("lock")
    assert (for_documents, len(server.seen()) - for_documents) == (5, 3)


@pytest.mark.parametrize("date", [False, True], ids=["number", "date"])
def test_the_wait_that_a_busy_service_asks_for_is_kept(date, connect, server):
    asked_for = "Wed, 21 Oct 2015 07:28:00 GMT" if date else 0
    server.script(lies.status(429, retry_after=asked_for))
    embedder = connect({"busy_first_wait": 1000, "busy_longest_wait": 1000})
    assert len(embedder.submit(TEXTS[:2]).result(20)) == 1


def test_no_wait_is_longer_than_the_pace_allows(connect, server):
    server.script(lies.status(500), lies.status(429), lies.status(429, retry_after=1000))
    embedder = connect({"first_wait": 1000, "busy_first_wait": 1000, "longest_wait": 0, "busy_longest_wait": 0})
    assert unit(_vectors(embedder.submit(TEXTS[:2]).result(20)))


@pytest.mark.parametrize("lie", [lies.hang, lies.drip()], ids=["hang", "drip"])
def test_a_question_ends_by_its_deadline(lie, connect, server):
    server.always(lie)
    embedder = connect({"query_seconds": 0.4})
    started = time.monotonic()
    with pytest.raises(EmbedderError, match=r"0\.4 s"):
        embedder.embed_query("lock")
    assert time.monotonic() - started < 0.4 + 0.5 + ALLOWANCE


def test_the_deadline_of_a_question_holds_for_all_its_tries(connect, server):
    server.always(lies.status(500))
    embedder = connect({"query_seconds": 0.4, "first_wait": 0.3, "longest_wait": 1000, "tries": 1000})
    started = time.monotonic()
    with pytest.raises(EmbedderError, match=r"0\.4 s"):
        embedder.embed_query("lock")
    assert time.monotonic() - started < 0.4 + 0.5 + ALLOWANCE


@pytest.mark.parametrize("lie", [lies.hang, lies.drip()], ids=["hang", "drip"])
def test_each_request_for_documents_ends_by_its_deadline(lie, connect, server):
    server.script(lie, lie)
    embedder = connect({"request_seconds": 0.3})
    started = time.monotonic()
    assert unit(embedder.embed_documents(TEXTS[:2]))
    assert len(server.seen()) == 3
    assert time.monotonic() - started < 3 * 0.3 + ALLOWANCE


# --- answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lie", [lies.nan, lies.infinity, lies.null_number], ids=["NaN", "infinity", "null"])
def test_a_number_that_is_none_counts_as_zero(lie, embedder, server):
    server.always(lie)
    vectors = embedder.embed_documents(TEXTS[:3])
    assert unit(vectors)
    assert not vectors[:, 0].any()


def test_vectors_go_by_their_index(embedder, server):
    expected = embedder.embed_documents(TEXTS)
    server.always(lies.shuffled)
    assert np.array_equal(embedder.embed_documents(TEXTS), expected)


def test_other_dimensions_than_before_are_refused(embedder, server):
    embedder.embed_query("lock")
    server.always(lies.wrong_dims())
    with pytest.raises(EmbedderError, match="65 dimensions where 64"):
        embedder.embed_documents(TEXTS[:2])


def test_other_dimensions_than_asked_for_are_refused(connect, server):
    server.always(lies.wrong_dims(-1))
    with pytest.raises(EmbedderError, match="31 dimensions where 32"):
        connect(dimensions=32).embed_query("lock")


def _vectors(answers):
    return np.concatenate([answer.vectors for answer in answers])


# --- what one request may hold -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [None, 413])
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


def test_a_long_text_is_parted_in_company_too(connect, server):
    vectors = connect(max_input_tokens=100).embed_documents(["lock", "key " * 50, "boat"])
    assert unit(vectors)
    assert max(len(text) for asked in server.seen() for text in asked.texts) <= 100
    assert np.allclose(vectors[2], connect().embed_query("boat"))


def test_a_limit_below_the_length_of_one_character_is_lived_with(connect):
    assert unit(connect(max_input_tokens=2).embed_documents(["🦄🦄"]))


def test_requests_hold_no_more_text_than_the_limit(embedder, server):
    embedder.embed_documents(["lock " * 300 for _ in range(20)])
    sizes = [sum(map(len, asked.texts)) for asked in server.seen()]
    assert max(sizes) <= 8000
    assert len(sizes) == 4  # five texts of 1,500 bytes in each


def test_a_refused_text_costs_only_itself(embedder, server):
    server.refused = {TEXTS[17]}
    answers = embedder.submit(TEXTS).result(20)
    failed = [answer for answer in answers if answer.error is not None]
    assert [list(answer.places) for answer in failed] == [[17]]
    assert failed[0].error.isolated
    answered = sorted(place for answer in answers if answer.error is None for place in answer.places)
    assert answered == [place for place in range(40) if place != 17]


@pytest.mark.parametrize("words", ["unknown option", "too many inputs", "input is too large"])
def test_a_service_that_refuses_everything_is_not_asked_for_every_text(words, embedder, server):
    server.always(lies.status(400, words=words))
    (answer,) = embedder.submit(TEXTS).result(20)
    assert answer.error.meaning is Meaning.DENIED
    assert words in str(answer.error)
    assert len(server.seen()) == 2


def test_blank_texts_are_not_sent_and_have_the_zero_vector(embedder, server):
    vectors = embedder.embed_documents(["", "lock", " \n"])
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert [asked.texts for asked in server.seen()] == [("lock",)]


def test_blank_texts_alone_have_the_dimensions_of_others(embedder):
    assert embedder.embed_documents([" "]).shape == (1, 64)
    assert not embedder.embed_query("").any()


# --- in parallel -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 4])
def test_so_many_requests_run_at_once_and_no_more(concurrency, connect, server):
    server.latency = 0.05
    embedder = connect({"concurrency": concurrency}, max_items=2)
    assert unit(embedder.embed_documents(TEXTS))
    assert server.most_at_once == concurrency


def test_the_first_failure_ends_the_call(connect, server):
    server.always(lies.status(401))
    embedder = connect({"concurrency": 2}, max_items=1)
    with pytest.raises(EmbedderError, match="401"):
        embedder.embed_documents(TEXTS)
    assert len(server.seen()) < len(TEXTS)


def test_it_may_be_asked_inside_a_running_event_loop(embedder):
    async def ask():
        return embedder.embed_documents(TEXTS[:3]), embedder.embed_query(TEXTS[1])

    documents, query = asyncio.run(ask())
    assert int((documents @ query).argmax()) == 1


def test_it_may_be_asked_from_several_threads(embedder):
    expected = embedder.embed_documents(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(embedder.embed_query, TEXTS))
    assert np.allclose(found, expected)


# --- the end -----------------------------------------------------------------------------------------------------


def _threads():
    return {thread for thread in threading.enumerate() if thread.name != "embedding server"}


def test_closing_leaves_no_thread_and_the_next_request_begins_anew(embedder):
    before = _threads()
    expected = embedder.embed_query("lock")
    assert _threads() > before
    embedder.close()
    embedder.close()
    assert _threads() == before
    assert np.array_equal(embedder.embed_query("lock"), expected)
    assert unit(embedder.embed_documents(TEXTS))


def test_closing_ends_what_is_under_way(embedder, server):
    server.always(lies.hang)
    with ThreadPoolExecutor(2) as pool:
        under_way = [pool.submit(embedder.embed_query, "lock"), pool.submit(embedder.embed_documents, TEXTS)]
        while len(server.seen()) < 2:
            time.sleep(0.01)
        embedder.close()
        wait(under_way, 20)
        for ended in under_way:
            assert "close()" in str(ended.exception())
            assert isinstance(ended.exception(), ServiceError)


def test_a_forgotten_embedder_leaves_no_thread(server):
    before = _threads()
    embedder = load_embedder("openai", base_url=server.base_url("openai"))
    embedder.embed_query("lock")
    del embedder
    gc.collect()
    assert _threads() == before


# --- names -------------------------------------------------------------------------------------------------------


def _service(endpoint="http://localhost:1/v1", **settings):
    async def send(texts, _as_query):
        return np.ones((len(texts), 4))

    return RemoteEmbedder(Service("fake", "m", endpoint, Limits(8, 100), send, settings))


def test_the_identity_names_what_changes_a_vector_and_holds_no_secret():
    embedder = _service("https://user:hunter2@host.example/v1/?key=hunter2#x", dimensions=8, prefix=None)
    assert embedder.identity == 'fake https://host.example/v1 m {"dimensions": 8}'


@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("http://localhost:11434/v1", False),
        ("http://LOCALHOST/v1", False),
        ("http://127.0.0.5:1/v1", False),
        ("http://[::1]:1/v1", False),
        ("http://127.evil.example/v1", True),
        ("http://localhost.evil.example/v1", True),
        ("http://127.0.0.1@evil.example/v1", True),
        ("http://192.168.1.5:11434/v1", True),
        ("https://api.openai.com/v1", True),
    ],
)
def test_it_knows_whether_texts_leave_the_machine(url, leaves):
    assert _service(url).leaves_machine is leaves


# --- memory ------------------------------------------------------------------------------------------------------

BOMB = """
import resource, sys
from openclaw_memory.embeddings import load_embedder
embedder = load_embedder("openai", base_url=sys.argv[1])
embedder.embed_query("lock")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    embedder.embed_query("lock")
except Exception as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.parametrize("megabytes", [64, pytest.param(300, marks=pytest.mark.nightly)], ids=lambda size: f"{size} MB")
@pytest.mark.skipif(sys.platform == "win32", reason="measures memory as Unix does")
def test_a_gzip_bomb_costs_no_memory(megabytes, server):
    server.script(lies.honest, lies.gzip_bomb(megabytes * lies.MEGABYTE))
    run = [sys.executable, "-c", BOMB, server.base_url("openai")]
    kilobytes, error = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split(" ", 1)
    assert "compressed" in error
    # macOS counts bytes, Linux KiB.
    assert int(kilobytes) // (1024 if sys.platform == "darwin" else 1) <= 32 * 1024
