"""`OpenClawMemoryBlock`: what LlamaIndex's `Memory` ejects is kept and flushed, and what is relevant is recalled."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.utils import get_tokenizer
from pydantic import Field, PrivateAttr

from llama_index_openclaw_memory import _turn
from llama_index_openclaw_memory._messages import as_text, openclaw_messages, words_of
from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, QueryError
from openclaw_memory.say import say
from openclaw_memory.sessions import (
    Message,
    compaction_threshold,
    cut,
    estimated_tokens,
    hold,
    since_compaction,
    transcribed,
)
from openclaw_memory.tools import checked_memory, question_in, recall, with_fewer_results

if TYPE_CHECKING:
    from openclaw_memory.sessions import Flush, FlushTurn
    from openclaw_memory.types import Source

MAIN = "main"  # OpenClaw's name for the session of whoever names none
_SESSIONS = 64  # whose latest block is kept
# Of the end of a transcript, so many bytes are read for each token that is wanted of it: entries say about 150 bytes
# beside their words, of which the shortest have a few tokens.
_BYTES_PER_TOKEN = 64


@dataclass(slots=True)
class _Waiting:
    """What waits of a session: messages that its transcript did not take, and those that no flush has looked at."""

    unwritten: list[Message] = field(default_factory=list)
    unflushed: list[Message] = field(default_factory=list)
    failed: bool = False  # the latest writing, which is told once
    flushes: int = 0  # that are under way


# The question, and how many replies the conversation had then: by this, the block of one turn is known.
_Asked: TypeAlias = tuple[str, int]


class OpenClawMemoryBlock(BaseMemoryBlock[str]):
    """An agent's memory as a block of LlamaIndex's `Memory`: `Memory.from_defaults(memory_blocks=[block])`.

    Every message that `Memory` ejects is written to a transcript at once, word for word and with secrets masked, where
    searches find it. With an `llm`, a silent turn is held over what was ejected since the last one, once that has
    `flush_tokens` tokens or more: the model writes what should last into today's note. `flush` holds one for the rest,
    at the end of a session. Nothing of this raises: what fails is told in the log and in `memory.status().flush`, and
    what the disk does not take is held in memory, and tried again with the next messages.

    `Memory` shows the model what is relevant to the latest message of the user's: fenced, at most `max_chars`
    characters, and nothing of a transcript that the model is shown anyway. It stays the same until that is answered.

    The session is `session_key`, else the `session_id` of the `Memory`, else `main`; where it names a group or a
    channel, nothing private is shown. `flush_tokens` (estimated, four characters each) is by default
    `config.compaction.soft_threshold_tokens`, `max_chars` `config.recall.max_chars`; `max_results`, `min_score` (0..1)
    and `source` are those of `Memory.search`. With a `priority` above 0, `Memory` may ask for less of the block than
    there is; see `BaseMemoryBlock` for the rest.
    """

    memory: Memory = Field(exclude=True, repr=False, description="Where it is kept and searched for.")
    llm: LLM | None = Field(default=None, exclude=True, repr=False, description="The model that writes notes.")
    session_key: str | None = None
    flush_tokens: int = 0
    max_chars: int | None = None
    max_results: int | None = None
    min_score: float | None = None
    source: Any = None

    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _waiting: dict[str, _Waiting] = PrivateAttr(default_factory=dict)
    _shown: OrderedDict[str, tuple[_Asked, str]] = PrivateAttr(default_factory=OrderedDict)
    _told: set[str] = PrivateAttr(default_factory=set)

    def __init__(
        self,
        memory: Memory,
        *,
        llm: LLM | None = None,
        session_key: str | None = None,
        flush_tokens: int | None = None,
        max_chars: int | None = None,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        name: str = "openclaw_memory",
        **options: Any,
    ) -> None:
        """Keep what is ejected in `memory`; `options` are `description`, `priority` and `accept_short_term_memory`.

        Raises:
            ConfigError: `memory` is no memory, `llm` no model, or `flush_tokens` no whole number of at least 1.
            ConfigError, QueryError: at the first recall, where an argument of the search has a wrong type or value.
        """
        checked_memory(memory)
        if llm is not None and not isinstance(llm, LLM):
            raise ConfigError(f"llm must be an LLM of LlamaIndex, not {llm!r:.80}: give the model itself, or None")
        tokens = memory.config.compaction.soft_threshold_tokens if flush_tokens is None else flush_tokens
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
            raise ConfigError(f"flush_tokens must be a whole number of at least 1, not {tokens!r}")
        options |= {"memory": memory, "llm": llm, "session_key": session_key, "flush_tokens": tokens}
        options |= {"max_chars": max_chars, "max_results": max_results, "min_score": min_score, "source": source}
        super().__init__(name=name, **options)

    def __deepcopy__(self, _memo: object = None) -> Self:
        return self  # like the memory, by frameworks that copy their parts

    # --- what is ejected ---

    async def aput(
        self, messages: list[ChatMessage], from_short_term_memory: bool = False, session_id: str | None = None
    ) -> None:
        """Keep messages, and hold a flush where one is due. The messages are not changed; nothing is raised."""
        if self.accept_short_term_memory or not from_short_term_memory:
            await asyncio.to_thread(self._take, messages, session_id)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(self._take, messages, None)

    def flush(self, session_id: str | None = None) -> None:
        """Hold a flush of what was ejected since the last one, at the end of a session; by default of all sessions.

        What `Memory` has not ejected is no part of it: where its conversation is over, hand it to `aput` before.
        """
        with self._lock:
            keys = list(self._waiting) if session_id is None else [self._key(session_id)]
        for key in keys:
            self._keep(key, [], at_any_rate=True)

    async def aflush(self, session_id: str | None = None) -> None:
        """`flush` in a thread."""
        await asyncio.to_thread(self.flush, session_id)

    def _take(self, messages: Sequence[ChatMessage], session_id: str | None) -> None:
        key = self._key(session_id)
        try:
            ejected = openclaw_messages(messages)
        except Exception as error:  # noqa: BLE001 - Memory has archived the messages: it would be the agent that fails
            say(f"{len(messages)} messages of session {key!r} could not be read: {error}")
            return
        if ejected:
            self._keep(key, ejected, at_any_rate=False)

    def _keep(self, key: str, ejected: list[dict[str, Any]], *, at_any_rate: bool) -> None:
        """Write what was ejected and what was not written before, and hold a flush where there is enough for one."""
        with self._lock:
            waiting = self._waiting.get(key) or _Waiting(unflushed=self._of_others(key))
            self._waiting[key] = waiting
            waiting.unwritten += ejected
            self._write(key, waiting)
            enough = 1 if at_any_rate else self.flush_tokens
            talk = waiting.unflushed if estimated_tokens(waiting.unflushed) >= enough else []
            if talk:
                waiting.unflushed, waiting.flushes = [], waiting.flushes + 1
        was_held = self.llm is not None and bool(talk) and self._flushed(key, self.llm, talk)
        with self._lock:
            if talk:
                waiting.unflushed[:0] = [] if was_held else talk
                waiting.flushes -= 1
            if waiting == _Waiting():
                self._waiting.pop(key, None)

    def _of_others(self, key: str) -> list[Message]:
        """What a program that has ended had ejected since its latest flush: as much as it may have waited with."""
        if not self._flushes:
            return []
        try:
            session = self.memory.flush(key)
            most = self.flush_tokens * _BYTES_PER_TOKEN
            found = since_compaction(session.log, session.state.compacted_bytes, most)
            return found[cut(found, self.flush_tokens) :]
        except Exception as error:  # noqa: BLE001 - it is in the transcript, whatever is wrong with that
            self._tell(f"the transcript of session {key!r} cannot be read for its flush", error)
            return []

    def _write(self, key: str, waiting: _Waiting) -> None:
        """Write what the transcript of a session lacks: it is to be flushed then."""
        if not waiting.unwritten:
            return
        session: Flush | None = None
        try:
            session = self.memory.flush(key)
            written = transcribed(session.log, waiting.unwritten)
        except Exception as error:  # noqa: BLE001 - it is told, and tried again with the next messages
            self._not_written(key, session, waiting, error)
            return
        if waiting.failed:
            session.save(flush_error=None)
        waiting.unwritten, waiting.failed = [], False
        if self._flushes:
            waiting.unflushed += written
        session.wrote()

    def _not_written(self, key: str, session: Flush | None, waiting: _Waiting, error: Exception) -> None:
        why = f"{len(waiting.unwritten)} ejected messages are not in the transcript, and wait in memory: {error}"
        if not waiting.failed:
            say(f"session {key!r}: {why}")
        waiting.failed = True
        if session is not None:
            session.save(flush_error=why)

    def _flushed(self, key: str, llm: LLM, talk: list[Message]) -> bool:
        """Have the model look at what was ejected. True where a turn was held: the transcript has the words anyway."""

        def begin() -> FlushTurn | None:
            session = self.memory.flush(key)
            tokens = estimated_tokens(talk)
            # What is ejected is compacted away, and what of it had its flush is known here.
            return session.due(tokens, compacting=True, flushed=False, messages=lambda: talk)

        def drive(turn: FlushTurn) -> None:
            room = compaction_threshold(_turn.window_of(llm), self.memory.config.compaction)
            _turn.flush(turn, llm, as_text(talk), room=room, count=_estimated)
            self.memory.flush(key).compacted()

        return hold(key, begin, drive)

    @property
    def _flushes(self) -> bool:
        return self.llm is not None and self.memory.config.compaction.flush

    # --- what is recalled ---

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        return await asyncio.to_thread(self._recalled, messages or [], block_kwargs.get("session_id"))

    def _recalled(self, messages: Sequence[ChatMessage], session_id: str | None) -> str:
        asked = next((message for message in reversed(messages) if message.role == MessageRole.USER), None)
        question = question_in(words_of(asked)) if asked is not None else ""
        if not question:
            return ""
        key = self._key(session_id)
        turn = (question, sum(message.role == MessageRole.ASSISTANT for message in messages))
        with self._lock:
            before = self._shown.get(key)
        if before is not None and before[0] == turn:
            return before[1]
        block = self._found(key, question, messages)
        with self._lock:
            self._shown[key] = (turn, block)
            self._shown.move_to_end(key)
            while len(self._shown) > _SESSIONS:
                self._shown.popitem(last=False)
        return block

    def _found(self, key: str, question: str, messages: Sequence[ChatMessage]) -> str:
        try:
            return recall(
                self.memory,
                question,
                max_chars=self.max_chars,
                max_results=self.max_results,
                min_score=self.min_score,
                session_key=key,
                source=self.source,
                in_view=openclaw_messages(messages),
            )
        except (ConfigError, QueryError):  # wrong from the first call on, whatever the memory holds
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            self._tell("nothing could be recalled, as the memory failed", error)
            return ""

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The block without its last results, whole ones, until so many tokens are saved; None where nothing is left.

        Tokens are those of LlamaIndex's own tokenizer, as `Memory` counts by default.
        """
        if not isinstance(content, str) or not content:
            return None
        tokenize = get_tokenizer()
        most = len(tokenize(content)) - tokens_to_truncate
        return with_fewer_results(content, lambda shorter: len(tokenize(shorter)) <= most) or None

    # --- what both need ---

    def _key(self, session_id: str | None) -> str:
        return self.session_key or session_id or MAIN

    def _tell(self, what: str, error: Exception) -> None:
        """Say what failed, each thing once for a kind of error."""
        words = f"{what}: {type(error).__name__}"
        if words not in self._told:
            self._told.add(words)
            say(f"{words}: {error}")


def _estimated(text: str) -> int:
    return estimated_tokens([{"role": "user", "content": text}])
