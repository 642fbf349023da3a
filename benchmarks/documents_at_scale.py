"""What one change and one question cost among many LlamaIndex nodes with vectors ready, beside LlamaIndex's own store.

    python benchmarks/documents_at_scale.py [--nodes N] [--dims N] [--rivals]
    python benchmarks/documents_at_scale.py --narrow --nodes 100000

Times are milliseconds, the median of several turns, on the wall and of CPU time of the process. `SimpleVectorStore`
keeps everything in memory; it has no hybrid search. With `--rivals` Chroma and LanceDB, on disk, are asked by vectors
too; `requirements.txt` names their integrations.

With `--narrow`, searches are confined to a few of the nodes (a namespace of LangGraph's store, a collection, a source, ids):
what each costs, whether its first result is the right one, and whether it has a score.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "adapters"))

from langchain_openclaw_memory import OpenClawStore
from langgraph.store.base import PutOp
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore, VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryMode
from llama_index_openclaw_memory import OpenClawVectorStore

from openclaw_memory import Memory

TURNS = 5  # of each change; questions are twice as many
PART_OF = 10  # nodes of one source
WARM = 20  # searches that are confined to a few nodes
BARS = {"add all": 6_000, "insert one": 15, "delete one by id": 15}  # milliseconds of CPU time
MOST_BY_FILTER = 1.5  # times a hybrid search without one

Timed = dict[str, float]


def timed(calls: Iterable[Callable[[], Any]]) -> Timed:
    """Run each call once; the median milliseconds, on the wall and of CPU time."""
    wall, cpu = [], []
    for call in calls:
        before = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - before[0])
        cpu.append(time.process_time() - before[1])
    return {"wall": round(1000 * statistics.median(wall), 2), "cpu": round(1000 * statistics.median(cpu), 2)}


def made(count: int, dims: int, first: int = 0) -> list[TextNode]:
    """Nodes of 40 words, some of them rare, with vectors, ten of a source."""
    draw, numbers = random.Random(first), np.random.default_rng(first)
    words = [f"word{number}" for number in range(3000)]
    return [
        TextNode(
            id_=f"node-{number}",
            text=" ".join(draw.choices(words, k=40)),
            embedding=vector.tolist(),
            metadata={"half": number % 2, "tenth": number % 10, "hundredth": number % 100},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"source-{number // PART_OF}")},
        )
        for number, vector in enumerate(numbers.normal(size=(count, dims)), start=first)
    ]


def questions(dims: int, mode: VectorStoreQueryMode, **wishes: Any) -> Iterator[VectorStoreQuery]:
    """Questions of three words, each with a vector."""
    draw, numbers = random.Random(7), np.random.default_rng(7)
    for vector in numbers.normal(size=(2 * TURNS, dims)):
        text = " ".join(f"word{draw.randrange(3000)}" for _ in range(3))
        yield VectorStoreQuery(vector.tolist(), 10, query_str=text, mode=mode, **wishes)


def steps(store: Any, nodes: Sequence[TextNode], dims: int) -> dict[str, Timed]:
    """Every step in turn, over one store."""
    is_ours = isinstance(store, OpenClawVectorStore)
    at_once = 5000 if type(store).__name__ == "ChromaVectorStore" else len(nodes)  # Chroma takes no more than 5461
    parts = [nodes[at : at + at_once] for at in range(0, len(nodes), at_once)]
    found = {"add all": timed([lambda: [store.add(part) for part in parts]])}
    filters = {"": None} | {
        f", a filter of {share}": MetadataFilters(filters=[MetadataFilter(key=key, value=1)])
        for key, share in (("half", "50 %"), ("tenth", "10 %"), ("hundredth", "1 %"))
    }
    modes = [
        VectorStoreQueryMode.DEFAULT,
        *([VectorStoreQueryMode.HYBRID] if is_ours else []),
        *([VectorStoreQueryMode.MMR] if is_ours or isinstance(store, SimpleVectorStore) else []),
    ]
    for mode in modes:
        for name, chosen in filters.items() if mode != VectorStoreQueryMode.MMR else [("", None)]:
            asked = list(questions(dims, mode, filters=chosen))
            store.query(asked[0])
            found[f"{mode.value}{name}"] = timed([lambda one=one: store.query(one) for one in asked])
    more = made(TURNS, dims, first=len(nodes))
    found["insert one"] = timed([lambda one=one: store.add([one]) for one in more])
    if type(store).__name__ == "LanceDBVectorStore":  # version 0.6.0 deletes nothing: it puts ids in double quotes
        return found
    found["delete one by id"] = timed([lambda one=one: store.delete_nodes([one.node_id]) for one in more])
    sources = [f"source-{number}" for number in range(TURNS)]
    found["delete a source of ten"] = timed([lambda one=one: store.delete(one) for one in sources])
    half = [node.node_id for node in nodes[TURNS * PART_OF :: 2]]
    found["delete half"] = timed([lambda: store.delete_nodes(half)])
    return found


def narrow_namespace(count: int) -> dict[str, Any]:
    """Search namespaces of five items of LangGraph's store, with `count` items of others in the same memory."""
    draw = random.Random(1)
    words = [f"word{number}" for number in range(3000)]
    said = [f"Locker {number} holds {' '.join(draw.choices(words, k=12))}." for number in range(count)]
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        store = OpenClawStore(memory)
        puts = [
            PutOp(("memories", f"user{number // 5}"), f"item{number}", {"text": text})
            for number, text in enumerate(said)
        ]
        for at in range(0, count, 5000):
            store.batch(puts[at : at + 5000])
        memory.sync()

        def search(number: int) -> list[Any]:
            query = " ".join(said[number].rstrip(".").split()[-3:])
            return store.search(("memories", f"user{number // 5}"), query=query, limit=3)

        right = 0
        for number in range(0, 10 * WARM, 10):
            found = search(number)
            right += found[0].key == f"item{number}" and found[0].score is not None
        return {
            "right first, with a score": f"{right} of {WARM}",
            "a namespace seen before": timed([lambda one=one: search(one) for one in range(0, 10 * WARM, 10)]),
            "a namespace never seen": timed([lambda one=one: search(one) for one in range(1000, 1000 + 10 * WARM, 10)]),
        }


