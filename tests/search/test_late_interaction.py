"""Lines compared with a question by the vectors of tokens: what is stored of them, and what a search makes of it."""

import hashlib
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from openclaw_memory import Memory
from openclaw_memory.embeddings.token_codes import BITS, packed, projected, token_weights, unpacked
from openclaw_memory.errors import CorruptIndexError, EmbedderError
from openclaw_memory.search.late_interaction import query_tokens, token_matches
from openclaw_memory.search.prepared import Lexicon, Neighbourhood
from openclaw_memory.search.query import parse_query, weighed
from openclaw_memory.testing import RecordingEmbedder, check_embedder
from openclaw_memory.types import Chunk, StoredChunk
from openclaw_memory.types.protocols import TokenEmbedder

DIMS = 48
SAME = {"autumn": "october", "heater": "boiler"}


def meaning(word):
    """A vector for each word, in any form; words that mean the same have the same one."""
    word = word.lower().rstrip("s")
    seed = hashlib.sha256(SAME.get(word, word).encode("utf-8", "replace")).digest()
    vector = np.random.default_rng(list(seed)).normal(size=DIMS)
    return vector / np.linalg.norm(vector)


def tokens_of(text):
    spans = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    vectors = [meaning(text[start:end]) for start, end in spans]
    return np.array([np.ones(DIMS), *vectors], np.float32), np.array([(0, 0), *spans], np.int64).reshape(-1, 2)


class Tokens(RecordingEmbedder):
    """A recording embedder that gives a vector for each word."""

    def embed_query_tokens(self, text):
        return self.embed_query(text), tokens_of(text)

    def embed_document_tokens(self, texts):
        return self.embed_documents(texts), [tokens_of(text) for text in texts]


def chunk(number, text, context="", path="memory/a.md", start_line=1, start_char=0):
    own = Chunk(start_line, start_line + text.count("\n"), start_char, text, context)
    codes = packed(own.embedding_text, tokens_of(own.embedding_text))
    return StoredChunk(number, path, "memory", own, number - 1, codes)


def asked(text):
    query = parse_query(text)
    found = query_tokens(weighed(query, {}, 10), tokens_of(text))
    assert found is not None
    return found


def matches(question, *chunks):
    lines = Lexicon().lines(chunks)
    return token_matches(asked(question), chunks, lines.lines, Neighbourhood(lines.middles, lines.blocks))


