"""Search the index of one memory: choose the embedder that fits it, repair it, and check citations."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from openclaw_memory.errors import EmbedderError
from openclaw_memory.indexing.staleness import BUILDING, NOTHING_YET, explain_unread

if TYPE_CHECKING:
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.embeddings.selection import CircuitBreakerEmbedder, EmbedderSelector
    from openclaw_memory.indexing.service import IndexService, IndexState
    from openclaw_memory.records.files import RecordFiles
    from openclaw_memory.search import SearchRequest
    from openclaw_memory.search.citation_check import CitationChecker
    from openclaw_memory.search.line_index import LineIndex
    from openclaw_memory.search.results import SearchResults
    from openclaw_memory.types import IndexMeta
    from openclaw_memory.workspace import Workspace

MAX_TRANSCRIPT_SHARE = 0.34  # of the results, unless notes have no more


class Retriever:
    """Searches the index that a service keeps. Safe to use from several threads."""

    def __init__(
        self,
        workspace: Workspace,
        service: IndexService,
        embedders: EmbedderSelector,
        config: MemoryConfig,
        records: RecordFiles,
    ) -> None:
        self._workspace, self._service, self._embedders, self._config = workspace, service, embedders, config
        self._records = records
        self.lines: LineIndex | None = None  # without an embedder
        # What the index was built with, the embedder, and how they differ.
        self._compared: tuple[IndexMeta | None, CircuitBreakerEmbedder | None, str | None] = None, None, None
        self._lock = threading.Lock()

    @cached_property
    def _citations(self) -> CitationChecker:
        from openclaw_memory.search.citation_check import CitationChecker

        return CitationChecker(self._workspace, self._service.store)

    def search(self, request: SearchRequest) -> SearchResults:
        """Return the results of a request, best first. Expired records are left out, however old the index is."""
        from openclaw_memory.search.request import resolve_request
        from openclaw_memory.search.results import SearchResults, cut_to_budget

        request = resolve_request(request, self._config)
        if not (self._config.sync.before_search or self._service.has_index()):
            return SearchResults((), request.query, "keyword", "none", "", stale=True, reason=NOTHING_YET)
        results = self._search_index(request)
        if self._records.find_hidden((result.path for result in results), request.now):  # seldom: they are deleted soon
            passes, hidden = request.passes or bool, self._records.find_hidden
            passing = replace(request, passes=lambda path: passes(path) and not hidden((path,), request.now))
            results = self._search_index(passing)
        if request.max_chars is None:
            return results
        fitting, omitted = cut_to_budget(results.results, request.max_chars)
        return replace(results, results=fitting, omitted=omitted)

    def _search_index(self, request: SearchRequest) -> SearchResults:
        """Return the results that the files still hold; a damaged index is deleted, and built by another try."""

        def read() -> tuple[SearchResults, str | None]:
            with self._service.snapshot() as state:
                return self._search_state(state, request), state.notice

        (results, notice), repair = self._service.run_recovering(read)
        verified, doubtful, reason = self._citations.verify(results.results)
        if doubtful:
            self._service.read_again(doubtful)
            results = replace(results, results=verified, stale=True)
        return replace(results, reason=_join(*dict.fromkeys((repair, notice)), results.reason, reason))

    def _search_state(self, state: IndexState, request: SearchRequest) -> SearchResults:
        """Return the results from one state of the index, with the reasons that limit them."""
        from openclaw_memory.search.candidates import list_languages
        from openclaw_memory.search.search import IndexView, search

        embedder, reason, stale = self._choose_embedder(state)
        languages = list_languages(state.store)
        view = IndexView(
            store=state.store,
            embedder=embedder,
            lines=self._get_lines(embedder, languages),
            today=self._workspace.get_time(request.now).date(),
            languages=languages,
            has_chunk_vectors=embedder is not None and not hasattr(embedder.inner, "embed_words"),
            max_transcript_share=MAX_TRANSCRIPT_SHARE,
            read_outline=self._citations.read_outline,
            allow_remote=self._config.embedding.allow_remote,
        )
        results = search(view, request)
        if not (results or results.filtered or state.store.get_files()):
            reason = _join(reason, self._workspace.suggest_setup(len(self._workspace.scan().files)))
        building = BUILDING if state.meta is not None and not state.meta.complete else None
        reason = _join(building, results.reason or reason, explain_unread(state.store))
        return replace(results, stale=stale, reason=reason)

    def _get_lines(self, embedder: CircuitBreakerEmbedder | None, languages: tuple[str, ...]) -> LineIndex:
        """Return the lines of all searches with an embedder: with its vectors of words, or the bundled model's."""
        from openclaw_memory.search.line_index import LineIndex

        with self._lock:
            holder = self if embedder is None else embedder  # the memories of many users share an embedder
            if holder.lines is None:
                word_vectors = None if embedder is None else getattr(embedder.inner, "embed_words", None)
                if embedder is not None and word_vectors is None:
                    from openclaw_memory.embeddings.static import StaticEmbedder

                    word_vectors = StaticEmbedder().embed_words
                holder.lines = LineIndex(word_vectors)
            holder.lines = holder.lines.renew(languages)
            return holder.lines

    def _choose_embedder(self, state: IndexState) -> tuple[CircuitBreakerEmbedder | None, str | None, bool]:
        """Return the embedder that fits an index, why a requested one is missing, and whether answers are stale."""
        from openclaw_memory.indexing.sync import describe_index, explain_outdated

        meta = state.meta
        if meta is None:
            return None, NOTHING_YET, True
        stale = state.is_behind or not meta.complete
        try:
            embedder = self._embedders.select_for_search(meta)
        except EmbedderError as error:
            self._service.sync_if_behind()
            return None, f"keywords alone were searched: {error}", stale or meta.provider != self._embedders.requested
        *parts, difference = self._compared
        if parts != [meta, embedder]:
            current = describe_index(embedder, self._config.chunking, policies=self._workspace.policies)
            self._compared = meta, embedder, (difference := explain_outdated(meta, current))
        # No search builds an index again, which may cost time or money; of the interim one's the vectors are computed.
        if difference is None:
            self._service.sync_if_behind()
        if embedder is None or meta.identity == embedder.identity:
            from openclaw_memory.indexing.changes import explain_missing_vectors

            reasons = explain_missing_vectors(self._service.count_missing_vectors(state.store))
            return embedder, _join(*reasons, self._service.explain_interim(meta)), stale or bool(reasons or difference)
        if (reason := self._embedders.unavailable.get(meta.provider)) is not None:
            return None, f"keywords alone were searched: {reason}", True
        return None, f"keywords alone were searched, until the next sync builds the index again: {difference}", True


def _join(*reasons: str | None) -> str | None:
    return "; ".join(filter(None, reasons)) or None
