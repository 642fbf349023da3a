"""What the parts of an agent promise in the words of each framework: tools, and what a session starts with."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from openclaw_memory import Memory
from openclaw_memory import tools as core
from openclaw_memory.errors import ConfigError, InvalidInputError, QueryError

GROUP = "agent:main:telegram:group:7"
QUESTION = "Who services the boiler?"
KEY = {"query": "Where is the spare key?"}
LINE = {"path": "memory/household.md", "from": 3, "lines": 1}
THEME = {"type": "preference", "key": "editor.theme", "value": "dark"}
# What a model can make good, and what it is answered.
MENDABLE = [
    ("memory_get", {"path": "memory/nobody.md"}, "not_found"),
    ("memory_get", {"path": "../secret.md"}, "not_allowed"),
    ("memory_get", {"path": "MEMORY.md", "from": 0}, "invalid"),
    ("memory_get", {"path": "MEMORY.md", "from_": 1}, "invalid"),
    ("memory_get", {}, "invalid"),
    ("memory_search", {"query": ""}, "invalid"),
    ("memory_search", {"query": "boiler", "self": 1, "config": 2, "tool": 3, "func": 4, "ctx": 5}, "invalid"),
    ("memory_append", {"text": " "}, "invalid"),
    ("memory_forget", {"path": "MEMORY.md", "from": 1, "lines": 1, "hash": "0" * 12}, "stale"),
    ("memory_promote", {"path": "memory/none.md", "from": 1, "lines": 1, "hash": "0" * 12}, "not_found"),
]


def paths(answer: Mapping[str, Any]) -> set[str]:
    return {result["path"] for result in answer["results"]}


class ToolsContract:
    """The memory's tools as tools of a framework.

    A subclass makes them by functions `of` a memory (by itself and by a kit, with the wishes of `memory_tools`), says what
    a model is `shown` of them, asks one for its `answer`, and has an agent `talk`: its model calls and says what a script
    says, and what its tools answered is returned for each message. `lacks` are the parts of a schema that are left out.
    """

    of: ClassVar[Sequence[Callable[..., Sequence[Any]]]]
    lacks: ClassVar[set[str]] = set()

    def shown(self, tool: Any) -> dict[str, Any]:
        raise NotImplementedError

    async def answer(self, tool: Any, arguments: Mapping[str, Any], session: str | None = None, **way: Any) -> Any:
        raise NotImplementedError

    async def talk(self, tools: Sequence[Any], script: Sequence[Any], *messages: str) -> list[list[Any]]:
        raise NotImplementedError

    @pytest.fixture
    def memory(self, notes):
        with Memory.open(notes, embedder=None) as memory:
            memory.sync()
            yield memory

    def made(self, memory: Any, **wishes: Any) -> dict[str, Any]:
        return {self.shown(tool)["name"]: tool for tool in self.of[0](memory, **wishes)}

    def test_what_a_model_is_shown_is_what_the_core_says(self, memory):
        for wishes in ({}, {"edit": True}, {"append": False}, {"edit": True, "records": True}):
            expected = []
            for tool in core.memory_tools(memory, **wishes):
                parameters = {name: value for name, value in tool.parameters.items() if name not in self.lacks}
                expected.append({"name": tool.name, "description": tool.description, "parameters": parameters})
            for of in self.of:
                assert [self.shown(tool) for tool in of(memory, **wishes)] == expected

    async def test_a_search_and_a_read_answer_with_data(self, memory):
        tools = self.made(memory)
        found = await self.answer(tools["memory_search"], {"query": QUESTION})
        assert (found["status"], found["results"][0]["citation"]) == ("ok", "memory/household.md#L1-L3")
        read = await self.answer(tools["memory_get"], LINE)
        assert read["from"] == 3
        assert "The boiler is serviced each October by Van Dam." in read["text"]

    async def test_what_a_model_can_fix_is_an_answer(self, memory):
        tools = self.made(memory, edit=True)
        for name, arguments, status in MENDABLE:
            for is_async in (False, True):
                answer = await self.answer(tools[name], arguments, is_async=is_async)
                assert (answer["status"], bool(answer["error"])) == (status, True), arguments

    async def test_a_closed_memory_is_an_answer_too(self, memory):
        tool = self.made(memory)["memory_search"]
        memory.close()
        assert (await self.answer(tool, KEY))["status"] == "unavailable"

    async def test_in_the_session_of_a_group_less_is_shown(self, memory):
        search = self.made(memory)["memory_search"]
        assert "MEMORY.md" in paths(await self.answer(search, KEY))
        told = self.made(memory, session_key=GROUP)
        for tool, session in ((search, GROUP), (told["memory_search"], None), (told["memory_search"], "main")):
            for is_async in (False, True):
                together = await self.answer(tool, KEY, session, is_async=is_async)
                assert "MEMORY.md" not in paths(together)
                assert not [result for result in together["results"] if "citation" in result]
        assert (await self.answer(told["memory_get"], {"path": "MEMORY.md"}))["status"] == "not_allowed"

    async def test_tools_of_notes_alone_show_no_conversation(self, memory):
        memory.sessions.log("monday").append("user", "The spare key is below the mat.")
        memory.sync()
        for of in self.of:
            for wishes, is_there in (({}, True), ({"source": "memory"}, False)):
                found = await self.answer(of(memory, **wishes)[0], KEY)
                assert ("sessions/monday.jsonl" in paths(found)) is is_there

    async def test_records_are_remembered_for_the_session(self, memory):
        for of in self.of:
            remember, confirm = of(memory, records=True)[-2:]
            memory.records.forget("preference", "editor.theme")
            assert (await self.answer(remember, THEME, "agent:main:s7"))["outcome"] == "new"
            assert memory.records.get("preference", "editor.theme").source.ref == "agent:main:s7"
            assert (await self.answer(remember, THEME, GROUP))["status"] == "not_allowed"
            assert (await self.answer(confirm, THEME, "agent:main:s7"))["outcome"] == "confirmed"
            assert memory.records.get("preference", "editor.theme").is_confirmed

    async def test_no_group_forgets(self, memory):
        erase = self.made(memory, erase=True)["memory_erase"]
        assert (await self.answer(erase, {"lastDays": 1}, GROUP))["status"] == "not_allowed"

    async def test_tools_of_two_memories_have_names_of_their_own(self, memory, tmp_path):
        (tmp_path / "work").mkdir()
        with Memory.open(tmp_path / "work", embedder=None) as work:
            work.append("The invoice is due on Monday.", date="2026-11-21")
            work.sync()
            for of in self.of:
                tools = {self.shown(tool)["name"]: tool for tool in [*of(memory), *of(work, name="work")]}
                assert list(tools) == [
                    "memory_search", "memory_get", "memory_append",
                    "work_memory_search", "work_memory_get", "work_memory_append",
                ]  # fmt: skip
                shown = self.shown(tools["work_memory_search"])["description"]
                assert "In the memory 'work'" in shown
                assert "use work_memory_get to read" in shown
                assert "work_memory_search gives it" in str(self.shown(tools["work_memory_get"]))
                for name, is_there in (("work_memory_search", True), ("memory_search", False)):
                    assert ("invoice" in str(await self.answer(tools[name], {"query": "invoice"}))) is is_there

    def test_what_is_no_name_or_no_memory_is_refused(self, memory):
        for name in ("", "my work", "x" * 41, "ü"):
            with pytest.raises(ConfigError, match="1 to 40"):
                self.of[0](memory, name=name)
        for of in self.of:
            with pytest.raises((TypeError, ValueError), match="memory must be a Memory"):
                of("notes")

    async def test_an_agent_promotes_what_it_has_read(self, memory):
        day = memory.append("The ferry leaves at seven.", date="2026-11-21").path
        line = {"path": day, "from": 3, "lines": 1}
        promote = line | {"hash": memory.get(day, start=3, lines=1).hash[:12], "section": "Ferries"}
        script = ("memory_get", line), ("memory_promote", promote), "It is kept."
        ((read, kept),) = await self.talk(self.of[0](memory, edit=True), script, "Keep the ferry for good.")
        assert read["hash"] == promote["hash"]
        assert (kept["status"], kept["path"]) == ("ok", "MEMORY.md")
        assert memory.get("MEMORY.md").text.endswith("## Ferries\n\nThe ferry leaves at seven.")

    @pytest.mark.parametrize("session_key", [None, "agent:main:main"])
    async def test_a_hash_counts_once_the_user_has_typed_it(self, memory, session_key):
        wanted, day = {"query": "ferry leaves"}, memory.append("The ferry leaves at seven.", date="2026-11-21").path
        code = memory.control.forget(**wanted).plan.hash[:12]
        erase = ("memory_erase", {"hash": code})
        tools = self.of[0](memory, session_key=session_key, erase=True)
        script = ("memory_erase", wanted), erase, f"Type {code}.", erase, "It is gone."
        (planned, refused), (done,) = await self.talk(tools, script, "Forget the ferry.", f"{code}, please")
        assert (planned["outcome"], planned["hash"]) == ("planned", code)
        assert (refused["status"], "has not typed" in refused["error"]) == ("not_allowed", True)
        assert done["outcome"] == "forgotten"
        assert "ferry" not in memory.get(day).text


class SessionStartContract:
    """An agent starts with what its memory loads, as a part of a framework.

    A subclass makes the `part` of a memory, and returns the `systems`: all that the model of an agent with that part had as
    system messages, in each of its calls; a reply is a text, or a call of a tool with its arguments. The agent also
    recalls where it is told so, and its run has the `values` that choose a memory.
    """

    part: ClassVar[Callable[..., Any]]

    async def systems(self, part: Any, *replies: Any, session: str | None = None, **more: Any) -> list[str]:
        raise NotImplementedError

    async def test_every_call_of_a_run_has_the_same_text_below_the_prompt(self, lived_in):
        part = self.part(lived_in)
        first, second = await self.systems(part, ("memory_search", {"query": "boiler"}), "Hello.")
        assert first == second
        assert "## Memory Recall\n" in first.partition("Be kind.")[2]
        for words in ("Be kind.", "You are Kit", "Anna lives in Delft.", "The boiler was serviced."):
            assert first.count(words) == 1

    async def test_in_a_group_long_term_memory_is_left_out(self, lived_in):
        for session, is_there in ((GROUP, False), (None, True)):
            (text,) = await self.systems(self.part(lived_in), "Hello.", session=session)
            assert ("Delft" in text) is is_there
            assert "The boiler was serviced." in text

    async def test_what_was_written_is_there_from_the_next_call_on(self, lived_in):
        part = self.part(lived_in)
        note = ("memory_append", {"text": "Ines brings the projector."})
        texts = await self.systems(part, note, "Noted.") + await self.systems(part, "Hello.")
        assert ["projector" in text for text in texts] == [False, True, True]

    async def test_it_goes_with_what_is_recalled(self, lived_in):
        lived_in.sync()
        (text,) = await self.systems(self.part(lived_in), "Hello.", recalls=True)
        assert "You are Kit" in text

    async def test_a_memory_that_fails_costs_the_text_and_not_the_turn(self, lived_in, caplog):
        part = self.part(lived_in)
        lived_in.close()
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                (text,) = await self.systems(part, "Hello.", tools=False)
                assert ("Be kind." in text, "Kit" in text, "Delft" in text) == (True, False, False)
        assert len([record for record in caplog.records if "openclaw" in record.name]) == 1

    async def test_a_wrong_argument_is_said_at_the_first_call(self, lived_in):
        with pytest.raises(InvalidInputError, match="max_chars"):
            await self.systems(self.part(lived_in, max_chars=0), "Hello.")
        with pytest.raises(TypeError, match="must be a Memory"):
            self.part("notes")

    async def test_each_run_has_the_memory_of_its_person(self, users):
        for name in ("anna", "bob"):
            with users.use(name) as memory:
                memory.append(f"{name} has a goat.")
        part = self.part(users.template("{user_id}"))
        for name, other in (("anna", "bob"), ("bob", "anna")):
            (text,) = await self.systems(part, "Hello.", tools=False, values={"user_id": name})
            assert (f"{name} has a goat." in text, other in text) == (True, False)
        with pytest.raises(ConfigError, match="user_id"):
            await self.systems(part, "Hello.", tools=False)

    def test_a_copy_shares_the_memory(self, lived_in):
        assert copy.deepcopy(self.part(lived_in)).memory is lived_in


WINDOW = 4_000  # flushed from 1,500 tokens on: a quarter is reserved, and half of the rest is soft at most
FACT = "Please remember: the boiler code is 4711."


def words(tokens: int) -> str:
    return "so it " * (tokens * 4 // 6)


def written(memory: Memory) -> str:
    """All daily notes, one after another."""
    return "".join(path.read_text() for path in sorted((memory.workspace.root / "memory").glob("*.md")))


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
            for part in (range(6), range(6, 10)):
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


SERVICED = "The boiler is serviced each October by Van Dam."
PASTE = "\n".join(f"worker {number} started job {number * 7} without trouble" for number in range(60))


class RecallContract:
    """An agent is shown what its memory holds on the user's message, by a part of a framework.

    A subclass makes the `part` of a memory with settings of a search, and returns what is `recalled` for a message: a text,
    or a text and the address of an image.
    """

    part: ClassVar[Callable[..., Any]]

    async def recalled(self, part: Any, text: str, image: str = "", session: str | None = None) -> str:
        raise NotImplementedError

    async def test_what_is_relevant_is_shown_in_a_fence_with_its_citation(self, synced):
        opening, place, *lines, _closing = (await self.recalled(self.part(synced), QUESTION)).strip().split("\n")[:6]
        assert opening.startswith("<recalled-memory id=")
        assert place.startswith("[memory/household.md#L1-L3 ")
        assert lines[:3] == ["# Household", "", SERVICED]

    async def test_without_words_or_an_answer_nothing_is_shown(self, synced):
        for text, settings in (("", {}), (" \n", {}), (QUESTION, {"min_score": 1.0})):
            assert await self.recalled(self.part(synced, **settings), text) == ""

    async def test_next_to_a_long_paste_or_an_image_the_question_is_looked_up(self, synced):
        part = self.part(synced)
        pastes = (
            f"{PASTE}\n\n{QUESTION}",
            f"{QUESTION}\n\n{PASTE}",
            f"{PASTE}\n \n{PASTE}\n\n{QUESTION}",
            f"{QUESTION} " * 100,
        )
        for text in pastes:
            assert SERVICED in await self.recalled(part, text)
        assert SERVICED in await self.recalled(part, QUESTION, image="https://example.org/spare-key.png")

    async def test_the_settings_of_the_search_are_those_of_the_part(self, synced):
        synced.sessions.log("monday").append("user", f"{QUESTION} Jansen does.")
        synced.sync()
        assert "Jansen" in await self.recalled(self.part(synced), QUESTION)
        alone = await self.recalled(self.part(synced, source="memory", max_results=1), QUESTION)
        assert (SERVICED in alone, "Jansen" in alone, alone.count("#L")) == (True, False, 1)
        short = await self.recalled(self.part(synced, source="memory", max_chars=20), QUESTION)
        assert (SERVICED[:20] in short, SERVICED in short) == (True, False)

    async def test_in_a_group_nothing_private_is_recalled(self, synced):
        for settings, session in (({"session_key": GROUP}, None), ({}, GROUP)):
            shown = await self.recalled(
                self.part(synced, **settings), f"Where is the spare key? {QUESTION}", session=session
            )
            assert (SERVICED in shown, "Mrs. Groen" in shown, "household.md" in shown) == (True, False, False)

    async def test_a_wrong_setting_is_reported_at_the_first_call(self, synced):
        for name, value in (("max_chars", 0), ("max_results", 0), ("min_score", 2), ("source", "notes")):
            with pytest.raises((ConfigError, QueryError), match=name):
                await self.recalled(self.part(synced, **{name: value}), QUESTION)

    async def test_a_memory_that_fails_costs_the_block_and_is_reported_once(self, synced, caplog):
        with pytest.raises(TypeError, match="not 'notes'"):
            self.part("notes")
        part = self.part(synced)
        synced.close()
        for _ in range(2):
            assert await self.recalled(part, QUESTION) == ""
        (reported,) = (record for record in caplog.records if record.levelno == logging.WARNING)
        assert "closed; open it again" in reported.getMessage()
        assert reported.exc_info is None
