"""What a search found, as nodes of LlamaIndex."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import NodeWithScore

from llama_index_openclaw_memory._nodes import cited_node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openclaw_memory import SearchResults


def nodes_of(found: SearchResults, about: Callable[[str], Mapping[str, Any]]) -> list[NodeWithScore]:
    """Return one node for each result, best first, with its score (0..1): its text is the snippet, its id the citation.

    Further passages of one long line have ids of their own: LlamaIndex drops a node whose id it has seen.

    The metadata are plain JSON: `path`, `start_line` and `end_line` (from 1), `source`, `citation`, the `mode` of the
    search, whether the index was `stale`, and a `reason` if only keywords were searched. Lines of what a framework
    added also have its metadata, which `about` returns by the path. A model is shown the citation alone.
    """
    of_the_search = {"mode": found.mode, "stale": found.stale} | ({"reason": found.reason} if found.reason else {})
    nodes: dict[str, NodeWithScore] = {}
    for result in found:
        metadata = {
            **(about(result.path) if result.source == "memory" else {}),
            "path": result.path,
            "start_line": result.start_line,
            "end_line": result.end_line,
            "source": result.source,
            "citation": result.citation,
            **of_the_search,
        }
        node_id = result.citation if result.citation not in nodes else f"{result.citation}~{_digest(result.snippet)}"
        nodes[node_id] = NodeWithScore(node=cited_node(node_id, result.snippet, metadata), score=result.score)
    return list(nodes.values())


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
