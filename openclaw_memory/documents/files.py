"""`DocumentFiles`: read, write and delete documents by the paths of their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.config.sections import MAX_RESULTS
from openclaw_memory.documents.conversion import WIDER
from openclaw_memory.errors import SyncBusyError
from openclaw_memory.events import locate_files, locate_paths, observed
from openclaw_memory.indexing.service import IndexService
from openclaw_memory.search.filters import SearchFilter
from openclaw_memory.search.request import SearchRequest
from openclaw_memory.types import FileRecord, MemoryFile
from openclaw_memory.workspace import Workspace, documents
from openclaw_memory.workspace.document_cache import DocumentCache
from openclaw_memory.workspace.documents import Fields, Upserted

if TYPE_CHECKING:
    from openclaw_memory.search.results import SearchResults

Hidden: TypeAlias = Callable[[Iterable[str]], frozenset[str]]


class DocumentFiles:
    """The documents of a memory by the paths of their files. Safe to use from several threads.

    The next sync indexes changes made here.
    """

    def __init__(
        self,
        workspace: Workspace,
        cache: DocumentCache,
        service: IndexService,
        search: Callable[..., SearchResults],
        hidden: Hidden,
    ) -> None:
        """Read and write the files of a workspace; `service`, `search` and `hidden` as for `Documents`."""
        self._files, self._cache, self._service, self._search = workspace.files, cache, service, search
        self._workspace, self._hidden, self.events = workspace, hidden, workspace.events
        self._lacking = "anything"  # of the files in the index

    def write(self, *files: tuple[str, Mapping[str, Any], str]) -> None:
        """Write documents at paths below `memory/`, each in place of the one there.

        Args:
            files: Of each its path below `memory/`, its fields, JSON values by names of `a-z` and `_`, and its text,
                which searches find.

        Raises:
            InvalidInputError: A field is not JSON, a text is not Unicode, a masked text would replace its secret, or
                a name holds one. Nothing was written.
            PathNotAllowedError: A path is outside `memory/`, is that of a daily note, or of a person's own file.
                Nothing was written.
            WriteError: A document is larger than `files.max_bytes` (nothing was written), or could not be written.
        """
        self._service.check_open()
        if contents := [Fields(*file) for file in files]:
            self._write(contents)

    @observed("add", lambda _, __, files: locate_files(files), writes=True)
    def _write(self, files: Sequence[Fields]) -> None:
        for file in files:  # a name is shown wherever its document is
            for name in (file.path, file.fields.get("namespace"), file.fields.get("key")):
                documents.check_no_secret(name, "the name")
        self._lacking = self._lacking or "what was written"
        apply_change(self._service, documents.write, self._files, files)

    @observed("get", lambda content, _, path, **__: [] if content is None else [(path, "")])
    def read(self, path: str, *, masked: bool = False) -> tuple[Mapping[str, Any], str] | None:
        """Return the fields and the text of a document; None if there is no file, a person's own, or a hidden record.

        The fields are the same object as long as the file is the same: do not change them, change a copy.

        Args:
            path: The file of the document, below `memory/`.
            masked: Whether secrets are masked, as in the results of a search.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file.
        """
        self._service.check_open()
        path = self._files.find(path)
        content = (self._cache.load(path) if masked else self._cache.load_unmasked(path)).content
        if content is None or self._hidden((self._files.locate(path).path,)):
            return None
        return content.fields, content.text

    @observed("delete", lambda is_deleted, _, *paths: locate_paths(paths) if is_deleted else [], writes=True)
    def delete(self, *paths: str) -> bool:
        """Delete documents; return whether there was any.

        Args:
            paths: The files of the documents, below `memory/`. Missing ones are left out.

        Raises:
            PathNotAllowedError: A path is that of a person's own file.
            WriteError: A file could not be deleted.
        """
        self._service.check_open()
        self._lacking = self._lacking or "what was written"
        return bool(apply_change(self._service, documents.remove, self._files, paths))

    def sync(self, *, wait: float | None = None) -> Mapping[str, FileRecord | MemoryFile]:
        """Index the files that were written here, and return all by path, the same object as long as none changes.

        The first time everything is indexed. Changes that people and other programs make later are, as for a search,
        found by the next sync.

        Args:
            wait: How many seconds to wait for another sync, which then leaves the index behind; as long as it takes if
                None.

        Raises:
            StoreError: The index cannot be written.
        """
        self._service.check_open()
        store = self._service.store()
        try:
            if self._lacking:
                self._service.sync(wait=wait, only_written=self._lacking == "what was written")
                self._lacking = ""
            elif self._service.is_behind():
                self._service.sync_if_behind()
        except SyncBusyError:
            return {**store.get_files(), **{file.path: file for file in self._workspace.scan().files}}
        return store.get_files()

    @observed("search", lambda results, *_, **__: locate_paths(path for path, _ in results))
    def search(self, query: str, k: int, folder: str, passes: Callable[[str], bool]) -> list[tuple[str, float]]:
        """Return the paths of at most k documents in a folder that answer best, best first, with their scores.

        Args:
            query: The question.
            k: How many documents.
            folder: The folder, below `memory/`.
            passes: A test of the path of a document.
        """
        only, count = SearchFilter(source="memory", path=f"{folder}/"), min(MAX_RESULTS, k)
        while True:
            results = self._search(SearchRequest(query, max_results=count, min_score=0.0, filter=only, passes=passes))
            scores: dict[str, float] = {}
            for result in results:
                scores.setdefault(result.path, result.score)
            if len(scores) >= k or len(results) < count or count == MAX_RESULTS:
                return list(scores.items())[:k]
            count = min(MAX_RESULTS, WIDER * count)


def apply_change(service: IndexService, change: Callable[..., Any], *arguments: Any) -> Any:
    """Change files by a function of `workspace.documents`, and record the changes, also those before a failure."""
    changed: Any = None
    try:
        changed = change(*arguments)
        return changed
    finally:
        if changed is None or changed:
            service.record_write(changed.changed if isinstance(changed, Upserted) else changed)
