"""A first index that is killed midway: the next process finishes it, and pays for hardly anything twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from openclaw_memory import load_embedder
from openclaw_memory.embeddings.stream import REQUESTS_AHEAD

pytest.importorskip("openai")

FIRST_INDEX = """
import sys
from openclaw_memory import Memory
from openclaw_memory import load_embedder
folder, index, base_url, max_items = sys.argv[1:]
embedder = load_embedder("openai", base_url=base_url, max_items=int(max_items))
with Memory.open(folder, embedder=embedder, index_path=index) as memory:
    memory.sync()
"""
FILES, PARTS = 35, 5
TEXTS_A_REQUEST = 4
SECONDS = 60  # how long the process may take to get there before the test gives up on it


@pytest.fixture
def folder(tmp_path):
    """Notes of which no two chunks are alike; every line has the mark."""
    words = random.Random(7)
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    for number in range(FILES):
        parts = [
            f"## Part {part} of {number}\n\n" + "".join(f"- memo {words.random()} apple\n" for _ in range(12))
            for part in range(PARTS)
        ]
        (folder / f"memory/note-{number}.md").write_text("\n".join(parts))
    return folder


@pytest.fixture
def opened(open_place, folder, tmp_path, embedding_server):
    """A function that opens an index of the notes by its name, with the service for its embedder."""
    places = []

    def opened(index):
        service = load_embedder("openai", base_url=embedding_server.base_url("openai"), max_items=TEXTS_A_REQUEST)
        places.append(replace(open_place(folder, tmp_path / index), embedder=service))
        return places[-1]

    yield opened
    for place in places:
        place.store.close()
        place.embedder.close()


def kill_first_index(folder, index, server, texts):
    """Index in another process, and kill it as soon as the server has answered so many texts."""
    server.latency = 0.02
    arguments = [str(folder), str(index), server.base_url("openai"), str(TEXTS_A_REQUEST)]
    give_up = time.monotonic() + SECONDS
    with subprocess.Popen([sys.executable, "-c", FIRST_INDEX, *arguments]) as process:
        while server.answered.total() < texts and process.poll() is None and time.monotonic() < give_up:
            time.sleep(0.001)
        process.kill()
    assert process.returncode < 0, "it had ended by itself"
    assert server.answered.total() >= texts
    server.latency = 0.0


@pytest.mark.fault(1)
@pytest.mark.sqlite_only
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 3))])
def test_a_killed_first_index_is_finished_by_the_next_process(seed, opened, folder, tmp_path, embedding_server):
    share = random.Random(seed).uniform(0.4, 0.8)
    kill_first_index(folder, tmp_path / "index.sqlite", embedding_server, int(FILES * PARTS * share))
    before = embedding_server.answered.total()
    finished = opened("index.sqlite")
    assert finished.sync().ok
    twice = embedding_server.stats()["texts_answered_again"]
    # Lost is what was answered and not stored yet: never more than the run asks for ahead of what it stores.
    at_most = REQUESTS_AHEAD * finished.embedder.policy.concurrency * TEXTS_A_REQUEST
    assert twice <= at_most < before
    in_peace = opened("in-peace.sqlite")
    in_peace.sync()
    assert finished.rows() == in_peace.rows()
    assert len(finished.rows()) == FILES * PARTS
