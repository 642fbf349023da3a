"""Find the session that a LangChain run belongs to, and its memory."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from pydantic import ConfigDict, Field, PlainValidator, model_validator
from pydantic.json_schema import SkipJsonSchema

from openclaw_memory import Memory
from openclaw_memory.errors import QueryError, suggest
from openclaw_memory.flush import Session
from openclaw_memory.runs import MemoryChoice, RunMemory

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

# What other retrievers call their arguments, and ours.
_ALIASES = {
    **dict.fromkeys(("top_k", "similarity_top_k", "max_results", "n_results", "limit"), "k"),
    **dict.fromkeys(("score_threshold", "threshold", "similarity_cutoff"), "min_score"),
    **dict.fromkeys(("filters", "where"), "filter"),
}

DOOR = "langchain"  # as the access log calls what comes through these parts

RunKind: TypeAlias = Literal["chat", "heartbeat", "cli"]
Method = TypeVar("Method", bound=Callable[..., Any])

_KEY = "session_key"
_HOW = 'give it with the run, as context={"user_id": ...} or in the "configurable" of its config'


class MemoryRun(NamedTuple):
    """Describe a run to a function that chooses its memory.

    `context` is that of the run; where it has none, its `metadata` and `configurable` as one dictionary. `config` is
    its `RunnableConfig`.
    """

    context: Any
    config: RunnableConfig


def _validate_choice(memory: Any) -> Any:
    try:
        return RunMemory.read_choice(memory)
    except TypeError as error:  # pydantic reports a ValueError along with what is wrong with other fields
        raise ValueError(str(error)) from error


# A field for a live object: it is part of no dump, and of no trace.
MemoryField: TypeAlias = Annotated[
    SkipJsonSchema[MemoryChoice], PlainValidator(_validate_choice), Field(exclude=True, repr=False)
]


def lease_run_memory(choice: MemoryChoice, config: RunnableConfig | None, session: Session | None = None) -> RunMemory:
    """Return the memory that a run uses, for the time of a `with` block, with its session.

    A template takes its values from the run's `context` (a dictionary, dataclass or pydantic model), its
    `configurable`, its `metadata`, in this order, and then from `run_values`.

    Raises:
        ConfigError: The run does not have a value, or the function returned no memory.
    """
    config = config or {}
    session = session or find_session(None, config)
    if isinstance(choice, Memory):
        return RunMemory(choice, DOOR, session)
    values = {**(config.get("metadata") or {}), **_get_configurable(config)}
    context = _get_context()
    run = MemoryRun(values if context is None else context, config)
    values |= _to_dict(context)
    return RunMemory.lease(choice, run, values=values, how=_HOW, door=DOOR, session=session)


def use_run_memory(method: Method) -> Method:
    """Have a method of a store act on the memory of the run that it is called in: on `store._use(memory)`."""

    @wraps(method)
    def call(store: Any, /, *args: Any, **kwargs: Any) -> Any:
        with lease_run_memory(store._choice, get_run_config()) as memory:
            return method(store if memory is store._choice else store._use(memory), *args, **kwargs)

    return cast("Method", call)


def _get_context() -> Any:
    """Return the context of the current run of a graph, or None."""
    if "langgraph" in sys.modules:
        from langgraph.runtime import get_runtime

        with suppress(RuntimeError, KeyError):  # this is no run of a graph
            return getattr(get_runtime(), "context", None)
    return None


def _to_dict(context: Any) -> dict[str, Any]:
    if isinstance(context, Mapping):
        return dict(context)
    if dataclasses.is_dataclass(context):
        return {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    return dict(getattr(context, "__dict__", {}))


def find_session(
    own: str | None, config: RunnableConfig | None, messages: Sequence[BaseMessage] = ()
) -> Session | None:
    """Find the session of a call by the key of the part, the run's `context` or `configurable`, and the thread.

    Without a thread, the conversation is known by the first of its `messages`.
    """
    configurable, context = _get_configurable(config), _to_dict(_get_context())
    conversation = get_thread(config)
    if not conversation and messages:
        text = f"{messages[0].type}\n{messages[0].text}".encode("utf-8", "surrogatepass")
        conversation = f"main:{blake2b(text, digest_size=8).hexdigest()}"
    keys = context.get(_KEY), configurable.get(_KEY)
    return Session.find(own, *keys, conversation=conversation)


def get_thread(config: RunnableConfig | None) -> str | None:
    """Return the id of the thread that a run belongs to; None if it has none.

    A run inside another one, in a tool or a subgraph, has a conversation of its own in the same thread. It is called
    `<thread>:<node>`, by the node of the outer graph that it runs in, the same in each call.
    """
    configurable = _get_configurable(config)
    thread = configurable.get("thread_id")
    if thread is None or thread == "":
        return None
    # `<node>:<id of the task>|<number of the call, from the second on>|<node>:<id of the task>`, outermost first.
    *outer, _ = str(configurable.get("checkpoint_ns") or "").split("|")
    return ":".join([str(thread), *(part.partition(":")[0] for part in outer if not part.isdigit())])


def get_run_kind(config: RunnableConfig | None) -> RunKind:
    """Return the `run_kind` in the run's `configurable`: `heartbeat`, `cli`, or else `chat`."""
    kind = _get_configurable(config).get("run_kind")
    return kind if kind in {"heartbeat", "cli"} else "chat"


def get_run_config() -> RunnableConfig | None:
    """Return the configuration of the current run; None outside of a run."""
    return var_child_runnable_config.get()


class SessionRetriever(BaseRetriever):
    """A retriever that knows, while it searches, the configuration it was invoked with."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and (unknown := fields.keys() - cls.model_fields.keys()):
            raise QueryError(describe_unknown(unknown, cls.model_fields, cls.__name__.lstrip("_")))
        return fields

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        with set_run_config(config):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        with set_run_config(config):
            return await super().ainvoke(input, config, **kwargs)


def describe_unknown(unknown: Iterable[str], accepted: Iterable[str], call: str) -> str:
    """Describe an argument that a call does not take, and suggest the right one."""
    name, names = min(unknown), sorted(accepted)
    intended = _ALIASES.get(name, name)
    if intended not in names and "search_kwargs" in names:
        hint = f"did you mean search_kwargs={{{intended!r}: ...}}? "
    else:
        hint = f"did you mean {intended!r}? " if intended in names else suggest(name, names)
    return f"{call} takes no {name!r}: {hint}it takes {', '.join(names)}"


def refuse(unknown: Iterable[str], call: str, accepted: Iterable[str]) -> None:
    """Raise TypeError, as Python does, if there are arguments that a call does not take."""
    if names := {*unknown}:
        raise TypeError(describe_unknown(names, accepted, call))


@contextmanager
def set_run_config(config: RunnableConfig | None) -> Iterator[None]:
    # LangChain hands the configuration to tools and to the steps of a chain, but not to what a retriever does.
    token = var_child_runnable_config.set(ensure_config(config))
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _get_configurable(config: RunnableConfig | None) -> dict[str, Any]:
    return (config or {}).get("configurable") or {}


class WarnOnce:
    """Logs one warning for each topic."""

    def __init__(self, log: logging.Logger) -> None:
        self._log, self._topics = log, set[object]()

    def __call__(self, topic: object, words: str) -> None:
        if topic not in self._topics:
            self._topics.add(topic)
            self._log.warning(words)
