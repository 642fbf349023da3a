"""`Memory`, the front door: it holds the parts of one memory and hands each call to the part that does the work."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from openclaw_memory.config import Embedding, MemoryConfig
from openclaw_memory.config.places import agent_folders
from openclaw_memory.embeddings._choice import EmbedderChoice, Embedders, GuardedEmbedder, embedders_of, sent_to
from openclaw_memory.errors import CorruptIndexError, EmbedderError, StoreError, WorkspaceError
from openclaw_memory.types import Embedder, Excerpt, IndexMeta, Progress, Source, Status, Store, SyncReport

if TYPE_CHECKING:
    import datetime

    from openclaw_memory.search import SearchResults, WordVectors
    from openclaw_memory.workspace import Workspace


class Memory:
    """Notes in a folder, and the index that finds them again. Safe to use from several threads.

    `store` and `embedder` are handed in ready, or as functions without arguments that make them. Such a function is
    called at the first use, so that opening a memory loads no model and creates no file. `close` closes the store.
    """

    def __init__(
        self,
        workspace: Workspace,
        store: Store | Callable[[], Store],
        embedder: Embedder | Embedders | Callable[[], Embedder | None] | None,
        config: MemoryConfig | None = None,
        *,
        index_path: Path | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        """Put a memory together from its parts.

        `index_path` is the file behind `store`, shown by `status`; `sync(force=True)` can replace a damaged index
        only if it is given and `store` is a function. `notices` are words that `status` repeats.
        """
        self.workspace = workspace
        self.config = config or MemoryConfig()
        self.index_path = index_path
        self._notices = (*self.config.notices, *notices)
        self._make_store = store if callable(store) else None
        self._store = None if callable(store) else store
        self._embedders = _embedders(embedder, self.config.embedding)
        self._words: WordVectors | None = None
        # Two locks, so that a search waits for a part that is being made, and never for a sync. The second one is
        # reentrant, because a progress callback may search or sync in the thread that is syncing.
        self._making = threading.RLock()
        self._syncing = threading.RLock()
        self._in_sync = self._in_rebuild = False  # `_in_rebuild`: the sync under way began with a complete index
        self._last: SyncReport | None = None
        self._behind = False
        self._lacking: Mapping[str, int] | None = None  # as the store says; None after a sync, until it is asked again
        self._appended = self._covered = 0  # notes appended here, and how many of them the last sync has seen
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        embedder: EmbedderChoice = "default",
        config: MemoryConfig | None = None,
        index_path: str | os.PathLike[str] | None = None,
    ) -> Self:
        """The memory of the workspace folder `path`, with the usual parts. Nothing is read or written yet.

        The index is `<workspace>/.memory/index.sqlite`, or a file in the user's cache folder where the workspace
        cannot be written. `embedder` is `"default"` (what `config.embedding` says: the static model, offline), the
        name of a provider, an embedder, a function from a list of texts to their vectors, or None for keywords only.
        `<workspace>/.memory/config.toml` may set chunking, ignore patterns and debounce.

        Raises:
            WorkspaceError: `path` is missing or is not a folder.
            ConfigError: the workspace's own configuration is wrong, nobody knows the provider, or `embedder` is none
                of the above.
        """
        from openclaw_memory.store.place import DERIVED_FOLDER, index_place
        from openclaw_memory.workspace import Workspace

        settings = config or MemoryConfig()
        workspace = Workspace.open(path, settings.files)
        settings = settings.with_workspace_file(workspace.root / DERIVED_FOLDER / "config.toml")
        index, notices = (Path(index_path).expanduser(), ()) if index_path else index_place(workspace.root)
        return cls(
            replace(workspace, rules=settings.files),
            lambda: _open_store(index),
            embedders_of(embedder, settings.embedding),
            settings,
            index_path=index,
            notices=notices,
        )

    @classmethod
    def for_agent(
        cls,
        agent_id: str = "main",
        *,
        workspace: str | os.PathLike[str] | None = None,
        embedder: EmbedderChoice = "default",
        config: MemoryConfig | None = None,
    ) -> Self:
        """The memory of one of OpenClaw's agents, in OpenClaw's own layout.

        Notes are in `<state>/workspace` for `main`, in `<state>/workspace-<id>` for others, or in `workspace`; the
        index is `<state>/memory/<id>.sqlite`. `<state>` is `~/.openclaw`, or what `OPENCLAW_STATE_DIR` or
        `OPENCLAW_HOME` say.

        Raises:
            ConfigError: the id holds other characters than letters, digits, `-` and `_`.
            WorkspaceError: the agent's workspace is missing.
        """
        notes, index = agent_folders(agent_id)
        return cls.open(workspace or notes, embedder=embedder, config=config, index_path=index)

    def sync(self, force: bool = False, progress: Callable[[Progress], None] | None = None) -> SyncReport:
        """Bring the index up to date with the files. See `openclaw_memory.sync.sync` for what the report tells.

        `force` builds it again; a damaged index is then kept under another name, and `rebuilt` says which. Searches
        in other threads go on meanwhile, by the index as it then is. A second sync waits for the first.

        Raises:
            WorkspaceError, StoreError: as `openclaw_memory.sync.sync`.
            CorruptIndexError: the index is damaged, and `force` is not set.
        """
        with self._syncing:
            outer, appended = (self._in_sync, self._in_rebuild), self._appended
            self._in_sync = True
            self._behind = self._behind or force
            try:
                report = self._sync(force, progress)
            except BaseException:
                self._behind = True
                raise
            finally:
                self._in_sync, self._in_rebuild = outer
            self._behind, self._covered, self._last, self._lacking = not report.ok, appended, report, None
            return report

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        explain: bool = False,
    ) -> SearchResults:
        """The lines that answer `query`, best first; none for a blank query.

        A workspace that was never synced to the end is synced first; later searches answer from the index as it is,
        and never look at the files: `stale` says when the index is known to be behind, by an append, a sync that
        failed, or a rebuild under way. An index of another embedder answers by keywords until the next sync, and so
        does one whose embedder fails; `reason` says so. `max_results` above 1000 counts as 1000; `min_score` lies in
        [0, 1]; `source` is "memory", "sessions" or None for both.

        Raises:
            QueryError: an argument has a wrong type or value.
            CorruptIndexError: the index is damaged; `sync(force=True)` builds a new one.
        """
        from openclaw_memory.search import search
        from openclaw_memory.search.wishes import rules_for_one

        rules = rules_for_one(self.config.search, query, max_results, min_score, source)
        self._make_searchable()
        store = self._opened_store()
        stored = store.meta()
        embedder, reason, stale = self._for_search(stored)
        results = search(
            query,
            store=store,
            embedder=embedder,
            rules=rules,
            source=source,
            word_vectors=None if embedder is None else self._word_vectors(embedder),
            chunks_speak=embedder is not None and not hasattr(embedder.inner, "word_vectors"),
            explain=explain,
        )
        # A rebuild that began amid the search has taken rows from under it: meta then differs.
        stale = stale or store.meta() != stored
        return replace(results, stale=stale, reason=results.reason or reason)

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Lines of a memory file, straight from disk; `start` is 1-based. `next_start` of the answer leads on.

        Raises:
            PathNotAllowedError: `path` leaves the workspace or is not a memory file.
            NotFoundError: there is no such file, or no such line.
            QueryError: `start` or `lines` is not a whole number above zero.
        """
        self._check_open()
        return self.workspace.excerpt(path, start=start, lines=lines)

    def append(self, text: str, *, date: datetime.date | str | None = None, title: str | None = None) -> Excerpt:
        """Add `text` to `memory/<date>.md` in one atomic write; today when `date` is None, else a date or YYYY-MM-DD.

        The index is not touched: the next sync finds the note, and until then searches are `stale`.

        Raises:
            QueryError: `text` is blank, or `date` is not a date.
            WriteError: the file could not be written; nothing was changed.
            StoreError: the memory is closed.
        """
        self._check_open()
        written = self.workspace.append(text, date=date, title=title)
        with self._making:
            self._appended += 1
        return written

    def status(self, deep: bool = False) -> Status:
        """What is indexed, with what, and whatever works less well than it could. It changes nothing.

        With `deep`, both legs of the search are tried with a real query, and the whole index is checked.

        Raises:
            WorkspaceError: the folder has gone.
            CorruptIndexError: the index is damaged; `sync(force=True)` builds a new one.
        """
        self._check_open()
        from openclaw_memory.sync import describe
        from openclaw_memory.sync.status import status

        notices = list(self._notices)
        embedder = wanted = None
        there = self._store is not None or self.index_path is None or self.index_path.exists()
        store = self._opened_store() if there else None
        try:
            embedder = self._embedders.for_search(store.meta() if store else None)
            wanted = describe(embedder, self.config.chunking)
        except EmbedderError as error:
            notices.append(f"no embedder, search is by keywords: {error}")
        if embedder is not None and embedder.leaves_machine:
            notices.append(sent_to(embedder))
        return status(
            self.workspace,
            store,
            embedder,
            wanted,
            index_path=self.index_path,
            requested_provider=self._embedders.requested,
            passed_over=self._embedders.passed_over,
            last=self._last,
            notices=notices,
            deep=deep,
        )

    def close(self) -> None:
        """Close the store. Calling it twice is allowed; the memory cannot be used any more.

        A sync that runs in another thread ends with a StoreError; the next one goes on from there.
        """
        with self._making:
            self._closed = True
            if self._store is not None:
                self._store.close()
        self._embedders.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({str(self.workspace.root)!r})"

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self!r} is closed; open the memory again")

    def _opened_store(self) -> Store:
        with self._making:
            self._check_open()
            if self._store is None and self._make_store is not None:
                self._store = self._make_store()
            assert self._store is not None
            return self._store

    def _word_vectors(self, embedder: GuardedEmbedder) -> WordVectors:
        """Vectors of words, by which lines are compared: the embedder's own, or those of the model that ships."""
        with self._making:
            if self._words is None:
                self._words = getattr(embedder.inner, "word_vectors", None)
            if self._words is None:
                from openclaw_memory.embeddings.static import StaticEmbedder

                self._words = StaticEmbedder().word_vectors
            return self._words

    def _make_searchable(self) -> None:
        """Sync where there is no index, or one whose building was cut short; wait for a first sync under way here."""
        stored = self._opened_store().meta()
        if stored is not None and (stored.complete or self._in_rebuild):
            return
        from openclaw_memory.sync import somebody_is_at_work

        with self._syncing:
            stored = self._opened_store().meta()
            if self._in_sync or (stored is not None and (stored.complete or somebody_is_at_work(self.index_path))):
                return
            try:
                self.sync()
            except WorkspaceError:
                if self._opened_store().meta() is None:
                    raise  # what a cut index holds is better than no answer: `stale` says how much that is worth

    def _for_search(self, stored: IndexMeta | None) -> tuple[GuardedEmbedder | None, str | None, bool]:
        """The embedder that can ask this index, why there is none though one is wanted, and whether it is behind."""
        from openclaw_memory.sync import describe, outdated
        from openclaw_memory.sync.status import told_of_lacking

        stale = self._behind or self._appended != self._covered or stored is None or not stored.complete
        try:
            embedder = self._embedders.for_search(stored)
        except EmbedderError as error:
            other = stored is not None and stored.provider != self._embedders.requested
            return None, f"keywords alone were searched: {error}", stale or other
        difference = outdated(stored, describe(embedder, self.config.chunking)) if stored else None
        if stored is None or embedder is None or stored.identity == embedder.identity:
            if self._lacking != {}:  # where some were, another process may have caught up meanwhile
                self._lacking = self._opened_store().lacking()
            reasons = told_of_lacking(self._lacking)
            return embedder, "; ".join(reasons) or None, stale or bool(reasons) or difference is not None
        if (lost := self._embedders.passed_over.get(stored.provider)) is not None:
            return None, f"keywords alone were searched: {lost}", True
        return None, f"keywords alone were searched, until the next sync builds the index again: {difference}", True

    def _sync(self, force: bool, progress: Callable[[Progress], None] | None) -> SyncReport:
        from openclaw_memory.sync import sync

        try:
            store = self._opened_store()
            stored = store.meta()
            embedder, trouble = self._embedders.for_sync(stored, force=force)
            self._in_rebuild = self._in_rebuild or (stored is not None and stored.complete)
            report = sync(
                self.workspace,
                store,
                embedder,
                self.config,
                trouble=trouble,
                requested=self._embedders.requested,
                force=force,
                progress=progress,
                index_path=self.index_path,
            )
            if embedder is not None and report.embedded and report.ok:
                embedder.is_heard()
            return report
        except CorruptIndexError as damage:
            if not force or self.index_path is None or self._make_store is None:
                raise
            return self._sync_anew(self.index_path, damage, progress)

    def _sync_anew(
        self, index_path: Path, damage: CorruptIndexError, progress: Callable[[Progress], None] | None
    ) -> SyncReport:
        from openclaw_memory.sync import set_aside

        with self._making:  # no search may open the damaged file again before it is out of the way
            if self._store is not None:
                self._store.close()
                self._store = None
            kept = set_aside(index_path)
        report = self._sync(False, progress)
        return replace(report, rebuilt=f"the index was damaged and is kept as {kept}: {damage}")


def _open_store(index_path: Path) -> Store:
    from openclaw_memory.store import SqliteStore

    return SqliteStore.open(index_path)


def _embedders(given: Embedder | Embedders | Callable[[], Embedder | None] | None, rules: Embedding) -> Embedders:
    if isinstance(given, Embedders):
        return given
    if given is None or isinstance(given, Embedder):
        return embedders_of(given, rules)
    return Embedders(lambda _: given(), rules.provider, rules)
