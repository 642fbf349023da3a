"""The command in a real process, and its page in Chromium: typing, opening, editing, forgetting, both themes and widths."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from contrast import POOR
from uninstalled import ROOT, run_without

THEMES, WIDTHS = ("light", "dark"), (390, 1440)
# What Chromium asks the network for by itself is switched off; its sandbox is not for the root user of a container.


@contextmanager
def served(folder, *options):
    """The command, and the address that it prints."""
    paths = [str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "openclaw_memory", "web", "--workspace", str(folder), "--no-browser", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        try:
            yield process, re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stdout.readline())[0]
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.sampled(1)
def test_the_command_prints_its_address_answers_and_ends_cleanly(memory, how):
    import httpx

    with served(memory.workspace.root) as (process, url), httpx.Client() as client:
        assert client.get(url).status_code == 200
        assert "Groen" in client.get(url.partition("?")[0], params={"q": "spare key"}).text
        process.send_signal(how)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


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


def test_a_port_that_is_taken_is_said(memory, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = run("web", "--workspace", memory.workspace.root, "--no-browser", "--port", port)
    assert (outcome.code, f"port {port}" in outcome.err) == (2, True)


def watched(context, url):
    """A page, and what goes wrong in it: errors, refusals of its policy, requests to anywhere else."""
    page, trouble = context.new_page(), []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda said: trouble.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("response", lambda got: trouble.append(f"{got.status} {got.url}") if got.status >= 400 else None)
    page.on("request", lambda asked: None if asked.url.startswith(url.partition("?")[0]) else trouble.append(asked.url))
    return page, trouble


@pytest.mark.site
def test_somebody_searches_opens_edits_and_forgets(memory, chromium):
    folder = memory.workspace.root
    with served(folder) as (_, url), chromium.new_context() as context:
        page, trouble = watched(context, url)
        page.goto(url)
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
