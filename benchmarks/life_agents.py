"""The agents of `lives.py`, each put together as the documentation of its memory says.

In LangChain, all but plain summarisation begin a thread with each session, and each summarises at 10 messages. In
LlamaIndex, a session is a `Memory` of about as much, and what it still holds is handed to its block at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from life_model import Message

if TYPE_CHECKING:
    from life_meter import Meter

SUMMARY = {"trigger": ("messages", 10), "keep": ("messages", 4)}  # a question, a call and its result are three
WINDOW = {"token_limit": 2_000, "chat_history_token_ratio": 0.1, "token_flush_size": 100}
ROLES = {"human": "user", "ai": "assistant"}


def langchain_model(meter: Meter) -> Any:
    """Return the scripted model as one of LangChain."""
    from langchain_core.messages import AIMessage
    from langchain_openclaw_memory.testing import ScriptedChatModel

    def script(request: Any) -> Any:
        messages = [Message(ROLES.get(each.type, each.type), each.text) for each in request.messages]
        tools = [name.rpartition(".")[2].removesuffix("'>") for name in request.tools]  # langmem gives classes
        reply = meter.ask(messages, tools)
        if isinstance(reply, str):
            return reply
        calls = [{"name": reply.name, "args": one, "id": f"call{at}"} for at, one in enumerate(reply.arguments)]
        return AIMessage("", tool_calls=calls)

    return ScriptedChatModel(script=script, usage=None)


class ChainAgent:
    """An agent of LangChain for many users."""

    def __init__(self, model: Any, middleware: Sequence[Any], tools: Sequence[Any] = (), store: Any = None) -> None:
        from langchain.agents import create_agent
        from langgraph.checkpoint.memory import InMemorySaver

        self.agent = create_agent(model, tools, middleware=middleware, checkpointer=InMemorySaver(), store=store)

    def live(self, user: str, session: str, texts: Sequence[str]) -> list[str]:
        """Say these texts, one after another, and return the replies."""
        return [self.ask(user, session, text) for text in texts]

    def ask(self, user: str, session: str, text: str) -> str:
        """Say one text."""
        config = {"configurable": {"thread_id": session, "user_id": user}}
        return str(self.agent.invoke({"messages": [("user", text)]}, config)["messages"][-1].text)

    def count_notes(self, user: str, sentence: str) -> int:
        """Return how often a sentence stands in what is kept of a user."""
        return "\n".join(self.read_notes(user)).count(sentence)

    def read_notes(self, _user: str) -> Sequence[str]:
        """Return the texts that are kept of a user."""
        return ()


class PlainAgent(ChainAgent):
    """One conversation for a user's whole life, which is all that a summary can remember."""

    def ask(self, user: str, _session: str, text: str) -> str:
        return super().ask(user, user, text)


@contextmanager
def plain(meter: Meter, _folder: Path) -> Iterator[ChainAgent]:
    """LangChain's summary alone."""
    from langchain.agents.middleware import SummarizationMiddleware

    model = langchain_model(meter)
    yield PlainAgent(model, [SummarizationMiddleware(model, **SUMMARY)])


@contextmanager
def ours_langchain(meter: Meter, folder: Path, max_results: int | None = None) -> Iterator[ChainAgent]:
    """This library in LangChain: tools, recall, transcripts, and the flush before a summary."""
    from langchain_openclaw_memory import (
        OpenClawRecallMiddleware,
        OpenClawSummarizationMiddleware,
        OpenClawTranscriptMiddleware,
        memory_tools,
    )

    from openclaw_memory import Memories

    with Memories(folder / "users", max_open=64) as users:
        memory, model = users.use_template("{user_id}"), langchain_model(meter)
        middleware = [
            OpenClawTranscriptMiddleware(memory),
            OpenClawRecallMiddleware(memory, max_results=max_results),
            OpenClawSummarizationMiddleware(model, memory, **SUMMARY),
        ]
        agent = ChainAgent(model, middleware, memory_tools(memory))
        agent.read_notes = lambda user: read_files(users, user)  # type: ignore[method-assign]
        yield agent


