"""`OpenClawMemoryBlock`: keep and flush messages that LlamaIndex's `Memory` ejects, and show the model its memory."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.utils import get_tokenizer
from pydantic import Field, PrivateAttr

from llama_index_openclaw_memory._background import Background
from llama_index_openclaw_memory._eviction import Ejected
from llama_index_openclaw_memory._flush_model import ask_model, get_window
from llama_index_openclaw_memory._messages import convert_messages, render_text
from llama_index_openclaw_memory._session import find_session, lease_run_memory
from openclaw_memory import Memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.conversation import cut, estimate_tokens, format_messages, strip_recalled
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.flush import Session
from openclaw_memory.plugins import load_plugin
from openclaw_memory.runs import MemoryChoice, RunMemory, keep_recent
from openclaw_memory.tools import compose_session_start, fence_results, find_audience, recall, with_fewer_results

if TYPE_CHECKING:
    from pathlib import Path

    from llama_index.core.tools import BaseTool

    from openclaw_memory.types import Source

_SESSIONS = 64  # whose latest texts are kept
_UNWRITTEN = "earlier messages, not saved yet"  # what a model is shown above them
_BETWEEN_BLOCKS = re.compile(r"\n\n(?=<recalled-memory )")  # no text in a block holds the name of its fence
_WAITING = 4096  # sessions that are known to wait for a flush; what of others waits is in their transcripts


class OpenClawMemoryBlock(BaseMemoryBlock[str]):
    """An agent's memory as a block of LlamaIndex's `Memory`: `Memory.from_defaults(memory_blocks=[block])`.

    Every message that `Memory` ejects is written to a transcript at once, word for word and with secrets masked, where
    searches find it. With an `llm`, a silent turn is held over what was ejected since the last one, once that has
    `flush_tokens` tokens or more: the model writes lasting facts into today's note. Nothing of this raises: what
    fails is in the log and in `memory.status().flush`. Messages the disk refuses are held in memory and tried again
    with the next messages; until then it stays in the model's view, as far as a quarter of the window of `llm` allows.
    No caller but `flush` and `settle` waits for the model, and a cancelled agent stops neither what is written nor what
    is flushed; the end of the program waits for both.

    `Memory` shows the model what is relevant to the latest message of the user's: fenced, and nothing of a transcript
    that the model is shown anyway. It stays the same until that is answered, or messages go out of view. Before it
    stands, if asked for, what the session starts with, and a hint at what the message wants of the memory. A memory
    that fails costs these texts, never the turn: one warning is logged for each kind of failure.

    An open memory is not pickled, nor is its block: to a `Context` that was restored, hand the `Memory` over again.
    """

    memory: Any = Field(exclude=True, repr=False)
    llm: LLM | None = Field(default=None, exclude=True, repr=False)
    session_key: str | None = None
    session_start: bool = False
    tool_names: tuple[str, ...] = ()
    intent: LLM | None = Field(default=None, exclude=True, repr=False)
    flush_tokens: int | None = None
    max_chars: int | None = None
    max_results: int | None = None
    min_score: float | None = None
    source: Any = None
    tokenizer_fn: Callable[[str], Sequence[Any]] = Field(default_factory=get_tokenizer, exclude=True, repr=False)

    _ejected: OrderedDict[RunMemory, Ejected] = PrivateAttr(default_factory=OrderedDict)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _recalled_blocks: OrderedDict[RunMemory, tuple[int, str]] = PrivateAttr(default_factory=OrderedDict)
    _hints: OrderedDict[tuple[Path, Session, str], str] = PrivateAttr(default_factory=OrderedDict)
    _background: Background = PrivateAttr(default_factory=Background)
    _detector_of: Any = PrivateAttr(default=None)

    def __init__(
        self,
        memory: MemoryChoice,
        *,
        llm: LLM | None = None,
        session_key: str | None = None,
        session_start: bool = False,
        tools: Sequence[BaseTool] = (),
        intent: LLM | None = None,
        flush_tokens: int | None = None,
        max_chars: int | None = None,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        tokenizer_fn: Callable[[str], Sequence[Any]] | None = None,
        name: str = "openclaw_memory",
        **options: Any,
    ) -> None:
        """Make a block over a memory.

        Args:
            memory: Where ejected messages are kept, or a selector of one for each run; see `OpenClawToolSpec`.
            llm: The model that writes notes.
            session_key: The session. Default: the `session_id` of the `Memory`, else that of the run, see
                `OpenClawToolSpec`, else `main`; where it, or the run, names a group or a channel, nothing private is
                shown.
            session_start: Whether to show what a session starts with, see `compose_session_start`: how to use the
                `tools`, `SOUL.md`, `MEMORY.md`, and the notes of yesterday and today.
            tools: The agent's tools, which a block does not see.
            intent: A small, fast model that is asked once a turn what the user's message wants of the memory, see
                `openclaw_memory_intent`; the agent's model is shown a hint. In groups it is not asked.
            flush_tokens: How much is flushed at once, estimated at four characters each. Default:
                `config.compaction.soft_threshold_tokens`.
            max_chars: The most characters that are recalled. Default: `config.recall.max_chars`.
            max_results: As for `Memory.search`.
            min_score: Likewise.
            source: Likewise.
            tokenizer_fn: That of the `Memory`, which asks for less of a block with a `priority` above 0 than there is.
                Default: LlamaIndex's.
            name: The name of the block.
            options: `description`, `priority` and `accept_short_term_memory`.

        Raises:
            TypeError: `memory` is not a memory.
            ConfigError: `llm` or `intent` is no model, `flush_tokens` no whole number of at least 1, or
                `openclaw_memory_intent` is not installed.
            ConfigError, InvalidInputError: at the first recall, where an argument of the search has a wrong type or
                value; and in a run that has no value for the template of its memory.
        """
        choice = RunMemory.read_choice(memory)
        for role, model in (("llm", llm), ("intent", intent)):
            if model is not None and not isinstance(model, LLM):
                raise ConfigError(f"{role} must be an LLM of LlamaIndex, not {model!r:.80}: give the model, or None")
        is_whole = isinstance(flush_tokens, int) and not isinstance(flush_tokens, bool)
        if flush_tokens is not None and not (is_whole and flush_tokens >= 1):
            raise ConfigError(f"flush_tokens must be a whole number of at least 1, not {flush_tokens!r}")
        if flush_tokens is None and isinstance(choice, Memory):
            flush_tokens = choice.config.compaction.soft_threshold_tokens
        options |= {"memory": choice, "llm": llm, "session_key": session_key, "flush_tokens": flush_tokens}
        options |= {"max_chars": max_chars, "max_results": max_results, "min_score": min_score, "source": source}
        options |= {"intent": intent, "session_start": session_start}
        options |= {"tool_names": tuple(tool.metadata.get_name() for tool in tools)}
        options |= {} if tokenizer_fn is None else {"tokenizer_fn": tokenizer_fn}
        super().__init__(name=name, **options)
        self._detector_of = None if intent is None else load_plugin("detectors", "intent")

    def __deepcopy__(self, _memo: object = None) -> Self:
        return self  # like the memory, by frameworks that copy their parts

    # --- what is ejected ---

    async def aput(
        self, messages: list[ChatMessage], from_short_term_memory: bool = False, session_id: str | None = None
    ) -> None:
        """Write messages to the transcript, and begin a flush if one is due, which is not waited for."""
        if self.accept_short_term_memory or not from_short_term_memory:
            await self._take(messages, session_id)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self._take(messages, None)

    async def _take(self, messages: Sequence[ChatMessage], session_id: str | None) -> None:
        session = self._find_session(session_id)
        leased = lease_run_memory(self.memory, session)
        with self._lock:
            self._recalled_blocks.pop(leased, None)  # what is out of view can be recalled from here on
        # Taken before anything is waited for: a task that is cancelled from here on loses nothing.
        if ejected := convert_messages(messages):
            await asyncio.wrap_future(self._get_ejected(leased).take(ejected))

    def _get_ejected(self, leased: RunMemory) -> Ejected:
        """Return the ejected messages of a session, and forget the oldest sessions with nothing that waits."""
        with self._lock:
            if leased not in self._ejected:
                self._ejected[leased] = Ejected(leased, self.llm, self.flush_tokens, self._background)
            self._ejected.move_to_end(leased)
            for old in list(islice(self._ejected, max(0, len(self._ejected) - _WAITING))):
                if not self._ejected[old].is_needed:
                    del self._ejected[old]
            return self._ejected[leased]

    def flush(self, session_id: str | None = None) -> None:
        """Flush the messages ejected since the last flush, at the end of a session.

        Running work is waited for. Messages not ejected are not included: hand it to `aput` first if the
        conversation is over.

        Args:
            session_id: The session, of the memory of this run. Default: all of them, of all memories.
        """
        if session_id is not None:
            self._get_ejected(lease_run_memory(self.memory, self._find_session(session_id))).flush()
            return
        for ejected in list(self._ejected.values()):
            if ejected.waits:
                ejected.flush()

    async def aflush(self, session_id: str | None = None) -> None:
        """Run `flush` in a thread.

        Args:
            session_id: The session. Default: all of them.
        """
        await run_in_thread(self.flush, session_id)

    def settle(self) -> None:
        """Wait until every flush that is under way is over."""
        self._background.settle()

    async def asettle(self) -> None:
        """`settle` that lets the loop go on."""
        await run_in_thread(self.settle)

    # --- what is shown ---

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        return await run_in_thread(self._compose, messages or [], block_kwargs.get("session_id"))

    def _compose(self, messages: Sequence[ChatMessage], session_id: str | None) -> str:
        """Compose the text next to the messages, its most stable part first."""
        session = self._find_session(session_id)
        parts = self._start, self._suggest, self._show_unwritten, self._recall
        return "\n\n".join(filter(None, (self._guard(part, messages, session) for part in parts)))

    def _guard(
        self, part: Callable[[Sequence[ChatMessage], Session], str], messages: Sequence[ChatMessage], session: Session
    ) -> str:
        """Return a part of the text; "" if the memory fails."""
        try:
            return part(messages, session)
        except (ConfigError, InvalidInputError):  # wrong from the first message on, whatever the memory holds
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            self._background.report("nothing of the memory is shown, as it failed", error)
            return ""

    def _start(self, _messages: Sequence[ChatMessage], session: Session) -> str:
        if not self.session_start:
            return ""
        with lease_run_memory(self.memory, session) as memory:
            return compose_session_start(memory, self.tool_names, session_key=session)

    def _suggest(self, messages: Sequence[ChatMessage], session: Session) -> str:
        """Ask a model once a turn for the intent of the user's latest message, and return a hint at it."""
        latest = next((each for each in reversed(messages) if each.role == MessageRole.USER), None)
        message = strip_recalled(latest.content or "") if latest is not None else ""
        if not (message and self.intent):
            return ""
        with lease_run_memory(self.memory, session) as memory:
            detector, turn = self._detector_of(memory.config), (memory.workspace.root, session, message)
            if not (find_audience(memory, session).is_user_alone and detector.is_worth_asking(message)):
                return ""
        with self._lock:
            if (text := self._hints.get(turn)) is not None:
                return text
        intent = detector.detect(message, partial(ask_model, self.intent))
        if intent.reason is not None:
            words = f"nothing is suggested for a message: {intent.reason}"
            self._background.warn_once(tuple(intent.reason.split(": ")[:2]), words)
        suggestion = detector.suggest(intent)
        search = next((name for name in self.tool_names if name.endswith("_memory_search")), "")
        name = search.removesuffix("_memory_search") or None  # of the memory, for an agent with several
        text = "" if suggestion is None else detector.write_instructions(suggestion, name=name)
        with self._lock:
            keep_recent(self._hints, turn, text, _SESSIONS)
        return str(text)

    def _show_unwritten(self, _messages: Sequence[ChatMessage], session: Session) -> str:
        """Return the ejected messages that could not be written, in a fence; the latest, if not all have room."""
        leased = lease_run_memory(self.memory, session)
        with self._lock:
            ejected = self._ejected.get(leased)
        messages = [] if ejected is None else ejected.unwritten
        window = None if self.llm is None else get_window(self.llm)
        most = leased.config.compaction.soft_threshold_tokens if window is None else window // 4
        messages = messages[cut(messages, most) :]
        while estimate_tokens(messages) > most:
            messages.pop(0)
        return fence_results([(_UNWRITTEN, format_messages(messages))], "this conversation") if messages else ""

    def _recall(self, messages: Sequence[ChatMessage], session: Session) -> str:
        is_from_user = [message.role == MessageRole.USER for message in messages]
        position = len(messages) - is_from_user[::-1].index(True) if any(is_from_user) else 0
        latest = messages[position - 1] if position else ChatMessage("")
        question = (strip_recalled(latest.content or "") or strip_recalled(render_text(latest))).strip()
        if not question:
            return ""
        leased = lease_run_memory(self.memory, session)
        turn = hash((session, _mark(messages[:position])))
        with self._lock:
            before, block = self._recalled_blocks.get(leased, (0, ""))
        if before == turn:
            return block
        names = ("max_chars", "max_results", "min_score", "source")
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        with leased as memory:
            block = recall(memory, question, session_key=session, in_view=convert_messages(messages), **settings)
        with self._lock:
            keep_recent(self._recalled_blocks, leased, (turn, block), _SESSIONS)
        return block

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the block without its last results until so many tokens are saved; None if nothing is left."""
        if not isinstance(content, str) or not content:
            return None
        most = len(self.tokenizer_fn(content)) - tokens_to_truncate
        blocks = _BETWEEN_BLOCKS.split(content)
        while blocks:
            *before, last = blocks
            is_short = partial(self._is_short, before, most)
            if shorter := with_fewer_results(last, is_short):
                return "\n\n".join([*before, shorter])
            if before and is_short():
                return "\n\n".join(before)
            blocks = before
        return None

    def _is_short(self, before: Sequence[str], most: int, last: str = "") -> bool:
        return len(self.tokenizer_fn("\n\n".join([*before, last]).strip())) <= most

    def _find_session(self, session_id: str | None) -> Session:
        own, conversation = ((name or "").strip() or None for name in (self.session_key, session_id))
        return find_session(own, conversation) or Session()


def _mark(messages: Iterable[ChatMessage]) -> int:
    """Hash a conversation, to recognise the turn. A message that is repeated at once counts once."""
    return hash(tuple(line for line, _ in groupby((message.role, render_text(message)) for message in messages)))
