"""The doors of a memory: each public method that shows or stores text, and each program that does more than call these.

A door that shows is asked for something of a place, one that stores is given a text. A program that only calls public
methods needs no row, and one stands for many; `test_doors.py` says which do more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from openclaw_memory import Memory
from openclaw_memory.cli.commands import commands
from openclaw_memory.errors import OpenClawMemoryError, PolicyError
from openclaw_memory.flush import Session
from openclaw_memory.tools import compose_session_start, memory_tools, recall
from openclaw_memory.types import Document


class Place(NamedTuple):
    memory: Memory
    settings: str

    def tool(self, name: str, **given: Any) -> Any:
        include = "search get append edit forget promote remember confirm".split()
        tools = {tool.name: tool for tool in memory_tools(self.memory, include=include)}
        return tools[name].run({key.rstrip("_"): value for key, value in given.items()}).data

    def command(self, *arguments: str, stdin: str | None = None) -> str:
        place = ["--workspace", str(self.memory.workspace.root), "--config", self.settings]
        done = CliRunner().invoke(commands, [arguments[0], *place, *arguments[1:]], input=stdin)
        return f"{done.output}{done.exception or ''}"


class Asked(NamedTuple):
    """What is asked for: words, a file, and the key of a record."""

    words: str
    path: str
    key: str = "none"


def search(at: Place, it: Asked, **filters: Any) -> Any:
    return at.memory.search(it.words, max_results=50, min_score=0, filter=filters)


SHOWING: dict[str, Callable[[Place, Asked], Any]] = {
    "Memory.search": lambda at, it: [f"{hit} {hit.snippet}" for hit in search(at, it)],
    "Memory.search, key": lambda at, it: [hit.snippet for hit in search(at, it, key=["*"])],
    "Memory.search, shown": lambda at, it: search(at, it)._repr_html_(),
    "Memory.get": lambda at, it: at.memory.get(it.path).text,
    "Notes.bootstrap": lambda at, _: at.memory.notes.bootstrap().text,
    "Memory.status": lambda at, _: [at.memory.status(), at.memory.status(deep=True)._repr_html_()],
    "Control.inspect": lambda at, _: at.memory.control.inspect(),
    "Control.forget": lambda at, it: [
        at.memory.control.forget(last_days=9), at.memory.control.forget(query="lands"), at.memory.control.forget(key=it.key)
    ],
    "Memory.heartbeat": lambda at, _: at.memory.heartbeat(),
    "Sessions.snapshots": lambda at, _: at.memory.sessions.snapshots(),
    "Sessions.resume": lambda at, _: [at.memory.sessions.resume(session) for session in ("s1", "ended")],
    "Notes.edit, conflict": lambda at, it: conflict(lambda: at.memory.edit(it.path, 3, 5, "x", expected="0" * 12)),
    "Documents.get": lambda at, it: [
        at.memory.documents.get(["d1", f"{it.path}#L24", f"./{it.path}#L24"], masked=how) for how in (True, False)
    ],
    "Documents.read": lambda at, it: [at.memory.documents.read(path) for path in every_spelling(at, it.path)],
    "Documents.iterate": lambda at, _: [*at.memory.documents.iterate()],
    "Documents.search": lambda at, it: at.memory.documents.search(it.words, 20),
    "Documents.search_keywords": lambda at, it: at.memory.documents.search_keywords(it.words, 20),
    "Documents.search_vector": lambda at, it: at.memory.documents.search_vector(
        at.memory.embedder.embed_query(it.words), 20
    ),
    "DocumentFiles.read": lambda at, it: [
        at.memory.documents.files.read(path) for path in every_spelling(at, it.path)
    ],
    "Records.get": lambda at, it: at.memory.records.get("fact", it.key),
    "Records.read": lambda at, it: at.memory.records.read(it.path),
    "Records.describe_result": lambda at, it: [at.memory.records.describe_result(hit) for hit in search(at, it)],
    "Records.find": lambda at, it: [at.memory.records.find(), at.memory.records.find(it.words), *at.memory.records],
    "Records.list_problems": lambda at, _: at.memory.records.list_problems(),
    "Records.confirm, conflict": lambda at, it: conflict(
        lambda: at.memory.records.confirm("fact", it.key, expected_version=99)
    ),
    # Programs, and parts of ours, that read files, or put what they show into words of their own.
    "session start": lambda at, _: compose_session_start(at.memory, ["memory_search"]),
    "tool recall": lambda at, it: recall(at.memory, it.words, max_results=50, min_score=0),
    "tool memory_search": lambda at, it: at.tool("memory_search", query=it.words),
    "tool memory_get": lambda at, it: at.tool("memory_get", path=it.path),
    "command search": lambda at, it: [at.command("search", it.words, "-n", "50", how) for how in ("--explain", "--json")],
    "command show": lambda at, it: at.command("show", it.path),
    "command status": lambda at, _: [at.command("status", "--deep"), at.command("doctor")],
    "command hook": lambda at, it: [told_by_claude_code(at, name, [it.words]) for name in ("SessionStart", "UserPromptSubmit")],
    "command hook, of OpenCode": lambda at, it: [
        told_by_opencode(at, "session.created"),
        told_by_opencode(at, "chat.message", text=it.words),
        told_by_opencode(at, "tool", tool="memory_get", args={"path": it.path}),
    ],
    "MCP": lambda at, it: [
        asked_of_mcp(at, "call_tool", "memory_search", {"query": it.words}),
        asked_of_mcp(at, "get_prompt", "recall", {"question": it.words}),
        asked_of_mcp(at, "list_resources"),
        asked_of_mcp(at, "read_resource", f"memory:///{it.path}"),
    ],
    "page": lambda at, it: shown_in_a_browser(at, it),  # noqa: PLW0108 - defined below
    "LangChain retriever": lambda at, it: langchain().OpenClawRetriever(memory=at.memory, k=50).invoke(it.words),
    "LangGraph store": lambda at, it: shown_by_store(at, it),  # noqa: PLW0108 - defined below
    "LlamaIndex retriever": lambda at, it: [
        node.model_dump_json() for node in llama_index().OpenClawRetriever(at.memory, similarity_top_k=50).retrieve(it.words)
    ],
}  # fmt: skip
WRITING: dict[str, Callable[[Place, str], Any]] = {
    "Notes.append": lambda at, text: at.memory.append(text),
    "Notes.append, title": lambda at, text: at.memory.append("tea", title=text),
    "Notes.append, path": lambda at, text: at.memory.notes.append(text, path="memory/more.md"),
    "Notes.edit": lambda at, text: at.memory.edit("memory/plain.md", 3, 3, text, expected=at.memory.get("memory/plain.md#L3")),
    "Notes.promote": lambda at, text: at.memory.notes.promote("memory/plain.md", 3, 3, section=text),
    "Sessions.snapshot": lambda at, text: at.memory.sessions.snapshot("s4", [user("tea")], text),
    "Sessions.log": lambda at, text: at.memory.sessions.log("s2").append("user", text),
    "Sessions.flush": lambda at, text: refusal(at.memory.sessions.flush(Session("agent:main:main", "s3")).log.append("user", text)),
    "Sessions.open_conversation": lambda at, text: at.memory.sessions.open_conversation(lambda *_: "Yes.", "s5").send(text),
    "Documents.add": lambda at, text: at.memory.documents.add([Document("new", text, {})]),
    "Documents.add, metadata": lambda at, text: at.memory.documents.add([Document("new", "tea", {"of": [text]})]),
    "DocumentFiles.write": lambda at, text: at.memory.documents.files.write(("memory/notes/n.md", {"of": text}, "tea")),
    "DocumentFiles.write, text": lambda at, text: at.memory.documents.files.write(("memory/notes/m.md", {}, text)),
    "Records.remember": lambda at, text: at.memory.records.remember("fact", "boat.house", text),
    "Records.confirm": lambda at, text: at.memory.records.confirm("fact", "boat", value=text),
    # Programs that check by themselves what they store.
    "migrate, items": lambda at, text: refusal(
        at.command("migrate", "--json", "--from", file_beside(at, "mem0.json", json.dumps([{"memory": text}])))
    ),
    "LangGraph store": lambda at, text: store(at).put(("b",), "k", {"text": text, "more": "tea"}),
}  # fmt: skip
# Doors that keep conversations: they break no turn, and so raise nothing.
KEEPING: dict[str, Callable[[Place, list[str]], Any]] = {
    "LangChain transcripts": lambda at, said: told_by_agent(langchain().OpenClawTranscriptMiddleware(at.memory), said),
    "LangChain flush": lambda at, said: told_by_agent(
        langchain().OpenClawSummarizationMiddleware(
            scripted_model(), at.memory, trigger=("messages", 2), keep=("messages", 1)
        ),
        [*said, "Bye."],  # the last message is not cut
    ),
    "LlamaIndex memory block": lambda at, said: kept_by_block(at, said),  # noqa: PLW0108 - defined below
    "command hook": lambda at, said: told_by_claude_code(at, "Stop", said),
    "command hook, of OpenCode": lambda at, said: told_by_opencode(
        at, "session.idle", messages=[{"id": f"m{n}", "role": "user", "text": text} for n, text in enumerate(said)]
    ),
    "migrate, a talk": lambda at, said: at.command("migrate", "--from", file_beside(at, "talks.json", talk(*said))),
    "migrate, notes": lambda at, said: at.command("migrate", "--from", file_beside(at, "old.md", "\n\n".join(said))),
}


def told(value: Any) -> str:
    return (json.dumps(value, default=repr, ensure_ascii=False) + repr(value)).casefold()


def shown_by(door: str, at: Place, it: Asked) -> str:
    """What a door shows, or says where it refuses; without the question."""
    try:
        shown = told(SHOWING[door](at, it))
    except OpenClawMemoryError as error:
        shown = f"{error} {vars(error)}".casefold()
    except Exception as refused:
        if door != "MCP":  # its client wraps what it is answered in groups of errors
            raise
        shown = repr(refused).casefold()
    return shown.replace(it.words.casefold(), "")


def refusal(answer: Any) -> Any:
    """Raise what an answer says in place of an error."""
    if "codename" in str(answer):
        raise PolicyError(str(answer), rule="codename")
    return answer


def conflict(call: Callable[[], Any]) -> list[Any]:
    with pytest.raises(OpenClawMemoryError) as caught:
        call()
    return [str(caught.value), vars(caught.value)]


@contextmanager
def broken(at: Place, name: str, field: str, value: str) -> Iterator[str]:
    """Give a field of a record another value by hand, for a while."""
    path = f"memory/records/fact/{name}.md"
    file = at.memory.workspace.root / path
    text = file.read_text(encoding="utf-8")
    lines = [f"{field}: {value}" if line.startswith(f"{field}:") else line for line in text.split("\n")]
    file.write_text("\n".join(lines), encoding="utf-8")
    yield path
    file.write_text(text, encoding="utf-8")


def every_spelling(at: Place, path: str) -> list[str]:
    return [path, str(at.memory.workspace.root / path)]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def file_beside(at: Place, name: str, text: str) -> str:
    """A file of another program, outside the workspace."""
    file = at.memory.workspace.root.parent / name
    file.write_text(text, encoding="utf-8")
    return str(file)


def talk(*said: str) -> str:
    messages = [{"uuid": f"m{at}", "sender": "human", "text": text} for at, text in enumerate(said)]
    return json.dumps([{"uuid": "talk", "name": "", "chat_messages": messages}])


# --- hosts
def told_by_claude_code(at: Place, event: str, said: list[str]) -> str:
    """What Claude Code is told of an event, after a conversation in its own transcript."""
    records = [
        {"type": "user", "uuid": f"m{number}", "sessionId": "hooks", "message": user(text)}
        for number, text in enumerate(said)
    ]
    transcript = file_beside(at, "hooks.jsonl", "".join(f"{json.dumps(record)}\n" for record in records))
    given = {"hook_event_name": event, "session_id": "hooks", "transcript_path": transcript, "prompt": said[-1]}
    return at.command("hook", "claude-code", stdin=json.dumps(given))


def told_by_opencode(at: Place, event: str, **given: Any) -> str:
    return at.command("hook", "opencode", event, stdin=json.dumps({"sessionID": "ses_1", **given}))


def asked_of_mcp(at: Place, method: str, *arguments: Any) -> Any:
    """What a client of the protocol is answered."""
    client = pytest.importorskip("mcp.client").Client
    server = pytest.importorskip("openclaw_memory_mcp").MemoryServer(at.memory).protocol

    async def ask() -> Any:
        async with client(server) as connected:
            return await getattr(connected, method)(*arguments)

    return asyncio.run(ask()).model_dump(mode="json")


def in_a_browser(at: Place) -> Any:
    pytest.importorskip("starlette")
    from openclaw_memory_web import create_app
    from starlette.testclient import TestClient

    page = TestClient(create_app(at.memory, token="t", hosts=["testserver"]))
    page.get("/", params={"token": "t"})
    return page


def shown_in_a_browser(at: Place, it: Asked) -> list[str]:
    page = in_a_browser(at)
    asked = [page.get("/", params={"q": "salary tea of the hut"})]  # a client logs what it asks for
    asked += [page.get(place, params={"path": it.path}) for place in ("/note", "/record")]
    asked += [page.get("/note", params={"path": it.path, "view": "lines"})]
    asked += [page.get("/edit", params={"path": it.path, "start": "1", "end": "8"})]
    asked += [page.get("/forget", params={"query": "tea"})]
    asked += [page.get(place) for place in ("/", "/days", "/records", "/status")]
    return [answer.text for answer in asked]


# --- frameworks
def langchain() -> Any:
    return pytest.importorskip("langchain_openclaw_memory")


def llama_index() -> Any:
    return pytest.importorskip("llama_index_openclaw_memory")


def scripted_model() -> Any:
    testing = pytest.importorskip("langchain_openclaw_memory.testing")
    return testing.ScriptedChatModel(script=testing.respond_with("Yes."))


def told_by_agent(middleware: Any, said: list[str]) -> None:
    """Say texts to an agent, in one thread."""
    agents = pytest.importorskip("langchain.agents")
    saver = pytest.importorskip("langgraph.checkpoint.memory").InMemorySaver()
    agent = agents.create_agent(scripted_model(), [], middleware=[middleware], checkpointer=saver)
    for text in said:
        agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "agent:main:talk"}})


def store(at: Place) -> Any:
    return langchain().OpenClawStore(at.memory)


def shown_by_store(at: Place, it: Asked) -> list[Any]:
    items = store(at)
    found = [*items.search((), limit=50), *items.search((), query=it.words, limit=50)]
    return [items.get(("a",), "k"), *found, items.list_namespaces()]


def kept_by_block(at: Place, said: list[str]) -> None:
    message = pytest.importorskip("llama_index.core.base.llms.types").ChatMessage
    block = llama_index().OpenClawMemoryBlock(at.memory, session_key="agent:main:talk")
    for text in said:
        asyncio.run(block.aput([message(text, role="user")]))
        block.settle()
