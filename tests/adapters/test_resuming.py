"""An agent that was killed goes on with its conversation: what it was told is in what the next model is given."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT, python

from openclaw_memory import Memory
from openclaw_memory.errors import InvalidInputError, NotFoundError

TOLD, KNOWN = "Onthoud: de code van de boot is 4711, en hij heet Zeemeeuw.", "Genoteerd, kapitein."
ASKED, ANSWER = "¿Cómo se llama el barco y cuál es su código?", "El barco se llama Zeemeeuw, y su código es 4711."
SESSION = "agent:main:boat"


class Killed(BaseException):
    """In place of the end of the process, where there is but one."""


def die() -> None:
    raise Killed


def die_for_good() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def reply(text: str, dies: Callable[[], None] | None) -> str:
    """What the scripted models say: they know what they are given, and nothing else."""
    if text.rstrip().endswith(TOLD):
        return KNOWN
    if ASKED not in text:
        assert dies is not None
        dies()
    return ANSWER if "4711" in text and "Zeemeeuw" in text else "No lo sé."


class LangChain:
    """An agent that keeps its end after each turn, and the same agent with a transcript."""

    def __init__(self, memory: Memory, dies: Callable[[], None] | None = None, *, transcript: bool = False) -> None:
        agents = pytest.importorskip("langchain.agents")
        saver = pytest.importorskip("langgraph.checkpoint.memory").InMemorySaver()
        import langchain_openclaw_memory as adapter
        from langchain_openclaw_memory.testing import ScriptedChatModel

        self.memory, self.adapter, self.transcript = memory, adapter, transcript
        self.model = ScriptedChatModel(script=lambda request: reply(request.text, dies))
        middleware = [adapter.OpenClawTranscriptMiddleware(memory)] if transcript else []
        self.agent = agents.create_agent(self.model, [], middleware=middleware, checkpointer=saver)

    def say(self, text: str, before: Any = ()) -> str:
        config = {"configurable": {"thread_id": SESSION}}
        said = self.agent.invoke({"messages": [*before, ("user", text)]}, config)["messages"]
        if not self.transcript:
            self.adapter.save_snapshot(self.memory, SESSION, said)
        return said[-1].text

    def resumed(self) -> Any:
        return self.adapter.resume_messages(self.memory, SESSION)

    def given(self) -> list[tuple[str, str]]:
        return [(message.type, message.text) for message in self.model.requests[-1].messages]


class LlamaIndex:
    """An agent that keeps its end after each turn."""

    def __init__(self, memory: Memory, dies: Callable[[], None] | None = None) -> None:
        workflow = pytest.importorskip("llama_index.core.agent.workflow")
        import llama_index_openclaw_memory as adapter
        from llama_index_openclaw_memory.testing import ScriptedLLM

        def script(messages: Any, _tools: Any) -> str:
            return reply("\n".join(message.content or "" for message in messages), dies)

        self.memory, self.adapter, self.llm = memory, adapter, ScriptedLLM(script=script)
        self.agent = workflow.FunctionAgent(tools=[], llm=self.llm)

    def say(self, text: str, before: Any = ()) -> str:
        from llama_index.core.base.llms.types import ChatMessage

        async def run() -> Any:
            return await self.agent.run(user_msg=text, chat_history=list(before))

        answer = asyncio.run(run()).response
        self.adapter.save_snapshot(self.memory, SESSION, [*before, ChatMessage(text, role="user"), answer])
        return answer.content

    def resumed(self) -> Any:
        return self.adapter.resume_messages(self.memory, SESSION)

    def given(self) -> list[tuple[str, str]]:
        return [(message.role.value, message.content or "") for message in self.llm.requests[-1]]


AGENTS: dict[str, Callable[..., Any]] = {
    "LangChain": LangChain,
    "LangChain with a transcript": lambda *given: LangChain(*given, transcript=True),
    "LlamaIndex": LlamaIndex,
}


def told_and_killed(folder: str, kind: str, dies: Callable[[], None]) -> None:
    memory = Memory.open(folder, embedder=None)
    agent = AGENTS[kind](memory, dies)
    assert agent.say(TOLD) == KNOWN
    agent.say("En hoe laat is het hoogwater?", agent.resumed() if kind == "LlamaIndex" else ())


def check_answer(folder: Path, kind: str) -> None:
    with Memory.open(folder, embedder=None) as memory:
        agent = AGENTS[kind](memory)
        assert agent.say(ASKED, agent.resumed()) == ANSWER
        given = agent.given()
        user, assistant = ("human", "ai") if kind.startswith("LangChain") else ("user", "assistant")
        assert [one for one in given if one[1] in {TOLD, KNOWN, ASKED}] == [
            (user, TOLD),
            (assistant, KNOWN),
            (user, ASKED),
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


@pytest.mark.nightly
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize("kind", AGENTS)
def test_an_agent_whose_process_was_killed_in_the_middle_of_a_turn_answers_too(tmp_path, kind):
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from test_resuming import die_for_good, told_and_killed\n"
        "told_and_killed(sys.argv[3], sys.argv[4], die_for_good)"
    )
    killed = python(code, ROOT / "tests", Path(__file__).parent, tmp_path, kind)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
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
        messages = again.resumed()
        assert token not in str(messages)
        again.say("And now?", messages)
        again.say("And then?")
        entries = list(memory.sessions.log(SESSION).read_entries())
        assert [one["id"] for one in entries[: len(before)]] == before
        assert [str(one["message"]["content"]) for one in entries[len(before) :: 2]] == ["And now?", "And then?"]
        assert len(entries) == len(before) + 4


@pytest.mark.parametrize("given", [[4711], None, "Hello", {"messages": [("user", TOLD)]}], ids=repr)
@pytest.mark.parametrize("kind", ["langchain_openclaw_memory", "llama_index_openclaw_memory"])
def test_what_is_no_message_is_named_and_nothing_is_kept(tmp_path, kind, given):
    adapter = pytest.importorskip(kind)
    with Memory.open(tmp_path, embedder=None) as memory:
        with pytest.raises(InvalidInputError, match="messages must be a list of"):
            adapter.save_snapshot(memory, SESSION, given)
        assert memory.sessions.snapshots() == ()


def test_messages_are_those_that_a_model_of_langchain_takes(tmp_path):
    adapter = pytest.importorskip("langchain_openclaw_memory")
    given = [("user", TOLD), {"role": "assistant", "content": KNOWN}, "And now?"]
    with Memory.open(tmp_path, embedder=None) as memory:
        kept = adapter.save_snapshot(memory, SESSION, given).messages
        assert [(one.role, one.content) for one in kept] == [("user", TOLD), ("assistant", KNOWN), ("user", "And now?")]


@pytest.mark.parametrize("kind", ["langchain_openclaw_memory", "llama_index_openclaw_memory"])
def test_calls_answers_and_roles_become_those_of_the_framework(tmp_path, kind):
    adapter = pytest.importorskip(kind)
    with Memory.open(tmp_path, embedder=None) as memory:
        log = memory.sessions.log(SESSION)
        made = {"type": "toolCall", "id": "c1", "name": "tide", "arguments": {"at": "Texel"}}
        log.append("user", "High tide?")
        log.append("assistant", [{"type": "text", "text": "Let me see."}, made])
        log.append("toolResult", [{"type": "text", "text": "At noon."}], toolCallId="c1", toolName="tide")
        log.append("assistant", "At noon.")
        messages = adapter.resume_messages(memory, SESSION)
        # What comes back in OpenClaw's shape is what was there.
        back = list(sys.modules[f"{kind}._messages"].convert_messages(messages))
        plain = [{name: value for name, value in one.items() if name != "id"} for one in back]
        assert plain[:3] == [
            {"role": "user", "content": "High tide?"},
            {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, made]},
            {"role": "toolResult", "content": [{"type": "text", "text": "At noon."}], "toolCallId": "c1", "toolName": "tide"},
        ]  # fmt: skip
        with pytest.raises(NotFoundError):
            adapter.resume_messages(memory, "another")
        with pytest.raises(TypeError, match="must be a Memory"):
            adapter.resume_messages(str(tmp_path), SESSION)


def test_the_summary_of_langchain_is_what_the_snapshot_was_about(tmp_path):
    adapter = pytest.importorskip("langchain_openclaw_memory")
    agents = pytest.importorskip("langchain.agents")
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_openclaw_memory.testing import ScriptedChatModel

    about = "The boat is called Zeemeeuw."
    summarises = SummarizationMiddleware(
        ScriptedChatModel(script=lambda _: about), trigger=("messages", 3), keep=("messages", 1)
    )
    agent = agents.create_agent(ScriptedChatModel(script=lambda _: ANSWER), [], middleware=[summarises])
    said = agent.invoke({"messages": [("user", TOLD), ("assistant", KNOWN), ("user", ASKED)]})["messages"]
    with Memory.open(tmp_path, embedder=None) as memory:
        made = adapter.save_snapshot(memory, SESSION, said)
        assert (made.summary, [one.content for one in made.messages]) == (about, [ASKED, ANSWER])
        going_on = adapter.resume_messages(memory, SESSION)
        assert about in going_on[0].text
        assert adapter.save_snapshot(memory, SESSION, going_on).messages == made.messages
        assert adapter.save_snapshot(memory, SESSION, said, "A boat.").summary == "A boat."
