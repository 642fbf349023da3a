"""The memory's tools as LangChain tools: same names, descriptions and schemas, with artifacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig  # noqa: TC002 - LangChain looks for it in `_run` at run time
from langchain_core.tools import BaseTool
from pydantic import Field

from langchain_openclaw_memory._session import get_run_config, lease_run_memory, set_run_config
from langchain_openclaw_memory.retrievers import to_documents
from openclaw_memory import tools as core
from openclaw_memory.aio import run_in_thread
from openclaw_memory.runs import MemoryChoice, RunMemory
from openclaw_memory.types import Source, Tool, ToolAnswer


class MemoryTool(BaseTool):
    """One of the memory's tools. Its content is the answer as compact JSON, with a `status`.

    The artifact of `memory_search` is a list of the documents that `OpenClawRetriever` returns, each as a dict
    (`Document(**item)` makes it a document again). For every other tool, and for an answer that is not `ok`, it is the
    answer itself. Both are plain data, so that they are the same before a checkpoint and after it.
    """

    tool: Tool = Field(exclude=True, repr=False)
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    # The names of a call's arguments are the model's: `/` keeps them from meeting a parameter.
    def _run(self, /, *, config: RunnableConfig, **arguments: Any) -> tuple[str, Any]:
        # Only a program hands over what has a state: a model's arguments are plain data.
        runtime = arguments.pop(_RUNTIME) if hasattr(arguments.get(_RUNTIME), "state") else None
        configurable = {**(config.get("configurable") or {}), _RUNTIME: runtime}
        with set_run_config({**config, "configurable": configurable}):
            answer = self.tool.run(arguments)
        return answer.text, _make_artifact(answer)

    @cached_property
    def _injected_args_keys(self) -> frozenset[str]:
        return frozenset({_RUNTIME})  # LangChain leaves it out of traces

    @property
    def func(self) -> Callable[..., None] | None:
        """A function that has LangGraph hand over the runtime; the schema is the model's alone."""
        return _take_runtime if self.name.endswith("memory_erase") else None

    async def _arun(self, /, *, config: RunnableConfig, **arguments: Any) -> tuple[str, Any]:
        return await run_in_thread(partial(self._run, config=config, **arguments))


def memory_tools(
    memory: MemoryChoice,
    *,
    include: Sequence[str] = ("search", "get", "append"),
    session_key: str | None = None,
    source: Source | None = None,
    name: str | None = None,
) -> list[BaseTool]:
    """Return tools of a memory, by default `memory_search`, `memory_get` and `memory_append`.

    Errors that a model can correct are answers with a `status`, not exceptions.

    Args:
        memory: The memory. Or a template, such as `"users/{user_id}"` or `Memories.use_template`, or a function of
            a `MemoryRun`: each run then has its own.
        include: Which tools: `search`, `get`, `append`; `edit`, `forget` and `promote`, which change lines; `remember`
            and `confirm`, for records; and `erase`, which forgets lines confirmed by the hash of a plan. In a run of
            LangGraph, a hash that is not in the user's latest message is refused.
        session_key: Where the agent speaks: in groups and channels less is shown. By default the session of each run.
        source: "memory" searches and reads no transcript, "sessions" no note; None both.
        name: The prefix of the tools' names, for an agent with several memories: `work` makes
            `work_memory_search`.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError: `include` has an unknown tool; `source` is unknown, or given with `erase`; `name` cannot be part of
            a tool's name; or a run has no value for the template.
    """
    choice = RunMemory.read_choice(memory)
    tools = core.memory_tools(
        lambda: lease_run_memory(choice, get_run_config()),
        session_key=session_key,
        include=include,
        source=source,
        name=name,
        read_user_message=_read_user_message,
    )
    return [
        MemoryTool(name=tool.name, description=tool.description, args_schema=dict(tool.parameters), tool=tool)
        for tool in tools
    ]


_RUNTIME = "runtime"  # the name under which LangGraph hands over a run, its state among the rest


def _take_runtime(runtime: Any) -> None:
    """Name the argument that LangGraph is to hand over."""


def _read_user_message() -> str | None:
    """Return the user's latest message in a run; None outside of one."""
    runtime = ((get_run_config() or {}).get("configurable") or {}).get(_RUNTIME)
    state = getattr(runtime, "state", None)
    messages = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", state)
    if not isinstance(messages, list):
        return None
    return next((str(message.text) for message in reversed(messages) if message.type == "human"), "")


def _make_artifact(answer: ToolAnswer) -> Any:
    from openclaw_memory import SearchResults  # loads numpy, as the first search does

    if answer.ok and isinstance(answer.artifact, SearchResults):
        return [document.model_dump() for document in to_documents(answer.artifact)]
    return dict(answer.data)
