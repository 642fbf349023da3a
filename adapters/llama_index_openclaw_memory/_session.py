"""Find the session that a query belongs to, and its memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llama_index.core.instrumentation import dispatcher

from openclaw_memory import Memory
from openclaw_memory.events import acting_as
from openclaw_memory.runs import RunMemory

if TYPE_CHECKING:
    from openclaw_memory.runs import MemoryChoice

DOOR = "llama-index"  # as the access log calls what comes through these parts
SESSION_TAG = "session_key"  # by this tag of the instrumentation a call says which session it belongs to

Method = TypeVar("Method", bound=Callable[..., Any])
Key = TypeVar("Key")
Value = TypeVar("Value")


def get_session_key(explicit: str | None) -> str | None:
    """Return the key of the session, which tells who reads along: `explicit`, or the one of the run.

    LlamaIndex hands a run's context to tools alone. All parts of a run see the tags of its `instrument_tags`.
    """
    if explicit is not None:
        return explicit
    key = _get_tags().get(SESSION_TAG)
    return str(key) if key else None


def lease_run_memory(choice: MemoryChoice) -> RunMemory:
    """Return the memory that a run uses, for the time of a `with` block.

    A template takes its values from LlamaIndex's `instrument_tags` around the run, and from `run_values`.

    Raises:
        ConfigError: A value is missing, or the function returned no memory.
    """
    return RunMemory.lease(choice, values=_get_tags(), door=DOOR, session=get_session_key(None))


def use_run_memory(method: Method) -> Method:
    """Have a method of a pydantic model act on the memory of the run that it is called in: on a copy over that one."""

    @wraps(method)
    def call(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(model.memory, Memory):
            with acting_as(DOOR, session=get_session_key(None)):
                return method(model, *args, **kwargs)
        with lease_run_memory(model.memory) as memory:
            return method(model.model_copy(update={"memory": memory}), *args, **kwargs)

    return cast("Method", call)


def _get_tags() -> dict[str, Any]:
    return dispatcher.active_instrument_tags.get()  # type: ignore[attr-defined]  # not re-exported


def remember(cache: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Keep a value as the latest of at most so many."""
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > most:
        cache.popitem(last=False)
