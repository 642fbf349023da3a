"""When a conversation is long enough to be flushed, and to be compacted: numbers in, a decision out (pure)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from openclaw_memory.config.sections import CompactionConfig

Reason: TypeAlias = Literal["threshold", "transcript", "compaction"]
Kind: TypeAlias = Literal["chat", "heartbeat", "cli", "flush"]

# Into less the turn of the flush does not fit: its prompts, its tool and an answer.
SMALLEST_WINDOW = 1_024


def reserve(window: int | None, rules: CompactionConfig) -> int:
    """The tokens kept free for the answer: `reserve_tokens`, at least the floor, of a window at most a quarter.

    `window` is in tokens; None and what is not above 0 mean unknown.
    """
    wanted = max(rules.reserve_tokens, rules.reserve_tokens_floor)
    return min(wanted, window // 4) if window is not None and window > 0 else wanted


def soft(window: int | None, rules: CompactionConfig) -> int:
    """How many tokens before a compaction the flush comes: at most half of what the reserve leaves of the window."""
    if window is None or window <= 0:
        return rules.soft_threshold_tokens
    return min(rules.soft_threshold_tokens, (window - reserve(window, rules)) // 2)


def compaction_threshold(window: int | None, rules: CompactionConfig) -> int | None:
    """A conversation of more tokens than this is compacted; None where the window is unknown."""
    return window - reserve(window, rules) if window is not None and window > 0 else None


def flush_threshold(window: int | None, rules: CompactionConfig) -> int | None:
    """From so many tokens on a flush is due: window - reserve - soft threshold, of 200,000 by default 176,000.

    None where the window is unknown, or the turn of a flush would not fit into it.
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
    """Why memories are to be saved now; None where they are not.

    `tokens` is the size of the conversation (None or 0: unknown), `transcript_bytes` how much its transcript has grown
    since the latest compaction, and `compacting` whether one comes next. `flushed` says that this cycle, from one
    compaction to the next, had its flush. Never in heartbeats, for programs that compact by themselves (`cli`), or in
    the turn of a flush; never where nothing can be written.
    """
    if not rules.flush or flushed or kind != "chat" or not writable:
        return None
    threshold = flush_threshold(window, rules)
    if threshold is not None and tokens and tokens >= threshold:
        return "threshold"
    if 0 < rules.force_flush_bytes <= transcript_bytes:
        return "transcript"
    return "compaction" if compacting else None
