"""What policies hide leaves by no door, and what they forbid enters by none: one table of all doors."""

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from every_command import COMMANDS
from index_files import index_folder

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli.commands import commands
from openclaw_memory.config import PoliciesConfig, PolicyRule
from openclaw_memory.conversation import snapshots
from openclaw_memory.documents import Documents
from openclaw_memory.errors import OpenClawMemoryError, PathNotAllowedError, PolicyError, RecordError, SignatureError
from openclaw_memory.records import Records
from openclaw_memory.text.policies import Policies
from openclaw_memory.tools import memory_tools, session_start
from openclaw_memory.tools.handlers import TOOL_SCHEMAS
from openclaw_memory.types import Document

RULES = (
    PolicyRule("codename", "never-store", pattern="(?i)falcon"),
    PolicyRule("pay", "masked", pattern=r"\w+one euros"),
    PolicyRule("delicate", "masked", sensitivity="high"),
    PolicyRule("health", "never-store", key="health.*"),
)
CONFIG = MemoryConfig(policies=PoliciesConfig(rules=RULES))
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
FORBIDDEN = "Project Falcon lands in May at pier nine."
MASKED = "The salary of Bo is sixtyone euros."
# No digits: hashes, scores and times hold any.
SECRETS = ("falcon", "fiftyone", "sixtyone", "bad knee", "dark cellar")
TOML = """\
[[defaults.policies.rules]]
name = "codename"
action = "never-store"
pattern = "(?i)falcon"
[[defaults.policies.rules]]
name = "pay"
action = "masked"
pattern = '\\w+one euros'
[[defaults.policies.rules]]
name = "delicate"
action = "masked"
sensitivity = "high"
[[defaults.policies.rules]]
name = "health"
action = "never-store"
key = "health.*"
"""


