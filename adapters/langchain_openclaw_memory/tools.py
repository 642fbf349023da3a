"""The memory's tools as tools of LangChain: same names, descriptions and schemas, with artifacts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig  # noqa: TC002 - LangChain looks for it in `_run` at run time
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool, BaseToolkit
from pydantic import ConfigDict, Field

from langchain_openclaw_memory._documents import documents_of
from langchain_openclaw_memory._session import session_of
from openclaw_memory import Memory
from openclaw_memory import tools as core
from openclaw_memory.types import Tool, ToolAnswer


class MemoryTool(BaseTool):
    """One of the memory's tools. Its content is the answer as compact JSON, whose `status` says what went wrong.

    The artifact of `memory_search` is a list of documents, as `OpenClawRetriever` returns them; that of every other
    tool, and of an answer that is not `ok`, is the answer itself. Both are plain enough for any checkpointer.
    """

    tool_for: Callable[[str | None], Tool] = Field(exclude=True, repr=False)
    session_key: str | None = None
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    # The names of a call's arguments are the model's: `/` keeps them from meeting a parameter.
    def _run(self, /, *, config: RunnableConfig, **arguments: Any) -> tuple[str, Any]:
        answer = self.tool_for(session_of(self.session_key, config)).run(arguments)
        return answer.text, _artifact(answer)

    async def _arun(self, /, *, config: RunnableConfig, **arguments: Any) -> tuple[str, Any]:
        return await run_in_executor(None, partial(self._run, config=config, **arguments))


class OpenClawToolkit(BaseToolkit):
    """The memory's tools as a toolkit; the fields are the arguments of `memory_tools`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory = Field(exclude=True, repr=False)
    session_key: str | None = None
    edit: bool = False
    append: bool = True

    def get_tools(self) -> list[BaseTool]:
        return memory_tools(self.memory, session_key=self.session_key, edit=self.edit, append=self.append)


def memory_tools(
    memory: Memory, *, session_key: str | None = None, edit: bool = False, append: bool = True
) -> list[BaseTool]:
    """`memory_search` and `memory_get`, `memory_append` unless told otherwise, and with `edit` the ones that change.

    `session_key` says where the agent speaks: in groups and channels less is shown. Without one, each call takes that
    of its run: `configurable["session_key"]`, else the `thread_id`. What a model can mend is an answer, and no
    exception.
    """

    def tool_for(name: str, key: str | None) -> Tool:
        tools = core.memory_tools(memory, session_key=key, edit=edit, append=append)
        return next(tool for tool in tools if tool.name == name)

    return [
        MemoryTool(
            name=tool.name,
            description=tool.description,
            args_schema=dict(tool.parameters),
            tool_for=partial(tool_for, tool.name),
            session_key=session_key,
        )
        for tool in core.memory_tools(memory, session_key=session_key, edit=edit, append=append)
    ]


def _artifact(answer: ToolAnswer) -> Any:
    from openclaw_memory import SearchResults  # loads numpy, as the first search does

    if answer.ok and isinstance(answer.artifact, SearchResults):
        return documents_of(answer.artifact)
    return dict(answer.data)
