"""`Memory`, the front door: it holds the parts of one memory and hands each call to the part that does the work."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Self

from openclaw_memory.errors import ConfigError
from openclaw_memory.events import (
    Events,
    format_lines,
    locate_citation,
    locate_excerpt,
    locate_file,
    locate_files,
    observed,
)

if TYPE_CHECKING:
    import datetime
    import os
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from openclaw_memory.backends import Backend
    from openclaw_memory.backends.builtin import BuiltinBackend
    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.control.inspection import Order
    from openclaw_memory.documents import Documents
    from openclaw_memory.embeddings.selection import EmbedderChoice, EmbedderSelector
    from openclaw_memory.events import Location, Observer
    from openclaw_memory.flush.flush import Flush
    from openclaw_memory.flush.state import ChatType
    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.indexing.watcher import Watcher
    from openclaw_memory.records import Records
    from openclaw_memory.search import SearchResults
    from openclaw_memory.store.registry import StoreChoice
    from openclaw_memory.types import Embedder, Excerpt, Progress, Source, Status, Store, SyncReport
    from openclaw_memory.types.control import ForgetPlan, ForgetReceipt, Item, Kind
    from openclaw_memory.types.heartbeat import HeartbeatReport
    from openclaw_memory.types.records import RecordType
    from openclaw_memory.types.snapshots import Snapshot
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.journal import Bootstrap
    from openclaw_memory.workspace.session_log import SessionLog


def _locate_tasks(report: HeartbeatReport, *_: Any, **__: Any) -> list[Location]:
    return [(path, "") for task in report.tasks for path in task.changed]


def _locate_forgotten(receipt: ForgetReceipt, *_: Any, **__: Any) -> list[Location]:
    planned = (step.citation for step in receipt.plan.steps)
    return [locate_citation(citation) for citation in (planned if receipt.is_dry_run else receipt.forgotten)]


def _summarize(receipt: ForgetReceipt) -> str:
    return "planned" if receipt.is_dry_run else "partly" if receipt.remaining or not receipt.is_erased else "ok"


def _load_observers(workspace: Workspace, config: MemoryConfig) -> list[Observer]:
    """Load the observers that `[plugins.<name>]` turns on."""
    if not config.plugins:
        return []
    from openclaw_memory.plugins import SHIPPED, has_plugin, load_plugin

    # A name of ours whose package is missing is an error: what is asked for is never left undone in silence.
    names = [name for name in config.plugins if name in SHIPPED["observers"] or has_plugin("observers", name)]
    observers = (load_plugin("observers", name)(workspace, config) for name in names)
    return [observer for observer in observers if observer is not None]


class Memory:
    """Notes in a folder, and the index that finds them again. Safe to use from several threads.

    `Memory.open(path)` puts one together from the usual parts; the constructor takes parts of your own.
    """

    def __init__(
        self,
        workspace: Workspace,
        store: Store | Callable[[], Store] | None = None,
        embedder: Embedder | EmbedderSelector | Callable[[], Embedder | None] | None = None,
        config: MemoryConfig | None = None,
        *,
        backend: Backend | None = None,
    ) -> None:
        """Put a memory together from its parts.

        Args:
            workspace: The files.
            store: Keeps the index: a store, or a function without arguments that makes one at the first use.
            embedder: Makes the vectors: an embedder, or a function that makes one at the first use; None for keyword
                search.
            config: The settings; the defaults where None.
            backend: An engine in place of the built-in one, which needs `store` and takes `embedder`.

        Raises:
            ConfigError: Neither a store nor a backend is given.
        """
        # Here: a program that opens no memory loads no more than this class.
        from openclaw_memory.backends.guards import guarded_workspace
        from openclaw_memory.config.config import settings_of
        from openclaw_memory.flush.state import FlushRegistry, failures_in

        self.config = settings_of(config)
        workspace = guarded_workspace(workspace, store, self.config)
        self.events = Events(_load_observers(workspace, self.config))
        self.workspace = workspace = replace(workspace, events=self.events)
        self._flushes = FlushRegistry()
        self._builtin: BuiltinBackend | None = None
        if backend is None:
            from openclaw_memory.backends.builtin import BuiltinBackend
            from openclaw_memory.config.unread_settings import find_unread_settings

            if store is None:
                raise ConfigError("a memory needs a store or a backend: use Memory.open(path) for the usual ones")
            self._builtin = BuiltinBackend(
                workspace,
                store,
                embedder,
                self.config,
                notices=(*self.config.notices, *find_unread_settings(self.config)),
                flush_failures=partial(failures_in, workspace, self._flushes),
            )
            backend = self._builtin
            if self.config.store.backend != "builtin":
                from openclaw_memory.plugins import load_plugin

                make_backend: Callable[..., Backend] = load_plugin("backends", self.config.store.backend)
                backend = make_backend(workspace, self._builtin, self.config)
        self._backend = backend

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
        """Return the memory of the workspace folder `path`, with the usual parts. Nothing is read or written yet.

        `<workspace>/.memory/config.toml` may set globs of files, and extra paths inside. What is wrong in it is
        ignored, and named in `status().notices`.

        Args:
            path: An existing folder of notes.
            embedder: "default" (what `config.embedding` says: the static model, offline), the name of a provider, an
                embedder, a function from a list of texts to their vectors, or None for keyword search.
            config: The settings; the defaults where None.
            index_path: The file of the index; by default `index.sqlite` in the workspace's folder below the user's
                data folder, or below `OPENCLAW_MEMORY_HOME`.
            store: "sqlite", the URL of a store, a store, or a function that makes one. None: what `config.store` says.

        Raises:
            WorkspaceError: `path` is missing or is not a folder.
            ConfigError: The provider or the store is unknown, does not go with the codec, or has a wrong type.
        """
        from openclaw_memory.backends.guards import load_codec
        from openclaw_memory.config.config import settings_of
        from openclaw_memory.embeddings.selection import embedders_of
        from openclaw_memory.store.registry import store_of
        from openclaw_memory.workspace import Workspace
        from openclaw_memory.workspace.settings import with_settings_inside

        settings = settings_of(config)
        workspace = Workspace.open(path, settings.files)
        settings = with_settings_inside(workspace.root, settings)
        codec = load_codec(workspace.root, settings)
        chosen = store_of(store, workspace.root, index_path, settings, codec)
        return cls(
            replace(
                workspace,
                files=replace(workspace.files, settings=settings.files, codec=codec),
                sessions=settings.sessions,
                journal=settings.journal,
            ),
            chosen,
            embedders_of(embedder, settings.embedding),
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
        from openclaw_memory.config.config import agent_places, settings_of

        places = agent_places(agent_id)
        settings = settings_of(config)
        usual = settings_of(None)
        if settings.sessions.folder == usual.sessions.folder:
            settings = settings.updated({"sessions": {"folder": str(places.sessions)}})
        if (backend := settings.store.backend) != "builtin" and "folder" not in settings.plugins.get(backend, {}):
            settings = settings.updated({"plugins": {backend: {"folder": str(places.state / backend)}}})
        index = places.index_path if settings.store.url == usual.store.url else None
        return cls.open(workspace or places.workspace, embedder=embedder, config=settings, index_path=index)

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files and return what was done.

        A rebuild happens next to the index that answers, which is used until the new one replaces it. A damaged index
        is kept under another name and rebuilt; `rebuilt` says so. One sync of an index runs at a time, over all
        processes.

        Args:
            force: Rebuild the index from the files.
            progress: Called between transactions. What it raises ends the sync, and the index stays as it was.
            wait: How many seconds to wait for another sync; as long as it takes where None.

        Raises:
            WorkspaceError: The folder has gone; nothing is removed from the index.
            StoreError: The index cannot be written.
            SyncBusyError: Another sync was not done after `wait` seconds, or `progress` called this.
        """
        return self._backend.sync(force=force, progress=progress, wait=wait)

    def sync_soon(self) -> None:
        """Start a sync in the background, as a search does that notices changed files, where there is an index.

        Writes through tools or a flush do this by themselves. `config.sync.on_search` turns it off. With another
        backend this does nothing: it decides itself when it syncs.
        """
        if self._builtin is not None:
            self._builtin.service.check_open()
            self._builtin.service.soon()

    @observed("search", lambda results, *_, **__: [(result.path, format_lines(*result.spans)) for result in results])
    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        max_chars: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        explain: bool = False,
        now: datetime.datetime | None = None,
        path: str | Sequence[str] | None = None,
        since: datetime.date | str | None = None,
        until: datetime.date | str | None = None,
        type: RecordType | Sequence[RecordType] | None = None,  # noqa: A002 - the field's name
        key: str | Sequence[str] | None = None,
        user_id: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        min_confidence: float | None = None,
        phrases: str | Sequence[str] | None = None,
        without: str | Sequence[str] | None = None,
        task: str | None = None,
        rules: Mapping[str, Any] | None = None,
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
                results as fit, of about 350 characters each; not of whole chunks. `omitted` counts what did not fit.
            min_score: Results below it are left out, in [0, 1]; `config.search.min_score` where None.
            source: "memory" for notes, "sessions" for transcripts, None for both.
            explain: Keep what `SearchResults.explain()` shows.
            now: From when on the age of notes, if it counts, and the fall of the confidence of records are reckoned.
            path: Only files that match a glob of a `.gitignore`, or one of several: `memory/2026-*`, `projects/`.
            since: Only lines of this day or later: a date, or its text in ISO 8601. The day is the one in a note's
                name, of a message in a transcript, of the field `date` above a text, when a record was last updated;
                without any of these, that of the file's last change. A message without a time has no day.
            until: Only lines of this day or earlier.
            type: Only records of this type, or of one of several: preference, fact, decision, entity, reminder, other.
            key: Only records whose key matches a glob, or one of several: `editor.*`. Case counts.
            user_id: Only records of this user, or of one of several.
            tags: Only files whose front matter has this tag, or all of several; `#` and case do not count.
            min_confidence: Of records only those that are at least so sure now, 0..1, to the hour. Others count.
            phrases: Only chunks with this text, word after word, or each of several; all, without `min_score`.
            without: Only chunks without this word, or any of several, in their text, headings or path.
            task: What the asker is at work on, in a sentence or several: of results that answer about as well, those
                that have more to do with it come first (`config.search.task_weight`). A blank one changes nothing.
            rules: Settings of `config.search` that this search has instead, as `{"mmr": 0.7, "half_life_days": 30}`;
                None turns either off. Not `max_results`, `min_score`, which are arguments, and `memory_mb`.

        Raises:
            QueryError: An argument has a wrong type or value.
        """
        from openclaw_memory.search.filters import filter_of
        from openclaw_memory.types import SearchRequest

        zone = self.workspace.journal.timezone
        only = filter_of(path, since, until, type, key, user_id, tags, min_confidence, phrases, without, zone)
        request = SearchRequest(query, max_results, max_chars, min_score, source, explain, now, only, task, rules)
        if self._builtin is not None and self._backend is self._builtin:  # it has policies and signatures itself
            return self._builtin.search(request)
        from openclaw_memory.backends.gate import search_backend

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
        from openclaw_memory.backends.gate import mask_excerpt

        return mask_excerpt(excerpt, self.workspace, self.config)

    def append(
        self,
        text: str,
        *,
        date: datetime.date | str | None = None,
        title: str | None = None,
        skip_existing: bool = False,
        quoted_from: str | None = None,
    ) -> Excerpt:
        """Add `text` to `memory/<date>.md` in one atomic write and return its lines. See `Workspace.append`.

        The index is not touched: until the next sync finds the note, searches are `stale`.

        Args:
            text: What to add; Markdown.
            date: A day, or YYYY-MM-DD; today by default. A moment is its day, of `journal.timezone` if it has a zone.
            title: Gives the text a heading of its own, with the time.
            skip_existing: Do not add lines that the note already has.
            quoted_from: Where the text comes from, if neither the user nor the agent has written it: it is quoted.

        Raises:
            InvalidInputError, WriteError, PathNotAllowedError: As `Workspace.append`.
            StoreError: The memory is closed.
        """
        self._check_open()
        written = self.workspace.append(
            text, date=date, title=title, skip_existing=skip_existing, quoted_from=quoted_from
        )
        self._record_write(written)
        return written

    def edit(self, path: str, start: int, end: int, text: str, *, seen: str | Excerpt) -> Excerpt:
        """Replace lines `start` to `end` of a note if they still are what the caller saw. See `Workspace.edit`.

        Args:
            path: The note.
            start: The first line, 1-based.
            end: The last line, included.
            text: The new lines.
            seen: The excerpt that the caller read, or its hash.

        Raises:
            ConflictError, WriteError, InvalidInputError, NotFoundError, PathNotAllowedError: As `Workspace.edit`.
            StoreError: The memory is closed.
        """
        self._check_open()
        written = self.workspace.edit(path, start, end, text, seen=seen)
        self._record_write()
        return written

    def delete(self, path: str, start: int, end: int, *, seen: str | Excerpt) -> None:
        """Remove lines `start` to `end` of a note if they still are what the caller saw. See `Workspace.delete`.

        Args:
            path: The note.
            start: The first line, 1-based.
            end: The last line, included.
            seen: The excerpt that the caller read, or its hash.

        Raises:
            ConflictError, WriteError, InvalidInputError, NotFoundError, PathNotAllowedError: As `Workspace.delete`.
            StoreError: The memory is closed.
        """
        self._check_open()
        self.workspace.delete(path, start, end, seen=seen)
        self._record_write()

    def promote(
        self, path: str, start: int, end: int, *, section: str | None = None, seen: str | Excerpt | None = None
    ) -> Excerpt:
        """Copy lines `start` to `end` of a note to `MEMORY.md` and return the lines there. See `Workspace.promote`.

        Args:
            path: The note.
            start: The first line, 1-based.
            end: The last line, included.
            section: The heading of MEMORY.md to add them below; the end of the file where None.
            seen: The excerpt that the caller read, or its hash; not compared where None.

        Raises:
            ConflictError, WriteError, InvalidInputError, NotFoundError, PathNotAllowedError: As `Workspace.promote`.
            StoreError: The memory is closed.
        """
        self._check_open()
        written = self.workspace.promote(path, start, end, section=section, seen=seen)
        self._record_write(written)
        return written

    def bootstrap(
        self, *, private: bool = True, max_chars: int | None = None, now: datetime.date | str | None = None
    ) -> Bootstrap:
        """Return what an agent reads at the start of a session. See `Workspace.bootstrap`.

        Args:
            private: Include MEMORY.md; False for a group chat.
            max_chars: The most characters of one file; `config.journal.bootstrap_chars` where None.
            now: The moment, or the day itself, that decides which day it is; this moment by default.
        """
        self._check_open()
        return self.workspace.bootstrap(private=private, max_chars=max_chars, now=now)

    def session_log(self, session_id: str, *, parent_session: str | None = None) -> SessionLog:
        """Return the writable transcript of a conversation; its lines are found after the next sync.

        Args:
            session_id: The id of the session.
            parent_session: The id of the session that this one continues.

        Raises:
            InvalidInputError: The id is empty.
        """
        self._check_open()
        return self.workspace.session_log(session_id, parent_session=parent_session)

    def flush(
        self,
        session_key: str = "main",
        *,
        window: int | None = None,
        session_id: str | None = None,
        chat_type: ChatType | None = None,
    ) -> Flush:
        """Return the flush of a session, which says when to save memories before a compaction.

        Args:
            session_key: OpenClaw's key of the session.
            window: The tokens that the conversation has room for: the model's context window, or the limit that a
                program trims it to; None if unknown.
            session_id: Names the transcript.
            chat_type: "direct", "group" or "channel"; read off the key where None.

        Raises:
            InvalidInputError: The key is empty.
            ConfigError: The window is not a number of tokens.
        """
        self._check_open()
        from openclaw_memory.flush.flush import Flush

        return Flush(
            self.workspace,
            session_key,
            self.config.compaction,
            window=window,
            session_id=session_id,
            chat_type=chat_type,
            wrote=self._service.soon if self._builtin else lambda: None,
            registry=self._flushes,
        )

    @observed("snapshot", locate_file, writes=True)
    def snapshot(
        self, session_id: str, messages: Sequence[Mapping[str, Any]] | None = None, summary: str | None = None
    ) -> Snapshot | None:
        """Keep the end of a session that ends or may be killed, and name it in today's note.

        Kept are the last messages with words (`config.snapshots`), 500 UTF-16 units of each, with secrets masked, and
        none that policies never let be stored, in `.memory/snapshots/`. Nothing removes them but `forget`. A note that
        cannot be written is a warning in the log.

        Args:
            session_id: The session.
            messages: The conversation, oldest first, each with `role` and `content`; None for the transcript's.
            summary: What it was about, for the note too, which others may be shown; its first 4,000 UTF-16 units are
                kept.

        Returns:
            The snapshot; that of before if the session has not gone on since, unless with another summary. None where
            nothing was said, or `config.snapshots.enabled` is off.

        Raises:
            InvalidInputError: The id is empty, or a message has no `role`.
            PolicyError: A rule says never to store the summary, or a file of this name. Nothing was written.
            WriteError, PathNotAllowedError: It could not be written.
        """
        self._check_open()
        from openclaw_memory.conversation.snapshots import save

        made = save(self.workspace, session_id, messages, summary, rules=self.config.snapshots)
        self._record_write()
        return made

    @observed("snapshots", locate_files)
    def snapshots(self, session_id: str | None = None) -> tuple[Snapshot, ...]:
        """Return the snapshots that there are, the latest first. A file that cannot be read is logged as a warning.

        Args:
            session_id: Only those of this session.
        """
        self._check_open()
        from openclaw_memory.conversation.snapshots import saved

        return saved(self.workspace, session_id)

    @observed("resume")
    def resume(self, session_id: str) -> list[Mapping[str, Any]]:
        """Return the messages by which a session goes on: those of its transcript, else of its latest snapshot.

        Secrets are masked, calls of tools that nothing has answered are left out. The adapters make messages of
        LangChain and LlamaIndex of them.

        Args:
            session_id: The session.

        Raises:
            NotFoundError: Nothing was kept of it.
            InvalidInputError: The id is empty.
        """
        self._check_open()
        from openclaw_memory.conversation.snapshots import resume

        return resume(self.workspace, session_id)

    @property
    def index_path(self) -> Path | None:
        """The file of the index; None where the index is not a file."""
        from pathlib import Path

        location = self._service.location if self._builtin else None
        return Path(location) if location and "://" not in location else None

    @property
    def documents(self) -> Documents:
        """What frameworks add to this memory: documents with ids and metadata, each a Markdown file of its own.

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

    @observed("heartbeat", _locate_tasks, writes=True, result=lambda report: "busy" if report.is_busy else "ok")
    def heartbeat(self, *, budget_seconds: float = 5.0, ask: Callable[[str], str] | None = None) -> HeartbeatReport:
        """Look after the memory: expiry, decay, overdue reminders, what to confirm again, duplicates, stale notes.

        Where nothing has changed and nothing is due, it is over at once, and where another one is under way, in any
        thread or process: `is_busy`. It changes records alone; of notes it reports.
        `openclaw_memory.heartbeat.every(minutes, memory.heartbeat)` does it in the background.

        Args:
            budget_seconds: After this time no more work is begun; the report says what is left for the next one.
            ask: A model: takes a question, and returns its answer. It is asked about what needs a judgement alone.

        Raises:
            InvalidInputError: The budget is not a number above zero.
            WorkspaceError: The workspace cannot be read.
            WriteError: A record could not be written.
            ConfigError: The memory has a backend of its own.
        """
        self._check_open()
        return self._engine.heartbeat.beat(budget_seconds=budget_seconds, ask=ask)

    @observed("inspect")
    def inspect(
        self,
        *,
        kind: Kind | None = None,
        since: datetime.date | str | None = None,
        until: datetime.date | str | None = None,
        type: str | None = None,  # noqa: A002 - the field's name
        source: str | None = None,
        sensitivity: str | None = None,
        sort: Order = "path",
    ) -> tuple[Item, ...]:
        """Return everything that is remembered, as it is on disk: each file with what it is, without what it says.

        Args:
            kind: Only "day" (notes of days), "note", "record", "document", "transcript" or "snapshot".
            since: Only what is of this day or later; what is of no day counts by when it was last changed.
            until: Only what is of this day or earlier.
            type: Only records of this type.
            source: Only what comes from there: "user", "chat_turn", "tool" or "file". A record says so itself; a
                person's notes are "file", documents "tool", transcripts and snapshots "chat_turn". What a record has
                from outside, and a document whose `origin` says so, is "external".
            sensitivity: Only records of this sensitivity.
            sort: "path", "date" or "changed" (newest first), or "size" (largest first).

        Raises:
            InvalidInputError: An argument is not one of these.
            WorkspaceError: The folder cannot be listed.
        """
        self._check_open()
        from openclaw_memory.control.inspection import inspect

        return inspect(
            self.workspace,
            kind=kind,
            since=since,
            until=until,
            type=type,
            source=source,
            sensitivity=sensitivity,
            sort=sort,
        )

    @observed("forget", _locate_forgotten, writes=True, result=_summarize)
    def forget(
        self,
        *,
        last_days: int | None = None,
        since: datetime.date | str | None = None,
        query: str | None = None,
        key: str | None = None,
        session: str | None = None,
        paths: Sequence[str] | None = None,
        dry_run: bool = True,
        seen: str | ForgetPlan | None = None,
        now: datetime.date | str | None = None,
    ) -> ForgetReceipt:
        """Plan what is forgotten, and with `dry_run=False` forget it: in the files, and in every byte of the index.

        One of `last_days`, `since`, `query`, `key` and `session` says what, or `paths` alone. Notes of days, records
        and documents go as a whole; of notes, the lines that say `query`; of transcripts, messages, each of which
        becomes a blank one with the same ids. A session goes with its transcript and snapshots, a snapshot as a whole,
        with what the note of its day says of it. Notes that are of no day, such as MEMORY.md, are listed in `review`,
        and touched where `paths` names them.

        Args:
            last_days: What is of the last so many days; today is the first. Days are those of `journal.timezone`.
            since: What is of this day or later.
            query: What says these words, in this order, whatever their case: not what says it in other words.
            key: The records whose keys match this glob, of all types and users.
            session: The id of a session, or its key in `sessions.json`.
            paths: Files, and citations of lines, such as `MEMORY.md#L3-L4`.
            dry_run: Change nothing, and return what would be done.
            seen: The plan that was looked at, or its hash. A plan is done as it is; of a hash, only the same plan is.
            now: The moment, or the day itself, that decides which day is today.

        Returns:
            The plan, and unless `dry_run`, what went and what could not.

        Raises:
            InvalidInputError: An argument has a wrong type or value.
            NotFoundError: A file or line of `paths` is not there.
            PathNotAllowedError: One of `paths` is not that of a memory file.
            ConflictError: Something has changed since the plan was made. Nothing was changed.
            ConfigError: The memory has a backend of its own.
        """
        self._check_open()
        from openclaw_memory.control.forgetting import forget, wanted_of

        wanted = wanted_of(
            self.workspace,
            last_days=last_days,
            since=since,
            query=query,
            key=key,
            session=session,
            paths=paths,
            now=now,
        )
        receipt = forget(self.workspace, self._service, wanted, dry_run=dry_run, seen=seen)
        if not dry_run and self._backend is not self._builtin:  # it may keep text of its own
            self._backend.sync(force=True)
        return receipt

    def observe(self, observer: Observer) -> None:
        """Call an observer with an event for each call that reads or writes, from now on.

        What it raises goes to the caller, and keeps a change that is `started` from being made.

        Args:
            observer: A function of an `openclaw_memory.events.Event`.
        """
        self.events.add(observer)

    def watch(self) -> Watcher:
        """Follow the files from now on: what changes is indexed a moment later, in the background.

        It ends with `stop()` of the watcher, its `with` block, or the memory. A second call returns the same watcher.

        Raises:
            StoreError: The memory is closed.
            ConfigError: The memory has a backend of its own.
        """
        return self._service.watch()

    def status(self, *, deep: bool = False) -> Status:
        """Return what is indexed, with what, and what is degraded. It changes nothing.

        Args:
            deep: Also try both kinds of search with a real query, and check the whole index.

        Raises:
            WorkspaceError: The folder has gone.
            CorruptIndexError: The index is damaged; `sync(force=True)` rebuilds it.
        """
        status = self._backend.status(deep=deep)
        problems = self.events.list_problems()
        return replace(status, notices=(*status.notices, *problems)) if problems else status

    def close(self) -> None:
        """Close the store, and end the watcher and what runs in the background. Calling it twice is allowed.

        A sync that runs in another thread ends with a StoreError; the next one continues from there.
        """
        self._backend.close()
        self.events.close()

    @property
    def _engine(self) -> BuiltinBackend:
        if self._builtin is None:
            raise ConfigError(
                f"{self._backend!r} indexes this memory: documents, watch and embedder belong to the built-in "
                "engine; open the memory without a backend"
            )
        return self._builtin

    @property
    def _service(self) -> IndexService:
        return self._engine.service

    def _check_open(self) -> None:
        if self._builtin is not None:
            self._builtin.service.check_open()

    def _record_write(self, written: Excerpt | None = None) -> None:
        if self._builtin is not None and not (written is not None and written.existed):
            self._builtin.service.record_write()

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
