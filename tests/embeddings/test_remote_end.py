"""How asking a service ends: closed, forgotten, forked, or with the interpreter."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import embedding_faults as lies
import numpy as np
import pytest

from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError

pytest.importorskip("openai")

TEXTS = [f"note {number} about lock {number % 7}" for number in range(40)]


def unit(vectors):
    return bool(np.isfinite(vectors).all()) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


def _threads():
    return {thread for thread in threading.enumerate() if thread.name != "embedding server"}


def test_no_thread_stays_and_after_closing_the_next_request_begins_again(embedder):
    before = _threads()
    expected = embedder.embed_query("lock")
    embedder.close()
    embedder.close()
    assert np.array_equal(embedder.embed_query("lock"), expected)
    assert unit(embedder.embed_documents(TEXTS))
    while not _threads() <= before:
        time.sleep(0.01)


@pytest.mark.parametrize("lie", [lies.hang, lies.drip(), lies.status(500)], ids=["hang", "drip", "waits to try again"])
def test_closing_ends_what_is_waited_for(lie, connect, server):
    embedder = connect({"first_wait": 1000, "longest_wait": 1000})
    server.always(lie)
    with ThreadPoolExecutor(2) as pool:
        under_way = [pool.submit(embedder.embed_query, "lock"), pool.submit(embedder.embed_documents, TEXTS)]
        while len(server.seen()) < 2:
            time.sleep(0.01)
        embedder.close()
        for ended in under_way:
            assert "close()" in str(ended.exception(60))
            assert isinstance(ended.exception(), ServiceError)


def test_a_thread_that_cannot_be_had_is_an_answer_like_others(embedder, monkeypatch):
    def full(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", full)
        (answer,) = embedder.submit(TEXTS).result(0)
        with pytest.raises(ServiceError, match="can't start new thread"):
            embedder.embed_query("lock")
    assert (list(answer.places), answer.error.kind) == (list(range(40)), FailureKind.PASSING)
    assert unit(embedder.embed_documents(TEXTS))


FORK = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads, which is the point
from openclaw_memory.embeddings import load_embedder
used, unused = (load_embedder("voyage", base_url=sys.argv[1], api_key="any") for _ in range(2))
used.embed_query("lock")
if os.fork() == 0:
    print("unused", unused.embed_query("lock").shape, flush=True)
    (answer,) = used.submit(["lock"]).result(20)
    print("used", answer.error.kind, answer.error, flush=True)
    used.close()
    unused.close()
    os._exit(0)
os.wait()
print("the parent goes on", used.embed_query("lock").shape)
threading.Thread(target=used.embed_documents, args=(["lock"],), daemon=True).start()
while not used._documents._unfinished:
    time.sleep(0.01)
time.sleep(0.3)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_process_may_use_what_was_not_used_before_and_an_end_amid_a_request_says_nothing(server):
    server.script(lies.honest, lies.honest, lies.honest)
    server.always(lies.hang)
    run = [sys.executable, "-c", FORK, server.base_url("voyage")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert "unused (64,)" in done.stdout
    assert "used FailureKind.DENIED embedding with voyage: this process was forked" in done.stdout
    assert "the parent goes on (64,)" in done.stdout
    assert done.stderr == ""
    assert len(server.seen()) == 4
