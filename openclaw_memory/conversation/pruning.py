"""Shorten old tool results before a model is asked, in memory and without a model (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from openclaw_memory.config import PruningConfig
from openclaw_memory.conversation.messages import (
    Message,
    estimated_tokens,
    in_short,
    is_result,
    is_text_block,
    text_of,
    with_text,
)
from openclaw_memory.errors import InvalidInputError


def prune(
    messages: Sequence[Message],
    *,
    window: int,
    rules: PruningConfig | None = None,
    idle_seconds: float | None = None,
    count: Callable[[Sequence[Message]], int] = estimated_tokens,
) -> list[Message]:
    """Return the messages with old tool results shortened where they fill much of the window; the input is not changed.

    From `rules.soft_ratio` of the window on, long results keep their beginning and end around a note of what was cut.
    If that leaves `rules.hard_ratio` or more, results are replaced by `rules.placeholder`, the oldest first, until less
    is filled. Results after the last `rules.keep_assistants` replies stay, and so do those that hold anything but text.
    Pruning twice changes nothing more.

    Args:
        messages: The conversation, oldest first.
        window: The model's context window in tokens.
        rules: The pruning settings, by default `PruningConfig()`.
        idle_seconds: How long ago the model was last asked. Up to `rules.ttl_seconds` nothing is shortened, since the
            provider still has the messages in a cache that any change makes worthless. None means unknown, as after a
            restart: then they are shortened.
        count: Counts the tokens of messages.

    Raises:
        InvalidInputError: The window is not larger than 0.
    """
    rules = rules or PruningConfig()
    if window <= 0:
        raise InvalidInputError(f"a model's window has at least one token, not {window}: give its size in tokens")
    pruned = list(messages)
    old = [at for at in range(_protected_from(pruned, rules.keep_assistants)) if _is_prunable(pruned[at])]
    if not old or (idle_seconds is not None and idle_seconds < rules.ttl_seconds):
        return pruned
    sizes = [count([message]) for message in pruned]
    if sum(sizes) < rules.soft_ratio * window:
        return pruned
    for at in old:
        pruned[at] = _trimmed(pruned[at], rules)
        if pruned[at] is not messages[at]:
            sizes[at] = count([pruned[at]])
    if sum(len(text_of(pruned[at])) for at in old) < rules.min_chars:
        return pruned
    total = sum(sizes)
    for at in old:
        if total < rules.hard_ratio * window:
            break
        if len(text_of(pruned[at])) > len(rules.placeholder):
            pruned[at] = with_text(pruned[at], rules.placeholder)
            total += count([pruned[at]]) - sizes[at]
    return pruned


def _protected_from(messages: Sequence[Message], replies: int) -> int:
    """Return where the last `replies` assistant messages begin; 0 if there are fewer: then all are protected."""
    if replies == 0:
        return len(messages)
    found = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    return found[-replies] if len(found) >= replies else 0


def _is_prunable(message: Message) -> bool:
    content = message.get("content")
    if not is_result(message):
        return False
    return isinstance(content, str) or (isinstance(content, list) and all(is_text_block(block) for block in content))


def _trimmed(message: Message, rules: PruningConfig) -> Message:
    text = text_of(message)
    if len(text) <= rules.soft_max_chars or text == rules.placeholder:
        return message
    short = in_short(text, rules.head_chars, rules.tail_chars, "this tool result")
    return message if short == text else with_text(message, short)
