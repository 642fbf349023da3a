"""Define the sessions of a memory: transcripts, snapshots, and the flush before a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openclaw_memory.events import locate_file, locate_files, observed
from openclaw_memory.flush.session import Session, get_id
from openclaw_memory.workspace.notes import MemoryPart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.flush.conversation import Conversation, Model
    from openclaw_memory.flush.flush import Flush
    from openclaw_memory.flush.state import FlushRegistry
    from openclaw_memory.types.documents import Snapshot, Tool
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.notes import Index
    from openclaw_memory.workspace.session_log import SessionLog


class Sessions(MemoryPart):
    """The conversations of a memory: their transcripts, their ends, and the flush before a compaction."""

    def __init__(self, workspace: Workspace, index: Index, config: MemoryConfig, flushes: FlushRegistry) -> None:
        """Take the files, the index that follows them, the settings, and the flushes that are under way."""
        super().__init__(workspace, index)
        self.config, self.flushes = config, flushes

    def log(self, session_id: Session | str, *, parent_session: str | None = None) -> SessionLog:
        """Return the writable transcript of a conversation; its lines are found after the next sync.

        Args:
            session_id: The session, or its id.
            parent_session: The id of the session that this one continues.

        Raises:
            InvalidInputError: The id is empty.
        """
        self._index.check_open()
        return self._workspace.open_log(get_id(session_id), parent_session=parent_session)

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

        rules, on_write = self.config.compaction, self._index.sync_soon
        return Flush(self._workspace, session, rules, window=window, on_write=on_write, registry=self.flushes)

    def open_conversation(
        self, model: Model, session: Session | str = "main", *, window: int | None = None, tools: Sequence[Tool] = ()
    ) -> Conversation:
        """Return a conversation with a model, for a loop of one's own: `conversation.send(text)` returns the reply.

        All of it is logged; memories are saved before it is compacted, and it goes on after a restart.

        Args:
            model: Returns the reply to messages in OpenAI's shape, as one more or as text, given the tools to offer.
                It is asked for notes and summaries too.
            session: The session, or its key.
            window: The model's context window in tokens; None if unknown: then only its refusal compacts.
            tools: The tools that the model may call, such as `memory_tools(memory)`, which show what the session may be
                shown.

        Raises:
            InvalidInputError, ConfigError: As `flush`.
        """
        from openclaw_memory.flush.conversation import Conversation

        return Conversation(self.flush(session, window=window), model, tools)

    @observed("snapshot", locate_file, writes=True)
    def snapshot(
        self, session_id: Session | str, messages: Sequence[Mapping[str, Any]] | None = None, summary: str | None = None
    ) -> Snapshot | None:
        """Keep the end of a session that ends or may be killed, and name it in today's note.

        Kept are the last messages with words (`sessions.snapshot_messages`), 500 UTF-16 units of each, with secrets
        masked, and none that policies never let be stored, in `.memory/snapshots/`. Nothing removes them but `forget`.
        A note that cannot be written is a warning in the log.

        Args:
            session_id: The session, or its id.
            messages: The conversation, oldest first, each with `role` and `content`; None for the transcript's.
            summary: Its subject, for the note too, which others may be shown.

        Returns:
            The snapshot. None if there was no message with words, or `sessions.snapshot_messages` is 0.

        Raises:
            InvalidInputError: The id is empty, or a message has no `role`.
            PolicyError: A rule says never to store the summary, or a file of this name. Nothing was written.
            WriteError, PathNotAllowedError: It could not be written.
        """
        self._index.check_open()
        from openclaw_memory.conversation.snapshots import save

        snapshot = save(self._workspace, get_id(session_id), messages, summary)
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
    def resume(self, session_id: Session | str) -> list[Mapping[str, Any]]:
        """Return the messages to resume a session with, from its transcript, else its latest snapshot.

        Secrets are masked, calls of tools that nothing has answered are left out. The adapters make messages of
        LangChain and LlamaIndex of them.

        Args:
            session_id: The session, or its id.

        Raises:
            NotFoundError: Nothing was kept of it.
            InvalidInputError: The id is empty.
        """
        self._index.check_open()
        from openclaw_memory.conversation.snapshots import resume

        return resume(self._workspace, get_id(session_id))
