"""`OpenClawIntentMiddleware`: detect memory requests in a message; suggest an action, or ask the user."""

# No `from __future__ import annotations`: LangGraph reads the annotations of the state and of hooks at run time.

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, get_args

from langchain.agents.middleware import AgentState, ModelRequest
from langchain.agents.middleware.types import PrivateStateAttr
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from langchain_openclaw_memory._flush_model import Model, load_chat_model, prepare_intent_model
from langchain_openclaw_memory._messages import is_from_user
from langchain_openclaw_memory._session import get_run_config, get_run_kind
from langchain_openclaw_memory.middleware.base import PromptMiddleware, append_to_system, list_tools
from openclaw_memory import Memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.conversation import strip_recalled
from openclaw_memory.errors import ConfigError
from openclaw_memory.flush import Session
from openclaw_memory.plugins import load_plugin
from openclaw_memory.runs import MemoryChoice
from openclaw_memory.tools import fence_results, find_audience

IntentMode: TypeAlias = Literal["note", "interrupt"]

_QUESTION = "openclaw_memory_intent"  # the `type` of the value of an interrupt
# What the model is told once the user has answered; for lines to forget, these follow.
_ANSWERED = {
    ("memory_write", True): "The user was asked, and agrees: save what their message says with {write}, nothing else.",
    ("memory_write", False): "The user was asked, and wants nothing of their message saved: save nothing of it.",
    ("forget", True): (
        "The user has seen the lines below, and agrees to what their message asks. Remove of these lines what it is "
        "about, if you have a tool for that, and nothing else; read them first."
    ),
    ("forget", False): "The user was shown what would be forgotten, and wants it kept: delete nothing.",
}


class IntentState(AgentState[Any]):
    """Keep the suggestions for the message under way, by middleware, as a private part of the state."""

    openclaw_intent: NotRequired[Annotated[dict[str, dict[str, Any] | None], PrivateStateAttr]]


