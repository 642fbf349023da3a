"""When a summarization begins, as `SummarizationMiddleware` words it: tokens, messages, a fraction of the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.messages import AnyMessage

from langchain_openclaw_memory._flushing import window_of
from langchain_openclaw_memory._messages import reported_tokens

# ("tokens", 4000), ("messages", 50) or ("fraction", 0.8); {"tokens": 4000, "messages": 10} wants both; of a list, any.
Clause: TypeAlias = tuple[str, float] | Mapping[str, float]
Trigger: TypeAlias = Clause | Sequence[Clause]
# Whether a summary comes next, given the messages and how many tokens they have by the counter.
Moment: TypeAlias = Callable[[list[AnyMessage], int], bool]


def reached(trigger: Trigger, messages: int, tokens: int, window: int | None) -> bool:
    """Whether a conversation of so many messages and tokens has reached `trigger`."""
    sizes = {"messages": messages, "tokens": tokens}
    return any(
        all(_limit(kind, value, window) <= sizes.get(kind, tokens) for kind, value in clause.items())
        for clause in _clauses(trigger)
    )


def latest_tokens(trigger: Trigger | None, window: int | None) -> int | None:
    """From how many tokens on `trigger` is reached at the latest, if tokens alone can reach it; else None."""
    limits = [
        int(_limit(kind, value, window))
        for clause in _clauses(trigger or [])
        if len(clause) == 1
        for kind, value in clause.items()
        if kind == "tokens" or (kind == "fraction" and window is not None)
    ]
    return min(limits, default=None)


def moment_before(summarization: Any) -> Moment:
    """Whether `summarization` makes a summary next.

    It is asked itself, so that both agree on what a provider reported and on what there is to be cut: a flush that
    comes rounds before its summary misses what is said in between. A version that cannot be asked goes by its trigger.
    """
    should = getattr(summarization, "_should_summarize", None)
    cutoff = getattr(summarization, "_determine_cutoff_index", None)
    if should is not None and cutoff is not None:
        return lambda messages, counted: bool(should(messages, counted)) and cutoff(messages) > 0

    def by_trigger(messages: list[AnyMessage], counted: int) -> bool:
        tokens = max(counted, reported_tokens(messages))
        return reached(summarization.trigger, len(messages), tokens, window_of(summarization.model))

    return by_trigger


def _clauses(trigger: Trigger) -> Iterator[Mapping[str, float]]:
    if isinstance(trigger, Mapping):
        yield trigger
    elif isinstance(trigger, tuple) and len(trigger) == 2 and isinstance(trigger[0], str):
        yield {trigger[0]: trigger[1]}
    else:
        for clause in cast("Sequence[Clause]", trigger):
            yield from _clauses(clause)


def _limit(kind: str, value: float, window: int | None) -> float:
    if kind != "fraction":
        return value
    return max(1, int(window * value)) if window is not None else float("inf")
