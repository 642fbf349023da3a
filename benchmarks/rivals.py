"""The same questions put to this library and to what is usual with others, in one run.

    python benchmarks/rivals.py DIR... [--recipe NAME ...] [--json]

Each DIR is a workspace with questions, or a folder of some, as for `retrieval.py`. Each recipe runs over all of them in
a process of its own. The others get the notes in parts of at most 700 characters, which is as much as a snippet has
here; those that are compositions fuse BM25 and vectors by their ranks, half and half, and the stores that search by both
do it their own way. What they find counts as it is: whole parts.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from embedders import loaded
from retrieval import BUDGETS, LEFT_OUT, SHOWN_AT, chosen_workspaces, mean, shown, workspaces
from speed import in_fresh_process, machine

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.text.languages import STEMMERS

RESULTS = 40  # enough to fill the larger budget with short parts
CHUNK_CHARS = 700
CHROMA_TAKES = 5000  # at once
CHUNK_TOKENS = 175  # LlamaIndex counts tokens, of four characters or so

# Returns the texts of six results for a question, or as many as fill a budget of characters.
Ask: TypeAlias = Callable[[str, int | None], Sequence[str]]


# Indexes the notes in a folder's `memory`, which may be written to.
Recipe: TypeAlias = Callable[[Path], Ask]


def ours(folder: Path, model: str, config: Callable[[], MemoryConfig] = MemoryConfig) -> Ask:
    memory = Memory.open(folder, config=config(), embedder=model_named(model))
    memory.sync()
    return lambda question, budget: [one.snippet for one in memory.search(question, max_chars=budget)]


def langchain(folder: Path, model: str, store: str) -> Ask:
    """BM25 and a vector store in an ensemble."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_community.vectorstores import FAISS, Chroma
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    embedder = model_named(model)

    class Model(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return embedder.embed_documents(texts).tolist()  # type: ignore[no-any-return]

        def embed_query(self, text: str) -> list[float]:
            return embedder.embed_query(text).tolist()  # type: ignore[no-any-return]

    documents = [Document(text) for text in parts(folder)]
    words = BM25Retriever.from_documents(documents)
    if store == "FAISS":
        vectors = FAISS.from_documents(documents, Model()).as_retriever()
    else:
        vectors = Chroma.from_documents(documents, Model(), collection_name=folder.name).as_retriever()
    both = EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5])

    def ask(question: str, k: int) -> list[str]:
        words.k, vectors.search_kwargs = k, {"k": k}
        return [found.page_content for found in both.invoke(question)[:k]]

    return within_budgets(ask)


def bm25(folder: Path) -> Ask:
    """BM25 by the stemmer of the notes' language: that of the folder, if it is named by a code, else English."""
    import bm25s
    import Stemmer

    language = STEMMERS.get(folder.name, "english")
    texts, stemmer = parts(folder), Stemmer.Stemmer(language) if language in Stemmer.algorithms() else None
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords=None, stemmer=stemmer, show_progress=False), show_progress=False)

    def ask(question: str, k: int) -> list[str]:
        words = bm25s.tokenize([question], stopwords=None, stemmer=stemmer, show_progress=False)
        found, _ = index.retrieve(words, k=min(k, len(texts)), show_progress=False)
        return [texts[at] for at in found[0].tolist()]

    return within_budgets(ask)


def lancedb(folder: Path, model: str) -> Ask:
    """LanceDB's hybrid search: its full-text index and vectors, fused by their ranks."""
    import lancedb
    from lancedb.index import FTS
    from lancedb.rerankers import RRFReranker

    embedder, texts = model_named(model), parts(folder)
    rows = [
        {"text": text, "vector": vector} for text, vector in zip(texts, embedder.embed_documents(texts), strict=True)
    ]
    table = lancedb.connect(folder / "lance").create_table("notes", rows)
    table.create_index("text", config=FTS())
    ranks = RRFReranker()

    def ask(question: str, k: int) -> list[str]:
        both = table.search(query_type="hybrid").vector(embedder.embed_query(question)).text(question)
        return [found["text"] for found in both.limit(k).rerank(ranks).to_list()]

    return within_budgets(ask)


