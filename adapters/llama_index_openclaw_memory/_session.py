"""Find the session that a query belongs to, and its memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llama_index.core.instrumentation import dispatcher

from openclaw_memory import Memory
from openclaw_memory.events import acting_as
from openclaw_memory.runs import lease_memory

if TYPE_CHECKING:
    from openclaw_memory.runs import MemoryChoice, RunMemory

DOOR = "llama-index"  # as the access log calls what comes through these parts
SESSION_TAG = "session_key"  # by this tag of the instrumentation a call says which session it belongs to

Method = TypeVar("Method", bound=Callable[..., Any])


def session_of(given: str | None) -> str | None:
    """Return the session that says who reads along: `given`, else that of the run, else None.

    LlamaIndex hands a run's context to tools alone. All parts of a run see the tags of its `instrument_tags`.
    """
    if given is not None:
        return given
    key = _tags().get(SESSION_TAG)
    return str(key) if key else None


def memory_of_run(choice: MemoryChoice) -> RunMemory:
    """Return the memory that a run uses, for the time of a `with` block.

    A template takes its values from LlamaIndex's `instrument_tags` around the run, and from `run_values`.

    Raises:
        ConfigError: A value is missing, or the function returned no memory.
    """
    return lease_memory(choice, values=_tags(), door=DOOR, session=session_of(None))


def in_run(method: Method) -> Method:
    """Have a method of a pydantic model act on the memory of the run that it is called in: on a copy over that one."""

    @wraps(method)
    def call(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(model.memory, Memory):
            with acting_as(DOOR, session=session_of(None)):
                return method(model, *args, **kwargs)
        with memory_of_run(model.memory) as memory:
            return method(model.model_copy(update={"memory": memory}), *args, **kwargs)

    return cast("Method", call)


def _tags() -> dict[str, Any]:
    return dispatcher.active_instrument_tags.get()  # type: ignore[attr-defined]  # not re-exported
