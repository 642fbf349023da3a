"""Find the session that a LangChain run belongs to, and its memory."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from pydantic import ConfigDict, Field, PlainValidator, model_validator
from pydantic.json_schema import SkipJsonSchema

from openclaw_memory import Memory
from openclaw_memory.errors import QueryError, nearest
from openclaw_memory.events import acting_as
from openclaw_memory.runs import MemoryChoice, RunMemory, lease_memory, read_memory_choice

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

# What other retrievers call their arguments, and ours.
_MEANT = {
    **dict.fromkeys(("top_k", "similarity_top_k", "max_results", "n_results", "limit"), "k"),
    **dict.fromkeys(("score_threshold", "threshold", "similarity_cutoff"), "min_score"),
    **dict.fromkeys(("filters", "where"), "filter"),
}

DOOR = "langchain"  # as the access log calls what comes through these parts

RunKind: TypeAlias = Literal["chat", "heartbeat", "cli"]
Method = TypeVar("Method", bound=Callable[..., Any])
Key = TypeVar("Key")
Value = TypeVar("Value")

_HOW = 'give it with the run, as context={"user_id": ...} or in the "configurable" of its config'


class MemoryRun(NamedTuple):
    """What a function that chooses the memory of a run is called with.

    `context` is that of the run; where it has none, its `metadata` and `configurable` as one dictionary. `config` is
    its `RunnableConfig`.
    """

    context: Any
    config: RunnableConfig


def _chosen(memory: Any) -> Any:
    try:
        return read_memory_choice(memory)
    except TypeError as error:  # pydantic reports a ValueError along with what is wrong with other fields
        raise ValueError(str(error)) from error


# A field for a live object: it is part of no dump, and of no trace.
MemoryField: TypeAlias = Annotated[
    SkipJsonSchema[MemoryChoice], PlainValidator(_chosen), Field(exclude=True, repr=False)
]


def memory_of_run(choice: MemoryChoice, config: RunnableConfig | None) -> RunMemory:
    """Return the memory that a run uses, for the time of a `with` block.

    A template takes its values from the run's `context` (a dictionary, dataclass or pydantic model), its
    `configurable`, its `metadata`, in this order, and then from `run_values`.

    Raises:
        ConfigError: The run does not have a value, or the function returned no memory.
    """
    config = config or {}
    session = session_of(None, config)
    if isinstance(choice, Memory):
        return RunMemory(choice, DOOR, session)
    values = {**(config.get("metadata") or {}), **_configurable(config)}
    context = _context()
    run = MemoryRun(values if context is None else context, config)
    values |= _as_dict(context)
    return lease_memory(choice, run, values=values, how=_HOW, door=DOOR, session=session)


def in_run(method: Method) -> Method:
    """Have a method of a store act on the memory of the run that it is called in: on `store._over(memory)`."""

    @wraps(method)
    def call(store: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(store._choice, Memory):
            with acting_as(DOOR, session=session_of(None, run_config())):
                return method(store, *args, **kwargs)
        with memory_of_run(store._choice, run_config()) as memory:
            return method(store._over(memory), *args, **kwargs)

    return cast("Method", call)


def _context() -> Any:
    """Return the context of the current run of a graph, or None."""
    if "langgraph" in sys.modules:
        from langgraph.runtime import get_runtime

        with suppress(RuntimeError, KeyError):  # this is no run of a graph
            return getattr(get_runtime(), "context", None)
    return None


def _as_dict(context: Any) -> dict[str, Any]:
    if isinstance(context, Mapping):
        return dict(context)
    if dataclasses.is_dataclass(context):
        return {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    return dict(getattr(context, "__dict__", {}))


def session_of(given: str | None, config: RunnableConfig | None) -> str | None:
    """Return the session that says who reads along: `given`, else the run's `session_key` or `thread_id`, else None."""
    if given is not None:
        return given
    configurable = _configurable(config)
    key = configurable.get("session_key") or configurable.get("thread_id")
    return str(key) if key else None


def thread_of(config: RunnableConfig | None) -> str | None:
    """Return the id of the thread that a run belongs to; None if it has none.

    A run inside another one, in a tool or a subgraph, has a conversation of its own in the same thread. It is called
    `<thread>:<node>`, by the node of the outer graph that it runs in, the same in each call.
    """
    configurable = _configurable(config)
    thread = configurable.get("thread_id")
    if thread is None or thread == "":
        return None
    # `<node>:<id of the task>|<number of the call, from the second on>|<node>:<id of the task>`, outermost first.
    *outer, _ = str(configurable.get("checkpoint_ns") or "").split("|")
    return ":".join([str(thread), *(part.partition(":")[0] for part in outer if not part.isdigit())])


def kind_of(config: RunnableConfig | None) -> RunKind:
    """Return the kind of run, as the `run_kind` in its `configurable` says: `heartbeat`, `cli`, or a `chat`."""
    kind = _configurable(config).get("run_kind")
    return kind if kind in {"heartbeat", "cli"} else "chat"


def run_config() -> RunnableConfig | None:
    """Return the configuration of the current run; None outside of a run."""
    return var_child_runnable_config.get()


class InSession(BaseRetriever):
    """A retriever that knows, while it searches, the configuration it was invoked with."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        if isinstance(given, dict) and (unknown := given.keys() - cls.model_fields.keys()):
            raise QueryError(unknown_argument(unknown, cls.model_fields, cls.__name__.lstrip("_")))
        return given

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        with _in_run(config):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        with _in_run(config):
            return await super().ainvoke(input, config, **kwargs)


def unknown_argument(unknown: Iterable[str], known: Iterable[str], call: str) -> str:
    """Return what to say of arguments that a call does not take, with the one that was probably meant."""
    name, names = min(unknown), sorted(known)
    meant = _MEANT.get(name, name)
    if meant not in names and "search_kwargs" in names:
        hint = f"did you mean search_kwargs={{{meant!r}: ...}}? "
    else:
        hint = f"did you mean {meant!r}? " if meant in names else nearest(name, names)
    return f"{call} takes no {name!r}: {hint}it takes {', '.join(names)}"


def refuse(unknown: Iterable[str], call: str, known: Iterable[str]) -> None:
    """Raise TypeError, as Python does, if there are arguments that a call does not take."""
    if names := {*unknown}:
        raise TypeError(unknown_argument(names, known, call))


@contextmanager
def _in_run(config: RunnableConfig | None) -> Iterator[None]:
    # LangChain hands the configuration to tools and to the steps of a chain, but not to what a retriever does.
    token = var_child_runnable_config.set(ensure_config(config))
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _configurable(config: RunnableConfig | None) -> dict[str, Any]:
    return (config or {}).get("configurable") or {}


def remember(kept: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> bool:
    """Keep a value as the latest of at most so many; return whether the oldest was forgotten for it."""
    kept[key] = value
    kept.move_to_end(key)
    if is_over := len(kept) > most:
        kept.popitem(last=False)
    return is_over


class WarnOnce:
    """Logs one warning for each topic."""

    def __init__(self, log: logging.Logger) -> None:
        self._log, self._topics = log, set[object]()

    def __call__(self, topic: object, words: str) -> None:
        if topic not in self._topics:
            self._topics.add(topic)
            self._log.warning(words)