def chroma(folder: Path, model: str) -> Ask:
    """Chroma's vector search."""
    import chromadb

    embedder, texts = model_named(model), parts(folder)
    client = chromadb.PersistentClient(str(folder / "chroma"))
    notes = client.create_collection("notes", configuration={"hnsw": {"space": "cosine"}})
    for at in range(0, len(texts), CHROMA_TAKES):
        some = texts[at : at + CHROMA_TAKES]
        ids = [str(number) for number in range(at, at + len(some))]
        notes.add(ids=ids, documents=some, embeddings=embedder.embed_documents(some))

    def ask(question: str, k: int) -> list[str]:
        found = notes.query(query_embeddings=[embedder.embed_query(question)], n_results=k)
        return found["documents"][0] if found["documents"] else []

    return within_budgets(ask)


def txtai(folder: Path, model: str) -> Ask:
    """txtai's hybrid search: BM25 and vectors, its sum of their scores."""
    from txtai import Embeddings

    embedder = model_named(model)

    def vectors(texts: Sequence[str]) -> Any:  # a question comes alone
        return embedder.embed_documents(texts) if len(texts) > 1 else embedder.embed_query(texts[0])[None]

    notes = Embeddings(method="external", transform=vectors, hybrid=True, content=True)
    notes.index(parts(folder))

    def ask(question: str, k: int) -> list[str]:
        return [found["text"] for found in notes.search(question, k)]

    return within_budgets(ask)


def llama_index(folder: Path, model: str) -> Ask:
    """BM25 and a `VectorStoreIndex` in a `QueryFusionRetriever`."""
    from llama_index.core import Document, VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.retrievers.bm25 import BM25Retriever
    from llama_index_openclaw_memory import OpenClawEmbedding

    documents = [Document(text=text, metadata={"source": path}) for path, text in notes(folder)]
    for document in documents:
        document.excluded_embed_metadata_keys = ["source"]
    splitter = SentenceSplitter(chunk_size=CHUNK_TOKENS, chunk_overlap=0, include_metadata=False)
    nodes = splitter.get_nodes_from_documents(documents)
    index = VectorStoreIndex(nodes, embed_model=OpenClawEmbedding(model_named(model)))

    def retriever(k: int) -> QueryFusionRetriever:
        both = [index.as_retriever(similarity_top_k=k), BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=k)]
        fused = {"mode": "reciprocal_rerank", "num_queries": 1, "use_async": False}
        return QueryFusionRetriever(both, llm=MockLLM(), similarity_top_k=k, **fused)

    retrievers = {k: retriever(k) for k in (SHOWN_AT, RESULTS)}

    def ask(question: str, k: int) -> list[str]:
        return [found.node.get_content() for found in retrievers[k].retrieve(question)]

    return within_budgets(ask)


def within_budgets(ask: Callable[[str, int], list[str]]) -> Ask:
    """Return what gives the texts of six results, or the first `budget` characters of as many as it takes."""
    asked = lru_cache(1)(ask)  # each budget is filled from the same results

    def filled(question: str, budget: int | None) -> list[str]:
        if budget is None:
            return ask(question, SHOWN_AT)
        kept = []
        for text in asked(question, RESULTS):
            kept.append(text[:budget])
            budget = max(0, budget - len(text))
        return kept

    return filled


@cache
def model_named(name: str) -> Any:
    """The model, once for all workspaces. It embeds a question once: what is timed is the first time it is asked."""
    model = loaded(name, None)
    if model is not None:
        model.embed_query = cache(model.embed_query)  # type: ignore[method-assign]
    return model


def notes(folder: Path) -> list[tuple[str, str]]:
    """The paths and texts of a workspace's notes."""
    paths = sorted(folder.glob("memory/**/*.md"))
    return [(str(path.relative_to(folder)), path.read_text(encoding="utf-8")) for path in paths]


