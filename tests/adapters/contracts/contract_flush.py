"""What saves a conversation before it is cut promises in the words of each framework: when, and how a model is asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import pytest
from index_files import read_days

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError
from openclaw_memory.text.fence import fence_text

WINDOW = 4_000  # flushed from 1,500 tokens on: a quarter is reserved, and half of the rest is soft at most
FACT = "Please remember: the boiler code is 4711."
FENCED = f"{fence_text('The spare key is with Mrs. Groen.', 'memory')}\nHi."


def words(tokens: int) -> str:
    return "so it " * (tokens * 4 // 6)


def written(memory: Memory) -> str:
    """All daily notes, one after another."""
    return read_days(memory.workspace.root)


class WatchContract:
    """What watches the calls of models saves a conversation before its window is full.

    A subclass makes models of a script (`writes` is that of one that notes facts), has a memory `watch` them for a flush
    model, and asks a model with messages, each a role and a text, in each of the `ways`, until what is flushed is flushed.
    It counts the `turns` of a flush model, and the `requests` of any. `knows` are settings of a model, and its window then.
    """

    ways: ClassVar[Sequence[str]]
    too_long: ClassVar[Exception]
    writes: ClassVar[Callable[..., Any]]
    knows: ClassVar[tuple[Mapping[str, Any], int]]

    def model(self, *script: Any, **fields: Any) -> Any:
        raise NotImplementedError

    def watch(self, memory: Any, model: Any, **settings: Any) -> Any:
        raise NotImplementedError

    async def ask(self, model: Any, talk: Sequence[tuple[str, str]], way: str, session: str | None = None) -> str:
        raise NotImplementedError

    async def complete(self, text: str) -> None:
        raise NotImplementedError

    def turns(self, model: Any) -> int:
        raise NotImplementedError

    def requests(self, model: Any) -> int:
        raise NotImplementedError

    async def test_a_conversation_is_flushed_once_and_again_after_it_was_compacted(self, memory):
        flush_model, model = self.model(self.writes), self.model("ok", usage=None)
        self.watch(memory, flush_model, window=WINDOW)
        for count, way in enumerate(self.ways):
            talk = [("system", "Be kind."), ("user", f"{FACT} By {way}.")]
            for part in (range(6), range(6, 9)):
                for at in part:
                    talk += [("assistant", await self.ask(model, talk, way, way)), ("user", f"{at}: {words(500)}")]
                assert self.turns(flush_model) == 2 * count + (1 if 0 in part else 2)
                assert f"4711. By {way}." in written(memory)
                talk = [("user", "What was said before, in short."), *talk[-3:]]

    async def test_the_tokens_that_the_provider_reports_count(self, memory):
        flush_model = self.model(self.writes)
        self.watch(memory, flush_model, window=WINDOW)
        for count, way in enumerate(self.ways):
            for reported, more in ((1_400, 0), (1_600, 1)):
                await self.ask(self.model("ok", usage=lambda _, n=reported: n), [("user", FACT)], way, way)
                assert self.turns(flush_model) == count + more

    async def test_a_model_that_takes_text_is_watched_too(self, memory):
        self.watch(memory, self.model(self.writes), window=WINDOW)
        await self.complete(f"{FACT}\n{words(2_000)}")
        assert "4711" in written(memory)

    async def test_its_own_calls_are_not_watched(self, memory):
        for count, way in enumerate(self.ways, 1):
            model = self.model(self.writes, usage=lambda _: 3_000)
            self.watch(memory, model, window=WINDOW, session_key=f"s{count}")
            await self.ask(model, [("user", FACT), ("user", "Go on.")], way, f"s{count}")
            assert self.requests(model) == 3  # the talk, the call of the tool, the end
        assert "4711" in written(memory)

    async def test_sessions_are_flushed_each_for_itself(self, memory):
        flush_model = self.model(self.writes)
        self.watch(memory, flush_model, window=WINDOW)
        for name in ("one", "two"):
            for _ in range(2):
                talk = [("user", FACT), ("user", words(2_000))]
                await self.ask(self.model("ok", usage=None), talk, self.ways[-1], name)
        assert self.turns(flush_model) == 2
        assert list(json.loads((memory.workspace.root / "sessions" / "sessions.json").read_text())) == ["one", "two"]

    async def test_a_conversation_that_is_refused_as_too_long_is_flushed_and_no_other_that_fails(self, memory):
        flush_model = self.model(self.writes)
        self.watch(memory, flush_model, window=200_000)
        for way in self.ways:
            for error in (self.too_long, RuntimeError("down")):
                with pytest.raises(type(error)):
                    await self.ask(self.model(error), [("user", f"{FACT} By {way}.")], way, way)
            assert f"4711. By {way}." in written(memory)
        assert self.turns(flush_model) == len(self.ways)

    async def test_a_flush_that_fails_leaves_the_reply_whole(self, memory):
        self.watch(memory, self.model(RuntimeError("no credit left")), window=WINDOW)
        for number, way in enumerate(self.ways):
            talk = [("user", f"{FACT}\n{words(2_000)}")]
            assert await self.ask(self.model("ok", usage=None), talk, way, f"s{number}") == "ok"
            assert "no credit left" in memory.status().flush[f"s{number}"]
            assert "4711" in str(list(memory.sessions.log(f"s{number}").read_messages()))

    async def test_the_event_loop_goes_on_while_memories_are_written(self, memory):
        started, may_end = threading.Event(), threading.Event()

        def slow(*_given):
            started.set()
            assert may_end.wait(60)
            return "NO_REPLY"

        self.watch(memory, self.model(slow), window=WINDOW)
        talk = [("user", words(2_000))]
        reply = asyncio.create_task(self.ask(self.model("ok", usage=None), talk, self.ways[-1]))
        await asyncio.to_thread(started.wait, 60)  # this line goes on, while the model waits
        assert not reply.done()
        may_end.set()
        assert await reply == "ok"

    def test_a_window_that_is_unknown_or_wrong_is_an_error_that_says_what_to_do(self, memory):
        fields, window = self.knows
        assert self.watch(memory, self.model("ok", **fields)).window == window
        for wrong in (0, -1, "8k"):
            with pytest.raises(ConfigError, match=f"window={wrong!r} is not a number"):
                self.watch(memory, self.model("ok"), window=wrong)
        with pytest.raises(TypeError, match="must be a Memory"):
            self.watch("notes", self.model("ok"), window=WINDOW)


class Request(NamedTuple):
    """What a model was asked: the role and the text of each message, and the names of the tools."""

    messages: list[tuple[str, str]]
    tools: list[str]

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.messages)


class FlushModelContract:
    """In the silent turn, a model is shown a conversation and writes down what should last.

    A subclass holds a `turn` in each of the `ways`, by a model of replies that can call tools or not, about messages: a
    role and a text each, or a call of the tool `look` or its answer by its id, or those of `memory_search`. It returns how the turn ended, and what
    the model was asked; `cut_off` has the provider report its first reply as such. `writes` and `says` are the scripts of
    models that note facts with the tool and without; `call` makes a reply that calls a tool.
    """

    ways: ClassVar[Sequence[str]] = ("",)
    writes: ClassVar[Callable[..., Any]]
    says: ClassVar[Callable[..., Any]]

    async def turn(
        self, memory: Any, way: str, script: Sequence[Any], talk: Sequence[tuple[str, str]], **settings: Any
    ) -> tuple[str | None, list[Request]]:
        raise NotImplementedError

    def call(self, name: str, **arguments: Any) -> Any:
        raise NotImplementedError

    talk = ("system", "Be kind."), ("user", FACT), ("assistant", "Noted.")

    async def test_a_model_is_shown_the_conversation_and_writes_with_the_one_tool(self, memory):
        for way in self.ways:
            outcome, (asked, ended) = await self.turn(memory, way, [self.writes], self.talk)
            assert outcome == "saved"
            assert asked.tools == ended.tools == ["memory_append"]
            assert [role for role, _ in asked.messages] == ["user"]
            assert f"User: {FACT}\nAssistant: Noted." in asked.text
            assert "Be kind." not in asked.text
            assert '"status":"ok"' in ended.text
        assert written(memory).count("the boiler code is 4711") == 1

    async def test_a_model_without_tools_is_asked_for_the_notes_themselves(self, memory):
        for way in self.ways:
            outcome, (asked,) = await self.turn(memory, way, ["NO_REPLY"], self.talk, tools=False)
            assert (outcome, "You have no tools here" in asked.text, written(memory)) == ("nothing", True, "")
        for way in self.ways:
            outcome, (asked,) = await self.turn(memory, way, [self.says], self.talk, tools=False)
            assert (outcome, asked.tools) == ("saved", [])
        assert "- the boiler code is 4711" in written(memory)

    async def test_of_a_model_that_fails_or_is_cut_off_the_words_are_kept(self, memory):
        for way in self.ways:
            for replies, tools, cut_off in (
                ([TimeoutError("too slow")], True, False), ([""], True, False), ([ConnectionError("hung up")], False, False),
                ([self.call("rm", path="/"), "Done."], True, False),
                ([self.call("memory_append", note=FACT), "NO_REPLY"], True, False),
                ([self.call("memory_append", text="The boiler code is 47"), "NO_REPLY"], True, True),
                (["The boiler code is 47"], False, True),
            ):  # fmt: skip
                outcome, _ = await self.turn(memory, way, replies, self.talk, tools=tools, cut_off=cut_off)
                assert outcome == "kept", replies
                assert ("cut off" in memory.status().flush["talk"]) is cut_off
        assert str(memory.sessions.flush("talk").log.read_messages()).count(FACT) == 1
        assert written(memory) == ""

    async def test_calls_are_shown_with_their_answers_and_nothing_that_the_memory_itself_answered(self, memory):
        for way in self.ways:
            recall = ("recall", "c"), ("recalled", "c"), ("user", FENCED)
            loose = ("call", "a"), ("answer", "a"), ("answer", "b"), *recall
            _, (asked, *_) = await self.turn(memory, way, ["NO_REPLY"], [*self.talk, *loose])
            assert [role for role, _ in asked.messages] == ["user"]
            assert "[calls look {}]\nTool look: found\n" in asked.text
            assert "User: Hi." in asked.text
            assert "Groen" not in asked.text

    async def test_what_does_not_fit_is_shown_in_parts_and_nothing_is_left_out(self, memory):
        talk = [("user", f"Please remember: fact {number} of many.\n" + "filler " * 40) for number in range(40)]
        for way in self.ways:
            for script, tools in ((self.writes, True), (self.says, False)):
                outcome, asked = await self.turn(memory, way, [script], talk, tools=tools, room=1_200)
                assert outcome == "saved"
                assert len(asked) >= 3
                assert all(len(request.text) < 8_000 for request in asked)
        assert [number for number in range(40) if f"fact {number} of many" not in written(memory)] == []
