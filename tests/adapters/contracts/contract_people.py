"""One agent, many people: each run has the memory that its own values choose, and sees nothing of another's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from openclaw_memory.errors import ConfigError
from openclaw_memory.runs import run_values

QUERY = "ferry zebra"


def seen(text: str) -> set[str]:
    """Return whose ferries a text names."""
    return {name for name in ("anna", "bob") if f"zebra-{name}" in text}


class PeopleContract:
    """The parts of an agent over a template, or over a function, use the memory of their run.

    A subclass makes a `retriever` and the `tools` of memories, and an agent that `searches` them and says what it found; it
    retrieves in a run that has a name by itself (`named`), as a run of the framework can have it.
    """

    def retriever(self, choice: Any) -> Any:
        raise NotImplementedError

    async def retrieve(self, retriever: Any, named: str | None = None) -> list[str]:
        raise NotImplementedError

    async def search_with_tool(self, choice: Any) -> str:
        raise NotImplementedError

    def agent(self, choice: Any) -> Any:
        raise NotImplementedError

    async def ask(self, agent: Any) -> str:
        raise NotImplementedError

    async def test_one_agent_at_once_shows_each_their_own_notes(self, users):
        agent = self.agent(users.use_template("{user_id}"))

        async def talk(name: str) -> str:
            with run_values(user_id=name):
                return await self.ask(agent)

        answers = await asyncio.gather(*map(talk, ["anna", "bob"] * 3))
        assert [seen(answer) for answer in answers] == [{"anna"}, {"bob"}] * 3

    async def test_the_runs_own_values_come_before_those_around_it(self, users):
        retriever = self.retriever(users.use_template("{user_id}"))
        with run_values(user_id="bob"):
            assert seen(str(await self.retrieve(retriever))) == {"bob"}
            assert seen(str(await self.retrieve(retriever, "anna"))) == {"anna"}
        assert seen(str(await self.retrieve(retriever, "bob"))) == {"bob"}

    async def test_a_function_returns_the_memory_of_the_run(self, users):
        assert seen(str(await self.retrieve(self.retriever(lambda *_: users.use("bob"))))) == {"bob"}

    async def test_a_run_that_lacks_a_value_says_how_to_give_it(self, users):
        template = users.use_template("{user_id}")
        for ask in (self.retrieve(self.retriever(template)), self.search_with_tool(template)):
            with pytest.raises(ConfigError, match=r"user_id is missing from this run.*user_id"):
                await ask
