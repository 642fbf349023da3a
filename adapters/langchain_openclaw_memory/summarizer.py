"""Save memories before LangChain's own summarization summarises."""

# No `from __future__ import annotations`: RunnableLambda reads those of the functions it is given.

import inspect
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import coerce_to_runnable

from langchain_openclaw_memory._flush import Wanted, asave, compacted, save
from langchain_openclaw_memory._flush_model import Model, chat_model
from langchain_openclaw_memory._session import flushed_session, run_config
from openclaw_memory.aio import in_thread
from openclaw_memory.errors import ConfigError

if TYPE_CHECKING:
    from openclaw_memory import Memory


def flushing_summarizer(
    summarizer: str | BaseChatModel | Runnable[list[AnyMessage], str] | Callable[[list[AnyMessage]], Any],
    memory: "Memory",
    model: Model | str | None = None,
    *,
    token_counter: Callable[..., int] = count_tokens_approximately,
    session_key: str | None = None,
    summary_prompt: str = DEFAULT_SUMMARY_PROMPT,
) -> Runnable[list[AnyMessage], str]:
    """Return a summarizer for `SummarizationMiddleware(model, summarizer=...)` that saves memories first.

    With `trim_tokens_to_summarize=None`, the middleware shows it exactly the messages that are about to be lost.
    Otherwise it shows only their latest 4,000 tokens, and nothing if a single message is longer than that: the rest is
    lost without a warning.

    Args:
        summarizer: A chat model or its name (`openai:gpt-5-mini`), or what takes the messages and returns their
            summary.
        memory: Where to save.
        model: The chat model that writes the memories, or its name; by default the summarizer's.
        token_counter: Counts the tokens of messages.
        session_key: The session to save under, by default the thread of the run, or `main`.
        summary_prompt: The prompt for a chat model, as for `SummarizationMiddleware`.

    Raises:
        ConfigError: The installed version of LangChain has no such hook, or `model` is missing or unknown.
    """
    if "summarizer" not in inspect.signature(SummarizationMiddleware.__init__).parameters:
        raise ConfigError(
            f"langchain {version('langchain')} has no SummarizationMiddleware(summarizer=...): install a newer one, or "
            "use MemoryFlushMiddleware.before(summarization, memory=...), which needs no such hook"
        )
    made = chat_model(summarizer) if isinstance(summarizer, str) else summarizer
    writer = chat_model(model) if model is not None else made
    if not isinstance(writer, Runnable) or (model is None and not isinstance(writer, BaseChatModel)):
        raise ConfigError(f"{summarizer!r} is not a chat model, so that no model can write the memories: pass model=")
    inner: Any = _as_langchain_does(made, summary_prompt) if isinstance(made, BaseChatModel) else made
    summarise: Runnable[list[AnyMessage], str] = coerce_to_runnable(inner)

    def wanted(messages: list[AnyMessage]) -> Wanted:
        key, thread = flushed_session(session_key, run_config())
        return Wanted(memory, key, writer, messages, None, token_counter(messages), token_counter, session_id=thread)

    def flush_then_summarise(messages: list[AnyMessage], config: RunnableConfig) -> str:
        due = wanted(messages)
        save(due)
        summary = summarise.invoke(messages, config)
        compacted(memory, due.key, due.session_id)
        return summary

    async def aflush_then_summarise(messages: list[AnyMessage], config: RunnableConfig) -> str:
        due = wanted(messages)
        await asave(due)
        summary = await summarise.ainvoke(messages, config)
        await in_thread(compacted, memory, due.key, due.session_id)
        return summary

    return RunnableLambda(flush_then_summarise, afunc=aflush_then_summarise, name="flushing_summarizer")


def _as_langchain_does(model: BaseChatModel, prompt: str) -> Runnable[list[AnyMessage], str]:
    """Return the summarizer of `SummarizationMiddleware` itself, with its retries and cuts of what is too long.

    Its own hook takes either a chat model or what is called with the messages, and never both.
    """
    own = SummarizationMiddleware(model, summary_prompt=prompt, trim_tokens_to_summarize=None)
    return RunnableLambda(own._create_summary, afunc=own._acreate_summary, name="summary")
