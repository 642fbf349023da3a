"""Ask a model in the silent turn of a flush, or for an intent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler, Callbacks
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.tracers import BaseTracer

from langchain_openclaw_memory._session import get_run_config, get_thread
from openclaw_memory.errors import ConfigError
from openclaw_memory.flush import Flush, FlushModel, ModelReply

if TYPE_CHECKING:
    from openclaw_memory.types import Tool

Model = Runnable[Any, Any]
Counter = Callable[[Sequence[BaseMessage]], int]
T = TypeVar("T")
Ask = Callable[[Any], T]

_OF_TOOLS = frozenset({"tools", "tool_choice"})  # what binding tools to a model leaves in its arguments


def bind_flush_model(
    model: Model, *, room: int | None, count: Counter, is_async: bool = False
) -> Callable[[Tool], FlushModel]:
    """Return the function that binds the tool of a flush to `model`.

    Its calls are children of the current run, whose tracers and callbacks see them; streams, and callbacks for
    single tokens, do not. What does not fit into `room` tokens (None: no known limit) is shown in parts.
    """

    def bind(tool: Tool) -> FlushModel:
        bound, can_call = _with_tool(model, tool)
        ask, aask = _prepare_calls(bound, "flush")
        return FlushModel(
            ask=lambda request: (aask if is_async else ask)(convert_to_messages(request)),
            can_call=can_call,
            room=room,
            count=lambda text: count([HumanMessage(text)]),
        )

    return bind


def prepare_intent_model(model: Model) -> tuple[Callable[[str], str], Callable[[str], Awaitable[str]]]:
    """Return a function that asks `model` for an intent, and its awaited twin.

    Its calls are children of the current run as those of a flush are: no stream has them.
    """
    ask, aask = _prepare_calls(_prepare(model, None), "intent")

    async def aask_text(prompt: str) -> str:
        return (await aask(prompt)).text

    return lambda prompt: ask(prompt).text, aask_text


def _prepare_calls(
    model: Model, kind: str
) -> tuple[Callable[[Any], ModelReply], Callable[[Any], Awaitable[ModelReply]]]:
    """Return a function that asks a model apart from the streams of the current run, and its awaited twin."""
    config = _make_config(kind)

    def ask(prompt: Any) -> ModelReply:
        context = copy_context()
        context.run(var_child_runnable_config.set, None)  # else the model would be a part of the run under way
        return _read(context.run(model.invoke, prompt, config))

    async def aask(prompt: Any) -> ModelReply:
        token = var_child_runnable_config.set(None)
        try:
            return _read(await model.ainvoke(prompt, config))
        finally:
            var_child_runnable_config.reset(token)

    return ask, aask


def _read(reply: Any) -> ModelReply:
    message = reply if isinstance(reply, AIMessage) else AIMessage(reply if isinstance(reply, str) else reply.text)
    calls = (*message.tool_calls, *message.invalid_tool_calls)
    called = [(call["id"] or "", call["name"], call["args"]) for call in calls]
    return ModelReply(message, message.text, called, [message.response_metadata])


def _make_config(kind: str) -> RunnableConfig:
    """Return the configuration for calls that no user asked for: children of the run that its streams leave out."""
    config = get_run_config()
    thread = get_thread(config)
    # `lc_source` marks calls in traces that no user asked for.
    metadata = {"lc_source": f"openclaw_{kind}", **({"thread_id": thread} if thread else {})}
    # "nostream" is LangGraph's own word for a call whose tokens its streams leave out.
    tags = [Flush.TAG, "nostream"]
    callbacks = _drop_listeners((config or {}).get("callbacks"))
    return {"run_name": f"memory_{kind}", "tags": tags, "metadata": metadata, "callbacks": callbacks}


def _drop_listeners(callbacks: Callbacks) -> Callbacks:
    """Drop the callbacks that stream a reply to a user."""
    if callbacks is None or isinstance(callbacks, list):
        return [handler for handler in callbacks or [] if not _is_listener(handler)] or None
    manager = callbacks.copy()
    manager.handlers = [handler for handler in manager.handlers if not _is_listener(handler)]
    manager.inheritable_handlers = [handler for handler in manager.inheritable_handlers if not _is_listener(handler)]
    return manager


def _is_listener(handler: BaseCallbackHandler) -> bool:
    if hasattr(handler, "tap_output_iter"):  # the streams of LangChain and LangGraph
        return True
    hears_tokens = type(handler).on_llm_new_token not in {
        BaseCallbackHandler.on_llm_new_token,
        AsyncCallbackHandler.on_llm_new_token,
    }
    return hears_tokens and not isinstance(handler, BaseTracer)


def _with_tool(model: Model, tool: Tool) -> tuple[Model, bool]:
    """Return the model with the tool of the turn, and whether it can call tools at all."""
    schema = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    try:
        return _prepare(model, [{"type": "function", "function": schema}]), True
    except NotImplementedError:
        return _prepare(model, None), False


def _prepare(model: Model, tools: list[dict[str, Any]] | None) -> Model:
    """Return the model with these tools instead of its own, and without its own callbacks, which belong to the user.

    Wrappers of a model stay around it; of several to choose from, it is the one of the run.

    Raises:
        NotImplementedError: It cannot call tools, or something else makes its reply.
    """
    if isinstance(model, DynamicRunnable):
        return _prepare(model.prepare()[0], tools)
    if isinstance(model, RunnableBindingBase):
        config = {key: value for key, value in model.config.items() if key != "callbacks"}
        kwargs = {name: value for name, value in model.kwargs.items() if tools is None or name not in _OF_TOOLS}
        inner = {"bound": _prepare(model.bound, tools), "kwargs": kwargs}
        return model.model_copy(update={**inner, "config": config, "config_factories": []})
    if isinstance(model, RunnableWithFallbacks):
        fallbacks = [_prepare(fallback, tools) for fallback in model.fallbacks]
        return model.model_copy(update={"runnable": _prepare(model.runnable, tools), "fallbacks": fallbacks})
    if isinstance(model, RunnableSequence) and tools is None:
        return RunnableSequence(*(_prepare(step, None) for step in model.steps), name=model.name)
    if isinstance(model, BaseLanguageModel) and model.callbacks:
        model = model.model_copy(update={"callbacks": None})
    if tools is None:
        return model
    bind: Callable[..., Model] | None = getattr(model, "bind_tools", None)
    if bind is None:
        raise NotImplementedError
    return bind(tools)


def load_chat_model(model: Model | str) -> Model:
    """Return the chat model, made by `init_chat_model` if it is given by name, for example `openai:gpt-5-mini`.

    Constructors call it, so that a wrong model is an error there and not a failed flush later.

    Raises:
        ConfigError: The model does not exist, or a package that it needs is missing.
    """
    if isinstance(model, Runnable):
        return model
    if not isinstance(model, str):
        raise ConfigError(f"model={model!r} is no chat model: give one, or a name such as 'openai:gpt-5-mini'")
    try:
        from langchain.chat_models import init_chat_model
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"a model by its name, {model!r}, needs LangChain's agents: give the model itself, or "
            'pip install ".[langchain-agents]" in its checkout'
        ) from error
    try:
        return init_chat_model(model)
    except Exception as error:
        raise ConfigError(f"the model {model!r} cannot be made, give another one: {error}") from error
