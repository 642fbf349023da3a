"""Find the files of documents: by the index while it follows their folder, else by reading the files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING

from openclaw_memory.errors import StoreError
from openclaw_memory.workspace import documents
from openclaw_memory.workspace.documents import Whereabouts
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER
from openclaw_memory.workspace.scan import walk_notes

if TYPE_CHECKING:
    from openclaw_memory.indexing.service import IndexService, Prepare
    from openclaw_memory.workspace.document_cache import DocumentCache


class DocumentLocations:
    """Finds the files of documents. Safe to use from several threads.

    A file that is made, moved or deleted changes the stamp of its folder. As long as the folders have the stamps that
    they had when the index last followed them, it knows every document; its answers are checked in the files.
    """

    def __init__(self, cache: DocumentCache, service: IndexService) -> None:
        self._root, self._cache, self._service = cache.files.root, cache, service
        # The folders of documents with their stamps then, and the names of their files, as `Whereabouts` has them.
        self._followed: tuple[Mapping[str, int], set[str]] = ({}, set())

    @property
    def is_followed(self) -> bool:
        """True if the index knows all documents, as far as their folders show."""
        stamps, _ = self._followed
        return bool(stamps) and self._read_stamps(stamps) == stamps

    def look(self, keys: Iterable[str]) -> Whereabouts:
        """Return the places of documents. With the lock of the notes held, they stay so.

        Raises:
            WorkspaceError: A folder or a file cannot be read.
        """
        names = list(keys)
        _, files = self._followed
        if self.is_followed and (indexed := self._find_indexed(names, files)) is not None:
            identities = (identity.rpartition("#") for identity in self._service.store().count_identities())
            models = {(model, int(dims)) for model, _, dims in identities}
            return Whereabouts(indexed, models, files, is_followed=True)
        paths = documents.find_paths(self._cache, names)
        embeddings = (self._cache.load(*file).embedding for file in walk_notes(self._cache.files, DOCUMENTS_FOLDER))
        models = {(embedding.model, embedding.dims) for embedding in embeddings if embedding is not None}
        return Whereabouts(paths, models, self._read_folders()[1])

    def find_paths(self, keys: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Return the files of documents by their keys, as `documents.find_paths`; others may be among them.

        Raises:
            WorkspaceError: A folder or a file cannot be read.
        """
        names = list(keys)
        indexed = self._find_indexed(names, self._followed[1]) if self.is_followed else None
        return indexed if indexed is not None else documents.find_paths(self._cache, names)

    def sync(self, was_followed: bool, changed: Iterable[str], prepare: Prepare = lambda _: None) -> None:
        """Have the index follow files that were just written or removed.

        Args:
            was_followed: Whether it followed all others before that: then it is enough to look at these.
            changed: The files.
            prepare: Called with the store first.
        """
        stamps, names = self._followed
        if was_followed:
            stamps = self._read_stamps([*stamps, *{path.rpartition("/")[0] for path in changed}])
            exists = {documents.fold_path(path): os.path.lexists(self._root / path) for path in changed}
            names |= exists.keys()
            names -= {name for name, is_there in exists.items() if not is_there}
        else:
            stamps, names = self._read_folders()
        report = self._service.sync(prepare=prepare, only_written=was_followed)
        is_whole = report.ok and not any(skipped.path.startswith(f"{DOCUMENTS_FOLDER}/") for skipped in report.skipped)
        self._followed = (stamps, names) if is_whole else ({}, set())

    def _find_indexed(self, keys: Sequence[str], names: AbstractSet[str]) -> dict[str, list[str]] | None:
        """Return the files of documents by the index; None if the files hold something else."""
        paths: dict[str, list[str]] = {}
        with suppress(StoreError):
            with self._service.store().snapshot() as store:
                stored = store.read_meta()
                if stored is None or not stored.complete:
                    return None
                for path, record in store.get_files(ids=keys).items():
                    paths.setdefault(str(record.doc_id), []).append(path)
            for key in keys:
                own = documents.make_path(key)
                if key in paths:
                    if not all(self._is_at(path, key) for path in paths[key]):
                        return None
                    paths[key].sort(key=lambda path: path != own)
                elif documents.fold_path(own) in names and self._is_at(own, key):
                    paths[key] = [own]
            return paths
        return None

    def _is_at(self, path: str, key: str) -> bool:
        """Return whether a file holds the document with this key, by its id or else by its name."""
        cached = self._cache.try_load(path)
        if cached is None or cached.content is None:
            return False
        if cached.doc_id is not None:
            return cached.doc_id == key
        return documents.derive_key(path) == key or path == documents.make_path(key)

    def _read_folders(self) -> tuple[dict[str, int], set[str]]:
        """Return the folders of documents with their stamps, and the names of the files in them."""
        stamps: dict[str, int] = {}
        names: set[str] = set()
        for folder, inner, files in os.walk(self._root / DOCUMENTS_FOLDER):
            path = os.path.relpath(folder, self._root).replace(os.sep, "/")
            stamps |= self._read_stamps([path])
            names |= {documents.fold_path(f"{path}/{name}") for name in (*inner, *files)}
        return stamps, names

    def _read_stamps(self, folders: Iterable[str]) -> dict[str, int]:
        stamps: dict[str, int] = {}
        for folder in folders:
            with suppress(OSError):
                stamps[folder] = os.lstat(self._root / folder).st_mtime_ns
        return stamps
