"""Flush conversations outside of agents: a callback handler that watches the calls of a chat model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, LLMResult

from langchain_openclaw_memory._flush import PendingFlush, check_memory, get_window, lease_chat, save
from langchain_openclaw_memory._flush_model import Model, load_chat_model
from langchain_openclaw_memory._messages import SUMMARY_SOURCE, convert_message, convert_messages, drop_system
from langchain_openclaw_memory._session import get_run_config
from openclaw_memory.errors import ConfigError
from openclaw_memory.flush import ConversationDetector, Flush
from openclaw_memory.runs import MemoryChoice, RunMemory


class OpenClawFlushCallback(BaseCallbackHandler):
    """Save memories of a conversation with a chat model before it is compacted, for chains that are not agents.

    Pass it with the calls of the conversation: `model.invoke(messages, config={"callbacks": [callback]})`. It flushes

    - once a call leaves out messages that no flush has seen,
    - after a reply that brought the conversation to `window - reserve - soft threshold` tokens (see
      `memory.config.compaction`), and again each time more than half of the conversation is new,
    - before `SummarizationMiddleware` makes a summary, or any call with `metadata={"lc_source": "summarization"}`,
    - if the provider refuses the conversation as too long.

    It sees only the calls of the model: messages that a chain drops after the last call are lost to it. In agents,
    prefer `OpenClawSummarizationMiddleware`, which makes the cut.

    Conversations are distinguished by the `thread_id` or `session_id` of their run: that of `configurable` in chains
    and graphs, and for a call of the model itself that of `metadata`. Without one, use one callback per conversation.

    Args:
        memory: Where to save, or a selector of one for each run: see `memory_tools`.
        model: The chat model that writes the memories, or its name as `init_chat_model` takes it.
        window: The tokens that a conversation has room for, by default the context window in the profile of `model`.
        token_counter: Counts the tokens of messages.
        session_key: The session to save under, by default the thread, or `main`.

    Raises:
        ConfigError: The window or the model is unknown, or the window is not a number of tokens.
    """

    def __init__(
        self,
        memory: MemoryChoice,
        model: Model | str,
        *,
        window: int | None = None,
        token_counter: Callable[..., int] = count_tokens_approximately,
        session_key: str | None = None,
    ) -> None:
        self.memory, self.session_key = check_memory(memory, session_key), session_key
        self.model, self.token_counter = load_chat_model(model), token_counter
        self.window = get_window(self.model) if window is None else window
        if self.window is None:
            raise ConfigError(
                f"the context window of {type(self.model).__name__} is unknown: pass window=200_000, or a model with "
                'profile={"max_input_tokens": 200_000}'
            )
        self._detector = ConversationDetector(self._save, rules=lambda own: own.config.compaction, window=self.window)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **about: Any,
    ) -> None:
        """Remember the messages of a call; before a summary, flush those of earlier calls."""
        self._begin(messages[0] if messages else [], run_id, about)

    def on_llm_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002
        prompts: list[str],
        *,
        run_id: UUID,
        **about: Any,
    ) -> None:
        """Remember the prompts of a model that takes text."""
        self._begin([HumanMessage(prompt) for prompt in prompts], run_id, about)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Flush if the conversation, with this reply, has come near the end of the window."""
        reply, tokens = _read_reply(response)
        self._detector.end_call(run_id, convert_message(reply), tokens)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Flush if the provider refused the conversation as too long; forget calls that failed otherwise."""
        self._detector.fail_call(run_id, error)

    def _begin(self, messages: Sequence[BaseMessage], run_id: UUID, call: dict[str, Any]) -> None:
        conversation = drop_system(messages)
        if Flush.TAG in (call.get("tags") or ()) or not conversation:
            return
        about, config = call.get("metadata") or {}, get_run_config() or {}
        # Of a call of the model itself, the metadata are all that is known.
        configurable = config.get("configurable") or {}
        ids = (values.get(name) for values in (about, configurable) for name in ("thread_id", "session_id"))
        names = {**configurable, "thread_id": next((name for name in ids if name), None)}
        run: Any = {**config, "metadata": {**(config.get("metadata") or {}), **about}, "configurable": names}
        leased = lease_chat(self.memory, self.session_key, run)
        if about.get("lc_source") == SUMMARY_SOURCE:
            self._detector.begin_summary(leased, list(convert_messages(conversation)))
        else:
            tokens = self.token_counter(conversation)
            self._detector.begin_call(run_id, leased, list(convert_messages(conversation)), tokens)

    def _save(
        self,
        leased: RunMemory,
        messages: Sequence[Mapping[str, Any]],
        tokens: int,
        is_cut: bool,  # noqa: ARG002
    ) -> bool:
        flush = PendingFlush(leased, self.model, messages, self.token_counter, self.window, tokens)
        return save(flush) not in {None, "lost"}


def _read_reply(response: LLMResult) -> tuple[BaseMessage, int]:
    """Return the model's reply, and how many tokens the whole call took by the provider's count; 0 if not reported."""
    generation = response.generations[0][0]
    message = generation.message if isinstance(generation, ChatGeneration) else AIMessage(generation.text)
    if isinstance(message, AIMessage) and message.usage_metadata:
        return message, message.usage_metadata["total_tokens"]
    usage = (response.llm_output or {}).get("token_usage") or {}
    return message, int(usage.get("total_tokens") or 0)
