"""Find the session of a run of LlamaIndex, and the memory that it uses."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llama_index.core.async_utils import asyncio_run
from llama_index.core.instrumentation import dispatcher
from llama_index.core.workflow import Context, WorkflowRuntimeError

from openclaw_memory.flush import Session
from openclaw_memory.runs import RunMemory

if TYPE_CHECKING:
    from openclaw_memory.runs import MemoryChoice

DOOR = "llama-index"  # as the access log calls what comes through these parts
_SESSION_KEY = "session_key"  # in the state of a run, and as a tag of the instrumentation
_USER_MESSAGE = "user_msg_str"  # where LlamaIndex's agents keep the user's message of a run

Method = TypeVar("Method", bound=Callable[..., Any])


def find_session(own: str | None = None, conversation: str | None = None) -> Session | None:
    """Find the session of a call by the key of the part, the run's `Context`, state or `instrument_tags`.

    Args:
        own: The key that a part was made with.
        conversation: The conversation, by default the `session_id` of the run's `Memory`.
    """
    if own is not None:
        return Session.find(own)
    *keys, chat = _read_run(_SESSION_KEY, f"state.{_SESSION_KEY}", "memory.session_id") or [None]
    return Session.find(None, *keys, _get_tags().get(_SESSION_KEY), conversation=conversation or chat)


def read_user_message() -> str | None:
    """Return the user's message of this run; None outside the run of an agent."""
    return next(iter(_read_run(_USER_MESSAGE)), None)


def lease_run_memory(choice: MemoryChoice, session: Session | None = None) -> RunMemory:
    """Return the memory that a run uses, for the time of a `with` block.

    A template takes its values from LlamaIndex's `instrument_tags` around the run, and from `run_values`.

    Args:
        choice: The memory, or a selector of one.
        session: The session, for events; by default that of the run.

    Raises:
        ConfigError: A value is missing, or the function returned no memory.
    """
    session = session or find_session()
    return RunMemory.lease(choice, values=_get_tags(), door=DOOR, session=session)


def use_run_memory(method: Method) -> Method:
    """Have a method of a pydantic model act on the memory of the run that it is called in: on a copy over that one."""

    @wraps(method)
    def call(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        with lease_run_memory(model.memory) as memory:
            own = model if memory is model.memory else model.model_copy(update={"memory": memory})
            return method(own, *args, **kwargs)

    return cast("Method", call)


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
