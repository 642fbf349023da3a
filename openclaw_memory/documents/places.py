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
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER
from openclaw_memory.workspace.scan import walk_notes

if TYPE_CHECKING:
    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.types import Store, SyncReport
    from openclaw_memory.workspace.document_cache import DocumentCache


class DocumentPlaces:
    """Finds the files of documents. Safe to use from several threads.

    A file that is made, moved or deleted changes the stamp of its folder. As long as the folders have the stamps that
    they had when the index last followed them, it knows every document; what it names is checked in the file.
    """

    def __init__(self, cache: DocumentCache, service: IndexService) -> None:
        self._root, self._cache, self._service = cache.files.root, cache, service
        # The folders of documents with their stamps then, and the names of their files, as `Whereabouts` has them.
        self._known: tuple[Mapping[str, int], AbstractSet[str]] = ({}, frozenset())

    def look(self, keys: Iterable[str]) -> Whereabouts:
        """Return where documents are. With the lock of the notes held, it stays so.

        Raises:
            WorkspaceError: A folder or a file cannot be read.
        """
        wanted, (_, names) = list(keys), self._known
        if self.is_followed and (known := self._indexed(wanted, names)) is not None:
            return Whereabouts(known, self._indexed_models(), names, is_followed=True)
        found = documents.find_paths(self._cache, wanted)
        listed = (self._cache.load_summary(*one).vectors for one in walk_notes(self._cache.files, DOCUMENTS_FOLDER))
        return Whereabouts(found, {one for one in listed if one is not None}, self._folders()[1])

    def paths(self, keys: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Return the files of documents by their keys, as `documents.paths_by_id`; others may be among them.

        Raises:
            WorkspaceError: A folder or a file cannot be read.
        """
        wanted = list(keys)
        known = self._indexed(wanted, self._known[1]) if self.is_followed else None
        return known if known is not None else documents.find_paths(self._cache, wanted)

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
        stamps, _ = self._known
        return bool(stamps) and self._stamps(stamps) == stamps

    def sync(
        self, was_followed: bool, changed: Iterable[str], prepare: Callable[[Store], None] | None = None
    ) -> SyncReport:
        """Have the index follow the files `changed`, which were just written or removed.

        `was_followed` says whether it followed all others before that: then it is enough to look at these. `prepare` is
        called with the store first.
        """
        stamps, names = self._known
        if was_followed:
            stamps = self._stamps([*stamps, *{path.rpartition("/")[0] for path in changed}])
            there = {documents.fold_path(path): os.path.lexists(self._root / path) for path in changed}
            names = {*names, *there} - {name for name, is_there in there.items() if not is_there}
        else:
            stamps, names = self._folders()
        report = self._service.sync(prepare=prepare, only_written=was_followed)
        is_whole = report.ok and not any(one.path.startswith(f"{DOCUMENTS_FOLDER}/") for one in report.skipped)
        self._known = (stamps, names) if is_whole else ({}, frozenset())
        return report

    def _indexed(self, wanted: Sequence[str], names: AbstractSet[str]) -> dict[str, list[str]] | None:
        """Return what the index says of the files of documents; None where they say something else."""
        found: dict[str, list[str]] = {}
        with suppress(StoreError):
            with self._service.store().snapshot() as store:
                stored = store.meta()
                if stored is None or not stored.complete:
                    return None
                for path, record in store.files(ids=wanted).items():
                    found.setdefault(str(record.doc_id), []).append(path)
            for key in wanted:
                own = documents.make_path(key)
                if key in found:
                    if not all(self._is_at(path, key) for path in found[key]):
                        return None
                    found[key] = [*({own} & {*found[key]}), *(path for path in found[key] if path != own)]
                elif documents.fold_path(own) in names and self._is_at(own, key):
                    found[key] = [own]
            return found
        return None

    def _is_at(self, path: str, key: str) -> bool:
        """Whether a file holds the document with this key, or one without a readable id that its name refers to."""
        seen = self._cache.try_load(path)
        if seen is None or seen.content is None:
            return False
        return seen.doc_id == key or (
            seen.doc_id is None and (documents.derive_key(path) == key or path == documents.make_path(key))
        )

    def _indexed_models(self) -> set[tuple[str, int]]:
        identities = self._service.store().identities()
        parted = (identity.rpartition("#") for identity in identities)
        return {(model, int(dims)) for model, _, dims in parted}

    def _folders(self) -> tuple[dict[str, int], set[str]]:
        """Return the folders in which documents may be, with their stamps, and the names of the files in them."""
        stamps: dict[str, int] = {}
        names: set[str] = set()
        for folder, inner, files in os.walk(self._root / DOCUMENTS_FOLDER):
            path = os.path.relpath(folder, self._root).replace(os.sep, "/")
            stamps |= self._stamps([path])
            names |= {documents.fold_path(f"{path}/{name}") for name in (*inner, *files)}
        return stamps, names

    def _stamps(self, folders: Iterable[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for folder in folders:
            with suppress(OSError):
                found[folder] = os.lstat(self._root / folder).st_mtime_ns
        return found
