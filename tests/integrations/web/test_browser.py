"""The command in a real process, and its page in Chromium: typing, opening, editing, forgetting, both themes and widths."""

import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from contrast import POOR
from openclaw_memory_web import server
from uninstalled import make_environment, run_without

THEMES, WIDTHS = ("light", "dark"), (390, 1440)
# What Chromium asks the network for by itself is switched off; its sandbox is not for the root user of a container.


@contextmanager
def served(folder, *options, **variables):
    """The command, and the address that it prints."""
    options = options or ("--no-browser",)
    command = [sys.executable, "-m", "openclaw_memory", "web", "--workspace", str(folder), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=make_environment(**variables), text=True, **pipes) as process:
        try:
            yield process, re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stdout.readline())[0]
        finally:
            process.kill()


@contextmanager
def opened_by_browser(memory, tmp_path):
    """The command with a program as its browser, the address, and the file that this was started with."""
    started, browser = tmp_path / "started", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {started}.new\nmv {started}.new {started}\n', encoding="utf-8")
    browser.chmod(0o700)
    with served(memory.workspace.root, "--port", "0", BROWSER=f"{browser} %s") as (process, url):
        while not started.exists():
            assert process.poll() is None
        address = started.read_text(encoding="utf-8").strip()
        assert url.partition("=")[2] not in address
        yield process, url, Path(url2pathname(urlsplit(address).path))


@pytest.mark.parametrize(("end", "is_used"), [(signal.SIGTERM, True), (signal.SIGINT, False)])
def test_a_browser_is_started_with_a_file_of_the_users_that_goes_once_used_or_at_the_end(
    memory, tmp_path, end, is_used
):
    import httpx

    with opened_by_browser(memory, tmp_path) as (process, url, file), httpx.Client() as client:
        assert (file.stat().st_mode & 0o777, f'content="0; url={url}"' in file.read_text("utf-8")) == (0o600, True)
        if is_used:
            assert client.get(url).status_code == 200
            assert not file.exists()
            assert "Groen" in client.get(url.partition("?")[0], params={"q": "spare key"}).text
        process.send_signal(end)
        assert (process.wait(20), process.stderr.read(), file.exists()) == (0, "", False)


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "jinja2", "markdown_it"])
@pytest.mark.sampled(1)
def test_without_its_packages_the_command_says_what_to_install(missing):
    script = """
from click.testing import CliRunner
from openclaw_memory.cli.commands import commands
print(CliRunner().invoke(commands, ["web", "--no-browser"]).exception)
"""
    said = run_without(script, missing)
    assert missing in said
    assert 'pip install ".[web]"' in said


@pytest.mark.parametrize(
    "part", ["", "GET / HT", "POST /forget HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nkey"]
)
def test_a_request_that_does_not_arrive_whole_ends_its_connection(memory, monkeypatch, part):
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)
    addresses = queue.Queue()
    threading.Thread(target=server.serve, args=[memory], kwargs={"started": addresses.put}, daemon=True).start()
    place = urlsplit(addresses.get(timeout=20))
    with socket.create_connection((place.hostname, place.port), timeout=20) as slow:
        slow.sendall(part.encode())
        with suppress(ConnectionResetError):
            while slow.recv(4096):
                pass