class Place(NamedTuple):
    memory: Memory
    settings: str

    def tool(self, name: str, **given: Any) -> Any:
        tools = {tool.name: tool for tool in memory_tools(self.memory, edit=True)}
        return tools[name].run({key.rstrip("_"): value for key, value in given.items()}).data

    def command(self, *arguments: str, stdin: str | None = None) -> str:
        place = ["--workspace", str(self.memory.workspace.root), "--config", self.settings]
        done = CliRunner().invoke(commands, [arguments[0], *place, *arguments[1:]], input=stdin)
        return f"{done.output}{done.exception or ''}"

    def line(self) -> Any:
        return self.memory.get("memory/plain.md", start=3, lines=1)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Notes, a document, a record and a transcript, each of which a person has given what policies hide."""
    folder = tmp_path_factory.mktemp("begun") / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "plain.md").write_text("# Plain\n\nBo likes tea.\n", encoding="utf-8")
    hidden = f"# Work\n\n{FORBIDDEN}\n\nThe salary of Anna is fiftyone euros.\n\n- [ ] falcon by 2020-01-01\n\nAnna likes tea.\n"
    (folder / "MEMORY.md").write_text(hidden, encoding="utf-8")
    with Memory.open(folder) as memory:
        memory.documents.add(
            [Document("d1", f"Tea at noon.\n{FORBIDDEN}\nIt costs fiftyone euros.", {"about": "falcon"})]
        )
        moment, said = "2026-01-01T00:00:00+00:00", f"{FORBIDDEN}\nIt costs fiftyone euros."
        item = {"namespace": ["a"], "key": "k", "value": {"text": None, "of": said}, "text_at": ["text"]}
        item |= {"created_at": moment, "updated_at": moment}
        memory.documents.files.write("memory/a/k.md", item, f"Tea for the salary.\n{said}")
        memory.records.remember("fact", "health.knee", "a bad knee")
        memory.records.remember("fact", "door.code", "in the dark cellar", sensitivity="high")
        memory.records.remember("fact", "boat", f"{MASKED}")
        log = memory.session_log("s1")
        log.append("user", f"{FORBIDDEN}\nThe salary of Anna is fiftyone euros, and tea is served.")
        memory.snapshot("s1")
        memory.snapshot("ended", [user("It costs fiftyone euros."), user(f"Tea at noon.\n{FORBIDDEN}")], f"{FORBIDDEN}")
    for file in index_folder(folder).rglob("index*"):
        file.unlink()
    return folder


@pytest.fixture
def place(begun, tmp_path):
    """A workspace of its own with all that, and an index that knows the policies."""
    folder, settings = tmp_path / "notes", tmp_path / "settings.toml"
    shutil.copytree(begun, folder)
    settings.write_text(TOML, encoding="utf-8")
    with Memory.open(folder, config=CONFIG) as memory:
        memory.sync()
        yield Place(memory, str(settings))


Door = Callable[[Place], Any]
ASKED = "falcon project salary tea euros"
SHOWING: dict[str, Door] = {
    "Memory.search": lambda at: [
        str(hit) + hit.snippet for hit in at.memory.search(ASKED, max_results=50, min_score=0)
    ],
    "Memory.search, key": lambda at: [
        hit.snippet for hit in at.memory.search(ASKED, key=["*"], max_results=50, min_score=0)
    ],
    "Memory.get": lambda at: [at.memory.get(path).text for path in ("MEMORY.md", "sessions/s1.jsonl")],
    "Memory.bootstrap": lambda at: at.memory.bootstrap().text,
    "Memory.status": lambda at: at.memory.status(),
    "Memory.snapshots": lambda at: seen(at.memory.snapshots()),
    "Memory.resume": lambda at: [seen(at.memory.resume(session)) for session in ("s1", "ended")],
    "command hook": lambda at: [host_told(at, name, [ASKED]) for name in ("SessionStart", "UserPromptSubmit")],
    "command hook, of OpenCode": lambda at: shown_by_opencode(at),  # noqa: PLW0108 - defined below
    "Records.sign": lambda at: signed_again(at),  # noqa: PLW0108 - defined below
    "command sign": lambda at: told_of_unsigned(at),  # noqa: PLW0108 - defined below
    "LangChain resume": lambda at: seen(langchain().resume_messages(at.memory, "ended")),
    "LlamaIndex resume": lambda at: seen(llama_index().resume_messages(at.memory, "ended")),
    "Memory.heartbeat": lambda at: at.memory.heartbeat(),
    "Documents.get": lambda at: [at.memory.documents.get(["d1"], masked=how) for how in (True, False)],
    "Documents.read": lambda at: at.memory.documents.read(document_path(at)),
    "Documents.iterate": lambda at: [*at.memory.documents.iterate()],
    "Documents.search": lambda at: at.memory.documents.search(ASKED, 20),
    "Documents.keyword_search": lambda at: at.memory.documents.keyword_search("tea salary falcon", 20),
    "Documents.vector_search": lambda at: at.memory.documents.vector_search(
        at.memory.embedder.embed_query("salary of Anna"), 20
    ),
    "Records.get": lambda at: [at.memory.records.get("fact", key) for key in ("health.knee", "door.code", "boat")],
    "Records.read": lambda at: [
        at.memory.records.read(f"memory/records/fact/{key}.md") for key in ("door.code", "boat")
    ],
    "Records.find": lambda at: [at.memory.records.find(), at.memory.records.find("salary")],
    "Records.history": lambda at: at.memory.records.history("fact", "boat"),
    "Records.problems": lambda at: at.memory.records.problems(),
    "session start": lambda at: session_start(at.memory, ["memory_search"]),
    "tool memory_search": lambda at: at.tool("memory_search", query=ASKED),
    "tool memory_get": lambda at: at.tool("memory_get", path="MEMORY.md"),
    "Memory.inspect": lambda at: at.memory.inspect(),
    "Memory.forget": lambda at: [
        at.memory.forget(last_days=9),
        at.memory.forget(query="lands"),
        at.memory.forget(key="*"),
    ],
    "command inspect": lambda at: at.command("inspect", "--json"),
    "command forget": lambda at: at.command("forget", "--query", "lands", "--json"),
    "command search": lambda at: at.command("search", ASKED, "-n", "50", "--explain"),
    "command get": lambda at: at.command("get", "MEMORY.md", "--json"),
    "command status": lambda at: at.command("status", "--json"),
    "command heartbeat": lambda at: at.command("heartbeat", "--json"),
    "command search, json": lambda at: at.command("search", ASKED, "-n", "50", "--json"),
    "command get, human": lambda at: [
        at.command("get", path) for path in ("MEMORY.md", "sessions/s1.jsonl", "memory/records/fact/door.code.md")
    ],
    "command inspect, human": lambda at: at.command("inspect"),
    "command forget, human": lambda at: at.command("forget", "--query", "lands"),
    "command status, human": lambda at: at.command("status", "--deep"),
    "command heartbeat, human": lambda at: at.command("heartbeat"),
    "command doctor": lambda at: [at.command("doctor"), at.command("doctor", "--json")],
    "command index": lambda at: at.command("index", "--force"),
    "notebook": lambda at: [
        at.memory.search(ASKED, max_results=50, min_score=0)._repr_html_(),
        at.memory.status()._repr_html_(),
    ],
    "heartbeat's question": lambda at: asked_by_heartbeat(at),  # noqa: PLW0108 - defined below
    "text for the embedder": lambda at: embedded(at),  # noqa: PLW0108 - defined below
    "conflict of lines": lambda at: conflict(lambda: at.memory.edit("MEMORY.md", 3, 5, "x", seen="0" * 12)),
    "conflict of a record": lambda at: [
        conflict(lambda key=key: at.memory.records.confirm("fact", key, expected_version=99))
        for key in ("boat", "door.code", "health.knee")
    ],
    "damaged record": lambda at: damaged(at),  # noqa: PLW0108 - defined below
    "MCP": lambda at: shown_by_mcp(at),  # noqa: PLW0108 - defined below
    "page": lambda at: shown_in_a_browser(at),  # noqa: PLW0108 - defined below
    "LangChain retriever": lambda at: (
        langchain().OpenClawRetriever(memory=at.memory, k=50).invoke("salary tea project")
    ),
    "LangChain store": lambda at: (
        langchain().OpenClawVectorStore(at.memory).similarity_search("salary tea project", 50)
    ),
    "LangChain tools": lambda at: langchain_tool(at, "memory_search").invoke({"query": "salary project"}),
    "LangChain recall": lambda at: agent_shown(langchain().RecallMiddleware(at.memory), ASKED),
    "LangChain session start": lambda at: agent_shown(langchain().SessionStartMiddleware(at.memory), ASKED),
    "LangChain intent": lambda at: asked_by_intent(at),  # noqa: PLW0108 - defined below
    "LangGraph store": lambda at: store_shown(at),  # noqa: PLW0108 - defined below
    "LlamaIndex memory block": lambda at: asyncio.run(block(at).aget([chat_message(ASKED)])),
    "LlamaIndex intent": lambda at: hinted_by_block(at),  # noqa: PLW0108 - defined below
    "LlamaIndex session start": lambda at: asyncio.run(llama_index().SessionStartBlock(at.memory).aget()),
    "LlamaIndex retriever": lambda at: texts(llama_index().OpenClawRetriever(at.memory, similarity_top_k=50)),
    "LlamaIndex store": lambda at: texts(llama_index().OpenClawVectorStore(at.memory).as_index().as_retriever()),
}
WRITING: dict[str, Callable[[Place, str], Any]] = {
    "Memory.append": lambda at, text: at.memory.append(text),
    "Memory.append, title": lambda at, text: at.memory.append("tea", title=text),
    "Memory.edit": lambda at, text: at.memory.edit("memory/plain.md", 3, 3, text, seen=at.line()),
    "Memory.promote": lambda at, text: at.memory.promote("memory/plain.md", 3, 3, section=text),
    "Memory.snapshot": lambda at, text: at.memory.snapshot("s4", [user("tea")], text),
    "LangChain snapshot": lambda at, text: langchain().save_snapshot(at.memory, "s4", human("tea"), text),
    "LlamaIndex snapshot": lambda at, text: llama_index().save_snapshot(at.memory, "s4", [chat_message("tea")], text),
    "Memory.session_log": lambda at, text: at.memory.session_log("s2").append("user", text),
    "Memory.flush": lambda at, text: refusal(
        at.memory.flush("agent:main:main", session_id="s3").log.append("user", text)
    ),
    "Documents.add": lambda at, text: at.memory.documents.add([Document("new", text, {})]),
    "Documents.add, metadata": lambda at, text: at.memory.documents.add([Document("new", "tea", {"of": [text]})]),
    "Documents.files": lambda at, text: at.memory.documents.files.write("memory/notes/n.md", {"of": text}, "tea"),
    "Records.remember": lambda at, text: at.memory.records.remember("fact", "boat.house", text),
    "Records.confirm": lambda at, text: at.memory.records.confirm("fact", "boat", value=text),
    "tool memory_remember": lambda at, text: refusal(
        records_tool(at, "memory_remember", type="fact", key="boat.house", value=text)
    ),
    "tool memory_confirm": lambda at, text: refusal(
        records_tool(at, "memory_confirm", type="fact", key="boat", value=text)
    ),
    "command migrate": lambda at, text: refusal(
        at.command("migrate", "--json", "--from", old_file(at, "old.md", f"# Old\n\n{text}\n"))
    ),
    "command migrate, items": lambda at, text: refusal(
        at.command("migrate", "--json", "--from", old_file(at, "mem0.json", json.dumps([{"memory": text}])))
    ),
    "command migrate, talks": lambda at, text: refusal(
        at.command("migrate", "--json", "--from", old_file(at, "talks.json", old_talk(text)))
    ),
    "tool memory_append": lambda at, text: refusal(at.tool("memory_append", text=text)),
    "tool memory_edit": lambda at, text: refusal(
        at.tool("memory_edit", path="memory/plain.md", from_=3, lines=1, text=text, hash=at.line().hash)
    ),
    "tool memory_promote": lambda at, text: refusal(
        at.tool("memory_promote", path="memory/plain.md", from_=3, lines=1, section=text, hash=at.line().hash)
    ),
    "command append": lambda at, text: refusal(at.command("append", text)),
    "page": lambda at, text: written_in_a_browser(at, text),  # noqa: PLW0108 - defined below
    "MCP tool": lambda at, text: refusal(asked_of_mcp(at, "call_tool", "memory_append", {"text": text})),
    "LangChain tool": lambda at, text: refusal(langchain_tool(at, "memory_append").invoke({"text": text})),
    "LangChain store, add": lambda at, text: langchain().OpenClawVectorStore(at.memory).add_texts([text]),
    "LangGraph store, put": lambda at, text: langchain().OpenClawStore(at.memory).put(("b",), "k", {"text": text}),
    "LangGraph store, put two texts": lambda at, text: (
        langchain().OpenClawStore(at.memory).put(("b",), "k", {"text": text, "more": "tea"})
    ),
    "LangGraph store, put a record": lambda at, text: (
        langchain().OpenClawStore(at.memory).put(("records", "fact"), "boat.house", {"value": text})
    ),
    "LlamaIndex store, add": lambda at, text: added_by_llama_index(at, text),  # noqa: PLW0108 - defined below
}
# Doors that keep conversations: they break no turn, and so raise nothing.
KEEPING: dict[str, Callable[[Place, list[str]], Any]] = {
    "LangChain transcripts": lambda at, said: agent_told(langchain().TranscriptMiddleware(at.memory), said),
    "LangChain flush": lambda at, said: agent_told(
        langchain().MemoryFlushMiddleware(at.memory, trigger=("messages", 1)), said
    ),
    "LangChain summarization": lambda at, said: agent_told(
        langchain().OpenClawSummarizationMiddleware(
            chat_model(), at.memory, trigger=("messages", 2), keep=("messages", 1)
        ),
        [*said, "tea?", "tea?"],
    ),
    "command hook": lambda at, said: host_told(at, "Stop", said),
    "command hook, of OpenCode": lambda at, said: told_by_opencode(
        at, "session.idle", messages=[{"id": f"m{n}", "role": "user", "text": text} for n, text in enumerate(said)]
    ),
    "migrate, a talk": lambda at, said: at.command("migrate", "--from", old_file(at, "talks.json", old_talk(*said))),
    "migrate, notes": lambda at, said: at.command("migrate", "--from", old_file(at, "old.md", "\n\n".join(said))),
    "LlamaIndex memory block": lambda at, said: kept_by_block(at, said),  # noqa: PLW0108 - defined below
}
# Doors by which no text goes in or out, and why.
WITHOUT_TEXT = {
    "Memory.open": "opens", "Memory.for_agent": "opens", "Memory.observe": "calls, without their texts", "Memory.sync": "counts and paths", "Memory.sync_soon": "nothing",
    "Memory.delete": "takes lines away", "Memory.watch": "syncs", "Memory.close": "closes", "Memory.index_path": "a path",
    "Memory.documents": "has rows of its own", "Memory.records": "has rows of its own", "Memory.embedder": "a model",
    "Documents.Filter": "a type", "Documents.collection": "the same documents", "Documents.delete": "ids",
    "Documents.damaged": "paths and names of fields", "Documents.vectors": "numbers", "Documents.vector_identity": "a name",
    "Documents.adopt": "true or false", "Documents.reembed": "a count", "Documents.missing_vectors": "a count",
    "Records.forget": "true or false", "Records.expire": "paths", "Records.decay": "paths",
    "Records.unsigned": "has a row with Records.sign", "Records.everything": "for upkeep, which shows what `Records.holding` lets pass", "Records.holding": "as it iterates",
    "tool memory_erase": "paths and citations", "tool memory_forget": "takes lines away", "command delete": "takes lines away", "command index": "counts and paths",
    "command init": "makes a folder", "command connect": "paths", "command demo": "a memory of its own", "command doctor": "counts and paths",
    "command watch": "syncs", "command mcp": "has rows of its own, MCP", "command web": "has a row of its own, page",
    "command encrypt": "paths, and ids of keys", "command decrypt": "paths, and ids of keys", "command rotate-key": "paths, and ids of keys",
    "command audit": "who, when, and which lines", "command config": "settings, keys hidden",
    "command intent": "looks at the message that it is given, at no note",
}  # fmt: skip


def signed_again(at: Place) -> list[Any]:
    records = at.memory.records
    with broken(at, "door.code", "confidence", "0.4") as path:
        [waiting] = records.unsigned()
        said = [waiting, records.sign(path, seen=waiting)]
    return [*said, records.sign(path)]


def told_of_unsigned(at: Place) -> list[Any]:
    with broken(at, "door.code", "confidence", "0.4"):
        return [at.command("sign"), at.command("sign", "--json")]


def asked_by_heartbeat(at: Place) -> list[Any]:
    """What a model is asked by a heartbeat, about a record of high impact and one that has faded; and what it reports."""
    said: list[str] = []
    old, faded = (
        broken(at, "door.code", "last_confirmed_at", '"2020-01-01T00:00:00Z"'),
        broken(at, "boat", "confidence", "0.1"),
    )
    with old as path, faded:
        at.memory.records.sign(path)
        report = at.memory.heartbeat(budget_seconds=60, ask=lambda question: said.append(question) or "KEEP")
    at.memory.records.sign(path)  # as it was before
    assert ["boat" in said[0], "door.code" in said[1], len(said)] == [True, True, 2]
    return [said, report]


def embedded(at: Place) -> list[str]:
    embedder, said = at.memory.embedder, list[str]()
    plain = type(embedder).embed_documents

    class Listening(type(embedder)):
        def embed_documents(self, texts: Any) -> Any:
            said.extend(texts)
            return plain(self, texts)

    folder = at.memory.workspace.root
    for file in index_folder(folder).glob("index*"):
        file.unlink()
    at.memory.close()
    listening = object.__new__(Listening)
    listening.__dict__.update(embedder.__dict__)
    with Memory.open(folder, config=CONFIG, embedder=listening) as memory:
        memory.sync()
    assert said
    return said


def conflict(call: Callable[[], Any]) -> list[Any]:
    with pytest.raises(OpenClawMemoryError) as caught:
        call()
    return [str(caught.value), vars(caught.value)]


def damaged(at: Place) -> list[Any]:
    said: list[Any] = []
    for field in ("confidence", "sensitivity", "ttl", "version", "created_at", "source", "key"):
        with broken(at, "boat", field, '"falcon"') as path:
            said += [at.memory.records.problems(), at.memory.status(), at.memory.heartbeat(), at.memory.inspect()]
            try:
                said.append(at.memory.records.read(path))
            except OpenClawMemoryError as error:
                said.append(str(error))
    return said


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


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def human(text: str) -> list[Any]:
    return [pytest.importorskip("langchain_core.messages").HumanMessage(text)]


def seen(shown: Any) -> Any:
    assert "tea" in str(shown).lower()
    return shown


def records_tool(at: Place, name: str, **given: Any) -> Any:
    return {tool.name: tool for tool in memory_tools(at.memory, records=True)}[name].run(given).data


def old_file(at: Place, name: str, text: str) -> str:
    """A file of another program, outside the workspace."""
    file = at.memory.workspace.root.parent / name
    file.write_text(text, encoding="utf-8")
    return str(file)


def host_told(at: Place, event: str, said: list[str]) -> str:
    """What Claude Code is told of an event, after a conversation in its own transcript."""
    records = [
        {"type": "user", "uuid": f"m{number}", "sessionId": "hooks", "message": {"role": "user", "content": text}}
        for number, text in enumerate(said)
    ]
    transcript = old_file(at, "hooks.jsonl", "".join(f"{json.dumps(record)}\n" for record in records))
    given = {"hook_event_name": event, "session_id": "hooks", "transcript_path": transcript, "prompt": said[-1]}
    return at.command("hook", "claude-code", stdin=json.dumps(given))


def told_by_opencode(at: Place, event: str, **given: Any) -> str:
    return at.command("hook", "opencode", event, stdin=json.dumps({"sessionID": "ses_1", **given}))


def shown_by_opencode(at: Place) -> list[str]:
    return [
        told_by_opencode(at, "session.created"),
        told_by_opencode(at, "chat.message", text=ASKED),
        told_by_opencode(at, "tool", tool="memory_search", args={"query": ASKED}),
        told_by_opencode(at, "tool", tool="memory_get", args={"path": "MEMORY.md"}),
    ]


def old_talk(*said: str) -> str:
    messages = [{"uuid": f"m{at}", "sender": "human", "text": text} for at, text in enumerate(said)]
    return json.dumps([{"uuid": "talk", "name": "", "chat_messages": messages}])


def document_path(at: Place) -> str:
    return next(
        file.relative_to(at.memory.workspace.root).as_posix()
        for file in at.memory.workspace.root.glob("memory/notes/*.md")
    )


def langchain() -> Any:
    return pytest.importorskip("langchain_openclaw_memory")


def llama_index() -> Any:
    return pytest.importorskip("llama_index_openclaw_memory")


def asked_of_mcp(at: Place, method: str, *arguments: Any) -> Any:
    """What a client of the protocol is answered."""
    client = pytest.importorskip("mcp.client").Client
    server = pytest.importorskip("openclaw_memory_mcp").MemoryServer(at.memory).protocol

    async def ask() -> Any:
        async with client(server) as connected:
            return await getattr(connected, method)(*arguments)

    return asyncio.run(ask()).model_dump(mode="json")


def shown_by_mcp(at: Place) -> list[Any]:
    paths = ("MEMORY.md", "sessions/s1.jsonl", "memory/records/fact/door.code.md", document_path(at))
    return [
        asked_of_mcp(at, "call_tool", "memory_search", {"query": ASKED}),
        asked_of_mcp(at, "get_prompt", "recall", {"question": "salary tea project"}),
        asked_of_mcp(at, "list_resources"),
        *(asked_of_mcp(at, "read_resource", f"memory:///{path}") for path in paths),
    ]


def shown_in_a_browser(at: Place) -> list[str]:
    page = in_a_browser(at)
    paths = ["MEMORY.md", "sessions/s1.jsonl", document_path(at)]
    paths += [f"memory/records/fact/{key}.md" for key in ("door.code", "boat", "health.knee")]
    asked = [page.get("/", params={"q": "project salary tea euros"})]  # a client logs what it asks for
    asked += [page.get(place, params={"path": path}) for path in paths for place in ("/note", "/record")]
    asked += [page.get("/note", params={"path": path, "view": "lines"}) for path in paths]
    asked += [page.get("/edit", params={"path": "MEMORY.md", "start": "1", "end": "8"})]
    asked += [page.get("/forget", params={"query": "tea"})]
    asked += [page.get(place) for place in ("/", "/days", "/records", "/status")]
    assert "Anna likes <mark>tea</mark>" in asked[0].text
    return [answer.text for answer in asked]


def in_a_browser(at: Place) -> Any:
    pytest.importorskip("starlette")
    from openclaw_memory_web import create_app
    from starlette.testclient import TestClient

    page = TestClient(create_app(at.memory, token="t", hosts=["testserver"]))
    page.get("/", params={"token": "t"})
    return page


def written_in_a_browser(at: Place, text: str) -> str:
    page = in_a_browser(at)
    form = page.get("/edit", params={"path": "memory/plain.md", "start": "3", "end": "3"}).text
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)) | {"text": text, "do": "save"}
    return refusal(page.post("/edit", data=fields, headers={"Origin": "http://testserver"}).text)


def langchain_tool(at: Place, name: str) -> Any:
    return {tool.name: tool for tool in langchain().memory_tools(at.memory)}[name]


def chat_model() -> Any:
    testing = pytest.importorskip("langchain_openclaw_memory.testing")
    return testing.ScriptedChatModel(script=testing.saying("Yes."))


def agent_told(middleware: Any, said: list[str]) -> Any:
    """Say texts to an agent, in one thread, and return what its model was shown."""
    agents = pytest.importorskip("langchain.agents")
    saver = pytest.importorskip("langgraph.checkpoint.memory").InMemorySaver()
    model = chat_model()
    agent = agents.create_agent(model, [], middleware=[middleware], checkpointer=saver)
    for text in said:
        agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "agent:main:talk"}})
    return [request.text for request in model.requests]


def agent_shown(middleware: Any, text: str) -> Any:
    (shown,) = agent_told(middleware, [text])
    assert "<recalled-memory" in shown
    return shown


def asked_by_intent(at: Place) -> Any:
    """What a user is asked before something is forgotten, and what the model is told once they agree."""
    agents = pytest.importorskip("langchain.agents")
    saver = pytest.importorskip("langgraph.checkpoint.memory").InMemorySaver()
    wanted = {"intent": "forget", "entities": ["salary", "tea"], "confidence": 1, "language": "en"}
    model, small = chat_model(), chat_model()
    small.script = lambda _request: json.dumps(wanted)
    asks = langchain().IntentMiddleware(at.memory, small, mode="interrupt")
    agent = agents.create_agent(model, langchain().memory_tools(at.memory), middleware=[asks], checkpointer=saver)
    thread = {"configurable": {"thread_id": "1"}}
    asked = agent.invoke({"messages": [("user", "Forget the salary and the tea.")]}, thread)["__interrupt__"][0].value
    assert asked["lines"]
    agent.invoke(pytest.importorskip("langgraph.types").Command(resume=True), thread)
    return [asked, [request.text for request in model.requests]]


def store_shown(at: Place) -> Any:
    store = langchain().OpenClawStore(at.memory)
    shown = [store.get(("a",), "k"), *store.search((), limit=50), *store.search((), query=ASKED, limit=50)]
    assert "Tea for the ***" in str(shown) or "Tea for the salary" in str(shown)
    records = [store.get(("records", "fact"), key) for key in ("health.knee", "door.code", "boat")]
    assert [record is not None for record in records] == [False, True, True]
    return [*shown, *records, store.list_namespaces()]


def block(at: Place) -> Any:
    return llama_index().OpenClawMemoryBlock(at.memory, session_key="agent:main:talk")


def chat_message(text: str) -> Any:
    return pytest.importorskip("llama_index.core.base.llms.types").ChatMessage(text, role="user")


def hinted_by_block(at: Place) -> Any:
    wanted = {"intent": "forget", "entities": ["tea"], "confidence": 1, "language": "en"}
    testing = pytest.importorskip("llama_index_openclaw_memory.testing")
    hints = llama_index().IntentBlock(at.memory, testing.TextOnlyLLM(script=testing.saying(json.dumps(wanted))))
    text = asyncio.run(hints.aget([chat_message("Forget the tea.")]))
    assert "Words: tea" in text
    return text


def kept_by_block(at: Place, said: list[str]) -> Any:
    keeps = block(at)
    for text in said:
        asyncio.run(keeps.aput([chat_message(text)]))
        keeps.settle()


def texts(retriever: Any) -> list[Any]:
    return [node.model_dump_json() for node in retriever.retrieve("salary tea project")]


def added_by_llama_index(at: Place, text: str) -> Any:
    store = llama_index().OpenClawVectorStore(at.memory)
    schema = pytest.importorskip("llama_index.core.schema")
    node = schema.TextNode(text=text, embedding=[1.0, 0.0])
    return store.add([node])


def refusal(answer: Any) -> Any:
    """Raise what an answer says in place of an error."""
    if "codename" in str(answer):
        raise PolicyError(str(answer), rule="codename")
    return answer


def told(value: Any) -> str:
    return (json.dumps(value, default=repr, ensure_ascii=False) + repr(value)).casefold()


def bytes_of(at: Place) -> bytes:
    root = at.memory.workspace.root
    return b"\n".join(file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()).lower()


@pytest.mark.parametrize("door", SHOWING)
@pytest.mark.sampled(32)
def test_nothing_that_is_shown_says_what_policies_hide(place, door, caplog):
    caplog.set_level("DEBUG")
    shown = told(SHOWING[door](place)).replace(ASKED, "").replace("tea salary falcon", "")
    logged = caplog.text.casefold()
    assert [secret for secret in SECRETS if secret in shown or secret in logged] == []


@pytest.mark.parametrize("door", WRITING)
@pytest.mark.sampled(16)
def test_what_is_never_to_be_stored_is_refused_everywhere(place, door):
    before = bytes_of(place).count(b"falcon")
    with pytest.raises(PolicyError, match="codename") as caught:
        WRITING[door](place, FORBIDDEN)
    assert "pier nine" not in str(caught.value)
    assert bytes_of(place).count(b"falcon") == before


@pytest.mark.parametrize("door", WRITING)
@pytest.mark.sampled(16)
def test_what_is_masked_is_stored_and_not_shown(place, door):
    shown = told(WRITING[door](place, MASKED))
    assert "sixtyone" not in shown
    stored = b"".join(
        file.read_bytes() for file in place.memory.workspace.root.rglob("*.*") if ".memory" not in file.parts
    )
    assert stored.count(b"sixtyone euros") > 1 or door == "Memory.promote"
    place.memory.sync()
    for other in ("Memory.search", "Records.find", "Documents.get"):
        assert "sixtyone" not in told(SHOWING[other](place)), other


@pytest.mark.parametrize("door", KEEPING)
def test_of_a_conversation_all_is_kept_but_what_is_never_to_be_stored(place, door):
    before = bytes_of(place)
    KEEPING[door](place, ["Anna rows to the pier.", FORBIDDEN, MASKED, "Anna rows back."])
    after = bytes_of(place)
    assert after.count(b"falcon") == before.count(b"falcon")
    for said in (b"anna rows to the pier.", b"sixtyone euros", b"anna rows back."):
        assert after.count(said) > before.count(said), said
    place.memory.sync()
    shown = told(SHOWING["Memory.search"](place))
    assert "sixtyone" not in shown


def test_no_byte_of_the_index_holds_what_policies_leave_out(place):
    folder = index_folder(place.memory.workspace.root)
    files = [
        file for file in folder.glob("*") if file.is_file()
    ]  # snapshots, below, are what was said before the rules
    assert any(b"tea" in file.read_bytes() for file in files)
    for file in files:
        held = file.read_bytes().lower()
        assert [secret for secret in SECRETS if secret.encode() in held] == [], file.name
    assert "Falcon" in (place.memory.workspace.root / "MEMORY.md").read_text(encoding="utf-8")


def test_an_index_of_other_rules_shows_nothing_and_is_built_again(tmp_path):
    (tmp_path / "MEMORY.md").write_text(f"{FORBIDDEN}\n\nThe salary of Anna is fiftyone euros.\n", encoding="utf-8")
    with Memory.open(tmp_path) as memory:
        memory.sync()
        assert memory.search("salary")
    with Memory.open(tmp_path, config=CONFIG) as memory:
        for query in ("salary", "project pier"):
            assert not [hit for hit in memory.search(query) if "fiftyone" in hit.snippet or "Falcon" in hit.snippet]
        assert not [one for one, _ in memory.documents.keyword_search("salary pier", 5) if "fiftyone" in one.text]
        memory.sync()
        assert "***" in memory.search("salary")[0].snippet
    held = b"".join(file.read_bytes() for file in (tmp_path / ".memory").rglob("*") if file.is_file()).lower()
    assert b"falcon" not in held
    assert b"fiftyone" not in held


def test_rules_that_have_changed_are_why_an_index_is_built_again(tmp_path):
    (tmp_path / "MEMORY.md").write_text("Anna likes tea.\n", encoding="utf-8")
    for config, rebuilt in ((None, None), (CONFIG, "the policies have changed"), (CONFIG, None)):
        with Memory.open(tmp_path, config=config) as memory:
            assert memory.sync().rebuilt == rebuilt


def test_of_a_snapshot_all_is_kept_but_what_is_never_to_be_stored_and_nothing_masked(place):
    made = place.memory.snapshot("kept", [user("Anna rows."), user(FORBIDDEN), user(MASKED), user("x" * 480 + MASKED)])
    held = (place.memory.workspace.root / made.path).read_text(encoding="utf-8")
    assert [message.content for message in made.messages][:2] == ["Anna rows.", "The salary of Bo is ***."]
    assert len(made.messages) == 3
    assert not [secret for secret in ("Falcon", "pier nine", "sixty") if secret in str(json.loads(held)["messages"])]


def test_status_names_the_note_and_the_rule(place):
    reasons = {one.path: one.reason for one in place.memory.status().skipped}
    assert "'codename'" in reasons["MEMORY.md"]
    assert "memory/plain.md" not in reasons


def with_rules(*rules: PolicyRule) -> MemoryConfig:
    return MemoryConfig(policies=PoliciesConfig(rules=rules))


def test_status_looks_at_no_note_that_is_indexed(tmp_path, monkeypatch):
    (tmp_path / "memory").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "memory" / f"{name}.md").write_text(f"{FORBIDDEN}\n" if name != "c" else "Tea.\n", encoding="utf-8")
    with Memory.open(tmp_path, config=CONFIG) as memory:
        memory.sync()
        (tmp_path / "memory" / "b.md").write_text("It flies no more, and is a longer note.\n", encoding="utf-8")
        looked, plain = [], Policies.left_out
        monkeypatch.setattr(Policies, "left_out", lambda self, text: looked.append(text) or plain(self, text))
        assert [one.path for one in memory.status().skipped] == ["memory/a.md"]
        assert looked == ["It flies no more, and is a longer note.\n"]


def test_status_names_a_rule_as_it_is_called_now(tmp_path):
    (tmp_path / "MEMORY.md").write_text(f"{FORBIDDEN}\n", encoding="utf-8")
    for name in ("first", "second"):
        with Memory.open(tmp_path, config=with_rules(PolicyRule(name, "never-store", pattern="Falcon"))) as memory:
            memory.sync()
            assert f"{name!r}" in memory.status().skipped[0].reason
    with Memory.open(tmp_path, config=with_rules(PolicyRule("third", "never-store", pattern="pier"))) as memory:
        assert "'third'" in memory.status().skipped[0].reason  # the index is of other rules: the note is read


NAMES = ("memory/project-falcon.md", "memory/Falcon/plan.md", "memory/2026-11-21-falcon.md", "sessions/falcon.jsonl")


@pytest.fixture
def named(tmp_path):
    """Files that a person has given names which policies forbid, next to others; and a record of an earlier time."""
    folder = tmp_path / "notes"
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        said = (
            '{"type": "message", "message": {"role": "user", "content": "harbour"}}' if "jsonl" in name else "harbour"
        )
        (folder / name).write_text(f"{said}\n", encoding="utf-8")
    (folder / "memory" / "2026-11-21.md").write_text("The harbour is deep.\n", encoding="utf-8")
    with Memory.open(folder) as memory:
        memory.records.remember("fact", "falcon.lands", "at the harbour")
        memory.records.remember("fact", "harbour", "deep")
        memory.documents.add([Document("falcon", "harbour"), Document("d1", "harbour")])
        made = snapshots.save(memory.workspace, "project falcon", [user("harbour")], now=NOON)
        assert made is not None
        (folder / "memory" / "2026-11-22.md").unlink()  # it names the file
        memory.sync()
    with Memory.open(folder, config=CONFIG) as memory:
        yield Place(memory, "")


@pytest.mark.parametrize("is_synced", [False, True])
def test_a_file_of_a_forbidden_name_is_left_out_and_named_masked(named, is_synced):
    if is_synced:
        named.memory.sync()
        for file in index_folder(named.memory.workspace.root).rglob("index*"):
            assert b"falcon" not in file.read_bytes().lower(), file.name
    said = named.memory.status()
    doors = [
        said, named.memory.inspect(), named.memory.heartbeat(), named.memory.forget(key="*"),
        named.memory.forget(query="harbour"), named.memory.search("harbour falcon", max_results=50, min_score=0),
        named.memory.documents.search("harbour", 20), [*named.memory.documents.iterate()],
        named.memory.documents.get(["falcon", "d1"]), named.memory.records.find(), named.memory.records.find("harbour"),
        named.memory.records.get("fact", "falcon.lands"), named.memory.bootstrap().text, named.memory.sync(),
        named.memory.snapshots(),
    ]  # fmt: skip
    asked = ("harbour falcon", "")
    assert [door for door in doors if "falcon" in told(door).replace(*asked)] == []
    assert {one.path for one in said.skipped if "'codename'" in one.reason} >= {
        "memory/project-***.md", "memory/***/plan.md", "memory/2026-11-21-***.md", "sessions/***.jsonl"
    }  # fmt: skip
    assert {hit.path for hit in named.memory.search("harbour", max_results=50, min_score=0)} == {
        "memory/2026-11-21.md", "memory/records/fact/harbour.md", "memory/notes/d1.md"
    }  # fmt: skip
    for name in NAMES:
        with pytest.raises(PathNotAllowedError, match="codename") as caught:
            named.memory.get(name)
        assert "falcon" not in str(caught.value)
        assert (named.memory.workspace.root / name).exists()


NEW_NAMES: dict[str, Callable[[Memory], Any]] = {
    "Records.remember": lambda memory: memory.records.remember("fact", "project.falcon", "tea"),
    "Records.remember, user": lambda memory: memory.records.remember("fact", "tea", "hot", user_id="project/falcon"),
    "Documents.add": lambda memory: memory.documents.add([Document("project-falcon", "tea")]),
    "Documents.files": lambda memory: memory.documents.files.write("memory/notes/project falcon.md", {}, "tea"),
    "Memory.session_log": lambda memory: memory.session_log("agent:project:falcon").append("user", "tea"),
    "Memory.session_log, parent": lambda memory: memory.session_log("s", parent_session="project falcon").append(
        "user", "tea"
    ),
    "Memory.snapshot": lambda memory: memory.snapshot("agent:project:falcon", [user("tea")]),
}


@pytest.mark.parametrize("door", NEW_NAMES)
def test_nothing_is_written_under_a_forbidden_name(tmp_path, door):
    folder = tmp_path / "notes"
    folder.mkdir()
    rule = PolicyRule("codename", "never-store", pattern="(?i)project falcon")
    with Memory.open(folder, config=with_rules(rule)) as memory:
        with pytest.raises(PolicyError, match="codename") as caught:
            NEW_NAMES[door](memory)
        assert "falcon" not in str(caught.value).lower()
    assert list(folder.rglob("*falcon*")) == []


def test_what_the_library_itself_makes_of_a_name_is_forbidden_by_no_rule(tmp_path):
    rules = (
        PolicyRule("pin", "never-store", pattern=r"\d{4}"),
        PolicyRule("word", "never-store", pattern="(?i)memory|session|record|notes|md"),
        PolicyRule("phone", "masked", pattern="tea"),
    )
    with Memory.open(tmp_path, config=with_rules(*rules)) as memory:
        memory.append("hot", date="2026-11-21")
        memory.session_log("0a1b2c3d-1234-4321-8765-012345678901").append("user", "hot")
        memory.records.remember("fact", "tea: green", "hot")
        memory.sync()
        assert memory.status().files == 3
        assert [one for one in memory.status().skipped if "name" in one.reason] == []


def test_a_record_of_a_forbidden_name_can_be_deleted(named):
    assert named.memory.records.forget("fact", "falcon.lands")
    named.memory.documents.delete(["falcon"])


def test_a_record_of_a_forbidden_name_expires_and_does_not_fade(tmp_path):
    with Memory.open(tmp_path) as memory:
        memory.records.remember("preference", "falcon.lands", "at the pier", ttl=60)
        memory.records.remember("preference", "falcon.rests", "on the roof", ttl=None)
    folder = tmp_path / "memory" / "records" / "preference"
    kept = folder / "falcon.rests.md"
    before = kept.read_text(encoding="utf-8")
    with Memory.open(tmp_path, config=CONFIG) as memory:
        kept.write_text(before.replace("1", "x", 1), encoding="utf-8")
        assert memory.records.problems() == []
        kept.write_text(before, encoding="utf-8")
        assert memory.records.find() == []
        memory.records._clock = lambda: datetime.now(UTC) + timedelta(days=365)
        assert memory.records.decay(least=0.01) == []
        assert memory.records.expire() == ["memory/records/preference/***.lands.md"]
    assert [file.name for file in folder.iterdir()] == ["falcon.rests.md"]
    assert kept.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("misspelled", ["hihg", "", "[high]"])
def test_a_sensitivity_that_is_none_counts_as_high(place, misspelled):
    with broken(place, "door.code", "sensitivity", misspelled) as path:
        with pytest.raises(SignatureError):
            place.memory.get(path)
        place.memory.sync()
        assert "dark cellar" not in told(place.memory.search("What is in the cellar?", max_results=50, min_score=0))
        with pytest.raises(RecordError, match=r"sensitivity|policies hide"):
            place.memory.records.read(path)


def test_of_a_masked_record_no_field_is_quoted(place):
    with broken(place, "door.code", "confidence", "in the dark cellar") as path:
        (said,) = place.memory.records.problems()
        assert said == f"{path} cannot be read as a record, and policies hide what is wrong with it: correct it by hand"


def test_a_line_that_is_not_shown_can_be_deleted(place):
    seen = place.memory.get("MEMORY.md", start=3, lines=1)
    assert seen.text == ""
    place.memory.delete("MEMORY.md", 3, 3, seen=seen)
    assert "pier nine" not in (place.memory.workspace.root / "MEMORY.md").read_text(encoding="utf-8")


def test_rules_inside_a_workspace_count_for_nothing(tmp_path):
    (tmp_path / ".memory").mkdir()
    (tmp_path / ".memory" / "config.toml").write_text("[policies]\nrules = []\n", encoding="utf-8")
    with Memory.open(tmp_path, config=CONFIG) as memory:
        assert any("policies.rules" in notice for notice in memory.status().notices)
        with pytest.raises(PolicyError):
            memory.append(FORBIDDEN)


def test_a_record_under_never_store_is_refused_by_its_key(place):
    with pytest.raises(PolicyError, match="health"):
        place.memory.records.remember("fact", "health.hip", "well")
    assert place.memory.records.forget("fact", "health.knee")


def doors_of(owner: type) -> set[str]:
    return {f"{owner.__name__}.{name}" for name in dir(owner) if not name.startswith("_")}


def test_every_door_has_a_row():
    doors = doors_of(Memory) | doors_of(Documents) | doors_of(Records)
    doors |= {f"tool {name}" for name in TOOL_SCHEMAS} | {f"command {name}" for name in COMMANDS}
    assert doors - SHOWING.keys() - WRITING.keys() - WITHOUT_TEXT.keys() == set()
    assert issubclass(PolicyError, OpenClawMemoryError)
