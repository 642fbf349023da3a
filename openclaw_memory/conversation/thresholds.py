"""Decide when a conversation is long enough to be flushed, and to be compacted (pure)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from openclaw_memory.config.sections import CompactionConfig

Reason: TypeAlias = Literal["threshold", "transcript", "compaction"]
Kind: TypeAlias = Literal["chat", "heartbeat", "cli", "flush"]

# Into less the turn of the flush does not fit: its prompts, its tool and an answer.
SMALLEST_WINDOW = 1_024


def reserve(window: int | None, rules: CompactionConfig) -> int:
    """Return the tokens kept free for the answer: `reserve_tokens`, at least the floor, at most a quarter window.

    Args:
        window: The model's context window in tokens; None or at most 0 if unknown.
        rules: The compaction settings.
    """
    wanted = max(rules.reserve_tokens, rules.reserve_tokens_floor)
    return min(wanted, window // 4) if window is not None and window > 0 else wanted


def soft(window: int | None, rules: CompactionConfig) -> int:
    """How many tokens before a compaction the flush comes: at most half of what the reserve leaves of the window."""
    if window is None or window <= 0:
        return rules.soft_threshold_tokens
    return min(rules.soft_threshold_tokens, (window - reserve(window, rules)) // 2)


def compaction_threshold(window: int | None, rules: CompactionConfig) -> int | None:
    """Return the size in tokens above which a conversation is compacted; None if the window is unknown.

    Args:
        window: The model's context window in tokens; None or at most 0 if unknown.
        rules: The compaction settings.
    """
    return window - reserve(window, rules) if window is not None and window > 0 else None


def flush_threshold(window: int | None, rules: CompactionConfig) -> int | None:
    """Return the size in tokens from which a flush is due: window - reserve - soft threshold (176,000 of 200,000).

    Args:
        window: The model's context window in tokens; None if unknown.
        rules: The compaction settings.

    Returns:
        The threshold; None if the window is unknown, or too small for the turn of a flush.
    """
    if window is None or window < SMALLEST_WINDOW:
        return None
    return window - reserve(window, rules) - soft(window, rules)


def flush_due(
    rules: CompactionConfig,
    *,
    window: int | None,
    tokens: int | None,
    transcript_bytes: int = 0,
    compacting: bool = False,
    flushed: bool = False,
    kind: Kind = "chat",
    writable: bool = True,
) -> Reason | None:
    """Return why memories should be saved now, or None if they should not.

    Args:
        rules: The compaction settings.
        window: The model's context window in tokens; None if unknown.
        tokens: The size of the conversation; None or 0 if unknown.
        transcript_bytes: How much its transcript has grown since the latest compaction.
        compacting: Whether a compaction comes next.
        flushed: Whether this cycle, from one compaction to the next, had its flush.
        kind: Only a `chat` is flushed: no heartbeat, no program that compacts by itself (`cli`), no turn of a flush.
        writable: Whether notes can be written.
    """
    if not rules.flush or flushed or kind != "chat" or not writable:
        return None
    threshold = flush_threshold(window, rules)
    if threshold is not None and tokens and tokens >= threshold:
        return "threshold"
    if 0 < rules.force_flush_bytes <= transcript_bytes:
        return "transcript"
    return "compaction" if compacting else None
