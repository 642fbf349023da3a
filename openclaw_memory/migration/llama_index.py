"""Plan for what LlamaIndex persists: the nodes of a docstore become documents (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_memory.migration.items import items_plan
from openclaw_memory.types import Document
from openclaw_memory.types.migration import LeftOut, MigrationPlan, PlacedDocument

NODES, VECTORS = "docstore/data", "embedding_dict"
_SOURCE = "1"  # the relationship of a part to its whole, as LlamaIndex writes it
# What a document says itself. A `Document` says its text twice: as `text` and in its `text_resource`.
_ELSEWHERE = frozenset({"id_", "embedding", "metadata", "text", "text_resource"})


def plan(docstore: Any, vector_store: Any = None) -> MigrationPlan:
    """Plan for a docstore, with what a `SimpleVectorStore` next to it says of nodes that it lacks.

    Args:
        docstore: What `docstore.json` holds.
        vector_store: What `default__vector_store.json` holds, if it is there.
    """
    nodes = docstore.get(NODES)
    nodes = nodes if isinstance(nodes, Mapping) else {}
    vectors = vector_store.get(VECTORS) if isinstance(vector_store, Mapping) else None
    vectors = vectors if isinstance(vectors, Mapping) else {}
    notices = f"{len(vectors):,} vectors are not taken: the memory's own model makes them again from the texts"
    return items_plan("llama-index", _found(nodes, vectors), (notices,) if vectors else ())


def _found(nodes: Mapping[str, Any], vectors: Mapping[str, Any]) -> Iterator[PlacedDocument | LeftOut]:
    for node_id, node in nodes.items():
        yield _node(f"{NODES}[{node_id!r}]", node_id, node)
    for node_id in vectors:
        if node_id not in nodes:
            yield LeftOut(f"{VECTORS}[{node_id!r}]", "its text is not in the docstore: a vector says nothing by itself")


def _node(place: str, node_id: str, node: Any) -> PlacedDocument | LeftOut:
    data = node.get("__data__") if isinstance(node, Mapping) else None
    if not isinstance(data, Mapping):
        return LeftOut(place, "it has no `__data__`")
    resource = data.get("text_resource")
    text = data.get("text") or (resource.get("text") if isinstance(resource, Mapping) else None)
    if not isinstance(text, str):
        text = ""
    metadata = data.get("metadata")
    fields: dict[str, Any] = {
        "llama_index": {name: value for name, value in data.items() if name not in _ELSEWHERE and value is not None}
    }
    relationships = data.get("relationships")
    whole = relationships.get(_SOURCE) if isinstance(relationships, Mapping) else None
    if isinstance(whole, Mapping) and isinstance(whole.get("node_id"), str):
        fields["part_of"] = whole["node_id"]
    own = {**metadata} if isinstance(metadata, Mapping) else {}
    return PlacedDocument(place, Document(node_id, text, own, fields=fields))
