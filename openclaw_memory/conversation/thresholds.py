"""Tell when a conversation is too long: for a flush, for a compaction, or by the error of the model (pure)."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from openclaw_memory._system import read_lines
from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.errors import ConfigError

Reason: TypeAlias = Literal["threshold", "transcript", "compaction"]
Kind: TypeAlias = Literal["chat", "heartbeat", "cli", "flush"]

# The errors of services for a prompt that is too long.
_TOO_LONG = re.compile("|".join(read_lines(__file__, "too_long.txt")), re.IGNORECASE | re.DOTALL)
# Limits of another kind that mention tokens too: waiting helps, and shortening does not.
_TOO_FAST = re.compile(r"rate[_ ]?limit|too many requests|tokens per (?:min|day)|\bTPM\b|throttl|quota", re.IGNORECASE)
# The error types of LangChain and LiteLLM, whatever their text.
_TYPES = frozenset({"ContextOverflowError", "ContextWindowExceededError"})


def check_window(window: object) -> None:
    """Raise ConfigError if a window is neither a number of tokens above 0 nor None."""
    if window is not None and (not isinstance(window, int) or isinstance(window, bool) or window <= 0):
        raise ConfigError(f"window={window!r} is not a number of tokens: pass a whole number above 0, such as 200_000")


def find_flush_reason(
    rules: CompactionConfig,
    *,
    window: int | None,
    tokens: int | None,
    transcript_bytes: int = 0,
    compacting: bool = False,
    flushed: bool = False,
    kind: Kind = "chat",
) -> Reason | None:
    """Return the reason why a flush is due, or None if it is not.

    Args:
        rules: The compaction settings.
        window: The model's context window in tokens; None if unknown.
        tokens: The size of the conversation; None or 0 if unknown.
        transcript_bytes: How much its transcript has grown since the latest compaction.
        compacting: Whether a compaction comes next.
        flushed: Whether this cycle, from one compaction to the next, had its flush.
        kind: Only a `chat` is flushed: no heartbeat, no program that compacts by itself (`cli`), no turn of a flush.
    """
    if not rules.flushes or flushed or kind != "chat":
        return None
    threshold = rules.get_flush_threshold(window)
    if threshold is not None and tokens and tokens >= threshold:
        return "threshold"
    if 0 < rules.force_flush_bytes <= transcript_bytes:
        return "transcript"
    return "compaction" if compacting else None


def is_overflow(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, means that the prompt is longer than the model's window.

    A rate limit is not an overflow.

    Args:
        error: The error of the model.
    """
    checked: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in checked:
        if _TYPES & {kind.__name__ for kind in type(cause).__mro__}:
            return True
        text = f"{cause} {getattr(cause, 'code', '')}"
        if _TOO_LONG.search(text) and not _TOO_FAST.search(text):
            return True
        checked.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return False
