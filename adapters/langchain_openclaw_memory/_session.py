"""The session that a run of LangChain belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig


def session_of(given: str | None, config: RunnableConfig | None) -> str | None:
    """`given`, else the `session_key` in the run's `configurable`, else its `thread_id`; None where it has neither."""
    if given is not None:
        return given
    configurable = (config or {}).get("configurable") or {}
    key = configurable.get("session_key") or configurable.get("thread_id")
    return str(key) if key else None


def thread_of(config: RunnableConfig | None) -> str | None:
    """The id of the thread that a run belongs to; None where it has none."""
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return str(thread) if thread is not None and thread != "" else None


def run_config() -> RunnableConfig | None:
    """The configuration of the run that is under way; None outside of one."""
    from langchain_core.runnables.config import var_child_runnable_config

    return var_child_runnable_config.get()
