"""`IntentBlock`: detect memory requests in a message and suggest an action, as a block of LlamaIndex's `Memory`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import MessageRole
from llama_index.core.llms import LLM
from pydantic import Field, PrivateAttr

from llama_index_openclaw_memory._flush_model import ask_model
from llama_index_openclaw_memory._prompt import PromptBlock
from llama_index_openclaw_memory._session import remember
from openclaw_memory.conversation import strip_recalled
from openclaw_memory.errors import ConfigError
from openclaw_memory.plugins import load_plugin
from openclaw_memory.runs import MemoryChoice, RunMemory
from openclaw_memory.tools import find_audience

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

    from openclaw_memory import Memory

_TURNS = 64  # whose text is kept, so that all calls of one turn show the same: those that may be at work at a time


class IntentBlock(PromptBlock):
    """Detect the intent of each message, and suggest it to the model; see `openclaw_memory_intent`.

    Once a turn, `llm` is asked for the intent of the message: to remember, to look up, to forget, or nothing. Messages
    that `is_worth_asking` passes over cost no call. What is suggested is shown for the turn, and is no part of the
    conversation. Nothing is written or deleted by it. It has its say where the user alone reads. A model that fails,
    dawdles or answers nonsense costs the suggestion, never the turn, and so does a memory that fails: one warning is
    logged for each kind of failure.

    An open memory is not pickled, nor is its block: to a `Context` that was restored, hand the `Memory` over again.
    """

    llm: LLM = Field(exclude=True, repr=False)
    memory_name: str | None = None

    failure = "nothing is suggested for a message"

    _texts: OrderedDict[tuple[Path, str | None, str], str] = PrivateAttr(default_factory=OrderedDict)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _detector_of: Any = PrivateAttr()

    def __init__(
        self,
        memory: MemoryChoice,
        llm: LLM,
        *,
        session_key: str | None = None,
        memory_name: str | None = None,
        name: str = "intent",
        **options: Any,
    ) -> None:
        """Make a block over a memory.

        Args:
            memory: The memory, or a selector of one for each run; see `memory_tools`.
            llm: The model that is asked: a small, fast one does.
            session_key: The session. Default: the `session_id` of the `Memory`; where it names a group or a channel,
                no model is asked.
            memory_name: The name of the memory, for an agent with several: the one that its tools begin with.
            name: The name of the block.
            options: `description`, `priority` and `accept_short_term_memory`.

        Raises:
            TypeError: `memory` is not a memory.
            ConfigError: `llm` is no model, or `openclaw_memory_intent` is not installed; and at the first message, in a
                run that has no value for the template of its memory.
        """
        choice = RunMemory.read_choice(memory)
        if not isinstance(llm, LLM):
            raise ConfigError(f"llm must be an LLM of LlamaIndex, not {llm!r:.80}: give the model itself")
        options |= {"memory": choice, "llm": llm, "session_key": session_key, "memory_name": memory_name}
        super().__init__(name=name, **options)
        self._detector_of = load_plugin("detectors", "intent")

    def _compose(self, messages: Sequence[ChatMessage], session_id: str | None) -> str:
        latest = next((each for each in reversed(messages) if each.role == MessageRole.USER), None)
        message = strip_recalled(latest.content or "") if latest is not None else ""

        def make_detector(memory: Memory, session: str | None) -> tuple[Any, Path] | None:
            if not find_audience(memory, session).is_user_alone:
                return None
            return self._detector_of(memory.config), memory.workspace.root

        found_detector = self._read_memory(session_id, make_detector)
        if found_detector is None or not found_detector[0].is_worth_asking(message):
            return ""
        detector, folder = found_detector
        turn = folder, session_id, message
        with self._lock:
            if (text := self._texts.get(turn)) is not None:
                return text
        intent = detector.detect(message, partial(ask_model, self.llm))
        if intent.reason is not None:
            self._warn_once(tuple(intent.reason.split(": ")[:2]), f"{self.failure}: {intent.reason}")
        suggestion = detector.suggest(intent)
        text = "" if suggestion is None else detector.write_instructions(suggestion, name=self.memory_name)
        with self._lock:
            remember(self._texts, turn, text, _TURNS)
        return text