class OpenClawIntentMiddleware(PromptMiddleware):
    """Detect memory requests in each message, and suggest an action to the model, or to the user first.

    Once a turn, a model is asked for the intent of the message: to remember, to look up, to forget, or nothing; see
    `detect_intent` of `openclaw_memory_intent`. Messages that `is_worth_asking` passes over cost no call. What is
    suggested ends the system message of the turn's calls, where the agent has the tool for it, and is no part of the
    conversation. Nothing is written or deleted by it. It has its say where the user alone reads, in runs that are a
    chat. A model that fails, dawdles or answers nonsense costs the suggestion, never the turn; one warning is logged
    for each kind of failure.

    With `mode="interrupt"` the agent stops before something is remembered or forgotten, and asks the user by
    LangGraph's `interrupt`, which needs a checkpointer. Its value has `type`, `"openclaw_memory_intent"`, what
    `Suggestion.to_dict` returns, and to forget `lines`, the `citation` and `text` of each line that is meant. Resumed
    with `Command(resume=True)`, the model is told that the user agrees, and with anything else that they do not. No
    model is asked for an intent again.

    Args:
        memory: The memory, or a selector of one for each run: see `memory_tools`.
        model: The chat model that is asked, or its name as `init_chat_model` takes it: a small, fast one does.
        mode: "note" suggests to the model, "interrupt" asks the user first.
        session_key: The session that says who reads along, by default that of the run; see `memory_tools`.
        name: The name of the memory, for an agent with several: the one that its tools begin with.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError: `mode` is unknown, the model does not exist or needs a package that is missing, or
            `openclaw_memory_intent` is not installed.
    """

    state_schema = IntentState
    failure = "nothing is suggested for a message"

    def __init__(
        self,
        memory: MemoryChoice,
        model: Model | str,
        *,
        mode: IntentMode = "note",
        session_key: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(memory, session_key, name)
        if mode not in get_args(IntentMode):
            raise ConfigError(f"mode must be 'note' or 'interrupt', not {mode!r}")
        self.model, self.mode = load_chat_model(model), mode
        self._detector_of = load_plugin("detectors", "intent")

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Detect the intent of the message."""
        suggestion = None
        if task := self._find_task(state):
            message, detector = task
            suggestion = self._suggest(detector.detect(message, prepare_intent_model(self.model)[0]), detector)
        return self._keep(state, suggestion)

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Detect the intent of the message with an awaited model."""
        suggestion = None
        if task := await run_in_thread(self._find_task, state):
            message, detector = task
            intent = await detector.detect_async(message, prepare_intent_model(self.model)[1])
            suggestion = self._suggest(intent, detector)
        return await run_in_thread(self._keep, state, suggestion)

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Ask the user, if that is due."""
        suggestion = self._get_suggestion(state)
        if self.mode == "note" or suggestion is None or "agreed" in suggestion or not _is_question(suggestion):
            return None
        question = {"type": _QUESTION, **suggestion["question"]}
        answer = interrupt(question | ({"lines": suggestion["lines"]} if suggestion["kind"] == "forget" else {}))
        return self._update(state, {**suggestion, "agreed": answer is True})

    def _extend_request(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], None]:
        suggestion = self._get_suggestion(request.state)
        if suggestion is None:
            return request, None
        write, search = (self._name_tool(name) for name in ("memory_append", "memory_search"))
        needed = write if suggestion["kind"] == "memory_write" else search
        if needed not in list_tools(request):
            return request, None
        if "agreed" not in suggestion:
            return append_to_system(request, suggestion["instructions"]), None
        text = _ANSWERED[suggestion["kind"], suggestion["agreed"]].format(write=write)
        if suggestion["agreed"] and suggestion["lines"]:
            lines = [(line["citation"], line["text"]) for line in suggestion["lines"]]
            text = f"{text}\n{fence_results(lines, self.memory_name or 'memory')}"
        return append_to_system(request, text), None

    def _find_task(self, state: AgentState[Any]) -> tuple[str, Any] | None:
        """Return the message that a model is to be asked about, and the detector; None where none is worth it."""
        latest = state["messages"][-1] if state["messages"] else None
        if latest is None or not is_from_user(latest) or get_run_kind(get_run_config()) != "chat":
            return None
        message = strip_recalled(str(latest.text))

        def make_detector(memory: Memory, session: Session | None) -> Any:
            return self._detector_of(memory.config) if find_audience(memory, session).is_user_alone else None

        detector = self._read_memory(make_detector)
        return (message, detector) if detector is not None and detector.is_worth_asking(message) else None

    def _suggest(self, intent: Any, detector: Any) -> dict[str, Any] | None:
        """Return the suggestion as it is kept in the state."""
        if intent.reason is not None:
            self._warn_once(tuple(intent.reason.split(": ")[:2]), f"{self.failure}: {intent.reason}")
        if (suggestion := detector.suggest(intent)) is None:
            return None
        return {
            "kind": suggestion.kind,
            "query": suggestion.query,
            "question": suggestion.to_dict(),
            "instructions": detector.write_instructions(suggestion, name=self.memory_name),
        }

    def _keep(self, state: AgentState[Any], suggestion: dict[str, Any] | None) -> dict[str, Any] | None:
        if suggestion is None:
            return self._update(state, None) if self._get_suggestion(state) else None
        wants_lines = self.mode == "interrupt" and suggestion["kind"] == "forget" and suggestion["query"]

        def find_lines(memory: Memory, session: Session | None) -> list[dict[str, str]]:  # noqa: ARG001
            hits = memory.search(suggestion["query"], filter={"source": "memory"}) if wants_lines else ()
            return [{"citation": hit.citation, "text": hit.snippet} for hit in hits if hit.confidence == "strong"]

        return self._update(state, {**suggestion, "lines": self._read_memory(find_lines) or []})

    def _get_suggestion(self, state: Any) -> dict[str, Any] | None:
        suggestions: Mapping[str, dict[str, Any] | None] = state.get("openclaw_intent") or {}
        return suggestions.get(self.name)

    def _update(self, state: Any, suggestion: dict[str, Any] | None) -> dict[str, Any]:
        return {"openclaw_intent": {**(state.get("openclaw_intent") or {}), self.name: suggestion}}

    def _name_tool(self, name: str) -> str:
        return name if self.memory_name is None else f"{self.memory_name}_{name}"


def _is_question(suggestion: Mapping[str, Any]) -> bool:
    """Return whether the user can answer yes or no: there are lines to forget, or something to remember."""
    return suggestion["kind"] == "memory_write" or (suggestion["kind"] == "forget" and bool(suggestion["lines"]))
