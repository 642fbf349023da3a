"""Lines compared with a question by the vectors of tokens: what is stored of them, and what a search makes of it."""

import hashlib
import re
import time

import numpy as np
from index_files import write_files

from openclaw_memory import Memory
from openclaw_memory.embeddings.stream import stream
from openclaw_memory.embeddings.token_codes import pack_tokens
from openclaw_memory.errors import EmbedderError
from openclaw_memory.testing import RecordingEmbedder, check_embedder
from openclaw_memory.types.protocols import TokenEmbedder

DIMS = 48
SAME = {"autumn": "october", "heater": "boiler"}


def meaning(word):
    """A vector for each word, in any form; words that mean the same have the same one."""
    word = word.lower().rstrip("s")
    seed = hashlib.sha256(SAME.get(word, word).encode("utf-8", "replace")).digest()
    vector = np.random.default_rng(list(seed)).normal(size=DIMS)
    return vector / np.linalg.norm(vector)


def tokens_of(text, step=1):
    spans = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    vectors = [meaning(text[start:end]) for start, end in spans]
    return np.array([np.ones(DIMS), *vectors], np.float32)[:, ::step].copy(), np.array(
        [(0, 0), *spans], np.int64
    ).reshape(-1, 2)


class Tokens(RecordingEmbedder):
    """A recording embedder that gives a vector for each word."""

    step = 1

    def embed_query_tokens(self, text):
        return self.embed_query(text), tokens_of(text, self.step)

    def embed_document_tokens(self, texts):
        return self.embed_documents(texts), [tokens_of(text, self.step) for text in texts]


# --- codes


def test_the_same_tokens_have_the_same_codes_on_every_machine():
    """An index is read by other machines than the one that made it."""
    for dims, digest in ((64, "0a67b71f"), (256, "ed3300bb")):
        tokens = np.eye(1, dims, dtype=np.float32), np.array([[0, 6]])
        assert hashlib.sha256(pack_tokens("boiler", tokens)).hexdigest()[:8] == digest


# --- lines


# --- a memory
NOTES = {
    "memory/house.md": "# House\n\nThe boiler is serviced by Van Dam.\nThe router is in the attic.\n",
    "memory/garden.md": "# Garden\n\nThe roses are cut in February.\n",
}


def test_the_fake_keeps_the_contract_of_an_embedder():
    assert isinstance(Tokens(), TokenEmbedder)
    check_embedder(Tokens())


def test_lines_are_found_by_the_meaning_of_their_tokens(remember):
    memory = remember(NOTES, embedder=Tokens())
    best = memory.search("Who looks after the heater?", options={"explain": True})[0]
    assert "boiler" in best.snippet
    assert best.parts["tokens"] > 0.4
    assert best.parts["chunk_tokens"] > 0.4


def test_each_text_is_embedded_once_with_its_tokens(remember):
    embedder = Tokens()
    memory = remember(NOTES, embedder=embedder)
    assert len(embedder.documents) == len(set(embedder.documents)) == 2
    memory.search("heater")
    assert embedder.queries == ["heater"]
    memory.sync(force=True)
    assert len(embedder.documents) == 2
    assert memory.status().notices == ()


def test_an_index_made_before_is_built_again_with_tokens(tmp_path):
    write_files(tmp_path, {"memory/house.md": NOTES["memory/house.md"]})
    with Memory.open(tmp_path, embedder=RecordingEmbedder()) as memory:
        memory.sync()
    embedder = Tokens()
    with Memory.open(tmp_path, embedder=embedder) as memory:
        assert any("the next sync builds the index again" in notice for notice in memory.status().notices)
        assert "tokens" not in memory.search("heater", options={"explain": True})[0].parts
        assert (bool(memory.sync().rebuilt), len(embedder.documents)) == (True, 1)
    with Memory.open(tmp_path, embedder=Tokens()) as memory:
        assert memory.search("heater", options={"explain": True})[0].parts["tokens"] > 0.4
        assert memory.status(deep=True).notices == ()


def test_an_embedder_without_tokens_for_a_text_leaves_words_and_says_so(remember):
    class Some(Tokens):
        def embed_document_tokens(self, texts):
            return self.embed_documents(texts), [None if "roses" in text else tokens_of(text) for text in texts]

    memory = remember(NOTES, embedder=Some())
    found = memory.search("roses in the garden", options={"explain": True})
    assert "tokens" not in found[0].parts
    assert "lines were compared by words: 1 of 2 chunks have no tokens" in found.reason
    assert any("1 of 2 chunks have no tokens" in notice for notice in memory.status().notices)


def test_a_model_is_at_work_while_the_vectors_before_are_stored():
    embedder, texts = Tokens(), [(f"key {number}", f"note {number}") for number in range(1000)]
    batches = stream(embedder, texts)
    embedded = [next(batches)]
    while len(embedder.documents) <= len(embedded[0].keys):
        time.sleep(0.01)
    embedded += batches
    assert [key for batch in embedded for key in batch.keys] == [key for key, _ in texts]
    codes = [code for batch in embedded for code in batch.token_codes]
    assert codes == [pack_tokens(text, tokens_of(text)) for _, text in texts]


def test_one_that_fails_at_a_sync_leaves_the_files_waiting(remember):
    class Failing(Tokens):
        def embed_document_tokens(self, _texts):
            raise EmbedderError("out of memory")

    memory = remember(NOTES, embedder=Failing())
    assert all("out of memory" in file.reason for file in memory.status().waiting)


# --- codes of one embedder and of another
class Reversed(Tokens):
    """Another model: its tokens point elsewhere."""

    step = -1


def test_codes_of_one_embedder_are_never_compared_with_tokens_of_another(tmp_path):
    write_files(tmp_path, NOTES | {"memory/garden.md": "# Garden\n\nThe roses are cut in March.\n"})
    for embedder, is_new in ((Tokens(), True), (Reversed(name="another"), True), (Tokens(), True), (Tokens(), False)):
        with Memory.open(tmp_path, embedder=embedder) as memory:
            before = memory.search("heater", options={"explain": True}) if memory.index_path.exists() else None
            if before is not None and is_new:
                assert before.mode == "keyword"
                assert not any("tokens" in result.parts for result in before)
                assert "until the next sync builds the index again" in before.reason
            assert bool(memory.sync().rebuilt) == (before is not None and is_new)
            assert memory.search("heater", options={"explain": True})[0].parts["tokens"] > 0.4


def test_a_model_that_gives_tokens_no_longer_searches_by_words(tmp_path):
    write_files(tmp_path, {"memory/house.md": NOTES["memory/house.md"]})
    with Memory.open(tmp_path, embedder=Tokens()) as memory:
        memory.sync()
    with Memory.open(tmp_path, embedder=RecordingEmbedder()) as memory:
        for _ in range(2):
            found = memory.search("boiler", options={"explain": True})
            assert (found.mode, "tokens" in found[0].parts) == ("hybrid", False)
            memory.sync()
