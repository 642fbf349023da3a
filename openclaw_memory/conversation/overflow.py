"""Ask a model whose window may be full: if a conversation does not fit, compact it and ask once more."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openclaw_memory.config import CompactionConfig
from openclaw_memory.conversation.compaction import Compacted, Count, Summarise, compact, should_compact
from openclaw_memory.conversation.messages import Message, estimated_tokens

if TYPE_CHECKING:
    from openclaw_memory.workspace.session_log import SessionLog

# How the services say that a prompt is too long, each as its errors read; the last four are said by many.
_TOO_LONG = re.compile(
    r"prompt is too long|request_too_large|request exceeds the maximum (?:size|allowed)"  # Anthropic
    r"|input is too long for requested model"  # Amazon Bedrock
    r"|context window exceed"  # MiniMax
    r"|input token count.*exceeds the maximum"  # Google
    r"|maximum prompt length is \d"  # xAI
    r"|reduce the length of the messages"  # Groq, OpenAI
    r"|maximum context length"  # OpenAI, OpenRouter, DeepSeek, Mistral, vLLM
    r"|token count of \d+ exceeds the limit"  # GitHub Copilot
    r"|tokens_limit_reached"  # GitHub Models
    r"|too many tokens: (?:total number|size limit)"  # Cohere
    r"|.inputs.(?: tokens \+ .max_new_tokens.)? must (?:be <=|have less than)"  # Text Generation Inference
    r"|prompt exceeds max length"  # Z.ai
    r"|range of input length should be"  # Qwen
    r"|(?:greater|longer) than the (?:model's )?context (?:length|window)"  # LM Studio and others
    r"|exceeded model token limit"  # Kimi
    r"|exceeded max context length"  # Ollama
    # OpenAI, Anthropic ("input length and `max_tokens` exceed context limit"), llama.cpp.
    r"|exceeds? (?:the )?(?:available |model's )?context (?:window|limit|size)"
    r"|context[_ ]length[_ ]exceeded|context[_ ]window[_ ]exceeded|context[_ ]overflow",
    re.IGNORECASE | re.DOTALL,
)
# Limits of another kind that speak of tokens too: waiting helps there, and shortening does not.
_TOO_FAST = re.compile(r"rate[_ ]?limit|too many requests|tokens per (?:min|day)|\bTPM\b|throttl|quota", re.IGNORECASE)
# The types that LangChain and LiteLLM raise for it, whatever their text.
_TYPES = frozenset({"ContextOverflowError", "ContextWindowExceededError"})


@dataclass(frozen=True, slots=True)
class AskResult:
    """A model's reply, and how the conversation goes on: `messages` ends with the reply, unless that was compacted too.

    `compactions` are those that were done, in their order. `failure` is what ended the compaction after the reply: the
    conversation is then as long as it was, and the next reply tries again.
    """

    reply: Message
    messages: list[Message]
    compactions: tuple[Compacted, ...] = ()
    failure: Exception | None = None


def is_overflow(error: BaseException) -> bool:
    """Return whether an error says that the prompt is longer than the model's window, by its type and its words.

    Its causes are looked at too. A rate limit is not an overflow.

    Args:
        error: What the call of the model raised.
    """
    seen: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in seen:
        if _TYPES & {kind.__name__ for kind in type(at).__mro__}:
            return True
        text = f"{at} {getattr(at, 'code', '')}"
        if _TOO_LONG.search(text) and not _TOO_FAST.search(text):
            return True
        seen.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return False


def ask_with_compaction(
    ask: Callable[[list[Message]], Message],
    messages: Sequence[Message],
    summarise: Summarise,
    *,
    window: int | None,
    rules: CompactionConfig | None = None,
    count: Count = estimated_tokens,
    log: SessionLog | None = None,
    before: Callable[[Sequence[Message]], object] | None = None,
    after: Callable[[Compacted], object] | None = None,
) -> AskResult:
    """Ask a model once, and keep the conversation inside its window; the input is not changed.

    If `ask` raises because the window is full (`is_overflow`), the conversation is compacted to about half at most and
    asked once more. It is compacted as well after a reply that leaves less free than `rules` reserve.

    Args:
        ask: Gets the messages and returns the reply; with a `log`, one that `logged` has added to it.
        messages: The conversation, oldest first.
        summarise: Returns a summary of the messages it is given, as text.
        window: The model's context window in tokens; None if unknown: then replies cause no compaction.
        rules: The compaction settings, by default `CompactionConfig()`.
        count: Counts the tokens of messages.
        log: Gets an entry for each compaction, see `compact`.
        before: Called with the messages that are about to be lost, see `compact`.
        after: Called with the outcome of each compaction.

    Raises:
        Exception: Whatever `ask` raises, the second time at the latest; the log then has the compaction, and
            `conversation(log)` is how it goes on. If nothing could be shortened, it is the first error. What compacting
            raises before a reply passes on too; after the reply, it is in `failure`.
    """
    rules, held = rules or CompactionConfig(), list(messages)
    done: list[Compacted] = []

    def shorten(window: int | None) -> Compacted:
        return compact(held, summarise, rules=rules, window=window, count=count, log=log, before=before, after=after)

    try:
        reply = ask(list(held))
    except Exception as error:
        if not is_overflow(error):
            raise
        # The model has counted: its window is smaller than this conversation, whatever the counter says.
        tokens = count(held)
        compacted = shorten(min(window or tokens, tokens))
        if compacted.summary is None:
            error.add_note(compacted.why)
            raise
        done.append(compacted)
        held = compacted.messages
        reply = ask(list(held))
    held = [*held, reply]
    if not should_compact(count(held), window, rules):
        return AskResult(reply, held, tuple(done))
    try:
        compacted = shorten(window)
    except Exception as error:  # noqa: BLE001 - the reply is there, and the result has the error
        return AskResult(reply, held, tuple(done), error)
    done += [compacted] if compacted.summary is not None else []
    return AskResult(reply, compacted.messages, tuple(done))
