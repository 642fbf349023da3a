"""For tests of LlamaIndex's vector store: nodes, an embedding of words, and nested filters with what they mean."""

import hashlib

import pytest
from contract_stores import FACTS
from hypothesis import strategies as st
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import types
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

KEYS = ["a", "b", "doc_id", "ref_doc_id", "document_id", "_node_type", "nowhere"]

words = st.sampled_from(["", "x", "y", "xy", "XY", "None", "doc"])
numbers = st.integers(-2, 2) | st.sampled_from([-0.5, 0.5, 1.0])
values = st.none() | st.booleans() | numbers | words | st.lists(words | numbers, max_size=3)
wanted = st.none() | numbers | words | st.lists(words, max_size=3) | st.lists(st.integers(-2, 2), max_size=3)
metadata = st.dictionaries(st.sampled_from(["a", "b", "doc_id"]), values, max_size=3)
leaves = st.builds(
    types.MetadataFilter, key=st.sampled_from(KEYS), value=wanted, operator=st.sampled_from(list(types.FilterOperator))
)


def _knows_all_filters():
    odd = [types.MetadataFilter(key="a", value="x", operator=one) for one in ("!=", "text_match_insensitive")]
    wanted = types.MetadataFilters(filters=odd, condition=types.FilterCondition.NOT)
    try:
        return not build_metadata_filter_fn(lambda _: {}, wanted)("any")
    except ValueError:
        return False


needs_all_filters = pytest.mark.skipif(
    not _knows_all_filters(), reason="this version of LlamaIndex does not know all conditions and operators"
)


def _joined(inner):
    conditions = st.none() | st.sampled_from(list(types.FilterCondition))
    return st.builds(types.MetadataFilters, filters=st.lists(inner, max_size=3), condition=conditions)


nested_filters = st.recursive(_joined(leaves), lambda inner: _joined(leaves | inner), max_leaves=5)


def node(node_id, text="text", source=None, embedding=None, **metadata):
    """A text node, with the id of its source where one is named."""
    relationships = {} if source is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
    return TextNode(id_=node_id, text=text, relationships=relationships, embedding=embedding, metadata=metadata)


def passes(filters, of_node):
    """By LlamaIndex's own evaluation of each leaf; it does not nest, and raises where types do not fit."""
    if isinstance(filters, types.MetadataFilter):
        alone = types.MetadataFilters(filters=[filters])
        try:
            return build_metadata_filter_fn(lambda _: of_node, alone)("any")
        except TypeError:
            return filters.operator is types.FilterOperator.NIN
    held = [passes(one, of_node) for one in filters.filters]
    if not held:
        return True
    if filters.condition is types.FilterCondition.OR:
        return any(held)
    return not any(held) if filters.condition is types.FilterCondition.NOT else all(held)


class WordEmbedding(BaseEmbedding):
    """Texts with the same words have the same vector: each word counts in one of the dimensions."""

    dims: int = 64

    def vector(self, text):
        counts = [0.001] * self.dims
        for word in text.lower().split():
            counts[hashlib.sha256(word.strip(".,?!").encode()).digest()[0] % self.dims] += 1.0
        return counts

    def _get_query_embedding(self, query):
        return self.vector(query)

    def _get_text_embedding(self, text):
        return self.vector(text)

    async def _aget_query_embedding(self, query):
        return self.vector(query)


WORDS = WordEmbedding()


def facts(embedding=None):
    """A node of each fact, of two sources, with the vectors of an embedding."""
    nodes = [
        node(name, text, "party" if name in {"venue", "cook"} else "boat", n=n)
        for n, (name, text) in enumerate(FACTS.items())
    ]
    for one in nodes if embedding is not None else []:
        one.excluded_embed_metadata_keys = ["n"]  # the fact alone is embedded
        one.embedding = embedding.get_text_embedding(one.get_content("embed"))
    return nodes


def bare(one):
    """A node without its embedding, as a store returns it."""
    return one.model_copy(update={"embedding": None})


def asking(text, k=2, mode="default", embedding=None, **fields):
    vector = None if embedding is None else embedding.get_query_embedding(text)
    return types.VectorStoreQuery(vector, k, query_str=text, mode=types.VectorStoreQueryMode(mode), **fields)


def one_filter(**wanted):
    return types.MetadataFilters(filters=[types.MetadataFilter(key=key, value=value) for key, value in wanted.items()])


def identity(memory):
    return memory.documents.get_vector_identity()
