"""Answer a client of the protocol: each request by the memory's own tools, files and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp_types import INVALID_PARAMS

from openclaw_memory import Memory, OpenClawMemoryError
from openclaw_memory.events import acting_as
from openclaw_memory.flush import Flush
from openclaw_memory.tools import find_audience, memory_tools, recall, recall_section
from openclaw_memory.types import Tool as MemoryTool
from openclaw_memory.types import ToolAnswer
from openclaw_memory_mcp import resources
from openclaw_memory_mcp.changes import Changes
from openclaw_memory_mcp.tool_facts import ANNOTATIONS, ERASE, ERASE_DESCRIPTION, OUTPUT_SCHEMAS

if TYPE_CHECKING:
    from mcp.server.models import InitializationOptions

SESSION_HEADER = "openclaw-session-key"
NAME = "openclaw-memory"
PROGRESS_SECONDS = 0.2  # between two words on how far a first index is
_ASKS = types.ClientCapabilities(elicitation=types.ElicitationCapability())
_ASKS_AGAIN = "2026-07-28"  # from this protocol on, a client is asked by an answer, and calls again
_CONFIRM = "forget"
_CONFIRM_SCHEMA = {
    "type": "object",
    "properties": {_CONFIRM: {"type": "boolean", "title": "Forget all of this for good"}},
    "required": [_CONFIRM],
}
_CANNOT_ASK = (
    "nothing is forgotten: this client cannot ask the user to confirm it. Tell the user that they can forget it "
    "themselves, with `openclaw-memory forget` in a terminal, or on the page that `openclaw-memory web` opens"
)

Context = ServerRequestContext[Any, Any]
_Answer = TypeVar("_Answer")


class _Protocol(Server[Any]):
    """The SDK's server with a notice of list changes for older clients, over HTTP too."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *arguments: Any, **options: Any
    ) -> InitializationOptions:
        changing = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(changing, *arguments, **options)


