"""Nodes that are added, replaced, deleted and forgotten while one vector store goes on searching, in every mode."""

import pytest
from hypothesis.stateful import run_state_machine_as_test
from llama_index_openclaw_memory import OpenClawVectorStore
from memory_laws import NAMES, SETTINGS, MemoryLaws
from some_nodes import WORDS, asking, node

MODES = ["default", "text_search", "hybrid", "mmr"]


class NodeLaws(MemoryLaws):
    """With vectors of the memory's own embedder."""

    embed_model = None

    def open(self):
        self.store = OpenClawVectorStore(self.memory, self.embed_model)

    def put(self, name, text):
        self.store.add([node(name, text)])

    def remove(self, names):
        self.store.delete_nodes(names)

    def answers(self, word):
        for mode in MODES:
            yield set(self.store.query(asking(word, len(NAMES), mode, self.store.embedding)).ids)


class NodeLawsOfAnotherModel(NodeLaws):
    """With vectors that another model than the memory's makes."""

    embed_model = WORDS


@pytest.mark.parametrize("laws", [NodeLaws, NodeLawsOfAnotherModel])
@pytest.mark.sampled(1)
def test_queries_follow_what_is_added_replaced_deleted_and_forgotten(laws):
    run_state_machine_as_test(laws, settings=SETTINGS)
