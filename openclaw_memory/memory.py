"""`Memory`, the front door: it holds the parts of one memory and hands each call to the part that does the work."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Self

from msgspec import structs

from openclaw_memory.errors import ConfigError
from openclaw_memory.events import Events, format_lines, locate_excerpt, observed

if TYPE_CHECKING:
    import datetime
    import os
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from openclaw_memory.backends import Backend
    from openclaw_memory.backends.builtin import BuiltinBackend
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.documents import Documents
    from openclaw_memory.embeddings.selection import EmbedderChoice
    from openclaw_memory.events import Location, Observer
    from openclaw_memory.indexing.watcher import Watcher
    from openclaw_memory.records import Records
    from openclaw_memory.search.filters import SearchFilter
    from openclaw_memory.search.request import SearchOptions
    from openclaw_memory.search.results import SearchResults
    from openclaw_memory.store.registry import StoreChoice
    from openclaw_memory.types import Embedder, Excerpt, Progress, Status, Store, SyncReport
    from openclaw_memory.types.results import HeartbeatReport
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.notes import Index


def _locate_tasks(report: HeartbeatReport, *_: Any, **__: Any) -> list[Location]:
    return [(path, "") for task in report.tasks for path in task.changed]


def _load_observers(workspace: Workspace, config: MemoryConfig) -> list[Observer]:
    """Load the observers that `[plugins.<name>]` turns on."""
    if not config.plugins:
        return []
    from openclaw_memory.plugins import load_plugin, select_plugins

    names = select_plugins("observers", config.plugins)
    observers = (load_plugin("observers", name)(workspace, config) for name in names)
    return [observer for observer in observers if observer is not None]


class Memory:
    """Notes in a folder, and the index that finds them again. Safe to use from several threads.

    `Memory.open(path)` puts one together from the usual parts; the constructor takes parts of your own.

    Attributes:
        notes: Writes notes, and reads them at the start of a session.
        sessions: The transcripts and ends of conversations, and the flush before a compaction.
        control: Inspects the memory, and forgets.
        config: The settings.
        workspace: The files.
        events: The observers: `memory.events.add(observer)` adds one.
    """

    def __init__(
        self,
        workspace: Workspace,
        store: Store | Callable[[], Store] | None = None,
        embedder: EmbedderChoice = None,
        config: MemoryConfig | None = None,
        *,
        backend: Backend | None = None,
    ) -> None:
        """Put a memory together from its parts.

        Args:
            workspace: The files.
            store: Keeps the index: a store, or a function without arguments that makes one at the first use.
            embedder: Makes the vectors: as for `open`; None for keyword search.
            config: The settings; the defaults where None.
            backend: An engine in place of the built-in one, which needs `store` and takes `embedder`.

        Raises:
            ConfigError: Neither a store nor a backend is given.
        """
        # Here: a program that opens no memory loads no more than this class.
        from openclaw_memory.backends.workspace_setup import guard_workspace
        from openclaw_memory.config.config import check_config
        from openclaw_memory.control.control import Control
        from openclaw_memory.flush.state import FlushRegistry
        from openclaw_memory.sessions import Sessions
        from openclaw_memory.workspace.notes import NoIndex, Notes

        self.config = check_config(config)
        workspace = guard_workspace(workspace, store, self.config)
        self.events = Events(_load_observers(workspace, self.config))
        self.workspace = workspace = replace(workspace, events=self.events)
        flushes = FlushRegistry()
        self._builtin: BuiltinBackend | None = None
        if backend is None:
            from openclaw_memory.backends.builtin import BuiltinBackend

            if store is None:
                raise ConfigError("a memory needs a store or a backend: use Memory.open(path) for the usual ones")
            self._builtin = BuiltinBackend(
                workspace,
                store,
                embedder,
                self.config,
                notices=(*self.config.notices, *self.config.find_unread_settings()),
                flush_failures=partial(flushes.list_failures, workspace),
            )
            backend = self._builtin
            if self.config.store.backend != "builtin":
                from openclaw_memory.plugins import load_plugin

                make_backend: Callable[..., Backend] = load_plugin("backends", self.config.store.backend)
                backend = make_backend(workspace, self._builtin, self.config)
        self._backend = backend
        service = self._builtin.service if self._builtin is not None else None
        self._index: Index = service or NoIndex()
        self.notes = Notes(workspace, self._index)
        self.sessions = Sessions(workspace, self._index, self.config, flushes)
        rebuild = None if backend is self._builtin else partial(backend.sync, force=True)
        self.control = Control(workspace, self._index, service, rebuild)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        embedder: EmbedderChoice = "default",
        config: MemoryConfig | None = None,
        index_path: str | os.PathLike[str] | None = None,
        store: StoreChoice | None = None,
    ) -> Self:
        """Return the memory of the workspace folder `path`, with the usual parts, from its settings alone.

        `<workspace>/.memory/config.toml` may set globs of files, extra paths inside, and where the notes of days are.
        Wrong values in it are ignored, and named in `status().notices`.

        Args:
            path: An existing folder of notes.
            embedder: "default" (by `config.embedding`: the static model, offline), the name of a provider, an
                embedder, a function from a list of texts to their vectors, or None for keyword search.
            config: The settings; the defaults where None.
            index_path: The file of the index; by default `index.sqlite` in the workspace's folder below the user's
                data folder, or below `OPENCLAW_MEMORY_HOME`.
            store: "sqlite", the URL of a store, a store, or a function that makes one. None: by `config.store`.

        Raises:
            WorkspaceError: `path` is missing or is not a folder.
            ConfigError: The provider or the store is unknown, does not go with the codec, or has a wrong type.
        """
        from openclaw_memory.backends.workspace_setup import load_codec, with_settings_inside
        from openclaw_memory.config.config import check_config
        from openclaw_memory.embeddings.selection import make_selector
        from openclaw_memory.store.registry import choose_store
        from openclaw_memory.workspace import Workspace

        settings = check_config(config)
        workspace = Workspace.open(path, settings.files)
        settings = with_settings_inside(workspace.root, settings)
        codec = load_codec(workspace.root, settings)
        index_store = choose_store(store, workspace.root, index_path, settings, codec)
        return cls(
            replace(
                workspace,
                files=structs.replace(workspace.files, settings=settings.files, journal=settings.journal, codec=codec),
                sessions=settings.sessions,
            ),
            index_store,
            make_selector(embedder, settings.embedding),
            settings,
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
        """Return the memory of one of OpenClaw's agents, in OpenClaw's own layout.

        The index is `<state>/memory/<id>.sqlite`, unless `config.store` says another place; transcripts are in
        `<state>/agents/<id>/sessions`, unless `config` names another folder, and what the backend of a plug-in keeps is
        in `<state>/agents/<id>/<backend>`. `<state>` is `~/.openclaw`, or what `OPENCLAW_STATE_DIR` or `OPENCLAW_HOME`
        say.

        Args:
            agent_id: Letters, digits, `-` and `_`.
            workspace: The folder of notes; by default `<state>/workspace` for `main`, else `<state>/workspace-<id>`.
            embedder: As for `open`.
            config: As for `open`.

        Raises:
            ConfigError: The id holds other characters.
            WorkspaceError: The agent's workspace is missing.
        """
        from openclaw_memory.config.config import check_config
        from openclaw_memory.config.environment import locate_agent

        places = locate_agent(agent_id)
        settings = check_config(config)
        usual = check_config(None)
        if settings.sessions.folder == usual.sessions.folder:
            settings = settings.replace({"sessions": {"folder": str(places.sessions)}})
        if (backend := settings.store.backend) != "builtin" and "folder" not in settings.plugins.get(backend, {}):
            settings = settings.replace({"plugins": {backend: {"folder": str(places.state / backend)}}})
        index = places.index_path if settings.store.url == usual.store.url else None
        return cls.open(workspace or places.workspace, embedder=embedder, config=settings, index_path=index)

    def sync(
        self, *, force: bool = False, progress: Callable[[Progress], None] | None = None, wait: float | None = None
    ) -> SyncReport:
        """Bring the index up to date with the files, and return a report.

        A rebuild happens next to the index that answers, which is used until the new one replaces it. A damaged index
        is deleted and built again; `rebuilt` says so. One sync of an index runs at a time, over all processes.

        Args:
            force: Rebuild the index from the files.
            progress: Called between transactions. An exception of it ends the sync, and the index stays as it was.
            wait: How many seconds to wait for another sync; as long as it takes if None. Vectors that a slow embedder
                is still making after that are left to it.

        Raises:
            WorkspaceError: The folder has gone; nothing is removed from the index.
            StoreError: The index cannot be written.
            SyncBusyError: Another sync was not done after `wait` seconds, or `progress` called this.
        """
        return self._backend.sync(force=force, progress=progress, wait=wait)

    @observed("search", lambda results, *_, **__: [(result.path, format_lines(*result.spans)) for result in results])
    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        max_chars: int | None = None,
        min_score: float | None = None,
        filter: SearchFilter | Mapping[str, Any] | None = None,  # noqa: A002 - the field's name
        options: SearchOptions | Mapping[str, Any] | None = None,
        now: datetime.datetime | None = None,
    ) -> SearchResults:
        """Return the lines that answer `query`, best first; none for a blank query.

        A workspace that was never synced completely is synced first. Later searches answer from the index as it is, at
        once: `stale` says that it is known to be behind the files, which starts a sync in the background
        (`config.sync.on_search`). With another embedder's index, or an embedder that fails, keywords answer alone.
        A damaged index is rebuilt first. `reason` says each of these.

        Args:
            query: A question or keywords.
            max_results: At most this many results, up to 1000. Without it and `max_chars`, `config.search.max_results`.
            max_chars: At most this many characters of all snippets together. Without `max_results`, there are as many
                results as fit, of about 350 characters each; not of whole chunks. `omitted` counts the rest.
            min_score: Results below it are left out, in [0, 1]; `config.search.min_score` where None.
            filter: Which lines count: a `SearchFilter`, or its fields as a dict, `{"path": "memory/2026-*", "since":
                "2026-01-31"}`; all where None. A moment has its day in `sessions.timezone`.
            options: How this search differs: `SearchOptions`, or its fields as a dict, `{"explain": True}`.
            now: From when on the age of notes, if it counts, and the fall of the confidence of records are reckoned.

        Raises:
            QueryError: An argument has a wrong type or value.
        """
        from openclaw_memory.search.filters import SearchFilter
        from openclaw_memory.search.request import SearchOptions, SearchRequest

        only = SearchFilter.read(filter).resolve_days(self.workspace.sessions.timezone)
        request = SearchRequest(query, max_results, max_chars, min_score, only, SearchOptions.read(options), now)
        if self._builtin is not None and self._backend is self._builtin:  # it has policies and signatures itself
            return self._builtin.search(request)
        from openclaw_memory.backends.builtin import search_backend

        return search_backend(self._backend, request, self.workspace, self.config)

    @observed("get", locate_excerpt)
    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Return lines of a memory file from disk; `next_start` of the excerpt is where to read on.

        Args:
            path: The path of a memory file, or a citation; what `MEMORY.md#L3-L5,L9` leaves out is returned too.
            start: The first line, 1-based.
            lines: How many lines; by default 120 within 12,000 characters.

        Raises:
            PathNotAllowedError: `path` leaves the workspace or is not a memory file.
            NotFoundError: There is no such file, or no such line.
            InvalidInputError: `start` or `lines` is not a whole number above zero.
        """
        excerpt = self._backend.get(path, start=start, lines=lines)
        if self._backend is self._builtin:
            return excerpt
        from openclaw_memory.backends.builtin import mask_excerpt

        return mask_excerpt(excerpt, self.workspace)

    def append(
        self,
        text: str,
        *,
        date: datetime.date | str | None = None,
        title: str | None = None,
        skip_existing: bool = False,
        quoted_from: str | None = None,
    ) -> Excerpt:
        """Add `text` to the note of a day in one atomic write and return its lines. See `Notes.append`."""
        return self.notes.append(text, date=date, title=title, skip_existing=skip_existing, quoted_from=quoted_from)

    def edit(self, path: str, start: int, end: int, text: str, *, expected: str | Excerpt) -> Excerpt:
        """Replace lines of a note that have not changed since they were read. See `Notes.edit`."""
        return self.notes.edit(path, start, end, text, expected=expected)

    def delete(self, path: str, start: int, end: int, *, expected: str | Excerpt) -> None:
        """Remove lines of a note that have not changed since they were read. See `Notes.delete`."""
        self.notes.delete(path, start, end, expected=expected)

    @property
    def index_path(self) -> Path | None:
        """The file of the index; None where the index is not a file."""
        from pathlib import Path

        location = self._builtin.service.location if self._builtin else None
        return Path(location) if location and "://" not in location else None

    @property
    def documents(self) -> Documents:
        """The documents that frameworks add, with ids and metadata, each a Markdown file of its own.

        Raises:
            ConfigError: The memory has a backend of its own.
        """
        return self._engine.documents

    @property
    def records(self) -> Records:
        """The facts of this memory: remembered, settled, confirmed and forgotten, each a Markdown file of its own.

        Raises:
            ConfigError: The memory has a backend of its own.
        """
        return self._engine.records

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the index, as it is or as the next sync builds it; None for keyword search.

        Raises:
            EmbedderError: It is unavailable.
            ConfigError: The memory has a backend of its own.
        """
        return self._engine.embedder

    @observed("heartbeat", _locate_tasks, writes=True, judge=lambda report: "busy" if report.is_busy else "ok")
    def heartbeat(self, *, budget_seconds: float = 5.0, ask: Callable[[str], str] | None = None) -> HeartbeatReport:
        """Look after the memory: expiry, decay, overdue reminders, duplicates, stale notes, facts to confirm again.

        Where nothing has changed and nothing is due, it is over at once, and where another one is under way, in any
        thread or process: `is_busy`. It changes records alone; of notes it reports.

        Args:
            budget_seconds: After this time no more work is begun; the report names the work left for the next one.
            ask: A model: takes a question, and returns its answer. It is asked for judgements alone.

        Raises:
            InvalidInputError: The budget is not a number above zero.
            WorkspaceError: The workspace cannot be read.
            WriteError: A record could not be written.
            ConfigError: The memory has a backend of its own.
        """
        self._index.check_open()
        return self._engine.heartbeat.run(budget_seconds=budget_seconds, ask=ask)

    def watch(self) -> Watcher:
        """Follow the files: a change is indexed a moment later, in the background.

        It ends with `stop()` of the watcher, its `with` block, or the memory. A second call returns the same watcher.

        Raises:
            StoreError: The memory is closed.
            ConfigError: The memory has a backend of its own.
        """
        return self._engine.service.watch()

    def status(self, *, deep: bool = False) -> Status:
        """Return the state of the index, and anything that is degraded. It changes nothing.

        Args:
            deep: Also try both kinds of search with a real query, and check the whole index.

        Raises:
            WorkspaceError: The folder has gone.
            StoreError: The index is damaged; `sync(force=True)` rebuilds it.
        """
        status = self._backend.status(deep=deep)
        problems = self.events.list_problems()
        return structs.replace(status, notices=(*status.notices, *problems)) if problems else status

    def close(self) -> None:
        """Close the store, and end the watcher and background work. Calling it twice is allowed.

        A sync that runs in another thread ends with a StoreError; the next one continues from there.
        """
        from openclaw_memory.workspace.notes import NoIndex

        self._backend.close()
        if isinstance(self._index, NoIndex):
            self._index.close()
        self.events.close()

    @property
    def _engine(self) -> BuiltinBackend:
        if self._builtin is None:
            raise ConfigError(f"{self._backend!r} indexes this memory: open it without a backend to do this")
        return self._builtin

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
