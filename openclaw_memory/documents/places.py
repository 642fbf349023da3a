"""Where documents are: asked of the index while it follows their folder, and else of the files themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING

from openclaw_memory.errors import StoreError
from openclaw_memory.text.front_matter import PART_OF
from openclaw_memory.workspace import documents
from openclaw_memory.workspace.documents import Whereabouts
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER, name_of
from openclaw_memory.workspace.scan import notes_below

if TYPE_CHECKING:
    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.types import Store, SyncReport
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.document_cache import DocumentCache


class DocumentPlaces:
    """Finds the files of documents. Safe to use from several threads.

    A file that is made, moved or deleted changes the stamp of its folder. As long as the folders have the stamps that
    they had when the index last followed them, it knows every document; what it names is checked in the file.
    """

    def __init__(self, workspace: Workspace, cache: DocumentCache, service: IndexService) -> None:
        self._root, self._rules, self._cache, self._service = workspace.root, workspace.rules, cache, service
        self._followed: Mapping[str, int] = {}  # the folders of documents, with their stamps then
        self._names: AbstractSet[str] = frozenset()  # of the files in the folder, as `Whereabouts` has them

    def look(self, ids: Iterable[str]) -> Whereabouts:
        """Return where documents are. With the lock of the notes held, it stays so.

        Raises:
            WorkspaceError: A folder or a file cannot be read.
        """
        wanted = [doc_id for doc_id in ids if doc_id.strip()]
        if self.is_followed and (known := self._indexed(wanted)) is not None:
            return Whereabouts(known, self._indexed_models(), self._names, is_followed=True)
        found = documents.paths_by_id(self._root, self._rules, self._cache, wanted)
        listed = (self._cache.listed(*one).vectors for one in notes_below(self._root, DOCUMENTS_FOLDER, self._rules))
        return Whereabouts(found, {one for one in listed if one is not None}, documents.names_taken(self._root))

    def paths(self, ids: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Return the files of documents by their ids, as `documents.paths_by_id`; others may be among them.

        Raises:
            WorkspaceError: A folder or a file cannot be read.
        """
        wanted = [doc_id for doc_id in ids if doc_id.strip()]
        known = self._indexed(wanted) if self.is_followed else None
        return known if known is not None else documents.paths_by_id(self._root, self._rules, self._cache, wanted)

    def parts_of(self, whole: str) -> list[str] | None:
        """Return the paths of the documents that are parts of something; None where the index may not know all."""
        if not self.is_followed:
            return None
        with suppress(StoreError):
            paths = list(self._service.store().files(part_of=whole))
            found = (self._cache.try_load(path) for path in paths)
            if all(seen and seen.content and seen.content.fields.get(PART_OF) == whole for seen in found):
                return paths
        return None

    @property
    def is_followed(self) -> bool:
        """Whether the index knows all documents, as far as their folders show."""
        return bool(self._followed) and self._stamps(self._followed) == self._followed

    def sync(
        self, was_followed: bool, changed: Iterable[str], prepare: Callable[[Store], None] | None = None
    ) -> SyncReport:
        """Have the index follow the files `changed`, which were just written or removed.

        `was_followed` says whether it followed all others before that: then it is enough to look at these. `prepare` is
        called with the store first.
        """
        stamps = self._stamps(self._followed) if was_followed else self._folders()
        names = set(self._names) if was_followed else documents.names_taken(self._root)
        report = self._service.sync(prepare=prepare, only_written=was_followed)
        if was_followed:
            for path in changed:
                folder, _, name = path.rpartition("/")
                if folder == DOCUMENTS_FOLDER:
                    change = names.add if os.path.lexists(self._root / path) else names.discard
                    change(documents.folded(name))
        is_whole = report.ok and not any(one.path.startswith(f"{DOCUMENTS_FOLDER}/") for one in report.skipped)
        self._followed, self._names = (stamps, names) if is_whole else ({}, set())
        return report

    def _indexed(self, wanted: Sequence[str]) -> dict[str, list[str]] | None:
        """Return what the index says of the files of documents; None where they say something else."""
        found: dict[str, list[str]] = {}
        with suppress(StoreError):
            with self._service.store().snapshot() as store:
                stored = store.meta()
                if stored is None or not stored.complete:
                    return None
                for path, record in store.files(ids=wanted).items():
                    found.setdefault(str(record.doc_id), []).append(path)
            for doc_id in wanted:
                own = documents.path_of(doc_id)
                if doc_id not in found and documents.folded(own.rpartition("/")[2]) in self._names:
                    found[doc_id] = [own]
                    if not self._is_at(own, doc_id):
                        del found[doc_id]
                elif doc_id in found:
                    if not all(self._is_at(path, doc_id) for path in found[doc_id]):
                        return None
                    found[doc_id].sort(key=lambda path: path != own)
            return found
        return None

    def _is_at(self, path: str, doc_id: str) -> bool:
        """Whether a file holds the document with this id, or one without a readable id that its name stands for."""
        seen = self._cache.try_load(path)
        if seen is None or seen.content is None:
            return False
        return seen.doc_id == doc_id or (
            seen.doc_id is None and (name_of(path) == doc_id or path == documents.path_of(doc_id))
        )

    def _indexed_models(self) -> set[tuple[str, int]]:
        identities = self._service.store().identities()
        parted = (identity.rpartition("#") for identity in identities)
        return {(model, int(dims)) for model, _, dims in parted}

    def _folders(self) -> dict[str, int]:
        """Return the folders in which documents may be, with their stamps."""
        top = str(self._root / DOCUMENTS_FOLDER)
        stamps: dict[str, int] = {}
        for folder, _, _ in os.walk(top):
            stamps |= self._stamps([folder])
        return stamps

    @staticmethod
    def _stamps(folders: Iterable[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for folder in folders:
            with suppress(OSError):
                found[folder] = os.lstat(folder).st_mtime_ns
        return found
