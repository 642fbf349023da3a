"""`OpenClawRetriever`: a search of the memory as a retriever of LlamaIndex."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore
from llama_index.core.settings import Settings

from llama_index_openclaw_memory._filters import to_search_filter
from llama_index_openclaw_memory._nodes import cite_node, make_cited_node, to_node
from llama_index_openclaw_memory._session import find_session, lease_run_memory
from openclaw_memory import SearchFilter, SearchOptions
from openclaw_memory.aio import run_in_thread
from openclaw_memory.errors import ConfigError
from openclaw_memory.runs import RunMemory
from openclaw_memory.tools import search_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.schema import QueryBundle
    from llama_index.core.vector_stores.types import MetadataFilters

    from openclaw_memory import Memory, SearchResults
    from openclaw_memory.runs import MemoryChoice


# The most that one search returns.
_MOST = 1000

# What LlamaIndex's `BaseRetriever` takes besides.
_OPTIONS = {"object_map", "objects", "verbose"}


class OpenClawRetriever(BaseRetriever):
    """The lines of a memory that answer a question, each with its citation: the hybrid search, without an index.

    What is searched for is the `query_str` of a query; a vector that comes with it is left alone. The text of a node is
    the snippet, its id the citation; a model is shown it in a fence, below its citation. The metadata are plain JSON:
    `path`, `start_line` and `end_line` (from 1), `source` and `citation`, and of the lines of a record its fields, as
    `record`. A node that was added to the memory comes whole, as it was added, so that a fusion with the retriever of
    an index has it once. `node.source_node.metadata` has the `citation` and the `spans` of any node, the `mode` of the
    search, whether the index was `stale`, and a `reason` if only keywords were searched.
    """

    def __init__(
        self,
        memory: MemoryChoice,
        similarity_top_k: int | None = None,
        min_score: float | None = None,
        callback_manager: CallbackManager | None = None,
        session_key: str | None = None,
        max_chars: int | None = None,
        filters: MetadataFilters | SearchFilter | Mapping[str, Any] | None = None,
        options: SearchOptions | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a retriever over a memory.

        Args:
            memory: The memory, or a selector of one for each run; see `OpenClawToolSpec`.
            similarity_top_k: The most nodes that are returned, 1..1000. Default: 6 (`config.search.max_results`), or as
                many as fit.
            min_score: The least score, 0..1. Default: that of the memory's configuration.
            callback_manager: Default: that of LlamaIndex's `Settings`.
            session_key: Where the answer is read, as for `OpenClawToolSpec`; in groups less is shown.
            max_chars: The most characters of all nodes together, as for `Memory.search`.
            filters: Which lines count, as for `Memory.search`, `{"path": "memory/2026-*", "since": "2026-01-31"}`, or
                LlamaIndex's filters with these names as keys, all of which must hold.
            options: How a search differs, as for `Memory.search`: `{"task": "booking a trip"}`.
            kwargs: Those of LlamaIndex's `BaseRetriever`.

        Raises:
            TypeError: `memory` is not a memory.
            ConfigError: A setting has a wrong type or is out of range, or an option is unknown.
            QueryError: A search does not filter so.
        """
        if unknown := kwargs.keys() - _OPTIONS:
            raise ConfigError(f"OpenClawRetriever takes no {', '.join(sorted(unknown))}: leave it out")
        self.memory = RunMemory.read_choice(memory)
        if similarity_top_k is not None and not (_is_number(similarity_top_k, int) and 1 <= similarity_top_k <= _MOST):
            raise ConfigError(f"similarity_top_k must be a whole number from 1 to {_MOST}, not {similarity_top_k!r}")
        if max_chars is not None and not (_is_number(max_chars, int) and max_chars >= 1):
            raise ConfigError(f"max_chars must be a whole number of at least 1, not {max_chars!r}")
        if min_score is not None and (not _is_number(min_score, int | float) or not 0 <= min_score <= 1):
            raise ConfigError(f"min_score must be a number from 0 to 1, not {min_score!r}")
        self.similarity_top_k, self.max_chars, self.min_score = similarity_top_k, max_chars, min_score
        self.filters, self.options = to_search_filter(filters), SearchOptions.read(options)
        self.session_key = session_key
        super().__init__(callback_manager=callback_manager or Settings.callback_manager, **kwargs)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        session = find_session(self.session_key)
        with lease_run_memory(self.memory, session) as memory:
            results = search_for(
                memory,
                query_bundle.query_str,
                session_key=session,
                max_results=self.similarity_top_k,
                max_chars=self.max_chars,
                min_score=self.min_score,
                filter=self.filters,
                options=self.options,
            )
            return _to_nodes(results, memory)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_in_thread(self._retrieve, query_bundle)


def _is_number(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _to_nodes(results: SearchResults, memory: Memory) -> list[NodeWithScore]:
    search = {"mode": results.mode, "stale": results.stale, **({"reason": results.reason} if results.reason else {})}
    nodes: dict[str, NodeWithScore] = {}
    for result in results:
        about = {**search, "spans": [list(span) for span in result.spans], "citation": result.citation}
        document = memory.documents.read(result.path) if result.source == "memory" else None
        if document is not None:
            node = cite_node(to_node(document), result.path, about)
            nodes.setdefault(document.id, NodeWithScore(node=node, score=result.score))
            continue
        names = ("path", "start_line", "end_line", "source", "citation")
        metadata = {name: getattr(result, name) for name in names} | memory.records.describe_result(result)
        node_id = result.citation
        if node_id in nodes:  # a further passage of one long line: LlamaIndex drops a node whose id it has seen
            node_id += f"~{sha256(result.snippet.encode('utf-8', 'replace')).hexdigest()[:8]}"
        node = make_cited_node(node_id, result.snippet, metadata, about)
        nodes[node_id] = NodeWithScore(node=node, score=result.score)
    return list(nodes.values())
