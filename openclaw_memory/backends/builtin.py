"""The built-in engine: the index of a workspace, and what searches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from openclaw_memory import _forks
from openclaw_memory.config import MemoryConfig
from openclaw_memory.embeddings.selection import EmbedderSelector, make_selector
from openclaw_memory.indexing.service import IndexService
from openclaw_memory.records.files import RecordFiles
from openclaw_memory.retriever import Retriever
from openclaw_memory.types import Embedder, Excerpt, Progress, Store, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.documents import Documents
    from openclaw_memory.embeddings.selection import EmbedderChoice
    from openclaw_memory.heartbeat import Heartbeat
    from openclaw_memory.records import Records
    from openclaw_memory.search import SearchResults
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.types import Status
    from openclaw_memory.types.where import Where
    from openclaw_memory.workspace import Workspace


class BuiltinBackend:
    """The engine of this library: a store, kept up to date by an `IndexService` and searched by a `Retriever`."""

    def __init__(
        self,
        workspace: Workspace,
        store: Store | Callable[[], Store],
        embedder: EmbedderChoice,
        config: MemoryConfig,
        *,
        notices: Sequence[str] = (),
        flush_failures: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._workspace, self._config, self._notices = workspace, config, tuple(notices)
        self._flush_failures = flush_failures
        self._embedders = make_selector(embedder, config.embedding)
        self.service = IndexService(workspace, self._embedders, config, store)
        self._retriever = Retriever(workspace, self.service, self._embedders, config)
        self._record_files = RecordFiles(workspace, config.records)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the index, as it is or as the next sync builds it; None for keyword search.

        Raises:
            EmbedderError: It is unavailable.
        """
        return _embedder(self.service, self._embedders)

    @_forks.cached_property
    def documents(self) -> Documents:
        """What frameworks add to this memory."""
        from openclaw_memory.documents import Documents

        # Not with methods of this object: it would only be freed, with what it keeps open, by a garbage collection.
        search = partial(_search, self._retriever, self._record_files, self._config)
        embedder, hidden = partial(_embedder, self.service, self._embedders), self._record_files.hidden
        return Documents(self._workspace, self.service, search, embedder, hidden)

    @_forks.cached_property
    def records(self) -> Records:
        """The facts of this memory."""
        from openclaw_memory.records import Records

        search = partial(_search, self._retriever, self._record_files, self._config)
        files, wrote = self._record_files, self.service.record_write
        return Records(self._workspace, self._config.records, search=search, files=files, wrote=wrote)

    @_forks.cached_property
    def heartbeat(self) -> Heartbeat:
        """What looks after this memory."""
        from openclaw_memory.heartbeat import Heartbeat

        return Heartbeat(self._workspace, self.records, self.service, self._config)

    def search(self, request: SearchRequest) -> SearchResults:
        """See `Memory.search`."""
        return _search(self._retriever, self._record_files, self._config, request)

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """See `Memory.get`."""
        self.service.check_open()
        excerpt = self._workspace.read_excerpt(path, start=start, lines=lines)
        self._record_files.check_shown(excerpt.path)
        return excerpt

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
    ) -> SyncReport:
        """See `Memory.sync`."""
        return self.service.sync(force, progress, wait)

    def status(self, *, deep: bool = False) -> Status:
        """See `Memory.status`."""
        self.service.check_open()
        from openclaw_memory.indexing.status import read_status

        return read_status(
            self.service,
            notices=[*self._notices, *self.documents.damaged(look=deep), *self.records.problems(look=deep)],
            flush=self._flush_failures(),
            heartbeat=self.heartbeat.recorded(),
            deep=deep,
        )

    def close(self) -> None:
        """See `Memory.close`."""
        self.service.close()
        self._retriever.close()
        self._embedders.close()


def _embedder(service: IndexService, embedders: EmbedderSelector) -> Embedder | None:
    service.check_open()
    return embedders.select_for_search(service.store().meta())


def _search(
    retriever: Retriever,
    records: RecordFiles,
    config: MemoryConfig,
    request: SearchRequest,
    *,
    passes: Callable[[str], bool] | None = None,
    where: Where | None = None,
) -> SearchResults:
    """Answer a request from files that pass `passes`, and chunks that pass `where`; all do where None."""
    from openclaw_memory.search.budget import within
    from openclaw_memory.search.request import apply_request, with_time_zone

    rules = apply_request(request, config.search)
    request = replace(request, now=with_time_zone(request.now))
    if request.filter.asks_metadata:
        from openclaw_memory.search.filters import chunk_filter

        where = chunk_filter(request.filter, config.records.decaying, config.records.half_life_days, request.now)
    if request.filter.phrases and request.min_score is None:
        rules = replace(rules, min_score=0.0)  # what holds the phrase is what was asked for
    answer = partial(retriever.answer, request, rules, where=where)
    found = answer(passes=passes)
    hidden = partial(records.hidden, now=request.now)
    if hidden(result.path for result in found.results):  # seldom: a heartbeat deletes what has expired
        found = answer(passes=lambda path: (passes is None or passes(path)) and not hidden((path,)))
    if request.max_chars is None:
        return found
    shown, omitted = within(found.results, request.max_chars)
    return replace(found, results=shown, omitted=omitted)
