"""The plugin in the real OpenCode, which talks to a model on this machine: what is said is remembered in the next session.

OPENCODE names the binary; without it, `npm install` fetches the version of the day. So it is with the types that the
plugin is checked against.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from watching import eventually


class FakeOpenAI:
    """Answers each request with what `reply(request)` returns: a text, or the name and arguments of a tool to call."""

    def __init__(self, reply):
        self.asked = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.asked.append(request)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for chunk in fake.chunks(reply(request)):
                    self.wfile.write(f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n".encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def chunks(self, said):
        delta = {"role": "assistant", "content": said}
        if not isinstance(said, str):
            name, arguments = said
            function = {"name": name, "arguments": json.dumps(arguments)}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}],
            }
        head = {"id": "r", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
        yield {**head, "choices": [{"index": 0, "delta": delta}]}
        why = "stop" if isinstance(said, str) else "tool_calls"
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": why}]}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        yield {**head, "choices": [], "usage": usage}
        yield "[DONE]"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def words(request):
    """All that the messages of a request say, those of the system too."""
    return "\n".join(text for message in request["messages"] for text in texts(message))


def texts(message):
    content = message.get("content") or ""
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content]


pytestmark = pytest.mark.hosts

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "integrations" / "opencode_memory"
FLUSH = "Pre-compaction memory flush"
# By language: what to remember, what it is about, the question that this leads to, the user's consent; a question in the
# next session, the words to search for, and the answer.
ROWS = Path(__file__).with_name("wishes.tsv").read_text(encoding="utf-8").splitlines()
WISHES = {language: tuple(words) for language, *words in (row.split("\t") for row in ROWS)}
NOTE = "- The ferry to Texel leaves at seven."
ASKED = "When does the ferry to Texel leave?"


def install(folder, *packages):
    """Install what the plugin is developed with, and more, into a folder; return its node_modules."""
    shutil.copy(PLUGIN / "package.json", folder)
    npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
    subprocess.run(npm, cwd=folder, check=True)
    return folder / "node_modules"


@pytest.fixture(scope="session")
def types(tmp_path_factory):
    """The folder of node_modules with TypeScript and the published types, without OpenCode itself."""
    given = os.environ.get("OPENCODE_MODULES")
    return Path(given) if given else install(tmp_path_factory.mktemp("types"))


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    """The folder of node_modules with OpenCode."""
    if given := os.environ.get("OPENCODE_MODULES"):
        return Path(given)
    return install(tmp_path_factory.mktemp("npm"), "opencode-ai@latest")


@pytest.fixture(scope="session")
def binary(modules):
    return os.environ.get("OPENCODE") or next(modules.glob("opencode-linux-*/bin/opencode"))


def test_the_plugin_has_the_types_of_the_published_interface(types, tmp_path):
    shutil.copytree(PLUGIN, tmp_path, dirs_exist_ok=True)
    (tmp_path / "node_modules").symlink_to(types)
    tsc = types / "typescript" / "bin" / "tsc"
    command = ["node", tsc, "-p", "jsconfig.json", "--pretty", "false"]
    checked = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert (checked.stdout, checked.returncode) == ("", 0)


class Host:
    """OpenCode with the plugin, in a home and a project of its own; `talk` is its server."""

    def __init__(self, binary, root, model):
        self.binary, self.project, self.model = binary, root / "project", model
        home = root / "home"
        self.project.mkdir()
        home.mkdir()
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": model.url, "apiKey": "none"},
            "models": {"fake": {"name": "Fake", "tool_call": True, "limit": {"context": 20_000, "output": 1_000}}},
        }
        command = [sys.executable, "-m", "openclaw_memory"]
        memory = {"search": {"maxResults": 5}, "intentDetection": {"languages": [*WISHES]}}
        patience = root / "patience.toml"  # a machine that is busy with tests takes longer than a user would wait
        patience.write_text("[defaults.plugins.intent]\ndeadline_seconds = 60.0\n")
        options = {"command": command, "config": str(patience), "memory": memory}
        settings = {
            "model": "local/fake",
            "small_model": "local/fake",
            "provider": {"local": provider},
            "plugin": [[str(PLUGIN / "plugin.js"), options]],
            "autoupdate": False,
            "share": "disabled",
        }
        (self.project / "opencode.json").write_text(json.dumps(settings))
        (self.project / "MEMORY.md").write_text("# Memory\n\n- The harbour is Den Helder.\n")
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        off = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        self.environment = {**kept, "HOME": str(home), **{f"OPENCODE_DISABLE_{name}": "1" for name in off}}

    def start(self, *arguments, **options):
        command = [self.binary, *arguments, "--print-logs"]
        options |= {"cwd": self.project, "env": self.environment, "stdin": subprocess.DEVNULL, "text": True}
        return subprocess.Popen(command, **options)

    def __enter__(self):
        self.log = (self.project.parent / "log").open("w+")
        self.server = self.start("serve", "--port", "0", stdout=subprocess.PIPE, stderr=self.log)
        self.url = next(line for line in self.server.stdout if "listening" in line).split()[-1]
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait(30)
        self.server.stdout.close()
        self.log.close()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.loads(answer.read() or b"null")

    def say(self, session, text):
        parts = [{"type": "text", "text": text}]
        return self.call("POST", f"/session/{session}/message", {"parts": parts})


@pytest.fixture
def model():
    def reply(request):
        said = words(request)
        if FLUSH in said:
            return NOTE if said_by("user", request).startswith("Session nearing") else "A summary."
        if not request.get("tools"):
            return "A talk about a ferry."
        if wants_search(request):
            return "memory_search", {"query": "Which harbour is it?"}
        return "Understood."

    with FakeOpenAI(reply) as fake:
        yield fake


def wants_search(request):
    last = request["messages"][-1]
    return last["role"] == "user" and any("search for it" in text for text in texts(last))


def said_by(role, request):
    return words({"messages": [message for message in request["messages"] if message["role"] == role]})


def kept(log):
    """The texts of a transcript's messages."""
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    return [block["text"] for entry in entries[1:] for block in entry["message"]["content"]]


