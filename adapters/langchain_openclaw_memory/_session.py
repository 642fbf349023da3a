"""The session that a run of LangChain belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

RunKind: TypeAlias = Literal["chat", "heartbeat", "cli"]


def session_of(given: str | None, config: RunnableConfig | None) -> str | None:
    """`given`, else the `session_key` in the run's `configurable`, else its `thread_id`; None where it has neither.

    It says who reads along.
    """
    if given is not None:
        return given
    configurable = _configurable(config)
    key = configurable.get("session_key") or configurable.get("thread_id")
    return str(key) if key else None


def flushed_session(given: str | None, config: RunnableConfig | None) -> tuple[str, str | None]:
    """The session whose memories are saved, and the id of its transcript: `given`, else the thread, else `main`.

    Under `main`, the middleware of the flush keeps each conversation without a thread as a session of its own.

    The id is that of the thread where the session is the thread's own; None where `sessions.json` says it. The
    `session_key` of a run says who reads along, and is no name for what the run itself says.
    """
    thread = thread_of(config) if given is None else None
    return given or thread or "main", thread


def thread_of(config: RunnableConfig | None) -> str | None:
    """The id of the thread that a run belongs to; None where it has none.

    A run inside of another, in a tool or as a part of a graph, has a talk of its own in the same thread: it is called
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
    """What kind of run it is, as the `run_kind` in its `configurable` says: `heartbeat`, `cli`, or a `chat`."""
    kind = _configurable(config).get("run_kind")
    return kind if kind in {"heartbeat", "cli"} else "chat"


def run_config() -> RunnableConfig | None:
    """The configuration of the run that is under way; None outside of one."""
    from langchain_core.runnables.config import var_child_runnable_config

    return var_child_runnable_config.get()


def _configurable(config: RunnableConfig | None) -> dict[str, Any]:
    return (config or {}).get("configurable") or {}