class MemoryServer:
    """A memory, served over the Model Context Protocol by `protocol`, a server of the SDK.

    Every call runs in a thread, and searches wait while a first index is built; clients that ask for progress hear how
    far it is.
    The caller opens the memory and closes it, and runs `changes.follow` while clients are served.

    Attributes:
        memory: The memory.
        session_key: Who reads along, as for `openclaw_memory.tools.memory_tools`. The header `OpenClaw-Session-Key` of
            an HTTP request may name another session, and thereby hide private notes, never show them.
        include: The tools, as for `memory_tools`.
        protocol: The server of the SDK.
        changes: Who hears of which changes.
    """

    def __init__(
        self, memory: Memory, *, session_key: str | None = None, include: Sequence[str] = ("search", "get", "append")
    ) -> None:
        """Put a server together; nothing is read yet but who reads along.

        Args:
            memory: The memory.
            session_key: OpenClaw's; without one, the user alone reads along.
            include: The tools, as for `memory_tools`.

        Raises:
            InvalidInputError: The key is no text.
        """
        from openclaw_memory import __version__

        self.memory, self.session_key, self.include = memory, session_key, include
        self.changes = Changes(memory)
        self._most_chars = memory.config.recall.max_chars // 2  # of a search, with the names and fences of its results
        names = [tool.name for tool in self._make_tools(session_key)]
        self.protocol: Server[Any] = _Protocol(
            NAME,
            version=__version__,
            title="Memory",
            instructions=recall_section(names, citations=find_audience(memory, session_key).citations),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe_client,
            on_subscriptions_listen=self._listen,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        self.protocol.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._start_session
        )

    # --- tools ---------------------------------------------------------------------------------------------------

    def _make_tools(self, session_key: str | None) -> tuple[MemoryTool, ...]:
        return memory_tools(self.memory, session_key=session_key, include=self.include)

    async def _list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe_tool(tool) for tool in self._make_tools(self.session_key)])

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        is_erasure = params.name == ERASE and "erase" in self.include
        answer = await (self._erase(context, params) if is_erasure else self._run_tool(context, params))
        if isinstance(answer, types.InputRequiredResult):
            return answer
        return types.CallToolResult(
            content=[types.TextContent(text=answer.text)], structured_content=dict(answer.data), is_error=not answer.ok
        )

    async def _run_tool(
        self, context: Context, params: types.CallToolRequestParams, arguments: Mapping[str, Any] | None = None
    ) -> ToolAnswer:
        def call() -> ToolAnswer:
            tools = {tool.name: tool for tool in self._make_tools(self._get_key(context))}
            if (tool := tools.get(params.name)) is None:
                raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:80]!r}: there are {', '.join(tools)}")
            answer = tool.run(params.arguments or {} if arguments is None else arguments)
            return answer if "maxResults" in (params.arguments or {}) else _shorten(answer, self._most_chars)

        return await self._run(context, call)

    async def _erase(
        self, context: Context, params: types.CallToolRequestParams
    ) -> ToolAnswer | types.InputRequiredResult:
        """Plan a deletion, have the client show the plan to its user, and delete once they have agreed."""
        if not context.session.check_client_capability(_ASKS):
            return ToolAnswer({"status": "not_allowed", "error": _CANNOT_ASK})
        if params.input_responses and params.request_state:
            code, reply = params.request_state, params.input_responses.get(_CONFIRM)
        else:
            criteria = {name: value for name, value in (params.arguments or {}).items() if name != "hash"}
            plan = await self._run_tool(context, params, criteria)
            if plan.data.get("outcome") != "planned":  # refused, or there is nothing to forget
                return plan
            code, message = plan.data["hash"], _describe_plan(plan.data)
            if context.protocol_version >= _ASKS_AGAIN:
                form = types.ElicitRequestFormParams(message=message, requested_schema=_CONFIRM_SCHEMA)
                return types.InputRequiredResult(
                    input_requests={_CONFIRM: types.ElicitRequest(params=form)}, request_state=code
                )
            reply = await context.session.elicit_form(message, _CONFIRM_SCHEMA, context.request_id)
        content = reply.content if isinstance(reply, types.ElicitResult) and reply.action == "accept" else None
        if (content or {}).get(_CONFIRM) is not True:
            return ToolAnswer({"status": "not_allowed", "error": "nothing is forgotten: the user has not agreed"})
        return await self._run_tool(context, params, {"hash": code})

    # --- resources -----------------------------------------------------------------------------------------------

    async def _list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        return await self._run(context, lambda: resources.list_resources(self.memory, self._get_key(context), cursor))

    async def _list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(resources.TEMPLATES))

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await self._run(context, lambda: resources.read(self.memory, self._get_key(context), params.uri))

    # --- changes -------------------------------------------------------------------------------------------------

    async def _start_session(self, context: Context, _: types.NotificationParams) -> None:
        self.changes.list_subscriptions(context)

    async def _subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        uri = await self._run(context, lambda: self._may_hear_of(context, params.uri))
        self.changes.list_subscriptions(context).add(uri)
        return types.EmptyResult()

    async def _unsubscribe_client(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.changes.list_subscriptions(context).discard(resources.make_uri(resources.parse_uri(params.uri)))
        return types.EmptyResult()

    async def _listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        notifications = params.notifications
        uris = [
            await self._run(context, partial(self._may_hear_of, context, uri))
            for uri in notifications.resource_subscriptions or ()
        ]
        notifications = notifications.model_copy(update={"resource_subscriptions": uris or None})
        return await self.changes.listen(context, params.model_copy(update={"notifications": notifications}))

    def _may_hear_of(self, context: Context, uri: str) -> str:
        resources.check_shown(self.memory, self._get_key(context), uri)
        return resources.make_uri(resources.parse_uri(uri))

    # --- prompts -------------------------------------------------------------------------------------------------

    async def _list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        about = types.PromptArgument(name="question", description="What it is about.", required=True)
        recalls = types.Prompt(
            name="recall",
            title="Answer from memory",
            description="A question, together with what the memory knows about it.",
            arguments=[about],
        )
        saves = types.Prompt(
            name="flush",
            title="Save what matters",
            description="Ask for what is worth keeping to be saved, before the conversation is compacted or ends.",
        )
        return types.ListPromptsResult(prompts=[recalls, saves] if "append" in self.include else [recalls])

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name == "recall":
            question = (params.arguments or {}).get("question", "")
            if not question.strip():
                raise MCPError(INVALID_PARAMS, "the argument question is missing: say what to recall")
            return await self._run(context, lambda: _require(self._recall(context, question), question))
        if params.name == "flush" and "append" in self.include:
            workspace = self.memory.workspace
            return _require(Flush.make_prompt(workspace, self.memory.config.compaction, workspace.get_time().date()))
        raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name[:80]!r}: there are recall and flush")

    def _recall(self, context: Context, question: str) -> str:
        return recall(self.memory, question, session_key=self._get_key(context))

    # --- who asks, and how he is answered ------------------------------------------------------------------------

    def _get_key(self, context: Context) -> str | None:
        """Return the session of a request: the one in its header, or the server's in a group."""
        headers = getattr(context.request, "headers", None)
        header = headers.get(SESSION_HEADER) if headers is not None else None
        if not header or not find_audience(self.memory, self.session_key).is_user_alone:
            return self.session_key
        return str(header)

    async def _run(self, context: Context, call: Callable[[], _Answer]) -> _Answer:
        """Run a call in a thread, and meanwhile say how far a first index is.

        A client that goes does not wait for the call, which still writes.
        """

        def answer() -> _Answer:
            try:
                with acting_as(f"mcp:{_get_client_name(context)}", session=self._get_key(context)):
                    return call()
            except OpenClawMemoryError as error:
                raise MCPError(INVALID_PARAMS, str(error)) from error

        if self.changes.step is None:
            return await anyio.to_thread.run_sync(answer, abandon_on_cancel=True)
        outcomes: list[_Answer | MCPError] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._report, context)
            try:
                outcomes.append(await anyio.to_thread.run_sync(answer, abandon_on_cancel=True))
            except MCPError as error:  # raised here it would leave in a group
                outcomes.append(error)
            tasks.cancel_scope.cancel()
        (outcome,) = outcomes
        if isinstance(outcome, MCPError):
            raise outcome
        return outcome

    async def _report(self, context: Context) -> None:
        reported = None
        while (step := self.changes.step) is not None:
            if step != reported:
                reported = step
                await context.session.report_progress(step.completed, step.total or None, step.label)
            await anyio.sleep(PROGRESS_SECONDS)