@contextmanager
def langgraph_store(meter: Meter, _folder: Path) -> Iterator[ChainAgent]:
    """LangGraph's store with embeddings: langmem extracts after each turn, and its tool searches."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_openclaw_memory import OpenClawEmbeddings
    from langgraph.store.memory import InMemoryStore
    from langmem import create_memory_store_manager, create_search_memory_tool

    embeddings = OpenClawEmbeddings()
    store = InMemoryStore(index={"embed": embeddings, "dims": len(embeddings.embed_query("size"))})
    model, namespace = langchain_model(meter), ("memories", "{user_id}")
    manager = create_memory_store_manager(model, namespace=namespace, store=store)
    search = create_search_memory_tool(namespace=namespace, store=store)

    class Agent(ChainAgent):
        def ask(self, user: str, session: str, text: str) -> str:
            reply = super().ask(user, session, text)
            said = [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
            manager.invoke({"messages": said}, {"configurable": {"user_id": user}})
            return reply

        def read_notes(self, user: str) -> Sequence[str]:
            return [str(item.value) for item in store.search(("memories", user), limit=10_000)]

    yield Agent(model, [SummarizationMiddleware(model, **SUMMARY)], [search], store)


@contextmanager
def mem0(meter: Meter, folder: Path) -> Iterator[ChainAgent]:
    """mem0 with Qdrant in a folder: it extracts after each turn, and what it finds stands in the system message."""
    from langchain.agents.middleware import SummarizationMiddleware, dynamic_prompt
    from langchain_openclaw_memory import OpenClawEmbeddings
    from langgraph.config import get_config
    from mem0 import Memory

    embeddings, model = OpenClawEmbeddings(), langchain_model(meter)
    dimensions = len(embeddings.embed_query("size"))
    vectors = {"path": str(folder / "qdrant"), "embedding_model_dims": dimensions, "on_disk": True}
    memory = Memory.from_config(
        {
            "llm": {"provider": "langchain", "config": {"model": model}},
            "embedder": {"provider": "langchain", "config": {"model": embeddings, "embedding_dims": dimensions}},
            "vector_store": {"provider": "qdrant", "config": vectors},
            "history_db_path": str(folder / "history.db"),
        }
    )

    @dynamic_prompt
    def show(request: Any) -> str:
        user = get_config()["configurable"]["user_id"]
        found = memory.search(request.messages[-1].text, filters={"user_id": user}, top_k=10)["results"]
        return "User memories:\n" + "\n".join(f"- {one['memory']}" for one in found)

    class Agent(ChainAgent):
        def ask(self, user: str, session: str, text: str) -> str:
            reply = super().ask(user, session, text)
            memory.add([{"role": "user", "content": text}, {"role": "assistant", "content": reply}], user_id=user)
            return reply

        def read_notes(self, user: str) -> Sequence[str]:
            return [one["memory"] for one in memory.get_all(filters={"user_id": user}, top_k=10_000)["results"]]

    yield Agent(model, [show, SummarizationMiddleware(model, **SUMMARY)])


def read_files(users: Any, user: str) -> list[str]:
    """Return the notes of a user in a pool of memories, without transcripts."""
    with users.use(user) as memory:
        root = memory.workspace.root
        return [path.read_text() for path in sorted([*root.glob("*.md"), *root.glob("memory/**/*.md")])]


# --- LlamaIndex --------------------------------------------------------------------------------------------------


def llama_model(meter: Meter) -> Any:
    """Return the scripted model as one of LlamaIndex."""
    from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
    from llama_index_openclaw_memory.testing import ScriptedLLM

    def script(messages: Sequence[Any], tools: Sequence[str]) -> Any:
        reply = meter.ask([Message(each.role.value, each.content or "") for each in messages], tools)
        if isinstance(reply, str):
            return reply
        calls = [
            ToolCallBlock(tool_call_id=f"call{at}", tool_name=reply.name, tool_kwargs=one)
            for at, one in enumerate(reply.arguments)
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=calls)

    return ScriptedLLM(script=script)


class LlamaAgent:
    """An agent of LlamaIndex for many users; `block_of` returns the memory block of a user."""

    def __init__(self, model: Any, tools: Sequence[Any] = ()) -> None:
        from llama_index.core.agent.workflow import FunctionAgent

        self.agent = FunctionAgent(llm=model, tools=list(tools))

    def block_of(self, user: str) -> Any:
        """Return the memory block of a user."""
        raise NotImplementedError

    def live(self, user: str, session: str, texts: Sequence[str]) -> list[str]:
        """Say these texts, one after another, and return the replies."""
        return asyncio.run(self._live(user, session, texts))

    async def _live(self, user: str, session: str, texts: Sequence[str]) -> list[str]:
        from llama_index.core.memory import Memory
        from llama_index.core.storage.chat_store.sql import MessageStatus

        block = self.block_of(user)
        session = self.name_session(user, session)
        chat = Memory.from_defaults(session_id=session, memory_blocks=[block], **WINDOW)
        replies = [str(await self.agent.run(text, memory=chat)) for text in texts]
        await block.aput(await chat.aget_all(status=MessageStatus.ACTIVE), session_id=session)
        await self.end(block, session)
        return replies

    def name_session(self, user: str, _session: str) -> str:
        """Return the id of the `Memory`: the user, as LlamaIndex's own blocks know a user by it."""
        return user

    async def end(self, block: Any, session: str) -> None:
        """End a session."""

    def count_notes(self, user: str, sentence: str) -> int:
        """Return how often a sentence stands in what is kept of a user."""
        return "\n".join(self.read_notes(user)).count(sentence)

    def read_notes(self, user: str) -> Sequence[str]:
        """Return the texts that are kept of a user."""
        raise NotImplementedError


