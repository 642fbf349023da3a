"""A record of high sensitivity that something else has written is shown at no door; as it was signed, at each of these."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from faults.test_policies_at_every_door import (
    Place,
    agent_told,
    asked_of_mcp,
    block,
    chat_message,
    host_told,
    in_a_browser,
    langchain,
    langchain_tool,
    llama_index,
    told,
    told_by_opencode,
)

from openclaw_memory import Memory
from openclaw_memory.aio import AsyncMemory
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.tools import memory_tools

KEY = "door.code"
PATH = f"memory/records/fact/{KEY}.md"
ASKED = "What is the door code of the hut?"
SIGNED, EARLIER, FORGED = "quokka", "numbat", "wombat"
WORDS = (SIGNED, EARLIER, FORGED)


def of_the_hut(word: str) -> str:
    return f"the door code of the hut is {word}"


def tool(at: Place, name: str, **given: Any) -> Any:
    return {one.name: one for one in memory_tools(at.memory, records=True)}[name].run(given).data


def awaited(at: Place, call: Callable[[AsyncMemory], Any]) -> Any:
    async def ask() -> Any:
        return await call(AsyncMemory(at.memory))

    return asyncio.run(ask())


def resource(at: Place) -> Any:
    try:
        return asked_of_mcp(at, "read_resource", f"memory:///{PATH}")
    except Exception as refused:  # noqa: BLE001 - the client wraps what it is answered in groups of errors
        return [repr(refused), str(refused)]


def page(at: Place, place: str, **params: str) -> str:
    return in_a_browser(at).get(place, params=params).text


def nodes(retriever: Any) -> list[str]:
    return [node.model_dump_json() for node in retriever.retrieve(ASKED)]


# Each shows the record as it was signed. Those of a path raise an error of ours, or say so, once it is forged.
DOORS: dict[str, Callable[[Place], Any]] = {
    "Memory.search": lambda at: [hit.snippet for hit in at.memory.search(ASKED, max_results=50, min_score=0)],
    "Memory.search, key": lambda at: [hit.snippet for hit in at.memory.search(ASKED, key=["door.*"], min_score=0)],
    "Memory.get": lambda at: at.memory.get(PATH).text,
    "Memory.promote": lambda at: at.memory.promote(PATH, 24, 24),
    "AsyncMemory": lambda at: [hit.snippet for hit in awaited(at, lambda memory: memory.search(ASKED))],
    "AsyncMemory, get": lambda at: awaited(at, lambda memory: memory.get(PATH)),
    "Documents.search": lambda at: at.memory.documents.search(ASKED, 20),
    "Documents.keyword_search": lambda at: at.memory.documents.keyword_search("door code hut", 20),
    "Documents.vector_search": lambda at: at.memory.documents.vector_search(at.memory.embedder.embed_query(ASKED), 20),
    "Documents.read, or get": lambda at: [
        at.memory.documents.read(PATH),
        at.memory.documents.read(str(at.memory.workspace.root / PATH)),
        at.memory.documents.get(["d1", f"{PATH}#L24"]),
    ],
    "Documents.get, citation": lambda at: at.memory.documents.get([f"{PATH}#L24", f"./{PATH}#L24"]),
    "Documents.files.read": lambda at: at.memory.documents.files.read(PATH),
    "Documents.files.read, absolute": lambda at: at.memory.documents.files.read(str(at.memory.workspace.root / PATH)),
    "Documents.files.iterate": lambda at: [*at.memory.documents.files.iterate("memory")],
    "Records.get": lambda at: at.memory.records.get("fact", KEY),
    "Records.read": lambda at: at.memory.records.read(PATH),
    "Records.history": lambda at: at.memory.records.history("fact", KEY),
    "Records.find": lambda at: [at.memory.records.find(), at.memory.records.find(ASKED)],
    "Records, each": lambda at: [*at.memory.records],
    "tool memory_search": lambda at: tool(at, "memory_search", query=ASKED),
    "tool memory_get": lambda at: tool(at, "memory_get", path=PATH),
    "notebook": lambda at: at.memory.search(ASKED, min_score=0)._repr_html_(),
    "command search": lambda at: at.command("search", ASKED),
    "command search, json": lambda at: at.command("search", ASKED, "--json", "--explain"),
    "command get": lambda at: at.command("get", PATH),
    "command hook": lambda at: host_told(at, "UserPromptSubmit", [ASKED]),
    "command hook, of OpenCode": lambda at: told_by_opencode(at, "chat.message", text=ASKED),
    "command hook, tool of OpenCode": lambda at: told_by_opencode(
        at, "tool", tool="memory_get", args={"path": PATH}
    ),
    "MCP memory_search": lambda at: asked_of_mcp(at, "call_tool", "memory_search", {"query": ASKED}),
    "MCP memory_get": lambda at: asked_of_mcp(at, "call_tool", "memory_get", {"path": PATH}),
    "MCP prompt": lambda at: asked_of_mcp(at, "get_prompt", "recall", {"question": ASKED}),
    "MCP resource": resource,
    "page, search": lambda at: page(at, "/", q=ASKED),
    "page, note": lambda at: page(at, "/note", path=PATH),
    "page, lines of a note": lambda at: page(at, "/note", path=PATH, view="lines"),
    "page, record": lambda at: page(at, "/record", path=PATH),
    "page, records": lambda at: page(at, "/records"),
    "LangChain retriever": lambda at: langchain().OpenClawRetriever(memory=at.memory, k=50).invoke(ASKED),
    "LangChain store": lambda at: langchain().OpenClawVectorStore(at.memory).similarity_search(ASKED, 50),
    "LangChain tool memory_search": lambda at: langchain_tool(at, "memory_search").invoke({"query": ASKED}),
    "LangChain tool memory_get": lambda at: langchain_tool(at, "memory_get").invoke({"path": PATH}),
    "LangChain recall": lambda at: agent_told(langchain().RecallMiddleware(at.memory), [ASKED]),
    "LangGraph store, get": lambda at: langchain().OpenClawStore(at.memory).get(("records", "fact"), KEY),
    "LangGraph store, search": lambda at: langchain().OpenClawStore(at.memory).search(("records",), query=ASKED),
    "LangGraph store, list": lambda at: langchain().OpenClawStore(at.memory).search(("records",), limit=50),
    "LlamaIndex retriever": lambda at: nodes(llama_index().OpenClawRetriever(at.memory, similarity_top_k=50)),
    "LlamaIndex store": lambda at: nodes(llama_index().OpenClawVectorStore(at.memory).as_index().as_retriever()),
    "LlamaIndex memory block": lambda at: asyncio.run(block(at).aget([chat_message(ASKED)])),
    "LlamaIndex tool memory_get": lambda at: {
        one.metadata.name: one for one in llama_index().memory_tools(at.memory)
    }["memory_get"].call(path=PATH),
}  # fmt: skip


def changed(at: Place, new: str) -> None:
    (at.memory.workspace.root / PATH).write_text(new, encoding="utf-8")


def text_of(at: Place) -> str:
    return (at.memory.workspace.root / PATH).read_text(encoding="utf-8")


def without(text: str, *names: str) -> str:
    return "\n".join(line for line in text.split("\n") if line.partition(":")[0] not in names)


FORGERIES: dict[str, Callable[[Place], None]] = {
    "a changed value": lambda at: changed(at, text_of(at).replace(SIGNED, FORGED)),
    "a document of an id": lambda at: changed(
        at, text_of(at).replace(SIGNED, FORGED).replace("memory_id:", 'id: "d1"\nmemory_id:')
    ),
    "lowered, without its signature": lambda at: changed(
        at, without(text_of(at).replace(SIGNED, FORGED).replace('"high"', '"low"'), "signature")
    ),
    "a note in its place": lambda at: changed(at, f"{of_the_hut(FORGED)}\n"),
    "an earlier version": lambda at: shutil.copy(
        at.memory.workspace.root.parent / "earlier.md", at.memory.workspace.root / PATH
    ),
    "one that was never signed": lambda at: never_signed(at),  # noqa: PLW0108 - defined below
}


def never_signed(at: Place) -> None:
    """A record that was forgotten here has its file written by something else, as if it were new."""
    forged = without(text_of(at).replace(SIGNED, FORGED), "signature").replace("mem_", "mem_f")
    at.memory.records.forget("fact", KEY)
    changed(at, forged)


@pytest.fixture(scope="module", autouse=True)
def user(tmp_path_factory):
    """The user's data folder, with the key that signs and the list of what was signed: one for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path_factory.mktemp("data")))
        yield


