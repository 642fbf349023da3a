"""Find the session that a query belongs to, and its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation import dispatcher

from openclaw_memory.runs import memory_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from openclaw_memory import Memory
    from openclaw_memory.runs import MemoryChoice


def session_of(given: str | None) -> str | None:
    """Return the session that says who reads along: `given`, else that of the run, else None.

    LlamaIndex hands a run's context to tools alone. All parts of a run see the tags of its `instrument_tags`.
    """
    if given is not None:
        return given
    key = _tags().get("session_key")
    return str(key) if key else None


def memory_of_run(choice: MemoryChoice) -> AbstractContextManager[Memory]:
    """Return the memory that a run uses, for the time of a `with` block.

    A template takes its values from LlamaIndex's `instrument_tags` around the run, and from `run_values`.

    Args:
        choice: One memory for all runs, a template, or a function without arguments.

    Raises:
        ConfigError: A value is missing, or the function returned no memory.
    """
    return memory_of(choice, values=_tags())


def _tags() -> dict[str, Any]:
    return dispatcher.active_instrument_tags.get()  # type: ignore[attr-defined]  # not re-exported