@contextmanager
def ours_llama(meter: Meter, folder: Path, max_results: int | None = None) -> Iterator[LlamaAgent]:
    """This library in LlamaIndex: tools, and a block that recalls, keeps and flushes."""
    from llama_index_openclaw_memory import OpenClawMemoryBlock, OpenClawToolSpec

    from openclaw_memory import Memories
    from openclaw_memory.runs import run_values

    with Memories(folder / "users", max_open=64) as users:
        memory, model = users.use_template("{user_id}"), llama_model(meter)
        tools = OpenClawToolSpec(memory).to_tool_list()
        block = OpenClawMemoryBlock(memory, llm=model, tools=tools, max_results=max_results)

        class Agent(LlamaAgent):
            def block_of(self, _user: str) -> Any:
                return block

            def live(self, user: str, session: str, texts: Sequence[str]) -> list[str]:
                with run_values(user_id=user):
                    return super().live(user, session, texts)

            def name_session(self, _user: str, session: str) -> str:
                return session

            async def end(self, block: Any, session: str) -> None:
                await block.aflush(session)

            def read_notes(self, user: str) -> Sequence[str]:
                return read_files(users, user)

        yield Agent(model, tools)


@contextmanager
def fact_block(meter: Meter, _folder: Path) -> Iterator[LlamaAgent]:
    """LlamaIndex's `FactExtractionMemoryBlock`, one a user."""
    from llama_index.core.memory import FactExtractionMemoryBlock

    model, blocks = llama_model(meter), {}

    class Agent(LlamaAgent):
        def block_of(self, user: str) -> Any:
            return blocks.setdefault(user, FactExtractionMemoryBlock(llm=model))

        def read_notes(self, user: str) -> Sequence[str]:
            return list(blocks[user].facts)

    yield Agent(model)


@contextmanager
def vector_block(meter: Meter, _folder: Path) -> Iterator[LlamaAgent]:
    """LlamaIndex's `VectorMemoryBlock`, one a user, over its vector store that keeps texts in memory."""
    import chromadb
    from llama_index.core.memory import VectorMemoryBlock
    from llama_index.vector_stores.chroma import ChromaVectorStore
    from llama_index_openclaw_memory import OpenClawEmbedding

    client, embedder, blocks = chromadb.EphemeralClient(), OpenClawEmbedding(), {}

    class Agent(LlamaAgent):
        def block_of(self, user: str) -> Any:
            if user not in blocks:
                store = ChromaVectorStore(chroma_collection=client.create_collection(user))
                blocks[user] = VectorMemoryBlock(vector_store=store, embed_model=embedder)
            return blocks[user]

        def read_notes(self, _user: str) -> Sequence[str]:
            return ()  # it keeps messages, and notes nothing

    yield Agent(llama_model(meter))


AGENTS = {
    "ours in LangChain": ours_langchain,
    "ours in LlamaIndex": ours_llama,
    "ours in LangChain, max_results=6": partial(ours_langchain, max_results=6),
    "ours in LlamaIndex, max_results=6": partial(ours_llama, max_results=6),
    "LangChain: summary alone": plain,
    "LangGraph: store with embeddings, langmem": langgraph_store,
    "mem0: Qdrant": mem0,
    "LlamaIndex: FactExtractionMemoryBlock": fact_block,
    "LlamaIndex: VectorMemoryBlock": vector_block,
}
