"""The memory's tools as tools of LlamaIndex: same names, descriptions and schemas, for agents and for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index.core.tools.function_tool import FunctionTool
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from llama_index.core.tools.types import DefaultToolFnSchema, ToolMetadata, ToolOutput
from pydantic import BaseModel, ConfigDict, create_model

from llama_index_openclaw_memory._session import lease_run_memory, read_user_message
from openclaw_memory.aio import run_in_thread
from openclaw_memory.errors import ConfigError
from openclaw_memory.runs import RunMemory
from openclaw_memory.tools import memory_tools

if TYPE_CHECKING:
    from llama_index.core.tools.tool_spec.base import SPEC_FUNCTION_TYPE

    from openclaw_memory.runs import MemoryChoice
    from openclaw_memory.types import Source, Tool


class MemoryTool(FunctionTool):
    """One of the memory's tools: its content is the answer as compact JSON, its `raw_output` the same as plain data."""

    def __init__(self, tool: Tool, metadata: ToolMetadata | None = None) -> None:
        """Take the tool, and its description if that is another one."""
        description = metadata or ToolMetadata(tool.description, tool.name, _make_arguments_model(tool))
        super().__init__(fn=_make_function(tool), metadata=description)
        self.tool = tool

    # The names of a call's arguments are the model's: `/` keeps them from meeting a parameter.
    def __call__(self, /, *args: Any, **kwargs: Any) -> ToolOutput:
        return self.call(*args, **kwargs)

    def call(self, /, *args: Any, **kwargs: Any) -> ToolOutput:
        answer = self.tool.run(_name_arguments(self.tool, args, kwargs))
        return ToolOutput(
            tool_name=self.metadata.get_name(),
            content=answer.text,
            raw_input={"args": args, "kwargs": kwargs},
            raw_output=dict(answer.data),
            is_error=not answer.ok,
        )

    async def acall(self, /, *args: Any, **kwargs: Any) -> ToolOutput:
        return await run_in_thread(partial(self.call, *args, **kwargs))


class OpenClawToolSpec(BaseToolSpec):
    """The memory's tools as a tool spec, by default `memory_search`, `memory_get` and `memory_append`.

    `spec_functions` has the names of the tools, each of which is a function of the spec that answers with JSON text.
    Metadata that is given for one of them replaces its name and description, and its schema where it brings one.
    Errors that a model can correct are answers, not exceptions.

    Args:
        memory: The memory. Or a template, such as `"users/{user_id}"` or `Memories.use_template`, whose values come
            from `openclaw_memory.runs.run_values` around each run; or a function that returns the memory of a run.
        include: Which tools: `search`, `get`, `append`; `edit`, `forget` and `promote`, which change lines; `remember`
            and `confirm`, for records; and `erase`, which forgets lines confirmed by the hash of a plan. In the run of
            an agent, a hash that is not in the user's message is refused.
        session_key: Where the agent speaks: less is shown in groups and channels. Default: that of each run,
            `session_key` in its `Context`, its state (`initial_state`) or LlamaIndex's `instrument_tags`, else the
            `session_id` of its `Memory`.
        source: "memory" for notes alone, "sessions" for transcripts alone. Default: both.
        name: The prefix of the tools' names, for an agent with several memories: `work` makes
            `work_memory_search`.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError: `include` has an unknown tool; `source` is unknown, or given with `erase`; `name` cannot be part of
            a tool's name; or a run has no value for the template.
    """

    def __init__(
        self,
        memory: MemoryChoice,
        include: Sequence[str] = ("search", "get", "append"),
        session_key: str | None = None,
        source: Source | None = None,
        name: str | None = None,
    ) -> None:
        choice = RunMemory.read_choice(memory)
        tools = memory_tools(
            lambda: lease_run_memory(choice),
            session_key=session_key,
            include=include,
            source=source,
            name=name,
            read_user_message=read_user_message,
        )
        self._tools = {tool.name: MemoryTool(tool) for tool in tools}
        self.spec_functions: list[SPEC_FUNCTION_TYPE] = getattr(self, "spec_functions", None) or list(self._tools)
        for called, tool in self._tools.items():
            setattr(self, called, tool.fn)  # what `spec_functions` names can be called, as in every tool spec

    def to_tool_list(
        self,
        spec_functions: list[SPEC_FUNCTION_TYPE] | None = None,
        func_to_metadata_mapping: dict[str, ToolMetadata] | None = None,
    ) -> list[FunctionTool]:
        """Return the tools; see `BaseToolSpec`.

        Raises:
            ConfigError: A name is unknown.
        """
        tools: list[FunctionTool] = []
        for chosen_function in spec_functions or self.spec_functions:
            name = chosen_function if isinstance(chosen_function, str) else chosen_function[0]
            if name in self._tools:
                tools.append(_describe(self._tools[name], (func_to_metadata_mapping or {}).get(name)))
            elif hasattr(self, name):  # a method of a class that was made of this one
                tools += super().to_tool_list([chosen_function], func_to_metadata_mapping)
            else:
                raise ConfigError(f"there is no tool {name!r} here, only {', '.join(self._tools)}: include it")
        return tools


def _make_arguments_model(tool: Tool) -> type[BaseModel]:
    """Make a model with the JSON schema of a tool. It accepts any value: the tool itself validates."""

    def show(schema: dict[str, Any]) -> None:
        schema.clear()
        schema.update(tool.parameters)

    fields: dict[str, Any] = {
        name: (Any, ... if name in tool.parameters["required"] else None) for name in tool.parameters["properties"]
    }
    return create_model(tool.name, __config__=ConfigDict(extra="allow", json_schema_extra=show), **fields)


def _make_function(tool: Tool) -> Callable[..., str]:
    def call_tool(*args: Any, **arguments: Any) -> str:
        return tool(_name_arguments(tool, args, arguments))

    call_tool.__name__ = tool.name
    # An agent that writes code is shown the name and the docstring, and no schema.
    described = (f"{name}: {about['description']}" for name, about in tool.parameters["properties"].items())
    call_tool.__doc__ = "\n".join([tool.description, "", *described])
    return call_tool


def _name_arguments(tool: Tool, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name; positional ones are in the order of the schema."""
    names = list(tool.parameters["properties"])
    if len(args) > len(names):
        raise TypeError(f"{tool.name} takes {len(names)} arguments ({', '.join(names)}), {len(args)} were given")
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _describe(tool: MemoryTool, metadata: ToolMetadata | None) -> MemoryTool:
    if metadata is None:
        return tool
    # DefaultToolFnSchema is what ToolMetadata has without a schema of its own.
    own = None if metadata.fn_schema is DefaultToolFnSchema else metadata.fn_schema
    metadata = replace(metadata, name=metadata.name or tool.metadata.name, fn_schema=own or tool.metadata.fn_schema)
    return MemoryTool(tool.tool, metadata)