def narrow_nodes(count: int, dims: int) -> dict[str, Any]:
    """Query few of `count` nodes: those of a collection, of a source and with given ids."""
    nodes = made(count, dims)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        store, own = OpenClawVectorStore(memory), OpenClawVectorStore(memory, collection="own")
        for at in range(0, count, 5000):
            store.add(nodes[at : at + 5000])
        own.add(nodes[:3])
        found: dict[str, Any] = {}
        for mode in (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.HYBRID, VectorStoreQueryMode.TEXT_SEARCH):
            ways: dict[str, tuple[Any, Any]] = {
                "all nodes": (store, lambda _: {}),
                "a collection of three": (own, lambda _: {}),
                "doc_ids": (store, lambda number: {"doc_ids": [f"source-{number // PART_OF}"]}),
                "a filter by ref_doc_id": (store, lambda number: {"filters": of_source(number // PART_OF)}),
                "node_ids": (store, lambda number: {"node_ids": [f"node-{number}", f"node-{number + 1}"]}),
            }
            for name, (asked, wishes) in ways.items():
                numbers = [at % 3 if asked is own else 37 * at for at in range(WARM)]
                queries = [
                    VectorStoreQuery(
                        nodes[number].embedding,
                        3,
                        query_str=" ".join(nodes[number].text.split()[:3]),
                        mode=mode,
                        **wishes(number),
                    )
                    for number in numbers
                ]
                answers = [asked.query(query) for query in queries]
                right = sum(answer.ids[0] == f"node-{number}" for answer, number in zip(answers, numbers, strict=True))
                times = timed([lambda query=query, asked=asked: asked.query(query) for query in queries])
                found[f"{mode.value}, {name}"] = {"right first": f"{right} of {WARM}", **times}
        return found


def of_source(number: int) -> MetadataFilters:
    """The filter of the nodes of a source."""
    return MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value=f"source-{number}")])


def rivals(folder: str) -> Iterator[Any]:
    """Stores of other libraries on disk, through their integrations for LlamaIndex."""
    import chromadb
    from llama_index.vector_stores.chroma import ChromaVectorStore
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    yield ChromaVectorStore(chromadb.PersistentClient(f"{folder}/chroma").create_collection("nodes"))
    yield LanceDBVectorStore(uri=f"{folder}/lance", table_name="nodes")


def measured(count: int, dims: int, *, with_rivals: bool) -> dict[str, Any]:
    """All stores in one process, one after the other, and which bars this library's meets."""
    nodes = made(count, dims)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        ours = steps(OpenClawVectorStore(memory), nodes, dims)
    theirs = {"SimpleVectorStore": steps(SimpleVectorStore(), nodes, dims)}
    if with_rivals:
        with tempfile.TemporaryDirectory() as folder:
            theirs |= {type(store).__name__: steps(store, nodes, dims) for store in rivals(folder)}
    plain = ours["hybrid"]["cpu"]
    bars = {f"{name} <= {bar} ms": ours[name]["cpu"] <= bar for name, bar in BARS.items()}
    for name in (one for one in ours if one.startswith("hybrid,")):
        times = ours[name]["cpu"] / plain
        bars[f"{name}: {times:.2f} x without <= {MOST_BY_FILTER}"] = times <= MOST_BY_FILTER
    return {"nodes": count, "OpenClawVectorStore": ours, **theirs, "bars met": bars}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--narrow", action="store_true", help="searches that are confined to a few of the nodes")
    options = parser.parse_args()
    if options.narrow:
        result = {"LangGraph": narrow_namespace(options.nodes), "LlamaIndex": narrow_nodes(options.nodes, options.dims)}
    else:
        result = measured(options.nodes, options.dims, with_rivals=options.rivals)
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
