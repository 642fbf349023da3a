"""`DocumentFiles`: read, write and delete documents by the paths of their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from openclaw_memory.events import locate_files, locate_paths, observed
from openclaw_memory.indexing.changes import compare
from openclaw_memory.indexing.service import IndexService
from openclaw_memory.workspace import Workspace, documents
from openclaw_memory.workspace.document_cache import DocumentCache
from openclaw_memory.workspace.documents import Fields, Upserted

Hidden: TypeAlias = Callable[[Iterable[str]], frozenset[str]]


class DocumentFiles:
    """The documents of a memory by the paths of their files. Safe to use from several threads.

    The next sync indexes changes made here.
    """

    def __init__(self, workspace: Workspace, cache: DocumentCache, service: IndexService, hidden: Hidden) -> None:
        """Read and write the files of a workspace; `service` keeps its index, `hidden` as for `Documents`."""
        self._files, self._cache, self._service = workspace.files, cache, service
        self._workspace, self._hidden, self.events = workspace, hidden, workspace.events

    def write(self, path: str, fields: Mapping[str, Any], text: str) -> None:
        """Write one document; see `write_many`.

        Args:
            path: Its file, below `memory/`.
            fields: JSON values by names of `a-z` and `_`, written above the text.
            text: The text that searches find.

        Raises:
            InvalidInputError, PathNotAllowedError, WriteError: As `write_many`.
        """
        self.write_many([(path, fields, text)])

    def write_many(self, files: Iterable[tuple[str, Mapping[str, Any], str]]) -> None:
        """Write documents at paths below `memory/`, each in place of the one there.

        Args:
            files: Path, fields and text of each, as `write` takes them.

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
        apply_change(self._service, documents.write, self._files, files)

    @observed("get", lambda content, _, path: [] if content is None else [(path, "")])
    def read(self, path: str) -> tuple[Mapping[str, Any], str] | None:
        """Return the fields and the text of a document; None if there is no file, a person's own, or a hidden record.

        They are as they were written, with their secrets, which searches and `iterate` mask.
        The fields are the same object as long as the file is the same: do not change them, change a copy.

        Args:
            path: The file of the document, below `memory/`.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file.
        """
        self._service.check_open()
        path = self._files.find(path)
        content = self._cache.load_unmasked(path).content
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
        return bool(apply_change(self._service, documents.remove, self._files, paths))

    @observed("list", lambda item, *_, **__: [(item[0], "")])
    def iterate(self, folder: str) -> Iterator[tuple[str, Mapping[str, Any], str]]:
        """Yield path, fields (do not change them) and text of each document in a folder, in the order of paths.

        Secrets are masked. Hidden records, expired or without a valid signature, are left out.

        Args:
            folder: A folder in `memory/`, or `memory` itself; those inside it count too.

        Raises:
            PathNotAllowedError: The folder is outside `memory/`.
            WorkspaceError: A folder or a file cannot be read.
        """
        self._service.check_open()
        for path, content in documents.iterate_documents(self._cache, folder):
            if not self._hidden((path,)):
                yield path, content.fields, content.text

    def sync(self, paths: Iterable[str], *, wait: float | None = None) -> None:
        """Bring the index up to date with the documents at these paths, whatever else has changed.

        Args:
            paths: Files of documents, below `memory/`.
            wait: How many seconds to wait for another sync; as long as it takes if None.

        Raises:
            SyncBusyError: Another sync was not done after `wait` seconds.
            StoreError: The index cannot be written.
        """
        self._service.check_open()
        names = [self._files.find(path) for path in paths]
        files = self._workspace.list_notes_at(names)
        difference = None if files is None else compare(files, self._service.store().get_files(names))
        if difference is None or difference.to_read:
            self._service.record_write(None if difference is None else [file.path for file in difference.to_read])
            self._service.sync(wait=wait, only_written=True)


def apply_change(service: IndexService, change: Callable[..., Any], *arguments: Any) -> Any:
    """Change files by a function of `workspace.documents`, and record the changes, also those before a failure."""
    changed: Any = None
    try:
        changed = change(*arguments)
        return changed
    finally:
        if changed is None or changed:
            service.record_write(changed.changed if isinstance(changed, Upserted) else changed)
