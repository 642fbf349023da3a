"""The tokens of a `local` model with prompts: made of the right text, and the same whenever they are made."""

import hashlib
import re
from types import SimpleNamespace

import numpy as np
import pytest

from openclaw_memory import Memory
from openclaw_memory.embeddings.local import LocalTokenEmbedder
from openclaw_memory.embeddings.token_codes import pack_tokens

PROMPTS = ("query: ", "passage: ")
DIMS = 32
NOTES = {
    "memory/house.md": "# House\n\nThe boiler is serviced in October.\n\nThe spare key is with Eva, at number nine.\n",
    "memory/garden.md": "# Garden\n\n  The roses are cut in March,\n  and watered twice a week.\n",
}


class Tensor(SimpleNamespace):
    """As much of a tensor as is asked for: its numbers."""

    def detach(self):
        return self

    float = cpu = detach

    def numpy(self):
        return self.numbers


def vector_of(*words):
    seed = hashlib.sha256(" ".join(words).encode()).digest()
    return np.random.default_rng(list(seed)).normal(size=DIMS).astype(np.float32)


class Transformer:
    """A model whose vector of a word depends on the prompt, as in E5; `read` lists what it was given."""

    max_seq_length = 64
    prompts = {"query": "", "document": ""}  # noqa: RUF012 - as a SentenceTransformer has them

    def __init__(self):
        self.read = []

    def __iter__(self):
        return iter(())

    def parameters(self):
        return []

    def tokenizer(self, texts, *, return_offsets_mapping=False, **_):
        spans = [[(0, 0), *(word.span() for word in re.finditer(r"\S+", text))] for text in texts]
        return {"offset_mapping": spans} if return_offsets_mapping else {"input_ids": spans}

    def encode_query(self, texts, **options):
        return self._encoded(texts, **options)

    encode_document = encode_query

    def _encoded(self, texts, *, prompt, batch_size, show_progress_bar, output_value):
        assert len(texts) <= batch_size
        assert (show_progress_bar, output_value) == (False, None)
        self.read += [prompt + text for text in texts]
        found = []
        for text in texts:
            words = (prompt + text).split()
            tokens = np.array([vector_of("[CLS]"), *(vector_of(prompt, word) for word in words)])
            mask = np.ones(len(tokens) + 2)
            mask[len(tokens) :] = 0  # a batch is as long as its longest text
            padded = np.vstack([tokens, np.zeros((2, DIMS), np.float32)])
            named = {"sentence_embedding": tokens.mean(axis=0), "token_embeddings": padded, "attention_mask": mask}
            found.append({name: Tensor(numbers=numbers) for name, numbers in named.items()})
        return found


def e5():
    return LocalTokenEmbedder(Transformer(), "multilingual-e5-small", prompts=PROMPTS)


def codes_of(embedder, text):
    return pack_tokens(text, embedder.embed_document_tokens([text])[1][0])


@pytest.fixture
def folder(tmp_path):
    for path, text in NOTES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def stored_chunks(memory):
    return memory._engine.service.store().get_chunks(range(1, 100), token_codes=True)


@pytest.mark.parametrize("text", ["two words", "  blanks around \n", "\n\nlines\n  of\ttext"])
def test_the_places_of_tokens_are_those_in_the_text_without_its_prompt(text):
    for _, spans in (e5().embed_query_tokens(text)[1], e5().embed_document_tokens([text])[1][0]):
        assert [text[start:end] for start, end in spans if end] == text.split()


def test_a_question_is_read_with_its_own_prompt_and_notes_with_theirs(folder):
    embedder = e5()
    with Memory.open(folder, embedder=embedder) as memory:
        embedder._transformer.read.clear()
        memory.sync()
        noted = set(embedder._transformer.read) - {"passage: "}
        assert noted == {PROMPTS[1] + stored.chunk.embedding_text for stored in stored_chunks(memory)}
        embedder._transformer.read.clear()
        memory.search("Who has the spare key?")
        assert embedder._transformer.read == ["query: Who has the spare key?"]


def test_codes_are_the_same_at_the_sync_and_later(folder):
    with Memory.open(folder, embedder=e5()) as memory:
        memory.sync()
        kept = {stored.chunk.embedding_text: stored.token_codes for stored in stored_chunks(memory)}
    assert len(kept) >= 2
    later = e5()
    assert kept == {text: codes_of(later, text) for text in kept}
    with Memory.open(folder, embedder=later) as memory:
        later._transformer.read.clear()
        memory.sync(force=True)
        assert not any(text.startswith(PROMPTS[1]) for text in later._transformer.read)
        assert kept == {stored.chunk.embedding_text: stored.token_codes for stored in stored_chunks(memory)}
        assert "tokens" in memory.search("spare key", options={"explain": True})[0].parts
