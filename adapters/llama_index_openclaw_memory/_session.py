"""Find the session of a run of LlamaIndex, and the memory that it uses."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llama_index.core.async_utils import asyncio_run
from llama_index.core.instrumentation import dispatcher
from llama_index.core.workflow import Context, WorkflowRuntimeError

from openclaw_memory import Memory
from openclaw_memory.events import acting_as
from openclaw_memory.runs import RunMemory

if TYPE_CHECKING:
    from openclaw_memory.runs import MemoryChoice

DOOR = "llama-index"  # as the access log calls what comes through these parts
_SESSION_KEY = "session_key"  # in the state of a run, and as a tag of the instrumentation
_USER_MESSAGE = "user_msg_str"  # where LlamaIndex's agents keep the user's message of a run

Method = TypeVar("Method", bound=Callable[..., Any])
Key = TypeVar("Key")
Value = TypeVar("Value")


def get_session_key(explicit: str | None = None, conversation: str | None = None) -> str | None:
    """Return the key of the session that a call belongs to, which tells who reads along; None if it is unknown.

    That is `explicit`; else what the run around the call has as `session_key` in its `Context`, its state or its
    `instrument_tags`; else that of the `run_values` around it; else the conversation.

    Args:
        explicit: The key that a part was made with.
        conversation: The conversation, by default the `session_id` of the run's `Memory`.
    """
    if explicit is not None:
        return explicit
    keys = _read_run(_SESSION_KEY, f"state.{_SESSION_KEY}")
    keys += [_get_tags().get(_SESSION_KEY), RunMemory.get_value(_SESSION_KEY), conversation]
    key = next(filter(None, keys), None) or next(filter(None, _read_run("memory.session_id")), None)
    return str(key) if key else None


def read_user_message() -> str | None:
    """Return the user's message of this run; None outside the run of an agent."""
    return next(iter(_read_run(_USER_MESSAGE)), None)


def lease_run_memory(choice: MemoryChoice, session_key: str | None = None) -> RunMemory:
    """Return the memory that a run uses, for the time of a `with` block.

    A template takes its values from LlamaIndex's `instrument_tags` around the run, and from `run_values`.

    Args:
        choice: The memory, or a selector of one.
        session_key: The session, for events; by default that of the run.

    Raises:
        ConfigError: A value is missing, or the function returned no memory.
    """
    return RunMemory.lease(choice, values=_get_tags(), door=DOOR, session=get_session_key(session_key))


def use_run_memory(method: Method) -> Method:
    """Have a method of a pydantic model act on the memory of the run that it is called in: on a copy over that one."""

    @wraps(method)
    def call(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(model.memory, Memory):
            with acting_as(DOOR, session=get_session_key()):
                return method(model, *args, **kwargs)
        with lease_run_memory(model.memory) as memory:
            return method(model.model_copy(update={"memory": memory}), *args, **kwargs)

    return cast("Method", call)


def remember(cache: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Keep a value as the latest of at most so many."""
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > most:
        cache.popitem(last=False)


def _get_tags() -> dict[str, Any]:
    return dispatcher.active_instrument_tags.get()  # type: ignore[attr-defined]  # not re-exported


def _read_run(*paths: str) -> list[Any]:
    """Read values of the store of the workflow's run around a call; [] where there is none."""
    try:
        store = Context.get_step_context().store
    except WorkflowRuntimeError:
        return []

    async def read() -> list[Any]:
        return [await store.get(path, default=None) for path in paths]

    values: list[Any] = asyncio_run(read())
    return values