def test_a_port_that_is_taken_is_said(memory, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = run("web", "--workspace", memory.workspace.root, "--no-browser", "--port", port)
    assert (outcome.code, f"port {port}" in outcome.err) == (2, True)


def watched(context, url, *others):
    """A page, and what goes wrong in it: errors, refusals of its policy, requests to anywhere else."""
    page, trouble = context.new_page(), []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda said: trouble.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("response", lambda got: trouble.append(f"{got.status} {got.url}") if got.status >= 400 else None)
    own = (url.partition("?")[0], *others)
    page.on("request", lambda asked: None if asked.url.startswith(own) else trouble.append(asked.url))
    return page, trouble


@pytest.mark.site
def test_somebody_comes_from_the_file_searches_opens_edits_and_forgets(memory, tmp_path, chromium):
    folder = memory.workspace.root
    with opened_by_browser(memory, tmp_path) as (_, url, file), chromium.new_context() as context:
        page, trouble = watched(context, url, file.as_uri())
        page.goto(file.as_uri())
        page.wait_for_url(url.partition("?")[0])
        page.get_by_label("A question, or words").press_sequentially("spare key")
        page.wait_for_selector("mark")
        assert page.locator("#found").inner_text().endswith("results by hybrid search")
        page.reload()  # what was typed is in the address
        page.get_by_role("link", name=re.compile("^MEMORY.md#")).first.click()
        assert page.locator("mark.line").first.is_visible()
        page.get_by_role("link", name="Line by line").click()
        page.get_by_role("link", name="Line 3", exact=True).click()
        page.get_by_role("link", name="Edit the marked lines").click()
        page.get_by_label("Markdown").fill("The spare key is with Anna.")
        page.get_by_role("button", name="Save").press("Enter")
        assert page.locator("mark.line").inner_text() == "The spare key is with Anna."
        assert "Anna" in (folder / "MEMORY.md").read_text(encoding="utf-8")
        page.get_by_role("link", name="Forget the marked lines").click()
        assert "Nothing was changed yet" in page.locator("main").inner_text()
        page.get_by_role("link", name="Forget nothing").click()
        assert "Anna" in (folder / "MEMORY.md").read_text(encoding="utf-8")
        page.get_by_label("Files and lines").fill("MEMORY.md#L3")
        page.get_by_label("Files and lines").locator("xpath=ancestor::form").get_by_role("button").click()
        page.get_by_role("button", name="Forget all of this").click()
        page.get_by_role("heading", name="Forgotten").wait_for()
        assert "Anna" not in (folder / "MEMORY.md").read_text(encoding="utf-8")
        assert trouble == []


@pytest.mark.site
def test_a_page_of_another_site_can_follow_the_address_once_and_send_nothing(memory, chromium):
    with served(memory.workspace.root) as (_, url), chromium.new_context() as context:
        home = url.partition("?")[0]
        page = context.new_page()
        page.goto("data:text/html,<a href='" + url + "'>open</a>")  # a terminal in a browser, say
        page.get_by_role("link").click()
        page.get_by_role("searchbox").wait_for()
        form = f"<form method=post action='{home}forget'><input name=paths value=MEMORY.md><button>Win</button></form>"
        page.goto(f"data:text/html,{form}")
        page.get_by_role("button").click()
        page.wait_for_url(f"{home}forget")
        assert "Groen" in (memory.workspace.root / "MEMORY.md").read_text(encoding="utf-8")
        assert "Open the address" in page.content()
        with chromium.new_context() as other:
            stranger = other.new_page()
            assert stranger.goto(url).status == 403


@pytest.mark.site
@pytest.mark.parametrize("theme", THEMES)
def test_every_page_fits_and_can_be_read_in_both_themes_and_widths(memory, chromium, theme):
    memory.records.confirm("preference", "editor.theme", value="light")
    (path,) = (record.path for record in memory.records.find())
    lines = "/note?path=MEMORY.md&lines=L3-L4"
    pages = [
        "/",
        "/?q=spare+key",
        lines,
        f"{lines}&view=lines",
        "/edit?path=MEMORY.md&start=1&end=3",
        "/days",
        "/records",
    ]
    pages += [f"/record?path={path}", "/forget", "/forget?paths=MEMORY.md", "/access", "/status", "/nowhere"]
    with served(memory.workspace.root) as (_, url), chromium.new_context(color_scheme=theme) as context:
        page, trouble = watched(context, url)
        page.goto(url)
        page.wait_for_url(url.partition("?")[0])
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for address in pages:
                page.goto(url.partition("/?")[0] + address)
                page.wait_for_load_state("networkidle")
                shape = page.evaluate(SHAPE)
                assert shape["wide"] <= 0, (address, width)
                assert shape["unnamed"] == [], address
                assert shape["cut"] <= 0, (address, width)
                assert page.evaluate(POOR) == [], address
                assert shape["headings"] == 1, address
        assert [said for said in trouble if "404" not in said] == []


# How much wider a page and its menu are than the screen, and what in it has no name for a screen reader.
SHAPE = """() => {
  const unnamed = [...document.querySelectorAll("input:not([type=hidden]), textarea, select, button, a")]
    .filter(one => !(one.labels && one.labels.length) && !one.ariaLabel && !one.textContent.trim()).map(one => one.outerHTML);
  const root = document.documentElement, menu = document.querySelector("header nav");
  return { wide: root.scrollWidth - root.clientWidth, cut: menu.scrollWidth - menu.clientWidth, unnamed,
           headings: document.querySelectorAll("main > h1").length };
}"""