def test_a_conversation_that_is_compacted_and_ends_is_remembered_in_the_next(binary, tmp_path, model):
    with Host(binary, tmp_path, model) as host:
        session = host.call("POST", "/session", {})["id"]
        host.say(session, "Which harbour is it? Please search for it.")
        first = next(asked for asked in model.asked if asked.get("tools"))
        called = next(message for asked in model.asked for message in asked["messages"] if message["role"] == "tool")
        host.say(session, ASKED)
        host.say(session, "It leaves at seven, I have heard.")
        before = len(model.asked)
        host.call("POST", f"/session/{session}/summarize", {"providerID": "local", "modelID": "fake"})
        compaction = model.asked[before:]
        host.say(session, "What was it about?")
        after = model.asked[-1]
        sessions = host.call("GET", "/session")
        (log,) = (host.project / "sessions").glob("*.jsonl")
        eventually(lambda: len(kept(log)) == 8)
        host.call("DELETE", f"/session/{session}")
        snapshots = host.project / ".memory" / "snapshots"
        eventually(lambda: [*snapshots.glob("*.json")])  # OpenCode waits for no plugin here
    tools = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
    assert tools["memory_search"]["parameters"]["required"] == ["query"]
    assert "The harbour is Den Helder." in said_by("system", first)
    assert "<recalled-memory" in said_by("user", first)
    assert json.loads("".join(texts(called)))["status"] == "ok"
    flushes = [asked for asked in compaction if FLUSH in words(asked)]
    assert len(flushes) == 1
    assert ASKED in words(flushes[0])
    assert not flushes[0].get("tools")
    assert [one["id"] for one in sessions] == [session]
    (note,) = (host.project / "memory").glob("*.md")
    assert NOTE in note.read_text()
    assert NOTE in said_by("system", after)
    (snapshot,) = snapshots.glob("*.json")
    assert "What was it about?" in snapshot.read_text()
    assert kept(log).count(ASKED) == 1
    assert not [*Path(host.environment["HOME"]).rglob("hooks.log")]
    model.asked.clear()
    host.start("run", "Which ferry goes to Texel?", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(120)
    assert any(NOTE in words(asked) for asked in model.asked)
    logs = "".join(log.read_text() for log in (host.project / "sessions").glob("*.jsonl"))
    assert "Which ferry goes to Texel?" in logs


def spoken(message):
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def read_intent(prompt):
    """What the scripted model takes the message in the prompt of the documents for."""
    message = prompt.partition("Message:\n")[2]
    for language, (said, about, _, _, asked, words, _) in WISHES.items():
        for intent, text, entity in (("remember", said, about), ("query", asked, words)):
            if text in message:
                return json.dumps({"intent": intent, "entities": [entity], "confidence": 0.9, "language": language})
    return json.dumps({"intent": None, "entities": [], "confidence": 0.9, "language": "en"})


def follow_suggestions(request):
    """Ask, save and search where a suggestion says so, and answer with what a search has brought."""
    last = words({"messages": request["messages"][-1:]})
    if "Analyze this message for memory intent" in last:
        return read_intent(last)
    if not request.get("tools"):
        return "A title."
    if request["messages"][-1]["role"] == "tool":
        return " ".join(["Done.", *(result["snippet"] for result in json.loads(last).get("results", []))])
    if question := re.search("^Question: (.*)$", last, re.MULTILINE):
        return question[1]
    if searched := re.search("^Words: (.*)$", last, re.MULTILINE):
        return "memory_search", {"query": searched[1]}
    user = [message for message in request["messages"] if message["role"] == "user"]
    is_consent = len(user) > 1 and "with memory_append" in words({"messages": user[-2:-1]})
    return ("memory_append", {"text": texts(user[-2])[0]}) if is_consent else "I do not know."


def test_what_a_user_wants_remembered_in_six_languages_is_known_in_the_next_session(binary, tmp_path):
    with FakeOpenAI(follow_suggestions) as model, Host(binary, tmp_path, model) as host:
        for said, _, question, consent, asked, _, answer in WISHES.values():
            session = host.call("POST", "/session", {})["id"]
            assert spoken(host.say(session, said)) == question
            assert spoken(host.say(session, consent)) == "Done."
            host.call("DELETE", f"/session/{session}")
            (note,) = (host.project / "memory").glob("????-??-??.md")
            assert said in note.read_text(encoding="utf-8")
            after = host.call("POST", "/session", {})["id"]
            assert answer in spoken(host.say(after, asked))
        eventually(lambda: len([*(host.project / ".memory" / "snapshots").glob("*.json")]) == len(WISHES))
