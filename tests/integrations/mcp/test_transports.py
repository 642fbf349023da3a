"""The command as clients run it: real processes, over stdin and stdout, and over HTTP."""

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from openclaw_memory_mcp.transports import MAX_CONNECTIONS
from uninstalled import make_environment, run_without

TOKEN = "open-sesame"
RUN = "from openclaw_memory_mcp import transports; from openclaw_memory.cli import main; transports.{}; main()"
GROUP = {"OpenClaw-Session-Key": "agent:main:telegram:group:42"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


def arguments(notes, *options):
    return [sys.executable, "-m", "openclaw_memory", "mcp", "--workspace", str(notes), *options]


@contextlib.contextmanager
def started(notes, *options, changed="", **pipes):
    command = arguments(notes, *options)
    if changed:  # in place of `-m openclaw_memory`
        command[1:3] = ["-c", RUN.format(changed)]
    process = subprocess.Popen(command, env=make_environment(), text=True, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def say(process, *messages):
    process.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
    process.stdin.flush()


@pytest.mark.nightly
async def test_over_stdin_and_stdout_a_client_searches_writes_and_leaves(notes):
    command, *rest = arguments(notes)
    async with Client(
        stdio_client(StdioServerParameters(command=command, args=rest, env=make_environment()))
    ) as client:
        found = (await client.call_tool("memory_search", {"query": "Who has the spare key?"})).structured_content
        assert "Groen" in found["results"][0]["snippet"]
        assert (await client.call_tool("memory_append", {"text": "The caterer is Brandt."})).structured_content[
            "status"
        ] == "ok"
        assert any("Brandt" in file.read_text(encoding="utf-8") for file in (notes / "memory").glob("*.md"))


@pytest.mark.nightly
@pytest.mark.parametrize("end", ["stdin closed", "SIGTERM", "client gone"])
def test_on_stdout_there_is_the_protocol_alone_and_the_end_is_clean(notes, end):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(notes, **pipes) as process:
        say(process, HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "openclaw-memory"
        call = {"name": "memory_search", "arguments": {"query": "spare key"}}
        say(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        if end == "client gone":  # in the middle of its call: nobody reads the answer
            process.stdout.close()
            process.stdin.close()
        else:
            while (heard := json.loads(process.stdout.readline())).get("id") != 2:
                assert heard["jsonrpc"] == "2.0"
            assert "Groen" in str(heard["result"])
            if end == "stdin closed":
                process.stdin.close()
            else:
                process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
        assert process.stdout.closed or process.stdout.read() == ""


REFUSED = {
    "broken": ('{"jsonrpc": "2.0", "id": 2, "method": "ping"', -32700, None),
    "no JSON": ("hello", -32700, None),
    "nested without end": ("[" * 100_000, -32700, None),
    "no message": ("[]", -32600, None),
    "several messages": ('[{"jsonrpc": "2.0", "id": 2, "method": "ping"}]', -32600, None),
    "an id that is null": ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
    "no version": ('{"id": 2, "method": "ping"}', -32600, 2),
    "no method": ('{"jsonrpc": "2.0", "id": "two"}', -32600, "two"),
    "parameters in a list": ('{"jsonrpc": "2.0", "id": 2, "method": "ping", "params": [1]}', -32600, 2),
    "half an emoji, and no method": ('{"jsonrpc": "2.0", "id": "\\ud83d"}', -32600, "\ufffd"),
}
UNANSWERED = {
    "nothing": "",
    "an answer to nothing": '{"jsonrpc": "2.0", "id": 77, "result": {}}',
    "a broken answer": '{"jsonrpc": "2.0", "id": [], "result": 5}',
    "a broken error": '{"jsonrpc": "2.0", "id": null, "error": "what?"}',
}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A process that serves one client for all tests of this module, over stdin and stdout."""
    notes = tmp_path_factory.mktemp("piped") / "notes"
    (notes / "sessions").mkdir(parents=True)
    (notes / "MEMORY.md").write_text("The spare key is with Mrs. Groen.\n", encoding="utf-8")
    half = {"type": "message", "message": {"role": "user", "content": "The ferry leaves at seven \ud83d"}}
    (notes / "sessions" / "talk.jsonl").write_text(json.dumps(half) + "\n", encoding="ascii")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with started(notes, **pipes) as process:
        say(process, HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        hear(process, 1)
        yield process


def hear(process, wanted):
    """The next answer; what the server tells by itself has a method."""
    late = threading.Timer(20, process.kill)  # who is not answered would wait for ever
    late.start()
    try:
        while "method" in (heard := json.loads(process.stdout.readline() or '"no answer"')):
            pass
    finally:
        late.cancel()
    assert heard["id"] == wanted, heard
    return heard


def check_that_it_answers(process):
    say(process, {"jsonrpc": "2.0", "id": 99, "method": "ping"})
    assert hear(process, 99)["result"] == {}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_request_is_refused_and_the_connection_goes_on(client, case):
    line, code, wanted = REFUSED[case]
    client.stdin.write(f"{line}\n")
    client.stdin.flush()
    error = hear(client, wanted)["error"]
    assert error["code"] == code
    assert error["message"]
    check_that_it_answers(client)


@pytest.mark.parametrize("case", UNANSWERED)
def test_what_asks_for_nothing_gets_no_answer_and_the_connection_goes_on(client, case):
    client.stdin.write(f"{UNANSWERED[case]}\n")
    check_that_it_answers(client)


@pytest.mark.parametrize("half", ["\ud83d", "\ud83d\ud83d\ude00"])
def test_half_an_emoji_is_replaced_and_the_rest_is_answered(client, half):
    call = {"name": "memory_search", "arguments": {"query": f"Who has the spare key? {half}"}}
    say(client, {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})
    assert "Groen" in str(hear(client, 3)["result"])
    check_that_it_answers(client)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server over HTTP with a token, for all tests of this module."""
    notes = tmp_path_factory.mktemp("served") / "notes"
    (notes / "memory").mkdir(parents=True)
    (notes / "MEMORY.md").write_text("The spare key is with Mrs. Groen.\n", encoding="utf-8")
    (notes / "memory" / "house.md").write_text("The boiler is serviced each October.\n", encoding="utf-8")
    options = ["--http", "--port", "0", "--token", TOKEN, "--allow-host", "memory.example"]
    with started(notes, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said = process.stderr.readline()
        yield re.search(r"http://127\.0\.0\.1:\d+/mcp", said)[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stdout.read() == ""


@contextlib.asynccontextmanager
async def client_of(url, mode="auto", **headers):
    headers = {"Authorization": f"Bearer {TOKEN}", **headers}
    async with (
        httpx.AsyncClient(headers=headers, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def test_over_http_eight_clients_are_served_at_once(url):
    async def one(number):
        async with client_of(url, "legacy" if number % 2 else "auto") as client:
            found = await client.call_tool("memory_search", {"query": "Who has the spare key?"})
            return found.structured_content["results"][0]["path"]

    assert await asyncio.gather(*(one(number) for number in range(8))) == ["MEMORY.md"] * 8


async def test_a_header_hides_what_is_private_from_one_client_alone(url):
    async with client_of(url, **GROUP) as group, client_of(url) as alone:
        assert "Groen" not in str(await group.call_tool("memory_search", {"query": "Who has the spare key?"}))
        with pytest.raises(MCPError, match="private"):
            await group.read_resource("memory:///MEMORY.md")
        assert "Groen" in str(await alone.read_resource("memory:///MEMORY.md"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "memory.example"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
    ],
)
def test_only_who_may_is_answered(url, headers, status):
    sent = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream", **headers}
    assert httpx.post(url, json=HELLO, headers=sent, timeout=20).status_code == status


def test_a_token_is_made_and_shown_once_where_none_is_given(notes):
    with started(notes, "--http", "--port", "0", stderr=subprocess.PIPE) as process:
        url, token = re.search(r"serving (\S+); .* Bearer (\S+)", process.stderr.readline()).groups()
        for sent, content, status in (
            ("wrong", "", 401),
            (token, json.dumps(HELLO), 200),
            (token, " " * 4_000_001, 413),
        ):
            headers = {"Authorization": f"Bearer {sent}", "Accept": "application/json, text/event-stream"}
            headers["Content-Type"] = "application/json"
            assert httpx.post(url, content=content, headers=headers, timeout=20).status_code == status


def test_a_request_that_does_not_arrive_whole_or_has_no_end_of_headers_ends_its_connection(notes):
    with started(notes, "--http", "--port", "0", stderr=subprocess.PIPE, changed="REQUEST_SECONDS = 0.5") as process:
        place = httpx.URL(re.search(r"http://\S+/mcp", process.stderr.readline())[0])
        large = b"POST /mcp HTTP/1.1\r\nPadding: " + b"a" * 40_000
        unfinished = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
        for part in (b"", b"POST /mcp HT", unfinished, large):
            heard = b""
            with socket.create_connection((place.host, place.port), timeout=20) as slow:
                slow.sendall(part)
                with contextlib.suppress(ConnectionResetError):
                    while more := slow.recv(4096):
                        heard += more
            assert (b" 400 Bad Request" in heard) is (part is large)


def test_more_connections_than_are_served_are_told_so(url):
    place, headers = httpx.URL(url), {"Authorization": f"Bearer {TOKEN}"}
    with contextlib.ExitStack() as idle:
        for _ in range(MAX_CONNECTIONS):
            idle.enter_context(socket.create_connection((place.host, place.port), timeout=20))
        assert httpx.get(url, headers=headers, timeout=20).status_code == 503
    while httpx.post(url, json=HELLO, timeout=20).status_code != 401:
        pass


def test_a_port_that_is_taken_is_named(run, notes, url):
    port = url.split(":")[2].split("/")[0]
    outcome = run("mcp", "--workspace", notes, "--http", "--port", port)
    assert (outcome.code, f"port {port} cannot be listened on" in outcome.err) == (2, True)


@pytest.mark.parametrize("token", ["", " ", "käse", "a\nb"])
def test_a_token_that_guards_nothing_is_refused(run, notes, token):
    outcome = run("mcp", "--workspace", notes, "--http", "--port", "0", "--token", token)
    assert (outcome.code, "the token" in outcome.err) == (2, True)


def test_without_the_sdk_the_package_says_which_extra_to_install():
    script = """
try:
    import openclaw_memory_mcp
except MissingExtraError as error:
    print(error)
"""
    assert '".[mcp]"' in run_without(script, "mcp")
