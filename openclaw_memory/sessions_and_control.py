"""Define two parts of a memory: the sessions, and the control of its content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import ConfigError
from openclaw_memory.events import Location, locate_citation, locate_file, locate_files, observed
from openclaw_memory.workspace.notes import MemoryPart

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Mapping, Sequence

    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.control.inspection import Order
    from openclaw_memory.flush.cycle import FlushRegistry
    from openclaw_memory.flush.flush import Flush
    from openclaw_memory.flush.session import Session
    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.types.control import ForgetPlan, ForgetReceipt, Item, Kind
    from openclaw_memory.types.documents import Snapshot
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.notes import Index
    from openclaw_memory.workspace.session_log import SessionLog


def _locate_forgotten(receipt: ForgetReceipt, *_: Any, **__: Any) -> list[Location]:
    planned = (step.citation for step in receipt.plan.steps)
    return [locate_citation(citation) for citation in (planned if receipt.is_dry_run else receipt.forgotten)]


def _summarize(receipt: ForgetReceipt) -> str:
    return "planned" if receipt.is_dry_run else "partly" if receipt.remaining or not receipt.is_erased else "ok"


class Sessions(MemoryPart):
    """The conversations of a memory: their transcripts, their ends, and the flush before a compaction."""

    def __init__(self, workspace: Workspace, index: Index, config: MemoryConfig, flushes: FlushRegistry) -> None:
        """Take the files, the index that follows them, the settings, and the flushes that are under way."""
        super().__init__(workspace, index)
        self.config, self.flushes = config, flushes

    def log(self, session_id: str, *, parent_session: str | None = None) -> SessionLog:
        """Return the writable transcript of a conversation; its lines are found after the next sync.

        Args:
            session_id: The id of the session.
            parent_session: The id of the session that this one continues.

        Raises:
            InvalidInputError: The id is empty.
        """
        self._index.check_open()
        return self._workspace.open_log(session_id, parent_session=parent_session)

    def flush(self, session: Session | str = "main", *, window: int | None = None) -> Flush:
        """Return the flush of a session, which saves memories before a compaction.

        Args:
            session: The session, or its key.
            window: The tokens that the conversation has room for: the model's context window, or the limit that a
                program trims it to; None if unknown.

        Raises:
            InvalidInputError: The key is empty.
            ConfigError: The window is not a number of tokens.
        """
        self._index.check_open()
        from openclaw_memory.flush.flush import Flush

        return Flush(
            self._workspace,
            session,
            self.config.compaction,
            window=window,
            on_write=self._index.sync_soon,
            registry=self.flushes,
        )

    @observed("snapshot", locate_file, writes=True)
    def snapshot(
        self, session_id: str, messages: Sequence[Mapping[str, Any]] | None = None, summary: str | None = None
    ) -> Snapshot | None:
        """Keep the end of a session that ends or may be killed, and name it in today's note.

        Kept are the last messages with words (`sessions.snapshot_messages`), 500 UTF-16 units of each, with secrets
        masked, and none that policies never let be stored, in `.memory/snapshots/`. Nothing removes them but `forget`.
        A note that cannot be written is a warning in the log.

        Args:
            session_id: The session.
            messages: The conversation, oldest first, each with `role` and `content`; None for the transcript's.
            summary: Its subject, for the note too, which others may be shown; its first 4,000 UTF-16 units are
                kept.

        Returns:
            The snapshot. None if there was no message with words, or `sessions.snapshot_messages` is 0.

        Raises:
            InvalidInputError: The id is empty, or a message has no `role`.
            PolicyError: A rule says never to store the summary, or a file of this name. Nothing was written.
            WriteError, PathNotAllowedError: It could not be written.
        """
        self._index.check_open()
        from openclaw_memory.conversation.snapshots import save

        snapshot = save(self._workspace, session_id, messages, summary, count=self.config.sessions.snapshot_messages)
        self._index.record_write()
        return snapshot

    @observed("snapshots", locate_files)
    def snapshots(self, session_id: str | None = None) -> tuple[Snapshot, ...]:
        """Return the snapshots that there are, the latest first. A file that cannot be read is logged as a warning.

        Args:
            session_id: Only those of this session.
        """
        self._index.check_open()
        from openclaw_memory.conversation.snapshots import list_snapshots

        return list_snapshots(self._workspace, session_id)

    @observed("resume")
    def resume(self, session_id: str) -> list[Mapping[str, Any]]:
        """Return the messages to resume a session with, from its transcript, else its latest snapshot.

        Secrets are masked, calls of tools that nothing has answered are left out. The adapters make messages of
        LangChain and LlamaIndex of them.

        Args:
            session_id: The session.

        Raises:
            NotFoundError: Nothing was kept of it.
            InvalidInputError: The id is empty.
        """
        self._index.check_open()
        from openclaw_memory.conversation.snapshots import resume

        return resume(self._workspace, session_id)


class Control(MemoryPart):
    """List the content of a memory, and forget parts."""

    def __init__(
        self, workspace: Workspace, index: Index, service: IndexService | None, rebuild: Callable[[], object] | None
    ) -> None:
        """Take the files and the index; and how a plug-in that may keep text of its own builds its index again."""
        super().__init__(workspace, index)
        self._service, self._rebuild = service, rebuild

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
        """List everything that is remembered, as it is on disk: each file with its kind and size, without its text.

        Args:
            kind: Only "day" (notes of days), "note", "record", "document", "transcript" or "snapshot".
            since: Only items of this day or later; an item without a day counts by its last change.
            until: Only items of this day or earlier.
            type: Only records of this type.
            source: Only items from there: "user", "chat_turn", "tool" or "file". A record says so itself; a
                person's notes are "file", documents "tool", transcripts and snapshots "chat_turn". What a record has
                from outside, and a document whose `origin` says so, is "external".
            sensitivity: Only records of this sensitivity.
            sort: "path", "date" or "changed" (newest first), or "size" (largest first).

        Raises:
            InvalidInputError: An argument is not one of these.
            WorkspaceError: The folder cannot be listed.
        """
        self._index.check_open()
        from openclaw_memory.control.inspection import inspect

        return inspect(
            self._workspace,
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
        expected: str | ForgetPlan | None = None,
        now: datetime.date | str | None = None,
    ) -> ForgetReceipt:
        """Plan a deletion, or with `dry_run=False` delete: in the files, and in every byte of the index.

        One of `last_days`, `since`, `query`, `key` and `session` says what, or `paths` alone. Notes of days, records
        and documents go as a whole; of notes, the lines that say `query`; of transcripts, messages, each of which
        becomes a blank one with the same ids. A session goes with its transcript and snapshots, a snapshot as a whole,
        with its line in the note of its day. Notes that are of no day, such as MEMORY.md, are listed in `review`,
        and touched where `paths` names them.

        Args:
            last_days: Items of the last so many days; today is the first. Days are those of `sessions.timezone`.
            since: Items of this day or later.
            query: Lines with these words, in this order, in any case; not the same in other words.
            key: The records whose keys match this glob, of all types and users.
            session: The id of a session, or its key in `sessions.json`.
            paths: Files, and citations of lines, such as `MEMORY.md#L3-L4`.
            dry_run: Change nothing, and return the plan alone.
            expected: The plan that a person has seen, or its hash. A plan is done as it is; of a hash, only the
                same plan is.
            now: The moment, or the day itself, that decides which day is today.

        Returns:
            The plan, and unless `dry_run`, the items that went and those that could not.

        Raises:
            InvalidInputError: An argument has a wrong type or value.
            NotFoundError: A file or line of `paths` is not there.
            PathNotAllowedError: One of `paths` is not that of a memory file.
            ConflictError: Something has changed since the plan was made. Nothing was changed.
            ConfigError: The memory has a backend of its own.
        """
        self._index.check_open()
        if self._service is None:
            raise ConfigError("a plug-in indexes this memory: open it without the plug-in to forget something")
        from openclaw_memory.control.forgetting import forget, read_request

        criteria: Mapping[str, Any] = {"last_days": last_days, "since": since, "query": query, "key": key}
        selection = read_request(self._workspace, session=session, paths=paths, now=now, **criteria)
        receipt = forget(self._workspace, self._service, selection, dry_run=dry_run, expected=expected)
        if not dry_run and self._rebuild is not None:
            self._rebuild()
        return receipt