# --- codes
def test_a_token_takes_sixteen_bytes_and_a_line_two_more():
    text = "The boiler\n\nis serviced in October."
    codes = packed(text, tokens_of(text))
    rows, counts = unpacked(codes, 3)
    assert counts.tolist() == [1, 0, 2]
    assert rows.shape == (3, BITS // 8) == (3, 16)
    assert len(codes) == 3 * 16 + 3 * 2


def test_a_code_keeps_the_direction_of_its_token():
    text = "boiler"
    rows, _ = unpacked(packed(text, tokens_of(text)), 1)
    signs = np.unpackbits(rows, axis=1)[0] * 2.0 - 1
    own, other = projected(np.array([meaning("boiler"), meaning("router")], np.float32)) @ signs / BITS**0.5
    assert own > 0.7 > 0.4 > abs(other)


def test_the_same_tokens_have_the_same_codes_on_every_machine():
    """An index is read by other machines than the one that made it, whose numpy signs a decomposition as it likes."""
    digests = []
    for dims in (64, 384):
        tokens = np.eye(1, dims, dtype=np.float32), np.array([[0, 6]])
        digests.append(hashlib.sha256(packed("boiler", tokens)).hexdigest()[:8])
    assert digests == ["0a67b71f", "a8bc6f93"]


def test_a_text_without_tokens_has_no_codes():
    assert packed("boiler", None) == b""
    assert unpacked(b"", 2)[1].tolist() == [0, 0]


@pytest.mark.parametrize("codes", [b"x", b"\x01\x00", b"\x00\x00more"])
def test_codes_that_are_damaged_are_refused(codes):
    with pytest.raises(CorruptIndexError, match="codes of tokens that are damaged"):
        unpacked(codes, 1)


def test_a_word_lends_its_weight_to_its_tokens_by_their_length():
    spans = np.array([(0, 0), (0, 3), (3, 4), (5, 8)])
    assert token_weights("keys and", spans, {"key": 2.0}) == pytest.approx([0, 1.5, 0.5, 0])


def test_chinese_pairs_share_their_characters():
    weights = token_weights("备用钥匙", np.array([(0, 1), (1, 3), (3, 4)]), {"用钥": 1.0, "钥匙": 1.0})
    assert weights == pytest.approx([0, 1.5, 0.5])


def test_spans_beyond_the_text_count_nothing():
    assert token_weights("key", np.array([(0, 9), (7, 9)]), {"key": 1.0}) == pytest.approx([1, 0])


# --- lines
def test_a_line_is_as_near_as_the_nearest_of_its_words_to_each_of_the_question():
    one, two = chunk(1, "The boiler is serviced."), chunk(2, "It is serviced.", path="memory/b.md")
    near, whole = matches("When is the heater serviced?", one, two)
    assert near[0] > 0.7 > near[1] > 0.3
    assert whole == pytest.approx(near)


def test_a_line_shares_in_what_its_neighbours_say():
    near, whole = matches("heater", chunk(1, "The boiler?\nIt is serviced.\nNothing else."))
    assert near[0] > near[1] > near[2] > 0.5
    assert whole[0] == pytest.approx(near[0])


def test_a_chunk_counts_its_context_and_its_lines_do_not():
    chunks = chunk(1, "It is serviced.", "# Boiler"), chunk(2, "It is blue.", path="memory/b.md")
    near, whole = matches("boiler", *chunks)
    assert whole[0] > 0.7 > near[0]
    assert whole[1] < 0.5


def test_lines_that_are_asked_for_in_any_order_get_their_own_values():
    one, two = chunk(1, "the boiler\nthe router"), chunk(2, "the key", start_line=3, start_char=22)
    other = chunk(3, "a boiler too", path="memory/b.md")
    assert matches("boiler", other, two, one)[0].tolist() == matches("boiler", one, two, other)[0].tolist()


def test_a_chunk_without_codes_is_near_to_nothing():
    one, two = chunk(1, "the boiler"), chunk(2, "boiler", path="memory/b.md")
    near, whole = matches("boiler", one, replace(two, token_codes=b""))
    assert near[0] > 0.7
    assert (near[1], whole[1]) == (0, 0)


def test_the_places_of_lines_are_right_after_windows_line_ends():
    near, _ = matches("router", chunk(1, "the boiler\r\nthe router\r\nthe key"))
    assert near.argmax() == 1


def test_a_question_of_no_token_that_counts_is_compared_by_words():
    query = weighed(parse_query("boiler"), {}, 10)
    assert query_tokens(query, (np.ones((1, DIMS), np.float32), np.zeros((1, 2), np.int64))) is None


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
    best = memory.search("Who looks after the heater?", explain=True)[0]
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
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "house.md").write_text(NOTES["memory/house.md"])
    with Memory.open(tmp_path, embedder=RecordingEmbedder()) as memory:
        memory.sync()
    embedder = Tokens()
    with Memory.open(tmp_path, embedder=embedder) as memory:
        assert any("the next sync builds the index again" in notice for notice in memory.status().notices)
        assert "tokens" not in memory.search("heater", explain=True)[0].parts
        assert memory.sync().rebuilt
        assert len(embedder.documents) == 1
    with Memory.open(tmp_path, embedder=Tokens()) as memory:
        assert memory.search("heater", explain=True)[0].parts["tokens"] > 0.4
        assert memory.status(deep=True).notices == ()


def test_an_embedder_without_tokens_for_a_text_leaves_words_and_says_so(remember):
    class Some(Tokens):
        def embed_document_tokens(self, texts):
            return self.embed_documents(texts), [None if "roses" in text else tokens_of(text) for text in texts]

    memory = remember(NOTES, embedder=Some())
    found = memory.search("roses in the garden", explain=True)
    assert "tokens" not in found[0].parts
    assert "lines were compared by words: 1 of 2 chunks found have no tokens" in found.reason
    assert any("1 of 2 chunks have no tokens" in notice for notice in memory.status().notices)


