"""The same work by whole libraries, each in a process of its own: `python speed_rivals.py NAME FOLDER` prints JSON.

NAME is a library here, which indexes and stays in step as well, or a recipe of `rivals.py`, which is searched alone.
All embed with the static model of this library, and what it costs is taken off: what is left is the library's own.
Times are CPU times of the process and of those it starts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from rivals import RECIPES, model_named, prepared
from speed_data import questions

from openclaw_memory import Memory, load_embedder

ASKED = 20
ASKED_WARM, ASKED_BEFORE = 60, 60
REPEATS = 3
RESULTS = 6
CHUNK_CHARS = 700


class Library(Protocol):
    """Notes in a folder, indexed and searched."""

    def sync(self) -> object: ...

    def search(self, question: str) -> object: ...


class Embedding:
    """The static model, with the CPU seconds that it took."""

    def __init__(self) -> None:
        embedder = load_embedder("static")
        assert embedder is not None
        self.provider, self.model, self.identity = embedder.provider, embedder.model, embedder.identity
        self.embed_words = embedder.embed_words  # type: ignore[attr-defined]  # the static one has them
        self.leaves_machine, self.close = embedder.leaves_machine, embedder.close
        self._embedder = embedder
        self.seconds = 0.0

    def embed_documents(self, texts: Sequence[str]) -> Any:
        started = time.process_time()
        vectors = self._embedder.embed_documents(texts)
        self.seconds += time.process_time() - started
        return vectors

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def ours(folder: Path, embedding: Embedding) -> Library:
    return Memory.open(folder, embedder=embedding)


def langchain(folder: Path, embedding: Embedding) -> Library:
    return LangChain(folder, embedding)


def memsearch(folder: Path, embedding: Embedding) -> Library:
    return MemSearch(folder, embedding)


class LangChain:
    """What one writes with LangChain: a splitter, FAISS kept in step by `index()`, BM25, both in an ensemble."""

    def __init__(self, folder: Path, embedding: Embedding) -> None:
        import faiss
        from langchain_classic.indexes import SQLRecordManager
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS
        from langchain_core.embeddings import Embeddings
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        class Static(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return embedding.embed_documents(texts).tolist()  # type: ignore[no-any-return]

            def embed_query(self, text: str) -> list[float]:
                return embedding.embed_query(text).tolist()  # type: ignore[no-any-return]

        self._folder = folder
        self._records = SQLRecordManager("notes", db_url=f"sqlite:///{folder}/records.sqlite")
        self._records.create_schema()
        index = faiss.IndexFlatIP(len(embedding.embed_query("memory")))
        self._vectors = FAISS(Static(), index, InMemoryDocstore(), {})
        self._splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARS, chunk_overlap=0)

    def sync(self) -> None:
        from langchain_classic.indexes import index
        from langchain_classic.retrievers import EnsembleRetriever
        from langchain_community.retrievers import BM25Retriever
        from langchain_core.documents import Document

        notes = [
            Document(path.read_text(encoding="utf-8"), metadata={"source": str(path.relative_to(self._folder))})
            for path in sorted(self._folder.glob("memory/**/*.md"))
        ]
        parts = self._splitter.split_documents(notes)
        index(parts, self._records, self._vectors, cleanup="full", source_id_key="source", key_encoder="sha256")
        words = BM25Retriever.from_documents(parts, k=RESULTS)
        vectors = self._vectors.as_retriever(search_kwargs={"k": RESULTS})
        self._retriever = EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5])

    def search(self, question: str) -> object:
        return self._retriever.invoke(question)


class MemSearch:
    """memsearch on Milvus Lite, with the static model in the place of its provider."""

    def __init__(self, folder: Path, embedding: Embedding) -> None:
        import memsearch.core

        class Static:
            model_name, batch_size = embedding.model, 256
            dimension = len(embedding.embed_query("memory"))

            async def embed(self, texts: list[str]) -> list[list[float]]:
                return embedding.embed_documents(texts).tolist()  # type: ignore[no-any-return]

        # It takes the name of a provider only.
        memsearch.core.get_provider = lambda *_, **__: Static()
        uri = str(folder / "milvus.db")
        self._library = memsearch.core.MemSearch([folder / "memory"], milvus_uri=uri)
        self._loop = asyncio.new_event_loop()

    def sync(self) -> object:
        return self._loop.run_until_complete(self._library.index())

    def search(self, question: str) -> object:
        return self._loop.run_until_complete(self._library.search(question, top_k=RESULTS))


def measured(open_library: Callable[[Path, Embedding], Library], folder: Path) -> dict[str, tuple[float, str]]:
    """Each piece of work with its figure and unit."""
    embedding = Embedding()

    def seconds(work: Callable[[], object]) -> float:
        before, embedded = cpu_seconds(), embedding.seconds
        work()
        return cpu_seconds() - before - (embedding.seconds - embedded)

    figures: dict[str, tuple[float, str]] = {}
    library: list[Library] = []

    def first() -> None:
        library.append(open_library(folder, embedding))
        library[0].sync()

    figures["first index, imports included"] = seconds(first), "s"
    figures["no-change sync"] = statistics.median(seconds(library[0].sync) for _ in range(REPEATS)) * 1000, "ms"
    changed = []
    for note in sorted((folder / "memory").iterdir())[:REPEATS]:
        note.write_text(note.read_text(encoding="utf-8") + "- The plumber comes on Friday.\n", encoding="utf-8")
        changed.append(seconds(library[0].sync))
    figures["one changed file"] = statistics.median(changed) * 1000, "ms"
    warm_up, *asked = questions(ASKED + 1)
    library[0].search(warm_up)
    times = [seconds(lambda: library[0].search(question)) for question in asked]  # noqa: B023 - called at once
    figures["warm search p50"] = statistics.median(times) * 1000, "ms"
    return figures


def searched(name: str, folder: Path) -> dict[str, tuple[float, str]]:
    """What a question costs a recipe at work, each asked once."""
    ask, times = prepared(name, folder), []
    for question in questions(ASKED_BEFORE + ASKED_WARM):
        model_named("static").embed_query(question)
        started = cpu_seconds()
        ask(question, None)
        times.append((cpu_seconds() - started) * 1000)
    warm = times[ASKED_BEFORE:]
    p95 = statistics.quantiles(warm, n=20)[-1]
    return {"warm search p50": (statistics.median(warm), "ms"), "warm search p95": (p95, "ms")}


def cpu_seconds() -> float:
    """CPU time of this process and of all that it has started and that still run, where the system tells (Linux)."""
    return time.process_time() + sum(map(_seconds_of, _descendants(os.getpid())))


def _descendants(parent: int) -> list[int]:
    found = []
    for listing in Path(f"/proc/{parent}/task").glob("*/children"):
        for child in map(int, listing.read_text().split()):
            found += [child, *_descendants(child)]
    return found


def _seconds_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


LIBRARIES = {"openclaw_memory": ours, "langchain": langchain, "memsearch": memsearch}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    name, place = sys.argv[1:]
    try:
        folder = Path(place)
        print(json.dumps(searched(name, folder) if name in RECIPES else measured(LIBRARIES[name], folder)))
    except ImportError as missing:
        sys.exit(f"{missing}: pip install -r benchmarks/requirements.txt")
    finally:
        shutil.rmtree(Path(place) / "milvus.db", ignore_errors=True)
