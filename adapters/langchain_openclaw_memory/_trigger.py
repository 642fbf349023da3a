"""Decide when a summarization begins, as `SummarizationMiddleware` does: by tokens, messages, a window fraction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import AnyMessage

from langchain_openclaw_memory._flush import window_of
from langchain_openclaw_memory._messages import reported_tokens
from openclaw_memory.errors import ConfigError

# ("tokens", 4000), ("messages", 50) or ("fraction", 0.8); {"tokens": 4000, "messages": 10} wants both; of a list, any.
Clause: TypeAlias = tuple[str, float] | Mapping[str, float]
Trigger: TypeAlias = Clause | Sequence[Clause]
# How many of the messages a summary takes next, 0 for no summary, given them and their tokens by the counter.
Moment: TypeAlias = Callable[[list[AnyMessage], int], int]

_KINDS = ("tokens", "messages", "fraction")


def clauses_of(trigger: Trigger) -> list[dict[str, float]]:
    """Return the clauses of a trigger: all limits of a clause must be reached.

    Raises:
        ConfigError: It is not a trigger.
    """
    alone = isinstance(trigger, Mapping) or (isinstance(trigger, tuple) and isinstance(next(iter(trigger), None), str))
    given: Any = [trigger] if alone else trigger
    try:
        clauses = [dict(clause if isinstance(clause, Mapping) else [clause]) for clause in given]
    except (TypeError, ValueError):
        clauses = [{}]
    if not all(clause and all(map(_is_limit, clause, clause.values())) for clause in clauses):
        raise ConfigError(
            f'{trigger!r} is not a trigger: pass ("tokens", 100_000), ("messages", 50), ("fraction", 0.8), '
            "a mapping of these that must all be reached, or a list of which one must"
        )
    return clauses


def reached(trigger: Trigger, messages: int, tokens: int, window: int | None) -> bool:
    """Whether a conversation of so many messages and tokens has reached `trigger`."""
    sizes = {"messages": messages, "tokens": tokens}
    return any(
        all(_limit(kind, value, window) <= sizes.get(kind, tokens) for kind, value in clause.items())
        for clause in clauses_of(trigger)
    )


def needs_window(trigger: Trigger) -> bool:
    """Whether it can be reached only if the window of the model is known."""
    return all("fraction" in clause for clause in clauses_of(trigger))


def latest_tokens(trigger: Trigger, window: int | None) -> int | None:
    """Return the tokens at which `trigger` is reached at the latest, if tokens alone can reach it; else None."""
    limits = [
        int(_limit(kind, value, window))
        for clause in clauses_of(trigger)
        if len(clause) == 1
        for kind, value in clause.items()
        if kind == "tokens" or (kind == "fraction" and window is not None)
    ]
    return min(limits, default=None)


def moment_before(summarization: Any) -> Moment:
    """Return a function that says how many messages `summarization` takes into a summary next.

    It asks `summarization` itself, so that both agree on what a provider reported and on what is to be cut: a flush
    that comes turns before its summary misses what is said in between. A version that cannot be asked goes by its
    trigger.
    """
    should = getattr(summarization, "_should_summarize", None)
    cutoff = getattr(summarization, "_determine_cutoff_index", None)
    if should is not None and cutoff is not None:
        return lambda messages, counted: cutoff(messages) if should(messages, counted) else 0

    def by_trigger(messages: list[AnyMessage], counted: int) -> int:
        tokens = max(counted, reported_tokens(messages))
        due = reached(summarization.trigger, len(messages), tokens, window_of(summarization.model))
        return len(messages) if due else 0

    return by_trigger


def _is_limit(kind: Any, value: Any) -> bool:
    if kind not in _KINDS or not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 < value <= 1 if kind == "fraction" else value > 0


def _limit(kind: str, value: float, window: int | None) -> float:
    if kind != "fraction":
        return value
    return max(1, int(window * value)) if window is not None else float("inf")