def parts(folder: Path) -> list[str]:
    """The notes in parts that are no longer than a snippet."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARS, chunk_overlap=0)
    return [part for _, text in notes(folder) for part in splitter.split_text(text)]


RECIPES: dict[str, Recipe] = {
    "ours": partial(ours, model="static"),
    "ours, keywords only": partial(ours, model="none"),
    "ours, MiniLM": partial(ours, model="local"),
    "OpenClaw's documented recipe": partial(ours, model="static", config=MemoryConfig.openclaw),
    "BM25": bm25,
    "LangChain: FAISS + BM25": partial(langchain, model="static", store="FAISS"),
    "LangChain: Chroma + BM25": partial(langchain, model="static", store="Chroma"),
    "LangChain: FAISS + BM25, MiniLM": partial(langchain, model="local", store="FAISS"),
    "LanceDB: hybrid": partial(lancedb, model="static"),
    "LanceDB: hybrid, MiniLM": partial(lancedb, model="local"),
    "Chroma: vectors": partial(chroma, model="static"),
    "Chroma: vectors, MiniLM": partial(chroma, model="local"),
    "txtai: hybrid": partial(txtai, model="static"),
    "LlamaIndex: vectors + BM25": partial(llama_index, model="static"),
    "LlamaIndex: vectors + BM25, MiniLM": partial(llama_index, model="local"),
}


def measured(name: str, folders: Sequence[Path]) -> dict[str, Any]:
    """The figures of one recipe, or the `error` for which there are none."""
    metrics, times = [], []
    left_out = shutil.ignore_patterns("questions.json", ".memory", *LEFT_OUT["without"])
    for workspace in workspaces(folders):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(shutil.copytree(workspace.folder, Path(scratch) / workspace.name, ignore=left_out))
            try:
                ask = prepared(name, folder)
            except ImportError as error:
                return {"name": name, "error": f"{error}: pip install -r benchmarks/requirements.txt"}
            for question in workspace.questions:
                found, took = answered(ask, question["question"], workspace.gold(question))
                metrics.append(found)
                times.append(took)
    return {"name": name, "questions": len(metrics), **mean(metrics), "query_ms": statistics.median(times)}


def prepared(name: str, folder: Path) -> Ask:
    """A recipe with the notes in `folder`, which has been asked once."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    ask = RECIPES[name](folder)
    ask("warm up", None)
    return ask


def answered(ask: Ask, question: str, gold: Sequence[tuple[str, int, str]]) -> tuple[dict[str, float], float]:
    """The figures of one question, and the milliseconds of CPU time that six results took."""
    started = time.process_time()
    six = ask(question, None)
    took = (time.process_time() - started) * 1000
    return figures(six, {budget: ask(question, budget) for budget in BUDGETS}, gold), took


def figures(
    six: Sequence[str], filled: dict[int, Sequence[str]], gold: Sequence[tuple[str, int, str]]
) -> dict[str, float]:
    """What of the gold lines stands in six results, and in each budget of characters."""
    found = {f"shown@{SHOWN_AT}": shown(six, gold)}
    found |= {f"coverage@{budget}": shown(texts, gold) for budget, texts in filled.items()}
    return found | {"characters": sum(map(len, six))}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    names = list(rows[0])[2:]
    lines = ["| recipe | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in rows:
        cells = [f"{row[name]:.3f}" if row[name] <= 1 else f"{row[name]:,.1f}" for name in names]
        lines.append(f"| {row['name']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--recipe", action="append", choices=RECIPES, help="one of them; may be given again")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    chosen_workspaces(parser, options.folders)
    rows = []
    for name in options.recipe or RECIPES:
        row = in_fresh_process(measured, name, options.folders)
        print(json.dumps(row), file=sys.stderr, flush=True)  # what is done is known, whatever comes next
        rows += [row] if "error" not in row else []
    if not rows:
        sys.exit("nothing could be measured")
    print(json.dumps({**machine(), "rows": rows}, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
