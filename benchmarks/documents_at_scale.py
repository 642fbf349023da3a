"""What one change and one question cost among many LlamaIndex nodes with vectors ready, beside LlamaIndex's own store.

    python benchmarks/documents_at_scale.py [--nodes N] [--dims N] [--rivals]

Times are milliseconds, the median of several turns, on the wall and of CPU time of the process. `SimpleVectorStore`
keeps everything in memory; it has no hybrid search. With `--rivals` Chroma and LanceDB, on disk, are asked by vectors
too; `requirements.txt` names their integrations.
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

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore, VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryMode
from llama_index_openclaw_memory import OpenClawVectorStore

from openclaw_memory import Memory

TURNS = 5  # of each change; questions are twice as many
PART_OF = 10  # nodes of one source
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
    options = parser.parse_args()
    json.dump(measured(options.nodes, options.dims, with_rivals=options.rivals), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
