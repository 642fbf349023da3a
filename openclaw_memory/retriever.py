"""Answers questions from the index of one memory, and says what limits the answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from openclaw_memory import _forks
from openclaw_memory.config import MemoryConfig, SearchConfig
from openclaw_memory.embeddings.selection import CircuitBreakerEmbedder, EmbedderSelector
from openclaw_memory.errors import EmbedderError
from openclaw_memory.indexing.service import IndexService
from openclaw_memory.indexing.staleness import BUILDING, NOTHING_YET
from openclaw_memory.types import IndexMeta, Store, WordVectorEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

    from openclaw_memory.search import SearchResults
    from openclaw_memory.search.prepared import Lexicon
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.types.where import Where
    from openclaw_memory.workspace import Workspace

# By embedder: the memories of many users share one.
_LEXICONS: WeakKeyDictionary[CircuitBreakerEmbedder, Lexicon] = WeakKeyDictionary()


class Retriever:
    """Searches the index that `service` keeps, with the embedder that fits it. Safe to use from several threads."""

    def __init__(
        self, workspace: Workspace, service: IndexService, embedders: EmbedderSelector, config: MemoryConfig
    ) -> None:
        self._workspace, self._service, self._embedders, self._config = workspace, service, embedders, config
        self._lexicon: Lexicon | None = None  # without an embedder
        self._making = _forks.lock()

    def answer(
        self,
        request: SearchRequest,
        rules: SearchConfig,
        *,
        passes: Callable[[str], bool] | None = None,
        where: Where | None = None,
    ) -> SearchResults:
        """Return the results of a search; a damaged index is built again first."""
        from openclaw_memory.search import SearchResults

        if not (self._config.sync.before_search or self._service.has_index()):
            return SearchResults((), request.query, "keyword", "none", "", stale=True, reason=NOTHING_YET)
        results, done = self._service.read(partial(self._results, request, rules, passes, where))
        return self._checked(replace(results, reason=_joined(done, results.reason)))

    def _checked(self, results: SearchResults) -> SearchResults:
        """Return the results whose text is in the files; files with another text are indexed again soon."""
        from openclaw_memory.search.citations import checked

        kept, lost = checked(results.results, self._workspace, lambda: self._service.store().files())
        if tuple(kept) == results.results:
            return results
        self._service.read_again({result.path for result in results if result not in kept})
        reason = results.reason
        if lost:
            count = f"{len(lost)} result{'s were' if len(lost) > 1 else ' was'} left out"
            files = ", ".join(sorted({result.path for result in lost}))
            reason = _joined(reason, f"{count}: {files} no longer holds the text, and is indexed again")
        return replace(results, results=tuple(kept), stale=True, reason=reason)

    def close(self) -> None:
        """Let go of the model."""
        with self._making:
            self._lexicon = None

    def _results(
        self,
        request: SearchRequest,
        rules: SearchConfig,
        passes: Callable[[str], bool] | None,
        where: Where | None,
        store: Store,
        stored: IndexMeta | None,
        behind: bool,
    ) -> SearchResults:
        """Return the results from one state of the index, built with `stored`, and `behind` the files or not."""
        from openclaw_memory.search.search import search

        embedder, reason, stale = self._for_search(store, stored, behind)
        results = search(
            request,
            store=store,
            embedder=embedder,
            rules=rules,
            lexicon=self._lexicon_for(embedder),
            use_chunk_scores=embedder is not None and not isinstance(embedder.inner, WordVectorEmbedder),
            max_share=self._config.sessions.max_share,
            passes=passes,
            where=where,
        )
        if not (results or results.filtered or store.files()):
            reason = _joined(reason, self._workspace.suggest_setup(len(self._workspace.scan().files)))
        building = BUILDING if stored is not None and not stored.complete else None
        reason = _joined(results.reason or reason, self._service.explain_unread(store, refresh=behind))
        return replace(results, stale=stale, reason=_joined(building, getattr(store, "shortage", None), reason))

    def _lexicon_for(self, embedder: CircuitBreakerEmbedder | None) -> Lexicon:
        """Return the lexicon of all searches with this embedder: with its vectors of words, or the bundled model's."""
        from openclaw_memory.search.prepared import Lexicon

        with self._making:
            if embedder is None:
                self._lexicon = (self._lexicon or Lexicon()).fresh()
                return self._lexicon
            if (known := _LEXICONS.get(embedder)) is None:
                from openclaw_memory.embeddings.static import StaticEmbedder

                inner = embedder.inner if isinstance(embedder.inner, WordVectorEmbedder) else StaticEmbedder()
                known = Lexicon(inner.word_vectors)
            _LEXICONS[embedder] = known.fresh()
            return _LEXICONS[embedder]

    def _for_search(
        self, store: Store, stored: IndexMeta | None, behind: bool
    ) -> tuple[CircuitBreakerEmbedder | None, str | None, bool]:
        """Return the embedder that fits this index, why a wanted one is missing, and whether answers are stale."""
        from openclaw_memory.indexing.changes import explain_missing_vectors
        from openclaw_memory.indexing.sync import describe_index, explain_outdated

        if stored is None:
            return None, NOTHING_YET, True
        stale = behind or not stored.complete
        try:
            embedder = self._embedders.select_for_search(stored)
        except EmbedderError as error:
            self._service.sync_if_behind()
            other = stored.provider != self._embedders.requested
            return None, f"keywords alone were searched: {error}", stale or other
        wanted = describe_index(embedder, self._config.chunking, policies=self._workspace.policies)
        difference = explain_outdated(stored, wanted)
        # Building the whole index again is begun by a call of `sync` alone: it may cost time, or money.
        if difference is None:
            self._service.sync_if_behind()
        if embedder is None or stored.identity == embedder.identity:
            reasons = explain_missing_vectors(self._service.count_missing_vectors(store))
            return embedder, "; ".join(reasons) or None, stale or bool(reasons) or difference is not None
        if (lost := self._embedders.unavailable.get(stored.provider)) is not None:
            return None, f"keywords alone were searched: {lost}", True
        return None, f"keywords alone were searched, until the next sync builds the index again: {difference}", True


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(filter(None, reasons)) or None
