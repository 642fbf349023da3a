"""What memory costs behind LlamaIndex's query engines, set against its own store, and what it finds through them.

    python benchmarks/query_engine.py [DIR...] [--quick] [--json] [--only WORD]

Times are CPU time. `SimpleVectorStore`, LlamaIndex's own, answers the same questions in the same process. Each DIR is a
workspace with questions, or a folder of some (see `retrieval.py`): they are asked through the retriever of a
`VectorStoreIndex`, and of the memory itself. The conversation is scripted: a `Memory` that holds little ejects nearly
all of it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from agents import conversation, facts
from retrieval import SHOWN_AT, opened, shown, workspaces
from speed import Row, measure, milliseconds, process_milliseconds

from openclaw_memory import Memory, MemoryConfig


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    processes: int
    nodes: int
    dims: int
    added: int
    questions: int
    turns: int
    facts: int
    folders: tuple[str, ...] = ()


FULL = (11, 10_000, 384, 1_000, 30, 300, 50)
QUICK = (3, 1_000, 64, 100, 5, 60, 10)


def import_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """In fresh processes, in turns, so that a busy machine slows all alike."""
    before = "import llama_index.core"
    adapters = f"import sys; sys.path.append({str(Path(__file__).parents[1] / 'adapters')!r})"
    statements = (
        before,
        f"{before}; import llama_index_openclaw_memory",
        f"{before}; from llama_index_openclaw_memory import OpenClawVectorStore, OpenClawRetriever",
    )
    times: dict[str, list[float]] = {statement: [] for statement in statements}
    for _ in range(scale.processes + 1):
        for statement in statements:
            times[statement].append(process_milliseconds(["-c", f"{adapters}; {statement}"], scratch))
    bare, package, names = (statistics.median(times[statement][1:]) for statement in statements)
    yield Row("import llama_index.core", bare, "ms")
    yield Row("import llama_index_openclaw_memory, over that", package - bare, "ms")
    yield Row("with OpenClawVectorStore and OpenClawRetriever, over that", names - bare, "ms")


def query_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """The same nodes and questions, once to this store and once to LlamaIndex's own, in turns."""
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
    from llama_index.core.vector_stores.types import VectorStoreQueryMode

    tenth = MetadataFilters(filters=[MetadataFilter(key="tenth", value=3)])
    one = MetadataFilters(filters=[MetadataFilter(key="number", value=scale.nodes // 2)])
    asked, few = _vectors(scale.questions, scale.dims, seed=1), max(3, scale.questions // 6)
    with _stores(scratch / "query", _nodes(scale.nodes, scale.dims)) as stores:
        yield from _against("DEFAULT", stores, asked, bar=20.0 if scale.nodes >= 10_000 else None)
        yield from _against("DEFAULT, a filter that one node in ten passes", stores, asked[:few], filters=tenth)
        yield from _against("DEFAULT, a filter that one node passes", stores, asked[:few], filters=one)
        yield from _against("MMR", stores, asked[:few], mode=VectorStoreQueryMode.MMR, mmr_threshold=0.5)


def own_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """As `query_rows`, with vectors of the memory's own model, where people's notes are asked as well."""
    from llama_index_openclaw_memory import OpenClawEmbedding

    model = OpenClawEmbedding("static")
    nodes = _nodes(scale.nodes, 1)
    for node, vector in zip(nodes, model.get_text_embedding_batch([node.text for node in nodes]), strict=True):
        node.embedding, node.excluded_embed_metadata_keys = vector, list(node.metadata)
    asked = [model.get_query_embedding(f"Is tower {number} in order at {number} o'clock?") for number in range(20)]
    with _stores(scratch / "own", nodes) as stores:
        yield from _against("DEFAULT by the memory's own model, 256 dimensions", stores, asked)


@contextmanager
def _stores(folder: Path, nodes: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """This store and LlamaIndex's own, with the same nodes."""
    from llama_index.core.vector_stores import SimpleVectorStore
    from llama_index_openclaw_memory import OpenClawVectorStore

    folder.mkdir()
    theirs = SimpleVectorStore()
    theirs.add(nodes)
    with Memory.open(folder) as memory:
        ours = OpenClawVectorStore(memory=memory)
        ours.add(nodes)
        yield {"OpenClawVectorStore": ours, "SimpleVectorStore": theirs}


def _against(
    kind: str, stores: dict[str, Any], asked: Sequence[Any], bar: float | None = None, **wishes: Any
) -> Iterator[Row]:
    """What a question costs in each store, and how often both answer with the same ten nodes."""
    from llama_index.core.vector_stores import VectorStoreQuery

    times: dict[str, list[float]] = {name: [] for name in stores}
    same = 0
    for vector in asked:
        query = VectorStoreQuery(query_embedding=vector, similarity_top_k=10, **wishes)
        answers: dict[str, Any] = {}

        def ask(name: str, query: Any = query, answers: dict[str, Any] = answers) -> None:
            answers[name] = stores[name].query(query)

        for name in stores:
            times[name].append(milliseconds(partial(ask, name)))
        same += len({tuple(answer.ids) for answer in answers.values()}) == 1
    ours, theirs = (statistics.median(times[name]) for name in stores)
    yield Row(f"{kind}, OpenClawVectorStore", ours, "ms")
    yield Row(f"{kind}, SimpleVectorStore", theirs, "ms")
    yield Row(f"{kind}, times less", theirs / ours, "x", bar, at_least=True)
    yield Row(f"{kind}, the same ten nodes in the same order", 100 * same / len(asked), "% of questions")


def add_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """Nodes with embeddings that the caller made, each written to a file of its own."""
    from llama_index_openclaw_memory import OpenClawVectorStore

    times = []
    for turn in range(3):
        folder = scratch / f"add-{turn}"
        folder.mkdir()
        with Memory.open(folder) as memory:
            memory.sync()
            store = OpenClawVectorStore(memory=memory)
            nodes = _nodes(scale.added, scale.dims)
            times.append(milliseconds(lambda store=store, nodes=nodes: store.add(nodes)) / 1000)
            written = len(list((folder / "memory" / "notes").glob("*.md")))
    yield Row(f"add of {scale.added:,} nodes with embeddings", statistics.median(times), "s", 3)
    yield Row("of them written as Markdown", written, "", scale.added, at_least=True)


def hybrid_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """The share of gold lines that six nodes show, through an index in HYBRID mode and by the memory's own search."""
    from llama_index_openclaw_memory import OpenClawVectorStore

    by_engine, by_memory = [], []
    for workspace in workspaces([Path(folder) for folder in scale.folders]):
        with opened(workspace, MemoryConfig(), "static", scratch / "hybrid", "without") as memory:
            index = OpenClawVectorStore(memory, include_notes=True).as_index()
            retriever = index.as_retriever(vector_store_query_mode="hybrid", similarity_top_k=SHOWN_AT)
            for question in workspace.questions:
                gold = workspace.gold(question)
                texts = [found.node.get_content() for found in retriever.retrieve(question["question"])]
                by_engine.append(shown(texts, gold))
                by_memory.append(shown([one.snippet for one in memory.search(question["question"])][:SHOWN_AT], gold))
    if by_engine:
        ours, theirs = 100 * statistics.fmean(by_memory), 100 * statistics.fmean(by_engine)
        yield Row(f"shown@{SHOWN_AT} by memory.search, {len(by_memory)} questions", ours, "%")
        yield Row(f"shown@{SHOWN_AT} by the index's retriever, HYBRID", theirs, "%", ours, at_least=True)


def ejection_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """What is found again of a conversation that LlamaIndex's `Memory` has ejected, with the block and without."""
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import Memory as LlamaMemory
    from llama_index.core.storage.chat_store.sql import MessageStatus
    from llama_index_openclaw_memory import OpenClawMemoryBlock

    said = conversation(_Talk(scale.turns, scale.facts))
    for with_block in (True, False):
        folder = scratch / f"ejection-{with_block}"
        folder.mkdir()
        with Memory.open(folder) as memory:
            blocks = [OpenClawMemoryBlock(memory=memory, session_key="benchmark")] if with_block else []
            short = LlamaMemory.from_defaults(
                session_id="benchmark", token_limit=1_000, token_flush_size=200, memory_blocks=blocks
            )

            async def talk(short: Any = short) -> None:
                for number, text in enumerate(said):
                    await short.aput(ChatMessage(role="user", content=text))
                    await short.aput(ChatMessage(role="assistant", content=f"Noted, turn {number}."))

            asyncio.run(talk())
            active = asyncio.run(short.aget_all(status=MessageStatus.ACTIVE))
            memory.sync()
            view = "\n".join(str(message.content) for message in active)
            planted = [fact for fact in facts(scale.facts) if fact[0] not in view]
            found = sum(any(code in one.snippet for one in memory.search(asked)) for _, asked, code in planted)
            told = "with the block" if with_block else "without it"
            bar = float(len(planted)) if with_block else None
            yield Row(f"facts of {len(planted)} that were ejected found, {told}", found, "", bar, at_least=True)


@dataclass(frozen=True)
class _Talk:
    turns: int
    facts: int


def _vectors(count: int, dims: int, seed: int) -> list[list[float]]:
    rows = np.random.default_rng(seed).normal(size=(count, dims))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()


def _nodes(count: int, dims: int) -> list[Any]:
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    return [
        TextNode(
            id_=f"node-{number}",
            text=f"Station {number}: the gauge of tower {number % 97} was read at {number % 24} o'clock and is in order.",
            metadata={"number": number, "tenth": number % 10, "file_name": f"report-{number % 50}.md"},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"report-{number % 50}")},
            embedding=vector,
        )
        for number, vector in enumerate(_vectors(count, dims, seed=0))
    ]


PARTS = {
    "import": import_rows,
    "query": query_rows,
    "own": own_rows,
    "add": add_rows,
    "hybrid": hybrid_rows,
    "ejection": ejection_rows,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="workspaces with questions, for HYBRID")
    parser.add_argument("--quick", action="store_true", help="a part of the work, to see that all runs")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be given again")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    scale = Scale(*(QUICK if options.quick else FULL), folders=tuple(map(str, options.folders)))
    measure([PARTS[name] for name in options.only or PARTS], scale, as_json=options.json)


if __name__ == "__main__":
    main()