def test_a_failing_embedder_leaves_keywords(remember):
    class Failing(Tokens):
        def embed_query_tokens(self, _text):
            raise RuntimeError("out of memory")

    found = remember(NOTES, embedder=Failing()).search("boiler")
    assert found.mode == "keyword"
    assert "out of memory" in found.reason
    assert "boiler" in found[0].snippet


def test_one_that_fails_at_a_sync_leaves_the_files_waiting(remember):
    class Failing(Tokens):
        def embed_document_tokens(self, _texts):
            raise EmbedderError("out of memory")

    memory = remember(NOTES, embedder=Failing())
    assert all("out of memory" in file.reason for file in memory.status().waiting)


# --- codes of one embedder and of another
class Reversed(Tokens):
    """Another model: its tokens point elsewhere."""

    def embed_query_tokens(self, text):
        vectors, spans = tokens_of(text)
        return self.embed_query(text), (vectors[:, ::-1].copy(), spans)

    def embed_document_tokens(self, texts):
        return self.embed_documents(texts), [(tokens_of(text)[0][:, ::-1].copy(), tokens_of(text)[1]) for text in texts]


def codes_in(memory):
    """The codes of each chunk, and those that the memory's embedder makes of its text now."""
    chunks = memory._service.store().chunks(range(1, 100), token_codes=True)
    texts = [stored.chunk.embedding_text for stored in chunks]
    _, tokens = memory.embedder.inner.embed_document_tokens(texts)
    return [stored.token_codes for stored in chunks], [packed(*each) for each in zip(texts, tokens, strict=True)]


def test_codes_of_one_embedder_are_never_compared_with_tokens_of_another(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "house.md").write_text(NOTES["memory/house.md"])
    (tmp_path / "memory" / "garden.md").write_text("# Garden\n\nThe roses are cut in March.\n")
    for embedder, is_new in ((Tokens(), True), (Reversed(name="another"), True), (Tokens(), True), (Tokens(), False)):
        with Memory.open(tmp_path, embedder=embedder) as memory:
            before = memory.search("heater", explain=True) if memory.index_path.exists() else None
            if before is not None and is_new:
                assert before.mode == "keyword"
                assert not any("tokens" in result.parts for result in before)
                assert "until the next sync builds the index again" in before.reason
            assert bool(memory.sync().rebuilt) == (before is not None and is_new)
            stored, made = codes_in(memory)
            assert stored == made
            assert memory.search("heater", explain=True)[0].parts["tokens"] > 0.4


def test_a_model_that_gives_tokens_no_longer_searches_by_words(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "house.md").write_text(NOTES["memory/house.md"])
    with Memory.open(tmp_path, embedder=Tokens()) as memory:
        memory.sync()
    with Memory.open(tmp_path, embedder=RecordingEmbedder()) as memory:
        for _ in range(2):
            found = memory.search("boiler", explain=True)
            assert found.mode == "hybrid"
            assert "tokens" not in found[0].parts
            memory.sync()


@pytest.mark.sqlite_only
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_compares_tokens_as_its_parent_does_and_indexes_with_them(remember):
    memory = remember(NOTES, embedder=Tokens())
    question = "Who looks after the heater?"
    expected = [(result.citation, dict(result.parts)) for result in memory.search(question, explain=True)]
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            found = [(result.citation, dict(result.parts)) for result in memory.search(question, explain=True)]
            memory.append("The heater was mended by Hugo.", date="2026-01-02")
            memory.sync()
            best = memory.search("Who mended the boiler?", explain=True)[0]
            stored, made = codes_in(memory)
            said = repr((found == expected, "Hugo" in best.snippet, "tokens" in best.parts, stored == made))
        except BaseException as error:  # noqa: BLE001 - the parent says what it was
            said = repr(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        assert pipe.read() == "(True, True, True, True)"
    os.waitpid(child, 0)
    assert "Hugo" in memory.search("Who mended the boiler?")[0].snippet
    stored, made = codes_in(memory)
    assert stored == made