def made(folder: Any) -> Place:
    (folder / "notes" / "memory").mkdir(parents=True)
    (folder / "notes" / "MEMORY.md").write_text("Anna likes tea.\n", encoding="utf-8")
    (folder / "settings.toml").write_text("", encoding="utf-8")
    at = Place(Memory.open(folder / "notes"), str(folder / "settings.toml"))
    at.memory.records.remember("fact", KEY, of_the_hut(EARLIER), sensitivity="high")
    shutil.copy(folder / "notes" / PATH, folder / "earlier.md")
    at.memory.records.confirm("fact", KEY, value=of_the_hut(SIGNED))
    at.memory.sync()
    return at


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    at = made(tmp_path_factory.mktemp("genuine"))
    yield at
    at.memory.close()


# An index that still has the words of before is the harder case; one forgery stands for all there.
@pytest.fixture(scope="module", params=[*((one, True) for one in FORGERIES), ("a changed value", False)], ids=str)
def forged(tmp_path_factory, request):
    forge, is_synced = request.param
    at = made(tmp_path_factory.mktemp("forged"))
    FORGERIES[forge](at)
    if is_synced:
        at.memory.sync()
    yield at
    at.memory.close()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.sampled(20)
def test_a_record_as_it_was_signed_is_shown(genuine, door):
    assert SIGNED in told(DOORS[door](genuine))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.sampled(70)
def test_a_forged_record_is_shown_nowhere(forged, door):
    try:
        shown = told(DOORS[door](forged))
    except OpenClawMemoryError as error:
        shown = f"{error} {vars(error)}".casefold()
    assert [word for word in WORDS if word in shown] == []


@pytest.mark.parametrize("door", [door for door in DOORS if door.startswith(("Documents", "Lang", "Llama"))])
@pytest.mark.sampled(8)
def test_an_expired_record_is_no_document_either(tmp_path, door):
    at = made(tmp_path)
    at.memory.records.remember("fact", "hut.code", of_the_hut(FORGED), ttl=60)
    path = "memory/records/fact/hut.code.md"
    file = at.memory.workspace.root / path
    file.write_text(re.sub(r"\b20\d\d-", "2001-", file.read_text(encoding="utf-8")), encoding="utf-8")
    os.utime(file, (1_000_000_000, 1_000_000_000))  # of 2001, when it was changed by hand
    at.memory.sync()
    assert FORGED not in told(DOORS[door](at))
    at.memory.close()
