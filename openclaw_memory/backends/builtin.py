"""Search the index of a workspace, by the built-in engine; mask the answers of plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import structs

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.embeddings.selection import make_selector
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.indexing.service import IndexService
from openclaw_memory.records.files import RecordFiles
from openclaw_memory.retriever import Retriever
from openclaw_memory.search.request import resolve_request
from openclaw_memory.search.results import cut_to_budget
from openclaw_memory.text.policies import parse_about
from openclaw_memory.types import Embedder, Excerpt, Progress, SearchResult, Store, SyncReport
from openclaw_memory.workspace.paths import is_record

if TYPE_CHECKING:
    from openclaw_memory.backends import Backend
    from openclaw_memory.documents import Documents
    from openclaw_memory.embeddings.selection import EmbedderChoice
    from openclaw_memory.records import Records
    from openclaw_memory.records.heartbeat import Heartbeat
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.search.results import SearchResults
    from openclaw_memory.types import Status
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
        self._record_files = RecordFiles(workspace)
        self._retriever = Retriever(workspace, self.service, self._embedders, config, self._record_files)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the index, as it is or as the next sync builds it; None for keyword search.

        Raises:
            EmbedderError: It is unavailable.
        """
        self.service.check_open()
        return self._embedders.select_for_search(self.service.store().read_meta())

    @cached_property
    def documents(self) -> Documents:
        """The documents that frameworks add to this memory."""
        from openclaw_memory.documents import Documents

        # Not with methods of this object: it would only be freed, with what it keeps open, by a garbage collection.
        return Documents(self._workspace, self.service, self._retriever.search, self._record_files.find_hidden)

    @cached_property
    def records(self) -> Records:
        """The facts of this memory."""
        from openclaw_memory.records import Records

        search, files, on_write = self._retriever.search, self._record_files, self.service.record_write
        return Records(self._workspace, self._config.records, search=search, files=files, on_write=on_write)

    @cached_property
    def heartbeat(self) -> Heartbeat:
        """The upkeep of this memory."""
        from openclaw_memory.records.heartbeat import Heartbeat

        return Heartbeat(self._workspace, self.records, self.service)

    def search(self, request: SearchRequest) -> SearchResults:
        """See `Memory.search`."""
        return self._retriever.search(request)

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """See `Memory.get`."""
        self.service.check_open()
        excerpt = self._workspace.read_excerpt(path, start=start, lines=lines)
        self._record_files.check_visible(excerpt.path)
        return excerpt

    def sync(
        self, *, force: bool = False, progress: Callable[[Progress], None] | None = None, wait: float | None = None
    ) -> SyncReport:
        """See `Memory.sync`."""
        return self.service.sync(force, progress, wait, reason="manual")

    def status(self, *, deep: bool = False) -> Status:
        """See `Memory.status`."""
        self.service.check_open()
        from openclaw_memory.indexing.status import read_status

        return read_status(
            self.service,
            notices=[*self._notices, *self.documents.list_problems(look=deep), *self.records.list_problems()],
            flush=self._flush_failures(),
            heartbeat=self.heartbeat.read_latest(),
            deep=deep,
        )

    def close(self) -> None:
        """See `Memory.close`."""
        self.service.close()
        self._embedders.close()


def search_backend(
    backend: Backend, request: SearchRequest, workspace: Workspace, config: MemoryConfig
) -> SearchResults:
    """Search with an engine that knows neither policies nor signatures, and return the results as they may be shown.

    Records that have expired or were forged are left out, and texts that policies mask as a whole.

    Raises:
        QueryError: An argument of the search has a wrong type or value.
    """
    now = resolve_request(request, config).now
    answer = backend.search(request)
    records = RecordFiles(workspace)
    hidden = records.find_hidden((result.path for result in (*answer.results, *answer.rejected)), now)

    def show(results: Sequence[SearchResult]) -> tuple[SearchResult, ...]:
        visible = (result for result in results if result.path not in hidden)
        masked = (structs.replace(result, snippet=_mask(result.snippet, result.path, workspace)) for result in visible)
        return tuple(result for result in masked if result.snippet.strip())

    answer = replace(answer, results=show(answer.results), rejected=show(answer.rejected))
    if request.max_chars is None:
        return answer
    results, omitted = cut_to_budget(answer.results, request.max_chars)
    return replace(answer, results=results, omitted=answer.omitted + omitted)


def mask_excerpt(excerpt: Excerpt, workspace: Workspace) -> Excerpt:
    """Return lines from an engine that knows neither policies nor signatures, as they may be shown.

    Raises:
        NotFoundError: They are those of a record that has expired.
        RecordError: They are those of a record that no signature vouches for.
    """
    RecordFiles(workspace).check_visible(excerpt.path)
    return structs.replace(excerpt, text=_mask(excerpt.text, excerpt.path, workspace))


def _mask(text: str, path: str, workspace: Workspace) -> str:
    about = None
    if workspace.policies and is_record(path):
        with suppress(OpenClawMemoryError, OSError):  # only the engine has it: rules by the record cannot be asked
            about = parse_about(workspace.read(path))
    return workspace.policies.mask(text, about)
