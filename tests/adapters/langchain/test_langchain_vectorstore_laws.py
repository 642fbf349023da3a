"""Documents that are added, replaced, deleted and forgotten while one vector store goes on searching."""

from langchain_openclaw_memory import OpenClawVectorStore
from memory_laws import NAMES, SETTINGS, MemoryLaws


class DocumentLaws(MemoryLaws):
    def open(self):
        self.store = OpenClawVectorStore(self.memory)

    def put(self, name, text):
        self.store.add_texts([text], ids=[name])

    def remove(self, names):
        self.store.delete(names)

    def answers(self, word):
        vector = self.store.embeddings.embed_query(word)
        everything = len(NAMES)
        yield {one.id for one in self.store.similarity_search(word, k=everything)}
        yield {one.id for one in self.store.similarity_search_by_vector(vector, k=everything)}
        yield {one.id for one in self.store.max_marginal_relevance_search(word, k=everything)}


DocumentLaws.TestCase.settings = SETTINGS
TestDocumentLaws = DocumentLaws.TestCase
