"""`Memory`, the front door: it holds the parts of one memory and hands each call to the part that does the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self

from openclaw_memory.config import MemoryConfig, SessionsConfig
from openclaw_memory.config.config import agent_places, settings_of
from openclaw_memory.embeddings.selection import EmbedderChoice, EmbedderSelector, embedders_of, handed_in, sent_to
from openclaw_memory.errors import EmbedderError
from openclaw_memory.flush.state import FlushRegistry
from openclaw_memory.types import Embedder, Excerpt, Progress, Source, Status, Store, SyncReport
from openclaw_memory.workspace.paths import transcripts_place

if TYPE_CHECKING:
    import datetime

    from openclaw_memory.conversation.session_key import ChatType
    from openclaw_memory.documents import Documents
    from openclaw_memory.flush.flush import Flush
    from openclaw_memory.indexing.watcher import Watcher
    from openclaw_memory.search import SearchResults
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.bootstrap import Bootstrap
    from openclaw_memory.workspace.transcripts.writer import SessionLog


class Memory:
    """Notes in a folder, and the index that finds them again. Safe to use from several threads.

    `store` and `embedder` are handed in ready, or as functions without arguments that make them. Such a function is
    called at the first use, so that opening a memory loads no model and creates no file. `close` closes the store.
    """

    def __init__(
        self,
        workspace: Workspace,
        store: Store | Callable[[], Store],
        embedder: Embedder | EmbedderSelector | Callable[[], Embedder | None] | None,
        config: MemoryConfig | None = None,
        *,
        notices: Sequence[str] = (),
    ) -> None:
        """Put a memory together from its parts. `notices` are words that `status` repeats."""
        self.workspace = workspace
        self.config = settings_of(config)
        self._notices = (*self.config.notices, *notices)
        self._flushes = FlushRegistry()
        self._embedders = handed_in(embedder, self.config.embedding)
        from openclaw_memory.indexing.service import IndexParts, IndexService
        from openclaw_memory.retriever import Retriever

        self._service = IndexService(IndexParts(workspace, self._embedders, self.config, store))
        self._retriever = Retriever(workspace, self._service, self._embedders, self.config)

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
        `<workspace>/.memory/config.toml` may set chunking, ignore patterns, debounce, and extra paths inside.

        Raises:
            WorkspaceError: `path` is missing or is not a folder.
            ConfigError: the workspace's own configuration is wrong, nobody knows the provider, or `embedder` is none
                of the above.
        """
        from openclaw_memory.store import SqliteStore
        from openclaw_memory.store.location import DERIVED_FOLDER, index_place
        from openclaw_memory.workspace import Workspace

        settings = settings_of(config)
        workspace = Workspace.open(path, settings.files)
        settings = settings.with_workspace_file(workspace.root / DERIVED_FOLDER / "config.toml")
        index, notices = (Path(index_path).expanduser(), ()) if index_path else index_place(workspace.root)
        return cls(
            replace(workspace, rules=settings.files, sessions=settings.sessions, journal=settings.journal),
            lambda: SqliteStore(index),
            embedders_of(embedder, settings.embedding),
            settings,
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
        index is `<state>/memory/<id>.sqlite`, and transcripts are in `<state>/agents/<id>/sessions` unless `config`
        names another folder. `<state>` is `~/.openclaw`, or what `OPENCLAW_STATE_DIR` or `OPENCLAW_HOME` say.

        Raises:
            ConfigError: the id holds other characters than letters, digits, `-` and `_`.
            WorkspaceError: the agent's workspace is missing.
        """
        places = agent_places(agent_id)
        settings = settings_of(config)
        if settings.sessions.folder == SessionsConfig().folder:
            settings = replace(settings, sessions=replace(settings.sessions, folder=str(places.sessions)))
        return cls.open(workspace or places.workspace, embedder=embedder, config=settings, index_path=places.index_path)

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files. See `SyncReport` for what it returns.

        `force` builds it again. That, like every building again, happens beside the index that answers, which goes on
        until the new one takes its place. A damaged index is kept under another name and built again; `rebuilt` says
        which. One sync of an index is at work at a time: others, of any process, wait for it for `wait` seconds, or as
        long as it takes. What `progress` raises ends the sync, and the index stays as it was.

        Raises:
            WorkspaceError: the folder has gone; nothing is removed from the index.
            StoreError: the index cannot be written.
            SyncBusyError: another sync was not done after `wait` seconds, or this is called by `progress`.
        """
        return self._service.sync(force, progress, wait)

    def sync_soon(self) -> None:
        """Begin a sync in the background, as a search does that notices changed files; nothing where there is no index.

        Writes through the tools or a flush do this by themselves. `config.sync.on_search` turns it off.
        """
        self._service.check_open()
        self._service.soon()

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        explain: bool = False,
        now: datetime.datetime | None = None,
    ) -> SearchResults:
        """The lines that answer `query`, best first; none for a blank query.

        A workspace that was never synced to the end is synced first; later searches answer from the index as it is, at
        once. `stale` says that it is known to be behind: files have changed, a sync failed, or another embedder made
        it. Where files have changed a sync begins in the background (`config.sync.on_search`). An index of another
        embedder answers by keywords until the next sync, and so does one whose embedder fails; `reason` says so. A
        damaged index is kept under another name and built again before this answers, which `reason` says too.
        At most 1000 `max_results` count; `min_score` lies in [0, 1]; `source` is "memory", "sessions" or None for
        both; `now` is what the age of notes is counted from, where that weighs (`config.search.half_life_days`).

        Raises:
            QueryError: an argument has a wrong type or value.
        """
        from openclaw_memory.search.query import validate_request, with_time_zone

        rules = validate_request(self.config.search, query, max_results, min_score, source)
        return self._retriever.answer(query, rules, source, explain=explain, now=with_time_zone(now))

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Lines of a memory file, or of a citation, from disk; `start` is 1-based. `next_start` of the answer leads on.

        Raises:
            PathNotAllowedError: `path` leaves the workspace or is not a memory file.
            NotFoundError: there is no such file, or no such line.
            InvalidInputError: `start` or `lines` is not a whole number above zero.
        """
        self._service.check_open()
        return self.workspace.excerpt(path, start=start, lines=lines)

    def append(
        self,
        text: str,
        *,
        date: datetime.date | str | None = None,
        title: str | None = None,
        skip_existing: bool = False,
    ) -> Excerpt:
        """Add `text` to `memory/<date>.md` in one atomic write; today when `date` is None, else a date or YYYY-MM-DD.

        See `Workspace.append`. The index is not touched: until the next sync finds the note, searches are `stale`.

        Raises:
            InvalidInputError, WriteError, PathNotAllowedError: as `Workspace.append`.
            StoreError: the memory is closed.
        """
        self._service.check_open()
        written = self.workspace.append(text, date=date, title=title, skip_existing=skip_existing)
        if not written.existed:
            self._service.record_write()
        return written

    def edit(self, path: str, start: int, end: int, text: str, *, seen: str | Excerpt) -> Excerpt:
        """Replace lines `start` to `end` of a note, if they still are what the caller saw. See `Workspace.edit`.

        Raises:
            ConflictError, WriteError, InvalidInputError, NotFoundError, PathNotAllowedError: as `Workspace.edit`.
            StoreError: the memory is closed.
        """
        self._service.check_open()
        written = self.workspace.edit(path, start, end, text, seen=seen)
        self._service.record_write()
        return written

    def delete(self, path: str, start: int, end: int, *, seen: str | Excerpt) -> None:
        """Remove lines `start` to `end` of a note, if they still are what the caller saw. See `Workspace.delete`.

        Raises:
            ConflictError, WriteError, InvalidInputError, NotFoundError, PathNotAllowedError: as `Workspace.delete`.
            StoreError: the memory is closed.
        """
        self._service.check_open()
        self.workspace.delete(path, start, end, seen=seen)
        self._service.record_write()

    def promote(
        self, path: str, start: int, end: int, *, section: str | None = None, seen: str | Excerpt | None = None
    ) -> Excerpt:
        """Copy lines of a note to `MEMORY.md`, below the heading `section` where one is given. See `Workspace.promote`.

        Raises:
            ConflictError, WriteError, InvalidInputError, NotFoundError, PathNotAllowedError: as `Workspace.promote`.
            StoreError: the memory is closed.
        """
        self._service.check_open()
        written = self.workspace.promote(path, start, end, section=section, seen=seen)
        if not written.existed:
            self._service.record_write()
        return written

    def bootstrap(
        self, *, private: bool = True, max_chars: int | None = None, now: datetime.datetime | None = None
    ) -> Bootstrap:
        """What an agent reads at the start of a session. See `Workspace.bootstrap`; `private` is no group chat."""
        self._service.check_open()
        return self.workspace.bootstrap(private=private, max_chars=max_chars, now=now)

    def session_log(self, session_id: str, *, parent_session: str | None = None) -> SessionLog:
        """The transcript of a conversation, to write to; its lines are found once they are synced.

        Raises:
            InvalidInputError: the id is empty.
        """
        self._service.check_open()
        return self.workspace.session_log(session_id, parent_session=parent_session)

    def flush(
        self,
        session_key: str = "main",
        *,
        window: int | None = None,
        session_id: str | None = None,
        chat_type: ChatType | None = None,
    ) -> Flush:
        """The flush of a session: it says when memories are to be saved before a compaction. See `sessions.flush`.

        `window` is what the model can read, in tokens, None where that is not known; `session_id` names the transcript.

        Raises:
            InvalidInputError: the key is empty.
        """
        self._service.check_open()
        from openclaw_memory.flush.flush import Flush

        return Flush(
            self.workspace,
            session_key,
            self.config.compaction,
            window=window,
            session_id=session_id,
            chat_type=chat_type,
            wrote=self._service.soon,
            registry=self._flushes,
        )

    @property
    def index_path(self) -> Path | None:
        """The file of the index; None where it is kept in another way."""
        location = self._service.describe().location
        return Path(location) if location and "://" not in location else None

    @cached_property
    def documents(self) -> Documents:
        """What frameworks add to this memory: documents with ids and metadata, each a Markdown file of its own."""
        from openclaw_memory.documents import Documents

        return Documents(self.workspace, self._service, self.search, lambda: self.embedder)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder whose vectors the index holds, or is to hold; None where search is by keywords alone.

        Raises:
            EmbedderError: it cannot be had.
        """
        self._service.check_open()
        return self._embedders.for_search(self._service.store().meta())

    def watch(self) -> Watcher:
        """Follow the files from now on: whatever changes is indexed a moment later, in the background.

        Ends with `stop()` of what is returned, with its `with` block, or with the memory. A second call returns the
        watcher that is at work.

        Raises:
            StoreError: the memory is closed.
        """
        return self._service.watch()

    def status(self, *, deep: bool = False) -> Status:
        """What is indexed, with what, and whatever works less well than it could. It changes nothing.

        With `deep`, both legs of the search are tried with a real query, and the whole index is checked.

        Raises:
            WorkspaceError: the folder has gone.
            CorruptIndexError: the index is damaged; `sync(force=True)` builds a new one.
        """
        self._service.check_open()
        from openclaw_memory.indexing import describe
        from openclaw_memory.indexing.status import status

        notices = [*self._notices, *self.documents.damaged(look=deep)]
        embedder = wanted = None
        store = self._service.store()
        try:
            embedder = self._embedders.for_search(store.meta())
            wanted = describe(embedder, self.config.chunking)
        except EmbedderError as error:
            notices.append(f"no embedder, search is by keywords: {error}")
        if embedder is not None and (receiver := sent_to(embedder)) is not None:
            notices.append(receiver)
        if self._service.is_locked():
            notices.append("a sync is under way")
        return status(
            self.workspace,
            store,
            embedder,
            wanted,
            requested_provider=self._embedders.requested,
            unavailable=self._embedders.unavailable,
            last=self._service.last,
            notices=notices,
            deep=deep,
            config=self.config,
            last_error=self._service.last_error,
            watcher=self._service.watcher_state(),
            flush=self._flushes.failures(transcripts_place(self.workspace.root, self.workspace.sessions)),
        )

    def close(self) -> None:
        """Close the store, and end the watcher and what runs in the background. Calling it twice is allowed.

        A sync that runs in another thread ends with a StoreError; the next one goes on from there.
        """
        self._service.close()
        self._embedders.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self  # it holds open files and threads: frameworks that copy their parts share it

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is open and cannot be pickled: hand over its path, and open it there")

    def __repr__(self) -> str:
        return f"Memory({str(self.workspace.root)!r})"