def _get_client_name(context: Context) -> str:
    """Return the name of a client, or "client" if it gives none."""
    about = getattr(context.session, "client_params", None)
    return about.client_info.name if about is not None else "client"


def _describe_tool(tool: MemoryTool) -> types.Tool:
    """Return a tool as clients see it: with the core's own words and arguments, but for memory_erase."""
    schema, description = dict(tool.parameters), tool.description
    if tool.name == ERASE:  # the user agrees in a window of the client's, and the model never sees the hash
        schema["properties"] = {name: field for name, field in schema["properties"].items() if name != "hash"}
        description = ERASE_DESCRIPTION
    return types.Tool(
        name=tool.name,
        description=description,
        input_schema=schema,
        output_schema=OUTPUT_SCHEMAS[tool.name],
        annotations=ANNOTATIONS[tool.name],
    )


def _shorten(answer: ToolAnswer, most_chars: int) -> ToolAnswer:
    """Drop the last results of a search until its answer is short enough, or one is left."""
    while len(answer.data.get("results", ())) > 1 and len(answer.text) > most_chars:
        rows, omitted = answer.data["results"][:-1], answer.data.get("omitted", 0) + 1
        answer = ToolAnswer({**answer.data, "results": rows, "omitted": omitted}, answer.artifact)
    return answer


def _describe_plan(plan: Mapping[str, Any]) -> str:
    """Describe a plan to a person, as a question."""
    lines = ["Forget this for good, in the files and in the index?"]
    lines += [f"- {row['where']}: {row['why']}" for row in plan["goes"]]
    lines += [f"- and {plan['goesOmitted']} more"] if "goesOmitted" in plan else []
    if rows := plan.get("lookAt"):
        lines += ["This stays, and may say more of it:", *(f"- {row['where']}: {row['why']}" for row in rows)]
    return "\n".join(lines)


def _require(*texts: str) -> types.GetPromptResult:
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=types.TextContent(text=text)) for text in texts if text]
    )
