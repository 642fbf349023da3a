"""An agent that was killed goes on with its conversation: what it was told is in what the next model is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openclaw_memory import Memory
from openclaw_memory.conversation import prepare_for_model

TOLD, KNOWN = "Onthoud: de code van de boot is 4711, en hij heet Zeemeeuw.", "Genoteerd, kapitein."
ASKED, ANSWER = "¿Cómo se llama el barco y cuál es su código?", "El barco se llama Zeemeeuw, y su código es 4711."
SESSION = "agent:main:boat"


class Killed(BaseException):
    """In place of the end of the process, where there is but one."""


def die() -> None:
    raise Killed


def reply(text: str, dies: Callable[[], None] | None) -> str:
    """What the scripted models say: they know what they are given, and nothing else."""
    if text.rstrip().endswith(TOLD):
        return KNOWN
    if ASKED not in text:
        assert dies is not None
        dies()
    return ANSWER if "4711" in text and "Zeemeeuw" in text else "No lo sé."


class LangChain:
    """An agent that keeps its end after each turn, or one whose transcript is resumed by itself."""

    def __init__(self, memory: Memory, dies: Callable[[], None] | None = None, *, transcript: bool = False) -> None:
        agents = pytest.importorskip("langchain.agents")
        saver = pytest.importorskip("langgraph.checkpoint.memory").InMemorySaver()
        from langchain_openclaw_memory import OpenClawTranscriptMiddleware
        from langchain_openclaw_memory.testing import ScriptedChatModel

        self.memory, self.transcript = memory, transcript
        self.model = ScriptedChatModel(script=lambda request: reply(request.text, dies))
        middleware = [OpenClawTranscriptMiddleware(memory, resume=True)] if transcript else []
        self.agent = agents.create_agent(self.model, [], middleware=middleware, checkpointer=saver)

    def say(self, text: str, before: Any = ()) -> str:
        from langchain_core.messages import convert_to_openai_messages

        config = {"configurable": {"thread_id": SESSION}}
        said = self.agent.invoke({"messages": [*before, ("user", text)]}, config)["messages"]
        if not self.transcript:
            self.memory.sessions.snapshot(SESSION, convert_to_openai_messages(said))
        return said[-1].text

    def resumed(self) -> Any:
        return () if self.transcript else prepare_for_model(self.memory.sessions.resume(SESSION))

    def given(self) -> list[tuple[str, str]]:
        return [(message.type, message.text) for message in self.model.requests[-1].messages]


AGENTS: dict[str, Callable[..., Any]] = {
    "LangChain": LangChain,
    "LangChain with a transcript": lambda *given: LangChain(*given, transcript=True),
}


def told_and_killed(folder: str, kind: str, dies: Callable[[], None]) -> None:
    memory = Memory.open(folder, embedder=None)
    agent = AGENTS[kind](memory, dies)
    assert agent.say(TOLD) == KNOWN
    agent.say("En hoe laat is het hoogwater?")


def check_answer(folder: Path, kind: str) -> None:
    with Memory.open(folder, embedder=None) as memory:
        agent = AGENTS[kind](memory)
        assert agent.say(ASKED, agent.resumed()) == ANSWER
        given = agent.given()
        assert [one for one in given if one[1] in {TOLD, KNOWN, ASKED}] == [
            ("human", TOLD),
            ("ai", KNOWN),
            ("human", ASKED),
        ]
        # Each thing was said once, and is kept once.
        kept = [message.get("content") for message in memory.sessions.resume(SESSION)]
        words = [one if isinstance(one, str) else one[0]["text"] for one in kept]
        assert [words.count(one) for one in (TOLD, KNOWN, ASKED, ANSWER)] == [1, 1, 1, 1]


@pytest.mark.parametrize("kind", AGENTS)
def test_an_agent_that_was_told_in_dutch_and_died_answers_in_spanish(tmp_path, kind):
    with pytest.raises(Killed):
        told_and_killed(str(tmp_path), kind, die)
    check_answer(tmp_path, kind)


def test_a_transcript_that_is_resumed_grows_by_what_is_new_alone(tmp_path):
    human = pytest.importorskip("langchain_core.messages").HumanMessage
    token = "ghp_" + "a1B2c3D4e5" * 4
    with Memory.open(tmp_path, embedder=None) as memory:
        first = LangChain(memory, lambda: None, transcript=True)
        first.say("Hello.")
        said = first.agent.get_state({"configurable": {"thread_id": SESSION}}).values["messages"]
        first.say(f"The token is {token}", [human("Hello, captain.", id=said[0].id)])  # the first message was edited
    with Memory.open(tmp_path, embedder=None) as memory:
        before = [one["id"] for one in memory.sessions.log(SESSION).read_entries()]
        again = LangChain(memory, lambda: None, transcript=True)
        again.say("And now?")
        assert token not in str(again.model.requests[-1])
        again.say("And then?")
        entries = list(memory.sessions.log(SESSION).read_entries())
        assert [one["id"] for one in entries[: len(before)]] == before
        assert [str(one["message"]["content"]) for one in entries[len(before) :: 2]] == ["And now?", "And then?"]
        assert len(entries) == len(before) + 4


TIDE = {"type": "toolCall", "id": "c1", "name": "tide", "arguments": {"at": "Texel"}}


def ask_for_the_tide(memory: Memory) -> None:
    log = memory.sessions.log(SESSION)
    log.append("user", "High tide?")
    log.append("assistant", [{"type": "text", "text": "Let me see."}, TIDE])
    log.append("toolResult", [{"type": "text", "text": "At noon."}], toolCallId="c1", toolName="tide")
    log.append("assistant", "At noon.")


def test_calls_and_answers_become_those_of_langchain(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        ask_for_the_tide(memory)
        agent = LangChain(memory, lambda: None, transcript=True)
        agent.say("And then?")
        user, call, answer, last, _ = agent.model.requests[-1].messages
    assert (user.text, call.text, last.text) == ("High tide?", "Let me see.", "At noon.")
    assert [(one["id"], one["name"], one["args"]) for one in call.tool_calls] == [("c1", "tide", {"at": "Texel"})]
    assert (answer.type, answer.text, answer.tool_call_id, answer.name) == ("tool", "At noon.", "c1", "tide")
